"""Oracle of the index of features, with a list of [class, count] pairs for each feature in a dict.

Idea     The classes whose tf-idf centroids have the largest cosine with an example are proposed. Each candidate gets
         three scores: this cosine, whether the index proposes it, and the log probability of naive Bayes.
Names    Features are (index, q) pairs, where q is the share of the examples that contain the feature, see
         `document_frequency`; q is 0 for the constant.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

from .document_frequency import cell
from .learner import F

GAIN, SHRINK, PRIOR = 10.0, 25.0, 50.0
LEAST = -20.0
MOST_SHARE = 0.5

Features = list[tuple[int, float]]


class Opinions(NamedTuple):
    """Hold what the index says about an example."""

    proposed: list[int]  # labels that the index proposes, those with the largest cosine first
    scores: dict[int, list[float]]  # label of each candidate -> cosine, 1 if the index proposes it, and naive Bayes


@dataclass
class Sums:
    """Hold the sums over the features of an example whose rows are not empty."""

    known: int  # number of these features
    total: float  # sum of w
    dot: dict[int, float]  # label -> sum of w times count, in the order in which labels are met
    odds: dict[int, float]  # label -> sum of log(1 + count / (PRIOR q))


class Index:
    """Propose and learn classes; rows keep at most `slots` classes, and `proposals` classes are proposed."""

    def __init__(self, bits: int, slots: int, proposals: int):
        self.bits, self.slots, self.proposals = bits, slots, proposals
        self.rows: dict[int, list[list]] = {}
        self.wear: dict[int, F] = {}
        self.weight: dict[int, float] = {}
        self.norm2: dict[int, float] = {}

    def used(self, features: Features) -> list[tuple[int, float]]:
        """Return the row number and q of each feature that is not too frequent."""
        return [(cell(index, self.bits), q) for index, q in features if 0 < q <= MOST_SHARE]

    def sums(self, features: Features, own: Collection[int] = (), own_weight: float = 0.0) -> Sums:
        sums = Sums(0, 0.0, {}, {})
        for row, q in self.used(features):
            pairs = self.rows.get(row)
            if not pairs:
                continue
            w = math.log(q) ** 2
            sums.known += 1
            sums.total += w
            for y, stored in pairs:
                c = float(stored) - (own_weight if y in own else 0.0)
                if c <= 0:
                    continue
                sums.dot[y] = sums.dot.get(y, 0.0) + w * float(c)
                sums.odds[y] = sums.odds.get(y, 0.0) + math.log(1 + float(c) / (PRIOR * q))
        return sums

    def cosine(self, sums: Sums, y: int) -> float:
        if y not in sums.dot or sums.total == 0:
            return 0.0
        return GAIN * sums.dot[y] / ((math.sqrt(self.norm2.get(y, 0.0)) + SHRINK) * math.sqrt(sums.total))

    def others(self, y: int, own: Collection[int], own_weight: float) -> float:
        """Return the weight of the examples of a class, without that of an example of the classes `own`."""
        return max(self.weight.get(y, 0.0) - (own_weight if y in own else 0.0), 0.0)

    def bayes(self, sums: Sums, y: int, n: float) -> float:
        return (sums.odds.get(y, 0.0) - sums.known * math.log(1 + n / PRIOR) + math.log(n + 1)) / math.sqrt(
            sums.known + 1
        )

    def opinions(
        self, features: Features, of_trees: list[int], own: Collection[int] = (), own_weight: float = 0.0
    ) -> Opinions:
        """Return the classes that the index proposes, and the scores of these and of the trees' candidates.

        An example that has been learned with the labels `own` says what the other examples say about it.
        """
        sums = self.sums(features, own, own_weight)
        found = [y for y, dot in sums.dot.items() if dot > 0]
        found.sort(key=lambda y: -self.cosine(sums, y))  # classes with equal cosines keep their order
        proposed = found[: self.proposals]
        candidates = of_trees + [y for y in proposed if y not in of_trees]
        bayes = {y: self.bayes(sums, y, self.others(y, own, own_weight)) for y in candidates}
        best = max(bayes.values(), default=0.0)
        scores = {
            y: [self.cosine(sums, y), float(y in proposed), max(bayes[y] - best, LEAST)] for y in candidates
        }  # fmt: skip
        return Opinions(proposed, scores)

    def learn(self, features: Features, y: int, weight: float = 1.0) -> None:
        t = F(weight)
        self.weight[y] = self.weight.get(y, 0.0) + float(t)
        for row, q in self.used(features):
            pairs = self.rows.setdefault(row, [])
            at = next((i for i, pair in enumerate(pairs) if pair[0] == y), None)
            if at is None and len(pairs) == self.slots:
                self.wear[row] = self.wear.get(row, F(0)) + t
                if self.wear[row] >= pairs[-1][1]:
                    pairs[-1] = [y, t]
                    self.wear[row] = F(0)
                continue
            if at is None:
                at = len(pairs)
                pairs.append([y, F(0)])
            c = pairs[at][1]
            self.norm2[y] = self.norm2.get(y, 0.0) + math.log(q) ** 2 * float(t) * (2 * float(c) + float(t))
            pairs[at][1] = c + t
            while at > 0 and pairs[at][1] > pairs[at - 1][1]:
                pairs[at - 1], pairs[at] = pairs[at], pairs[at - 1]
                at -= 1
