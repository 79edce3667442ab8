"""Take one proximal Newton step on the weights of an L1-regularised linear score.

Both solvers of a softmax tree that minimise along coordinates use it: `router_logistic` and `leaf_exact`.

Source    Yuan, Ho, Lin, "An Improved GLMNET for L1-regularized Logistic Regression", JMLR 2012: coordinate descent on
          the quadratic model of the loss, then a line search along the direction found. Written anew.
Idea      min over w of  sum_n c_n [log(O_n + exp(z_n)) - y_n z_n]  +  alpha |w|_1  with  z_n = w.x_n + b.
          y_n in {0, 1}; O_n > 0 is 1 in logistic regression, and the sum of the exponentials of the other classes in a
          softmax. It is needed only in p_n = exp(z_n) / (O_n + exp(z_n)).
Cost      Two passes over the columns of the active features per round of coordinate descent, and T exponentials.
Names     c importance | p, y, z as above | d change of z | T touched rows, which the score depends on, numbered t
Differs   from newGLMNET: the change of a score per step is limited to FARTHEST.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...array_types import Float32s, Float64s, Int32s, Int64s
from ...kernels import fast_math
from ...kernels.jit import jit

ARMIJO = 0.01  # a step is accepted if it achieves this share of the decrease that the quadratic model predicts
HALVINGS = 30  # most halvings of the step in the line search
FARTHEST = 10.0  # largest change of a score per step; the quadratic model is unbounded if p is nearly 0 or 1
LEAST_CURVATURE = 1e-12
LEAST_GRADIENT_CHANGE = 0.1  # coordinate descent ends if no gradient changed by more than this share of alpha


class NewtonProblem(NamedTuple):
    """Hold n rows by row and by column; their F features are numbered 0..F-1 for this problem."""

    row_start: Int64s  # int64[n + 1]
    row_feature: Int32s  # int32[z], 0..F-1
    row_value: Float32s  # float32[z]
    col_start: Int64s  # int64[F + 1]
    col_row: Int32s  # int32[z], ascending within a column
    col_value: Float32s  # float32[z]
    weight: Float64s  # float64[n], importance, positive


class Touched(NamedTuple):
    """Hold the rows that one score depends on; the arrays have space for all rows and the first T are used."""

    place: Int32s  # int32[n], t of a row; arbitrary for rows that are not touched
    p: Float64s  # float64[n] each, by t
    y: Float64s
    c: Float64s
    slope: Float64s  # c (p - y)
    curve: Float64s  # c p (1 - p)
    d: Float64s  # the change of z


def new_touched(rows: int) -> Touched:
    return Touched(np.zeros(rows, np.int32), *(np.empty(rows) for _ in range(6)))


# -- kernels


@jit
def _soft(value: float, limit: float) -> float:
    """Return the value moved towards 0 by `limit`, but not beyond 0 (soft threshold)."""
    if value > limit:
        return value - limit
    if value < -limit:
        return value + limit
    return 0.0


@jit
def _change(touched: Touched, size: int, s: float) -> float:
    """Return the change of the loss if the scores change by s times d."""
    total = 0.0
    for t in range(size):
        u = s * touched.d[t]
        growth = fast_math.exp(u) - 1.0
        total += touched.c[t] * (fast_math.log(max(1.0 + touched.p[t] * growth, 1e-300)) - touched.y[t] * u)
    return total


@jit
def step(
    problem: NewtonProblem, feature: Int32s, count: int, w: Float64s, target: Float64s, curve: Float64s,
    touched: Touched, size: int, alpha: float, passes: int, intercept: bool,
) -> tuple[float, float]:  # fmt: skip
    """Update the weights of the active features by one proximal Newton step; return the share of d that was taken and
    the change of b: z changes by share * d, and the share is 0 if the step was refused.

    Parameters
    ----------
    feature : int32[count or more], active features; every row of their columns must be touched
    w : float64[count or more], their weights, written
    target, curve : float64[count or more], scratch
    touched : `p`, `y`, `c` and `place` are read; `d`, `slope` and `curve` are written
    size : T, the number of touched rows
    passes : most rounds of coordinate descent
    intercept : whether b may change; then all rows must be touched
    """
    place, slope, row_curve, d = touched.place, touched.slope, touched.curve, touched.d
    total = total_curve = 0.0
    for t in range(size):
        p = touched.p[t]
        slope[t] = touched.c[t] * (p - touched.y[t])
        row_curve[t] = touched.c[t] * p * (1.0 - p)
        d[t] = 0.0
        total += slope[t]
        total_curve += row_curve[t]
    b = 0.0
    for j in range(count):
        target[j] = w[j]
    for k in range(passes):
        largest_change = 0.0
        if intercept:
            slope_now = 0.0
            for t in range(size):
                slope_now += slope[t] + row_curve[t] * d[t]
            shift = -slope_now / (total_curve + LEAST_CURVATURE)
            b += shift
            for t in range(size):
                d[t] += shift
            largest_change = abs(slope_now)
        for j in range(count):
            begin, end = problem.col_start[feature[j]], problem.col_start[feature[j] + 1]
            slope_now = 0.0
            if k == 0:
                first = second = 0.0
                for i in range(begin, end):
                    t = place[problem.col_row[i]]
                    x = np.float64(problem.col_value[i])
                    first += x * slope[t]
                    second += x * x * row_curve[t]
                    slope_now += x * row_curve[t] * d[t]
                curve[j] = second + LEAST_CURVATURE
                slope_now += first
            else:
                for i in range(begin, end):
                    t = place[problem.col_row[i]]
                    slope_now += np.float64(problem.col_value[i]) * (slope[t] + row_curve[t] * d[t])
            shift = _soft(target[j] - slope_now / curve[j], alpha / curve[j]) - target[j]
            if shift != 0.0:
                target[j] += shift
                largest_change = max(largest_change, abs(shift) * curve[j])
                for i in range(begin, end):
                    d[place[problem.col_row[i]]] += shift * np.float64(problem.col_value[i])
        if largest_change <= LEAST_GRADIENT_CHANGE * alpha * 10.0 ** -min(k, 3):
            break
    penalty = 0.0
    for j in range(count):
        penalty += abs(target[j]) - abs(w[j])
    predicted = alpha * penalty
    for t in range(size):
        predicted += slope[t] * d[t]
    if not predicted < 0.0:
        return 0.0, 0.0
    s = 1.0
    largest = 0.0
    for t in range(size):
        largest = max(largest, abs(d[t]))
    if largest > FARTHEST:
        s = FARTHEST / largest
    for _ in range(HALVINGS):
        penalty_change = 0.0
        for j in range(count):
            penalty_change += abs(w[j] + s * (target[j] - w[j])) - abs(w[j])
        if _change(touched, size, s) + alpha * penalty_change <= ARMIJO * s * predicted:
            for j in range(count):
                w[j] = target[j] if s == 1.0 else w[j] + s * (target[j] - w[j])
            return s, s * b
        s *= 0.5
    return 0.0, 0.0


@jit
def columns(
    row_start: Int64s, row_feature: Int32s, row_value: Float32s, features: int
) -> tuple[Int64s, Int32s, Float32s]:
    """Return the columns of rows: `col_start`, `col_row` and `col_value` of a `NewtonProblem`."""
    start = np.zeros(features + 2, np.int64)  # start[f + 1] is the place of the next entry of column f
    row, value = np.empty(row_feature.shape[0], np.int32), np.empty(row_feature.shape[0], np.float32)
    for i in range(row_feature.shape[0]):
        start[row_feature[i] + 2] += 1
    for f in range(features):
        start[f + 2] += start[f + 1]
    for r in range(row_start.shape[0] - 1):
        for i in range(row_start[r], row_start[r + 1]):
            f = row_feature[i]
            row[start[f + 1]] = r
            value[start[f + 1]] = row_value[i]
            start[f + 1] += 1
    return start[:-1], row, value


# -- Python


def new_problem(
    row_start: Int64s, row_feature: Int32s, row_value: Float32s, features: int, weight: Float64s
) -> NewtonProblem:
    """Return a problem with the columns of its rows, int64[n + 1], int32[z] and float32[z]; `weight` is float64[n]."""
    by_column = columns(row_start, row_feature, row_value, features)
    return NewtonProblem(row_start, row_feature, row_value, *by_column, weight)
