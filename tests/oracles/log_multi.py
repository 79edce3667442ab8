"""Oracle of LOMTree, written from Algorithm 1 of the paper with dicts; its subroutines keep their names.

Source   Choromanska, Langford, "Logarithmic Time Online Multiclass Prediction", NIPS 2015, Algorithm 1; VW 9.11.9
         `--log_multi` for what the paper leaves open.
Differs  from the paper: there are up to T inner nodes instead of T - 1; a leaf that a swap makes an inner node gets the
         regressor of the inner node that was removed; C is also updated above the leaf that an example reaches; a leaf
         without examples predicts what its parent predicted; means are rounded to float32 before they are compared.
         The paper does not define a swap that removes a child of the root, which has no grandparent. With `at_root`
         "sibling", the sibling becomes the root. With "vw", the root becomes the right child of the node that splits,
         as a leaf, but examples still start there.
Names    as in the paper: l, m, n, e, E, C of a node; r root; T largest number of inner nodes; R_S swap resistance.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable

import numpy as np

from .learner import F, Learner, vw_slot

FIRST = 1  # prediction before the first example


class Node:
    """Hold a node, which is a leaf until it gets `left` and `right`."""

    def __init__(self):
        self.parent = self.left = self.right = None
        self.regressor: int | None = None
        self.prediction = FIRST
        self.recycled = 0
        self.set_node()

    def set_node(self) -> None:
        """Reset the node, as the subroutine SetNode of the paper does."""
        self.left = self.right = self.regressor = None
        self.m: dict[int, float] = {}
        self.l: dict[int, int] = {}
        self.n: dict[int, int] = {}
        self.total = 0.0  # sum of m, added in the order of the examples
        self.C = 0
        self.most = 0  # largest count in l; `answer` is its label

    def e(self, y: int) -> np.float32:
        return F(self.m.get(y, 0.0)) / F(self.n[y]) if self.n.get(y) else F(0)

    def E(self) -> np.float32:
        n = sum(self.n.values())
        return F(self.total) / F(n) if n else F(0)

    def is_leaf(self) -> bool:
        return self.left is None

    def nodes(self) -> list[Node]:
        """Return this node and all nodes below it."""
        return [self] if self.is_leaf() else [self, *self.left.nodes(), *self.right.nodes()]


class LomTree:
    """Learn and predict labels with a LOMTree.

    Parameters
    ----------
    k : number of labels
    most : T, the largest number of inner nodes; None for k - 1
    resistance : R_S
    at_root : "vw" or "sibling", see the head of this module
    skip_zero_weight : whether examples of weight 0 are ignored
    bits, slot : layout of the weights, VW's by default
    learner : its `predict(features, sub)` returns a clipped prediction, whose sign decides the turn; its
        `teach(features, y, weight, sub, clock)` learns, and returns the clipped prediction after the update and the
        number to add to the sums m. `VwRouters` by default
    **rule : keywords of `Learner`, see `resolve_rule`

    Attributes
    ----------
    route : the updates of the last example: [(regressor, side of the label)]
    """

    def __init__(
        self, k: int, *, most: int | None = None, resistance: int = 4, at_root: str = "vw", skip_zero_weight=False,
        bits: int = 18, slot: Callable[[int, int], Hashable] | None = None, learner=None, **rule,
    ):  # fmt: skip
        self.T = k - 1 if most is None else most
        self.R_S = resistance
        self.at_root = at_root
        self.skip_zero_weight = skip_zero_weight
        rule = {**rule, "loss": "quantile", "tau": 0.5}
        self.learner = learner or VwRouters(slot or vw_slot(max(1, self.T), bits), **rule)
        self.r = Node()
        self.t = 0
        self.swaps = 0
        self.tree_lost = False
        self.rooted = 0  # number of swaps in which a sibling became the root
        self.route: list[tuple] = []

    def predict(self, features: list[tuple]) -> int:
        j = self.r
        while not j.is_leaf():
            j = j.left if self.learner.predict(features, j.regressor) < 0 else j.right
        return j.prediction

    def learn(self, features: list[tuple], y: int, weight: float = 1.0, clock: float = 0.0) -> None:
        self.route = []
        if self.skip_zero_weight and weight == 0:
            return
        j = self.r
        while True:
            j.l[y] = j.l.get(y, 0) + 1
            if j.l[y] > j.most:
                j.most, j.prediction = j.l[y], y
            wanted = self.t < self.T or j.C - j.most > self.R_S * (self.r.C + 1)
            if j.is_leaf() and len(j.l) > 1 and wanted:
                self.split(j)
            if j.is_leaf():
                j.C += 1
                self.update_C(j)
                return
            c = -1 if j.E() > j.e(y) else 1
            self.route.append((j.regressor, c))
            turn, h = self.learner.teach(features, c, weight, j.regressor, clock)
            j.n[y] = j.n.get(y, 0) + 1
            j.m[y] = j.m.get(y, 0.0) + float(h)
            j.total += float(h)
            j = j.left if turn < 0 else j.right

    def split(self, j: Node) -> None:
        if self.t < self.T:
            j.left, j.right = Node(), Node()
            j.regressor = self.t
            self.t += 1
        else:
            self.swap(j)
        for child in (j.left, j.right):
            child.parent = j
            child.prediction = j.prediction
        j.left.C = j.C // 2
        j.right.C = j.C - j.left.C
        self.update_C(j.left)

    def swap(self, v: Node) -> None:
        """Make the leaf v an inner node with two recycled nodes as children, as the subroutine Swap of the paper does.

        The leaf with the smallest C is removed together with its parent, whose place its sibling takes.
        """
        self.swaps += 1
        s = self.r
        while not s.is_leaf():
            s = s.left if s.left.C < s.right.C else s.right
        above = s.parent
        grand = above.parent
        sibling = above.right if s is above.left else above.left
        sibling.parent = grand
        if grand is None and self.at_root == "vw":
            self.tree_lost = True
        elif grand is None:
            self.r = sibling
            self.rooted += 1
        elif above is grand.left:
            grand.left = sibling
        else:
            grand.right = sibling
        self.update_C(sibling)
        regressor = above.regressor
        s.set_node()
        above.set_node()
        s.recycled += 1
        above.recycled += 1
        v.left, v.right, v.regressor = s, above, regressor

    def update_C(self, v: Node) -> None:
        """Update C of the nodes above v, as the subroutine UpdateC of the paper does."""
        while v is not self.r and v.parent is not None and v.parent.C != v.C:
            v = v.parent
            v.C = min(v.left.C, v.right.C) if not v.is_leaf() else v.C

    def depths(self) -> list[int]:
        """Return the depths of the leaves, from left to right."""

        def leaf_depths(node, depth):
            return [depth] if node.is_leaf() else leaf_depths(node.left, depth + 1) + leaf_depths(node.right, depth + 1)

        return leaf_depths(self.r, 0)


class VwRouters(Learner):
    """Use the binary learner as VW's routers do: predictions are added to the sums before they are clipped."""

    def teach(self, features, y, weight, sub, clock) -> tuple[np.float32, np.float32]:
        self.learn(features, y, weight, sub, clock)
        s = self.score(features, sub)
        return self.clip(s), F(0) if np.isnan(s) else s


class Routers:
    """Learn routers by AdaGrad on scaled examples, as xclass does by default. No two weights share a slot."""

    def __init__(self, loss: str = "hinge", rate: float = 1.0, tau: float = 0.5):
        self.loss, self.rate, self.tau = loss, F(rate), F(tau)
        self.w: dict[tuple, np.float32] = {}
        self.g: dict[tuple, np.float32] = {}
        self.largest: dict[int, np.float32] = {}

    def look(self, features: list[tuple], learned: bool) -> list[tuple]:
        """Return the features, divided by the largest value of each feature and then scaled to length 1.

        With `learned`, the largest values are updated.
        """
        row, total = [], 0.0
        for index, value in features:
            value = F(value)
            largest = self.largest.get(index, F(0))
            if abs(value) > largest and (learned or largest == 0):
                largest = abs(value)
                if learned:
                    self.largest[index] = largest
            row.append((index, value / largest if largest > 0 else F(0)))
            total += float(row[-1][1]) ** 2
        scale = F(1 / math.sqrt(total)) if total > 0 else F(1)
        return [(index, x * scale) for index, x in row]

    def predict(self, row: list[tuple], sub: int) -> np.float32:
        """Return the score, computed in four partial sums as in the kernel.

        Another order of summation would change the last bit, which decides whether a hinge loss is exactly 0.
        """
        parts = [F(0)] * 4
        whole = len(row) // 4 * 4
        for f, (index, x) in enumerate(row):
            part = f % 4 if f < whole else 0
            parts[part] = parts[part] + self.w.get((sub, index), F(0)) * x
        return (parts[0] + parts[1]) + (parts[2] + parts[3])

    def slope(self, s: float, y: int) -> float:
        """Return the derivative of the loss with respect to the score s."""
        if self.loss == "hinge":
            return -y if y * s < 1 else 0.0
        if self.loss == "quantile":
            return 0.0 if s == y else (-float(self.tau) if s < y else 1 - float(self.tau))
        if self.loss == "logistic":
            return -y / (1 + math.exp(y * s))
        return 2 * (min(max(s, -1.0), 1.0) - y)  # squared loss; the score is clipped to the range of labels

    def teach(self, row, y, weight, sub, clock) -> tuple[np.float32, np.float32]:
        s = self.predict(row, sub)
        slope = F(self.slope(float(s), y))
        if slope == 0:
            return s, s
        reach = F(0)
        rates = []
        for index, x in row:
            self.g[sub, index] = self.g.get((sub, index), F(0)) + F(weight) * slope * slope * (x * x)
        for index, x in row:
            g = self.g[sub, index]
            rates.append(x / np.sqrt(g) if g > 0 else F(0))
            reach = reach + x * rates[-1]
        step = -self.rate * F(weight) * slope
        after = s + step * reach
        if self.loss != "logistic" and abs(step) * reach > abs(F(y) - s):
            step, after = (F(y) - s) / reach, F(y)
        for (index, _), rate in zip(row, rates, strict=True):
            self.w[sub, index] = self.w.get((sub, index), F(0)) + step * rate
        return after, after
