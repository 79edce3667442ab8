"""Keep learned numbers finite: refuse examples that could cause an overflow, and find steps that need no check.

Source    The project's own.
Cost      One pass over the features of an example (`survey`) and a few comparisons per step (`is_safe`).
Names     x a value | N largest |x| of a feature | G, S, T, w, u, s, g2 as in `gd` and `weight_table`.
Differs   from VW, in which weights and sums can become infinite or NaN. With `--vw_exact` they can here as well,
          because nothing is checked then (`UpdateRule.checked`).
Idea      Float32 ends at 2**128. A sum of numbers below 2**103 never overflows: from 2**127 on, adding one of them
          changes nothing. So it is enough to bound what one step adds to a sum. `survey` stores the squares of the
          smallest and the largest |value| of each example; from these `is_safe` finds by a few comparisons of scalars
          whether a step of the binary learner needs no check. Any other step is taken, then checked, and undone if a
          number is no longer finite (`gd.learn`).

Examples with values or weights that are infinite or NaN are never learned, nor those whose weight is below
LEAST_WEIGHT, because what is divided by sums of such weights is not finite. The learners that do not check their steps
(trees of AdaGrad regressors, the softmax tree) have a `largest_step`. If they scale examples to length 1, it bounds the
weight of an example, otherwise max(1, weight) * max(1, value**2). Below the bound none of their sums can overflow;
examples above it are not learned.

The bounds on which `is_safe` relies, with AdaGrad at the exponent -1/2 or without AdaGrad, and with or without
normalisation; x is a value of the example, N the largest |x| of its feature:

    G    grows by g2 x**2 <= 2**100, and is at least 2**-140 where x is used, so that no rate is infinite
    rate times x**2 is at most 1 / sqrt(g2), or 1 without G; so s times the sum of rate * x**2, the argument of exp, is
         finite
    u    is at most 128 s (|slope| + 1) < 2**50; with the invariant step, u times this sum is at most |slope| + 2**8
    w    grows by u * scale * x * rate: at most 2**20 / |x| <= 2**83 with the invariant step of logistic and squared
         loss, otherwise rate of the rule * sqrt(weight) * scale / |x| <= 2**10 * 2**20 * 2**20 * 2**40; with N alone
         s * |slope| * scale / |x| <= 2**20 * 2**20 * 2**20 * 2**40; without G and N 2**50 * |x| <= 2**100
    S, T are float64 but used as float32: with weight <= 2**40 they would take 2**80 examples to overflow;
         T <= 2**20 S bounds `scale`.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

import numpy as np

from ..array_types import Bools, Float32s, Int64s, UInt8s
from ..data.batch import Batch
from ..kernels.constants import INFINITE, ONE, ZERO
from ..kernels.jit import bare, jit
from .update_rule import UpdateRule

EXAMPLE_SKIPPED = 1  # in `StepGuard.skipped`: the example is not learned
STEP_SKIPPED = 2  # in `StepGuard.skipped`: a step of the example was skipped
MOST_FEATURES = 1 << 20  # most features of an example whose steps are known to be safe
LARGEST_VALUE = np.float32(2.0**50)  # largest |value| of such an example
SMALLEST_SQUARE = np.float32(1.17549435e-38)  # smaller squares are raised to this, see `gd`
HUGE_VALUE = np.float32(1.8446743e19)  # squares of larger values overflow float32
MEAN_NORM = 2.0**-20  # least S / T that is known to be safe
LARGEST_STEP = 2.0**98  # see `largest_step`
LEAST_WEIGHT = np.float32(1e-30)  # of an example that is learned, unless it is learned as VW does
LEAST_SLOPE = 2.0**-100  # see `least_slope`
LARGEST = np.float32(np.finfo(np.float32).max)
ORDINARY_RANGE = np.array([1, 1, LEAST_SLOPE], np.float32)


class StepGuard(NamedTuple):
    """Hold what kernels need to know about the values of a batch, and mark examples with skipped steps."""

    now: Int64s  # int64[1], index of the current example
    skipped: UInt8s  # uint8[n], 0, EXAMPLE_SKIPPED or STEP_SKIPPED
    value_range: Float32s  # float32[n, 3], squares of least and largest |value|, and `least_slope`; see `survey`


def idle_guard() -> StepGuard:
    """Return the guard of a single example with ordinary values."""
    return StepGuard(np.zeros(1, np.int64), np.zeros(1, np.uint8), ordinary_value_range(1))


def ordinary_value_range(n: int) -> Float32s:
    """Return the value ranges of n examples with values of 1, as float32[n, 3]."""
    ranges = np.empty((n, 3), np.float32)
    ranges[:] = ORDINARY_RANGE
    return ranges


GuardedTable = TypeVar(
    "GuardedTable", bound=tuple[Any, ...]
)  # a `weight_table.WeightTable`, whose last field is the guard


def guarded(table: GuardedTable, guard: StepGuard) -> GuardedTable:
    """Return a table for one thread, with the guard of a batch."""
    guard = StepGuard(np.zeros(1, np.int64), guard.skipped, guard.value_range)
    return tuple.__new__(type(table), (*table[:-1], guard))  # `_replace` takes three times as long


def clean(batch: Batch) -> tuple[Batch, Bools | None]:
    """Replace values and weights that are not finite; return the batch, itself or a copy, and the examples with them.

    An infinite value becomes the largest float of its sign, NaN becomes 0, and a weight that is not finite becomes 0.
    The examples are bool[n], or None if there are none.
    """
    begin, end = int(batch.start[0]), int(batch.start[-1])
    if batch.columns and not all_finite(batch.dense.reshape(-1), batch.weight[:0]):
        wrong = np.flatnonzero(~np.isfinite(batch.dense).all(axis=1))
        batch, replaced = clean(batch._replace(dense=np.nan_to_num(batch.dense)))
        replaced = np.zeros(batch.n, bool) if replaced is None else replaced
        replaced[wrong] = True
        return batch, replaced
    if all_finite(batch.value[begin:end], batch.weight):
        return batch, None
    replaced = ~np.isfinite(batch.weight)
    places = begin + np.flatnonzero(~np.isfinite(batch.value[begin:end]))
    weight = np.where(replaced, ZERO, batch.weight)
    replaced[np.searchsorted(batch.start, places, side="right") - 1] = True
    return batch._replace(value=np.nan_to_num(batch.value), weight=weight), replaced


def largest_step(rate: float) -> float:
    """Return the bound on max(1, weight) * max(1, value**2) below which AdaGrad at this learning rate stays finite.

    An example adds at most 16 times this product to a G, and at most 16 times rate * product to a weight.
    """
    return LARGEST_STEP / max(1.0, rate) if rate <= LARGEST_STEP else 0.0


# -- kernels


@jit
def all_finite(values: Float32s, weights: Float32s) -> bool:
    finite = True
    for x in values:
        finite &= abs(x) <= LARGEST
    for weight in weights:
        finite &= abs(weight) <= LARGEST
    return finite


@bare
def least_slope(smallest: np.float64) -> np.float32:
    """Return the smallest g2 for which sums and rates stay positive and finite if all x**2 are at least `smallest`."""
    return np.float32(max(LEAST_SLOPE, 2.0**-140 / smallest, 2.0**-240 / (smallest * smallest)))


@bare
def survey(
    batch: Batch, learns: Bools, exact: bool, largest_step: float, scaled: bool, skipped: UInt8s, value_range: Float32s
) -> None:
    """Examine the values of every example, fill `value_range`, and mark examples that cannot be learned in `skipped`.

    Parameters
    ----------
    learns : bool[n], examples to be learned
    exact : learn as VW does: refuse no example, and only mark values so large that vectorised kernels cannot be used
    largest_step : bound of the learner, see `largest_step`
    scaled : whether the learner scales examples, so that `largest_step` bounds the weight alone
    skipped : uint8[n], written
    value_range : float32[n, 3], written
    """
    for i in range(len(learns)):
        smallest, largest = ONE, ONE
        for f in range(batch.start[i], batch.start[i + 1]):
            size = abs(batch.value[f])
            smallest = min(smallest, size)
            largest = max(largest, size)
        if exact:
            value_range[i, 0] = ONE
            value_range[i, 1] = INFINITE if largest > HUGE_VALUE else ONE
            value_range[i, 2] = np.float32(LEAST_SLOPE)
            continue
        if learns[i]:
            weight = np.float64(batch.weight[i])
            large = weight if scaled else max(weight, 1.0) * np.float64(largest) * np.float64(largest)
            if not large <= largest_step or 0.0 < weight < LEAST_WEIGHT:
                skipped[i] = EXAMPLE_SKIPPED
        if largest > LARGEST_VALUE or batch.start[i + 1] - batch.start[i] > MOST_FEATURES:
            value_range[i, 0], value_range[i, 1], value_range[i, 2] = ZERO, INFINITE, INFINITE
        else:
            small = max(smallest * smallest, SMALLEST_SQUARE)
            value_range[i, 0], value_range[i, 1], value_range[i, 2] = (
                small,
                largest * largest,
                least_slope(np.float64(small)),
            )


@bare
def is_plain(guard: StepGuard) -> bool:
    """Return whether the current example has no huge value."""
    plain: bool = guard.value_range[guard.now[0], 1] < INFINITE
    return plain


@bare
def mark_step_skipped(guard: StepGuard) -> None:
    guard.skipped[guard.now[0]] = STEP_SKIPPED


@bare
def is_safe(rule: UpdateRule, guard: StepGuard, weight: np.float32, g2: np.float32, s: np.float32) -> bool:
    """Return whether a step can be taken unchecked, if S and T allow it too (`gd.norms_are_safe`).

    `g2` is weight * slope**2, and `s` is learning rate * weight.
    """
    if not (rule.bounds_hold and weight <= 2.0**40 and s <= 2.0**20 and g2 <= 2.0**40 * np.float64(weight)):
        return False
    smallest, largest = guard.value_range[guard.now[0], 0], np.float64(guard.value_range[guard.now[0], 1])
    if not (np.float64(g2) * largest <= 2.0**100 and g2 >= guard.value_range[guard.now[0], 2]):
        return False
    if rule.adaptive and not rule.normalized and not np.float64(s) * s * largest <= 2.0**150 * np.float64(g2):
        return False
    no_overshoot: bool = rule.no_overshoot or smallest >= 2.0**-80
    return no_overshoot


@bare
def is_finite_sum(total: float) -> bool:
    return bool(abs(total) <= np.float64(LARGEST))
