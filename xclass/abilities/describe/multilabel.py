"""Describe the default learner of lists of labels, and explain its predictions by the logistic regression.

The score of a label is z of `ranking`, the sum of these parts:

    scorer    what V makes of s = b + w . x, less what it would make of s = 0; features share it as they share s
    index     what V makes of the cosine, which features share as they share the cosine
    near      the vote of the nearest examples
    prior     what is the same for all examples: how frequent the label is, and a constant

Labels of the example that are no candidates have no score.
"""

from __future__ import annotations

import math

import numpy as np

from ...array_types import Float64s, UInt32s
from ...binary import adagrad, arow, feature_scaling, gd, in_words, tagged_words
from ...data.batch import Batch
from ...explain.records import ExplainedClass, Reasons, Share
from ...reductions.core import label_arrays
from ...reductions.core.contract import BatchTask
from ...reductions.multiclass import feature_index
from ...reductions.multilabel import frequent, neighbours, ranking
from ...reductions.multilabel.reduction import PROPOSALS, Multilabel
from .oaa import LOGISTIC
from .reasons import MOST_OTHERS, NOTHING, of_regressor, shares_of


def banner(learner: Multilabel) -> list[str]:
    size = adagrad.SLOT_BYTES << learner.bits
    most = (
        "" if learner.testing else f", growing to at most {in_words.size(size << (learner.options.max_doublings or 0))}"
    )
    return [
        f"Candidates: all labels up to {frequent.MOST_ALL}, then the {frequent.FREQUENT} most frequent ones, "
        f"{PROPOSALS} from the index and {neighbours.VOTED} from near examples",
        f"Weights: {in_words.size(size)}{most}",
    ]


def learning_lines(learner: Multilabel, binary: gd.BinaryOptions) -> list[str]:
    r = learner.options.arow_r
    return [f"Scorers: AROW, regularisation {'learned' if r is None else f'{r:g}'}"]


def summary(learner: Multilabel) -> list[str]:
    exponent = learner.scorers.state[0, ranking.EXPONENT]
    return [
        *learner.report.lines(),
        f"exponent of inverse document frequency = {exponent:.2f}",
        f"regularisation of AROW = {arow.r_of(learner.scorers.regularisation):.3g}",
        tagged_words.occupancy([learner.scorers.words]),
    ]


def feature_counts(learner: Multilabel, index: UInt32s) -> Float64s:
    """Return the weight of the learned examples with each feature."""
    return learner.frequencies.count[feature_scaling.slots_of(index)]


def word_tables(learner: Multilabel) -> dict[str, tagged_words.Words]:
    return {"scorers": learner.scorers.words}


# o(y) of each part
SCORER = [ranking.SCORE, ranking.ABOVE, ranking.NEAR, ranking.SCORE_COUNT]
CENTROID, VOTE = [ranking.COSINE, ranking.ROOT_COSINE], [ranking.VOTE, ranking.ROOT_VOTE]
FREQUENCY = [ranking.COUNT, ranking.RARE]


def explain(learner: Multilabel, batch: Batch, k: int) -> Reasons:
    """Explain the k best labels for the only example of a batch, and its own labels."""
    task = BatchTask(batch, False, np.zeros(1))
    learner.prepare(task)
    learner.propose(task)
    plan = task.plan
    weighted, proposed, scorers = plan.weighted, plan.proposed, learner.scorers
    candidates = proposed.candidate[0, : np.count_nonzero(proposed.candidate[0])].tolist()
    scratch = ranking.new_scratch(scorers, batch.most_features, proposed.candidate.shape[1], label_arrays.most(batch))
    output = ranking.new_ranking(1, max(len(candidates), 1))
    learner.rank_kernel(scorers, weighted, plan.label, plan.learns, False, False, 0, 1, proposed, scratch, output)
    count = int(output.count[0])
    if not count:
        return NOTHING
    ranked, p = output.label[0, :count].tolist(), output.p[0, :count].tolist()
    own = [] if np.isnan(batch.label[0]) else (label_arrays.whole(batch).astype(np.int64) - learner.lowest + 1).tolist()
    wanted = [*ranked[:k], *(y for y in own if 0 < y < len(scorers.bias) and y not in ranked[:k])]
    position = np.flatnonzero(weighted.batch.value)  # in the example, of the features that have a weight
    h, x, v = scratch.h[: len(position)], scratch.x[: len(position)], scorers.state[0]

    def explained(y: int) -> ExplainedClass:
        label = y - 1 + learner.lowest
        if y not in candidates:
            return ExplainedClass(label, None, 0.0)
        c = candidates.index(y)
        o = np.empty(ranking.OPINIONS)
        ranking.set_opinions(scorers, scratch.score[c], proposed.score[0, c], proposed.vote[0, c], y, o)
        z = float(v[: ranking.OPINIONS] @ o)
        s, products = float(scratch.score[c]), np.zeros(batch.most_features)
        products[position] = of_regressor(scorers.words, h, x, y)
        at_zero = float(v[ranking.NEAR]) * ranking.NEAR_ZERO
        of_scorer = float(v[SCORER] @ o[SCORER]) - at_zero
        cosine = np.zeros(batch.most_features)
        if o[ranking.COSINE] > 0.0:
            feature_index.add_cosines(learner.index.index, batch.index, weighted.share, y, cosine)
        of_cosine = float(v[CENTROID] @ o[CENTROID])
        shares = [
            *shares_of(_divided(of_scorer, products, s), "scorer"),
            Share("bias", float(scorers.bias[y]) * of_scorer / s if s else 0.0, "scorer"),
            *shares_of(_divided(of_cosine, cosine, float(o[ranking.COSINE])), "index"),
            Share("vote", float(v[VOTE] @ o[VOTE]), "near"),
            Share("frequency", float(v[FREQUENCY] @ o[FREQUENCY]), "prior"),
            Share("constant", float(v[ranking.ONE_]) + at_zero, "prior"),
        ]
        score = min(max(z, -ranking.LARGEST_Z), ranking.LARGEST_Z)
        if score != z:
            shares.append(Share("limit", score - z, "limit"))
        shares = [share for share in shares if share.share]
        return ExplainedClass(label, score, 1.0 / (1.0 + math.exp(-score)), tuple(shares))

    others = [
        ExplainedClass(y - 1 + learner.lowest, math.log(q / (1.0 - q)), q)
        for y, q in zip(ranked[k : k + MOST_OTHERS], p[k : k + MOST_OTHERS], strict=True)
        if y not in wanted
    ]
    return Reasons(list(map(explained, wanted)), others, count, LOGISTIC)


def _divided(amount: float, parts: Float64s, total: float) -> Float64s:
    """Divide an amount as the parts divide their total; nothing if that is 0."""
    return parts * (amount / total) if total else np.zeros_like(parts)
