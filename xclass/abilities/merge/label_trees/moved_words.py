"""Move tagged words to other classes and blocks, whose numbers differ between models.

A word is found by a hash of its feature and its class or block, so it does not say whose it is: the features have to be
known. Every example that is learned trains the root of a tree and one of its children, or all regressors of the root if
nodes are wide, so a feature that occurred has words for two of them. Two words with the right tags are in the line of
another feature by chance in one of 100,000 cases, which makes it possible to try all features. For each feature and
move, a word with the tag of another one is met by chance in less than one of 500 cases (a class) or 60 (a node of a
block), and moved by mistake.

Cost      O(2**bits of features) to find the features of a model, and O(features * moves) to move words; beyond
          MOST_PROBES only those features are tried that the index lists for the class; without an index nothing is
          moved.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ....array_types import Int, Int64s, UInt32s, UInt64s
from ....binary import merged_words, tagged_words
from ....binary.tagged_words import LINE_WORDS, OF_BLOCK, TAG_MASK, Words
from ....kernels import intrinsics, tagged_format, tagged_lines
from ....kernels.constants import GOLDEN
from ....kernels.jit import jit
from ....reductions.multiclass import index_rows
from ....reductions.multiclass.feature_index import FeatureIndex, Index

MOST_BITS = 28  # features are enumerated, which takes too long if their hashes are longer
MOST_PROBES = 1 << 28  # pairs of a feature and a move that are tried, in about 15 seconds
GROUP = 256  # moves of a feature to try before the next feature, so that their lines stay in the cache
DROPPED = -1  # instead of a new class or block, for words that nothing corresponds to
WHOLE_TAG = -1  # instead of q, for the words of a class


class Move(NamedTuple):
    """Say where words go: from a class to another, or from a regressor of a block to one of another block."""

    key: int  # label, or number of the block
    q: int  # number of the regressor within the block, or WHOLE_TAG
    new_key: int  # or DROPPED
    new_q: int


class Taken(NamedTuple):
    """Hold words that were taken from a table, with the features that they belong to."""

    feature: UInt64s  # uint64[n], hashes as in `adagrad.load`
    key: Int64s  # int64[n], new label or block
    q: Int64s  # int64[n], new number within the block, or WHOLE_TAG
    bits: UInt32s  # uint32[n], word without its tag


class Root(NamedTuple):
    """Say which regressors learn from every example: `first`, and at least one of the others."""

    block: int
    first: int  # numbers within the block
    second: int
    third: int


def root_of(arity: int) -> Root:
    """Return the regressors of the root of a tree, and if its nodes are binary of its children."""
    if arity == 2:
        return Root(1, 1, 2, 3)  # see `label_tree`
    return Root(arity >> 3, (arity & 7) + 1, (arity & 7) + 2, (arity & 7) + 3)  # see `wide_nodes`


def features_of(words: Words, root: Root, bits: int, constant: int) -> UInt32s:
    """Return the indices of the features that a tree has learned from, rising but for the constant.

    Parameters
    ----------
    words : table of the tree
    root : regressors of its root
    bits : of the indices; nothing is returned if these are too many to try all
    constant : index of the constant feature, -1 if there is none
    """
    if bits > MOST_BITS:
        return np.zeros(0, np.uint32)
    features = np.empty(np.count_nonzero(words.word) + 1, np.uint32)
    size = list_features(words, root, 1 << bits, features[1:])
    features = features[1 : size + 1]
    return np.append(features, np.uint32(constant)) if constant >= 1 << bits else features


def moved(
    words: Words, base: Words, moves: Mapping[int, Sequence[Move]], features: UInt32s, index: FeatureIndex | None
) -> Words:
    """Return a copy of a table in which words have been moved, or the table itself if no move is tried.

    No move is tried if the features are unknown or there are too many to try.

    Parameters
    ----------
    words : table of a model
    base : table of the base; words that are equal there are not moved
    moves : for labels of the model, where the words go that their examples have trained
    features : features of the model, see `features_of`
    index : index of the model, if it has one
    """
    different = sorted({move for one in moves.values() for move in one})
    tries_all = len(different) * len(features) <= MOST_PROBES
    if not different or not len(features) or not (tries_all or index is not None):
        return words
    words, base = merged_words.same_size([tagged_words.copied(words), base])
    capacity = int(np.count_nonzero(words.word != base.word))
    taken = Taken(
        np.empty(capacity, np.uint64), np.empty(capacity, np.int64), np.empty(capacity, np.int64),
        np.empty(capacity, np.uint32),
    )  # fmt: skip
    if tries_all or index is None:
        size = take_all(words, base, np.array(different, np.int64), features, taken)
    else:
        labels = index.index.label[: index.index.size[0]].tolist()
        by_class = [moves.get(label, ()) for label in labels]
        start = np.cumsum([0, *map(len, by_class)])
        table = np.array([move for one in by_class for move in one], np.int64).reshape(-1, 4)
        size = take_listed(words, base, table, start, index.index, features, taken)
    put_words(words, taken, size)
    words.state[tagged_words.USED] = np.count_nonzero(words.word)
    return words


# -- kernels


@jit
def list_features(words: Words, root: Root, features: Int, found: UInt32s) -> int:
    """Write the features below `features` that have the words of the root; return their number."""
    size = 0
    for f in range(features):
        line, tag = tagged_words.locate(words, np.uint64(f) * GOLDEN, root.block)
        block = tag & OF_BLOCK
        first, other = False, False
        for lane in range(line, line + LINE_WORDS):
            own = words.word[lane] & TAG_MASK
            first |= own == block | np.uint32(root.first)
            other |= own == block | np.uint32(root.second) or own == block | np.uint32(root.third)
        if first and other and size < found.shape[0]:
            found[size] = f
            size += 1
    return size


@jit
def take_all(words: Words, base: Words, moves: Int64s, features: UInt32s, taken: Taken) -> Int:
    """Take the words of all features that move out of a table; return their number.

    Parameters
    ----------
    words : written; what is taken is replaced by the word of the base, if there is one
    moves : int64[moves, 4], fields of Move, by rising keys; read only
    features : uint32[n], read only
    taken : written
    """
    size: Int = 0
    for begin in range(0, moves.shape[0], GROUP):
        end = min(begin + GROUP, moves.shape[0])
        for f in range(features.shape[0]):
            h = np.uint64(features[f]) * GOLDEN
            for m in range(begin, end):  # the lines of all moves are fetched before the first is used
                if m == begin or moves[m, 0] != moves[m - 1, 0]:
                    intrinsics.prefetch(words.word, tagged_words.locate(words, h, moves[m, 0])[0])
            for m in range(begin, end):
                size = _take(words, base, moves, m, h, taken, size)
    return size


@jit
def take_listed(
    words: Words, base: Words, moves: Int64s, start: Int64s, index: Index, features: UInt32s, taken: Taken
) -> Int:
    """Take the words of features in whose rows the index lists the class that moves; return their number.

    Parameters
    ----------
    moves : int64[moves, 4], fields of Move; those of class i of the index are `start[i]:start[i + 1]`
    words, features, taken : as in `take_all`
    """
    size: Int = 0
    for f in range(features.shape[0]):
        h = np.uint64(features[f]) * GOLDEN
        at = index_rows.row_begin(index, features[f])
        for a in range(at, at + 2 * index.slots, 2):
            number = np.int64(index.pair[a]) - 1
            if number < 0:
                break
            for m in range(start[number], start[number + 1]):
                size = _take(words, base, moves, m, h, taken, size)
    return size


@jit
def _take(words: Words, base: Words, moves: Int64s, m: Int, h: np.uint64, taken: Taken, size: Int) -> Int:
    """Take the word of a feature that goes with move m, if there is one; return how many are taken now."""
    line, tag = tagged_words.locate(words, h, moves[m, 0])
    if moves[m, 1] >= 0:
        tag = (tag & OF_BLOCK) | np.uint32(moves[m, 1])
    lane = _lane(words, line, tag)
    if lane < 0 or size >= taken.bits.shape[0]:
        return size
    before = _lane(base, line, tag)
    if before >= 0 and base.word[line + before] == words.word[line + lane]:
        return size
    taken.feature[size] = h
    taken.key[size] = moves[m, 2]
    taken.q[size] = moves[m, 3]
    taken.bits[size] = words.word[line + lane] & ~TAG_MASK
    words.word[line + lane] = base.word[line + before] if before >= 0 else np.uint32(0)
    return size + 1


@jit
def _lane(words: Words, line: Int, tag: np.uint32) -> Int:
    """Return the first lane whose word has a tag, -1 if there is none."""
    lanes = tagged_lines.match_lanes(words.word, line, tag)
    return intrinsics.trailing_zeros(np.uint64(lanes)) if lanes != 0 else np.int64(-1)


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
