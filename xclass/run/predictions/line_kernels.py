"""Format predictions digit for digit as C++ streams, and therefore VW, print them.

Idea      The exact decimal value is rounded, halves to the even digit, as in printf. A float32 has 24 bits, so its
          product with 10**6 is exact in float64 (`%.6f`), and its product with any power of ten is computed with about
          100 bits (`%g`).

Each `put_` kernel writes into `out`, uint8[...], from position `at` on and returns the position after the last byte.
The caller makes sure that `out` has enough space. No other array argument is written.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...array_types import Float, Float32s, Float64s, Int, Int64s, UInt8s
from ...kernels.jit import jit, on_demand

MAX_NUMBER_BYTES = 48  # upper bound of the bytes of a number: 39 digits, a sign, and some more
MAX_SCORE_BYTES = 40  # upper bound of the bytes of `label:score`

MIN_EXPONENT, MAX_EXPONENT = -33, 50  # exponents of the powers of ten that scale a float32 to between 10**5 and 10**6


class Powers(NamedTuple):
    """Hold 10**k for k from MIN_EXPONENT to MAX_EXPONENT as sums of three float64.

    A float32 times `high` or `middle` is exact.
    """

    whole: np.ndarray  # float64[exponents], the nearest float64, equal to high + middle
    high: np.ndarray  # float64[exponents]
    middle: np.ndarray  # float64[exponents]
    low: np.ndarray  # float64[exponents], 10**k - whole


def _powers() -> Powers:
    """Compute the table of powers of ten."""
    whole = [float(f"1e{k}") for k in range(MIN_EXPONENT, MAX_EXPONENT + 1)]
    low = []
    for k, near in zip(range(MIN_EXPONENT, MAX_EXPONENT + 1), whole, strict=True):
        numerator, denominator = near.as_integer_ratio()
        power = 10 ** abs(k)
        if k >= 0:
            low.append((power * denominator - numerator) / denominator)
        else:
            low.append((denominator - numerator * power) / (denominator * power))
    nearest = np.array(whole)
    high = (nearest.view(np.int64) & ~np.int64((1 << 27) - 1)).view(np.float64)
    return Powers(nearest, high, nearest - high, np.array(low))


class ClassNames(NamedTuple):
    """Hold names of classes: class j has `text[start[j]:start[j + 1]]`; class 0 and unknown classes have none."""

    named: bool  # whether classes are written as names, and not as numbers
    start: np.ndarray  # int64[classes + 2]
    text: np.ndarray  # uint8[...], the names one after the other


POWERS = _powers()
MINUS, POINT, COLON, SPACE, NEWLINE, ZERO, COMMA = np.frombuffer(b"-.: \n0,", np.uint8)
INF = np.frombuffer(b"inf", np.uint8)
NAN = np.frombuffer(b"nan", np.uint8)


@jit
def put_digits(out: UInt8s, at: Int, number: Int, width: Int) -> Int:
    """Write the digits of a whole number >= 0, with leading zeros up to `width` digits."""
    size = 1
    rest = number // 10
    while rest > 0:
        rest //= 10
        size += 1
    size = max(size, width)
    for i in range(at + size - 1, at - 1, -1):
        out[i] = ZERO + np.uint8(number % 10)
        number //= 10
    return at + size


@on_demand
def put_special(out: UInt8s, at: Int, x: Float) -> int:
    """Write inf, -inf or nan."""
    if np.isnan(x):
        out[at : at + 3] = NAN
        return int(at) + 3
    if x < 0:
        out[at] = MINUS
        at += 1
    out[at : at + 3] = INF
    return int(at) + 3


@jit
def put_whole(out: UInt8s, at: Int, x: Float) -> Int:
    """Write the digits of a whole float64 from 2**62 to the largest float32, by long division by 10**9."""
    part = np.empty(5, np.int64)
    bits = np.empty(4, np.int64)  # the number in units of 32 bits, the highest first
    for i in range(4):
        unit = 2.0 ** (32 * (3 - i))
        bits[i] = np.int64(x / unit)
        x -= bits[i] * unit
    for j in range(5):
        rest = np.int64(0)
        for i in range(4):
            dividend = (rest << 32) + bits[i]
            bits[i] = dividend // 1000000000
            rest = dividend % 1000000000
        part[4 - j] = rest
    first = 0
    while part[first] == 0:
        first += 1
    at = put_digits(out, at, part[first], 1)
    for j in range(first + 1, 5):
        at = put_digits(out, at, part[j], 9)
    return at


@jit
def put_fixed(out: UInt8s, at: Int, value: Float) -> Int:
    """Write a float32 as `%.6f`, or as `%.0f` if it is a whole number."""
    x = np.float64(np.float32(value))
    if not np.isfinite(x):
        return put_special(out, at, x)
    if np.signbit(x):
        out[at] = MINUS
        at += 1
        x = -x
    if np.floor(x) == x:
        return put_digits(out, at, np.int64(x), 1) if x < 2.0**62 else put_whole(out, at, x)
    millionths = np.int64(np.rint(x * 1e6))  # the product is exact, so this rounds as printf does
    at = put_digits(out, at, millionths // 1000000, 1)
    out[at] = POINT
    return put_digits(out, at + 1, millionths % 1000000, 6)


@jit
def six_digits(x: Float) -> tuple[Int, Int]:
    """Return the six leading decimal digits of a positive float32, rounded, and the exponent of the first digit."""
    exponent = np.int64(np.floor(np.log10(x)))
    while True:
        k = 5 - exponent - MIN_EXPONENT
        scaled = x * POWERS.whole[k]
        if scaled < 1e5:
            exponent -= 1
            continue
        if scaled >= 1e6:
            exponent += 1
            continue
        error = ((x * POWERS.high[k] - scaled) + x * POWERS.middle[k]) + x * POWERS.low[k]
        digits = np.int64(scaled)
        excess = ((scaled - digits) - 0.5) + error  # distance from the half
        if excess > 1e-18 or (excess > -1e-18 and digits % 2 == 1):  # a smaller distance is a tie
            digits += 1
        if digits == 1000000:
            return 100000, exponent + 1
        return digits, exponent


@jit
def put_general(out: UInt8s, at: Int, value: Float) -> Int:
    """Write a float32 as `%g`: six digits without trailing zeros, with an exponent below 1e-4 and from 1e6 on."""
    x = np.float64(value)
    if not np.isfinite(x):
        return put_special(out, at, x)
    if np.signbit(x):
        out[at] = MINUS
        at += 1
        x = -x
    if x == 0:
        out[at] = ZERO
        return at + 1
    digits, exponent = six_digits(x)
    size = 6
    while digits % 10 == 0:
        digits //= 10
        size -= 1
    if exponent < -4 or exponent >= 6:  # 1.5e-07
        end = put_digits(out, at + 1, digits, size)  # one byte to the right, then the first digit is moved back
        out[at] = out[at + 1]
        if size > 1:
            out[at + 1] = POINT
        else:
            end -= 1
        out[end] = np.uint8(101)  # e
        out[end + 1] = np.uint8(45) if exponent < 0 else np.uint8(43)
        return put_digits(out, end + 2, abs(exponent), 2)
    if exponent < 0:  # 0.00015
        out[at] = ZERO
        out[at + 1] = POINT
        return put_digits(out, at + 2, digits, size - exponent - 1)
    int_digits = exponent + 1
    if size <= int_digits:  # 150000
        for _ in range(int_digits - size):
            digits *= 10
        return put_digits(out, at, digits, int_digits)
    end = put_digits(out, at + 1, digits, size)  # 15.5
    for i in range(at, at + int_digits):
        out[i] = out[i + 1]
    out[at + int_digits] = POINT
    return end


@jit
def put_tag(out: UInt8s, at: Int, text: UInt8s, begin: Int, end: Int) -> Int:
    """Write the end of a line: the tag `text[begin:end]` after a space, if it is not empty, and a newline."""
    if end > begin:
        out[at] = SPACE
        at += 1
        for i in range(begin, end):
            out[at] = text[i]
            at += 1
    out[at] = NEWLINE
    return at + 1


@jit
def put_class(out: UInt8s, at: Int, label: Int, names: ClassNames) -> Int:
    """Write a class as a number, or its name."""
    if not names.named:
        return put_digits(out, at, label, 1)
    if label + 1 < len(names.start):
        for p in range(names.start[label], names.start[label + 1]):
            out[at] = names.text[p]
            at += 1
    return at


@jit
def simple_lines(
    values: Float64s, text: UInt8s, tag_start: Int64s, tag_end: Int64s, row: Int, out: UInt8s
) -> tuple[Int, Int]:
    """Write lines with a number each, from example `row` on, while they fit; return the next example and the bytes
    written.

    `text`, uint8[...], contains the tags, `tag_start` and `tag_end`, int64[n], are their positions; `out` is written.
    """
    at = 0
    while row < len(values) and at + MAX_NUMBER_BYTES + tag_end[row] - tag_start[row] <= len(out):
        at = put_fixed(out, at, values[row])
        at = put_tag(out, at, text, tag_start[row], tag_end[row])
        row += 1
    return row, at


@jit
def multiclass_lines(
    values: Float64s,
    names: ClassNames,
    longest_name: Int,
    text: UInt8s,
    tag_start: Int64s,
    tag_end: Int64s,
    row: Int,
    out: UInt8s,
) -> tuple[Int, Int]:
    """Write lines with a class each as `simple_lines` does; no name is longer than `longest_name` bytes."""
    at = 0
    space = MAX_NUMBER_BYTES + longest_name
    while row < len(values) and at + space + tag_end[row] - tag_start[row] <= len(out):
        at = put_class(out, at, np.int64(values[row]), names)
        at = put_tag(out, at, text, tag_start[row], tag_end[row])
        row += 1
    return row, at


@jit
def label_lines(
    labels: Int64s,
    start: Int64s,
    space_last: bool,
    names: ClassNames,
    longest_name: Int,
    text: UInt8s,
    tag_start: Int64s,
    tag_end: Int64s,
    row: Int,
    out: UInt8s,
) -> tuple[Int, Int]:
    """Write lines with a list of labels each as `multiclass_lines` does, and a space after the list if `space_last`.

    `labels` are those of all examples; example i has `start[i]:start[i + 1]`.
    """
    at = 0
    while row < len(tag_start):
        size = start[row + 1] - start[row]
        space = size * (MAX_SCORE_BYTES + longest_name) + MAX_NUMBER_BYTES + tag_end[row] - tag_start[row]
        if at + space > len(out):
            break
        for i in range(start[row], start[row + 1]):
            if i > start[row]:
                out[at] = COMMA
                at += 1
            at = put_class(out, at, labels[i], names)
        if space_last:
            out[at] = SPACE
            at += 1
        at = put_tag(out, at, text, tag_start[row], tag_end[row])
        row += 1
    return row, at


@jit
def score_lines(
    scores: Float32s,
    labels: Int64s,
    start: Int64s,
    has_rest: bool,
    raw: bool,
    names: ClassNames,
    longest_name: Int,
    text: UInt8s,
    tag_start: Int64s,
    tag_end: Int64s,
    row: Int,
    out: UInt8s,
) -> tuple[Int, Int]:
    """Write lines with a list of label:score each as `multiclass_lines` does.

    `scores` and `labels` are those of all examples; example i has `start[i]:start[i + 1]`. `has_rest` says whether the
    last score of each example is that of all other classes, which have no name. `raw` asks for a
    space before the list, too.
    """
    at = 0
    while row < len(tag_start):
        space = (
            (start[row + 1] - start[row]) * (MAX_SCORE_BYTES + longest_name)
            + MAX_NUMBER_BYTES
            + tag_end[row]
            - tag_start[row]
        )
        if at + space > len(out):
            break
        for i in range(start[row], start[row + 1]):
            if raw or i > start[row]:
                out[at] = SPACE
                at += 1
            if not has_rest or i < start[row + 1] - 1:
                at = put_class(out, at, labels[i], names)
            out[at] = COLON
            at = put_general(out, at + 1, scores[i])
        at = put_tag(out, at, text, tag_start[row], tag_end[row])
        row += 1
    return row, at
