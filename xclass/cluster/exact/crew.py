"""Let the workers of a spread run learn step by step, and repeat what was lost when one of them died.

Idea      A step is a call of every worker, and one more for each further round, with references to what the others have
          returned. Some steps are called ahead, so that the workers do not wait. Steps are functions of the data and of
          the steps before. So a worker that was restarted begins with the last `Snapshot` and is called again for the
          steps since then; what it returns is the same as before.
          Ray restarts the process. It does not repeat the calls that were lost, because the worker has to begin first.
          All that is known here is the list of calls since the snapshot.
"""

from __future__ import annotations

import contextlib
import itertools
import pickle
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from ...errors import ClusterError
from ..part_worker import NO_COST, added, with_place
from ..session import LostResultError, Session
from .worker import AdvanceResult, Facts, Place, StepResult, Worker

AHEAD = 4  # steps that are called before their results are needed
SNAPSHOT_SECONDS = 60.0  # time between two snapshots, and at least so many times the time that one takes:
SNAPSHOT_SHARE = 20.0


class Snapshot(NamedTuple):
    """Hold the states of all parts before a step."""

    step: int
    place: Place
    states: Sequence[Any]  # references to bytes


class Call(NamedTuple):
    """Hold a step that was called."""

    released: int | None  # argument of `learn`, None for `advance`
    stopped: bool  # argument of `advance`
    refs: list[dict[int, tuple[Any, Any]]]  # for each round, worker -> references to what goes on and to the result


class Crew:
    """The workers of a spread run.

    Parameters
    ----------
    session : of the cluster
    count : number of workers
    say : called with lines for the user
    arguments : of `Worker`, after its number
    """

    def __init__(self, session: Session, count: int, say: Callable[[str], None], *arguments: Any) -> None:
        self._session, self._say = session, say
        self._workers = session.actors(Worker, count, *arguments)
        self._count = count
        self._epochs = [0] * count
        self._calls: list[Call] = []  # by step; those before the snapshot have no references
        self.next_step = 0  # step to call next
        self._consumed = 0  # step whose results are to be read next
        self._complete = 0  # step whose further rounds are to be called next
        self._released = 0
        self._stopping = False
        self._snapshot = Snapshot(0, Place(), ())
        self._snapshot_time = time.monotonic()
        self._snapshot_seconds = SNAPSHOT_SECONDS
        self.costs = [NO_COST] * count  # what each worker has spent, restarts included
        self._lost_costs = [NO_COST] * count
        self.equal = True  # whether all workers have learned from the same examples, so that their parts fit together
        self._clock = 0.0
        self._rounds = 1

    def begin(self, clock: float, place: Place, states: Sequence[Any]) -> Facts:
        """Start all workers at a place; return what is known about the data.

        `clock` is the weight of the labelled examples before the run, and `states` are references to the states of all
        parts at the place, none for new learners.
        """
        self._clock = clock
        self._snapshot = Snapshot(0, place, states)
        self._released = place.stops
        facts: Facts = pickle.loads(self._begin(range(self._count))[0])
        self._rounds = facts.rounds
        return facts

    def _begin(self, numbers: Sequence[int]) -> list[bytes]:
        """Let some workers begin at the snapshot; return what they return."""
        step, place, states = self._snapshot
        refs = []
        for i in numbers:
            self._epochs[i] += 1
            refs.append(self._workers[i].begin.remote(self._epochs[i], step, self._clock, place, *states))
        return [self._session.result(ref, self._workers[i], i + 1) for ref, i in zip(refs, numbers, strict=True)]

    # steps

    def steps(self) -> Iterator[list[list[StepResult]]]:
        """Yield the results of each step by round and worker, up to the next stop; `release` lets the workers go on."""
        while True:
            if not self._stopping:
                due = time.monotonic() - self._snapshot_time >= self._snapshot_seconds
                if due and self._consumed == self.next_step:
                    begin = time.monotonic()
                    self.states()
                    self._snapshot_seconds = max(self._snapshot_seconds, SNAPSHOT_SHARE * (time.monotonic() - begin))
                while (not due or self._consumed == self.next_step) and self.next_step < self._consumed + AHEAD:
                    self._call(Call(self._released, False, [{} for _ in range(self._rounds)]))
            if self._consumed == self.next_step:
                return
            results = self._results(self._consumed)
            self._consumed += 1
            stops = results[0][0].stops
            if stops:  # steps that were called ahead have done nothing
                while self._consumed < self.next_step:
                    self._results(self._consumed)
                    self._consumed += 1
            yield results
            if stops:
                return

    def stop(self) -> None:
        self._stopping = True

    def release(self) -> None:
        """Let the workers go on after a stop."""
        self._released += 1

    def end_pass(self, stopped: bool) -> tuple[list[str], bool]:
        """End a pass in all workers; return lines for the user, and whether another pass follows."""
        lines: list[str] = []
        while True:
            step = self.next_step
            self._call(Call(None, stopped, [{}]))
            results: list[AdvanceResult] = self._results(step)[0]
            self._consumed = self.next_step
            lines += results[0].lines
            if results[0].done:
                return lines, results[0].more

    def _call(self, call: Call) -> None:
        """Call the next step, and the further rounds of the step before it."""
        self._calls.append(call)
        self.next_step += 1
        self._call_first(self.next_step - 1, range(self._count))
        self._complete_calls(self.next_step - 1)

    def _call_first(self, step: int, numbers: Sequence[int]) -> None:
        call = self._calls[step]
        received = []
        if call.released is None and self._calls[step - 1].released is None:
            received = [onward for onward, _ in self._calls[step - 1].refs[0].values()]
        for i in numbers:
            if call.released is None:
                method, arguments = self._workers[i].advance, [call.stopped, *received]
            else:
                method, arguments = self._workers[i].learn, [call.released]
            call.refs[0][i] = tuple(
                method.options(num_returns=2, max_task_retries=0).remote(self._epochs[i], step, *arguments)
            )

    def _call_others(self, step: int) -> None:
        """Call the further rounds of a step, in which only the first worker takes part."""
        refs = self._calls[step].refs
        for number in range(1, len(refs)):
            received = [onward for onward, _ in refs[number - 1].values()]
            method = self._workers[0].go_on.options(num_returns=2, max_task_retries=0)
            refs[number][0] = tuple(method.remote(self._epochs[0], step, number, *received))

    def _complete_calls(self, end: int) -> None:
        """Call the further rounds of the steps before `end`."""
        while self._complete < end:
            self._call_others(self._complete)
            self._complete += 1

    def _results(self, step: int) -> list[list[Any]]:
        if step == self._complete:
            self._complete_calls(self.next_step)
        while (messages := self._messages(step)) is None:
            self._repair()
        return self._read(messages)

    def _messages(self, step: int) -> list[list[tuple[int, bytes]]] | None:
        """Wait for the results of a step, by round, with the numbers of the workers; return None if one is missing."""
        messages = []
        for row in self._calls[step].refs:
            messages.append([(i, self._value(i, ref)) for i, (_, ref) in row.items()])
            if any(message is None for _, message in messages[-1]):
                return None
        return messages

    def _value(self, i: int, ref: Any) -> Any:
        """Wait for what a worker returns; return None if it is lost."""
        with contextlib.suppress(LostResultError):
            return self._session.result(ref, self._workers[i], i + 1)

    def _read(self, results: list[list[tuple[int, bytes]]]) -> list[list[Any]]:
        """Return results from their bytes, and note the costs."""
        read = []
        for row in results:
            read.append([pickle.loads(message) for _, message in row])
            for (i, _), result in zip(row, read[-1], strict=True):
                self.costs[i] = added(self._lost_costs[i], result.cost)
        self._check_equal([result for result in read[0] if isinstance(result, StepResult)])
        return read

    def _check_equal(self, results: Sequence[StepResult]) -> None:
        """Raise an error if workers have read other examples, because one of them cannot read a file, for example."""
        self.equal = False
        messages = [None if result.error is None else str(result.error) for result in results]
        for result, message in zip(results, messages, strict=True):
            if result.error is not None and messages.count(message) < len(messages):
                raise type(result.error)(*with_place(result.error.args, result.where))
        for i, result in enumerate(results):
            if result.digests != results[0].digests:
                raise ClusterError(
                    f"worker {i + 1} reads other examples than worker 1: the data must be the same on all nodes; give "
                    "files that all nodes share, or URLs"
                )
        self.equal = True

    # what is lost

    def _repair(self) -> None:
        """Let workers that were restarted begin again, and call all steps that a worker has not executed."""
        asked = [worker.expected.remote() for worker in self._workers]
        expected = [self._session.result(ref, self._workers[i], i + 1) for i, ref in enumerate(asked)]
        lost = [i for i in range(self._count) if expected[i][0] != self._epochs[i]]
        if not self._restart(lost, expected):  # all have executed all steps, so a result was lost with a node
            self._restart(range(self._count), expected)

    def _restart(self, lost: Sequence[int], expected: list[tuple[int, int, list[int]]]) -> bool:
        """Let some workers begin at the snapshot, and call all steps that a worker has not executed.

        `expected` is what `Worker.expected` has returned in each worker, written. Return whether anything was called.
        """
        for i in lost:
            self._lost_costs[i] = self.costs[i]
            self._say(f"worker {i + 1} was lost; it learns again from step {self._snapshot.step} on")
            expected[i] = (self._epochs[i], self._snapshot.step, [])
        self._begin(lost)
        any_called = False
        for step in range(self._snapshot.step, self.next_step):
            first = [i for i in range(self._count) if step >= expected[i][1]]
            self._call_first(step, first)
            others = 0 in first or step in expected[0][2]
            if step < self._complete and others:
                self._call_others(step)
            any_called |= bool(first or others)
        return any_called

    # snapshots

    def states(self) -> tuple[Place, list[bytes]]:
        """Return the place after the steps that were called, and the states of all parts there; keep a snapshot.

        The snapshot is in this process's part of the object store, so it is not lost with other nodes.
        """
        self._complete_calls(self.next_step)
        while True:
            step = self.next_step
            refs = [
                worker.state.options(num_returns=2, max_task_retries=0).remote(epoch, step)
                for worker, epoch in zip(self._workers, self._epochs, strict=True)
            ]
            answers = [self._value(i, ref) for i, (ref, _) in enumerate(refs)]
            states = [self._value(i, ref) for i, (_, ref) in enumerate(refs)]
            if None not in answers and None not in states:
                break
            self._repair()
        for i, state in enumerate(states):  # until the next result, which counts it
            self.costs[i] = self.costs[i]._replace(sent=self.costs[i].sent + len(state))
        place, complete = answers[0]
        if complete and self._consumed == self.next_step:
            for row in itertools.chain(*(call.refs for call in self._calls[self._snapshot.step :])):
                row.clear()
            self._snapshot = Snapshot(step, place, [self._session.put(state) for state in states])
        self._snapshot_time = time.monotonic()
        return place, states
