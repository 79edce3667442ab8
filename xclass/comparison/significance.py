"""Test whether two runs err equally often, and estimate by how much their errors differ.

Source    McNemar, "Note on the sampling error of the difference between correlated proportions or percentages",
          Psychometrika 12 (1947), in its exact form: of the examples on which only one of the two runs is wrong, the
          share of each run has a binomial distribution with probability 1/2 if both err equally often.
          Efron and Tibshirani, "An Introduction to the Bootstrap" (1993): percentile interval of the difference. To
          draw examples with replacement is to draw the numbers of examples on which only the first run, only the
          second run, or both or neither are wrong from a multinomial distribution.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from ..array_types import Bools

RESAMPLES = 10_000
SEED = 0


class Difference(NamedTuple):
    """Hold the difference in error of two runs, the second minus the first."""

    difference: float
    low: float  # of the confidence interval
    high: float
    p: float  # of a two-sided test of equal errors


def paired(first: Bools, second: Bools, confidence: float) -> Difference:
    """Compare two runs over the same examples, n > 0; bool[n] `first` and `second` say where each run is wrong."""
    n = len(first)
    only_first, only_second = int(np.count_nonzero(first & ~second)), int(np.count_nonzero(second & ~first))
    shares = np.array([only_first, only_second, n - only_first - only_second]) / n
    drawn = np.random.default_rng(SEED).multinomial(n, shares, RESAMPLES)
    differences = (drawn[:, 1] - drawn[:, 0]) / n
    low, high = np.quantile(differences, ((1 - confidence) / 2, (1 + confidence) / 2))
    return Difference((only_second - only_first) / n, float(low), float(high), mcnemar(only_first, only_second))


def mcnemar(only_first: int, only_second: int) -> float:
    """Return the p value of McNemar's exact test.

    The arguments are the numbers of examples on which only the first, only the second run is wrong.
    """
    n, k = only_first + only_second, min(only_first, only_second)
    if 2 * k >= n - 1:  # the most even split
        return 1.0
    i = np.arange(1, k + 1)
    log_choose = np.concatenate(([0.0], np.cumsum(np.log(n - i + 1) - np.log(i))))  # log of n over 0, 1, ..., k
    top = log_choose.max()
    log_tail = top + math.log(float(np.exp(log_choose - top).sum())) - n * math.log(2)
    return min(1.0, 2 * math.exp(log_tail))


def independent(errors: tuple[float, float], examples: tuple[int, int], confidence: float) -> Difference:
    """Compare the errors of two runs over different examples, whose numbers are above 0, by normal approximation."""
    difference = errors[1] - errors[0]
    deviation = math.sqrt(sum(p * (1 - p) / n for p, n in zip(errors, examples, strict=True)))
    if deviation == 0:
        return Difference(difference, difference, difference, 1.0 if difference == 0 else 0.0)
    margin = NormalDist().inv_cdf((1 + confidence) / 2) * deviation
    p = math.erfc(abs(difference) / deviation / math.sqrt(2))
    return Difference(difference, difference - margin, difference + margin, p)
