"""Score and update the binary problems of a reduction by VW's gradient descent, the binary learner of most reductions.

Source    Duchi, Hazan, Singer 2011 (adaptive); Ross, Mineiro, Langford 2013 (normalised); Karampatziakis and
          Langford 2011 (importance invariant): together VW's default update, in VW's order and precision.
Cost      O(features of an example) to score or update a subproblem.
Names     w weight, G sum of importance * slope**2 * x**2, N largest |x| of a feature, see `weight_table` | S, T sums of
          importance * x**2 / N**2 and of importance of a subproblem | p clipped prediction | y label | g2 importance *
          slope**2 | s learning rate * importance | q change of p per unit of step | u step | scale sqrt(T / S) |
          lane: one of several subproblems updated together.
Differs   from VW, under `--layout vw`, only in that 1/sqrt(G) is exact, where some builds of VW estimate it. Without
          `--vw_exact`, steps that would lead to numbers that are not finite are skipped; see `finite`.
Idea      A reduction numbers its binary problems, called subproblems, 0, 1, ... (`sub`) and keeps their weights in a
          `weight_table`. An update rule (`update_rule`), which is made from options, says how they learn.

Reductions import the binary learner through this module, which re-exports what they need of update_rule and
weight_table.

The kernels receive an example as `place` (uint64[s], hash * width of each feature), `x` (float32[s], values) and
`count`, the number of its features, and only read these.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ..array_types import Float32s, Int, Int64s, UInt64s
from ..kernels.constants import ONE, ZERO
from ..kernels.jit import bare, on_demand
from . import finite, loss, weight_table
from .update_rule import SLOT_BYTES as SLOT_BYTES
from .update_rule import BinaryOptions as BinaryOptions
from .update_rule import UpdateRule as UpdateRule
from .update_rule import after_pass as after_pass
from .update_rule import check_memory as check_memory
from .update_rule import crowding_warning as crowding_warning
from .update_rule import make_rule as make_rule
from .update_rule import other_options as other_options
from .update_rule import resolve_defaults as resolve_defaults
from .weight_table import LOGISTIC_RANGE as LOGISTIC_RANGE
from .weight_table import WeightTable as WeightTable
from .weight_table import apply_regularisation as apply_regularisation
from .weight_table import arrays_for_prediction as arrays_for_prediction
from .weight_table import columns as columns
from .weight_table import new_table as new_table
from .weight_table import odd_width as odd_width
from .weight_table import serialize_table as serialize_table
from .weight_table import vw_width as vw_width
from .weight_table import weights_of as weights_of

TINY_X2 = finite.SMALLEST_SQUARE
TINY_X = np.float32(1.084202e-19)  # square root of TINY_X2
MOST_CONTRACTION = 1.5  # limit of |contraction| (--l2), which is at most 1 apart from rounding


# -- kernels


@bare
def clip(p: np.float32, limits: Float32s) -> np.float32:
    """Return p clipped to the label range `limits` (float32[2]), or 0 if p is NaN."""
    if math.isnan(p):
        return ZERO
    return max(limits[0], min(limits[1], p))


@bare
def widen(limits: Float32s, y: np.float32) -> None:
    """Extend the label range `limits` (float32[2], written) so that it includes y."""
    limits[0] = min(limits[0], y)
    limits[1] = max(limits[1], y)


@bare
def score(
    table: WeightTable, place: UInt64s, x: Float32s, count: Int, sub: np.uint64, initial: np.float32
) -> np.float32:
    """Return the score of a subproblem, neither clipped nor linked, as float32 summed in the order of the features."""
    if len(table.shrunk) > 0:
        return _shrunk_score(table, place, x, count, sub, initial)
    s = initial
    for f in range(count):
        s += table.flat[((place[f] + sub) & table.mask) * table.stride] * x[f]
    return s


@bare
def _shrunk_score(
    table: WeightTable, place: UInt64s, x: Float32s, count: Int, sub: np.uint64, initial: np.float32
) -> np.float32:
    """Return the score of a subproblem under --l1 and --l2."""
    own = weight_table.shrunk_of(table, sub)
    gravity, contraction = np.float32(table.shrunk[own, 0]), np.float32(table.shrunk[own, 1])
    s = initial
    for f in range(count):
        s += weight_table.truncated(table.flat[((place[f] + sub) & table.mask) * table.stride], gravity) * x[f]
    return s * contraction


@bare
def _regularise(
    table: WeightTable, rule: UpdateRule, sub: np.uint64, p: np.float32, y: np.float32, u: np.float32
) -> np.float32:
    """Update gravity and contraction for a step u; return u divided by the contraction, for weights as they are stored.

    `learn` says what gravity and contraction are.
    """
    if abs(u) > np.float32(1e-8):
        own = weight_table.shrunk_of(table, sub)
        d = np.float64(loss.slope(rule.loss, rule.tau, p, y, table.range[0], table.range[1]))
        if abs(d) > 1e-8:
            e = -np.float64(u) / d
            table.shrunk[own, 1] *= 1.0 - rule.l2 * e
            u /= np.float32(table.shrunk[own, 1])
            table.shrunk[own, 0] += e * rule.l1
        else:
            u /= np.float32(table.shrunk[own, 1])
    return u


@bare
def _rate_of(rule: UpdateRule, g: np.float32, n: np.float32) -> np.float32:
    """Return the rate of a weight whose G is g and whose N is n."""
    r = ONE
    if rule.uses_sqrt:
        if rule.adaptive:
            r = ONE / np.float32(math.sqrt(g))
        if rule.normalized:
            inverse = ONE / n
            r = r * inverse if rule.adaptive else r * (inverse * inverse)
        return r
    if rule.adaptive:
        r = np.float32(math.pow(g, -rule.power_t))
    if rule.normalized:
        r *= np.float32(math.pow(n * n, rule.power_t - ONE))
    return r


@bare
def _rescale_of(rule: UpdateRule, old: np.float32, new: np.float32) -> np.float32:
    """Return the factor that rescales a weight when the N of its feature grows from `old` to `new`."""
    if rule.uses_sqrt:
        r = old / new
        return r if rule.adaptive else r * r
    r = new / old
    return np.float32(math.pow(r * r, rule.power_t - ONE))


@bare
def mean_scale(rule: UpdateRule, sum_norm: np.float64, total: np.float64) -> np.float32:
    """Return the factor, from S and T, that compensates for examples with many or few non-zero features."""
    if rule.uses_sqrt:
        mean = np.float32(total) / np.float32(sum_norm)
        return np.float32(math.sqrt(mean)) if rule.adaptive else mean
    return np.float32(math.pow(np.float32(sum_norm) / np.float32(total), rule.power_t - ONE))


@bare
def step_scale(rule: UpdateRule, weight: np.float32, clock: np.float64) -> np.float32:
    """Return learning rate times importance, decayed by the clock if the rule is not adaptive."""
    s = rule.rate * weight
    if not rule.adaptive and rule.power_t != ZERO:
        s *= np.float32(math.pow(np.float32(clock + rule.initial_t), -rule.power_t))
    return s


@bare
def weighted(rule: UpdateRule, weight: np.float32, norm: np.float32) -> np.float64:
    """Return the contribution of an example to S, multiplied in float32, or in float64 with --vw_exact as in VW."""
    if rule.checked:
        return np.float64(weight * norm)
    return np.float64(weight) * np.float64(norm)


@bare
def learn(
    table: WeightTable, rule: UpdateRule, place: UInt64s, x: Float32s, count: Int, sub: np.uint64,
    p: np.float32, y: np.float32, weight: np.float32, clock: np.float64,
) -> None:  # fmt: skip
    """Update a subproblem with the clipped prediction p towards label y.

    This is the reference for the vectorised forms of the same update, which give the same bits: `learn_lanes` over
    subproblems (if no two share a slot), `gd_sequential.update` over features, and one-against-all over neighbouring
    classes.

    There are two passes over the features, in order. The first updates G and N, rescales weights and computes the
    rates; the second updates the weights. A slot that two features share is processed twice.

    With --l1 and --l2, every step of size e = -u / (dL/dp) multiplies all weights of the subproblem by 1 - l2 e and
    moves them by l1 e towards 0; with --vw_exact all weights of the table, as in VW. The table stores only the product
    of these factors (contraction) and the sum of these amounts (gravity), which are applied whenever a weight is read.

    A step that would lead to a number that is not finite is skipped, and the example is marked in `table.guard`.
    `clock` is the weight of the labelled examples up to and including this one.
    """
    if not loss.value(rule.loss, rule.tau, p, y, table.range[0], table.range[1]) > ZERO:
        return
    g2 = weight * loss.squared_slope(rule.loss, rule.tau, p, y)
    s = step_scale(rule, weight, clock)
    if not rule.checked or is_safe(table, rule, place, x, count, sub, weight, g2, s):
        outcome = _step(table, rule, place, x, count, sub, p, y, weight, g2, s)
    else:
        outcome = _try_step(table, rule, place, x, count, sub, p, y, weight, g2, s)
    if outcome < 0 and rule.checked:
        finite.mark_step_skipped(table.guard)
    if outcome > 0 and rule.regularized:
        own = weight_table.shrunk_of(table, sub)
        if table.shrunk[own, 1] < 1e-9 or table.shrunk[own, 0] > 1e3:
            weight_table.apply_shrunk(table, sub)


@bare
def is_safe(
    table: WeightTable, rule: UpdateRule, place: UInt64s, x: Float32s, count: Int, sub: np.uint64, weight: np.float32,
    g2: np.float32, s: np.float32,
) -> bool:  # fmt: skip
    """Return whether a step of a subproblem can be taken unchecked; see `finite`."""
    if not finite.is_safe(rule, table.guard, weight, g2, s):
        return False
    return not rule.normalized or norms_are_safe(table, place, x, count, sub, weight)


@bare
def norms_are_safe(
    table: WeightTable, place: UInt64s, x: Float32s, count: Int, sub: np.uint64, weight: np.float32
) -> bool:
    """Return whether the ratio of S to T is safe after an example.

    The N of its features are read only if the S before the example is too small for the T after it.
    """
    norm, total = table.sums[sub, 0], table.sums[sub, 1] + weight
    if total * finite.MEAN_NORM <= norm:
        return True
    largest = ONE
    for f in range(count):
        largest = max(largest, abs(x[f]))
    for f in range(count):
        at = ((place[f] + sub) & table.mask) * table.stride
        share = np.float64(x[f]) / np.float64(max(largest, table.flat[at + np.uint64(2) * table.field]))
        norm += weight * share * share
    safe: bool = total * finite.MEAN_NORM <= norm
    return safe


@bare
def _step(
    table: WeightTable, rule: UpdateRule, place: UInt64s, x: Float32s, count: Int, sub: np.uint64, p: np.float32,
    y: np.float32, weight: np.float32, g2: np.float32, s: np.float32,
) -> int:  # fmt: skip
    """Take a step; return 1, or 0 if the weights do not change, or -1 if they would not be finite."""
    flat, field = table.flat, table.field
    n_, r_ = np.uint64(2) * field, np.uint64(3) * field
    q = ONE
    scale = ONE
    if g2 != ZERO:
        q = ZERO
        norm = ZERO
        for f in range(count):
            at = ((place[f] + sub) & table.mask) * table.stride
            xv = x[f]
            x2 = xv * xv
            if x2 < TINY_X2:
                xv = TINY_X if xv > ZERO else -TINY_X
                x2 = TINY_X2
            if rule.adaptive:
                flat[at + field] += g2 * x2
            if rule.normalized:
                size = abs(xv)
                if size > flat[at + n_]:
                    if flat[at + n_] > ZERO:
                        flat[at] *= _rescale_of(rule, flat[at + n_], size)
                    flat[at + n_] = size
                norm += ONE if abs(xv) > finite.HUGE_VALUE else x2 / (flat[at + n_] * flat[at + n_])
            flat[at + r_] = _rate_of(rule, flat[at + field], flat[at + n_])
            q += x2 * flat[at + r_]
        if rule.normalized:
            table.sums[sub, 0] += weighted(rule, weight, norm)
            table.sums[sub, 1] += weight
            scale = mean_scale(rule, table.sums[sub, 0], table.sums[sub, 1])
            q *= scale
    if rule.invariant:
        u = loss.step(rule.loss, rule.tau, p, y, s, q)
    else:
        u = loss.plain_step(rule.loss, rule.tau, p, y, s)
    if rule.regularized:
        u = _regularise(table, rule, sub, p, y, u)
    if u == ZERO:
        return 0
    if u != u or (rule.checked and not math.isfinite(u)):
        return -1
    u *= scale
    for f in range(count):
        at = ((place[f] + sub) & table.mask) * table.stride
        if rule.checked or abs(x[f]) < finite.LARGEST:
            flat[at] += u * (x[f] * flat[at + r_])
    return 1


@on_demand
def _try_step(
    table: WeightTable, rule: UpdateRule, place: UInt64s, x: Float32s, count: Int, sub: np.uint64, p: np.float32,
    y: np.float32, weight: np.float32, g2: np.float32, s: np.float32,
) -> int:  # fmt: skip
    """Take a step as `_step` does, but undo it and return -1 if a number that it changes is not finite afterwards."""
    flat, field = table.flat, table.field
    saved = np.empty((count, 3), np.float32)
    for f in range(count):
        at = ((place[f] + sub) & table.mask) * table.stride
        for k in range(3):
            saved[f, k] = flat[at + np.uint64(k) * field]
    norm, total = table.sums[sub, 0], table.sums[sub, 1]
    own = weight_table.shrunk_of(table, sub)
    gravity, contraction = (table.shrunk[own, 0], table.shrunk[own, 1]) if rule.regularized else (0.0, 1.0)
    outcome = _step(table, rule, place, x, count, sub, p, y, weight, g2, s)
    all_finite = outcome >= 0 and finite.is_finite_sum(table.sums[sub, 0]) and finite.is_finite_sum(table.sums[sub, 1])
    if rule.regularized:
        all_finite = all_finite and finite.is_finite_sum(table.shrunk[own, 0])
        all_finite = all_finite and abs(table.shrunk[own, 1]) <= MOST_CONTRACTION
    for f in range(count):
        at = ((place[f] + sub) & table.mask) * table.stride
        for k in range(3):
            all_finite = all_finite and math.isfinite(flat[at + np.uint64(k) * field])
    if all_finite:
        return outcome
    for f in range(count):  # features that share a slot have the same numbers in `saved`
        at = ((place[f] + sub) & table.mask) * table.stride
        for k in range(3):
            flat[at + np.uint64(k) * field] = saved[f, k]
    table.sums[sub, 0], table.sums[sub, 1] = norm, total
    if rule.regularized:
        table.shrunk[own, 0], table.shrunk[own, 1] = gravity, contraction
    return -1


@bare
def score_lanes(
    table: WeightTable, place: UInt64s, x: Float32s, count: Int, subs: UInt64s, lanes: int, out: Float32s
) -> None:
    """Score the subproblems `subs` (uint64[lanes]) in one pass over the features; `out` is float32[lanes]."""
    flat, mask, stride = table.flat, table.mask, table.stride
    if len(table.shrunk) > 0:
        for j in range(lanes):
            out[j] = _shrunk_score(table, place, x, count, subs[j], ZERO)
        return
    for j in range(lanes):
        out[j] = ZERO
    for f in range(count):
        base = place[f]
        xv = x[f]
        for j in range(lanes):
            out[j] += flat[((base + subs[j]) & mask) * stride] * xv


class Lanes(NamedTuple):
    """Provide the inputs and the buffers of `learn_lanes`, with an element per lane in each array."""

    sub: UInt64s  # uint64[lanes], subproblem
    at: Int64s  # int64[lanes], position of the current slot in `WeightTable.flat`
    p: Float32s  # float32[lanes], clipped prediction
    y: Float32s  # float32[lanes], label, -1 or 1
    d: Float32s  # float32[lanes], e**(y p)
    g2: Float32s  # float32[lanes], squared slope, then times the importance
    g: Float32s  # float32[lanes], G of the current slot
    n: Float32s  # float32[lanes], N of the current slot, then sqrt(T / S)
    q: Float32s  # float32[lanes], change of p per unit of step
    norm: Float32s  # float32[lanes], sum of x**2 / N**2
    u: Float32s  # float32[lanes], rate of the current slot, then the step


def new_lanes(max_lanes: int) -> Lanes:
    return Lanes(
        np.empty(max_lanes, np.uint64),
        np.empty(max_lanes, np.int64),
        *(np.empty(max_lanes, np.float32) for _ in range(9)),
    )


@bare
def _lanes_are_safe(
    table: WeightTable, rule: UpdateRule, place: UInt64s, x: Float32s, count: Int, lanes: int, scratch: Lanes,
    weight: np.float32, clock: np.float64,
) -> bool:  # fmt: skip
    """Return whether the steps of all lanes can be taken unchecked; see `finite`."""
    if not finite.is_safe(rule, table.guard, weight, weight, step_scale(rule, weight, clock)):
        return False
    least = table.guard.value_range[table.guard.now[0], 2]
    safe = True
    ratios_are_safe = True
    for j in range(lanes):
        g2, k = scratch.g2[j], np.int64(scratch.sub[j])
        safe &= not g2 > ZERO or weight * g2 >= least
        ratios_are_safe &= not g2 > ZERO or (table.sums[k, 1] + weight) * finite.MEAN_NORM <= table.sums[k, 0]
    if safe and not ratios_are_safe:
        for j in range(lanes):
            if scratch.g2[j] > ZERO:
                safe = safe and norms_are_safe(table, place, x, count, scratch.sub[j], weight)
    return safe


@bare
def learn_lanes(
    table: WeightTable, rule: UpdateRule, place: UInt64s, x: Float32s, count: Int, lanes: int, scratch: Lanes,
    weight: np.float32, clock: np.float64,
) -> None:  # fmt: skip
    """Update several different subproblems on one example, as `learn` would one after the other.

    One pass over the features serves all lanes, and the arithmetic between loading and storing runs over neighbouring
    lanes, so that it vectorises. Only if two lanes share a slot do the results differ from those of `learn`: each lane
    then reads what the other stored at an earlier feature.

    `sub`, `p` and `y` of `scratch` are read for each lane; all its arrays are written.
    """
    fast = rule.adaptive and rule.normalized and rule.invariant and rule.uses_sqrt and rule.loss == loss.LOGISTIC
    fast = fast and not rule.regularized and finite.is_plain(table.guard)
    if fast:
        loss.logistic_slopes(scratch.p, scratch.y, scratch.d, scratch.g2, lanes)
        fast = not rule.checked or _lanes_are_safe(table, rule, place, x, count, lanes, scratch, weight, clock)
    if not fast:
        _learn_one_by_one(table, rule, place, x, count, lanes, scratch.sub, scratch.p, scratch.y, weight, clock)
        return
    flat, mask = table.flat, table.mask
    sub, at, p, y = scratch.sub, scratch.at, scratch.p, scratch.y
    d, g2, g, n, q, norm, u = scratch.d, scratch.g2, scratch.g, scratch.n, scratch.q, scratch.norm, scratch.u
    active = 0
    for j in range(lanes):  # drop lanes without loss
        if g2[j] > ZERO:
            sub[active], p[active], y[active], d[active] = sub[j], p[j], y[j], d[j]
            g2[active] = weight * g2[j]
            q[active] = ZERO
            norm[active] = ZERO
            active += 1
    for f in range(count):
        base = place[f]
        xv = x[f]
        x2 = xv * xv
        if x2 < TINY_X2:
            xv = TINY_X if xv > ZERO else -TINY_X
            x2 = TINY_X2
        size = abs(xv)
        grown = False
        for j in range(active):
            i = np.int64(((base + sub[j]) & mask) << np.uint64(2))
            at[j] = i
            g[j] = flat[i + 1]
            n[j] = flat[i + 2]
        for j in range(active):
            grown |= n[j] < size
        if grown:
            for j in range(active):
                if n[j] < size:
                    if n[j] > ZERO:
                        flat[at[j]] *= n[j] / size
                    n[j] = size
                    flat[at[j] + 2] = size
        for j in range(active):
            g[j] += g2[j] * x2
            u[j] = (ONE / np.float32(math.sqrt(g[j]))) * (ONE / n[j])
            q[j] += x2 * u[j]
            norm[j] += x2 / (n[j] * n[j])
        for j in range(active):
            flat[at[j] + 1] = g[j]
            flat[at[j] + 3] = u[j]
    for j in range(active):
        k = np.int64(sub[j])
        table.sums[k, 0] += weighted(rule, weight, norm[j])
        table.sums[k, 1] += weight
        n[j] = np.float32(math.sqrt(np.float32(table.sums[k, 1]) / np.float32(table.sums[k, 0])))
        q[j] *= n[j]
    loss.logistic_steps(p, y, d, step_scale(rule, weight, clock), q, u, active)
    moved = 0
    for j in range(active):  # drop lanes without a finite step, whose rates may be infinite
        if u[j] != ZERO and math.isfinite(u[j]):
            sub[moved], u[moved] = sub[j], u[j] * n[j]
            moved += 1
    for f in range(count):
        base = place[f]
        xv = x[f]
        for j in range(moved):
            i = np.int64(((base + sub[j]) & mask) << np.uint64(2))
            flat[i] += u[j] * (xv * flat[i + 3])


@on_demand
def _learn_one_by_one(
    table: WeightTable, rule: UpdateRule, place: UInt64s, x: Float32s, count: Int, lanes: int, subs: UInt64s,
    p: Float32s, y: Float32s, weight: np.float32, clock: np.float64,
) -> None:  # fmt: skip
    """Update the subproblems `subs` by any rule and loss."""
    for j in range(lanes):
        learn(table, rule, place, x, count, subs[j], p[j], y[j], weight, clock)
