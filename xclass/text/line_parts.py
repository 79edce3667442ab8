"""Read the parts of a line of text: a class, the name and weight of a namespace, and features.

Most of these kernels are inlined into `tokens.parse_lines`. Their arguments are numbers and pointers, not arrays:
passing an array updates a reference count, which takes longer than reading a feature.

Common arguments are `text`, a pointer to the bytes of the text, and `delimiter`, a pointer to the positions of the
delimiters (int32), so that delimiter k is the byte `text[delimiter[k]]`. Neither is written.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ..array_types import Float32s, Int32s, Int64s, UInt8s, UInt32s
from ..data import class_names, hashing
from ..kernels.jit import bare, inlined, on_demand
from . import malformed, numbers, vw_numbers
from .numbers import BAR, COLON, NEWLINE, RETURN, SPACE


class Rules(NamedTuple):
    """Hold what kernels need to know to parse a line; `Parser` derives it from its options."""

    multiclass: bool  # whether labels are classes
    lists: bool  # whether each example has a list of classes
    mask: np.uint32  # the bits of a hash that make the index of a feature
    hash_all: bool  # whether names that are numbers are hashed, too
    hash_seed: np.uint32  # seed of the hash
    unnamed: np.uint32  # hash of the namespace without a name
    constant: bool  # whether the constant feature is added
    treatment: int  # what to do at malformed lines: STOP, SKIP or VW, see `malformed`
    vw_numbers: bool  # whether numbers are read by `vw_numbers`
    lowest: int  # lowest class allowed
    highest: int  # highest class allowed; -1 if every class is
    names: class_names.NameTable  # names of classes listed in advance
    learn_names: bool  # whether labels are names that are numbered later; `names` is empty then
    dense: int  # first byte of the namespace whose features are the dense block, -1 for none
    dense_seed: np.uint32  # hash of its name


class NameRules(NamedTuple):
    """Hold the fields of `Rules` that names and values need, all of them numbers."""

    treatment: int
    vw_numbers: bool
    mask: np.uint32
    hash_all: bool
    hash_seed: np.uint32
    unnamed: np.uint32


# -- kernels


@inlined
def name_rules_of(rules: Rules) -> NameRules:
    return NameRules(rules.treatment, rules.vw_numbers, rules.mask, rules.hash_all, rules.hash_seed, rules.unnamed)


@bare
def note(notes: Int64s, row: int, problem: int, line: int, start: int, position: int) -> None:
    """Write row `row` of `notes`, or the last row if `row` is -1; do nothing if there is no such row.

    `notes` is int64[(MAX_MESSAGES + 2) * 4]: problem, line, start of the line, position of the problem.
    """
    if row <= malformed.MAX_MESSAGES:
        at = 4 * row if row >= 0 else 4 * (malformed.MAX_MESSAGES + 1)
        notes[at], notes[at + 1], notes[at + 2], notes[at + 3] = problem, line, start, position


@inlined
def _is_vw_number(text: UInt8s, begin: int, name_rules: NameRules) -> bool:
    """Return whether VW's rules hold for the number at `begin`, which may come after blanks then."""
    return name_rules.vw_numbers or (name_rules.treatment == malformed.VW and numbers.is_blank(text[begin]))


@inlined
def read_lone_class(text: UInt8s, at: int, e: int) -> np.int64:
    """Return the class `text[at:e]` if it is one to nine digits, directly followed by a space and a bar, else -1.

    Leading zeros are left to `label_words`, too.
    """
    if text[e] != SPACE or text[e + 1] != BAR or not at < e <= at + 9 or (text[at] == 48 and e > at + 1):
        return np.int64(-1)
    number = np.int64(0)
    for p in range(at, e):
        if not numbers.is_digit(text[p]):
            return np.int64(-1)
        number = number * 10 + (np.int64(text[p]) - 48)
    return number


@inlined
def end_of_label(text: UInt8s, delimiter: Int32s, k: int, at: int) -> tuple[int, np.int64]:
    """Return the first bar or newline from delimiter k on, and the end of the label that begins at byte `at`.

    The end excludes a CR before the newline.
    """
    while text[delimiter[k]] != BAR and text[delimiter[k]] != NEWLINE:
        k += 1
    e = np.int64(delimiter[k])
    if text[e] == NEWLINE and e > at and text[e - 1] == RETURN:
        e -= 1
    return k, e


@inlined
def inner_return(text: UInt8s, delimiter: Int32s, k: int) -> np.int64:
    """Return the position of the first CR, from delimiter k on, that is not at the end of the line, or -1."""
    while text[delimiter[k]] != NEWLINE:
        p = np.int64(delimiter[k])
        if text[p] == RETURN and text[p + 1] != NEWLINE:
            return p
        k += 1
    return np.int64(-1)


@on_demand
def read_number(text: UInt8s, begin: int, vw: bool) -> tuple[np.float32, int, int]:
    """Read a number where few runs have one, see `vw_numbers.read_by_rules`."""
    return vw_numbers.read_by_rules(text, begin, vw)


@inlined
def read_namespace(
    text: UInt8s, delimiter: Int32s, k: int, name_rules: NameRules, letter_hashes: UInt32s
) -> tuple[int, np.uint8, np.uint32, np.float32, int, np.int64]:
    """Read the name and weight of the namespace after the bar that is delimiter k.

    `letter_hashes` is uint32[256], hashes of the namespaces whose name is one byte.

    Returns
    -------
    k : the delimiter after the name and weight
    group, seed : first byte and hash of the name
    scale : weight of the namespace; NaN with VW's rules for what VW replaces by 1
    problem, position : number of the problem in `malformed`, or 0, and its position
    """
    b = np.int64(delimiter[k]) + 1
    k += 1
    e = np.int64(delimiter[k])
    scale = np.float32(1)
    if e == b:
        return k, np.uint8(SPACE), name_rules.unnamed, scale, malformed.NAMESPACE if text[e] == COLON else 0, b
    group = text[b]
    if e == b + 1:
        seed = letter_hashes[group]
    else:
        seed = hashing.name_at(text, b, e, name_rules.hash_seed, name_rules.hash_all)
    if text[e] != COLON:
        return k, group, seed, scale, 0, b
    b = e + 1
    scale, q, digits = read_number(text, b, _is_vw_number(text, b, name_rules))
    while delimiter[k] < q:
        k += 1
    e = np.int64(delimiter[k])
    wrong = e != q or text[e] == COLON or (math.isinf(scale) and not name_rules.vw_numbers)
    if name_rules.treatment != malformed.VW:
        wrong = wrong or q == b or digits == 0 or not math.isfinite(scale)
    return k, group, seed, scale, malformed.NAMESPACE_WEIGHT if wrong else 0, b


@inlined
def _read_value(
    text: UInt8s,
    delimiter: Int32s,
    k: int,
    b: int,
    seed: np.uint32,
    scale: np.float32,
    nameless: int,
    name_rules: NameRules,
) -> tuple[int, np.uint32, np.float32, int, int, bool]:
    """Read the feature whose name begins at byte b and whose value follows the colon that is delimiter k.

    `seed` and `scale` are those of the namespace, and `nameless` is the number of its features so far without a name.

    Returns
    -------
    k : the delimiter after the value
    key, value : the feature; the value is 0 if it is left out
    nameless : as above, with this feature
    problem : number of the problem in `malformed`, or 0
    noted : whether the value was replaced by 0 as in VW, which is to be reported
    """
    name_end = np.int64(delimiter[k])
    e = np.int64(delimiter[k + 1])
    value, short = numbers.read_short(text, name_end + 1, e)
    value *= scale
    if not short or text[e] == COLON or not math.isfinite(value) or name_rules.vw_numbers:
        return _read_other_value(text, delimiter, k, b, seed, scale, nameless, name_rules)
    key, nameless = _feature_key(text, b, name_end, seed, nameless, name_rules)
    return k + 1, key, value, nameless, 0, False


@on_demand
def _read_other_value(
    text: UInt8s,
    delimiter: Int32s,
    k: int,
    b: int,
    seed: np.uint32,
    scale: np.float32,
    nameless: int,
    name_rules: NameRules,
) -> tuple[int, np.uint32, np.float32, int, int, bool]:
    """Read any feature with a value as `_read_value` does, which stays short in this way.

    It is not inlined, because it would slow down the loop over features.
    """
    name_end = np.int64(delimiter[k])
    begin = name_end + 1
    strict = name_rules.treatment != malformed.VW
    value, q, digits = vw_numbers.read_by_rules(text, begin, _is_vw_number(text, begin, name_rules))
    word, word_end = q, q
    noted = False
    if q > begin:
        keeps_infinity = name_rules.vw_numbers and not strict
        if math.isnan(value) or not (keeps_infinity or math.isfinite(value * scale)):
            if strict:
                return k, np.uint32(0), np.float32(0), nameless, malformed.INFINITE, noted
            value = np.float32(0)
            noted = True
        value *= scale
    else:  # not a number: the word is the value, in VW even after blanks
        value = np.float32(1)
        digits = 1
        while not strict and (numbers.is_blank(text[word]) or text[word] == RETURN):
            word += 1
        word_end = word
        has_bar = False
        while not numbers.is_blank(text[word_end]) and text[word_end] != RETURN and text[word_end] != NEWLINE:
            has_bar = has_bar or text[word_end] == BAR
            word_end += 1
        if strict and word_end == word:
            return k, np.uint32(0), np.float32(0), nameless, malformed.EMPTY_VALUE, noted
        if word_end > word:
            q = word_end
            if strict and has_bar:
                return k, np.uint32(0), np.float32(0), nameless, malformed.BAR_AFTER_VALUE, noted
            # a number in VW, such as `inf`, `-`
            if word == begin and vw_numbers.read_number(text, word)[1] == word_end:
                return k, np.uint32(0), np.float32(0), nameless, malformed.VALUE, noted
    while delimiter[k] < q:
        k += 1
    e = np.int64(delimiter[k])
    if word_end > word:
        seed = hashing.name_at(text, b, name_end, seed, name_rules.hash_all)
        key = hashing.name_at(text, word, word_end, seed, name_rules.hash_all) & name_rules.mask
    else:
        key, nameless = _feature_key(text, b, name_end, seed, nameless, name_rules)
    wrong = e != q or text[e] == COLON or (digits == 0 and name_rules.treatment != malformed.VW)
    return k, np.uint32(key), value, nameless, malformed.VALUE if wrong else 0, noted


@inlined
def _feature_key(
    text: UInt8s, b: int, name_end: int, seed: np.uint32, nameless: int, name_rules: NameRules
) -> tuple[np.uint32, int]:
    """Return the index of the feature `text[b:name_end]`, and the number of features without a name so far."""
    if hashing.is_short(text, b, name_end):
        return np.uint32(hashing.short_at(text, b, name_end, seed) & name_rules.mask), nameless
    if name_end > b:
        return np.uint32(hashing.name_at(text, b, name_end, seed, name_rules.hash_all) & name_rules.mask), nameless
    return np.uint32(np.uint64(seed) + np.uint64(nameless)), nameless + 1


@on_demand
def read_row(
    text: UInt8s,
    delimiter: Int32s,
    k: int,
    scale: np.float32,
    name_rules: NameRules,
    row: tuple[Float32s, int, int],
    notes: Int64s,
    bad: int,
    line: int,
    start: int,
) -> tuple[int, int, int, int]:
    """Add the features of the namespace of --dense, which begin after delimiter k, to a row of the dense block.

    `row` has a pointer to the block (float32), the place of the row and its columns; the other arguments are those of
    `read_features`. A feature is `number:value`, or `:value` for the next column. The results are the delimiter after
    the last feature, the number of the problem or 0, its position, and the number of malformed places.
    """
    block, first, width = row
    position = start
    problem = nameless = 0
    e = np.int64(delimiter[k])
    c = text[e]
    while problem == 0 and numbers.is_blank(c):
        b = e + 1
        k += 1
        e = np.int64(delimiter[k])
        c = text[e]
        if e == b and c != COLON:
            continue
        column = np.int64(0) if e > b else np.int64(nameless)
        nameless += e == b
        for p in range(b, e):
            is_column = numbers.is_digit(text[p]) and column >= 0 and p < b + 9
            column = 10 * column + np.int64(text[p]) - 48 if is_column else np.int64(-1)
        position = b
        value = scale
        if column < 0:
            problem = malformed.ROW_NAME
        elif column >= width:
            problem = malformed.ROW_COLUMN
        elif c == COLON:
            position = e + 1
            is_word = vw_numbers.read_by_rules(text, e + 1, _is_vw_number(text, e + 1, name_rules))[1] == e + 1
            k, _, value, _, problem, noted = _read_value(text, delimiter, k, b, np.uint32(0), scale, 0, name_rules)
            if problem == malformed.EMPTY_VALUE:
                position -= 1  # the colon
            elif problem == 0 and is_word:
                problem = malformed.VALUE
            if noted:
                bad += 1
                note(notes, bad, malformed.INFINITE, line, start, position)
            e = np.int64(delimiter[k])
            c = text[e]
        if problem == 0:
            block[first + column] += value
    if problem == 0 and 0 < nameless < width:
        problem, position = malformed.ROW_SHORT, e
    return k, problem, position, bad


@inlined
def read_features(
    text: UInt8s,
    delimiter: Int32s,
    k: int,
    seed: np.uint32,
    scale: np.float32,
    name_rules: NameRules,
    features: tuple[UInt32s, Float32s],
    z: int,
    notes: Int64s,
    bad: int,
    line: int,
    start: int,
) -> tuple[int, int, int, int, int]:
    """Read the features of a namespace, which begin after delimiter k.

    `seed` and `scale` are hash and weight of the namespace. `features` points to index (uint32) and value (float32),
    which are written from z on, and `notes` is as in `note`. `line` and `start` are number and first byte of the line.
    The results are the delimiter after the last feature, the number of features of the block so far, the number of the
    problem in `malformed`, or 0, its position, and the number of malformed places.
    """
    index, value_of = features
    position = start
    problem = nameless = 0
    e = np.int64(delimiter[k])
    c = text[e]
    while problem == 0 and numbers.is_blank(c):
        b = e + 1
        k += 1
        e = np.int64(delimiter[k])
        c = text[e]
        if c != COLON:
            if hashing.is_short(text, b, e):
                key = hashing.short_at(text, b, e, seed)
            elif e > b:
                key = hashing.name_at(text, b, e, seed, name_rules.hash_all)
            else:
                continue
            index[z] = np.uint32(key & name_rules.mask)
            value_of[z] = scale
            z += scale != 0
            continue
        position = e + 1
        k, feature, value, nameless, problem, noted = _read_value(
            text, delimiter, k, b, seed, scale, nameless, name_rules
        )
        if problem == malformed.EMPTY_VALUE:
            position -= 1  # the colon
        if noted:
            bad += 1
            note(notes, bad, malformed.INFINITE, line, start, position)
        if value != 0:
            index[z] = feature
            value_of[z] = value
            z += 1
        e = np.int64(delimiter[k])
        c = text[e]
    return k, z, problem, position, bad
