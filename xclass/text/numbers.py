"""Read decimal numbers, correctly rounded, in the data of every format.

    number := ['+' | '-'] (digits ['.' [digits]] | '.' digits) [('e' | 'E') ['+' | '-'] digits]

The value is that of `numpy.float32(float(text))`: the number is rounded to float64 and then to float32, so that a file
gives the same values as an array, a JSON number or a cell that pandas read. What is too small is 0, and what is too
large is infinite, which callers refuse. Names of numbers (`inf`, `nan`) and hexadecimal numbers are none.

Idea      Up to 24 bits with up to 10 decimals are divided by their power of ten in float32. Of other numbers, the
          first 18 digits and the power of ten are scaled in float64. Up to 15 digits and powers up to 10^22 are exact
          there. Otherwise the result has an error below MARGIN, and only if it matters for the float32 are all digits
          compared, as whole numbers, with the middle of two neighbouring values.
Cost      A few ns per number, and some microseconds for one that has to be compared.

In all kernels `text` is a uint8 array or an `intrinsics.pointer` to bytes in which a newline ends every line. It is not
written.
"""

from __future__ import annotations

import math
import re

import numpy as np

from ..array_types import UInt8s, UInt64s
from ..data.array_input import LARGEST
from ..kernels import intrinsics
from ..kernels.jit import allocating, apart, bare, inlined, jit, on_demand

SPACE, TAB, COLON, BAR, RETURN, NEWLINE = 32, 9, 58, 124, 13, 10
PLUS, MINUS, POINT, ZERO, LETTER_E = 43, 45, 46, 48, 101
MOST_DIGITS = 18  # digits of a mantissa, which has to fit into int64
EXACT, EXACT_POWER = 1 << 53, 22  # whole numbers up to EXACT and 10**EXACT_POWER are exact in float64
SHORT, SHORT_POWER = 1 << 24, 10  # the same for float32
LOWEST, HIGHEST = -70, 40  # powers of ten beyond which a mantissa becomes 0 or infinite in float32
POWERS = np.array([float(f"1e{power}") for power in range(LOWEST, HIGHEST + 1)])
SHORT_POWERS = np.array([10**power for power in range(SHORT_POWER + 1)], np.float32)
MARGIN = 2.0**-50  # above the relative error of a mantissa times a power of ten in float64
MOST_COMPARED = 200  # digits to compare; the middle of two values of float32 has fewer than 170
LIMBS = 40  # of 32 bits, in a whole number to compare
LOW_BITS = np.uint64(0xFFFFFFFF)
# eight bytes: each 1, each with its highest bit, each `0`, each the point without the bits of `0`, each 127 - 9
ONES, HIGH_BITS = np.uint64(0x0101010101010101), np.uint64(0x8080808080808080)
ZEROS, POINTS, LARGER = ZERO * ONES, (POINT ^ ZERO) * ONES, 118 * ONES
NUMBER = re.compile(rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


# -- kernels


@bare
def is_blank(c: int) -> bool:
    return (c == SPACE) | (c == TAB)


@bare
def is_digit(c: int) -> bool:
    return c >= 48 and c <= 57


@bare
def read_number(text: UInt8s, begin: int) -> tuple[np.float32, int, int]:
    """Read the number at `begin`; return its value, infinite if it is too large, its end, and its number of digits.

    The end is `begin` and there are 0 digits if there is no number.
    """
    negative = text[begin] == MINUS
    first = begin + 1 if negative or text[begin] == PLUS else begin
    value, end, digits = read_unsigned(text, first)
    return (-value if negative else value), (end if digits > 0 else begin), digits


@inlined
def read_short(text: UInt8s, begin: int, end: int) -> tuple[np.float32, bool]:
    """Return the number `text[begin:end]`, and whether it is a short one: digits, with a point and a minus sign or not.

    Up to eight bytes are read as one word, whose lowest byte is the first one, without a loop, because a processor
    cannot predict its end. Nine bytes from `begin` on must exist.
    """
    negative = text[begin] == MINUS
    first = begin + negative
    size = end - first
    if size == 1:
        mantissa, decimals = np.int64(text[first]) - ZERO, 0
        valid = is_digit(text[first])
    elif size > 8 or size <= 0:
        mantissa, p, digits, decimals = read_digits(text, first)
        valid = (p == end) & (digits > 0) & _is_short(mantissa, digits, decimals)
    else:
        unused = np.uint64(8 * (8 - size))
        word = np.uint64(intrinsics.load32(text, first)) | np.uint64(intrinsics.load32(text, first + 4)) << np.uint64(
            32
        )
        word = word << unused ^ ZEROS << unused  # leading zeros are added, and each digit becomes its value
        other = word ^ POINTS
        point = (other - ONES) & ~other & HIGH_BITS
        decimals = 0
        if point != np.uint64(0):
            at = intrinsics.trailing_zeros(point)  # highest bit of the point
            decimals = 7 - (at >> 3)
            behind = ~((np.uint64(2) << np.uint64(at)) - np.uint64(1))
            before = (np.uint64(1) << np.uint64(at - 7)) - np.uint64(1)
            word = word & behind | (word & before) << np.uint64(8)
        valid = ((word + LARGER) | word) & HIGH_BITS == np.uint64(0) and size > (point != np.uint64(0))
        word = word * np.uint64(10 << 8 | 1) >> np.uint64(8)
        word = (word & np.uint64(0x00FF00FF00FF00FF)) * np.uint64(100 << 16 | 1) >> np.uint64(16)
        mantissa = np.int64((word & np.uint64(0x0000FFFF0000FFFF)) * np.uint64(10000 << 32 | 1) >> np.uint64(32))
        valid = valid and mantissa < SHORT
    if not valid:
        return np.float32(0), False
    value = np.float32(mantissa) / SHORT_POWERS[decimals]
    return (-value if negative else value), True


@inlined
def read_unsigned(text: UInt8s, first: int) -> tuple[np.float32, int, int]:
    """Read the number without a sign at `first`; return as `read_number`."""
    mantissa, p, digits, decimals = read_digits(text, first)
    if _is_short(mantissa, digits, decimals) and np.int64(text[p]) | 32 != LETTER_E:
        return np.float32(mantissa) / SHORT_POWERS[decimals], p, digits
    value, p = _read_long(text, first, p, mantissa, digits, decimals)
    return value, p, digits


@inlined
def _is_short(mantissa: int, digits: int, decimals: int) -> bool:
    """Return whether one division in float32 rounds a number correctly.

    Both operands are exact then. To round the quotient to float64 first would not change any of these numbers.
    """
    return (digits <= MOST_DIGITS) & (mantissa < SHORT) & (decimals <= SHORT_POWER)


@inlined
def read_digits(text: UInt8s, first: int) -> tuple[int, int, int, int]:
    """Return the digits at `first` as a number modulo 2**64, their end, and the numbers of digits and of decimals."""
    p = first
    mantissa = 0
    while is_digit(text[p]):
        mantissa = mantissa * 10 + (np.int64(text[p]) - ZERO)
        p += 1
    digits = p - first
    decimals = 0
    if text[p] == POINT:
        p += 1
        after_point = p
        while is_digit(text[p]):
            mantissa = mantissa * 10 + (np.int64(text[p]) - ZERO)
            p += 1
        decimals = p - after_point
        digits += decimals
    return mantissa, p, digits, decimals


@apart
def _read_long(text: UInt8s, first: int, end: int, mantissa: int, digits: int, decimals: int) -> tuple[np.float32, int]:
    """Return the value of a number and one past its end.

    `first` and `end` are the range of its digits and its point, `mantissa` is its digits modulo 2**64, and `decimals`
    is the number of digits behind the point.
    """
    p = end
    power = -decimals
    if np.int64(text[p]) | 32 == LETTER_E:
        q = p + 1
        negative = text[q] == MINUS
        if negative or text[q] == PLUS:
            q += 1
        if is_digit(text[q]):
            exponent = 0
            while is_digit(text[q]):
                exponent = min(exponent * 10 + (np.int64(text[q]) - ZERO), 10**15)
                q += 1
            power += -exponent if negative else exponent
            p = q
    whole_power = power
    if digits > MOST_DIGITS:
        mantissa = kept = 0
        for q in range(first, end):
            if text[q] != POINT:
                if kept < MOST_DIGITS:
                    mantissa = mantissa * 10 + (np.int64(text[q]) - ZERO)
                    kept += mantissa > 0
                else:
                    power += 1
    if mantissa == 0:
        return np.float32(0), p
    if mantissa < EXACT and abs(power) <= EXACT_POWER:
        if power < 0:
            return np.float32(np.float64(mantissa) / POWERS[-power - LOWEST]), p
        return np.float32(np.float64(mantissa) * POWERS[power - LOWEST]), p
    value = np.float64(mantissa) * POWERS[max(min(power, HIGHEST), LOWEST) - LOWEST]
    low, high = np.float32(value * (1.0 - MARGIN)), np.float32(value * (1.0 + MARGIN))
    if low != high:
        low = _choose(text, first, end, whole_power, low, high)
    return low, p


@on_demand
def _choose(text: UInt8s, first: int, end: int, power: int, low: np.float32, high: np.float32) -> np.float32:
    """Return which of two neighbouring values the number `text[first:end] * 10**power` has.

    It has the upper one if the float64 nearest to the number is above the middle of both.
    """
    upper = np.float64(high) if math.isfinite(high) else 2.0**128
    middle = (np.float64(low) + upper) / 2.0
    fraction, exponent = math.frexp(middle)
    quarters = np.int64(math.ldexp(fraction, 55))  # the middle in quarters of a unit in the last place of float64
    if compare(text, first, end, power, quarters + 2, exponent - 55) > 0:
        return high
    if compare(text, first, end, power, quarters - (1 if fraction == 0.5 else 2), exponent - 55) < 0:
        return low
    return np.float32(middle)  # float64 rounds the number to the middle


@allocating
def compare(text: UInt8s, first: int, end: int, power: int, multiple: int, exponent: int) -> int:
    """Return the sign of `text[first:end] * 10**power - multiple * 2**exponent`; both are positive float32 numbers.

    A point among the digits is ignored.
    """
    left, right = np.zeros(LIMBS, np.uint64), np.zeros(LIMBS, np.uint64)
    right[0], right[1] = np.uint64(multiple) & LOW_BITS, np.uint64(multiple) >> np.uint64(32)
    digits = more = 0
    for p in range(first, end):
        digit = np.int64(text[p]) - ZERO
        if text[p] == POINT:
            continue
        if digits < MOST_COMPARED:
            digits += digits > 0 or digit > 0
            _multiply(left, 10, digit)
        else:
            power += 1
            more |= digit
    if more > 0:
        _multiply(left, 10, 1)
        power -= 1
    _multiply_power(left if power > 0 else right, 5, abs(power))
    _multiply_power(left if power > exponent else right, 2, abs(power - exponent))
    for i in range(LIMBS - 1, -1, -1):
        if left[i] != right[i]:
            return 1 if left[i] > right[i] else -1
    return 0


@jit
def _multiply_power(number: UInt64s, base: int, power: int) -> None:
    """Multiply a number as `_multiply` does by a power of a base of at most 5."""
    for _ in range(power // 13):
        _multiply(number, base**13, 0)
    for _ in range(power % 13):
        _multiply(number, base, 0)


@jit
def _multiply(number: UInt64s, factor: int, addend: int) -> None:
    """Multiply a number of LIMBS limbs, uint64[LIMBS], written, by a small factor and add a small number."""
    carry = np.uint64(addend)
    for i in range(LIMBS):
        carry += number[i] * np.uint64(factor)
        number[i] = carry & LOW_BITS
        carry >>= np.uint64(32)


# -- Python


def is_too_large(text: bytes) -> bool:
    number = NUMBER.match(text)
    return number is not None and abs(float(number[0])) > LARGEST
