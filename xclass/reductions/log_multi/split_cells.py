"""What is counted of a label at a node of a tree that splits and takes back its leaves: a hash table.

Source    Choromanska, Langford, "Logarithmic Time Online Multiclass Prediction", NIPS 2015, Algorithm 1: l, m, n and e
          of a label at a node. Knows nothing of the tree.
Cost      O(1) to find a cell, whatever the number of labels and nodes. What a recycled node had counted is not cleared:
          its cells are outdated once the node's version, how often it was taken back, is no longer theirs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from ...array_types import Float64s, Int64s, UInt32s, UInt64s
from ...kernels import hash_table, intrinsics
from ...kernels.constants import GOLDEN, SPREAD
from ...kernels.jit import bare
from ...model import stored_arrays
from ...model.stored_arrays import Stored

SUM, TIMES, ENDED, VERSION = 1, 2, 6, 7  # of a cell, the last two of its 32-bit words; its key is word 0
FIRST_CELLS = 1 << 12


class Cells(NamedTuple):
    """The table. The arrays are views of one.

    32 bytes  | key: (node + 1) << 32 | label | m, sum of scores | n, trained | ended at the node | version |

    l of the paper, the label's examples that arrived at the node, is n + ended.
    """

    word: UInt64s  # uint64[4 cells], key; 0 is an empty cell
    number: Float64s  # float64[4 cells], m
    count: Int64s  # int64[4 cells], n
    half: UInt32s  # uint32[8 cells], ended and version
    used: Int64s  # int64[1], cells with a key
    shift: np.uint64  # 64 less the bits of a cell's number
    secret: np.uint64  # of the hash, see `hash_table`


# -- kernels. `version` is that of the node, or int64[nodes] those of all nodes.


@bare
def _home(cells, key):
    """The cell where the search for a key begins."""
    z = (key ^ cells.secret) * GOLDEN
    return np.int64(((z ^ (z >> np.uint64(32))) * SPREAD) >> cells.shift)


@bare
def _cell(cells, key):
    """Where `key` is, or the empty cell where it belongs; -1 in a full table.

    `hash_table.search` for keys that lie beside what they count, so that a cell is half a cache line.
    """
    last = np.int64((cells.word.shape[0] >> 2) - 1)
    at = _home(cells, key)
    steps = np.int64(0)
    while cells.word[4 * at] != key and cells.word[4 * at] != np.uint64(0):
        if steps > last:
            return np.int64(-1)
        at = (at + 1) & last
        steps += 1
    return at


@bare
def _key(a, label):
    return (np.uint64(a + 1) << np.uint64(32)) | np.uint64(label)


@bare
def prefetch_counts(cells, a, label):
    """Ask for the cache line of a label's cell at node a."""
    intrinsics.prefetch(cells.word, 4 * _home(cells, _key(a, label)))


@bare
def find(cells, a, label, version):
    """The cell of a label at node a, made or made anew if need be; the caller has seen to room."""
    key = _key(a, label)
    at = _cell(cells, key)
    now = np.uint32(version)
    if cells.word[4 * at] != key:
        cells.word[4 * at] = key
        cells.used[0] += 1
        cells.half[8 * at + VERSION] = now
    elif cells.half[8 * at + VERSION] != now:
        cells.number[4 * at + SUM] = 0.0
        cells.count[4 * at + TIMES] = 0
        cells.half[8 * at + ENDED] = np.uint32(0)
        cells.half[8 * at + VERSION] = now
    return at


@bare
def seek(cells, a, label):
    """The cell of a label at node a, outdated or not, or -1 where there is none; nothing is written."""
    key = _key(a, label)
    at = _cell(cells, key)
    return at if cells.word[4 * at] == key else np.int64(-1)


@bare
def arrived(cells, at):
    """Examples of the label that arrived at the node and went on or ended there [l]."""
    return cells.count[4 * at + TIMES] + np.int64(cells.half[8 * at + ENDED])


@bare
def end(cells, at):
    """An example of the label ends at the node."""
    cells.half[8 * at + ENDED] += np.uint32(1)


@bare
def trained(cells, at, score):
    """The node's router has learned from an example of the label and gives it this score now."""
    cells.number[4 * at + SUM] += score
    cells.count[4 * at + TIMES] += 1


@bare
def mean(cells, at):
    """Mean score of the label's examples [e], 0 for none: sum in float64, mean in float32, as in VW."""
    n = cells.count[4 * at + TIMES]
    return np.float32(cells.number[4 * at + SUM]) / np.float32(n) if n > 0 else np.float32(0)


@bare
def has_room(cells, more):
    """Whether so many more cells would leave at most 5/8 of them used."""
    return (cells.used[0] + more) * 8 <= (cells.word.shape[0] >> 2) * 5


@bare
def _is_live(version, cells, i):
    a = np.int64(cells.word[4 * i] >> np.uint64(32)) - 1
    return a < version.shape[0] and cells.half[8 * i + VERSION] == np.uint32(version[a])


@bare
def _count_live(version, cells):
    """Cells that are not outdated."""
    live = 0
    for i in range(cells.word.shape[0] >> 2):
        if cells.word[4 * i] != np.uint64(0) and _is_live(version, cells, i):
            live += 1
    return live


@bare
def _rehash(version, old, cells):
    """Move the cells of `old` that are not outdated into `cells`, which is empty."""
    for i in range(old.word.shape[0] >> 2):
        key = old.word[4 * i]
        if key == np.uint64(0) or not _is_live(version, old, i):
            continue
        at = _cell(cells, key)
        for j in range(4):
            cells.word[4 * at + j] = old.word[4 * i + j]
        cells.used[0] += 1


# -- Python. `version` : int64[nodes]


def aligned(words: int) -> np.ndarray:
    """So many zeros, uint64, that begin with a cache line."""
    memory = np.zeros(words + 8, np.uint64)
    skip = -memory.ctypes.data // 8 % 8
    return memory[skip : skip + words]


def new_cells(cells: int = FIRST_CELLS) -> Cells:
    """So many empty cells, a power of two."""
    return _views(aligned(4 * cells))


def _views(word: np.ndarray) -> Cells:
    cells = len(word) // 4
    used = np.zeros(1, np.int64)
    shift = np.uint64(64 - max(1, (cells - 1).bit_length()))
    number, count, half = word.view(np.float64), word.view(np.int64), word.view(np.uint32)
    return Cells(word, number, count, half, used, shift, hash_table.new_secret())


def _cells_for(number: int) -> int:
    """Cells that hold so many, a quarter full or half: a power of two."""
    return max(FIRST_CELLS, 1 << (2 * number).bit_length())


def with_room_for(cells: Cells, version: np.ndarray, more: int) -> Cells:
    """The cells that are not outdated in a table with room for so many more."""
    larger = new_cells(_cells_for(int(_count_live(version, cells)) + more))
    _rehash(version, cells, larger)
    return larger


def array(cells: Cells, version: np.ndarray) -> np.ndarray:
    """What a model keeps, the same for the same stream: uint64[live cells, 4], by rising key."""
    words = cells.word.reshape(-1, 4)
    filled = np.flatnonzero(words[:, 0])
    halves = cells.half.reshape(-1, 8)[filled]
    at = (words[filled, 0] >> np.uint64(32)).astype(np.int64) - 1
    there = at < len(version)
    live = filled[there][halves[there, VERSION] == version[at[there]]]
    return words[live[np.argsort(words[live, 0])]]


def restored(name: str, found: Mapping[str, Stored], version: np.ndarray, labels: tuple[int, int]) -> Cells:
    """The table that `array` gave under this name, whose labels are in a range.

    Keys that rise are all different, so that `find` and `seek` meet each of them. Half of the cells stay empty, where
    searches end.
    """
    words = stored_arrays.take(name, found, np.uint64, (None, 4))
    key, halves = words[:, 0], words.view(np.uint32)
    node = key >> np.uint64(32)
    stored_arrays.check_range(name, node, 1, len(version))
    stored_arrays.check_range(name, key & np.uint64(0xFFFFFFFF), *labels)
    if not (key[1:] > key[:-1]).all():
        raise stored_arrays.unfit(name, "its keys do not rise")
    stored_arrays.check_range(name, words.view(np.int64)[:, TIMES], 0, stored_arrays.MOST_COUNTED)
    if not (halves[:, VERSION] == version[node.astype(np.int64) - 1]).all():
        raise stored_arrays.unfit(name, "it counts for nodes that have been taken back since")
    cells = new_cells(_cells_for(len(words)))
    _rehash(version, _views(np.ascontiguousarray(words).reshape(-1)), cells)
    return cells


def by_node(words: np.ndarray) -> dict[int, list[tuple[int, float, int, int]]]:
    """Of what `array` gives: node -> (label, sum of scores, times trained, times ended there) by rising label."""
    found: dict[int, list] = {}
    sums, halves = words.view(np.float64), words.view(np.uint32)
    for i, key in enumerate(words[:, 0].tolist()):
        one = (key & 0xFFFFFFFF, float(sums[i, SUM]), int(words[i, TIMES]), int(halves[i, ENDED]))
        found.setdefault((key >> 32) - 1, []).append(one)
    return found
