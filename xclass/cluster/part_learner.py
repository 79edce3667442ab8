"""Learn from the next examples of a part, in a worker, and merge a range of what all workers have changed.

Idea      What `PartLearner.learn` returns is a function of its arguments alone, which is why Ray may call it again in
          another worker. A worker keeps its tables, and gets what has changed in them; one that has them not, or not
          those of the round before, gets all ranges of the tables as they were then, too. The rest of a learner is
          built anew in each round. The reading of the part goes on as long as the `Cursor` agrees.
          While several parts are learned, classes do not become more: an example of a class that the model cannot learn
          waits, and the first example of each such class is learned by all workers before the next round, so that all
          have the same classes. If only this part is learned, classes are added as in one process.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..abilities.merge import ranges
from ..api import configuration
from ..api.configuration import Config
from ..api.learner_core import LearnerCore
from ..api.model_contents import ModelContents
from ..array_types import Int64s
from ..binary import gd
from ..data import batch_ops, class_names
from ..data.batch import Batch
from ..data.schema import Schema
from ..errors import DataError
from ..reductions.core import label_arrays
from ..reductions.core.spec import LearnerUse
from ..run import passes
from . import session, tables
from .part_progress import PartProgress
from .part_stream import Cursor, ModelNumbers, PartStream
from .part_worker import Counter, PartResult, PartWorker
from .shards import DataPart
from .tables import RangeLines, Tables

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
    """Hold what was learned from a part in a round, without the large tables."""

    result: PartResult
    contents: ModelContents | None  # of the model; None if nothing was read
    before: ModelContents | None  # of the model before; None if it is that of the round
    cursor: Cursor
    fresh: tuple[Fresh, ...]  # in the order of their positions


class RoundState(NamedTuple):
    """Hold what a round begins with."""

    number: int  # of the rounds before
    contents: ModelContents | None  # None for a new model. If they are live, ranges have the large tables
    ranges: Sequence[Any]  # references to all ranges of the tables as they were before the changes of the last round
    fresh: Sequence[tuple[DataPart, Fresh]]  # first examples of new classes


class PartLearner(PartWorker):
    """Learn parts in a worker; the parameters are those of `PartWorker`."""

    def __init__(self, number: int, folder: str, config: Config) -> None:
        # options that concern the model of -f, but not what is learned
        super().__init__(number, folder, config.with_values({"predict_only_model": False}))
        self._label_range = configuration.label_range(self._config)
        self._streams: dict[int, tuple[int, PartStream]] = {}  # part -> number of the pass, and its stream
        self._tables = Tables()
        # number of the rounds before that the tables are of, and whether this worker has learned since
        self._held: tuple[int, bool] | None = None

    def learn(
        self, state: RoundState, work: PartWork, place: int, workers: int, *changes: RangeLines
    ) -> tuple[Any, ...]:
        """Learn from the examples that wait and from the next examples of a part.

        Return a `Learned` and, for ranges as many as `workers`, number `place` before it is learned, and the changes of
        each; if there is a single one, the whole of it afterwards. `changes` are those of the last round, by range.
        """
        self._begin()
        with self._opened(state, work.passes_ended, changes) as learner, self._placed():
            stream = self._stream(work, learner.schema)
            round_ = _Round(self._config, learner, stream, self._progress(learner), work.alone)
            cursor = round_.add_classes(state.fresh, work, place == 0)
            before = live_contents(learner) if workers > 1 else None
            if before is not None:
                self._tables = Tables(before)
                own = self._tables.of_range(place, workers)
                self._tables.mark()
            stream.move_to(cursor)
            read = round_.run(work.examples)
            cursor = stream.cursor()
            learner.schema.replace(stream.reader.schema)
            for table in learner.reduction.tables if workers > 1 else ():
                gd.apply_regularisation(table)
            after = live_contents(learner)
            self._tables.go_on(after)
            found = [own, *(self._tables.changes(k, workers) for k in range(workers))] if workers > 1 else []
            found = found or [self._tables.of_range(0, 1)]
            self._held = (state.number, True) if workers > 1 else (state.number + 1, False)
            # ranges that this worker merges stay here
            sent = nbytes(after) + sum(tables.nbytes(one) for k, one in enumerate(found) if k not in (0, place + 1))
            result = round_.counter.result(self._cost(round_.counter.examples, sent, self._received), cursor.ended)
        changed = state.fresh or state.contents is None or state.contents.live is None
        learned = Learned(
            result._replace(notes=result.notes[:MOST_NOTES]), after._replace(live={}) if read else None,
            before._replace(live={}) if before is not None and changed else None, cursor,
            tuple(round_.fresh.values()),
        )  # fmt: skip
        return learned, *found

    def contents(self, state: RoundState, passes_ended: int, *changes: RangeLines) -> ModelContents:
        """Return the contents of a model file, without new classes."""
        with self._opened(state, passes_ended, changes) as learner:
            contents = with_arrays(learner.contents())
            self._tables, self._held = Tables(learner.contents(live=True)), (state.number, False)
        return contents

    def merge(self, base: RangeLines, facts: ranges.Merging, *models: RangeLines) -> tuple[ranges.Report, RangeLines]:
        """Merge a range, see `tables.merged`."""
        with self._busy():
            return tables.merged(base, models, facts)

    def keep(self, *held: RangeLines) -> None:
        """Keep ranges, so that another node has them, too, until the next ones."""
        self._kept = held

    def _opened(self, state: RoundState, passes_ended: int, changes: Sequence[RangeLines]) -> LearnerCore:
        """Return the learner of a round, which uses one processor."""
        held, self._held = self._held, None
        contents = state.contents
        self._received = sum(map(tables.nbytes, changes)) + (0 if contents is None else nbytes(contents))
        if contents is not None and contents.live is not None:
            if held not in ((state.number, False), (state.number - 1, True)):
                held, self._tables = None, Tables()
                for one in map(session.fetched, state.ranges):
                    self._tables.write(one)
                    self._received += tables.nbytes(one)
            for one in changes if held != (state.number, False) else ():
                self._tables.write(one)
            contents = contents._replace(live=self._tables.live)
        names = {} if contents is None else {"named_labels": contents.options.get("named_labels")}
        use = LearnerUse(passes=self._config.passes.passes, loaded=contents is not None, averaged=True)
        config = self._config.with_values(names, use)
        if contents is not None:
            # arrays of Ray cannot be written, and kernels are compiled for arrays that can
            contents = contents._replace(arrays={k: np.array(v) for k, v in contents.arrays.items()})
        learner = LearnerCore(config, contents)
        learner.reduction.begin_pass(passes_ended, threads=1, held_out=config.passes.holds_out)
        for _ in range(passes_ended):
            learner.reduction.end_pass()
        return learner

    def _stream(self, work: PartWork, schema: Schema) -> PartStream:
        """Return the stream of a part, which continues where it is, or begins another pass."""
        ended, stream = self._streams.get(work.part.number, (-1, None))
        if stream is None or ended != work.passes_ended:
            numbers = ModelNumbers(self._config) if stream is None else stream.numbers
            stream = PartStream(work.part, self._config, self._label_range, numbers, schema)
            self._streams[work.part.number] = work.passes_ended, stream
        return stream

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

    def add_classes(self, fresh: Sequence[tuple[DataPart, Fresh]], work: PartWork, counts: bool) -> Cursor:
        """Learn the first example of each new class; return the cursor of a part, in which these do not wait.

        `counts` says whether this worker counts them for the progress.
        """
        learner = self._learner
        learned: set[int] = set()
        new: set[int] = set()
        numbers = {name: number for number, name in enumerate(learner.names.names, 1)}
        batches = []
        for part, one in fresh:
            batch = one.batch
            if batch.has_lists:
                label = label_arrays.whole(batch)
                lacking = set(label[~learner.reduction.can_learn(label)].tolist())
                if lacking <= new:
                    continue  # examples before had its labels
                new |= lacking
            if one.name is not None:
                if one.name not in numbers:
                    add_names(learner, self._config, part, [one.name])
                    numbers[one.name] = len(learner.names.names)
                batch = batch._replace(label=np.array([float(numbers[one.name])]))
            batches.append((batch, np.zeros(1, np.int64)))
            if part.number == work.part.number:
                learned.add(one.position)
        for task in learner.learn([batch_ops.pick(batches)]) if batches else ():
            if counts:
                self.counter.count(task)
        if not counts:
            learner.reduction.clear_tallies(learner.spec)
            learner.count_anew()
        waiting = tuple(position for position in work.cursor.waiting if position not in learned)
        return work.cursor._replace(waiting=waiting)

    def run(self, count: int) -> bool:
        """Learn the examples that wait and the next ones; return whether there were any."""
        learner = self._learner
        tasks = learner.tasks_of(self._examples(count), True)
        if learner.reduction.awaited:
            tasks = passes.previewed(tasks, learner.reduction)
        read = False
        for task in tasks:
            self.counter.execute(task)
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


def with_arrays(contents: ModelContents) -> ModelContents:
    """Return contents with contiguous arrays of their own, which can be sent and compared."""
    return contents._replace(arrays={name: np.array(array, order="C") for name, array in contents.arrays.items()})


def live_contents(learner: LearnerCore) -> ModelContents:
    """Return contents without large tables, which are live."""
    return with_arrays(learner.contents(live=True))


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
