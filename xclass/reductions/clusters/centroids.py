"""Sum the features of each label's examples in limited memory, and compute prototypes of the labels from the sums.

Source    class centroids as in the label trees of "Parabel", see `two_means`; the bounded hash map is this project's.
Idea      A hash map holds one sum for each feature of each label, over examples scaled to length 1 and multiplied by
          their weights. When half of the cells are in use, the map is doubled. A map of MOST_CELLS cells is trimmed
          instead: only the heaviest features of each label are kept, those with the largest absolute sum times `idf`.
          It is doubled only if more than a quarter of the cells would remain in use.
Cost      O(1) per feature of an example; 12 bytes a cell, at most half of the cells in use.
Names     k labels, F distinct features, z sums | row r holds the prototype of the r-th label in ascending order.
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
LONGEST_SEARCH = 1 << 12  # maximum probes; searches take up to about 100 unless keys were chosen to collide
LOW = np.uint64(0xFFFFFFFF)  # mask of the feature in a key
EMPTY_KEY = np.uint64(0)  # key of an empty cell


class FeatureSums(NamedTuple):
    """Map (label, feature) to the sum of the feature over the label's examples, by open addressing."""

    key: UInt64s  # uint64[cells], label << 32 | feature, 0 for an empty cell
    value: Float32s  # float32[cells], the sums
    used: Int64s  # int64[1], number of cells in use


class PrototypeRows(NamedTuple):
    """Hold prototypes as compressed sparse rows: features of row r are `feature[start[r]:start[r + 1]]`."""

    start: Int64s  # int64[k + 1]
    feature: Int32s  # int32[z], numbers 0..F-1 of features
    value: Float32s  # float32[z]


# -- kernels


@jit
def _cell(key: UInt64s, wanted: np.uint64) -> np.int64:
    """Return the cell of the key `wanted`, or the empty cell where it belongs; -1 after LONGEST_SEARCH probes.

    The hash has no secret, because prototypes are summed in the order of the cells and must not differ between runs.
    Keys may have been chosen to collide, so a key whose search takes too long is left out of the sums.
    """
    return hash_table.search(key, wanted, EMPTY_KEY, hash_table.hashed_pair(wanted), LONGEST_SEARCH)


@jit
def add(sums: FeatureSums, batch: Batch, counted: Bools, begin: Int) -> Int:
    """Add the counted examples from number `begin` on to the sums, until the map is half full.

    `counted` is bool[n]. Return the number of the first example that did not fit, or n.
    """
    capacity = np.int64(sums.key.shape[0] // 2)
    for i in range(begin, batch.label.shape[0]):
        if not counted[i]:
            continue
        low, high = batch.start[i], batch.start[i + 1]
        if sums.used[0] + high - low > capacity:
            return i
        total = 0.0
        for f in range(low, high):
            total += np.float64(batch.value[f]) * np.float64(batch.value[f])
        if not (total > 0.0 and total < np.inf):
            continue
        scale = np.float32(min(np.float64(batch.weight[i]) / math.sqrt(total), LARGEST))
        label = np.uint64(np.int64(batch.label[i])) << np.uint64(32)
        for f in range(low, high):
            key = label | np.uint64(batch.index[f])
            cell = _cell(sums.key, key)
            if cell < 0:
                continue
            if sums.key[cell] == EMPTY_KEY:
                sums.key[cell] = key
                sums.used[0] += 1
            sums.value[cell] += batch.value[f] * scale
    return np.int64(batch.label.shape[0])


@jit
def enter(key: UInt64s, value: Float32s, sums: FeatureSums) -> None:
    """Enter sums by their keys, which are distinct, into an empty map, which is written."""
    for i in range(key.shape[0]):
        cell = _cell(sums.key, key[i])
        if cell >= 0:
            sums.key[cell] = key[i]
            sums.value[cell] = value[i]
            sums.used[0] += 1


@jit
def weight_and_normalise(rows: PrototypeRows, weight: Float64s) -> None:
    """Multiply each feature by its weight (float64[F]) and scale the rows to length 1; `rows.value` is written.

    Rows whose sum overflowed become 0.
    """
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
def mark_heaviest(start: Int64s, worth: Float64s, most: int, marked: Bools) -> None:
    """Mark the `most` features of largest worth in every row; `worth` is float64[z], and `marked` bool[z]."""
    item = np.arange(worth.shape[0])
    for r in range(start.shape[0] - 1):
        middle = min(start[r] + most, start[r + 1])
        quickselect.select(item, start[r], start[r + 1], middle, worth)
        for j in range(start[r], middle):
            marked[item[j]] = True


# -- Python


def new_sums(cells: int) -> FeatureSums:
    return FeatureSums(np.zeros(cells, np.uint64), np.zeros(cells, np.float32), np.zeros(1, np.int64))


def to_rows(sums: FeatureSums) -> tuple[UInt64s, UInt64s, PrototypeRows, Int64s]:
    """Return the sums as sparse rows.

    Returns
    -------
    label : uint64[k], ascending
    feature : uint64[F], hashes of the features, ascending
    rows : the sums of each label
    classes : int64[F], number of labels that have each feature
    """
    cells = np.flatnonzero(sums.key)
    label, row = np.unique(sums.key[cells] >> np.uint64(32), return_inverse=True)
    feature, column = np.unique(sums.key[cells] & LOW, return_inverse=True)
    order = np.argsort(row, kind="stable")
    start = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=len(label)))])
    rows = PrototypeRows(start, column[order].astype(np.int32), sums.value[cells[order]])
    return label, feature, rows, np.bincount(column, minlength=len(feature))


def idf(classes: Int64s, k: int) -> Float64s:
    """Return the weight of each feature, float64[F], by how few of the k classes have it: log((1 + k) / classes)."""
    weight: Float64s = np.log((1.0 + k) / classes)
    return weight


def trimmed(sums: FeatureSums, target: int) -> FeatureSums:
    """Return a map of equal size that keeps the heaviest features of each label, at most `target` sums in all.

    Every label keeps the same maximum number of features, and at least one, even if that exceeds `target`.
    """
    label, feature, rows, classes = to_rows(sums)
    size = np.diff(rows.start)
    low, high = 1, int(size.max())  # bisect the features per label, for at most `target` in all
    while low < high:
        middle = (low + high + 1) // 2
        if int(np.minimum(size, middle).sum()) <= target:
            low = middle
        else:
            high = middle - 1
    worth = np.abs(rows.value) * idf(classes, len(label))[rows.feature]
    marked = np.zeros(len(worth), bool)
    mark_heaviest(rows.start, worth, low, marked)
    trimmed = new_sums(len(sums.key))
    key = np.repeat(label, size) << np.uint64(32) | feature[rows.feature]
    enter(key[marked], rows.value[marked], trimmed)
    return trimmed


def add_batch(sums: FeatureSums, batch: Batch, counted: Bools) -> FeatureSums:
    """Return the map with the counted examples (bool[n]) of a batch added; it is trimmed or doubled if it fills up."""
    done: Int = 0
    while (done := add(sums, batch, counted, done)) < batch.n:
        sums = _with_free_cells(sums)
    return sums


def _with_free_cells(sums: FeatureSums) -> FeatureSums:
    """Return the map with free cells: doubled, or trimmed if it has reached MOST_CELLS."""
    cells = len(sums.key)
    if cells >= MOST_CELLS and sums.used[0] > cells // 4:
        sums = trimmed(sums, cells // 4)
        if sums.used[0] <= cells // 4:
            return sums
    larger = new_sums(2 * cells)
    full = np.flatnonzero(sums.key)
    enter(sums.key[full], sums.value[full], larger)
    return larger
