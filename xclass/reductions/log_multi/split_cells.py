"""Count labels at the nodes of a tree that splits and recycles its leaves, in one hash table.

Source    Choromanska, Langford, "Logarithmic Time Online Multiclass Prediction", NIPS 2015, Algorithm 1.
Cost      Finding a cell takes O(1), whatever the number of labels and nodes.
Names     l, m, n, e of a label at a node, as in the paper: examples that arrived, sum of scores, times the router was
          trained, mean score.
Idea      A cell holds the counts of one label at one node. The version of a node is how often it was recycled. A cell
          contains the version of its node at the time of counting, so the cells of a recycled node need not be cleared:
          their version is older than that of the node, which marks them as outdated.

In the kernels, `a` is a node, `at` the number of a cell, and `version` the version of a node or, as int64[nodes], the
versions of all nodes. This module does not know the tree.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...array_types import Float64s, Int, Int64s, UInt32s, UInt64s
from ...kernels import hash_table, intrinsics
from ...kernels.constants import GOLDEN, SPREAD
from ...kernels.jit import bare
from ...model import stored_arrays
from ...model.archive import Archive

# positions in a cell: SUM and TRAINED in 64-bit words, ENDED and VERSION in 32-bit words; 64-bit word 0 is the key
SUM, TRAINED, ENDED, VERSION = 1, 2, 6, 7
FIRST_CELLS = 1 << 12


class Cells(NamedTuple):
    """Hold an open-addressing hash table from (node, label) to counts. All arrays but `used` are views of one buffer.

        32 bytes  | key: (node + 1) << 32 | label | m, sum of scores | n, trained | ended at the node | version |

    The l of the paper, the label's examples that arrived at the node, is n + ended.
    """

    word: UInt64s  # uint64[4 cells], holds the keys; key 0 marks an empty cell
    number: Float64s  # float64[4 cells], holds m
    count: Int64s  # type: ignore[assignment]  # hides tuple.count; int64[4 cells], holds n
    half: UInt32s  # uint32[8 cells], holds ended and version
    used: Int64s  # int64[1], number of cells with a key, outdated ones included
    shift: np.uint64  # 64 minus log2 of the number of cells
    secret: np.uint64  # secret of the hash function, see `hash_table`


# -- kernels


@bare
def _home(cells: Cells, key: np.uint64) -> np.int64:
    """Return the cell where the search for a key begins."""
    z = (key ^ cells.secret) * GOLDEN
    return np.int64(((z ^ (z >> np.uint64(32))) * SPREAD) >> cells.shift)


@bare
def _cell(cells: Cells, key: np.uint64) -> np.int64:
    """Return the cell of `key`, or the empty cell where it belongs; -1 if the table is full.

    Keys are stored next to their counts, so that a cell is half a cache line.
    """
    return hash_table.search(cells.word[0::4], key, np.uint64(0), _home(cells, key), cells.word.shape[0] >> 2)


@bare
def _key(a: Int, label: Int) -> np.uint64:
    """Return the key of a label at node a, which is never 0."""
    return (np.uint64(a + 1) << np.uint64(32)) | np.uint64(label)


@bare
def prefetch_counts(cells: Cells, a: Int, label: Int) -> None:
    """Prefetch the cache line of a label's cell at node a."""
    intrinsics.prefetch(cells.word, 4 * _home(cells, _key(a, label)))


@bare
def find(cells: Cells, a: Int, label: Int, version: Int) -> np.int64:
    """Return the cell of a label at node a; create it if it is absent and clear it if it is outdated.

    The caller makes sure that the table has an empty cell, see `has_capacity`.
    """
    key = _key(a, label)
    at = _cell(cells, key)
    current = np.uint32(version)
    if cells.word[4 * at] != key:
        cells.word[4 * at] = key
        cells.used[0] += 1
        cells.half[8 * at + VERSION] = current
    elif cells.half[8 * at + VERSION] != current:
        cells.number[4 * at + SUM] = 0.0
        cells.count[4 * at + TRAINED] = 0
        cells.half[8 * at + ENDED] = np.uint32(0)
        cells.half[8 * at + VERSION] = current
    return at


@bare
def seek(cells: Cells, a: Int, label: Int) -> np.int64:
    """Return the cell of a label at node a, outdated or not, or -1 if there is none; nothing is written."""
    key = _key(a, label)
    at = _cell(cells, key)
    return at if cells.word[4 * at] == key else np.int64(-1)


@bare
def arrived(cells: Cells, at: Int) -> np.int64:
    """Return the number of the label's examples that arrived at the node [l]."""
    return cells.count[4 * at + TRAINED] + np.int64(cells.half[8 * at + ENDED])


@bare
def end(cells: Cells, at: Int) -> None:
    """Count an example of the label that ends at the node."""
    cells.half[8 * at + ENDED] += np.uint32(1)


@bare
def trained(cells: Cells, at: Int, score: float) -> None:
    """Count an example of the label with which the node's router was trained, and add its score after training."""
    cells.number[4 * at + SUM] += score
    cells.count[4 * at + TRAINED] += 1


@bare
def mean(cells: Cells, at: Int) -> np.float32:
    """Return the mean score of the label's examples [e], or 0 if there are none.

    The sum is float64 and the mean float32, as in VW.
    """
    n = cells.count[4 * at + TRAINED]
    return np.float32(cells.number[4 * at + SUM]) / np.float32(n) if n > 0 else np.float32(0)


@bare
def has_capacity(cells: Cells, more: Int) -> bool:
    """Return whether at most 5/8 of the cells are used after `more` cells are added."""
    return (cells.used[0] + more) * 8 <= (cells.word.shape[0] >> 2) * 5


@bare
def _is_live(version: Int64s, cells: Cells, i: Int) -> bool:
    """Return whether the cell in position i, which has a key, belongs to an existing node and is not outdated."""
    a = np.int64(cells.word[4 * i] >> np.uint64(32)) - 1
    return a < version.shape[0] and cells.half[8 * i + VERSION] == np.uint32(version[a])


@bare
def _count_live(version: Int64s, cells: Cells) -> int:
    live = 0
    for i in range(cells.word.shape[0] >> 2):
        if cells.word[4 * i] != np.uint64(0) and _is_live(version, cells, i):
            live += 1
    return live


@bare
def _rehash(version: Int64s, old: Cells, cells: Cells) -> None:
    """Copy the cells of `old` that are not outdated into the empty table `cells`."""
    for i in range(old.word.shape[0] >> 2):
        key = old.word[4 * i]
        if key == np.uint64(0) or not _is_live(version, old, i):
            continue
        at = _cell(cells, key)
        for j in range(4):
            cells.word[4 * at + j] = old.word[4 * i + j]
        cells.used[0] += 1


# -- Python


def aligned(words: int) -> UInt64s:
    """Return uint64[words] of zeros that begins at the start of a cache line."""
    memory = np.zeros(words + 8, np.uint64)
    skip = -memory.ctypes.data // 8 % 8
    return memory[skip : skip + words]


def new_cells(cells: int = FIRST_CELLS) -> Cells:
    return _views(aligned(4 * cells))


def _views(word: UInt64s) -> Cells:
    """Return the table stored in `word` (uint64[4 cells]), with no cells counted as used and a new secret."""
    cells = len(word) // 4
    used = np.zeros(1, np.int64)
    shift = np.uint64(64 - max(1, (cells - 1).bit_length()))
    number, count, half = word.view(np.float64), word.view(np.int64), word.view(np.uint32)
    return Cells(word, number, count, half, used, shift, hash_table.new_secret())


def _cells_for(number: int) -> int:
    """Return the size of a table that `number` cells fill at most half: a power of two."""
    return max(FIRST_CELLS, 1 << (2 * number).bit_length())


def with_capacity_for(cells: Cells, version: Int64s, more: int) -> Cells:
    """Return a new table with the cells that are not outdated and with space for `more` cells."""
    larger = new_cells(_cells_for(int(_count_live(version, cells)) + more))
    _rehash(version, cells, larger)
    return larger


def array(cells: Cells, version: Int64s) -> UInt64s:
    """Return the cells stored in a model file, uint64[live cells, 4], in ascending order of keys."""
    words = cells.word.reshape(-1, 4)
    filled = np.flatnonzero(words[:, 0])
    halves = cells.half.reshape(-1, 8)[filled]
    at = (words[filled, 0] >> np.uint64(32)).astype(np.int64) - 1
    exists = at < len(version)
    live = filled[exists][halves[exists, VERSION] == version[at[exists]]]
    return words[live[np.argsort(words[live, 0])]]


def serialize(archive: Archive, name: str, cells: Cells, version: Int64s, labels: tuple[int, int]) -> Cells:
    """Save the cells, or return those of a model.

    Strictly ascending keys are distinct, so `find` and `seek` reach each of them. At least half of the cells stay
    empty, where searches end. `version` is int64[nodes], and `labels` are the lowest and highest label allowed.
    """
    words = archive.take(name, array(cells, version), (None, 4))
    if archive.saves:
        return cells
    words = words.copy()
    key, halves = words[:, 0], words.view(np.uint32)
    node = key >> np.uint64(32)
    stored_arrays.check_range(name, node, 1, len(version))
    stored_arrays.check_range(name, key & np.uint64(0xFFFFFFFF), *labels)
    if not (key[1:] > key[:-1]).all():
        raise stored_arrays.unfit(name, "its keys are not in ascending order")
    trained = words.view(np.int64)[:, TRAINED]
    trained[:] = stored_arrays.counts(name, trained)
    if not (halves[:, VERSION] == version[node.astype(np.int64) - 1]).all():
        raise stored_arrays.unfit(name, "it has counts of nodes that were recycled afterwards")
    cells = new_cells(_cells_for(len(words)))
    _rehash(version, _views(words.reshape(-1)), cells)
    return cells


def by_node(words: UInt64s) -> dict[int, list[tuple[int, float, int, int]]]:
    """Return the counts in an array of `array` by node: label, sum of scores, times trained, times ended there."""
    counts: dict[int, list[tuple[int, float, int, int]]] = {}
    sums, halves = words.view(np.float64), words.view(np.uint32)
    for i, key in enumerate(words[:, 0].tolist()):
        cell = (key & 0xFFFFFFFF, float(sums[i, SUM]), int(words[i, TRAINED]), int(halves[i, ENDED]))
        counts.setdefault((key >> 32) - 1, []).append(cell)
    return counts
