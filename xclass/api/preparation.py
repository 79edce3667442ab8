"""Convert batches into tasks for a learner: add n-grams and interactions, check values, and compute the clock."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ..binary import finite
from ..data import batch_ops, interactions, namespaces
from ..data.batch import PATH_GROUP, Batch
from ..reductions.core.base import Reduction
from ..reductions.core.contract import NONE_HELD_OUT, AsRead, BatchTask
from .configuration import Config


class Preparation:
    """Prepare every example between the parser and the learner; with `exact`, values that are not finite as VW does."""

    def __init__(self, config: Config, exact: bool) -> None:
        self._config, self._exact = config, exact
        self.features = namespaces.NamespaceTransformer(config.features, constant=not config.parser.noconstant)
        self.crosser = interactions.Crosser(config.interactions)
        self.one_by_one = False  # whether each task gets a single example
        # whether tasks get `AsRead.whole`, the batch with all of its features, which the audit shows if there is no
        # text in which the names of features could be found
        self.keep_names = False

    def limit(self, features: int) -> None:
        """Refuse examples of which n-grams or interactions make more features."""
        self.features.most_features = self.crosser.most_features = features

    @property
    def notes(self) -> list[str]:
        """Return the warnings about the options; with `exact`, those of interactions are lines of VW instead."""
        crossed = [] if self._exact else self.crosser.notes
        warned = [note.removeprefix("[warning] ") for note in crossed if not note.startswith("[info]")]
        return [*self.features.notes, *warned]

    def forget_namespaces(self) -> None:
        """Forget the namespaces seen so far, on which wildcard interactions depend, to restart at example 1."""
        told = self.crosser.idle.told
        self.crosser = interactions.Crosser(self._config.interactions)
        self.crosser.idle.told = told

    def idle_arguments(self, ended: bool = False) -> list[str]:
        """Return, once, warnings of arguments without their namespaces; `ended` says that no more examples come."""
        return [] if self._exact else [text for one in self.idle for text in one.messages(PATH_GROUP, ended)]

    @property
    def idle(self) -> tuple[namespaces.IdleArguments, ...]:
        """Return the arguments whose namespaces have not occurred, with the namespaces that have."""
        return self.features.idle, self.crosser.idle

    def add_idle(self, others: Sequence[namespaces.IdleArguments]) -> None:
        """Add the namespaces that occurred in examples of another process."""
        for own, other in zip(self.idle, others, strict=True):
            own.add(other)

    def tasks(
        self, learner: Reduction, raw_batch: Batch, held_out: np.ndarray | None, learn: bool, clock: float, file: str
    ) -> Iterator[BatchTask]:
        """Yield the tasks of a batch that was read from `file`, see `LearnerCore.tasks`."""
        low = 0
        for batch, count, whole in self.batches(learner, raw_batch):
            held_out_here = None if held_out is None else held_out[low : low + batch.n]
            if held_out_here is not None and not held_out_here.any():
                held_out_here = None
            low += batch.n
            batch, not_finite = (batch, None) if self._exact else finite.clean(batch)
            clocks = np.empty(batch.n)
            clock = batch_ops.add_weights(
                batch.label, batch.weight, NONE_HELD_OUT if held_out_here is None else held_out_here, clock, clocks
            )
            task = BatchTask(batch, learn, clocks, AsRead(file, count, whole), held_out_here)
            if learn:
                learner.survey(task, self._exact)
                if not_finite is not None:
                    learnable = ~np.isnan(batch.label)
                    if held_out_here is not None:
                        learnable &= ~held_out_here
                    task.guard.skipped[not_finite & learnable] = finite.EXAMPLE_SKIPPED
            yield task

    def batches(self, learner: Reduction, raw_batch: Batch) -> Iterator[tuple[Batch, np.ndarray, Batch | None]]:
        """Yield the prepared batches of a batch, split to the size that the learner accepts.

        With each come the numbers of features that are shown to the user, ignored linear terms included, and with
        `keep_names` the same examples with these terms, else None.
        """
        for filtered in self.features.apply(raw_batch) if self.features.active else (raw_batch,):
            for crossed in self.crosser.cross(filtered) if self.crosser.active else (filtered,):
                count = crossed.start[1:] - crossed.start[:-1]
                batch = self.features.linear(crossed)
                max_rows = 1 if self.one_by_one else learner.most_rows
                if max_rows is None:
                    yield batch, count, crossed if self.keep_names else None
                    continue
                for low in range(0, batch.n, max_rows):
                    high = min(low + max_rows, batch.n)
                    whole = batch_ops.cut(crossed, low, high) if self.keep_names else None
                    yield batch_ops.cut(batch, low, high), count[low:high], whole
