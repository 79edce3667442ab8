"""Learn on a cluster for a program: the run of the command, whose model goes into the learner of the program.

Idea      The run has a learner of its own. That of the program changes only when the run is complete, so an error
          leaves it as it was. Nothing is printed, and signals have the effects that the program has chosen.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...api import model_contents
from ...api.configuration import Config
from ...api.learner_core import LearnerCore
from ...api.model_contents import ModelContents
from ...api.progress import Progress
from ...data import class_names
from ...kernels import jit
from ...run.checkpoints import Saver
from ...run.report.console import Console
from ...run.run import Run
from ...run.signals import SignalHandler
from ...text import reader
from ..dispatch import engine_of
from ..session import Session
from ..shards import PartFiles
from . import request
from .request import ProgramRequest


class Warnings(Console):
    """Issue warnings as Python warnings; other lines are not shown."""

    def __init__(self) -> None:
        super().__init__(quiet=True)

    def line(self, text: str) -> None:
        """Show nothing."""

    def warn(self, note: str) -> None:
        request.warn(note)


class NoHandler(SignalHandler):
    """Leave signals to the program."""

    def __enter__(self) -> NoHandler:
        return self


class Keeper(Saver):
    """Keep the model of a run that is complete in memory, as the bytes of its file."""

    model = b""

    def finish(self) -> tuple[str | None, dict[str, Any]]:
        self.model = model_contents.to_bytes(self._contents())
        return super().finish()

    def save_interrupted(self) -> str:
        """Save nothing, and return no message."""
        return ""


def fit(asked: ProgramRequest) -> None:
    """Learn in one pass; what was learned is put into the learner that is asked for."""
    learner = asked.learner
    jit.activate(hide_scipy=False)
    contents = request.contents_of(learner)
    _config(asked, (), asked.reading, contents)  # raises errors before Ray is started
    with Session(asked.cluster, request.warn) as session:
        found, reading = request.find(asked, session, asked.cluster.workers)
        learner.adapt(lambda lists: request.kind_of_labels(asked, session, found, reading, lists))
        config = _config(asked, found.paths, reading, contents)
        _take(learner.core, _learned(config, contents, session, found))


def _config(
    asked: ProgramRequest, paths: Sequence[str], reading: reader.ReaderOptions, contents: ModelContents | None
) -> Config:
    config = request.run_config(asked, paths, reading, contents)
    engine_of(config)
    return config


def _learned(config: Config, contents: ModelContents | None, session: Session, found: PartFiles) -> bytes:
    engine = engine_of(config)(session, found)
    run = Run(config, (), engine, Warnings(), Keeper)
    run.signals = NoHandler(engine.stop)
    run.execute(contents)
    assert isinstance(run.saver, Keeper)
    return run.saver.model


def _take(learner: LearnerCore, model: bytes) -> None:
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
