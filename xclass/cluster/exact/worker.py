"""Hold and learn the part of one worker.

    begin -> (learn, go_on ...) for step 0, 1, 2, ... -> advance ... at the end of a pass -> learn ...

A step is some items of the stream; it ends early at a save point and at the end of a pass, where the worker waits until
it is released. All arguments and results are bytes. A method whose step is not the next one, because the worker was
restarted or has missed a message, changes nothing and returns None; `crew` then repeats what is missing.
"""

from __future__ import annotations

import pickle
import time
import zlib
from collections.abc import Generator, Sequence
from typing import Any, NamedTuple

from ...abilities.find import ability
from ...abilities.spread.parts import without_features
from ...api.configuration import Config, LearnerUse
from ...api.learner_core import LearnerCore
from ...data.namespaces import IdleArguments
from ...data.schema import Schema
from ...errors import DataError, XclassError
from ...kernels import jit
from ...reductions.core.contract import BatchTask
from ...reductions.core.spec import Part
from ...run.passes import SavePoint
from ..part_worker import Cost, place_of, with_place
from ..shards import enter
from .task_stream import Cursor, Item, TaskStream

STEP_EXAMPLES, STEP_TASKS = 4096, 16  # a step ends when it has as many of either


class Facts(NamedTuple):
    """Hold what the whole shows about the data before they are read."""

    banner: list[str]
    name: str
    size: int | None
    rounds: int
    schema: Schema  # of the tables learned from, with those of the data


class Place(NamedTuple):
    """Say where a worker is."""

    cursor: Cursor = Cursor()
    stops: int = 0  # save points and ends of passes that it has met


class News(NamedTuple):
    """Hold what the first part tells about the data of a step."""

    items: list[Item]
    notes: list[str]
    idle: tuple[IdleArguments, ...]
    about: list[str]
    first_name: int  # position of the first of `names` among all names of classes
    names: list[str]  # those that were not sent before
    highest_placed: int
    name: str  # of the file
    position: int
    report: list[str]  # lines for the end of the run


class StepResult(NamedTuple):
    """Hold the results of a part for a step."""

    results: list[Any]  # for each task
    digests: list[int]  # of the labels of each task
    news: News | None
    notes: list[str]  # about what was learned
    ended: bool  # whether the pass has ended
    stops: bool  # whether the worker waits to be released: at the end of a pass, a save point or an error
    error: Exception | None  # with which the data end
    where: str  # worker, process and node, for messages
    cost: Cost


class AdvanceResult(NamedTuple):
    """Hold the results of a part for a round at the end of a pass."""

    lines: list[str]  # for the user
    done: bool
    more: bool  # whether another pass follows
    cost: Cost


class Worker:
    """Learn a part of the model of a run; an actor.

    `number` is that of the worker, from 1, of `count`, `folder` the one in which the names of files in `config` are, if
    this node has it, and `schema` has the columns of the tables that the model has learned from.
    """

    _stream: TaskStream

    def __init__(self, number: int, folder: str, config: Config, use: LearnerUse, count: int, schema: Schema) -> None:
        self._schema = schema
        enter(folder)
        self._number, self._where = number, place_of(number)
        self._part = Part(number - 1, count)
        self._config, self._use = config, use._replace(part=self._part)
        self._epoch = -1
        self._examples = self._sent = self._received = 0
        self._waiting, self._idle_since = 0.0, time.perf_counter()
        self._learner: LearnerCore | None = None
        jit.activate()

    def ping(self) -> None:
        """Do nothing, which shows that the worker runs."""

    # a start

    def begin(self, epoch: int, step: int, clock: float, place: Place, *states: bytes) -> bytes:
        """Start with the states of all parts at a place, with none at the beginning; step `step` follows.

        `clock` is the weight of the labelled examples before the run.
        """
        self._wake(states)
        if self._learner is not None:
            self._stream.close()
            self._learner.close()
        self._learner = LearnerCore(self._config, self._use)
        self._learner.schema.replace(self._schema)
        self._spread = spread = ability(self._config.reduction, "spread")
        self._reduction = self._learner.reduction
        self._learner.reduction.workers = 1
        self._lines: list[str] = []
        self._learner.reduction.report_to(self, lambda: None)
        self._learner.clock = clock
        try:
            self._stream = TaskStream(self._config, self._learner, clock)
        except DataError as error:
            raise type(error)(*with_place(error.args, self._where)) from None
        self._learner.read_from(self._stream.source)
        self._stream.move_to(place.cursor)
        self._names_sent = 0
        if states:
            spread.restore_part(self._reduction, [pickle.loads(state) for state in states])
        self._rounds = spread.rounds(self._reduction)
        self._epoch, self._step = epoch, step
        self._held: dict[int, list[BatchTask]] = {}  # tasks of steps whose rounds are not complete
        self._stops = place.stops
        self._ends: Generator[Any, list[Any], None] | None = None
        source = self._stream.source
        banner = source.banner(self._config.run.vw_exact)
        facts = Facts(banner, source.name, source.size, len(self._rounds), self._learner.schema)
        return self._sleep(pickle.dumps(facts))

    # a step

    def learn(self, epoch: int, step: int, released: int) -> tuple[bytes | None, bytes | None]:
        """Execute the first round of a step; return what goes on to the next round, and a `StepResult`.

        `released` says how many stops are behind the run.
        """
        if epoch != self._epoch or step != self._step:
            return None, None
        self._wake()
        assert self._learner is not None  # else the epoch is wrong
        self._step += 1
        blocked = released < self._stops
        items: list[Item] = []
        error: Exception | None = None
        ended = stops = False
        examples = tasks = 0
        while released >= self._stops and examples < STEP_EXAMPLES and tasks < STEP_TASKS:
            try:
                item = next(self._stream)
            except StopIteration:
                ended = stops = True
            except XclassError as caught:
                error, stops = caught, True
            else:
                items.append(item)
                stops = isinstance(item, SavePoint)
                if isinstance(item, BatchTask):
                    tasks += 1
                    examples += item.batch.n
            self._stops += stops
        kept = [item for item in items if isinstance(item, BatchTask)]
        news = self._news(items, stops) if self._part.number == 0 and not blocked else None
        digests = [zlib.crc32(task.batch.label.tobytes()) for task in kept]
        messages = [self._rounds[0](task, []) for task in kept]
        if len(self._rounds) > 1 and self._part.number == 0:
            self._held[step] = kept
        self._examples += examples
        onward = [message.onward for message in messages]
        notes = self._skipped(kept) if len(self._rounds) == 1 else []
        result = StepResult(
            [m.result for m in messages], digests, news, notes, ended, stops, error, self._where, self._cost()
        )
        return self._sleep(pickle.dumps(onward)), self._sleep(pickle.dumps(result))

    def go_on(self, epoch: int, step: int, number: int, *received: bytes | None) -> tuple[bytes | None, bytes | None]:
        """Execute round `number` of a step, with what went on from all parts; the results are as those of `learn`."""
        if epoch != self._epoch or step != min(self._held, default=-1) or None in received:
            return None, None
        self._wake(received)
        by_part = [pickle.loads(message) for message in received if message is not None]
        tasks = self._held.pop(step)
        run_round = self._rounds[number]
        messages = [run_round(task, [onward[i] for onward in by_part]) for i, task in enumerate(tasks)]
        result = StepResult(
            [m.result for m in messages], [], None, self._skipped(tasks), False, False, None, self._where, self._cost()
        )
        return self._sleep(pickle.dumps([m.onward for m in messages])), self._sleep(pickle.dumps(result))

    def _skipped(self, tasks: Sequence[BatchTask]) -> list[str]:
        """Return the warning of the first update of this part that was skipped, if it is one of tasks."""
        assert self._learner is not None
        return [note for task in tasks for note in self._learner.counted.count_skipped(task)]

    def _news(self, items: Sequence[Item], stops: bool) -> News:
        """Return what the whole has to know about the data of a step, before they are learned."""
        source = self._stream.source
        assert self._learner is not None
        names = list(self._learner.names.names)
        first, self._names_sent = self._names_sent, len(names)
        return News(
            [without_features(item) if isinstance(item, BatchTask) else item for item in items],
            self._learner.take_notes(), self._learner.preparation.idle, source.about(),
            first, names[first:], self._learner.reduction.highest_placed, source.name, source.position(),
            source.report() if stops else [],
        )  # fmt: skip

    # the end of a pass

    def advance(
        self, epoch: int, step: int, stopped: bool, *received: bytes | None
    ) -> tuple[bytes | None, bytes | None]:
        """Execute a round of the end of a pass, as a step; return what goes on, and an `AdvanceResult`.

        `stopped` says whether the user wants the run to end, and `received` is what went on from all parts in the round
        before, nothing in the first one.
        """
        if epoch != self._epoch or step != self._step or None in received:
            return None, None
        self._wake(received)
        assert self._learner is not None
        self._step += 1
        if stopped:
            self._learner.reduction.stop()
        more, done, onward = False, False, None
        try:
            if self._ends is None:
                self._ends = self._spread.pass_rounds(self._reduction)
                onward = next(self._ends)
            else:
                onward = self._ends.send([pickle.loads(message) for message in received if message is not None])
        except StopIteration:
            self._ends, done = None, True
            more = self._stream.end_pass()
        lines, self._lines = self._lines, []
        result = AdvanceResult(lines, done, more, self._cost())
        return self._sleep(pickle.dumps(onward)), self._sleep(pickle.dumps(result))

    # the messages of a learner that learns at the end

    def info(self, text: str) -> None:
        self._lines.append(text)

    def start_steps(self, count: int, unit: str) -> None:
        """Show no bar."""

    def step(self) -> None: ...

    # states

    def state(self, epoch: int, step: int) -> tuple[tuple[Place, bool] | None, bytes | None]:
        """Return the place of the worker before a step, whether it can begin there, and what its part has learned.

        It cannot, and the state is empty, while the learner holds examples that it learns from at the end of the data.
        """
        if epoch != self._epoch or step != self._step or self._held or self._ends is not None:
            return None, None
        assert self._learner is not None
        if self._learner.unlearned:
            return (self._place, False), b""
        self._wake()
        return (self._place, True), self._sleep(pickle.dumps(self._spread.part_state(self._reduction)))

    @property
    def _place(self) -> Place:
        return Place(self._stream.cursor, self._stops)

    def expected(self) -> tuple[int, int, list[int]]:
        """Return the epoch, -1 if the worker was restarted, the next step, and the steps with further rounds."""
        return self._epoch, getattr(self, "_step", 0), sorted(getattr(self, "_held", ()))

    # costs

    def _wake(self, received: Sequence[bytes | None] = ()) -> None:
        self._waiting += time.perf_counter() - self._idle_since
        self._received += sum(len(message) for message in received if message is not None)

    def _sleep(self, message: bytes) -> bytes:
        """Count a message that is sent, and return it."""
        self._sent += len(message)
        self._idle_since = time.perf_counter()
        return message

    def _cost(self) -> Cost:
        return Cost(self._examples, time.process_time(), self._sent, self._received, self._waiting)
