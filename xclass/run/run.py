"""Execute a run: read batches, prepare them, learn or predict, count losses, and write predictions and the model.

The reader (with the interactions), each stage of the learner and the output have a thread of their own. Batches pass
them in order, so the results do not depend on the scheduling of the threads.

If the run ends early, by a malformed line, Ctrl-C, SIGTERM or a closed pipe, everything read before is learned and the
model of -f is saved as `<model>.interrupted`. The model file itself is replaced only by checkpoints and at the end of a
complete run.
"""

from __future__ import annotations

import contextlib
import io
import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..abilities import find
from ..api import model_contents, progress_table
from ..api.configuration import Config, chosen_name, feature_bits, parser_of
from ..api.learner_core import LearnerCore
from ..api.model_contents import ModelContents
from ..api.progress import Progress
from ..cache.source import Source, make_key
from ..data.batch import Batch
from ..errors import DataError, ModelError, UsageError, XclassError
from ..formats import detect
from ..kernels import jit
from ..model import model_file
from ..reductions.core.contract import BatchTask
from ..reductions.core.label_report import LabelReport
from ..system import memory, output_file, thread_limit
from ..system.pipeline import Pipeline
from ..text.reader import Peeked, Reader
from . import passes, timing, warm_up
from . import predictions as outputs
from .checkpoints import Saver
from .inspect import tree_dump
from .options import RunOptions
from .passes import SavePoint
from .report import banner, console, table_occupancy
from .report.console import Console
from .results import summary as summary_record
from .results.recorder import Recorder
from .shuffle import Shuffler
from .signals import SignalHandler, Stopped, interrupt_told

if TYPE_CHECKING:
    from .inspect.inspector import Inspector


class Engine:
    """Execute the passes of a run, which sets `run`.

    A subclass defines `learner`, `source` and `run_pass`.
    """

    run: Run
    new_progress: type[Progress] = Progress
    pipeline: Pipeline[BatchTask] | None = None

    def learner(self, contents: ModelContents | None) -> LearnerCore:
        """Return the learner of the run; `contents` are those of the model of -i."""
        raise NotImplementedError

    def source(self) -> Any:
        """Open the data, and return their `cache.source.Source` or what stands for it."""
        raise NotImplementedError

    def run_pass(self) -> None:
        """Execute one pass."""
        raise NotImplementedError

    def notes(self) -> list[str]:
        """Return lines about a cluster for the start of the run."""
        return []

    def compile(self) -> None:
        """Compile the kernels that this process needs."""

    def preview(self) -> None:
        """Show the learner all of the data in a separate pass, if it needs that before it learns."""

    def end_pass(self) -> bool:
        """End a pass of the learner, and return whether another one follows."""
        return False

    def save_state(self) -> None:
        """Save what --resume_run needs, before the model is saved; raise ModelError if it cannot be saved."""

    def drain(self) -> None:
        """Let the tasks in the pipeline pass its stages after an error; further errors are ignored."""
        if self.pipeline is None:
            return
        self.pipeline.stop()
        with contextlib.suppress(Exception):
            for task in self.pipeline:
                self.run.model.record(task)

    def stop(self) -> None:
        """Stop reading and learning, after a signal."""

    def end(self) -> list[str]:
        """Get what the workers have learned, and return lines of the summary about what they have spent."""
        return []


class Local(Engine):
    """Read and learn in this process; `peeked` is what was already read from the data."""

    def __init__(self, peeked: Peeked | None = None) -> None:
        self._peeked = peeked

    def learner(self, contents: ModelContents | None) -> LearnerCore:
        return LearnerCore(self.run.config, contents)

    def compile(self) -> None:
        warm_up.prepare(self.run.config, self.run.model.reduction, self.run.reader.parsing)

    def source(self) -> Any:
        run, config = self.run, self.run.config
        # names of features need the lines that they are read from; VW's audit shows none for examples from a cache
        vw_shows_none = config.run.vw_exact and config.shuffle.shuffle is None
        shown = (config.inspect.invert_hash, config.inspect.explain, config.results.errors)
        needs_lines = any(option is not None for option in shown) or (config.inspect.audit and not vw_shows_none)
        self._stream = _open_data(config, run.model, needs_lines, self._peeked)
        return self._stream.source

    def run_pass(self) -> None:
        """Execute one pass, emptying the pipeline at each save point so that all examples before it are learned."""
        run, tasks = self.run, self._tasks(self._stream)
        run.model.reduction.begin_pass(self._stream.ended)
        if run.model.reduction.awaited:
            tasks = passes.previewed(tasks, run.model.reduction)
        stages = run.stopwatch.stages(run.model.reduction.stages)
        if run.inspector is not None:
            stages = run.inspector.stages(stages)
        while True:
            self.pipeline = Pipeline(tasks, stages, SavePoint)
            if run.signals.stopped:  # the signal came while there was no pipeline to stop
                self.pipeline.stop()
            for task in self.pipeline:
                with thread_limit.working():
                    run.record(task)
            if run.signals.stopped or self.pipeline.mark is None:
                return
            run.save_at(self.pipeline.mark)

    def _tasks(self, stream: Iterable[tuple[Batch, np.ndarray] | SavePoint]) -> Iterator[BatchTask | SavePoint]:
        """Yield the tasks of the examples of a stream, and the save points between them."""
        run = self.run

        def timed(tasks: Iterator[BatchTask]) -> Iterator[BatchTask]:
            if run.inspector is not None:
                run.model.preparation.one_by_one = run.inspector.one_by_one
                # where the names of features are is not known before the pass has begun
                if run.reader.parsing and run.reader.format is not None:
                    run.inspector.namer.format = run.reader.format
                run.model.preparation.keep_names = not run.reader.parsing
            return run.stopwatch.each("features", thread_limit.each(tasks))

        return run.model.tasks_of(run.stopwatch.each("source", stream), run.learning, timed)

    def preview(self) -> None:
        run, reduction = self.run, self.run.model.reduction
        if reduction.awaited != math.inf:
            return
        self.pipeline = Pipeline(self._tasks(self._stream.unshuffled()), [reduction.preview])
        for _ in self.pipeline:
            run.console.move_bar(run.reader.position, run.progress.examples)
        if not run.signals.stopped:
            reduction.end_preview()
        run.model.preparation.forget_namespaces()  # interactions see those of all examples again, from the first on

    def end_pass(self) -> bool:
        if self.run.learning:
            self.run.model.reduction.end_pass()
        return self._stream.count_pass()

    def stop(self) -> None:
        if self.pipeline is not None:
            self.pipeline.stop()
        self.run.model.reduction.stop()


def run(
    config: Config, notes: Sequence[str] = (), model: ModelContents | None = None, peeked: Peeked | None = None
) -> int:
    """Execute a run and return its exit status; `peeked` is what was already read from the data."""
    with thread_limit.limited(config.run.threads):
        return Run(config, notes, Local(peeked)).execute(model)


class Run:
    """Execute a run of the command; `execute` sets the other attributes, which the engine uses, when it begins.

    Parameters
    ----------
    config : options of the run
    notes : lines to show at its start
    engine : learns or predicts
    console : writes the messages; None for standard error
    new_saver : class that saves the models
    """

    counted_before = 0  # examples that the progress had counted before this run

    def __init__(
        self,
        config: Config,
        notes: Sequence[str],
        engine: Engine,
        console: Console | None = None,
        new_saver: type[Saver] = Saver,
    ) -> None:
        self.config = config
        self.options: RunOptions = config.run
        self.learning = not config.run.testonly
        self.notes = notes
        self.console = console or Console(config.run.quiet)
        self.signals = SignalHandler(engine.stop)
        self.stopwatch = timing.Stopwatch()
        self.engine = engine
        engine.run = self
        self._new_saver = new_saver
        self._warned: set[str] = set()
        self._files: list[output_file.OutputFile] = []  # that are written during the run

    # start

    def execute(self, contents: ModelContents | None) -> int:
        """Execute the run and return its exit status; `contents` are those of the model of -i."""
        started = time.perf_counter()
        o = self.options
        if o.final_regressor is not None:
            model_file.check_writable(o.final_regressor)
        jit.activate()
        if jit.cache_problem():
            self.console.warn(jit.cache_problem())
        with contextlib.ExitStack() as closing:
            with interrupt_told(self.console.line, self.config.values()):
                self._begin(contents, closing)
                self.stopwatch.add("start", timing.since_start() or time.perf_counter() - started)
                memory.check_address_space(memory.THREADS, remedy=", or give a smaller -b")
                self.engine.compile()
            try:
                with self.signals:
                    error = self._run_passes()
                    self.signals.end()
                    status = self._finish(error, started)
            except Stopped as stopped:
                self.console.end_bar()
                self.console.line(
                    f"xclass: a second signal, {stopped.signal.name}, ended the run at once; "
                    f"{self.saver.second_signal_message()}"
                )
                raise
            jit.note_compiled(self.config.reduction.name)
            if self.reader.parsing:
                jit.note_compiled(warm_up.READING)
            return status

    def _begin(self, contents: ModelContents | None, closing: contextlib.ExitStack) -> None:
        """Make the parts of the run, show how it begins, and open the files of -p and -r, which `closing` gives up."""
        closing.callback(self.console.end_bar)
        self._prepare(contents, closing)
        self.counted_before = self.progress.examples
        self._banner()
        self.model.reduction.report_to(self.console, self.reader.fraction_read)
        self.writers = outputs.open_writers(self.config, self.model)
        for writer in self.writers.values():
            self._register_output(writer.file, closing)

    def _register_output(self, file: output_file.OutputFile, closing: contextlib.ExitStack) -> None:
        """Note a file that is written during the run; `closing` gives up what is not complete."""
        self._files.append(file)
        closing.callback(file.abandon)

    def _prepare(self, contents: ModelContents | None, closing: contextlib.ExitStack) -> None:
        """Create the parts of the run; those that must be closed at its end are added to `closing`."""
        c, o = self.config, self.options
        with model_contents.naming(o.initial_regressor):
            self.model = self.engine.learner(contents)
        closing.callback(self.model.close)
        if self.learning:
            self.model.check_learns(f"-i {o.initial_regressor}: this model")
        holdout = c.passes.holds_out
        self.model.reduction.begin_pass(0, held_out=holdout)
        schedule = None if o.quiet else progress_table.parse_schedule(o.progress)
        if schedule is not None and schedule.note:
            self.console.warn(schedule.note)
        kind, names = self.engine.new_progress, self.model.names.class_list
        self.progress = self.model.progress = self.model.new_progress(kind, schedule, holdout, names)
        if o.vw_exact and c.listing_options.probabilities and c.reduction.labels == "multiclass":
            self.progress.log_loss_sum = 0.0  # VW shows the log loss even if there are no examples
        self.saver = self._new_saver(c, self.model, self.progress)
        closing.callback(self.saver.close)
        if contents is not None:
            self.saver.resume(contents, o.preserve_performance_counters)
        elif o.testonly:
            self.console.warn("-t without -i predicts with a new model, which has learned nothing; give -i MODEL")
        self.inspector = _inspector(c, self.model)
        if self.inspector is not None and self.inspector.file is not None:
            self._register_output(self.inspector.file, closing)
        tree_dump.check(c)
        c.results.check(c.reduction.labels)
        self.recorder = Recorder(c, self.model)
        self.reader = self.engine.source()
        closing.callback(self.reader.close)
        self.model.read_from(self.reader)

    def _banner(self) -> None:
        """Show the banner, the header of the table, and warnings."""
        if self.options.quiet:
            return
        features, crosser = self.model.preparation.features, self.model.preparation.crosser
        exact = self.options.vw_exact
        source = self.reader.banner(exact)
        if exact:
            lines = banner.as_vw(self.config, self.model.reduction, source, features.vw_banner, self.reader.name)
        else:
            lines = banner.plain(self.config, self.model, source, features.banner)
        crossed = crosser.notes if exact else []
        for line in [*self.notes, *self.engine.notes(), *self.config.adjusted, *crossed, *lines]:
            self.console.line(line)
        for line in progress_table.HEADER:
            self.console.table_line(line)
        self.console.start_bar(self.reader.size)

    # learning

    def _run_passes(self) -> BaseException | None:
        """Execute all passes; return the error that ended the run early, or None."""
        try:
            self.engine.preview()
            while not self.signals.stopped:
                self.engine.run_pass()
                if self.signals.stopped:
                    return None
                better = self.progress.end_pass()
                self.recorder.end_pass()
                if self.model.reduction.holds_out and isinstance(self.model.reduction.report, LabelReport):
                    self.model.reduction.report.end_pass(better)
                if self.saver.end_pass(better, last=not self.engine.end_pass()):
                    return None
        except Exception as error:  # `finish` saves what was learned and then raises the error
            self.engine.drain()
            return error
        finally:
            self.engine.pipeline = None
        return None

    def record(self, task: BatchTask) -> None:
        """Let the learner record a task that has passed the stages, and report it."""
        first = self.progress.examples == 0
        self.model.record(task)
        self._report(task)
        if first:  # by now the stages have loaded their kernels
            memory.release_compiler()

    def _report(self, task: BatchTask) -> None:
        """Show the messages and rows of a task that is counted, and write its predictions."""
        for line in self.reader.about():
            self.console.info(line)
        self.warn(self.model.take_notes())
        for row in self.progress.count(task):
            self.console.table_line(row)
        if self.model.progress is not self.progress:  # the learner counts earlier runs, too
            self.model.progress.count(task)
        self.recorder.count(task, self.progress.row_positions, self.reader.name, self.reader.parsing)
        self.console.move_bar(self.reader.position, self.progress.examples)
        with self.stopwatch.timed("writing"):
            outputs.write(self.writers, task)

    def warn(self, notes: Sequence[str]) -> None:
        """Show warnings, each once."""
        for note in notes:
            if note not in self._warned:
                self._warned.add(note)
                self.console.warn(note)

    def save_at(self, point: SavePoint) -> None:
        """Save the model at a save point, or tell why it is not saved."""
        try:
            if point.path is not None and point.path == self.options.final_regressor and not point.refusal:
                self.engine.save_state()
            refusal = self.saver.save_at(point)
        except ModelError as error:
            refusal = str(error)
        if refusal:
            self.console.warn(f"{point.message}: the model was not saved: {refusal}")
        else:
            self.console.info(point.message)

    # end

    def _finish(self, error: BaseException | None, started: float) -> int:
        """Show and save the results, and return the exit status; `error` has ended the run early, or is None.

        The model is saved before the summary is written, which says how the run has ended. Failures to write files
        other than the model are reported last.
        """
        for file in self._files:
            try:
                note = file.close(complete=error is None and self.signals.stopped is None)
            except (DataError, BrokenPipeError) as failed:
                error = error or failed
            else:
                if note:
                    self.console.warn(note)
        costs, seconds = self.engine.end(), time.perf_counter() - started
        o, stopped = self.config.run, self.signals.stopped
        self.console.end_bar()
        write_error, saved_message, lines = None, "", list[str]()
        try:
            for result in self.model.reduction.results():
                result.write()
            began = error is None or self.progress.examples > 0
            shows_summary = not o.quiet and not isinstance(error, BrokenPipeError) and began
            if shows_summary or self.recorder.options.summary is not None:
                lines = self._summary(costs, seconds)
            if shows_summary:
                for line in lines:
                    self.console.line(line)
        except Exception as caught:  # raised after the model is saved
            write_error = caught
        complete = error is None and stopped is None
        self.warn(self.model.take_notes())
        for line in self.model.end_notes(self.learning, complete):
            self.console.warn(line)
        if complete:
            try:
                self._save()
            except Exception as caught:  # raised after the summary is written
                error = caught
        else:
            saved_message = self.saver.save_interrupted()
        try:
            self.recorder.write(partial(self._summary_record, error, seconds, lines))
            for note in self.recorder.notes():
                self.console.info(note)
        except Exception as caught:
            write_error = write_error or caught
        if complete:
            failure = error or write_error
            if failure is not None:
                raise failure
            if self.signals.late is None:
                return 0
            if not o.quiet:
                self.console.line(
                    f"xclass: {self.signals.late.name} came after all examples were read; the run was completed"
                )
            return 128 + self.signals.late
        if isinstance(error, BrokenPipeError):
            incomplete = self._outputs()
            if not incomplete:
                raise error
            error = DataError(
                "standard output: its reader has closed the pipe, so the run ended early, and what these options write "
                f"is not complete: {', '.join(incomplete)}"
            )
        if isinstance(error, XclassError):
            raise type(error)(*error.args, *([f"xclass: {saved_message}"] if saved_message else [])) from error
        if error is not None:
            if saved_message:
                self.console.line(f"xclass: {saved_message}")
            raise error
        assert stopped is not None
        self.console.line(f"xclass: stopped by {stopped.name}" + (f"; {saved_message}" if saved_message else ""))
        if write_error is not None:
            raise write_error
        return 128 + stopped

    def _outputs(self) -> list[str]:
        """Return the options that name files that this run writes, apart from standard output."""
        values: Mapping[str, Any] = self.config.values()
        written = {
            name: option for name, option in self.config.declared().items() if option.writes and not option.reads
        }
        return [
            f"{min(option.flags, key=len)} {values[name]}" for name, option in written.items()
            if isinstance(values[name], str) and output_file.open_file(values[name]) != 1
        ]  # fmt: skip

    def _save(self) -> None:
        """Save the model, and write the same model as text if requested; raise DataError if nothing was learned."""
        o = self.options
        if not o.testonly and self.saver.learned == 0 and not (o.no_stdin or o.vw_exact):
            raise self.model.nothing_learned(self.reader)
        path, counters = self.saver.finish()
        shown = self.config.inspect
        files = (shown.readable_model, shown.invert_hash, shown.print_tree, shown.dot_tree)
        if path is not None and any(file is not None for file in files):
            self.model.replace_contents(model_contents.load(path))
        if self.inspector is not None:
            self.inspector.write(counters, self.model.stored_options())
        tree_dump.write(self.config, self.model)

    def _summary_record(self, error: BaseException | None, seconds: float, lines: list[str]) -> dict[str, Any]:
        """Return the summary of a run for programs."""
        status, reason = "finished", None
        if self.signals.stopped is not None:
            status, reason = "stopped", self.signals.stopped.name
        if error is not None:
            status, reason = "failed", str(error)
        record = summary_record.record(
            self.config, self.model.reduction, self.progress, self.reader.name, status, reason, lines
        )
        return {**record, **summary_record.costs(seconds, self.stopwatch.seconds)}

    def _summary(self, costs: Sequence[str], seconds: float) -> list[str]:
        """Return the lines of the summary: those of VW first."""
        o, shown, reduction = self.config.run, self.config.inspect, self.model.reduction
        saves = any(path is not None for path in (o.final_regressor, shown.readable_model, shown.invert_hash))
        saved, stopped = self.saver.saved_pass() if saves else None, self.signals.stopped is not None
        return [
            *console.summary(self.config, self.progress, reduction),
            *find.summary(self.config.reduction, reduction),
            *console.best_pass(self.progress, saved, stopped),
            *([table_occupancy.line(reduction.tables, reduction.rule)] if reduction.tables else []),
            *self.model.counted.summary(o.vw_exact),
            *([self.stopwatch.line(self.reader.parsing_seconds)] if self.config.timing.timing else []),
            *costs,
            console.cost(seconds, self.progress.examples - self.counted_before),
        ]


def _open_data(config: Config, learner: LearnerCore, needs_lines: bool, peeked: Peeked | None) -> passes.PassStream:
    """Open the data, text or a cache, and return the stream of the examples of every pass.

    If the lines that examples are read from are needed, every pass parses the text. `peeked` is what was
    already read from the data.
    """
    kind, labels = config.reduction.labels, learner.label_range
    # of a run that predicts, nothing is kept, so that nothing has to be examined before the first prediction
    schema = learner.schema.copy(fixed=True) if config.run.testonly else learner.schema
    empty = io.BytesIO() if config.run.no_stdin and not config.reader.data else None
    of_lines = parser_of(config, labels, learner.names, learning=not config.run.testonly)
    choose = detect.chooser(config.reader, schema, config.given)
    text = Reader(config.reader, of_lines, stream=empty, peeked=peeked, choose=choose)
    o = config.run
    text.parser.predicting = (o.predictions is not None or o.raw_predictions is not None) and not o.vw_exact
    of_passes = config.passes
    continued = of_passes.initial_pass_length is not None and of_passes.passes == 1
    limit = None if continued else of_passes.examples
    key = make_key(config.parser, feature_bits(config), kind, labels.lowest, labels.highest, limit)
    key.update(detect.key(config.reader, schema))
    if config.parser.learn_names and config.run.testonly:
        key["names"] = "those of the model"
    readings = config.passes.passes + (learner.reduction.awaited == math.inf)
    text.preview()
    if config.run.testonly and (text.format is None or text.format.name == "jsonl"):
        key["kinds"] = "those of the model"
    source = Source(text, config.cache, key, not config.parser.noconstant, readings, needs_lines, schema)
    size = config.shuffle.shuffle
    shuffler = None if size is None else Shuffler(size, o.random_seed, needs_lines)
    return passes.PassStream(source, config.passes, shuffler, o.final_regressor)


def _inspector(config: Config, learner: LearnerCore) -> Inspector | None:
    """Return the object that writes weights or explanations if an option requires it, else None."""
    requested = [name for name in ("explain", "readable_model", "invert_hash", "audit") if name in config.given]
    if not requested:
        return None
    with jit.importing():
        from .inspect import inspector, readable_model  # few runs need them
    first, reduction = f"--{requested[0]}", f"--{chosen_name(config)}"
    if first == "--explain":
        if len(requested) > 1:
            raise UsageError(f"--explain and --{requested[1]} cannot be combined: drop one of them")
        return inspector.Explainer(config, learner)
    if hasattr(find.ability(config.reduction, "describe"), "table_view") and learner.reduction.tables:
        return readable_model.WeightInspector(config, learner)
    raise UsageError(
        f"{first} shows weight tables of VW's kind, which {reduction} does not have; give --explain N, which shows the "
        "shares of features in the scores"
    )
