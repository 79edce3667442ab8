"""Move tagged words to other classes and blocks, whose numbers differ between models.

A word is found by a hash of its feature and its class or block, so it does not say whose it is: the features have to be
known. The index of features lists for each of its rows the classes that occur there most often. So the candidates for
the words of a class are the features of the rows that list it, as far as the model has seen them since the base. In a
line of 16 words, a word of another feature has the same tag by chance in about one of 500 cases (a class) or one of 100
(a node of a block); such a word is then moved by mistake. Features that occur in many more classes than a row has slots
are not found, so their words, which tell little about the class, stay behind.

Cost      O(features that occurred since the base, times slots of a row).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ....array_types import Float64s, Int, Int64s, UInt32s, UInt64s
from ....binary import feature_scaling, merged_words, tagged_words
from ....binary.document_frequency import Frequencies
from ....binary.tagged_words import LINE_WORDS, OF_BLOCK, TAG_MASK, Words
from ....kernels import tagged_format
from ....kernels.constants import GOLDEN
from ....kernels.jit import jit
from .. import feature_index
from ..feature_index import FeatureIndex, Index

MOST_BITS = 28  # features are enumerated, which takes too long if their hashes are longer
DROPPED = -1  # instead of a new class or block, for words that nothing corresponds to
WHOLE_TAG = -1  # instead of q, for the words of a class


class Move(NamedTuple):
    """Say where words go: from a class to another, or from a regressor of a block to one of another block."""

    key: int  # label, or number of the block
    q: int  # number of the regressor within the block, or WHOLE_TAG
    new_key: int  # or DROPPED
    new_q: int


class Moves(NamedTuple):
    """Hold the moves of the classes of an index: those of class i are `start[i]:start[i + 1]`."""

    start: Int64s  # int64[classes + 1]
    move: Int64s  # int64[moves, 4], fields of Move


class Taken(NamedTuple):
    """Hold words that were taken from a table, with the features that they belong to."""

    feature: UInt64s  # uint64[n], hashes as in `adagrad.load`
    key: Int64s  # int64[n], new label or block
    q: Int64s  # int64[n], new number within the block, or WHOLE_TAG
    bits: UInt32s  # uint32[n], word without its tag


class Seen(NamedTuple):
    """Hold what is known about the features of a model."""

    classes: FeatureIndex
    frequencies: Frequencies
    base: Frequencies
    bits: int  # of the hashes of features
    constant: int  # index of the constant feature, -1 if there is none


def moved(words: Words, base: Words, moves: Mapping[int, Sequence[Move]], seen: Seen) -> Words:
    """Return a copy of a table in which words have been moved; those that stay behind are not changed.

    Parameters
    ----------
    words : table of a model
    base : table of the base; words that are equal there are not moved
    moves : for labels of the model, where words of their features go
    seen : what is known about the features
    """
    if not moves or seen.bits > MOST_BITS:
        return words
    words, base = merged_words.same_size([tagged_words.copied(words), base])
    index = seen.classes.index
    labels = index.label[: index.size[0]].tolist()
    by_class = [moves.get(label, ()) for label in labels]
    start = np.cumsum([0, *map(len, by_class)])
    table = Moves(start, np.array([move for one in by_class for move in one], np.int64).reshape(-1, 4))
    capacity = int(np.count_nonzero(words.word != base.word))
    taken = Taken(
        np.empty(capacity, np.uint64), np.empty(capacity, np.int64), np.empty(capacity, np.int64),
        np.empty(capacity, np.uint32),
    )  # fmt: skip
    size = take_words(
        words, base, index, table, seen.frequencies.count, seen.base.count, 1 << seen.bits, seen.constant, taken
    )
    put_words(words, taken, size)
    words.state[tagged_words.USED] = np.count_nonzero(words.word)
    return words


# -- kernels


@jit
def take_words(
    words: Words, base: Words, index: Index, moves: Moves, count: Float64s, base_count: Float64s, features: Int,
    constant: Int, taken: Taken,
) -> Int:  # fmt: skip
    """Take the words that move out of a table; return their number.

    Parameters
    ----------
    words : written; what is taken is replaced by the word of the base, if there is one
    count, base_count : float64[2**feature_scaling.BITS], occurrences of features in the model and in the base
    features : number of features to try
    taken : written
    """
    size: Int = 0
    for f in range(features):
        h = np.uint64(f) * GOLDEN
        slot = feature_scaling.slot_of(np.uint32(f))
        if not count[slot] > base_count[slot]:
            continue
        at = feature_index.row_begin(index, np.uint32(f))
        for a in range(at, at + 2 * index.slots, 2):
            if index.pair[a] == 0:
                break
            size = _take(words, base, moves, np.int64(index.pair[a]) - 1, h, taken, size)
    if constant >= 0:
        for number in range(index.size[0]):
            size = _take(words, base, moves, number, np.uint64(constant) * GOLDEN, taken, size)
    return size


@jit
def _take(words: Words, base: Words, moves: Moves, number: Int, h: np.uint64, taken: Taken, size: Int) -> Int:
    """Take the words of a feature that move with class `number` of the index; return how many are taken now."""
    for m in range(moves.start[number], moves.start[number + 1]):
        if size >= taken.bits.shape[0]:
            return size
        line, tag = tagged_words.locate(words, h, moves.move[m, 0])
        if moves.move[m, 1] >= 0:
            tag = (tag & OF_BLOCK) | np.uint32(moves.move[m, 1])
        lane, before = _lane(words, line, tag), _lane(base, line, tag)
        if lane < 0 or (before >= 0 and base.word[line + before] == words.word[line + lane]):
            continue
        taken.feature[size] = h
        taken.key[size] = moves.move[m, 2]
        taken.q[size] = moves.move[m, 3]
        taken.bits[size] = words.word[line + lane] & ~TAG_MASK
        words.word[line + lane] = base.word[line + before] if before >= 0 else np.uint32(0)
        size += 1
    return size


@jit
def _lane(words: Words, line: Int, tag: np.uint32) -> Int:
    """Return the first lane whose word has a tag, -1 if there is none."""
    for lane in range(LINE_WORDS):
        word = words.word[line + lane]
        if word != 0 and word & TAG_MASK == tag:
            return lane
    return -1


@jit
def put_words(words: Words, taken: Taken, size: Int) -> None:
    """Put the first `size` words that were taken into their new places, unless lines are full of words of larger G."""
    for i in range(size):
        if taken.key[i] == DROPPED:
            continue
        line, tag = tagged_words.locate(words, taken.feature[i], taken.key[i])
        home: Int = np.int64(0)
        if taken.q[i] >= 0:
            home = taken.q[i] ^ (np.int64(tag) & tagged_format.NUMBER_MASK)
            tag = (tag & OF_BLOCK) | np.uint32(taken.q[i])
        lane: Int = _lane(words, line, tag)
        bits: Any = taken.bits[i]
        best = np.float32(np.inf)
        for step in range(LINE_WORDS if lane < 0 else 0):
            other = (home + step * tagged_format.HALF_LANES + step // 2) & LINE_WORDS - 1  # both homes first
            word: Any = words.word[line + other]
            g = tagged_format.decode_g(word)
            if word == 0:
                lane = other
                break
            if g < best and g < tagged_format.decode_g(bits):
                best, lane = g, other
        if lane >= 0:
            words.word[line + lane] = bits | tag
