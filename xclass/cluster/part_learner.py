"""Learn from the next examples of a part, in a worker.

Idea      What `PartLearner.learn` returns is a function of its arguments alone, which is why Ray may call it again in
          another worker: a learner is built from the model of the round, learns, and is closed. Only the reading of the
          part goes on from round to round, as long as the `Cursor` agrees.
          While several parts are learned, classes do not become more: an example of a class that the model cannot learn
          waits, and the first example of each such class is sent to the driver, which adds the class to the model
          between the rounds. If only this part is learned, classes are added as in one process.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ..api import configuration
from ..api.configuration import Config
from ..api.learner_core import LearnerCore
from ..api.model_contents import ModelContents
from ..array_types import Int64s
from ..data import batch_ops, class_names
from ..data.batch import Batch
from ..data.schema import Schema
from ..errors import DataError
from ..reductions.core import label_arrays
from ..reductions.core.spec import LearnerUse
from ..run import passes
from . import delta
from .delta import Delta
from .part_progress import PartProgress
from .part_stream import Cursor, ModelNumbers, PartStream
from .part_worker import Counter, PartResult, PartWorker
from .shards import DataPart

MOST_NOTES = 10  # of a part in a round


class PartWork(NamedTuple):
    """Say what to learn."""

    part: DataPart
    cursor: Cursor
    examples: int  # number of examples to read
    passes_ended: int
    alone: bool  # whether no other part is learned in this round, so that classes can be added


class Fresh(NamedTuple):
    """Hold the first example of a class that the model cannot learn."""

    position: int
    name: str | None  # of the class; None if labels are numbers, or lists
    batch: Batch  # of this example alone


class Learned(NamedTuple):
    """Hold what was learned from a part in a round."""

    result: PartResult
    contents: ModelContents | None  # of the model, with the changes of its arrays in `arrays`; None if nothing was read
    arrays: Delta | None
    cursor: Cursor
    fresh: tuple[Fresh, ...]  # in the order of their positions


class PartLearner(PartWorker):
    """Learn parts in a worker; the parameters are those of `PartWorker`."""

    def __init__(self, number: int, folder: str, config: Config) -> None:
        # options that concern the model of -f, but not what is learned
        super().__init__(number, folder, config.with_values({"predict_only_model": False}))
        self._label_range = configuration.label_range(self._config)
        self._streams: dict[int, tuple[int, PartStream]] = {}  # part -> number of the pass, and its stream

    def learn(self, model: ModelContents | None, work: PartWork) -> Learned:
        """Learn from the examples that wait and from the next examples of a part.

        `model` are the contents of the model of the round, read only; None for a new one.
        """
        self._begin()
        # arrays of Ray cannot be written, and kernels are compiled for arrays that can
        base = None if model is None else model._replace(arrays={k: np.array(v) for k, v in model.arrays.items()})
        stream = self._stream(work, Schema() if base is None else base.schema)
        with self._learner(base, work) as learner:
            round_ = _Round(self._config, learner, stream, self._progress(learner), work.alone)
            with self._placed():
                stream.move_to(work.cursor)
                read = round_.run(work.examples)
                cursor = stream.cursor()
            contents = arrays = None
            if read:
                learner.schema.replace(stream.reader.schema)
                contents = learner.contents()
                arrays = delta.encode(contents.arrays, {} if base is None else base.arrays)
                contents = contents._replace(arrays={})
            sent, received = 0 if arrays is None else arrays.nbytes, 0 if base is None else nbytes(base)
            result = round_.counter.result(self._cost(round_.counter.examples, sent, received), cursor.ended)
        return Learned(
            result._replace(notes=result.notes[:MOST_NOTES]), contents, arrays, cursor, tuple(round_.fresh.values())
        )

    def _stream(self, work: PartWork, schema: Schema) -> PartStream:
        """Return the stream of a part, which continues where it is, or begins another pass."""
        ended, stream = self._streams.get(work.part.number, (-1, None))
        if stream is None or ended != work.passes_ended:
            numbers = ModelNumbers(self._config) if stream is None else stream.numbers
            stream = PartStream(work.part, self._config, self._label_range, numbers, schema)
            self._streams[work.part.number] = work.passes_ended, stream
        return stream

    def _learner(self, base: ModelContents | None, work: PartWork) -> LearnerCore:
        """Return the learner of a round, which uses one processor."""
        names = {} if base is None else {"named_labels": base.options.get("named_labels")}
        use = LearnerUse(passes=self._config.passes.passes, loaded=base is not None, averaged=True)
        config = self._config.with_values(names, use)
        contents = None if base is None else base._replace(arrays=dict(base.arrays))
        learner = LearnerCore(config, contents)
        learner.reduction.begin_pass(work.passes_ended, threads=1, held_out=config.passes.holds_out)
        for _ in range(work.passes_ended):
            learner.reduction.end_pass()
        return learner

    def _progress(self, learner: LearnerCore) -> PartProgress:
        holdout = self._config.passes.holds_out
        labels = self._config.reduction.labels
        totals = PartProgress(labels, None, holdout)
        totals.resume(learner.progress.counters(), learner.examples)
        learner.progress = totals
        return PartProgress(labels, None, holdout, learner.names.class_list, self._config.run.vw_exact)


class _Round:
    def __init__(
        self, config: Config, learner: LearnerCore, stream: PartStream, counted: PartProgress, alone: bool
    ) -> None:
        self._config, self._learner, self._stream, self._alone = config, learner, stream, alone
        self._by_name = config.parser.learn_names
        # first example of each class that the model cannot learn, by name or number; by its position if it has a list
        self.fresh: dict[Any, Fresh] = {}
        self._taken: set[int] = set()  # labels of the lists in `fresh`
        self.counter = Counter(learner, stream.reader, counted)

    def run(self, count: int) -> bool:
        """Learn the examples that wait and the next ones; return whether there were any."""
        learner = self._learner
        tasks = learner.tasks_of(self._examples(count), True)
        if learner.preview_size is not None:
            tasks = passes.previewed(tasks, learner.reduction)
        read = False
        for task in tasks:
            self.counter.count(task)
            learner.progress.count(task)
            read = True
        return read

    def _examples(self, count: int) -> Iterator[tuple[Batch, Any]]:
        """Yield the examples that wait, and then the next ones, as far as they are learned now."""
        waiting = self._stream.waiting()
        for batch, positions in itertools.chain([] if waiting is None else [waiting], self._stream.take(count)):
            batch, held_out = self._numbered(batch, positions, self._config.passes.held_out(positions))
            if batch.n:
                yield batch, held_out

    def _numbered(self, batch: Batch, positions: Int64s, held_out: Any) -> tuple[Batch, Any]:
        """Return the examples that are learned now, with the numbers of their classes in the model."""
        names = self._learner.names
        label = self._stream.numbers.of(batch.label, names.names)
        if self._by_name and self._alone and (label == 0).any():
            own = batch.label[label == 0]
            order = np.unique(own, return_index=True)[1]
            new = [self._stream.numbers.names.names[int(own[i]) - 1] for i in np.sort(order)]
            add_names(self._learner, self._config, self._stream.reader.part, new)
            label = self._stream.numbers.of(batch.label, names.names)
        numbered = batch._replace(label=label)
        if self._alone:
            return numbered, held_out
        labelled = ~np.isnan(label)
        unknown = np.zeros(batch.n, bool)
        if self._by_name:
            unknown[labelled] = label[labelled] == 0
            label[unknown & held_out] = class_names.UNKNOWN
        if batch.has_lists:
            row = np.repeat(np.arange(batch.n), np.diff(batch.label_start))
            unknown[row[~self._learner.reduction.can_learn(label_arrays.whole(batch))]] = True
        else:
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
        if batch.has_lists:
            self._keep_lists(batch, positions, rows)
            return
        known = self._stream.numbers.names.names
        for i in rows[np.sort(np.unique(batch.label[rows], return_index=True)[1])].tolist():
            name = known[int(batch.label[i]) - 1] if self._by_name else None
            key = name if name is not None else float(batch.label[i])
            if key not in self.fresh:
                one = batch_ops.pick([(batch, np.array([i]))])
                self.fresh[key] = Fresh(int(positions[i]), name, one)

    def _keep_lists(self, batch: Batch, positions: Int64s, rows: Int64s) -> None:
        """Take the examples with a label that the model cannot learn and no example before them has."""
        label = label_arrays.whole(batch)
        lacking = ~self._learner.reduction.can_learn(label)
        for i in rows.tolist():
            own = slice(batch.label_start[i], batch.label_start[i + 1])
            new = set(label[own][lacking[own]].tolist()) - self._taken
            if new:
                self._taken |= new
                position = int(positions[i])
                self.fresh[position] = Fresh(position, None, batch_ops.pick([(batch, np.array([i]))]))


def nbytes(contents: ModelContents) -> int:
    return sum(np.asarray(array).nbytes for array in contents.arrays.values())


def add_names(learner: LearnerCore, config: Config, part: DataPart, names: list[str]) -> None:
    """Add classes that a part has to a model; raise DataError if the options do not allow as many."""
    known = len(learner.names.names)
    limit = configuration.label_range(config)
    if limit.highest is not None and known + len(names) > limit.highest:
        raise DataError(
            f"{part.paths[0]}: {names[max(limit.highest - known, 0)]!r} is class number {limit.highest + 1} of the "
            f"data, and {limit.set_by} allows {limit.highest}; give the number of classes in all files"
        )
    learner.names.append(names)
