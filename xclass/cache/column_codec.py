"""Columns: unsigned numbers of 32 bits in as few bytes as they need, and a checksum for the bytes they lie in.

Whichever way takes the least is chosen, column by column: one number for all, 1 to 4 bytes each, or a list of the
different ones and 1 or 2 bytes each. Three int64 say how a column is stored: the way, the length of the list, the one
number. A column, and a list, begins at a multiple of 8 bytes.

Cost      reading takes .3 to .6 ns per number, half of that for one number for all; the checksum .4 ns per 8 bytes.
"""

from __future__ import annotations

import numpy as np

from ..array_types import Int, Int64s, UInt8s, UInt16s, UInt32s, UInt64s
from ..kernels import hash_table, intrinsics
from ..kernels.constants import GOLDEN
from ..kernels.jit import jit

SAME, WIDE1, WIDE2, WIDE3, WIDE4, LIST1, LIST2 = range(7)  # how a column is stored
LONGEST_LIST = 1 << 16
HALF = np.uint64(32)


@jit
def checksum(words: UInt64s, n: int, begin: np.uint64) -> np.uint64:
    """A sum of `words[:n]`, uint64[...], that goes on from the sum `begin`; each changed word changes it.

    Eight sums side by side, each word of one mixed into what came before by steps that can be undone.
    """
    word = intrinsics.pointer(words)
    a = b = c = d = e = f = g = h = np.uint64(begin)
    for i in range(0, n - 7, 8):
        a = (a ^ word[i]) * GOLDEN
        b = (b ^ word[i + 1]) * GOLDEN
        c = (c ^ word[i + 2]) * GOLDEN
        d = (d ^ word[i + 3]) * GOLDEN
        e = (e ^ word[i + 4]) * GOLDEN
        f = (f ^ word[i + 5]) * GOLDEN
        g = (g ^ word[i + 6]) * GOLDEN
        h = (h ^ word[i + 7]) * GOLDEN
        a ^= a >> HALF
        b ^= b >> HALF
        c ^= c >> HALF
        d ^= d >> HALF
        e ^= e >> HALF
        f ^= f >> HALF
        g ^= g >> HALF
        h ^= h >> HALF
    total = np.uint64(n)
    for one in (a, b, c, d, e, f, g, h):
        total = (total ^ one) * GOLDEN
        total ^= total >> HALF
    for i in range(n - n % 8, n):
        total = (total ^ word[i]) * GOLDEN
        total ^= total >> HALF
    return total


@jit
def padded(out: UInt8s, at: Int) -> int:
    """Zeros from `at` on up to a multiple of 8; return it."""
    while at % 8 != 0:
        out[at] = 0
        at += 1
    return at  # type: ignore[return-value]  # whatever kind of whole number comes in


@jit
def put(
    column: UInt32s, m: int, table: UInt32s, codes: UInt16s, listed: UInt32s, out: UInt8s, at: int, how: Int64s,
    secret: np.uint64,
) -> int:  # fmt: skip
    """Store `column[:m]` in `out` from `at` on, as `how` then says; return the place after it, a multiple of 8.

    table, codes, listed : uint32[2**18], uint16[m], uint32[2**16]; scratch
    secret : of the hash of numbers, see `hash_table`
    """
    largest = np.uint32(0)
    same = True
    for i in range(m):
        largest = max(largest, column[i])
        same &= column[i] == column[0]
    how[1] = 0
    how[2] = 0
    if m == 0 or same:
        how[0] = SAME
        how[2] = column[0] if m > 0 else 0
        return at
    width: Int = 1 + (largest > 0xFF) + (largest > 0xFFFF) + (largest > 0xFFFFFF)
    most: int = min(LONGEST_LIST, (width - 2) * m // 4) if width > 2 else min(256, m // 4) if width == 2 else 0
    if most < 256 < (width - 1) * m // 4:
        most = 256
    size = 0
    if most > 0:
        room = 1024
        while room < 4 * most:
            room *= 2
        table[:room] = 0
        for i in range(m):
            # not `hash_table.probe`: a cell holds the place of its number in `listed`
            slot = np.int64(hash_table.hashed(column[i], secret)) & (room - 1)
            while table[slot] != 0 and listed[table[slot] - 1] != column[i]:
                slot = (slot + 1) & (room - 1)
            if table[slot] == 0:
                if size == most:
                    size += 1
                    break
                listed[size] = column[i]
                size += 1
                table[slot] = size
            codes[i] = np.uint16(table[slot] - 1)
    if size > most or size == 0 or (size > 256 and width == 2):
        if width == 1:
            for i in range(m):
                out[at + i] = column[i]
        elif width == 2:
            two = out[at : at + 2 * m].view(np.uint16)
            for i in range(m):
                two[i] = column[i]
        elif width == 3:  # two bytes of each, then the third of each
            two = out[at : at + 2 * m].view(np.uint16)
            for i in range(m):
                two[i] = column[i] & np.uint32(0xFFFF)
                out[at + 2 * m + i] = column[i] >> np.uint32(16)
        else:
            four = out[at : at + 4 * m].view(np.uint32)
            for i in range(m):
                four[i] = column[i]
        how[0] = width
        return padded(out, at + width * m)
    how[1] = size
    four = out[at : at + 4 * size].view(np.uint32)
    for i in range(size):
        four[i] = listed[i]
    at = padded(out, at + 4 * size)
    if size <= 256:
        how[0] = LIST1
        for i in range(m):
            out[at + i] = codes[i]
        return padded(out, at + m)
    how[0] = LIST2
    two = out[at : at + 2 * m].view(np.uint16)
    for i in range(m):
        two[i] = codes[i]
    return padded(out, at + 2 * m)


@jit
def size_of(how: Int64s, m: int, room: int) -> int:
    """Bytes of the column of m numbers stored as `how` says; -1 where that cannot be, or takes more than `room`."""
    kind, size = how[0], how[1]
    if kind == SAME:
        return 0
    if WIDE1 <= kind <= WIDE4:
        taken = (kind * m + 7) // 8 * 8
    elif LIST1 <= kind <= LIST2 and 1 <= size <= LONGEST_LIST:
        taken = (4 * size + 7) // 8 * 8 + ((1 if kind == LIST1 else 2) * m + 7) // 8 * 8
    else:
        return -1
    fits: int = taken if taken <= room else -1
    return fits


@jit
def take_list(data: UInt8s, at: int, how: Int64s, listed: UInt32s) -> int:
    """Copy the list of the column at `data[at]` to `listed`, uint32[2**16], where every code has a place."""
    given, out = intrinsics.pointer(data[at : at + 4 * how[1]].view(np.uint32)), intrinsics.pointer(listed)
    for i in range(how[1]):
        out[i] = given[i]
    end: int = at + (4 * how[1] + 7) // 8 * 8
    return end


@jit
def get(data: UInt8s, at: int, how: Int64s, m: int, listed: UInt32s, column: UInt32s) -> None:
    """Read `column[:m]` from `data[at:]`. listed : uint32[2**16], scratch."""
    kind, one = how[0], np.uint32(how[2])
    out = intrinsics.pointer(column)
    if kind == SAME:
        for i in range(m):
            out[i] = one
    elif kind == WIDE4:
        four = intrinsics.pointer(data[at : at + 4 * m].view(np.uint32))
        for i in range(m):
            out[i] = four[i]
    elif kind == WIDE3:
        two = intrinsics.pointer(data[at : at + 2 * m].view(np.uint16))
        third = intrinsics.pointer(data[at + 2 * m : at + 3 * m])
        for i in range(m):
            out[i] = np.uint32(two[i]) | (np.uint32(third[i]) << np.uint32(16))
    elif kind == WIDE2:
        two = intrinsics.pointer(data[at : at + 2 * m].view(np.uint16))
        for i in range(m):
            out[i] = two[i]
    elif kind == WIDE1:
        byte = intrinsics.pointer(data[at : at + m])
        for i in range(m):
            out[i] = byte[i]
    else:
        at = take_list(data, at, how, listed)
        number = intrinsics.pointer(listed)
        if kind == LIST1:
            byte = intrinsics.pointer(data[at : at + m])
            for i in range(m):
                out[i] = number[byte[i]]
        else:
            two = intrinsics.pointer(data[at : at + 2 * m].view(np.uint16))
            for i in range(m):
                out[i] = number[two[i]]


@jit
def get_rows(
    data: UInt8s, at: int, how: Int64s, z: int, rows: Int64s, n: int, last: np.uint32, listed: UInt32s, target: UInt32s
) -> None:
    """As `get`, in rows: row i goes to `target[rows[i]:rows[i + 1] - 1]`, and its last place is given `last`."""
    kind, one = how[0], np.uint32(how[2])
    out, start = intrinsics.pointer(target), intrinsics.pointer(rows)
    p = 0
    if kind == SAME:
        for q in range(z + n):
            out[q] = one
        if one == last:
            return
    elif kind == WIDE4:
        four = intrinsics.pointer(data[at : at + 4 * z].view(np.uint32))
        for i in range(n):
            for q in range(start[i], start[i + 1] - 1):
                out[q] = four[p]
                p += 1
    elif kind == WIDE3:
        two = intrinsics.pointer(data[at : at + 2 * z].view(np.uint16))
        third = intrinsics.pointer(data[at + 2 * z : at + 3 * z])
        for i in range(n):
            for q in range(start[i], start[i + 1] - 1):
                out[q] = np.uint32(two[p]) | (np.uint32(third[p]) << np.uint32(16))
                p += 1
    elif kind == WIDE2:
        two = intrinsics.pointer(data[at : at + 2 * z].view(np.uint16))
        for i in range(n):
            for q in range(start[i], start[i + 1] - 1):
                out[q] = two[p]
                p += 1
    elif kind == WIDE1:
        byte = intrinsics.pointer(data[at : at + z])
        for i in range(n):
            for q in range(start[i], start[i + 1] - 1):
                out[q] = byte[p]
                p += 1
    else:
        at = take_list(data, at, how, listed)
        number = intrinsics.pointer(listed)
        if kind == LIST1:
            byte = intrinsics.pointer(data[at : at + z])
            for i in range(n):
                for q in range(start[i], start[i + 1] - 1):
                    out[q] = number[byte[p]]
                    p += 1
        else:
            two = intrinsics.pointer(data[at : at + 2 * z].view(np.uint16))
            for i in range(n):
                for q in range(start[i], start[i + 1] - 1):
                    out[q] = number[two[p]]
                    p += 1
    for i in range(n):
        out[start[i + 1] - 1] = last
