"""Select the examples of a task that measure how good the predictions are, and compare prediction and label."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...array_types import Bools, Float64s, Int64s
from ...data import class_names
from ...reductions.core.contract import BatchTask


@dataclass(frozen=True)
class Measured:
    """Hold m labelled examples of a task of n examples: the held-out ones if lines are held out, else all."""

    row: Int64s  # int64[m], position in the task
    label: Int64s  # int64[m], class, class_names.UNKNOWN for a name that the model does not know
    answer: Int64s  # int64[m], predicted class, 0 if there is none
    weight: Float64s  # float64[m], importance
    label_probability: Float64s  # float64[m], NaN if not known
    answer_probability: Float64s  # float64[m], NaN if not known

    @property
    def wrong(self) -> Bools:
        """Return bool[m]: whether the answer is not the label."""
        wrong: Bools = self.answer != self.label
        return wrong


def measures(task: BatchTask, holds_out: bool) -> Bools:
    """Return bool[n], whether each example is measured: it has a label, and is held out if lines are."""
    chosen: Bools = ~np.isnan(task.batch.label)
    if holds_out:
        chosen &= task.held_out if task.held_out is not None else np.zeros(task.batch.n, bool)
    return chosen


def wrong_lists(task: BatchTask) -> Bools:
    """Return bool[n]: whether the best label is none of the example's, or labels are chosen that it does not have."""
    batch, chosen = task.batch, task.chosen
    assert task.prediction is not None and chosen is not None  # the stages have set them
    row = np.repeat(np.arange(batch.n), np.diff(batch.label_start))
    wrong = np.diff(chosen.start) > 0
    wrong[batch.label > 0] = True
    wrong[row[batch.labels == task.prediction[row]]] = False
    return wrong


def select(task: BatchTask, highest_seen: Float64s | None, holds_out: bool) -> Measured:
    """Return the measured examples of a task that has passed the stages; its labels are classes.

    `highest_seen` is the highest class that has a name at each example, float64[n]; None if all classes do. If lines
    are held out, only these measure.
    """
    row = np.flatnonzero(measures(task, holds_out))
    prediction = task.prediction
    assert prediction is not None  # the stages have set it
    if highest_seen is not None:
        prediction = class_names.hide_unseen(prediction, highest_seen)
    unknown = np.full(len(row), np.nan)
    return Measured(
        row,
        task.batch.label[row].astype(np.int64),
        prediction[row].astype(np.int64),
        task.batch.weight[row].astype(np.float64),
        unknown if task.label_probability is None else task.label_probability[row],
        unknown if task.answer_probability is None else task.answer_probability[row],
    )
