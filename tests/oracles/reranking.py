"""Oracle of --rerank: scorers, with weights in dicts, choose among the candidates that trees propose.

Idea     With probability sigmoid(A r + B) the label is not a candidate, where r is the log odds of the probability that
         the trees leave to other labels. Otherwise p(y | x) is the softmax of  w_y . x + v . o(y)  over the candidates,
         where o(y) has three parts: the mean and the maximum of the trees' log probabilities of y, and the fraction of
         the trees that propose y.
"""

from __future__ import annotations

import math

import numpy as np

from .learner import F

DELTA, STEP = F(0.003), 0.1


def sigmoid(z: float) -> float:
    return 1 / (1 + math.exp(-min(max(z, -30.0), 30.0)))


class Scorers:
    """Rank the candidates of trees, and learn their scorers.

    In all methods, `proposals` has for each tree a list of (label, probability) in falling order of probability, and
    `row` has (index, value) pairs, scaled as for the trees.
    """

    def __init__(self, rate: float):
        self.rate = F(rate)
        self.w: dict = {}
        self.g: dict = {}
        self.v = [1.0, 0.0, 0.0]
        self.v_sum = [0.01] * 3
        self.ab = [1.0, 0.0]
        self.ab_sum = [1.0, 1.0]

    def candidates(self, proposals) -> list[int]:
        labels = []
        for place in range(max(map(len, proposals), default=0)):
            for listing in proposals:
                if place < len(listing) and listing[place][0] not in labels:
                    labels.append(listing[place][0])
        return labels

    def opinions(self, proposals, y) -> list[float]:
        logs = [math.log(dict(listing).get(y, listing[-1][1]) if listing else 1.0) for listing in proposals]
        support = sum(y in dict(listing) for listing in proposals) / len(proposals)
        return [sum(logs) / len(logs), max(logs), support]

    def shares(self, proposals, row) -> dict[int, float]:
        scores = {}
        for y in self.candidates(proposals):
            s = F(0)
            for index, x in row:
                s = s + self.w.get((y, index), F(0)) * x
            scores[y] = float(s) + sum(v * o for v, o in zip(self.v, self.opinions(proposals, y), strict=True))
        top = max(scores.values())
        total = sum(math.exp(s - top) for s in scores.values())
        return {y: math.exp(s - top) / total for y, s in scores.items()}

    def odds(self, proposals) -> float:
        rest = 1 - sum(p for listing in proposals for _, p in listing) / len(proposals)
        rest = min(max(rest, 1e-6), 1 - 1e-6)
        return math.log(rest / (1 - rest))

    def rank(self, proposals, row) -> tuple[dict[int, float], float]:
        """Return the probability of each candidate, and that of all other labels together."""
        outside = sigmoid(self.ab[0] * self.odds(proposals) + self.ab[1])
        return {y: (1 - outside) * p for y, p in self.shares(proposals, row).items()}, outside

    def learn(self, proposals, row, y, weight: float = 1.0) -> None:
        proposed = self.candidates(proposals)
        if not proposed:
            return
        odds = self.odds(proposals)
        slope = sigmoid(self.ab[0] * odds + self.ab[1]) - (y not in proposed)
        for i, part in enumerate((slope * odds, slope)):
            self.ab_sum[i] += weight * part**2
            self.ab[i] -= STEP * weight * part / math.sqrt(self.ab_sum[i])
        if y not in proposed:
            return
        first = self.shares(proposals, row)
        self.teach(first, row, y, weight)
        opinions = {c: self.opinions(proposals, c) for c in proposed}
        for i in range(3):
            part = sum(p * opinions[c][i] for c, p in first.items()) - opinions[y][i]
            self.v_sum[i] += weight * part**2
            self.v[i] -= STEP * weight * part / math.sqrt(self.v_sum[i])
        self.teach(self.shares(proposals, row), row, y, weight)

    def teach(self, shares, row, y, weight) -> None:
        for c, p in shares.items():
            slope = F(p - (c == y))
            if abs(p - (c == y)) < 1e-4:
                continue
            for index, x in row:
                g = self.g.get((c, index), F(0)) + F(weight) * slope * slope * x * x
                self.g[c, index] = g
                step = self.rate * F(weight) * slope * x / np.sqrt(g + DELTA)
                self.w[c, index] = self.w.get((c, index), F(0)) - step
