"""Oracle of the binary learner: online gradient descent as in Vowpal Wabbit 9.11.9.

Source   The behaviour of VW's gd.cc, loss_functions.cc and scorer.cc; Duchi, Hazan, Singer, "Adaptive Subgradient
         Methods", JMLR 2011 (adaptive); Ross, Mineiro, Langford, "Normalized Online Learning", UAI 2013 (normalized);
         Karampatziakis, Langford, "Online Importance Weight Aware Updates", UAI 2011 (invariant).
Idea     Each slot is an entry of a dict. All sums are computed in np.float32 and in VW's order, so that results differ
         from VW's only by rounding. The caller passes the layout: a function from (index, subproblem) to any hashable
         key of a slot.
Differs  from VW: 1/sqrt(G) is exact; VW's usual x86 build uses an estimate with an error of up to 3e-4. There are no
         options l1, l2 and link.
Names    A feature is (index, value) or (index, value, scaled). If `scaled` is False, the feature is outside of the
         usual layout, as the path features of the recall tree are: its slot comes from a second function, `unscaled`.
"""

import math
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass

import numpy as np

F = np.float32
ZERO, ONE, TWO = F(0), F(1), F(2)
FLT_MAX = np.finfo(F).max
X_MIN = F(1.084202e-19)  # smallest absolute value of a feature in the computation of rates
X2_MIN = X_MIN * X_MIN
TINY = 1e-6  # if step * q is smaller, the exact step would suffer from cancellation, so the plain step is used


def power_of_two(width: int) -> int:
    """Return the smallest power of two that is at least `width`."""
    return 1 << max(0, width - 1).bit_length()


def vw_slot(width: int, bits: int = 18) -> Callable[[int, int], int]:
    """Return VW's layout, `(index * M + sub) mod 2**bits`; M is the smallest power of two that is at least `width`."""
    m = power_of_two(width)
    return lambda index, sub: (index * m + sub) % (1 << bits)


def vw_unscaled_slot(bits: int = 18) -> Callable[[int, int], int]:
    """Return VW's layout for features that are added after indices are multiplied: `(index + sub) mod 2**bits`."""
    return lambda index, sub: (index + sub) % (1 << bits)


def resolve_rule(
    sgd: bool = False,
    adaptive: bool = False,
    normalized: bool = False,
    invariant: bool = False,
    learning_rate: float | None = None,
    initial_t: float | None = None,
    power_t: float = 0.5,
    loss: str = "squared",
) -> dict:
    """Convert VW's flags of the update rule to keywords of `Learner`.

    Without any of the flags `sgd`, `adaptive`, `normalized` and `invariant`, the last three are on. If any is given,
    those not given are off, and the default of the learning rate is 10 unless both `adaptive` and `normalized` are
    given. With neither of these two, `initial_t` is 1 by default and the rate is multiplied by `initial_t ** power_t`,
    so that the first step has about the given rate.
    """
    rule = {"adaptive": True, "normalized": True, "invariant": True}
    rate, start = F(0.5), F(0)
    if sgd or adaptive or normalized or invariant:
        rule = {"adaptive": adaptive, "normalized": normalized, "invariant": invariant}
        if not (adaptive and normalized):
            rate = F(10)
    if learning_rate is not None:
        rate = F(learning_rate)
    if initial_t is not None:
        start = F(initial_t)
    if not (rule["adaptive"] or rule["normalized"]):
        if initial_t is None:
            start = ONE
        rate = rate * np.power(start, F(power_t))
    return {**rule, "learning_rate": rate, "initial_t": start, "power_t": power_t, "loss": loss}


# -- losses: value, squared slope, plain step, invariant step; p prediction, y label, s step, q = sum of x * x * rate


def _exp(x: np.float32) -> np.float32:
    return np.exp(F(x))


def lambert_shift(x: np.float32) -> np.float32:
    """Approximate `LambertW(exp(x)) - x` in float64 by an initial value and one correction, rounded to float32."""
    x = float(x)
    w = 0.86 * x + 0.01 if x >= 1.0 else math.exp(0.8 * x - 0.65)
    r = x - math.log(w) - w if x >= 1.0 else 0.2 * x + 0.65 - w
    t = 1.0 + w
    v = 2.0 * t * (t + 2.0 * r / 3.0)
    return F(w * (1.0 + r / t * (v - r) / (v - 2.0 * r)) - x)


class Squared:
    """(p - y)^2."""

    def value(self, p, y):
        return (p - y) * (p - y)

    def slope(self, p, y):
        return TWO * (p - y)

    def square_slope(self, p, y):
        return F(4) * (p - y) * (p - y)

    def plain_step(self, p, y, s):
        return TWO * (y - p) * s

    def invariant_step(self, p, y, s, q):
        if s * q < TINY:
            return self.plain_step(p, y, s)
        return (y - p) * (ONE - _exp(F(-2) * s * q)) / q


class _BySlope:
    """Define `square_slope` as the square of `slope`, for the losses for which VW computes it in this way."""

    def square_slope(self, p, y):
        d = self.slope(p, y)
        return d * d


class Logistic(_BySlope):
    """log(1 + exp(-yp)) for y = -1 and y = +1, and the weighted mean of the two for labels in between."""

    def _mix(self, part, p, y, *more):
        share = (y + ONE) / TWO
        return share * part(p, ONE, *more) + (ONE - share) * part(p, -ONE, *more)

    def value(self, p, y):
        return self._mix(lambda p, y: np.log(ONE + _exp(-y * p)), p, y)

    def slope(self, p, y):
        return self._mix(lambda p, y: -y / (ONE + _exp(y * p)), p, y)

    def plain_step(self, p, y, s):
        return self._mix(lambda p, y, s: y * s / (ONE + _exp(y * p)), p, y, s)

    def invariant_step(self, p, y, s, q):
        def part(p, y, s, q):
            d = _exp(y * p)
            if s * q < TINY:
                return y * s / (ONE + d)
            return -(y * lambert_shift(s * q + y * p + d) + p) / q

        return self._mix(part, p, y, s, q)


class Hinge(_BySlope):
    """max(0, 1 - yp)."""

    def value(self, p, y):
        return max(ONE - y * p, ZERO)

    def slope(self, p, y):
        return ZERO if y * p >= ONE else -y

    def plain_step(self, p, y, s):
        return ZERO if y * p >= ONE else y * s

    def invariant_step(self, p, y, s, q):
        gap = ONE - y * p
        if y * p >= ONE:
            return ZERO
        return y * (s if s * q < gap else gap / q)


class Quantile(_BySlope):
    """tau * e if e = y - p is positive, else (tau - 1) * e."""

    def __init__(self, tau: float):
        self.tau = F(tau)

    def value(self, p, y):
        e = y - p
        return self.tau * e if e > 0 else -(ONE - self.tau) * e

    def slope(self, p, y):
        e = y - p
        if e == 0:
            return ZERO
        return -self.tau if e > 0 else ONE - self.tau

    def plain_step(self, p, y, s):
        return -self.slope(p, y) * s

    def invariant_step(self, p, y, s, q):
        e = y - p
        if e == 0:
            return ZERO
        if e > 0:
            return self.tau * s if self.tau * (s * q) < e else e / q
        return (self.tau - ONE) * s if -(ONE - self.tau) * (s * q) > e else e / q


def make_loss(name: str, tau: float = 0.5):
    return {"squared": Squared, "logistic": Logistic, "hinge": Hinge, "quantile": lambda: Quantile(tau)}[name]()


# -- the learner


@dataclass
class Slot:
    """Hold a slot: w weight, g sum of squared gradients, n largest |x|, rate of the last update."""

    w: np.float32 = ZERO
    g: np.float32 = ZERO
    n: np.float32 = ZERO
    rate: np.float32 = ONE


class Learner:
    """Learn any number of binary problems (subproblems), whose weights share one dict of slots.

    Parameters
    ----------
    slot : function (index, sub) -> hashable key of the slot
    unscaled : the same for features whose `scaled` is False
    loss, tau : "squared", "logistic", "hinge" or "quantile", and the tau of "quantile"
    learning_rate, power_t, initial_t, adaptive, normalized, invariant : as returned by `resolve_rule`
    label_range : first range of labels, to which predictions are clipped: [0, 0] for "seen" (VW), [-1, 1] for "known";
        [-50, 50] for the logistic loss in both cases. Every label passed to `learn` or `update` widens the range
        before the prediction of that call.
    """

    def __init__(
        self,
        slot: Callable[[int, Hashable], Hashable],
        *,
        unscaled: Callable[[int, Hashable], Hashable] | None = None,
        loss: str = "squared",
        tau: float = 0.5,
        learning_rate: float = 0.5,
        power_t: float = 0.5,
        initial_t: float = 0.0,
        adaptive: bool = True,
        normalized: bool = True,
        invariant: bool = True,
        label_range: str = "seen",
    ):
        self.slot, self.unscaled = slot, unscaled
        self.loss = make_loss(loss, tau)
        self.learning_rate, self.power_t, self.initial_t = F(learning_rate), F(power_t), F(initial_t)
        self.adaptive, self.normalized, self.invariant = adaptive, normalized, invariant
        span = {"seen": 0, "known": 1}[label_range]
        if loss == "logistic":
            span = 50
        self.low, self.high = F(-span), F(span)
        self.table: dict[Hashable, Slot] = {}
        self.norms: dict[Hashable, list[float]] = {}  # sub -> [S, T], float64: sums of the norms and of the weights

    # reading

    def key(self, item: tuple, sub: Hashable) -> Hashable:
        """Return the key of the slot of a feature for subproblem `sub`."""
        if len(item) > 2 and not item[2]:
            return self.unscaled(item[0], sub)
        return self.slot(item[0], sub)

    def weight(self, index: int, sub: Hashable = 0, scaled: bool = True) -> np.float32:
        """Return the weight of a feature, 0 if it was never updated."""
        entry = self.table.get(self.key((index, ONE, scaled), sub))
        return entry.w if entry else ZERO

    def weights(self) -> dict[Hashable, np.float32]:
        """Return all weights that are not 0, by slot."""
        return {key: slot.w for key, slot in self.table.items() if slot.w != 0}

    # predicting

    def score(self, features: Iterable[tuple], sub: Hashable = 0, initial: float = 0.0) -> np.float32:
        """Return the sum of weight times value in float32, in the order of the features, not clipped.

        VW calls it the partial prediction.
        """
        total = F(initial)
        with np.errstate(all="ignore"):
            for item in features:
                slot = self.table.get(self.key(item, sub))
                total = total + (slot.w if slot else ZERO) * F(item[1])
        return total

    def clip(self, score: np.float32) -> np.float32:
        """Return the score clipped to the range of labels, or 0 for NaN."""
        if np.isnan(score):
            return ZERO
        return max(min(score, self.high), self.low)

    def predict(self, features: Iterable[tuple], sub: Hashable = 0, initial: float = 0.0) -> np.float32:
        return self.clip(self.score(features, sub, initial))

    # learning

    def learn(
        self,
        features: list[tuple],
        label: float,
        weight: float = 1.0,
        sub: Hashable = 0,
        clock: float = 0.0,
        *,
        initial: float = 0.0,
        clock_weight: float | None = None,
        memo: list | None = None,
    ) -> np.float32:
        """Widen the label range, predict and update; return the prediction made before the update.

        Parameters
        ----------
        features, label, weight, sub : the example and its subproblem
        clock : sum of the weights of all labelled examples before this one; `initial_t` is added to it
        initial : initial prediction
        clock_weight : what this example adds to the clock; None for its weight
        memo : None, or a list that is empty at first. All calls with the same list use the sum of squares of the first
            call that computes one (only `sgd` without `adaptive` and `normalized` does)
        """
        self.widen(label)
        p = self.predict(features, sub, initial)
        if weight > 0:
            self._step(features, F(label), F(weight), sub, clock, p, clock_weight, memo)
        return p

    def update(
        self,
        features: list[tuple],
        label: float,
        weight: float,
        sub: Hashable,
        clock: float,
        prediction: np.float32,
        *,
        clock_weight: float | None = None,
    ) -> None:
        """Learn as `learn` does, but with a prediction that was made earlier, as one-against-all does."""
        self.widen(label)
        self._step(features, F(label), F(weight), sub, clock, F(prediction), clock_weight)

    def widen(self, label: float) -> None:
        self.low, self.high = min(self.low, F(label)), max(self.high, F(label))

    def _step(self, features, y, weight, sub, clock, p, clock_weight, memo=None) -> None:
        """Make one gradient step.

        If the loss is 0, nothing changes. If only the step is 0, G, N, S and T are updated nevertheless.
        """
        with np.errstate(all="ignore"):
            if not self.loss.value(p, y) > 0:
                return
            slots = [self.table.setdefault(self.key(item, sub), self._new_slot()) for item in features]
            values = [F(item[1]) for item in features]
            multiplier = ONE
            if self.adaptive or self.normalized:
                q, multiplier = self._prepare(slots, values, weight * self.loss.square_slope(p, y), weight, sub)
            else:
                q = ZERO
                for x in values:
                    q = q + x * x
                if memo is not None:
                    memo.append(q)
                    q = memo[0]
            s = self.learning_rate * weight
            if not self.adaptive:
                t = F(float(clock) + float(self.initial_t) + float(weight if clock_weight is None else clock_weight))
                s = s * np.power(t, -self.power_t)
            u = self.loss.invariant_step(p, y, s, q) if self.invariant else self.loss.plain_step(p, y, s)
            u = F(u)
            if np.isnan(u) or u == 0:
                return
            u = u * multiplier
            for slot, x in zip(slots, values, strict=True):
                if -FLT_MAX < x < FLT_MAX:
                    slot.w = slot.w + u * (x * slot.rate)

    def _new_slot(self) -> Slot:
        return Slot(g=self.initial_t if self.adaptive and self.initial_t > 0 else ZERO)

    def _prepare(self, slots, values, g2, weight, sub) -> tuple[np.float32, np.float32]:
        """Update G and N and the rate of each slot; return q (VW's pred_per_update) and the multiplier of the norm."""
        state = self.norms.setdefault(sub, self._new_norm(sub))
        if g2 == 0:
            # VW keeps the multiplier of the previous update; this makes no difference, as the step is 0 or tiny
            return ONE, ONE
        q, norm_sum = ZERO, ZERO
        for slot, x in zip(slots, values, strict=True):
            x2 = x * x
            if x2 < X2_MIN:
                x, x2 = (X_MIN if x > 0 else -X_MIN), X2_MIN
            if self.adaptive:
                slot.g = slot.g + g2 * x2
            if self.normalized:
                size = abs(x)
                if size > slot.n:
                    if slot.n > 0:
                        slot.w = slot.w * self._rescale(slot.n, size)
                    slot.n = size
                norm_sum = norm_sum + (ONE if x2 > FLT_MAX else x2 / (slot.n * slot.n))
            slot.rate = self._rate(slot)
            q = q + x2 * slot.rate
        if not self.normalized:
            return q, ONE
        state[0] += float(weight) * float(norm_sum)
        state[1] += float(weight)
        multiplier = self._multiplier(F(state[0]), F(state[1]))
        return q * multiplier, multiplier

    def _new_norm(self, sub) -> list[float]:
        start = float(self.initial_t) if sub == 0 and self.initial_t > 0 else 0.0
        return [start, start]

    def _rescale(self, old, new) -> np.float32:
        if self.power_t == F(0.5):
            ratio = old / new
            return ratio if self.adaptive else ratio * ratio
        ratio = new / old
        return np.power(ratio * ratio, self.power_t - ONE)

    def _rate(self, slot: Slot) -> np.float32:
        rate = ONE
        root = self.power_t == F(0.5)
        if self.adaptive:
            rate = ONE / np.sqrt(slot.g) if root else np.power(slot.g, -self.power_t)
        if self.normalized:
            if root:
                inverse = ONE / slot.n
                rate = rate * inverse if self.adaptive else rate * (inverse * inverse)
            else:
                rate = rate * np.power(slot.n * slot.n, self.power_t - ONE)
        return rate

    def _multiplier(self, s, t) -> np.float32:
        if self.power_t == F(0.5):
            return np.sqrt(t / s) if self.adaptive else t / s
        return np.power(s / t, self.power_t - ONE)


# -- the order in which VW's driver predicts and learns


def run(examples: Iterable[tuple], reduction) -> list:
    """Predict each example (features, label or None, weight) by a reduction and then learn it; return the predictions.

    Unlabelled examples are only predicted. The clock is the sum of the weights of the labelled examples before the
    example. It stays 0 for reductions whose labelled examples VW counts as unlabelled (`advances_clock` False).
    """
    clock, predictions = 0.0, []
    for features, label, weight in examples:
        predictions.append(reduction.predict(features))
        if label is not None:
            reduction.learn(features, label, weight, clock)
            if getattr(reduction, "advances_clock", True):
                clock += weight
    return predictions
