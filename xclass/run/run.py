"""A run from the first byte to the model file: read, choose and cross features, learn or predict, count, write.

The reader (with the feature crosses), the stages of the learner and the output each have a thread; batches
pass them in order, so that nothing depends on how threads take turns.

Whatever ends the run early (a bad line, Ctrl-C, SIGTERM, a closed pipe), what was read before is learned, and a
model that was asked for is saved as `<model>.interrupted`; the model itself is only ever replaced by a finished run.
"""

from __future__ import annotations

import contextlib
import io
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..api import model_contents, preparation, progress_table
from ..api import progress as stats
from ..api.learner import exact_option, seed_option
from ..cache import cache_key
from ..cache import source as cache
from ..data import class_names, interactions
from ..errors import DataError, UsageError
from ..kernels import jit
from ..model import model_file
from ..options.declare import option
from ..reductions.core.base import CrossesPath, Inspectable, LearnsAtEnd, Previews
from ..system import address_space
from ..text import reader
from . import checkpoints, output_places, passes, shuffle, signals, timing, untaken, warm_up
from . import finish as ending
from .inspect import readable_model, tree_dump
from .learner_spec import spec_of
from .pipeline import Pipeline
from .predictions import files as outputs
from .report import console

PATH_GROUP = 0x88  # namespace group of the features a tree makes of an example's path


@dataclass(frozen=True)
class Options:
    """Running."""

    initial_regressor: str = option(
        "model to go on from, or to predict with", flags=("-i", "--initial_regressor"), metavar="FILE", read=True
    )
    testonly: bool = option("predict only, learn nothing", flags=("-t", "--testonly"), kind=bool)
    final_regressor: str = option("file the model is saved to", flags=("-f", "--final_regressor"), metavar="FILE")
    predictions: str = option(
        "file for predictions, one line per example; `stdout` is standard output",
        flags=("-p", "--predictions"),
        metavar="FILE",
    )
    raw_predictions: str = option(
        "file for scores: of every class, of the candidates, of routers on the way to a leaf, or of the learner alone",
        flags=("-r", "--raw_predictions"),
        metavar="FILE",
    )
    progress: str = option(
        "when the progress table gets a row: every N examples (1000), or at N times as many (2.0)",
        flags=("-P", "--progress"),
        default="2.0",
        metavar="N",
    )
    quiet: bool = option("no banner, progress table, summary or warnings", kind=bool)
    random_seed: int = seed_option()
    no_stdin: bool = option("without a data file, read nothing", kind=bool)
    preserve_performance_counters: bool = option(
        "go on counting examples and losses from where the model of -i stopped", kind=bool
    )
    vw_exact: bool = exact_option()


def run(config, notes: Sequence[str] = (), model: model_contents.Contents | None = None, begun: bytes = b"") -> int:
    """Carry out a run and return the exit status.

    Parameters
    ----------
    notes : lines for the start of the run
    model : what the model of -i holds
    begun : what was read of standard input already
    """
    output_places.check(config)
    return _Run(config, notes, begun).go(model)


class _Run:
    def __init__(self, config, notes, begun):
        self.config = config
        self.begun = begun
        self.notes = notes
        self.options = config.driver
        self.learning = not self.options.testonly
        self.talk = console.Talk(self.options.quiet)
        self.watch = signals.Watch(self._stop)
        self.stopwatch = timing.Stopwatch()
        self.learner = self.reader = self.saver = self.pipeline = None

    # start

    def go(self, model: model_contents.Contents | None) -> int:
        began = time.perf_counter()
        o, name = self.options, self.config.reduction.name
        if o.final_regressor is not None:
            model_file.check_place(o.final_regressor)
        jit.activate()
        if jit.is_first_run(name) and not o.quiet:
            what = "" if name == "scalar" else f" of --{name}"
            once = "" if jit.unkept() else "; the first run only"
            self.talk.tell(f"xclass: compiling the kernels{what} for this machine{once}")
            if jit.unkept():
                self.talk.warn(jit.unkept())
        if model is not None:
            with model_contents.naming(o.initial_regressor):  # before anything is allocated by what it says
                self.config.reduction.check_arrays(spec_of(self.config), model.arrays)
        with model_contents.naming_options(o.initial_regressor):
            self.learner = self.config.reduction.build(spec_of(self.config))
        try:
            holdout = passes.Holdout(self.config.passes)
            growing = self.config.parser.learn_names and self.learning
            self.names = class_names.Names(self.config.parser.label_names(), growing)
            self.learner.names = self.names.names
            self.progress = stats.Progress(
                self.config.reduction.labels, None if o.quiet else self._pace(), holdout.on, self.names.shown,
                o.vw_exact, o.vw_exact and bool(self.config.oaa.scores or self.config.answers.probabilities),
            )  # fmt: skip
            if o.vw_exact and self.config.answers.probabilities:
                self.progress.log_loss_sum = 0.0  # VW tells it of data without an example too
            self.saver = checkpoints.Saver(self.config, self.learner, self.progress, self.names)
            if model is not None:
                with model_contents.naming(o.initial_regressor):
                    self.saver.restore(model, o.initial_regressor, o.preserve_performance_counters)
                del model
            elif o.testonly:
                self.talk.warn("-t without -i predicts with a new model, which knows nothing; give -i MODEL")
            self.inspector = self._inspector()
            self.dump = tree_dump.Dump(self.config.tree_dump, self.learner, name, self.names.names)
            self.reader = self._source()
            self.untaken = untaken.Untaken(self.reader.name if len(self.config.reader.data) <= 1 else None)
            self.stream = passes.Stream(self.reader, self.config.passes, holdout, self._shuffler(), o.final_regressor)
            with model_contents.naming_options(o.initial_regressor):
                self.preparation = preparation.Preparation(self.config, o.vw_exact)
            self._cross_path(self.preparation.crosser.with_group(PATH_GROUP))
            self._banner()
            self.writers = outputs.open_writers(self.config, self.names)
            self.stopwatch.add("start", timing.since_start() or time.perf_counter() - began)
            if isinstance(self.learner, LearnsAtEnd):
                self.learner.report_to(self.talk, self.reader.part)
            address_space.check_threads()
            warm_up.prepare(self.learner, self.learning, self.reader.parsing)
            with self.watch:
                error = self._loop()
                self.watch.end()
                for writer in self.writers.values():
                    try:
                        writer.close()
                    except (DataError, BrokenPipeError) as failed:
                        error = error or failed
                status = ending.finish(self, error, time.perf_counter() - began)
            jit.note_compiled(name)
            if self.reader.parsing:
                jit.note_compiled(warm_up.READING)
            return status
        except signals.Stopped as stopped:
            self.talk.end_bar()
            self.talk.tell(
                f"xclass: a second signal, {stopped.signal.name}, ended the run at once; {self.saver.left()}"
            )
            raise
        finally:
            self.talk.end_bar()
            if self.learner is not None:
                self.learner.close()
            for one in (self.reader, self.saver):
                if one is not None:
                    one.close()

    def _source(self):
        """The batches of every pass."""
        c, o = self.config, self.options
        lowest, highest, because = c.reduction.allowed(spec_of(c)) or (None, None, "")
        multiclass = c.reduction.labels == "multiclass"
        nothing = io.BytesIO() if o.no_stdin and not c.reader.data else None
        text = reader.Reader(
            c.reader,
            c.parser,
            c.learner.bits,
            multiclass,
            lowest,
            highest,
            because,
            stream=nothing,
            names=self.names,
            begun=self.begun,
        )
        limit = passes.source_limit(c.passes)
        key = cache_key.make_key(c.parser, c.learner.bits, multiclass, lowest, highest, limit)
        if c.parser.learn_names and not self.learning:
            key["names"] = "those of the model"
        turns = c.passes.passes + (self._preview_size == 0)
        return cache.Source(text, c.cache, key, not c.parser.noconstant, turns, self._names_wanted())

    def _names_wanted(self) -> bool:
        """Whether names of features are shown. VW's audit has none once it reads a cache."""
        lost = self.options.vw_exact and self.config.shuffle.shuffle is None
        return self.config.readable.invert_hash is not None or (self.config.readable.audit and not lost)

    def _inspector(self):
        """What shows weights, where that was asked for."""
        asked = [name for name in ("readable_model", "invert_hash", "audit") if name in self.config.given]
        if not asked:
            return None
        if not isinstance(self.learner, Inspectable) or not self.learner.tables:
            raise UsageError(f"--{asked[0]} shows weight tables, which --{self.config.reduction.name} does not have")
        return readable_model.Inspector(self.config, self.learner)

    def _shuffler(self):
        size = self.config.shuffle.shuffle
        return None if size is None else shuffle.Shuffler(size, self.options.random_seed, self._names_wanted())

    def _cross_path(self, named: list[bytes]) -> None:
        """Hand interactions with the path features to the learner that makes them."""
        if not named:
            return
        if not isinstance(self.learner, CrossesPath):
            raise UsageError("namespace \\x88 is the path of --recall_tree, which was not chosen")
        lost = [group for one in named for group in one if self.preparation.features.unlinear[group]]
        if lost:
            raise UsageError(
                f"--ignore_linear leaves nothing of namespace {chr(lost[0])!r} to cross with the path, "
                "namespace \\x88: drop one of them"
            )
        self.learner.cross_path(named)

    def _pace(self):
        pace = progress_table.pace(self.options.progress)
        if pace.note:
            self.talk.warn(pace.note)
        return pace

    def _banner(self) -> None:
        if self.options.quiet:
            return
        features, crosser = self.preparation.features, self.preparation.crosser
        lines = console.banner(
            self.config, self.reader.banner(), features.banner, self.learner.banner(), self.reader.name
        )
        for line in [*self.notes, *self.config.adjusted, *crosser.notes, *lines, *progress_table.HEADER]:
            self.talk.tell(line)
        for note in features.notes:
            self.talk.warn(note)
        self.talk.start_bar(self.reader.size)

    # work

    @property
    def _preview_size(self) -> int | None:
        """How many examples the learner wants to see before it learns, 0 for all."""
        return self.learner.preview_size if self.learning and isinstance(self.learner, Previews) else None

    def _works(self, stream) -> Iterator:
        """One pass: batches as work, with the clock of each example, and the cuts between them."""
        last = self.saver.clock
        for item in self.stopwatch.each("source", stream):
            if isinstance(item, passes.Cut):
                yield item
                continue
            read, held = item
            if self.inspector is not None:
                self.preparation.one_by_one = self.inspector.one_by_one
                self.preparation.keep_names = not self.reader.parsing  # known once a pass has begun
            works = self.preparation.works(self.learner, read, held, self.learning, last)
            for work in self.stopwatch.each("features", works):
                last = work.clock[-1] if work.batch.n else last
                yield work

    def _loop(self) -> BaseException | None:
        """Take every batch of every pass through the learner; return what ended the run early, if anything did."""
        try:
            if self._preview_size == 0:
                self._preview_all()
            while not self.watch.stopped:
                self._go_through()
                if self.watch.stopped or self._end_pass():
                    return None
        except Exception as error:  # whatever it is, what was learned before is saved
            self._drain()
            return error
        return None

    def _drain(self) -> None:
        """Let what was read come to rest, after an error that ends the run and that this one must not hide."""
        if self.pipeline is None:
            return
        self.pipeline.stop()
        with contextlib.suppress(Exception):
            for work in self.pipeline:  # learned already, or about to be
                self._meet(work)
                if work.learn:
                    self.saver.note(work)

    def _stop(self) -> None:
        if self.pipeline is not None:
            self.pipeline.stop()
        if isinstance(self.learner, LearnsAtEnd):
            self.learner.stop()

    def _preview_all(self) -> None:
        """Show the learner all of the data, in a pass of its own."""
        self.pipeline = Pipeline(self._works(self.stream.plain()), [self.learner.preview])
        for _ in self.pipeline:
            self.talk.move_bar(self.reader.position(), self.progress.examples)
        if not self.watch.stopped:
            self.learner.end_preview()
        self.preparation.begin()  # the passes find every group for the first time

    def _go_through(self) -> None:
        """One pass. At a cut the pipeline runs empty, so that the learner is where the cut says."""
        works = self._works(self.stream)
        if self._preview_size is not None:
            works = passes.previewed(works, self.learner)
        stages = self.stopwatch.stages(self.learner.stages)
        if self.inspector is not None:
            stages = self.inspector.stages(stages)
        while True:
            part = passes.Part(works)
            self.pipeline = Pipeline(part, stages)
            if self.watch.stopped:  # in between
                self.pipeline.stop()
            for work in self.pipeline:
                self._count(work)
            if self.watch.stopped or part.cut is None:
                return
            refused = self.saver.save_at(part.cut)
            if refused:
                self.talk.warn(f"{part.cut.words}: not done: {refused}")
            elif not self.options.quiet:
                self.talk.tell(part.cut.words)

    def _end_pass(self) -> bool:
        """Come to the end of a pass; return whether it was the last one."""
        better = self.progress.end_pass()
        if self.learning:
            self.learner.end_pass()
        return self.saver.end_pass(better, last=not self.stream.another())

    def _meet(self, work) -> np.ndarray | None:
        """Take note of the names met; return the highest class met up to each example, None where names are fixed."""
        if not self.names.growing:
            return None
        self.names.met = max(self.names.met, self.learner.highest_placed)
        return self.names.meet(work.batch.label)

    def _count(self, work) -> None:
        batch = work.batch
        met = self._meet(work)
        if work.learn:
            self.saver.note(work)
        while self.reader.notes:
            self.talk.warn(self.reader.notes.pop(0))
        for note in [*work.notes, *self.untaken.count(work)]:
            self.talk.warn(note)
        told = (
            batch.label, batch.weight, interactions.counted(work),
            work.prediction if met is None else class_names.shown(work.prediction, met),
            work.loss, work.log_loss, work.shown, work.held,
        )  # fmt: skip
        for row in self.progress.update(*told):
            self.talk.tell(row)
        if self.saver.whole is not self.progress:
            self.saver.whole.update(*told)
        self.talk.move_bar(self.reader.position, self.progress.examples)
        self.stopwatch.timed("writing", outputs.write)(self.writers, work, met)
