"""Compute the results of settings: their learners learn from some examples and predict others.

A learner that learns in one pass is kept between two spans, and continues where it is: it predicts the examples that
follow, and learns from them afterwards (progressive validation). Others begin anew. One thread for each processor
computes results, within limits of time and memory. A result does not depend on the other settings, nor on the threads.
"""

from __future__ import annotations

import contextlib
import functools
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from ..api import results
from ..api.learner import Learner
from ..api.learner_core import LearnerCore
from ..array_types import Float64s, Int64s
from ..data import batch_ops
from ..data.batch import Batch
from ..errors import XclassError
from ..reductions.core.contract import BatchTask
from ..reductions.core.label_lists import MultilabelLearner
from ..reductions.core.probabilities import ListingOptions as ListingOptions
from ..reductions.core.spec import LearnerUse
from ..system import memory, thread_limit
from ..system.printable import printable
from .results import CHUNKS, Results, SettingResult, Span, failure
from .settings import SearchSpace, Setting

Job = tuple[Setting, Span]
TOP = 5  # classes listed for the metric top5
SMALLEST_PROBABILITY = 1e-9  # of a label, so that a single one does not decide
TOO_LARGE = "it needs more memory than --memory allows"
TOO_SLOW = "it takes too long for --time"
WARM_UP = 200  # examples from which a setting learns when its kernels are compiled
CHECKS = 8  # batches between two looks at the memory


class Ended(Exception):
    """End the work on a setting: because the time is over, without an argument, or for the reason given."""


class Candidate:
    """Hold the learner of a setting; `size` is the number of first examples that it has learned and continues from."""

    size = 0

    def __init__(self, space: SearchSpace, setting: Setting) -> None:
        self._space, self._setting = space, setting
        self._learner: Learner | None = None
        self._seconds = 0.0

    def close(self) -> None:
        learner, self._learner, self.size, self._seconds = self._learner, None, 0, 0.0
        if learner is not None:
            learner.close()

    def stop(self) -> None:
        """Make a learner that learns at the end of the data return soon; may be called from another thread."""
        learner = self._learner
        if learner is not None:
            learner.core.reduction.stop()

    def run(self, span: Span, check: Callable[[], None]) -> SettingResult:
        """Learn from the examples of a span that are not learned yet, predict the others and return the losses.

        `check` is called between batches; an exception that it raises ends the work.
        """
        begin = time.perf_counter()
        sums, weights = np.zeros(CHUNKS), np.zeros(CHUNKS)
        try:
            learner, continues = self._learned(span, check)
            low, high = span.judged
            for first, batch in self._space.stream.batches((span.judged,)):
                check()
                chunk = (np.arange(first, first + batch.n) - low) * CHUNKS // (high - low)
                loss, weight = _losses(learner, batch, chunk, self._space.metric)
                sums += loss
                weights += weight
        except BaseException as error:
            self.close()
            if isinstance(error, XclassError):  # which names options by their flags
                return failure(printable(str(error.args[0])).splitlines()[0])
            raise
        self._seconds = seconds = self._seconds + time.perf_counter() - begin
        if not continues:
            self.close()
        if not np.isfinite(sums).all():
            return failure("its losses are not finite", seconds)
        return SettingResult(sums, weights, seconds)

    def _learned(self, span: Span, check: Callable[[], None]) -> tuple[Learner, bool]:
        """Return the learner after it has learned from the examples of a span, and whether it can continue."""
        (low, high), *others = span.learned
        if others or low or high < self.size:
            self.close()
        learner = self._learner = self._learner or self._new()
        passes, ended = self._space.passes(self._setting), False
        for number in range(passes):
            learner.core.reduction.begin_pass(number, threads=1)
            for _, batch in self._space.stream.batches([(max(low, self.size), high), *others]):
                check()
                learner.learn_many(batch)
            if number + 1 < passes or learner.preview_size is not None or learner.core.reduction.unlearned:
                learner.end_pass()
                ended = True
                check()
        self.size = high
        return learner, not (ended or others or learner.core.config.reduction.learns_at_end)

    def _new(self) -> Learner:
        core = LearnerCore(self._space.config(self._setting))
        core.names.add(list(self._space.stream.names))
        return Learner.of(core)


def _losses(learner: Learner, batch: Batch, chunk: Int64s, metric: str) -> tuple[Float64s, Float64s]:
    """Predict examples; return the sums of their weighted losses and of their weights by chunk, see `_losses_of_task`.

    `chunk` is int64[n], the chunk of each example, rising.
    """
    sums, weights = np.zeros(CHUNKS), np.zeros(CHUNKS)
    reduction = learner.core.reduction
    if isinstance(reduction, MultilabelLearner):
        for c in np.unique(chunk).tolist():
            report = reduction.new_report()
            part = batch_ops.cut(batch, *np.searchsorted(chunk, (c, c + 1)).tolist())
            learner.predict_each(part, functools.partial(reduction.measure, report))
            sums[c], weights[c] = report.lost("p1" if metric == "error" else metric)
        return sums, weights
    wanted = LearnerUse(example_probabilities=metric in ("log_loss", "squared"))
    if metric == "top5":
        wanted = LearnerUse(listing_options=ListingOptions(top_k=TOP))
    found = learner.predict_each(batch, functools.partial(_losses_of_task, metric), wanted)
    loss, weight = map(np.concatenate, zip(*found, strict=True))
    sums += np.bincount(chunk, loss * weight, CHUNKS)
    weights += np.bincount(chunk, weight, CHUNKS)
    return sums, weights


def _losses_of_task(metric: str, task: BatchTask) -> tuple[Float64s, Float64s]:
    """Return the losses and weights of the examples of a task that has passed the stages; those unlabelled weigh 0."""
    label, prediction = task.batch.label, task.prediction
    if metric in ("log_loss", "squared"):
        p = np.zeros(task.batch.n) if task.label_probability is None else np.nan_to_num(task.label_probability, nan=0.0)
        loss = (1 - p) ** 2 if metric == "squared" else -np.log(np.maximum(p, SMALLEST_PROBABILITY))
    elif metric == "top5":
        assert task.class_lists is not None  # because it is wanted
        listed, _ = results.top_k_arrays(task.class_lists, TOP)
        loss = (listed != label[:, None]).all(axis=1)
    else:
        assert prediction is not None  # the stages have set it
        loss = prediction != label
    return loss.astype(np.float64), np.where(np.isnan(label), 0.0, task.batch.weight).astype(np.float64)


class Evaluator:
    """Compute results, keep them in `results`, and call `report` with each; the process may take `memory` bytes.

    Attributes
    ----------
    deadline : value of time.monotonic() at which everything has to be done
    reserve : seconds before the deadline at which computing ends, because they are needed afterwards
    patience : seconds that a setting may take for a span
    stopped : whether `stop` was called
    tried : settings of which a result was requested, in that order
    """

    def __init__(
        self,
        space: SearchSpace,
        results: Results,
        memory: int,
        deadline: float,
        report: Callable[[Setting, Span, SettingResult], None],
    ) -> None:
        self._space, self._results, self._memory, self._report = space, results, memory, report
        self._candidates: dict[Setting, Candidate] = {}
        self._busy: list[Setting] = []  # settings that learn at this moment, the latest last
        self._lock = threading.RLock()
        self._slow: dict[Job, SettingResult] = {}  # not kept in the file, because a longer search may have the time
        self.stopped = False
        self.workers = thread_limit.processors()
        self.deadline, self.reserve, self.patience = deadline, 0.0, float("inf")
        self.tried: dict[Setting, None] = {}

    @property
    def time_left(self) -> float:
        """Return the seconds until computing ends, 0 after that and after `stop`."""
        return 0.0 if self.stopped else max(0.0, self.deadline - self.reserve - time.monotonic())

    def stop(self) -> None:
        """End the computations soon; may be called from a signal handler."""
        self.stopped = True
        self._end_slow_ones()

    def warm_up(self, setting: Setting) -> None:
        """Learn a few examples with a setting, so that no result includes the time of compiling kernels."""
        few = min(WARM_UP, self._space.stream.n // 2)
        with contextlib.suppress(Ended, MemoryError), contextlib.closing(Candidate(self._space, setting)) as candidate:
            candidate.run(Span(((0, few),), (few, 2 * few)), self._check_time)

    def known(self, setting: Setting, span: Span) -> SettingResult | None:
        """Return the result of a setting if it was computed, else None."""
        return self._slow.get((setting, span)) or self._results.found.get((self._space.name(setting), span))

    def compute(self, settings: Sequence[Setting], span: Span) -> None:
        """Compute the results of settings on a span that are not known, until the time is over."""
        self.tried.update(dict.fromkeys(settings))
        lacking = [(setting, span) for setting in settings if self.known(setting, span) is None]
        if not lacking or not self.time_left:
            return
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

    def keep_only(self, settings: Sequence[Setting]) -> None:
        """Free the memory of the learners of all other settings."""
        for setting in self._candidates.keys() - set(settings):
            self._candidates.pop(setting).close()

    def learned(self, setting: Setting) -> int:
        """Return the number of examples that the kept learner of a setting continues from, 0 without one."""
        return self._candidates[setting].size if setting in self._candidates else 0

    def _end_slow_ones(self) -> None:
        """Make learners that learn at the end of the data return, because the time is over."""
        for candidate in list(self._candidates.values()):
            candidate.stop()

    def _check_time(self) -> None:
        if not self.time_left:
            raise Ended

    def _try(self, job: Job, alone: bool = False) -> Job | None:
        """Compute the result of a job unless the time is over; return the job if it has to be repeated alone."""
        setting, span = job
        if not self.time_left:
            return None
        with self._lock:
            candidate = self._candidates.setdefault(setting, Candidate(self._space, setting))
            self._busy.append(setting)
        calls, begin = 0, time.monotonic()

        def check() -> None:
            nonlocal calls
            self._check_time()
            if time.monotonic() - begin > self.patience:
                raise Ended(TOO_SLOW)
            calls += 1
            if calls % CHECKS == 1:
                self._check_memory(setting, alone)

        try:
            result = candidate.run(span, check)
            if not self.time_left:
                return None  # it may have ended early
        except (Ended, MemoryError) as error:
            reason = TOO_LARGE if isinstance(error, MemoryError) else "".join(error.args)
            if reason == TOO_LARGE and not alone:
                candidate.close()
                return job
            if not reason:
                return None
            result = failure(reason, time.monotonic() - begin)
        finally:
            with self._lock:
                self._busy.remove(setting)
        with self._lock:
            if result.failed == TOO_SLOW:
                self._slow[job] = result
            else:
                self._results.add(self._space.name(setting), span, result)
            self._report(setting, span, result)
        return None

    def _check_memory(self, setting: Setting, alone: bool) -> None:
        """Free memory if the process takes too much; end this setting if that does not suffice and it has to yield."""
        if memory.taken() <= self._memory:
            return
        with self._lock:
            self.keep_only(self._busy)
            if memory.taken() > self._memory and (alone or self._busy[-1] == setting):
                raise Ended(TOO_LARGE)
