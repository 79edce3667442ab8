"""Multiply the features of an example by their inverse document frequency, and balance its namespaces.

Idea      A value is log(1 + count) * idf**E. The features of each namespace, a block, are divided by the root of their
          length, so that a long text does not outweigh a title, and then all of them are scaled to length 1.
Source    This project's own; `document_frequency` counts the examples, and docs/defaults.md has the measurements.
"""

from __future__ import annotations

import math

import numpy as np

from ...array_types import Float32s, Int, UInt32s
from ...binary import document_frequency
from ...kernels import fast_math
from ...kernels.constants import ZERO
from ...kernels.jit import bare


@bare
def load(
    weighted: document_frequency.Weighted, i: int, exponent: float, feature: UInt32s, x: Float32s, change: Float32s
) -> Int:
    """Write the features of example i whose values are not 0; return their number.

    Parameters
    ----------
    exponent : E
    feature : uint32[s], indices, written
    x : float32[s], values, written
    change : float32[s], derivatives of log |x| with respect to E, written
    """
    batch, power = weighted.batch, np.float32(exponent)
    count = np.int64(0)
    total = slope = 0.0  # of the squares of all blocks after they are divided
    for group in range(batch.group_first[i], batch.group_first[i + 1]):
        first = count
        squares = weighted_squares = 0.0
        for f in range(batch.group_start[group], batch.group_start[group + 1]):
            value = batch.value[f]
            if value == ZERO:
                continue
            log_idf = weighted.log_weight[f]
            value *= fast_math.exp32(power * log_idf)
            square = np.float64(value) * np.float64(value)
            squares += square
            weighted_squares += square * np.float64(log_idf)
            feature[count], x[count], change[count] = batch.index[f], value, log_idf
            count += 1
        if squares > 0.0:
            length, mean = math.sqrt(squares), weighted_squares / squares
            factor = np.float32(1.0 / math.sqrt(length))
            total += length
            slope += length * mean
            for j in range(first, count):
                x[j] *= factor
                change[j] -= np.float32(0.5 * mean)
    if total > 0.0:
        factor, mean_slope = np.float32(1.0 / math.sqrt(total)), np.float32(0.5 * slope / total)
        for j in range(count):
            x[j] *= factor
            change[j] -= mean_slope
    return count
