"""The k largest of many: of numbers in an array by a heap, of items as they come by a sorted list."""

from __future__ import annotations

from typing import Any

from ..array_types import AnyArray, Int64s
from .jit import jit


@jit
def _worse(score: AnyArray, a: int, b: int) -> bool:
    """Whether item a comes after item b."""
    worse: bool = score[a] < score[b] or (score[a] == score[b] and a > b)
    return worse


@jit
def _sink(score: AnyArray, place: Int64s, at: int, size: int) -> None:
    """Let the item at `at` sink to its place in the heap place[:size], whose first item is the worst."""
    item = place[at]
    while 2 * at + 1 < size:
        below = 2 * at + 1
        if below + 1 < size and _worse(score, place[below + 1], place[below]):
            below += 1
        if not _worse(score, place[below], item):
            break
        place[at] = place[below]
        at = below
    place[at] = item


@jit
def rank(score: AnyArray, begin: int, end: int, place: Int64s) -> int:
    """Fill `place` with the positions of the largest of score[begin:end]; return how many there are.

    In falling order, the earlier first where two are equal. Only items that are among the best so far cost more than
    a comparison: of m in any order some k log(m / k).
    """
    size: int = min(end - begin, place.shape[0])
    for j in range(size):
        place[j] = begin + j
    for at in range(size // 2 - 1, -1, -1):
        _sink(score, place, at, size)
    if size > 0:
        for j in range(begin + size, end):
            if score[j] > score[place[0]]:
                place[0] = j
                _sink(score, place, 0, size)
    for last in range(size - 1, 0, -1):
        worst = place[0]
        place[0] = place[last]
        place[last] = worst
        _sink(score, place, 0, last)
    return size


@jit
def insert(top: AnyArray, worth: AnyArray, size: int, item: Any, value: Any) -> int:
    """Put an item of this worth where it belongs among the best, of which `size` are known; return how many are then.

    `worth` falls and `top` has the items in the same order; both are as long as the list may become. Of equal items the
    one that came first stays first; where the list is full the last item gives way, unless it is worth as much.
    """
    k: int = top.shape[0]
    if size == k and value <= worth[k - 1]:
        return size
    at = min(size, k - 1)
    while at > 0 and worth[at - 1] < value:
        top[at] = top[at - 1]
        worth[at] = worth[at - 1]
        at -= 1
    top[at] = item
    worth[at] = value
    return min(size + 1, k)
