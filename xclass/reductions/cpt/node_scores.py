"""Score the regressors of the nodes of a binary tree.

Idea      A pass over the features scores all nodes of a block, and the scores are kept for the other nodes of the block
          until the example is learned.
Names     block, place: see `label_tree` | memo: the scores of blocks that were scored for the current example.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...array_types import Float32s, Int, Int64s, UInt64s
from ...binary import adagrad, tagged_words
from ...kernels.jit import bare

MEMO_ROWS = 512  # blocks whose scores are kept; a power of two
EXAMPLE_SHIFT = 32  # a key of the memo is (number of the example << EXAMPLE_SHIFT) + block


class Memo(NamedTuple):
    """Hold the scores of blocks for the current example."""

    key: Int64s  # int64[MEMO_ROWS]
    score: Float32s  # float32[8 * MEMO_ROWS]
    example: Int64s  # int64[1], number of the current example
    block_score: Float32s  # float32[8], scores of a block that is trained
    block_label: Float32s  # float32[8], labels of its regressors, 0 for those that do not learn
    block: adagrad.BlockScratch


def new_memo(most_features: int) -> Memo:
    """Return an empty memo for examples of up to `most_features` features."""
    return Memo(
        np.full(MEMO_ROWS, -1, np.int64), np.empty(8 * MEMO_ROWS, np.float32), np.zeros(1, np.int64),
        np.empty(8, np.float32), np.empty(8, np.float32), adagrad.block_scratch(most_features),
    )  # fmt: skip


# -- kernels
#
# `memo` is written; `h`, `x` and `count` are an example as in `adagrad`.


@bare
def forget(memo: Memo) -> None:
    """Begin a new example, or score blocks again because their weights have changed."""
    memo.example[0] += 1


@bare
def row_of(block: np.int64) -> np.int64:
    """Return the position in `memo.score` of the scores of a block."""
    return 8 * (block & (MEMO_ROWS - 1))


@bare
def is_scored(memo: Memo, block: Int) -> bool:
    """Return whether the memo has the scores of a block for the current example."""
    return memo.key[block & (MEMO_ROWS - 1)] == (memo.example[0] << EXAMPLE_SHIFT) + block


@bare
def keep_fetched(
    weights: adagrad.SharedWeights, memo: Memo, x: Float32s, count: Int, block: np.int64, at: Int64s, first: Int
) -> None:
    """Score a block that was fetched, see `tagged_words.score_fetched`, and keep the scores."""
    tagged_words.score_fetched(weights.words, x, count, at, first, memo.score, row_of(block))
    memo.key[block & (MEMO_ROWS - 1)] = (memo.example[0] << EXAMPLE_SHIFT) + block


@bare
def prefetch(weights: adagrad.SharedWeights, h: UInt64s, count: Int, place: np.int64) -> None:
    """Prefetch the weights of a node if it is the first of its block, because the others share its lines."""
    if place & 7 == 1:
        tagged_words.prefetch_block(weights.words, h, count, place >> 3)


@bare
def score(
    weights: adagrad.SharedWeights, memo: Memo, h: UInt64s, x: Float32s, count: Int, place: np.int64
) -> np.float32:
    """Return the score of the regressor at `place` as float32."""
    block = place >> 3
    if not is_scored(memo, block):
        tagged_words.fetch_block(weights.words, h, count, block, memo.block.at, np.int64(0))
        keep_fetched(weights, memo, x, count, block, memo.block.at, np.int64(0))
    return memo.score[row_of(block) + (place & 7)]


@bare
def probability(
    weights: adagrad.SharedWeights, memo: Memo, h: UInt64s, x: Float32s, count: Int, place: np.int64
) -> float:
    """Return the probability of right according to the regressor at `place`."""
    return adagrad.probability(weights, score(weights, memo, h, x, count, place))
