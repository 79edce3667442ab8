"""Learn many small regressors by adaptive regularisation of weights (AROW), whose weights are tagged words.

Source    Crammer, Kulesza, Dredze, "Adaptive Regularization of Weight Vectors", NIPS 2009, with a diagonal covariance.
Cost      O(s) to train the regressors of a block on an example of s features; one cache line for each feature.
Names     w weight | G sum of importance * x**2 of the examples that the regressor learned | 1 / (1 + G / r) variance of
          a weight | s score | y label, -1 or 1 | v variance of the score | b bias | block: see `tagged_words`.
Idea      A regressor learns only from examples whose y s is below 1. Its step ends between s and y: the surer it is of
          the weights of an example, the shorter it is. So a rare feature or class reaches its margin after an example
          or two, and a weight that was learned from many contradicting examples hardly moves.
Differs   from the paper: the bias b is the weight of a feature of its own, whose value `Rule` gives. It begins at
          -1 or 1, so that a regressor learns nothing while this is right.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..array_types import Float32s, Int, Int64s, UInt64s
from ..kernels.constants import ONE, ZERO
from ..kernels.jit import bare
from . import tagged_words


class Rule(NamedTuple):
    """Hold what a step depends on besides the example."""

    r: np.float32  # of the paper: the larger, the shorter the steps
    bias_square: np.float32  # square of the value of the feature whose weight is the bias
    tolerance: np.float32  # by which y s may be below 1 without a step


RULE = Rule(ONE, np.float32(0.3), np.float32(0.1))  # for the nodes of --plt


class Biases(NamedTuple):
    """Hold the biases of all regressors; regressor q of the scores has those at `at[q]`."""

    bias: Float32s  # float32[...]
    seen: Float32s  # float32[...], their G
    at: Int64s


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


# -- kernels


@bare
def learn_block(
    words: tagged_words.Words, h: UInt64s, x: Float32s, count: Int, block: Int, s: Float32s, first: Int, y: Float32s,
    biases: Biases, weight: np.float32, rule: Rule, scratch: BlockScratch,
) -> None:  # fmt: skip
    """Update the regressors of a block by an AROW step each.

    With importance i and v = sum of x**2 / (1 + G / r), the bias included, the step is tau = y (1 - y s) / (v + r / i);
    then w += tau * x / (1 + G / r), and G += i * x**2.

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
            tau = (y[q] - s[first + q]) / (scratch.reach[q] + bias_square * variance + r / weight)
            biases.bias[a] += bias_square * variance * tau
            biases.seen[a] += weight * bias_square
            step[q] = -tau
    tagged_words.move(words, h, count, block, step, scratch.rate, number)
