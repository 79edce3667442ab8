"""The best constant prediction, which VW's summary of real-valued labels ends with."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def find(
    seen: Sequence[np.float32],
    label_sum: float,
    weight: float,
    loss: str,
    tau: float,
    label_range: tuple[float, float] | None,
) -> tuple[np.float32, np.float32 | None] | None:
    """The constant with the smallest loss on the labels seen, and that loss where it can be told.

    The two labels met first are taken for the only ones and their weights found from the sums; with a
    third label only the mean, which is best for the squared loss, remains known.

    Parameters
    ----------
    seen : the first three different labels.
    label_sum, weight : sums over all labels, times weight, and over the weights.
    loss, tau, label_range : the loss function, the quantile of `quantile`, the range where `squared` is a square.
    """
    if not seen:
        return None
    low, high = sorted([seen[0], seen[1] if len(seen) > 1 else np.float32(0)])
    if low == high:
        return None
    low_weight = np.float32(label_sum - float(high) * weight) / (low - high)
    high_weight = np.float32(weight) - low_weight
    both = low_weight + high_weight
    if both <= 0:
        return None
    more = len(seen) > 2
    if loss in ("squared", "classic"):
        best = np.float32(label_sum) / np.float32(weight)
    elif more:
        return None
    elif loss == "hinge":
        best = np.float32(-1 if high_weight <= low_weight else 1)
    elif loss == "logistic":
        low, high = np.float32(-1), np.float32(1)
        if low_weight <= 0 or high_weight <= 0:
            best = np.float32(1 if low_weight <= 0 else -1)
        else:
            best = np.float32(np.log(np.float64(high_weight / low_weight)))
    else:
        best = high if np.float32(tau) * both < high_weight else low
    if more:
        return best, None
    cost = np.float32(0)
    for label, share in ((low, low_weight), (high, high_weight)):
        if share > 0:
            cost += _loss(loss, best, label, np.float32(tau), label_range) * share
    return best, cost / both


def _loss(
    name: str, prediction: np.float32, label: np.float32, tau: np.float32, label_range: tuple[float, float] | None
) -> np.float32:
    """The loss of one prediction in VW's float32 steps. All arguments are float32."""
    one = np.float32(1)
    found: np.float32
    if name == "classic":
        found = (prediction - label) * (prediction - label)
    elif name == "squared":
        if label_range is None or label_range[0] <= prediction <= label_range[1]:
            found = (prediction - label) * (prediction - label)
        else:  # outside the range the loss goes on as a straight line
            end = label_range[0] if prediction < label_range[0] else label_range[1]
            off = float(label) - end
            found = np.float32(0.0 if off == 0 else off * off + 2.0 * off * (end - float(prediction)))
    elif name == "hinge":
        found = max(one - label * prediction, np.float32(0))
    elif name == "logistic":
        found = np.float32(np.log(np.float64(one + np.float32(np.exp(np.float64(-label * prediction))))))
    else:
        error = label - prediction
        found = tau * error if error > 0 else -(one - tau) * error
    return found
