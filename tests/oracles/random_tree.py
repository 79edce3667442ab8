"""Oracle of the random tree: a balanced tree of the labels as nested pairs, with xclass' routers.

Source   Choromanska, Langford, "Logarithmic Time Online Multiclass Prediction", NIPS 2015, the baseline Rtree; the
         order of labels is drawn by the generator of VW, two draws a number.
Idea     An inner node is a tuple (number, left, right), a leaf a label. An example trains the routers above its label.
"""

from __future__ import annotations

from .log_multi import Routers
from .oaa import Rand


def order_of(k: int, seed: int) -> list[int]:
    """The labels in the order of the leaves: Fisher and Yates' shuffle."""
    rand = Rand(seed)
    labels = list(range(1, k + 1))
    for i in range(k - 1, 0, -1):
        high, low = float(rand()), float(rand())
        j = int((high + low / 2**23) * (i + 1))
        labels[i], labels[j] = labels[j], labels[i]
    return labels


def balanced(labels: list[int], number: int = 0):
    """The nodes from `number` on in the heap whose leaves are the labels."""
    k = len(labels)
    if number >= k - 1:
        return labels[number - (k - 1)]
    return number, balanced(labels, 2 * number + 1), balanced(labels, 2 * number + 2)


def leaves(node) -> list[int]:
    return leaves(node[1]) + leaves(node[2]) if isinstance(node, tuple) else [node]


class RandomTree:
    """`predict(row)`, `learn(row, y, weight)`, rows being those of `routers.look`."""

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
            left = y in leaves(node[1])
            self.routers.teach(row, -1 if left else 1, weight, node[0], 0.0)
            node = node[1] if left else node[2]
