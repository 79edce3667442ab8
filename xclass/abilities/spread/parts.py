"""Define what the parts of a spread learner tell each other, and the whole about its examples.

    every process, for each batch       rounds[0] -> onward to all -> rounds[1] -> ...
    the whole, with all results         combine -> predictions and losses
    the end, and checkpoints            part_state of every process -> join or restore_part

Idea      Every part sees all examples, so that it does what the same part of a single process does. Where the first
          part needs the results of others, there is another round of it alone. What a round returns is a function of
          the examples up to its batch and of what it received, so a part can be replaced by another process that
          repeats its work.
Names     whole: the learner of the process that coordinates; it has no features and learns nothing itself | unit: the
          least piece of a model that can be a part, such as a class or a tree.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...data.batch import Batch
from ...reductions.core.base import Learner
from ...reductions.core.contract import BatchTask

State = dict[str, Any]  # of a part, by name: arrays, and numbers and texts that JSON can hold


class Message(NamedTuple):
    """Hold what a round of a part returns for a batch."""

    onward: Any  # for the next round of all parts
    result: Any  # for `combine`


Round = Callable[[BatchTask, Sequence[Any]], Message]


def end_pass(learner: Learner) -> Generator[Any, list[Any], None]:
    """End a pass of a part that needs nothing from others, see `pass_rounds`."""
    learner.end_pass()
    return
    yield  # pragma: no cover (makes this a generator)


def whole_state(learner: Learner) -> State:
    """Return what a whole knows that its parts do not: nothing, unless the reduction has a function of its own."""
    return {}


def restore_whole(learner: Learner, state: State) -> None:
    """Continue a new whole from what `whole_state` has returned."""


def without_features(task: BatchTask) -> BatchTask:
    """Return what the whole has to know about the examples of a task before they are learned."""
    batch = task.batch
    size = batch.tag_end - batch.tag_start
    end = np.cumsum(size)
    none = np.zeros(batch.n + 1, np.int64)
    tags = [batch.text[a:b] for a, b in zip(batch.tag_start.tolist(), batch.tag_end.tolist(), strict=True)]
    text = np.concatenate([np.empty(0, np.uint8), *tags])
    light = Batch(
        none, np.empty(0, np.uint32), np.empty(0, np.float32), batch.label.copy(), batch.weight.copy(),
        batch.initial.copy(), none, np.empty(0, np.uint8), np.zeros(1, np.int64), end - size, end, batch.line.copy(),
        text, batch.label_start.copy(), batch.labels.copy(),
    )  # fmt: skip
    result = BatchTask(
        light, task.learn, task.clock.copy(), task.file, notes=task.notes, shown_features=task.shown_features,
        named=task.named, held_out=task.held_out,
    )  # fmt: skip
    result.skipped = task.skipped.copy()
    return result
