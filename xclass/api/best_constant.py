"""Compute the best constant prediction, with which VW's summary ends if labels are real numbers.

Source    VW 9.11 (best_constant.cc).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def find(
    first_labels: Sequence[np.float32],
    label_sum: float,
    weight: float,
    loss: str,
    tau: float,
    label_range: tuple[float, float] | None,
) -> tuple[np.float32, np.float32 | None] | None:
    """Return the constant prediction with the smallest loss on the labels seen, and its average loss.

    If there are only two different labels, the weight of each follows from the sums. If there is a third one, only the
    mean is known, which is the best constant for the squared loss.

    The loss is None if there is a third label; None in place of the pair says that the best constant is not known.

    Parameters
    ----------
    first_labels : the first different labels, three at most
    label_sum, weight : sums of label times weight and of the weights of all labelled examples
    loss, tau : name of the loss function, and quantile of the quantile loss
    label_range : smallest and largest label, between which the squared loss is quadratic; None if it is unbounded
    """
    if not first_labels:
        return None
    low, high = sorted([first_labels[0], first_labels[1] if len(first_labels) > 1 else np.float32(0)])
    if low == high:
        return None
    low_weight = np.float32(label_sum - float(high) * weight) / (low - high)
    high_weight = np.float32(weight) - low_weight
    total_weight = low_weight + high_weight
    if total_weight <= 0:
        return None
    third_label = len(first_labels) > 2
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
    loss_sum = np.float32(0)
    for label, weight_of_label in ((low, low_weight), (high, high_weight)):
        if weight_of_label > 0:
            loss_sum += _loss(loss, best, label, np.float32(tau), label_range) * weight_of_label
    return best, loss_sum / total_weight


def _loss(
    name: str, prediction: np.float32, label: np.float32, tau: np.float32, label_range: tuple[float, float] | None
) -> np.float32:
    """Return the loss of one prediction, with the float32 rounding of VW."""
    loss: np.float32
    if name == "squared" and label_range is not None and not label_range[0] <= prediction <= label_range[1]:
        # VW continues the loss as a straight line outside the range
        bound = label_range[0] if prediction < label_range[0] else label_range[1]
        distance = float(label) - bound
        slope = 2.0 * distance
        loss = np.float32(0.0 if distance == 0 else distance * distance + slope * (bound - float(prediction)))
    elif name in ("squared", "classic"):
        loss = (prediction - label) * (prediction - label)
    elif name == "hinge":
        loss = max(np.float32(1) - label * prediction, np.float32(0))
    elif name == "logistic":
        loss = np.float32(np.log(np.float64(np.float32(1) + np.float32(np.exp(np.float64(-label * prediction))))))
    else:
        error = label - prediction
        loss = tau * error if error > 0 else -(np.float32(1) - tau) * error
    return loss
