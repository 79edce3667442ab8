"""Compute what settings lose on the examples that they are compared on, and keep, compare and show these results.

A learner that learns in one pass is kept between two spans, and continues where it is: it predicts the examples that
follow, and learns from them afterwards (progressive validation). Others begin anew. One thread for each processor
computes results, within limits of time and memory. A result does not depend on the other settings, nor on the threads.

The losses are summed over chunks of neighbouring examples. The difference of two settings on the same chunks, and its
standard error from the differences by chunk, tell whether one of them is better.
"""

from __future__ import annotations

import contextlib
import functools
import json
import math
import os
import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from ..api import results
from ..api.learner import Learner
from ..api.learner_core import LearnerCore
from ..array_types import Float64s, Int64s
from ..data import batch_ops
from ..data.batch import Batch
from ..errors import DataError, XclassError
from ..reductions.core.contract import BatchTask
from ..reductions.core.label_lists import MultilabelLearner
from ..reductions.core.probabilities import ListingOptions
from ..reductions.core.spec import LearnerUse
from ..system import bounded_json, memory, output_file, streams, thread_limit
from ..system.bounded_json import Anything, List, Malformed, Number, Record, Text, Whole
from ..system.printable import printable, short_repr
from .settings import SearchSpace, Setting

CHUNKS = 40  # chunks of a range of examples
LARGEST = 1e100  # of a sum in the file of the results
INTERVAL = 2.0  # seconds between two writes
VERSION = 1
DESCRIPTION = "the results of the settings"
CURE = "remove the file, or give another --state"
_RANGE = List(Whole(), 2, 2)
_SPAN = {"setting": Text(), "learned": List(_RANGE), "judged": _RANGE, "seconds": Number(0)}
_SUMS = List(Number(-LARGEST, LARGEST), CHUNKS, CHUNKS)
FIRST = Record({"search": Record(others=Anything())})
RESULT = Record({**_SPAN, "sums": _SUMS, "weights": List(Number(0, LARGEST), CHUNKS, CHUNKS)})
FAILED = Record({**_SPAN, "failed": Text()})
WIDTH = 80  # characters of a line
INDENT = 10  # spaces before options that do not fit into the line of their setting
ROWS = 10  # settings in the table
TITLES = {
    "error": "error", "log_loss": "log loss", "squared": "squared loss", "top5": "top 5",
    "p1": "1 - P@1", "p3": "1 - P@3", "p5": "1 - P@5", "psp5": "1 - PSP@5", "micro_f1": "1 - F1",
}  # fmt: skip


class Span(NamedTuple):
    """Say which examples a setting learns from, and which ones it is compared on."""

    learned: tuple[tuple[int, int], ...]  # (begin, end) of the ranges of examples that are learned from, in order
    judged: tuple[int, int]  # (begin, end) of the range of examples that are predicted afterwards

    @property
    def size(self) -> int:
        return sum(high - low for low, high in self.learned)


class SettingResult(NamedTuple):
    """Hold the losses of a setting on the examples of a span."""

    sums: Float64s  # float64[CHUNKS], sum of the weighted losses of each chunk
    weights: Float64s  # float64[CHUNKS], sum of the weights of the labelled examples of each chunk
    seconds: float  # time that learning and predicting all examples of the span took
    failed: str = ""  # why there are no losses

    @property
    def loss(self) -> float:
        """Return the mean loss; infinite if there is none."""
        total = float(self.weights.sum())
        return float(self.sums.sum()) / total if total > 0 and not self.failed else math.inf


def failure(reason: str, seconds: float = 0.0) -> SettingResult:
    """Return the result of a setting that cannot be used."""
    return SettingResult(np.zeros(CHUNKS), np.zeros(CHUNKS), seconds, reason)


def joined(results: Sequence[SettingResult]) -> SettingResult:
    """Return one result of a setting on several ranges of examples; the time is the longest one."""
    failed = next((one.failed for one in results if one.failed), "")
    return SettingResult(
        np.concatenate([one.sums for one in results]), np.concatenate([one.weights for one in results]),
        max(one.seconds for one in results), failed,
    )  # fmt: skip


def difference(one: SettingResult, other: SettingResult) -> tuple[float, float]:
    """Return how much more `one` loses than `other` on the same examples, and the standard error of that.

    It follows from how much each chunk adds to the mean losses beyond its share.
    """
    ours, theirs = ((each.sums - each.loss * each.weights) / each.weights.sum() for each in (one, other))
    n = len(one.sums)
    return one.loss - other.loss, math.sqrt(float(((ours - theirs) ** 2).sum()) * n / (n - 1))


class Results:
    """Hold the results of a search, by name of the setting and span, of which `resumed` were in the file `path`.

    The same command continues the search from the file. It is one line of JSON for the search, and one for each result,
    and is replaced as a whole, so it is complete at any moment. Facts (`search`) tell by which data, options and metric
    a search is recognised. Without `path` no file is kept.
    """

    def __init__(self, path: str | None, search: Mapping[str, Any]) -> None:
        self.path = path
        self._search = json.loads(json.dumps({"version": VERSION, **search}))
        self.found: dict[tuple[str, Span], SettingResult] = {}
        if path is not None and os.path.exists(path):
            self._read(path)
        self.resumed = self._kept = len(self.found)  # `_kept` are in the file
        self._written = time.monotonic()

    @property
    def settings(self) -> int:
        return len({setting for setting, _ in self.found})

    def add(self, setting: str, span: Span, result: SettingResult) -> None:
        """Add a result, and write the file if it was not written for a while."""
        self.found[setting, span] = result
        if time.monotonic() - self._written >= INTERVAL:
            self.write()

    def write(self) -> None:
        """Write the file if there is one and a result was added; raise DataError if that fails."""
        if self.path is None or self._kept == len(self.found):
            return
        rows: list[dict[str, Any]] = [{"search": self._search}]
        for (setting, span), result in self.found.items():
            sums = {"sums": result.sums.tolist(), "weights": result.weights.tolist()}
            row = {"setting": setting, **span._asdict(), "seconds": round(result.seconds, 3)}
            rows.append({**row, **({"failed": result.failed} if result.failed else sums)})
        output_file.replace(self.path, DESCRIPTION, [f"{json.dumps(row)}\n".encode() for row in rows])
        self._written, self._kept = time.monotonic(), len(self.found)

    def _read(self, path: str) -> None:
        """Read the results of an earlier search."""
        first, *rest = streams.read_file(path, CURE).splitlines() or [b""]
        try:
            search = bounded_json.parse(first, FIRST)["search"]
        except Malformed as error:
            about = "this is not a file of xclass tune, or it is damaged: "
            raise bounded_json.refusal(path, error, CURE, about=about) from None
        for name, value in self._search.items():
            if search.get(name) != value:
                raise DataError(
                    f"{path}: it is of another search: {name} was {short_repr(search.get(name))} and is "
                    f"{short_repr(value)}; {CURE}"
                )
        for number, line in enumerate(rest, 1):
            try:
                row = bounded_json.parse(line, FAILED if b'"failed"' in line else RESULT)
            except Malformed as error:
                raise bounded_json.refusal(path, error, CURE, number, f"result {number} is damaged: ") from None
            low, high = row["judged"]
            span = Span(tuple((begin, end) for begin, end in row["learned"]), (low, high))
            sums, weights = (np.array(row.get(name, [0] * CHUNKS), np.float64) for name in ("sums", "weights"))
            self.found[row["setting"], span] = SettingResult(
                sums, weights, float(row["seconds"]), row.get("failed", "")
            )


class ResultRow(NamedTuple):
    """Hold a row of the table."""

    setting: Setting
    size: int  # number of examples that it has learned from
    compared: int  # number of examples that it was compared on after that
    result: SettingResult  # its losses on these
    of_defaults: (
        SettingResult | None
    )  # those of the defaults; None if they have no result on these examples, or this failed
    difference: tuple[float, float]  # how much more it loses than the defaults, and the standard error of that


def rows(
    space: SearchSpace, settings: Iterable[Setting], results: Mapping[tuple[str, Span], SettingResult]
) -> list[ResultRow]:
    """Return the rows of settings, best first: by the number of examples learned, then by the difference.

    Results are known by the name of a setting and span.
    """
    default = space.name(space.default)
    made = []
    for setting in settings:
        name = space.name(setting)
        own = [span for of_setting, span in results if of_setting == name]
        size = max((span.size for span in own), default=0)
        spans = [span for span in own if span.size == size]
        if not spans:
            continue
        common = [span for span in spans if (default, span) in results and not results[default, span].failed]
        spans = common or spans  # so that all figures of a row are about the same examples
        result = joined([results[name, span] for span in spans])
        compared = sum(span.judged[1] - span.judged[0] for span in spans)
        defaults = joined([results[default, span] for span in common]) if common and not result.failed else None
        lost = (0.0, 0.0) if defaults is None else difference(result, defaults)
        made.append(ResultRow(setting, size, compared, result, defaults, lost))
    return sorted(made, key=lambda row: (bool(row.result.failed), -row.size, row.difference[0], row.result.loss))


def table(space: SearchSpace, made: Sequence[ResultRow], best: Setting, known: int) -> list[str]:
    """Return the lines of the table: the best settings, the defaults if they are not among them, and a remark.

    The recommended setting, `best`, is marked; `known` counts the settings with results, of earlier searches too.
    """
    shown = [*made[:ROWS], *(row for row in made[ROWS:] if row.setting in (best, space.default))]
    cells = [[TITLES[space.metric], "defaults", "difference", "compared", "learned", "s"]]
    for row in shown:
        loss = "failed" if row.result.failed else f"{row.result.loss:.4f}"
        base = against = ""
        if row.of_defaults is not None and row.setting != space.default:
            base, against = f"{row.of_defaults.loss:.4f}", "{:+.4f} +/- {:.4f}".format(*row.difference)
        cells.append([loss, base, against, f"{row.compared:,}", f"{row.size:,}", f"{row.result.seconds:.1f}"])
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    header, *figures = [" ".join(map(str.rjust, texts, widths)) for texts in cells]
    lines = [f"  {header}  options"]
    for row, head in zip(shown, figures, strict=True):
        line = f"{'*' if row.setting == best else ' '} {head}  "
        text = space.text(row.setting) + (f": {row.result.failed}" if row.result.failed else "")
        for option in re.split(" (?=-)", text):  # an option and its value stay on one line
            if len(line) + len(option) > WIDTH:
                lines.append(line.rstrip())
                line = " " * INDENT
            line += option + " "
        lines.append(line.rstrip())
    if known > len(shown):
        hidden = known - len(shown)
        lines.append(f"  and {hidden:,} more setting{'s' if hidden > 1 else ''}")
    if best != space.default:
        lines += [
            f"The best of {known:,} settings: the differences are not corrected for the number of",
            "settings, so a part of the gain may be chance.",
        ]
    return lines


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
            if number + 1 < passes or learner.core.unlearned:
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
