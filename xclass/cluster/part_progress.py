"""Count the examples of parts by progressive validation, and show them together as one progress table."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ..api import progress_table
from ..api.progress import NO_VALUE, Progress
from ..array_types import Float64s
from ..reductions.core.contract import BatchTask


class Counts(NamedTuple):
    """Hold what was counted in a part since the last round."""

    examples: int
    features: int
    learned_features: int
    sums: tuple[float, ...]  # of `SUMS`
    log_loss_sum: float | None
    first_labels: tuple[np.float32, ...]
    held_out: tuple[float, float] | None  # loss and weight of the held-out examples
    last: tuple[float, float, int] | None  # label, prediction and features of the last example


SUMS = ("labelled_weight", "other_weight", "label_sum", "loss_sum", "held_out_log_loss_sum")


class PartProgress(Progress):
    """Count the examples of a part, in a worker."""

    _last: tuple[float, float, int] | None = None

    def count(self, task: BatchTask, highest_seen: Float64s | None = None) -> list[str]:
        """Count a task that has passed the stages."""
        rows = super().count(task, highest_seen)
        if task.batch.n and task.prediction is not None:
            features = self.features_of_last(task)
            self._last = float(task.batch.label[-1]), float(task.prediction[-1]), features
        return rows

    @staticmethod
    def features_of_last(task: BatchTask) -> int:
        """Return the number of features of the last example as it is shown."""
        if task.features is not None:
            return int(task.features[-1])
        return int(task.batch.start[-1] - task.batch.start[-2])

    def counts(self) -> Counts:
        """Return what was counted."""
        held_out = None if self.holdout is None else (self.holdout.pass_loss, self.holdout.pass_weight)
        return Counts(
            self.examples, self.features, self.learned_features, tuple(getattr(self, name) for name in SUMS),
            self.log_loss_sum, tuple(self.first_labels), held_out, self._last,
        )  # fmt: skip


class JoinedProgress(Progress):
    """Count the examples of all parts; a row shows the state after a part of a round, or later."""

    def add(self, counts: Counts) -> list[str]:
        """Add what was counted in a part, and return the row of the table if one is due."""
        self.examples += counts.examples
        self.features += counts.features
        self.learned_features += counts.learned_features
        for name, value in zip(SUMS, counts.sums, strict=True):
            setattr(self, name, getattr(self, name) + value)
        self._since_loss += counts.sums[SUMS.index("loss_sum")]
        if counts.log_loss_sum is not None:
            self.log_loss_sum = (self.log_loss_sum or 0.0) + counts.log_loss_sum
        for label in counts.first_labels:
            if len(self.first_labels) < 3 and label not in self.first_labels:
                self.first_labels.append(label)
        if self.holdout is not None and counts.held_out is not None:
            loss, weight = counts.held_out
            self.holdout.loss, self.holdout.weight = self.holdout.loss + loss, self.holdout.weight + weight
            self.holdout.row_loss += loss
            self.holdout.row_weight += weight
            self.holdout.pass_loss += loss
            self.holdout.pass_weight += weight
        return self._row(counts) if self.schedule is not None and self.weight >= self._due else []

    def _row(self, counts: Counts) -> list[str]:
        """Return the row of the table that is due, and compute when the next one is."""
        assert self.schedule is not None
        label, prediction, features = counts.last or (math.nan, math.nan, 0)
        average = NO_VALUE if self.average_loss is None else f"{self.average_loss:.6f}"
        recent_weight = self.labelled_weight - self._since_weight
        since = f"{self._since_loss / recent_weight:.6f}" if recent_weight > 0 else NO_VALUE
        shows_holdout = self.holdout is not None and self.passes > 0
        if shows_holdout and self.holdout is not None:
            average, since = self.holdout.take_row()
        row = progress_table.row(
            average, since, self.examples, self.weight, self._label_text(label),
            self._prediction_text(prediction, None), features, " h" if shows_holdout else "",
        )  # fmt: skip
        self._since_loss, self._since_weight = 0.0, self.labelled_weight
        while self._due <= self.weight < math.inf:
            due, step = np.float32(self._due), self.schedule.step
            self._due = float(np.float32(due + step if self.schedule.additive else due * step))
        return [row]
