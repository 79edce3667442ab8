"""Define what passes through the stages of a learner: a batch of examples and what the stages compute for it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...array_types import Bools, Float32s, Float64s, Int64s, UInt8s
from ...binary import finite
from ...data.batch import Batch, empty
from . import label_arrays
from .label_report import LabelLists
from .probabilities import ClassLists, class_lists

NONE_SKIPPED, ORDINARY_RANGE = np.zeros(1, np.uint8), finite.ordinary_value_range(1)
NONE_HELD_OUT = np.zeros(0, bool)


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
    file: str = ""  # from which the examples were read; empty for those of a program
    prediction: Float64s | None = None  # float64[n]
    loss: Float64s | None = None  # float64[n], loss times weight, 0 for unlabelled examples; None if not reported
    log_loss: Float64s | None = None  # float64[n], log loss times weight, if probabilities are requested
    shown_probability: Float64s | None = None  # float64[n], probability printed in the progress table
    answer_probability: Float64s | None = None  # float64[n], probability of the predicted class; None if not known
    label_probability: Float64s | None = None  # float64[n], probability of the label, NaN if not known; None for all
    class_lists: ClassLists | None = None  # lists of classes that -p writes instead of predictions
    # with lists of labels: the best ones first, with their probabilities, and those above the threshold
    ranked: ClassLists | None = None
    chosen: LabelLists | None = None
    scored: ClassLists | None = None  # classes and their scores that -r writes
    raw: Float32s | None = None  # float32[n], unclipped predictions of the binary learner, for -r
    notes: list[str] = field(default_factory=list)  # messages for the user, in order
    shown_features: Int64s | None = None  # int64[n], number of features, including those that are not learned from
    candidates: Int64s | None = None  # int64[n, C], classes whose scorers were evaluated, then 0; None without scorers
    plan: Any = None  # result of an earlier stage for a later one; its type is up to the reduction
    # bool[n], whether no regressor was scored: VW then does not count the features of interactions; None if unknown
    not_scored: Bools | None = None
    # with lists of labels that are names: int64[n + 1], the highest label that has a name before each example, and
    # after the last; None for all labels
    named: Int64s | None = None
    # bool[n], whether an example has features and none of them was learned; None if that was not looked for
    unknown: Bools | None = None
    held_out: Bools | None = None  # bool[n], held out: predicted but not learned from; None if no example is
    unnamed_batch: Batch | None = None  # the batch with all its features, if it comes from a cache, which has no names
    skipped: UInt8s = field(init=False)  # uint8[n], see `finite.StepGuard`; set by `survey`
    value_range: Float32s = field(init=False)  # float32[n, 3], the same
    _learned: Bools | None = field(init=False, default=None)  # see `learned`

    def __post_init__(self) -> None:
        if not self.learn and self.batch.n == 1:
            self.skipped, self.value_range = NONE_SKIPPED, ORDINARY_RANGE  # which are only read then
            return
        self.skipped = np.zeros(self.batch.n, np.uint8)
        self.value_range = finite.ordinary_value_range(self.batch.n)

    def list_classes(self, label: Int64s, p: Float64s, size: Int64s | None = None) -> None:
        """List classes for -p and -r, see `probabilities.class_lists`; `size` is by default that of the labels > 0."""
        size = np.count_nonzero(label, axis=1) if size is None else size
        self.class_lists = class_lists(label, p, size, np.maximum(0.0, 1.0 - p.sum(axis=1)))
        self.scored = self.class_lists

    def learns(self) -> Bools:
        """Return bool[n]: whether each example may be learned from if it has a label."""
        if not self.learn:
            return np.zeros(self.batch.n, bool)
        allowed: Bools = self.skipped != finite.EXAMPLE_SKIPPED
        return allowed if self.held_out is None else allowed & ~self.held_out

    def learned(self) -> Bools:
        """Return bool[n], read only: whether each example is learned from, having a label and a weight above 0.

        Call it only after `Learner.survey`, which may refuse examples.
        """
        if self._learned is None:
            held_out = NONE_HELD_OUT if self.held_out is None else self.held_out
            batch = self.batch
            self._learned = label_arrays.learned(self.learn, batch.label, batch.weight, self.skipped, held_out)
        return self._learned


def empty_task(learn: bool) -> BatchTask:
    """Return a task without examples, with which the kernels of a stage are compiled."""
    return BatchTask(empty(0, 0, 0), learn, np.empty(0))
