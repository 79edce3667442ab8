"""One proximal Newton step of an L1-regularised score: what the two solvers of a softmax tree share.

Source    Yuan, Ho, Lin, "An Improved GLMNET for L1-regularized Logistic Regression", JMLR 2012: coordinate descent on
          the quadratic model of the loss, then a line search along what it finds. Written anew.
Problem   min over w of  sum_n c_n [log(O_n + exp(z_n)) - y_n z_n]  +  alpha |w|_1  with  z_n = w.x_n + b.
          y_n in {0, 1}; O_n > 0 is what the score competes with: 1 in logistic regression, the exponentials of the
          other classes in a softmax. Only p_n = exp(z_n) / (O_n + exp(z_n)) is needed of it.
Names     c importance | p, y, z as above | d a change of z | t numbers the rows that are touched, 0..T-1
Cost      two walks over the columns of the active features in each pass, and exponentials of the T rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...array_types import Float32s, Float64s, Int32s, Int64s
from ...kernels import fast_math
from ...kernels.jit import jit

ARMIJO = 0.01  # share of the promised decrease that is enough
HALVINGS = 30
FARTHEST = 10.0  # that a score may move at once: where p is nearly 0 or 1 the quadratic model knows no bounds
LEAST_CURVATURE = 1e-12
TOUCHED = 0.1  # a pass is the last one where no gradient moved by more than this share of alpha


class Problem(NamedTuple):
    """n rows over F features of their own, by row and by column."""

    row_start: Int64s  # int64[n + 1]
    row_feature: Int32s  # int32[z], 0..F-1
    row_value: Float32s  # float32[z]
    col_start: Int64s  # int64[F + 1]
    col_row: Int32s  # int32[z], rising within a column
    col_value: Float32s  # float32[z]
    weight: Float64s  # float64[n], importance, above 0


class Touched(NamedTuple):
    """The rows one score depends on; arrays of room for all rows, of which the first T are meant."""

    place: Int32s  # int32[n], t of a row; any number for rows that are not touched
    p: Float64s  # float64[n] each, by t
    y: np.ndarray
    c: np.ndarray
    slope: np.ndarray  # c (p - y)
    curve: np.ndarray  # c p (1 - p)
    d: np.ndarray  # the change of z


def new_touched(rows: int) -> Touched:
    """Scratch for a problem of so many rows."""
    return Touched(np.zeros(rows, np.int32), *(np.empty(rows) for _ in range(6)))


# -- kernels


@jit
def _soft(value, limit):
    """The value moved towards 0 by limit, not beyond."""
    if value > limit:
        return value - limit
    if value < -limit:
        return value + limit
    return 0.0


@jit
def _change(touched, size, s):
    """By how much the loss changes along s times d."""
    total = 0.0
    for t in range(size):
        u = s * touched.d[t]
        e = fast_math.exp(u) - 1.0
        total += touched.c[t] * (fast_math.log(max(1.0 + touched.p[t] * e, 1e-300)) - touched.y[t] * u)
    return total


@jit
def step(problem, feature, count, w, target, curve, touched, size, alpha, passes, intercept):
    """Move the weights of `feature[:count]` and the intercept; return the share of d taken, and what b gains.

    Parameters
    ----------
    feature, w : int32[count], float64[count], features and their weights, which are changed. Every row of their columns
        is touched.
    target, curve : float64[count], scratch.
    size : T, the touched rows; their p, y and c are given. d is what it finds: z moves by the share times d.
    passes : of coordinate descent, at most.
    intercept : whether b may move. Then all rows have to be touched.
    """
    place, slope, bend, d = touched.place, touched.slope, touched.curve, touched.d
    total = bent = 0.0
    for t in range(size):
        p = touched.p[t]
        slope[t] = touched.c[t] * (p - touched.y[t])
        bend[t] = touched.c[t] * p * (1.0 - p)
        d[t] = 0.0
        total += slope[t]
        bent += bend[t]
    b = 0.0
    for j in range(count):
        target[j] = w[j]
    for k in range(passes):
        moved = 0.0
        if intercept:
            now = 0.0
            for t in range(size):
                now += slope[t] + bend[t] * d[t]
            gain = -now / (bent + LEAST_CURVATURE)
            b += gain
            for t in range(size):
                d[t] += gain
            moved = abs(now)
        for j in range(count):
            begin, end = problem.col_start[feature[j]], problem.col_start[feature[j] + 1]
            now = 0.0
            if k == 0:
                first = second = 0.0
                for i in range(begin, end):
                    t = place[problem.col_row[i]]
                    x = np.float64(problem.col_value[i])
                    first += x * slope[t]
                    second += x * x * bend[t]
                    now += x * bend[t] * d[t]
                curve[j] = second + LEAST_CURVATURE
                now += first
            else:
                for i in range(begin, end):
                    t = place[problem.col_row[i]]
                    now += np.float64(problem.col_value[i]) * (slope[t] + bend[t] * d[t])
            gain = _soft(target[j] - now / curve[j], alpha / curve[j]) - target[j]
            if gain != 0.0:
                target[j] += gain
                moved = max(moved, abs(gain) * curve[j])
                for i in range(begin, end):
                    d[place[problem.col_row[i]]] += gain * np.float64(problem.col_value[i])
        if moved <= TOUCHED * alpha * 10.0 ** -min(k, 3):
            break
    penalty = 0.0
    for j in range(count):
        penalty += abs(target[j]) - abs(w[j])
    promised = alpha * penalty
    for t in range(size):
        promised += slope[t] * d[t]
    if not promised < 0.0:
        return 0.0, 0.0
    s = 1.0
    longest = 0.0
    for t in range(size):
        longest = max(longest, abs(d[t]))
    if longest > FARTHEST:
        s = FARTHEST / longest
    for _ in range(HALVINGS):
        less = 0.0
        for j in range(count):
            less += abs(w[j] + s * (target[j] - w[j])) - abs(w[j])
        if _change(touched, size, s) + alpha * less <= ARMIJO * s * promised:
            for j in range(count):
                w[j] = target[j] if s == 1.0 else w[j] + s * (target[j] - w[j])
            return s, s * b
        s *= 0.5
    return 0.0, 0.0


@jit
def columns(row_start, row_feature, row_value, col_start, col_row, col_value):
    """Fill the columns of a problem; `col_start` is 0."""
    n = row_start.shape[0] - 1
    for i in range(row_start[0], row_start[n]):
        col_start[row_feature[i] + 1] += 1
    for f in range(col_start.shape[0] - 1):
        col_start[f + 1] += col_start[f]
    for r in range(n):
        for i in range(row_start[r], row_start[r + 1]):
            at = col_start[row_feature[i]]
            col_row[at] = r
            col_value[at] = row_value[i]
            col_start[row_feature[i]] += 1
    for f in range(col_start.shape[0] - 1, 0, -1):
        col_start[f] = col_start[f - 1]
    col_start[0] = 0


# -- Python


def new_problem(row_start, row_feature, row_value, features: int, weight) -> Problem:
    """Rows with their columns."""
    z = len(row_feature)
    col_start, col_row, col_value = np.zeros(features + 1, np.int64), np.empty(z, np.int32), np.empty(z, np.float32)
    columns(row_start, row_feature, row_value, col_start, col_row, col_value)
    return Problem(row_start, row_feature, row_value, col_start, col_row, col_value, weight)
