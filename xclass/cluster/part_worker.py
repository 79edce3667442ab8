"""Read and count parts of the data in a worker, whether it learns from them or predicts them."""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

from ..api.configuration import Config
from ..api.example_notes import ExampleNotes
from ..api.learner_core import LearnerCore
from ..data.namespaces import IdleArguments
from ..errors import XclassError
from ..kernels import jit
from ..reductions.core.contract import BatchTask
from . import shards
from .part_progress import PartProgress
from .shards import PartReader


class Cost(NamedTuple):
    """Hold what a process has spent so far."""

    examples: int
    cpu: float  # seconds
    sent: int  # bytes
    received: int
    waiting: float  # seconds without anything to do


NO_COST = Cost(0, 0.0, 0, 0, 0.0)


def added(first: Cost, second: Cost) -> Cost:
    return Cost._make(a + b for a, b in zip(first, second, strict=True))


def cost_line(number: int, cost: Cost) -> str:
    """Return the line of the summary about what a worker has spent."""
    return (
        f"worker {number}: examples = {cost.examples}, CPU seconds = {cost.cpu:.2f}, bytes sent = {cost.sent}, bytes "
        f"received = {cost.received}, seconds waiting = {cost.waiting:.2f}"
    )


class PartResult(NamedTuple):
    """Hold what a worker tells about the examples of a part, besides what it has learned or predicted."""

    counts: PartProgress
    tallies: dict[str, Any]  # see `reductions.core.base.Reduction.tallies`
    examples: ExampleNotes
    idle: tuple[IdleArguments, ...]
    notes: tuple[str, ...]  # warnings
    report: tuple[str, ...] | None  # lines about malformed lines, at the end of the part
    bytes_read: int  # of the part, in this pass
    cost: Cost


class PartWorker:
    """Measure what a worker spends on parts of the data; the base class of the actors.

    `number` is that of the worker, from 1, and `folder` the one in which the names of files are, if its node has it.
    """

    hides_scipy = True  # whether numba shall not look for SciPy, see `kernels.jit.activate`
    _ended_at: float | None = None

    def __init__(self, number: int, folder: str, config: Config) -> None:
        shards.enter(folder)
        jit.activate(hide_scipy=self.hides_scipy)
        self._number, self._config = number, config

    def ping(self) -> bool:
        """Return at once, which shows that the worker runs."""
        return True

    @contextlib.contextmanager
    def _placed(self) -> Iterator[None]:
        try:
            yield
        except XclassError as error:
            raise type(error)(*with_place(error.args, place_of(self._number))) from None

    def _begin(self) -> None:
        if self._ended_at is None:
            self._waited, self._cpu = 0.0, time.process_time()
        else:
            self._waited = time.monotonic() - self._ended_at

    @contextlib.contextmanager
    def _busy(self) -> Iterator[None]:
        """Do not count the `with` block as waiting."""
        begun = time.monotonic()
        yield
        if self._ended_at is not None:
            self._ended_at += time.monotonic() - begun

    def _cost(self, examples: int, sent: int, received: int) -> Cost:
        self._ended_at = time.monotonic()
        before, self._cpu = self._cpu, time.process_time()  # what was computed between two parts counts, too
        return Cost(examples, self._cpu - before, sent, received, self._waited)


class Counter:
    """Pass the tasks of a part through the stages of a learner, and count them."""

    def __init__(self, learner: LearnerCore, reader: PartReader, counted: PartProgress) -> None:
        self.examples = 0
        self._learner, self._reader, self._counted = learner, reader, counted
        learner.read_from(reader)
        learner.count_anew()

    def execute(self, task: BatchTask) -> None:
        """Learn or predict a task, and count it."""
        self.count(self._learner.execute(task))

    def count(self, task: BatchTask) -> None:
        """Add a task to the progress of the part."""
        self._counted.count(task)
        self.examples += task.batch.n

    def result(self, cost: Cost, ended: bool = True) -> PartResult:
        """Return what was counted; `ended` says whether the end of the part was reached."""
        self._counted.names = None
        learner, reader = self._learner, self._reader
        return PartResult(
            self._counted, learner.reduction.tallies(), learner.counted, learner.preparation.idle,
            tuple(dict.fromkeys(learner.take_notes())),
            tuple(reader.report()) if ended else None, 0 if reader.reader is None else reader.reader.bytes, cost,
        )  # fmt: skip


def place_of(number: int) -> str:
    """Return the number of a worker that is this process, with the process and its node, for messages."""
    return f"worker {number}, process {os.getpid()} on {socket.gethostname()}"


def with_place(lines: tuple[Any, ...], place: str) -> tuple[Any, ...]:
    """Return the lines of an error, the first with the worker that it happened in."""
    return (f"{lines[0]} ({place})", *lines[1:]) if lines else lines
