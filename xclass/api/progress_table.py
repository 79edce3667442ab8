"""Format VW's banner and the rows of its progress table, and parse -P, which determines when rows are due.

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


def parse_schedule(text: str) -> RowSchedule:
    """Parse the value of -P: a whole number is added to the weight, a number with a decimal point multiplies it.

    Raises
    ------
    UsageError
        if the text is not a number that -P accepts.
    """
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


def vw_banner(
    *,
    quadratic: Sequence[str] = (),
    cubic: Sequence[str] = (),
    interactions: Sequence[str] = (),
    namespaces: Sequence[str] = (),
    testing: bool = False,
    l1: float = 0.0,
    l2: float = 0.0,
    model: str | None = None,
    predictions: str | None = None,
    raw_predictions: str | None = None,
    learner: Sequence[str] = (),
    data: str = "stdin",
    bits: int,
    learning_rate: float,
    initial_t: float,
    power_t: float,
    enabled: str,
    labels: str,
    output: str,
    source: Sequence[str] = (),
    decay: float | None = None,
) -> list[str]:
    """Return the lines that VW prints before the table, for `--vw_exact`.

    Parameters
    ----------
    quadratic, cubic, interactions : interactions as the user wrote them
    namespaces : lines about ignored namespaces
    testing : whether nothing is learned
    l1, l2 : strengths of the regularization; 0 prints nothing
    model : file of -f, or None
    predictions, raw_predictions : files of -p and -r, or None
    learner : lines about the reduction
    data : name of the data, used if `source` is empty
    bits : log2 of the number of slots of the weight table
    learning_rate, initial_t, power_t : values of these options
    enabled : names of the enabled reductions
    labels, output : types of label and prediction, such as MULTICLASS
    source : lines about cache and data; if there are none, those for `data` without a cache
    decay : factor of the learning rate between passes; None for a single pass
    """
    lines = []
    for words, names in (
        ("quadratic features for pairs", quadratic),
        ("cubic features for triples", cubic),
        ("features for following interactions", interactions),
    ):
        if names:
            lines.append(f"creating {words}: {' '.join(names)}")
    lines += namespaces
    if testing:
        lines.append("only testing")
    for number, strength in ((1, l1), (2, l2)):
        if strength > 0:
            lines.append(f"using l{number} regularization = {strength:g}")
    for words, name in (
        ("final_regressor", model),
        ("predictions", predictions),
        ("raw predictions", raw_predictions),
    ):
        if name:
            lines.append(f"{words} = {name}")
    return [
        *lines,
        *learner,
        *(source or ("using no cache", f"Reading datafile = {data}")),
        "num sources = 1",
        f"Num weight bits = {bits}",
        f"learning rate = {learning_rate:g}",
        f"initial_t = {initial_t:g}",
        f"power_t = {power_t:g}",
        *([] if decay is None else [f"decay_learning_rate = {decay:g}"]),
        f"Enabled learners: {enabled}",
        f"Input label = {labels}",
        f"Output pred = {output}",
    ]
