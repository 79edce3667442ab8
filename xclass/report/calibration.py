"""Compare the probabilities of the answers with how often the answers are right."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..array_types import Float64s
from .outcomes import Outcomes

BINS = 10


class Bin(NamedTuple):
    """Hold the examples whose answer has a probability in a range."""

    low: float
    high: float
    weight: float
    forecast: float  # mean probability of the answer
    observed: float  # share of right answers


class Calibration(NamedTuple):
    """Hold the bins with examples, and the expected calibration error."""

    bins: list[Bin]
    error: float


def measure(tested: Outcomes) -> Calibration | None:
    """Return the calibration, None if the learner gives no probabilities."""
    p = tested.answer_probability
    known = ~np.isnan(p)
    if not known.any():
        return None
    p, weight, right = p[known], tested.weight[known], ~tested.wrong[known]
    place = np.clip(p * BINS, 0, BINS - 1).astype(np.int64)
    return of_sums(np.stack([np.bincount(place, amount, BINS) for amount in (weight, weight * p, weight * right)]))


def of_sums(sums: Float64s) -> Calibration | None:
    """Return the calibration from float64[3, ...] as in `core.calibration.calibration_error`; None without examples.

    The number of its bins is a multiple of BINS.
    """
    sums = sums.reshape(3, BINS, -1).sum(axis=2)
    bins = [
        Bin(j / BINS, (j + 1) / BINS, w, forecast / w, observed / w)
        for j, (w, forecast, observed) in enumerate(zip(*(row.tolist() for row in sums), strict=True))
        if w > 0
    ]
    total = sum(one.weight for one in bins)
    if total <= 0:
        return None
    return Calibration(bins, sum(one.weight * abs(one.forecast - one.observed) for one in bins) / total)
