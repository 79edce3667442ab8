"""Hash names of features to 32 bits as VW does (MurmurHash3), and names of classes by SipHash.

Source    Austin Appleby's MurmurHash3_x86_32 (public domain); VW's `--hash strings|all`; Aumasson, Bernstein, "SipHash:
          a fast short-input PRF", INDOCRYPT 2012, with one round per word and three at the end.
Cost      about a nanosecond for a name of up to seven bytes.
Names     `data` is an array of bytes, `text` a pointer to bytes; a name is the bytes begin..end-1.
Differs   from VW in nothing: `murmur3` equals mmh3 for every byte string, `strings_at` follows VW's hashstring. Names
          that are not in VW text are hashed by `word_at`, so that `01067` and `1067` are two features.
Idea      All arithmetic is in uint32. Products are computed in uint64 and truncated, which gives the same result and
          keeps NumPy from warning if numba is switched off.
"""

from __future__ import annotations

import numpy as np

from ..array_types import Int, UInt8s, UInt64s
from ..kernels import intrinsics
from ..kernels.jit import bare, jit

C1 = np.uint64(0xCC9E2D51)
C2 = np.uint64(0x1B873593)
FIVE, ADDED = np.uint64(5), np.uint64(0xE6546B64)
SIP_A, SIP_B = np.uint64(0x736F6D6570736575), np.uint64(0x646F72616E646F6D)
SIP_C, SIP_D = np.uint64(0x6C7967656E657261), np.uint64(0x7465646279746573)
F1, F2 = np.uint64(0x85EBCA6B), np.uint64(0xC2B2AE35)


@bare
def _mixed(k: np.uint32) -> np.uint32:
    """Return one block of four bytes after the mixing steps of murmur3."""
    k = np.uint32(np.uint64(k) * C1)
    k = np.uint32(np.uint64(k) << np.uint64(15)) | (k >> np.uint32(17))
    return np.uint32(np.uint64(k) * C2)


@bare
def _with_block(h: np.uint32, block: np.uint32) -> np.uint32:
    """Return the state `h` after one more block of four bytes."""
    h = np.uint32(h ^ _mixed(block))
    h = np.uint32(np.uint64(h) << np.uint64(13)) | np.uint32(h >> np.uint32(19))
    return np.uint32(np.uint64(h) * FIVE + ADDED)


@jit
def murmur3(data: UInt8s, begin: Int, end: Int, seed: np.uint32) -> np.uint32:
    """Return MurmurHash3_x86_32 of `data[begin:end]` (uint8[...]) as uint32."""
    if end + 3 > len(data):
        data = np.concatenate((data[begin:end], np.zeros(3, np.uint8)))
        begin, end = 0, end - begin
    return murmur3_at(intrinsics.pointer(data), begin, end, seed)


@bare
def murmur3_at(text: UInt8s, begin: Int, end: Int, seed: np.uint32) -> np.uint32:
    """Return `murmur3` of a name at a pointer; three bytes beyond `end` are read and must exist."""
    h = np.uint32(seed)
    p = begin
    while p + 4 <= end:
        h = _with_block(h, intrinsics.load32(text, p))
        p += 4
    # mask of the last 0 to 3 bytes; a block of 0 leaves h unchanged
    mask = (np.uint32(1) << np.uint32(8 * (end - p))) - np.uint32(1)
    h = np.uint32(h ^ _mixed(np.uint32(intrinsics.load32(text, p) & mask)))
    return _finalise(h, end - begin)


@bare
def strings_at(text: UInt8s, begin: Int, end: Int, seed: np.uint32) -> np.uint32:
    """Return the hash of `--hash strings`: names of digits are taken as numbers, all others hashed by murmur3.

    Bytes up to 0x20 are stripped from both ends first; an empty name counts as 0.
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


@bare
def _finalise(h: np.uint32, size: Int) -> np.uint32:
    """Apply the final mixing of murmur3 for a name of `size` bytes."""
    h = np.uint32(h ^ np.uint32(size))
    h = np.uint32(h ^ (h >> np.uint32(16)))
    h = np.uint32(np.uint64(h) * F1)
    h = np.uint32(h ^ (h >> np.uint32(13)))
    h = np.uint32(np.uint64(h) * F2)
    return np.uint32(h ^ (h >> np.uint32(16)))


@bare
def is_short(text: UInt8s, begin: Int, end: Int) -> bool:
    """Return whether `short_at` can hash the name: one to seven bytes, not stripped and not read as a number."""
    first = text[begin]
    letter = first < 48 or first > 57
    return end - begin < 8 and end > begin and text[end - 1] > 32 and first > 32 and letter  # type: ignore[return-value]  # one byte


@bare
def short_at(text: UInt8s, begin: Int, end: Int, seed: np.uint32) -> np.uint32:
    """Return the murmur3 hash of a short name, without loops; eight bytes from `begin` on are read and must exist."""
    size = end - begin
    rest = intrinsics.load32(text, begin)
    h = np.uint32(seed)
    if size >= 4:
        h = _with_block(h, rest)
        rest = intrinsics.load32(text, begin + 4)
    mask = (np.uint32(1) << np.uint32(8 * (size & 3))) - np.uint32(1)
    return _finalise(np.uint32(h ^ _mixed(np.uint32(rest & mask))), size)


@bare
def name_at(text: UInt8s, begin: Int, end: Int, seed: np.uint32, hash_all: bool) -> np.uint32:
    """Return the hash of the name `text[begin:end]`: of `--hash all` if `hash_all`, else of `--hash strings`."""
    if hash_all:
        return murmur3_at(text, begin, end, seed)
    return strings_at(text, begin, end, seed)


@bare
def word_at(text: UInt8s, begin: Int, end: Int, seed: np.uint32, hash_all: bool) -> np.uint32:
    """Return the hash of a name that is not in VW text: the number if it is one of 32 bits as written, else murmur3."""
    size = end - begin
    if hash_all or size == 0 or size > 10 or (text[begin] == 48 and size > 1):
        return murmur3_at(text, begin, end, seed)
    number = np.uint64(0)
    for p in range(begin, end):
        if text[p] < 48 or text[p] > 57:
            return murmur3_at(text, begin, end, seed)
        number = number * np.uint64(10) + np.uint64(text[p] - np.uint8(48))
    if number > np.uint64(0xFFFFFFFF):
        return murmur3_at(text, begin, end, seed)
    return np.uint32(number + np.uint64(seed))


@jit
def name_hash(data: UInt8s, begin: Int, end: Int, seed: np.uint32, hash_all: bool, vw_text: bool) -> np.uint32:
    """Return `name_at` (with `vw_text`) or `word_at` for an array."""
    if begin + 8 > len(data) or end + 3 > len(data):
        data = np.concatenate((data[begin:end], np.zeros(8, np.uint8)))
        begin, end = 0, end - begin
    return _hash_within(data, begin, end, seed, hash_all, vw_text)  # an argument is not freed before the call ends


@jit
def _hash_within(data: UInt8s, begin: Int, end: Int, seed: np.uint32, hash_all: bool, vw_text: bool) -> np.uint32:
    """Return what `name_hash` does, where bytes follow the name as `short_at` and `murmur3_at` need them."""
    text = intrinsics.pointer(data)
    if is_short(text, begin, end):
        return short_at(text, begin, end, seed)
    return name_at(text, begin, end, seed, hash_all) if vw_text else word_at(text, begin, end, seed, hash_all)


@bare
def _rotl(x: np.uint64, bits: int) -> np.uint64:
    return (x << np.uint64(bits)) | (x >> np.uint64(64 - bits))


@bare
def _sip_round(
    a: np.uint64, b: np.uint64, c: np.uint64, d: np.uint64
) -> tuple[np.uint64, np.uint64, np.uint64, np.uint64]:
    a, c = a + b, c + d
    b, d = _rotl(b, 13) ^ a, _rotl(d, 16) ^ c
    a = _rotl(a, 32)
    a, c = a + d, c + b
    b, d = _rotl(b, 17) ^ c, _rotl(d, 21) ^ a
    return a, b, _rotl(c, 32), d


@bare
def siphash(data: UInt8s, begin: Int, end: Int, key: UInt64s) -> np.uint64:
    """Return SipHash-1-3 of `data[begin:end]` (uint8) with a key (uint64[2]) as uint64.

    Without the key, names with equal hashes cannot be constructed, unlike with murmur3.
    """
    a, b, c, d = key[0] ^ SIP_A, key[1] ^ SIP_B, key[0] ^ SIP_C, key[1] ^ SIP_D
    word = np.uint64(0)
    for p in range(begin, end):
        byte = np.uint64((p - begin) & 7)
        word |= np.uint64(data[p]) << (np.uint64(8) * byte)
        if byte == np.uint64(7):
            a, b, c, d = _sip_round(a, b, c, d ^ word)
            a ^= word
            word = np.uint64(0)
    word |= np.uint64(end - begin) << np.uint64(56)
    a, b, c, d = _sip_round(a, b, c, d ^ word)
    a ^= word
    c ^= np.uint64(0xFF)
    for _ in range(3):
        a, b, c, d = _sip_round(a, b, c, d)
    return a ^ b ^ c ^ d
