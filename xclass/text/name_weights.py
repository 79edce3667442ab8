"""Notice that a name of a class comes with different weights, which names of several words would look like.

Idea      A line is `name weight | features`, so `class 2 | ...` is class `class` with weight 2. Data with importance
          weights look the same, so that this can only be a warning, given once: where a name has another weight than
          in its first line. Lines are compared in the order of the file, whatever the blocks and threads.
Cost      nothing but a look at the weights of a block as long as all of them are 1.
"""

from __future__ import annotations

import numpy as np

from ..array_types import Float32s, Float64s
from ..kernels.jit import jit


@jit
def first_other(label: Float64s, weight: Float32s, begin: int, known: Float32s) -> int:
    """Return the first row from `begin` on whose name was seen with another weight, -1 if there is none.

    known : float32[names], the weight each name was first seen with, NaN where it was not seen; written
    """
    for i in range(begin, len(label)):
        if label[i] != label[i]:
            continue
        j = np.int64(label[i]) - 1
        if known[j] != known[j]:
            known[j] = weight[i]
        elif known[j] != weight[i]:
            return i
    return -1


class NameWeights:
    """Compares the weights that names come with, until one differs.

    Parameters
    ----------
    listed : names known before the data are read

    Attributes
    ----------
    found : whether a name came with another weight
    """

    def __init__(self, listed: int) -> None:
        self.found = False
        self._listed = listed
        self._known: Float32s | None = None  # from the first weight on that is not 1

    def idle(self, weight: Float32s) -> bool:
        """Return whether a batch with these weights has nothing to compare."""
        return self.found or (self._known is None and not (weight != 1).any())

    def compare(self, label: Float64s, weight: Float32s, before: int, count: int) -> tuple[int, float]:
        """Return the first row whose name came with another weight before, and that weight; row -1 if there is none.

        Parameters
        ----------
        label : float64[n], numbers of names, NaN where there is none
        before, count : names known before this batch, and now
        """
        begin = 0
        if self._known is None:
            begin = int(np.argmax(weight != 1))
            # names up to here came with weight 1 only, or never in these data
            met = int(np.fmax.reduce(label[:begin], initial=before))
            self._known = np.full(count, np.nan, np.float32)
            self._known[self._listed : met] = 1
        elif len(self._known) < count:
            more = np.full(max(count, 2 * len(self._known)), np.nan, np.float32)
            more[: len(self._known)] = self._known
            self._known = more
        row = first_other(label, weight, begin, self._known)
        self.found = row >= 0
        return row, float(self._known[int(label[row]) - 1]) if self.found else 0.0
