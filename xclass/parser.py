"""VW text to batches of examples: `17 2.5 'tag |w:0.5 cat:2 colour:red dog |x :7`.

    line      := [prefix TAB] [label words] [tag] namespace*
    namespace := '|' [name [':' weight]] { (SPACE | TAB) [feature] }
    feature   := name | name ':' number | name ':' word | ':' number

Idea      `find_delimiters` looks at 64 bytes at a time and lists where names, numbers and lines end; `parse_lines`
          walks that list, so that neither searches byte by byte. Then names are hashed (hashing), numbers read
          (numbers).
Source    the grammar and its corners are those of VW 9.11 (parse_example_text.cc, parse_primitives.h).
Cost      about 2 ns per byte, on one core.
Differs   from VW in what happens to a malformed line (`--on_bad_line`; `vw` is VW's way).

The only file that knows the text format.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from . import hashing, intrinsics, numbers
from .errors import DataError
from .examples import CONSTANT, CONSTANT_GROUP, Batch, Pool
from .jit import jit
from .options import option

TREATMENTS = ("stop", "skip", "vw")
PADDING = 80  # bytes that must follow the text in its array: both kernels look beyond the end
KEPT = 5  # messages about malformed lines that are kept


@dataclass(frozen=True)
class Options:
    hash: str = option(
        "how names become numbers: digits as they are and other names hashed, or all hashed",
        choices=("strings", "all"),
        default="strings",
        stored=True,
    )
    hash_seed: int = option(
        "seed of the hash", kind=int, default=0, metavar="N", minimum=0, maximum=2**32 - 1, stored=True
    )
    named_labels: str = option(
        "labels are these names, separated by commas, instead of numbers", metavar="A,B,C", stored=True
    )
    noconstant: bool = option("leave the constant feature out", kind=bool, stored=True)
    on_bad_line: str = option(
        "at a malformed line: stop, skip the line, or read it the way VW does", choices=TREATMENTS, default="stop"
    )

    def label_names(self) -> tuple[str, ...]:
        """The names of labels 1, 2, ...; none where labels are numbers."""
        return tuple(self.named_labels.split(",")) if self.named_labels else ()


SPACE, TAB, COLON, BAR, RETURN, NEWLINE = 32, 9, 58, 124, 13, 10
STOP, SKIP, VW = range(3)  # treatment of malformed lines

# What is wrong with a line. The first two end the run in every treatment but skip.
CLASS, CLASS_WORDS, NEGATIVE, OUTSIDE, LABEL_WORDS, LABEL, WEIGHT, INITIAL = range(1, 9)
NAMESPACE, NAMESPACE_WEIGHT, VALUE, INFINITE, INNER_RETURN, LABEL_AS_TAG, NAME = range(9, 16)
UNLABELLED = 2**32 - 1  # as a class


class Names(NamedTuple):
    """Names of labels in the order of their hashes; none where labels are numbers."""

    hash: np.ndarray  # uint32[k]
    label: np.ndarray  # int64[k]
    start: np.ndarray  # int64[k], where the name begins in `letters`
    end: np.ndarray  # int64[k]
    letters: np.ndarray  # uint8[...]


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
    names: Names


# -- labels --------------------------------------------------------------------------------------------------------


@jit
def _read_class(text, begin):
    """C's strtol, base 10, at `begin`: (value, cut to 64 bits; end, `begin` if there is no number)."""
    p = begin
    while text[p] == SPACE or (text[p] >= 9 and text[p] <= 13 and text[p] != NEWLINE):
        p += 1
    negative = text[p] == 45
    if negative or text[p] == 43:
        p += 1
    if not numbers.is_digit(text[p]):
        return 0, begin
    value = 0
    while numbers.is_digit(text[p]):
        digit = np.int64(text[p]) - 48
        if value > (9223372036854775807 - digit) // 10:
            value = 9223372036854775807
        else:
            value = value * 10 + digit
        p += 1
    if negative:
        value = -value - 1 if value == 9223372036854775807 else -value
    return value, p


@jit
def find_name(text, begin, end, names):
    """The label named `text[begin:end]`, 0 if there is none."""
    h = hashing.murmur3_at(text, begin, end, np.uint32(0))
    i = np.searchsorted(names.hash, h)
    while i < len(names.hash) and names.hash[i] == h:
        same = names.end[i] - names.start[i] == end - begin
        if same:
            for j in range(end - begin):
                same = same and names.letters[names.start[i] + j] == text[begin + j]
        if same:
            return names.label[i]
        i += 1
    return 0


@jit
def _read_label(text, begin, end, rules):
    """Read what stands before the first bar.

    Returns
    -------
    label, weight, initial : float64, float32, float32; label NaN where there is none
    tag_start, tag_end : the tag's place
    problem, where : what is wrong and where, or 0; LABEL_AS_TAG is no more than a warning
    """
    label, weight, initial = np.nan, np.float32(1), np.float32(0)
    p = begin
    while p < end and text[p] != TAB:
        p += 1
    p = p + 1 if p < end else begin
    words = 0
    word0 = word1 = word2 = last = last_end = p
    end0 = end1 = end2 = p
    while p < end:
        if text[p] == SPACE:
            p += 1
            continue
        last = p
        while p < end and text[p] != SPACE:
            p += 1
        last_end = p
        if words == 0:
            word0, end0 = last, last_end
        elif words == 1:
            word1, end1 = last, last_end
        elif words == 2:
            word2, end2 = last, last_end
        words += 1
    tag_start = tag_end = end
    problem = 0
    where = begin
    if words > 0 and (last_end == end or text[last] == 39):  # 39 is '
        words -= 1
        tag_start, tag_end = last, last_end
        if text[last] == 39:
            tag_start += 1
        elif words == 0 and rules.multiclass:
            p = last
            while p < last_end and numbers.is_digit(text[p]):
                p += 1
            if p == last_end:
                problem, where = LABEL_AS_TAG, last
    if words == 0:
        return label, weight, initial, tag_start, tag_end, problem, where

    strict = rules.treatment != VW
    if rules.multiclass:
        if words > 2:
            return label, weight, initial, tag_start, tag_end, CLASS_WORDS, word0
        if len(rules.names.hash) > 0:
            value, p = find_name(text, word0, end0, rules.names), end0
            if value == 0:
                problem, where = NAME, word0
        else:
            value, p = _read_class(text, word0)
        if p != end0 and (strict or (text[p] != SPACE and text[p] != 0)):
            return label, weight, initial, tag_start, tag_end, CLASS, word0
        if strict and value < 0:
            problem, where = NEGATIVE, word0
        if strict and value > UNLABELLED:
            problem, where = OUTSIDE, word0
        value &= UNLABELLED
        if value != UNLABELLED:
            label = np.float64(value)
            if problem == 0 and rules.highest >= 0 and (value < rules.lowest or value > rules.highest):
                problem, where = OUTSIDE, word0
    else:
        if words > 3:
            return label, weight, initial, tag_start, tag_end, LABEL_WORDS, word0
        number, p, digits = numbers.read_number(text, word0)
        wrong = p == word0 or math.isnan(number)
        if wrong:
            number = np.float32(0)
        if wrong or (strict and (p != end0 or digits == 0 or math.isinf(number))):
            problem, where = LABEL, word0
        label = np.float64(number)
        if number == np.float32(3.4028234663852886e38):  # VW's mark for no label
            label = np.nan
    if words > 1:
        weight, p, digits = numbers.read_number(text, word1)
        wrong = p == word1 or math.isnan(weight)
        if wrong:
            weight = np.float32(0)
        if weight < 0 and not rules.multiclass:
            wrong = True
        if problem == 0 and (wrong or (strict and (p != end1 or digits == 0 or math.isinf(weight) or weight < 0))):
            problem, where = WEIGHT, word1
        if rules.multiclass and not weight > 0:
            weight = np.float32(0)
    if words > 2:
        initial, p, digits = numbers.read_number(text, word2)
        wrong = p == word2 or math.isnan(initial)
        if wrong:
            initial = np.float32(0)
        if problem == 0 and (wrong or (strict and (p != end2 or digits == 0 or math.isinf(initial)))):
            problem, where = INITIAL, word2
    return label, weight, initial, tag_start, tag_end, problem, where


# -- lines ---------------------------------------------------------------------------------------------------------


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
    notes : int64[KEPT + 2, 4], written: problem, line, its first byte, place. Row 0 is for LABEL_AS_TAG, the last
        for what ended the reading
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
    numbered = rules.multiclass and len(rules.names.hash) == 0
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
            label, weight, initial, tag_start, tag_end, problem, where = _read_label(text, at, e, rules)
            if problem == LABEL_AS_TAG:
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


# -- Python --------------------------------------------------------------------------------------------------------

CURE = "Correct the line, or use --on_bad_line skip"
SENTENCES = {
    CLASS: "label '{seen}' is not a class number; a line is label, weight, 'tag, then |namespace features",
    CLASS_WORDS: "'{seen}' begins more words than label and weight; write a tag as 'tag, or touching the bar",
    NEGATIVE: "label {seen} is negative; leave the label out where it is not known",
    OUTSIDE: "label {seen} is outside {range}",
    NAME: "label '{seen}' is none of --named_labels",
    LABEL_WORDS: "'{seen}' begins more words than label, weight and initial; write a tag as 'tag, or touching the bar",
    LABEL: "label '{seen}' is not a finite number",
    WEIGHT: "weight '{seen}' is not a finite number of at least 0",
    INITIAL: "initial prediction '{seen}' is not a finite number",
    NAMESPACE: "'{seen}' is no name of a namespace; a namespace is |name or |name:weight",
    NAMESPACE_WEIGHT: "'{seen}' is not a finite number; a namespace is |name or |name:weight",
    VALUE: "'{seen}' is not a number; a feature is name, name:number, name:word or :number",
    INFINITE: "'{seen}' is not a finite number; a feature is name, name:number, name:word or :number",
    INNER_RETURN: "a carriage return within the line; lines end in a newline, before which one may stand",
}
VW_DOES = {
    LABEL_WORDS: "the example is taken as unlabelled",
    LABEL: "taken as 0",
    NAME: "taken as class 0",
    WEIGHT: "taken as it is, or as 0 where it is no number",
    INITIAL: "taken as 0",
    NAMESPACE: "the rest of the line is ignored",
    NAMESPACE_WEIGHT: "the rest of the line is ignored, or 1 taken for nan",
    VALUE: "the rest of the line is ignored",
    INFINITE: "the feature is left out",
}


class Parser:
    """Turns text into batches, and remembers what was wrong with it.

    Parameters
    ----------
    options : of this room
    bits : of the index of a feature
    multiclass : whether labels are classes, or real numbers
    lowest, highest : classes allowed; None for every class. Not looked at under `--on_bad_line vw`
    because : what sets the range, for the message: `--oaa 1000`

    Attributes
    ----------
    lines, skipped, bad : lines read, lines left out, malformed places met
    notes : messages for the user that nobody took yet
    pool : memory of the batches
    """

    def __init__(
        self,
        options: Options,
        bits: int,
        multiclass: bool,
        lowest: int | None = None,
        highest: int | None = None,
        because: str = "",
    ):
        self.options = options
        self.lines = self.skipped = self.bad = 0
        self.notes: list[str] = []
        self.kept: list[str] = []  # the first messages about malformed lines
        self.pool = Pool()
        self._told_tag = False
        treatment = TREATMENTS.index(options.on_bad_line)
        free = highest is None or treatment == VW
        low, high = (0, UNLABELLED) if highest is None else (lowest or 0, highest)
        self._range = f"{low}..{high}" + (f" ({because})" if because else "")
        every = options.hash == "all"
        empty = np.zeros(PADDING, np.uint8)
        seed = np.uint32(options.hash_seed)
        self._rules = Rules(
            multiclass=multiclass,
            mask=np.uint32((1 << min(bits, 32)) - 1),
            hash_all=every,
            hash_seed=seed,
            unnamed=np.uint32(hashing.murmur3(empty, 0, 0, seed) if options.hash_seed else 0),
            constant=not options.noconstant,
            treatment=treatment,
            lowest=0 if free else low,
            highest=-1 if free else high,
            names=lay_out(options.label_names()),
        )
        names = np.arange(256 + PADDING).astype(np.uint8)
        letters = [hashing.name_hash(names, i, i + 1, seed, every) for i in range(256)]
        self._letters = np.array(letters, np.uint32)
        self._positions = np.empty(0, np.int32)
        self._line_of = np.empty(256, np.int64)

    def begin(self) -> None:
        """Start at line 1 again (another pass, another file)."""
        self.lines = 0

    def parse(self, text: np.ndarray, end: int, name: str) -> tuple[Batch, DataError | None, int]:
        """Parse the whole lines of `text[:end]`.

        Parameters
        ----------
        text : uint8[end + PADDING or more], writable; kept by the batch
        name : of the file, for messages

        Returns
        -------
        batch : the examples, before the malformed line that ends the run
        error : what ends the run, or None
        used : bytes up to the end of the last whole line
        """
        if len(self._positions) < end + 64:
            self._positions = np.empty(end + 64, np.int32)
        kept, blanks, bars, lines, returns = find_delimiters(text, end, self._positions)
        out = self.pool.batch(lines, blanks + lines, bars + lines, text[:end])
        if kept == 0:
            return _trimmed(out, 0, 0, 0), None, 0
        used = int(self._positions[kept - 1]) + 1
        notes = np.zeros((KEPT + 2, 4), np.int64)
        self._line_of[:] = -1
        rules = self._rules
        n, z, g, line, bad, skipped, unmerged, stopped = parse_lines(
            text, self._positions, kept, returns, rules, self._letters, self.lines, out, notes, self._line_of
        )
        if unmerged > 0:
            index, value = np.empty(unmerged, np.uint32), np.empty(unmerged, np.float32)
            g = merge_groups(n, rules.constant, out, index, value)
        self.lines = line
        self.skipped += skipped
        self.bad += bad
        error = self._take_notes(text, notes, min(bad, KEPT), stopped, name)
        return _trimmed(out, n, z, g), error, used

    def report(self) -> list[str]:
        """What to tell the user at the end of the run about malformed lines."""
        if not self.bad:
            return []
        what = "malformed line was skipped" if self.skipped else "malformed place was read the way VW does"
        if self.bad > 1:
            what = what.replace("line was", "lines were").replace("place was", "places were")
        return [f"{self.bad} {what}" + ("; the first:" if self.bad > KEPT else ":"), *self.kept]

    def _take_notes(self, text, notes, bad: int, stopped: bool, name: str) -> DataError | None:
        if notes[0, 0] and not self._told_tag:
            self._told_tag = True
            _, line, _, where = notes[0].tolist()
            seen = _seen(text, where)
            self.notes.append(
                f"{name}:{line}: '{seen}' touches the bar and is read as a tag, so the line is unlabelled; "
                f"write '{seen} |' for a label"
            )
        for note in notes[1 : bad + 1].tolist():
            if len(self.kept) < KEPT:
                self.kept.append(self._message(text, note, name))
        return DataError(f"{self._message(text, notes[-1].tolist(), name)}. {CURE}") if stopped else None

    def _message(self, text, note: list[int], name: str) -> str:
        problem, line, start, where = note
        sentence = SENTENCES[problem].format(seen=_seen(text, where), range=self._range)
        message = f"{name}:{line}:{where - start + 1}: {sentence}"
        if self._rules.treatment == VW and problem in VW_DOES:
            message += f"; {VW_DOES[problem]}"
        return message


def lay_out(labels: tuple[str, ...]) -> Names:
    """Make of the names of labels 1, 2, ... what `find_name` needs."""
    raw = [label.encode("utf-8", "surrogateescape") for label in labels]
    hashes = np.array([hashing.murmur3(np.frombuffer(n + b"000", np.uint8), 0, len(n), np.uint32(0)) for n in raw])
    order = np.argsort(hashes, kind="stable").astype(np.int64)
    end = np.cumsum([0, *map(len, raw)], dtype=np.int64)
    letters = np.frombuffer(bytearray(b"".join(raw) or b"0"), np.uint8)
    return Names(hashes.astype(np.uint32)[order], order + 1, end[:-1][order], end[1:][order], letters)


def _trimmed(out: Batch, n: int, z: int, g: int) -> Batch:
    """The first n examples."""
    return Batch(
        start=out.start[: n + 1],
        index=out.index[:z],
        value=out.value[:z],
        label=out.label[:n],
        weight=out.weight[:n],
        initial=out.initial[:n],
        group_first=out.group_first[: n + 1],
        group_name=out.group_name[:g],
        group_start=out.group_start[: g + 1],
        tag_start=out.tag_start[:n],
        tag_end=out.tag_end[:n],
        line=out.line[:n],
        text=out.text,
    )


def _seen(text: np.ndarray, where: int) -> str:
    """The word at `where`, cut to 40 characters."""
    begin = text[where : where + 160].tobytes()
    word = begin.lstrip(b" \t\r").replace(b"\t", b" ").replace(b"\r", b" ").replace(b"|", b" ").replace(b"\n", b" ")
    shown = word.split(b" ")[0].decode("utf-8", "replace")
    shown = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in shown)
    return shown if len(shown) <= 40 else shown[:40] + "..."
