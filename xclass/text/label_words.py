"""Parse the part of a line before the first bar: label, weight, initial prediction and tag.

Source    VW 9.11 (parse_example_text.cc, parse_primitives.h), including its treatment of malformed lines.
"""

from __future__ import annotations

import math

import numpy as np

from ..array_types import Float64s, Int, Int64s, UInt8s
from ..data import class_names
from ..errors import DataError, UsageError
from ..kernels.jit import bare, on_demand
from ..system import streams
from ..system.printable import short_repr
from . import malformed, numbers, vw_numbers
from .line_parts import Rules
from .numbers import BAR, NEWLINE, SPACE, TAB

COMMA, ZERO = 44, 48
UNLABELLED = 2**32 - 1  # class by which VW marks an unlabelled example


# -- kernels


@bare
def _read_class(text: UInt8s, begin: int) -> tuple[Int, int]:
    """Read a whole number at `begin` as C's strtol does in base 10; return it, within int64, and its end, `begin` for
    none.
    """
    p = begin
    while text[p] == SPACE or (text[p] >= 9 and text[p] <= 13 and text[p] != NEWLINE):
        p += 1
    negative = text[p] == 45
    if negative or text[p] == 43:
        p += 1
    if not numbers.is_digit(text[p]):
        return 0, begin
    value: Int = 0
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


@bare
def problem_of(number: Int) -> int:
    """Return the problem of a label that `class_names.class_number` does not read as a class."""
    if number == class_names.NEGATIVE:
        return malformed.NEGATIVE
    return malformed.LABEL_FORM if number == class_names.OTHER_FORM else malformed.CLASS_NUMBER


@bare
def read_class(text: UInt8s, begin: int, end: int, rules: Rules) -> tuple[Int, int]:
    """Return the class `text[begin:end]`, which is not empty, and the number of its problem in `malformed` or 0.

    A comma or a byte of at most 32 follows it. With `rules.learn_names` the result is its position.
    """
    number: Int = begin
    if rules.learn_names:
        for p in range(begin, end):
            if text[p] == COMMA or text[p] <= SPACE:
                return number, malformed.LABEL_NAME
        return number, 0
    if len(rules.names.hash) > 0:
        number = class_names.class_of(text, begin, end, rules.names)
        if number == 0:
            return number, malformed.UNLISTED
    else:
        number = class_names.class_number(text, begin, end)
        if number < 0:
            return number, problem_of(number)
    outside = number > UNLABELLED or (rules.highest >= 0 and (number < rules.lowest or number > rules.highest))
    return number, malformed.OUTSIDE if outside and number != UNLABELLED else 0


@on_demand
def read_list(text: UInt8s, begin: int, end: int, rules: Rules, labels: Float64s, first: int) -> tuple[float, int, int]:
    """Read the classes `text[begin:end]`, which commas separate, into `labels` from `first` on.

    A comma alone is the list of an example that is known to have no class. With VW's rules it is no label, empty parts
    of a list are left out, and numbers are read as VW reads them; VW has no names here.

    Return the number of classes, NaN for no label, the number of the problem in `malformed`, or 0, and its position.
    """
    m, p, problem, position = first, begin, 0, begin
    strict = rules.treatment != malformed.VW
    named = rules.learn_names or len(rules.names.hash) > 0
    if strict and end == begin + 1 and text[begin] == COMMA:
        return 0.0, 0, begin
    number: Int
    while p <= end:
        e = p
        while e < end and text[e] != COMMA:
            e += 1
        if strict and e == p:
            return np.nan, malformed.EMPTY_LABEL, p
        if e > p and (strict or named):
            number, problem = read_class(text, p, e, rules)
            if problem != 0 or number == UNLABELLED:
                return np.nan, problem if problem != 0 else malformed.OUTSIDE, p
            labels[m] = np.float64(number)
            m += 1
        elif e > p:
            number, stop = _read_class(text, p)
            if stop == p:
                problem, position = malformed.LABEL, p
            labels[m] = np.float64(number & UNLABELLED)
            m += 1
        p = e + 1
    return np.float64(m - first) if m > first else np.nan, problem, position


@bare
def can_be_skipped(problem: int, rules: Rules) -> bool:
    """Return whether `--on_bad_line skip` skips a line with a problem: lists of labels are no data for a regression."""
    return problem != malformed.SEVERAL_LABELS or rules.multiclass


@bare
def second_label(text: UInt8s, position: int) -> int:
    """Return the position after the first comma of the word at `position`, or -1 if it has none."""
    while text[position] > SPACE and text[position] != BAR:
        if text[position] == COMMA:
            return position + 1
        position += 1
    return -1


@on_demand
def _read_real(text: UInt8s, begin: int, end: int, rules: Rules) -> tuple[np.float32, bool]:
    """Return the number `text[begin:end]`, 0 if it is none, and whether it is malformed."""
    value, p, digits = vw_numbers.read_by_rules(text, begin, rules.vw_numbers)
    is_wrong = p == begin or math.isnan(value) or (math.isinf(value) and not rules.vw_numbers)
    if is_wrong:
        value = np.float32(0)
    return value, is_wrong or (rules.treatment != malformed.VW and (p != end or digits == 0 or math.isinf(value)))


@on_demand
def read_label(
    text: UInt8s, begin: int, end: int, rules: Rules, lists: tuple[Int64s, Float64s], n: int
) -> tuple[float, np.float32, np.float32, int, int, int, int]:
    """Read label, weight, initial prediction and tag from `text[begin:end]`, the part of a line before its first bar.

    The last word is the tag if it touches the bar or begins with an apostrophe. `lists` points to the fields
    `label_start` and `labels` of the batch, into which a list of labels of example n is read, see `read_list`.

    The label is NaN for none, and with `rules.learn_names` the position of the name in the text. The other results are
    the range of the tag, the number of the problem in `malformed`, or 0, and its position. LABEL_AS_TAG,
    LABEL_BEFORE_TAB and TAG_ONLY are only warnings.
    """
    label, weight, initial = np.nan, np.float32(1), np.float32(0)
    p = begin
    while p < end and text[p] != TAB:
        p += 1
    p = first = p + 1 if p < end else begin
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
    position = begin
    if words > 0 and (last_end == end or text[last] == 39):  # 39 is '
        words -= 1
        tag_start, tag_end = last, last_end
        if text[last] == 39:
            tag_start += 1
            if words == 0 and rules.multiclass:
                problem, position = malformed.TAG_ONLY, last
        elif words == 0 and rules.multiclass:
            e = max(second_label(text, last) - 1, last)
            e = last_end if e == last else e
            listed = len(rules.names.hash) > 0 and class_names.class_of(text, last, e, rules.names) > 0
            number = class_names.class_number(text, last, e) != class_names.NO_NUMBER
            if number or listed or rules.learn_names:
                problem, position = malformed.LABEL_AS_TAG, last
    if words == 0:
        if tag_start == end and begin < first and rules.multiclass:
            p = begin
            while numbers.is_digit(text[p]):
                p += 1
            number = p > begin and text[p] == TAB
            if rules.learn_names:
                number = first - 1 > begin
            if number or (len(rules.names.hash) > 0 and class_names.class_of(text, begin, first - 1, rules.names) > 0):
                problem, position = malformed.LABEL_BEFORE_TAB, begin
        return label, weight, initial, tag_start, tag_end, problem, position

    strict = rules.treatment != malformed.VW
    value: Int
    if rules.lists:
        if words > 2 or (words > 1 and not strict):
            problem = malformed.CLASS_WORDS if strict else malformed.LABEL_WORDS
            return label, weight, initial, tag_start, tag_end, problem, word0
        label, problem, position = read_list(text, word0, end0, rules, lists[1], lists[0][n])
    elif rules.multiclass:
        if words > 2:
            return label, weight, initial, tag_start, tag_end, malformed.CLASS_WORDS, word0
        if rules.learn_names:
            value, p = word0, end0  # class_names replaces the position by a number later
            for q in range(word0, end0):
                if text[q] == COMMA or text[q] < SPACE:
                    return label, weight, initial, tag_start, tag_end, malformed.CLASS, word0
        elif len(rules.names.hash) > 0:
            value, p = class_names.class_of(text, word0, end0, rules.names), end0
            if value == 0:
                problem, position = malformed.UNKNOWN_NAME, word0
        elif strict:
            value, p = class_names.class_number(text, word0, end0), end0
            if value < 0:
                problem, position = problem_of(value), word0
        else:
            value, p = _read_class(text, word0)
        if problem == malformed.CLASS_NUMBER or (p != end0 and text[p] != SPACE and text[p] != 0):
            return label, weight, initial, tag_start, tag_end, malformed.CLASS, word0
        if strict and value > UNLABELLED:
            problem, position = malformed.OUTSIDE, word0
        value &= UNLABELLED
        if value != UNLABELLED:
            label = np.float64(value)
            in_range = rules.learn_names or rules.highest < 0 or (value >= rules.lowest and value <= rules.highest)
            if problem == 0 and not in_range:
                problem, position = malformed.OUTSIDE, word0
    else:
        if words > 3:
            return label, weight, initial, tag_start, tag_end, malformed.LABEL_WORDS, word0
        number, is_wrong = _read_real(text, word0, end0, rules)
        if is_wrong:
            problem, position = malformed.LABEL, word0
        label = np.float64(number)
        if rules.vw_numbers and number == np.float32(3.4028234663852886e38):  # VW's mark for no label
            label = np.nan
    if words > 1:
        weight, is_wrong = _read_real(text, word1, end1, rules)
        if problem == 0 and (is_wrong or (weight < 0 and (strict or not rules.multiclass))):
            problem, position = malformed.WEIGHT, word1
        if problem == 0 and strict and rules.learn_names and text[word1] == ZERO and numbers.is_digit(text[word1 + 1]):
            problem, position = malformed.LEADING_ZEROS, word1  # probably a name of two words, as in `class 0001 | ...`
        if rules.multiclass and not weight > 0:
            weight = np.float32(0)
    if words > 2:
        initial, is_wrong = _read_real(text, word2, end2, rules)
        if problem == 0 and is_wrong:
            problem, position = malformed.INITIAL, word2
    return label, weight, initial, tag_start, tag_end, problem, position


# -- Python


def read_names(path: str) -> str:
    """Return the names in a file, which has one on each line, separated by commas as in --named_labels."""
    try:
        content = streams.read_file(path, "give one with a name on each line")
    except DataError as error:
        raise UsageError(*error.args) from None
    names = [line.removesuffix("\r") for line in content.decode("utf-8-sig", "surrogateescape").split("\n")]
    if not names[-1]:
        names.pop()
    for number, name in enumerate(names, 1):
        if fault := class_names.fault_of(name):
            raise UsageError(f"{path}:{number}: the line {short_repr(name)} is not a name of --named_labels; {fault}")
    if not names:
        raise UsageError(f"{path}: the file of --named_labels is empty; write one name on each line")
    return ",".join(names)
