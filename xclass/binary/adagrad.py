"""Learn many small regressors with AdaGrad, one per node of a tree, whose weights are tagged words.

Source    Duchi, Hazan, Singer, "Adaptive Subgradient Methods", JMLR 2011 (the diagonal rule).
Cost      O(s) to score or train the regressors of a block on an example of s features; a path of 15 nodes touches 5
          cache lines for each feature.
Names     w weight | G sum of importance * slope**2 * x**2 | block: up to three levels of a tree, seven nodes | place of
          a regressor: 8 * block + its number within the block.
Differs   from `gd`: examples have length 1, so no largest |x| per feature and no norm per regressor is stored
          (`feature_scaling` stores one size per feature if features are columns of numbers).

The kernels receive an example as `h` (uint64[s], hash of each feature), `x` (float32[s], values) and `count`, the
number of its features.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ..array_types import Float32s, Int, Int64s, UInt64s
from ..data.batch import Batch
from ..kernels import fast_math
from ..kernels.constants import GOLDEN, LARGEST, ONE, TWO, ZERO
from ..kernels.jit import bare, on_demand
from . import loss, tagged_words

SLOT_BYTES = 8
LOG2_LINE_SLOTS = 3  # log2 of the slots in a cache line
VELOCITIES = 1 << 40  # from the number of a block to that of the block whose weights are its velocities
MIN_PROBABILITY = 0.01  # with squared loss, probabilities are clipped to [MIN_PROBABILITY, 1 - MIN_PROBABILITY]


class SharedWeights(NamedTuple):
    """Hold a table that all regressors share, and how they learn."""

    words: tagged_words.Words
    kind: int  # loss.LOGISTIC or loss.SQUARED
    rate: np.float32  # learning rate
    plain: bool  # plain gradient steps instead of AdaGrad
    momentum: np.float32  # of plain steps, 0 for none


class BlockScratch(NamedTuple):
    """Provide buffers to score and train the regressors of a block on s features."""

    at: Int64s  # int64[s]
    rate: Float32s  # float32[8 * s]
    square: Float32s  # float32[8]
    step: Float32s  # float32[8]
    reach: Float32s  # float32[8]
    gradient: Float32s  # float32[8], of the scores
    velocity: Float32s  # float32[8], of the weights of a feature


def block_scratch(most_features: int) -> BlockScratch:
    at = np.empty(most_features, np.int64)
    return BlockScratch(at, np.empty(8 * most_features, np.float32), *(np.empty(8, np.float32) for _ in range(5)))


def new_weights(
    bits: int, kind: int, rate: float, plain: bool = False, doublings: int = 0, weights_only: bool = False,
    momentum: float = 0.0,
) -> SharedWeights:  # fmt: skip
    """Return an empty table of 2**bits * SLOT_BYTES bytes; `doublings` and `weights_only` are as in `new_words`."""
    words = tagged_words.new_words(max(bits - LOG2_LINE_SLOTS, 1), doublings, weights_only)
    return SharedWeights(words, kind, np.float32(rate), plain, np.float32(momentum))


def copied(weights: SharedWeights) -> SharedWeights:
    return weights._replace(words=tagged_words.copied(weights.words))


def doubled(weights: SharedWeights) -> SharedWeights:
    return weights._replace(words=tagged_words.doubled(weights.words))


# -- kernels


@bare
def inverse_root(total: float) -> np.float32:
    """Return the finite factor that scales an example with sum of squares `total` to length 1; 1 if `total` is 0."""
    return np.float32(min(1.0 / math.sqrt(total), LARGEST)) if total > 0.0 else ONE


@bare
def load(batch: Batch, i: int, unit: bool, h: UInt64s, x: Float32s) -> int:
    """Copy example i into `h` and `x`, scaled to length 1 if `unit` is set; return the number of its features."""
    begin, end = batch.start[i], batch.start[i + 1]
    scale = ONE
    if unit:
        total = 0.0
        for f in range(begin, end):
            total += np.float64(batch.value[f]) * np.float64(batch.value[f])
        scale = inverse_root(total)
    for f in range(end - begin):
        h[f] = np.uint64(batch.index[begin + f]) * GOLDEN
        x[f] = batch.value[begin + f] * scale
    count: int = end - begin
    return count


@bare
def probability(weights: SharedWeights, s: np.float32) -> float:
    """Return the probability of label +1 for a score; it is never 0 or 1."""
    if weights.kind == loss.LOGISTIC:
        if math.isnan(s):
            return 0.5
        e = fast_math.exp(-abs(min(max(np.float64(s), -30.0), 30.0)))
        return 1.0 / (1.0 + e) if s > ZERO else e / (1.0 + e)
    if math.isnan(s):
        return 0.5
    return min(max(0.5 + 0.5 * np.float64(s), MIN_PROBABILITY), 1.0 - MIN_PROBABILITY)


@bare
def slope(weights: SharedWeights, s: np.float32, y: np.float32) -> np.float32:
    """Return the derivative of the loss with respect to the score; 0 if the score is NaN.

    The loss is log(1 + e**(-y s)) or (s - y)**2; the derivative of the latter is taken at s clipped to [-1, 1].
    """
    if math.isnan(s):
        return ZERO
    if weights.kind == loss.LOGISTIC:
        return np.float32(-y / (1.0 + fast_math.exp(np.float64(y * s))))
    return TWO * (min(max(s, -ONE), ONE) - y)


@bare
def learn_block(
    weights: SharedWeights, h: UInt64s, x: Float32s, count: Int, block: Int, s: Float32s, y: Float32s,
    weight: np.float32, scratch: BlockScratch,
) -> None:  # fmt: skip
    """Update the regressors of a block by an AdaGrad step each.

    For each feature, G += weight * slope**2 * x**2, then w -= rate * weight * slope * x / sqrt(G). With squared loss, a
    step that would move the score beyond y is shortened to end at y, because it would be far too long for an example
    with many features or new weights. With `weights.plain`, w -= rate * weight * slope * x, and G only tells which
    words to evict. With `weights.momentum`, see `_learn_with_momentum`.

    `s` and `y`, float32[8], are the score and the label of each regressor, -1 or 1, or 0 if it does not learn.
    """
    square, step, reach = scratch.square, scratch.step, scratch.reach
    learns = False
    for q in range(8):
        d = slope(weights, s[q], y[q]) if y[q] != ZERO else ZERO
        square[q] = weight * d * d
        step[q] = weights.rate * weight * d
        learns |= square[q] > ZERO
    if not learns:
        return
    if weights.momentum > ZERO:
        _learn_with_momentum(weights, h, x, count, block, s, y, weight, scratch)
        return
    number = tagged_words.add_squares(weights.words, h, x, count, block, square, scratch.rate, reach, None)
    if weights.plain:
        for i in range(8 * count):
            if scratch.rate[i] != ZERO:  # else the feature has no word
                scratch.rate[i] = x[i >> 3]
    elif weights.kind != loss.LOGISTIC:
        for q in range(8):
            if square[q] > ZERO and abs(step[q]) * reach[q] > abs(s[q] - y[q]):
                step[q] = (s[q] - y[q]) / reach[q]
    tagged_words.move(weights.words, h, count, block, step, scratch.rate, number)


@on_demand
def _learn_with_momentum(
    weights: SharedWeights, h: UInt64s, x: Float32s, count: Int, block: Int, s: Float32s, y: Float32s,
    weight: np.float32, scratch: BlockScratch,
) -> None:  # fmt: skip
    """Take the steps v = momentum * v + weight * slope * x, then w -= rate * v; `scratch.square` is set.

    The velocities v are the weights of a block of their own. A weight whose velocity has no word moves by its gradient.
    """
    gradient, v, rate = scratch.gradient, scratch.velocity, scratch.rate
    for q in range(8):
        gradient[q] = weight * slope(weights, s[q], y[q])
    for own in (block + VELOCITIES, block):
        number = tagged_words.add_squares(weights.words, h, x, count, own, scratch.square, rate, scratch.reach, None)
        for i in range(8 * count):
            f, q = i >> 3, i & 7
            if q == 0:
                tagged_words.read_block(weights.words, h[f], block + VELOCITIES, v)
            if rate[i] == ZERO:  # the feature has no word, or the regressor does not learn
                continue
            if own != block:
                rate[i] = v[q] - (weights.momentum * v[q] + gradient[q] * x[f])
            else:
                rate[i] = v[q] if v[q] != ZERO else gradient[q] * x[f]
        scratch.step[:] = ONE if own != block else weights.rate
        tagged_words.move(weights.words, h, count, own, scratch.step, rate, number)
