"""Hold the rows of an index of features, with all of their slots or packed.

Idea      An index has 64 MB of slots, of which a small data set uses few, in rows all over it. An index that only
          predicts is packed if less than a quarter of its slots are in use: the rows in use follow one another, without
          their empty slots, and a bitmap tells which rows these are (`used_items`).
Names     row, slot, class, count: see `feature_index`.

`index` is a `feature_index.Index`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...array_types import Float32s, UInt32s, UInt64s
from ...kernels import intrinsics, used_items
from ...kernels.constants import GOLDEN
from ...kernels.jit import bare, jit
from ...system import sparse_memory

NO_NUMBERS, NO_COUNTS = np.empty(0, np.uint32), np.empty(0, np.float32)


class IndexRows(NamedTuple):
    """Hold the rows of an index; an Index begins with the same fields."""

    # uint32[rows * slots * 2], fewer if the index is packed: number of the class plus 1 (0: empty slot), and its count
    # as float32
    pair: UInt32s
    times: Float32s  # float32[len(pair)], the same memory; without packing, slot j of row r has 2 * (r * slots + j) + 1
    wear: Float32s  # float32[rows], empty if the index is packed
    bitmap: UInt64s  # rows in use of a packed index, see `used_items`; empty if the index is not packed
    # uint32[rows in use + 2], number of slots in use before each row in use of a packed index. The last two items are
    # the number of all slots in use, so that a row that is not in use has an empty range
    first: UInt32s


def all_rows(bits: int, slots: int) -> IndexRows:
    """Return 2**bits empty rows."""
    pair, wear = sparse_memory.zeros(2 * slots << bits), np.zeros(1 << bits, np.float32)
    return IndexRows(pair, pair.view(np.float32), wear, np.empty(0, np.uint64), np.empty(0, np.uint32))


def packed_rows(
    bits: int,
    slots: int,
    slot: UInt32s = NO_NUMBERS,
    number: UInt32s = NO_NUMBERS,
    count: Float32s = NO_COUNTS,
) -> IndexRows:
    """Return 2**bits rows of which few have slots in use, without the others.

    `slot`, uint32[n], has the rising positions of the slots in use, and `number` and `count` what they hold.
    """
    bitmap = used_items.new_bitmap(1 << bits)
    first = np.zeros(used_items.fill(bitmap, slot, slots) + 2, np.uint32)
    pair = np.zeros(2 * len(slot), np.uint32)
    rows = IndexRows(pair, pair.view(np.float32), np.empty(0, np.float32), bitmap, first)
    pack_rows(slot, number, count, slots, rows.pair, rows.times, first)
    return rows


def slots_in_use(index: Any) -> UInt32s:
    """Return the rising positions of the slots in use of a packed index, uint32[n]."""
    row, first = used_items.items_of(index.bitmap), index.first[:-1].astype(np.int64)
    return (np.repeat(row * index.slots - first[:-1], np.diff(first)) + np.arange(int(index.first[-1]))).astype(
        np.uint32
    )


# -- kernels


@bare
def row_of(index: Any, feature: np.uint32) -> np.int64:
    return np.int64((np.uint64(feature) * GOLDEN) >> index.shift)


@bare
def row_begin(index: Any, feature: np.uint32) -> np.int64:
    """Return the position in `pair` of the first slot of a feature's row, if the index is not packed."""
    begin: np.int64 = row_of(index, feature) * (2 * index.slots)
    return begin


@bare
def row_range(index: Any, feature: np.uint32) -> tuple[np.int64, np.int64]:
    """Return the positions in `pair` of the first slot of a feature's row and of the end of the row."""
    if len(index.bitmap) == 0:
        begin = row_begin(index, feature)
        return begin, begin + 2 * index.slots
    number = used_items.number_of(index.bitmap, row_of(index, feature), np.int64(len(index.first)) - 2)
    return 2 * np.int64(index.first[number]), 2 * np.int64(index.first[number + 1])


@bare
def prefetch_row(index: Any, feature: np.uint32) -> None:
    """Prefetch what `row_range` reads of a packed index, or the row itself."""
    if len(index.bitmap) == 0:
        intrinsics.prefetch(index.pair, row_begin(index, feature))
    else:
        used_items.prefetch(index.bitmap, row_of(index, feature))


@jit
def pack_rows(
    slot: UInt32s, number: UInt32s, count: Float32s, slots: int, pair: UInt32s, times: Float32s, first: UInt32s
) -> None:
    """Write the slots in use of the rows in use one after the other.

    A row ends before its first empty slot; if a file has slots after it, they are left out. `packed_rows` explains the
    first three parameters, and `IndexRows` those that are written.
    """
    before = row_number = np.int64(-1)
    filled = following = np.int64(0)
    for i in range(len(slot)):
        row = np.int64(slot[i]) // slots
        if row != before:
            before, following = row, np.int64(0)
            row_number += 1
            first[row_number] = filled
        if np.int64(slot[i]) - row * slots == following and number[i] != 0:
            pair[2 * filled] = number[i]
            times[2 * filled + 1] = count[i]
            filled += 1
            following += 1
        else:
            following = np.int64(slots)
    first[row_number + 1 : row_number + 3] = filled
