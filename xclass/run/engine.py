"""Execute the passes of a run: in this process, or in the workers of a cluster, whose engines are in `cluster`.

A run is given an engine. The engine makes the learner, opens the data and executes passes; the run counts, shows and
saves.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from ..api.learner_core import LearnerCore
from ..api.model_contents import Contents
from ..api.progress import Progress
from ..data.batch import Batch
from ..reductions.core.contract import BatchTask
from ..system import thread_limit
from ..system.pipeline import Pipeline
from . import data_source, learner_use, passes, warm_up
from .parts import RunParts
from .passes import SavePoint


class Engine:
    """Execute the passes of a run. A subclass defines `learner`, `source`, and either `tasks` or `run_pass`.

    Attributes
    ----------
    run : the run, which sets it
    new_progress : class that counts the examples
    """

    run: RunParts
    new_progress: type[Progress] = Progress
    pipeline: Pipeline[BatchTask] | None = None

    def learner(self, contents: Contents | None) -> LearnerCore:
        """Return the learner of the run; `contents` are those of the model of -i."""
        raise NotImplementedError

    def source(self) -> Any:
        """Open the data, and return their `cache.source.Source` or what stands for it."""
        raise NotImplementedError

    def tasks(self) -> Iterator[BatchTask | SavePoint]:
        """Yield the tasks of one pass, and the save points between them."""
        raise NotImplementedError

    def notes(self) -> list[str]:
        """Return lines about a cluster for the start of the run."""
        return []

    def compile(self) -> None:
        """Compile the kernels that this process needs."""

    def preview(self) -> None:
        """Show the learner all of the data in a separate pass, if it needs that before it learns."""

    def run_pass(self) -> None:
        """Execute one pass, emptying the pipeline at each save point so that all examples before it are learned."""
        run, tasks = self.run, self.tasks()
        if run.model.preview_size is not None:
            tasks = passes.previewed(tasks, run.model.reduction)
        stages = run.stopwatch.stages(run.model.stages)
        if run.inspector is not None:
            stages = run.inspector.stages(stages)
        while True:
            segment = passes.PassSegment(tasks)
            self.pipeline = Pipeline(segment, stages)
            if run.signals.stopped:  # the signal came while there was no pipeline to stop
                self.pipeline.stop()
            for task in self.pipeline:
                with thread_limit.working():
                    run.count(task)
            if run.signals.stopped or segment.save_point is None:
                return
            run.save_at(segment.save_point)

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
                self.run.model.note(task)

    def stop(self) -> None:
        """Stop reading and learning, after a signal."""

    def end(self) -> list[str]:
        """Get what the workers have learned, and return lines of the summary about what they have spent."""
        return []


class Local(Engine):
    """Read and learn in this process; `peeked` are bytes that were already read from standard input."""

    def __init__(self, peeked: bytes = b"") -> None:
        self._peeked = peeked

    def learner(self, contents: Contents | None) -> LearnerCore:
        return LearnerCore(self.run.config, learner_use.of_run(self.run.config), contents)

    def compile(self) -> None:
        config = self.run.config
        warm_up.prepare(config, learner_use.of_run(config), self.run.model.reduction, self.run.reader.parsing)

    def source(self) -> Any:
        run, config = self.run, self.run.config
        # names of features need the lines that they are read from; VW's audit shows none for examples from a cache
        vw_shows_none = config.run.vw_exact and config.shuffle.shuffle is None
        shown = (config.readable.invert_hash, config.explainer.explain, config.results.errors)
        lines = any(option is not None for option in shown) or (config.readable.audit and not vw_shows_none)
        self._stream = data_source.opened(config, run.model, lines, self._peeked)
        return self._stream.source

    def tasks(self) -> Iterator[BatchTask | SavePoint]:
        return self._tasks(self._stream)

    def _tasks(self, stream: Iterable[tuple[Batch, np.ndarray] | SavePoint]) -> Iterator[BatchTask | SavePoint]:
        """Yield the tasks of the examples of a stream, and the save points between them."""
        run = self.run

        def timed(tasks: Iterator[BatchTask]) -> Iterator[BatchTask]:
            if run.inspector is not None:
                run.model.preparation.one_by_one = run.inspector.one_by_one
                # where the names of features are is not known before the pass has begun
                if run.reader.parsing and run.reader.format is not None:
                    run.inspector.read_from(run.reader.format)
                run.model.preparation.keep_names = not run.reader.parsing
            return run.stopwatch.each("features", thread_limit.each(tasks))

        return passes.tasks(run.model, run.stopwatch.each("source", stream), run.learning, run.model.clock, timed)

    def preview(self) -> None:
        run, reduction = self.run, self.run.model.reduction
        if run.model.preview_size != 0:
            return
        self.pipeline = Pipeline(passes.PassSegment(self._tasks(self._stream.unshuffled())), [reduction.preview])
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
