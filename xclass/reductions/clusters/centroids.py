"""What the features of each label's examples add up to, in limited memory, and the labels' prototypes made of that.

Idea      A hash map holds a sum for every feature of every label, of examples brought to length 1. A map that is full
          is doubled; one of MOST_CELLS first keeps the heaviest features of each label alone, a quarter of its cells.
Cost      a cell a feature; 12 bytes a cell, at most half of them in use.
Names     k labels, F different features, z sums | rows are prototypes, in the order of labels.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ...array_types import Bools, Float32s, Float64s, Int, Int32s, Int64s, UInt64s
from ...data.batch import Batch
from ...kernels import hash_table, quickselect
from ...kernels.constants import LARGEST, ZERO
from ...kernels.jit import jit

FIRST_CELLS, MOST_CELLS = 1 << 14, 1 << 24
LONGEST_SEARCH = 1 << 12  # steps; where nobody chose the features, searches take some 100
LOW = np.uint64(0xFFFFFFFF)
NOTHING = np.uint64(0)


class Sums(NamedTuple):
    """A hash map from (label, feature) to the sum of the feature over the label's examples."""

    key: UInt64s  # uint64[cells], label << 32 | feature, 0 is an empty cell
    value: Float32s  # float32[cells]
    used: Int64s  # int64[1], cells in use


class Rows(NamedTuple):
    """Prototypes: features of row r are `feature[start[r]:start[r + 1]]`."""

    start: Int64s  # int64[k + 1]
    feature: Int32s  # int32[z], 0..F-1
    value: Float32s  # float32[z]


# -- kernels


@jit
def _cell(key: UInt64s, wanted: np.uint64) -> np.int64:
    """Where `wanted` is, or the empty cell where it belongs; -1 where neither is within LONGEST_SEARCH steps.

    Without a secret, since prototypes are summed in the order of the cells. Features that were chosen to collide are
    left out in place of being searched for long.
    """
    return hash_table.search(key, wanted, NOTHING, hash_table.hashed_pair(wanted), LONGEST_SEARCH)


@jit
def add(sums: Sums, batch: Batch, counted: Bools, begin: Int) -> Int:
    """Add the examples from `begin` on that are `counted`; return the first that finds no room."""
    most = np.int64(sums.key.shape[0] // 2)
    for i in range(begin, batch.label.shape[0]):
        if not counted[i]:
            continue
        low, high = batch.start[i], batch.start[i + 1]
        if sums.used[0] + high - low > most:
            return i
        total = 0.0
        for f in range(low, high):
            total += np.float64(batch.value[f]) * np.float64(batch.value[f])
        if not (total > 0.0 and total < np.inf):
            continue
        scale = np.float32(min(np.float64(batch.weight[i]) / math.sqrt(total), LARGEST))
        label = np.uint64(np.int64(batch.label[i])) << np.uint64(32)
        for f in range(low, high):
            wanted = label | np.uint64(batch.index[f])
            at = _cell(sums.key, wanted)
            if at < 0:
                continue
            if sums.key[at] == NOTHING:
                sums.key[at] = wanted
                sums.used[0] += 1
            sums.value[at] += batch.value[f] * scale
    return np.int64(batch.label.shape[0])


@jit
def move_cells(sums: Sums, larger: Sums) -> None:
    """Copy a map into an empty one."""
    for c in range(sums.key.shape[0]):
        if sums.key[c] != NOTHING:
            at = _cell(larger.key, sums.key[c])
            if at >= 0:
                larger.key[at] = sums.key[c]
                larger.value[at] = sums.value[c]
                larger.used[0] += 1


@jit
def weigh(rows: Rows, weight: Float64s) -> None:
    """Multiply each feature by its weight (float64[F]) and bring rows to length 1; a sum that overflowed is nothing."""
    for r in range(rows.start.shape[0] - 1):
        total = 0.0
        for j in range(rows.start[r], rows.start[r + 1]):
            x = np.float64(rows.value[j]) * weight[rows.feature[j]]
            total += x * x
        scale = 1.0 / math.sqrt(total) if total > 0.0 and total < np.inf else 0.0
        for j in range(rows.start[r], rows.start[r + 1]):
            x = np.float64(rows.value[j]) * weight[rows.feature[j]]
            rows.value[j] = np.float32(x * scale) if scale > 0.0 else ZERO


@jit
def heaviest(start: Int64s, worth: Float64s, most: int, kept: Bools) -> None:
    """Mark those features of every row that are worth most, `most` of them; `worth` : float64[z], `kept` : bool[z]."""
    item = np.arange(worth.shape[0])
    for r in range(start.shape[0] - 1):
        middle = min(start[r] + most, start[r + 1])
        quickselect.select(item, start[r], start[r + 1], middle, worth)
        for j in range(start[r], middle):
            kept[item[j]] = True


@jit
def keep(rows: Rows, label: UInt64s, feature: UInt64s, kept: Bools, sums: Sums) -> None:
    """Put what is kept of the rows into an empty map; `label`, `feature` : uint64[k], uint64[F]."""
    for r in range(rows.start.shape[0] - 1):
        for j in range(rows.start[r], rows.start[r + 1]):
            if kept[j]:
                wanted = label[r] << np.uint64(32) | feature[rows.feature[j]]
                at = _cell(sums.key, wanted)
                if at >= 0:
                    sums.key[at] = wanted
                    sums.value[at] = rows.value[j]
                    sums.used[0] += 1


# -- Python


def new_sums(cells: int) -> Sums:
    """An empty map."""
    return Sums(np.zeros(cells, np.uint64), np.zeros(cells, np.float32), np.zeros(1, np.int64))


def in_rows(sums: Sums) -> tuple[UInt64s, UInt64s, Rows, Int64s]:
    """Labels (uint64[k]), features (uint64[F]), the sums of each label, and how many labels have each feature."""
    used = np.flatnonzero(sums.key)
    label, row = np.unique(sums.key[used] >> np.uint64(32), return_inverse=True)
    feature, column = np.unique(sums.key[used] & LOW, return_inverse=True)
    order = np.argsort(row, kind="stable")
    start = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=len(label)))])
    rows = Rows(start, column[order].astype(np.int32), sums.value[used[order]])
    return label, feature, rows, np.bincount(column, minlength=len(feature))


def rareness(classes: Int64s, k: int) -> Float64s:
    """Weight of features that so many of k classes have: float64[F]."""
    weight: Float64s = np.log((1.0 + k) / classes)
    return weight


def trimmed(sums: Sums, target: int) -> Sums:
    """A map of as many cells with `target` of them in use, or one per label: its heaviest features."""
    label, feature, rows, classes = in_rows(sums)
    size = np.diff(rows.start)
    low, high = 1, int(size.max())  # most features of a label, such that all are `target`
    while low < high:
        middle = (low + high + 1) // 2
        if int(np.minimum(size, middle).sum()) <= target:
            low = middle
        else:
            high = middle - 1
    worth = np.abs(rows.value) * rareness(classes, len(label))[rows.feature]
    kept = np.zeros(len(worth), bool)
    heaviest(rows.start, worth, low, kept)
    found = new_sums(len(sums.key))
    keep(rows, label, feature, kept, found)
    return found


def with_examples(sums: Sums, batch: Batch, counted: Bools) -> Sums:
    """The map with the examples of a batch that are `counted` (bool[n]), a larger one where that is needed."""
    done: Int = 0
    while (done := add(sums, batch, counted, done)) < batch.n:
        sums = _roomier(sums)
    return sums


def _roomier(sums: Sums) -> Sums:
    cells = len(sums.key)
    if cells >= MOST_CELLS and sums.used[0] > cells // 4:
        sums = trimmed(sums, cells // 4)
        if sums.used[0] <= cells // 4:
            return sums
    larger = new_sums(2 * cells)
    move_cells(sums, larger)
    return larger
