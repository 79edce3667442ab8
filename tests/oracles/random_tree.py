"""Oracle of the random tree: a balanced tree of randomly ordered labels, with the routers of xclass.

Source   Choromanska, Langford, "Logarithmic Time Online Multiclass Prediction", NIPS 2015, the baseline Rtree. The
         labels are shuffled by VW's random numbers, two for each draw.
Idea     An inner node is a tuple (number, left, right), and a leaf is a label. An example trains the routers above the
         leaf of its label.
"""

from .log_multi import Routers
from .oaa import Rand


def order_of(k: int, seed: int) -> list[int]:
    """Return the labels in the order of the leaves, by a Fisher-Yates shuffle."""
    rand = Rand(seed)
    labels = list(range(1, k + 1))
    for i in range(k - 1, 0, -1):
        high, low = float(rand()), float(rand())
        j = int((high + low / 2**23) * (i + 1))
        labels[i], labels[j] = labels[j], labels[i]
    return labels


def balanced(labels: list[int], number: int = 0):
    """Return the subtree of node `number`, where nodes are numbered as in a binary heap, inner nodes first."""
    k = len(labels)
    if number >= k - 1:
        return labels[number - (k - 1)]
    return number, balanced(labels, 2 * number + 1), balanced(labels, 2 * number + 2)


def leaves(node) -> list[int]:
    return leaves(node[1]) + leaves(node[2]) if isinstance(node, tuple) else [node]


class RandomTree:
    """Learn and predict labels; rows are those that `routers.look` returns."""

    def __init__(self, k: int, seed: int = 0, **rule):
        self.root = balanced(order_of(k, seed))
        self.routers = Routers(**rule)

    def predict(self, row) -> int:
        node = self.root
        while isinstance(node, tuple):
            node = node[1] if self.routers.predict(row, node[0]) < 0 else node[2]
        return node

    def learn(self, row, y: int, weight: float = 1.0) -> None:
        node = self.root
        while isinstance(node, tuple):
            goes_left = y in leaves(node[1])
            self.routers.teach(row, -1 if goes_left else 1, weight, node[0], 0.0)
            node = node[1] if goes_left else node[2]
