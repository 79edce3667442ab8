"""Encode columns of 32-bit unsigned numbers in as few bytes as possible, and compute checksums.

For each column the smallest of these encodings is chosen: one number for all rows, 1 to 4 bytes per number, or a
dictionary of the distinct numbers and 1 or 2 bytes of code per row. Three int64 describe the encoding: its kind, the
size of the dictionary, and the number that all rows share. A column, and a dictionary, begins at a multiple of 8 bytes.

Cost      Decoding takes .3 to .6 ns per number, half of that if all numbers are equal; the checksum takes .4 ns per
          8 bytes.
"""

from __future__ import annotations

import numpy as np

from ..array_types import Int, Int64s, UInt8s, UInt16s, UInt32s, UInt64s
from ..kernels import hash_table, intrinsics
from ..kernels.constants import GOLDEN
from ..kernels.jit import jit

SAME, WIDE1, WIDE2, WIDE3, WIDE4, DICTIONARY1, DICTIONARY2 = range(7)  # how a column is stored
MAX_DICTIONARY = 1 << 16  # maximum size of a dictionary
HALF = np.uint64(32)


@jit
def checksum(words: UInt64s, n: int, initial: np.uint64) -> np.uint64:
    """Return the checksum of `words[:n]` (uint64[...]), continued from the checksum `initial`.

    Eight sums run side by side, so that the processor overlaps the multiplications. Each word is mixed in by invertible
    steps, so a change of any single word changes the result.
    """
    word = intrinsics.pointer(words)
    a = b = c = d = e = f = g = h = np.uint64(initial)
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
    for part in (a, b, c, d, e, f, g, h):
        total = (total ^ part) * GOLDEN
        total ^= total >> HALF
    for i in range(n - n % 8, n):
        total = (total ^ word[i]) * GOLDEN
        total ^= total >> HALF
    return total


@jit
def pad(out: UInt8s, at: Int) -> int:
    """Write zeros to `out` (uint8[...]) from `at` up to a multiple of 8 and return that offset."""
    while at % 8 != 0:
        out[at] = 0
        at += 1
    return at  # type: ignore[return-value]  # the type of `at`, which is any integer type


@jit
def encode_column(
    column: UInt32s, m: int, table: UInt32s, codes: UInt16s, dictionary: UInt32s, out: UInt8s, at: int,
    encoding: Int64s, secret: np.uint64,
) -> int:  # fmt: skip
    """Encode `column[:m]` with the fewest bytes and return the offset after it, a multiple of 8.

    Parameters
    ----------
    table, codes, dictionary : uint32[2**18], uint16[m or more], uint32[2**16], scratch
    out : written from `at` on
    encoding : int64[3], written: kind of the encoding, size of the dictionary, the number that all rows share
    secret : secret key of the hash of numbers, see `hash_table`
    """
    largest = np.uint32(0)
    same = True
    for i in range(m):
        largest = max(largest, column[i])
        same &= column[i] == column[0]
    encoding[1] = 0
    encoding[2] = 0
    if m == 0 or same:
        encoding[0] = SAME
        encoding[2] = column[0] if m > 0 else 0
        return at
    width: Int = 1 + (largest > 0xFF) + (largest > 0xFFFF) + (largest > 0xFFFFFF)
    max_distinct: int = (
        min(MAX_DICTIONARY, (width - 2) * m // 4) if width > 2 else min(256, m // 4) if width == 2 else 0
    )
    if max_distinct < 256 < (width - 1) * m // 4:
        max_distinct = 256
    distinct = 0
    if max_distinct > 0:
        cells = 1024
        while cells < 4 * max_distinct:
            cells *= 2
        table[:cells] = 0
        for i in range(m):
            # `hash_table.probe` does not fit: a cell holds the place of its number in `dictionary`, not the number
            slot = np.int64(hash_table.hashed(column[i], secret)) & (cells - 1)
            while table[slot] != 0 and dictionary[table[slot] - 1] != column[i]:
                slot = (slot + 1) & (cells - 1)
            if table[slot] == 0:
                if distinct == max_distinct:
                    distinct += 1
                    break
                dictionary[distinct] = column[i]
                distinct += 1
                table[slot] = distinct
            codes[i] = np.uint16(table[slot] - 1)
    if distinct > max_distinct or distinct == 0 or (distinct > 256 and width == 2):
        if width == 1:
            for i in range(m):
                out[at + i] = column[i]
        elif width == 2:
            halves = out[at : at + 2 * m].view(np.uint16)
            for i in range(m):
                halves[i] = column[i]
        elif width == 3:  # the lower two bytes of all numbers, then all third bytes
            halves = out[at : at + 2 * m].view(np.uint16)
            for i in range(m):
                halves[i] = column[i] & np.uint32(0xFFFF)
                out[at + 2 * m + i] = column[i] >> np.uint32(16)
        else:
            words = out[at : at + 4 * m].view(np.uint32)
            for i in range(m):
                words[i] = column[i]
        encoding[0] = width
        return pad(out, at + width * m)
    encoding[1] = distinct
    words = out[at : at + 4 * distinct].view(np.uint32)
    for i in range(distinct):
        words[i] = dictionary[i]
    at = pad(out, at + 4 * distinct)
    if distinct <= 256:
        encoding[0] = DICTIONARY1
        for i in range(m):
            out[at + i] = codes[i]
        return pad(out, at + m)
    encoding[0] = DICTIONARY2
    halves = out[at : at + 2 * m].view(np.uint16)
    for i in range(m):
        halves[i] = codes[i]
    return pad(out, at + 2 * m)


@jit
def encoded_size(encoding: Int64s, m: int, limit: int) -> int:
    """Return the bytes of a column of m numbers with an encoding (int64[3]); -1 if it is invalid or above `limit`."""
    kind, size = encoding[0], encoding[1]
    if kind == SAME:
        return 0
    if WIDE1 <= kind <= WIDE4:
        needed = (kind * m + 7) // 8 * 8
    elif DICTIONARY1 <= kind <= DICTIONARY2 and 1 <= size <= MAX_DICTIONARY:
        needed = (4 * size + 7) // 8 * 8 + ((1 if kind == DICTIONARY1 else 2) * m + 7) // 8 * 8
    else:
        return -1
    fits: int = needed if needed <= limit else -1
    return fits


@jit
def read_dictionary(data: UInt8s, at: int, encoding: Int64s, dictionary: UInt32s) -> int:
    """Copy the dictionary of the column at `data[at]` and return the offset after it.

    `dictionary`, uint32[2**16], has a place for every code, so that damaged codes stay inside it.
    """
    source, out = intrinsics.pointer(data[at : at + 4 * encoding[1]].view(np.uint32)), intrinsics.pointer(dictionary)
    for i in range(encoding[1]):
        out[i] = source[i]
    end: int = at + (4 * encoding[1] + 7) // 8 * 8
    return end


@jit
def decode_column(data: UInt8s, at: int, encoding: Int64s, m: int, dictionary: UInt32s, column: UInt32s) -> None:
    """Decode the column of m numbers at `data[at]`; `dictionary` is uint32[2**16], scratch."""
    kind, shared = encoding[0], np.uint32(encoding[2])
    out = intrinsics.pointer(column)
    if kind == SAME:
        for i in range(m):
            out[i] = shared
    elif kind == WIDE4:
        words = intrinsics.pointer(data[at : at + 4 * m].view(np.uint32))
        for i in range(m):
            out[i] = words[i]
    elif kind == WIDE3:
        halves = intrinsics.pointer(data[at : at + 2 * m].view(np.uint16))
        third = intrinsics.pointer(data[at + 2 * m : at + 3 * m])
        for i in range(m):
            out[i] = np.uint32(halves[i]) | (np.uint32(third[i]) << np.uint32(16))
    elif kind == WIDE2:
        halves = intrinsics.pointer(data[at : at + 2 * m].view(np.uint16))
        for i in range(m):
            out[i] = halves[i]
    elif kind == WIDE1:
        byte = intrinsics.pointer(data[at : at + m])
        for i in range(m):
            out[i] = byte[i]
    else:
        at = read_dictionary(data, at, encoding, dictionary)
        number = intrinsics.pointer(dictionary)
        if kind == DICTIONARY1:
            byte = intrinsics.pointer(data[at : at + m])
            for i in range(m):
                out[i] = number[byte[i]]
        else:
            halves = intrinsics.pointer(data[at : at + 2 * m].view(np.uint16))
            for i in range(m):
                out[i] = number[halves[i]]


@jit
def decode_rows(
    data: UInt8s,
    at: int,
    encoding: Int64s,
    z: int,
    rows: Int64s,
    n: int,
    last: np.uint32,
    dictionary: UInt32s,
    target: UInt32s,
) -> None:
    """Decode a column of z numbers into rows that each end with the number `last`, which is not stored.

    `rows` is int64[n + 1], row i is `target[rows[i]:rows[i + 1]]`; other arguments are as in `decode_column`.
    """
    kind, shared = encoding[0], np.uint32(encoding[2])
    out, start = intrinsics.pointer(target), intrinsics.pointer(rows)
    p = 0
    if kind == SAME:
        for q in range(z + n):
            out[q] = shared
        if shared == last:
            return
    elif kind == WIDE4:
        words = intrinsics.pointer(data[at : at + 4 * z].view(np.uint32))
        for i in range(n):
            for q in range(start[i], start[i + 1] - 1):
                out[q] = words[p]
                p += 1
    elif kind == WIDE3:
        halves = intrinsics.pointer(data[at : at + 2 * z].view(np.uint16))
        third = intrinsics.pointer(data[at + 2 * z : at + 3 * z])
        for i in range(n):
            for q in range(start[i], start[i + 1] - 1):
                out[q] = np.uint32(halves[p]) | (np.uint32(third[p]) << np.uint32(16))
                p += 1
    elif kind == WIDE2:
        halves = intrinsics.pointer(data[at : at + 2 * z].view(np.uint16))
        for i in range(n):
            for q in range(start[i], start[i + 1] - 1):
                out[q] = halves[p]
                p += 1
    elif kind == WIDE1:
        byte = intrinsics.pointer(data[at : at + z])
        for i in range(n):
            for q in range(start[i], start[i + 1] - 1):
                out[q] = byte[p]
                p += 1
    else:
        at = read_dictionary(data, at, encoding, dictionary)
        number = intrinsics.pointer(dictionary)
        if kind == DICTIONARY1:
            byte = intrinsics.pointer(data[at : at + z])
            for i in range(n):
                for q in range(start[i], start[i + 1] - 1):
                    out[q] = number[byte[p]]
                    p += 1
        else:
            halves = intrinsics.pointer(data[at : at + 2 * z].view(np.uint16))
            for i in range(n):
                for q in range(start[i], start[i + 1] - 1):
                    out[q] = number[halves[p]]
                    p += 1
    for i in range(n):
        out[start[i + 1] - 1] = last
