"""Compute the results of many settings, with one thread for each processor, within limits of time and memory.

The result of a setting does not depend on the other settings, nor on the number of threads.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from ..system import memory, processors
from .candidate import Candidate
from .results import Result, Span, failure
from .settings import Setting, Space
from .state import State
from .stream import Stream

Job = tuple[Setting, Span]
TOO_LARGE = "it needs more memory than --memory allows"
TOO_SLOW = "it takes too long for --time"
WARM_UP = 200  # examples from which a setting learns when its kernels are compiled
CHECKS = 8  # batches between two looks at the memory


class Ended(Exception):
    """Report that the time is over, or that the user has stopped the search."""


class Slow(Exception):
    """Report that a setting takes too long."""


class Crowded(Exception):
    """Report that the memory does not suffice for the settings that learn at the same time."""


class Evaluator:
    """Compute results, add them to a state, and call `report` with each; the process may take `memory` bytes.

    Attributes
    ----------
    deadline : value of time.monotonic() at which everything has to be done
    reserve : seconds before the deadline at which computing ends, because they are needed afterwards
    patience : seconds that a setting may take for a span
    stopped : whether `stop` was called
    tried : settings of which a result was requested, in that order
    """

    def __init__(
        self, space: Space, stream: Stream, metric: str, state: State, memory: int,
        report: Callable[[Setting, Span, Result], None],
    ) -> None:  # fmt: skip
        self._space, self._stream, self._metric, self._state, self._memory = space, stream, metric, state, memory
        self._report = report
        self._candidates: dict[Setting, Candidate] = {}
        self._busy: list[Setting] = []  # settings that learn at this moment, the latest last
        self._lock = threading.RLock()
        self.stopped = False
        self.workers = processors.count()
        self.deadline = float("inf")
        self.reserve, self.patience = 0.0, float("inf")
        self._slow: dict[Job, Result] = {}  # not kept in the state, because a longer search may have the time
        self.tried: dict[Setting, None] = {}

    @property
    def time_left(self) -> float:
        """Return the seconds until computing ends, 0 after that and after `stop`."""
        return 0.0 if self.stopped else max(0.0, self.deadline - self.reserve - time.monotonic())

    def stop(self) -> None:
        """End the computations soon; may be called from a signal handler."""
        self.stopped = True
        self._end_slow_ones()

    def warm_up(self, setting: Setting, examples: int) -> None:
        """Learn a few examples with a setting, so that no result includes the time of compiling kernels."""

        def check() -> None:
            if not self.time_left:
                raise Ended

        few = min(WARM_UP, examples // 2)
        span = Span(((0, few),), (few, 2 * few))
        candidate = Candidate(self._space, setting, self._stream, self._metric)
        with contextlib.suppress(Ended, MemoryError), contextlib.closing(candidate):
            candidate.run(span, check)

    def known(self, setting: Setting, span: Span) -> Result | None:
        """Return the result of a setting if it was computed, else None."""
        return self._slow.get((setting, span)) or self._state.results.get((self._space.name(setting), span))

    def results(self, jobs: Sequence[Job]) -> list[Result | None]:
        """Return the result of each job; None if the time was over before."""
        self.tried.update((setting, None) for setting, _ in jobs)
        lacking = [job for job in jobs if self.known(*job) is None]
        if lacking and self.time_left > 0:
            watch = threading.Timer(min(self.time_left, threading.TIMEOUT_MAX), self._end_slow_ones)
            watch.daemon = True
            watch.start()
            try:
                with ThreadPoolExecutor(min(self.workers, len(lacking)), "tune") as pool:
                    crowded = [job for job in pool.map(self._try, lacking) if job is not None]
                for job in crowded:
                    self._try(job, alone=True)
            finally:
                watch.cancel()
        return [self.known(*job) for job in jobs]

    def keep_only(self, settings: Sequence[Setting]) -> None:
        """Free the memory of the learners of all other settings."""
        for setting in set(self._candidates) - set(settings):
            self._candidates.pop(setting).close()

    def learned(self, setting: Setting) -> int:
        """Return the number of examples that the kept learner of a setting continues from, 0 without one."""
        candidate = self._candidates.get(setting)
        return 0 if candidate is None else candidate.size

    def _end_slow_ones(self) -> None:
        """Make learners that learn at the end of the data return, because the time is over."""
        for candidate in list(self._candidates.values()):
            candidate.stop()

    def _try(self, job: Job, alone: bool = False) -> Job | None:
        """Compute the result of a job unless the time is over; return the job if it has to be repeated alone."""
        setting, span = job
        if not self.time_left:
            return None
        with self._lock:
            candidate = self._candidates.setdefault(
                setting, Candidate(self._space, setting, self._stream, self._metric)
            )
            self._busy.append(setting)
        calls, begin = 0, time.monotonic()

        def check() -> None:
            nonlocal calls
            if not self.time_left:
                raise Ended
            if time.monotonic() - begin > self.patience:
                raise Slow
            calls += 1
            if calls % CHECKS == 1:
                self._check_memory(setting, alone)

        try:
            result = candidate.run(span, check)
        except Ended:
            return None
        except Slow:
            result = self._slow[job] = failure(TOO_SLOW, time.monotonic() - begin)
            self._report(setting, span, result)
            return None
        except (Crowded, MemoryError):
            candidate.close()
            if not alone:
                return job
            result = failure(TOO_LARGE)
        finally:
            with self._lock:
                self._busy.remove(setting)
        if not self.time_left and result.failed != TOO_LARGE:
            return None  # it may have ended early
        with self._lock:
            self._state.add(self._space.name(setting), span, result)
            self._report(setting, span, result)
        return None

    def _check_memory(self, setting: Setting, alone: bool) -> None:
        """Free memory if the process takes too much; raise Crowded if that does not suffice and this setting yields."""
        if memory.taken() <= self._memory:
            return
        with self._lock:
            for other in [other for other in self._candidates if other not in self._busy]:
                self._candidates.pop(other).close()
            if memory.taken() > self._memory and (alone or self._busy[-1] == setting):
                raise Crowded
