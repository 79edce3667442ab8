"""Oracle of `--multilabel`: lists of labels, learned by scorers of candidates and a logistic regression.

Idea     Candidates are all labels that have been learned while there are few, otherwise the most frequent ones; the
         labels for which the nearest earlier examples vote; and those of the index. A scorer of each candidate learns
         by AROW. What is said about a candidate becomes a probability, by weights V that learn before the scorers do.
Names    Labels are numbered from 1 | an example is a list of blocks, one for each namespace and a last one for the
         constant; a block is a list of (index, value) pairs | own: the labels of an example | again: in a further pass,
         when what the example has taught already is left out where this is known | n examples that have had a label.

Scores, steps and values are np.float32, as are the words of the table, because rounding depends on the last bits.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np

from .document_frequency import MOST, Frequencies, cell
from .feature_index import Index
from .learner import F
from .tagged_learners import grow, split
from .tagged_words import BLOCK, ONE, ZERO, Regularisation, TaggedTable

MOST_ALL, FREQUENT = 1024, 64
SLOTS, ROW_BITS, KEPT, ROOM = 256, 17, 2**17, 2**21  # of the neighbours: examples of a row, rows, examples, labels
NEAREST, VOTED, SHRINK, SAME = 40, 20, 0.001, 0.9
INDEX_BITS, INDEX_SLOTS, PROPOSALS = 20, 16, 24
BIAS2, FIRST_BIAS = F(0.09), F(-1)
BEST = 20
STEP, LARGEST_SCORE, LARGEST_EXPONENT = 0.1, 3.0, 2.0
LEAST_SLOPE = 0.02  # with which a candidate counts for the exponent
LEAST_IDF = 0.01
SURE = 2  # standard errors by which scorers that learn in a further pass must be better than their copy

Blocks = Sequence[Sequence[tuple[int, float]]]
Row = list[tuple[int, np.float32]]


def exp32(a: np.float32) -> np.float32:
    """Return e**a; a test that compares last bits puts that of the kernels here."""
    return F(math.exp(a))


def left_out(number: int) -> bool:
    """Return whether the first of several passes leaves out an example, by its number from 1: see `further_passes`."""
    m = 1 << (number.bit_length() - 1)
    return m >= 64 and 1.5 * m <= number < 1.5 * m + m / 32


class Feature(NamedTuple):
    """Hold a feature: its value after the logarithm, q (see `document_frequency`), and log(idf)."""

    index: int
    value: np.float32
    q: np.float32
    log_idf: np.float32


def weighted(frequencies: Frequencies, blocks: Blocks, constant: bool, counted: bool) -> list[list[Feature]]:
    """Return the features of an example, which is counted afterwards if `counted` says so.

    Before that, a feature without examples gets a value only in an example that will be counted.
    """
    result = []
    for number, block in enumerate(blocks):
        if constant and number == len(blocks) - 1:
            result.append([Feature(index, ZERO, ZERO, ZERO) for index, _ in block])
            continue
        features = []
        for index, x in block:
            df = frequencies.df.get(cell(index, 20), 0.0)
            q = min((df + 0.5) / (frequencies.total + 1), MOST)
            value = math.copysign(math.log1p(abs(float(x))), x) if df > 0 or counted else 0.0
            features.append(Feature(index, F(value), F(q), F(math.log(max(-math.log(q), LEAST_IDF)))))
        result.append(features)
    return result


def scaled(blocks: Sequence[Sequence[Feature]], exponent: float) -> tuple[Row, list[np.float32]]:
    """Return an example of length 1, and the derivative of the logarithm of each value with respect to the exponent.

    A block is divided by the root of its length l, so that the square of its length is l.
    """
    parts = []  # l, the derivative of log l, and the features of each block
    for block in blocks:
        used = [(f.index, f.value * exp32(F(exponent) * f.log_idf), f.log_idf) for f in block if f.value != 0]
        square = sum(float(x) ** 2 for _, x, _ in used)
        if square > 0:
            change = sum(float(x) ** 2 * float(log_idf) for _, x, log_idf in used) / square
            scale = F(1 / math.sqrt(math.sqrt(square)))
            parts.append(
                (math.sqrt(square), change, [(i, x * scale, log_idf - F(change / 2)) for i, x, log_idf in used])
            )
    total = sum(length for length, _, _ in parts)
    if total == 0:
        return [], []
    scale = F(1 / math.sqrt(total))
    common = F(sum(length * change for length, change, _ in parts) / total / 2)
    features = [feature for _, _, part in parts for feature in part]
    return [(i, x * scale) for i, x, _ in features], [change - common for _, _, change in features]


class Labels:
    """Count the labels."""

    def __init__(self) -> None:
        self.n: dict[int, float] = {}  # in the order in which they were first seen
        self.counted: dict[int, int] = {}  # when each label was last counted
        self.time = 0

    @property
    def are_few(self) -> bool:
        return len(self.n) <= MOST_ALL

    def candidates(self) -> list[int]:
        """Return all labels while they are few; else the most frequent, of equal ones those that became so earlier."""
        if self.are_few:
            return list(self.n)
        return sorted(self.n, key=lambda y: (-self.n[y], self.counted[y]))[:FREQUENT]

    def count(self, y: int, weight: float) -> None:
        self.time += 1
        self.n[y] = self.n.get(y, 0.0) + weight
        self.counted[y] = self.time


class Neighbours:
    """Keep examples by their features.

    Attributes
    ----------
    rows : row -> (number of the example, value) in the order of the slots; a full row replaces the oldest
    written : row -> how many pairs have been written to it
    kept : number of an example, from 1 -> its labels, and how many labels were kept before them
    labels : how many labels have been kept
    """

    def __init__(self) -> None:
        self.rows: dict[int, list[tuple[int, np.float32]]] = {}
        self.written: dict[int, int] = {}
        self.kept: dict[int, tuple[list[int], int]] = {}
        self.number = self.labels = 0

    def similarities(self, row: Row) -> dict[int, np.float32]:
        """Return the inner product with each example that has a feature in common, in the order in which it is met."""
        sims: dict[int, np.float32] = {}
        for index, x in row:
            if x * x * F(len(row)) < F(0.36):  # a common feature tells little
                continue
            for number, value in self.rows.get(cell(index, ROW_BITS), []):
                if number > self.number - KEPT:
                    sims[number] = sims.get(number, ZERO) + x * value
        return sims

    def votes(self, row: Row, own: Sequence[int] | None = None) -> dict[int, float]:
        """Return the votes, which are in order; `own` are the labels of an example that may have been kept already."""
        sims = [
            (float(sim), number)
            for number, sim in self.similarities(row).items()
            if sim > 0 and not (own is not None and sim > SAME and self.kept[number][0] == list(own))
        ]
        nearest = sorted(sims, key=lambda pair: -pair[0])[:NEAREST]
        total = SHRINK + sum(sim**3 for sim, _ in nearest)
        votes: dict[int, float] = {}
        for sim, number in nearest:
            labels, before = self.kept[number]
            if before + ROOM >= self.labels:  # else newer labels have taken their places
                for y in labels:
                    votes[y] = votes.get(y, 0.0) + sim**3
        return {y: vote / total for y, vote in votes.items()}

    def keep(self, row: Row, labels: Sequence[int]) -> None:
        self.number += 1
        self.kept[self.number] = list(labels), self.labels
        self.labels += len(labels)
        for index, x in row:
            key = cell(index, ROW_BITS)
            slots, written = self.rows.setdefault(key, []), self.written.get(key, 0)
            slots[written % SLOTS : written % SLOTS + 1] = [(self.number, x)]
            self.written[key] = written + 1


class Said(NamedTuple):
    """Hold what is said about the candidates of an example, by label in the order of the candidates."""

    few: bool  # whether all labels are candidates
    index: dict[int, list[float]]  # cosine, 1 if the index proposes the label, naive Bayes
    votes: dict[int, float]


class Scorers:
    """Score the candidates, and combine their scores with what else is said.

    Attributes
    ----------
    b, big_g : label -> bias, and the sum of the squares of its feature
    n : label -> weight of its examples
    r : given, or learned from 1
    v, squares : V and then the exponent E, and the sums of their squared slopes
    """

    def __init__(self, line_bits: int, doublings: int, r: float | None):
        self.table, self.doublings = TaggedTable(line_bits, "logistic", 1.0), doublings
        self.r = Regularisation(0.5, 4) if r is None else Regularisation(r, r, r)
        self.b: dict[int, np.float32] = {}
        self.big_g: dict[int, np.float32] = {}
        self.n: dict[int, float] = {}
        self.v = [-1.0, 2.0, 0.0, 0.0, 0.5] + 6 * [0.0] + [1.0]
        self.squares = 12 * [1.0]

    def rank(self, blocks: Sequence[Sequence[Feature]], said: Said) -> dict[int, float]:
        """Return the probabilities of the labels that are ranked, in the order of the candidates."""
        self.row, self.changes = scaled(blocks, self.v[-1])
        self.s = {y: self.score(y, self.row) + self.b.get(y, FIRST_BIAS) for y in said.index}
        ranked = set(said.index)
        if said.few:
            ranked = set(sorted(said.index, key=lambda y: -self.s[y])[:BEST])
            voted = [y for y in said.index if said.votes.get(y, 0.0) > 0]
            ranked |= set(sorted(voted, key=lambda y: -said.votes[y])[:BEST])
        self.o = {y: self.opinions(y, said) for y in said.index if y in ranked}
        self.p = {}
        for y, o in self.o.items():
            z = sum(v * value for v, value in zip(self.v, o, strict=False))  # without E
            self.p[y] = 1 / (1 + math.exp(-min(max(z, -30.0), 30.0)))
        return dict(self.p)

    def score(self, y: int, row: Row) -> np.float32:
        """Return the product of an example and a label's weights."""
        block, q = divmod(y, BLOCK)
        return self.table.score_block(*split(row), block)[q]

    def opinions(self, y: int, said: Said) -> list[float]:
        s = min(max(float(self.s[y]), -LARGEST_SCORE), LARGEST_SCORE)
        cosine, n, vote = max(said.index[y][0], 0.0), self.n.get(y, 0.0), said.votes.get(y, 0.0)
        count = math.log(n + 1) / 10
        return [
            1.0, s, max(s, 0.0), max(s + 0.6, 0.0), cosine, math.sqrt(cosine), count, s * count,
            1 / (1 + n), vote, math.sqrt(vote),
        ]  # fmt: skip

    def log_loss(self, own: Collection[int]) -> float:
        return -sum(math.log(p if y in own else 1 - p) for y, p in self.p.items())

    def learn(self, said: Said, own: Sequence[int], weight: float, adapts: bool) -> None:
        """Learn the example that was ranked last, with `adapts` V and E, too, and count its labels for them.

        Scorers of the same block learn together, by their scores from before the example.
        """
        if adapts:
            self.adapt_all(own, weight)
            for y in own:
                self.n[y] = self.n.get(y, 0.0) + weight
        s, t = dict(self.s), {y: -ONE for y in said.index}
        for y in own:
            s[y] = self.score(y, self.row) + self.b.get(y, FIRST_BIAS)
            t[y] = ONE
        slack, slope = F(0.02) if said.few else F(0.2), 0.0
        for block in dict.fromkeys(y // BLOCK for y in t):
            labels = range(BLOCK * block, BLOCK * block + BLOCK)
            b = {q: self.b.get(y, FIRST_BIAS) for q, y in enumerate(labels)}
            big_g = {q: self.big_g.get(y, ZERO) for q, y in enumerate(labels)}
            slope += self.table.learn_block_by_arow(
                *split(self.row), block, [s.get(y, ZERO) for y in labels], [t.get(y, ZERO) for y in labels], weight,
                self.r.r, b, big_g, BIAS2, slack,
            )  # fmt: skip
            self.b |= {y: b[q] for q, y in enumerate(labels)}
            self.big_g |= {y: big_g[q] for q, y in enumerate(labels)}
        if adapts:
            self.r.adapt(slope)

    def adapt_all(self, own: Sequence[int], weight: float) -> None:
        of_exponent = 0.0
        for y, o in self.o.items():
            s, slope = float(self.s[y]), weight * (self.p[y] - (y in own))
            if abs(slope) > LEAST_SLOPE and abs(s) < LARGEST_SCORE:
                of_s = self.v[1] + self.v[2] * (s > 0) + self.v[3] * (s > -0.6) + self.v[7] * o[6]
                row = [(index, x * change) for (index, x), change in zip(self.row, self.changes, strict=True)]
                of_exponent += slope * of_s * float(self.score(y, row))
            for number, value in enumerate(o):
                self.adapt(number, slope * value)
        self.adapt(len(self.v) - 1, of_exponent)
        self.v[-1] = min(max(self.v[-1], 0.0), LARGEST_EXPONENT)

    def adapt(self, number: int, slope: float) -> None:
        self.squares[number] += slope * slope
        self.v[number] -= STEP * slope / math.sqrt(self.squares[number])


class Multilabel:
    """Learn and predict lists of labels.

    Parameters
    ----------
    line_bits : log2 of the number of lines of the table with which the scorers begin
    doublings : how often it may be doubled
    passes : if there are several, the first one leaves out some examples, by which it is decided whether the scorers
        learn in further passes
    constant : whether the last block of each example is the constant
    """

    def __init__(
        self, line_bits: int, doublings: int = 0, r: float | None = None, passes: int = 1, constant: bool = True
    ):
        self.scorers, self.copy = Scorers(line_bits, doublings, r), None
        self.frequencies = Frequencies(constant=constant)
        self.labels, self.neighbours = Labels(), Neighbours()
        self.index = Index(INDEX_BITS, INDEX_SLOTS, PROPOSALS)
        self.passes, self.passes_ended, self.constant = passes, 0, constant
        self.examples, self.gains, self.scorers_learn = 0, [], True

    def example(
        self, blocks: Blocks, own: Sequence[int] = (), weight: float = 1.0, learns: bool = False
    ) -> dict[int, float]:
        """Return the probabilities of the labels of an example before it is learned, if `learns` says that it is."""
        self.examples += 1
        out = self.passes > 1 and left_out(self.examples)
        again = self.passes_ended > 0
        learns = learns and weight > 0
        counted = learns and not again
        new = not again or (self.passes_ended == 1 and out)  # to what proposes
        learns &= again or not out
        blocks = weighted(self.frequencies, blocks, self.constant, counted)
        said = self.propose(blocks, own, weight, learns, new)
        if counted:
            self.frequencies.learn([(f.index, 1) for block in blocks for f in block], weight)
        learns &= not again or self.scorers_learn
        if learns:
            for scorers in [self.scorers] + [self.copy] * (self.copy is not None and out):
                for _ in range(scorers.doublings):
                    grow(scorers.table, scorers.doublings, 0)
        p = self.scorers.rank(blocks, said)
        if self.copy is not None and out and learns:
            self.copy.rank(blocks, said)
            self.gains.append(weight * (self.copy.log_loss(own) - self.scorers.log_loss(own)))
            self.copy.learn(said, own, weight, adapts=False)
        if learns:
            self.scorers.learn(said, own, weight, adapts=not again)
        return p

    def propose(self, blocks: list[list[Feature]], own: Sequence[int], weight: float, learns: bool, new: bool) -> Said:
        """Return the candidates and what is said about them; what proposes learns the example if it is new."""
        few, candidates = self.labels.are_few, self.labels.candidates()
        row, _ = scaled(blocks, 1.0)
        votes = self.neighbours.votes(row, own if learns and not new else None)
        best = sorted(votes, key=lambda y: -votes[y])[:VOTED]
        candidates += [y for y in best if y not in candidates]
        votes = {y: votes.get(y, 0.0) for y in candidates}
        features = [(f.index, f.q) for block in blocks for f in block]
        left = own if learns and not new else ()
        opinions = self.index.opinions(features, candidates, left, weight)
        if learns and new:
            for y in own:
                self.labels.count(y, weight)
                self.index.learn(features, y, weight)
            self.neighbours.keep(row, own)
        return Said(few, opinions.scores, votes)

    def end_pass(self) -> None:
        self.passes_ended += 1
        self.examples = 0
        if self.copy is not None:
            self.scorers_learn = sum(self.gains) >= SURE * math.sqrt(sum(gain**2 for gain in self.gains))
            if not self.scorers_learn:
                self.scorers = self.copy
            self.copy = None
        if self.passes > 1 and self.passes_ended == 1:
            self.copy = copy.deepcopy(self.scorers)
