"""Read and update a cache line of sixteen tagged words by vector instructions.

Idea      `binary.tagged_words` says what a word and a line are. One pass over a line serves all eight regressors of a
          block: the words of the block are selected by comparing tags, brought from the order of the lanes to that of
          the regressors, and decoded, all without branches. What this leaves is rare: words that are not in one of the
          two lanes where they belong, and new words for which both lanes are taken.
Cost      About 3 ns to score a line and 22 ns to train all regressors of a block on it, if it is in the cache.

The plain functions define what the instructions do, and are used if numba is switched off. `install()` replaces them
by numba intrinsics. Arrays are contiguous, and positions are not checked.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..array_types import AnyArray, Float32s, Int, UInt32s
from . import jit, tagged_format
from .tagged_format import G_CODES, G_FIELD, G_RANDOM, HALF_LANES, LANES, NUMBER_MASK, TAG_MASK, W_FIELD, W_RANDOM

# tells `kernel_cache` to hash these files, because numba compiles the intrinsics, not the functions of this one
BY_SOURCE = ("tagged_lines.py", "tagged_format.py", "tagged_lines_code.py", "intrinsics.py")
_LANE = np.arange(LANES, dtype=np.uint32)


def new_sums() -> Float32s:
    """Return a pointer to eight float32, all 0, which live as long as the kernel that calls this."""
    return np.zeros(HALF_LANES, np.float32)


def store_sums(sums: Float32s, target: Float32s, position: Int) -> None:
    """Copy the numbers of `new_sums` to `target[position:position + 8]`."""
    target[position : position + HALF_LANES] = sums


def add_to_sum(sums: Float32s, q: Int, value: np.float32) -> None:
    sums[q] += value


def _places(line: UInt32s, tag: Int) -> tuple[AnyArray, list[int]]:
    """Return the lanes that hold words of a feature and block elsewhere than at home, and those at home.

    The former are bool[16], and the latter the lane of the word of each regressor in one of its homes, else -1.
    """
    difference = line ^ ((_LANE & NUMBER_MASK) ^ np.uint32(tag))
    at_home = (difference & TAG_MASK) == 0
    elsewhere = ((difference & (TAG_MASK & ~NUMBER_MASK)) == 0) & ((difference & NUMBER_MASK) != 0)
    home = []
    for q in range(HALF_LANES):
        lane = q ^ (int(tag) & NUMBER_MASK)
        home.append(lane if at_home[lane] else lane + HALF_LANES if at_home[lane + HALF_LANES] else -1)
    return elsewhere, home


def _mask(flags: Any) -> int:
    return sum(1 << i for i, flag in enumerate(flags) if flag)


def add_line(sums: Float32s, words: UInt32s, position: Int, tag: Int, x: np.float32) -> int:
    """Add w * x of all words that are at home to the sums of their regressors.

    Return the bits of the lanes that hold words of the feature and block elsewhere than at home.
    """
    line = words[position : position + LANES]
    elsewhere, home = _places(line, tag)
    for q in range(HALF_LANES):
        w = tagged_format.decode_w(line[home[q]]) if home[q] >= 0 else np.float32(0)
        sums[q] += w * x
    return _mask(elsewhere)


def add_packed_line(sums: Float32s, words: UInt32s, position: Int, lanes: Int, tag: Int, x: np.float32) -> int:
    """Do what `add_line` does for a line whose words are stored without its empty lanes.

    The first of these words is at `position`, where at least 16 items of `words` begin; `lanes` are the bits of the
    lanes that have words.
    """
    line, used = np.zeros(LANES, np.uint32), [lane for lane in range(LANES) if int(lanes) >> lane & 1]
    line[used] = words[position : position + len(used)]
    return add_line(sums, line, 0, tag, x)


def learn_line(
    words: UInt32s, position: Int, tag: Int, square: Float32s, x: np.float32, random: Int, rate: Float32s, begin: Int,
    reach: Float32s, r: np.float32 | None,
) -> int:  # fmt: skip
    """Add square * x**2 to G of the words of a block, and compute their rates, where that needs no search.

    Regressors with square 0 are left alone. A word that is not there is added if one of its homes is empty and no other
    word of the feature and block is elsewhere than at home. `square` is float32[8], and `random` is the number of the
    step, see `tagged_format.random32`. `rate[begin:begin + 8]` is written: x times `tagged_format.rate_factor`, to
    which `r` belongs, 0 where nothing was done; x * rate is added to `reach`, numbers of `new_sums`.

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
        before, g = np.float32(0), np.float32(square[q] * square_x)
        lane = home[q]
        word = line[lane] & np.uint32(~(G_CODES - 1 << G_FIELD) & 0xFFFFFFFF) if lane >= 0 else np.uint32(0)
        if lane >= 0:
            before = tagged_format.decode_g(line[lane])
            g += before
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
        line[lane] = word | np.uint32(tagged_format.encode_g(g, tagged_format.random32(random, q, G_RANDOM)))
        rate[begin + q] = x * tagged_format.rate_factor(before, g, r)
        reach[q] += x * rate[begin + q]
    return missing | _mask(elsewhere) << 8 | added << 24


def move_line(words: UInt32s, position: Int, tag: Int, step: Float32s, random: Int, rate: Float32s, begin: Int) -> int:
    """Subtract step * rate from the words of a block that are at home and whose rates are not 0.

    `step` is float32[8], `random` is the number of the step, and `rate[begin:begin + 8]` was written by `learn_line`.
    Return the bits of the regressors whose rates are not 0 and whose words are not at home.
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
        w = np.float32(tagged_format.decode_w(line[lane]) - np.float32(step[q] * rate[begin + q]))
        rest = line[lane] & np.uint32((1 << W_FIELD) - 1)
        line[lane] = rest | np.uint32(tagged_format.encode_w(w, tagged_format.random32(random, q, W_RANDOM)))
    return missing


def match_lanes(words: UInt32s, position: Int, tag: Int) -> int:
    """Return the bits of the lanes of a line whose words have this tag; an empty word has the tag 0."""
    return _mask((words[position : position + LANES] & np.uint32(TAG_MASK)) == np.uint32(tag))


def weakest_lane(words: UInt32s, position: Int) -> int:
    """Return the lane of the word with the least code of G, the lowest lane on a tie; empty words have the code 0."""
    return int(np.argmin(words[position : position + LANES] >> np.uint32(G_FIELD) & np.uint32(G_CODES - 1)))


def install() -> None:
    """Replace the plain functions of this module by numba intrinsics."""
    from . import tagged_lines_code

    globals().update(tagged_lines_code.intrinsics())


jit.installers.append(install)
