"""A node of m branches: m - 1 regressors, each of which asks whether the branch is in its half of them.

Source    Beygelzimer, Langford, Lifshits, Sorkin, Strehl, "Conditional Probability Tree Estimation Analysis and
          Algorithms", UAI 2009, section "hpecoc"; PECOC is Langford and Beygelzimer, "Sensitive Error Correcting
          Output Codes", COLT 2005.
Code      the Hadamard matrix of m = 2**levels columns, one per branch: row i asks whether |i AND c|, the number of
          ones, is even for branch c; row 0 always is and has no regressor.
Estimate  P(c) = 2 mean_i [the regressor's probability of what is true of c] - 1, the mean over all m rows
               = 1/m sum_i (-1)**|i AND c| (1 - 2 p_i),  p_i the probability of odd, p_0 = 0:
          a fast Walsh-Hadamard transform.
Cost      s m for the scores of an example of s features, m log m for the estimates.
Names     m branches | c branch, its column | i row, its regressor | s[i] score | LEAST estimates below count as this.
Differs   from the paper: estimates may be negative, there, and branches nobody uses have some probability. Here they
          are at least LEAST / m for the branches in use, 0 for the others, and scaled to the sum 1. With m = 2 all
          branches are in use and the two estimates are 1 - p_1 and p_1 as in the binary tree.

The regressors of a node lie at neighbouring places, regressor i at `place + i`, `place` a multiple of m: eight of them
in one cache line of `node_weights`, the slot of place + q being that of place XOR q.
"""

from __future__ import annotations

import math

import numpy as np

from . import intrinsics, node_weights
from .jit import jit

LEAST = 0.01
LINE = 8  # regressors of a cache line
ONE = np.float32(1)
ZERO = np.float32(0)


@jit
def odd(i, c):
    """Whether row i says 0 of branch c: 1 or 0."""
    return np.int64(intrinsics.count_ones(np.uint64(i & c))) & 1


@jit
def score(weights, h, x, count, place, at, s):
    """`s[i]` = the prediction of regressor i, 1 <= i < m = len(s); `at` is int64[2 * count]."""
    m = s.shape[0]
    width = min(m, LINE)
    s[:] = ZERO
    node_weights.locate(weights, h, count, place, at, 0)
    here = 0
    for first in range(0, m, width):
        if first + width < m:  # the lines of the next eight are on their way meanwhile
            node_weights.locate(weights, h, count, place + first + width, at, count - here)
        for f in range(count):
            slot = at[here + f]
            value = x[f]
            for q in range(width):
                s[first + q] += weights.flat[slot ^ (2 * q)] * value
        here = count - here
    s[0] = ZERO


@jit
def learn(weights, h, x, count, place, c, s, square, step, weight):
    """One AdaGrad step of every regressor towards branch c, `s` being the scores; `square`, `step` float32[m]."""
    m = s.shape[0]
    width = min(m, LINE)
    step[0] = ZERO
    for i in range(1, m):
        slope = node_weights.slope(weights, s[i], ONE if odd(i, c) else -ONE)
        square[i] = weight * slope * slope
        step[i] = weights.rate * weight * slope
    for first in range(0, m, width):
        for f in range(count):
            slot = node_weights.slot(weights, h[f], place + first)
            for i in range(first, first + width):
                if step[i] != ZERO:
                    a = slot ^ (2 * (i - first))
                    g = weights.flat[a + 1] + square[i] * x[f] * x[f]
                    if g > ZERO:
                        weights.flat[a + 1] = g
                        weights.flat[a] -= step[i] * x[f] / np.float32(math.sqrt(g))


@jit
def transform(v):
    """The Walsh-Hadamard transform in place: v[c] becomes sum_i (-1)**|i AND c| v[i]."""
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
def estimate(weights, s, child, v):
    """`v[c]` = probability of branch c after scores s; 0 where nobody uses it, `child[c]` being -1."""
    m = v.shape[0]
    v[0] = 1.0
    for i in range(1, m):
        v[i] = 1.0 - 2.0 * node_weights.probability(weights, s[i])
    transform(v)
    total = 0.0
    for c in range(m):
        v[c] = max(v[c], LEAST) if child[c] >= 0 else 0.0
        total += v[c]
    for c in range(m):
        v[c] /= total


@jit
def loss(weights, s, c):
    """Sum of the regressors' squared losses when the branch is c."""
    total = 0.0
    for i in range(1, s.shape[0]):
        p = node_weights.probability(weights, s[i])
        total += (1.0 - p) ** 2 if odd(i, c) else p * p
    return total
