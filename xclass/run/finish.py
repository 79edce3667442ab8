"""Finish a run: show the summary, save the model and what belongs to it, and return the exit status.

The model is saved first; failures to write other files are reported afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from ..abilities import find
from ..api import model_contents
from ..api.model_contents import Contents
from ..errors import DataError, XclassError
from ..text.text_format import TextFormat
from .parts import RunParts
from .report import console, table_occupancy
from .results import summary as summary_record


def finish(run: RunParts, costs: Sequence[str], error: BaseException | None, seconds: float) -> int:
    """Show and save the results of a run, and return its exit status. `error` has ended the run early, or is None.

    `costs` are lines about what the workers of a cluster have spent.
    """
    o, stopped = run.config.run, run.signals.stopped
    run.console.end_bar()
    write_error = None
    try:
        for result in run.model.reduction.results():
            result.write()
        shows_summary = not o.quiet and not isinstance(error, BrokenPipeError)
        lines = _summary(run, costs, seconds) if shows_summary or run.recorder.options.summary is not None else []
        if shows_summary:
            for line in lines:
                run.console.line(line)
        run.recorder.write(partial(_record, run, error, seconds, lines))
        for note in run.recorder.notes():
            run.console.info(note)
    except Exception as caught:  # raised after the model is saved
        write_error = caught
    complete = error is None and stopped is None
    idle = run.model.preparation.idle_arguments(ended=not o.testonly) if complete else []
    for line in [*([] if o.vw_exact else run.labels.warnings()), *idle, *run.reader.report()]:
        run.console.warn(line)
    if complete:
        if not o.testonly and run.saver.learned == 0 and not (o.no_stdin or o.vw_exact):
            labelled = (run.reader.format or TextFormat()).labelled
            raise DataError(f"{run.reader.name}: no example was learned from; {labelled}")
        _save(run)
        if write_error is not None:
            raise write_error
        if run.signals.late is None:
            return 0
        if not o.quiet:
            run.console.line(
                f"xclass: {run.signals.late.name} came after all examples were read; the run was completed"
            )
        return 128 + run.signals.late
    saved_message = run.saver.save_interrupted()
    if isinstance(error, BrokenPipeError):
        if saved_message and o.final_regressor is not None:
            run.console.line(f"xclass: the reader of the predictions has closed the pipe; {saved_message}")
        raise error
    if isinstance(error, XclassError):
        raise type(error)(*error.args, *([f"xclass: {saved_message}"] if saved_message else [])) from error
    if error is not None:
        if saved_message:
            run.console.line(f"xclass: {saved_message}")
        raise error
    assert stopped is not None
    run.console.line(f"xclass: stopped by {stopped.name}" + (f"; {saved_message}" if saved_message else ""))
    if write_error is not None:
        raise write_error
    return 128 + stopped


def _save(run: RunParts) -> None:
    """Save the model, and write the same model as text if requested."""
    path, counters = run.saver.finish()
    text = run.config.readable
    writes_text = text.readable_model is not None or text.invert_hash is not None
    if path is not None and (writes_text or run.tree_dump.wanted):
        _restore_contents(run, model_contents.load(path))
    if writes_text and run.inspector is not None:
        run.inspector.write(counters, run.model.stored_options())
    run.tree_dump.write(run.model.reduction)


def _restore_contents(run: RunParts, contents: Contents) -> None:
    """Replace what the learner has learned by the contents of a model; only one of the two is held in memory."""
    if run.inspector is not None:
        run.inspector.detach()
    run.model.replace_contents(contents)
    if run.inspector is not None:
        run.inspector.attach(run.model.reduction)


def _record(run: RunParts, error: BaseException | None, seconds: float, lines: list[str]) -> dict[str, Any]:
    """Return the summary of a run for programs."""
    status, reason = "finished", None
    if run.signals.stopped is not None:
        status, reason = "stopped", run.signals.stopped.name
    if error is not None:
        status, reason = "failed", str(error)
    record = summary_record.record(
        run.config, run.model.reduction, run.progress, run.reader.name, status, reason, [line for line in lines if line]
    )
    return {**record, **summary_record.costs(seconds, run.stopwatch.seconds, console.peak_memory())}


def _summary(run: RunParts, costs: Sequence[str], seconds: float) -> list[str]:
    """Return the lines of the summary: those of VW first."""
    text = run.config.readable
    saves = any(path is not None for path in (run.config.run.final_regressor, text.readable_model, text.invert_hash))
    reduction, slots = run.model.reduction, []
    if reduction.tables:
        slots = [table_occupancy.line(reduction.tables, reduction.rule)]
    return [
        *console.summary(run.config, run.progress, reduction),
        *find.summary(run.config.reduction, reduction),
        *console.best_pass(run.progress, run.saver.saved_pass() if saves else None, run.signals.stopped is not None),
        *slots,
        *run.skipped_steps.lines(),
        *([] if run.config.run.vw_exact else run.labels.summary()),
        *([run.stopwatch.line(run.reader.parsing_seconds)] if run.config.timing.timing else []),
        *costs,
        console.cost(seconds, run.progress.examples - run.counted_before),
    ]
