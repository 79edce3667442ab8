"""Limit the number of threads of this process that compute at the same time (`--threads`).

A limit of N is N permits. A thread holds one while it parses a block, passes a batch through a stage or writes
predictions, and none while it waits for input or for another thread. The thread that divides its work among others
takes part in the work itself, and other threads help it as soon as they get a permit. It waits for items that have
begun, not for these threads, so that no thread waits for a permit while it holds one.
"""

from __future__ import annotations

import contextlib
import contextvars
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor
from typing import Any, TypeVar

T = TypeVar("T")

_permits: threading.Semaphore | None = None  # None if the threads are not limited
_most: int | None = None
_held = contextvars.ContextVar("held", default=False)  # whether a thread, or the one that it works for, holds a permit


def most() -> int | None:
    return _most


@contextlib.contextmanager
def limited(threads: int | None) -> Iterator[None]:
    """Limit the threads that compute at the same time until the context ends; None leaves the limit as it is."""
    global _permits, _most
    before = _permits, _most
    if threads is not None:
        _permits, _most = threading.Semaphore(threads), threads
    try:
        yield
    finally:
        _permits, _most = before


@contextlib.contextmanager
def working() -> Iterator[None]:
    """Hold a permit until the context ends; wait for a free one first, unless this thread holds one already."""
    permits = _permits
    if permits is None or _held.get():
        yield
        return
    with permits:
        before = _held.set(True)
        try:
            yield
        finally:
            _held.reset(before)


def each(items: Iterable[T]) -> Iterator[T]:
    """Yield the items, holding a permit while the iterator computes each of them."""
    iterator, end = iter(items), object()

    def following() -> Any:
        with working():
            return next(iterator, end)

    return iter(following, end)


def share(pool: Executor, job: Callable[..., object], items: Iterable[tuple[Any, ...]]) -> None:
    """Call `job(*item)` for every item, in this thread and on threads of `pool`, and wait for all.

    After an error no further item begins, and the error is raised when those that have begun are complete.
    """
    permits = _permits
    if permits is None:
        list(pool.map(lambda item: job(*item), items))
        return
    waiting = deque(items)
    running = 0  # items that have begun and are not complete
    errors: list[BaseException] = []
    changed = threading.Condition()  # protects the three above

    def work() -> None:
        nonlocal running
        while True:
            with changed:
                if not waiting:
                    return
                item = waiting.popleft()
                running += 1
            try:
                job(*item)
            except BaseException as error:
                with changed:
                    waiting.clear()
                    errors.append(error)
            finally:
                with changed:
                    running -= 1
                    changed.notify_all()

    def help_with_work() -> None:
        with working():  # if no permit is free before all items have begun, nothing is left to do
            work()

    with working():
        try:
            for _ in range(min(len(waiting), _most or 1) - 1):
                pool.submit(help_with_work)
            work()
        finally:
            with changed:
                waiting.clear()
                changed.wait_for(lambda: running == 0)
    if errors:
        raise errors[0]


def processors() -> int:
    try:
        allowed = len(os.sched_getaffinity(0)) or 1
    except (AttributeError, OSError):  # sched_getaffinity is missing on macOS and Windows
        allowed = os.cpu_count() or 1
    return min(allowed, most() or allowed)
