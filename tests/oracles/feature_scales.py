"""Features divided by their mean size: kept in dicts, decided anew after every example.

Differs from the learner: features are told apart by their index, not by a hash of it in a table of a million.
"""

from __future__ import annotations

Row = list[tuple[int, float]]
WINDOW, MOST = 1000, 10.0


class Scales:
    """`how`: "auto" or "columns"."""

    def __init__(self, how: str = "auto"):
        self.how = how
        self.means: dict[int, float] = {}
        self.times: dict[int, int] = {}
        self.valued: set[int] = set()
        self.examples = 0
        self.columns = how == "columns"

    def seen(self, row: Row) -> None:
        """Take in an example that is learned from."""
        for feature, x in row:
            if x == 0:
                continue
            a = float(abs(x))
            if x != 1:
                self.valued.add(feature)
            if feature in self.means:
                a = min(a, MOST * self.means[feature])
            self.times[feature] = self.times.get(feature, 0) + 1
            mean = self.means.get(feature, 0.0)
            self.means[feature] = mean + (a - mean) / min(self.times[feature], WINDOW)
        self.examples += 1
        if self.how == "auto" and self.examples <= 1000:
            times = [self.times[feature] for feature in self.valued]
            mean = sum(times) / len(times) if times else 0.0
            self.columns = mean / self.examples >= 1 / 8 - 1e-12 and mean >= 4

    def scaled(self, row: Row) -> Row:
        """The example as the regressors see it."""
        if not self.columns:
            return row
        return [
            (feature, max(-MOST, min(MOST, x / (self.means.get(feature) or abs(x)))) if x else x) for feature, x in row
        ]


def as_learned(examples, how: str = "auto"):
    """Yield (row, label or None, weight) of a stream as the regressors see it; rows may have more than two columns."""
    scales = Scales(how)
    for features, y, weight in examples:
        row = [item[:2] for item in features]
        if y is not None and weight > 0:
            scales.seen(row)
        yield scales.scaled(row) if how != "none" else row, y, weight
