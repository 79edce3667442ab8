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

from ...array_types import Bools, Float64s
from .base import Reduction
from .contract import BatchTask
from .spec import LearnerUse

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


def _unchanged(scorers: Scorers) -> Scorers:
    return scorers


def _shares(learner: Reduction, task: BatchTask) -> list[tuple[int, int]]:
    """Return begin and end of the examples that each thread processes; one alone learns."""
    return [(0, task.batch.n)] if task.learn else learner.thread_ranges(task.batch.n)


class FurtherPasses(Generic[Scorers, Ranked]):
    """Let scorers rank candidates, and decide whether they learn in further passes.

    Parameters
    ----------
    use : of the learner; of several passes, the first one leaves examples out, and the second one decides
    copied, doubled : functions that return a copy of scorers, and scorers whose table is twice as large
    log_loss : function that returns the log losses of what scorers say, float64[n]
    sure : by how many standard errors the scorers that learn in the second pass must be better than their copy
    """

    def __init__(
        self,
        use: LearnerUse,
        copied: Callable[[Scorers], Scorers],
        doubled: Callable[[Scorers], Scorers],
        log_loss: Callable[[Ranked], Float64s],
        sure: float = 0.0,
    ) -> None:
        # an averaged learner cannot decide, because it does not keep the scorers of the first pass
        self._decides = use.passes > 1 and not use.testing and not use.averaged
        self._copied, self._doubled = copied, doubled
        self._log_loss, self._sure = log_loss, sure
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

    def begin(self, task: BatchTask) -> tuple[Bools, Bools]:
        """Return which examples of a task the first pass leaves out, and which this pass learns.

        Call it once for each task, in their order. Predictions in between do not count.
        """
        learns, n = task.learned(), task.batch.n
        if not (self._decides and task.learn):
            return np.zeros(n, bool), learns
        flags = left_out(self._examples, n)
        self._examples += n
        return flags, learns if self._number > 0 else learns & ~flags

    def propose(
        self, learner: Reduction, task: BatchTask, flags: Bools, propose: Callable[[int, int, bool], None]
    ) -> None:
        """Call `propose(begin, end, again)`, which learns, for ranges of the examples of a task.

        `again` says whether they were learned in an earlier pass, and `flags` which the first pass left out.
        """
        again = task.learn and self._number > 0
        jobs = [(begin, end, again) for begin, end in _shares(learner, task)]
        if self._is_second and task.learn:
            jobs = [(a, b, not flags[a]) for a, b in ranges(flags)]
        learner.share(propose, jobs, in_order=task.learn)

    def rank(
        self, learner: Reduction, task: BatchTask, flags: Bools, learns: Bools, scorers: Scorers,
        new_ranking: Callable[[], Ranked], rank: Callable[[Scorers, Bools, int, int, Ranked], int],
        grown: Callable[[Scorers], Scorers] = _unchanged,
    ) -> tuple[Scorers, Ranked]:  # fmt: skip
        """Let scorers rank what was proposed for the examples of a task, and learn; return the scorers and the ranking.

        `rank(scorers, learns, begin, end, ranked)` does so for the examples begin..end-1, of which bool[n] says whether
        they are learned. It returns the first one that was not processed, because a table has to be doubled, or `end`.
        `grown` gives scorers room for the labels of the task.
        """

        def ranking(scorers: Scorers, learns: Bools, jobs: list[tuple[int, int]]) -> tuple[Scorers, Ranked]:
            ranked, current = new_ranking(), [grown(scorers)]

            def job(begin: int, end: int) -> None:
                while (begin := rank(current[0], learns, begin, end, ranked)) < end:
                    current[0] = self._doubled(current[0])

            learner.share(job, jobs, in_order=task.learn)
            return current[0], ranked

        if self._decides and self._number > 0 and not self._scorers_learn:
            learns = np.zeros(len(learns), bool)
        scorers, ranked = ranking(scorers, learns, _shares(learner, task))
        if self._is_second and task.learn and self._copy is not None:
            self._copy, by_copy = ranking(self._copy, learns, [(a, b) for a, b in ranges(flags) if flags[a]])
            chosen = flags & learns
            gain = self._log_loss(by_copy) - self._log_loss(ranked)
            gain = gain[chosen] * task.batch.weight[chosen].astype(np.float64)
            self._gain += float(gain.sum())
            self._squares += float((gain**2).sum())
        return scorers, ranked

    def end_pass(self, scorers: Scorers) -> Scorers:
        """Note that a pass has ended, and return the scorers with which the next one begins."""
        if self._copy is not None:
            self._scorers_learn = self._gain >= self._sure * math.sqrt(self._squares)
            scorers, self._copy = scorers if self._scorers_learn else self._copy, None
        if self._decides and self._number == 0:
            self._copy = self._copied(scorers)
        return scorers
