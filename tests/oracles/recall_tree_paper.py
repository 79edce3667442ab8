"""Oracle of the Recall Tree, written from the paper alone: Algorithms 1 to 4 and equation (1), with their names.

Source   Daume III, Karampatziakis, Langford, Mineiro, "Logarithmic Time One-Against-Some", ICML 2017, sections 2 and 3,
         and the appendices of arXiv 1606.04988v1. `recall_tree.py` beside this file is the same tree by VW's rules.
Open     The paper does not say the following, and this is what is done here:
         * The root counts each label before the loop of Algorithm 2 begins, which counts labels of children only; a
           node's histogram holds "all training examples that have been routed to, or through," it (section 2.1).
         * Every node above the largest depth has two children, which have seen nothing at first (section 2.2).
         * The recall of a node without examples is below all others, and its entropy is 0.
         * Of labels with the same count, the one that reached it first is the more frequent one, and of candidates with
           the same score the more frequent one wins.
         * The entropies are in bits, as in section 3.3.
Misprint Algorithm 3 teaches the router sign(H|left - H|right), and Algorithm 1 goes left where the router is positive,
         so that examples would go where the entropy is larger. Section 2.2 says that the router is updated "by
         optimizing the reduction in the entropy", and theorem 2 needs it. The sign is therefore the opposite one,
         unless `printed_sign` is given.
Names    as in the paper: n node, c child, f router, F number of candidates, lam lambda, r empirical recall, m total.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Protocol

Features = list[tuple[Hashable, float]]


class BinaryLearners(Protocol):
    """Learn many binary problems; `predict` returns the value whose sign is the answer."""

    def predict(self, x: Features, problem: Hashable) -> float: ...

    def learn(self, x: Features, label: int, weight: float, problem: Hashable) -> None: ...


class BinaryTree:
    """Hold a node: the structure BinaryTree of figure 2."""

    def __init__(self, ident: int, levels: int):
        self.id = ident
        self.levels = levels  # levels below this node
        self.hist: dict[int, int] = {}  # in the order in which labels reached their counts
        self._children: tuple[BinaryTree, BinaryTree] | None = None

    @property
    def leaf(self) -> bool:
        return self.levels == 0

    @property
    def left(self) -> BinaryTree:
        return self._both()[0]

    @property
    def right(self) -> BinaryTree:
        return self._both()[1]

    def _both(self) -> tuple[BinaryTree, BinaryTree]:
        """Return the children, which are made when they are first asked for; the root's id is 1, as in a heap."""
        if self._children is None:
            self._children = tuple(BinaryTree(2 * self.id + side, self.levels - 1) for side in (0, 1))
        return self._children

    @property
    def total(self) -> int:
        return sum(self.hist.values())

    def candidates(self, F: int) -> list[int]:
        """Return the F most frequent labels, most frequent first."""
        return sorted(self.hist, key=lambda y: -self.hist[y])[:F]

    def count(self, y: int) -> None:
        """Count a label; it becomes the last of those with its count."""
        self.hist[y] = self.hist.pop(y, 0) + 1


def entropy(n: BinaryTree, y: int) -> tuple[float, float]:
    """Return the empirical entropy of the labels at a node without and with an extra label y."""

    def of(counts: list[int]) -> float:
        total = sum(counts)
        return sum(c / total * math.log2(total / c) for c in counts if c)

    extra = {**n.hist, y: n.hist.get(y, 0) + 1}
    return of(list(n.hist.values())), of(list(extra.values()))


class RecallTree:
    """Learn and predict labels with a Recall Tree.

    Parameters
    ----------
    routers, scorers : learners of the nodes, by their ids, and of the labels
    F : number of candidates
    depth : largest depth; the paper's default for K labels is log2(K)
    lam : lambda of equation (1); 0 compares the empirical recalls
    penalty : what the last term of equation (1) is multiplied by, 1 in the paper
    always_descend : whether examples go down to the leaves, whatever the recalls are
    printed_sign : whether routers learn the sign that Algorithm 3 prints, see the head of this module
    path_features : whether x gets the ids of the nodes that it enters

    Attributes
    ----------
    ended : the node where the last prediction or the learning of the last example ended
    taught : (node, label, weight) of each update of a router by the last example
    """

    def __init__(
        self, routers: BinaryLearners, scorers: BinaryLearners, *, F: int, depth: int, lam: float = 1.0,
        penalty: float = 1.0, always_descend: bool = False, printed_sign: bool = False, path_features: bool = True,
    ):  # fmt: skip
        self.routers, self.scorers = routers, scorers
        self.F, self.lam, self.penalty = F, lam, penalty
        self.always_descend, self.path_features = always_descend, path_features
        self.sign = 1 if printed_sign else -1
        self.ended = self.root = BinaryTree(1, depth)
        self.taught: list[tuple[int, int, float]] = []

    def recall(self, n: BinaryTree) -> float:
        """Return the lower bound of the recall, equation (1)."""
        m = n.total
        if m == 0:
            return -math.inf
        r = sum(n.hist[y] for y in n.candidates(self.F)) / m
        return r - math.sqrt(self.lam * r * (1 - r) / m) - self.penalty * self.lam / m

    def breaks(self, n: BinaryTree, c: BinaryTree) -> bool:
        return not self.always_descend and self.recall(n) > self.recall(c)

    def enter(self, x: Features, n: BinaryTree) -> Features:
        return [*x, (("node", n.id), 1.0)] if self.path_features else x

    def child(self, x: Features, n: BinaryTree) -> BinaryTree:
        return n.left if self.routers.predict(x, n.id) > 0 else n.right

    def descend(self, x: Features) -> tuple[BinaryTree, Features]:
        """Return where an example stops and the features that it has there: the loop of Algorithm 1."""
        n = self.root
        while not n.leaf:
            c = self.child(x, n)
            if self.breaks(n, c):
                break
            n = c
            x = self.enter(x, n)
        self.ended = n
        return n, x

    def predict(self, x: Features) -> int | None:
        """Return the label that Algorithm 1 predicts, None before the first example."""
        n, x = self.descend(x)
        return max(n.candidates(self.F), key=lambda y: self.scorers.predict(x, y), default=None)

    def learn(self, x: Features, y: int) -> None:
        """Learn an example: Algorithm 2."""
        self.taught = []
        n = self.root
        n.count(y)
        while not n.leaf:
            self.update_router(x, y, n)
            c = self.child(x, n)
            c.count(y)  # update_candidates
            if self.breaks(n, c):
                break
            n = c
            x = self.enter(x, n)
        self.ended = n
        self.update_regressors(x, y, n.candidates(self.F))

    def update_router(self, x: Features, y: int, n: BinaryTree) -> None:
        """Teach the router of a node the side on which the expected entropy is smaller: Algorithm 3."""
        h_left, h_left_with = entropy(n.left, y)
        h_right, h_right_with = entropy(n.right, y)
        left, right = n.left.total / n.total, n.right.total / n.total
        if_left = left * h_left_with + right * h_right
        if_right = left * h_left + right * h_right_with
        post = if_left - if_right
        if post != 0:
            label = self.sign * (1 if post > 0 else -1)
            self.routers.learn(x, label, abs(post), n.id)
            self.taught.append((n.id, label, abs(post)))

    def update_regressors(self, x: Features, y: int, candidates: list[int]) -> None:
        """Teach the candidates, if the label is one of them: Algorithm 4."""
        if y in candidates:
            self.scorers.learn(x, 1, 1.0, y)
            for other in candidates:
                if other != y:
                    self.scorers.learn(x, -1, 1.0, other)
