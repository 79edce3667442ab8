"""The parts of a line of text: a class, the name and weight of a namespace, features. `tokens` says how lines are read.

The kernels here become part of the one that calls them. They are handed plain numbers and pointers only: handing on an
array counts a reference, and a feature is read in less time than that takes.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ..array_types import Float32s, Int32s, Int64s, UInt8s, UInt32s
from ..data import hashing
from ..kernels.jit import inlined, jit
from . import numbers
from .malformed import INFINITE, KEPT, NAMESPACE, NAMESPACE_WEIGHT, VALUE, VW
from .numbers import BAR, COLON, NEWLINE, RETURN, SPACE


class Reading(NamedTuple):
    """Those of `Rules` that names and values need: numbers alone, since handing on an array counts a reference."""

    treatment: int
    mask: np.uint32
    hash_all: bool
    hash_seed: np.uint32
    unnamed: np.uint32


# -- kernels. `place[k]` is where the delimiter k stands in the text.


@jit
def note(notes: Int64s, row: int, problem: int, line: int, start: int, where: int) -> None:
    """Write a row of four `notes`, the last one where `row` is -1, if there is room."""
    if row <= KEPT:
        at = 4 * row if row >= 0 else 4 * (KEPT + 1)
        notes[at], notes[at + 1], notes[at + 2], notes[at + 3] = problem, line, start, where


@inlined
def class_alone(text: UInt8s, at: int, e: int) -> np.int64:
    """The class that the digits text[at:e] are, where nothing but a bar follows them; else -1."""
    if text[e] != SPACE or text[e + 1] != BAR or not at < e <= at + 9:
        return np.int64(-1)
    number = np.int64(0)
    for p in range(at, e):
        if not numbers.is_digit(text[p]):
            return np.int64(-1)
        number = number * 10 + (np.int64(text[p]) - 48)
    return number


@inlined
def end_of_label(text: UInt8s, place: Int32s, k: int, at: int) -> tuple[int, np.int64]:
    """The delimiter, from k on, before which the label that begins at byte `at` ends, and the byte behind it."""
    while text[place[k]] != BAR and text[place[k]] != NEWLINE:
        k += 1
    e = np.int64(place[k])
    if text[e] == NEWLINE and e > at and text[e - 1] == RETURN:
        e -= 1
    return k, e


@inlined
def inner_return(text: UInt8s, place: Int32s, k: int) -> np.int64:
    """The first CR of a line that does not stand before its end, from delimiter k on; -1 where there is none."""
    while text[place[k]] != NEWLINE:
        p = np.int64(place[k])
        if text[p] == RETURN and text[p + 1] != NEWLINE:
            return p
        k += 1
    return np.int64(-1)


@inlined
def read_namespace(
    text: UInt8s, place: Int32s, k: int, how: Reading, letters: UInt32s
) -> tuple[int, np.uint8, np.uint32, np.float32, int, np.int64]:
    """Read the name and weight of the namespace behind the bar that is delimiter k.

    Return the delimiter that follows, the group, the hash, the weight, the problem and its place. A weight that is no
    number, which VW takes for 1, is NaN.
    """
    b = np.int64(place[k]) + 1
    k += 1
    e = np.int64(place[k])
    scale = np.float32(1)
    if e == b:
        return k, np.uint8(SPACE), how.unnamed, scale, NAMESPACE if text[e] == COLON else 0, b
    group = text[b]
    if e == b + 1:
        seed = letters[group]
    else:
        seed = hashing.name_at(text, b, e, how.hash_seed, how.hash_all)
    if text[e] != COLON:
        return k, group, seed, scale, 0, b
    scale, q, digits = numbers.read_number(text, e + 1)
    b = e + 1
    while place[k] < q:
        k += 1
    e = np.int64(place[k])
    wrong = e != q or text[e] == COLON
    if how.treatment != VW:
        wrong = wrong or q == b or digits == 0 or not math.isfinite(scale)
    return k, group, seed, scale, NAMESPACE_WEIGHT if wrong else 0, b


@inlined
def _read_value(
    text: UInt8s, place: Int32s, k: int, b: int, seed: np.uint32, scale: np.float32, unnamed: int, how: Reading
) -> tuple[int, np.uint32, np.float32, int, int, bool]:
    """Read the feature whose name begins at byte b and whose value stands behind the colon that is delimiter k.

    Return the delimiter that follows, the feature's index, its value, 0 where there is none, the number of features
    without a name, the problem, and whether VW's way of reading the value is to be noted.
    """
    name_end = np.int64(place[k])
    value, q, digits = numbers.read_number(text, name_end + 1)
    word, word_end = q, q
    noted = False
    if q > name_end + 1:
        if not math.isfinite(value) and (how.treatment != VW or math.isnan(value)):
            if how.treatment != VW:
                return k, np.uint32(0), np.float32(0), unnamed, INFINITE, noted
            value = np.float32(0)
            noted = True
        value *= scale
        if how.treatment != VW and not math.isfinite(value):
            return k, np.uint32(0), np.float32(0), unnamed, INFINITE, noted
    else:  # no number: the next word is the value, even after blanks
        value = np.float32(1)
        digits = 1
        while numbers.is_blank(text[word]) or text[word] == RETURN:
            word += 1
        word_end = word
        while not numbers.is_blank(text[word_end]) and text[word_end] != RETURN and text[word_end] != NEWLINE:
            word_end += 1
        if word_end > word:
            q = word_end
    while place[k] < q:
        k += 1
    e = np.int64(place[k])
    if word_end > word:
        chained = hashing.name_at(text, b, name_end, seed, how.hash_all)
        key = np.uint32(hashing.name_at(text, word, word_end, chained, how.hash_all) & how.mask)
    elif hashing.is_short(text, b, name_end):
        key = np.uint32(hashing.short_at(text, b, name_end, seed) & how.mask)
    elif name_end > b:
        key = np.uint32(hashing.name_at(text, b, name_end, seed, how.hash_all) & how.mask)
    else:
        key = np.uint32(np.uint64(seed) + np.uint64(unnamed))
        unnamed += 1
    wrong = e != q or text[e] == COLON or (digits == 0 and how.treatment != VW)
    return k, key, value, unnamed, VALUE if wrong else 0, noted


@inlined
def read_features(
    text: UInt8s,
    place: Int32s,
    k: int,
    seed: np.uint32,
    scale: np.float32,
    how: Reading,
    features: tuple[UInt32s, Float32s],
    z: int,
    notes: Int64s,
    bad: int,
    line: int,
    start: int,
) -> tuple[int, int, int, int, int]:
    """Read the features of a namespace, which begin behind delimiter k, to `features` (index and value) from z on.

    Return the delimiter that follows, the new z, the problem and its place, and the new number of bad places.
    """
    index, value_of = features
    where = start
    problem = unnamed = 0
    e = np.int64(place[k])
    c = text[e]
    while problem == 0 and numbers.is_blank(c):
        b = e + 1
        k += 1
        e = np.int64(place[k])
        c = text[e]
        if c != COLON:
            if hashing.is_short(text, b, e):
                key = hashing.short_at(text, b, e, seed)
            elif e > b:
                key = hashing.name_at(text, b, e, seed, how.hash_all)
            else:
                continue
            index[z] = np.uint32(key & how.mask)
            value_of[z] = scale
            z += scale != 0
            continue
        where = e + 1
        k, own, value, unnamed, problem, noted = _read_value(text, place, k, b, seed, scale, unnamed, how)
        if noted:
            bad += 1
            note(notes, bad, INFINITE, line, start, where)
        if value != 0:
            index[z] = own
            value_of[z] = value
            z += 1
        e = np.int64(place[k])
        c = text[e]
    return k, z, problem, where, bad
