"""Record the learning curve: a row for every row of the progress table, and for every 5 % more examples (`--curve`).

Losses are sums over all examples so far that are not held out, as in the progress table. The held-out loss is that of
the current pass.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

import numpy as np

from ...api.holdout import running_sums
from ...array_types import Bools, Float64s
from ...reductions.core.contract import BatchTask

COLUMNS = (
    "pass", "examples", "weight", "average_loss", "recent_loss", "average_log_loss", "held_out_loss", "seconds",
)  # fmt: skip
GROWTH = 1.05  # factor by which the number of examples grows between two rows, unless the progress table has a row
LEAST_PROBABILITY = 1e-300  # taken for probabilities below it, as in the summary


class Curve:
    """Record the losses in the course of a run."""

    def __init__(self) -> None:
        self.rows: list[list[str]] = []
        self._started = time.perf_counter()
        self._pass = 1
        self._examples = 0
        self._due = 1
        # weight, labelled weight, loss, weight of labels with a probability, log loss, held-out weight and loss
        self._sums = np.zeros(7)
        self._last_weight = self._last_loss = 0.0
        self._recorded = 0

    def add(self, task: BatchTask, printed: Sequence[int], holds_out: bool) -> None:
        """Add a task that has passed the stages.

        `printed` are the positions of the examples for which the progress table has a row; `holds_out` says whether
        lines are held out.
        """
        n = task.batch.n
        if n == 0:
            return
        held_out = np.zeros(n, bool) if task.held_out is None or not holds_out else task.held_out
        number = self._examples + np.cumsum(~held_out)
        sums = np.stack(
            [
                running_sums(total, values)
                for total, values in zip(self._sums, self._values(task, held_out), strict=True)
            ]
        )
        points = set(printed)
        while self._due <= number[-1]:
            points.add(int(np.searchsorted(number, self._due)))
            self._due = max(self._due + 1, int(self._due * GROWTH))
        for i in sorted(points):
            self._record(int(number[i]), sums[:, i])
        self._examples, self._sums = int(number[-1]), sums[:, -1].copy()

    def _values(self, task: BatchTask, held_out: Bools) -> list[Float64s]:
        """Return what each example adds to the sums, float64[n] each."""
        n = task.batch.n
        weight = task.batch.weight.astype(np.float64)
        labelled = ~np.isnan(task.batch.label)
        counted = labelled & ~held_out
        loss = np.zeros(n) if task.loss is None else task.loss
        p = np.full(n, np.nan) if task.label_probability is None else task.label_probability
        known = counted & ~np.isnan(p)
        log_loss = -np.log(np.maximum(np.where(known, p, 1.0), LEAST_PROBABILITY))
        measured = labelled & held_out
        pairs = (
            (~held_out, weight), (counted, weight), (counted, loss), (known, weight), (known, weight * log_loss),
            (measured, weight), (measured, loss),
        )  # fmt: skip
        return [np.where(chosen, values, 0.0) for chosen, values in pairs]

    def _record(self, examples: int, sums: Float64s) -> None:
        """Add a row, given the sums up to an example."""
        weight, labelled, loss, known, log_loss, held_out, held_out_loss = sums.tolist()
        recent = _ratio(loss - self._last_loss, labelled - self._last_weight)
        self._last_weight, self._last_loss, self._recorded = labelled, loss, examples
        self.rows.append([
            str(self._pass), str(examples), f"{weight:.9g}", _ratio(loss, labelled), recent, _ratio(log_loss, known),
            _ratio(held_out_loss, held_out), f"{time.perf_counter() - self._started:.3f}",
        ])  # fmt: skip

    def end_pass(self) -> None:
        """End a pass."""
        self.finish()
        self._pass += 1
        self._sums[5:] = 0.0

    def finish(self) -> None:
        """Add a row about all examples of the pass, unless the last row is about them."""
        if self._examples > self._recorded or self._sums[5] > 0:
            self._record(self._examples, self._sums)

    def table(self) -> Iterator[list[str]]:
        """Yield the header and the rows."""
        yield list(COLUMNS)
        yield from self.rows


def _ratio(total: float, weight: float) -> str:
    return f"{total / weight:.6f}" if weight else ""
