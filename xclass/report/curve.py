"""Read the learning curve of the training run, or make a curve of the error along the test data."""

from __future__ import annotations

import csv
from typing import NamedTuple

import numpy as np

from ..errors import DataError
from ..run.results.curve import COLUMNS
from ..system import streams
from ..system.printable import short_repr
from .outcomes import Outcomes

FIRST, GROWTH = 10, 1.5  # examples at the first point of a curve along the test data, and the factor to the next


class Curve(NamedTuple):
    """Hold the rows of a curve."""

    examples: list[float]
    average: list[float]  # average loss so far
    recent: list[float]  # average loss since the row before
    held_out: list[float]  # average loss of the held-out examples, NaN without any
    is_training: bool  # whether the examples were learned from

    @property
    def title(self) -> str:
        return "Learning curve" if self.is_training else "Error along the test data"


def read(path: str) -> Curve:
    """Return the curve in a file that `--curve` has written."""
    remedy = "give a file that --curve has written while the model was trained"
    try:
        rows = list(csv.reader(streams.read_file(path, remedy).decode().splitlines()))
    except (UnicodeDecodeError, csv.Error):
        raise DataError(f"{path}: this is no table of text; {remedy}") from None
    if not rows or tuple(rows[0]) != COLUMNS:
        seen = ",".join(rows[0]) if rows else ""
        raise DataError(f"{path}: the first line is {short_repr(seen)}, and not {','.join(COLUMNS)!r}; {remedy}")
    columns = [COLUMNS.index(name) for name in ("examples", "average_loss", "recent_loss", "held_out_loss")]
    values: list[list[float]] = [[], [], [], []]
    for number, row in enumerate(rows[1:], 2):
        try:
            numbers = [float(row[j]) if row[j] else float("nan") for j in columns]
        except (ValueError, IndexError):
            raise DataError(f"{path}:{number}: the row {short_repr(','.join(row))} is damaged; {remedy}") from None
        if numbers[0] > 0 and np.isfinite(numbers[1]):
            for value, of_column in zip(numbers, values, strict=True):
                of_column.append(value)
    if not values[0]:
        raise DataError(f"{path}: there are no rows with a loss; {remedy}")
    examples, average, recent, held_out = values
    return Curve(examples, average, recent, held_out, is_training=True)


def along(tested: Outcomes) -> Curve:
    """Return the error along the test data, at numbers of examples from FIRST on that grow by GROWTH."""
    weight, wrong = np.cumsum(tested.weight), np.cumsum(tested.weight * tested.wrong)
    points, due = [], FIRST
    while due < len(weight):
        points.append(due - 1)
        due = int(due * GROWTH)
    points.append(len(weight) - 1)
    points = [i for i in points if weight[i] > 0]
    before_weight = before_wrong = 0.0
    average, recent = [], []
    for i in points:
        average.append(float(wrong[i] / weight[i]))
        change = weight[i] - before_weight
        recent.append(float((wrong[i] - before_wrong) / change) if change else float("nan"))
        before_weight, before_wrong = weight[i], wrong[i]
    return Curve([float(i + 1) for i in points], average, recent, [float("nan")] * len(points), is_training=False)
