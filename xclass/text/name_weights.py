"""Detect class names that occur with different weights, which are probably names of several words.

Idea      A line is `name weight | features`, so `class 2 | ...` is class `class` with weight 2. Data with importance
          weights look the same, so this is only a warning, given once: when a name has another weight than in its first
          line. Lines are compared in the order of the file, whatever the blocks and threads.
Cost      One comparison per example with 1 as long as all weights are 1, then access to a table until two differ.
"""

from __future__ import annotations

import numpy as np

from ..array_types import Float32s, Float64s


class NameWeights:
    """Compare the weights of the examples of each class name, until `differs`, because two of a name differ.

    `initial_count` is the number of names known before the data are read.
    """

    def __init__(self, initial_count: int) -> None:
        self.differs = False
        self._initial_count = initial_count
        # weight with which each name was first seen, NaN before; None until the first weight that is not 1
        self._first_weight: Float32s | None = None

    def can_skip(self, weight: Float32s) -> bool:
        """Return whether a batch with these weights has nothing to compare."""
        return self.differs or (self._first_weight is None and not (weight != 1).any())

    def compare(self, label: Float64s, weight: Float32s, count_before: int, count: int) -> tuple[int, float]:
        """Return the first row whose name occurred with another weight before, or -1, and that weight.

        `label` is float64[n], the number of each name from 1, NaN for none; `weight` is float32[n]; the counts are the
        numbers of names known before this batch, and now.
        """
        begin = 0
        if self._first_weight is None:
            begin = int(np.argmax(weight != 1))
            # all new names up to here had weight 1; listed names may not have occurred yet
            seen_names = int(np.fmax.reduce(label[:begin], initial=count_before))
            self._first_weight = np.full(count, np.nan, np.float32)
            self._first_weight[self._initial_count : seen_names] = 1
        elif len(self._first_weight) < count:
            larger = np.full(max(count, 2 * len(self._first_weight)), np.nan, np.float32)
            larger[: len(self._first_weight)] = self._first_weight
            self._first_weight = larger
        rows = begin + np.flatnonzero(~np.isnan(label[begin:]))
        name = label[rows].astype(np.int64) - 1
        new = np.flatnonzero(np.isnan(self._first_weight[name]))[::-1]  # the first row of a name is assigned last
        self._first_weight[name[new]] = weight[rows[new]]
        earlier = self._first_weight[name]
        differing = np.flatnonzero(earlier != weight[rows])
        self.differs = len(differing) > 0
        return (int(rows[differing[0]]), float(earlier[differing[0]])) if self.differs else (-1, 0.0)
