"""Decide by examples left out of the first pass whether scorers should learn in further passes.

Idea      In further passes, scorers gain from data whose labels can be predicted, such as misspelled words. Where they
          mostly cannot, such as the next word of a text, scorers learn the examples by heart. Only examples that were
          never learned tell the one from the other. So the first pass leaves out one of SHARE examples, in blocks,
          because neighbours in a text are alike. The second pass learns them, after both the scorers that learn in it
          and a copy from the end of the first pass have predicted them. If the copy's log loss is lower, it replaces
          the scorers at the end of the pass, and the scorers learn no more in further passes. What proposes candidates
          always learns.
Source    This project's own; docs/defaults.md has the measurements.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Generic, TypeVar

import numpy as np

from ...array_types import Bools, Float32s, Float64s

Scorers = TypeVar("Scorers")
Ranked = TypeVar("Ranked")  # what scorers say of candidates
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


class FurtherPasses(Generic[Scorers, Ranked]):
    """Count passes and their examples, and decide whether scorers learn in further passes.

    Parameters
    ----------
    decides : whether the first pass leaves examples out, and the second one decides
    copied : function that returns a copy of scorers
    sure : by how many standard errors the scorers that learn in the second pass must be better than their copy
    """

    def __init__(
        self, decides: bool = False, copied: Callable[[Scorers], Scorers] | None = None, sure: float = 0.0
    ) -> None:
        self._decides, self._copied, self._sure = decides, copied, sure
        self._number = 0  # of this pass over the data, from 0
        self._examples = 0  # of this pass so far
        self._scorers_learn = True  # in further passes
        self._copy: Scorers | None = None  # from the end of the first pass, during the second one
        self._gain = 0.0  # by how much the log loss of the copy exceeds that of the scorers that learn
        self._squares = 0.0  # sum of the squares of the gains by examples

    def begin_pass(self, number: int) -> None:
        """Begin a pass over the data, by its number from 0."""
        if number == 0 and self._number > 0:
            self._decides = False  # data that follow all passes are learned as they come
        self._number, self._examples = number, 0

    @property
    def _is_second(self) -> bool:
        """Return whether examples that the first pass left out are learned now, for the first time."""
        return self._decides and self._number == 1

    def begin(self, learns: Bools) -> tuple[Bools, Bools]:
        """Return which of the next examples to learn the first pass leaves out, and which this pass learns.

        `learns` says, as bool[n], which could be learned.
        """
        if not self._decides:
            return np.zeros(len(learns), bool), learns
        flags = left_out(self._examples, len(learns))
        self._examples += len(learns)
        return flags, learns if self._number > 0 else learns & ~flags

    def jobs(self, flags: Bools) -> list[tuple[int, int, bool]]:
        """Return ranges of examples to learn, begin and end, and whether these were learned in an earlier pass.

        `flags` say which the first pass left out.
        """
        if not self._is_second:
            return [(0, len(flags), self._number > 0)]
        return [(a, b, not flags[a]) for a, b in ranges(flags)]

    def rank(
        self,
        scorers: Scorers,
        rank: Callable[[Scorers, Bools, list[tuple[int, int]]], tuple[Scorers, Ranked]],
        log_loss: Callable[[Ranked], Float64s],
        flags: Bools,
        learns: Bools,
        weight: Float32s,
    ) -> tuple[Scorers, Ranked]:
        """Let scorers rank what was proposed for n examples, and learn; return the scorers and the ranking.

        `rank` does so with scorers for ranges of examples, of which bool[n] says whether they are learned, and
        `log_loss` returns the losses of the result, float64[n].
        """
        if self._decides and self._number > 0 and not self._scorers_learn:
            learns = np.zeros(len(learns), bool)
        scorers, ranked = rank(scorers, learns, [(0, len(learns))])
        if self._is_second and self._copy is not None:
            self._copy, by_copy = rank(self._copy, learns, [(a, b) for a, b in ranges(flags) if flags[a]])
            chosen = flags & learns
            gain = (log_loss(by_copy) - log_loss(ranked))[chosen] * weight[chosen].astype(np.float64)
            self._gain += float(gain.sum())
            self._squares += float((gain**2).sum())
        return scorers, ranked

    def end_pass(self, scorers: Scorers) -> Scorers:
        """Note that a pass has ended, and return the scorers with which the next one begins."""
        if self._copy is not None:
            self._scorers_learn = self._gain >= self._sure * math.sqrt(self._squares)
            scorers, self._copy = scorers if self._scorers_learn else self._copy, None
        if self._decides and self._number == 0:
            assert self._copied is not None
            self._copy = self._copied(scorers)
        return scorers
