"""Compute exp and log in double precision and exp in single precision, by functions whose loops vectorise.

Source    `expf`: exp2f of ARM's optimized routines, which glibc uses.
Cost      Eight results take the time of about two calls of the C library's functions (libm), which numba would
          otherwise call once for each number.
Differs   from libm by relative errors below 1e-15 for exp on [-708, 709], absolute errors below 1e-15 plus half a unit
          in the last place for log on the positive normal numbers, and relative errors below 3e-7 for exp32 on [-87,
          88] (tests/kernels/test_fast_math.py).
Idea      VW's predictions depend on the last bit of the C library's `expf`: one different bit leads to different
          predictions after some ten thousand examples. `expf` here therefore computes and rounds in the same steps as
          glibc. Its result differs from glibc's for one of 50 million numbers, because some processors fuse
          multiplication and addition; `exp` rounded to single precision would differ for one number of 1,600.
"""

from __future__ import annotations

import numpy as np

from . import intrinsics
from .constants import HALF, ONE
from .jit import bare

ROUND = 6755399441055744.0  # 1.5 * 2**52: adding it rounds to an integer, which is then in the low bits
LOG2_E = 1.4426950408889634
LN2_HIGH = 6.93147180369123816490e-01  # the low 32 bits are zero, so k * LN2_HIGH is exact
LN2_LOW = 1.90821492927058770002e-10
ROUND32 = np.float32(12582912.0)  # 1.5 * 2**23
LOG2_E32 = np.float32(LOG2_E)
LN2_HIGH32 = np.float32(0.693359375)
LN2_LOW32 = np.float32(-2.12194440e-4)
STEPS = np.array([2.0 ** (i / 32) for i in range(32)])
INVERSE_STEP = 32 * LOG2_E
# coefficients of 2**r on [-1/64, 1/64], exact to 34 bits, of exp2f in ARM's optimized routines, which glibc uses
CUBE = float.fromhex("0x1.c6af84b912394p-5") / 32**3
SQUARE = float.fromhex("0x1.ebfce50fac4f3p-3") / 32**2
SLOPE = float.fromhex("0x1.62e42ff0c52d6p-1") / 32
MAX_X = 150.0  # beyond +-MAX_X, e**x is infinite or 0 in single precision
C6, C5, C4, C3 = (np.float32(1.0 / d) for d in (720, 120, 24, 6))
MIN_X32, MAX_X32 = np.float32(-87), np.float32(88)
FRACTION_BITS32 = np.int32(23)


@bare
def exp(x: float) -> float:
    """Return e**x for float64 x, clamped to the range of normal numbers, so that it is never infinite or 0."""
    x = min(max(x, -708.0), 709.0)
    shifted = x * LOG2_E + ROUND
    k = shifted - ROUND
    r = (x - k * LN2_HIGH) - k * LN2_LOW
    # Taylor series for |r| <= ln 2 / 2; the first omitted term is below 5e-18
    p = 1.0 / 6227020800.0
    p = p * r + 1.0 / 479001600.0
    p = p * r + 1.0 / 39916800.0
    p = p * r + 1.0 / 3628800.0
    p = p * r + 1.0 / 362880.0
    p = p * r + 1.0 / 40320.0
    p = p * r + 1.0 / 5040.0
    p = p * r + 1.0 / 720.0
    p = p * r + 1.0 / 120.0
    p = p * r + 1.0 / 24.0
    p = p * r + 1.0 / 6.0
    p = p * r + 0.5
    p = p * r + 1.0
    p = p * r + 1.0
    return intrinsics.from_bits(intrinsics.bits_of(p) + (intrinsics.bits_of(shifted) << 52))


@bare
def expf(x: np.float32) -> np.float32:
    """Return e**x for float32 x, rounded as the C library's `expf` rounds it."""
    z = min(max(np.float64(x), -MAX_X), MAX_X) * INVERSE_STEP
    shifted = z + ROUND
    # x / ln 2 as a multiple of 1/32: the low five bits are the fraction, the others the exponent
    steps = intrinsics.bits_of(shifted)
    r = z - (shifted - ROUND)
    power = intrinsics.from_bits(intrinsics.bits_of(STEPS[np.uint64(steps & 31)]) + ((steps >> 5) << 52))
    return np.float32(((CUBE * r + SQUARE) * (r * r) + (SLOPE * r + 1.0)) * power)


@bare
def log(x: float) -> float:
    """Return the natural logarithm of a positive normal float64."""
    bits = intrinsics.bits_of(x)
    # split x = 2**k * m with m in [sqrt(1/2), sqrt(2))
    k = (bits - 0x3FE6A09E667F3BCD) >> 52
    m = intrinsics.from_bits(bits - (k << 52))
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    # 2 artanh(s) = 2 s + s z (2/3 + 2/5 z + ...), z <= 0.0295
    p = 2.0 / 23.0
    p = p * z + 2.0 / 21.0
    p = p * z + 2.0 / 19.0
    p = p * z + 2.0 / 17.0
    p = p * z + 2.0 / 15.0
    p = p * z + 2.0 / 13.0
    p = p * z + 2.0 / 11.0
    p = p * z + 2.0 / 9.0
    p = p * z + 2.0 / 7.0
    p = p * z + 2.0 / 5.0
    p = p * z + 2.0 / 3.0
    return k * LN2_HIGH + (2.0 * s + (s * z * p + k * LN2_LOW))


@bare
def exp32(x: np.float32) -> np.float32:
    """Return e**x for float32 x, clamped so that it is never infinite or 0."""
    x = min(max(x, MIN_X32), MAX_X32)
    shifted = x * LOG2_E32 + ROUND32
    k = shifted - ROUND32
    r = (x - k * LN2_HIGH32) - k * LN2_LOW32
    p = ((((C6 * r + C5) * r + C4) * r + C3) * r + HALF) * r + ONE
    p = p * r + ONE
    return intrinsics.from_bits32(
        np.int32(intrinsics.bits_of32(p) + (intrinsics.bits_of32(shifted) << FRACTION_BITS32))
    )
