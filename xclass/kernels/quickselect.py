"""The best of many items put first, without sorting them."""

from __future__ import annotations

import numpy as np

from ..array_types import AnyArray, Int64s
from . import rng
from .constants import GOLDEN
from .jit import jit


@jit
def _before(worth: AnyArray, a: int, b: int) -> bool:
    return worth[a] > worth[b] or (worth[a] == worth[b] and a < b)


@jit
def select(item: Int64s, begin: int, end: int, middle: int, worth: AnyArray) -> None:
    """Put the items of most worth into `item[begin:middle]`, the others into `item[middle:end]`.

    `worth[i]` is that of item i; of equals the lower one is worth more. Hoare's selection.
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
