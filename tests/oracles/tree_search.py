"""Oracles of the searches for probable labels: with a list of waiting nodes for each bucket, and by sorted levels."""

from __future__ import annotations

import struct
from collections import defaultdict

STEP, LAST = 2**50, 255


def bits(x: float) -> int:
    """Return the bits of a float64, which grow almost like its logarithm."""
    return int(struct.unpack("<q", struct.pack("<d", x))[0])


def bucket(p: float, leaves: int) -> int:
    """Return a quarter of a factor of two for each bucket; `leaves` count by their fourth root."""
    return min((bits(1.0) - bits(p) + (bits(float(leaves)) - bits(1.0)) // 4) // STEP, LAST)


def find_top_k(
    left: list[int],
    label: list[int],
    leaves: list[int],
    mass: list[float],
    k: int,
    budget: int,
    guided: bool,
    cut: float,
) -> tuple[int, list[tuple[int, float]], float]:
    """Find the k most probable labels.

    Parameters
    ----------
    left : left child of each node, 0 at leaves; the right child follows it
    label : label of each leaf
    leaves : number of leaves at or below each node
    mass : probability of each node
    budget : most nodes to open
    guided : whether the number of leaves enters the order in which nodes are opened
    cut : least probability of a listed label as a share of the best one's

    Returns
    -------
    opened : number of nodes opened
    found : (label, probability), most probable first
    gap : bound on the probability of an unlisted label if the budget ended the search, else 0
    """
    found: list[tuple[int, float]] = []
    waiting: dict[int, list[int]] = defaultdict(list)
    lowest = 0  # no bucket below it holds a node
    opened, gap = 0, 0.0

    def least() -> float:
        return max(cut * found[0][1], found[k - 1][1] if len(found) == k else 0.0) if found else 0.0

    def worth(a: int) -> bool:
        return mass[a] > least() or (mass[a] == least() and len(found) < k)

    node = 0
    while node >= 0:
        if opened >= budget and found:
            gap = max([mass[node], *(mass[a] for nodes in waiting.values() for a in nodes)])
            break
        opened += 1
        children = sorted((left[node], left[node] + 1), key=lambda a: -mass[a])
        node = -1
        for rank, child in enumerate(children):
            if not worth(child):
                continue
            if left[child] == 0:
                found.append((label[child], mass[child]))
                found.sort(key=lambda pair: -pair[1])  # of equal ones the first found stays first
                del found[k:]
                continue
            place = bucket(mass[child], leaves[child] if guided else 1)
            if rank == 0 and (place <= lowest or (opened >= budget and not found)):
                node = child
                continue
            waiting[place].append(child)
            lowest = min(lowest, place)
        while node < 0 and any(waiting.values()):
            lowest = min(place for place, nodes in waiting.items() if nodes)
            candidate = waiting[lowest].pop()
            if worth(candidate):
                node = candidate
    while len(found) > 1 and found[-1][1] < cut * found[0][1]:
        found.pop()
    complete = len(found) == k and gap <= found[-1][1]
    return opened, found, 0.0 if complete else gap


def beam_search(
    left: list[int], label: list[int], place: list[int], mass: list[float], k: int, budget: int, beam: int, cut: float
) -> tuple[int, list[tuple[int, float]], float]:
    """Find likely labels, keeping the `beam` most probable blocks of each level of blocks.

    Parameters
    ----------
    place : place of each node; nodes whose place is 1 modulo 8 begin a block

    The other parameters and the results are those of `find_top_k`, except that `budget` is checked before a block.
    """
    found: list[tuple[int, float]] = []
    opened, gap = 0, 0.0

    def least() -> float:
        return max(cut * found[0][1], found[k - 1][1] if len(found) == k else 0.0) if found else 0.0

    def worth(a: int) -> bool:
        return mass[a] > least() or (mass[a] == least() and len(found) < k)

    level = [0]
    while level:
        following: list[int] = []
        kept = [a for a in level if mass[a] >= max(least(), cut * mass[level[0]])]
        gap = max([gap, *(mass[a] for a in level if a not in kept)])
        for number, first in enumerate(kept):
            if opened >= budget and (found or number > 0):
                gap = max([gap, *(mass[a] for a in kept[number:])])
                break
            if mass[first] < least():
                break
            block = [first]
            while block:  # in the order of places, so level by level
                a = block.pop(0)
                opened += 1
                for child in (left[a], left[a] + 1):
                    if not worth(child):
                        continue
                    if left[child] == 0:
                        found.append((label[child], mass[child]))
                        found.sort(key=lambda pair: -pair[1])
                        del found[k:]
                    else:
                        (following if place[child] % 8 == 1 else block).append(child)
        following.sort(key=lambda a: -mass[a])  # of equal ones the first found stays first
        gap = max([gap, *(mass[a] for a in following[beam:])])
        level = following[:beam]
    bound = least()
    while len(found) > 1 and found[-1][1] < cut * found[0][1]:
        found.pop()
    return opened, found, gap if gap > bound else 0.0
