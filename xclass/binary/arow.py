"""Learn many small regressors by adaptive regularisation of weights (AROW), whose weights are tagged words.

Source    Crammer, Kulesza, Dredze, "Adaptive Regularization of Weight Vectors", NIPS 2009, with a diagonal covariance.
Cost      O(s) to train the regressors of a block on an example of s features; one cache line for each feature.
Names     w weight | G sum of importance * x**2 of the examples that the regressor learned | 1 / (1 + G / r) variance of
          a weight | s score | y label, -1 or 1 | v variance of the score | b bias | block: see `tagged_words`.
Idea      A regressor learns only from examples whose y s is below 1. Its step ends between s and y: the surer it is of
          the weights of an example, the shorter it is. So a rare feature or class reaches its margin after an example
          or two, and a weight that was learned from many contradicting examples hardly moves.
          r can be learned, too: by AdaGrad, from the slope of half the squared error y - s in log r, as if w shrank
          as r grows, which is sum of importance * (y - s) (s - b) over the regressors that learn. So r grows where
          weights have become too large for the examples that follow, and falls where they are too small.
Differs   from the paper: the bias b is the weight of a feature of its own, whose value `ArowRule` gives. It begins at
          -1 or 1, so that a regressor learns nothing while this is right.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ..array_types import Float32s, Float64s, Int, Int64s, UInt64s
from ..kernels.constants import ONE, ZERO
from ..kernels.jit import bare
from ..model.archive import Archive
from . import tagged_words

STEP = 0.02  # learning rate of log r
MOST_SQUARES = 1e300  # sum of squared slopes


class ArowRule(NamedTuple):
    """Hold what a step depends on besides the example."""

    r: np.float32  # of the paper: the larger, the shorter the steps
    bias_square: np.float32  # square of the value of the feature whose weight is the bias
    tolerance: np.float32  # by which y s may be below 1 without a step


class Biases(NamedTuple):
    """Hold the biases of all regressors; regressor q of the scores has those at `at[q]`."""

    bias: Float32s  # float32[...]
    seen: Float32s  # float32[...], their G
    at: Int64s


class ArowScratch(NamedTuple):
    """Provide buffers to score and train the regressors of a block on s features."""

    at: Int64s  # int64[s]
    rate: Float32s  # float32[8 * s]
    square: Float32s  # float32[8]
    step: Float32s  # float32[8]
    reach: Float32s  # float32[8]
    slope: Float64s  # float64[1], sum of the slopes of log r, 0 between examples


def new_regularisation(r: float = 1.0) -> Float64s:
    """Return log r and the sum of its squared slopes, float64[2]."""
    return np.array([math.log(r), 1.0])


def serialize_regularisation(archive: Archive, regularisation: Float64s, least: float, most: float) -> None:
    """Save or fill the array `regularisation`; r is between `least` and `most`."""
    archive.fill("regularisation", regularisation, [math.log(least), 1], [math.log(most), MOST_SQUARES])


def block_scratch(most_features: int) -> ArowScratch:
    square, step, reach = (np.empty(8, np.float32) for _ in range(3))
    rate = np.empty(8 * most_features, np.float32)
    return ArowScratch(np.empty(most_features, np.int64), rate, square, step, reach, np.zeros(1))


# -- kernels


@bare
def learn_block(
    words: tagged_words.Words, h: UInt64s, x: Float32s, count: Int, block: Int, s: Float32s, first: Int, y: Float32s,
    biases: Biases, weight: np.float32, rule: ArowRule, scratch: ArowScratch,
) -> None:  # fmt: skip
    """Update the regressors of a block by an AROW step each.

    With importance i and v = sum of x**2 / (1 + G / r), the bias included, the step is tau = y (1 - y s) / (v + r / i);
    then w += tau * x / (1 + G / r), and G += i * x**2. `scratch.slope` grows by the slopes of log r.

    Parameters
    ----------
    s, first : `s[first:first + 8]` are the scores, with the biases
    y : float32[8], label of each regressor, -1 or 1, or 0 if it does not learn
    biases : written; `at[first:first + 8]` are positions of biases
    """
    r, bias_square, tolerance = rule
    square, step = scratch.square, scratch.step
    learns = False
    for q in range(8):
        misses = y[q] != ZERO and ONE - y[q] * s[first + q] > tolerance
        square[q] = weight if misses else ZERO
        learns |= misses
    if not learns:
        return
    number = tagged_words.add_squares(words, h, x, count, block, square, scratch.rate, scratch.reach, r)
    for q in range(8):
        step[q] = ZERO
        if square[q] > ZERO:
            a = biases.at[first + q]
            variance = r / (r + biases.seen[a])
            error = y[q] - s[first + q]
            scratch.slope[0] += np.float64(weight) * np.float64(error) * np.float64(s[first + q] - biases.bias[a])
            tau = error / (scratch.reach[q] + bias_square * variance + r / weight)
            biases.bias[a] += bias_square * variance * tau
            biases.seen[a] += weight * bias_square
            step[q] = -tau
    tagged_words.move(words, h, count, block, step, scratch.rate, number)


@bare
def r_of(regularisation: Float64s) -> np.float32:
    return np.float32(math.exp(regularisation[0]))


@bare
def adapt_r(regularisation: Float64s, scratch: ArowScratch, least: float, most: float) -> None:
    """Update log r by the slopes of an example; r stays between `least` and `most`."""
    slope = scratch.slope[0]
    scratch.slope[0] = 0.0
    if math.isfinite(slope):
        regularisation[1] = min(regularisation[1] + slope * slope, MOST_SQUARES)
        log_r = regularisation[0] - STEP * slope / math.sqrt(regularisation[1])
        regularisation[0] = min(max(log_r, math.log(least)), math.log(most))
