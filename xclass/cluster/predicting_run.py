"""Execute a run that predicts on a cluster: workers predict parts of the data, and the answers are put in order.

Idea      Every worker has the model, and predicts one part after the other. This process writes the lines of -p and -r
          in the order of the parts, so that the files have the bytes of one process, and adds up the counts.
"""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..api.configuration import Config, LearnerUse
from ..api.learner import Learner
from ..api.model_contents import Contents
from ..array_types import UInt8s
from ..errors import XclassError
from ..kernels import jit
from ..run import learner_use
from ..run.label_notes import LabelNotes
from ..run.predictions import files as outputs
from . import shards
from .averaging import as_bytes, from_bytes
from .costs import NO_COST, Cost, added
from .part_learner import place_of, with_place
from .part_progress import Counts, PartProgress
from .parts_source import PartsRun, PartsSource
from .session import LostResultError, Session
from .shards import Part, PartReader

AHEAD = 2  # parts for each worker that are predicted before they are written
FILES = {"predictions": "predictions", "raw": "raw_predictions"}  # key of `outputs.open_writers` -> option


class Predicted(NamedTuple):
    """Hold the answers of a part."""

    lines: dict[str, bytes]  # of -p and -r, by the keys of `FILES`
    counts: Counts
    tallies: dict[str, Any]
    labels: LabelNotes
    notes: tuple[str, ...]  # warnings
    report: tuple[str, ...]  # lines about malformed lines
    bytes_read: int
    cost: Cost


class Predictor:
    """Be a worker that has the whole model and predicts parts; the base of the actors.

    Parameters
    ----------
    number : number of the worker, from 1
    folder : in which the names of files are, if its node has it
    config : options of the run
    """

    hides_scipy = True  # whether numba shall not look for SciPy, see `kernels.jit.activate`

    def __init__(self, number: int, folder: str, config: Config) -> None:
        shards.enter(folder)
        jit.activate(hide_scipy=self.hides_scipy)
        self._number, self._config = number, config
        self._learner: Learner | None = None

    def ping(self) -> bool:
        """Return True, which shows that the worker runs."""
        return True

    def _use(self) -> LearnerUse:
        """Return how the learner is used."""
        return learner_use.of_run(self._config)

    def _opened(self, model: UInt8s | None) -> Learner:
        """Return the learner of a model, which is the same in all calls."""
        if self._learner is None:
            contents = None if model is None else from_bytes(model)
            self._learner = Learner.from_config(self._config, self._use(), contents)
            self._learner.reduction.workers = 1
        return self._learner

    @contextlib.contextmanager
    def _placed(self) -> Iterator[None]:
        """Name the worker in errors of the block."""
        try:
            yield
        except XclassError as error:
            raise type(error)(*with_place(error.args, place_of(self._number))) from None


class PartPredictor(Predictor):
    """Be the worker that predicts parts for the files of a run."""

    _ended_at: float | None = None

    def predict(self, model: UInt8s | None, part: Part) -> Predicted:
        """Predict a part.

        Parameters
        ----------
        model : bytes of the model, the same in all calls; None for a new one
        part : the part

        Raises
        ------
        DataError
            if the part cannot be read or a line is malformed; the message names the worker.
        """
        begin, cpu = time.monotonic(), time.process_time()
        waited = 0.0 if self._ended_at is None else begin - self._ended_at
        received = 0 if self._learner is not None or model is None else len(model)
        learner = self._opened(model)
        with tempfile.TemporaryDirectory(prefix="xclass-") as folder, self._placed():
            predicted = self._predicted(learner, part, Path(folder))
        sent = sum(map(len, predicted.lines.values()))
        self._ended_at = time.monotonic()
        cost = Cost(predicted.counts.examples, time.process_time() - cpu, sent, received, waited)
        return predicted._replace(cost=cost)

    def _predicted(self, learner: Learner, part: Part, folder: Path) -> Predicted:
        """Predict a part, with temporary files in a folder."""
        config = self._config
        learner.reduction.clear_tallies(learner.spec.wanted)
        given = [option for option in FILES.values() if getattr(config.run, option) is not None]
        own = config.with_values({option: str(folder / option) for option in given})
        writers = outputs.open_writers(own, learner.names, learner.reduction.lists_scores)
        lists = learner.reduction.lists_scores or config.listing_options.probabilities
        counted = PartProgress(
            config.reduction.labels, None, as_vw=config.run.vw_exact, lists_scores=config.run.vw_exact and bool(lists)
        )
        labels = LabelNotes(config.reduction.labels == "multiclass", learner.names.class_list is not None)
        reader = PartReader(part, config, learner.names, learner.label_range, learner.schema)
        notes: list[str] = []
        clock = learner.clock
        for batch, _ in reader.after(0):
            for task in learner.tasks(batch, False, clock):
                for stage in learner.stages:
                    stage(task)
                highest_seen = learner.note(task)
                counted.count(task, highest_seen)
                assert reader.reader is not None  # there is a batch
                labels.count(task, reader.reader.name)
                notes += task.notes
                outputs.write(writers, task, highest_seen)
        assert reader.reader is not None  # it was iterated
        for writer in writers.values():
            writer.close()
        lines = {key: (folder / FILES[key]).read_bytes() for key in writers}
        notes = [*reader.reader.notes, *notes]
        return Predicted(
            lines, counted.counts(), learner.reduction.tallies(), labels, tuple(notes), tuple(reader.reader.report()),
            reader.reader.bytes, NO_COST,
        )  # fmt: skip


class PredictingRun(PartsRun):
    """Execute a run that predicts; the parameters are those of `PartsRun`."""

    _model: Any = None  # reference to the bytes of the model

    def _learner(self, contents: Contents | None) -> Learner:
        """Return the learner, from which the banner and the summary take their facts, and start the workers."""
        count = self.config.cluster.workers
        self._to_predict = shards.pieces(self._paths, self._sizes, count, self._splittable)
        self._model = None if contents is None else self._session.put(as_bytes(contents))
        self._start_workers(PartPredictor, min(count, len(self._to_predict)))
        return super()._learner(contents)

    def _source(self) -> Any:
        """Return what stands for the data."""
        return PartsSource(self._paths, self._sizes, 1)

    def _banner(self) -> None:
        """Show the banner, with a line about the cluster."""
        count = len(self._workers)
        parts = len(self._to_predict)
        self.notes = [
            *self.notes,
            f"{count} worker{'s' * (count > 1)}: {parts} part{'s' * (parts > 1)} of the data are predicted in order",
        ]
        super()._banner()

    def _run_pass(self) -> None:
        """Predict all parts, unless a signal ends the run."""
        assert isinstance(self.reader, PartsSource)
        for part, one in self._predicted():
            for key, lines in one.lines.items():
                self.writers[key].write_lines(lines)
            for row in self.progress.add(one.counts):
                self.console.table_line(row)
            self.model.reduction.add_tallies(one.tallies)
            self.labels.add(one.labels)
            for note in one.notes:
                self.console.warn(note)
            self.reader.read[part.number] = one.bytes_read
            self.reader.reports[part.number] = one.report
            self.console.move_bar(self.reader.position, self.progress.examples)
            if self.signals.stopped:
                return

    def _predicted(self) -> Iterator[tuple[Part, Predicted]]:
        """Yield the answers of the parts in order; some parts are predicted ahead."""
        for part, i, one in predicted_in_order(self._session, self._workers, self._model, self._to_predict):
            self._costs[i] = added(self._costs[i], one.cost)
            yield part, one

    def _end_pass(self) -> bool:
        """End the pass, which is the last one."""
        return self.saver.end_pass(self.progress.end_pass(), last=True)


def predicted_in_order(
    session: Session, workers: Sequence[Any], model: Any, parts: Sequence[Part], *arguments: Any
) -> Iterator[tuple[Part, int, Any]]:
    """Let workers predict parts, some of them ahead, and yield each part with its worker, from 0, and its answers.

    Parameters
    ----------
    workers : actors with a method `predict`
    model, arguments : arguments of `predict`, before and after the part
    """
    count = len(workers)
    refs: list[Any] = []
    for position, part in enumerate(parts):
        while len(refs) < min(len(parts), position + AHEAD * count):
            refs.append(workers[len(refs) % count].predict.remote(model, parts[len(refs)], *arguments))
        i = position % count
        while True:
            try:
                ((_, one),) = session.results([refs[position]], [workers[i]], [i + 1])
                break
            except LostResultError:  # with its node
                refs[position] = workers[i].predict.remote(model, part, *arguments)
        refs[position] = None  # frees the object store
        yield part, i, one


def execute(config: Config, contents: Contents | None, notes: Sequence[str] = ()) -> int:
    """Execute a run that predicts, and return its exit status; see `PartsRun.executed`."""
    return PredictingRun.executed(config, contents, notes)
