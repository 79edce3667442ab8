"""Count the labels of a run that a user may want to know about: missing labels, and names unknown to the model."""

from __future__ import annotations

import numpy as np

from ..data import class_names
from ..reductions.core.contract import BatchTask


class LabelNotes:
    """Count missing and unknown labels, for the summary and for a warning at the end of the run.

    Parameters
    ----------
    named : whether labels are names
    """

    def __init__(self, named: bool) -> None:
        self._named = named
        self._examples = self._unlabelled = self._unknown = 0
        self._first_unknown = ""  # place of the first unknown label

    def count(self, task: BatchTask, file: str) -> None:
        """Count the labels of a task, whose examples were read from `file`."""
        label = task.batch.label
        unknown = label == class_names.UNKNOWN
        self._examples += len(label)
        self._unlabelled += int(np.count_nonzero(np.isnan(label)))
        if self._named and unknown.any():
            self._first_unknown = self._first_unknown or f"{file}:{task.batch.line[int(np.argmax(unknown))]}"
            self._unknown += int(np.count_nonzero(unknown))

    def summary(self) -> list[str]:
        """Return the line of the summary about examples without a label, if only some have none."""
        if 0 < self._unlabelled < self._examples:
            return [f"examples without a label = {self._unlabelled}"]
        return []

    def warnings(self) -> list[str]:
        """Return the warning about labels that are not among the names of the model, if there are any."""
        if not self._unknown:
            return []
        labelled = self._examples - self._unlabelled
        return [
            f"{self._first_unknown}: {self._unknown} of {labelled} labels are not names of classes of the model, this "
            "is the first; their examples count as errors"
        ]
