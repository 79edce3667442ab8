"""Define learners that can be spread: processes learn parts of a model from the same examples, with the same results.

    every process, for each batch       rounds[0] -> onward to all -> rounds[1] -> ...
    the whole, with all results         combine -> predictions and losses
    the end, and checkpoints            part_state of every process -> join or restore_part

Idea      Every part sees all examples, so that it does what the same part of a single process does. Where it needs the
          results of others, there is another round. What a round returns is a function of the examples up to its batch
          and of what it received, so a part can be replaced by another process that repeats its work.
Names     whole: the learner of the process that coordinates; it has no features and learns nothing itself | unit: the
          least piece of a model that can be a part, such as a class or a tree.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...data.batch import Batch
from .contract import BatchTask
from .spec import Part

State = dict[str, Any]  # of a part, by name: arrays, and numbers and texts that JSON can hold


class Message(NamedTuple):
    """Hold what a round of a part returns for a batch."""

    onward: Any  # for the next round of all parts
    result: Any  # for `combine`


Round = Callable[[BatchTask, Sequence[Any]], Message]


class Spreadable(ABC):
    """A learner that can be a part or the whole of a spread learner, see `LearnerSpec.part`."""

    @property
    @abstractmethod
    def units(self) -> int:
        """Return the largest number of parts, 1 if the options allow no more."""

    @property
    def one_unit(self) -> str:
        """Return why the options allow a single part, for a message; empty if they do not."""
        return ""

    @property
    @abstractmethod
    def rounds(self) -> list[Round]:
        """Return the functions that a part calls for every batch, in order.

        Each receives the task, and what the round before has returned as `onward` in every part, in their order.
        """

    def takes_part(self, number: int, part: Part) -> bool:
        """Return whether a part has something to do in round `number`; all take part in the first one."""
        return True

    @abstractmethod
    def combine(self, task: BatchTask, results: Sequence[Sequence[Any]]) -> None:
        """Set the prediction and the loss of a task without features, in the whole.

        Parameters
        ----------
        task : written
        results : `results[r][j]` is the result of round r in the j-th of the parts that take part in it
        """

    @abstractmethod
    def part_state(self) -> State:
        """Return what a part has learned; arrays may be those that it goes on to learn with.

        The state of a learner without parts is that of the only part.
        """

    @abstractmethod
    def restore_part(self, states: Sequence[State]) -> None:
        """Continue a new part from the states of all parts, of which there may have been another number."""

    @abstractmethod
    def join(self, states: Sequence[State]) -> None:
        """Give the whole all that its parts have learned."""

    def pass_rounds(self) -> Generator[Any, list[Any], None]:
        """End a pass in a part.

        Yields
        ------
        What all parts need to go on. The generator is sent what every part has yielded, in their order. All parts
        yield equally often.
        """
        self.end_pass()
        return
        yield  # pragma: no cover (makes this a generator)

    @abstractmethod
    def end_pass(self) -> None:
        """End a pass, see `Learner`."""


def run_alone(rounds: Generator[Any, list[Any], None]) -> None:
    """Execute the rounds at the end of a pass of a learner that is the only part."""
    try:
        message = next(rounds)
        while True:
            message = rounds.send([message])
    except StopIteration:
        return


def without_features(task: BatchTask) -> BatchTask:
    """Return what the whole has to know about the examples of a task before they are learned."""
    batch = task.batch
    n = batch.n
    size = batch.tag_end - batch.tag_start
    end = np.cumsum(size)
    none = np.zeros(n + 1, np.int64)
    text = np.empty(0, np.uint8)
    if size.any():
        tags = [batch.text[a:b] for a, b in zip(batch.tag_start.tolist(), batch.tag_end.tolist(), strict=True)]
        text = np.concatenate(tags)
    light = Batch(
        none, np.empty(0, np.uint32), np.empty(0, np.float32), batch.label.copy(), batch.weight.copy(),
        batch.initial.copy(), none, np.empty(0, np.uint8), np.zeros(1, np.int64), end - size, end, batch.line.copy(),
        text,
    )  # fmt: skip
    result = BatchTask(light, task.learn, task.clock.copy(), features=task.features, held_out=task.held_out)
    result.skipped = task.skipped.copy()
    return result
