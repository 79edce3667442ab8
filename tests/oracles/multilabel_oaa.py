"""Oracle of one scorer for each label of a list of labels, and of VW 9.11.9 `--multilabel_oaa`.

Idea     The scorer of label y learns 1 from the examples that have y, and -1 from all others. The labels whose score is
         above 0 are predicted. Each scorer predicts right before it learns.
Play     "paper": the labels of an example are a set. "vw": one goes through the labels 0 to k - 1 and through the list
         at once; a label of the list that is not above the one before it, or not below k, stops the list there. All
         scorers have sums of their own in both.
"""

from collections.abc import Sequence

import numpy as np

from .learner import F, Learner, vw_slot


class LabelScorers:
    """Learn lists of the labels 0 to k - 1; `link`: scores go through the logistic function, and 1/2 is the bound."""

    def __init__(self, k: int, *, play: str = "paper", link: bool = False, bits: int = 18, **rule):
        self.k, self.play, self.link = k, play, link
        self.learner = Learner(vw_slot(k, bits), **rule)

    def scores(self, features: list[tuple]) -> list[np.float32]:
        scores = [self.learner.predict(features, y) for y in range(self.k)]
        return [F(1) / (F(1) + np.exp(-s)) for s in scores] if self.link else scores

    def chosen(self, scores: Sequence[np.float32]) -> list[int]:
        return [y for y, s in enumerate(scores) if s > (F(0.5) if self.link else F(0))]

    def positives(self, labels: Sequence[int]) -> set[int]:
        """Return the labels that learn 1."""
        if self.play == "paper":
            return set(labels)
        positive, at = set(), 0
        for y in range(self.k):
            if at < len(labels) and labels[at] == y:
                positive.add(y)
                at += 1
        return positive

    def loss(self, chosen: Sequence[int], labels: Sequence[int]) -> int:
        """Return how many labels are in one of the lists only, found by merging both as if they ascended."""
        if self.play == "paper":
            return len(set(chosen) ^ set(labels))
        i = j = loss = 0
        while i < len(chosen) and j < len(labels):
            if chosen[i] == labels[j]:
                i, j = i + 1, j + 1
            else:
                loss += 1
                i, j = (i + 1, j) if chosen[i] < labels[j] else (i, j + 1)
        return loss + len(chosen) - i + len(labels) - j

    def learn(self, features: list[tuple], labels: Sequence[int], weight: float = 1.0, clock: float = 0.0) -> None:
        positive = self.positives(labels)
        for y in range(self.k):
            self.learner.learn(features, 1 if y in positive else -1, weight, y, clock)
