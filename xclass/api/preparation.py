"""Turn batches of text into work for a learner: n-grams, crosses, values that are no numbers, the clock."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..binary import finite
from ..data import batch_ops, interactions, namespaces
from ..data.batch import Batch
from ..reductions.core.base import Learner
from ..reductions.core.contract import BatchTask
from .configuration import Config


class Preparation:
    """What happens to every example between the text and the learner.

    Parameters
    ----------
    config : has the option groups `features`, `interactions` and `parser`
    exact : whether to do what VW does, with values that are no numbers too

    Attributes
    ----------
    features, crosser : drop and make features; and cross them
    one_by_one : whether a BatchTask may have one example only
    keep_names : whether a BatchTask also has the batch with all its features, whose names are lost
    """

    def __init__(self, config: Config, exact: bool) -> None:
        self._config, self._exact = config, exact
        self.features = namespaces.Features(config.features, constant=not config.parser.noconstant)
        self.crosser = interactions.Crosser(config.interactions)
        self.one_by_one = self.keep_names = False

    def begin(self) -> None:
        """Begin again with the first example: crosses find every group for the first time."""
        self.crosser = interactions.Crosser(self._config.interactions)

    def tasks(self, learner: Learner, read: Batch, held: np.ndarray, learn: bool, clock: float) -> Iterator[BatchTask]:
        """Yield the work that a batch turns into.

        Parameters
        ----------
        held : bool[n], examples that are held out
        learn : whether the others are learned from
        clock : weight of all labelled examples before these
        """
        low = 0
        for batch, count, nameless in self.batches(learner, read):
            mine = held[low : low + batch.n]
            low += batch.n
            batch, odd = (batch, None) if self._exact else finite.clean(batch)
            idle = np.isnan(batch.label) | mine
            weight = np.where(idle, 0.0, batch.weight.astype(np.float64))
            with np.errstate(invalid="ignore"):  # infinite weights, under --on_bad_line vw
                clocks = np.add.accumulate(np.concatenate(([clock], weight)))
            clock = float(clocks[-1])
            task = BatchTask(
                batch, learn, clocks[1:], held=mine if mine.any() else None, features=count, nameless=nameless
            )
            if learn:
                learner.survey(task, self._exact)
                if odd is not None:
                    task.missed[odd & ~idle] = finite.REFUSED
            yield task

    def batches(self, learner: Learner, read: Batch) -> Iterator[tuple[Batch, np.ndarray, Batch | None]]:
        """Yield the batches a batch turns into, how many features each example counts, and what lost its names."""
        for kept in self.features.apply(read):
            for whole in self.crosser.cross(kept) if self.crosser.active else (kept,):
                count = np.diff(whole.start)
                batch = self.features.linear(whole)
                most = 1 if self.one_by_one else learner.most_rows
                if most is None:
                    yield batch, count, whole if self.keep_names else None
                    continue
                for low in range(0, batch.n, most):
                    high = min(low + most, batch.n)
                    nameless = batch_ops.cut(whole, low, high) if self.keep_names else None
                    yield batch_ops.cut(batch, low, high), count[low:high], nameless
