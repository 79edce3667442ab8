"""Explain a prediction of the scorers that rerank what trees and the index of features propose.

The score of a class has three parts, see `reranking`: the features of its scorer; what the trees say about the class;
and what the index says, whose cosine is a sum over features too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...binary import document_frequency
from ...data.batch import Batch
from ...explain.records import ExplainedClass, Reasons, Share, Turn
from ...kernels.constants import LARGEST
from ...reductions.core import label_arrays
from ...reductions.multiclass import feature_index, reranking
from ...reductions.multiclass.reduction import Multiclass
from .reasons import NOTHING, chosen, shares_of
from .tree_path import TreePaths

OPINIONS = (  # o(y) that are no sum over features: index, part, name
    (reranking.MEAN, "trees", "mean log probability"),
    (reranking.LARGEST, "trees", "largest log probability"),
    (reranking.SUPPORT, "trees", "share of the trees that propose it"),
    (reranking.PROPOSED, "index", "proposed"),
    (reranking.BAYES, "index", "naive Bayes"),
)


def explain(
    learner: Multiclass, batch: Batch, weighted: document_frequency.Weighted, proposed: reranking.Proposed,
    paths: Sequence[TreePaths], k: int,
) -> Reasons:  # fmt: skip
    """Explain the prediction for the only example of a batch, whose features are not weighted.

    `paths` are those of each tree.
    """
    scorers, index, label = learner.scorers, learner.index, float(batch.label[0])
    candidates, factor = proposed.opinions.candidate[0].tolist(), scorers.state[0]
    scratch, result = reranking.scratch(batch, len(candidates)), reranking.new_ranking(1, len(candidates))
    learner.rank_kernel(
        scorers, learner.options.normalize_features != "none", batch, weighted.log_weight,
        label_arrays.whole(batch), np.zeros(1, bool), False, 0, 1, proposed, scratch, result,
    )  # fmt: skip
    size, count = int(np.count_nonzero(result.top[0])), int(batch.start[1])
    if not size:
        return NOTHING
    ranked, p = result.top[0, :size].tolist(), result.top_p[0, :size].tolist()
    shown = {*ranked[:k], label}

    def path(y: int) -> tuple[Turn, ...]:
        return tuple(turn for tree in paths for turn in tree.to(y) or ())

    def explained_class(y: int, probability: float) -> ExplainedClass:
        c = candidates.index(y)
        score = float(scratch.score[c])
        if y not in shown:
            return ExplainedClass(y, score, probability)
        products = scratch.pairs.w[c * count : (c + 1) * count].astype(np.float64) * scratch.x[:count]
        if abs(products.sum()) > LARGEST:  # as the kernel does
            products = np.zeros(count)
        cosine = np.zeros(count)
        if index is not None and feature_index.class_number(index.index, y) >= 0:
            feature_index.add_cosines(index.index, batch.index, weighted.share, y, cosine)
        shares = [*shares_of(products, "scorer"), *shares_of(float(factor[reranking.COSINE]) * cosine, "index")]
        for number, part, name in OPINIONS:
            share = float(factor[number] * scratch.offset[c, number])
            if share and (part == "trees" or index is not None):
                shares.append(Share(name, share, part))
        return ExplainedClass(y, score, probability, tuple(shares), path(y))

    explained, others = chosen(map(explained_class, ranked, p), k, label)
    if label > 0 and label not in ranked:
        explained.append(ExplainedClass(int(label), None, float(result.p[0]), (), path(int(label))))
    sharpness = float(factor[reranking.SHARPNESS])
    factored = sharpness * scratch.score[:size]
    log_total = float(factored.max() + math.log(np.exp(factored - factored.max()).sum()))
    sign = "-" if log_total >= 0 else "+"
    formula = f"{sum(p):.9g} * exp({sharpness:.9g} * score {sign} {abs(log_total):.9g})"
    return Reasons(explained, others, size, formula)
