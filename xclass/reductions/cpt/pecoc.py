"""Predict and train a node of m branches by m - 1 regressors (PECOC, probabilistic error-correcting output code).

Source    Beygelzimer, Langford, Lifshits, Sorkin, Strehl, "Conditional Probability Tree Estimation Analysis and
          Algorithms", UAI 2009, section "hpecoc".
Idea      Code: the Hadamard matrix of m = 2**levels columns, one per branch. The regressor of row i predicts whether
          |i AND c|, the number of ones in the bitwise AND of i and the branch c, is odd; in row 0 it is always even, so
          row 0 has no regressor.
          Estimate: P(c) = 2 mean_i [probability, according to regressor i, of the parity that c has in row i] - 1
               = 1/m sum_i (-1)**|i AND c| (1 - 2 p_i),  with i over all m rows,
          which a fast Walsh-Hadamard transform computes. These estimates are replaced by the nearest (least squares)
          probability distribution over the used branches, which is at most as far from the truth as they are.
Cost      O(s m) for the scores of an example of s features, O(m log m) for the estimates.
Names     m branches | c branch, a column | i row, its regressor | s[i] score | p_i probability of odd, p_0 = 0
Differs   from the paper (docs/papers.md says why, and what it costs):
          * the estimates of a node's branches are projected to the nearest probabilities

The regressors of a node have neighbouring places: regressor i is at `place + i`, and `place` is a multiple of m. Eight
of them are a block of `adagrad`, and are scored and learn together.
"""

from __future__ import annotations

import math

import numpy as np

from ...array_types import Float32s, Float64s, Int, Int64s, UInt64s
from ...binary import adagrad, tagged_words
from ...kernels import intrinsics
from ...kernels.constants import ONE, ZERO
from ...kernels.jit import jit
from .node_scores import Memo

LEAST = 0.01  # least probability of a used branch, times m
LINE = 8  # regressors in a cache line


@jit
def parity(i: Int, c: Int) -> np.int64:
    """Return 1 if |i AND c|, the number of ones, is odd, else 0."""
    return np.int64(intrinsics.count_ones(np.uint64(i & c))) & 1


@jit
def score(
    weights: adagrad.SharedWeights, h: UInt64s, x: Float32s, count: Int, place: Int, memo: Memo, s: Float32s
) -> None:
    """Compute the scores of the m - 1 regressors of a node into `s` (float32[m]); s[0] is 0.

    `place` is that of the node's first regressor, and `memo` is scratch.
    """
    m = s.shape[0]
    width = min(m, LINE)
    for first in range(0, m, width):
        tagged_words.prefetch_block(weights.words, h, count, (place + first) >> 3)
    for first in range(0, m, width):
        block = (place + first) >> 3
        tagged_words.score_block(weights.words, h, x, count, block, memo.block.at, memo.block_score, 0)
        for q in range(width):
            s[first + q] = memo.block_score[((place + first) & 7) + q]
    s[0] = ZERO


@jit
def learn(
    weights: adagrad.SharedWeights, h: UInt64s, x: Float32s, count: Int, place: Int, c: Int, s: Float32s, memo: Memo,
    weight: np.float32,
) -> None:  # fmt: skip
    """Update every regressor of a node towards branch c by one AdaGrad step.

    `s`, float32[m], are their scores, and `memo` is scratch.
    """
    m = s.shape[0]
    width = min(m, LINE)
    for first in range(0, m, width):
        memo.block_label[:] = ZERO
        for q in range(width):
            i, at = first + q, ((place + first) & 7) + q
            memo.block_score[at] = s[i]
            if i > 0:
                memo.block_label[at] = ONE if parity(i, c) else -ONE
        block = (place + first) >> 3
        adagrad.learn_block(weights, h, x, count, block, memo.block_score, memo.block_label, weight, memo.block)


@jit
def transform(v: Float64s) -> None:
    """Compute the Walsh-Hadamard transform of `v` (float64[m]) in place: v[c] = sum_i (-1)**|i AND c| v[i]."""
    m = v.shape[0]
    half = 1
    while half < m:
        for begin in range(0, m, 2 * half):
            for i in range(begin, begin + half):
                a, b = v[i], v[i + half]
                v[i] = a + b
                v[i + half] = a - b
        half *= 2


@jit
def simplex_threshold(v: Float64s, child: Int64s) -> float:
    """Return the number to subtract from every used branch to project `v` onto the simplex; negative results become 0.

    Michelot, "A Finite Algorithm for Finding the Projection of a Point onto the Canonical Simplex", 1986: the mean
    surplus of the branches that stay above 0, repeated until none of them falls to 0. Unused branches have child -1.
    """
    tau = -math.inf
    before = v.shape[0] + 1
    while True:
        staying = 0
        total = 0.0
        for c in range(v.shape[0]):
            if child[c] >= 0 and v[c] > tau:
                staying += 1
                total += v[c]
        if staying >= before:
            return tau
        before = staying
        tau = (total - 1.0) / staying


@jit
def estimate(weights: adagrad.SharedWeights, s: Float32s, child: Int64s, v: Float64s) -> None:
    """Write the probabilities of the branches to `v`, 0 for those whose `child` is -1, from the scores `s`."""
    m = v.shape[0]
    v[0] = 1.0 / m
    for i in range(1, m):
        v[i] = (1.0 - 2.0 * adagrad.probability(weights, s[i])) / m
    transform(v)
    tau = simplex_threshold(v, child)
    total = 0.0
    for c in range(m):
        v[c] = max(v[c] - tau, LEAST / m) if child[c] >= 0 else 0.0
        total += v[c]
    for c in range(m):
        v[c] /= total


@jit
def loss(weights: adagrad.SharedWeights, s: Float32s, c: Int) -> float:
    """Return the sum of the regressors' squared losses for scores `s` (float32[m]) if the branch is c."""
    total = 0.0
    for i in range(1, s.shape[0]):
        p = adagrad.probability(weights, s[i])
        total += (1.0 - p) ** 2 if parity(i, c) else p * p
    return total
