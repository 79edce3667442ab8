"""Find and write what has changed in tables that are seen as lines of 16 numbers of 32 bits, 64 bytes each.

Idea      A worker keeps a hash of each line instead of a second table, and sends the lines whose hash has changed: for
          each its number, a mask of the places that are not 0, and what they hold. What all workers get back lists in
          the same way the places that any of them has changed.
Cost      O(size of the range), at the speed of memory.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..array_types import Bools, Int, Int64s, UInt16s, UInt32s, UInt64s
from ..kernels.jit import jit

LINE = 16  # numbers of a line
PRIME = np.uint64(0x9E3779B97F4A7C15)  # odd, so that no two numbers have the same product
EVERY = np.empty(0, bool)


class Lines(NamedTuple):
    """Hold some lines of a range of an array."""

    begin: int  # of the range in the array
    end: int
    line: UInt32s  # numbers of the lines within the range, rising
    mask: UInt16s  # for each line, its places that are listed
    number: UInt32s  # what they hold
    whole: bool  # whether the other places of a line are 0; else they stay as they are
    complete: bool  # whether the other lines are 0; else they stay as they are

    @property
    def nbytes(self) -> int:
        return self.line.nbytes + self.mask.nbytes + self.number.nbytes


def hashes(array: UInt32s) -> UInt64s:
    """Return a hash of each line."""
    found = np.empty(-(-len(array) // LINE), np.uint64)
    fill_hashes(array, found)
    return found


def listed(part: UInt32s, begin: int, chosen: Int64s | None = None, places: Bools = EVERY) -> Lines:
    """Return some lines of a range of an array, which begins there.

    `chosen` are the rising numbers of the lines in the range, by default of all that are not 0. `places`, bool[numbers
    of the range], are those to list; by default those that are not 0.
    """
    if chosen is None:
        used = np.empty(-(-len(part) // LINE), bool)
        mark_used(part, used)
        lines = np.flatnonzero(used)
    else:
        lines = chosen
    size = count(part, lines, places)
    one = Lines(
        begin, begin + len(part), lines.astype(np.uint32), np.empty(len(lines), np.uint16), np.empty(size, np.uint32),
        not len(places), chosen is None,
    )  # fmt: skip
    fill(part, lines, places, one.mask, one.number)
    return one


def write(part: UInt32s, lines: Lines) -> None:
    """Write lines to the range of an array that they are of."""
    if lines.complete:
        part[:] = 0
    write_lines(part, lines.line, lines.mask, lines.number, lines.whole)


@jit
def fill_hashes(array: UInt32s, found: UInt64s) -> None:
    for n in range(len(found)):
        z = np.uint64(0)
        for i in range(n * LINE, min((n + 1) * LINE, len(array))):
            z = (z ^ np.uint64(array[i])) * PRIME
            z ^= z >> np.uint64(32)
        found[n] = z


@jit
def mask_of(array: UInt32s, n: Int, places: Bools) -> np.int64:
    """Return which places of line n are listed."""
    mask = np.int64(0)
    for i in range(n * LINE, min((n + 1) * LINE, len(array))):
        if places[i] if len(places) > 0 else array[i] != 0:
            mask |= np.int64(1) << (i & LINE - 1)
    return mask


@jit
def mark(items: UInt32s | Int64s, size: Int, other: Int, used: Bools) -> None:
    """Set `used` for the items of `other` numbers that share a number with some items of `size` numbers."""
    for item in items:
        begin = np.int64(item) * size
        for i in range(begin // other, min((begin + size - 1) // other + 1, len(used))):
            used[i] = True


@jit
def mark_used(array: UInt32s, used: Bools) -> None:
    """Set `used`, bool[lines], where a line is not 0."""
    for n in range(len(used)):
        bits = np.uint32(0)
        for i in range(n * LINE, min((n + 1) * LINE, len(array))):
            bits |= array[i]
        used[n] = bits != 0


@jit
def count(array: UInt32s, lines: Int64s, places: Bools) -> int:
    """Return how many places of some lines are listed, see `listed`."""
    numbers = 0
    for n in lines:
        mask = mask_of(array, n, places)
        while mask != 0:
            mask &= mask - 1
            numbers += 1
    return numbers


@jit
def fill(array: UInt32s, lines: Int64s, places: Bools, mask: UInt16s, number: UInt32s) -> None:
    """List places of some lines, see `listed`."""
    numbers = 0
    for k in range(len(lines)):
        own = mask_of(array, lines[k], places)
        mask[k] = own
        for j in range(LINE):
            if own >> j & 1:
                number[numbers] = array[lines[k] * LINE + j]
                numbers += 1


@jit
def write_lines(array: UInt32s, line: UInt32s, mask: UInt16s, number: UInt32s, whole: bool) -> None:
    numbers = 0
    for k in range(len(line)):
        n: Int = np.int64(line[k])
        own = np.int64(mask[k])
        for i in range(n * LINE, min((n + 1) * LINE, len(array))):
            if own >> (i & LINE - 1) & 1:
                array[i] = number[numbers]
                numbers += 1
            elif whole:
                array[i] = 0
