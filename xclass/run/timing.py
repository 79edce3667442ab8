"""Measure how long each part of a run takes (`--timing`).

Times are taken once per batch, so the cost is negligible. The reader, each stage of the learner and the output have a
thread of their own. The times exclude waiting for other threads, and their sum may exceed the duration of the run.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TypeVar

from ..system import thread_limit

T = TypeVar("T")


def since_start() -> float:
    """Return the seconds since this process began, or 0 if they are not known."""
    try:
        with open("/proc/self/stat", encoding="ascii") as f:
            ticks = int(f.read().rpartition(")")[2].split()[19])
        return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK"))
    except (OSError, ValueError, AttributeError, IndexError):
        return 0.0


class Stopwatch:
    """Sum the seconds spent on each named activity; each name must be used by one thread only."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def add(self, name: str, seconds: float) -> None:
        """Add seconds to an activity."""
        self.seconds[name] = self.seconds.get(name, 0.0) + seconds

    @contextlib.contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Add the time that a `with` block takes, or a function that this decorates, to the activity `name`."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.add(name, time.perf_counter() - start)

    def stages(self, stages: list[Callable[[T], None]]) -> list[Callable[[T], None]]:
        """Return stages that are timed as the activities `learning 0`, `learning 1`, ..."""
        return [self.timed(f"learning {j}")(stage) for j, stage in enumerate(stages)]

    def each(self, name: str, items: Iterable[T]) -> Iterator[T]:
        """Yield the items, adding the time that the iterator needs for each of them to the activity `name`."""
        return thread_limit.each(items, partial(self.timed, name))

    def line(self, parsing: float) -> str:
        """Return the line of the summary; `parsing` is the part of the seconds of "source" spent on parsing."""
        s = self.seconds
        learning = [seconds for name, seconds in s.items() if name.startswith("learning ")]
        parts = {
            "start": s.get("start", 0.0),
            "reading": max(0.0, s.get("source", 0.0) - parsing),
            "parsing and hashing": parsing,
            "crossing features": s.get("features", 0.0),
            "learning": learning or [0.0],
            "writing": s.get("writing", 0.0),
        }
        texts = []
        for name, value in parts.items():
            values = value if isinstance(value, list) else [value]
            texts.append(f"{name} {' + '.join(f'{seconds:.2f}' for seconds in values)}")
        return "timing, seconds: " + ", ".join(texts)
