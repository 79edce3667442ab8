"""The end of a run: the summary, the model and what goes with it, and the exit status.

The model comes first: whatever else cannot be written is told of when it is safe.
"""

from __future__ import annotations

import gc
from typing import Any

from ..api import model_contents
from ..errors import DataError, XclassError
from ..reductions.core.base import Inspectable
from .learner_spec import spec_of
from .report import console, table_occupancy


def finish(run: Any, error: BaseException | None, seconds: float) -> int:
    """Tell and save what came of a run, and return its exit status.

    Parameters
    ----------
    run : the driver's, all of whose examples have come to rest
    error : what ended it early
    seconds : it has taken

    Raises
    ------
    DataError, ModelError, BrokenPipeError
        `error` itself, or what could not be written.
    """
    o, stopped = run.options, run.watch.stopped
    run.talk.end_bar()
    unwritten = None
    try:
        for result in run.learner.results():
            result.write()
        lines = run.learner.summary()
        if not o.quiet and not isinstance(error, BrokenPipeError):
            for line in [*console.summary(run.config, run.progress, run.learner), *lines, *_own_summary(run, seconds)]:
                run.talk.tell(line)
    except Exception as caught:  # the model is saved before this error, whatever it is, ends the run
        unwritten = caught
    for line in run.reader.report():
        run.talk.warn(line)
    if error is None and stopped is None:
        if run.learning and run.saver.learned == 0 and not (o.no_stdin or o.vw_exact):
            raise DataError(
                f"{run.reader.name}: not one example was learned from; a labelled line is `label | features`"
            )
        _save(run)
        if unwritten is not None:
            raise unwritten
        if run.watch.late is None:
            return 0
        if not o.quiet:
            run.talk.tell(f"xclass: {run.watch.late.name} came when all was read; the run has ended as it should")
        return 128 + run.watch.late
    kept = run.saver.interrupted()
    if isinstance(error, BrokenPipeError):
        if kept and o.final_regressor is not None:
            run.talk.tell(f"xclass: nobody reads the predictions any more; {kept}")
        raise error
    if isinstance(error, XclassError):
        raise DataError(*error.args, *([f"xclass: {kept}"] if kept else []))
    if error is not None:
        if kept:
            run.talk.tell(f"xclass: {kept}")
        raise error
    run.talk.tell(f"xclass: stopped by {stopped.name}" + (f"; {kept}" if kept else ""))
    if unwritten is not None:
        raise unwritten
    return 128 + stopped


def _save(run: Any) -> None:
    """Save the model, and as text the very model that is saved."""
    path, counters = run.saver.finish()
    text = run.config.readable
    as_text = text.readable_model is not None or text.invert_hash is not None
    if path is not None and (as_text or run.dump.wanted):
        _turn_to(run, model_contents.load(path))
    if as_text:
        run.inspector.write(counters, run.saver.options())
    run.dump.write(run.learner)


def _turn_to(run: Any, model: model_contents.Contents) -> None:
    """Exchange the learner for one that has learned what a model holds, without room for both of them."""
    run.learner.close()
    run.learner = run.saver.learner = run.pipeline = None
    if run.inspector is not None:
        run.inspector.show(None)
    gc.collect()  # a learner holds its own methods
    run.learner = run.saver.learner = run.config.reduction.build(spec_of(run.config))
    run.learner.restore(model.arrays, model.learner)
    if run.inspector is not None:
        run.inspector.show(run.learner)


def _own_summary(run: Any, seconds: float) -> list[str]:
    """What is told beyond VW's lines."""
    text = run.config.readable
    saves = any(one is not None for one in (run.options.final_regressor, text.readable_model, text.invert_hash))
    tables = isinstance(run.learner, Inspectable) and run.learner.tables
    return [
        *console.best_pass(run.progress, run.saver.pass_kept() if saves else None, run.watch.stopped is not None),
        *([table_occupancy.line(tables, run.learner.rule)] if tables else []),
        *run.untaken.lines(),
        *([run.stopwatch.line(run.reader.parsing_seconds)] if run.config.timing.timing else []),
        console.cost(seconds, run.progress.examples),
    ]
