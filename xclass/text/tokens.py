"""Lines of text to features, in two looks: where names, numbers and lines end, then what stands there.

Idea      `find_delimiters` looks at 64 bytes at a time and lists where names, numbers and lines end; `parse_lines`
          walks that list, so that neither searches byte by byte. Then names are hashed (hashing), numbers read
          (numbers).
Cost      about 2 ns per byte, on one core.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ..data import class_names, hashing
from ..data.batch import CONSTANT, CONSTANT_GROUP
from ..kernels import intrinsics
from ..kernels.jit import jit
from . import label_words, numbers
from .malformed import (
    CLASS_WORDS,
    INFINITE,
    INNER_RETURN,
    KEPT,
    LABEL_AS_TAG,
    LABEL_BEFORE_TAB,
    NAMESPACE,
    NAMESPACE_WEIGHT,
    OUTSIDE,
    SKIP,
    VALUE,
    VW,
)

PADDING = 80  # bytes that must follow the text in its array: both kernels look beyond the end
SPACE, TAB, COLON, BAR, RETURN, NEWLINE = 32, 9, 58, 124, 13, 10


class Rules(NamedTuple):
    """How to read; made by `Parser`."""

    multiclass: bool
    mask: np.uint32  # of a feature's index
    hash_all: bool
    hash_seed: np.uint32
    unnamed: np.uint32  # hash of the namespace without a name
    constant: bool
    treatment: int
    lowest: int  # classes allowed
    highest: int  # -1: every class
    names: class_names.Table
    names_come: bool  # labels are names that are numbered later; `names` is empty


# -- kernels


@jit
def find_delimiters(data, end, positions):
    """List where names, numbers and lines of `text[:end]` end.

    Parameters
    ----------
    data : uint8[end + PADDING or more]
    positions : int32[end + 64 or more], written: places of SPACE, TAB, ':', '|', CR and newline, in order

    Returns
    -------
    kept : how many of the places belong to whole lines
    blanks, bars, lines : numbers of SPACE and TAB, of '|' and of newlines in the text
    returns : number of CR that do not stand before a newline
    """
    text, place = intrinsics.pointer(data), intrinsics.pointer(positions)
    count = kept = blanks = bars = lines = returns = 0
    p = 0
    while p < end:
        blank = intrinsics.equal64(text, p, SPACE) | intrinsics.equal64(text, p, TAB)
        bar = intrinsics.equal64(text, p, BAR)
        newline = intrinsics.equal64(text, p, NEWLINE)
        cr = intrinsics.equal64(text, p, RETURN)
        mask = blank | bar | newline | cr | intrinsics.equal64(text, p, COLON)
        if end - p < 64:
            inside = (np.uint64(1) << np.uint64(end - p)) - np.uint64(1)
            blank &= inside
            bar &= inside
            newline &= inside
            cr &= inside
            mask &= inside
        blanks += intrinsics.count_ones(blank)
        bars += intrinsics.count_ones(bar)
        if cr != np.uint64(0):
            returns += intrinsics.count_ones(cr & ~intrinsics.equal64(text, p + 1, NEWLINE))
        if newline != np.uint64(0):
            lines += intrinsics.count_ones(newline)
            last = newline
            while last & (last - np.uint64(1)) != np.uint64(0):
                last &= last - np.uint64(1)
            kept = count + intrinsics.count_ones(mask & (last | (last - np.uint64(1))))
        while mask != np.uint64(0):
            place[count] = p + intrinsics.trailing_zeros(mask)
            mask &= mask - np.uint64(1)
            count += 1
        p += 64
    return kept, blanks, bars, lines, returns


@jit
def _note(notes, row, problem, line, start, where):
    """Write a row of `notes`, if there is room."""
    if row <= KEPT:
        notes[row, 0], notes[row, 1], notes[row, 2], notes[row, 3] = problem, line, start, where


@jit
def parse_lines(data, positions, count, returns, rules, letters, line, out, notes, line_of):
    """Parse the lines whose delimiters are `positions[:count]`.

    Parameters
    ----------
    data, positions : as in `find_delimiters`
    returns : number of CR within lines
    letters : uint32[256], hashes of the namespaces whose name is one byte
    line : number of the line before the first
    out : Batch with room for whatever the lines may hold, written
    notes : int64[KEPT + 2, 4], written: problem, line, its first byte, place. Row 0 is for labels that are none, the
        last for what ended the reading
    line_of : int64[256], scratch: the line in which a group was last seen

    Returns
    -------
    n, z, g : examples, features and groups written
    line : number of the last line read
    bad, skipped : malformed places that were noted, and lines that were left out
    unmerged : features of the largest example if any example has a group in several places, else 0
    stopped : whether the line `line` is malformed and ended the reading
    """
    text = intrinsics.pointer(data)
    place = intrinsics.pointer(positions)
    index, value_of = intrinsics.pointer(out.index), intrinsics.pointer(out.value)
    group_name, group_start = intrinsics.pointer(out.group_name), intrinsics.pointer(out.group_start)
    n = z = g = k = start = bad = skipped = largest = 0
    scattered = stopped = False
    treatment = rules.treatment
    numbered = rules.multiclass and len(rules.names.hash) == 0 and not rules.names_come
    while k < count:
        line += 1
        at = start
        if text[at] == 0xEF and text[at + 1] == 0xBB and text[at + 2] == 0xBF:
            at += 3
        e = np.int64(place[k])
        c = text[e]
        if e == at and numbers.ends_number(text, e) and c != SPACE and c != TAB:  # an empty line is no example
            k += 2 if c == RETURN else 1
            start = np.int64(place[k - 1]) + 1
            continue
        z0, g0 = z, g
        problem = 0
        where = at

        label = np.nan
        weight, initial = np.float32(1), np.float32(0)
        tag_start = tag_end = at
        plain = numbered and c == SPACE and text[e + 1] == BAR and e > at and e - at <= 9
        if plain:
            number = 0
            for p in range(at, e):
                plain = plain and numbers.is_digit(text[p])
                number = number * 10 + (np.int64(text[p]) - 48)
            if plain:
                label = np.float64(number)
                if rules.highest >= 0 and (number < rules.lowest or number > rules.highest):
                    problem = OUTSIDE
                k += 1
        if not plain and (c != BAR or e > at):
            while c != BAR and c != NEWLINE:
                k += 1
                c = text[place[k]]
            e = np.int64(place[k])
            if c == NEWLINE and e > at and text[e - 1] == RETURN:
                e -= 1
            label, weight, initial, tag_start, tag_end, problem, where = label_words.read_label(text, at, e, rules)
            if problem == LABEL_AS_TAG or problem == LABEL_BEFORE_TAB:
                if notes[0, 0] == 0:
                    _note(notes, 0, problem, line, start, where)
                problem = 0
            elif problem > CLASS_WORDS and treatment == VW:  # goes on after a warning
                bad += 1
                _note(notes, bad, problem, line, start, where)
                problem = 0

        if returns > 0 and treatment != VW and problem == 0:
            q = k
            while text[place[q]] != NEWLINE:
                p = np.int64(place[q])
                if text[p] == RETURN and text[p + 1] != NEWLINE:
                    problem, where = INNER_RETURN, p
                    break
                q += 1

        e = np.int64(place[k])
        c = text[e]
        while c == BAR and problem == 0:
            b = e + 1
            k += 1
            e = np.int64(place[k])
            c = text[e]
            scale = np.float32(1)
            if e > b:
                group = text[b]
                if e == b + 1:
                    seed = letters[group]
                else:
                    seed = hashing.name_at(text, b, e, rules.hash_seed, rules.hash_all)
                if c == COLON:
                    scale, q, digits = numbers.read_number(text, e + 1)
                    b = e + 1
                    while place[k] < q:
                        k += 1
                    e = np.int64(place[k])
                    c = text[e]
                    if e != q or c == COLON:
                        problem, where = NAMESPACE_WEIGHT, b
                        break
                    if treatment != VW and (q == b or digits == 0 or not math.isfinite(scale)):
                        problem, where = NAMESPACE_WEIGHT, b
                        break
                    if math.isnan(scale):
                        scale = np.float32(1)
                        bad += 1
                        _note(notes, bad, NAMESPACE_WEIGHT, line, start, b)
            elif c == COLON:
                problem, where = NAMESPACE, b
                break
            else:
                group = np.uint8(SPACE)
                seed = rules.unnamed

            first = z
            unnamed = 0
            while numbers.is_blank(c):
                b = e + 1
                k += 1
                e = np.int64(place[k])
                c = text[e]
                if c != COLON:
                    if hashing.is_short(text, b, e):
                        key = hashing.short_at(text, b, e, seed)
                    elif e > b:
                        key = hashing.name_at(text, b, e, seed, rules.hash_all)
                    else:
                        continue
                    index[z] = np.uint32(key & rules.mask)
                    value_of[z] = scale
                    z += scale != 0
                    continue
                name_end = e
                value, q, digits = numbers.read_number(text, e + 1)
                word, word_end = q, q
                if q > name_end + 1:
                    if not math.isfinite(value) and (treatment != VW or math.isnan(value)):
                        if treatment != VW:
                            problem, where = INFINITE, name_end + 1
                            break
                        value = np.float32(0)
                        bad += 1
                        _note(notes, bad, INFINITE, line, start, name_end + 1)
                    value *= scale
                    if treatment != VW and not math.isfinite(value):
                        problem, where = INFINITE, name_end + 1
                        break
                else:  # no number: the next word is the value, even after blanks
                    value = np.float32(1)
                    digits = 1
                    while numbers.is_blank(text[word]) or text[word] == RETURN:
                        word += 1
                    word_end = word
                    while (
                        not numbers.is_blank(text[word_end]) and text[word_end] != RETURN and text[word_end] != NEWLINE
                    ):
                        word_end += 1
                    if word_end > word:
                        q = word_end
                while place[k] < q:
                    k += 1
                e = np.int64(place[k])
                c = text[e]
                if word_end > word:
                    chained = hashing.name_at(text, b, name_end, seed, rules.hash_all)
                    key = np.uint32(hashing.name_at(text, word, word_end, chained, rules.hash_all) & rules.mask)
                elif hashing.is_short(text, b, name_end):
                    key = np.uint32(hashing.short_at(text, b, name_end, seed) & rules.mask)
                elif name_end > b:
                    key = np.uint32(hashing.name_at(text, b, name_end, seed, rules.hash_all) & rules.mask)
                else:
                    key = np.uint32(np.uint64(seed) + np.uint64(unnamed))
                    unnamed += 1
                if value != 0:
                    index[z] = key
                    value_of[z] = value
                    z += 1
                if e != q or c == COLON or (digits == 0 and treatment != VW):
                    problem, where = VALUE, name_end + 1
                    break
            if z > first and not (g > g0 and group_name[g - 1] == group):
                scattered = scattered or line_of[group] == line
                line_of[group] = line
                group_name[g] = group
                group_start[g] = first
                g += 1

        if problem != 0:
            left_out = treatment != VW or problem <= CLASS_WORDS
            if left_out:
                z, g = z0, g0
            if left_out and treatment != SKIP:
                _note(notes, -1, problem, line, start, where)
                stopped = True
                break
            bad += 1
            _note(notes, bad, problem, line, start, where)
            skipped += left_out
        while c != NEWLINE:
            k += 1
            c = text[place[k]]
        start = np.int64(place[k]) + 1
        k += 1
        if problem != 0 and treatment != VW:
            continue

        if rules.constant:
            index[z] = np.uint32(CONSTANT)
            value_of[z] = np.float32(1)
            group_name[g] = np.uint8(CONSTANT_GROUP)
            group_start[g] = z
            z += 1
            g += 1
        largest = max(largest, z - z0)
        out.label[n] = label
        out.weight[n] = weight
        out.initial[n] = initial
        out.tag_start[n] = tag_start
        out.tag_end[n] = tag_end
        out.line[n] = line
        n += 1
        out.start[n] = z
        out.group_first[n] = g
    group_start[g] = z
    return n, z, g, line, bad, skipped, largest if scattered else 0, stopped


@jit
def merge_groups(n, constant, out, index, value):
    """Bring features of the same group together, in every example; groups in the order of their first feature.

    Parameters
    ----------
    n : number of examples in `out`
    constant : whether each example ends with the constant, which stays last
    out : Batch, changed
    index, value : uint32[...], float32[...], scratch for the largest example

    Returns
    -------
    g : number of groups left
    """
    place = np.full(256, -1, np.int64)  # of a group among those of the example, then of its next feature
    g = 0
    begin = 0
    for i in range(n):
        end = out.group_first[i + 1]
        last = end - 1 if constant else end
        groups = g
        for j in range(begin, last):  # sizes first
            size = out.group_start[j + 1] - out.group_start[j]
            name = out.group_name[j]
            if place[name] < 0:
                place[name] = 0
            place[name] += size
        z = out.start[i]
        for j in range(begin, last):  # then places, in the order of appearance
            name = out.group_name[j]
            if place[name] >= 0:
                size = place[name]
                place[name] = -2 - (z - out.start[i])
                z += size
        for j in range(begin, last):  # then the features
            name = out.group_name[j]
            to = -2 - place[name]
            for p in range(out.group_start[j], out.group_start[j + 1]):
                index[to] = out.index[p]
                value[to] = out.value[p]
                to += 1
            place[name] = -2 - to
        for p in range(out.start[i], z):
            out.index[p] = index[p - out.start[i]]
            out.value[p] = value[p - out.start[i]]
        z = out.start[i]
        for j in range(begin, last):  # then the list of groups
            name = out.group_name[j]
            if place[name] != -1:
                size = -2 - place[name]
                out.group_name[g] = name
                out.group_start[g] = z
                z = out.start[i] + size
                place[name] = -1
                g += 1
        if constant:
            out.group_name[g] = np.uint8(CONSTANT_GROUP)
            out.group_start[g] = out.start[i + 1] - 1
            g += 1
        out.group_first[i] = groups
        begin = end
    out.group_first[n] = g
    out.group_start[g] = out.start[n]
    return g
