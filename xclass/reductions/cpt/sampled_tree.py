"""Build label trees from the first examples: by clustering, so that similar labels are together, or by Huffman's
algorithm, so that frequent labels are near the root, as in a hierarchical softmax.

Source    The order of the labels by clustering is that of `clusters.two_means`; the tree halves this order.
          Huffman, "A Method for the Construction of Minimum-Redundancy Codes", Proceedings of the IRE, 1952; used for
          classes by Mikolov et al., "Efficient Estimation of Word Representations in Vector Space", ICLR 2013.
Cost      O(K log K) for the Huffman tree of K labels, once.
Differs   from the paper with `--hsm`, Zharmagambetov et al., "Softmax Tree", 2021 (docs/papers.md):
          * the Huffman tree is that of the first 100,000 examples
          * hierarchical softmax learns by plain steps at the rate 2, without momentum
          * `--hsm_paper` lets the rate fall after each pass
          * with momentum, a weight moves only where its node learns and its feature occurs
"""

from __future__ import annotations

import heapq
import math

import numpy as np

from ...array_types import Bools
from ...data.batch import Batch
from ..clusters import two_means
from . import label_tree


class TreeSample(two_means.ExampleSample):
    """Collect the first examples and build trees that place labels with similar examples together."""

    def trees(self, seeds: list[int], share: two_means.Share, capacity: int) -> list[label_tree.ClassTree]:
        """Return a tree of least depth for each seed of the clustering, or no trees if there are no labels."""
        return [label_tree.balanced_tree(order, capacity) for order in self.orders(seeds, share) if len(order)]


class LabelCounts:
    """Count the labels of the first examples and build Huffman trees from the counts.

    It has the methods of `TreeSample`, in whose place it is used.
    """

    def __init__(self, examples: int):
        self.examples = examples or math.inf  # to count
        self.seen = 0
        self._weight: dict[int, float] = {}

    def add(self, batch: Batch, counted: Bools) -> bool:
        """Count some examples of a batch; return whether more are needed."""
        counted = counted & (np.cumsum(counted) <= self.examples - self.seen)
        self.seen += int(np.count_nonzero(counted))
        labels, place = np.unique(batch.label[counted].astype(np.int64), return_inverse=True)
        weight = np.bincount(place, batch.weight[counted].astype(np.float64), minlength=len(labels))
        for label, more in zip(labels.tolist(), weight.tolist(), strict=True):
            self._weight[label] = self._weight.get(label, 0.0) + more
        return self.seen < self.examples

    def trees(self, seeds: list[int], share: two_means.Share, capacity: int) -> list[label_tree.ClassTree]:
        """Return a tree for each seed, which decides the order of labels of equal weight; none without labels."""
        labels = np.array(sorted(self._weight), np.int64)
        weight = np.array([self._weight[label] for label in labels.tolist()])
        some = seeds if len(labels) else []
        return [huffman_tree(labels, weight, np.random.default_rng(seed), capacity) for seed in some]


def huffman_tree(
    labels: np.ndarray, weight: np.ndarray, random: np.random.Generator, capacity: int = 0
) -> label_tree.ClassTree:
    """Return the Huffman tree of distinct labels, in which the more frequent child is on the left."""
    k = len(labels)
    order = random.permutation(k)
    heap = [(float(weight[j]), tie_break, int(j)) for tie_break, j in enumerate(order)]
    heapq.heapify(heap)
    pair: list[tuple[int, int]] = []  # left and right child of item k + j; items below k are labels
    while len(heap) > 1:
        light, heavy = heapq.heappop(heap), heapq.heappop(heap)
        pair.append((heavy[2], light[2]))
        heapq.heappush(heap, (light[0] + heavy[0], k + len(pair) - 1, k + len(pair) - 1))
    left, label = np.zeros(2 * k - 1, np.int32), np.full(2 * k - 1, -1, np.int64)
    item = [heap[0][2]]  # item of each tree node; siblings are neighbours and come after their parent
    for a in range(2 * k - 1):
        if item[a] < k:
            label[a] = labels[item[a]]
        else:
            left[a] = len(item)
            item += pair[item[a] - k]
    return label_tree.from_arrays(left, label, capacity)
