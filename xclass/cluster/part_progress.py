"""Count the examples of parts by progressive validation, and show them together as one progress table."""

from __future__ import annotations

import math

from ..api import progress_table
from ..api.progress import NO_VALUE, Progress, Shown
from ..reductions.core.contract import BatchTask

# attributes that are added up
SUMS = (
    "examples", "features", "learned_features", "labelled_weight", "other_weight", "label_sum", "loss_sum",
    "_since_loss", "held_out_log_loss_sum",
)  # fmt: skip
HELD_OUT = ("loss", "weight", "row_loss", "row_weight", "pass_loss", "pass_weight")  # those of `Holdout`


class PartProgress(Progress):
    """Count the examples of a part, in a worker."""

    # label, prediction and features of the last example, see `Progress.texts`
    last: tuple[Shown, Shown, int] | None = None

    def count(self, task: BatchTask) -> list[str]:
        rows = super().count(task)
        if task.batch.n and task.prediction is not None:
            shown: tuple[Shown, Shown] = float(task.batch.label[-1]), float(task.prediction[-1])
            shown = self.lists_of(task, task.batch.n - 1) if task.batch.has_lists else shown
            self.last = *shown, int(task.read.features[-1])
        return rows


class JoinedProgress(Progress):
    """Count the examples of all parts; a row shows the state after a part of a round, or later."""

    def add(self, part: PartProgress) -> list[str]:
        """Add what was counted in a part, and return the row of the table if one is due."""
        for name in SUMS:
            setattr(self, name, getattr(self, name) + getattr(part, name))
        if part.log_loss_sum is not None:
            self.log_loss_sum = (self.log_loss_sum or 0.0) + part.log_loss_sum
        self.first_labels += [label for label in part.first_labels if label not in self.first_labels]
        del self.first_labels[3:]
        if self.holdout is not None and part.holdout is not None:
            for name in HELD_OUT:
                setattr(self.holdout, name, getattr(self.holdout, name) + getattr(part.holdout, name))
        return self._row(part) if self.schedule is not None and self.weight >= self._due else []

    def _row(self, part: PartProgress) -> list[str]:
        """Return the row of the table that is due, and compute when the next one is."""
        assert self.schedule is not None
        label, prediction, features = part.last or (math.nan, math.nan, 0)
        average = NO_VALUE if self.average_loss is None else f"{self.average_loss:.6f}"
        recent_weight = self.labelled_weight - self._since_weight
        since = f"{self._since_loss / recent_weight:.6f}" if recent_weight > 0 else NO_VALUE
        shows_holdout = self.holdout is not None and self.passes > 0
        if shows_holdout and self.holdout is not None:
            average, since = self.holdout.take_row()
        row = progress_table.row(
            average, since, self.examples, self.weight, *self.texts(label, prediction), features,
            " h" if shows_holdout else "",
        )  # fmt: skip
        self._since_loss, self._since_weight = 0.0, self.labelled_weight
        while self._due <= self.weight < math.inf:
            self._due = self.schedule.after(self._due)
        return [row]
