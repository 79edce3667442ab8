"""Finish a run: show the summary, save the model and what belongs to it, and return the exit status.

The model is saved first; failures to write other files are reported afterwards.
"""

from __future__ import annotations

from typing import NamedTuple

from ..api import model_contents
from ..api.configuration import Config
from ..api.learner import Learner
from ..api.model_contents import Contents
from ..api.progress import Progress
from ..api.skipped_steps import SkippedSteps
from ..cache.source import Source
from ..errors import DataError, XclassError
from ..reductions.core.base import Inspectable
from .checkpoints import Saver
from .inspect.readable_model import Inspector
from .inspect.tree_dump import Dump
from .report import console, table_occupancy
from .report.console import Console
from .signals import SignalHandler
from .timing import Stopwatch


class RunParts(NamedTuple):
    """Hold the parts of a run after all of its examples have passed the stages."""

    config: Config
    model: Learner
    saver: Saver
    progress: Progress
    reader: Source
    console: Console
    signals: SignalHandler
    skipped_steps: SkippedSteps
    stopwatch: Stopwatch
    inspector: Inspector | None
    dump: Dump


def finish(run: RunParts, error: BaseException | None, seconds: float) -> int:
    """Show and save the results of a run, and return its exit status.

    Parameters
    ----------
    run : parts of the run
    error : the error that ended the run early, or None
    seconds : duration of the run

    Raises
    ------
    DataError, ModelError, BrokenPipeError
        `error` itself, or the error that prevented writing a file.
    """
    o, stopped = run.config.driver, run.signals.stopped
    run.console.end_bar()
    unwritten = None
    try:
        for result in run.model.reduction.results():
            result.write()
        lines = run.model.reduction.summary()
        if not o.quiet and not isinstance(error, BrokenPipeError):
            counted = console.summary(run.config, run.progress, run.model.reduction)
            for line in [*counted, *lines, *_own_summary(run, seconds)]:
                run.console.line(line)
    except Exception as caught:  # raised after the model is saved
        unwritten = caught
    for line in run.reader.report():
        run.console.warn(line)
    if error is None and stopped is None:
        if not o.testonly and run.saver.learned == 0 and not (o.no_stdin or o.vw_exact):
            raise DataError(
                f"{run.reader.name}: not one example was learned from; a labelled line is `label | features`"
            )
        _save(run)
        if unwritten is not None:
            raise unwritten
        if run.signals.late is None:
            return 0
        if not o.quiet:
            run.console.line(f"xclass: {run.signals.late.name} came when all was read; the run has ended as it should")
        return 128 + run.signals.late
    kept = run.saver.interrupted()
    if isinstance(error, BrokenPipeError):
        if kept and o.final_regressor is not None:
            run.console.line(f"xclass: nobody reads the predictions any more; {kept}")
        raise error
    if isinstance(error, XclassError):
        raise type(error)(*error.args, *([f"xclass: {kept}"] if kept else [])) from error
    if error is not None:
        if kept:
            run.console.line(f"xclass: {kept}")
        raise error
    assert stopped is not None
    run.console.line(f"xclass: stopped by {stopped.name}" + (f"; {kept}" if kept else ""))
    if unwritten is not None:
        raise unwritten
    return 128 + stopped


def _save(run: RunParts) -> None:
    """Save the model, and write the same model as text if requested."""
    path, counters = run.saver.finish()
    text = run.config.readable
    as_text = text.readable_model is not None or text.invert_hash is not None
    if path is not None and (as_text or run.dump.wanted):
        _restore_contents(run, model_contents.load(path))
    if as_text and run.inspector is not None:
        run.inspector.write(counters, run.model.stored_options())
    run.dump.write(run.model.reduction)


def _restore_contents(run: RunParts, contents: Contents) -> None:
    """Replace what the learner has learned by the contents of a model; only one of the two is held in memory."""
    if run.inspector is not None:
        run.inspector.detach()
    run.model.exchange(contents)
    if run.inspector is not None and isinstance(run.model.reduction, Inspectable):
        run.inspector.show(run.model.reduction)


def _own_summary(run: RunParts, seconds: float) -> list[str]:
    """Return the lines of the summary that VW does not have."""
    text = run.config.readable
    saves = any(path is not None for path in (run.config.driver.final_regressor, text.readable_model, text.invert_hash))
    reduction, slots = run.model.reduction, []
    if isinstance(reduction, Inspectable) and reduction.tables:
        slots = [table_occupancy.line(reduction.tables, reduction.rule)]
    return [
        *console.best_pass(run.progress, run.saver.pass_kept() if saves else None, run.signals.stopped is not None),
        *slots,
        *run.skipped_steps.lines(),
        *([run.stopwatch.line(run.reader.parsing_seconds)] if run.config.timing.timing else []),
        console.cost(seconds, run.progress.examples),
    ]
