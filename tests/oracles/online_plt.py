"""Oracle of the probabilistic label tree that grows, with AROW regressors.

Source   Jasinska-Kobus, Wydmuch, Thiruvenkatachari, Dembczynski, "Online Probabilistic Label Trees", AISTATS 2021; the
         insertion of a label is that of the conditional probability tree (Beygelzimer et al., UAI 2009).
Idea     Labels are the leaves of a binary tree. Its nodes at depths 3, 6, ... and its leaves have a regressor each,
         which estimates the probability of a label below, given one below the previous node that has a regressor. Up to
         eight of them follow the same one, and are a block of the table of words.
Play     A tree that is known from the start consists of the same nodes, and its regressors begin in the same way: of a
         block that has not learned, the child above the first label of an example is sure of it, and the others that
         they have no label.
Names    top: a node whose block holds the regressors below it | lane: number of a regressor within its block.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from .tagged_words import Regularisation, TaggedTable

F = np.float32
BIAS_SQUARE, TOLERANCE, SLOPE = F(0.3), F(0.1), F(3)
LEVELS, ROOT_BLOCK = 3, 0


class Node:
    """Hold a node of the binary tree; `block` is that of the regressors below it if it is a top, else None."""

    def __init__(self, parent: Node | None, label: int | None, block: int | None):
        self.parent, self.label, self.block = parent, label, block
        self.children: list[Node] = []
        self.leaves = 1
        self.bias, self.seen = F(-1), F(0)

    def path(self) -> list[int]:
        """Return the turns from the top above to the node."""
        turns: list[int] = []
        node = self
        while node.parent is not None:
            turns.insert(0, node.parent.children.index(node))
            node = node.parent
            if node.block is not None:
                break
        return turns

    @property
    def top(self) -> Node:
        node = self.parent
        while node.block is None:
            node = node.parent
        return node

    @property
    def lane(self) -> int:
        return int("".join(map(str, self.path())).ljust(LEVELS, "0"), 2)

    def below(self) -> dict[int, Node]:
        """Return the nodes whose regressors are in the block of a top, by lane."""
        found, nodes = {}, list(self.children)
        while nodes:
            node = nodes.pop()
            if node.children and node.block is None:
                nodes += node.children
            else:
                found[node.lane] = node
        return found


class OnlineLabelTree:
    """Learn lists of labels, and predict labels with their probabilities.

    `base` is log2 of the number of lines of the table, and alpha the weight of balance when a label is inserted.
    """

    def __init__(self, base: int, alpha: float = 0.75):
        self.alpha = alpha
        self.table = TaggedTable(base, "squared", 0.0)
        self.nodes: list[Node] = []  # in the order of their creation
        self.leaf: dict[int, Node] = {}
        self.blocks = 0
        self.root_bias, self.root_seen = F(1), F(0)
        self.r, self.slope = Regularisation(1, 4), 0.0

    # answers

    def score(self, h: Sequence[int], x: Sequence[float], node: Node) -> np.float32:
        if node.parent is None:
            return F(self.table.score_block(h, x, ROOT_BLOCK)[0] + self.root_bias)
        return F(self.table.score_block(h, x, node.top.block)[node.lane] + node.bias)

    def probability(self, h: Sequence[int], x: Sequence[float], label: int) -> np.float32:
        """Return the probability of a label: the product from the root to its leaf."""
        path = [self.leaf[label]]
        while path[0].parent is not None:
            path.insert(0, path[0].top)
        p = F(1)
        for node in path:
            p = p * sigmoid(self.score(h, x, node))
        return p

    def best(self, h: Sequence[int], x: Sequence[float], count: int) -> list[tuple[float, int]]:
        """Return the most probable labels with their probabilities, best first."""
        return sorted(((float(self.probability(h, x, y)), y) for y in self.leaf), reverse=True)[:count]

    # learning

    def learn(self, h: Sequence[int], x: Sequence[float], labels: Sequence[int], weight: float = 1.0) -> None:
        """Learn from an example with ascending labels."""
        for label in labels:
            if label not in self.leaf:
                self._insert(h, x, label)
        marked: dict[Node, list[Node]] = {}  # tops, and the nodes below them that learn 1
        for label in labels:
            node = self.leaf[label]
            while node.parent is not None:
                positive = marked.setdefault(node.top, [])
                if not positive and all(one.bias == -1 and one.seen == 0 for one in node.top.below().values()):
                    node.bias = F(1)
                if node not in positive:
                    positive.append(node)
                node = node.top
        scores = {node: self.score(h, x, node) for top in marked for node in top.below().values()}
        if not labels or self.root_seen > 0:
            s = self.table.score_block(h, x, ROOT_BLOCK)[0] + self.root_bias
            bias, seen = {0: self.root_bias}, {0: self.root_seen}
            self._train(h, x, ROOT_BLOCK, {0: (s, 1 if labels else -1)}, weight, bias, seen)
            self.root_bias, self.root_seen = bias[0], seen[0]
        for top, positive in marked.items():
            below = top.below()
            given = {q: (scores[a], 1 if a in positive else -1) for q, a in below.items()}
            bias, seen = {q: a.bias for q, a in below.items()}, {q: a.seen for q, a in below.items()}
            self._train(h, x, top.block, given, weight, bias, seen)
            for q, a in below.items():
                a.bias, a.seen = bias[q], seen[q]
        self.r.adapt(self.slope)
        self.slope = 0.0

    def _train(self, h, x, block: int, given: dict[int, tuple], weight: float, bias: dict, seen: dict) -> None:
        """Train regressors of a block; `given` are their scores and labels by lane. `bias` and `seen` are written."""
        s, y = ([F(given[q][k]) if q in given else F(0) for q in range(8)] for k in range(2))
        r = self.r.r
        self.slope += self.table.learn_block_by_arow(h, x, block, s, y, weight, r, bias, seen, BIAS_SQUARE, TOLERANCE)

    def _new_block(self) -> int:
        self.blocks += 1
        return self.blocks

    def _insert(self, h: Sequence[int], x: Sequence[float], label: int) -> None:
        if not self.nodes:
            self.nodes.append(Node(None, label, self._new_block()))
            self.leaf[label] = self.nodes[0]
            return
        node = self.nodes[0]
        while node.children:
            node.leaves += 1
            left, right = node.children
            sides = [self._chance(h, x, one) for one in (left, right)]
            p = sides[1] / (sides[0] + sides[1])
            rule = (1 - self.alpha) * 2 * (p - 0.5) + self.alpha * math.log2(left.leaves / right.leaves)
            node = right if rule > 0 else left
        node.leaves += 1
        old, depth = node.label, 0 if node.block is not None else len(node.path())
        for y in (old, label):
            child = Node(node, y, self._new_block() if depth + 1 == LEVELS else None)
            node.children.append(child)
            self.nodes.append(child)
            self.leaf[y] = child
        node.label = None
        if node.block is None:
            node.children[0].bias, node.children[0].seen = node.bias, node.seen
        else:
            node.children[0].bias = F(1)

    def _chance(self, h: Sequence[int], x: Sequence[float], node: Node) -> float:
        """Return the sum of the probabilities of the regressors at a node, or below it within its block."""
        if node.children and node.block is None:
            return sum(self._chance(h, x, one) for one in node.children)
        return float(sigmoid(self.score(h, x, node)))


def sigmoid(s: np.float32) -> np.float32:
    return F(1) / (F(1) + np.exp(-SLOPE * s))
