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
from collections.abc import Sequence
from dataclasses import dataclass

from ..abilities.find import ability
from ..api import model_contents, progress_table
from ..api.configuration import Config, chosen_name, exact_option, seed_option
from ..api.model_contents import Contents
from ..api.skipped_steps import SkippedSteps
from ..errors import DataError, UsageError
from ..kernels import jit
from ..model import model_file
from ..options.declare import option
from ..options.relations import no_effect
from ..options.resolve import SCALAR
from ..options.threads import threads_option
from ..system import address_space, output_file, thread_limit
from . import finish as ending
from . import passes, timing, warm_up
from .checkpoints import Saver
from .engine import Engine, Local
from .inspect.inspector import RunInspector
from .inspect.proposal_audit import ProposalAudit
from .inspect.readable_model import Inspector
from .inspect.readable_words import WordInspector
from .inspect.tree_dump import TreeDump
from .label_notes import LabelNotes
from .parts import RunParts
from .predictions import files as outputs
from .report import banner
from .report.console import Console
from .results import options as results
from .results.recorder import Recorder
from .signals import Stopped


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
        return Run(config, notes, Local(peeked)).execute(model)


class Run(RunParts):
    """Execute a run of the command; `execute` sets the attributes below in this order.

    Parameters
    ----------
    config : options of the run
    notes : lines to show at its start
    engine : learns or predicts
    console : writes the messages; None for standard error
    new_saver : class that saves the models
    """

    def __init__(
        self,
        config: Config,
        notes: Sequence[str],
        engine: Engine,
        console: Console | None = None,
        new_saver: type[Saver] = Saver,
    ) -> None:
        super().__init__(config, console or Console(config.run.quiet), engine.stop, engine.save_state)
        self.notes = notes
        self.engine = engine
        engine.run = self
        self._new_saver = new_saver
        self._files: list[output_file.Output] = []  # that are written during the run

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
            self.counted_before = self.progress.examples
            del contents
            self._banner()
            self._open_writers(closing)
            self.stopwatch.add("start", timing.since_start() or time.perf_counter() - started)
            self.model.reduction.report_to(self.console, self.reader.fraction_read)
            address_space.check(address_space.THREADS, remedy=", or give a smaller -b")
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

    def _open_writers(self, closing: contextlib.ExitStack) -> None:
        """Open the files of -p and -r; `closing` gives up what is not complete."""
        self.writers = outputs.open_writers(self.config, self.model.names, self.model.reduction.lists_scores)
        for writer in self.writers.values():
            self._opened(writer.file, closing)

    def _opened(self, file: output_file.Output, closing: contextlib.ExitStack) -> None:
        """Note a file that is written during the run; `closing` gives up what is not complete."""
        self._files.append(file)
        closing.callback(file.abandon)

    def _finish(self, error: BaseException | None, started: float) -> int:
        """Close the files that were written during the run, and finish it; see `finish`."""
        for file in self._files:
            try:
                note = file.close(complete=error is None and self.signals.stopped is None)
            except (DataError, BrokenPipeError) as failed:
                error = error or failed
            else:
                if note:
                    self.console.warn(note)
        return ending.finish(self, self.engine.end(), error, time.perf_counter() - started)

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
            self.model = self.engine.learner(contents)
        closing.callback(self.model.close)
        if self.learning:
            self.model.check_learns(f"-i {o.initial_regressor}: this model")
        holdout = passes.HeldOutLines(c.passes).enabled
        self.progress = self.model.progress = self.engine.new_progress(
            c.reduction.labels, None if o.quiet else self._schedule(), holdout, self.model.names.class_list,
            o.vw_exact, o.vw_exact and bool(self.model.reduction.lists_scores or c.listing_options.probabilities),
        )  # fmt: skip
        if o.vw_exact and c.listing_options.probabilities:
            self.progress.log_loss_sum = 0.0  # VW shows the log loss even if there are no examples
        self.saver = self._new_saver(c, self.model, self.progress)
        closing.callback(self.saver.close)
        if contents is not None:
            self.saver.resume(contents, o.preserve_performance_counters)
        elif o.testonly:
            self.console.warn("-t without -i predicts with a new model, which has learned nothing; give -i MODEL")
        self.inspector = self._inspector(closing)
        self.tree_dump = TreeDump(c.tree_dump, c.reduction, self.model.names.names)
        classes = c.reduction.labels == "multiclass"
        results.check(c.results, classes)
        self.recorder = Recorder(c.results, classes, self.model.names.class_list, holdout)
        self.reader = self.engine.source()
        closing.callback(self.reader.close)
        self.skipped_steps = SkippedSteps(self.reader.name if len(c.reader.data) <= 1 else None)
        self.labels = LabelNotes(c.reduction.labels == "multiclass", self.model.names.class_list is not None)

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
        for line in [*self.notes, *self.engine.notes(), *self.config.adjusted, *crosser.notes, *lines]:
            self.console.line(line)
        for line in progress_table.HEADER:
            self.console.table_line(line)
        for note in features.notes:
            self.console.warn(note)
        self.console.start_bar(self.reader.size)

    # learning

    def _run_passes(self) -> BaseException | None:
        """Execute all passes; return the error that ended the run early, or None."""
        try:
            self.engine.preview()
            while not self.signals.stopped:
                self.engine.run_pass()
                if self.signals.stopped or self._end_pass():
                    return None
        except Exception as error:  # `finish` saves what was learned and then raises the error
            self.engine.drain()
            return error
        finally:
            self.engine.pipeline = None
        return None

    def _end_pass(self) -> bool:
        """End a pass; return whether it was the last one."""
        better = self.progress.end_pass()
        self.recorder.end_pass()
        return self.saver.end_pass(better, last=not self.engine.end_pass())
