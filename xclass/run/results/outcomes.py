"""Record for each labelled example whether the answer was wrong, so that runs over the same data can be compared.

Outcomes are packed into bits and compressed. A digest of the labels and weights tells whether two runs had the same
examples in the same order; it does not depend on how classes are numbered.
"""

from __future__ import annotations

import base64
import hashlib
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

from ...array_types import Bools, Float64s, Int64s
from ...reductions.core.contract import BatchTask
from ...system.bounded_json import Record, Text, Whole
from . import measured
from .measured import Measured

MOST = 1 << 26  # examples; the outcomes of longer runs are not recorded
SHAPE = Record({"examples": Whole(1, MOST), "labels": Text(), "wrong": Text()})


class Outcomes:
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
        self._add(measured.wrong_lists(task)[chosen], label, batch.weight[chosen].astype(np.float64))
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
