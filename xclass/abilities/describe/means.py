"""Describe class means."""

from __future__ import annotations

from ...array_types import Float64s, Int64s
from ...binary import gd
from ...reductions.means.reduction import Means


def banner(learner: Means) -> list[str]:
    learned = learner.classes
    return [] if learned is None else [f"Class means: {learned.size} classes, rows of {learned.d} numbers"]


def learning_lines(learner: Means, binary: gd.Options) -> list[str]:
    return ["Learning rate: none for the means; AdaGrad for the softmax", "Loss: log loss of the softmax"]


def summary(learner: Means) -> list[str]:
    return [*learner.report.lines(), *facts_of_rows(learner)]


def facts_of_rows(learner: Means) -> list[str]:
    learned = learner.classes
    if learned is None or not learned.size:
        return []
    decides = "the means alone" if learned.uses_means else "means and softmax"
    return [f"rows of {learned.d} numbers, {learned.size} classes, predicted by {decides}"]


def figures(learner: Means) -> dict[str, float]:
    return learner.report.figures()


def class_counts(learner: Means) -> tuple[Int64s, Float64s] | None:
    learned = learner.classes
    if learned is None:
        return None
    return learner.seen.label[: learned.size], learned.classes.weight[: learned.size]
