"""Oracle of --rerank: scorers, with weights in dicts, choose among the candidates that trees and the index propose.

Idea     With probability sigmoid(A r + B + D u) the label is not a candidate, where r is the log odds of the
         probability that the trees leave to other labels, and u is the largest cosine that the index gives a candidate.
         Otherwise p(y | x) is the softmax of  T (w_y . x + v . o(y))  over the candidates, where o(y) has six parts:
         the mean and the maximum of the trees' log probabilities of y, the fraction of the trees that propose y, and
         the three scores of the index. Without an index, u and these scores are 0. x are the values times their weights
         to the power of E, scaled to length 1. Labels that are no candidates share the rest in proportion to their
         probabilities by the trees; trees with an even number have the weight sigmoid(M) in this.
Names    A row is a list of (index, value, logarithm of the weight) triples, not scaled.
"""

import math

import numpy as np

from .feature_index import Opinions
from .learner import F
from .reader import CONSTANT

DELTA, STEP = F(0.003), 0.1
FIRST = 5.0  # examples of a class whose scorer learns with full weight although the class is not a candidate
PARTS = 6  # of o(y)
LARGEST_EXPONENT, LARGEST_MIXTURE = 2.0, 30.0
LEAST_SHARPNESS = 0.05


def sigmoid(z: float) -> float:
    return 1 / (1 + math.exp(-min(max(z, -30.0), 30.0)))


def softmax(scores: dict[int, float]) -> dict[int, float]:
    top = max(scores.values())
    total = sum(math.exp(s - top) for s in scores.values())
    return {y: math.exp(s - top) / total for y, s in scores.items()}


def rests(proposals) -> list[float]:
    """Return the probability that each tree leaves to other labels than it proposes."""
    return [1 - sum(p for _, p in listing) for listing in proposals]


class Scorers:
    """Rank the candidates, and learn their scorers.

    In all methods, `proposals` has for each tree a list of (label, probability) in falling order of probability, and
    `index` has the opinions of the index, None without one.
    """

    def __init__(self, rate: float):
        self.rate = F(rate)
        self.e = self.t = 1.0
        self.m = 0.0
        self.e_sum = self.m_sum = self.t_sum = 1.0
        self.w: dict = {}
        self.g: dict = {}
        self.v = [1.0] + [0.0] * (PARTS - 1)
        self.v_sum = [0.01] * PARTS
        self.numbers = [1.0, 0.0, 0.0]
        self.number_sums = [1.0] * 3

    def candidates(self, proposals, index: Opinions | None = None) -> list[int]:
        labels = []
        for place in range(max(map(len, proposals), default=0)):
            for listing in proposals:
                if place < len(listing) and listing[place][0] not in labels:
                    labels.append(listing[place][0])
        return labels + [y for y in (index.proposed if index else []) if y not in labels]

    def opinions(self, proposals, index: Opinions | None, y) -> list[float]:
        """Return o(y)."""
        logs = [math.log(dict(listing).get(y, listing[-1][1]) if listing else 1.0) for listing in proposals]
        support = sum(y in dict(listing) for listing in proposals) / len(proposals)
        return [sum(logs) / len(logs), max(logs), support, *(index.scores[y] if index else [0.0] * 3)]

    def scaled(self, row) -> list[tuple[int, float]]:
        """Return the weighted features of a row, scaled to length 1."""
        values = [float(F(x)) * math.exp(self.e * log_weight) for _, x, log_weight in row]
        length = math.sqrt(sum(x * x for x in values)) or 1.0
        return [(feature, F(x / length)) for (feature, _, _), x in zip(row, values, strict=True)]

    def changes(self, row) -> list[float]:
        """Return the derivative of the logarithm of each scaled value with respect to E."""
        mean = sum(float(x) ** 2 * log_weight for (_, x), (_, _, log_weight) in zip(self.scaled(row), row, strict=True))
        return [log_weight - mean for _, _, log_weight in row]

    def score(self, row, y, opinions: list[float]) -> float:
        s = F(0)
        for feature, x in self.scaled(row):
            s = s + self.w.get((y, feature), F(0)) * x
        return float(s) + sum(v * o for v, o in zip(self.v, opinions, strict=True))

    def scores(self, proposals, row, index: Opinions | None = None) -> dict[int, float]:
        return {y: self.score(row, y, self.opinions(proposals, index, y)) for y in self.candidates(proposals, index)}

    def shares(self, proposals, row, index: Opinions | None = None) -> dict[int, float]:
        """Return the probabilities among the candidates from which w and v learn."""
        return softmax(self.scores(proposals, row, index))

    def sharpened(self, scores: dict[int, float]) -> dict[int, float]:
        return softmax({y: self.t * s for y, s in scores.items()})

    def odds(self, proposals) -> float:
        rest = sum(rests(proposals)) / len(proposals)
        rest = min(max(rest, 1e-6), 1 - 1e-6)
        return math.log(rest / (1 - rest))

    def outside(self, proposals, index: Opinions | None) -> tuple[float, list[float]]:
        """Return the probability that the label is not a candidate, and the factors of A, B and D."""
        closeness = max([0.0, *(scores[0] for scores in index.scores.values())]) if index else 0.0
        factors = [self.odds(proposals), 1.0, closeness]
        return sigmoid(sum(parameter * x for parameter, x in zip(self.numbers, factors, strict=True))), factors

    def rank(self, proposals, row, index: Opinions | None = None) -> tuple[dict[int, float], float]:
        """Return the probability of each candidate, and that of all other labels together."""
        outside, _ = self.outside(proposals, index)
        shares = self.sharpened(self.scores(proposals, row, index))
        return {y: (1 - outside) * p for y, p in shares.items()}, outside

    def means(self, numbers: list[float]) -> tuple[list[float], list[float]]:
        """Return the means of a number of each tree over the trees of even and of odd number, and their weights."""
        groups = [numbers[::2], numbers[1::2]] if len(numbers) > 1 else [numbers]
        weights = [sigmoid(self.m), 1 - sigmoid(self.m)] if len(groups) == 2 else [1.0]
        return [sum(group) / len(group) for group in groups], weights

    def mixed(self, numbers: list[float]) -> float:
        return sum(mean * weight for mean, weight in zip(*self.means(numbers), strict=True))

    def parameters(self) -> tuple[list[float], list[float]]:
        """Return v, A, B, D, E, M and T, and their sums of squared slopes."""
        numbers = [*self.v, *self.numbers, self.e, self.m, self.t]
        return numbers, [*self.v_sum, *self.number_sums, self.e_sum, self.m_sum, self.t_sum]

    def other_probability(self, proposals, index: Opinions | None, tree_p: list[float]) -> float:
        """Return the probability of a label that is no candidate."""
        outside, _ = self.outside(proposals, index)
        return outside * self.mixed(tree_p) / self.mixed(rests(proposals))

    def learn(
        self,
        proposals,
        row,
        y,
        weight: float = 1.0,
        index: Opinions | None = None,
        label_weight: float = math.inf,
        tree_p: list[float] | None = None,
    ) -> None:
        """Learn from an example with label y.

        Parameters
        ----------
        label_weight : weight of the earlier examples of y
        tree_p : probability of y by each tree; None if y is new
        """
        proposed = self.candidates(proposals, index)
        if not proposed:
            return
        outside, factors = self.outside(proposals, index)
        for i, x in enumerate(factors):
            part = (outside - (y not in proposed)) * x
            self.number_sums[i] += weight * part**2
            self.numbers[i] -= STEP * weight * part / math.sqrt(self.number_sums[i])
        opinions = {c: self.opinions(proposals, index, c) for c in proposed}
        if y not in proposed:
            if tree_p is not None and len(proposals) > 1:
                self.learn_mixture(proposals, tree_p, weight)
            if index is not None:
                least = [min(o[i] for o in opinions.values()) for i in range(PARTS)]
                scores = {c: self.score(row, c, o) for c, o in {**opinions, y: least}.items()}
                first = F(weight) * F(min(1.0, FIRST / (label_weight + 1)))
                self.teach({y: softmax(scores)[y]}, row, y, first, left_out=CONSTANT)
            return
        scores = self.scores(proposals, row, index)
        first = softmax(scores)
        slope_of_e = self.slope_of_exponent(first, row, y)
        self.teach(first, row, y, weight)
        for i in range(PARTS):
            part = sum(p * opinions[c][i] for c, p in first.items()) - opinions[y][i]
            self.v_sum[i] += weight * part**2
            self.v[i] -= STEP * weight * part / math.sqrt(self.v_sum[i])
        self.teach(self.shares(proposals, row, index), row, y, weight)
        self.learn_sharpness(scores, y, weight)
        self.e_sum += weight * slope_of_e**2
        e = self.e - STEP * weight * slope_of_e / math.sqrt(self.e_sum)
        self.e = min(max(e, 0.0), LARGEST_EXPONENT)

    def slope_of_exponent(self, shares, row, y) -> float:
        slope = 0.0
        for (feature, x), change in zip(self.scaled(row), self.changes(row), strict=True):
            w = sum((p - (c == y)) * float(self.w.get((c, feature), F(0))) for c, p in shares.items())
            slope += w * float(x) * change
        return slope

    def learn_mixture(self, proposals, tree_p, weight) -> None:
        slope = 0.0
        for numbers, sign in ((tree_p, -1), (rests(proposals), 1)):
            (even, odd), (m, rest) = self.means(numbers)
            slope += sign * m * rest * (even - odd) / self.mixed(numbers)
        self.m_sum += weight * slope**2
        m = self.m - STEP * weight * slope / math.sqrt(self.m_sum)
        self.m = min(max(m, -LARGEST_MIXTURE), LARGEST_MIXTURE)

    def learn_sharpness(self, scores, y, weight) -> None:
        slope = sum(p * scores[c] for c, p in self.sharpened(scores).items()) - scores[y]
        self.t_sum += weight * slope**2
        t = self.t - STEP * weight * slope / math.sqrt(self.t_sum)
        self.t = min(max(t, LEAST_SHARPNESS), 1 / LEAST_SHARPNESS)

    def teach(self, shares, row, y, weight, left_out: int | None = None) -> None:
        """Move the scorers of the labels in `shares`, except their weights of the feature `left_out`."""
        for c, p in shares.items():
            slope = F(p - (c == y))
            if abs(p - (c == y)) < 1e-4:
                continue
            for feature, x in self.scaled(row):
                if feature == left_out:
                    continue
                g = self.g.get((c, feature), F(0)) + F(weight) * slope * slope * x * x
                self.g[c, feature] = g
                step = self.rate * F(weight) * slope * x / np.sqrt(g + DELTA)
                self.w[c, feature] = self.w.get((c, feature), F(0)) - step
