"""Fit a router of a softmax tree: L1-regularised logistic regression with weighted examples.

Source    newGLMNET, see `newton_step`.
Idea      min over w, b of  sum_n c_n log(1 + exp(-y_n (w.x_n + b)))  +  alpha |w|_1,  y_n in {-1, 1}.
          A round takes one `newton_step` on the active features: those whose weight is not 0 and those whose slope
          exceeds alpha in size. The fit starts from given weights.
Cost      A round passes once over all rows, and several times over the columns of the active features.
Names     n rows | F features | alpha = 1 / C of LIBLINEAR | right: y = 1
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...array_types import Bools, Float64s, Int32s
from ...kernels import fast_math
from ...kernels.jit import jit
from . import newton_step
from .newton_step import NewtonProblem, Touched

ROUNDS = 60
PASSES = 12  # rounds of coordinate descent per Newton step, at most
TOLERANCE = 1e-4  # share of the violation with all weights 0 that ends the fit


class RouterScratch(NamedTuple):
    """Provide buffers for a problem of n rows and F features."""

    z: Float64s  # float64[n], scores
    touched: newton_step.Touched
    feature: Int32s  # int32[F], the active features
    slope: Float64s  # float64[F] each
    active_w: Float64s
    target: Float64s
    curve: Float64s


# -- kernels


@jit
def _slopes(problem: NewtonProblem, touched: Touched, slope: Float64s) -> None:
    """Compute the slope of the loss in every weight into `slope` (float64[F])."""
    slope[:] = 0.0
    for r in range(problem.weight.shape[0]):
        g = touched.c[r] * (touched.p[r] - touched.y[r])
        for i in range(problem.row_start[r], problem.row_start[r + 1]):
            slope[problem.row_feature[i]] += g * np.float64(problem.row_value[i])


@jit
def _violation(slope: Float64s, w: Float64s, alpha: float, feature: Int32s) -> tuple[float, int]:
    """Collect the active features; return the violation of the optimality conditions and their number."""
    total = 0.0
    count = 0
    for f in range(slope.shape[0]):
        if w[f] != 0.0:
            total += abs(slope[f] + (alpha if w[f] > 0.0 else -alpha))
            feature[count] = f
            count += 1
        elif abs(slope[f]) > alpha:
            total += abs(slope[f]) - alpha
            feature[count] = f
            count += 1
    return total, count


@jit
def scores(problem: NewtonProblem, w: Float64s, b: float, z: Float64s) -> None:
    """Compute z = w.x + b of every row into `z` (float64[n]); `w` is float64[F]."""
    for r in range(problem.weight.shape[0]):
        s = b
        for i in range(problem.row_start[r], problem.row_start[r + 1]):
            s += w[problem.row_feature[i]] * np.float64(problem.row_value[i])
        z[r] = s


@jit
def fit(
    problem: NewtonProblem, right: Bools, alpha: float, intercept: bool, w: Float64s, b: float, scratch: RouterScratch,
    rounds: int, tolerance: float,
) -> float:  # fmt: skip
    """Minimise the objective and return b; `right` is bool[n], and `w` float64[F], initial weights, written.

    `tolerance` is the share of the violation with all weights 0 that ends the fit. With `intercept`, b may change.
    """
    z, touched, feature, slope, active_w, target, curve = scratch
    n = problem.weight.shape[0]
    for r in range(n):
        touched.place[r] = r
        touched.c[r] = problem.weight[r]
        touched.y[r] = 1.0 if right[r] else 0.0
        touched.p[r] = 0.5
    _slopes(problem, touched, slope)
    allowed = 0.0  # violation with all weights 0
    for f in range(slope.shape[0]):
        allowed += max(0.0, abs(slope[f]) - alpha)
    allowed = allowed * tolerance + 1e-9
    scores(problem, w, b, z)
    for _ in range(rounds):
        for r in range(n):
            touched.p[r] = 1.0 / (1.0 + fast_math.exp(-z[r]))
        _slopes(problem, touched, slope)
        total, count = _violation(slope, w, alpha, feature)
        if intercept:
            intercept_slope = 0.0
            for r in range(n):
                intercept_slope += touched.c[r] * (touched.p[r] - touched.y[r])
            total += abs(intercept_slope)
        if total <= allowed:
            break
        for j in range(count):
            active_w[j] = w[feature[j]]
        share, shift = newton_step.step(
            problem, feature, count, active_w, target, curve, touched, n, alpha, PASSES, intercept
        )
        if share == 0.0:
            break
        for j in range(count):
            w[feature[j]] = active_w[j]
        b += shift
        for r in range(n):
            z[r] += share * touched.d[r]
    return b


# -- Python


def solve(
    problem: NewtonProblem, right: Bools, alpha: float, w: Float64s, b: float, intercept: bool = True,
    rounds: int = ROUNDS, tolerance: float = TOLERANCE,
) -> float:  # fmt: skip
    """Fit a router and return its intercept; the parameters are those of `fit`."""
    n, features = len(problem.weight), len(w)
    scratch = RouterScratch(
        np.empty(n), newton_step.new_touched(n), np.empty(features, np.int32), *(np.empty(features) for _ in range(4))
    )
    return fit(problem, right, float(alpha), intercept, w, float(b), scratch, rounds, float(tolerance))
