"""Describe MACH, and explain its predictions: the score of a class is the mean of the probabilities of its buckets.

The path of a class has a turn for each repetition, with the shares of the features in the score of its bucket.
"""

from __future__ import annotations

import numpy as np

from ...binary import gd, in_words
from ...data.batch import Batch
from ...explain.records import ExplainedClass, Reasons, Share, Turn
from ...reductions.mach.reduction import Mach
from ...reductions.oaa import class_rows
from ...reductions.oaa.scorers import LEAST_SHARE, SLOT_BYTES
from . import reasons
from .reasons import NOTHING, chosen, clipped, shares_of


def banner(learner: Mach) -> list[str]:
    sizes = f"Buckets: {learner.buckets} in each of {learner.repetitions} repetitions"
    return [sizes, in_words.table(learner.learner_options.bits, SLOT_BYTES)]


def explain(learner: Mach, batch: Batch, k: int) -> Reasons:
    """Explain the prediction of the only example of a batch."""
    repetitions, buckets, classes = learner.repetitions, learner.buckets, learner.classes_seen
    if not classes:
        return NOTHING
    table, x = learner.table, batch.value
    place = batch.index.astype(np.uint64) % learner.rows * table.width
    columns = repetitions * buckets
    score = np.empty(columns, np.float32)
    gd.score_lanes(table, place, x, len(place), np.arange(columns, dtype=np.uint64), columns, score)
    limited = np.clip(np.where(np.isnan(score), np.float32(0), score), *table.range).reshape(repetitions, buckets)
    p = np.empty((repetitions, buckets), np.float32)
    none = np.empty((repetitions, 0), np.int64), np.empty((repetitions, 0))
    class_rows.class_probabilities(limited, False, learner.least_probability, False, 0, repetitions, p, *none)
    bucket, labels = learner.bucket[:, :classes], learner.numbered.label[:classes]
    of_class = np.take_along_axis(p, bucket, axis=1)
    mean = of_class.sum(axis=0, dtype=np.float32) / np.float32(repetitions)
    scale, least = 1 / max(buckets - 1, 1), LEAST_SHARE / classes
    estimate = np.maximum((mean.astype(np.float64) * buckets - 1) * scale, least)
    total = float(estimate.sum())
    order = np.argsort(-mean, kind="stable")
    shown = {*order[:k].tolist(), *np.flatnonzero(labels == batch.label[0]).tolist()}

    def turn(r: int, b: int) -> Turn:
        c = r * buckets + b
        exact, own = clipped(score[c], table.range, shares_of(reasons.of_table(table, place, x, c)))
        return Turn(f"repetition {r + 1}", f"bucket {b + 1}", exact, float(p[r, b]), own, r)

    def candidate(c: int) -> ExplainedClass:
        label, at = int(labels[c]), float(estimate[c]) / total
        if c not in shown:
            return ExplainedClass(label, float(mean[c]), at)
        parts = tuple(Share(f"repetition {r + 1}", float(of_class[r, c]) / repetitions) for r in range(repetitions))
        parts = tuple(sorted(parts, key=lambda share: -share.share))
        path = tuple(turn(r, int(bucket[r, c])) for r in range(repetitions))
        return ExplainedClass(label, float(mean[c]), at, parts, path, by_path=True)

    explained, others = chosen(map(candidate, order.tolist()), k, float(batch.label[0]))
    return Reasons(explained, others, classes, f"max((score * {buckets} - 1) * {scale:.9g}, {least:.9g}) / {total:.9g}")
