"""Read the numbers of VW text as VW does, for `--vw_exact`.

Source    VW 9.11's parse_float: it accumulates digits in float32 and scales them by one power of ten, whose exponent is
          a signed byte. What it cannot read in this way (`1e+2`, `0x1f`, `inf`, `1|`) it passes to C's strtof.
Cost      A few ns per number.
Differs   from VW: a number ends at the end of its line.

In all kernels `text` is as in `numbers`.
"""

from __future__ import annotations

import math

import numpy as np

from ..array_types import Float32s, UInt8s
from ..kernels.jit import apart, bare, inlined, on_demand
from . import numbers
from .numbers import MINUS, NEWLINE, PLUS, POINT, RETURN, SPACE


def _powers() -> Float32s:
    """Return VW's powers of ten, 10**-37 to 10**38 by repeated division and multiplication, as float32[76]."""
    ten = np.float32(10)
    negative, positive = [np.float32(1)], [np.float32(1)]
    for _ in range(37):
        negative.append(np.float32(negative[-1] / ten))
    for _ in range(38):
        positive.append(np.float32(positive[-1] * ten))
    return np.array(negative[:0:-1] + positive, np.float32)


POWERS = _powers()


@bare
def ends_number(text: UInt8s, p: int) -> bool:
    """Return whether parse_float accepts position `p` as the end of a number: a blank or the end of the line."""
    c = text[p]
    return numbers.is_blank(c) or c == NEWLINE or (c == RETURN and text[p + 1] == NEWLINE)


@inlined
def read_by_rules(text: UInt8s, begin: int, vw: bool) -> tuple[np.float32, int, int]:
    """Read the number at `begin` by VW's rules or by those of `numbers`."""
    return read_number(text, begin) if vw else numbers.read_number(text, begin)


@bare
def read_number(text: UInt8s, begin: int) -> tuple[np.float32, int, int]:
    """Read the number at `begin` as VW's parse_float does; return as `numbers.read_number`.

    There are 0 digits in `-`, `.` and `e`, too, which VW reads as 0.
    """
    negative = text[begin] == MINUS
    mantissa, p, digits, decimals = numbers.read_digits(text, begin + negative)
    if digits > 0 and digits <= 7 and ends_number(text, p):  # float32 holds 7 digits, so VW does not round before this
        value = np.float32(mantissa) * POWERS[37 - decimals]
        return (-value if negative else value), p, digits
    return _read_rounding(text, begin)


@apart
def _read_rounding(text: UInt8s, begin: int) -> tuple[np.float32, int, int]:
    """Read any number as `read_number` does, accumulating in float32 with the rounding of VW."""
    p = begin
    if text[p] == 0:
        return np.float32(0), begin, 0
    while text[p] == SPACE:
        p += 1
    negative = text[p] == MINUS
    if negative:
        p += 1
    value = np.float32(0)
    digits = 0
    while numbers.is_digit(text[p]):
        value = np.float32(np.float32(value * np.float32(10)) + np.float32(text[p])) - np.float32(48)
        p += 1
        digits += 1
    decimals = 0
    if text[p] == POINT:
        p += 1
        while numbers.is_digit(text[p]):
            if decimals < 35:
                value = np.float32(value * np.float32(10)) + np.float32(np.int64(text[p]) - 48)
                decimals += 1
            p += 1
            digits += 1
    exponent = 0
    if text[p] == 101 or text[p] == 69:
        p += 1
        negative_exponent = text[p] == MINUS
        if negative_exponent:
            p += 1
        while numbers.is_digit(text[p]):
            exponent = (exponent * 10 + (np.int64(text[p]) - 48)) & 0xFFFFFFFF
            p += 1
        if negative_exponent:
            exponent = -exponent
    if not ends_number(text, p):
        value, p = _strtof(text, begin)
        return value, p, 1
    exponent = (exponent - decimals + 128) % 256 - 128  # VW stores the exponent in a signed byte
    if exponent > 38:
        scale = np.float32(np.inf)
    elif exponent < -37:
        scale = np.float32(0)
    else:
        scale = POWERS[37 + exponent]
    value = np.float32(value * scale)
    if negative:
        value = -value
    return value, p, digits


@bare
def _lower(c: int) -> np.int64:
    """Return an ASCII letter in lower case; the result for other bytes is not used."""
    return np.int64(c) | 32


@bare
def _hex_digit(c: int) -> np.int64 | int:
    """Return the value of a hexadecimal digit, or -1 for another byte."""
    if numbers.is_digit(c):
        return np.int64(c) - 48
    letter = _lower(c)
    return letter - 87 if letter >= 97 and letter <= 102 else -1


@on_demand
def _strtof(text: UInt8s, begin: int) -> tuple[np.float32, int]:
    """Read the number at `begin` as C's strtof does in the C locale; return its value and one past its end."""
    p = begin
    while text[p] == SPACE or (text[p] >= 9 and text[p] <= 13 and text[p] != NEWLINE):
        p += 1
    negative = text[p] == MINUS
    if negative or text[p] == PLUS:
        p += 1
    end = begin
    value = 0.0
    c0, c1, c2 = _lower(text[p]), _lower(text[p + 1]), _lower(text[p + 2])
    if c0 == 105 and c1 == 110 and c2 == 102:  # inf, infinity
        value = np.inf
        end = p + 3
        if (
            _lower(text[p + 3]) == 105
            and _lower(text[p + 4]) == 110
            and _lower(text[p + 5]) == 105
            and _lower(text[p + 6]) == 116
            and _lower(text[p + 7]) == 121
        ):
            end = p + 8
    elif c0 == 110 and c1 == 97 and c2 == 110:  # nan, nan(letters)
        value = np.nan
        end = p + 3
        if text[end] == 40:
            q = end + 1
            while numbers.is_digit(text[q]) or text[q] == 95 or (_lower(text[q]) >= 97 and _lower(text[q]) <= 122):
                q += 1
            if text[q] == 41:
                end = q + 1
    elif text[p] == 48 and c1 == 120 and (_hex_digit(text[p + 2]) >= 0 or (c2 == 46 and _hex_digit(text[p + 3]) >= 0)):
        value, end = _hexadecimal(text, p + 2)
    else:
        decimal, q, digits = numbers.read_unsigned(text, p)
        return (-decimal if negative else decimal), (q if digits > 0 else begin)
    if negative:
        value = -value
    return np.float32(value), end


@bare
def _hexadecimal(text: UInt8s, p: int) -> tuple[float, int]:
    """Return the hexadecimal number at `p`, after `0x`, and one past its end."""
    value = 0.0
    power = 0
    while _hex_digit(text[p]) >= 0:
        value = value * 16.0 + _hex_digit(text[p])
        p += 1
    if text[p] == POINT:
        p += 1
        while _hex_digit(text[p]) >= 0:
            value = value * 16.0 + _hex_digit(text[p])
            power -= 4
            p += 1
    if _lower(text[p]) == 112:
        negative_exponent = text[p + 1] == MINUS
        q = p + 2 if negative_exponent or text[p + 1] == PLUS else p + 1
        if numbers.is_digit(text[q]):
            exponent = 0
            while numbers.is_digit(text[q]):
                exponent = min(exponent * 10 + (np.int64(text[q]) - 48), 100000)
                q += 1
            power += -exponent if negative_exponent else exponent
            p = q
    return math.ldexp(value, int(max(min(power, 2000), -2000))), p
