"""Find the k largest of many numbers: by a heap if they are in an array, by a sorted list if they come one by one."""

from __future__ import annotations

from typing import Any

from ..array_types import AnyArray, Int64s
from .jit import jit


@jit
def _worse(score: AnyArray, a: int, b: int) -> bool:
    """Return whether item a ranks behind item b; the earlier item wins a tie."""
    worse: bool = score[a] < score[b] or (score[a] == score[b] and a > b)
    return worse


@jit
def _sink(score: AnyArray, place: Int64s, at: int, size: int) -> None:
    """Move the item at position `at` down the heap `place[:size]`, whose root is the worst item."""
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
    """Find the positions of the largest numbers in `score[begin:end]`, in descending order; the earlier wins a tie.

    A number costs one comparison unless it is among the best so far, as about k log(m / k) of m numbers in random order
    are.

    Parameters
    ----------
    score : numbers, read only
    place : int64[k], positions in `score`, written

    Returns
    -------
    Number of positions written, at most k.
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
    """Insert an item into a list of the best items, in descending order of their worth; the earlier wins a tie.

    If the list is full, the last item is dropped, or the new one if it is worth no more.

    Parameters
    ----------
    top : [k], items, written
    worth : [k], their worth, written
    size : number of items in the list
    item : item to insert
    value : its worth

    Returns
    -------
    Number of items in the list afterwards, at most k.
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
