"""Limit the number of threads of this process that compute at the same time (`--threads`).

A limit of N is N permits. A thread holds one while it parses a block, passes a batch through a stage or writes
predictions, and none while it waits for input or for another thread. The thread that divides its work among others
takes part in the work itself, and other threads help it as soon as they get a permit. It waits for items that have
begun, not for these threads, so that no thread waits for a permit while it holds one.

How OpenBLAS, which computes NumPy's linear algebra, divides a decomposition among threads changes the last bits of its
result. Wheels of NumPy contain it. If NumPy uses another library, `one_blas_thread` limits nothing, and equal bytes
need equal settings of that library.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor
from typing import Any, TypeVar

T = TypeVar("T")
# of OpenBLAS in wheels of NumPy: for Linux and Windows, for macOS, and older ones
FOLDERS = ("../numpy.libs", ".dylibs", "../numpy/.libs")
NAMES = ("scipy_openblas_{}64_", "scipy_openblas_{}", "openblas_{}64_", "openblas_{}")

_blas_lock = threading.Lock()
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


def each(items: Iterable[T], around: Callable[[], contextlib.AbstractContextManager[None]] = working) -> Iterator[T]:
    """Yield the items, holding a permit, or within another context, while the iterator computes each of them."""
    iterator, end = iter(items), object()

    def following() -> Any:
        with around():
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


@functools.cache
def _functions() -> tuple[Callable[[], int], Callable[[int], None]] | None:
    """Return the functions that tell and set the number of threads, None if OpenBLAS is not found."""
    import ctypes
    from pathlib import Path

    import numpy as np

    home = Path(np.__file__).parent
    for path in (path for folder in FOLDERS for path in sorted((home / folder).glob("*openblas*"))):
        with contextlib.suppress(OSError):
            library = ctypes.CDLL(str(path))
            for name in NAMES:
                if hasattr(library, name.format("set_num_threads")):
                    return getattr(library, name.format("get_num_threads")), getattr(
                        library, name.format("set_num_threads")
                    )
    return None


@contextlib.contextmanager
def one_blas_thread() -> Iterator[bool]:
    """Limit OpenBLAS to one thread until the context ends; yield whether it could be limited.

    The number is that of the process, so calls of other threads of the program are limited meanwhile.
    """
    functions = _functions()
    if functions is None:
        yield False
        return
    tell, limit = functions
    with _blas_lock:
        before = tell()
        limit(1)
        try:
            yield True
        finally:
            limit(before)
