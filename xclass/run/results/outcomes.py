"""Select the examples that measure how good predictions are, and record which answers were wrong, to compare runs.

Outcomes are packed into bits and compressed. A digest of the labels and weights tells whether two runs had the same
examples in the same order; it does not depend on how classes are numbered.
"""

from __future__ import annotations

import base64
import hashlib
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...array_types import Bools, Float64s, Int64s
from ...data import class_names
from ...reductions.core.contract import BatchTask
from ...system.bounded_json import Record, Text, Whole

MOST = 1 << 26  # examples; the outcomes of longer runs are not recorded
SHAPE = Record({"examples": Whole(1, MOST), "labels": Text(), "wrong": Text()})


@dataclass(frozen=True)
class Measured:
    """Hold m labelled examples of a task of n examples: the held-out ones if lines are held out, else all."""

    row: Int64s  # int64[m], position in the task
    label: Int64s  # int64[m], class, class_names.UNKNOWN for a name that the model does not know
    answer: Int64s  # int64[m], predicted class, 0 if there is none
    weight: Float64s  # float64[m], importance
    label_probability: Float64s  # float64[m], NaN if not known
    answer_probability: Float64s  # float64[m], NaN if not known

    @property
    def wrong(self) -> Bools:
        """Return bool[m]: whether the answer is not the label."""
        wrong: Bools = self.answer != self.label
        return wrong


def measures(task: BatchTask, holds_out: bool) -> Bools:
    """Return bool[n], whether each example is measured: it has a label, and is held out if lines are."""
    chosen: Bools = ~np.isnan(task.batch.label)
    if holds_out:
        chosen &= task.held_out if task.held_out is not None else np.zeros(task.batch.n, bool)
    return chosen


def wrong_lists(task: BatchTask) -> Bools:
    """Return bool[n]: whether the best label is none of the example's, or labels are chosen that it does not have."""
    assert task.prediction is not None and task.label_lists is not None  # the stages have set them
    batch, chosen = task.batch, task.label_lists.chosen
    row = np.repeat(np.arange(batch.n), np.diff(batch.label_start))
    wrong = np.diff(chosen.start) > 0
    wrong[batch.label > 0] = True
    wrong[row[batch.labels == task.prediction[row]]] = False
    return wrong


def select(task: BatchTask, holds_out: bool) -> Measured:
    """Return the measured examples of a task that has passed the stages; its labels are classes.

    If lines are held out, only these measure.
    """
    row = np.flatnonzero(measures(task, holds_out))
    assert task.prediction is not None  # the stages have set it
    prediction = class_names.hide_unseen(task.prediction, task.read.seen)
    unknown = np.full(len(row), np.nan)
    return Measured(
        row,
        task.batch.label[row].astype(np.int64),
        prediction[row].astype(np.int64),
        task.batch.weight[row].astype(np.float64),
        unknown if task.label_probability is None else task.label_probability[row],
        unknown if task.answer_probability is None else task.answer_probability[row],
    )


# -- recording


class OutcomeRecorder:
    """Record outcomes in the order of the data."""

    def __init__(self, name: Callable[[int], str]) -> None:
        self._name = name
        self._hashes: dict[int, int] = {}  # class -> hash of its text
        self.clear()

    def clear(self) -> None:
        """Forget all examples."""
        self.examples = 0
        self._wrong: list[Bools] = []
        self._digest = hashlib.sha256()

    def add(self, examples: Measured) -> None:
        """Add examples."""
        self._add(examples.wrong, examples.label, examples.weight)

    def add_lists(self, task: BatchTask, chosen: Bools) -> None:
        """Add the examples of a task with lists of labels that are chosen (bool[n])."""
        batch = task.batch
        label = batch.labels[np.repeat(chosen, np.diff(batch.label_start))].astype(np.int64)
        self._add(wrong_lists(task)[chosen], label, batch.weight[chosen].astype(np.float64))
        self._digest.update(batch.label[chosen].astype("<f8").tobytes())

    def _add(self, wrong: Bools, label: Int64s, weight: Float64s) -> None:
        self.examples += len(wrong)
        if self.examples > MOST:
            self._wrong = []
            return
        self._wrong.append(wrong)
        labels, place = np.unique(label, return_inverse=True)
        hashes = np.array([self._hash(y) for y in labels.tolist()], np.uint64)
        self._digest.update(hashes[place].astype("<u8").tobytes())
        self._digest.update(weight.astype("<f8").tobytes())

    def _hash(self, label: int) -> int:
        """Return a hash of the text of a class, which is `unknown` for a name that the model does not know."""
        if label not in self._hashes:
            text = self._name(label).encode("utf-8", "surrogateescape")
            self._hashes[label] = int.from_bytes(hashlib.sha256(text).digest()[:8], "little")
        return self._hashes[label]

    def record(self) -> dict[str, object] | None:
        """Return the outcomes as JSON values, None if there are none or too many."""
        if not 0 < self.examples <= MOST:
            return None
        packed = np.packbits(np.concatenate(self._wrong))
        return {
            "examples": self.examples,
            "labels": self._digest.hexdigest(),
            "wrong": base64.b64encode(zlib.compress(packed.tobytes(), 9)).decode("ascii"),
        }


def wrong_of(record: dict[str, Any]) -> Bools:
    """Return bool[examples], whether each answer was wrong, from a record of the shape `SHAPE`; raise ValueError if
    it is damaged.
    """
    examples, text = record["examples"], record["wrong"]
    try:
        size = (examples + 7) // 8
        packed = zlib.decompressobj().decompress(base64.b64decode(text, validate=True), size)
    except zlib.error as error:
        raise ValueError(str(error)) from None
    if len(packed) != size:
        raise ValueError(f"{8 * len(packed)} outcomes instead of {examples}")
    return np.unpackbits(np.frombuffer(packed, np.uint8), count=examples).astype(bool)
