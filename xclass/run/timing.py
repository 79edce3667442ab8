"""Where the time of a run goes: `--timing`.

Measured once a batch, so that it costs nothing. The reader, every stage of the learner and the output have a thread
each; the figures are what each of them worked, not waited, and together are more than the run took.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import ParamSpec, TypeVar

from ..options.declare import option

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


@dataclass(frozen=True)
class Options:
    timing: bool = option("report the time spent starting, reading, parsing, learning and writing", kind=bool)


def since_start() -> float:
    """Seconds since this process began; 0 where the system does not tell."""
    try:
        with open("/proc/self/stat", encoding="ascii") as f:
            ticks = int(f.read().rpartition(")")[2].split()[19])
        return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK"))
    except (OSError, ValueError, AttributeError, IndexError):
        return 0.0


class Stopwatch:
    """Seconds by what they were spent on; each name belongs to one thread."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def add(self, name: str, seconds: float) -> None:
        """Count seconds."""
        self.seconds[name] = self.seconds.get(name, 0.0) + seconds

    def timed(self, name: str, task: Callable[P, R]) -> Callable[P, R]:
        """Return `task` that counts its time."""

        def timed(*args: P.args, **more: P.kwargs) -> R:
            begin = time.perf_counter()
            try:
                return task(*args, **more)
            finally:
                self.add(name, time.perf_counter() - begin)

        return timed

    def stages(self, stages: list[Callable[[T], None]]) -> list[Callable[[T], None]]:
        """Return the stages of a learner that count theirs."""
        return [self.timed(f"learning {j}", stage) for j, stage in enumerate(stages)]

    def each(self, name: str, items: Iterable[T]) -> Iterator[T]:
        """Return an iterator that counts the time its items take to come."""
        take = self.timed(name, iter(items).__next__)
        while True:
            try:
                item = take()
            except StopIteration:
                return
            yield item

    def line(self, parsing: float) -> str:
        """What the summary says; `parsing` : seconds of what "source" took."""
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
        told = []
        for name, value in parts.items():
            values = value if isinstance(value, list) else [value]
            told.append(f"{name} {' + '.join(f'{one:.2f}' for one in values)}")
        return "timing, seconds: " + ", ".join(told)
