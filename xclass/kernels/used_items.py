"""Number the items in use of a long sequence of which few are in use, so that only these need memory.

Idea      A bitmap has one bit for each item. Beside every 64 bits stands how many items in use come before them. The
          number of an item in use is that count plus the lower bits that are set.
Cost      16 bytes for every 64 items, and one cache miss to look up an item.
Names     bitmap: uint64[2 * w], the bits of 64 items, lowest first, then the count of those in use before them, w times
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..array_types import Int, Int64s, UInt32s, UInt64s
from . import intrinsics
from .jit import bare, jit

FEW = 4  # items are few if less than one of so many is in use


def are_few(used: int, items: int) -> bool:
    """Return whether so few of some items are in use that it saves memory to hold only these."""
    return FEW * used < items


def bitmap_bytes(items: int) -> int:
    return 16 * -(-items // 64)


def new_bitmap(items: int) -> UInt64s:
    return np.zeros(2 * -(-items // 64), np.uint64)


def items_of(bitmap: UInt64s) -> Int64s:
    """Return the items in use in order, as int64[n]."""
    bits = np.ascontiguousarray(bitmap[0::2], "<u8").view(np.uint8)
    return np.flatnonzero(np.unpackbits(bits, bitorder="little"))


# -- kernels


@jit
def fill(bitmap: UInt64s, part: UInt32s, parts: Int) -> int:
    """Enter the items that contain some parts, such as the lines in which slots are; return the number of items.

    No item is in use before. `part`, uint32[n], are numbers of parts that are in use, and an item has `parts` parts.
    """
    for i in range(len(part)):
        item = np.int64(part[i]) // parts
        bitmap[2 * (item >> 6)] |= np.uint64(1) << np.uint64(item & 63)
    total: Any = np.int64(0)
    for i in range(0, len(bitmap), 2):
        bits: Any = bitmap[i]
        if total:  # pages before the first item are only read, so that they take no memory
            bitmap[i + 1] = total
        total += intrinsics.count_ones(bits)
    return int(total)


@bare
def prefetch(bitmap: UInt64s, item: Int) -> None:
    intrinsics.prefetch(bitmap, 2 * (item >> 6))


@bare
def number_of(bitmap: UInt64s, item: Int, otherwise: Int) -> Int:
    """Return the number of an item among those in use, from 0, or `otherwise` if it is not in use."""
    at = 2 * (item >> 6)
    bits: Any = bitmap[at]
    bit = np.uint64(1) << np.uint64(item & 63)
    number = np.int64(bitmap[at + 1]) + np.int64(intrinsics.count_ones(bits & (bit - np.uint64(1))))
    used = -np.int64(bits & bit != 0)  # no branch, because it could not be predicted
    return number & used | otherwise & ~used
