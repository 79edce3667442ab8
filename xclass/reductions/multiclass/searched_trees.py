"""Decide how many trees are searched, by the labels that each of them adds to the proposals of the index.

Source    This project's own. docs/defaults.md has the measurements.
Idea      Where rare features tell the class, trees cost time and propose no label that the index does not propose. So
          the examples are counted whose label a tree proposes, and neither the index nor a tree before it does. The
          last tree that adds at least LEAST_SHARE of the labels is the last one that is searched and learns from every
          example; the first tree always does, because the probabilities of other classes come from it. The others learn
          from every TRIED-th example, for which they are searched, too: they are counted, so that they may return.
          The examples from one power of two to the next are counted, and the decision holds one power of two later.
          By then, the examples have passed all stages whatever the sizes of batches are, so that these do not matter.
Names     number: of an example, among those that are learned for the first time, beginning with 1.
"""

from __future__ import annotations

import numpy as np

from ...array_types import Bools, Float64s, Int64s
from ...model import stored_arrays
from ...model.archive import Archive

LEAST_SHARE = 0.001
TRIED = 16
FIRST = 1 << 14  # number at which the first decision is made; it holds from twice this number on
MOST_ROWS = 1 << 10  # most examples of a batch: those in all stages and between them are fewer than FIRST
COUNTED, SEARCHED, DECIDED, WINDOW, ADDED = range(5)  # positions in `state`


class SearchedTrees:
    """Count what trees add, and say which of them are searched.

    `state` is float64[ADDED + trees]. COUNTED: the number of the last example that was counted; SEARCHED: the number of
    trees that are searched, which are the first ones; DECIDED: the same from the next power of two on, 0 if that is not
    decided; WINDOW: examples counted since the last power of two; then the labels that each tree has added.
    """

    def __init__(self, trees: int) -> None:
        self._trees = trees
        self.state = np.zeros(ADDED + trees)
        self.state[SEARCHED] = trees
        self._begun = 0  # the number of the last example that the trees have begun
        self._decided: dict[int, int] = {}  # number from which a decision holds -> trees

    @property
    def now(self) -> int:
        return int(self.state[SEARCHED])

    def begin(self, learns: Bools) -> tuple[Int64s, Int64s]:
        """Return how many trees are searched for each of the next examples, and from which of them the others learn.

        `learns` is bool[n], whether the example is learned for the first time.
        """
        number = self._begun + np.cumsum(learns)
        searched, begin = np.empty(len(number), np.int64), 0
        while len(number) and number[-1] >= (due := max(2 * FIRST, 1 << self._begun.bit_length())):
            end = int(np.searchsorted(number, due)) + 1
            searched[begin:end] = self.now
            begin, self._begun = end, due
            self.state[SEARCHED] = self._decided.pop(due, self.now)
        searched[begin:] = self.now
        self._begun = int(number[-1]) if len(number) else self._begun
        return searched, np.flatnonzero(learns & (number % TRIED == 0))

    def count(self, learns: Bools, by_index: Bools, by_tree: Bools, searched: Int64s) -> None:
        """Count examples that have passed all stages, in their order.

        `by_index`, bool[n], and `by_tree`, bool[trees, n], say whether the index and each tree propose the label, or
        would if the tree were searched. `learns` and `searched` are as in `begin`.
        """
        known = np.concatenate([by_index[None, :], by_index | np.logical_or.accumulate(by_tree[:-1], axis=0)])
        first = by_tree & ~known & learns
        weight = np.where(np.arange(self._trees)[:, None] < searched, 1.0, TRIED)
        number, begin, state = int(self.state[COUNTED]) + np.cumsum(learns), 0, self.state
        while len(number) and number[-1] >= (due := 1 << int(state[COUNTED]).bit_length()):
            end = int(np.searchsorted(number, due)) + 1
            self._add(first, weight, learns, begin, end)
            begin, state[COUNTED] = end, due
            self._decide(due)
        self._add(first, weight, learns, begin, len(number))
        state[COUNTED] = number[-1] if len(number) else state[COUNTED]

    def _add(self, first: Bools, weight: Float64s, learns: Bools, begin: int, end: int) -> None:
        """Add the examples begin..end-1 to those counted since the last power of two."""
        self.state[WINDOW] += np.count_nonzero(learns[begin:end])
        self.state[ADDED:] += (first * weight)[:, begin:end].sum(axis=1)

    def _decide(self, number: int) -> None:
        """Decide how many trees are searched, at a number that is a power of two, and count anew."""
        if number >= FIRST and self.state[WINDOW] >= FIRST // 4:  # a merged learner may have counted few
            enough = np.flatnonzero(self.state[ADDED:] >= LEAST_SHARE * self.state[WINDOW])
            self._decided[2 * number] = int(enough[-1]) + 1 if len(enough) else 1
        self.state[WINDOW:] = 0.0

    def lines(self) -> list[str]:
        if self.now == self._trees:
            return []
        return [f"trees searched = {self.now} of {self._trees}, because the others add less than 1 label in 1000"]

    def serialize(self, archive: Archive) -> None:
        self.state[DECIDED] = next(reversed(self._decided.values()), 0)
        state, most = self.state.copy(), 2 * stored_arrays.MAX_COUNT
        low, high = np.zeros(len(state)), np.full(len(state), stored_arrays.MAX_SUM)
        low[SEARCHED] = 1
        high[[COUNTED, WINDOW]], high[[SEARCHED, DECIDED]] = most, self._trees
        archive.fill("searched_trees", state, low, high)
        if not archive.saves:
            state[:ADDED] = np.minimum(state[:ADDED], stored_arrays.MAX_COUNT)
            self.replace(np.floor(state))

    def replace(self, state: Float64s) -> None:
        """Continue from another state."""
        self.state[:] = state
        self._begun = int(state[COUNTED])
        due = max(2 * FIRST, 1 << self._begun.bit_length())
        self._decided = {due: int(state[DECIDED])} if state[DECIDED] else {}
