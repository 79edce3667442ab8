"""Sum the losses of held-out examples, and find the pass with the lowest average loss.

Sums are float64, and examples are added one after the other, as in `progress`.
"""

from __future__ import annotations

import numpy as np

from ..kernels.constants import LARGEST

UNKNOWN = "unknown"


class Holdout:
    """Hold the losses of held-out examples and the number of the pass with the lowest average loss."""

    def __init__(self) -> None:
        # sums over all held-out examples of the run
        self.loss = self.weight = 0.0
        # sums since the last row of the table that showed them
        self.row_loss = self.row_weight = 0.0
        # sums over the current pass
        self.pass_loss = self.pass_weight = 0.0
        # float32, average held-out loss of the best pass; LARGEST before the first pass ends
        self.best = np.float32(LARGEST)
        self.best_pass = 0
        self.misses = 0  # number of passes since the best pass

    @property
    def has_loss(self) -> bool:
        """Return whether the best pass had a labelled held-out example."""
        return bool(self.best < LARGEST / 2)

    def add(self, held_out: np.ndarray, loss: np.ndarray | None, weight: np.ndarray, begin: int, end: int) -> None:
        """Add the losses, times weight, and the weights of the held-out examples among begin .. end - 1."""
        rows = np.flatnonzero(held_out[begin:end]) + begin
        losses = np.zeros(len(rows)) if loss is None else loss[rows].astype(np.float32).astype(np.float64)
        self.loss, self.row_loss, self.pass_loss = (
            float(running_sums(total, losses)[-1]) for total in (self.loss, self.row_loss, self.pass_loss)
        )
        self.weight, self.row_weight, self.pass_weight = (
            float(running_sums(total, weight[rows])[-1]) for total in (self.weight, self.row_weight, self.pass_weight)
        )

    def take_row(self) -> tuple[str, str]:
        """Return the average loss of the run and since the last row, as text; start a new row."""
        average, recent = _average_text(self.loss, self.weight), _average_text(self.row_loss, self.row_weight)
        self.row_loss = self.row_weight = 0.0
        return average, recent

    def end_pass(self, number: int) -> bool:
        """End pass `number` and return whether its average loss is the lowest so far."""
        # VW uses half the largest float as the loss of a pass without held-out examples
        loss = np.float32(self.pass_loss / self.pass_weight if self.pass_weight > 0 else LARGEST / 2)
        self.pass_loss = self.pass_weight = 0.0
        if loss < self.best:
            self.best, self.best_pass, self.misses = loss, number, 0
            return True
        self.misses += 1
        return False


def _average_text(total: float, weight: float) -> str:
    return format(total / weight, ".6f") if weight else UNKNOWN if not total else "inf"


def running_sums(initial: float, values: np.ndarray) -> np.ndarray:
    """Return the sums of `initial` and values 0..i, added one after the other; `[initial]` if there are no values."""
    sums = np.add.accumulate(np.concatenate(([initial], values)))
    return sums[1:] if len(values) else sums
