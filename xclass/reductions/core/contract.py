"""Define what passes through the stages of a learner: a batch of examples and what the stages compute for it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ...array_types import Bools, Float64s, Int64s
from ...binary import finite
from ...data.batch import Batch, empty
from . import label_arrays
from .label_report import LabelLists
from .probabilities import ClassLists, class_lists

ONE_EXAMPLE = finite.idle_guard()
NONE_HELD_OUT, NOT_COUNTED = np.zeros(0, bool), np.zeros(0, np.int64)


class AsRead(NamedTuple):
    """Say what is shown of the examples of a batch, with the features that are not learned from."""

    file: str = ""  # from which they were read; empty for those of a program
    features: Int64s = NOT_COUNTED  # int64[n], number of features
    whole: Batch | None = None  # the batch with all its features, if it comes from a cache, which has no names
    # float64[n], highest class that has a name at each example, set when the task is counted; None if all classes do
    seen: Float64s | None = None


OF_PROGRAM = AsRead()


class PredictedLists(NamedTuple):
    """Hold the predictions of a learner of lists of labels."""

    ranked: ClassLists  # the best labels first, with their probabilities
    chosen: LabelLists  # those above the threshold


@dataclass
class BatchTask:
    """Hold one batch on its way through a learner's stages, and the results of the stages.

    `prediction` is made before the example is learned from (progressive validation): a class as written in
    the file (0 if there is no answer), or the real-valued prediction after the link function. With lists of labels it
    is the best label, NaN if there is no answer.
    """

    batch: Batch
    learn: bool  # False: predict only (-t)
    clock: Float64s  # float64[n], weight of the labelled examples that are not held out, up to this one
    read: AsRead = OF_PROGRAM
    held_out: Bools | None = None  # bool[n], held out: predicted but not learned from; None if no example is
    # with lists of labels that are names: int64[n + 1], the highest label that has a name before each example, and
    # after the last; None for all labels
    named: Int64s | None = None
    guard: finite.StepGuard = ONE_EXAMPLE  # of the examples, set by `Reduction.survey`
    plan: Any = None  # result of an earlier stage for a later one; its type is up to the reduction
    notes: list[str] = field(default_factory=list)  # messages for the user, in order
    prediction: Float64s | None = None  # float64[n]
    loss: Float64s | None = None  # float64[n], loss times weight, 0 for unlabelled examples; None if not reported
    log_loss: Float64s | None = None  # float64[n], log loss times weight, if the progress table shows probabilities
    answer_probability: Float64s | None = None  # float64[n], probability of the predicted class; None if not known
    label_probability: Float64s | None = None  # float64[n], probability of the label, NaN if not known; None for all
    class_lists: ClassLists | None = None  # lists of classes that -p writes instead of predictions
    label_lists: PredictedLists | None = None
    scored: ClassLists | None = None  # classes and their scores that -r writes; without classes a score of each example
    candidates: Int64s | None = None  # int64[n, C], classes whose scorers were evaluated, then 0; None without scorers

    def __post_init__(self) -> None:
        if self.learn or self.batch.n != 1:  # a single example that is predicted has nothing to mark
            n = self.batch.n
            self.guard = finite.StepGuard(np.zeros(1, np.int64), np.zeros(n, np.uint8), finite.ordinary_value_range(n))

    def list_classes(self, label: Int64s, p: Float64s, size: Int64s | None = None) -> None:
        """List classes for -p and -r, see `probabilities.class_lists`; `size` is by default that of the labels > 0."""
        size = np.count_nonzero(label, axis=1) if size is None else size
        self.class_lists = class_lists(label, p, size, np.maximum(0.0, 1.0 - p.sum(axis=1)))
        self.scored = self.class_lists

    def learns(self) -> Bools:
        """Return bool[n]: whether each example may be learned from if it has a label."""
        if not self.learn:
            return np.zeros(self.batch.n, bool)
        allowed: Bools = self.guard.skipped != finite.EXAMPLE_SKIPPED
        return allowed if self.held_out is None else allowed & ~self.held_out

    def learned(self) -> Bools:
        """Return bool[n], read only: whether each example is learned from, having a label and a weight above 0.

        Call it only after `Reduction.survey`, which may refuse examples.
        """
        return self._learned

    @cached_property
    def _learned(self) -> Bools:
        batch, held_out = self.batch, NONE_HELD_OUT if self.held_out is None else self.held_out
        return label_arrays.learned(self.learn, batch.label, batch.weight, self.guard.skipped, held_out)


def empty_task(learn: bool) -> BatchTask:
    """Return a task without examples, with which the kernels of a stage are compiled."""
    return BatchTask(empty(0, 0, 0), learn, np.empty(0))
