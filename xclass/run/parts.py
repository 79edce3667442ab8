"""Hold the parts of a run, which engines and the end of the run use, and count the examples that have passed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..api.configuration import Config
from ..api.learner_core import LearnerCore
from ..api.progress import Progress
from ..api.skipped_steps import SkippedSteps
from ..cache.source import Source
from ..errors import ModelError
from ..reductions.core.contract import BatchTask
from ..system import compiler_memory
from .checkpoints import Saver
from .inspect.inspector import RunInspector
from .inspect.tree_dump import TreeDump
from .label_notes import LabelNotes
from .passes import SavePoint
from .predictions import files as outputs
from .predictions.writer import Writer
from .report.console import Console
from .results.recorder import Recorder
from .signals import SignalHandler
from .timing import Stopwatch


class RunParts:
    """Hold the parts of a run; `Run` sets those without a value when it begins.

    Parameters
    ----------
    config : options of the run
    console : writes the messages
    stop : called by a signal
    save_state : saves what a run on a cluster needs to be continued, before the model is saved
    """

    model: LearnerCore
    progress: Progress
    saver: Saver
    inspector: RunInspector | None
    tree_dump: TreeDump
    reader: Source
    skipped_steps: SkippedSteps
    labels: LabelNotes
    writers: dict[str, Writer]
    recorder: Recorder
    counted_before = 0  # examples that the progress had counted before this run

    def __init__(
        self, config: Config, console: Console, stop: Callable[[], None], save_state: Callable[[], None]
    ) -> None:
        self.config = config
        self.options: Any = config.run
        self.learning = not config.run.testonly
        self.console = console
        self.signals = SignalHandler(stop)
        self.stopwatch = Stopwatch()
        self._save_state = save_state

    def count(self, task: BatchTask) -> None:
        """Count a task that has passed the stages, and report it."""
        first = self.progress.examples == 0
        self._report(task, self.model.note(task))
        if first:  # by now the stages have loaded their kernels
            compiler_memory.release()

    def _report(self, task: BatchTask, highest_seen: np.ndarray | None) -> None:
        """Show the messages and rows of a task that is counted, and write its predictions.

        Parameters
        ----------
        task : the task of n examples
        highest_seen : float64[n], as `LearnerCore.note` has returned it
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

    def save_at(self, point: SavePoint) -> None:
        """Save the model at a save point, or tell why it is not saved."""
        try:
            if point.path is not None and point.path == self.options.final_regressor and not point.refusal:
                self._save_state()
            refusal = self.saver.save_at(point)
        except ModelError as error:
            refusal = str(error)
        if refusal:
            self.console.warn(f"{point.message}: the model was not saved: {refusal}")
        else:
            self.console.info(point.message)
