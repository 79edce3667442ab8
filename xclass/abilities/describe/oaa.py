"""Describe one-against-all, and explain its predictions by the shares of the features in the scores of classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...array_types import Float32s, Int64s, UInt64s
from ...binary import gd, in_words
from ...data.batch import Batch
from ...explain.records import ExplainedClass, Reasons
from ...reductions.oaa import class_rows
from ...reductions.oaa.reduction import OneAgainstAll
from ...reductions.oaa.scorers import SLOT_BYTES, ClassScorers
from . import reasons
from .reasons import MOST_OTHERS, clipped, shares_of
from .views import TableView, WeightLookup

LOGISTIC = "1 / (1 + exp(-score))"


def banner(learner: ClassScorers) -> list[str]:
    sampled = [f"Negative classes: {learner.sampled} learn from each example"] if learner.sampled else []
    return [*sampled, in_words.table(learner.learner_options.bits, SLOT_BYTES)]


def vw_banner(learner: ClassScorers) -> list[str]:
    return [f"memory: {learner.memory / 2**20:.0f} MB of weights"]


def table_view(learner: ClassScorers) -> TableView:
    classes = range(learner.classes)
    return TableView(lambda batch: [WeightLookup(0, c, c) for c in classes], rows=learner.rows, limits=learner.limits)


def explain(learner: OneAgainstAll, batch: Batch, k: int) -> Reasons:
    """Explain the prediction of the only example of a batch; scores are those before the link."""
    scores = scores_of(learner, batch)
    base, link = 1 if learner.indexing else 0, learner.learner_options.link == "logistic"
    least = learner.least_probability
    p = np.empty((1, learner.classes), np.float32)
    none = np.empty((1, 0), np.int64), np.empty((1, 0))
    class_rows.class_probabilities(scores.compared[None, :], link, least, False, 0, 1, p, *none)
    best = scores.order[0]
    formula = _formula(float(scores.limited[best]), float(p[0, best]), link, least)
    label = float(batch.label[0])
    own = [int(label) - base] if base <= label < base + learner.classes else []
    return reasons_of(learner, batch, scores, p[0], own, base, k)._replace(formula=formula)


class ShownScores(NamedTuple):
    """Hold the scores of all classes for an example."""

    place: UInt64s  # uint64[s], row of each feature in the table
    score: Float32s  # float32[K]
    limits: Float32s  # float32[2], range to which they are clipped
    limited: Float32s  # float32[K], clipped
    compared: Float32s  # float32[K], after the link
    order: Int64s  # int64[K], classes, the best first


def scores_of(learner: ClassScorers, batch: Batch) -> ShownScores:
    table, classes = learner.table, learner.classes
    place = batch.index.astype(np.uint64) % learner.rows * table.width
    score = np.empty(classes, np.float32)
    gd.score_lanes(table, place, batch.value, len(place), np.arange(classes, dtype=np.uint64), classes, score)
    limits = learner.limits
    limited: Float32s = np.clip(np.where(np.isnan(score), np.float32(0), score), *limits).astype(np.float32)
    compared = _logistic(limited) if learner.learner_options.link == "logistic" else limited
    return ShownScores(place, score, limits, limited, compared, np.argsort(-compared, kind="stable"))


def reasons_of(
    learner: ClassScorers, batch: Batch, scores: ShownScores, p: Float32s, own: Sequence[int], base: int, k: int
) -> Reasons:
    """Return the reasons for the first k classes and for the `own` classes of the example, which count from 0."""
    wanted = {*scores.order[:k].tolist(), *own}
    table = learner.table

    def candidate(c: int) -> ExplainedClass:
        if c not in wanted:
            return ExplainedClass(c + base, float(scores.limited[c]), float(p[c]))
        shown = shares_of(reasons.of_table(table, scores.place, batch.value, c))
        exact, shown = clipped(scores.score[c], scores.limits, shown)
        return ExplainedClass(c + base, exact, float(p[c]), shown)

    next_ones = (c for c in scores.order[: k + MOST_OTHERS].tolist() if c not in wanted)
    explained = scores.order[np.isin(scores.order, [*wanted])].tolist()
    return Reasons([*map(candidate, explained)], [*map(candidate, next_ones)], learner.classes)


def _formula(score: float, p: float, link: bool, least: np.float32) -> str:
    """Return how a probability follows from a score, given those of one class."""
    p = p if p > 0 else 1.0  # no class has a probability if none of the scores is finite
    if least > 0 and not link:
        low = float(least)
        total = (low + (1 - low) * (0.5 + 0.5 * min(max(score, -1.0), 1.0))) / p
        return f"({low:.9g} + {1 - low:.9g} * (0.5 + 0.5 * min(max(score, -1), 1))) / {total:.9g}"
    return f"{LOGISTIC} / {float(_logistic(np.float32(score))) / p:.9g}"


def _logistic(score: Float32s | np.float32) -> Float32s:
    with np.errstate(over="ignore"):
        result: Float32s = np.float32(1) / (np.float32(1) + np.exp(-score))
    return result
