"""Fit a leaf of a softmax tree, an L1-regularised softmax, by block coordinate descent.

Source    `newton_step` for the blocks; intercepts by Darroch, Ratcliff, "Generalized Iterative Scaling", 1972.
Idea      min over w, b of  sum_n c_n [log(sum_c exp(z_nc)) - z_ny]  +  alpha sum_c |w_c|_1,  with  z_nc = w_c.x_n +
          b_c and y the class of row n. The intercepts have no penalty.
          A block consists of the weights of one class; one `newton_step` updates them while those of the other classes
          are fixed. A sweep updates the blocks of all classes in turn. Few features of a class are active: those whose
          weight is not 0 and those that a screening adds. A row with an active feature is touched; in all other rows
          the score of the class is its intercept b_c. Only the touched rows are visited, and precomputed sums stand for
          the others.
              S_n = sum_c exp(z_nc) is kept up to date, B_f = sum_n c_n x_nf / S_n is recomputed by screenings. The
              slope of the loss in a weight w_cf is
              exp(b_c) B_f + sum over touched n of x_nf c_n (exp(z_nc) - exp(b_c)) / S_n - sum over n in c of c_n x_nf
          Some sweeps are screenings, in which features whose slope exceeds alpha in size become active. In other sweeps
          only weights that are not 0 are updated. After every sweep log(weight of the class's rows / weight that the
          model gives the class) is added to each intercept, which lowers the objective too, and S is recomputed.
Cost      A sweep passes about three times over the columns of all features with a weight, class by class; a screening
          passes over the touched rows once more.
Names     k classes | n number of rows, or a row | F features | c a class; c_n the importance of row n | x_nf value of
          feature f in row n | T number of touched rows, which are numbered t
Differs   from the paper (docs/papers.md says why, and what it costs):
          * with `--leaf_solver exact` leaves are fitted by coordinate descent
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ...array_types import Bools, Float64s, Int, Int32s, Int64s
from ...kernels import fast_math
from ...kernels.jit import jit
from . import newton_step
from .newton_step import NewtonProblem, Touched

SWEEPS = 60
SCREENED = 3  # sweeps from one screening to the next
TOLERANCE = 1e-4  # share of the objective by which a sweep has to lower it for another sweep to follow
PASSES = 3  # rounds of coordinate descent per Newton step, at most
SHARES = (0.5, 0.25, 0.1)  # of the steepest slope, required for a feature to become active in the first screenings
LEAST_CHANGE = 1e-3  # a class is skipped until the next screening if its scores changed by less than this
FIRST_CAPACITY = 1 << 12
NEGLIGIBLE = 1e-7  # slopes of rows smaller than this share of alpha are ignored in screening
MOST_P = 1.0 - 1e-12  # limit of a probability, so that the exponentials of the other classes have a sum above 0
LEAST_MASS = 1e-300


class LeafWeights(NamedTuple):
    """Hold the weights of the classes; those of class c are `value[start[c]:start[c + 1]]`."""

    start: Int64s  # int64[k + 1]
    feature: Int32s  # int32[...], with spare capacity at the end
    value: Float64s  # float64[...]


class State(NamedTuple):
    """Hold the classes, and the sums that are kept up to date while they are updated in turn."""

    class_start: Int64s  # int64[k + 1], class c has the rows class_start[c] .. class_start[c + 1] - 1
    bias: Float64s  # float64[k], b
    mass: Float64s  # float64[n], S
    skipped: Bools  # bool[k], whether a class is skipped until the next screening


class Screening(NamedTuple):
    """Hold the parameters of a search for active features."""

    share: float  # of the steepest slope, required to become active; negative without screening
    back: Float64s  # float64[F], B
    order: Int32s  # int32[F], features by descending abs(B)


class ExactScratch(NamedTuple):
    """Provide buffers for one class at a time."""

    row: Int32s  # int32[n], the touched rows, by t
    z: Float64s  # float64[n], by t: the score without the intercept
    row_mark: Int32s  # int32[n], number of the last visit that touched the row
    seen: Int32s  # int32[F], features whose slope was computed
    seen_mark: Int32s  # int32[F], number of the last visit that computed the slope
    active: Int32s  # int32[F], active features
    active_mark: Int32s  # int32[F], number of the last visit in which the feature was active
    w: Float64s  # float64[F] each
    target: Float64s
    curve: Float64s
    slope: Float64s
    visit: Int32s  # int32[1], number of visits to a class


# -- kernels


@jit
def _touch(
    problem: NewtonProblem, begin_w: Int, end_w: Int, feature: Int32s, value: Float64s, touched: Touched,
    scratch: ExactScratch, mark: Int,
) -> int:  # fmt: skip
    """Collect the rows that a class's features touch, and their scores; return their number."""
    size = 0
    for j in range(begin_w, end_w):
        f = feature[j]
        w = value[j]
        for i in range(problem.col_start[f], problem.col_start[f + 1]):
            r = problem.col_row[i]
            if scratch.row_mark[r] != mark:
                scratch.row_mark[r] = mark
                touched.place[r] = size
                scratch.row[size] = r
                scratch.z[size] = 0.0
                size += 1
            scratch.z[touched.place[r]] += w * np.float64(problem.col_value[i])
    return size


@jit
def background(problem: NewtonProblem, mass: Float64s, back: Float64s) -> None:
    """Compute B of every feature into `back` (float64[F]) from S in `mass` (float64[n])."""
    back[:] = 0.0
    for r in range(problem.weight.shape[0]):
        u = problem.weight[r] / mass[r]
        for i in range(problem.row_start[r], problem.row_start[r + 1]):
            back[problem.row_feature[i]] += u * np.float64(problem.row_value[i])


@jit
def _add_slopes(
    problem: NewtonProblem, r: Int, u: float, base: float, back: Float64s, scratch: ExactScratch, mark: Int, count: int
) -> int:
    """Add a row's part to the slopes of its features; return the number of slopes computed so far."""
    for i in range(problem.row_start[r], problem.row_start[r + 1]):
        f = problem.row_feature[i]
        if scratch.seen_mark[f] != mark:
            scratch.seen_mark[f] = mark
            scratch.seen[count] = f
            scratch.slope[f] = base * back[f]
            count += 1
        scratch.slope[f] += u * np.float64(problem.row_value[i])
    return count


@jit
def _screen(
    problem: NewtonProblem, low: Int, high: Int, base: float, mass: Float64s, screening: Screening, touched: Touched,
    size: int, scratch: ExactScratch, mark: Int, alpha: float, count: int,
) -> int:  # fmt: skip
    """Append features that become active to the `count` active ones; return the number of active features.

    A feature becomes active if its slope exceeds both alpha and a share of the steepest slope.
    """
    share, back, order = screening
    known = 0
    for t in range(size):
        r = scratch.row[t]
        u = problem.weight[r] * (touched.p[t] - base / mass[r])
        if abs(u) > NEGLIGIBLE * alpha:
            known = _add_slopes(problem, r, u, base, back, scratch, mark, known)
    for r in range(low, high):
        known = _add_slopes(problem, r, -problem.weight[r], base, back, scratch, mark, known)
    limit = alpha
    for j in range(known):
        limit = max(limit, share * abs(scratch.slope[scratch.seen[j]]))
    for j in range(known):
        f = scratch.seen[j]
        if abs(scratch.slope[f]) > limit and scratch.active_mark[f] != mark:
            scratch.active[count] = f
            scratch.w[count] = 0.0
            count += 1
    for j in range(order.shape[0]):
        f = order[j]
        if base * abs(back[f]) <= limit:
            break
        if scratch.seen_mark[f] != mark and scratch.active_mark[f] != mark:
            scratch.active[count] = f
            scratch.w[count] = 0.0
            count += 1
    return count


@jit
def sweep(
    problem: NewtonProblem, state: State, old: LeafWeights, new: LeafWeights, screening: Screening, touched: Touched,
    scratch: ExactScratch, alpha: float, intercept: bool, begin: int,
) -> int:  # fmt: skip
    """Update the weights of the classes from `begin` on; return the first class for which `new` lacks capacity, or k.

    `new` receives the weights after the sweep. With `intercept`, intercepts may change.
    """
    class_start, bias, mass, skipped = state
    share = screening.share
    k = bias.shape[0]
    features = screening.back.shape[0]
    for c in range(begin, k):
        used = new.start[c]
        if used + features > new.feature.shape[0]:
            return c
        if skipped[c] and share < 0.0:
            for j in range(old.start[c], old.start[c + 1]):
                new.feature[used] = old.feature[j]
                new.value[used] = old.value[j]
                used += 1
            new.start[c + 1] = used
            continue
        scratch.visit[0] += 1
        mark = scratch.visit[0]
        base = fast_math.exp(bias[c])
        low, high = class_start[c], class_start[c + 1]
        size = _touch(problem, old.start[c], old.start[c + 1], old.feature, old.value, touched, scratch, mark)
        for t in range(size):
            touched.p[t] = min(base * fast_math.exp(scratch.z[t]) / mass[scratch.row[t]], MOST_P)
        count = 0
        for j in range(old.start[c], old.start[c + 1]):
            scratch.active[count] = old.feature[j]
            scratch.active_mark[old.feature[j]] = mark
            scratch.w[count] = old.value[j]
            count += 1
        if share >= 0.0:
            before = count
            count = _screen(problem, low, high, base, mass, screening, touched, size, scratch, mark, alpha, count)
            for j in range(before, count):
                f = scratch.active[j]
                for i in range(problem.col_start[f], problem.col_start[f + 1]):
                    r = problem.col_row[i]
                    if scratch.row_mark[r] != mark:
                        scratch.row_mark[r] = mark
                        touched.place[r] = size
                        scratch.row[size] = r
                        scratch.z[size] = 0.0
                        touched.p[size] = min(base / mass[r], MOST_P)
                        size += 1
        all_rows = intercept and 2 * size >= mass.shape[0]
        if all_rows:
            for r in range(mass.shape[0]):
                if scratch.row_mark[r] != mark:
                    touched.place[r] = size
                    scratch.row[size] = r
                    touched.p[size] = min(base / mass[r], MOST_P)
                    size += 1
        for t in range(size):
            r = scratch.row[t]
            touched.c[t] = problem.weight[r]
            touched.y[t] = 1.0 if low <= r < high else 0.0
        skipped[c] = True
        if count > 0:
            step_share, shift = newton_step.step(
                problem, scratch.active, count, scratch.w, scratch.target, scratch.curve, touched, size, alpha, PASSES,
                all_rows,
            )  # fmt: skip
            if step_share > 0.0:
                bias[c] += shift
                for t in range(size):
                    r = scratch.row[t]
                    if abs(touched.d[t]) > LEAST_CHANGE:
                        skipped[c] = False
                    exponential = touched.p[t] * mass[r]
                    mass[r] = max(mass[r] + exponential * (fast_math.exp(step_share * touched.d[t]) - 1.0), LEAST_MASS)
        for j in range(count):
            if scratch.w[j] != 0.0:
                new.feature[used] = scratch.active[j]
                new.value[used] = scratch.w[j]
                used += 1
        new.start[c + 1] = used
    return k


@jit
def update_intercepts(
    problem: NewtonProblem, state: State, weights: LeafWeights, touched: Touched, scratch: ExactScratch, alpha: float,
    intercept: bool, fresh: Float64s,
) -> float:  # fmt: skip
    """Return the objective, then update the intercepts if they may change, and recompute S.

    `fresh` is float64[n, 2], scratch: for each row the exponentials of the classes that touch it, with and without
    weights.
    """
    class_start, bias, mass, _ = state
    n = problem.weight.shape[0]
    inverse = 0.0
    total = 0.0
    for r in range(n):
        inverse += problem.weight[r] / mass[r]
        total += problem.weight[r] * math.log(mass[r])
        fresh[r, 0] = fresh[r, 1] = 0.0
        touched.curve[r] = 0.0
    everywhere = 0.0
    for c in range(bias.shape[0]):
        scratch.visit[0] += 1
        mark = scratch.visit[0]
        low, high = class_start[c], class_start[c + 1]
        size = _touch(
            problem, weights.start[c], weights.start[c + 1], weights.feature, weights.value, touched, scratch, mark
        )
        base = fast_math.exp(bias[c])
        model_weight = base * inverse
        row_weight = 0.0
        for r in range(low, high):
            row_weight += problem.weight[r]
            total -= problem.weight[r] * bias[c]
        for t in range(size):
            r = scratch.row[t]
            e = base * fast_math.exp(scratch.z[t])
            touched.d[t] = e
            model_weight += problem.weight[r] * (e - base) / mass[r]
            if low <= r < high:
                total -= problem.weight[r] * scratch.z[t]
        for j in range(weights.start[c], weights.start[c + 1]):
            total += alpha * abs(weights.value[j])
        scale = 1.0
        if intercept and model_weight > 0.0 and row_weight > 0.0:
            shift = min(max(math.log(row_weight / model_weight), -3.0), 3.0)
            bias[c] += shift
            scale = fast_math.exp(shift)
        everywhere += base * scale
        for t in range(size):
            r = scratch.row[t]
            fresh[r, 0] += touched.d[t] * scale
            fresh[r, 1] += base * scale
            touched.curve[r] += 1.0
    for r in range(n):
        rest = everywhere - fresh[r, 1] if touched.curve[r] < bias.shape[0] else 0.0  # where nothing is left but error
        mass[r] = max(fresh[r, 0] + max(rest, 0.0), LEAST_MASS)
    return total


# -- Python


def empty_weights(classes: int, capacity: int = 0) -> LeafWeights:
    return LeafWeights(np.zeros(classes + 1, np.int64), np.empty(capacity, np.int32), np.empty(capacity))


def first_bias(problem: NewtonProblem, class_start: Int64s) -> Float64s:
    """Return the intercepts (float64[k]) that give each class its share of the weight of the rows."""
    shares = np.add.reduceat(problem.weight, class_start[:-1]) / problem.weight.sum()
    return np.log(shares)


def solve(
    problem: NewtonProblem, class_start: Int64s, alpha: float, weights: LeafWeights, bias: Float64s,
    intercept: bool = True, sweeps: int = SWEEPS, tol: float = TOLERANCE, stopped: Callable[[], bool] = lambda: False,
) -> tuple[LeafWeights, float]:  # fmt: skip
    """Fit a softmax; return its weights, whose arrays may have spare capacity, and the objective.

    Parameters
    ----------
    class_start : int64[k + 1], class c has the rows class_start[c] .. class_start[c + 1] - 1
    weights, bias : initial weights, and initial intercepts, float64[k], written
    intercept : whether intercepts may change
    sweeps : most sweeps
    tol : share of the objective by which a sweep has to lower it for another sweep to follow
    stopped : called after every sweep; True ends the fit
    """
    n, features, k = len(problem.weight), len(problem.col_start) - 1, len(bias)
    alpha = float(alpha)
    touched = newton_step.new_touched(n)
    w, target, curve, slope = (np.empty(features) for _ in range(4))
    scratch = ExactScratch(
        np.empty(n, np.int32), np.empty(n), np.zeros(n, np.int32), np.empty(features, np.int32),
        np.zeros(features, np.int32), np.empty(features, np.int32), np.zeros(features, np.int32),
        w, target, curve, slope, np.zeros(1, np.int32),
    )  # fmt: skip
    warm = int(weights.start[-1]) > 0
    fresh, back = np.empty((n, 2)), np.empty(features)
    state = State(class_start, bias, np.ones(n), np.zeros(k, bool))
    update_intercepts(problem, state, weights, touched, scratch, alpha, False, fresh)
    last_objective = update_intercepts(problem, state, weights, touched, scratch, alpha, intercept, fresh)
    order = np.empty(0, np.int32)
    screenings, sweeps_since = 0, 0
    screens = True
    for _ in range(sweeps):
        share = -1.0
        if screens:
            background(problem, state.mass, back)
            order = np.argsort(-np.abs(back), kind="stable").astype(np.int32)
            share = SHARES[screenings] if not warm and screenings < len(SHARES) else 0.0
            screenings += 1
        used = int(weights.start[-1])
        new = empty_weights(k, FIRST_CAPACITY + used * 2 + features)
        at = 0
        while True:
            screening = Screening(share, back, order)
            at = sweep(problem, state, weights, new, screening, touched, scratch, alpha, intercept, at)
            if at == k:
                break
            more = len(new.feature) + features
            new = LeafWeights(
                new.start, np.concatenate([new.feature, np.empty(more, np.int32)]),
                np.concatenate([new.value, np.empty(more)]),
            )  # fmt: skip
        weights = new
        objective = update_intercepts(problem, state, weights, touched, scratch, alpha, intercept, fresh)
        converged = last_objective - objective <= tol * abs(objective)
        last_objective = objective
        if stopped() or (converged and share == 0.0):
            break
        sweeps_since = 0 if screens else sweeps_since + 1
        screens = converged or share > 0.0 or sweeps_since + 1 >= SCREENED
    return weights, update_intercepts(problem, state, weights, touched, scratch, alpha, False, fresh)
