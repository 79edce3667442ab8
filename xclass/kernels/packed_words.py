"""Hold the words of a sparse table of tagged words without its empty lanes, for learners that only predict.

Idea      Words are spread over all pages of a table, so that even a nearly empty table takes all of its memory. Here
          the words in use follow one another in the order of their positions. A bitmap tells which lines have words;
          lines without words need nothing else. Four lines with words share a mask of the lanes in use and the position
          of the first of their words. To score a block, a line is expanded to all of its lanes in registers, and then
          used as in a table with all lanes, so that scores are equal to the last bit.
Cost      16 bytes for every 64 lines (4 kB of the table), 3 bytes for each line with words, and 4 for each word. A line
          needs three accesses to memory instead of one, but the memory is smaller.
Names     line, lane, word, tag: see `binary.tagged_words` | in use: a line is in use if it has a word.

`words` are `binary.tagged_words.Words` whose `lines` are those of a packed table. After the last word, `words.word` has
PADDING words 0, because instructions read sixteen words at a time.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..array_types import Float32s, Int, Int64s, UInt32s, UInt64s
from . import intrinsics, tagged_format, tagged_lines, used_items
from .jit import bare, jit

LINE_WORDS, TAG_BITS = tagged_format.LANES, tagged_format.TAG_BITS
LOG2_LINE_WORDS = 4
TAG_MASK = np.uint32(tagged_format.TAG_MASK)
LANE_MASK = (1 << LINE_WORDS) - 1
PADDING = LINE_WORDS
GROUP_LINES, LOG2_GROUP_LINES = 4, 2  # lines in use that share a mask of 64 bits


class PackedLines(NamedTuple):
    """Say where the words of each line of a packed table are; all arrays are empty if the table has all lanes."""

    bitmap: UInt64s  # uint64[2 * lines / 64], lines in use, see `used_items`
    # uint64[lines in use / 4 + 1], bits of the lanes in use of four such lines, 16 bits for each. The last item stands
    # for all lines that are not in use
    lanes: UInt64s
    first: UInt32s  # uint32[lines in use / 4 + 1], position of the first word of the four lines


def no_lines() -> PackedLines:
    """Return what a table that has all lanes holds instead."""
    return PackedLines(np.empty(0, np.uint64), np.empty(0, np.uint64), np.empty(0, np.uint32))


def lines_of(position: UInt32s, lines: int) -> PackedLines:
    """Return the lines of a table whose words in use have these rising positions, uint32[n]."""
    bitmap = used_items.new_bitmap(lines)
    groups = -(-used_items.fill(bitmap, position, LINE_WORDS) // GROUP_LINES)
    lanes, first = np.zeros(groups + 1, np.uint64), np.zeros(groups + 1, np.uint32)
    enter_lanes(position, lanes, first)
    return PackedLines(bitmap, lanes, first)


def padded(word: UInt32s) -> UInt32s:
    """Return the words in use with the words 0 that a packed table has after them."""
    return np.concatenate([word, np.zeros(PADDING, np.uint32)])


def positions(lines: PackedLines) -> UInt32s:
    """Return the positions in the whole table of the words in use, uint32[n]; the inverse of `lines_of`."""
    line = used_items.items_of(lines.bitmap)
    flags = np.unpackbits(lines.lanes.astype("<u8").view(np.uint8), bitorder="little").reshape(-1, LINE_WORDS)
    number, lane = np.nonzero(flags)
    return (line[number] * LINE_WORDS + lane).astype(np.uint32)


# -- kernels


@jit
def enter_lanes(position: UInt32s, lanes: UInt64s, first: UInt32s) -> None:
    """Write `PackedLines.lanes` and `PackedLines.first`, zeros before, for the positions of the words in use."""
    number = before = np.int64(-1)
    for i in range(len(position)):
        line = np.int64(position[i]) >> LOG2_LINE_WORDS
        if line != before:
            before = line
            number += 1
            if number % GROUP_LINES == 0:
                first[number >> LOG2_GROUP_LINES] = i
        lane = LINE_WORDS * (number % GROUP_LINES) + (np.int64(position[i]) & LINE_WORDS - 1)
        lanes[number >> LOG2_GROUP_LINES] |= np.uint64(1) << np.uint64(lane)


@bare
def is_packed(words: Any) -> bool:
    return words.lines.bitmap.shape[0] > 0  # type: ignore[no-any-return]  # any form of Words


@bare
def prefetch(words: Any, position: Int) -> None:
    """Prefetch what `find` reads first for the line at a position of the whole table."""
    used_items.prefetch(words.lines.bitmap, position >> LOG2_LINE_WORDS)


@bare
def find(words: Any, at: Int64s, begin: Int, end: Int, low: Int) -> None:
    """Find and prefetch the words of the lines begin..end-1.

    Before, an item of `at` is the position of a line in the whole table. Afterwards, its bits 0 to 15 are those of the
    lanes in use, and the higher ones the position of the first word. The `low` lowest bits come before those and are
    left as they are.
    """
    lines = words.lines
    kept = (np.int64(1) << low) - 1
    empty = GROUP_LINES * (np.int64(len(lines.first)) - 1)
    for i in range(begin, end):
        number = used_items.number_of(lines.bitmap, at[i] >> low + LOG2_LINE_WORDS, empty)
        at[i] = number << low | at[i] & kept
        intrinsics.prefetch(lines.lanes, number >> LOG2_GROUP_LINES)
        intrinsics.prefetch(lines.first, number >> LOG2_GROUP_LINES)
    for i in range(begin, end):
        number = at[i] >> low
        group = number >> LOG2_GROUP_LINES
        shift = np.uint64(LINE_WORDS * (number & GROUP_LINES - 1))
        lanes = lines.lanes[group]
        before = intrinsics.count_ones(lanes & ((np.uint64(1) << shift) - np.uint64(1)))
        first = np.int64(lines.first[group]) + before
        own = np.int64(lanes >> shift & np.uint64(LANE_MASK))
        intrinsics.prefetch(words.word, first)
        at[i] = (first << LINE_WORDS | own) << low | at[i] & kept


@bare
def score(words: Any, x: Float32s, count: Int, at: Int64s, first: Int, scores: Float32s, begin: Int) -> None:
    """Do what `tagged_words.score_fetched` does; `find` has written `at[first:first + count]`, tags in the low bits."""
    sums = tagged_lines.new_sums()
    for f in range(count):
        where: Any = at[first + f]
        source, lanes = where >> TAG_BITS + LINE_WORDS, where >> TAG_BITS & LANE_MASK
        elsewhere = tagged_lines.add_packed_line(sums, words.word, source, lanes, np.uint32(where) & TAG_MASK, x[f])
        while elsewhere != 0:
            lower = (elsewhere & -elsewhere) - 1  # the lanes below the lowest one
            elsewhere &= elsewhere - 1
            word: Any = words.word[source + intrinsics.count_ones(np.uint64(lanes & lower))]
            number = np.int64(word) & tagged_format.NUMBER_MASK
            tagged_lines.add_to_sum(sums, number, tagged_format.decode_w(word) * x[f])
    tagged_lines.store_sums(sums, scores, begin)


@bare
def read(words: Any, pairs: Any, begin: Int, end: Int) -> None:
    """Do what `tagged_words.read_words` does, except that `pairs.at` holds no positions afterwards.

    Only learning needs these.
    """
    at, tag, w, g, _, before = pairs
    find(words, at, begin, end, np.int64(0))
    for i in range(begin, end):
        source = at[i] >> LINE_WORDS
        own = (np.int64(1) << np.int64(intrinsics.count_ones(np.uint64(at[i] & LANE_MASK)))) - 1
        found = tagged_lines.match_lanes(words.word, source, tag[i]) & own
        # no branch, because it could not be predicted
        source += intrinsics.trailing_zeros(np.uint64(found)) & LINE_WORDS - 1
        word = words.word[source] & np.uint32(-np.int64(found != 0))
        w[i] = tagged_format.decode_w(word)
        g[i] = tagged_format.decode_g(word)
        before[i] = word & ~TAG_MASK


@jit
def copy_lines(words: Any, position: Int64s, lines: UInt32s) -> None:
    """Copy the lines at these positions in the whole table, with all lanes, to `lines`, uint32[n, 16], zeros before.

    `position`, int64[n], is written.
    """
    find(words, position, 0, len(position), np.int64(0))
    for i in range(len(position)):
        lanes = position[i] & LANE_MASK
        source: Any = position[i] >> LINE_WORDS
        while lanes != 0:
            lines[i, intrinsics.trailing_zeros(np.uint64(lanes))] = words.word[source]
            source += 1
            lanes &= lanes - 1
