"""Execute a search: parse the data, try settings until the time is over, and report the best one."""

from __future__ import annotations

import contextlib
import os
import shlex
import time
import warnings
from collections.abc import Mapping
from typing import Any

from ..api import configuration
from ..api.learner_core import LearnerCore
from ..cache import source as cache
from ..errors import DataError, UsageError, XclassWarning
from ..kernels import jit
from ..options.declare import as_words, options_of
from ..run import warm_up
from ..run.report.console import Console
from ..run.signals import SignalHandler, Stopped
from ..system import memory, terminal, thread_limit
from ..text import reader
from . import results, settings
from .evaluator import Evaluator
from .halving import Halving
from .options import TuneOptions, beside_data, ranges
from .results import Results, SettingResult, Span
from .settings import SearchSpace, Setting
from .stream import SearchStream


class Search:
    """Search for the best options.

    Parameters
    ----------
    options : of the search
    read : options of the data, field -> value
    kept : options of the cache
    fixed : options of the learner that all settings have, field -> value, without the reduction
    chosen : name and value of the only reduction; None to choose the reduction, too
    peeked : what was already read from the data
    notes : about what was detected
    """

    def __init__(
        self,
        options: TuneOptions,
        read: Mapping[str, Any],
        kept: cache.CacheOptions,
        fixed: Mapping[str, Any],
        chosen: tuple[str, int] | None,
        peeked: reader.Peeked,
        notes: list[str],
    ) -> None:
        self._begin = time.monotonic()
        self._options, self._read, self._kept, self._fixed = options, read, kept, fixed
        self._chosen, self._peeked, self._notes = chosen, peeked, notes
        self._files = reader.ReaderOptions(**read)
        self._ranges = ranges(options.range, settings.declared())
        for field in self._ranges:
            if field in fixed or field in configuration.option_groups():
                raise UsageError(f"--range: --{field} is given as well, or chooses a reduction; drop one of them")
        self._console = Console(options.quiet)

    def run(self) -> int | list[str]:
        """Search, and print the table and the command line with the best options.

        Return the exit status, or the command line that trains the model of -f.
        """
        o = self._options
        with thread_limit.limited(o.threads), warnings.catch_warnings(), contextlib.ExitStack() as closing:
            warnings.simplefilter("ignore", XclassWarning)
            lines, words, note, signal = self._found(closing)
        if words:
            lines.append(shlex.join(["xclass", *words, "-f", o.final_regressor or "model.bin"]))
        try:
            for line in lines:
                terminal.line(line)
            terminal.standard_output()  # the run that follows writes to it
        except BrokenPipeError:
            terminal.discard_output()
        if signal:
            self._console.info(note)
            return 128 + signal
        if o.final_regressor is None:
            return 0
        limit = [] if o.threads is None else ["--threads", str(o.threads)]
        return [*words, "-f", o.final_regressor, "--quiet", *limit]

    def _found(self, closing: contextlib.ExitStack) -> tuple[list[str], list[str], str, int]:
        """Search, and return the lines of the table, the words of the best options, and what a signal has left out.

        There are no words if a signal came before any result. The signal is 0 without one.
        """
        o = self._options
        jit.activate()
        options = {field: value for field, value in self._fixed.items() if field != "passes"}
        config = configuration.configured(*(self._chosen or ("multiclass", 0)), options)
        for note in self._notes:
            self._console.info(note)
        stream = SearchStream(config, self._files, self._kept, self._peeked)
        closing.callback(stream.close)
        for note in stream.notes:
            self._console.warn(note)
        space = SearchSpace(stream, self._fixed, self._chosen, o.metric, self._ranges)
        kept = Results(o.state or beside_data(self._files.data), self._facts())

        def report(setting: Setting, span: Span, result: SettingResult) -> None:
            low, high = span.judged
            loss = result.failed or f"{result.loss:.4f} on examples {low + 1:,} to {high:,}"
            used = time.monotonic() - self._begin
            self._console.info(f"{used:6.1f} s  {span.size:>9,} learned  {loss}  {space.text(setting)}")

        limit = o.memory or (memory.available() or 1 << 32) // 2 + memory.taken()
        evaluator = Evaluator(space, kept, limit, self._begin + o.time, report)
        self._start(stream, kept)
        continued = "The results are not kept, because there is no --state."
        try:
            with SignalHandler(evaluator.stop) as signals:
                try:
                    self._compile(space, evaluator)
                    seed = int(self._fixed.get("random_seed", 0))
                    best = Halving(space, evaluator, seed, o.settings, o.final_regressor is not None).run()
                finally:
                    evaluator.keep_only([])
                    kept.write()
                    if kept.path is not None:
                        continued = f"The same command continues the search ({len(kept.found)} results in {kept.path})."
        except Stopped as stopped:
            self._console.info(f"xclass: a second signal, {stopped.signal.name}, ended the search at once. {continued}")
            raise
        rows = results.rows(space, evaluator.tried, kept.found)
        missing, way = "", ""
        if o.final_regressor is not None:
            missing, way = f"; {o.final_regressor} was not written", " The command line above trains it." * bool(rows)
        note = f"Stopped after {time.monotonic() - self._begin:.0f} s{missing}.{way} {continued}"
        if not rows and signals.stopped:
            return [], [], note, signals.stopped
        if not rows:
            raise DataError("the time did not suffice for a single setting; give more --time")
        if all(row.result.failed for row in rows):
            raise UsageError(f"no setting can be used; the first one: {rows[0].result.failed}")
        lines = [] if o.quiet else ["", *results.table(space, rows, best, kept.settings), ""]
        return lines, self._words(space, best), note, signals.stopped or 0

    def _start(self, stream: SearchStream, kept: Results) -> None:
        highest = f" (labels up to {stream.highest:,})" if stream.highest != stream.classes else ""
        classes = f"{stream.classes:,} classes{highest}"
        self._console.info(f"{stream.n:,} examples, {classes}, parsed in {time.monotonic() - self._begin:.1f} s")
        if kept.resumed:
            self._console.info(f"{kept.path}: continuing with {kept.resumed} results")

    def _compile(self, space: SearchSpace, evaluator: Evaluator) -> None:
        """Compile the kernels of the reductions that were not used on this machine before, and load all others."""
        for setting in space.reductions:
            config = space.config(setting)
            name = config.reduction.name
            if jit.is_first_run(name):
                with LearnerCore(config) as learner:
                    warm_up.prepare(config, learner.reduction, False)
            evaluator.warm_up(setting)
            if not evaluator.stopped:
                jit.note_compiled(name)

    def _facts(self) -> dict[str, Any]:
        """Return what must not change when a search is continued."""
        files = []
        for path in self._files.data:
            with contextlib.suppress(OSError):
                status = os.stat(path)
                files.append([status.st_size, status.st_mtime_ns])
        return {
            "data": self._files.data, "files": files, "metric": self._options.metric, "options": self._fixed,
            **self._files.meaning(),
        }  # fmt: skip

    def _words(self, space: SearchSpace, best: Setting) -> list[str]:
        """Return the words of the command that learns from all examples with the best setting."""
        declared = {**options_of(reader.ReaderOptions), **settings.declared()}
        fixed = [(field, value) for field, value in {**self._read, **self._fixed}.items() if value not in (None, ())]
        words = [word for field, value in fixed for word in as_words(declared[field], value)]
        return [*words, *space.words(best), *(["--holdout_off"] if space.passes(best) > 1 else [])]
