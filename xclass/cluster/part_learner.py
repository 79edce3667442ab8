"""Learn from the next examples of a part, in a worker.

Idea      What `PartLearner.learn` returns is a function of its arguments alone, which is why Ray may call it again in
          another worker: a learner is built from the model of the round, learns, and is closed. Only the reading of the
          part goes on from round to round, as long as the `Cursor` agrees.
          While several parts are learned, classes do not become more: an example of a class that the model cannot learn
          waits, and the first example of each such class is sent to the driver, which adds the class to the model
          between the rounds. If only this part is learned, classes are added as in one process.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ..api import configuration
from ..api.configuration import Config, LearnerUse
from ..api.learner import Learner
from ..api.model_contents import Contents
from ..api.skipped_steps import SkippedSteps
from ..array_types import Int64s
from ..data import batch_ops, class_names
from ..data.batch import Batch
from ..data.schema import Schema
from ..errors import XclassError
from ..kernels import jit
from ..run import passes
from ..run.label_notes import LabelNotes
from . import delta, shards
from .costs import Cost
from .delta import Delta
from .part_progress import Counts, PartProgress
from .part_stream import Cursor, ModelNumbers, PartStream
from .shards import Part

MOST_NOTES = 10  # of a part in a round


class Work(NamedTuple):
    """Say what to learn."""

    part: Part
    cursor: Cursor
    examples: int  # number of examples to read
    passes_ended: int
    alone: bool  # whether no other part is learned in this round, so that classes can be added


class Fresh(NamedTuple):
    """Hold the first example of a class that the model cannot learn."""

    position: int
    name: str | None  # of the class; None if labels are numbers
    batch: Batch  # of this example alone


class Learned(NamedTuple):
    """Hold what was learned from a part in a round."""

    contents: Contents | None  # of the model, with the changes of its arrays in `arrays`; None if nothing was read
    arrays: Delta | None
    cursor: Cursor
    counts: Counts
    fresh: tuple[Fresh, ...]  # in the order of their positions
    notes: tuple[str, ...]  # warnings
    report: tuple[str, ...]  # lines about malformed lines, at the end of the part
    skipped_steps: int
    bytes_read: int  # of the part, in this pass
    labels: LabelNotes | None  # in the first pass
    tallies: dict[str, Any]  # see `reductions.core.base.Learner.tallies`
    cost: Cost  # of this round, without the bytes sent


class PartLearner:
    """Be the worker that learns parts.

    Parameters
    ----------
    number : number of the worker, from 1
    folder : in which the names of files are, if this node has it
    config : options of the run
    """

    def __init__(self, number: int, folder: str, config: Config) -> None:
        shards.enter(folder)
        jit.activate()
        self.number = number
        # options that concern the model of -f, but not what is learned
        self._config = config = config.with_values({"predict_only_model": False})
        self._label_range = configuration.label_range(config, configuration.spec_of(config, self._use(True)))
        self._streams: dict[int, tuple[int, PartStream]] = {}  # part -> number of the pass, and its stream
        self._ended_at: float | None = None

    def ping(self) -> bool:
        """Return True, which shows that the worker runs."""
        return True

    def learn(self, model: Contents | None, work: Work) -> Learned:
        """Learn from the examples that wait and from the next examples of a part.

        Parameters
        ----------
        model : contents of the model of the round, read only; None for a new one
        work : what to learn

        Raises
        ------
        DataError
            if the part cannot be read or a line is malformed; the message names the worker.
        """
        begin, cpu = time.monotonic(), time.process_time()
        waited = 0.0 if self._ended_at is None else begin - self._ended_at
        # arrays of Ray cannot be written, and kernels are compiled for arrays that can
        base = None if model is None else model._replace(arrays={k: np.array(v) for k, v in model.arrays.items()})
        stream = self._stream(work, Schema() if base is None else base.schema)
        with self._learner(base, work) as learner:
            counted = self._progress(learner)
            round_ = _Round(self._config, learner, stream, counted, work.alone)
            try:
                stream.move_to(work.cursor)
                read = round_.run(work.examples)
                ended = stream.ended()
            except XclassError as error:
                raise type(error)(*with_place(error.args, place_of(self.number))) from None
            contents = arrays = None
            tallies = learner.reduction.tallies()
            if read:
                learner.schema.replace(stream.reader.schema)
                contents = learner.contents()
                arrays = delta.encode(contents.arrays, {} if base is None else base.arrays)
                contents = contents._replace(arrays={})
        reader = stream.reader.reader
        assert reader is not None
        self._ended_at = time.monotonic()
        return Learned(
            contents, arrays, Cursor(stream.position, stream.waiting_positions, ended), counted.counts(),
            tuple(round_.fresh.values()), tuple(round_.notes[:MOST_NOTES]), tuple(reader.report() if ended else ()),
            round_.skipped_steps.examples, reader.bytes,
            None if work.passes_ended else round_.labels, tallies,
            Cost(round_.examples, time.process_time() - cpu, 0, 0 if base is None else nbytes(base), waited),
        )  # fmt: skip

    def _stream(self, work: Work, schema: Schema) -> PartStream:
        """Return the stream of a part, which continues where it is, or begins another pass."""
        ended, stream = self._streams.get(work.part.number, (-1, None))
        if stream is None or ended != work.passes_ended:
            numbers = ModelNumbers(self._config) if stream is None else stream.numbers
            stream = PartStream(work.part, self._config, self._label_range, numbers, schema)
            self._streams[work.part.number] = work.passes_ended, stream
        return stream

    def _use(self, loaded: bool) -> LearnerUse:
        """Return how a learner is used."""
        return LearnerUse(passes=self._config.passes.passes, loaded=loaded, averaged=True)

    def _learner(self, base: Contents | None, work: Work) -> Learner:
        """Return the learner of a round, which uses one processor."""
        config = self._config
        if base is not None:
            config = config.with_values({"named_labels": base.options.get("named_labels")})
        contents = None if base is None else base._replace(arrays=dict(base.arrays))
        learner = Learner.from_config(config, self._use(base is not None), contents)
        learner.reduction.workers = 1
        for _ in range(work.passes_ended):
            learner.reduction.end_pass()
        return learner

    def _progress(self, learner: Learner) -> PartProgress:
        """Return the counts of a round."""
        holdout = passes.HeldOutLines(self._config.passes).enabled
        labels = self._config.reduction.labels
        totals = PartProgress(labels, None, holdout)
        totals.resume(learner.progress.counters(), learner.examples)
        learner.progress = totals
        return PartProgress(labels, None, holdout, learner.names.class_list, self._config.run.vw_exact)


class _Round:
    """Learn from a part in one round.

    Attributes
    ----------
    fresh : first example of each class that the model cannot learn, by its name or number
    examples : number of examples learned or predicted
    labels : counts missing labels
    notes : warnings
    skipped_steps : counts examples whose update was skipped
    """

    def __init__(
        self, config: Config, learner: Learner, stream: PartStream, counted: PartProgress, alone: bool
    ) -> None:
        self._learner, self._stream, self._counted, self._alone = learner, stream, counted, alone
        self._held_out = passes.HeldOutLines(config.passes)
        self._by_name = config.parser.learn_names
        self.fresh: dict[Any, Fresh] = {}
        self.examples = 0
        self.labels = LabelNotes(config.reduction.labels == "multiclass", learner.names.class_list is not None)
        self.notes: list[str] = []
        self.skipped_steps = SkippedSteps()

    def run(self, count: int) -> bool:
        """Learn the examples that wait and the next ones; return whether there were any."""
        tasks = self._tasks(count)
        reduction = self._learner.reduction
        if self._learner.preview_size is not None:
            tasks = passes.previewed(tasks, reduction)  # no save points
        read = False
        for task in tasks:
            for stage in self._learner.stages:
                stage(task)
            highest_seen = self._learner.note(task)
            self._learner.progress.count(task)
            self._counted.count(task, highest_seen)
            self.labels.count(task, self._stream.reader.part.paths[0])
            self.examples += task.batch.n
            self.notes += [*task.notes, *self.skipped_steps.count(task)]
            read = True
        return read

    def _tasks(self, count: int) -> Iterator[Any]:
        """Yield the tasks to learn."""
        clock = self._learner.clock
        for batch, positions in self._examples(count):
            held_out = self._held_out.mask(positions)
            batch, held_out = self._numbered(batch, positions, held_out)
            if not batch.n:
                continue
            for task in self._learner.tasks(batch, True, clock, held_out):
                clock = float(task.clock[-1]) if task.batch.n else clock
                yield task

    def _examples(self, count: int) -> Iterator[tuple[Batch, Int64s]]:
        """Yield the examples that wait, and then the next ones."""
        waiting = self._stream.waiting()
        if waiting is not None:
            yield waiting
        for item in self._stream.take(count):
            reader = self._stream.reader.reader
            if reader is not None and reader.notes:
                self.notes += reader.notes
                reader.notes.clear()
            yield item

    def _numbered(self, batch: Batch, positions: Int64s, held_out: Any) -> tuple[Batch, Any]:
        """Return the examples that are learned now, with the numbers of their classes in the model."""
        names = self._learner.names
        label = self._stream.numbers.of(batch.label, names.names)
        if self._by_name and self._alone and (label == 0).any():
            own = batch.label[label == 0]
            order = np.unique(own, return_index=True)[1]
            names.append([self._stream.numbers.names.names[int(own[i]) - 1] for i in np.sort(order)])
            label = self._stream.numbers.of(batch.label, names.names)
        numbered = batch._replace(label=label)
        if self._alone:
            return numbered, held_out
        labelled = ~np.isnan(label)
        unknown = np.zeros(batch.n, bool)
        if self._by_name:
            unknown[labelled] = label[labelled] == 0
            label[unknown & held_out] = class_names.UNKNOWN
        rows = labelled & ~unknown & ~held_out
        unknown[rows] = ~self._learner.reduction.can_learn(label[rows].astype(np.int64))
        waits = unknown & ~held_out
        if not waits.any():
            return numbered, held_out
        self._keep(batch, positions, np.flatnonzero(waits))
        rows = np.flatnonzero(~waits)
        return batch_ops.pick([(numbered, rows)]), held_out[rows]

    def _keep(self, batch: Batch, positions: Int64s, rows: Int64s) -> None:
        """Let examples wait whose classes the model cannot learn, and take the first one of each class."""
        self._stream.wait(batch, positions, rows)
        known = self._stream.numbers.names.names
        for i in rows[np.sort(np.unique(batch.label[rows], return_index=True)[1])].tolist():
            name = known[int(batch.label[i]) - 1] if self._by_name else None
            key = name if name is not None else float(batch.label[i])
            if key not in self.fresh:
                one = batch_ops.pick([(batch, np.array([i]))])
                self.fresh[key] = Fresh(int(positions[i]), name, one)


def nbytes(contents: Contents) -> int:
    """Return the bytes of the arrays of a model."""
    return sum(np.asarray(array).nbytes for array in contents.arrays.values())


def place_of(number: int) -> str:
    """Return the number of a worker that is this process, with the process and its node, for messages."""
    return f"worker {number}, process {os.getpid()} on {socket.gethostname()}"


def with_place(lines: tuple[Any, ...], place: str) -> tuple[Any, ...]:
    """Return the lines of an error, the first with the worker that it happened in."""
    return (f"{lines[0]} ({place})", *lines[1:]) if lines else lines
