r"""Pair K labels in E + 1 elimination tournaments; this module does not know how matches are decided.

Source    Beygelzimer, Langford, Ravikumar, "Error-Correcting Tournaments", ALT 2009; pairs are those of VW.
Cost      building O(K E) with array operations per round; there are about log2 K + E log2 log2 K rounds.
Names     K labels, E errors (matches that a label may lose and still win), M = (K - 1) (E + 1) matches, numbered in the
          order of rounds. A place identifies a participant of a match, and the entry of a place says in which match
          that participant plays next; see the picture.
Differs   in nothing known from the paper, which leaves the pairing open but for its depth. A label meets at most one
          other in a round, and each tournament has all K labels: also the winner of one enters the next.
Idea      All tournaments take place at the same time, round by round. In a round the labels of one tournament play in
          pairs of neighbours; a label without a neighbour waits for the next round. The loser of a match enters the
          next tournament in the following round, before the labels already there. The last match of a tournament is
          played when it has two labels left and no loser can still enter; its winner also enters the next tournament,
          where it meets its opponent again. With E = 0 the matches form a binary tree over the labels.

    label 0 -.                         place         participant
             match 0 -.                    y              label y
    label 1 -'         \                   K + 2 m        the winner of match m
                        match 2            K + 2 m + 1    the loser of match m
    label 2 -.         /
             match 1 -'                entry         where the place leads: 2 m + side (0 left, 1 right) of match m,
    label 3 -'                         or -1 for labels that are out and for the winner of the last tournament

The E + 1 winners meet in a final of E matches, numbered from 1: match j = 2**i * odd decides whether the winner is
among tournaments j..j + 2**i - 1 (as far as these exist) or among j - 2**i..j - 1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...array_types import Int32s

OUT = -1  # entry of a place that leads nowhere


class Draw(NamedTuple):
    """Hold M = (K - 1) (E + 1) matches in the order of rounds, within a round in the order of tournaments."""

    sides: Int32s  # int32[M, 2], places of the left and the right side
    entry: Int32s  # int32[K + 2 M], entry of each place
    last: Int32s  # int32[E + 1], last match of each tournament; int32[0] if K = 1
    round: Int32s  # int32[M], round of each match, from 0
    most_matches: int  # upper bound of the matches of one label or one prediction, including the final


def matches(classes: int, errors: int) -> int:
    """Return the number of matches of all tournaments, without the final."""
    return (classes - 1) * (errors + 1)


def draw(classes: int, errors: int) -> Draw:
    total = matches(classes, errors)
    sides = np.zeros((total, 2), np.int32)
    entry = np.full(classes + 2 * total, OUT, np.int32)
    rounds = np.zeros(total, np.int32)
    last = []
    none = np.empty(0, np.int32)
    waiting = [np.arange(classes, dtype=np.int32)] + [none] * errors
    number = 0  # of the next match
    current_round = 0
    while number < total:
        next_round: list[list[Int32s]] = [[] for _ in waiting]
        for tournament, players in enumerate(waiting):
            size = len(players) // 2
            if size:
                numbers = np.arange(number, number + size, dtype=np.int32)
                pairs = players[: 2 * size].reshape(size, 2)
                sides[numbers] = pairs
                entry[pairs] = 2 * numbers[:, None] + np.arange(2)
                rounds[numbers] = current_round
                winners, losers = classes + 2 * numbers, classes + 2 * numbers + 1
                number += size
                if len(players) == 2 and (tournament == 0 or len(waiting[tournament - 1]) == 0):
                    last.append(number - 1)
                    losers = np.concatenate([winners, losers])
                else:
                    next_round[tournament].append(winners)
                if tournament < errors:
                    next_round[tournament + 1].append(losers)
            if len(players) % 2:
                next_round[tournament].append(players[-1:])
        waiting = [np.concatenate(parts) if parts else none for parts in next_round]
        current_round += 1
    return Draw(sides, entry, np.array(last, np.int32), rounds, current_round + errors.bit_length())


def depths(draw: Draw, classes: int) -> np.ndarray:
    """Return the number of matches between each label and the end of a single tournament: int64[K]."""
    depth = np.zeros(classes + 2 * len(draw.sides), np.int64)
    last = len(draw.sides)
    while last > 0:  # one round at a time, from the last to the first
        first = int(np.searchsorted(draw.round, draw.round[last - 1]))
        above = depth[classes + 2 * np.arange(first, last)] + 1
        depth[draw.sides[first:last]] = above[:, None]
        last = first
    return depth[:classes]


def cache_friendly_numbers(draw: Draw, classes: int) -> tuple[np.ndarray, int]:
    """Number the matches so that a match and the two matches before it fall into a block of four numbers.

    The block of a match of an odd round also contains the matches of even rounds whose winners it pairs. Four
    neighbouring subproblems of a feature share a cache line. Return the number of each match, int32[M], and how many
    numbers are used, including gaps.
    """
    total = len(draw.sides)
    numbers = np.full(total, -1, np.int64)
    roots = np.flatnonzero(draw.round % 2 == 1)
    numbers[roots] = 4 * np.arange(len(roots))
    for side in (0, 1):
        place = draw.sides[roots, side].astype(np.int64) - classes
        before = place >> 1
        in_block = (place >= 0) & (place % 2 == 0) & (draw.round[before] % 2 == 0)
        numbers[before[in_block]] = numbers[roots[in_block]] + 1 + side
    rest = np.flatnonzero(numbers < 0)
    numbers[rest] = 4 * len(roots) + np.arange(len(rest))
    return numbers.astype(np.int32), 4 * len(roots) + len(rest)
