"""Describe class means."""

from __future__ import annotations

from ...binary import gd
from ...reductions.means.reduction import Means


def banner(learner: Means) -> list[str]:
    learned = learner.classes
    return [] if learned is None else [f"Class means: {learned.size} classes, rows of {learned.d} numbers"]


def learning_lines(learner: Means, binary: gd.Options) -> list[str]:
    return ["Learning rate: none for the means; AdaGrad for the softmax", "Loss: log loss of the softmax"]


def summary(learner: Means) -> list[str]:
    learned = learner.classes
    if learned is None or not learned.size:
        return learner.report.lines()
    decides = "the means alone" if learned.uses_means else "means and softmax"
    return [*learner.report.lines(), f"rows of {learned.d} numbers, predicted by {decides}"]


def figures(learner: Means) -> dict[str, float]:
    return learner.report.figures()
