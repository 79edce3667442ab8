"""Oracle of the conditional probability tree, written from the paper with dicts and floats.

Source   Beygelzimer, Langford, Lifshits, Sorkin, Strehl, "Conditional Probability Tree Estimation Analysis and
         Algorithms", UAI 2009.
Idea     Every node has a dict of weights, so no two weights share a slot. A learner that is compared with this oracle
         needs a weight table so large that it has hardly any collisions.
Differs  from the paper, as xclass does: the labels of a node's binary problem are -1 (left) and 1 (right); a leaf that
         splits keeps its regressor when it becomes an inner node (the paper copies it); the update is AdaGrad on
         examples scaled to length 1; under squared loss, each turn has at least the probability LEAST.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from .learner import F
from .oaa import Rand

LEAST = 0.01


@dataclass
class Node:
    """Hold a node: a leaf if it has no children; an inner node has `label` None after its split."""

    label: int | None
    up: Node | None = None
    left: Node | None = None
    right: Node | None = None
    w: dict = field(default_factory=dict)
    g: dict = field(default_factory=dict)

    def leaves(self) -> int:
        return 1 if self.left is None else self.left.leaves() + self.right.leaves()

    def depth(self) -> int:
        return 0 if self.left is None else 1 + max(self.left.depth(), self.right.depth())


class Tree:
    """Learn a tree and estimate the probabilities of classes; features are (index, value) pairs.

    Parameters
    ----------
    alpha : weight of the balance of the tree, against the regressor, when a new label descends ("general")
    rule : how a new label chooses its turns: "general", "balanced" or "random"
    loss : "squared" or "logistic"
    rate : learning rate
    unit : whether examples are scaled to length 1
    seed : seed of the random turns
    """

    def __init__(
        self, *, alpha: float = 0.6, rule: str = "general", loss: str = "squared", rate=0.5, unit=True, seed=0
    ):
        self.alpha, self.rule, self.loss, self.rate, self.unit = alpha, rule, loss, F(rate), unit
        self.rand = Rand(seed)
        self.root: Node | None = None
        self.leaf: dict[int, Node] = {}

    def scaled(self, features):
        scale = F(1)
        if self.unit:
            total = 0.0
            for _, x in features:
                total += float(F(x)) * float(F(x))
            if total > 0:
                scale = F(1 / math.sqrt(total))
        return [(index, F(x) * scale) for index, x in features]

    def score(self, node, row) -> np.float32:
        total = F(0)
        for index, x in row:
            total = total + node.w.get(index, F(0)) * x
        return total

    def p_right(self, node, row) -> float:
        s = float(self.score(node, row))
        if self.loss == "logistic":
            return 1 / (1 + math.exp(-s))
        return min(max(0.5 + 0.5 * s, LEAST), 1 - LEAST)

    def probability(self, y, row) -> float:
        """Return the estimate of P(y | x), the product of the probabilities of the turns to the leaf of y."""
        p, node = 1.0, self.leaf[y]
        while node.up is not None:
            right = self.p_right(node.up, row)
            p *= right if node is node.up.right else 1 - right
            node = node.up
        return p

    def probabilities(self, features) -> dict[int, float]:
        row = self.scaled(features)
        return {y: self.probability(y, row) for y in self.leaf}

    def train(self, node, row, y, weight, s=None) -> None:
        s = self.score(node, row) if s is None else s
        if self.loss == "logistic":
            slope = F(-y / (1 + math.exp(float(y * s))))
        else:
            slope = F(2) * (min(max(s, F(-1)), F(1)) - F(y))
        if slope == 0:
            return
        for index, x in row:
            node.g[index] = node.g.get(index, F(0)) + F(weight) * slope * slope * x * x
        rates = [x / np.sqrt(node.g[index]) if node.g[index] > 0 else F(0) for index, x in row]
        step = self.rate * F(weight) * slope
        reach = F(sum(x * rate for (_, x), rate in zip(row, rates, strict=True)))
        if self.loss == "squared" and abs(step) * reach > abs(s - F(y)):
            step = (s - F(y)) / reach
        for (index, _), rate in zip(row, rates, strict=True):
            node.w[index] = node.w.get(index, F(0)) - step * rate

    def learn(self, features, y: int, weight: float = 1.0) -> None:
        row = self.scaled(features)
        if y in self.leaf:
            self.learn_path(row, y, weight)
        else:
            self.insert(row, y, weight)

    def learn_path(self, row, y: int, weight: float) -> None:
        """Train the nodes on the path to the leaf of a known label, and the leaf."""
        node, turn = self.leaf[y], -1
        while node is not None:
            self.train(node, row, turn, weight)
            turn = 1 if node.up is not None and node is node.up.right else -1
            node = node.up

    def insert(self, row, y: int, weight: float) -> None:
        """Insert a new label and train the nodes on its path."""
        if self.root is None:
            self.root = self.leaf[y] = Node(y)
            self.begin(self.root)
            self.train(self.root, row, -1, weight)
            return
        node = self.root
        while node.left is not None:
            if self.rule == "random":
                right = self.rand() >= 0.5
            else:
                a = 1.0 if self.rule == "balanced" else self.alpha
                balance = math.log2(node.left.leaves() / node.right.leaves())
                right = (1 - a) * 2 * (self.p_right(node, row) - 0.5) + a * balance > 0
            self.train(node, row, 1 if right else -1, weight)
            node = node.right if right else node.left
        node.left, node.right = Node(node.label, node), Node(y, node)
        self.leaf[node.label], self.leaf[y] = node.left, node.right
        node.label = None
        self.begin(node.left)
        self.begin(node.right)
        self.train(node, row, 1, weight)
        self.train(node.right, row, -1, weight)

    def begin(self, node: Node) -> None:
        """Prepare a new node, for learners with weights elsewhere than in the node."""
