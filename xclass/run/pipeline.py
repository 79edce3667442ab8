"""Items through a row of stages, each on a thread of its own, in order.

    source -> queue -> stage 1 -> queue -> stage 2 -> queue -> whoever iterates

An error of the source or of a stage reaches the iterator after everything before it has gone through, so that
what was read before a bad line is learned. `stop()` ends the source early: what it has delivered goes through.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Generic, TypeVar

Item = TypeVar("Item")

WAITING = 3  # items that may wait before each stage


class _End:
    """The last thing in every queue: nothing more comes, because of `error` or because the source ended."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.error = error


class Pipeline(Generic[Item]):
    """Runs `stages` over the items of `source`; each stage changes the item it is given."""

    def __init__(self, source: Iterable[Item], stages: Sequence[Callable[[Item], object]]) -> None:
        self._source = source
        self._queues: list[queue.Queue[Item | _End]] = [queue.Queue(WAITING) for _ in range(len(stages) + 1)]
        self._stopping = threading.Event()
        self._ended = False
        self._start(self._feed)
        for j, stage in enumerate(stages):
            self._start(self._serve, stage, self._queues[j], self._queues[j + 1])

    def __iter__(self) -> Iterator[Item]:
        while not self._ended:
            item = self._queues[-1].get()
            if isinstance(item, _End):
                self._ended = True
                if item.error is not None:
                    raise item.error
                return
            yield item

    def stop(self) -> None:
        """Take no more from the source; iterating goes on to what was taken before."""
        if not self._stopping.is_set():
            self._stopping.set()
            # from a thread: the queue may be full, and the source may be waiting for input that never comes
            self._start(self._queues[0].put, _End())

    @staticmethod
    def _start(task: Callable[..., object], *args: object) -> None:
        threading.Thread(target=task, args=args, daemon=True).start()

    def _feed(self) -> None:
        error = None
        try:
            for item in self._source:
                if self._stopping.is_set():
                    return
                self._queues[0].put(item)
        except BaseException as caught:
            error = caught
        if not self._stopping.is_set():
            self._queues[0].put(_End(error))

    def _serve(
        self, stage: Callable[[Item], object], before: queue.Queue[Item | _End], after: queue.Queue[Item | _End]
    ) -> None:
        while True:
            item = before.get()
            if not isinstance(item, _End):
                try:
                    stage(item)
                except BaseException as caught:
                    self._stopping.set()
                    item = _End(caught)
            after.put(item)
            if isinstance(item, _End):
                return
