"""Features divided by their root mean square: kept in dicts, decided anew after every example.

Differs from the learner: features are told apart by their index, not by a hash of it in a table of a million.
"""

from __future__ import annotations

import math
from collections import defaultdict

Row = list[tuple[int, float]]


class Scales:
    """`how`: "auto" or "columns"."""

    def __init__(self, how: str = "auto"):
        self.how = how
        self.squares: dict[int, list[float]] = defaultdict(list)
        self.examples = 0
        self.columns = how == "columns"

    def seen(self, row: Row) -> None:
        """Take in an example that is learned from."""
        for feature, x in row:
            self.squares[feature].append(x * x)
        self.examples += 1
        if self.how == "auto" and self.examples <= 1000:
            times = [len(found) for found in self.squares.values()]
            mean = sum(times) / len(times) if times else 0.0
            self.columns = mean / self.examples >= 1 / 16 - 1e-12 and mean >= 4

    def scaled(self, row: Row) -> Row:
        """The example as the regressors see it."""
        if not self.columns:
            return row
        found = []
        for feature, x in row:
            squares = self.squares.get(feature)
            mean = sum(squares) / len(squares) if squares else 0.0
            found.append((feature, x / math.sqrt(mean or x * x) if x else x))
        return found


def as_learned(examples, how: str = "auto"):
    """Yield (row, label or None, weight) of a stream as the regressors see it; rows may have more than two columns."""
    scales = Scales(how)
    for features, y, weight in examples:
        row = [item[:2] for item in features]
        if y is not None and weight > 0:
            scales.seen(row)
        yield scales.scaled(row) if how != "none" else row, y, weight
