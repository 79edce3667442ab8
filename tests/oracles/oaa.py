"""Oracle of one-against-all: one regressor per class; the class with the highest clipped score wins.

Of classes with equal scores, the smallest one wins.

Source   VW 9.11.9 `--oaa`; Rifkin, Klautau, "In Defense of One-Vs-All Classification", JMLR 2004.
Idea     Class number i, counted from 0, is subproblem i. All scores of an example are computed before its updates.
Differs  from xclass: there are no link functions and no probabilities.
"""

from collections.abc import Callable, Hashable

import numpy as np

from .learner import F, Learner, vw_slot


class Rand:
    """Generate VW's random numbers in [0, 1): 23 bits of a 64-bit linear congruential generator."""

    def __init__(self, seed: int = 0):
        self.state = seed

    def __call__(self) -> np.float32:
        self.state = (0xEECE66D5DEECE66D * self.state + 2147483647) % (1 << 64)
        bits = ((self.state >> 25) & 0x7FFFFF) | (127 << 23)
        return np.uint32(bits).view(F) - F(1)


class OneAgainstAll:
    """Learn and predict one of k classes; `scores` are those of the last prediction.

    Parameters
    ----------
    k : number of classes
    bits, slot : layout of the weights, VW's by default
    indexing : the lowest label, 0 or 1; None to decide it by the first label 0 or k that is learned, and to assume 1
        until then
    subsample : if positive, each example trains its true class and m = `subsample` other classes, taken from a fixed
        random order; these with weight * k / m
    own_class : the class that `subsample` does not take as another class. "true": the true class. "vw": class number
        label - 1 (mod k), as in VW also for labels from 0, so that a class may be trained against itself
    seed : seed of the random order
    **rule : keywords of `Learner`, see `resolve_rule`
    """

    def __init__(
        self,
        k: int,
        *,
        bits: int = 18,
        slot: Callable[[int, Hashable], Hashable] | None = None,
        indexing: int | None = None,
        subsample: int = 0,
        own_class: str = "vw",
        seed: int = 0,
        **rule,
    ):
        self.k, self.indexing, self.own_class = k, indexing, own_class
        self.learner = Learner(slot or vw_slot(k, bits), **rule)
        self.scores = [F(0)] * k
        self.subsample = subsample if subsample < k else 0
        self.advances_clock = self.subsample == 0  # used by `run`: VW counts subsampled examples as unlabelled
        self.order = list(range(k))
        self.position = 0
        if self.subsample:
            rand = Rand(seed)
            for i in range(k):
                j = int(rand() * F(k - i)) + i
                self.order[i], self.order[j] = self.order[j], self.order[i]

    @property
    def base(self) -> int:
        """Return the label of class number 0."""
        return 0 if self.indexing == 0 else 1

    def predict(self, features: list[tuple]) -> int:
        seen = [item for item in features if not -1e-10 < item[1] < 1e-10]  # VW ignores values close to 0 here
        self.scores = [self.learner.predict(seen, i) for i in range(self.k)]
        best = 0
        for i in range(1, self.k):
            if self.scores[i] > self.scores[best]:
                best = i
        return best + self.base

    def learn(self, features: list[tuple], y: int, weight: float = 1.0, clock: float = 0.0) -> None:
        """Learn from an example by the scores of the last `predict`, which must have been called with this example."""
        if self.indexing is None and y in (0, self.k):
            self.indexing = 0 if y == 0 else 1
        if self.subsample:
            self._learn_some(features, y, weight, clock)
            return
        for i in range(self.k):
            label = 1 if i + self.base == y else -1
            self.learner.update(features, label, weight, i, clock, self.scores[i])

    def _learn_some(self, features, y, weight, clock) -> None:
        true = y - self.base
        if not 0 <= true < self.k:
            raise ValueError(f"label {y} with {self.k} classes")
        self.learner.learn(features, 1, weight, true, clock)
        skipped = (y - 1) % self.k if self.own_class == "vw" else true
        share = F(weight) * (F(self.k) / F(self.subsample))
        remaining = self.subsample
        while remaining:
            i = self.order[self.position]
            self.position = (self.position + 1) % self.k
            if i != skipped:
                self.learner.learn(features, -1, share, i, clock)
                remaining -= 1
