"""Store weight tables compactly in a model file, and check the arrays of untrusted files when they are restored.

A weight table is stored without its empty rows if that is smaller; a plane that has the same item in all other rows,
such as a largest value of 1, is then stored as this item. Arrays and facts from a file are checked for type, shape and
range before they are used.

Names     A plane has one number for every slot of a weight table, such as all weights. A row is what a slot holds in
          all planes of the table.
"""

from __future__ import annotations

import contextlib
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import DTypeLike

from ..array_types import AnyArray, UInt8s, UInt32s
from ..errors import OTHER_MODEL, ModelError
from ..kernels import used_items
from ..system import memory
from ..system.printable import short_repr

PIECE = 1 << 18  # rows to check at a time
READ = 1 << 16  # items of an array to read at a time, which stay in the cache of the processor
PIECE_SLOTS = 1 << 17  # slots of a table to scan at a time; a multiple of 8
MAX_COUNT = 2**53  # largest count that a model keeps, see `counts`; in float64, 1 more is the same number
MAX_SUM = 2.0**200  # largest sum of weights, in float64; with one more weight, a float32, it is the same number

Use: TypeAlias = Callable[[str, AnyArray], object]  # of the name of a plane and some of its items

# -- arrays ------------------------------------------------------------------------------------------------------


class Streamed(ABC):
    """Present items that are in no array yet as an array of a `dtype` and a `shape`.

    `pieces` yields them in order, a few at a time, so that the whole need not be held in memory.
    """

    dtype: np.dtype[Any]
    shape: tuple[int, ...]

    @abstractmethod
    def pieces(self) -> Iterator[AnyArray]:
        """Yield the items in order, as arrays of one dimension."""

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> AnyArray:
        items, at = np.empty(math.prod(self.shape), self.dtype), 0
        for piece in self.pieces():
            items[at : at + len(piece)] = piece
            at += len(piece)
        return items.reshape(self.shape).astype(dtype or self.dtype, copy=False)

    def __len__(self) -> int:
        return self.shape[0]


class SparseColumn(Streamed):
    """Present the rows of a table that a bitmap selects as an array, without copying them all at once.

    Without a plane, the items are the numbers of the rows. `bitmap` is uint8[slots / 8, rounded up], with the first of
    eight slots in the highest bit of a byte.
    """

    def __init__(self, plane: AnyArray | None, bitmap: UInt8s, count: int) -> None:
        self.plane = plane
        self.bitmap = bitmap
        self.dtype = np.dtype(np.uint32) if plane is None else plane.dtype
        self.shape = (count,)

    def pieces(self) -> Iterator[AnyArray]:
        for i in range(0, 8 * len(self.bitmap), PIECE_SLOTS):
            piece = self.bitmap[i // 8 : (i + PIECE_SLOTS) // 8]
            if piece.any():
                rows = np.flatnonzero(np.unpackbits(piece).view(bool))
                yield (rows + i).astype(np.uint32) if self.plane is None else self.plane[i : i + PIECE_SLOTS].take(rows)


class Repeated(Streamed):
    """Present a single item, an array of shape [1], as an array of `count` times this item."""

    def __init__(self, item: AnyArray, count: int) -> None:
        self.item = item
        self.dtype = item.dtype
        self.shape = (count,)

    def pieces(self) -> Iterator[AnyArray]:
        for i in range(0, len(self), READ):
            yield self.item.repeat(min(READ, len(self) - i))


Stored: TypeAlias = AnyArray | Streamed  # array in a form that `model_file.save` accepts
Arrays: TypeAlias = Mapping[str, Stored]
Limit: TypeAlias = float | Sequence[Any] | AnyArray  # of the numbers of an array; for each by the rules of broadcasting


def pieces_of(array: Stored) -> Iterator[AnyArray]:
    """Yield the items of an array in order, as arrays of one dimension."""
    if isinstance(array, Streamed):
        yield from array.pieces()
        return
    for i in range(0, len(array), READ):
        yield array[i : i + READ]


def _no(plane: str, piece: AnyArray) -> None:
    """Do nothing with a piece of a plane."""


def pack_table(name: str, planes: Mapping[str, AnyArray], rows: AnyArray | None = None) -> dict[str, Stored]:
    """Name the planes of a weight table for `model_file.save`, without rows that are all zero if that is smaller.

    Arrays are called `name.plane`, and `name.index` holds the rising row numbers (uint32). A plane with one item in all
    of these rows is `Repeated`. The planes have one dimension and equal length, and may be strided. They are read again
    while the model is written, so they must not change between `pack_table` and the end of `save`. `rows` are the
    planes as one, which is quicker to read.
    """
    slots = len(next(iter(planes.values())))
    bitmap = np.zeros(-(-slots // 8), np.uint8)
    count = 0
    # for each plane that has had one item in all rows in use so far, this item, or no item before the first such row
    same: dict[str, AnyArray] = dict.fromkeys(planes, np.empty(0))
    for i in range(0, slots, PIECE_SLOTS):  # the pieces of all planes stay in the cache together
        used = np.zeros(min(PIECE_SLOTS, slots - i), bool)
        for plane in planes.values() if rows is None else [rows]:  # zero is decided by bits, so -0.0 is not zero
            used |= plane[i : i + PIECE_SLOTS].view(f"u{plane.itemsize}") != 0
        bitmap[i // 8 : (i + PIECE_SLOTS) // 8] = np.packbits(used)
        count += int(np.count_nonzero(used))
        for key in list(same) if used.any() else []:
            items = planes[key][i : i + PIECE_SLOTS][used]
            same[key] = same[key] if len(same[key]) else items[:1]
            if (items.view(f"u{items.itemsize}") != same[key].view(f"u{items.itemsize}")).any():
                del same[key]
    row = sum(plane.itemsize for plane in planes.values())
    stored_row = row - sum(planes[key].itemsize for key in same)
    if slots > 1 << 32 or count * stored_row + min(4 * count, len(bitmap)) >= slots * row:
        return {f"{name}.{key}": plane for key, plane in planes.items()}
    columns: dict[str, Stored] = {
        f"{name}.{key}": Repeated(same[key], count) if key in same and count else SparseColumn(plane, bitmap, count)
        for key, plane in planes.items()
    }
    return {f"{name}.index": SparseColumn(None, bitmap, count), **columns}


def pack_rows(name: str, index: UInt32s, columns: Mapping[str, AnyArray], slots: int) -> dict[str, Stored]:
    """Name the rows of a table that is held without its empty rows, as `pack_table` names those of a whole one."""
    used = np.zeros(slots, bool)
    used[index] = True
    stored: dict[str, Stored] = {f"{name}.index": SparseColumn(None, np.packbits(used), len(index))}
    for key, column in columns.items():
        bits = column.view(f"u{column.itemsize}")
        same = len(bits) > 0 and bool((bits == bits[0]).all())
        stored[f"{name}.{key}"] = Repeated(column[:1], len(column)) if same else column
    return stored


def unpack_table(
    name: str,
    arrays: Arrays,
    planes: Mapping[str, AnyArray],
    each: Use = _no,
) -> None:
    """Fill the planes of a new, zeroed table in place; the inverse of `pack_table`.

    `each` is called with the name of a plane and some of its stored items before they are used.
    """
    slots = len(next(iter(planes.values())))
    index = take_index(name, arrays, slots) if f"{name}.index" in arrays else None
    shape, at = (slots if index is None else len(index),), 0
    columns = {key: expected(f"{name}.{key}", arrays, plane.dtype, shape) for key, plane in planes.items()}
    for key, column in columns.items():
        if isinstance(column, Repeated):
            each(key, column.item)
            planes[key][slice(None) if index is None else index] = column.item
    planes = {key: plane for key, plane in planes.items() if not isinstance(columns[key], Repeated)}
    # the planes of a table are often beside each other in its rows
    for pieces in zip(*(pieces_of(columns[key]) for key in planes), strict=True):
        end = at + len(pieces[0])
        rows = slice(at, end) if index is None else index[at:end]
        for (key, plane), piece in zip(planes.items(), pieces, strict=True):
            if len(piece) != end - at:
                raise unfit(f"{name}.{key}", "it is in another form than the other columns of the table")
            each(key, piece)
            plane[rows] = piece
        at = end


def take_index(name: str, arrays: Arrays, slots: int) -> UInt32s:
    """Return the row numbers, uint32[n], of a table that was stored without its empty rows.

    Kernels do not check them. So ModelError is raised unless they are rising, hence distinct, and below `slots`.
    """
    stored = arrays[f"{name}.index"]
    if stored.dtype != np.uint32 or len(stored.shape) != 1:
        raise unfit(f"{name}.index", "it does not hold row numbers")
    if len(stored) > slots:
        raise unfit(f"{name}.index", f"it has {len(stored)} row numbers, but the table has {slots} rows")
    index = np.asarray(stored)
    for i in range(0, len(index), PIECE):
        piece = index[max(0, i - 1) : i + PIECE]
        if piece[-1] >= slots or not (piece[1:] > piece[:-1]).all():
            raise unfit(f"{name}.index", f"its row numbers are not rising, or exceed the {slots} rows of the table")
    return index


def rows_in_use(
    name: str, arrays: Arrays, slots: int, planes: Mapping[str, DTypeLike]
) -> tuple[UInt32s, dict[str, AnyArray]] | None:
    """Return the rows of a table that are in use if they are few (see `used_items.are_few`), else None.

    These are their rising numbers, uint32[n], and for each plane its items in these rows, in memory of their own.
    """
    stored = arrays.get(f"{name}.index")
    if stored is None or not used_items.are_few(math.prod(stored.shape), slots):
        return None
    index = take_index(name, arrays, slots).copy()
    return index, {key: np.array(expected(f"{name}.{key}", arrays, kind, index.shape)) for key, kind in planes.items()}


def check_memory(name: str, needed: int) -> None:
    """Raise ModelError if a table, one of whose arrays has this name, needs more bytes than are free."""
    free = memory.available()
    if free is not None and needed > free:
        raise unfit(
            name, f"the table takes {needed / 2**20:,.0f} MB, but only {free / 2**20:,.0f} MB of memory are free"
        )


def fill(name: str, arrays: Arrays, target: AnyArray, low: Limit | None = None, high: Limit = math.inf) -> None:
    """Copy a stored array, checked as by `take`, into `target`."""
    target[...] = take(name, arrays, target.dtype, target.shape, low, high)


def check_row_numbers(name: str, numbers: AnyArray, bound: int) -> None:
    """Raise ModelError unless the numbers of rows are rising and below `bound`."""
    if len(numbers) and (numbers[0] < 0 or numbers[-1] >= bound or not (numbers[1:] > numbers[:-1]).all()):
        raise unfit(name, f"its row numbers are not rising or not below {bound}")


def check_range(name: str, stored: Stored, low: Limit, high: Limit) -> None:
    """Raise ModelError if an array contains NaN or numbers outside low..high."""
    array = np.asarray(stored)
    if not array.size or (np.ndim(low) == np.ndim(high) == 0 and array.min() >= low and array.max() <= high):
        return
    outside = ~((array >= low) & (array <= high))
    if outside.any():
        x, low, high = (np.broadcast_to(one, array.shape)[outside][0] for one in (array, low, high))
        raise unfit(name, f"it holds {x!s}, but only numbers from {low} to {high} are allowed")


def counts(name: str, stored: Stored) -> AnyArray:
    """Return counts, none above MAX_COUNT: those of a model that was loaded with such a count and learned on are."""
    check_range(name, stored, 0, 2 * MAX_COUNT)
    return np.minimum(stored, MAX_COUNT)


def check_rows(name: str, arrays: Arrays, rows: int) -> None:
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


def take(
    name: str, arrays: Arrays, dtype: DTypeLike, shape: tuple[int | None, ...] | None,
    low: Limit | None = None, high: Limit = math.inf,
) -> AnyArray:  # fmt: skip
    """Return a stored array after checking its dtype and shape, and with `low` that its numbers are in low..high.

    None for a size allows any size, None for the shape any length in one dimension.
    """
    array = np.asarray(expected(name, arrays, dtype, (None,) if shape is None else shape))
    if low is not None:
        check_range(name, array, low, high)
    return array


def expected(name: str, arrays: Arrays, dtype: DTypeLike, shape: tuple[int | None, ...]) -> Stored:
    """Return what is stored of an array after checking its dtype and shape, without reading it."""
    if name not in arrays:
        raise unfit(name, "it is missing")
    array = arrays[name]
    if isinstance(array, Repeated) and None in shape:  # its items could be more than fit in memory
        raise unfit(name, "it has one item for all rows of a table, but is no column of one")
    matches = len(array.shape) == len(shape) and all(
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
    """A dictionary read from a file that knows which of its keys were not used."""

    def __init__(self, record: Mapping[str, Value]) -> None:
        super().__init__(record)
        self.unused = set(record)

    def __getitem__(self, name: str) -> Value:
        self.unused.discard(name)
        return super().__getitem__(name)


@contextlib.contextmanager
def reject_unused(arrays: Arrays, facts: object) -> Iterator[tuple[dict[str, Stored], dict[str, Any]]]:
    """Yield the arrays and facts of a learner, and at the end refuse those that it has not read."""
    if not isinstance(facts, Mapping):
        raise ModelError(f"the model's fact 'learner' is {short_repr(facts)}, but a record is required; {OTHER_MODEL}")
    tracked_arrays, tracked_facts = _TrackedDict(arrays), _TrackedDict(facts)
    yield tracked_arrays, tracked_facts
    for unused, kind in ((tracked_arrays.unused, "an array"), (tracked_facts.unused, "a fact 'learner' with")):
        if unused:
            raise ModelError(
                f"the model has {kind} {short_repr(min(unused))}, which its options do not use; {OTHER_MODEL}"
            )


Number = TypeVar("Number", int, float)


def take_fact(name: str, facts: Mapping[str, Any], kind: type[Number], low: float, high: float) -> Number:
    """Return a stored number of a learner after checking its type and range.

    `kind` is int for whole numbers and float for any numbers; the range is inclusive.
    """
    number = "a whole number" if kind is int else "a number"
    required = f"{number} from {low} to {high} is required; {OTHER_MODEL}"
    if name not in facts:
        raise ModelError(f"the model's fact 'learner' lacks {name!r}; {required}")
    value = facts[name]
    if type(value) not in (int, kind) or not low <= value <= high:
        raise ModelError(f"the model's fact 'learner' has {name!r}: {short_repr(value)}, but {required}")
    return kind(value)


def unfit(name: str, reason: str) -> ModelError:
    """Return the error for an array that does not fit the options of the model."""
    return ModelError(f"the model's array {name!r} does not fit its options: {reason}; {OTHER_MODEL}")
