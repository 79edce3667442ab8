"""Find the k largest of many numbers: by a heap if they are in an array, by a sorted list if they come one by one."""

from __future__ import annotations

from typing import Any

from ..array_types import AnyArray, Int64s
from .jit import bare, jit


@jit
def _worse(score: AnyArray, a: int, b: int) -> bool:
    """Return whether item a ranks behind item b; the earlier item wins a tie."""
    worse: bool = score[a] < score[b] or (score[a] == score[b] and a > b)
    return worse


@jit
def _sink(score: AnyArray, best: Int64s, at: int, size: int) -> None:
    """Move the item at position `at` down the heap `place[:size]`, whose root is the worst item."""
    item = best[at]
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and _worse(score, best[child + 1], best[child]):
            child += 1
        if not _worse(score, best[child], item):
            break
        best[at] = best[child]
        at = child
    best[at] = item


@jit
def rank(score: AnyArray, begin: int, end: int, best: Int64s) -> int:
    """Find the positions of the largest numbers in `score[begin:end]`, in descending order; the earlier wins a tie.

    A number costs one comparison unless it is among the best so far, as about k log(m / k) of m numbers in random order
    are. The positions are written to `best`, int64[k], and their number, at most k, is returned.
    """
    size: int = min(end - begin, best.shape[0])
    for j in range(size):
        best[j] = begin + j
    for at in range(size // 2 - 1, -1, -1):
        _sink(score, best, at, size)
    if size > 0:
        for j in range(begin + size, end):
            if score[j] > score[best[0]]:
                best[0] = j
                _sink(score, best, 0, size)
    for last in range(size - 1, 0, -1):
        worst = best[0]
        best[0] = best[last]
        best[last] = worst
        _sink(score, best, 0, last)
    return size


@bare
def insert(items: AnyArray, top_scores: AnyArray, size: int, item: Any, score: Any) -> int:
    """Insert an item into a list of the best items, in descending order of their scores; the earlier wins a tie.

    If the list is full, the last item is dropped, or the new one if its score is not higher. `items` and `top_scores`
    have room for k items, `size` is the number of those in the list, and the number afterwards is returned.
    """
    k: int = items.shape[0]
    if size == k and score <= top_scores[k - 1]:
        return size
    at = min(size, k - 1)
    while at > 0 and top_scores[at - 1] < score:
        items[at] = items[at - 1]
        top_scores[at] = top_scores[at - 1]
        at -= 1
    items[at] = item
    top_scores[at] = score
    return min(size + 1, k)
