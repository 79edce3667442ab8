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
def _before(worth: AnyArray, a: int, b: int) -> bool:
    """Return whether item a is worth more than item b; the lower item wins a tie."""
    return worth[a] > worth[b] or (worth[a] == worth[b] and a < b)


@jit
def select(item: Int64s, begin: int, end: int, middle: int, worth: AnyArray) -> None:
    """Reorder `item[begin:end]` so that the items of largest worth are in `item[begin:middle]`, in any order.

    Parameters
    ----------
    item : int64, items, written between `begin` and `end`
    worth : numbers, `worth[i]` is the worth of item i, read only; the lower of two equal items is worth more
    """
    low, high = begin, end - 1
    seed = np.uint64(begin)
    while low < high:
        seed = rng.mix(seed + GOLDEN)
        pivot = item[low + np.int64(seed % np.uint64(high - low + 1))]
        i, j = low, high
        while i <= j:
            while _before(worth, item[i], pivot):
                i += 1
            while _before(worth, pivot, item[j]):
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
