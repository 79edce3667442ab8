"""How often every label was seen at every node of a tree, and the labels seen most often there; fixed size in kernels.

Source    Daume, Karampatziakis, Langford, Mineiro, "Logarithmic Time One-Against-Some", ICML 2017.
Cost      counting a label at a node O(1) and the steps by which it rises among the F candidates, whatever K is.
Names     F candidates kept of a node | lambda bern | n, H weight and label entropy [hist, total] of a node.
Differs   from VW's recall_tree.cc: counts are found by hashing (node, label), not by scanning, with the same order
          of candidates; entropies are kept incrementally in nats, as there.

The recall bound, paper and VW in one formula: r is the share of the node's weight n that its F candidates hold,

    bound = max(0, r - sqrt(lambda r (1 - r) / n) - lambda * DIAMETER / n)        DIAMETER = 15 / sqrt(18)

(the paper writes lambda / n for the last term and leaves the constant to lambda; VW's constant is used).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from ...array_types import AnyArray, Float64s, Int, Int32s, Int64s, UInt64s
from ...kernels import hash_table
from ...kernels.constants import ONE, ZERO
from ...kernels.jit import jit
from ...model import stored_arrays
from ...model.stored_arrays import Stored

FIRST_CELLS = 1 << 14
FIFTEEN = np.float32(15)
ROOT_18 = np.float32(math.sqrt(18.0))
WEIGHT, ENTROPY, HELD, BOUND = 0, 1, 2, 3  # columns of Counts.node
ASKED, MET = 0, 1  # columns of Counts.recall
MOST_WEIGHT = 1e60  # of the examples of a node: 2**53 of the largest weight are less
MOST_ENTROPY = 1e6  # in nats, whatever rounding does
ROUNDING = 1e-6  # relative, of sums of the same numbers in another order
FADE = 0.99  # what an example predicted at a node leaves of the recall counted there before


class Counts(NamedTuple):
    """What was seen at every node. `cell_key` and `cell_count` are two views of one hash table.

    A cell belongs to a node and a label and counts that label in the node's two children side by side, since
    routing asks for both; the root is the left child of a node above it.

        24 bytes  | key: (node + 1) << 32 | label + 1 | count in left child | count in right child |
    """

    node: Float64s  # float64[m, 4]: weight n, entropy H in nats, weight held by the candidates, recall bound
    top_label: Int32s  # int32[m, F], candidates by falling count
    top_count: Float64s  # float64[m, F]
    top_size: Int32s  # int32[m]
    recall: Float64s  # float64[m, 2]: weight of predictions that ended here, and of those with the label a candidate
    cell_key: UInt64s  # uint64[cells, 3], column 0; 0 is an empty cell
    cell_count: Float64s  # float64[cells, 3], columns 1 and 2
    used: Int64s  # int64[1], cells in use
    secret: np.uint64  # of the hash of keys


# -- kernels


@jit
def _cell(counts: Counts, key: np.uint64) -> np.int64:
    """Where `key` is, or the empty cell where it belongs; -1 in a full table.

    `hash_table.search` for keys that lie beside their counts, so that a cell is one cache line or two.
    """
    keys = counts.cell_key
    last = np.int64(keys.shape[0] - 1)
    at = np.int64(hash_table.hashed(key, counts.secret)) & last
    steps = np.int64(0)
    while keys[at, 0] != key and keys[at, 0] != np.uint64(0):
        if steps > last:
            return np.int64(-1)
        at = (at + 1) & last
        steps += 1
    return at


@jit
def find(counts: Counts, above: Int, label: Int) -> np.int64:
    """The cell of `label` under node `above`, made if there is none; the caller has seen to room."""
    key = (np.uint64(above + 1) << np.uint64(32)) | np.uint64(label + 1)
    at = _cell(counts, key)
    if counts.cell_key[at, 0] != key:
        counts.cell_key[at, 0] = key
        counts.used[0] += 1
    return at


@jit
def rehash(old_key: UInt64s, old_count: Float64s, counts: Counts) -> None:
    """Move all cells of an old table into `counts`, which is empty."""
    for i in range(old_key.shape[0]):
        key = old_key[i, 0]
        if key != np.uint64(0):
            at = _cell(counts, key)
            counts.cell_key[at, 0] = key
            counts.cell_count[at, 1] = old_count[i, 1]
            counts.cell_count[at, 2] = old_count[i, 2]
            counts.used[0] += 1


@jit
def _plogp(c: float, n: float) -> float:
    return (c / n) * math.log(c / n) if c != 0.0 else 0.0


@jit
def entropy_with(n: float, h: float, c: float, i: float) -> float:
    """Entropy of a node of weight n and entropy h once weight i of a label counted c so far is added."""
    share = n / (i + n)
    log_share = math.log(share) if share != 0.0 else 0.0
    h += _plogp(c, n)
    h *= share
    h -= log_share * ((n - c) / (n + i))
    h -= _plogp(c + i, n + i)
    return h


@jit
def bound(bern: np.float32, held: float, n: float) -> np.float32:
    """Lower bound of a node's recall, in float32 as in VW."""
    total = np.float32(n)
    r = np.float32(held) / total
    spread = np.float32(math.sqrt(r * (ONE - r) / total))
    diameter = FIFTEEN / (ROOT_18 * total)
    low = r - np.float32(math.sqrt(bern)) * spread - bern * diameter
    return low if low > ZERO else ZERO  # not max: rounding can leave r above 1 and low NaN


@jit
def insert(counts: Counts, bern: np.float32, a: int, label: Int, c: float, i: float, h: float) -> None:
    """Count weight i of a label at node a, where it had c so far and h is the entropy with it.

    The candidates stay ordered as in VW: an entry moves before all of strictly smaller count. A label outside
    comes in only when it passes the last candidate, so the labels outside need no order.
    """
    node, top_label, top_count = counts.node, counts.top_label, counts.top_count
    room = top_label.shape[1]
    size = counts.top_size[a]
    new = c + i
    held = node[a, HELD]
    at = -1
    if c == 0.0 and size < room:
        at = size
        counts.top_size[a] = size + 1
        held += i
    elif size < room or new > top_count[a, size - 1]:
        at = size - 1
        while at >= 0 and top_label[a, at] != label:
            at -= 1
        if at >= 0:
            held += i
        else:  # passes the last candidate and takes its place
            at = size - 1
            held += new - top_count[a, at]
    if at >= 0:  # not `top_k.insert`: the label may be in the list, and rises from where it is
        while at > 0 and top_count[a, at - 1] < new:
            top_label[a, at] = top_label[a, at - 1]
            top_count[a, at] = top_count[a, at - 1]
            at -= 1
        top_label[a, at] = label
        top_count[a, at] = new
    node[a, ENTROPY] = h
    node[a, WEIGHT] += i
    node[a, HELD] = held
    node[a, BOUND] = bound(bern, held, node[a, WEIGHT])


@jit
def recall(counts: Counts, classes: int, a: int) -> float:
    """The estimated probability that the label of an example predicted at node a is a candidate there."""
    if counts.top_size[a] == classes:
        return 1.0
    if counts.top_size[a] == 0:
        return 0.0
    share: float = (counts.recall[a, MET] + 0.5) / (counts.recall[a, ASKED] + 1.0)
    return share


@jit
def count_recall(counts: Counts, a: int, met: bool, weight: np.float32) -> None:
    """Count one example predicted at node a, before its label is counted."""
    if counts.top_size[a] == 0:
        return
    counts.recall[a, ASKED] = FADE * counts.recall[a, ASKED] + np.float64(weight)
    counts.recall[a, MET] = FADE * counts.recall[a, MET] + (np.float64(weight) if met else 0.0)


@jit
def has_room(tree_depth: int, counts: Counts) -> bool:
    """Whether one more example surely finds empty cells; at most 5/8 of them are used."""
    enough: bool = (counts.used[0] + tree_depth + 2) * 8 <= counts.cell_key.shape[0] * 5
    return enough


# -- Python


def bytes_of_node(candidates: int) -> int:
    """What a node takes in Counts."""
    return 52 + 12 * candidates


def new_counts(nodes: int, candidates: int, cells: int = FIRST_CELLS) -> Counts:
    """Empty counts; pages of nodes never reached are never taken from the machine."""
    keys, shared = _new_cells(cells)
    return Counts(
        node=np.zeros((nodes, 4)),
        top_label=np.zeros((nodes, candidates), np.int32),
        top_count=np.zeros((nodes, candidates)),
        top_size=np.zeros(nodes, np.int32),
        recall=np.zeros((nodes, 2)),
        cell_key=keys,
        cell_count=shared,
        used=np.zeros(1, np.int64),
        secret=hash_table.new_secret(),
    )


def _new_cells(cells: int) -> tuple[UInt64s, Float64s]:
    keys = np.zeros((cells, 3), np.uint64)
    return keys, keys.view(np.float64)


def with_cells(counts: Counts, cells: int) -> Counts:
    """The same counts with a hash table of so many cells."""
    keys, shared = _new_cells(cells)
    larger = counts._replace(cell_key=keys, cell_count=shared, used=np.zeros(1, np.int64))
    rehash(counts.cell_key, counts.cell_count, larger)
    return larger


def labels_of_nodes(counts: Counts, left: Int32s) -> dict[int, dict[int, float]]:
    """Node -> 0-based label -> count; `left[a]` is the left child of node a."""
    counted: dict[int, dict[int, float]] = {}
    for at in np.flatnonzero(counts.cell_key[:, 0]).tolist():
        key = int(counts.cell_key[at, 0])
        above, y = (key >> 32) - 1, (key & 0xFFFFFFFF) - 1
        child = int(left[above]) if above >= 0 else 0  # the root is a left child
        for side in (0, 1):
            if counts.cell_count[at, 1 + side] > 0:
                counted.setdefault(child + side, {})[y] = float(counts.cell_count[at, 1 + side])
    return counted


def arrays(c: Counts) -> dict[str, Stored]:
    """What a model keeps of the counts: nodes seen, cells in use."""
    seen = np.flatnonzero(c.node[:, WEIGHT] > 0)
    cells = np.flatnonzero(c.cell_key[:, 0])
    order = cells[np.argsort(c.cell_key[cells, 0])]
    return {
        "nodes.id": seen.astype(np.int32),
        "nodes.state": c.node[seen],
        "nodes.top_label": c.top_label[seen],
        "nodes.top_count": c.top_count[seen],
        "nodes.top_size": c.top_size[seen],
        "nodes.recall": c.recall[seen],
        "cells.key": c.cell_key[order, 0],
        "cells.count": np.ascontiguousarray(c.cell_count[order, 1:]),
    }


def restored(c: Counts, found: Mapping[str, Stored], classes: int, deepest: int, left: Int32s, finite: bool) -> Counts:
    """Fill empty counts with what `arrays` gave, of a tree of `deepest` levels.

    The kernels of `routing` and `scoring` take candidates for classes and as many of them as top_size says, so both
    are checked; counts are compared and added only. Keys that rise are all different, so that `find` meets each of
    them; 3/8 of the cells at least stay empty, where searches end.

    Parameters
    ----------
    left : int32[m], the left child of each node, 0 at a leaf
    finite : whether learning goes on and has to stay finite; then `entropy_with` and `bound` need counts that are
        finite, and a node that has seen each label at most as often as it has seen examples
    """
    seen = stored_arrays.rows("nodes.id", found, len(c.node))
    for name, target in (
        ("nodes.state", c.node),
        ("nodes.top_label", c.top_label),
        ("nodes.top_count", c.top_count),
        ("nodes.top_size", c.top_size),
        ("nodes.recall", c.recall),
    ):
        target[seen] = stored_arrays.take(name, found, target.dtype, (len(seen), *target.shape[1:]))
    stored_arrays.check_range("nodes.top_label", found["nodes.top_label"], 0, classes - 1)
    stored_arrays.check_range("nodes.top_size", found["nodes.top_size"], 0, c.top_label.shape[1])
    keys = stored_arrays.take("cells.key", found, np.uint64, None)
    _check_keys(keys, classes, left > 0)
    cells = FIRST_CELLS
    while cells * 5 < len(keys) * 8 + 8 * (deepest + 2):
        cells *= 2
    loaded_keys, loaded_counts = _new_cells(len(keys))
    loaded_keys[:, 0] = keys
    loaded_counts[:, 1:] = stored_arrays.take("cells.count", found, np.float64, (len(keys), 2))
    if finite:
        _check_counts(c.node, found, keys, left)
    loaded = c._replace(cell_key=loaded_keys, cell_count=loaded_counts)
    return with_cells(loaded, cells)


def _check_keys(keys: UInt64s, classes: int, inner: AnyArray) -> None:
    """Refuse keys that do not rise, and those of labels that are no classes or below nodes without children."""
    if not (keys[1:] > keys[:-1]).all():
        raise stored_arrays.unfit("cells.key", "its keys do not rise")
    stored_arrays.check_range("cells.key", keys & np.uint64(0xFFFFFFFF), 1, classes)
    above = (keys >> np.uint64(32)).astype(np.int64) - 1
    stored_arrays.check_range("cells.key", above, -1, len(inner) - 1)
    if not inner[above[np.searchsorted(above, 0) :]].all():
        raise stored_arrays.unfit("cells.key", "it counts labels below nodes that have no children")


def _check_counts(node: AnyArray, found: Mapping[str, Stored], keys: UInt64s, left: Int32s) -> None:
    """Refuse counts from which learning could make a number that is not finite."""
    for name in ("nodes.top_count", "nodes.recall", "cells.count"):
        stored_arrays.check_range(name, found[name], 0, MOST_WEIGHT)
    state = np.asarray(found["nodes.state"])
    stored_arrays.check_range("nodes.state", state[:, (WEIGHT, HELD)], 0, MOST_WEIGHT)
    stored_arrays.check_range("nodes.state", state[:, (ENTROPY, BOUND)], -MOST_ENTROPY, MOST_ENTROPY)
    above = (keys >> np.uint64(32)).astype(np.int64) - 1
    child = np.where(above >= 0, left[above], 0)  # the root is a left child
    second = np.where(above >= 0, child + 1, 0)
    seen = np.stack([node[child, WEIGHT], np.where(above >= 0, node[second, WEIGHT], MOST_WEIGHT)], axis=1)
    more = np.asarray(found["cells.count"]) > seen * (1 + ROUNDING)
    if more.any():
        at = int(np.argmax(more.any(axis=1)))
        label = int(keys[at] & np.uint64(0xFFFFFFFF))
        raise stored_arrays.unfit("cells.count", f"it counts label {label} more often at a node than the node was seen")
