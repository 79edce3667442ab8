"""Explain a prediction of one-against-all by the shares of the features in the scores of the classes."""

from __future__ import annotations

import numpy as np

from ...array_types import Float32s
from ...binary import gd
from ...data.batch import Batch
from ...explain.records import ExplainedClass, Reasons
from ...reductions.oaa import class_rows
from ...reductions.oaa.reduction import OneAgainstAll
from . import shares
from .reasons import MOST_OTHERS, chosen, clipped, shares_of

LOGISTIC = "1 / (1 + exp(-score))"


def explain(learner: OneAgainstAll, batch: Batch, k: int) -> Reasons:
    """Explain the prediction of the only example of a batch; scores are those before the link."""
    table = learner.table
    place = batch.index.astype(np.uint64) % learner.rows * table.width
    base, link = 1 if learner.indexing else 0, learner.learner_options.link == "logistic"
    least = learner.least_probability
    x, classes = batch.value, learner.classes
    score = np.empty(classes, np.float32)
    gd.score_lanes(table, place, x, len(place), np.arange(classes, dtype=np.uint64), classes, score)
    limited: Float32s = np.clip(np.where(np.isnan(score), np.float32(0), score), *table.range).astype(np.float32)
    compared = _logistic(limited) if link else limited
    p = np.empty((1, classes), np.float32)
    none = np.empty((1, 0), np.int64), np.empty((1, 0))
    class_rows.class_probabilities(compared[None, :], link, least, 0, 1, p, *none)
    order = np.argsort(-compared, kind="stable")
    label = float(batch.label[0])
    wanted = set(order[:k].tolist())
    if base <= label < base + classes:
        wanted.add(int(label) - base)

    def candidate(c: int) -> ExplainedClass:
        if c not in wanted:
            return ExplainedClass(c + base, float(limited[c]), float(p[0, c]))
        exact, own = clipped(score[c], table.range, shares_of(shares.of_table(table, place, x, c)))
        return ExplainedClass(c + base, exact, float(p[0, c]), own)

    listed = [*order[: k + MOST_OTHERS].tolist(), *(c for c in wanted if c not in order[: k + MOST_OTHERS])]
    explained, others = chosen(map(candidate, listed), k, label)
    return Reasons(explained, others, classes, _formula(float(limited[order[0]]), float(p[0, order[0]]), link, least))


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
