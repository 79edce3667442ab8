"""Count the labels of a run that a user may want to know about: missing labels, and names unknown to the model."""

from __future__ import annotations

import numpy as np

from ..data import class_names
from ..reductions.core.contract import BatchTask


class LabelNotes:
    """Count missing and unknown labels, for the summary and for a warning at the end of the run."""

    def __init__(self, multiclass: bool, named: bool) -> None:
        self._multiclass, self._named = multiclass, named
        self._examples = self._unlabelled = self._unknown = 0
        self._first_unknown = ""  # place of the first unknown label
        self._held_out: set[float] = set()  # labels of examples that were held out, and of those that were learned
        self._learned: set[float] = set()

    def count(self, task: BatchTask, file: str) -> None:
        """Count the labels of a task, whose examples were read from `file`."""
        label = task.batch.label
        unknown = label == class_names.UNKNOWN
        self._examples += len(label)
        self._unlabelled += int(np.count_nonzero(np.isnan(label)))
        if task.held_out is not None:
            labelled = ~np.isnan(label)
            self._held_out.update(np.unique(label[labelled & task.held_out]).tolist())
            self._learned.update(np.unique(label[labelled & ~task.held_out]).tolist())
        if self._named and unknown.any():
            self._first_unknown = self._first_unknown or f"{file}:{task.batch.line[int(np.argmax(unknown))]}"
            self._unknown += int(np.count_nonzero(unknown))

    def add(self, other: LabelNotes) -> None:
        """Add what was counted in the examples that follow."""
        self._examples += other._examples
        self._unlabelled += other._unlabelled
        self._unknown += other._unknown
        self._first_unknown = self._first_unknown or other._first_unknown
        self._held_out |= other._held_out
        self._learned |= other._learned

    def summary(self) -> list[str]:
        """Return the line of the summary about examples without a label, if only some have none."""
        if 0 < self._unlabelled < self._examples:
            return [f"examples without a label = {self._unlabelled}"]
        return []

    def warnings(self) -> list[str]:
        """Return warnings about labels that are not names of the model, and about classes that were never learned."""
        lines = []
        never_learned = len(self._held_out - self._learned)
        if self._multiclass and never_learned:
            lines.append(
                f"classes that occur only in held-out lines, and so were not learned = {never_learned}; --holdout_off "
                "learns from all lines"
            )
        if not self._unknown:
            return lines
        labelled = self._examples - self._unlabelled
        return [
            *lines,
            f"{self._first_unknown}: {self._unknown} of {labelled} labels are not names of classes of the model, this "
            "is the first; their examples count as errors",
        ]
