"""Replace the characters of texts: fold their case, normalise them, and tell letters from marks.

Idea      A text is copied, byte by byte if it is ASCII, and each other character is replaced by what a table has for
          it, made once by `unicodedata`.
Source    Unicode's NFKC and case folding, as in Python, for single characters of up to three bytes, and for a letter
          followed by combining marks that compose with it.
Differs   from NFKC: characters above U+FFFF are kept, combining marks are not reordered, jamo are not composed, a
          character that would become more than twice its bytes, or more characters than it has bytes, is kept, and
          characters that are not shown (soft hyphens, joiners, variation selectors) are left out.
Names     `text`, `out` and `kind` are pointers. A mark is a character that is neither a letter, a digit, an underscore,
          white space nor ALONE. A byte that is not UTF-8 is a letter.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from ..array_types import Int, Int32s, Int64s, UInt8s
from ..kernels import intrinsics
from ..kernels.jit import bare, jit

BLANK, LETTER, MARK, ALONE = range(4)  # kinds of characters; one that stands ALONE is a word, such as an ideograph
BMP = 1 << 16  # characters in the tables
UNSHOWN = (0x34F, *range(0x180B, 0x180F), *range(0xFE00, 0xFE10))  # beside those of the category Cf


class Characters(NamedTuple):
    """Hold what becomes of each character, of m of them; others are as they are."""

    place: Int32s  # int32[m], where its replacement begins in `pool`, -1 for none
    size: UInt8s  # uint8[m], bytes of the replacement
    pool: UInt8s  # the replacements of ASCII come first
    pairs: Int64s  # int64[k], rising: letter << 16 | combining mark
    composed: Int32s  # int32[k], the character that is this pair


# -- kernels


@bare
def width_at(text: UInt8s, p: Int, end: Int) -> int:
    """Return the number of bytes of the character at `p`; 1 for a byte that begins none."""
    c = text[p]
    width = 1 if c < 0xC2 or c > 0xF4 else 2 if c < 0xE0 else 3 if c < 0xF0 else 4
    if p + width > end:
        return 1
    if width > 2:
        second = text[p + 1]
        if (c == 0xE0 and second < 0xA0) or (c == 0xED and second > 0x9F):
            return 1
        if (c == 0xF0 and second < 0x90) or (c == 0xF4 and second > 0x8F):
            return 1
    for k in range(1, width):
        if text[p + k] & 0xC0 != 0x80:
            return 1
    return width


@bare
def code_at(text: UInt8s, p: Int, width: int) -> Int:
    """Return the number of the character of so many bytes at `p`, BMP or more for what the tables do not have."""
    c = np.int64(text[p])
    if width == 1:
        return c if c < 128 else BMP
    if width == 2:
        return (c & 31) << 6 | (np.int64(text[p + 1]) & 63)
    code = (c & 15) << 12 | (np.int64(text[p + 1]) & 63) << 6 | (np.int64(text[p + 2]) & 63)
    return code if width == 3 else BMP + ((np.int64(text[p]) & 7) << 18 | code >> 6 << 6)


@bare
def kind_at(text: UInt8s, p: Int, width: int, kind: UInt8s) -> Int:
    """Return the kind of the character of so many bytes at `p`."""
    if width < 4:
        code = code_at(text, p, width)
        return np.int64(kind[code]) if code < BMP else LETTER  # a byte that is not UTF-8 is a letter
    first = np.int64(text[p]) << 8 | np.int64(text[p + 1])
    return MARK if first == 0xF09F else ALONE if first >= 0xF0A0 else LETTER  # U+1F000 to U+1FFFF; from U+20000 on


@bare
def put(code: Int, out: UInt8s, z: int) -> int:
    """Write a character of two or three bytes to `out` at z; return where it ends."""
    if code < 0x800:
        out[z] = np.uint8(0xC0 | code >> 6)
    else:
        out[z] = np.uint8(0xE0 | code >> 12)
        z += 1
        out[z] = np.uint8(0x80 | (code >> 6 & 63))
    out[z + 1] = np.uint8(0x80 | (code & 63))
    return z + 2


@bare
def composed_with(out: UInt8s, z: int, mark: Int, by: Characters) -> int:
    """Replace the character that ends at z of `out` by what it composes with a mark; return its end, -1 for nothing."""
    p = z - 1
    while p > 0 and out[p] & 0xC0 == 0x80:
        p -= 1
    letter = code_at(out, p, z - p) if p >= 0 and z - p < 4 else BMP
    if letter >= BMP:
        return -1
    wanted = letter << 16 | mark
    low, high = 0, len(by.pairs)
    while low < high:
        middle = (low + high) // 2
        if by.pairs[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    if low == len(by.pairs) or by.pairs[low] != wanted:
        return -1
    return put(np.int64(by.composed[low]), out, p)


@bare
def normalise(text: UInt8s, begin: Int, end: Int, by: Characters, out: UInt8s) -> tuple[int, bool]:
    """Write `text[begin:end]`, with its characters replaced, to `out`, where twice as many bytes have room.

    Return the number of bytes written, and whether the text is ASCII.
    """
    place, size, pool = intrinsics.pointer(by.place), intrinsics.pointer(by.size), intrinsics.pointer(by.pool)
    z = 0
    p = begin
    ascii = True
    while p < end:
        c = text[p]
        if c < 128:
            out[z] = pool[c]
            z += 1
            p += 1
            continue
        ascii = False
        width = width_at(text, p, end)
        code = code_at(text, p, width)
        if code < BMP and place[code] >= 0:
            for k in range(place[code], np.int64(place[code]) + np.int64(size[code])):
                out[z] = pool[k]
                z += 1
            p += width
            continue
        after = composed_with(out, z, code, by) if code < BMP and len(by.pairs) > 0 else -1
        if after >= 0:
            z = after
            p += width
            continue
        for _ in range(width):
            out[z] = text[p]
            z += 1
            p += 1
    return z, ascii


@jit
def copy_of(text: UInt8s, end: int, by: Characters, copy: UInt8s) -> int:
    """Write `text[:end]` as `normalise` does; `text` is an array."""
    return normalise(intrinsics.pointer(text), 0, end, by, intrinsics.pointer(copy))[0]


# -- Python


@cache
def kinds(count: int) -> UInt8s:
    """Return the field `kind` of the rules for the first characters of Unicode, 128 or BMP."""
    kind = np.full(count, LETTER, np.uint8)
    for code in _codes(count):
        kind[code] = _kind(chr(code))
    for first, last in ((0x2E80, 0x3000), (0x3040, 0x3100), (0x31F0, 0x3200), (0x3400, 0xA000), (0xF900, 0xFB00)):
        kind[first:last] = ALONE  # ideographs, hiragana, katakana
    kind[0xE000:0xF900] = MARK  # for private use
    return kind


@cache
def tables(case: str, form: str, count: int) -> Characters:
    """Return what becomes of the first characters of Unicode, 128 or BMP."""
    place, size = np.full(count, -1, np.int32), np.zeros(count, np.uint8)
    pool = bytearray(range(128))
    pairs = {}
    if case == "fold":
        pool = bytearray(bytes(pool).lower())
    for code in _codes(count)[128:]:
        character = chr(code)
        new = _replaced(character, case, form)
        if new != character and _fits(character, new):
            place[code], size[code] = len(pool), len(new.encode())
            pool += new.encode()
        parts = unicodedata.decomposition(character).split()
        composes = len(parts) == 2 and parts[0][0] != "<" and unicodedata.normalize("NFC", character) == character
        if form == "nfkc" and composes and place[code] < 0:
            pairs[int(parts[0], 16) << 16 | int(parts[1], 16)] = code
    keys = sorted(pairs)
    return Characters(
        place, size, np.frombuffer(pool, np.uint8), np.array(keys, np.int64),
        np.array([pairs[key] for key in keys], np.int32),
    )  # fmt: skip


def _codes(count: int) -> Sequence[int]:
    """Return the numbers of the characters that are looked at: not ideographs, Korean syllables and private ones."""
    parts = range(0x3400), range(0xA000, 0xAC00), range(0xF900, BMP)
    return [code for part in parts for code in part if code < count]


def _kind(character: str) -> int:
    category = unicodedata.category(character)
    if character == "_" or category[0] in "LNM" or category in ("Cf", "Cs"):
        return LETTER
    return BLANK if category[0] == "Z" or category == "Cc" else MARK


def _replaced(character: str, case: str, form: str) -> str:
    """Return what takes the place of a character."""
    if form != "keep" and (unicodedata.category(character) == "Cf" or ord(character) in UNSHOWN):
        return ""
    new = unicodedata.normalize("NFKC", character) if form != "keep" else character
    if case == "fold":
        new = new.casefold()
    if form == "nfkc":
        return unicodedata.normalize("NFKC", new)
    if form == "accents":
        parts = unicodedata.normalize("NFKD", new)
        return unicodedata.normalize("NFC", "".join(c for c in parts if not unicodedata.combining(c)))
    return new


def _fits(character: str, new: str) -> bool:
    """Return whether a replacement is short enough for the memory of a copy, and for the features of a text."""
    size = len(character.encode())
    return len(new.encode()) <= 2 * size and len(new) <= size
