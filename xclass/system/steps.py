"""Divide long work into steps, between which other work goes on.

    steps = Steps(job)
    while not steps.resume():   # executes the job until it pauses, or to its end
        ...                     # meanwhile it is suspended
    steps.result()

The job calls `pause()` where it may be suspended. It runs on a thread of its own, so that it needs no other form; only
one of the two threads runs at a time. Without `Steps`, `pause` does nothing.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")

SECONDS = 0.005  # of a step, unless the job pauses more rarely
_own = threading.local()


class Abandoned(Exception):
    """End a job whose result is not wanted any more."""


def pause() -> None:
    """Let other work go on if the step has taken long enough."""
    steps: Steps[object] | None = getattr(_own, "steps", None)
    if steps is not None and time.monotonic() > steps.until:
        steps.suspend()


class Steps(Generic[T]):
    """Execute a job in steps; `until` is the time at which the present one should end."""

    def __init__(self, job: Callable[[], T]) -> None:
        self._job, self.until = job, 0.0
        self._resumed, self._suspended = threading.Semaphore(0), threading.Semaphore(0)
        self._thread: threading.Thread | None = None
        self._ended = self._abandoned = False
        self._result: list[T] = []
        self._error: BaseException | None = None

    def resume(self) -> bool:
        """Execute the next step, and return whether the job has ended."""
        self.until = time.monotonic() + SECONDS
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="xclass-steps", daemon=True)
            self._thread.start()
        else:
            self._resumed.release()
        self._suspended.acquire()
        return self._ended

    def result(self) -> T:
        """Return the result of the job, or raise its error."""
        if self._error is None:
            return self._result[0]
        try:
            raise self._error
        finally:
            self._error = None  # its frames hold this object

    def abandon(self) -> None:
        """End the job at its present step, if it has begun, and wait until it has ended."""
        self._abandoned = True
        while self._thread is not None and not self._ended:
            self.resume()

    def suspend(self) -> None:
        """Wait, on the thread of the job, for the next step."""
        self._suspended.release()
        self._resumed.acquire()
        if self._abandoned:
            raise Abandoned

    def _run(self) -> None:
        _own.steps = self
        try:
            self._result.append(self._job())
        except BaseException as error:
            self._error = error
        self._ended = True
        self._suspended.release()
