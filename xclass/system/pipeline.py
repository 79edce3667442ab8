"""Pass items through a sequence of stages in order, with each stage on a thread of its own.

    source -> queue -> stage 1 -> queue -> stage 2 -> queue -> iterator

An error of the source or of a stage reaches the iterator after all items before it have passed the stages, so that
everything before a malformed line is learned. `stop()` ends the source early; the items it has delivered still pass.
A mark among the items ends the pipeline, so that something is done when all items before it have passed; the next
pipeline goes on with the same source.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from . import thread_limit

Item = TypeVar("Item")

QUEUE_SIZE = 3  # items that may wait before each stage


class _End:
    """Mark the end of a queue: the source has ended, by `error` unless that is None."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.error = error


class Pipeline(Generic[Item]):
    """Run `stages` over the items of `source` and iterate over the results; each stage changes the item in place.

    `mark` is the one of the class `marks` that has ended the pipeline, None at the end of the source.
    """

    def __init__(
        self, source: Iterable[Any], stages: Sequence[Callable[[Item], object]], marks: type | tuple[()] = ()
    ) -> None:
        self._source, self._marks = source, marks
        self.mark: Any = None
        self._queues: list[queue.Queue[Item | _End]] = [queue.Queue(QUEUE_SIZE) for _ in range(len(stages) + 1)]
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
        """Stop reading the source; the items read before still pass the stages."""
        if not self._ended and not self._stopping.is_set():
            self._stopping.set()
            # on a thread, because the queue may be full; not by _feed, which may wait for input that never comes
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
                if isinstance(item, self._marks):
                    self.mark = item
                    break
                self._queues[0].put(item)
        except BaseException as caught:
            error = caught
        if not self._stopping.is_set():
            self._queues[0].put(_End(error))

    def _serve(
        self,
        stage: Callable[[Item], object],
        input_queue: queue.Queue[Item | _End],
        output_queue: queue.Queue[Item | _End],
    ) -> None:
        while True:
            item = input_queue.get()
            if not isinstance(item, _End):
                try:
                    with thread_limit.working():
                        stage(item)
                except BaseException as caught:
                    self._stopping.set()
                    item = _End(caught)
            output_queue.put(item)
            if isinstance(item, _End):
                return
