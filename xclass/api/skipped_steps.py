"""Count examples whose update was skipped because it would have made a weight infinite (`binary.finite`)."""

from __future__ import annotations

import numpy as np

from ..binary import finite
from ..reductions.core.contract import BatchTask


class SkippedSteps:
    """Count the examples with skipped updates, and report the first one.

    `name` is that of the file, for messages; None if there are several. An example counts once in every pass.
    """

    def __init__(self, name: str | None = None) -> None:
        self.place = f"{name}:" if name is not None else "line "
        self.examples = 0

    def count(self, task: BatchTask) -> list[str]:
        """Count the skipped updates of a learned task; return a message if the first one of the run is among them."""
        if not np.count_nonzero(task.skipped):
            return []
        batch = task.batch
        empty = np.diff(batch.start) == 0  # an example without features has no update to skip
        rows = np.flatnonzero((task.skipped == finite.EXAMPLE_SKIPPED) | ((task.skipped != 0) & ~empty))
        before = self.examples
        self.examples += len(rows)
        if before or not len(rows):
            return []
        i = rows[0]
        values = np.abs(batch.value[batch.start[i] : batch.start[i + 1]])
        largest = values.max(initial=0)  # NaN if any value is NaN
        smallest = values.min(initial=largest)
        weight = f"weight {batch.weight[i]:g}" if batch.weight[i] > 0 else "a weight that is not finite"
        return [
            f"{self.place}{batch.line[i]}: the update of this example is skipped, as it would make a weight or a "
            f"sum infinite (values from {smallest:g} to {largest:g}, {weight}, label {batch.label[i]:g}); "
            "scale values to between 1e-15 and 1e+15 and weights to below 1e+6, or lower --learning_rate"
        ]

    def lines(self) -> list[str]:
        """Return the line for the summary, if there was more than one such example."""
        line = f"examples with skipped updates, which would have made a number infinite = {self.examples}"
        return [line] if self.examples > 1 else []
