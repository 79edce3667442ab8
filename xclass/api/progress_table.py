"""Format the rows of VW's progress table, and parse -P, which determines when rows are due.

The text is VW's, character for character. Counting is done in `progress`.
"""

from __future__ import annotations

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
