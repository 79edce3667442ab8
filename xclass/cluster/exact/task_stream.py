"""Deliver all tasks of a run in a worker, as one process would learn them.

Idea      What is delivered depends only on the data and the options. A worker that takes the place of another one goes
          through the same items up to its `Cursor`, because names of classes, shuffling and interactions depend on
          earlier examples.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ...api.configuration import Config
from ...api.learner_core import LearnerCore
from ...cache.source import Source
from ...reductions.core.contract import BatchTask
from ...run import data_source, passes
from ...run.passes import SavePoint
from ...system.pipeline import Pipeline

Item = BatchTask | SavePoint


class Cursor(NamedTuple):
    """Say where in a run a worker is."""

    passes: int = 0  # passes that have ended
    items: int = 0  # items of this pass that were delivered


class TaskStream:
    """Iterate over the tasks of the passes of a run; `clock` is the weight of the labelled examples before it."""

    def __init__(self, config: Config, learner: LearnerCore, clock: float) -> None:
        self._learner = learner
        self._stream = data_source.opened(config, learner, needs_lines=False)
        self.source: Source = self._stream.source
        self._clock = clock
        self.cursor = Cursor()  # the place after the last item that was delivered
        self._pipeline: Pipeline[Item] | None = None
        self._items: Iterator[Item] | None = None

    def __next__(self) -> Item:
        """Return the next item; the end of a pass raises StopIteration."""
        if self._items is None:
            self._begin_pass()
        assert self._items is not None  # it was just made
        item = next(self._items)
        if isinstance(item, BatchTask) and item.batch.n:
            self._clock = float(item.clock[-1])
        self.cursor = self.cursor._replace(items=self.cursor.items + 1)
        return item

    def _begin_pass(self) -> None:
        """Start to read a pass, on a thread, ahead of the learner."""
        learner, reduction = self._learner, self._learner.reduction
        if learner.preview_size == 0:  # it sees all of the data before it learns
            for task in passes.tasks(learner, self._stream.unshuffled(), True, self._clock):
                if isinstance(task, BatchTask):
                    reduction.preview(task)
            reduction.end_preview()
            learner.preparation.forget_namespaces()
        items = passes.tasks(learner, self._stream, True, self._clock)
        if learner.preview_size is not None:
            items = passes.previewed(items, reduction)
        self._pipeline = Pipeline(items, [])
        self._items = iter(self._pipeline)

    def end_pass(self) -> bool:
        """Count a pass that has ended, and return whether another one follows."""
        self.cursor = Cursor(self.cursor.passes + 1)
        self._items = self._pipeline = None
        return self._stream.count_pass()

    def move_to(self, cursor: Cursor) -> None:
        """Go through all items up to a cursor, from the beginning."""
        while self.cursor.passes < cursor.passes:
            while next(self, None) is not None:
                pass
            self.end_pass()
        while self.cursor.items < cursor.items:
            next(self)

    def close(self) -> None:
        if self._pipeline is not None:
            self._pipeline.stop()
        self.source.close()
