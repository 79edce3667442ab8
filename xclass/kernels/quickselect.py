"""Partition items so that the best ones come first, without sorting them.

Source    Hoare, "Algorithm 65: Find", Communications of the ACM 1961 (quickselect).
Cost      O(m) on average for m items.
"""

from __future__ import annotations

import numpy as np

from ..array_types import AnyArray, Int64s
from . import rng
from .constants import GOLDEN
from .jit import jit


@jit
def _ranks_before(score: AnyArray, a: int, b: int) -> bool:
    """Return whether item a has the higher score; the lower item wins a tie."""
    return score[a] > score[b] or (score[a] == score[b] and a < b)


@jit
def select(item: Int64s, begin: int, end: int, middle: int, score: AnyArray) -> None:
    """Reorder `item[begin:end]` so that the items of the highest scores are in `item[begin:middle]`, in any order.

    `score[i]` is the score of item i; the lower item wins a tie.
    """
    low, high = begin, end - 1
    seed = np.uint64(begin)
    while low < high:
        seed = rng.mix(seed + GOLDEN)
        pivot = item[low + np.int64(seed % np.uint64(high - low + 1))]
        i, j = low, high
        while i <= j:
            while _ranks_before(score, item[i], pivot):
                i += 1
            while _ranks_before(score, pivot, item[j]):
                j -= 1
            if i <= j:
                item[i], item[j] = item[j], item[i]
                i += 1
                j -= 1
        if middle <= j:
            high = j
        elif middle >= i:
            low = i
        else:
            return
