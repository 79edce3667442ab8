"""Predict on a cluster: workers predict parts of the data, and the answers are put in order.

Idea      Every worker has the model, and predicts one part after the other. This process writes the lines of -p and -r
          in the order of the parts, so that the files have the bytes of one process, and adds up the counts.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..api.learner_core import LearnerCore
from ..api.model_contents import ModelContents
from ..array_types import UInt8s
from ..run import predictions as outputs
from . import shards
from .averaging import as_bytes, from_bytes
from .engines import ClusterEngine
from .part_progress import PartProgress
from .part_worker import NO_COST, Counter, PartResult, PartWorker
from .session import Session
from .shards import DataPart, PartReader

AHEAD = 2  # parts for each worker that are predicted before they are written


class Predicted(NamedTuple):
    lines: dict[str, bytes]  # of -p and -r, by the keys of `outputs.open_writers`
    result: PartResult


class PredictingWorker(PartWorker):
    """Hold the whole model in a worker that predicts parts; the base class of the actors."""

    _learner: LearnerCore | None = None

    def _opened(self, model: UInt8s | None) -> LearnerCore:
        """Return the learner of a model, which is the same in all calls."""
        if self._learner is None:
            contents = None if model is None else from_bytes(model)
            self._learner = LearnerCore(self._config, contents)
            self._learner.reduction.begin_pass(0, threads=1)
        return self._learner

    def _reader(self, learner: LearnerCore, part: DataPart) -> PartReader:
        return PartReader(part, self._config, learner.names, learner.label_range, learner.schema)


class PartPredictor(PredictingWorker):
    """Predict parts in a worker, for the files of a run."""

    def predict(self, model: UInt8s | None, part: DataPart) -> Predicted:
        """Predict a part by the bytes of a model, the same in all calls; None for a new one."""
        self._begin()
        received = 0 if self._learner is not None or model is None else len(model)
        learner = self._opened(model)
        with tempfile.TemporaryDirectory(prefix="xclass-") as folder, self._placed():
            predicted = self._predicted(learner, part, Path(folder))
        sent = sum(map(len, predicted.lines.values()))
        cost = self._cost(predicted.result.counts.examples, sent, received)
        return predicted._replace(result=predicted.result._replace(cost=cost))

    def _predicted(self, learner: LearnerCore, part: DataPart, folder: Path) -> Predicted:
        config = self._config
        learner.reduction.clear_tallies(learner.spec)
        given = [option for option in ("predictions", "raw_predictions") if getattr(config.run, option) is not None]
        own = config.with_values({option: str(folder / option) for option in given})
        writers = outputs.open_writers(own, learner)
        reader = self._reader(learner, part)
        counter = Counter(learner, reader, learner.new_progress(PartProgress))
        for task in learner.tasks_of(((batch, None) for batch, _ in reader.after(0)), False):
            counter.execute(task)
            outputs.write(writers, task)
        for writer in writers.values():
            writer.close()
        return Predicted({option: (folder / option).read_bytes() for option in writers}, counter.result(NO_COST))


class Predicting(ClusterEngine):
    """Predict for the command."""

    def learner(self, contents: ModelContents | None) -> LearnerCore:
        config = self.run.config
        self._to_predict = shards.pieces(self._files, config.cluster.workers)
        self._model = None if contents is None else self._session.put(as_bytes(contents))
        self._start_workers(PartPredictor, min(config.cluster.workers, len(self._to_predict)))
        return LearnerCore(config, contents)  # for the banner and the summary

    def notes(self) -> list[str]:
        count, parts = len(self._workers), len(self._to_predict)
        workers, several = f"{count} worker{'s' * (count > 1)}", "s" * (parts > 1)
        return [f"{workers}: {parts} part{several} of the data are predicted in order"]

    def run_pass(self) -> None:
        for k, (i, one) in enumerate(predicted_in_order(self._session, self._workers, self._model, self._to_predict)):
            for option, lines in one.lines.items():
                self.run.writers[option].write_lines(lines)
            self._add(self._to_predict[k], i, one.result)
            if self.run.signals.stopped:
                return


def predicted_in_order(
    session: Session, workers: Sequence[Any], model: Any, parts: Sequence[DataPart], *arguments: Any
) -> Iterator[tuple[int, Any]]:
    """Let workers predict parts, some of them ahead, and yield for each part its worker, from 0, and its answers.

    Their method `predict` gets the model, the part and the arguments.
    """
    chosen = [k % len(workers) for k in range(len(parts))]
    return session.answers(
        workers, chosen, lambda worker, k: worker.predict.remote(model, parts[k], *arguments), AHEAD * len(workers)
    )
