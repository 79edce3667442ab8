"""Describe a sparse mixture of sparse experts."""

from __future__ import annotations

from ...binary import gd, in_words
from ...reductions.sparse_experts.reduction import SLOT_BYTES, SparseExperts


def banner(learner: SparseExperts) -> list[str]:
    experts = f"Experts: {len(learner.experts.size)}, of {learner.classes} classes each at first"
    return [experts, in_words.table(learner.learner_options.bits, SLOT_BYTES), *learner.crowding]


def learning_lines(learner: SparseExperts, binary: gd.Options) -> list[str]:
    return [f"Learning rate: {binary.learning_rate:g} (plain gradient descent)", "Loss: log loss of the softmax"]


def summary(learner: SparseExperts) -> list[str]:
    line = "classes of an expert = {classes_of_an_expert:.1f} (mean), {most} (most)"
    most = int(learner.experts.size.max())
    return [*learner.report.lines(), line.format(most=most, **figures(learner))]


def figures(learner: SparseExperts) -> dict[str, float]:
    return {**learner.report.figures(), "classes_of_an_expert": float(learner.experts.size.mean())}
