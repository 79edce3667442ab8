"""Oracle of the hierarchical softmax of the Softmax Tree paper, written from the paper with arrays of float64.

Source   Zharmagambetov, Gabidolla, Carreira-Perpiñán, "Softmax Tree", EMNLP 2021, appendix C: Huffman's tree of the raw
         training data, a linear model and a sigmoid in each node, the negative log likelihood, one example at a time,
         stochastic gradient descent with momentum .9. Momentum is that of PyTorch, which the authors used.
Idea     All weights of all nodes move at each step, where their gradients are 0, too.
"""

import heapq
import itertools
import math

import numpy as np


class HierarchicalSoftmax:
    """Learn rows of `features` numbers, each with a label."""

    def __init__(self, counts: dict[int, float], features: int, rate: float = 0.005, momentum: float = 0.9):
        self.rate, self.momentum = rate, momentum
        ticket = itertools.count()
        heap = [(count, next(ticket), [label]) for label, count in counts.items()]
        heapq.heapify(heap)
        self.turns: dict[int, list[tuple[int, int]]] = {label: [] for label in counts}  # node and +1 (right) or -1
        for node in range(len(counts) - 1):
            light, heavy = heapq.heappop(heap), heapq.heappop(heap)
            for side, (_, _, labels) in ((1, light), (-1, heavy)):
                for label in labels:
                    self.turns[label].append((node, side))
            heapq.heappush(heap, (light[0] + heavy[0], next(ticket), light[2] + heavy[2]))
        self.w = np.zeros((max(len(counts) - 1, 1), features))
        self.v = np.zeros_like(self.w)

    def probability(self, x: np.ndarray, label: int) -> float:
        return math.prod(1 / (1 + math.exp(-side * float(self.w[node] @ x))) for node, side in self.turns[label])

    def learn(self, x: np.ndarray, label: int) -> None:
        gradient = np.zeros_like(self.w)
        for node, side in self.turns[label]:
            gradient[node] = -side / (1 + math.exp(side * float(self.w[node] @ x))) * x
        self.v = self.momentum * self.v + gradient
        self.w -= self.rate * self.v
