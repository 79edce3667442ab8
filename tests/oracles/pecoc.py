"""Oracle of probability trees whose nodes have m branches (PECOC), written from the paper with dicts and a full matrix.

Source   Beygelzimer, Langford, Lifshits, Sorkin, Strehl, "Conditional Probability Tree Estimation Analysis and
         Algorithms", UAI 2009, section "hpecoc".
Idea     A node has m - 1 regressors, each with a dict of weights, and a dict of branches, numbered by log2 m bits. A
         branch that is a leaf has a width, the number of bits that are decided. If it is less than log2 m, the leaf can
         be split within the node; otherwise the leaf becomes a node.
Differs  from xclass, which represents the tree as a binary tree. Differences from the paper are described in
         xclass/reductions/cpt/pecoc.py and wide_nodes.py.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from . import cpt

LEAST = 0.01


def hadamard(m: int) -> np.ndarray:
    """Return the matrix of 0 and 1 in the paper: each row selects a subset of the branches, the first row all."""
    matrix = np.ones((1, 1), int)
    while len(matrix) < m:
        matrix = np.block([[matrix, matrix], [matrix, 1 - matrix]])
    return matrix


def estimates(matrix, f) -> np.ndarray:
    """Return the paper's estimates P(c) from f; `f[i]` is the probability of the subset of row i, and f[0] is 1."""
    f = np.asarray(f)[:, None]
    return 2 * (matrix * f + (1 - matrix) * (1 - f)).mean(axis=0) - 1


def nearest(v) -> np.ndarray:
    """Return the projection of v to the probability simplex.

    See Held, Wolfe, Crowder, "Validation of Subgradient Optimization", 1974.
    """
    falling = np.sort(v)[::-1]
    shift = (np.cumsum(falling) - 1) / np.arange(1, len(v) + 1)
    return np.maximum(v - shift[falling > shift][-1], 0)


@dataclass
class Regressor:
    place: int = 0  # where the weights are, for learners with weights elsewhere than in the regressor
    w: dict = field(default_factory=dict)
    g: dict = field(default_factory=dict)


@dataclass
class Leaf:
    label: int
    width: int
    number: int  # of the corresponding node of a binary tree, whose nodes are numbered as they are created, in pairs
    node: Node | None = None  # the node that it becomes when it splits, if that is already trained


class Node:
    def __init__(self, m: int, number: int):
        self.number = number  # as of a leaf
        # one per row of the matrix; the first one is not used
        self.regressors = [Regressor(m * (number + 1) + i) for i in range(m)]
        self.branches: dict[int, Node | Leaf] = {}

    def leaves(self) -> int:
        return sum(1 if isinstance(b, Leaf) else b.leaves() for b in self.branches.values())

    def depth(self) -> int:
        """Return the number of nodes on the longest path down, including this one."""
        return 1 + max((0 if isinstance(b, Leaf) else b.depth()) for b in self.branches.values())


class Tree(cpt.Tree):
    """Learn a tree whose nodes have up to m branches, m a power of two, and estimate the probabilities of classes."""

    def __init__(self, m: int, **more):
        super().__init__(**more)
        self.m, self.bits = m, m.bit_length() - 1
        self.matrix = hadamard(m)
        self.root = Node(m, 0)
        self.numbers = 1  # of nodes of the binary tree
        self.way: dict[int, list[tuple[Node, int]]] = {}  # label -> nodes and branches from the root

    # prediction

    def inside(self, node, row) -> list[float]:
        """Return for every row of the matrix the estimated probability of its subset of the branches."""
        return [1.0] + [1 - self.p_right(regressor, row) for regressor in node.regressors[1:]]

    def masses(self, node, row) -> dict[int, float]:
        """Return the probability of every branch of a node."""
        plain = estimates(self.matrix, self.inside(node, row))
        used = sorted(node.branches)
        some = np.maximum(nearest(plain[used]), LEAST / self.m)
        return dict(zip(used, (some / some.sum()).tolist(), strict=True))

    def probability(self, y, row) -> float:
        return math.prod(self.masses(node, row)[c] for node, c in self.way[y])

    def probabilities(self, features) -> dict[int, float]:
        row = self.scaled(features)
        return {y: self.probability(y, row) for y in self.way} if len(self.way) > 1 else dict.fromkeys(self.way, 1.0)

    def regressor_losses(self, features, y) -> tuple[int, float]:
        """Return the number of regressors on the path to label y, and the sum of their squared losses."""
        row = self.scaled(features)
        number, total = 0, 0.0
        for node, c in self.way[y] if len(self.way) > 1 else []:
            for i, f in list(enumerate(self.inside(node, row)))[1:]:
                number += 1
                total += (f - self.matrix[i, c]) ** 2
        return number, total

    # learning

    def learn(self, features, y: int, weight: float = 1.0) -> None:
        row = self.scaled(features)
        if y not in self.way:
            self.insert(row, y)
        self.train_path(self.way[y], row, weight)
        node, c = self.way[y][-1]
        leaf = node.branches[c]
        if leaf.width == self.bits and len(node.branches) == self.m:
            leaf.node = leaf.node or Node(self.m, leaf.number)
            self.train_node(leaf.node, 0, row, weight)

    def train_path(self, way, row, weight) -> None:
        for node, c in way:
            self.train_node(node, c, row, weight)

    def train_node(self, node, c, row, weight) -> None:
        for regressor, y, s in self.lessons(node, c, self.scores(node, row)):
            self.train(regressor, row, y, weight, s)

    def scores(self, node, row) -> list[np.float32]:
        return [self.score(regressor, row) for regressor in node.regressors]

    def lessons(self, node, c, scores) -> list[tuple[Regressor, int, np.float32]]:
        """Return each regressor of a node with its label, if branch c is right, and its score."""
        return [(node.regressors[i], -1 if self.matrix[i, c] else 1, scores[i]) for i in range(1, self.m)]

    def insert(self, row, y) -> None:
        if not self.way:
            self.root.branches[0] = Leaf(y, 0, 0)
            self.way[y] = [(self.root, 0)]
            return
        node, way = self.root, []
        while True:
            c, width = self.turns(node, row)
            way.append((node, c))
            at = node.branches[c]
            if isinstance(at, Leaf) and width < self.bits:
                break
            if isinstance(at, Leaf):  # no bit is left, so the leaf becomes a node
                node.branches[c] = at.node or Node(self.m, at.number)
                node.branches[c].branches[0] = Leaf(at.label, 0, at.number)
                self.way[at.label] = [*way, (node.branches[c], 0)]
                at = node.branches[c]
            node = at
        # the label at c keeps its branch; the branch of the new label differs in the next bit, which is 1
        at.width += 1
        new = c | 1 << (at.width - 1)
        at.number, self.numbers = self.numbers, self.numbers + 2
        node.branches[new] = Leaf(y, at.width, at.number + 1)
        self.way[y] = [*way[:-1], (node, new)]

    def turns(self, node, row) -> tuple[int, int]:
        """Choose a branch of a node for a new label, bit by bit; return it and the number of bits decided."""
        mass = self.masses(node, row)
        c = 0
        for bit in range(self.bits):
            here = node.branches[c]
            if isinstance(here, Leaf) and here.width == bit:
                return c, bit
            sides = [[b for b in node.branches if b % (2 << bit) == c + (side << bit)] for side in (0, 1)]
            full = [len(side) == self.m >> (bit + 1) for side in sides]
            if full[0] != full[1]:
                right = full[0]
            elif self.rule == "random":
                right = self.rand() >= 0.5
            else:
                a = 1.0 if self.rule == "balanced" else self.alpha
                left_mass, right_mass = (sum(mass[b] for b in side) for side in sides)
                counts = [
                    sum(1 if isinstance(node.branches[b], Leaf) else node.branches[b].leaves() for b in side)
                    for side in sides
                ]
                p = right_mass / (left_mass + right_mass)
                right = (1 - a) * 2 * (p - 0.5) + a * math.log2(counts[0] / counts[1]) > 0
            c += int(right) << bit
        return c, self.bits
