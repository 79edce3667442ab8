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


def select(task: BatchTask, highest_seen: Float64s | None, holds_out: bool) -> Measured:
    """Return the measured examples of a task that has passed the stages; its labels are classes.

    `highest_seen` is the highest class that has a name at each example, float64[n]; None if all classes do. If lines
    are held out, only these measure.
    """
    chosen = ~np.isnan(task.batch.label)
    if holds_out:
        chosen &= task.held_out if task.held_out is not None else np.zeros(task.batch.n, bool)
    row = np.flatnonzero(chosen)
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
