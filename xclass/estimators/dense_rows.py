"""Write listed probabilities of classes as rows with a column for each label.

Cost      about 2 ns for each number of the result.
"""

from __future__ import annotations

from ..array_types import Bools, Float32s, Float64s, Int64s
from ..kernels.jit import jit

ABOVE = 1 + 1e-12  # factor that makes the predicted class the most probable one where another one is as probable


@jit
def write(
    listed: Float32s, position: Int64s, start: Int64s, rest: int, learned: Bools, spread: bool, predicted: Int64s,
    p: Float64s,
) -> None:  # fmt: skip
    """Write rows of probabilities that sum to 1, of which that of the predicted label is the highest.

    Parameters
    ----------
    listed : float32[m], probabilities of the listed classes; those of example i are `start[i]:start[i + 1]`
    position : int64[m], column of the label of each class, -1 for none
    start : int64[n + 1]
    rest : 1 if the last entry of each example stands for all other classes together, else 0
    learned : bool[K], which labels were learned; others get 0
    spread : whether the learned labels that are not listed share the rest of the probability equally
    predicted : int64[n], column of the predicted label, -1 for none
    p : float64[n, K], written
    """
    n, k = p.shape
    learnable = 0
    for j in range(k):
        learnable += learned[j]
    for i in range(n):
        for j in range(k):
            p[i, j] = 0.0
        for e in range(start[i], start[i + 1] - rest):
            j = position[e]
            if j >= 0 and learned[j]:
                p[i, j] = listed[e]
        total, positive, best = 0.0, 0, 0
        for j in range(k):
            total += p[i, j]
            positive += p[i, j] > 0.0
            if p[i, j] > p[i, best]:
                best = j
        share = 0.0
        if spread and positive < learnable and total < 1.0:
            share = (1.0 - total) / (learnable - positive)
        elif total == 0.0:
            share = 1.0 / learnable
        if share > 0.0:
            for j in range(k):
                if learned[j] and p[i, j] == 0.0:
                    p[i, j] = share
                    if share > p[i, best]:
                        best = j
            total += share * (learnable - positive)
        j = predicted[i]
        if j >= 0 and learned[j] and j != best:
            higher = p[i, best] * ABOVE
            total += higher - p[i, j]
            p[i, j] = higher
        for j in range(k):
            p[i, j] /= total
