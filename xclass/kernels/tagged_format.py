"""Define the format of tagged words, in which `binary.tagged_words` stores weights, and encode and decode them.

word   | sign of w, 1 bit | |w|, 5 bits exponent and 7 bits mantissa | G, 5 and 1 | tag, 13 bits |
"""

from __future__ import annotations

import numpy as np

from ..array_types import Int
from . import intrinsics
from .constants import ZERO
from .jit import bare

LANES, HALF_LANES = 16, 8  # words of a line, and regressors of a block
TAG_BITS, TAG_MASK, NUMBER_MASK = 13, 0x1FFF, 7  # the tag of a word, and the regressor's number within it
# |w| is W_SCALE times the float32 with the bits code << W_SHIFT, and G is G_SCALE times that with code << G_SHIFT
W_SCALE, W_SHIFT, W_CODES = np.float32(2.0**108), 16, 4096
G_SCALE, G_SHIFT, G_CODES = np.float32(2.0**111), 22, 64
W_UNIT, G_UNIT = np.float32(2.0**-108), np.float32(2.0**-111)
ROOT_BITS = 0x5F375A86  # the bits of an estimate of 1 / sqrt(g) are these less half of the bits of g
W_FIELD, G_FIELD = 19, TAG_BITS  # lowest bit of each code in a word
LANE_STEP = 0x9E3779B9  # random numbers of lanes: (number + lane * LANE_STEP) * multiplier, modulo 2**32
G_RANDOM, W_RANDOM = 0x85EBCA6B, 0xC2B2AE35  # multipliers


# -- kernels


@bare
def random32(number: Int, lane: Int, multiplier: Int) -> int:
    """Return a number below 2**32 that decides the rounding of a code; `lane` is 0 to 7."""
    return ((int(number) + int(lane) * LANE_STEP) & 0xFFFFFFFF) * int(multiplier) & 0xFFFFFFFF


@bare
def inverse_root(g: np.float32) -> np.float32:
    """Return an estimate of 1 / sqrt(g) with a relative error below 3.5 %, 0 if g is 0; equal on all processors."""
    estimate = intrinsics.from_bits32(np.int32(ROOT_BITS - (np.int64(intrinsics.bits_of32(g)) >> 1)))
    return estimate if g > ZERO else ZERO


@bare
def rate_factor(before: np.float32, total: np.float32, r: np.float32 | None) -> np.float32:
    """Return the rate of a weight per unit of x, whose G is raised to `total`: of AdaGrad, or with a number r of AROW.

    AROW's is the variance of the weight before the step, 1 / (1 + G / r).
    """
    if r is None:
        return inverse_root(total)
    return r / (r + before)


@bare
def decode_w(word: np.uint32) -> np.float32:
    """Return the weight of a word."""
    # no branch, because it could not be predicted
    bits = np.int64(word) >> W_FIELD - W_SHIFT & (W_CODES - 1 << W_SHIFT)
    return intrinsics.from_bits32(np.int32(bits)) * (W_SCALE * np.float32(1 - 2 * (np.int64(word) >> 31)))


@bare
def decode_g(word: np.uint32) -> np.float32:
    """Return G of a word, 0 for an empty word."""
    bits = np.int64(word) << G_SHIFT - G_FIELD & (G_CODES - 1 << G_SHIFT)
    return intrinsics.from_bits32(np.int32(bits)) * G_SCALE


@bare
def encode_w(w: np.float32, random: Int) -> Int:
    """Return the bits of a word that hold weight w, rounded by the highest bits of a random number below 2**32."""
    bits = np.int64(intrinsics.bits_of32(w * W_UNIT))
    # no branches, so that loops over weights become vector instructions
    code = min(((bits & 0x7FFFFFFF) + (random >> 32 - W_SHIFT)) >> W_SHIFT, W_CODES - 1)
    return (code << W_FIELD) | (bits & (np.int64(code > 0) << 31))


@bare
def encode_g(g: np.float32, random: Int) -> Int:
    """Return the bits of a word that hold G, rounded by the highest bits of a random number below 2**32."""
    code = (np.int64(intrinsics.bits_of32(g * G_UNIT)) + (random >> 32 - G_SHIFT)) >> G_SHIFT
    return min(max(code, 1), G_CODES - 1) << G_FIELD
