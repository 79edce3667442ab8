"""Names to 32 bits: MurmurHash3_x86_32, and VW's two ways of using it.

Source    Austin Appleby's MurmurHash3 (public domain); VW's `--hash strings|all`.
Cost      about a nanosecond for a name of up to seven bytes.
Differs   from VW in nothing: `murmur3` equals mmh3 for every byte string, `strings` follows VW's hashstring.

All arithmetic is in uint32. Products are taken in uint64 and cut, which is the same and keeps numpy silent
where numba is switched off.
"""

from __future__ import annotations

import numpy as np

from ..array_types import Int, UInt8s
from ..kernels import intrinsics
from ..kernels.jit import jit

C1 = np.uint64(0xCC9E2D51)
C2 = np.uint64(0x1B873593)
FIVE, ADDED = np.uint64(5), np.uint64(0xE6546B64)
F1, F2 = np.uint64(0x85EBCA6B), np.uint64(0xC2B2AE35)


@jit
def _mixed(k: np.uint32) -> np.uint32:
    """One block of four bytes, scrambled."""
    k = np.uint32(np.uint64(k) * C1)
    k = np.uint32(np.uint64(k) << np.uint64(15)) | (k >> np.uint32(17))
    return np.uint32(np.uint64(k) * C2)


@jit
def _added(h: np.uint32, block: np.uint32) -> np.uint32:
    """The state `h` after four more bytes."""
    h = np.uint32(h ^ _mixed(block))
    h = np.uint32(np.uint64(h) << np.uint64(13)) | np.uint32(h >> np.uint32(19))
    return np.uint32(np.uint64(h) * FIVE + ADDED)


@jit
def murmur3(data: UInt8s, begin: Int, end: Int, seed: np.uint32) -> np.uint32:
    """Return MurmurHash3_x86_32 of `data[begin:end]` (data : uint8[...], seed : uint32) as uint32."""
    if end + 3 > len(data):
        data = np.concatenate((data[begin:end], np.zeros(3, np.uint8)))
        begin, end = 0, end - begin
    return murmur3_at(intrinsics.pointer(data), begin, end, seed)


@jit
def murmur3_at(text: UInt8s, begin: Int, end: Int, seed: np.uint32) -> np.uint32:
    """`murmur3` by pointer; three bytes beyond `end` are looked at."""
    h = np.uint32(seed)
    p = begin
    while p + 4 <= end:
        h = _added(h, intrinsics.load32(text, p))
        p += 4
    used = (np.uint32(1) << np.uint32(8 * (end - p))) - np.uint32(1)  # the last 0 to 3 bytes; 0 mixes to 0
    h = np.uint32(h ^ _mixed(np.uint32(intrinsics.load32(text, p) & used)))
    return _finished(h, end - begin)


@jit
def strings_at(text: UInt8s, begin: Int, end: Int, seed: np.uint32) -> np.uint32:
    """Return the hash of `--hash strings`: digits are taken as a number, all other names by murmur3.

    Bytes up to 0x20 are stripped from both ends first; a name of which nothing is left counts as 0.
    """
    while begin < end and text[begin] <= 32:
        begin += 1
    while begin < end and text[end - 1] <= 32:
        end -= 1
    number = np.uint32(0)
    for p in range(begin, end):
        if text[p] < 48 or text[p] > 57:
            return murmur3_at(text, begin, end, seed)
        number = np.uint32(np.uint64(number) * np.uint64(10) + np.uint64(text[p] - np.uint8(48)))
    return np.uint32(np.uint64(number) + np.uint64(seed))


@jit
def _finished(h: np.uint32, size: Int) -> np.uint32:
    """The last steps of murmur3."""
    h = np.uint32(h ^ np.uint32(size))
    h = np.uint32(h ^ (h >> np.uint32(16)))
    h = np.uint32(np.uint64(h) * F1)
    h = np.uint32(h ^ (h >> np.uint32(13)))
    h = np.uint32(np.uint64(h) * F2)
    return np.uint32(h ^ (h >> np.uint32(16)))


@jit
def is_short(text: UInt8s, begin: Int, end: Int) -> bool:
    """Whether `short_at` hashes the name `text[begin:end]`: one to seven bytes that no rule turns into a number."""
    first = text[begin]
    letter = first < 48 or first > 57
    return end - begin < 8 and end > begin and text[end - 1] > 32 and first > 32 and letter  # type: ignore[return-value]  # one byte


@jit
def short_at(text: UInt8s, begin: Int, end: Int, seed: np.uint32) -> np.uint32:
    """Return the hash of a short name, without loops; eight bytes from `begin` on are looked at."""
    size = end - begin
    rest = intrinsics.load32(text, begin)
    h = np.uint32(seed)
    if size >= 4:
        h = _added(h, rest)
        rest = intrinsics.load32(text, begin + 4)
    used = (np.uint32(1) << np.uint32(8 * (size & 3))) - np.uint32(1)
    return _finished(np.uint32(h ^ _mixed(np.uint32(rest & used))), size)


@jit
def name_at(text: UInt8s, begin: Int, end: Int, seed: np.uint32, every: bool) -> np.uint32:
    """Return the hash of the name `text[begin:end]`: of `--hash all` if `every`, else of `--hash strings`."""
    if every:
        return murmur3_at(text, begin, end, seed)
    return strings_at(text, begin, end, seed)


@jit
def name_hash(data: UInt8s, begin: Int, end: Int, seed: np.uint32, every: bool) -> np.uint32:
    """`name_at` for an array, data : uint8[...]; short names take the short way."""
    if begin + 8 > len(data) or end + 3 > len(data):
        data = np.concatenate((data[begin:end], np.zeros(8, np.uint8)))
        begin, end = 0, end - begin
    text = intrinsics.pointer(data)
    if is_short(text, begin, end):
        return short_at(text, begin, end, seed)
    return name_at(text, begin, end, seed, every)


# -- Python


def of_bytes(name: bytes) -> int:
    """MurmurHash3_x86_32 of a name, with seed 0."""
    return int(murmur3(np.frombuffer(name + b"000", np.uint8), 0, len(name), np.uint32(0)))
