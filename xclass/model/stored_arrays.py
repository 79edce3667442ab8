"""Arrays that go into a model file, and come out of one that somebody may have changed.

A weight table is stored without its empty rows where that is smaller; what is taken from a file is checked for type,
shape and range before anything is used.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import DTypeLike

from ..array_types import AnyArray, Int32s, UInt8s, UInt32s
from ..errors import ModelError
from ..kernels.jit import bare
from ..system.printable import shortened

PIECE = 1 << 18  # rows filled at a time
PIECE_SLOTS = 1 << 17  # slots of a table looked at at a time; a multiple of 8
MOST_COUNTED = 2**52  # examples of a model; sums of a few such numbers are still exact

# -- kernels: a bitmap has a bit for every slot, the highest of a byte for the first of eight. The numbers of a plane
#    are taken as words of four bytes, `wide` (1 or 2) to a slot and `step` from one slot to the next.


@bare
def mark(words: UInt32s, step: int, wide: int, slots: int, bitmap: UInt8s) -> int:
    """Set the bits of the slots that are not zero: uint32[...], uint8[slots / 8]. Returns how many bits are set."""
    count = 0
    for i in range(len(bitmap)):
        byte = bitmap[i]
        for slot in range(8 * i, min(8 * i + 8, slots)):
            word = words[slot * step]
            if wide == 2:
                word |= words[slot * step + 1]
            byte |= np.uint8(word != 0) << np.uint8(7 - slot % 8)
        bitmap[i] = byte
        for k in range(8):
            count += int(byte >> np.uint8(k) & 1)
    return count


@bare
def gather(words: UInt32s, step: int, wide: int, slots: int, bitmap: UInt8s, out: UInt32s) -> int:
    """Copy the words of slots whose bits are set into `out`, which has room for all; returns how many slots there are.

    Every slot is written and only those set are counted: nobody knows which are, and a wrong guess takes longer.
    """
    n = 0
    for i in range(len(bitmap)):
        byte = bitmap[i]
        if byte:
            for slot in range(8 * i, min(8 * i + 8, slots)):
                out[n * wide] = words[slot * step]
                if wide == 2:
                    out[n * wide + 1] = words[slot * step + 1]
                n += int(byte >> np.uint8(7 - slot % 8) & 1)
    return n


@bare
def number(bitmap: UInt8s, first: int, out: UInt32s) -> int:
    """Write the numbers of the slots whose bits are set, the first slot being `first`; returns how many there are."""
    n = 0
    for i in range(len(bitmap)):
        byte = bitmap[i]
        if byte:
            for k in range(8):
                out[n] = first + 8 * i + k
                n += int(byte >> np.uint8(7 - k) & 1)
    return n


@bare
def scatter(words: UInt32s, step: int, wide: int, index: UInt32s, rows: UInt32s) -> None:
    """Undo `gather`: put every row into the slot of its number."""
    for i in range(len(index)):
        for j in range(wide):
            words[np.int64(index[i]) * step + j] = rows[i * wide + j]


# -- arrays ------------------------------------------------------------------------------------------------------


class SparseColumn:
    """Rows of a table chosen by a bitmap, as an array that is made piece by piece when it is written.

    `np.asarray` makes all of it at once. Without a plane, the numbers of the rows.
    """

    def __init__(self, plane: AnyArray | None, bitmap: UInt8s, count: int) -> None:
        self.plane = plane
        self.bitmap = bitmap  # uint8[slots / 8]
        self.dtype: np.dtype[Any] = np.dtype(np.uint32) if plane is None else plane.dtype
        self.shape = (count,)

    def pieces(self) -> Iterator[AnyArray]:
        out = _wide(np.empty(PIECE_SLOTS + 1, self.dtype))  # one to spare behind the last
        step = PIECE_SLOTS // 8
        for i in range(0, len(self.bitmap), step):
            bitmap = self.bitmap[i : i + step]
            if self.plane is None:
                n = number(bitmap, i * 8, out)
            else:
                plane = _wide(self.plane[i * 8 : (i + step) * 8])
                n = gather(*_words(plane), len(plane), bitmap, _words(out)[0])
            yield out[:n].astype(self.dtype)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> AnyArray:
        return np.concatenate([np.empty(0, self.dtype), *self.pieces()]).astype(dtype or self.dtype, copy=False)

    def __len__(self) -> int:
        return self.shape[0]


Stored: TypeAlias = AnyArray | SparseColumn  # what a model is saved from


def sparse(name: str, planes: Mapping[str, AnyArray]) -> dict[str, Stored]:
    """Name the planes of a weight table for `save`: without the rows that are all zero where that is smaller.

    Parameters
    ----------
    name : of the table; arrays are called `name.plane`, and `name.index` holds the row numbers: uint32, rising.
    planes : equally long arrays of one dimension, strided ones too. They are looked at again while they are
        written, so they must not change between `sparse` and the end of `save`.

    Returns
    -------
    arrays : the planes themselves, or stand-ins for their kept rows that take no memory to speak of.
    """
    slots = len(next(iter(planes.values())))
    bitmap = np.zeros(-(-slots // 8), np.uint8)
    count = 0
    for i in range(0, slots, PIECE_SLOTS):  # a piece of all planes is near while one after the other is looked at
        part = bitmap[i // 8 : (i + PIECE_SLOTS) // 8]
        for plane in planes.values():
            marked = mark(*_words(_wide(plane[i : i + PIECE_SLOTS])), min(PIECE_SLOTS, slots - i), part)
        count += marked
    row = sum(plane.itemsize for plane in planes.values())
    if slots > 1 << 32 or count * (4 + row) >= slots * row:
        return {f"{name}.{key}": plane for key, plane in planes.items()}
    kept = {f"{name}.{key}": SparseColumn(plane, bitmap, count) for key, plane in planes.items()}
    return {f"{name}.index": SparseColumn(None, bitmap, count), **kept}


def dense(name: str, arrays: Mapping[str, Stored], planes: Mapping[str, AnyArray]) -> None:
    """Undo `sparse`: fill the planes of a new table, where all is zero, in place.

    `spread` writes to the rows it is given, so they are inside the table; that they rise makes each of them one.

    Raises
    ------
    ModelError
        where the arrays do not fit the table.
    """
    if f"{name}.index" not in arrays:
        for key, plane in planes.items():
            fill(f"{name}.{key}", arrays, plane)
        return
    index = np.asarray(arrays[f"{name}.index"])
    if index.dtype != np.uint32 or index.ndim != 1:
        raise unfit(f"{name}.index", "it holds no row numbers")
    slots = len(next(iter(planes.values())))
    step = PIECE
    for i in range(0, len(index), step):
        some = index[max(0, i - 1) : i + step]
        if some[-1] >= slots or not (some[1:] > some[:-1]).all():
            raise unfit(f"{name}.index", f"its row numbers are not rising or beyond the {slots} rows of the table")
    for key, plane in planes.items():
        rows = take(f"{name}.{key}", arrays, plane.dtype, index.shape)
        target, rows = _wide(plane), _wide(rows)
        for i in range(0, len(index), step):
            scatter(*_words(target), index[i : i + step], _words(rows[i : i + step])[0])
        if target is not plane:
            plane[...] = target


def fill(name: str, arrays: Mapping[str, Stored], target: AnyArray) -> None:
    """Copy a stored array into one of the same type and shape.

    Raises
    ------
    ModelError
        where it is missing or differs in type or shape.
    """
    target[...] = take(name, arrays, target.dtype, target.shape)


def rows(name: str, arrays: Mapping[str, Stored], below: int) -> Int32s:
    """Return a stored int32 array of rising row numbers, all below `below`."""
    found = take(name, arrays, np.int32, None)
    if len(found) and (found[0] < 0 or found[-1] >= below or not (found[1:] > found[:-1]).all()):
        raise unfit(name, f"its row numbers are not rising or not below {below}")
    return found


def check_range(name: str, stored: Stored, low: float, high: float) -> None:
    """Refuse an array that came from a file and holds numbers outside low..high, or NaN."""
    array = np.asarray(stored)
    if array.size and not (array.min() >= low and array.max() <= high):
        seen = array[~((array >= low) & (array <= high))].flat[0]
        raise unfit(name, f"it holds {seen!s}, allowed are numbers from {low} to {high}")


def check_rows(name: str, arrays: Mapping[str, Stored], rows: int) -> None:
    """Refuse an array with another number of rows, before anything of that size is allocated; it may be missing."""
    shape = np.shape(arrays[name]) if name in arrays else (rows,)
    if shape[:1] != (rows,):
        raise unfit(name, f"it has the shape {list(shape)}, the options ask for {rows} rows")


def check_permutation(name: str, array: AnyArray) -> None:
    """Refuse an array from a file that does not hold every number from 0 to its length less 1 once."""
    check_range(name, array, 0, len(array) - 1)
    seen = np.zeros(len(array), bool)
    seen[array] = True
    if not seen.all():
        raise unfit(name, f"it lacks {int(np.argmin(seen))}; every number from 0 to {len(array) - 1} is needed once")


def take(name: str, arrays: Mapping[str, Stored], dtype: DTypeLike, shape: tuple[int | None, ...] | None) -> AnyArray:
    """Return a stored array of the type and shape asked for.

    Parameters
    ----------
    shape : None in place of a size allows any, None in place of the shape asks for one dimension of any length.

    Raises
    ------
    ModelError
        where it is missing or differs.
    """
    if name not in arrays:
        raise unfit(name, "it is missing")
    array = np.asarray(arrays[name])
    shape = (None,) if shape is None else shape
    same = array.ndim == len(shape) and all(
        size in (None, found) for size, found in zip(shape, array.shape, strict=True)
    )
    if array.dtype != dtype or not same:
        wanted = ", ".join("any" if size is None else str(size) for size in shape)
        raise unfit(name, f"it is {array.dtype}{list(array.shape)}, the options ask for {np.dtype(dtype)}[{wanted}]")
    return array


# -- facts -------------------------------------------------------------------------------------------------------


Held = TypeVar("Held")


class _Asked(dict[str, Held]):
    """A record out of a file that keeps a note of what was asked of it."""

    def __init__(self, record: Mapping[str, Held]) -> None:
        super().__init__(record)
        self.names: set[str] = set()

    def __getitem__(self, name: str) -> Held:
        self.names.add(name)
        return super().__getitem__(name)

    def unasked(self) -> str | None:
        """Return the first name that nobody asked for."""
        return min(self.keys() - self.names, default=None)


@contextlib.contextmanager
def whole(arrays: Mapping[str, Stored], facts: object) -> Iterator[tuple[dict[str, Stored], dict[str, Any]]]:
    """Give a learner its stored arrays and facts, and refuse by name what it has not taken at the end.

    Raises
    ------
    ModelError
        where the facts are no record, or an array or a fact is none that this learner has.
    """
    if not isinstance(facts, Mapping):
        raise ModelError(
            f"the model's fact 'learner' is {shortened(facts)}, allowed is a record; train the model again"
        )
    asked_arrays, asked_facts = _Asked(arrays), _Asked(facts)
    yield asked_arrays, asked_facts
    name = asked_arrays.unasked()
    if name is not None:
        raise ModelError(
            f"the model has an array {shortened(name)}, which its options do not ask for; train the model again"
        )
    name = asked_facts.unasked()
    if name is not None:
        raise ModelError(
            f"the model has a fact 'learner' with {shortened(name)}, which its options do not ask for; train the model "
            "again"
        )


Number = TypeVar("Number", int, float)


def take_fact(name: str, facts: Mapping[str, Any], kind: type[Number], low: float, high: float) -> Number:
    """Return a stored fact of a learner: a whole number (`kind` int) or a number (float) from low to high.

    Raises
    ------
    ModelError
        where it is missing, of another type or out of range; NaN is, and so are `true` and `false`.
    """
    what = "a whole number" if kind is int else "a number"
    allowed = f"allowed is {what} from {low} to {high}; train the model again"
    if name not in facts:
        raise ModelError(f"the model's fact 'learner' lacks {name!r}; {allowed}")
    value = facts[name]
    if type(value) not in (int, kind) or not low <= value <= high:
        raise ModelError(f"the model's fact 'learner' has {name!r}: {shortened(value)}, {allowed}")
    return kind(value)


def _wide(plane: AnyArray) -> AnyArray:
    """A plane as it is, or a copy with four bytes to a number where there are fewer."""
    return plane if plane.itemsize >= 4 else plane.view(f"u{plane.itemsize}").astype(np.uint32)


def _words(plane: AnyArray) -> tuple[UInt32s, int, int]:
    """A plane of four bytes or eight as kernels take it, whatever its strides, so that each is compiled once.

    Numbers are compared as bits, where -0.0 is something.

    Returns
    -------
    words, step, wide : from its first number to its last, and what lies between: uint32[...], shared with it
    """
    wide, step = plane.itemsize // 4, plane.strides[0] // 4
    words = plane[:1].view(np.uint32)
    return as_strided(words, ((len(plane) - 1) * step + wide if len(plane) else 0,), (4,)), step, wide


def unfit(name: str, why: str) -> ModelError:
    """Return the error of an array that cannot be used."""
    return ModelError(f"the model's array {name!r} does not fit its options: {why}; train the model again")
