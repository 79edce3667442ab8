"""Oracle of feature scaling: divide the values of a feature by its mean absolute value.

Idea     Means are kept in dicts. With "auto", whether to scale is decided again after 4, 8, 16, ..., 1024 examples.
Differs  from xclass: features are distinguished by their indices, and not by their cells in a hash table.
"""

from __future__ import annotations

import math

Row = list[tuple[int, float]]
MOST = 10.0


class Scales:
    """Keep the mean sizes of features; `how` is "columns" to scale always, or "auto" to decide by the data."""

    def __init__(self, scaling: str = "auto", window: float = 1000):
        self.scaling, self.window = scaling, window
        self.means: dict[int, float] = {}
        self.times: dict[int, float] = {}
        self.valued: set[int] = set()
        self.examples = 0
        self.columns = scaling == "columns"

    def seen(self, row: Row) -> None:
        """Update the means with an example that is learned from."""
        for feature, x in row:
            a = float(abs(x))
            if a == 0 or not math.isfinite(a):
                continue
            if x != 1:
                self.valued.add(feature)
            if feature in self.means:
                a = min(a, MOST * self.means[feature])
                if self.times[feature] < 10 and 100 * a < self.means[feature]:
                    del self.means[feature], self.times[feature]
            self.times[feature] = min(self.times.get(feature, 0) + 1, self.window)
            mean = self.means.get(feature, 0.0)
            self.means[feature] = mean + (a - mean) / self.times[feature]
        self.examples += 1
        if self.scaling == "auto" and self.examples in (4, 8, 16, 32, 64, 128, 256, 512, 1024):
            self.columns = self._are_columns()

    def _are_columns(self) -> bool:
        times = [self.times[feature] for feature in self.valued]
        if not times or sum(times) / len(times) < max(4, self.examples / 8):
            return False
        logs = [math.log(self.means[feature]) for feature in self.valued]
        mean = sum(n * log for n, log in zip(times, logs, strict=True)) / sum(times)
        return sum(n * (log - mean) ** 2 for n, log in zip(times, logs, strict=True)) / sum(times) >= 1 - 1e-12

    def scaled(self, row: Row) -> Row:
        """Return the scaled features of an example, as the regressors get them."""
        if not self.columns:
            return row
        return [(feature, self._scaled_value(feature, float(x))) for feature, x in row]

    def _scaled_value(self, feature: int, x: float) -> float:
        if x == 0 or math.isnan(x):
            return x
        return (
            max(-MOST, min(MOST, x / (self.means.get(feature) or abs(x))))
            if math.isfinite(x)
            else math.copysign(MOST, x)
        )


def as_learned(examples, scaling: str = "auto"):
    """Yield (scaled row, label or None, weight) for each example; of its features only index and value are used."""
    scales = Scales(scaling)
    for features, y, weight in examples:
        row = [item[:2] for item in features]
        if y is not None and weight > 0:
            scales.seen(row)
        yield scales.scaled(row) if scaling != "none" else row, y, weight
