"""Explain a prediction of the scorers that rerank what trees and the index of features propose.

The score of a class has three parts, see `reranking`: the features of its scorer; what the trees say about the class;
and what the index says, whose cosine is a sum over features too.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ....array_types import Float32s, Float64s
from ....binary import document_frequency
from ....data.batch import Batch
from ....kernels.direct import DirectCall
from ....reductions.multiclass import feature_index, reranking
from ..reasons import NOTHING, Candidate, Reasons, Term, Turn, chosen, terms_of
from .tree_path import TreePaths

OF_TREES = (
    (reranking.MEAN, "mean log probability"),
    (reranking.LARGEST, "largest log probability"),
    (reranking.SUPPORT, "share of the trees that propose it"),
)
OF_INDEX = ((reranking.PROPOSED, "proposed"), (reranking.BAYES, "naive Bayes"))


class Example(NamedTuple):
    """Hold the only example of a batch and what was found out about it before the scorers see it."""

    batch: Batch  # without weights of features
    weighted: document_frequency.Weighted
    label: float  # NaN for none
    proposed: reranking.Proposed
    paths: list[TreePaths]  # of each tree


class Ranking:
    """Hold the scores of the candidates of an example, as the kernel computes them.

    Parameters
    ----------
    kernel : `reranking.rank`
    scorers : the scorers
    unit : whether examples are scaled to length 1
    example : the example
    """

    def __init__(self, kernel: DirectCall, scorers: reranking.Scorers, unit: bool, example: Example) -> None:
        self._scorers, self._example = scorers, example
        batch, most = example.batch, example.proposed.opinions.candidate.shape[1]
        label = np.array([0 if math.isnan(example.label) else int(example.label)])
        result = reranking.Ranked(np.zeros((1, most), np.int64), np.zeros((1, most)), np.zeros(1), np.zeros(1, bool))
        self._scratch = reranking.scratch(batch, most)
        none = np.zeros(1, bool)
        kernel(
            scorers, unit, batch, example.weighted.log_weight, label, none, False, 0, 1, example.proposed,
            self._scratch, result,
        )  # fmt: skip
        self.label_probability = float(result.p[0])
        self.candidates: list[int] = example.proposed.opinions.candidate[0].tolist()
        self.size = int(np.count_nonzero(result.top[0]))
        self.ranked: list[int] = result.top[0, : self.size].tolist()
        self.p: list[float] = result.top_p[0, : self.size].tolist()
        self.sharpness = float(scorers.state[0, reranking.SHARPNESS])

    def score(self, label: int) -> float:
        """Return the score of a candidate."""
        return float(self._scratch.score[self.candidates.index(label)])

    @property
    def formula(self) -> str:
        """Return how the probability of a candidate follows from its score."""
        factored = self.sharpness * self._scratch.score[: self.size]
        highest = factored.max()
        log_total = float(highest + math.log(np.exp(factored - highest).sum()))
        sign = "-" if log_total >= 0 else "+"
        return f"{sum(self.p):.9g} * exp({self.sharpness:.9g} * score {sign} {abs(log_total):.9g})"

    def features(self, label: int) -> Float64s:
        """Return the share of each feature in w . x of a candidate, float64[s]; see `reranking`."""
        count, c = int(self._example.batch.start[1]), self.candidates.index(label)
        pair = slice(c * count, (c + 1) * count)
        weights = self._scorers.weights
        w: Float32s = self._scratch.pairs.w[pair] if weights.tagged else weights.flat[self._scratch.at[pair]]
        products: Float64s = w.astype(np.float64) * self._scratch.x[:count]
        return products if math.isfinite(products.sum()) else np.zeros(count)  # as the kernel does

    def factor(self, number: int) -> float:
        """Return the parameter by which an o(y) is multiplied; `number` is its index."""
        return float(self._scorers.state[0, number])

    def opinion(self, label: int, number: int) -> float:
        """Return the share of an o(y) of a candidate in its score; `number` is its index."""
        return self.factor(number) * float(self._scratch.offset[self.candidates.index(label), number])


def explain(ranking: Ranking, example: Example, index: feature_index.FeatureIndex | None, k: int) -> Reasons:
    """Explain a prediction.

    Parameters
    ----------
    index : the index of features, None if there is none
    k : number of classes to explain
    """
    if not ranking.size:
        return NOTHING
    shown = {*ranking.ranked[:k], example.label}

    def candidate(y: int, p: float) -> Candidate:
        if y not in shown:
            return Candidate(y, ranking.score(y), p)
        terms = [*terms_of(ranking.features(y), "scorer"), *_opinions(ranking, y, OF_TREES, "trees")]
        if index is not None:
            terms += [*_cosine(ranking, example, index, y), *_opinions(ranking, y, OF_INDEX, "index")]
        return Candidate(y, ranking.score(y), p, tuple(terms), _path(example, y))

    explained, others = chosen(map(candidate, ranking.ranked, ranking.p), k, example.label)
    if example.label > 0 and example.label not in ranking.ranked:
        y = int(example.label)
        explained.append(Candidate(y, None, ranking.label_probability, (), _path(example, y)))
    return Reasons(explained, others, ranking.size, ranking.formula)


def _opinions(ranking: Ranking, y: int, numbers: tuple[tuple[int, str], ...], part: str) -> list[Term]:
    """Return the terms of some o(y) of a class."""
    terms = [Term(ranking.opinion(y, number), name=name, part=part) for number, name in numbers]
    return [term for term in terms if term.share]


def _cosine(ranking: Ranking, example: Example, index: feature_index.FeatureIndex, y: int) -> tuple[Term, ...]:
    """Return the terms of the cosine of a class, which is a sum over features."""
    share = example.weighted.share
    cosine = np.zeros(len(share))
    if feature_index.class_number(index.index, y) >= 0:
        feature_index.add_cosines(index.index, example.batch.index, share, y, cosine)
    return terms_of(ranking.factor(reranking.COSINE) * cosine, "index")


def _path(example: Example, y: int) -> tuple[Turn, ...]:
    """Return the paths to a class in all trees, one after the other."""
    return tuple(turn for tree in example.paths for turn in tree.to(y) or ())
