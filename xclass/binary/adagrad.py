"""Learn many small regressors with AdaGrad, one per node of a tree, in 8 bytes per weight.

Source    Duchi, Hazan, Singer, "Adaptive Subgradient Methods", JMLR 2011 (the diagonal rule).
Cost      O(s) to score or train a regressor on an example of s features; a path of 15 nodes touches 5 cache lines for
          each feature.
Names     w weight | G sum of importance * slope**2 * x**2 | slot: a weight and its G, two float32 | line: eight slots,
          a cache line | block: up to three levels of a tree, seven nodes | place of a regressor: 8 * block + its number
          within the block.
Differs   from `gd`: examples have length 1, so no largest |x| per feature and no norm per regressor is stored
          (`feature_scaling` stores one size per feature if features are columns of numbers).
Idea      A feature has one line for every block of a tree, found by a multiplicative hash of (feature, block). Three
          more bits of the hash permute the slots of the line, so that the nodes of two blocks whose hashes collide in
          a line are not paired slot by slot. Collisions are as rare as with a hash of (feature, node), and learning the
          data set ptb takes 0.4 of the time.

The kernels receive an example as `h` (uint64[s], hash of each feature), `x` (float32[s], values) and `count`, the
number of its features. `at` (int64) holds positions in `Weights.flat`; those of one regressor are
`at[begin:begin + count]`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from ..array_types import AnyArray, Float32s, Int, Int64s, UInt64s
from ..data.batch import Batch
from ..kernels import fast_math, intrinsics
from ..kernels.constants import GOLDEN, LARGEST, ONE, SPREAD, TWO, ZERO
from ..kernels.jit import bare, jit
from ..model import stored_arrays
from ..model.stored_arrays import Stored
from . import loss, tagged_words

SLOT_BYTES = 8
LOG2_LINE_SLOTS = 3  # log2 of the slots in a cache line
MIN_PROBABILITY = 0.01  # with squared loss, probabilities are clipped to [MIN_PROBABILITY, 1 - MIN_PROBABILITY]
EIGHT, SEVEN, THREE = np.uint64(8), np.uint64(7), np.uint64(3)


class Weights(NamedTuple):
    """Hold a table that all regressors share: 2**b slots, or tagged words in as many bytes."""

    flat: Float32s  # float32[2 << b], w and G of each slot; cache lines begin at multiples of 16
    shift: np.uint64  # 64 - b
    kind: int  # loss.LOGISTIC or loss.SQUARED
    rate: np.float32  # learning rate
    plain: bool  # plain gradient steps instead of AdaGrad
    tagged: bool  # whether the weights are in `words` and not in `flat`
    words: tagged_words.Words


class BlockScratch(NamedTuple):
    """Provide buffers to score and train the regressors of a block on s features."""

    at: Int64s  # int64[s]
    rate: Float32s  # float32[8 * s]
    square: Float32s  # float32[8]
    step: Float32s  # float32[8]
    reach: Float32s  # float32[8]


def block_scratch(most_features: int) -> BlockScratch:
    at = np.empty(most_features, np.int64)
    return BlockScratch(at, np.empty(8 * most_features, np.float32), *(np.empty(8, np.float32) for _ in range(3)))


def new_weights(
    bits: int, kind: int, rate: float, plain: bool = False, tagged: bool = False, doublings: int = 0,
    weights_only: bool = False,
) -> Weights:  # fmt: skip
    """Return an empty table, aligned to cache lines.

    `bits` is log2 of the number of slots; tagged words take the same bytes, and their table may be doubled `doublings`
    times. `weights_only` is as in `tagged_words.new_words`.
    """
    if tagged:
        words = tagged_words.new_words(max(bits - LOG2_LINE_SLOTS, 1), doublings, weights_only)
    else:
        words = tagged_words.new_words(1)
    size = 0 if tagged else 2 << bits
    memory = np.zeros(size + 16, np.float32)
    skip = -memory.ctypes.data // 4 % 16
    flat = memory[skip : skip + size]
    return Weights(flat, np.uint64(64 - bits), kind, np.float32(rate), plain, tagged, words)


def copied(weights: Weights) -> Weights:
    return weights._replace(flat=weights.flat.copy(), words=tagged_words.copied(weights.words))


def weights_arrays(name: str, weights: Weights, weights_only: bool = False) -> dict[str, Stored]:
    """Return the arrays of a table that are stored in a model file, without G if `weights_only` is set."""
    if weights.tagged:
        return tagged_words.arrays(name, weights.words, weights_only)
    if weights_only:
        return stored_arrays.pack_table(name, {"w": weights.flat[0::2]})
    return stored_arrays.pack_table(name, {"w": weights.flat[0::2], "g": weights.flat[1::2]})


def restored_weights(name: str, weights: Weights, arrays: Mapping[str, Stored], weights_only: bool = False) -> Weights:
    """Return a new table filled with the arrays of a model file, see `weights_arrays`.

    G may be missing if `weights_only` is set. Learning never produces a negative G. It is refused, because it has no
    square root and steps would not be finite.
    """
    if weights.tagged:
        return weights._replace(words=tagged_words.restored(name, weights.words, arrays))
    if weights_only and f"{name}.g" not in arrays:
        stored_arrays.unpack_table(name, arrays, {"w": weights.flat[0::2]})
        return weights
    g = stored_arrays.take(f"{name}.g", arrays, np.float32, None)
    if len(g) and not g.min() >= 0:
        raise stored_arrays.unfit(f"{name}.g", f"it holds {g.min()}, but only numbers of at least 0 are allowed")
    stored_arrays.unpack_table(name, arrays, {"w": weights.flat[0::2], "g": weights.flat[1::2]})
    return weights


# -- kernels


@bare
def inverse_root(total: float) -> np.float32:
    """Return the finite factor that scales an example with sum of squares `total` to length 1; 1 if `total` is 0."""
    return np.float32(min(1.0 / math.sqrt(total), LARGEST)) if total > 0.0 else ONE


@jit
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


@jit
def slot(weights: Weights, feature: np.uint64, place: Int) -> np.int64:
    """Return the position in `flat` of the weight of a feature hash for the regressor at `place`."""
    z = (feature ^ (np.uint64(place >> 3) * SPREAD)) * GOLDEN
    line = (z >> (weights.shift + THREE)) * EIGHT
    return np.int64((line + ((np.uint64(place) ^ (z >> weights.shift)) & SEVEN)) * np.uint64(2))


@jit
def locate(weights: Weights, h: UInt64s, count: Int, place: Int, at: Int64s, begin: Int) -> None:
    """Write the positions of the weights of the regressor at `place` to `at`, and prefetch their cache lines."""
    for f in range(count):
        s = slot(weights, h[f], place)
        at[begin + f] = s
        intrinsics.prefetch(weights.flat, s)


@jit
def prefetch(weights: Weights, h: UInt64s, count: Int, place: Int) -> None:
    """Prefetch the cache lines of a regressor if it is the first of its block, because the others share its lines."""
    if place & 7 == 1:
        for f in range(count):
            intrinsics.prefetch(weights.flat, slot(weights, h[f], place))


@jit
def score(weights: Weights, at: Int64s, begin: Int, count: Int, x: Float32s) -> np.float32:
    """Return the score of a regressor whose positions are in `at`, as float32."""
    s = ZERO
    for f in range(count):
        s += weights.flat[at[begin + f]] * x[f]
    return s


@jit
def score_place(weights: Weights, h: UInt64s, x: Float32s, count: Int, place: Int) -> np.float32:
    """Return the score of the regressor at `place`, whose positions are not in `at`, as float32."""
    s = ZERO
    for f in range(count):
        s += weights.flat[slot(weights, h[f], place)] * x[f]
    return s


@jit
def probability(weights: Weights, s: np.float32) -> float:
    """Return the probability of label +1 for a score; it is never 0 or 1."""
    if weights.kind == loss.LOGISTIC:
        if math.isnan(s):
            return 0.5
        e = fast_math.exp(-abs(min(max(np.float64(s), -30.0), 30.0)))
        return 1.0 / (1.0 + e) if s > ZERO else e / (1.0 + e)
    if math.isnan(s):
        return 0.5
    return min(max(0.5 + 0.5 * np.float64(s), MIN_PROBABILITY), 1.0 - MIN_PROBABILITY)


@jit
def slope(weights: Weights, s: np.float32, y: np.float32) -> np.float32:
    """Return the derivative of the loss with respect to the score; 0 if the score is NaN.

    The loss is log(1 + e**(-y s)) or (s - y)**2; the derivative of the latter is taken at s clipped to [-1, 1].
    """
    if math.isnan(s):
        return ZERO
    if weights.kind == loss.LOGISTIC:
        return np.float32(-y / (1.0 + fast_math.exp(np.float64(y * s))))
    return TWO * (min(max(s, -ONE), ONE) - y)


@bare
def adagrad(x: np.float32, g: np.float32) -> np.float32:
    """Return the value x of a feature divided by the square root of its weight's G, or 0 if G is 0."""
    return x / np.float32(math.sqrt(g)) if g > ZERO else ZERO


# The three parts of a step. The weight of feature f is at `at[begin + f] ^ twist` and its G follows it. If `at` holds
# the positions of place 8 * block, twist = 2 * q selects place 8 * block + q; otherwise `twist` is 0.


@bare
def find_rates(
    flat: Float32s, at: AnyArray, begin: Int, twist: Int, x: Float32s, count: Int, square: np.float32, rate: Float32s
) -> None:
    """Add square * x**2 to each G, then set each rate (float32[count]) to x / sqrt(G).

    `flat` is float32[2 << b], and `square` is importance * slope**2.
    """
    for f in range(count):
        flat[np.uint64(at[begin + f] ^ twist) + np.uint64(1)] += square * (x[f] * x[f])
    for f in range(count):
        rate[f] = flat[np.uint64(at[begin + f] ^ twist) + np.uint64(1)]
    for f in range(count):
        rate[f] = adagrad(x[f], rate[f])


@bare
def score_change(x: Float32s, count: Int, rate: Float32s) -> np.float32:
    """Return by how much a step of size 1 changes the score: the sum of x * rate (float32[count] each)."""
    total = ZERO
    for f in range(count):
        total += x[f] * rate[f]
    return total


@bare
def move(flat: Float32s, at: AnyArray, begin: Int, twist: Int, count: Int, step: np.float32, rate: Float32s) -> None:
    """Subtract step * rate (float32[count]) from each weight in `flat`."""
    for f in range(count):
        flat[np.uint64(at[begin + f] ^ twist)] -= step * rate[f]


@jit
def learn(
    weights: Weights, at: Int64s, begin: Int, count: Int, x: Float32s, s: np.float32, y: np.float32, weight: np.float32,
    rate: Float32s,
) -> None:  # fmt: skip
    """Update a regressor with score s by an AdaGrad step towards label y (-1 or 1).

    For each feature, G += weight * slope**2 * x**2, then w -= rate * weight * slope * x / sqrt(G). With squared loss, a
    step that would move the score beyond y is shortened to end at y, because it would be far too long for an example
    with many features or new weights. With `weights.plain`, w -= rate * weight * slope * x. `rate` is float32[count],
    scratch.
    """
    d = slope(weights, s, y)
    if d == ZERO:
        return
    flat = weights.flat
    step = weights.rate * weight * d
    if weights.plain:
        for f in range(count):
            flat[at[begin + f]] -= step * x[f]
        return
    find_rates(flat, at, begin, np.int64(0), x, count, weight * d * d, rate)
    if weights.kind != loss.LOGISTIC:
        change = score_change(x, count, rate)
        if abs(step) * change > abs(s - y):
            step = (s - y) / change
    move(flat, at, begin, np.int64(0), count, step, rate)


@jit
def learn_block(
    weights: Weights, h: UInt64s, x: Float32s, count: Int, block: Int, s: Float32s, y: Float32s, weight: np.float32,
    scratch: BlockScratch,
) -> None:  # fmt: skip
    """Update the regressors of a block, whose weights are tagged words, by AdaGrad steps as `learn` takes them.

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
    number = tagged_words.add_squares(weights.words, h, x, count, block, square, scratch.rate, reach)
    if weights.kind != loss.LOGISTIC:
        for q in range(8):
            if square[q] > ZERO and abs(step[q]) * reach[q] > abs(s[q] - y[q]):
                step[q] = (s[q] - y[q]) / reach[q]
    tagged_words.move(weights.words, h, count, block, step, scratch.rate, number)
