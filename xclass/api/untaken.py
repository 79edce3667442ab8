"""Tell the user of examples from which a step was not taken, see `finite`."""

from __future__ import annotations

import numpy as np

from ..binary import finite
from ..reductions.core.contract import BatchTask

ADVICE = "scale values to between 1e-15 and 1e+15 and weights to below 1e+6, or lower --learning_rate"


class Untaken:
    """Counts such examples.

    Parameters
    ----------
    name : what the examples are read from, where it is one source
    """

    def __init__(self, name: str | None = None) -> None:
        self.place = f"{name}:" if name is not None else "line "
        self.examples = 0  # each as often as it was met

    def count(self, task: BatchTask) -> list[str]:
        """Take in a batch that was learned; return what there is to say about the first such example of the run."""
        batch = task.batch
        empty = np.diff(batch.start) == 0  # without features there is no step that could be taken
        rows = np.flatnonzero((task.missed == finite.REFUSED) | ((task.missed != 0) & ~empty))
        before = self.examples
        self.examples += len(rows)
        if before or not len(rows):
            return []
        i = rows[0]
        values = np.abs(batch.value[batch.start[i] : batch.start[i + 1]])
        largest = values.max(initial=0)  # NaN, if there is one
        smallest = values.min(initial=largest)
        weight = f"weight {batch.weight[i]:g}" if batch.weight[i] > 0 else "a weight that is not finite"
        return [
            f"{self.place}{batch.line[i]}: learning from this example would make a weight or a sum infinite; such "
            f"steps are not taken (values from {smallest:g} to {largest:g}, {weight}, label {batch.label[i]:g}); "
            f"{ADVICE}"
        ]

    def lines(self) -> list[str]:
        """A line for the summary, where there was more than one such example."""
        if self.examples < 2:
            return []
        return [f"examples with steps not taken, which would have made a number infinite = {self.examples}"]
