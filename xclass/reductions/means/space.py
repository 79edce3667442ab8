"""Estimate the space in which rows vary equally within classes, and how much the class means vary in each direction.

Source    Ledoit-Wolf shrinkage by OAS: Chen, Wiesel, Eldar, Hero, "Shrinkage Algorithms for MMSE Covariance
          Estimation", IEEE Transactions on Signal Processing 58, 2010. Variances between and within classes: Ioffe,
          "Probabilistic Linear Discriminant Analysis", ECCV 2006, with moments in place of its likelihood.
Cost      O(d**3 + K d**2), once or twice for each doubling of the rows.
Names     N weight of all rows | n weight of the rows of each class | W covariance within classes | C between them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ...array_types import AnyArray, Float32s, Float64s
from ...kernels.constants import LARGEST
from ...system import thread_limit

LEAST_SHRINKAGE = 1e-3  # least weight of the identity in the correlations within classes
LEAST_PSI = 1e-3  # least variance between classes in a direction, of the largest, and of 1 if that is below 1
LEAST_VARIANCE, MOST_PSI = 1e-38, 1e12  # so that the space and its inverse are finite as float32
LEAST_WITHIN = 1e-5  # least variance within classes, of the variance of all rows, in a column
RAW_PSI = 1e6
PRIOR_SHARE = 0.5  # part of the variance of all rows that is expected within classes before there are examples
PIECE = 4096  # classes whose outer products are summed at a time

Product = Callable[[AnyArray, AnyArray], AnyArray]  # of two matrices of one type, float32 or float64


class WhitenedSpace(NamedTuple):
    """Hold a space, whose rows are z = (x - centre) @ into, with columns in the order of falling psi."""

    centre: Float64s  # float64[d], mean of all rows
    into: Float32s  # float32[d, d], so that rows of a class have covariance 1
    back: Float32s  # float32[d, d], its inverse
    psi: Float32s  # float32[d], variance of the class means in each direction


def raw(d: int) -> WhitenedSpace:
    """Return the space of the rows as they are, in which means are not shrunken."""
    psi = np.full(d, RAW_PSI, np.float32)
    return WhitenedSpace(np.zeros(d), np.eye(d, dtype=np.float32), np.eye(d, dtype=np.float32), psi)


def oas(matrix: Float64s, n: float) -> float:
    """Return the weight of the mean variance that OAS gives a covariance, float64[d, d], of n examples."""
    d = len(matrix)
    square, squared_trace = float((matrix * matrix).sum()), float(np.trace(matrix)) ** 2
    above, below = (1 - 2 / d) * square + squared_trace, (n + 1 - 2 / d) * (square - squared_trace / d)
    return min(1.0, above / below) if below > 0 else 1.0


def estimate(
    centre: Float64s, sums: Float64s, n: Float64s, scatter: Float64s, rows: int, product: Product
) -> WhitenedSpace:
    """Return the space for what has been learned.

    Parameters
    ----------
    centre : float64[d]; sums and scatter are about it
    sums : float64[K, d], weighted sum of the rows of each class, which has an example
    n : float64[K], weight of the rows of each class
    scatter : float64[d, d], weighted sum of the outer products of all rows with themselves
    rows : how many rows there were
    """
    total, (classes, d) = float(n.sum()), sums.shape
    mean = sums.sum(axis=0) / total
    overall = scatter / total - np.outer(mean, mean)
    variance = np.maximum(np.diag(overall), 0)
    varies = variance > 1e-12 * max(float(variance.max()), LEAST_VARIANCE)
    unit = np.where(varies, np.sqrt(np.where(varies, variance, 1)), 1)
    between = np.zeros((d, d))
    for first in range(0, classes, PIECE):
        part = slice(first, first + PIECE)
        scaled = (sums[part] - n[part, None] * mean) / unit / np.sqrt(n[part])[:, None]
        between += product(np.ascontiguousarray(scaled.T), scaled)
    overall /= np.outer(unit, unit)
    # a prior that counts as one row keeps the covariance defined while classes have a single example
    freedom = max(rows - classes, 0) + 1
    within = ((overall - between / total) * rows + PRIOR_SHARE * overall) / freedom
    within_variance = np.maximum(np.diag(within), LEAST_WITHIN * np.maximum(np.diag(overall), 1e-300))
    deviation = np.where(varies, np.sqrt(within_variance), 1)
    correlation = (within + within.T) / np.outer(deviation, deviation) / 2
    correlation[~varies] = correlation[:, ~varies] = 0
    np.fill_diagonal(correlation, 1)
    lower = _root(correlation, max(LEAST_SHRINKAGE, oas(correlation, freedom)))
    deviation *= unit
    with thread_limit.one_blas_thread():
        whitening = np.linalg.solve(lower, np.diag(varies / deviation)).T  # float64[d, d]
    z = product(sums / n[:, None] - mean, whitening)
    # analysis of variance: `spread` is the mean variance of class means, that of rows in a class being 1
    square = float((n[:, None] * z * z).sum()) / d
    spread = max(0.0, (square - (classes - 1)) / max(total - float((n * n).sum()) / total, 1e-9))
    w = n / (1 + spread * n)
    of_means = product(np.ascontiguousarray((w[:, None] * z).T), z) / w.sum()
    of_means = (of_means + of_means.T) / 2
    shrinkage = oas(of_means, float(w.sum()) ** 2 / float((w * w).sum()))
    with thread_limit.one_blas_thread():
        eigenvalue, direction = np.linalg.eigh(of_means)
    eigenvalue, direction = eigenvalue[::-1], direction[:, ::-1]
    psi = (1 - shrinkage) * eigenvalue + shrinkage * eigenvalue.mean() - float((w / n).sum() / w.sum())
    psi = np.clip(psi, LEAST_PSI * min(max(float(psi.max()), 1.0), MOST_PSI), MOST_PSI)
    into = product(np.ascontiguousarray(whitening), np.ascontiguousarray(direction))
    back = product(np.ascontiguousarray(direction.T), np.ascontiguousarray(lower.T * deviation))
    return WhitenedSpace(centre + mean, into.astype(np.float32), back.astype(np.float32), psi.astype(np.float32))


def _root(correlation: Float64s, shrinkage: float) -> Float64s:
    """Return the Cholesky factor of correlations that are shrunk to the identity, more if rounding requires it."""
    while True:
        shrunk = (1 - shrinkage) * correlation
        np.fill_diagonal(shrunk, 1)
        try:
            with thread_limit.one_blas_thread():
                return np.asarray(np.linalg.cholesky(shrunk), np.float64)
        except np.linalg.LinAlgError:
            if not math.isfinite(shrinkage) or shrinkage >= 1:
                raise
            shrinkage = min(1.0, 4 * shrinkage)


def between_spaces(
    old: WhitenedSpace, new: WhitenedSpace, product: Product
) -> tuple[Float32s, Float32s, Float32s, Float32s]:
    """Return how rows and functions of rows change, as a, b, c and e.

    These are z_new = z_old @ a + b, V_new = V_old @ c and v_new = v + V_old @ e.
    """
    shift = old.centre - new.centre
    forward = product(old.back, new.into)
    backward = np.ascontiguousarray(product(new.back, old.into).T)
    shifts = [np.clip(row, -LARGEST, LARGEST).astype(np.float32) for row in (shift @ new.into, -shift @ old.into)]
    return forward, shifts[0], backward, shifts[1]
