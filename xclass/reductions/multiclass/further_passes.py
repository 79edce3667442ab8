"""Decide by examples left out of the first pass whether the scorers of --rerank should learn in further passes.

Idea      In further passes, scorers gain from data whose labels can be predicted, such as misspelled words. Where they
          mostly cannot, such as the next word of a text, scorers learn the examples by heart. Only examples that were
          never learned tell the one from the other. So the first pass leaves out one of SHARE examples, in blocks,
          because neighbours in a text are alike. The second pass learns them, after both the scorers that learn in it
          and a copy from the end of the first pass have predicted them. If the copy's log loss is lower, it replaces
          the scorers at the end of the pass, and the scorers learn no more in further passes. The trees always learn.
Source    This project's own; docs/defaults.md has the measurements.
"""

from __future__ import annotations

import itertools
import math

import numpy as np

from ...array_types import Bools, Float32s, Float64s

SHARE = 32
FIRST_PERIOD = 64  # examples at the beginning of which none is left out


def left_out(first: int, n: int) -> Bools:
    """Return, as bool[n], which of the examples first..first+n-1 of a pass are left out of the first pass.

    Of the examples m to 2 m - 1, for every power of two m from FIRST_PERIOD on, m / SHARE in the middle are left out.
    """
    number = np.arange(first, first + n) + 1
    m = np.left_shift(1, np.log2(number).astype(np.int64))
    flags: Bools = (m >= FIRST_PERIOD) & (2 * number >= 3 * m) & (2 * number < 3 * m + 2 * m // SHARE)
    return flags


def ranges(flags: Bools) -> list[tuple[int, int]]:
    """Return the begin and end of each run of equal flags, in order."""
    edges = np.flatnonzero(np.diff(flags)) + 1
    bounds = [0, *edges.tolist(), len(flags)]
    return [(a, b) for a, b in itertools.pairwise(bounds) if a < b]


class FurtherPasses:
    """Count the examples of a pass, and compare two sets of scorers on those that the first pass left out.

    `sure` says by how many standard errors the scorers that learn in the second pass must be better than their copy.
    """

    def __init__(self, sure: float = 0.0) -> None:
        self._sure = sure
        self.scorers_learn = True  # in further passes
        self.examples = 0  # of this pass so far
        self.gain = 0.0  # by how much the log loss of the copy exceeds that of the scorers that learn
        self.squares = 0.0  # sum of the squares of the gains by examples

    def next_left_out(self, n: int) -> Bools:
        """Return which of the next n examples of this pass are left out of the first pass."""
        flags = left_out(self.examples, n)
        self.examples += n
        return flags

    def compare(self, weight: Float32s, loss: Float64s, copy_loss: Float64s) -> None:
        """Add the log losses of examples that were left out, by the scorers that learn and by their copy."""
        gain = (copy_loss - loss) * weight.astype(np.float64)
        self.gain += float(gain.sum())
        self.squares += float((gain**2).sum())

    def end_pass(self) -> None:
        self.examples = 0

    def decide(self) -> bool:
        """Return whether the scorers that learned in the second pass are better than their copy, and note it."""
        self.scorers_learn = self.gain >= self._sure * math.sqrt(self.squares)
        return self.scorers_learn
