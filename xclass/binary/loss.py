"""Compute the losses of the binary learner, their slopes, and plain and importance-invariant steps.

Source    Karampatziakis and Langford, "Online Importance Weight Aware Updates", UAI 2011, for the invariant steps.
Cost      O(1) per prediction.
Names     p prediction | y label | s learning rate times importance | q change of p per unit of step | W Lambert's W.
Differs   from the paper: W(e**x) - x, which the logistic step needs, is computed by VW's closed-form approximation, so
          that predictions agree with VW's.
Idea      Arguments and results are float32, as in VW; exp is rounded to float32 before it is used, and W is computed in
          float64.
"""

from __future__ import annotations

import math

import numpy as np

from ..array_types import Float32s
from ..kernels import fast_math
from ..kernels.constants import HALF, INFINITE, ONE, TWO, ZERO
from ..kernels.jit import bare, on_demand

SQUARED, LOGISTIC, HINGE, QUANTILE, CLASSIC = 0, 1, 2, 3, 4
CODES = {"squared": SQUARED, "logistic": LOGISTIC, "hinge": HINGE, "quantile": QUANTILE, "classic": CLASSIC}

TINY_STEP = np.float32(1e-6)  # below this s * q the invariant step is replaced by its first-order form
ZERO_LOSS_MARGIN = np.float32(24 * math.log(2))  # from this margin on, 1 + e**-margin is 1 in float32 and the loss is 0


@bare
def value(kind: int, tau: np.float32, p: np.float32, y: np.float32, low: np.float32, high: np.float32) -> np.float32:
    """Return the loss of prediction p for label y; squared loss is linear outside [low, high]."""
    if kind == LOGISTIC:
        if y == ONE or y == -ONE:
            return np.float32(math.log(ONE + fast_math.expf(-y * p)))
        share = (y + ONE) * HALF
        up = np.float32(math.log(ONE + fast_math.expf(-p)))
        down = np.float32(math.log(ONE + fast_math.expf(p)))
        return share * up + (ONE - share) * down
    if kind == HINGE:
        return max(ZERO, ONE - y * p)
    if kind == QUANTILE:
        e = y - p
        return tau * e if e > ZERO else -(ONE - tau) * e
    if kind == CLASSIC:
        return (p - y) * (p - y)
    if p < low:
        return ZERO if y == low else (y - low) * (y - low) + TWO * (y - low) * (low - p)
    if p > high:
        return ZERO if y == high else (high - y) * (high - y) + TWO * (high - y) * (p - high)
    return (p - y) * (p - y)


@bare
def slope(kind: int, tau: np.float32, p: np.float32, y: np.float32, low: np.float32, high: np.float32) -> np.float32:
    """Return dL/dp; squared loss uses p clipped to [low, high]."""
    if kind == LOGISTIC:
        if y == ONE or y == -ONE:
            return -y / (ONE + fast_math.expf(y * p))
        return plain_step(kind, tau, p, y, -ONE)
    if kind == HINGE:
        return ZERO if y * p >= ONE else -y
    if kind == QUANTILE:
        e = y - p
        if e == ZERO:
            return ZERO
        return -tau if e > ZERO else ONE - tau
    if kind == SQUARED:
        p = max(low, min(high, p))
    return TWO * (p - y)


@bare
def squared_slope(kind: int, tau: np.float32, p: np.float32, y: np.float32) -> np.float32:
    """Return (dL/dp)**2 at p, which squared loss does not clip."""
    d = slope(kind, tau, p, y, -INFINITE, INFINITE)
    return d * d


@bare
def lambert_less_x(x: np.float32) -> np.float32:
    """Return W(e**x) - x with an error below 1e-4, by VW's two-step approximation in float64 and in VW's order."""
    big = np.float64(x)
    w: float
    r: float
    if x >= ONE:
        w = 0.86 * big + 0.01
        r = big - fast_math.log(w) - w
    else:
        w = fast_math.exp(0.8 * big - 0.65)
        r = 0.2 * big + 0.65 - w
    t = 1.0 + w
    v = 2.0 * t * (t + 2.0 * r / 3.0)
    return np.float32(w * (1.0 + r / t * (v - r) / (v - 2.0 * r)) - big)


@bare
def _logistic_step(p: np.float32, y: np.float32, s: np.float32, q: np.float32) -> np.float32:
    """Return the importance-invariant step of logistic loss for a label of -1 or 1."""
    d = fast_math.expf(y * p)
    if s * q < TINY_STEP:
        return y * s / (ONE + d)
    return -(y * lambert_less_x(s * q + y * p + d) + p) / q


@on_demand
def _soft_step(p: np.float32, y: np.float32, s: np.float32, q: np.float32) -> np.float32:
    """Return the importance-invariant step of logistic loss for a label between -1 and 1."""
    share = (y + ONE) * HALF
    return share * _logistic_step(p, ONE, s, q) + (ONE - share) * _logistic_step(p, -ONE, s, q)


@bare
def step(kind: int, tau: np.float32, p: np.float32, y: np.float32, s: np.float32, q: np.float32) -> np.float32:
    """Return the importance-invariant step: the limit of many small steps whose rates add up to s."""
    if kind == LOGISTIC:
        if y == ONE or y == -ONE:
            return _logistic_step(p, y, s, q)
        return _soft_step(p, y, s, q)
    if kind == HINGE:
        error = ONE - y * p
        if error <= ZERO:
            return ZERO
        return y * s if s * q < error else y * error / q
    if kind == QUANTILE:
        e = y - p
        if e == ZERO:
            return ZERO
        if e > ZERO:
            return tau * s if tau * (s * q) < e else e / q
        return -(ONE - tau) * s if -(ONE - tau) * (s * q) > e else e / q
    if s * q < TINY_STEP or kind == CLASSIC:
        return TWO * (y - p) * s
    return (y - p) * (ONE - fast_math.expf(-TWO * s * q)) / q


@on_demand
def plain_step(kind: int, tau: np.float32, p: np.float32, y: np.float32, s: np.float32) -> np.float32:
    """Return a gradient step of rate s: -s dL/dp."""
    if kind == LOGISTIC:
        share = (y + ONE) * HALF
        up = s / (ONE + fast_math.expf(p))
        down = -s / (ONE + fast_math.expf(-p))
        return share * up + (ONE - share) * down
    if kind == HINGE:
        return ZERO if y * p >= ONE else y * s
    if kind == QUANTILE:
        e = y - p
        if e == ZERO:
            return ZERO
        return tau * s if e > ZERO else -(ONE - tau) * s
    return TWO * (y - p) * s


@bare
def logistic_slopes(p: Float32s, y: Float32s, d: Float32s, out: Float32s, count: int) -> None:
    """Compute e**(y p) and the squared slope for `count` lanes with labels -1 or 1, vectorised.

    The squared slopes, written to `out`, are those of `squared_slope`, but 0 where the loss (`value`) is 0 in float32.
    `p`, `y`, `d` and `out` are float32[lanes]; `d` is e**(y p), written.
    """
    for j in range(count):
        yp = y[j] * p[j]
        d[j] = fast_math.expf(yp)
        slope = ONE / (ONE + d[j])
        out[j] = slope * slope if yp < ZERO_LOSS_MARGIN else ZERO


@bare
def squared_slopes(p: Float32s, y: Float32s, out: Float32s, count: int) -> None:
    """Compute the squared slope of squared loss for `count` lanes, 0 where the loss is 0; vectorised."""
    for j in range(count):
        error = p[j] - y[j]
        slope = TWO * error
        out[j] = slope * slope if error * error > ZERO else ZERO


@bare
def squared_steps(p: Float32s, y: Float32s, s: np.float32, q: Float32s, out: Float32s, count: int) -> None:
    """Compute the importance-invariant steps of squared loss for `count` lanes, those of `step`; vectorised."""
    for j in range(count):
        error = y[j] - p[j]
        far = error * (ONE - fast_math.expf(-TWO * s * q[j])) / q[j]
        out[j] = TWO * error * s if s * q[j] < TINY_STEP else far


@bare
def logistic_steps(
    p: Float32s, y: Float32s, d: Float32s, s: np.float32, q: Float32s, out: Float32s, count: int
) -> None:
    """Compute the importance-invariant steps of `count` lanes with labels -1 or 1, vectorised.

    The results are those of `step`. Arguments x < 1 of `lambert_less_x`, where the prediction is wrong, are rare, so
    that they are left to a loop of their own, which does not vectorise. `d` is as `logistic_slopes` computed it.
    """
    small = False
    for j in range(count):
        x = s * q[j] + y[j] * p[j] + d[j]
        small |= x < ONE
        big = max(np.float64(x), 1.0)
        w = 0.86 * big + 0.01
        r = big - fast_math.log(w) - w
        t = 1.0 + w
        v = 2.0 * t * (t + 2.0 * r / 3.0)
        w_less_x = np.float32(w * (1.0 + r / t * (v - r) / (v - 2.0 * r)) - big)
        out[j] = -(y[j] * w_less_x + p[j]) / q[j]
    for j in range(count):
        out[j] = y[j] * s / (ONE + d[j]) if s * q[j] < TINY_STEP else out[j]
    if small:
        for j in range(count):
            x = s * q[j] + y[j] * p[j] + d[j]
            if x < ONE and s * q[j] >= TINY_STEP:
                out[j] = -(y[j] * lambert_less_x(x) + p[j]) / q[j]
