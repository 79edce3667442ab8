"""Search by successive halving: parse the data, try settings until the time is over, and report the best one.

Source    Jamieson and Talwalkar 2016, "Non-stochastic best arm identification and hyperparameter optimization".
Idea      A generation of settings learns from the first examples, and predicts the next ones. The better half goes on
          to twice as many examples, until the last settings have learned from all examples but the held-out tail, which
          they predict. The first generation holds the defaults and one change of them at a time; each later one varies
          the best settings so far. The remaining time is spent on comparing the best settings with the defaults on
          further parts of the data, each held out in turn.
Differs   from the paper: the defaults are never dropped, and the best setting replaces them only if it is better by
          CERTAIN standard errors, without a correction for the number of settings. If the time does not suffice for
          half of the settings, fewer go on.
"""

from __future__ import annotations

import contextlib
import math
import os
import random
import shlex
import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
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
from .options import TuneOptions, beside_data, ranges
from .results import Evaluator, Results, SettingResult, Span, difference, joined
from .settings import SearchSpace, SearchStream, Setting

TAIL = 10  # the last examples, one in so many, are held out
LEAST_SIZE = 4000  # examples that settings learn from at first
MOST_LEVELS = 6
LATER = 12  # settings of a later generation
EXPLORED = 0.6  # share of the time after which no generation begins
FIRST_STEP = 0.03  # share of the time that the default setting may take for the first step
FINALISTS, LAST_FINALISTS = 8, 2  # settings that are compared with the defaults at the end; as many remain
PARENTS = 4  # best settings that a later generation varies
FOLDS = 9  # parts of the data that they are compared on, in addition to the tail
CERTAIN = 1.3  # standard errors by which a setting must be better than the defaults (one-sided, 10 %)
HOPELESS = 2.0  # standard errors by which a finalist is worse than the best when it is dropped
PATIENCE = 0.5  # share of the remaining time that a setting may take for a step
GUESS = 1.5  # time of a setting without results, in times of the default setting


class Halving:
    """Search for the best of at most `most` settings; `trains` reserves time for training the model afterwards."""

    def __init__(self, space: SearchSpace, evaluator: Evaluator, seed: int, most: int | None, trains: bool) -> None:
        self._space, self._evaluator, self._n = space, evaluator, space.stream.n
        self._rng = random.Random(f"{seed} tune")
        self._most, self._trains = most, trains
        self._tail = max(1, self._n // TAIL)
        self._begin = time.monotonic()
        self._sizes: list[int] = []
        self._costs: dict[Setting, float] = {}  # seconds for learning an example, in all passes
        self._best: Setting | None = None

    def run(self) -> Setting:
        """Search until the time is over or nothing better is found; return the best setting."""
        self._plan()
        unsuccessful = 0
        generation = self._space.first()[: self._most]
        while generation and unsuccessful < 2 and self._explore_time() > 0:
            before = self._best
            self._halve(generation)
            unsuccessful = unsuccessful + 1 if self._best == before else 0
            generation = self._vary()
        self._evaluator.keep_only([])
        return self._decide()

    # sizes and times

    def _plan(self) -> None:
        """Choose the numbers of examples to learn from, by the time that the default setting takes for the first."""
        whole = self._n - self._tail
        self._sizes = sizes = [whole]
        while len(sizes) < MOST_LEVELS and sizes[0] // 2 >= min(LEAST_SIZE, whole):
            sizes.insert(0, sizes[0] // 2)
        quota = FIRST_STEP * self._evaluator.time_left
        while len(sizes) > 1:
            result = self._compute([self._space.default], sizes[0]).get(self._space.default)
            if result is None or result.seconds / sizes[0] * sizes[1] > quota or len(sizes) <= 4:
                return
            del sizes[0]

    def _span(self, size: int) -> Span:
        """Return what a setting learns from, and the next examples, which it predicts."""
        if size == self._sizes[-1]:
            return Span(((0, size),), (size, self._n))
        judged = min(max(size // 2, LEAST_SIZE // 4), self._n - size)
        return Span(((0, size),), (size, size + judged))

    def _fold(self, number: int) -> Span:
        """Return the span in which a part before the tail is held out, the part with this number from the end."""
        low, high = self._n - (number + 1) * self._tail, self._n - number * self._tail
        return Span(((0, low), (high, self._n)), (low, high))

    def _cost(self, setting: Setting) -> float:
        """Return the seconds that learning one example takes, an estimate if the setting has no result."""
        passes = self._space.passes(setting) / self._space.passes(self._space.default)
        return self._costs.get(setting, GUESS * self._costs.get(self._space.default, 0.0) * passes)

    def _time(self, candidates: Sequence[Setting], span: Span) -> float:
        """Return the seconds that settings will take for a span, an estimate."""
        lacking = [setting for setting in candidates if self._evaluator.known(setting, span) is None]
        seconds = (self._cost(setting) * (span.size - self._evaluator.learned(setting)) for setting in lacking)
        return sum(seconds) / self._evaluator.workers

    def _needed(self, candidates: Sequence[Setting], level: int) -> float:
        """Return the seconds that settings will take from a level on if the better halves are the first ones."""
        total = 0.0
        for size in self._sizes[level:]:
            total += self._time(candidates, self._span(size))
            candidates = candidates[: math.ceil(len(candidates) / 2)]
        return total

    def _explore_time(self) -> float:
        """Return the seconds that are left for new settings."""
        used = time.monotonic() - self._begin
        left = self._evaluator.time_left
        return 0.0 if left <= 0 else EXPLORED * (used + left) - used

    # generations

    def _compute(self, candidates: Sequence[Setting], size: int) -> dict[Setting, SettingResult]:
        """Return the results of the settings that did not fail at a size, and note how long they took."""
        span = self._span(size)
        self._evaluator.patience = PATIENCE * self._evaluator.time_left
        self._evaluator.compute(candidates, span)
        found = self._usable(candidates, span)
        self._costs.update((setting, result.seconds / size) for setting, result in found.items())
        if self._trains:
            self._evaluator.reserve = self._n * self._costs.get(self._best or self._space.default, 0.0)
        return found

    def _usable(self, candidates: Iterable[Setting], span: Span) -> dict[Setting, SettingResult]:
        """Return the results on a span of those settings that have one and did not fail."""
        found = {setting: self._evaluator.known(setting, span) for setting in candidates}
        return {setting: result for setting, result in found.items() if result is not None and not result.failed}

    def _halve(self, candidates: list[Setting]) -> None:
        """Compare settings at rising sizes, and remember the best one."""
        incumbents = list(dict.fromkeys([self._space.default, *([self._best] if self._best else [])]))
        candidates = [setting for setting in candidates if setting not in incumbents]
        for level, size in enumerate(self._sizes):
            time_left = self._explore_time() if level + 1 < len(self._sizes) else self._evaluator.time_left
            count = len(candidates)
            while count > 1 and self._needed([*incumbents, *candidates[:count]], level) > max(time_left, 0.0):
                count -= 1
            candidates = candidates[:count]
            self._evaluator.keep_only([*incumbents, *candidates])
            computed = self._compute([*incumbents, *candidates], size)
            found = {setting: result.loss for setting, result in computed.items()}
            if not found or self._evaluator.time_left <= 0:
                return
            ranked = sorted((setting for setting in candidates if setting in found), key=found.__getitem__)
            if size == self._sizes[-1] or not ranked:
                self._best = min(found, key=found.__getitem__)
                return
            candidates = ranked[: math.ceil(len(ranked) / 2)]

    def _vary(self) -> list[Setting]:
        """Return the next generation: variations of the best settings, and their changes combined."""
        tried = self._evaluator.tried
        room = LATER if self._most is None else min(LATER, self._most - len(tried))
        if room <= 0 or self._best is None:
            return []
        ranked = self._ranking()
        parents = ranked[:PARENTS] or [self._best]
        pool = [change for setting in ranked[: LATER // 2] for change in setting.changes]
        chosen: dict[Setting, None] = {}
        for _ in range(20 * LATER):
            if len(chosen) >= room:
                break
            parent = self._best if self._rng.random() < 0.6 else self._rng.choice(parents)
            child = parent
            if pool and self._rng.random() < 0.5:
                field, value = self._rng.choice(pool)
                if field in self._space.searches(parent.reduction):
                    child = parent.changed(field, value)
                    if not self._space.is_valid(child):  # the reduction of the parent refuses the option
                        continue
            if child == parent or self._rng.random() < 0.3:
                varied = self._space.near(child, self._rng)
                if varied is None:
                    continue
                child = varied
            if child not in tried:
                chosen[child] = None
        return list(chosen)

    def _ranking(self) -> list[Setting]:
        """Return the settings with results, best first: those with the largest size before the others."""
        ranked: dict[Setting, None] = {}
        for size in reversed(self._sizes):
            found = self._usable(self._evaluator.tried, self._span(size))
            ranked.update(dict.fromkeys(sorted(found, key=lambda one: found[one].loss)))
        return list(ranked)

    # the decision

    def _decide(self) -> Setting:
        """Compare the best settings with the defaults, and return the one to use.

        The largest size with a result of the defaults and of another setting decides, and if that is the whole, further
        parts of the data, each held out in turn. Without such a size the defaults are used, unless they have failed.
        """
        default, ranked = self._space.default, self._ranking()
        for size in reversed(self._sizes):
            usable = self._usable(ranked, self._span(size))
            if default in usable and len(usable) > 1:
                break
        else:
            return ranked[0] if ranked and default not in ranked else default
        if size < self._sizes[-1]:
            return self._better(usable)
        spans = [self._span(size)]
        finalists = [setting for setting in usable if setting != default][:FINALISTS]
        for number in range(1, FOLDS + 1):
            span = self._fold(number)
            while len(finalists) > 1 and self._time([default, *finalists], span) > self._evaluator.time_left / 2:
                finalists.pop()
            if span.judged[0] <= 0 or self._time([default, *finalists], span) > self._evaluator.time_left:
                break
            self._evaluator.compute([default, *finalists], span)
            self._evaluator.keep_only([])
            if len(self._usable([default, *finalists], span)) <= len(finalists):
                break
            spans.append(span)
            finalists = self._hopeful(finalists, spans)
            if not finalists:
                return default
        return self._better({one: self._on(one, spans) for one in (default, *finalists)})

    def _hopeful(self, finalists: list[Setting], spans: list[Span]) -> list[Setting]:
        """Return the better finalists, without those that are worse than another by more than chance."""
        found = {one: self._on(one, spans) for one in (self._space.default, *finalists)}
        ranked = sorted(finalists, key=lambda one: found[one].loss)
        kept = []
        for setting in ranked[: max(LAST_FINALISTS, len(ranked) * 3 // 4)]:
            pairs = [difference(found[setting], found[other]) for other in (ranked[0], self._space.default)]
            if all(worse <= HOPELESS * error for worse, error in pairs):
                kept.append(setting)
        return kept

    def _on(self, setting: Setting, spans: Sequence[Span]) -> SettingResult:
        """Return the result of a setting on several spans, which have to be known."""
        known = (self._evaluator.known(setting, span) for span in spans)
        return joined([result for result in known if result is not None])

    def _better(self, found: Mapping[Setting, SettingResult]) -> Setting:
        """Return the setting with the smallest loss if that is certain enough, else the defaults, which have one."""
        default = self._space.default
        best = min(found, key=lambda one: found[one].loss)
        lost, error = difference(found[best], found[default])
        return best if lost < -CERTAIN * error else default


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
