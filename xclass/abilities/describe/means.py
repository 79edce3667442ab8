"""Describe class means, and explain their predictions by the parts of the scores of the nearest classes."""

from __future__ import annotations

import numpy as np

from ...array_types import Float64s, Int64s
from ...binary import gd
from ...data.batch import Batch
from ...explain.records import ExplainedClass, Reasons, Share
from ...reductions.core import label_arrays
from ...reductions.means import kernels
from ...reductions.means.reduction import Means
from .reasons import MOST_OTHERS, NOTHING, chosen


def banner(learner: Means) -> list[str]:
    learned = learner.classes
    return [] if learned is None else [f"Class means: {learned.size} classes, rows of {learned.d} numbers"]


def learning_lines(learner: Means, binary: gd.BinaryOptions) -> list[str]:
    return ["Learning rate: none for the means; AdaGrad for the softmax", "Loss: log loss of the softmax"]


def summary(learner: Means) -> list[str]:
    return [*learner.report.lines(), *facts_of_rows(learner)]


def facts_of_rows(learner: Means) -> list[str]:
    learned = learner.classes
    if learned is None or not learned.size:
        return []
    decides = "the means alone" if learned.uses_means else "means and softmax"
    return [f"rows of {learned.d} numbers, {learned.size} classes, predicted by {decides}"]


def class_counts(learner: Means) -> tuple[Int64s, Float64s] | None:
    learned = learner.classes
    if learned is None:
        return None
    return learner.numbered.label[: learned.size], learned.classes.weight[: learned.size]


def explain(learner: Means, batch: Batch, k: int) -> Reasons:
    """Explain the prediction of the only example of a batch."""
    learned = learner.classes
    if learned is None or not learned.size:
        return NOTHING
    own = np.full(1, -1, np.int32)
    kernels.number_labels(learner.numbered, label_arrays.whole(batch), np.zeros(1, bool), own)
    found = learned.best(batch.dense, own, k + MOST_OTHERS, True)
    classes, settings, log_sum = learned.classes, learned.settings(), float(found.log_sum[0])
    near = found.near[0][found.near[0] >= 0].tolist()
    if 0 <= own[0] < learned.size and own[0] not in near:
        near.append(int(own[0]))

    def of_class(c: int) -> ExplainedClass:
        by_mean, correction = kernels.parts(found.z[0], classes, c)
        shares = (
            Share("nearness of the class's mean", float(by_mean) * float(settings.sharpness)),
            Share("correction by the softmax", float(correction) * float(settings.omega)),
            Share("frequency of the class", float(classes.prior[c]) * float(settings.frequency)),
        )
        score = sum(share.share for share in shares)
        ordered = tuple(sorted(shares, key=lambda share: -abs(share.share)))
        return ExplainedClass(int(learner.numbered.label[c]), score, float(np.exp(score - log_sum)), ordered)

    explained, others = chosen(map(of_class, near), k, float(batch.label[0]))
    return Reasons(explained, others, learned.size, f"exp(score - {log_sum:.9g})")
