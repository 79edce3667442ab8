"""Hold what a setting lost on the examples that it was compared on, and compare two settings.

The losses are summed over chunks of neighbouring examples. The difference of two settings on the same chunks, and its
standard error from the differences by chunk, tell whether one of them is better.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..array_types import Float64s

CHUNKS = 40  # chunks of a range of examples
LARGEST = 1e100  # of a sum in the file of the results


class Span(NamedTuple):
    """Say which examples a setting learns from, and which ones it is compared on."""

    learned: tuple[tuple[int, int], ...]  # (begin, end) of the ranges of examples that are learned from, in order
    judged: tuple[int, int]  # (begin, end) of the range of examples that are predicted afterwards

    @property
    def size(self) -> int:
        return sum(high - low for low, high in self.learned)


class Result(NamedTuple):
    """Hold the losses of a setting on the examples of a span."""

    sums: Float64s  # float64[CHUNKS], sum of the weighted losses of each chunk
    weights: Float64s  # float64[CHUNKS], sum of the weights of the labelled examples of each chunk
    seconds: float  # time that learning and predicting all examples of the span took
    failed: str = ""  # why there are no losses

    @property
    def loss(self) -> float:
        """Return the mean loss; infinite if there is none."""
        total = float(self.weights.sum())
        return float(self.sums.sum()) / total if total > 0 and not self.failed else math.inf


def failure(reason: str, seconds: float = 0.0) -> Result:
    """Return the result of a setting that cannot be used."""
    return Result(np.zeros(CHUNKS), np.zeros(CHUNKS), seconds, reason)


def joined(results: Sequence[Result]) -> Result:
    """Return one result of a setting on several ranges of examples; the time is the longest one."""
    failed = next((one.failed for one in results if one.failed), "")
    return Result(
        np.concatenate([one.sums for one in results]), np.concatenate([one.weights for one in results]),
        max(one.seconds for one in results), failed,
    )  # fmt: skip


def difference(one: Result, other: Result) -> tuple[float, float]:
    """Return how much more `one` loses than `other` on the same examples, and the standard error of that."""
    centred, n = _centred(one) - _centred(other), len(one.sums)
    return one.loss - other.loss, math.sqrt(float((centred**2).sum()) * n / (n - 1))


def _centred(result: Result) -> Float64s:
    """Return how much each chunk adds to the mean loss beyond its share."""
    centred: Float64s = (result.sums - result.loss * result.weights) / result.weights.sum()
    return centred
