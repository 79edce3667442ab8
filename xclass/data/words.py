"""Hash the words of documents to features of the default namespace.

Idea      Words are separated by white space, the bytes that Python's `bytes.split()` takes as such. `:` and `|` have no
          special meaning. A word is hashed by `hashing.word_at`.
Cost      About 1.5 ns per byte on one core.
"""

from __future__ import annotations

import numpy as np

from ..array_types import Int, Int64s, UInt8s, UInt32s
from ..kernels import intrinsics
from ..kernels.jit import inlined, jit
from . import hashing

PADDING = 8  # bytes that must follow the text in its array, because short words are loaded eight bytes at a time


@inlined
def is_space(c: int) -> bool:
    """Return whether a byte is white space: tab, newline, vertical tab, form feed, carriage return or space."""
    return (c == 32) | ((c >= 9) & (c <= 13))


@inlined
def hash_words(
    text: UInt8s, begin: Int, end: Int, seed: np.uint32, every: bool, mask: np.uint32, index: UInt32s, z: int
) -> int:
    """Write the indices of the words of one document to `index` from z on; return z plus the number of words.

    Seven bytes beyond `end` are read and must exist.
    """
    p = begin
    while p < end:
        while p < end and is_space(text[p]):
            p += 1
        first = p
        while p < end and not is_space(text[p]):
            p += 1
        if p > first:
            if hashing.is_short(text, first, p):
                h = hashing.short_at(text, first, p, seed)
            else:
                h = hashing.word_at(text, first, p, seed, every)
            index[z] = np.uint32(h & mask)
            z += 1
    return z


@jit
def words(
    text: UInt8s, begin: Int64s, end: Int64s, seed: np.uint32, every: bool, mask: np.uint32
) -> tuple[Int64s, UInt32s]:
    """Return the indices of the words of n documents, and int64[n + 1], where those of each document begin.

    Parameters
    ----------
    text : uint8[largest end + PADDING or more]
    begin, end : int64[n], range of each document in `text`
    seed : hash of the namespace; for the default namespace, that of the name "" (0 unless `--hash_seed` is given)
    every : whether names of digits are hashed, too (`--hash all`)
    """
    pointer = intrinsics.pointer(text)
    n = len(begin)
    most = 0
    for i in range(n):
        most += max(np.int64(0), end[i] - begin[i] + 1) // 2
    start = np.zeros(n + 1, np.int64)
    index = np.empty(most, np.uint32)
    place = intrinsics.pointer(index)
    z = 0
    for i in range(n):
        z = hash_words(pointer, begin[i], end[i], seed, every, mask, place, z)
        start[i + 1] = z
    return start, index[:z].copy()
