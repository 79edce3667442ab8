"""Propose the labels of the nearest earlier examples.

Idea      Each feature keeps the last SLOTS examples that had it, and its values there, so that the inner product of an
          example with all of these is a sum over its features. The NEAREST ones vote for their labels:

              vote(y) = sum of sim**3 of the nearest examples with label y / (sum of sim**3 of all of them + SHRINK)

          Examples are weighted as `features` says, with E = 1. Features that are common in the stream, whose x**2 is
          less than LEAST_SQUARE times the mean of the example, are kept, but not looked up. Of equally near examples,
          those are taken that are met first, feature by feature and slot by slot. An example whose labels were
          forgotten still counts below the line.
Source    This project's own; docs/defaults.md has the measurements.
Cost      O(s SLOTS) for an example of s features.
Names     sim inner product of two examples of length 1 | row, slot: the examples that a feature keeps.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...array_types import Bools, Float32s, Float64s, Int, Int64s, UInt32s
from ...binary import document_frequency
from ...kernels import top_k
from ...kernels.constants import GOLDEN, ZERO
from ...kernels.jit import bare, jit
from ...model import stored_arrays
from ...model.archive import Archive
from ...system import sparse_memory
from ..core import label_arrays
from . import features

SLOTS = 256  # examples that a feature keeps
ROW_BITS = 17  # log2 of the rows; features with the same hash share one
KEPT_BITS, LABEL_BITS = 17, 21  # log2 of the examples, and of their labels, that are kept
KEPT, LABEL_MASK = 1 << KEPT_BITS, (1 << LABEL_BITS) - 1
NEAREST = 40
VOTED = 20  # labels that are proposed
SHRINK = 0.001
LEAST_SQUARE = np.float32(0.36)  # x**2, as a multiple of its mean, below which a feature is not looked up
SAME = 0.9  # an example of an earlier pass that is as near, and has the same labels, is taken for the example itself
EXAMPLES, LABELS, NUMBERS = range(3)  # positions in `Neighbours.state`: how many were learned


class Neighbours(NamedTuple):
    """Hold the rows, and the labels of the examples in them."""

    pair: UInt32s  # uint32[rows * SLOTS * 2]: number of the example, from 1, and its value as float32
    value: Float32s  # float32[len(pair)], the same memory
    used: UInt32s  # uint32[rows], examples written to each row, without all but the last 2 * SLOTS
    place: Int64s  # int64[2**KEPT_BITS], position of the first label of each example, modulo their number
    size: UInt32s  # uint32[2**KEPT_BITS], number of its labels
    label: UInt32s  # uint32[2**LABEL_BITS], labels by position
    state: Int64s  # int64[NUMBERS]


class NeighbourScratch(NamedTuple):
    """Provide buffers for one thread; sums are 0 between examples."""

    feature: UInt32s  # uint32[s]
    x: Float32s  # float32[s]
    change: Float32s  # float32[s]
    dot: Float32s  # float32[2**KEPT_BITS], sim of each example
    touched: Int64s  # int64[s * SLOTS], examples whose sim is not 0
    near: Int64s  # int64[NEAREST]
    near_sim: Float64s  # float64[NEAREST]
    vote: Float64s  # float64[labels], votes
    voted: Int64s  # int64[...], labels whose votes are not 0
    best: Int64s  # int64[VOTED]
    best_vote: Float64s  # float64[VOTED]


def new_neighbours() -> Neighbours:
    pair = sparse_memory.zeros(2 * SLOTS << ROW_BITS)
    return Neighbours(
        pair, pair.view(np.float32), np.zeros(1 << ROW_BITS, np.uint32), np.zeros(KEPT, np.int64),
        np.zeros(KEPT, np.uint32), np.zeros(1 << LABEL_BITS, np.uint32), np.zeros(NUMBERS, np.int64),
    )  # fmt: skip


def new_scratch(most_features: int, labels: int) -> NeighbourScratch:
    return NeighbourScratch(
        np.empty(most_features, np.uint32), np.empty(most_features, np.float32), np.empty(most_features, np.float32),
        np.zeros(KEPT, np.float32), np.empty(most_features * SLOTS, np.int64),
        np.empty(NEAREST, np.int64), np.empty(NEAREST), np.zeros(labels + 1), np.empty(labels, np.int64),
        np.empty(VOTED, np.int64), np.empty(VOTED),
    )  # fmt: skip


def serialize(archive: Archive, rows: Neighbours, labels: int) -> None:
    """Save the rows that are used, without their empty slots, and the labels, or fill new rows from a model.

    No label of the model may be above `labels`.
    """
    pairs = rows.pair.reshape(-1, SLOTS, 2)
    row = archive.take("neighbours.row", np.flatnonzero(rows.used).astype(np.uint32))
    if len(row) and not (row[-1] < len(rows.used) and (row[1:] > row[:-1]).all()):
        raise stored_arrays.unfit("neighbours.row", f"its row numbers are not rising, or exceed {len(rows.used)}")
    used = archive.take("neighbours.used", rows.used[row], row.shape, 1, 2 * SLOTS - 1)
    filled = np.arange(SLOTS) < used[:, None]
    own = pairs[row][filled] if archive.saves else np.empty((np.count_nonzero(filled), 2), np.uint32)
    archive.fill("neighbours.value", own[:, 1].view(np.float32), -1.001, 1.001)
    archive.fill("neighbours.example", own[:, 0])
    archive.fill_counts("neighbours.state", rows.state)
    if not archive.saves:
        pair = np.zeros((len(row), SLOTS, 2), np.uint32)
        pair[filled] = own
        pairs[row], rows.used[row] = pair, used
    examples, kept = min(int(rows.state[EXAMPLES]) + 1, len(rows.place)), min(int(rows.state[LABELS]), len(rows.label))
    archive.fill_counts("neighbours.place", rows.place[:examples])
    archive.fill("neighbours.size", rows.size[:examples], 0, len(rows.label))
    archive.fill("neighbours.label", rows.label[:kept], 1, labels)


# -- kernels


@bare
def row_of(feature: np.uint32) -> np.int64:
    return np.int64((np.uint64(feature) * GOLDEN) >> np.uint64(64 - ROW_BITS))


@bare
def add_rows(rows: Neighbours, scratch: NeighbourScratch, count: Int) -> int:
    """Add up sim of the examples in the rows of the features; return how many examples there are."""
    oldest = rows.state[EXAMPLES] - KEPT
    touched = 0
    for f in range(count):
        row, x = row_of(scratch.feature[f]), scratch.x[f]
        if x * x * np.float32(count) < LEAST_SQUARE:
            continue
        first = row * (2 * SLOTS)
        for at in range(first, first + 2 * min(int(rows.used[row]), SLOTS), 2):
            number = np.int64(rows.pair[at])
            if number <= oldest:
                continue
            e = number & KEPT - 1
            if scratch.dot[e] == ZERO:
                scratch.touched[touched] = e
                touched += 1
            scratch.dot[e] += x * rows.value[at + 1]
    return touched


@bare
def same_labels(rows: Neighbours, e: int, label: Int64s, first: Int, last: Int) -> bool:
    """Return whether example e has the labels first..last-1 of `label`, and no others."""
    same: bool = np.int64(rows.size[e]) == last - first
    for j in range(last - first if same else 0):
        same &= np.int64(rows.label[rows.place[e] + j & LABEL_MASK]) == label[first + j]
    return same


@jit
def propose(
    rows: Neighbours, weighted: document_frequency.Weighted, label: Int64s, learns: Bools, again: bool, begin: int,
    end: int, candidate: Int64s, vote: Float64s, scratch: NeighbourScratch,
) -> None:  # fmt: skip
    """Add the labels of the nearest examples to the candidates of the examples begin..end-1, and keep each afterwards.

    Parameters
    ----------
    label : int64[m], labels from 1, see `label_arrays.span`
    learns : bool[n], whether to keep the example
    again : whether examples were kept in an earlier pass
    candidate : int64[n, C], distinct labels, then 0, with room for VOTED more; written
    vote : float64[n, C], written
    """
    batch = weighted.batch
    for i in range(begin, end):
        count = features.load(weighted, i, 1.0, scratch.feature, scratch.x, scratch.change)
        first, last = label_arrays.span(batch, label, i)
        touched = add_rows(rows, scratch, count)
        near = 0
        for t in range(touched):
            e = scratch.touched[t]
            sim = np.float64(scratch.dot[e])
            scratch.dot[e] = ZERO
            if sim <= 0.0 or (near == NEAREST and sim <= scratch.near_sim[near - 1]):
                continue
            if again and learns[i] and sim > SAME and same_labels(rows, e, label, first, last):
                continue
            near = top_k.insert(scratch.near, scratch.near_sim, near, e, sim)
        total = SHRINK
        voted = 0
        for j in range(near):
            e, power = scratch.near[j], scratch.near_sim[j] ** 3
            total += power
            if rows.place[e] + (1 << LABEL_BITS) < rows.state[LABELS]:
                continue  # newer labels have taken their places
            for k in range(np.int64(rows.size[e])):
                y = np.int64(rows.label[rows.place[e] + k & LABEL_MASK])
                if scratch.vote[y] == 0.0:
                    scratch.voted[voted] = y
                    voted += 1
                scratch.vote[y] += power
        size = np.int64(0)
        while size < candidate.shape[1] and candidate[i, size] > 0:
            y = candidate[i, size]
            vote[i, size] = scratch.vote[y] / total
            size += 1
        known = size
        best = 0
        for j in range(voted):
            y = scratch.voted[j]
            best = top_k.insert(scratch.best, scratch.best_vote, best, y, scratch.vote[y] / total)
            scratch.vote[y] = 0.0
        for j in range(best):
            c = np.int64(0)
            while c < known and candidate[i, c] != scratch.best[j]:
                c += 1
            if c == known:
                candidate[i, size] = scratch.best[j]
                vote[i, size] = scratch.best_vote[j]
                size += 1
        if learns[i] and not again:
            keep(rows, scratch, count, label, first, last)


@bare
def keep(rows: Neighbours, scratch: NeighbourScratch, count: Int, label: Int64s, first: Int, last: Int) -> None:
    """Keep an example of `count` features and the labels first..last-1."""
    rows.state[EXAMPLES] += 1
    number = rows.state[EXAMPLES]
    e = number & KEPT - 1
    rows.place[e], rows.size[e] = rows.state[LABELS], np.uint32(last - first)
    for j in range(first, last):
        rows.label[rows.state[LABELS] & LABEL_MASK] = np.uint32(label[j])
        rows.state[LABELS] += 1
    for f in range(count):
        row = row_of(scratch.feature[f])
        at = row * (2 * SLOTS) + 2 * (np.int64(rows.used[row]) % SLOTS)
        rows.pair[at] = np.uint32(number)
        rows.value[at + 1] = scratch.x[f]
        used = np.int64(rows.used[row]) + 1
        rows.used[row] = np.uint32(used if used < 2 * SLOTS else SLOTS)
