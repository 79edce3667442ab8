"""Compute the best constant prediction, with which VW's summary ends if labels are real numbers.

Source    VW 9.11 (best_constant.cc).
"""

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
    """Return the constant prediction with the smallest loss on the labels seen, and its average loss.

    If there are only two different labels, the weight of each follows from the sums. If there is a third one, only the
    mean is known, which is the best constant for the squared loss.

    Parameters
    ----------
    seen : the first different labels, three at most
    label_sum : sum of label times weight over all labelled examples
    weight : sum of the weights of all labelled examples
    loss : name of the loss function
    tau : quantile of the quantile loss
    label_range : smallest and largest label, between which the squared loss is quadratic; None if it is unbounded

    Returns
    -------
    the best constant and its average loss, which is None if there is a third label; None in place of the pair if the
    best constant is not known
    """
    if not seen:
        return None
    low, high = sorted([seen[0], seen[1] if len(seen) > 1 else np.float32(0)])
    if low == high:
        return None
    low_weight = np.float32(label_sum - float(high) * weight) / (low - high)
    high_weight = np.float32(weight) - low_weight
    total_weight = low_weight + high_weight
    if total_weight <= 0:
        return None
    third_label = len(seen) > 2
    if loss in ("squared", "classic"):
        best = np.float32(label_sum) / np.float32(weight)
    elif third_label:
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
        best = high if np.float32(tau) * total_weight < high_weight else low
    if third_label:
        return best, None
    cost = np.float32(0)
    for label, share in ((low, low_weight), (high, high_weight)):
        if share > 0:
            cost += _loss(loss, best, label, np.float32(tau), label_range) * share
    return best, cost / total_weight


def _loss(
    name: str, prediction: np.float32, label: np.float32, tau: np.float32, label_range: tuple[float, float] | None
) -> np.float32:
    """Return the loss of one prediction, with the float32 rounding of VW."""
    one = np.float32(1)
    loss: np.float32
    if name == "classic":
        loss = (prediction - label) * (prediction - label)
    elif name == "squared":
        if label_range is None or label_range[0] <= prediction <= label_range[1]:
            loss = (prediction - label) * (prediction - label)
        else:  # VW continues the loss as a straight line outside the range
            end = label_range[0] if prediction < label_range[0] else label_range[1]
            off = float(label) - end
            loss = np.float32(0.0 if off == 0 else off * off + 2.0 * off * (end - float(prediction)))
    elif name == "hinge":
        loss = max(one - label * prediction, np.float32(0))
    elif name == "logistic":
        loss = np.float32(np.log(np.float64(one + np.float32(np.exp(np.float64(-label * prediction))))))
    else:
        error = label - prediction
        loss = tau * error if error > 0 else -(one - tau) * error
    return loss
