"""Oracle of the probabilistic label tree of VW 9.11.9.

Source   Jasinska, Dembczynski, Busa-Fekete, Pfannschmidt, Klerx, Hullermeier, "Extreme F-measure Maximization using
         Sparse Probability Estimates", ICML 2016; VW's --plt for the tree and for the order of its updates.
Idea     The labels are the leaves of a tree. A regressor at each node estimates the probability that some label of the
         example is below it, given that some is below its parent. The product of these along the path of a label is
         its probability. An example trains the nodes that some of its labels are below towards 1, and their children
         that none is below towards -1; the other nodes learn nothing.
         VW also searches labels that the last inner node lacks, and adds the losses of the nodes in the order of its
         sets. The clock of a node begins at 0, and the examples that were not learned are taken from it.
Names    k labels, 0 to k - 1 | n a node: the root is 0, the children of n are b n + 1 to b n + b.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .learner import F, Learner, vw_slot

PRIMES = (13, 29, 59, 127, 257, 541, 1109, 2357, 5087, 10273, 20753, 42043, 85229)


class HashSet:
    """Keep numbers in the order of libstdc++'s `std::unordered_set`, which is cleared but never becomes smaller."""

    def __init__(self) -> None:
        self.buckets = 1
        self.order: list[int] = []

    def add(self, v: int) -> None:
        if v in self.order:
            return
        if len(self.order) + 1 > self.buckets or (self.buckets == 1 and not self.order):
            self.buckets = next(p for p in PRIMES if p > self.buckets)
            old, self.order = self.order, []
            for x in old:
                self._link(x)
        self._link(v)

    def _link(self, v: int) -> None:
        same = (i for i, x in enumerate(self.order) if x % self.buckets == v % self.buckets)
        self.order.insert(next(same, 0), v)


class Heap:
    """Hold pairs (p, node) in the order of libstdc++'s `std::push_heap` and `std::pop_heap`, the largest p first."""

    def __init__(self) -> None:
        self.items: list[tuple] = []

    def push(self, item: tuple) -> None:
        self.items.append(item)
        self._rise(len(self.items) - 1, item)

    def _rise(self, i: int, item: tuple) -> None:
        while i > 0 and self.items[(i - 1) // 2][0] < item[0]:
            self.items[i] = self.items[(i - 1) // 2]
            i = (i - 1) // 2
        self.items[i] = item

    def pop(self) -> tuple:
        best, last = self.items[0], self.items.pop()
        if self.items:
            hole = 0
            while 2 * hole + 1 < len(self.items):
                child = 2 * hole + 2
                if child == len(self.items) or self.items[child][0] < self.items[child - 1][0]:
                    child -= 1
                self.items[hole] = self.items[child]
                hole = child
            self._rise(hole, last)
        return best


class LabelTree:
    """Learn lists of labels, and predict labels with their probabilities.

    Parameters
    ----------
    k, arity : number of labels, and of the children of a node
    bits : log2 of the number of slots in VW's layout
    **rule : keywords of `Learner`, see `resolve_rule`

    Attributes
    ----------
    updates : number of updates of each node
    left_out : number of examples that were not learned, which the caller counts
    """

    def __init__(self, k: int, arity: int = 2, *, bits: int = 18, **rule):
        self.k, self.arity = k, arity
        self.inner = -(-(k - 1) // (arity - 1))
        self.nodes = k + self.inner
        self.updates = [0.0] * self.nodes
        self.left_out = 0
        self.learner = Learner(vw_slot(self.nodes, bits), **rule)
        self.positive, self.negative = HashSet(), HashSet()

    def children(self, n: int, phantoms: bool = False) -> range:
        end = self.arity * n + self.arity + 1
        return range(self.arity * n + 1, end if phantoms else min(end, self.nodes))

    def path(self, label: int) -> list[int]:
        """Return the nodes from the leaf of a label to the root."""
        nodes = [self.inner + label]
        while nodes[-1] > 0:
            nodes.append((nodes[-1] - 1) // self.arity)
        return nodes

    def _score(self, features: list[tuple], n: int) -> np.float32:
        return self.learner.score(features, n)

    def _sigmoid(self, features: list[tuple], n: int) -> np.float32:
        with np.errstate(over="ignore"):
            return F(1) / (F(1) + np.exp(-self._score(features, n)))

    # answers

    def probability(self, features: list[tuple], label: int) -> np.float32:
        """Return the probability of a label: the product from the root to its leaf, in float32."""
        p = F(1)
        for n in reversed(self.path(label)):
            p = p * self._sigmoid(features, n)
        return p

    def above(self, features: list[tuple], threshold: float) -> list[int]:
        """Return the labels whose probability is above a threshold, in the order in which VW finds them."""
        found, stack = [], []
        p = self._sigmoid(features, 0)
        if p > F(threshold):
            if self.inner == 0:
                return [0]
            stack.append((0, p))
        while stack:
            n, p = stack.pop()
            for c in self.children(n, True):
                below = p * self._sigmoid(features, c)
                if below > F(threshold):
                    if c < self.inner:
                        stack.append((c, below))
                    elif c < self.nodes:
                        found.append(c - self.inner)
        return found

    def best(self, features: list[tuple], count: int) -> list[tuple[int, np.float32]]:
        """Return the `count` most probable labels with their probabilities, best first."""
        found, heap = [], Heap()
        heap.push((self._sigmoid(features, 0), 0))
        while heap.items and len(found) < count:
            p, n = heap.pop()
            if n >= self.inner:
                if n < self.nodes:
                    found.append((n - self.inner, p))
                continue
            for c in self.children(n, True):
                heap.push((p * self._sigmoid(features, c), c))
        return found

    # learning

    def targets(self, labels: Sequence[int]) -> list[tuple[int, int]]:
        """Return the nodes that an example trains, with their labels, in the order of VW."""
        self.positive.order, self.negative.order = [], []
        for label in labels:
            if 0 <= label < self.k:
                for n in self.path(label):
                    self.positive.add(n)
        for n in self.positive.order:
            for c in self.children(n):
                if c not in self.positive.order:
                    self.negative.add(c)
        return [(n, 1) for n in self.positive.order] + [(n, -1) for n in self.negative.order]

    def loss(self, features: list[tuple], labels: Sequence[int]) -> np.float32:
        """Return the sum of the losses of the nodes that an example trains, in float32."""
        total = F(0)
        for n, y in self.targets(labels):
            total = total + self.learner.loss.value(self.learner.clip(self._score(features, n)), F(y))
        return total

    def learn(self, features: list[tuple], labels: Sequence[int], weight: float = 1.0) -> None:
        """Learn from an example, whose prediction VW has made before, collecting the nodes once for its loss."""
        self.targets(labels)
        for n, y in self.targets(labels):
            clock = self.updates[n] - self.left_out - float(self.learner.initial_t)
            self.learner.learn(features, y, weight, n, clock)
            self.updates[n] += weight
