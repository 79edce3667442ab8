"""Weights of very many small regressors, one per node of a tree, in 8 bytes a weight.

Source    Duchi, Hazan, Singer, "Adaptive Subgradient Methods", JMLR 2011 (the diagonal rule), on examples of unit
          length: neither the largest |x| of a feature nor a norm per regressor has to be kept beside a weight
          (`feature_scaling` keeps a size per feature where features are columns of numbers).
Slot      two float32:  | w | G |     w weight, G sum of importance * slope**2 * x**2
Lines     Eight slots are a cache line. A feature has a line for every block of a tree (label_tree: up to three
          levels, seven nodes), found by one multiplicative hash of (feature, block); a path of 15 nodes touches 5
          lines a feature. Three more bits of the hash permute the slots of a line, so that a line shared by
          collision is not shared slot by slot: as few collisions as with a hash of (feature, node), in 0.4 of the
          time on ptb.
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
from . import loss

SLOT_BYTES = 8
LEAST = 0.01  # with squared loss no turn is given less probability than this, nor more than 1 - LEAST
EIGHT, SEVEN, THREE = np.uint64(8), np.uint64(7), np.uint64(3)


class Weights(NamedTuple):
    """A table of 2**b slots; the regressors that share it differ by place."""

    flat: Float32s  # float32[2 << b], cache lines begin at multiples of 16
    shift: np.uint64  # 64 - b
    kind: int  # loss.LOGISTIC or loss.SQUARED
    rate: np.float32
    plain: bool  # steps by the slope alone: no AdaGrad


def new_weights(bits: int, kind: int, rate: float, plain: bool = False) -> Weights:
    """An empty table of 2**bits slots, at least one line."""
    size = 2 << bits
    memory = np.zeros(size + 16, np.float32)
    skip = -memory.ctypes.data // 4 % 16
    return Weights(memory[skip : skip + size], np.uint64(64 - bits), kind, np.float32(rate), plain)


def weights_arrays(name: str, weights: Weights) -> dict[str, Stored]:
    """What a model keeps of a table."""
    return stored_arrays.sparse(name, {"w": weights.flat[0::2], "g": weights.flat[1::2]})


def restore_weights(name: str, weights: Weights, arrays: Mapping[str, Stored]) -> None:
    """Fill a new table with what `weights_arrays` gave.

    Sums G below 0, which no learning makes, would have no root, and the weights of a step would not be finite.
    """
    sums = stored_arrays.take(f"{name}.g", arrays, np.float32, None)
    if len(sums) and not sums.min() >= 0:
        raise stored_arrays.unfit(f"{name}.g", f"it holds {sums.min()}, allowed are numbers of at least 0")
    stored_arrays.dense(name, arrays, {"w": weights.flat[0::2], "g": weights.flat[1::2]})


# -- kernels. An example arrives as `h` (uint64, its features' hashes) and `x`, both of `count`; `at` holds places in
#    `flat`, those of one regressor in `at[begin:begin + count]`.


@bare
def inverse_root(total: float) -> np.float32:
    """What an example is scaled by whose squares add up to `total`, 1 for 0; finite, whatever the sum."""
    return np.float32(min(1.0 / math.sqrt(total), LARGEST)) if total > 0.0 else ONE


@jit
def load(batch: Batch, i: int, unit: bool, h: UInt64s, x: Float32s) -> int:
    """Copy example i, scaled to length 1 where `unit`; return the number of its features."""
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
    """Where in `flat` the weight of a feature lies."""
    z = (feature ^ (np.uint64(place >> 3) * SPREAD)) * GOLDEN
    line = (z >> (weights.shift + THREE)) * EIGHT
    return np.int64((line + ((np.uint64(place) ^ (z >> weights.shift)) & SEVEN)) * np.uint64(2))


@jit
def locate(weights: Weights, h: UInt64s, count: Int, place: Int, at: Int64s, begin: Int) -> None:
    """Find the slots of one regressor and ask for their cache lines."""
    for f in range(count):
        s = slot(weights, h[f], place)
        at[begin + f] = s
        intrinsics.prefetch(weights.flat, s)


@jit
def prefetch(weights: Weights, h: UInt64s, count: Int, place: Int) -> None:
    """Ask for the cache lines of a regressor to be scored later, where it is the first of its block."""
    if place & 7 == 1:
        for f in range(count):
            intrinsics.prefetch(weights.flat, slot(weights, h[f], place))


@jit
def score(weights: Weights, at: Int64s, begin: Int, count: Int, x: Float32s) -> np.float32:
    """The prediction of a regressor whose slots were located, float32."""
    s = ZERO
    for f in range(count):
        s += weights.flat[at[begin + f]] * x[f]
    return s


@jit
def score_place(weights: Weights, h: UInt64s, x: Float32s, count: Int, place: Int) -> np.float32:
    """The same for one that was not."""
    s = ZERO
    for f in range(count):
        s += weights.flat[slot(weights, h[f], place)] * x[f]
    return s


@jit
def probability(weights: Weights, s: np.float32) -> float:
    """The probability of +1 after a score; that of -1 is 1 less this, and neither is 0 or 1."""
    if weights.kind == loss.LOGISTIC:
        if math.isnan(s):
            return 0.5
        e = fast_math.exp(-abs(min(max(np.float64(s), -30.0), 30.0)))
        return 1.0 / (1.0 + e) if s > ZERO else e / (1.0 + e)
    if math.isnan(s):
        return 0.5
    return min(max(0.5 + 0.5 * np.float64(s), LEAST), 1.0 - LEAST)


@jit
def slope(weights: Weights, s: np.float32, y: np.float32) -> np.float32:
    """The slope of log(1 + e**(-y s)) or of (s - y)**2, which is flat beyond y; 0 where s is NaN."""
    if math.isnan(s):
        return ZERO
    if weights.kind == loss.LOGISTIC:
        return np.float32(-y / (1.0 + fast_math.exp(np.float64(y * s))))
    return TWO * (min(max(s, -ONE), ONE) - y)


@bare
def adagrad(x: np.float32, g: np.float32) -> np.float32:
    """AdaGrad's rate of a weight whose G is `g`, times its feature's value."""
    return x / np.float32(math.sqrt(g)) if g > ZERO else ZERO


# A step in three parts. The weight of feature f is at `at[begin + f] ^ twist`, its G behind it; `rate` is scratch.


@bare
def find_rates(
    flat: Float32s, at: AnyArray, begin: Int, twist: Int, x: Float32s, count: Int, square: np.float32, rate: Float32s
) -> None:
    """G += square * x**2, feature by feature; then `rate[f]` = x / sqrt(G)."""
    for f in range(count):
        flat[np.uint64(at[begin + f] ^ twist) + np.uint64(1)] += square * (x[f] * x[f])
    for f in range(count):
        rate[f] = flat[np.uint64(at[begin + f] ^ twist) + np.uint64(1)]
    for f in range(count):
        rate[f] = adagrad(x[f], rate[f])


@bare
def reach(x: Float32s, count: Int, rate: Float32s) -> np.float32:
    """By how much a step of 1 moves the score."""
    total = ZERO
    for f in range(count):
        total += x[f] * rate[f]
    return total


@bare
def move(flat: Float32s, at: AnyArray, begin: Int, twist: Int, count: Int, step: np.float32, rate: Float32s) -> None:
    """w -= step * rate, feature by feature."""
    for f in range(count):
        flat[np.uint64(at[begin + f] ^ twist)] -= step * rate[f]


@jit
def learn(
    weights: Weights, at: Int64s, begin: Int, count: Int, x: Float32s, s: np.float32, y: np.float32, weight: np.float32,
    rate: Float32s,
) -> None:  # fmt: skip
    """One AdaGrad step of a regressor towards y (-1 or 1), s being its score; `rate`: float32[count], scratch.

    G += weight * slope**2 * x**2, then w -= rate * weight * slope * x / sqrt(G), feature by feature. With squared loss
    a step that would take the score beyond y is the one that takes it to y: where features are many, or weights new,
    steps would be far too long. With `plain`, w -= rate * weight * slope * x.
    """
    steep = slope(weights, s, y)
    if steep == ZERO:
        return
    flat = weights.flat
    step = weights.rate * weight * steep
    if weights.plain:
        for f in range(count):
            flat[at[begin + f]] -= step * x[f]
        return
    find_rates(flat, at, begin, np.int64(0), x, count, weight * steep * steep, rate)
    if weights.kind != loss.LOGISTIC:
        far = reach(x, count, rate)
        if abs(step) * far > abs(s - y):
            step = (s - y) / far
    move(flat, at, begin, np.int64(0), count, step, rate)
