"""Learn on a cluster for a program: the run of the command, whose model goes into the learner of the program.

Idea      The run has a learner of its own. That of the program changes only when the run is complete, so an error
          leaves it as it was. Nothing is printed, and signals have the effects that the program has chosen.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...api import configuration, model_contents
from ...api.configuration import Config
from ...api.learner import Learner
from ...api.model_contents import Contents
from ...api.progress import Progress
from ...data import class_names
from ...errors import UsageError
from ...kernels import jit
from ...run.checkpoints import Saver
from ...run.report.console import Console
from ...run.run import Run
from ...run.signals import SignalHandler
from .. import averaged_run
from ..averaged_run import AveragedRun
from ..exact import run as exact_run
from ..exact.run import SpreadRun
from ..session import Session
from . import request
from .request import Files, Request

SYNC_EVERY = 10_000  # examples of each worker between two averages, for reductions that have no parts


class Warnings(Console):
    """Issue warnings as Python warnings; other lines are not shown."""

    def __init__(self) -> None:
        super().__init__(quiet=True)
        self._issued: set[str] = set()

    def line(self, text: str) -> None:
        """Show nothing."""

    def warn(self, note: str) -> None:
        """Issue a warning once."""
        if note not in self._issued:
            self._issued.add(note)
            request.warn(note)


class NoHandler(SignalHandler):
    """Leave signals to the program."""

    def __enter__(self) -> NoHandler:
        return self


class Keeper(Saver):
    """Keep the model of a run that is complete in memory, as the bytes of its file."""

    model = b""

    def finish(self) -> tuple[str | None, dict[str, Any]]:
        """Keep the model."""
        self.model = model_contents.to_bytes(self._contents())
        return super().finish()

    def save_interrupted(self) -> str:
        """Save nothing, and return no message."""
        return ""


class InProgram(Run):
    """Be a run that a program has started."""

    saver: Keeper
    new_saver = Keeper

    def prepare_for_program(self) -> None:
        """Show nothing but warnings, and do not handle signals."""
        self.console = Warnings()
        self.signals = NoHandler(self._stop)


class SpreadInProgram(InProgram, SpreadRun):
    """Execute a run in exact mode for a program."""


class AveragedInProgram(InProgram, AveragedRun):
    """Execute a run with averages for a program."""


def fit(asked: Request) -> None:
    """Learn in one pass; what was learned is put into the learner that is asked for."""
    learner = asked.learner
    jit.activate(hide_scipy=False)
    contents = request.contents_of(learner)
    with request.connected(asked) as session:
        found = request.find(asked, session, asked.cluster.workers)
        learner.use_names_if(lambda: request.are_names(asked, session, found))
        config = request.run_config(asked, found, contents)
        _take(learner, _learned(config, contents, session, found))


def _learned(config: Config, contents: Contents | None, session: Session, found: Files) -> bytes:
    """Execute a run and return the bytes of its model."""
    notes: Sequence[str] = ()
    run: InProgram
    if config.cluster.sync_every is None and "spread" in config.reduction.abilities:
        count, _ = exact_run.parts_of(config, config.cluster.workers)
        run = spread = SpreadInProgram(config, notes, count)
        spread.session = session
    else:
        if config.cluster.sync_every is None:
            _check_averages(config)
            config = config.with_values({"sync_every": SYNC_EVERY})
            config.related()
        averaged_run.check(config)
        run = AveragedInProgram(config, notes, session, found.paths, found.sizes)
    run.prepare_for_program()
    run.execute(contents)
    return run.saver.model


def _check_averages(config: Config) -> None:
    """Raise UsageError if models of parts of the data cannot be averaged, and the model has no parts either."""
    if config.reduction.not_merged:
        raise UsageError(
            f"{configuration.chosen_name(config)} has no parts that learn by themselves, and its models cannot be "
            f"averaged: {config.reduction.not_merged}; learn in one process, or choose oaa, cpt, multiclass or "
            "softmax_tree"
        )


def _take(learner: Learner, model: bytes) -> None:
    """Replace what a learner has learned by a model of the same options that has learned more."""
    contents = model_contents.from_bytes(model)
    names = class_names.separated(contents.options.get("named_labels") or "")
    learner.names.append(list(names[len(learner.names.names) :]))
    learner.names.highest_seen = max(learner.names.highest_seen, len(names))
    learner.replace_contents(contents)
    learner.examples, learner.clock = contents.examples, contents.clock
    learner.progress = Progress(learner.config.reduction.labels, None)
    if contents.counters is not None:
        learner.progress.resume(contents.counters, contents.examples)
