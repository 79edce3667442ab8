"""Execute a search: parse the data, try settings until the time is over, and report the best one."""

from __future__ import annotations

import contextlib
import os
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..api import configuration
from ..api.learner_core import LearnerCore
from ..cache import source as cache
from ..errors import DataError, UsageError, XclassWarning
from ..kernels import jit
from ..options.declare import Option, as_words, options_of
from ..run import warm_up
from ..run.report.console import Console
from ..run.signals import SignalHandler, Stopped
from ..system import memory, thread_limit
from ..text import reader
from . import quantities, ranges, report
from .evaluator import Evaluator
from .halving import Halving
from .options import Options, beside_data
from .results import Result, Span
from .settings import PASSES, Setting, Space
from .state import State
from .stream import Stream

LEAST_MEMORY = 1 << 28  # bytes that a search needs at least


@dataclass(frozen=True)
class Request:
    """Hold what a search is about."""

    options: Options
    files: reader.Options
    kept: cache.Options
    fixed: Mapping[str, Any]  # options of the learner that all settings have, field -> value, without the reduction
    chosen: tuple[str, int] | None  # name and value of the only reduction; None to choose the reduction, too
    peeked: bytes = b""  # already read from standard input
    notes: tuple[str, ...] = ()  # about what was detected


@dataclass(frozen=True)
class Found:
    """Hold the result of a search."""

    words: list[str]  # the command line with the best options, without -f; none if a signal came before any result
    lines: list[str]  # the table
    signal: int  # that ended the search, 0 if none did
    note: str = ""  # what was not done because of the signal, and how to go on


class Search:
    """Search for the best options."""

    def __init__(self, request: Request) -> None:
        self._begin = time.monotonic()
        self._request = request
        o = request.options
        self._seconds = quantities.seconds("--time", o.time)
        free = memory.available()
        self._memory = quantities.size("--memory", o.memory) if o.memory else (free or 1 << 32) // 2
        if self._memory < LEAST_MEMORY:
            raise UsageError(
                f"--memory: {self._memory >> 20} MB are too few for a search; give at least {LEAST_MEMORY >> 20}M"
            )
        self._ranges = ranges.read(o.range, {**configuration.declared_options(), "passes": PASSES})
        for field in self._ranges:
            if field in request.fixed or field in configuration.option_groups():
                raise UsageError(f"--range: --{field} is given as well, or chooses a reduction; drop one of them")
        self._console = Console(o.quiet)

    def run(self) -> Found:
        r = self._request
        jit.activate()
        reduction = r.chosen or ("multiclass", 0)
        options = {field: value for field, value in r.fixed.items() if field != "passes"}
        config = configuration.configured(*reduction, options)
        for note in r.notes:
            self._console.info(note)
        limited = thread_limit.limited(r.options.threads)
        with limited, warnings.catch_warnings(), contextlib.ExitStack() as closing:
            warnings.simplefilter("ignore", XclassWarning)
            stream = Stream(config, r.files, r.kept, r.peeked)
            closing.callback(stream.close)
            for note in stream.notes:
                self._console.warn(note)
            space = Space(stream, r.fixed, r.chosen, r.options.metric, self._ranges)
            state = State(r.options.state or beside_data(r.files.data), self._facts())
            limit = self._memory + (0 if r.options.memory else memory.taken())
            evaluator = Evaluator(space, stream, r.options.metric, state, limit, self._report_to(space))
            evaluator.deadline = self._begin + self._seconds
            self._start(stream, state)
            try:
                with SignalHandler(evaluator.stop) as signals:
                    try:
                        self._compile(space, evaluator, stream)
                        best = self._best(space, evaluator, stream.n)
                    finally:
                        evaluator.keep_only([])
                        state.write()
            except Stopped as stopped:
                self._console.info(
                    f"xclass: a second signal, {stopped.signal.name}, ended the search at once. {self._kept(state)}"
                )
                raise
            rows = report.rows(space, evaluator.tried, state.results)
            note = self._stopped_note(state) if signals.stopped else ""
            if not rows and signals.stopped:
                return Found([], [], signals.stopped, note)
            if not rows:
                raise DataError("the time did not suffice for a single setting; give more --time")
            if all(row.result.failed for row in rows):
                raise UsageError(f"no setting can be used; the first one: {rows[0].result.failed}")
            lines = report.table(space, rows, best, r.options.metric, state.settings)
        words = report.command(space, best, self._fixed_words())
        return Found(words, lines, signals.stopped or 0, note)

    def _stopped_note(self, state: State) -> str:
        model = self._request.options.final_regressor
        missing = f"; {model} was not written" if model is not None else ""
        way = " The command line above trains it." if model is not None and state.settings else ""
        return f"Stopped after {time.monotonic() - self._begin:.0f} s{missing}.{way} {self._kept(state)}"

    def _kept(self, state: State) -> str:
        """Return the sentence that says where the results are, and how to continue the search."""
        if state.path is None:
            return "The results are not kept, because there is no --state."
        return f"The same command continues the search ({len(state.results)} results in {state.path})."

    def _best(self, space: Space, evaluator: Evaluator, n: int) -> Setting:
        o, seed = self._request.options, int(self._request.fixed.get("random_seed", 0))
        return Halving(space, evaluator, n, seed, o.settings, o.final_regressor is not None).run()

    def _compile(self, space: Space, evaluator: Evaluator, stream: Stream) -> None:
        """Compile the kernels of the reductions that were not used on this machine before, and load all others."""
        for setting in space.reductions:
            config, use = space.config(setting), space.use(setting)
            name = config.reduction.name
            if jit.is_first_run(name):
                with LearnerCore(config, use) as learner:
                    warm_up.prepare(config, use, learner.reduction, False)
            evaluator.warm_up(setting, stream.n)
            if not evaluator.stopped:
                jit.note_compiled(name)

    def _start(self, stream: Stream, state: State) -> None:
        highest = f" (labels up to {stream.highest:,})" if stream.highest != stream.classes else ""
        classes = f"{stream.classes:,} classes{highest}"
        self._console.info(f"{stream.n:,} examples, {classes}, parsed in {time.monotonic() - self._begin:.1f} s")
        if state.resumed:
            self._console.info(f"{state.path}: continuing with {state.resumed} results")

    def _report_to(self, space: Space) -> Any:
        def show(setting: Setting, span: Span, result: Result) -> None:
            low, high = span.judged
            loss = result.failed or f"{result.loss:.4f} on examples {low + 1:,} to {high:,}"
            used = time.monotonic() - self._begin
            self._console.info(f"{used:6.1f} s  {span.size:>9,} learned  {loss}  {space.text(setting)}")

        return show

    def _facts(self) -> dict[str, Any]:
        """Return what must not change when a search is continued."""
        r = self._request
        files = []
        for path in r.files.data:
            with contextlib.suppress(OSError):
                status = os.stat(path)
                files.append([status.st_size, status.st_mtime_ns])
        return {
            "data": list(r.files.data), "files": files, "metric": r.options.metric,
            "options": {field: list(value) if isinstance(value, tuple) else value for field, value in r.fixed.items()},
            **r.files.meaning(),
        }  # fmt: skip

    def _fixed_words(self) -> list[str]:
        """Return the words of the data and of the options that all settings have."""
        r = self._request
        declared: dict[str, Option] = {**configuration.declared_options(), "passes": PASSES}
        words: list[str] = []
        for field, option in options_of(reader.Options).items():
            value = getattr(r.files, field)
            if value not in (option.default, None, ()):
                words += as_words(option, value)
        for field, value in r.fixed.items():
            if value not in (None, ()) and field in declared:
                words += as_words(declared[field], value)
        return words
