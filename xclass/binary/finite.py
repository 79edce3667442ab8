"""Keep what is learned finite: which examples may be learned from, and which steps are known to be safe.

Idea      Float32 ends at 2**128. A sum of numbers below 2**103 never gets there: from 2**127 on, adding one of them
          changes nothing. So it is enough to bound what one step adds to a sum. `survey` looks at every example once
          and notes the squares of its smallest and largest |value|; with these `is_safe` decides by a few comparisons
          of scalars whether a step of the binary learner can be taken as it is. Other steps are tried, looked at and
          taken back if a number is no longer finite (`gd.learn`).
Refused   Examples with values or weights that are infinite or NaN are never learned from. Learners that scale
          examples to length 1 (trees of AdaGrad regressors, the softmax tree) have a `largest_step`, a bound on the
          weight below which none of their sums can overflow, and examples above it are not learned from either; where
          they do not scale, the bound is one on max(1, weight) * max(1, value**2).
VW        `--vw_exact` learns as VW does, non-finite numbers included: there nothing is checked (`Rule.checked`).

Bounds of `is_safe`, for AdaGrad with G**-1/2 or without, normalised or not; x a value, N its largest, n features:

    G    grows by g2 x**2 <= 2**100, and is at least 2**-140 where x is used, so that no rate is infinite
    rate times x**2 is at most 1 / sqrt(g2), or 1 without G; so its sum times s, which goes into exp, is finite
    u    is at most 128 s (|slope| + 1) < 2**50; with the invariant step u times that sum is at most |slope| + 2**8
    w    grows by u * scale * x * rate: at most 2**20 / |x| <= 2**83 with the invariant step of logistic and squared
         loss, otherwise rate of the rule * sqrt(weight) * scale / |x| <= 2**10 * 2**20 * 2**20 * 2**40; with N alone
         s * |slope| * scale / |x| <= 2**20 * 2**20 * 2**20 * 2**40; without G and N 2**50 * |x| <= 2**100
    S, T are float64 but used as float32: with weight <= 2**40 they would take 2**80 examples to overflow;
         T <= 2**20 S bounds `scale`.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol, TypeVar

import numpy as np

from ..array_types import Bools, Float32s, Int64s, UInt8s
from ..data.batch import Batch
from ..kernels.constants import ONE, ZERO
from ..kernels.jit import bare, jit
from .update_rule import Rule

REFUSED = 1  # in `Watch.missed`: the example is not learned from
STEP = 2  # some step of the example was not taken
MOST_FEATURES = 1 << 20  # of an example whose steps can be safe
LARGEST_VALUE = np.float32(2.0**50)  # the same
SMALLEST_SQUARE = np.float32(1.17549435e-38)  # smaller squares count as this, see `gd`
HUGE_VALUE = np.float32(1.8446743e19)  # larger ones have no square in float32
MEAN_NORM = 2.0**-20  # of x**2 / N**2, summed over an example: safe from here on
LARGEST_STEP = 2.0**98
LEAST_SLOPE = 2.0**-100
LARGEST = np.float32(np.finfo(np.float32).max)
INFINITE = np.float32(np.inf)


class Watch(NamedTuple):
    """What kernels know of the examples of a batch, and where they note whose steps were not taken."""

    now: Int64s  # int64[1], the example at hand
    missed: UInt8s  # uint8[n], 0, REFUSED or STEP
    span: Float32s  # float32[n, 3], squares of the smallest and largest |value| and `least_slope`, see `survey`


def idle_watch() -> Watch:
    """A watch over one example of ordinary values."""
    return Watch(np.zeros(1, np.int64), np.zeros(1, np.uint8), ordinary_span(1))


def ordinary_span(n: int) -> Float32s:
    """The span of n examples whose values are 1."""
    return np.tile(np.array([1, 1, LEAST_SLOPE], np.float32), (n, 1))


class _Surveyed(Protocol):
    """What `survey` found about a batch, see `reductions.core.contract.BatchTask`."""

    @property
    def missed(self) -> UInt8s: ...

    @property
    def span(self) -> Float32s: ...


class _Watching(Protocol):
    def _replace(self: Watching, *, watch: Watch) -> Watching: ...


Watching = TypeVar("Watching", bound=_Watching)  # a `weight_table.Table`


def watched(table: Watching, task: _Surveyed) -> Watching:
    """A table as one thread uses it for a batch."""
    return table._replace(watch=Watch(np.zeros(1, np.int64), task.missed, task.span))


def clean(batch: Batch) -> tuple[Batch, Bools | None]:
    """The batch with numbers in place of values and weights that are none, and which examples had such: bool[n].

    A value that is too large becomes the largest float, NaN becomes 0, and a weight of either kind becomes 0.
    """
    begin, end = int(batch.start[0]), int(batch.start[-1])
    if _all_finite(batch.value[begin:end]) and _all_finite(batch.weight):
        return batch, None
    odd = ~np.isfinite(batch.weight)
    places = begin + np.flatnonzero(~np.isfinite(batch.value[begin:end]))
    weight = np.where(odd, ZERO, batch.weight)
    odd[np.searchsorted(batch.start, places, side="right") - 1] = True
    return batch._replace(value=np.nan_to_num(batch.value), weight=weight), odd


def _all_finite(numbers: Float32s) -> bool:
    return len(numbers) == 0 or bool(numbers.min() >= -LARGEST and numbers.max() <= LARGEST)


def largest_step(rate: float) -> float:
    """The bound on max(1, weight) * max(1, value**2) for AdaGrad steps of this rate on examples of length 1.

    G grows by at most 16 times that, and so does a weight by at most 16 times the rate times that.
    """
    return LARGEST_STEP / max(1.0, rate) if rate <= LARGEST_STEP else 0.0


# -- kernels


@bare
def least_slope(least: np.float64) -> np.float32:
    """The smallest g2 with which sums and rates stay above 0 and finite for values whose squares are at least this."""
    return np.float32(max(LEAST_SLOPE, 2.0**-140 / least, 2.0**-240 / (least * least)))


@jit
def survey(
    batch: Batch, learns: Bools, exact: bool, largest_step: float, scaled: bool, missed: UInt8s, span: Float32s
) -> None:
    """Look at the values of every example: fill `span`, and set `missed` where an example is refused.

    Parameters
    ----------
    learns : bool[n], the examples that are to be learned from
    exact : learn as VW does, and only say where values are so large that kernels handle them one by one
    largest_step : of the learner
    scaled : whether the learner scales examples, so that `largest_step` is one of the weight alone
    """
    for i in range(len(learns)):
        least, most = ONE, ONE
        for f in range(batch.start[i], batch.start[i + 1]):
            size = abs(batch.value[f])
            least = min(least, size)
            most = max(most, size)
        if exact:
            span[i, 0] = ONE
            span[i, 1] = INFINITE if most > HUGE_VALUE else ONE
            span[i, 2] = np.float32(LEAST_SLOPE)
            continue
        if learns[i]:
            weight = np.float64(batch.weight[i])
            large = weight if scaled else max(weight, 1.0) * np.float64(most) * np.float64(most)
            if not large <= largest_step:
                missed[i] = REFUSED
        if most > LARGEST_VALUE or batch.start[i + 1] - batch.start[i] > MOST_FEATURES:
            span[i, 0], span[i, 1], span[i, 2] = ZERO, INFINITE, INFINITE
        else:
            small = max(least * least, SMALLEST_SQUARE)
            span[i, 0], span[i, 1], span[i, 2] = small, most * most, least_slope(np.float64(small))


@bare
def is_plain(watch: Watch) -> bool:
    """Whether no value of the example at hand is huge."""
    plain: bool = watch.span[watch.now[0], 1] < INFINITE
    return plain


@bare
def note(watch: Watch) -> None:
    """A step of the example at hand was not taken."""
    watch.missed[watch.now[0]] = STEP


@bare
def is_safe(rule: Rule, watch: Watch, weight: np.float32, g2: np.float32, s: np.float32) -> bool:
    """Whether a step can be taken unseen, apart from S and T: g2 = weight * slope**2, s = rate * weight."""
    if not (rule.proven and weight <= 2.0**40 and s <= 2.0**20 and g2 <= 2.0**40 * np.float64(weight)):
        return False
    least, most = watch.span[watch.now[0], 0], np.float64(watch.span[watch.now[0], 1])
    if not (np.float64(g2) * most <= 2.0**100 and g2 >= watch.span[watch.now[0], 2]):
        return False
    if rule.adaptive and not rule.normalized and not np.float64(s) * s * most <= 2.0**150 * np.float64(g2):
        return False
    gentle: bool = rule.gentle or least >= 2.0**-80
    return gentle


@bare
def is_finite_sum(total: float) -> bool:
    """Whether a float64 sum is finite as float32 too."""
    return bool(abs(total) <= np.float64(LARGEST))
