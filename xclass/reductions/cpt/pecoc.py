"""A node of m branches: m - 1 regressors, each of which asks whether the branch is in its half of them.

Source    Beygelzimer, Langford, Lifshits, Sorkin, Strehl, "Conditional Probability Tree Estimation Analysis and
          Algorithms", UAI 2009, section "hpecoc": PECOC, the probabilistic error correcting output code.
Code      the Hadamard matrix of m = 2**levels columns, one per branch: row i asks whether |i AND c|, the number of
          ones, is even for branch c; row 0 always is and has no regressor.
Estimate  P(c) = 2 mean_i [the regressor's probability of what is true of c] - 1, the mean over all m rows
               = 1/m sum_i (-1)**|i AND c| (1 - 2 p_i),  p_i the probability of odd, p_0 = 0:
          a fast Walsh-Hadamard transform.
          Then the nearest point (least squares) that is a probability of the branches in use: whatever the truth,
          it is no further from it than the estimates are.
Cost      s m for the scores of an example of s features, m log m for the estimates.
Names     m branches | c branch, its column | i row, its regressor | s[i] score | p_i probability of odd
Differs   from the paper, whose estimates may be negative, above 1, and more than 0 for branches nobody uses; the
          nearest point is ours. A branch in use has at least LEAST / m. With m = 2 all this changes nothing: the
          estimates are 1 - p_1 and p_1, as in the binary tree.
          Cutting at 0 and scaling to the sum 1 instead gives much of the probability to the many branches of small
          positive estimates: on the last tenth of train, spelling / clinc150 / wordnet / reuters at -b 24,
          squared loss, m = 8      .440 / .234 / .915 / .209, here .380 / .191 / .891 / .186
          squared loss, m = 64     .615 / .318 / .958 / .255, here .424 / .189 / .895 / .176
          error %, m = 8           17.4 / 7.4 / 71.3 / 15.7, here 18.2 / 8.3 / 71.5 / 15.8

The regressors of a node lie at neighbouring places, regressor i at `place + i`, `place` a multiple of m: eight of them
in one cache line of `adagrad`, the slot of place + q being that of place XOR q.
"""

from __future__ import annotations

import math

import numpy as np

from ...binary import adagrad
from ...binary import loss as loss_kinds
from ...kernels import intrinsics
from ...kernels.constants import ONE, ZERO
from ...kernels.jit import jit

LEAST = 0.01
LINE = 8  # regressors of a cache line


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
    adagrad.locate(weights, h, count, place, at, 0)
    here = 0
    for first in range(0, m, width):
        if first + width < m:  # the lines of the next eight are on their way meanwhile
            adagrad.locate(weights, h, count, place + first + width, at, count - here)
        for f in range(count):
            slot = at[here + f]
            value = x[f]
            for q in range(width):
                s[first + q] += weights.flat[slot ^ (2 * q)] * value
        here = count - here
    s[0] = ZERO


@jit
def learn(weights, h, x, count, place, c, s, square, step, reach, weight):
    """One AdaGrad step of every regressor towards branch c, `s` being the scores, as `adagrad.learn` does it.

    Not by `adagrad.find_rates` and `move`, which go through the features of one regressor: here the regressors of a
    cache line take turns at each feature, so that a line is loaded once for eight of them. Where features share a slot
    the rates are others, too: a feature's is found before the next one adds to G.

    square, step, reach : float32[m], scratch
    """
    m = s.shape[0]
    width = min(m, LINE)
    step[0] = ZERO
    for i in range(1, m):
        slope = adagrad.slope(weights, s[i], ONE if odd(i, c) else -ONE)
        square[i] = weight * slope * slope
        step[i] = weights.rate * weight * slope
        reach[i] = ZERO
    for first in range(0, m, width):
        if not weights.plain:
            for f in range(count):
                slot = adagrad.slot(weights, h[f], place + first)
                for i in range(first, first + width):
                    if step[i] != ZERO:
                        a = slot ^ (2 * (i - first))
                        weights.flat[a + 1] += square[i] * (x[f] * x[f])
                        reach[i] += x[f] * adagrad.adagrad(x[f], weights.flat[a + 1])
            if weights.kind != loss_kinds.LOGISTIC:
                for i in range(max(first, 1), first + width):
                    y = ONE if odd(i, c) else -ONE
                    if abs(step[i]) * reach[i] > abs(s[i] - y):
                        step[i] = (s[i] - y) / reach[i]
        for f in range(count):
            slot = adagrad.slot(weights, h[f], place + first)
            for i in range(first, first + width):
                if step[i] != ZERO:
                    a = slot ^ (2 * (i - first))
                    rate = x[f] if weights.plain else adagrad.adagrad(x[f], weights.flat[a + 1])
                    weights.flat[a] -= step[i] * rate


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
def surplus(v, child):
    """What to take from every branch in use so that the sum is 1 where what would be negative is 0.

    Michelot, "A Finite Algorithm for Finding the Projection of a Point onto the Canonical Simplex", 1986: the mean
    surplus of those that stay above 0, until none of them falls.
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
def estimate(weights, s, child, v):
    """`v[c]` = probability of branch c after scores s; 0 where nobody uses it, `child[c]` being -1."""
    m = v.shape[0]
    v[0] = 1.0 / m
    for i in range(1, m):
        v[i] = (1.0 - 2.0 * adagrad.probability(weights, s[i])) / m
    transform(v)
    tau = surplus(v, child)
    total = 0.0
    for c in range(m):
        v[c] = max(v[c] - tau, LEAST / m) if child[c] >= 0 else 0.0
        total += v[c]
    for c in range(m):
        v[c] /= total


@jit
def loss(weights, s, c):
    """Sum of the regressors' squared losses when the branch is c."""
    total = 0.0
    for i in range(1, s.shape[0]):
        p = adagrad.probability(weights, s[i])
        total += (1.0 - p) ** 2 if odd(i, c) else p * p
    return total
