"""Write listed probabilities of classes as rows with a column for each label.

Cost      about 1 ns for each number of the result and 2 ns for each listed probability.
"""

from __future__ import annotations

from ..array_types import Bools, Float32s, Float64s, Int64s
from ..kernels.jit import jit

ABOVE = 1 + 1e-12  # factor that makes the predicted class the most probable one where another one is as probable


@jit
def write(
    listed: Float32s, label: Int64s, start: Int64s, rest: int, column: Int64s, learned: Bools, predicted: Int64s,
    p: Float64s,
) -> None:  # fmt: skip
    """Write rows of probabilities that sum to 1, of which that of the predicted label is the highest.

    Parameters
    ----------
    listed : float32[m], probabilities of the listed classes; those of example i are `start[i]:start[i + 1]`
    label : int64[m], the listed classes
    start : int64[n + 1]
    rest : 1 if the last entry of each example stands for all other classes together, else 0; the learned labels that
        are not listed share their probability equally
    column : int64[...], column of each class, -1 for those without a learned label. Without a rest, all examples list
        the same classes in the same order, and this has the columns of the classes of one list
    learned : bool[K], which labels were learned; others get 0
    predicted : int64[n], column of the predicted label, -1 for none or one that was not learned
    p : float64[n, K], written
    """
    n, k = p.shape
    learnable = 0
    for j in range(k):
        learnable += learned[j]
    for i in range(n):
        begin, end, top = start[i], start[i + 1] - rest, predicted[i]
        total, highest, own, size = 0.0, 0.0, 0.0, 0  # `own` is that of the predicted label, `highest` of all others
        for e in range(begin, end):
            j = column[label[e] if rest else e - begin]
            if j >= 0 and listed[e] > 0.0:
                total += listed[e]
                size += 1
                if j == top:
                    own = listed[e]
                elif listed[e] > highest:
                    highest = listed[e]
        share = 0.0
        if rest and size < learnable and total < 1.0:
            share = (1.0 - total) / (learnable - size)
        elif size == 0:
            share = 1.0 / learnable
        total += share * (learnable - size)
        if top >= 0:
            own = own if own > 0.0 else share
            higher = max(highest, share) * ABOVE
            if own < higher:
                total += higher - own
                own = higher
        scale = 1.0 / total
        if size < k:
            for j in range(k):
                p[i, j] = share * scale if learned[j] else 0.0
        for e in range(begin, end):
            j = column[label[e] if rest else e - begin]
            if j >= 0 and listed[e] > 0.0:
                p[i, j] = listed[e] * scale
        if top >= 0:
            p[i, top] = own * scale
