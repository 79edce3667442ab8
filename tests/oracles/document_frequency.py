"""Oracle of idf weights: count in how many examples each feature occurs, and weight features by these counts.

Idea     q(f) = (df + 1/2) / (N + 1), where N is the weight of the examples learned so far and df that of those that
         contain the feature. The value 1 of a feature becomes sqrt(log(1 / q)). The counts are kept in a dict.
Names    A row is a list of (index, value) pairs; with a constant, the last pair is the constant.
"""

from __future__ import annotations

import math

from .learner import F

GOLDEN = 0x9E3779B97F4A7C15
BITS = 20
MOST = 0.999
DECIDED = 1024  # examples

Row = list[tuple[int, float]]


def cell(index: int, bits: int) -> int:
    """Return the top bits of the product of a feature's hash and the golden ratio."""
    return (index * GOLDEN % 2**64) >> (64 - bits)


class Frequencies:
    """Count features and weight examples; without `weighting`, features are only counted."""

    def __init__(self, weighting: bool = True, constant: bool = True):
        self.weighting, self.constant = weighting, constant
        self.total = 0.0
        self.examples = 0
        self.df: dict[int, float] = {}
        self.valued = False

    def share(self, index: int) -> float:
        """Return q of a feature."""
        return float(F(min((self.df.get(cell(index, BITS), 0.0) + 0.5) / (self.total + 1), MOST)))

    def weighted(self, row: Row) -> tuple[Row, list[float]]:
        """Return an example with its weighted features, and q of each feature, which is 0 for the constant."""
        words, rest = (row[:-1], row[-1:]) if self.constant else (row, [])
        shares = [self.share(index) for index, _ in words]
        if self.weighting and not self.valued and all(x == 1 for _, x in words):
            words = [(index, F(math.sqrt(math.log(1 / q)))) for (index, _), q in zip(words, shares, strict=True)]
        return words + rest, shares + [0.0] * len(rest)

    def learn(self, row: Row, weight: float) -> None:
        """Count an example; only those that a learner learns from are counted."""
        words = row[:-1] if self.constant else row
        if self.examples < DECIDED and any(x != 1 for _, x in words):
            self.valued = True
        for index, _ in words:
            self.df[cell(index, BITS)] = self.df.get(cell(index, BITS), 0.0) + weight
        self.total += weight
        self.examples += 1
