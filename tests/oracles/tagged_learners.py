"""Oracles of trees and scorers whose weights are tagged words: those with dicts, with the weights in a `TaggedTable`.

Idea     Words are rounded at random and may be replaced, so it matters which regressors learn together, and in which
         order. Those of a block do, and the blocks of a path learn from the root down, by scores from before the
         example. A scorer reads its words once per example.
Names    block: eight places, 8 * block + q | hash of a feature: its index times the golden ratio, modulo 2**64.
"""

import itertools
import math
from collections.abc import Iterable

from . import cpt, pecoc, reranking
from .learner import F
from .tagged_words import BLOCK, GOLDEN, LANES, MASK64, ZERO, TaggedTable

EAGER_DOUBLINGS = 3
LEAST_SLOPE = 1e-4  # of a scorer that learns


def split(row) -> tuple[list[int], list]:
    """Return the hashes and the values of the features of a row."""
    return [index * GOLDEN & MASK64 for index, _ in row], [F(x) for _, x in row]


def grow(table: TaggedTable, most: int, eager_doublings: int = EAGER_DOUBLINGS) -> None:
    """Double a table, up to `most` times in all, if it is full; learners do so before they learn an example.

    The first `eager_doublings` are made as soon as half of the words are in use. Further ones are made if twice as
    many words as there are were lost, that is evicted or refused, since the last one.
    """
    size = LANES * len(table.words)
    eager = table.doublings < eager_doublings
    if table.doublings < most and (2 * table.used >= size if eager else table.lost >= 2 * size):
        table.double()


class Weights:
    """Score and train regressors that have a place, for both kinds of trees.

    Parameters
    ----------
    line_bits : log2 of the number of lines
    doublings : how often the table may be doubled
    momentum : as in `TaggedTable`
    """

    def use_table(self, line_bits: int, doublings: int, momentum: float | None) -> None:
        self.table, self.doublings = TaggedTable(line_bits, self.loss, self.rate, momentum=momentum), doublings
        self.row, self.counter, self.scored = None, 0, {}

    def score(self, regressor, row):
        if row is not self.row or self.table.counter != self.counter:  # else the block may have been scored already
            self.row, self.counter, self.scored = row, self.table.counter, {}
        block, q = divmod(regressor.place, BLOCK)
        if block not in self.scored:
            self.scored[block] = self.table.score_block(*split(row), block)
        return self.scored[block][q]

    def train(self, regressor, row, y, weight, s=None) -> None:
        self.train_all([(regressor, y, self.score(regressor, row) if s is None else s)], row, weight)

    def train_all(self, lessons: Iterable[tuple], row, weight) -> None:
        """Train regressors, those of a block together; a lesson is a regressor, its label and its score."""
        for block, some in itertools.groupby(lessons, lambda lesson: lesson[0].place // BLOCK):
            s, y = [ZERO] * BLOCK, [0] * BLOCK
            for regressor, label, score in some:
                s[regressor.place % BLOCK], y[regressor.place % BLOCK] = score, label
            self.table.learn_block(*split(row), block, s, y, weight)


class Tree(Weights, cpt.Tree):
    """The conditional probability tree; a block has up to three levels, and its nodes are numbered as in a heap."""

    def __init__(self, line_bits: int, doublings: int = 0, momentum: float | None = None, **more):
        super().__init__(**more)
        self.use_table(line_bits, doublings, momentum)
        self.blocks = 0

    def begin(self, node) -> None:
        q = BLOCK  # the root, and the children of the lowest nodes of a block, begin a block
        if node.up is not None:
            q = 2 * (node.up.place % BLOCK) + (node is node.up.right)
        if q < BLOCK:
            node.place = node.up.place // BLOCK * BLOCK + q
        else:
            self.blocks += 1
            node.place = BLOCK * self.blocks + 1

    def learn(self, features, y: int, weight: float = 1.0) -> None:
        grow(self.table, self.doublings)
        super().learn(features, y, weight)

    def learn_path(self, row, y: int, weight: float) -> None:
        node, turn, lessons = self.leaf[y], -1, []
        while node is not None:
            lessons.insert(0, (node, turn, self.score(node, row)))
            turn = 1 if node.up is not None and node is node.up.right else -1
            node = node.up
        self.train_all(lessons, row, weight)


class WideTree(Weights, pecoc.Tree):
    """A tree whose nodes have up to m branches; the oracle with dicts gives regressors their places."""

    def __init__(self, m: int, line_bits: int, doublings: int = 0, momentum: float | None = None, **more):
        super().__init__(m, **more)
        self.use_table(line_bits, doublings, momentum)

    def learn(self, features, y: int, weight: float = 1.0) -> None:
        grow(self.table, self.doublings)
        super().learn(features, y, weight)

    def train_path(self, way, row, weight) -> None:
        scored = [(node, c, self.scores(node, row)) for node, c in way]
        for node, c, scores in scored:
            self.train_node(node, c, row, weight, scores)

    def train_node(self, node, c, row, weight, scores=None) -> None:
        self.train_all(self.lessons(node, c, scores or self.scores(node, row)), row, weight)


class Scorers(reranking.Scorers):
    """The scorers of --rerank; values are weighted in single precision, because rounding depends on the last bits."""

    def __init__(self, rate: float, line_bits: int, doublings: int = 0):
        super().__init__(rate)
        self.table, self.doublings = TaggedTable(line_bits, "logistic", rate), doublings
        self.read: dict[int, list] = {}  # label -> w and G of each feature of the current example

    def rank(self, proposals, row, index=None):
        self.read = {}
        return super().rank(proposals, row, index)

    def learn(self, proposals, row, *more) -> None:
        grow(self.table, self.doublings)
        self.read = {}
        super().learn(proposals, row, *more)
        self.read = {}

    def scaled(self, row) -> list[tuple]:
        values = [F(x) * F(math.exp(F(self.e) * F(log_weight))) for _, x, log_weight in row]
        total = sum(float(x) ** 2 for x in values)
        scale = F(1 / math.sqrt(total)) if total > 0 else F(1)
        return [(feature, x * scale) for (feature, _, _), x in zip(row, values, strict=True)]

    def changes(self, row) -> list:
        mean = ZERO
        for (_, x), (_, _, log_weight) in zip(self.scaled(row), row, strict=True):
            mean += x * x * F(log_weight)
        return [F(log_weight) - mean for _, _, log_weight in row]

    def words(self, row, y) -> list:
        """Return w and G of each feature of a row for a label."""
        if y not in self.read:
            self.read[y] = self.table.read(*split(self.scaled(row)), y)
        return self.read[y]

    def score(self, row, y, opinions) -> float:
        s = ZERO
        for (w, _), (_, x) in zip(self.words(row, y), self.scaled(row), strict=True):
            s += w * x
        return float(s) + sum(v * o for v, o in zip(self.v, opinions, strict=True))

    def slope_of_exponent(self, shares, row, y) -> float:
        slope = 0.0
        for c, p in shares.items():
            total = ZERO
            for (w, _), (_, x), change in zip(self.words(row, c), self.scaled(row), self.changes(row), strict=True):
                total += w * (x * change)
            slope += (p - (c == y)) * float(total)
        return slope

    def teach(self, shares, row, y, weight, left_out=None) -> None:
        features = self.scaled(row)
        if left_out is not None and features[-1][0] == left_out:  # the constant is the last feature
            features = features[:-1]
        for c, p in shares.items():
            if abs(p - (c == y)) >= LEAST_SLOPE:
                slope = F(p - (c == y))
                square, step = F(weight) * slope * slope, self.rate * F(weight) * slope
                self.table.update_class(*split(features), c, square, step, reranking.DELTA, self.words(row, c))
