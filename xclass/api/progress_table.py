"""Format the rows of VW's progress table, and parse -P, which determines when rows are due.

The text is VW's, character for character. Counting is done in `progress`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..errors import UsageError

HEADER = (
    "average  since         example        example        current        current  current",
    "loss     last          counter         weight          label        predict features",
)
WIDTH = 86  # columns of a row with the mark of held-out lines
PADDING = ((18, 2), (31, 2), (46, 1), (61, 1))  # blanks that a narrow table does without: first, number


class RowSchedule(NamedTuple):
    """Define when rows are due, by the sum of the weights of the examples so far.

    The first row is due when the sum reaches `first`. The next is due when the sum has grown by `step` if `additive` is
    set, and otherwise when it is `step` times as large.
    """

    additive: bool
    step: np.float32
    first: np.float32
    note: str = ""  # warning about the value of -P

    def after(self, weight: float) -> float:
        """Return at which sum the row after that at `weight` is due; after an overflow to infinity none is."""
        with np.errstate(over="ignore"):
            now = np.float32(weight)
            return float(now + self.step if self.additive else now * self.step)


def parse_schedule(text: str) -> RowSchedule:
    """Parse the value of -P: a whole number is added to the weight, a number with a decimal point multiplies it."""
    try:
        step = np.float32(text)
    except ValueError:
        step = np.float32(np.nan)
    if not np.isfinite(step):
        raise UsageError(
            f"--progress: {text!r} is not a number; give 1000 for a row every 1000 examples, or 2.0 for a row whenever "
            "their number has doubled"
        )
    if "." not in text:
        if step < 1:
            note = f"-P {text}: the number of examples between rows is at least 1; a row is printed for every example"
            return RowSchedule(True, np.float32(1), np.float32(1), note)
        return RowSchedule(True, step, step)
    note = ""
    if step <= 1:
        note = f"-P {text}: a number with a point is a factor and has to be above 1; {step + np.float32(1):g} is used"
        step += np.float32(1)
        if step <= 1:
            raise UsageError(
                f"--progress: {text} is a factor and has to be above 1; give 2.0, or a whole number for a row every "
                "N examples"
            )
    elif step > 9:
        note = f"-P {text}: a number with a point is a factor; for a row every {step:g} examples leave the point out"
    return RowSchedule(False, step, np.float32(1), note)


def narrowed(line: str) -> str:
    """Return a row or a line of the header for a terminal of 80 columns: with fewer blanks, where there are some."""
    for at, blanks in reversed(PADDING):
        if line[at : at + blanks].isspace():
            line = line[:at] + line[at + blanks :]
    return line


def row(
    average: str, since: str, counter: int, weight: float, label: str, prediction: str, features: int, mark: str = ""
) -> str:
    """Return one row of the table; cells that are too long are truncated as in VW."""
    label, prediction = (text if len(text) <= 14 else text[:11] + "..." for text in (label, prediction))
    return (
        f"{average[:8]:<8} {since[:8]:<8} {str(counter)[:12]:>12} {format(weight, '.1f')[:14]:>14} "
        f"{label:>14} {prediction:>14} {str(features)[:8]:>8}{mark}"
    )


def best_constant(
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
