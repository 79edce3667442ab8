"""Losses of the examples that are held out of learning, by which passes are judged; sums grow as in `progress`."""

from __future__ import annotations

import numpy as np

UNKNOWN = "unknown"
LARGEST_FLOAT = float(np.finfo(np.float32).max)


class Holdout:
    """Losses of held-out examples, and which pass did best on them.

    Attributes
    ----------
    best, best_pass : float32 average loss of the best pass, and its number from 1; LARGEST_FLOAT, 0 before
    misses : passes since then
    """

    def __init__(self) -> None:
        self.loss = self.weight = 0.0  # of the run
        self.row_loss = self.row_weight = 0.0  # since a row was marked h
        self.pass_loss = self.pass_weight = 0.0
        self.best = np.float32(LARGEST_FLOAT)
        self.best_pass = 0
        self.misses = 0

    @property
    def found(self) -> bool:
        """Whether any labelled example was held out."""
        return bool(self.best < LARGEST_FLOAT / 2)

    def add(self, apart: np.ndarray, loss: np.ndarray | None, weight: np.ndarray, begin: int, end: int) -> None:
        """Add the held-out examples among begin .. end - 1.

        Parameters
        ----------
        apart : bool[n], whether each is held out
        loss : float64[n], times weight; None where it is not known
        weight : float64[n]
        """
        chosen = np.flatnonzero(apart[begin:end]) + begin
        losses = np.zeros(len(chosen)) if loss is None else loss[chosen].astype(np.float32).astype(np.float64)
        self.loss, self.row_loss, self.pass_loss = (
            float(running(total, losses)[-1]) for total in (self.loss, self.row_loss, self.pass_loss)
        )
        self.weight, self.row_weight, self.pass_weight = (
            float(running(total, weight[chosen])[-1]) for total in (self.weight, self.row_weight, self.pass_weight)
        )

    def take_row(self) -> tuple[str, str]:
        """Return the average and the recent loss as a row shows them; the recent one begins anew."""
        average, recent = _held_ratio(self.loss, self.weight), _held_ratio(self.row_loss, self.row_weight)
        self.row_loss = self.row_weight = 0.0
        return average, recent

    def end_pass(self, number: int) -> bool:
        """Judge the pass and begin the next; return whether this one is the best so far."""
        # without held-out examples VW takes half the largest float
        loss = np.float32(self.pass_loss / self.pass_weight if self.pass_weight > 0 else LARGEST_FLOAT / 2)
        self.pass_loss = self.pass_weight = 0.0
        if loss < self.best:
            self.best, self.best_pass, self.misses = loss, number, 0
            return True
        self.misses += 1
        return False


def _held_ratio(total: float, weight: float) -> str:
    return format(total / weight, ".6f") if weight else UNKNOWN if not total else "inf"


def running(begin: float, values: np.ndarray) -> np.ndarray:
    """Return begin, begin + v0, ... summed one after the other; element i counts the values up to and with i."""
    sums = np.add.accumulate(np.concatenate(([begin], values)))
    return sums[1:] if len(values) else sums
