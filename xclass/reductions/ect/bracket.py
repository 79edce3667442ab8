"""Who plays whom in E + 1 knock-out tournaments of K labels; knows nothing of learning.

Source    Beygelzimer, Langford, Ravikumar, "Error-Correcting Tournaments", ALT 2009; pairs are those of VW.
Idea      The tournaments are held side by side, round by round. In a round those of one tournament play in pairs of
          neighbours, and one without a neighbour waits. Losers enter the next tournament's following round, in front
          of those already there. The last match of a tournament is that of two players once nobody can come in any
          more; its winner enters the next tournament too, where both meet again. With E = 0 that is a binary
          tree over the labels.
Cost      building O(K E) in whole rounds; rounds log2 K and some E log2 log2 K more.

    label 0 -.                         a place is what a side of a match is taken by, one number:
             match 0 -.                    y              label y
    label 1 -'         \\                  K + 2 m        the winner of match m
                        match 2            K + 2 m + 1    the loser of match m
    label 2 -.         /
             match 1 -'                an entry is where a place leads, 2 m + side (0 left, 1 right) of match m, or
    label 3 -'                         -1: thrown out, or the winner of the last tournament

The E + 1 winners meet in a final of E matches, numbered from 1: match j = 2**i * odd asks whether the winner is among
tournaments j..j + 2**i - 1, as far as there are that many, or among j - 2**i..j - 1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...array_types import Int32s
from ..core.tree_view import NodeView

OUT = -1


class Draw(NamedTuple):
    """M = (K - 1) (E + 1) matches in the order of rounds, in a round of tournaments."""

    sides: Int32s  # int32[M, 2], place that takes the left and the right side
    entry: Int32s  # int32[K + 2 M], where every place leads
    last: Int32s  # int32[E + 1], last match of every tournament; int32[0] if K = 1
    round: Int32s  # int32[M], from 0
    longest: int  # matches a label can be in, the final's included; an answer asks no more


def matches(classes: int, errors: int) -> int:
    """Number of matches of all tournaments."""
    return (classes - 1) * (errors + 1)


def draw(classes: int, errors: int) -> Draw:
    """Pair the labels."""
    total = matches(classes, errors)
    sides = np.zeros((total, 2), np.int32)
    entry = np.full(classes + 2 * total, OUT, np.int32)
    rounds = np.zeros(total, np.int32)
    last = []
    nobody = np.empty(0, np.int32)
    waiting = [np.arange(classes, dtype=np.int32)] + [nobody] * errors
    number = 0  # of the next match
    at = 0  # of the round
    while number < total:
        following: list[list[Int32s]] = [[] for _ in waiting]
        for t, those in enumerate(waiting):
            size = len(those) // 2
            if size:
                new = np.arange(number, number + size, dtype=np.int32)
                pairs = those[: 2 * size].reshape(size, 2)
                sides[new] = pairs
                entry[pairs] = 2 * new[:, None] + np.arange(2)
                rounds[new] = at
                won, lost = classes + 2 * new, classes + 2 * new + 1
                number += size
                if len(those) == 2 and (t == 0 or len(waiting[t - 1]) == 0):
                    last.append(number - 1)
                    lost = np.concatenate([won, lost])
                else:
                    following[t].append(won)
                if t < errors:
                    following[t + 1].append(lost)
            if len(those) % 2:
                following[t].append(those[-1:])
        waiting = [np.concatenate(parts) if parts else nobody for parts in following]
        at += 1
    return Draw(sides, entry, np.array(last, np.int32), rounds, at + errors.bit_length())


def node_view(found: Draw, classes: int, place: int) -> NodeView:
    """A place of a single tournament as it is shown: a label, or a match and its two sides."""
    if place < classes:
        return NodeView(labels=((place + 1, None),))
    match = (place - classes) >> 1
    return NodeView(tuple(found.sides[match].tolist()), facts={"match": match + 1})


def depths(found: Draw, classes: int) -> np.ndarray:
    """Matches of every label in a single tournament."""
    depth = np.zeros(classes + 2 * len(found.sides), np.int64)
    last = len(found.sides)
    while last > 0:  # whole rounds, the last one first
        first = int(np.searchsorted(found.round, found.round[last - 1]))
        above = depth[classes + 2 * np.arange(first, last)] + 1
        depth[found.sides[first:last]] = above[:, None]
        last = first
    return depth[:classes]


def neighbourly(found: Draw, classes: int) -> tuple[np.ndarray, int]:
    """Numbers for the matches by which a match and the two before it share a block of four; int32[M], and how many.

    A match of an odd round takes in those of even rounds whose winners it pairs; four neighbouring sub-problems
    of a feature share a cache line.
    """
    total = len(found.sides)
    numbers = np.full(total, -1, np.int64)
    roots = np.flatnonzero(found.round % 2 == 1)
    numbers[roots] = 4 * np.arange(len(roots))
    for side in (0, 1):
        place = found.sides[roots, side].astype(np.int64) - classes
        before = place >> 1
        taken = (place >= 0) & (place % 2 == 0) & (found.round[before] % 2 == 0)
        numbers[before[taken]] = numbers[roots[taken]] + 1 + side
    rest = np.flatnonzero(numbers < 0)
    numbers[rest] = 4 * len(roots) + np.arange(len(rest))
    return numbers.astype(np.int32), 4 * len(roots) + len(rest)
