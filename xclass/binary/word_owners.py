"""Find out whose the words of a table are, and read their numbers, to show them to people.

Source    This project's own. A word holds only some bits of the hash of its feature and its block or class
          (`tagged_words`), which do not tell them. So each pair of a feature and a key that an example uses is looked
          up as the learner does, and noted beside the words that it finds.
Cost      One or two cache misses for each pair; 8 bytes for each word of the table.
Names     key: block of a tree, or class of a scorer | owner: the feature and the key that a word belongs to.
Differs   Two pairs with the same line and tag share a word. The one that was noted first counts as its owner.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..array_types import Float32s, Int, Int64s, UInt32s
from ..kernels import tagged_format
from ..kernels.constants import GOLDEN
from ..kernels.jit import jit
from . import tagged_words
from .tagged_words import LINE_WORDS, OF_BLOCK, TAG_MASK, Words


class Owners(NamedTuple):
    """Hold the owner of each word of a table, as far as it is known."""

    feature: UInt32s  # uint32[words], index of the feature as in a Batch
    after_key: UInt32s  # uint32[words], its key plus 1, 0 if the owner is not known


def new_owners(words: Words) -> Owners:
    return Owners(np.zeros(len(words.word), np.uint32), np.zeros(len(words.word), np.uint32))


def compared(by_block: bool) -> np.uint32:
    """Return the bits of a tag that depend on feature and key: the others are numbers of regressors of a block."""
    return OF_BLOCK if by_block else TAG_MASK


def fitted(words: Words, owners: Owners, by_block: bool) -> Owners:
    """Return the owners of the words of a table that was doubled or replaced since they were noted.

    Those that no longer find their words are left out. Keys may be blocks, whose words also hold the number of a
    regressor.
    """
    mask = compared(by_block)
    same_size = len(owners.after_key) == len(words.word)
    result = Owners(owners.feature.copy(), owners.after_key.copy()) if same_size else new_owners(words)
    known = np.flatnonzero(owners.after_key)
    enter(words, result, mask, owners.feature[known], owners.after_key[known])
    forget_wrong(words, result, mask)
    return result


# -- kernels
#
# `mask` is what `compared` returns.


@jit
def note(
    words: Words, owners: Owners, mask: np.uint32, index: UInt32s, start: Int64s, rows: Int64s, key: Int64s
) -> None:
    """Note the owners of the words that the examples `rows` use, in this order.

    `key` is int64[n, k], keys of each example; -1 for none.
    """
    for row in rows:
        for f in range(start[row], start[row + 1]):
            for k in range(key.shape[1]):
                if key[row, k] >= 0:
                    _enter(words, owners, mask, index[f], key[row, k])


@jit
def enter(words: Words, owners: Owners, mask: np.uint32, feature: UInt32s, after_key: UInt32s) -> None:
    """Note pairs as owners of the words that they find, unless these have an owner; the parameters are as in Owners."""
    for i in range(len(after_key)):
        _enter(words, owners, mask, feature[i], np.int64(after_key[i]) - 1)


@jit
def _enter(words: Words, owners: Owners, mask: np.uint32, feature: np.uint32, key: Int) -> None:
    position, tag = tagged_words.locate(words, np.uint64(feature) * GOLDEN, key)
    for at in range(position, position + LINE_WORDS):
        word: Any = words.word[at]
        if (word ^ tag) & mask == 0 and not _is_right(words, owners, mask, at):
            owners.feature[at] = feature
            owners.after_key[at] = key + 1


@jit
def _is_right(words: Words, owners: Owners, mask: np.uint32, at: Int) -> bool:
    """Return whether the word at a position has an owner that finds it."""
    if owners.after_key[at] == 0:
        return False
    key = np.int64(owners.after_key[at]) - 1
    position, tag = tagged_words.locate(words, np.uint64(owners.feature[at]) * GOLDEN, key)
    word: Any = words.word[at]
    right: bool = position == at - at % LINE_WORDS and (word ^ tag) & mask == 0
    return right


@jit
def forget_wrong(words: Words, owners: Owners, mask: np.uint32) -> None:
    """Forget the owners that do not find the word that they are noted for, because another one took its place."""
    for at in range(len(owners.after_key)):
        if not _is_right(words, owners, mask, at):
            owners.after_key[at] = 0


@jit
def decode(word: UInt32s, w: Float32s, g: Float32s) -> None:
    """Write the weights and G of some words to `w` and `g`."""
    for i in range(len(word)):
        w[i] = tagged_format.decode_w(word[i])
        g[i] = tagged_format.decode_g(word[i])
