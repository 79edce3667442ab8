"""Read the learning curve of the training run."""

from __future__ import annotations

import csv
from typing import NamedTuple

import numpy as np

from ..errors import DataError
from ..run.results.curve import COLUMNS
from ..system import streams
from ..system.printable import short_repr


class Curve(NamedTuple):
    """Hold the rows of a curve."""

    examples: list[float]
    average: list[float]  # average loss so far
    recent: list[float]  # average loss since the row before
    held_out: list[float]  # average loss of the held-out examples, NaN without any


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
    return Curve(examples, average, recent, held_out)
