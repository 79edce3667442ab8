"""Read and update a cache line of sixteen tagged words by vector instructions.

Idea      `binary.tagged_words` says what a word and a line are. One pass over a line serves all eight regressors of a
          block: the words of the block are selected by comparing tags, brought from the order of the lanes to that of
          the regressors, and decoded, all without branches. What this leaves is rare: words that are not in one of the
          two lanes where they belong, and new words for which both lanes are taken.
Cost      About 6 processor cycles to score a line and 40 to train all regressors of a block on it.

The plain functions define what the instructions do, and are used if numba is switched off. `install()` replaces them
by numba intrinsics. Arrays are contiguous, and positions are not checked.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..array_types import AnyArray, Float32s, Int, UInt32s
from . import intrinsics
from .constants import ZERO
from .jit import bare

# tells `kernel_cache` to hash this file and another, because numba compiles the intrinsics, not these functions
BY_SOURCE = ("tagged_lines_code.py",)
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

_LANE = np.arange(LANES, dtype=np.uint32)


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


def new_sums() -> Float32s:
    """Return a pointer to eight float32, all 0, which live as long as the kernel that calls this."""
    return np.zeros(HALF_LANES, np.float32)


def store_sums(sums: Float32s, target: Float32s, position: Int) -> None:
    """Copy the numbers of `new_sums` to `target[position:position + 8]`."""
    target[position : position + HALF_LANES] = sums


def add_to_sum(sums: Float32s, q: Int, value: np.float32) -> None:
    """Add a number to sum q."""
    sums[q] += value


def _places(line: UInt32s, tag: Int) -> tuple[AnyArray, list[int]]:
    """Return the lanes of `line` that hold words of a feature and block elsewhere than at home, and those at home.

    Returns
    -------
    elsewhere : bool[16]
    home : lane of the word of each regressor that is in one of its homes, else -1
    """
    difference = line ^ ((_LANE & NUMBER_MASK) ^ np.uint32(tag))
    at_home = (difference & TAG_MASK) == 0
    elsewhere = ((difference & TAG_MASK & ~NUMBER_MASK) == 0) & ((difference & NUMBER_MASK) != 0)
    home = []
    for q in range(HALF_LANES):
        lane = q ^ (int(tag) & NUMBER_MASK)
        home.append(lane if at_home[lane] else lane + HALF_LANES if at_home[lane + HALF_LANES] else -1)
    return elsewhere, home


def _mask(flags: Any) -> int:
    return sum(1 << i for i, flag in enumerate(flags) if flag)


def add_line(sums: Float32s, words: UInt32s, position: Int, tag: Int, x: np.float32) -> int:
    """Add w * x of all words that are at home to the sums of their regressors.

    Returns
    -------
    Bits of the lanes that hold words of the feature and block elsewhere than at home.
    """
    line = words[position : position + LANES]
    elsewhere, home = _places(line, tag)
    for q in range(HALF_LANES):
        w = decode_w(line[home[q]]) if home[q] >= 0 else np.float32(0)
        sums[q] += w * x
    return _mask(elsewhere)


def learn_line(
    words: UInt32s, position: Int, tag: Int, square: Float32s, x: np.float32, random: Int, rate: Float32s, begin: Int,
    reach: Float32s,
) -> int:  # fmt: skip
    """Add square * x**2 to G of the words of a block, and compute their rates, where that needs no search.

    Regressors with square 0 are left alone. A word that is not there is added if one of its homes is empty and no
    other word of the feature and block is elsewhere than at home.

    Parameters
    ----------
    square : float32[8]
    reach : numbers of `new_sums`, to which x * rate is added
    random : number of the step, see `random32`
    rate : `rate[begin:begin + 8]` is written: x * inverse_root(G), 0 where nothing was done

    Returns
    -------
    Bits 0 to 7: regressors for which something is left to do. Bits 8 to 23: lanes with words elsewhere than at home.
    Bits 24 to 31: lanes, modulo 8, to which words were added.
    """
    line = words[position : position + LANES]
    elsewhere, home = _places(line, tag)
    missing, added = 0, 0
    square_x = np.float32(x * x)
    for q in range(HALF_LANES):
        rate[begin + q] = 0
        if not square[q] > 0:
            continue
        g = np.float32(square[q] * square_x)
        lane = home[q]
        word = line[lane] & np.uint32(~(G_CODES - 1 << G_FIELD) & 0xFFFFFFFF) if lane >= 0 else np.uint32(0)
        if lane >= 0:
            g += decode_g(line[lane])
        elif elsewhere.any():
            missing |= 1 << q
            continue
        else:
            first = q ^ (int(tag) & NUMBER_MASK)
            lane = first if line[first] == 0 else first + HALF_LANES
            if line[lane] != 0:
                missing |= 1 << q
                continue
            added |= 1 << (lane & NUMBER_MASK)
            word = np.uint32(int(tag) & ~NUMBER_MASK | q)
        line[lane] = word | np.uint32(encode_g(g, random32(random, q, G_RANDOM)))
        rate[begin + q] = x * inverse_root(g)
        reach[q] += x * rate[begin + q]
    return missing | _mask(elsewhere) << 8 | added << 24


def move_line(
    words: UInt32s, position: Int, tag: Int, step: Float32s, random: Int, rate: Float32s, begin: Int
) -> int:  # fmt: skip
    """Subtract step * rate from the words of a block that are at home and whose rates are not 0.

    Parameters
    ----------
    step : float32[8]
    random : number of the step, see `random32`
    rate : `rate[begin:begin + 8]`, as written by `learn_line`

    Returns
    -------
    Bits of the regressors whose rates are not 0 and whose words are not at home.
    """
    line = words[position : position + LANES]
    _, home = _places(line, tag)
    missing = 0
    for q in range(HALF_LANES):
        if rate[begin + q] == 0:
            continue
        lane = home[q]
        if lane < 0:
            missing |= 1 << q
            continue
        w = np.float32(decode_w(line[lane]) - np.float32(step[q] * rate[begin + q]))
        rest = line[lane] & np.uint32((1 << W_FIELD) - 1)
        line[lane] = rest | np.uint32(encode_w(w, random32(random, q, W_RANDOM)))
    return missing


def match_lanes(words: UInt32s, position: Int, tag: Int) -> int:
    """Return the bits of the lanes of a line whose words have this tag; an empty word has the tag 0."""
    return _mask((words[position : position + LANES] & np.uint32(TAG_MASK)) == np.uint32(tag))


def weakest_lane(words: UInt32s, position: Int) -> int:
    """Return the lane of the word with the least code of G, the lowest lane on a tie; empty words have the code 0."""
    return int(np.argmin(words[position : position + LANES] >> np.uint32(G_FIELD) & np.uint32(G_CODES - 1)))


_installed = False


def install() -> None:
    """Replace the plain functions of this module by numba intrinsics, at the first call only."""
    global _installed
    from numba import config

    if _installed or config.DISABLE_JIT:
        return
    _installed = True
    from . import tagged_lines_code

    globals().update(tagged_lines_code.intrinsics())
