"""Count what a user may want to know about the examples of a run: labels that are missing or unknown, skipped updates.

An update is skipped if it would have made a number infinite (`binary.finite`).
"""

from __future__ import annotations

import numpy as np

from ..binary import finite
from ..data import class_names
from ..reductions.core.contract import BatchTask


class ExampleNotes:
    """Count the examples that passed the stages, for warnings and for the summary.

    `labels` is that of the reduction's record, `named` says whether labels are names, and `before` are the counts that
    skipped updates continue from. `skipped_steps` is the number of examples with skipped updates, of which each counts
    once in every pass, and `first_skipped` the warning about the first one, empty if there is none.
    """

    def __init__(self, labels: str, named: bool, before: ExampleNotes | None = None) -> None:
        self._kind, self._named = labels, named
        self.skipped_steps: int = before.skipped_steps if before else 0
        self.first_skipped: str = before.first_skipped if before else ""
        self._examples = self._unlabelled = self._labels = self._unknown = 0
        self._with_labels = self._without = 0  # predicted examples that have labels, those to which none is given
        self._first_unknown = ""  # place of the first unknown label
        self._held_out: set[float] = set()  # labels of examples that were held out, and of those that were learned
        self._learned: set[float] = set()

    def count_labels(self, task: BatchTask) -> None:
        """Count the labels of a task."""
        batch = task.batch
        label, row = batch.label, np.arange(batch.n)
        self._examples += batch.n
        self._unlabelled += int(np.count_nonzero(np.isnan(label)))
        if task.label_lists is not None and task.class_lists is None and not task.learn:
            with_labels = label > 0
            self._with_labels += int(np.count_nonzero(with_labels))
            self._without += int(np.count_nonzero(with_labels & (np.diff(task.label_lists.chosen.start) == 0)))
        if batch.has_lists:
            label, row = batch.labels, np.repeat(row, np.diff(batch.label_start))
        unknown, labelled = label == class_names.UNKNOWN, ~np.isnan(label)
        self._labels += int(np.count_nonzero(labelled))
        if task.held_out is not None:
            held_out = task.held_out[row]
            self._held_out.update(np.unique(label[labelled & held_out]).tolist())
            self._learned.update(np.unique(label[labelled & ~held_out]).tolist())
        if self._named and unknown.any():
            self._first_unknown = self._first_unknown or f"{task.read.file}:{batch.line[row[int(np.argmax(unknown))]]}"
            self._unknown += int(np.count_nonzero(unknown))

    def count_skipped(self, task: BatchTask) -> list[str]:
        """Count the skipped updates of a learned task; return a warning if the first one is among them."""
        batch, skipped = task.batch, task.guard.skipped
        if not np.count_nonzero(skipped):
            return []
        empty = np.diff(batch.start) == 0  # an example without features has no update to skip
        rows = np.flatnonzero((skipped == finite.EXAMPLE_SKIPPED) | ((skipped != 0) & ~empty))
        before = self.skipped_steps
        self.skipped_steps += len(rows)
        if before or not len(rows):
            return []
        i = rows[0]
        values = np.abs(np.append(batch.value[batch.start[i] : batch.start[i + 1]], batch.dense[i : i + 1]))
        largest = values.max(initial=0)  # NaN if any value is NaN
        smallest = values.min(initial=largest)
        weight = f"weight {batch.weight[i]:g}" if batch.weight[i] > 0 else "a weight that is not finite"
        reason = (
            f"as it would make a weight or a sum infinite (values from {smallest:g} to {largest:g}, {weight}, label "
            f"{batch.label[i]:g}); scale values to between 1e-15 and 1e+15 and weights to between 1e-30 and 1e+6, or "
            "lower --learning_rate"
        )
        if 0 < batch.weight[i] < finite.LEAST_WEIGHT:
            reason = (
                f"because its {weight} is below {finite.LEAST_WEIGHT:g}, the least that is learned; give a larger "
                "weight, or 0 to leave the example out"
            )
        place = f"{task.read.file or 'batch'}:{batch.line[i]}"
        self.first_skipped = f"{place}: the update of this example is skipped, {reason}"
        return [self.first_skipped]

    def add(self, other: ExampleNotes) -> None:
        """Add what was counted in the examples that follow."""
        self.skipped_steps += other.skipped_steps
        self._examples += other._examples
        self._unlabelled += other._unlabelled
        self._labels += other._labels
        self._unknown += other._unknown
        self._with_labels += other._with_labels
        self._without += other._without
        self._first_unknown = self._first_unknown or other._first_unknown
        self._held_out |= other._held_out
        self._learned |= other._learned

    def summary(self, exact: bool) -> list[str]:
        """Return the lines of the summary about skipped updates, and about labels that only some examples lack.

        VW (`exact`) says nothing of the latter.
        """
        lines = []
        if self.skipped_steps > 1:
            skipped = f"which would have made a number infinite = {self.skipped_steps}"
            lines.append(f"examples with skipped updates, {skipped}")
        if 0 < self._unlabelled < self._examples and not exact:
            lines.append(f"examples without a label = {self._unlabelled}")
        return lines

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
