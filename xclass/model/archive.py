"""Save, restore and check the state of a learner by one description of it.

A function `serialize(archive, ...)` names each array and each number of an object once, with what is allowed. An
`Archive` that saves collects them. One that restores checks those of a model file, which may be damaged or crafted, and
puts them in the place of the object's own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ..array_types import AnyArray, UInt32s
from . import stored_arrays
from .stored_arrays import Arrays, Limit, Number, Stored

Ranges: TypeAlias = Mapping[str, tuple[float, float]]  # plane of a table -> lowest and highest number
NO_RANGES: Ranges = {}


WORDS, PAIRS, SLOTS = "words", "pairs", "slots"  # kinds of tables


class LiveTable(NamedTuple):
    """Hold a large table as it is in memory, so that another learner of this process can go on with it."""

    kind: str
    planes: tuple[UInt32s, ...]  # the bits of its numbers; with the same number of rows, so one plane may be longer
    whole: AnyArray | None = None  # what the planes are parts of, if a table is one array


class Archive:
    """Collect arrays and facts of a learner, or restore them.

    Attributes
    ----------
    arrays, facts : by name; those of a model file if the state is restored
    saves : whether the state is saved; it is restored if arrays are given
    predict_only : whether what only learning needs is not saved and may miss in a model file
    prefix : beginning of the names of the arrays of a part
    live : large tables by name, which change hands as they are; one that is restored and not among them is empty. None
        if they are saved and restored as arrays
    """

    def __init__(
        self,
        arrays: Arrays | None = None,
        facts: Mapping[str, Any] | None = None,
        predict_only: bool = False,
    ) -> None:
        self.saves = arrays is None
        self.arrays: dict[str, Stored] = {} if arrays is None else arrays  # type: ignore[assignment]  # only read then
        self.facts: dict[str, Any] = {} if facts is None else facts  # type: ignore[assignment]  # only read then
        self.predict_only, self.prefix = predict_only, ""
        self.live: dict[str, LiveTable] | None = None

    def shape(self, name: str) -> tuple[int, ...] | None:
        """Return the shape of an array of the model, None if it lacks the array."""
        name = self.prefix + name
        return np.shape(self.arrays[name]) if name in self.arrays else None

    def has(self, name: str) -> bool:
        """Return whether an array that only learning needs is saved, or has to be restored."""
        return not self.predict_only or (not self.saves and self.shape(name) is not None)

    def fill(self, name: str, array: AnyArray, low: Limit | None = None, high: Limit = math.inf) -> None:
        """Save an array, or fill it with that of the model, which has its type and shape.

        With `low`, the numbers of the model have to be in low..high.
        """
        name = self.prefix + name
        if self.saves:
            self.arrays[name] = array
        else:
            stored_arrays.fill(name, self.arrays, array, low, high)

    def fill_counts(self, name: str, array: AnyArray) -> None:
        """Save counts, or fill them with those of the model, none above MAX_COUNT."""
        self.fill(name, array, 0, 2 * stored_arrays.MAX_COUNT)
        if not self.saves:
            np.minimum(array, stored_arrays.MAX_COUNT, out=array)

    def take(
        self, name: str, array: AnyArray, shape: tuple[int | None, ...] | None = None,
        low: Limit | None = None, high: Limit = math.inf,
    ) -> AnyArray:  # fmt: skip
        """Save an array, or return that of the model, which has its type and another shape, see `stored_arrays.take`.

        An array of the model may be read-only.
        """
        name = self.prefix + name
        if self.saves:
            self.arrays[name] = array
            return array
        return stored_arrays.take(name, self.arrays, array.dtype, shape, low, high)

    def table(
        self, name: str, planes: Mapping[str, AnyArray], ranges: Ranges = NO_RANGES, rows: AnyArray | None = None
    ) -> None:
        """Save the planes of a table without its empty rows, or fill those of a new one, see `pack_table`.

        The numbers of the planes in `ranges` are checked.
        """

        name = self.prefix + name

        def check(plane: str, items: AnyArray) -> None:
            if plane in ranges:
                stored_arrays.check_range(f"{name}.{plane}", items, *ranges[plane])

        if self.saves:
            self.arrays.update(stored_arrays.pack_table(name, planes, rows))
        else:
            stored_arrays.unpack_table(name, self.arrays, planes, check)

    def hand_over(self, name: str, table: LiveTable) -> LiveTable | None:
        """Save a live table as it is, or return the one that is restored, None for an empty one."""
        assert self.live is not None  # else it is saved as arrays
        if self.saves:
            self.live[name] = table
        return self.live.get(name)

    def fact(self, name: str, value: Number, low: float, high: float) -> Number:
        """Save a number, or return that of the model, which has its type and is in low..high."""
        if self.saves:
            self.facts[name] = value
            return value
        return stored_arrays.take_fact(name, self.facts, type(value), low, high)

    def count(self, name: str, value: int) -> int:
        """Save a count, or return that of the model, at most MAX_COUNT."""
        return min(self.fact(name, value, 0, 2 * stored_arrays.MAX_COUNT), stored_arrays.MAX_COUNT)
