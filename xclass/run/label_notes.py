"""Count the labels of a run that a user may want to know about: missing labels, and names unknown to the model."""

from __future__ import annotations

import numpy as np

from ..data import class_names
from ..reductions.core.contract import BatchTask


class LabelNotes:
    """Count missing and unknown labels, for the summary and for a warning at the end of the run.

    `labels` is that of the reduction's record, and `named` says whether labels are names.
    """

    def __init__(self, labels: str, named: bool) -> None:
        self._kind, self._named = labels, named
        self._examples = self._unlabelled = self._labels = self._unknown = 0
        self._with_labels = self._without = 0  # predicted examples that have labels, those to which none is given
        self._first_unknown = ""  # place of the first unknown label
        self._held_out: set[float] = set()  # labels of examples that were held out, and of those that were learned
        self._learned: set[float] = set()

    def count(self, task: BatchTask, file: str) -> None:
        """Count the labels of a task, whose examples were read from `file`."""
        batch = task.batch
        label, row = batch.label, np.arange(batch.n)
        self._examples += batch.n
        self._unlabelled += int(np.count_nonzero(np.isnan(label)))
        if task.chosen is not None and task.class_lists is None and not task.learn:
            with_labels = label > 0
            self._with_labels += int(np.count_nonzero(with_labels))
            self._without += int(np.count_nonzero(with_labels & (np.diff(task.chosen.start) == 0)))
        if batch.has_lists:
            label, row = batch.labels, np.repeat(row, np.diff(batch.label_start))
        unknown, labelled = label == class_names.UNKNOWN, ~np.isnan(label)
        self._labels += int(np.count_nonzero(labelled))
        if task.held_out is not None:
            held_out = task.held_out[row]
            self._held_out.update(np.unique(label[labelled & held_out]).tolist())
            self._learned.update(np.unique(label[labelled & ~held_out]).tolist())
        if self._named and unknown.any():
            self._first_unknown = self._first_unknown or f"{file}:{batch.line[row[int(np.argmax(unknown))]]}"
            self._unknown += int(np.count_nonzero(unknown))

    def add(self, other: LabelNotes) -> None:
        """Add what was counted in the examples that follow."""
        self._examples += other._examples
        self._unlabelled += other._unlabelled
        self._labels += other._labels
        self._unknown += other._unknown
        self._with_labels += other._with_labels
        self._without += other._without
        self._first_unknown = self._first_unknown or other._first_unknown
        self._held_out |= other._held_out
        self._learned |= other._learned

    def summary(self) -> list[str]:
        """Return the line of the summary about examples without a label, if only some have none."""
        if 0 < self._unlabelled < self._examples:
            return [f"examples without a label = {self._unlabelled}"]
        return []

    def warnings(self) -> list[str]:
        """Return warnings: of classes that were never learned, examples without predictions, and unknown names."""
        lines = []
        never_learned = len(self._held_out - self._learned)
        if self._kind != "simple" and never_learned:
            lines.append(
                f"classes that occur only in held-out lines, and so were not learned = {never_learned}; --holdout_off "
                "learns from all lines"
            )
        if 2 * self._without > self._with_labels:
            lines.append(
                f"{self._without} of {self._with_labels} examples that have labels are given none, because no "
                "probability is above the threshold; with a lower --threshold more labels are predicted"
            )
        if not self._unknown:
            return lines
        effect = "they are never predicted" if self._kind == "multilabel" else "their examples count as errors"
        return [
            *lines,
            f"{self._first_unknown}: {self._unknown} of {self._labels} labels are not names of classes of the model, "
            f"this is the first; {effect}",
        ]
