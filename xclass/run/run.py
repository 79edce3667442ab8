"""Execute a run: read batches, prepare them, learn or predict, count losses, and write predictions and the model.

The reader (with the interactions), each stage of the learner and the output have a thread of their own. Batches pass
them in order, so the results do not depend on the scheduling of the threads.

If the run ends early, by a malformed line, Ctrl-C, SIGTERM or a closed pipe, everything read before is learned and the
model of -f is saved as `<model>.interrupted`. The model file itself is replaced only by checkpoints and at the end of a
complete run.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..abilities.find import ability
from ..api import model_contents, progress_table
from ..api.configuration import Config, LearnerUse, chosen_name, exact_option, seed_option
from ..api.learner import Learner
from ..api.model_contents import Contents
from ..api.progress import Progress
from ..api.skipped_steps import SkippedSteps
from ..cache.source import Source
from ..data.batch import Batch
from ..errors import DataError, UsageError
from ..kernels import jit
from ..model import model_file
from ..options.declare import option
from ..options.relations import no_effect
from ..options.resolve import SCALAR
from ..options.threads import threads_option
from ..reductions.core.contract import BatchTask
from ..system import address_space, compiler_memory, output_file, thread_limit
from ..system.pipeline import Pipeline
from . import data_source, learner_use, passes, timing, warm_up
from . import finish as ending
from .checkpoints import Saver
from .inspect.inspector import RunInspector
from .inspect.proposal_audit import ProposalAudit
from .inspect.readable_model import Inspector
from .inspect.readable_words import WordInspector
from .inspect.tree_dump import TreeDump
from .label_notes import LabelNotes
from .passes import SavePoint
from .predictions import files as outputs
from .predictions.writer import Writer
from .report import banner
from .report.console import Console
from .results import options as results
from .results.recorder import Recorder
from .shuffle import Shuffler
from .signals import SignalHandler, Stopped
from .timing import Stopwatch


@dataclass(frozen=True)
class Options:
    """Declare the options of a run."""

    initial_regressor: str = option(
        "model to load, to predict with or to continue learning from",
        flags=("-i", "--initial_regressor"),
        metavar="FILE",
        reads=True,
    )
    testonly: bool = option("predict only, do not learn", flags=("-t", "--testonly"), kind=bool)
    final_regressor: str = option(
        "save the model to this file",
        flags=("-f", "--final_regressor"),
        metavar="FILE",
        writes=output_file.MODEL,
        files=output_file.places,
        may_replace="initial_regressor",
    )
    predictions: str = option(
        "write a prediction per example to this file, or to `stdout`",
        flags=("-p", "--predictions"),
        metavar="FILE",
        writes="predictions",
        files=output_file.places,
    )
    raw_predictions: str = option(
        "write scores to this file: of every class, of the candidates, of the routers on the path to the leaf, or of "
        "the binary learner",
        flags=("-r", "--raw_predictions"),
        metavar="FILE",
        writes="scores",
        files=output_file.places,
    )
    progress: str = option(
        "print a row of the progress table every N examples (1000), or whenever the number of examples has grown N "
        "times (2.0)",
        flags=("-P", "--progress"),
        default="2.0",
        metavar="N",
    )
    quiet: bool = option("print no banner, progress table, summary or warnings", kind=bool)
    threads: int = threads_option()
    random_seed: int = seed_option()
    no_stdin: bool = option("read nothing if no data file is given", kind=bool)
    preserve_performance_counters: bool = option(
        "continue the counts of examples and losses of the model given with -i", kind=bool
    )
    vw_exact: bool = exact_option()

    RULES = (
        no_effect("preserve_performance_counters", "it needs -i FILE, which loads a model", initial_regressor=None),
        no_effect(
            "preserve_performance_counters", "with -t no examples are added to the counts of a model", testonly=True
        ),
        no_effect("raw_predictions", "with --scores -p writes the scores already", scores=True),
        no_effect("raw_predictions", "with --probabilities only -p is written", probabilities=True),
        no_effect("progress", "--quiet leaves the progress table out", quiet=True),
        no_effect("no_stdin", "a data file is given", data=True),
        no_effect("threads", "the run has as many processes as --workers says", workers=True),
    )


def run(config: Config, notes: Sequence[str] = (), model: Contents | None = None, peeked: bytes = b"") -> int:
    """Execute a run and return its exit status.

    Parameters
    ----------
    model : contents of the model of -i, or None
    peeked : bytes already read from standard input
    """
    with thread_limit.limited(config.run.threads):
        return Run(config, notes, peeked).execute(model)


class Run:
    """Execute a run of the command; `execute` sets the attributes below in this order."""

    model: Learner
    progress: Progress
    saver: Saver
    inspector: RunInspector | None
    tree_dump: TreeDump
    reader: Source
    skipped_steps: SkippedSteps
    labels: LabelNotes
    stream: passes.Stream
    writers: dict[str, Writer]
    recorder: Recorder
    new_progress: type[Progress] = Progress
    new_saver: type[Saver] = Saver

    def __init__(self, config: Config, notes: Sequence[str], peeked: bytes) -> None:
        self.config = config
        self.peeked = peeked
        self.notes = notes
        self.options: Options = config.run
        self.learning = not self.options.testonly
        self.console = Console(self.options.quiet)
        self.signals = SignalHandler(self._stop)
        self.stopwatch = Stopwatch()
        self.pipeline: Pipeline[BatchTask] | None = None
        self._files: list[output_file.Output] = []  # that are written during the run
        self._counted_before = 0  # examples that the progress had counted before this run

    # start

    def execute(self, contents: Contents | None) -> int:
        """Execute the run and return its exit status; `contents` are those of the model of -i."""
        started = time.perf_counter()
        o = self.options
        if o.final_regressor is not None:
            model_file.check_writable(o.final_regressor)
        jit.activate()
        self._announce_compiling()
        with contextlib.ExitStack() as closing:
            closing.callback(self.console.end_bar)
            self._prepare(contents, closing)
            self._counted_before = self.progress.examples
            del contents
            self._banner()
            self._open_writers(closing)
            self.stopwatch.add("start", timing.since_start() or time.perf_counter() - started)
            self.model.reduction.report_to(self.console, self.reader.fraction_read)
            address_space.check_threads()
            self._compile()
            try:
                with self.signals:
                    error = self._run_passes()
                    self.signals.end()
                    self.pipeline = None
                    error = self._close_files(error)
                    status = ending.finish(self._parts(), error, time.perf_counter() - started)
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

    def _open_writers(self, closing: contextlib.ExitStack) -> None:
        """Open the files of -p and -r; `closing` gives up what is not complete."""
        self.writers = outputs.open_writers(self.config, self.model.names, self.model.reduction.lists_scores)
        for writer in self.writers.values():
            self._opened(writer.file, closing)

    def _opened(self, file: output_file.Output, closing: contextlib.ExitStack) -> None:
        """Note a file that is written during the run; `closing` gives up what is not complete."""
        self._files.append(file)
        closing.callback(file.abandon)

    def _close_files(self, error: BaseException | None) -> BaseException | None:
        """Close the files that were written during the run, and return the error that ends it, if there is one."""
        for file in self._files:
            try:
                note = file.close(complete=error is None and self.signals.stopped is None)
            except (DataError, BrokenPipeError) as failed:
                error = error or failed
            else:
                if note:
                    self.console.warn(note)
        return error

    def _announce_compiling(self) -> None:
        """Tell the user that kernels are being compiled if this is the first run of the reduction."""
        if jit.cache_problem():
            self.console.warn(jit.cache_problem())
        name = self.config.reduction.name
        if not jit.is_first_run(name) or self.options.quiet:
            return
        owner = "" if name == SCALAR else f" of --{name}"
        once = "" if jit.cache_problem() else " (in the first run only)"
        self.console.line(f"xclass: compiling the kernels{owner} for this machine{once}")

    def _prepare(self, contents: Contents | None, closing: contextlib.ExitStack) -> None:
        """Create the parts of the run; those that must be closed at its end are added to `closing`."""
        c, o = self.config, self.options
        with model_contents.naming(o.initial_regressor):
            self.model = self._learner(contents)
        closing.callback(self.model.close)
        if self.learning:
            self.model.check_learns(f"-i {o.initial_regressor}: this model")
        holdout = passes.HeldOutLines(c.passes)
        self.progress = self.model.progress = self.new_progress(
            c.reduction.labels, None if o.quiet else self._schedule(), holdout.enabled, self.model.names.class_list,
            o.vw_exact, o.vw_exact and bool(self.model.reduction.lists_scores or c.listing_options.probabilities),
        )  # fmt: skip
        if o.vw_exact and c.listing_options.probabilities:
            self.progress.log_loss_sum = 0.0  # VW shows the log loss even if there are no examples
        self.saver = self.new_saver(c, self.model, self.progress)
        closing.callback(self.saver.close)
        if contents is not None:
            self.saver.resume(contents, o.preserve_performance_counters)
        elif o.testonly:
            self.console.warn("-t without -i predicts with a new model, which has learned nothing; give -i MODEL")
        self.inspector = self._inspector(closing)
        self.tree_dump = TreeDump(c.tree_dump, c.reduction, self.model.names.names)
        classes = c.reduction.labels == "multiclass"
        results.check(c.results, classes)
        self.recorder = Recorder(c.results, classes, self.model.names.class_list, holdout.enabled)
        self.reader = self._source()
        closing.callback(self.reader.close)
        self.skipped_steps = SkippedSteps(self.reader.name if len(c.reader.data) <= 1 else None)
        self.labels = LabelNotes(c.reduction.labels == "multiclass", self.model.names.class_list is not None)
        self.stream = passes.Stream(self.reader, c.passes, holdout, self._shuffler(), o.final_regressor)

    def _learner(self, contents: Contents | None) -> Learner:
        """Return the learner of the run; `contents` are those of the model of -i."""
        return Learner.from_config(self.config, self._use(), contents)

    def _compile(self) -> None:
        """Compile the kernels that the run needs."""
        warm_up.prepare(self.config, self._use(), self.model.reduction, self.reader.parsing)

    def _use(self) -> LearnerUse:
        """Return how the run uses its learner."""
        return learner_use.of_run(self.config)

    def _parts(self) -> ending.RunParts:
        """Return the parts that `finish` needs."""
        return ending.RunParts(
            self.config, self.model, self.saver, self.progress, self.reader, self.console, self.signals,
            self.skipped_steps, self.labels, self.stopwatch, self.inspector, self.tree_dump, self.recorder,
            self._counted_before,
        )  # fmt: skip

    def _source(self) -> Source:
        """Return the source of the batches of every pass, from text or a cache."""
        return data_source.opened(self.config, self.model, self._needs_lines(), self.peeked)

    def _needs_lines(self) -> bool:
        """Return whether the lines that examples are read from are needed, so that every pass parses the text."""
        return self._shows_feature_names() or self.config.results.errors is not None

    def _shows_feature_names(self) -> bool:
        """Return whether names of features are shown; VW's audit shows none for examples from a cache."""
        vw_shows_none = self.options.vw_exact and self.config.shuffle.shuffle is None
        shown = self.config.readable.invert_hash is not None or self.config.explainer.explain is not None
        return shown or (self.config.readable.audit and not vw_shows_none)

    def _inspector(self, closing: contextlib.ExitStack) -> RunInspector | None:
        """Return the inspector that writes weights or explanations if an option requires it, else None."""
        requested = [
            name for name in ("explain", "readable_model", "invert_hash", "audit") if name in self.config.given
        ]
        if not requested:
            return None
        reduction, chosen = self.model.reduction, chosen_name(self.config)
        inspect = ability(self.config.reduction, "inspect")
        if requested[0] == "explain":
            if len(requested) > 1:
                raise UsageError(f"--explain and --{requested[1]} cannot be combined: drop one of them")
            if "explain" not in self.config.reduction.abilities:
                raise UsageError(f"--explain: --{chosen} does not explain its predictions; leave it out")
            from .inspect.explainer import Explainer  # few runs need it

            explainer = Explainer(self.config, reduction, lambda: self.model.names.class_list)
            self._opened(explainer.file, closing)
            return explainer
        if requested == ["audit"] and hasattr(inspect, "proposes") and inspect.proposes(reduction):
            return ProposalAudit(self.config, reduction, lambda: self.model.names.class_list)
        if inspect is not None and reduction.tables:
            return Inspector(self.config, reduction)
        if requested == ["audit"] and "explain" in self.config.reduction.abilities:
            from .inspect.explainer import ShareAudit

            return ShareAudit(self.config, reduction, lambda: self.model.names.class_list)
        if not hasattr(inspect, "word_tables"):
            raise UsageError(f"--{requested[0]} shows weight tables, which --{chosen} does not have")
        if "audit" in requested:
            raise UsageError(f"--audit and --{requested[0]} cannot be combined with --{chosen}: drop one of them")
        if not inspect.word_tables(reduction):
            raise UsageError(
                f"--{requested[0]} cannot show the weights of --{chosen} with --layout odd; give one of --print_tree "
                "and --save_tree, or learn with --layout tagged"
            )
        return WordInspector(self.config, reduction)

    def _shuffler(self) -> Shuffler | None:
        """Return the shuffle buffer of --shuffle, or None."""
        size = self.config.shuffle.shuffle
        return None if size is None else Shuffler(size, self.options.random_seed, self._needs_lines())

    def _schedule(self) -> progress_table.RowSchedule:
        """Return when rows of the progress table are due, and warn about doubtful values of -P."""
        schedule = progress_table.parse_schedule(self.options.progress)
        if schedule.note:
            self.console.warn(schedule.note)
        return schedule

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
        for line in [*self.notes, *self.config.adjusted, *crosser.notes, *lines]:
            self.console.line(line)
        for line in progress_table.HEADER:
            self.console.table_line(line)
        for note in features.notes:
            self.console.warn(note)
        self.console.start_bar(self.reader.size)

    # learning

    def _tasks(self, stream: Iterable[tuple[Batch, np.ndarray] | SavePoint]) -> Iterator[BatchTask | SavePoint]:
        """Yield the tasks of one pass, and the save points between them."""
        clock = self.model.clock
        for item in self.stopwatch.each("source", stream):
            if isinstance(item, SavePoint):
                yield item
                continue
            batch, held_out = item
            if self.inspector is not None:
                self.model.preparation.one_by_one = self.inspector.one_by_one
                self._find_names()
            tasks = self.model.tasks(batch, self.learning, clock, held_out)
            for task in self.stopwatch.each("features", thread_limit.each(tasks)):
                clock = float(task.clock[-1]) if task.batch.n else clock
                yield task

    def _find_names(self) -> None:
        """Tell the inspector where it finds the names of features, which is not known before the pass has begun."""
        assert self.inspector is not None
        if self.reader.parsing and self.reader.format is not None:
            self.inspector.read_from(self.reader.format)
        self.model.preparation.keep_names = not self.reader.parsing

    def _run_passes(self) -> BaseException | None:
        """Execute all passes; return the error that ended the run early, or None."""
        try:
            if self.model.preview_size == 0:
                self._preview_all()
            while not self.signals.stopped:
                self._run_pass()
                if self.signals.stopped or self._end_pass():
                    return None
        except Exception as error:  # `finish` saves what was learned and then raises the error
            self._drain()
            return error
        return None

    def _drain(self) -> None:
        """Let the tasks in the pipeline pass its stages after an error; further errors are ignored."""
        if self.pipeline is None:
            return
        self.pipeline.stop()
        with contextlib.suppress(Exception):
            for task in self.pipeline:
                self.model.note(task)

    def _stop(self) -> None:
        """Stop reading and learning, after a signal."""
        if self.pipeline is not None:
            self.pipeline.stop()
        self.model.reduction.stop()

    def _preview_all(self) -> None:
        """Show the learner all of the data in a separate pass, before it learns."""
        reduction = self.model.reduction
        self.pipeline = Pipeline(passes.PassSegment(self._tasks(self.stream.unshuffled())), [reduction.preview])
        for _ in self.pipeline:
            self.console.move_bar(self.reader.position, self.progress.examples)
        if not self.signals.stopped:
            reduction.end_preview()
        self.model.preparation.forget_namespaces()  # interactions see those of all examples again, from the first on

    def _run_pass(self) -> None:
        """Execute one pass, emptying the pipeline at each save point so that all examples before it are learned."""
        tasks = self._tasks(self.stream)
        reduction = self.model.reduction
        if self.model.preview_size is not None:
            tasks = passes.previewed(tasks, reduction)
        stages = self.stopwatch.stages(self.model.stages)
        if self.inspector is not None:
            stages = self.inspector.stages(stages)
        while True:
            segment = passes.PassSegment(tasks)
            self.pipeline = Pipeline(segment, stages)
            if self.signals.stopped:  # the signal came while there was no pipeline to stop
                self.pipeline.stop()
            for task in self.pipeline:
                with thread_limit.working():
                    self._count(task)
            if self.signals.stopped or segment.save_point is None:
                return
            refusal = self._save_at(segment.save_point)
            if refusal:
                self.console.warn(f"{segment.save_point.message}: the model was not saved: {refusal}")
            else:
                self.console.info(segment.save_point.message)

    def _save_at(self, point: SavePoint) -> str:
        """Save the model at a save point; return the reason if it was not saved, or an empty string."""
        return self.saver.save_at(point)

    def _end_pass(self) -> bool:
        """End a pass; return whether it was the last one."""
        better = self.progress.end_pass()
        self.recorder.end_pass()
        if self.learning:
            self.model.reduction.end_pass()
        return self.saver.end_pass(better, last=not self.stream.count_pass())

    def _count(self, task: BatchTask) -> None:
        """Count a task that has passed the stages, and report it."""
        first = self.progress.examples == 0
        self._report(task, self.model.note(task))
        if first:  # by now the stages have loaded their kernels
            compiler_memory.release()

    def _report(self, task: BatchTask, highest_seen: np.ndarray | None) -> None:
        """Show the messages and rows of a task that is counted, and write its predictions.

        `highest_seen` is what `Learner.note` has returned.
        """
        for line in self.reader.about():
            self.console.info(line)
        while self.reader.notes:
            self.console.warn(self.reader.notes.pop(0))
        for note in [*task.notes, *self.skipped_steps.count(task)]:
            self.console.warn(note)
        for row in self.progress.count(task, highest_seen):
            self.console.table_line(row)
        if self.model.progress is not self.progress:  # the learner counts earlier runs, too
            self.model.progress.count(task, highest_seen)
        if self.progress.passes == 0:
            self.labels.count(task, self.reader.name)
        self.recorder.count(task, highest_seen, self.progress.row_positions, self.reader.name, self.reader.parsing)
        self.console.move_bar(self.reader.position, self.progress.examples)
        self.stopwatch.timed("writing", outputs.write)(self.writers, task, highest_seen)
