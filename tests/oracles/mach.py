"""Oracle of MACH: slow, plain Python, with an oracle of one-against-all for each repetition.

Source   Medini, Huang, Wang, Mohan, Shrivastava, "Extreme Classification in Log Memory using Count-Min Sketch: A Case
         Study of Amazon Search with 50M Products", NeurIPS 2019. Written from a summary of the paper: R 2-universal
         hash functions, a classifier for the B buckets of each, and the unbiased estimator B / (B - 1) (mean - 1 / B)
         of the probability of a class, where mean is that of the probabilities of its R buckets. Of a public copy
         (arXiv 1910.13830), only the abstract and the beginning of the introduction were read.
Differs  from the paper: the classes are those that were seen so far, of which the first one seen wins a tie. The
         classifiers are one-against-all, whose probabilities are divided by their sum. The hash functions are
         ((a y + b) mod 4294967291) mod B (Carter and Wegman 1979), whose a and b come from SplitMix64.
"""

import math
from collections.abc import Callable, Hashable

from .learner import F
from .oaa import OneAgainstAll

PRIME = 4294967291  # the largest below 2**32
WORD = 1 << 64


def splitmix(seed: int, number: int) -> int:
    """Return a number of the generator SplitMix64, counted from 1."""
    z = (seed + number * 0x9E3779B97F4A7C15) % WORD
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % WORD
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % WORD
    return z ^ (z >> 31)


class Mach:
    """Learn and predict labels; a row is a list of pairs (index of a feature, its value).

    Parameters
    ----------
    repetitions, buckets : R and B
    slot : function (index, column) -> key of a slot; bucket b of repetition r has column r * B + b
    **rule : keywords of `Learner`, see `resolve_rule`
    """

    def __init__(
        self, repetitions: int, buckets: int, *, slot: Callable[[int, int], Hashable], seed: int = 0, **rule
    ):  # fmt: skip
        self.buckets, self.squared = buckets, rule["loss"] == "squared"
        self.functions = [
            (1 + splitmix(seed, 2 * r + 1) % (PRIME - 1), splitmix(seed, 2 * r + 2) % PRIME) for r in range(repetitions)
        ]
        self.classifiers = [
            OneAgainstAll(buckets, indexing=0, slot=lambda index, b, r=r: slot(index, r * buckets + b), **rule)
            for r in range(repetitions)
        ]
        self.seen: list[int] = []

    def h(self, r: int, y: int) -> int:
        """Return the bucket of a class."""
        a, b = self.functions[r]
        return (a * y + b) % PRIME % self.buckets

    def bucket_probabilities(self, row) -> list[list]:
        """Return P^r_b for each repetition r and bucket b."""
        result = []
        for classifier in self.classifiers:
            classifier.predict(row)
            if self.squared:
                least = F(0.02 / self.buckets)
                p = [least + (F(1) - least) * (F(1) + min(max(s, F(-1)), F(1))) / F(2) for s in classifier.scores]
            else:
                p = [F(1 / (1 + math.exp(-float(s)))) for s in classifier.scores]
            result.append([one / sum(p) for one in p])
        return result

    def means(self, row) -> dict[int, float]:
        """Return for each class seen the mean of the probabilities of its buckets."""
        p = self.bucket_probabilities(row)
        return {y: float(sum(p[r][self.h(r, y)] for r in range(len(p))) / F(len(p))) for y in self.seen}

    def probabilities(self, row) -> dict[int, float]:
        """Return the unbiased estimates, made positive and divided by their sum."""
        b, least = self.buckets, 0.02 / max(1, len(self.seen))
        estimates = {y: b / (b - 1) * (mean - 1 / b) if b > 1 else 0.0 for y, mean in self.means(row).items()}
        positive = {y: max(estimate, least) for y, estimate in estimates.items()}
        return {y: p / sum(positive.values()) for y, p in positive.items()}

    def predict(self, row) -> int:
        """Return the class of the highest mean, 0 before the first example."""
        means = self.means(row)
        return max(self.seen, key=means.__getitem__) if means else 0

    def learn(self, row, y: int, weight: float = 1.0, clock: float = 0.0) -> None:
        """Learn from an example that was predicted last."""
        for r, classifier in enumerate(self.classifiers):
            classifier.learn(row, self.h(r, y), weight, clock)
        if y not in self.seen:
            self.seen.append(y)
