"""Store weight tables compactly in a model file, and check the arrays of untrusted files when they are restored.

A weight table is stored without its empty rows if that is smaller. Arrays and facts from a file are checked for
type, shape and range before they are used.

Names     A plane has one number for every slot of a weight table, such as all weights. A row is what a slot holds in
          all planes of the table.
"""

from __future__ import annotations

import contextlib
import mmap
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import DTypeLike

from ..array_types import AnyArray, Int32s, UInt8s, UInt32s
from ..errors import ModelError
from ..kernels.jit import bare, inlined
from ..system.printable import short_repr

PIECE = 1 << 18  # rows to restore at a time
PIECE_SLOTS = 1 << 17  # slots of a table to scan at a time; a multiple of 8
MAX_COUNT = 2**52  # largest count in a model; sums of a few such numbers are still exact in float64

# -- kernels: a bitmap has a bit for every slot, the highest bit of a byte for the first of eight slots. A plane is
#    accessed as words of four bytes, `width` (1 or 2) per slot, at a distance of `step` from one slot to the next.


@bare
def mark(words: UInt32s, step: int, width: int, slots: int, bitmap: UInt8s) -> int:
    """Set the bits of the slots whose words are not zero; return how many bits are set.

    Parameters
    ----------
    words : uint32[...], plane
    step, width : words from one slot to the next, and words per slot
    bitmap : uint8[slots / 8, rounded up], written; bits that are already set stay set
    """
    count = 0
    for i in range(len(bitmap)):
        byte, at = bitmap[i], 8 * i * step
        if 8 * i + 8 <= slots and not _any_word(words, at, step, width):  # most of a table is often empty
            if byte == 0:
                continue
        else:
            for slot in range(8 * i, min(8 * i + 8, slots)):
                word = words[slot * step]
                if width == 2:
                    word |= words[slot * step + 1]
                byte |= np.uint8(word != 0) << np.uint8(7 - slot % 8)
            bitmap[i] = byte
        for k in range(8):
            count += int(byte >> np.uint8(k) & 1)
    return count


@inlined
def _any_word(words: UInt32s, at: int, step: int, width: int) -> bool:
    """Return whether one of the words of eight slots, the first of them at `at`, is not zero."""
    found = words[at] | words[at + step] | words[at + 2 * step] | words[at + 3 * step]
    found |= words[at + 4 * step] | words[at + 5 * step] | words[at + 6 * step] | words[at + 7 * step]
    if width == 2:
        for k in range(8):
            found |= words[at + k * step + 1]
    return bool(found != 0)


@bare
def gather(words: UInt32s, step: int, width: int, slots: int, bitmap: UInt8s, out: UInt32s) -> int:
    """Copy the words of the slots whose bits are set; return the number of these slots.

    The compaction is branch-free within a byte: every slot is copied and the position advances only on set bits,
    because mispredicted branches cost more.

    Parameters
    ----------
    words : uint32[...], plane
    step, width : words from one slot to the next, and words per slot
    bitmap : uint8[slots / 8, rounded up]
    out : uint32[...], written; it needs space for one slot more than there are set bits
    """
    n = 0
    for i in range(len(bitmap)):
        byte = bitmap[i]
        if byte:
            for slot in range(8 * i, min(8 * i + 8, slots)):
                out[n * width] = words[slot * step]
                if width == 2:
                    out[n * width + 1] = words[slot * step + 1]
                n += int(byte >> np.uint8(7 - slot % 8) & 1)
    return n


@bare
def list_rows(bitmap: UInt8s, first: int, out: UInt32s) -> int:
    """Write the numbers of the slots whose bits are set; return how many there are.

    Parameters
    ----------
    bitmap : uint8[...]
    first : number of the first slot
    out : uint32[...], written; it needs space for one number more than there are set bits
    """
    n = 0
    for i in range(len(bitmap)):
        byte = bitmap[i]
        if byte:
            for k in range(8):
                out[n] = first + 8 * i + k
                n += int(byte >> np.uint8(7 - k) & 1)
    return n


@bare
def scatter(words: UInt32s, step: int, width: int, index: UInt32s, rows: UInt32s) -> None:
    """Copy each row to the slot of its number, the inverse of `gather`.

    Parameters
    ----------
    words : uint32[...], plane, written
    step, width : words from one slot to the next, and words per slot
    index : uint32[m], numbers of the slots
    rows : uint32[m * width]
    """
    for i in range(len(index)):
        for j in range(width):
            words[np.int64(index[i]) * step + j] = rows[i * width + j]


# -- arrays ------------------------------------------------------------------------------------------------------


class SparseColumn:
    """Present the rows of a table that a bitmap selects as an array, without copying them all at once.

    `pieces` copies the rows piece by piece while the array is written; `np.asarray` copies all of them. Without a
    plane, the items are the numbers of the rows.

    Attributes
    ----------
    plane : array of one dimension, or None
    bitmap : uint8[slots / 8, rounded up]
    dtype, shape : dtype and shape of the array that is presented
    """

    def __init__(self, plane: AnyArray | None, bitmap: UInt8s, count: int) -> None:
        self.plane = plane
        self.bitmap = bitmap
        self.dtype: np.dtype[Any] = np.dtype(np.uint32) if plane is None else plane.dtype
        self.shape = (count,)

    def pieces(self) -> Iterator[AnyArray]:
        """Yield the selected rows in order, as arrays of at most PIECE_SLOTS items."""
        out = _widened(np.empty(PIECE_SLOTS + 1, self.dtype))  # kernels write one slot beyond the last
        step = PIECE_SLOTS // 8
        for i in range(0, len(self.bitmap), step):
            bitmap = self.bitmap[i : i + step]
            if self.plane is None:
                n = list_rows(bitmap, i * 8, out)
            else:
                plane = _widened(self.plane[i * 8 : (i + step) * 8])
                n = gather(*_word_view(plane), len(plane), bitmap, _word_view(out)[0])
            yield out[:n].astype(self.dtype)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> AnyArray:
        return np.concatenate([np.empty(0, self.dtype), *self.pieces()]).astype(dtype or self.dtype, copy=False)

    def __len__(self) -> int:
        return self.shape[0]


Stored: TypeAlias = AnyArray | SparseColumn  # array in a form that `model_file.save` accepts


def pack_table(name: str, planes: Mapping[str, AnyArray]) -> dict[str, Stored]:
    """Name the planes of a weight table for `model_file.save`, without rows that are all zero if that is smaller.

    Parameters
    ----------
    name : name of the table; arrays are called `name.plane`, and `name.index` holds the rising row numbers (uint32)
    planes : arrays of one dimension and equal length, possibly strided. They are read again while the model is written,
        so they must not change between `pack_table` and the end of `save`.

    Returns
    -------
    name -> the plane itself, or a SparseColumn of its rows that are not zero
    """
    slots = len(next(iter(planes.values())))
    bitmap = np.zeros(-(-slots // 8), np.uint8)
    count = 0
    for i in range(0, slots, PIECE_SLOTS):  # the pieces of all planes stay in the cache together
        bits = bitmap[i // 8 : (i + PIECE_SLOTS) // 8]
        for plane in planes.values():
            marked = mark(*_word_view(_widened(plane[i : i + PIECE_SLOTS])), min(PIECE_SLOTS, slots - i), bits)
        count += marked
    row = sum(plane.itemsize for plane in planes.values())
    if slots > 1 << 32 or count * (4 + row) >= slots * row:
        return {f"{name}.{key}": plane for key, plane in planes.items()}
    columns = {f"{name}.{key}": SparseColumn(plane, bitmap, count) for key, plane in planes.items()}
    return {f"{name}.index": SparseColumn(None, bitmap, count), **columns}


def unpack_table(name: str, arrays: Mapping[str, Stored], planes: Mapping[str, AnyArray]) -> None:
    """Fill the planes of a new, zeroed table in place; the inverse of `pack_table`."""
    if f"{name}.index" not in arrays:
        for key, plane in planes.items():
            fill(f"{name}.{key}", arrays, plane)
            release(arrays[f"{name}.{key}"])
        return
    slots = len(next(iter(planes.values())))
    index = take_index(name, arrays, slots)
    step = PIECE
    for key, plane in planes.items():
        stored_rows = take(f"{name}.{key}", arrays, plane.dtype, index.shape)
        target, plane_rows = _widened(plane), _widened(stored_rows)
        for i in range(0, len(index), step):
            scatter(*_word_view(target), index[i : i + step], _word_view(plane_rows[i : i + step])[0])
        if target is not plane:
            plane[...] = target
        release(stored_rows)
    release(index)


def take_index(name: str, arrays: Mapping[str, Stored], slots: int) -> UInt32s:
    """Return the row numbers, uint32[n], of a table that was stored without its empty rows.

    Kernels do not check them. So ModelError is raised unless they are rising, hence distinct, and below `slots`.
    """
    index = np.asarray(arrays[f"{name}.index"])
    if index.dtype != np.uint32 or index.ndim != 1:
        raise unfit(f"{name}.index", "it does not hold row numbers")
    for i in range(0, len(index), PIECE):
        piece = index[max(0, i - 1) : i + PIECE]
        if piece[-1] >= slots or not (piece[1:] > piece[:-1]).all():
            raise unfit(f"{name}.index", f"its row numbers are not rising, or exceed the {slots} rows of the table")
    return index


def release(array: Stored) -> None:
    """Let go of the memory of an array that is part of a mapped file and has been copied.

    Reading it maps the file again. What was changed in the array since it was loaded is lost.
    """
    mapped: Any = array
    while isinstance(mapped, np.ndarray):
        mapped = mapped.base
    if not isinstance(mapped, mmap.mmap) or not hasattr(mmap, "MADV_DONTNEED") or not isinstance(array, np.ndarray):
        return
    begin = array.ctypes.data - np.frombuffer(mapped, np.uint8).ctypes.data
    first = -(-begin // mmap.PAGESIZE) * mmap.PAGESIZE  # pages shared with other arrays stay
    length = (begin + array.nbytes) // mmap.PAGESIZE * mmap.PAGESIZE - first
    if length > 0:
        mapped.madvise(mmap.MADV_DONTNEED, first, length)


def fill(name: str, arrays: Mapping[str, Stored], target: AnyArray) -> None:
    """Copy a stored array into `target`."""
    target[...] = take(name, arrays, target.dtype, target.shape)


def take_row_numbers(name: str, arrays: Mapping[str, Stored], bound: int) -> Int32s:
    """Return a stored int32 array of rising row numbers below `bound`; raise ModelError if it is not one."""
    numbers = take(name, arrays, np.int32, None)
    if len(numbers) and (numbers[0] < 0 or numbers[-1] >= bound or not (numbers[1:] > numbers[:-1]).all()):
        raise unfit(name, f"its row numbers are not rising or not below {bound}")
    return numbers


def check_range(name: str, stored: Stored, low: float, high: float) -> None:
    """Raise ModelError if an array contains NaN or numbers outside low..high."""
    array = np.asarray(stored)
    if array.size and not (array.min() >= low and array.max() <= high):
        outside = array[~((array >= low) & (array <= high))].flat[0]
        raise unfit(name, f"it holds {outside!s}, but only numbers from {low} to {high} are allowed")


def check_rows(name: str, arrays: Mapping[str, Stored], rows: int) -> None:
    """Raise ModelError if a stored array has another number of rows; checked before memory is allocated for them."""
    shape = np.shape(arrays[name]) if name in arrays else (rows,)
    if shape[:1] != (rows,):
        raise unfit(name, f"it has the shape {list(shape)}, but the options require {rows} rows")


def check_permutation(name: str, array: AnyArray) -> None:
    """Raise ModelError unless an array contains each number from 0 to its length less 1 exactly once."""
    check_range(name, array, 0, len(array) - 1)
    present = np.zeros(len(array), bool)
    present[array] = True
    if not present.all():
        raise unfit(name, f"it lacks {int(np.argmin(present))}; every number from 0 to {len(array) - 1} is needed once")


def take(name: str, arrays: Mapping[str, Stored], dtype: DTypeLike, shape: tuple[int | None, ...] | None) -> AnyArray:
    """Return a stored array after checking its dtype and shape.

    Parameters
    ----------
    dtype : required dtype
    shape : required shape; None for a size allows any size, None for the shape any length in one dimension
    """
    if name not in arrays:
        raise unfit(name, "it is missing")
    array = np.asarray(arrays[name])
    shape = (None,) if shape is None else shape
    matches = array.ndim == len(shape) and all(
        size in (None, actual) for size, actual in zip(shape, array.shape, strict=True)
    )
    if array.dtype != dtype or not matches:
        wanted = ", ".join("any" if size is None else str(size) for size in shape)
        raise unfit(
            name, f"it is {array.dtype}{list(array.shape)}, but the options require {np.dtype(dtype)}[{wanted}]"
        )
    return array


# -- facts -------------------------------------------------------------------------------------------------------


Value = TypeVar("Value")


class _TrackedDict(dict[str, Value]):
    """A dictionary read from a file that records which of its keys were used."""

    def __init__(self, record: Mapping[str, Value]) -> None:
        super().__init__(record)
        self.used: set[str] = set()

    def __getitem__(self, name: str) -> Value:
        self.used.add(name)
        return super().__getitem__(name)

    def first_unused(self) -> str | None:
        """Return the smallest key that was not used, None if all were."""
        return min(self.keys() - self.used, default=None)


@contextlib.contextmanager
def reject_unused(arrays: Mapping[str, Stored], facts: object) -> Iterator[tuple[dict[str, Stored], dict[str, Any]]]:
    """Yield the arrays and facts of a learner, and at the end refuse those that it has not read."""
    if not isinstance(facts, Mapping):
        raise ModelError(
            f"the model's fact 'learner' is {short_repr(facts)}, but a record is required; train the model again"
        )
    tracked_arrays, tracked_facts = _TrackedDict(arrays), _TrackedDict(facts)
    yield tracked_arrays, tracked_facts
    name = tracked_arrays.first_unused()
    if name is not None:
        raise ModelError(
            f"the model has an array {short_repr(name)}, which its options do not use; train the model again"
        )
    name = tracked_facts.first_unused()
    if name is not None:
        raise ModelError(
            f"the model has a fact 'learner' with {short_repr(name)}, which its options do not use; train the model "
            "again"
        )


Number = TypeVar("Number", int, float)


def take_fact(name: str, facts: Mapping[str, Any], kind: type[Number], low: float, high: float) -> Number:
    """Return a stored number of a learner after checking its type and range.

    Parameters
    ----------
    kind : int for whole numbers, float for any numbers
    low, high : allowed range, inclusive
    """
    number = "a whole number" if kind is int else "a number"
    required = f"{number} from {low} to {high} is required; train the model again"
    if name not in facts:
        raise ModelError(f"the model's fact 'learner' lacks {name!r}; {required}")
    value = facts[name]
    if type(value) not in (int, kind) or not low <= value <= high:
        raise ModelError(f"the model's fact 'learner' has {name!r}: {short_repr(value)}, but {required}")
    return kind(value)


def _widened(plane: AnyArray) -> AnyArray:
    """Return the plane itself, or a uint32 copy if its items have fewer than four bytes."""
    return plane if plane.itemsize >= 4 else plane.view(f"u{plane.itemsize}").astype(np.uint32)


def _word_view(plane: AnyArray) -> tuple[UInt32s, int, int]:
    """Return a plane as uint32 words with its strides, so that kernels are compiled only once.

    Zero is decided by bits, so -0.0 counts as not zero.

    Returns
    -------
    words : uint32[...], from the first item to the last, shared with the plane
    step, width : words from one item to the next, and words per item
    """
    width, step = plane.itemsize // 4, plane.strides[0] // 4
    words = plane[:1].view(np.uint32)
    return as_strided(words, ((len(plane) - 1) * step + width if len(plane) else 0,), (4,)), step, width


def unfit(name: str, reason: str) -> ModelError:
    """Return the error for an array that does not fit the options of the model."""
    return ModelError(f"the model's array {name!r} does not fit its options: {reason}; train the model again")
