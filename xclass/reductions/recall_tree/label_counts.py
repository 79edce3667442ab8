"""Count the labels seen at each node of a tree and keep the most frequent ones as candidates.

Source    Daume, Karampatziakis, Langford, Mineiro, "Logarithmic Time One-Against-Some", ICML 2017.
Cost      Counting a label at a node takes O(1), plus at most F steps to keep the candidates in order, whatever K is.
Names     F most candidates of a node [max_candidates] | lambda multiplier of the bound [bern_hyper] |
          n, H weight and label entropy of a node [hist, total] | K classes.
Differs   from VW's recall_tree.cc: counts are found by hashing (node, label) instead of scanning a list.
Idea      The candidates of a node are its F most frequent labels. The recall of a node is the probability that the
          label of an example that reaches it is among them. A lower confidence bound of the recall decides how deep an
          example is routed.

With r the share of the node's weight n that belongs to its candidates, the recall bound is

    bound = max(0, r - sqrt(lambda r (1 - r) / n) - lambda * DIAMETER / n)        DIAMETER = 15 / sqrt(18)

as in VW. In equation (1) of the paper DIAMETER is 1 and there is no maximum; `paper` selects that.

The gain of a node compares it with its parent by progressive validation: it is the decayed number of the examples
routed to the node whose labels were candidates of the node alone, minus that of those whose labels were candidates of
the parent alone. The bounds do not make this comparison, since that of the parent is about all of its examples: where
one child gets the frequent labels, the other has a lower bound than the parent, although it recalls more labels of its
own examples than the parent does.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ...array_types import AnyArray, Float64s, Int, Int32s, Int64s, UInt64s
from ...kernels import hash_table
from ...kernels.constants import ONE, ZERO
from ...kernels.jit import bare, jit
from ...model import stored_arrays
from ...model.archive import Archive
from ...model.stored_arrays import MAX_SUM
from ...system import sparse_memory

FIRST_CELLS = 1 << 14
FIFTEEN = np.float32(15)
ROOT_18 = np.float32(math.sqrt(18.0))
WEIGHT, ENTROPY, CANDIDATE_WEIGHT, BOUND = 0, 1, 2, 3  # columns of Counts.node
PREDICTED, RECALLED = 0, 1  # columns of Counts.recall: weight of the predictions, weight of those with recalled labels
MOST_ENTROPY = 1e6  # upper limit of |entropy| in nats, rounding errors included
LEAST_BOUND = np.float32(-1e6)  # of the bound of the paper, for weights so small or large that it is not finite
ROUNDING = 1e-6  # relative error allowed between sums of the same numbers in different orders
RECALL_DECAY = 0.99  # factor by which each prediction at a node decays the recall counted there before
GAIN_DECAY = 0.998  # the same for the gain
LEAST_GAIN = 10.0  # gain above which descent goes on below the bound: 2 % of the last 1 / (1 - GAIN_DECAY) examples


class Counts(NamedTuple):
    """Hold the counts of all nodes of a tree with m nodes.

    `cell_key` and `cell_count` are two views of one open-addressing hash table. A cell belongs to a node and a label
    and holds the label's counts in both children of the node side by side, because routing needs both. The counts of
    the root are those of the left child of node -1, which does not exist.

        24 bytes  | key: (node + 1) << 32 | label + 1 | count in left child | count in right child |
    """

    node: Float64s  # float64[m, 4]: weight n, entropy H in nats, weight of the candidates' labels, recall bound
    top_label: Int32s  # int32[m, F], candidates (0-based labels) in descending order of their counts
    top_count: Float64s  # float64[m, F], count of each candidate
    top_size: Int32s  # int32[m], number of candidates
    recall: Float64s  # float64[m, 2]: decayed weight of the examples predicted here, and of those with recalled labels
    gain: Float64s  # float64[m], gain over the parent
    cell_key: UInt64s  # uint64[cells, 3], keys in column 0; key 0 marks an empty cell
    cell_count: Float64s  # float64[cells, 3], counts in columns 1 (left child) and 2 (right child)
    used: Int64s  # int64[1], number of cells in use
    secret: np.uint64  # secret of the hash function, see `hash_table`


# -- kernels. `a` is a node, `label` a 0-based label, `i` the importance weight of an example, and `bern` lambda; `n`,
# `h` and `c` are weight and entropy of a node and the count of a label there, before the example is added.


@bare
def _cell(counts: Counts, key: np.uint64) -> np.int64:
    """Return the cell of `key`, or the empty cell where it belongs; -1 if the table is full.

    Keys are stored next to their counts, so that a cell spans at most two cache lines.
    """
    return hash_table.probe(counts.cell_key[:, 0], key, np.uint64(0), counts.secret)


@bare
def find(counts: Counts, above: Int, label: Int) -> np.int64:
    """Return the cell of a label below a node (-1 above the root), and create it if it is absent.

    The caller makes sure that the table has an empty cell, see `has_capacity`. Columns 1 and 2 of `cell_count` hold the
    counts in the left and the right child.
    """
    key = (np.uint64(above + 1) << np.uint64(32)) | np.uint64(label + 1)
    at = _cell(counts, key)
    if counts.cell_key[at, 0] != key:
        counts.cell_key[at, 0] = key
        counts.used[0] += 1
    return at


@jit
def rehash(old_key: UInt64s, old_count: Float64s, counts: Counts) -> None:
    """Move all cells of an old hash table into the empty table of `counts`."""
    for i in range(old_key.shape[0]):
        key = old_key[i, 0]
        if key != np.uint64(0):
            at = _cell(counts, key)
            counts.cell_key[at, 0] = key
            counts.cell_count[at, 1] = old_count[i, 1]
            counts.cell_count[at, 2] = old_count[i, 2]
            counts.used[0] += 1


@bare
def _plogp(c: float, n: float) -> float:
    """Return p log p for p = c / n, in nats."""
    return (c / n) * math.log(c / n) if c != 0.0 else 0.0


@bare
def entropy_with(n: float, h: float, c: float, i: float) -> float:
    """Return the label entropy of a node, in nats, after an example is added to it."""
    share = n / (i + n)
    log_share = math.log(share) if share != 0.0 else 0.0
    h += _plogp(c, n)
    h *= share
    h -= log_share * ((n - c) / (n + i))
    h -= _plogp(c + i, n + i)
    return h


@bare
def bound(bern: np.float32, paper: bool, candidate_weight: float, n: float) -> np.float32:
    """Return the lower bound of a node's recall, computed in float32 as in VW or by equation (1) of the `paper`."""
    total = np.float32(n)
    r = np.float32(candidate_weight) / total
    if paper and r > ONE:  # by rounding
        r = ONE
    spread = np.float32(math.sqrt(r * (ONE - r) / total))
    diameter = ONE / total if paper else FIFTEEN / (ROOT_18 * total)
    low = r - np.float32(math.sqrt(bern)) * spread - bern * diameter
    least = LEAST_BOUND if paper else ZERO
    return low if low > least else least  # max() would return NaN if rounding makes r > 1


@bare
def insert(
    counts: Counts, bern: np.float32, paper: bool, a: int, label: Int, c: float, i: float, h: float
) -> None:  # fmt: skip
    """Count an example of a label at a node and update the node's candidates, entropy and recall bound.

    The candidates keep VW's order: a label moves in front of all candidates with strictly smaller counts. A label that
    is no candidate becomes one only when its count exceeds that of the last candidate, so other labels need no order.
    The caller updates the hash table; `h` is the entropy with the example, from `entropy_with`.
    """
    node, top_label, top_count = counts.node, counts.top_label, counts.top_count
    capacity = top_label.shape[1]
    size = counts.top_size[a]
    new = c + i
    candidate_weight = node[a, CANDIDATE_WEIGHT]
    at = -1
    if c == 0.0 and size < capacity:
        at = size
        counts.top_size[a] = size + 1
        candidate_weight += i
    elif size < capacity or new > top_count[a, size - 1]:
        at = size - 1
        while at >= 0 and top_label[a, at] != label:
            at -= 1
        if at >= 0:
            candidate_weight += i
        else:  # the label replaces the last candidate
            at = size - 1
            candidate_weight += new - top_count[a, at]
    if at >= 0:  # unlike `top_k.insert`, the label may be in the list already and moves up from its position
        while at > 0 and top_count[a, at - 1] < new:
            top_label[a, at] = top_label[a, at - 1]
            top_count[a, at] = top_count[a, at - 1]
            at -= 1
        top_label[a, at] = label
        top_count[a, at] = new
    node[a, ENTROPY] = h
    node[a, WEIGHT] += i
    node[a, CANDIDATE_WEIGHT] = candidate_weight
    node[a, BOUND] = bound(bern, paper, candidate_weight, node[a, WEIGHT])


@bare
def recall(counts: Counts, classes: int, a: int) -> float:
    """Return the estimated probability that the label of an example predicted at node `a` is a candidate there."""
    if counts.top_size[a] == classes:
        return 1.0
    if counts.top_size[a] == 0:
        return 0.0
    share: float = (counts.recall[a, RECALLED] + 0.5) / (counts.recall[a, PREDICTED] + 1.0)
    return share


@bare
def count_recall(counts: Counts, a: int, recalled: bool, weight: np.float32) -> None:
    """Update the recall estimate of a node with an example predicted there, before its label is counted."""
    if counts.top_size[a] == 0:
        return
    counts.recall[a, PREDICTED] = RECALL_DECAY * counts.recall[a, PREDICTED] + np.float64(weight)
    counts.recall[a, RECALLED] = RECALL_DECAY * counts.recall[a, RECALLED] + (np.float64(weight) if recalled else 0.0)


@bare
def is_candidate(counts: Counts, a: int, label: Int) -> bool:
    """Return whether a label is a candidate of node `a`."""
    for j in range(counts.top_size[a]):
        if counts.top_label[a, j] == label:
            return True
    return False


@bare
def count_gain(counts: Counts, a: int, child: int, label: Int) -> None:
    """Update the gain of a child of node `a` with an example routed to the child, before its label is counted."""
    counts.gain[child] *= GAIN_DECAY
    counts.gain[child] += int(is_candidate(counts, child, label)) - int(is_candidate(counts, a, label))


@bare
def has_capacity(tree_depth: int, counts: Counts) -> bool:
    """Return whether the cells of one more example fit into the table with at most 5/8 of the cells used."""
    fits: bool = (counts.used[0] + tree_depth + 2) * 8 <= counts.cell_key.shape[0] * 5
    return fits


# -- Python


def bytes_of_node(candidates: int) -> int:
    """Return the size of one node in `Counts`, in bytes."""
    return 60 + 12 * candidates


def new_counts(nodes: int, candidates: int, cells: int = FIRST_CELLS) -> Counts:
    """Return empty counts of m nodes, with a power of two of `cells`.

    The operating system allocates pages only for nodes that are reached, which are few.
    """
    keys, cell_counts = _new_cells(cells)
    return Counts(
        node=np.zeros((nodes, 4)),
        top_label=sparse_memory.zeros(nodes * candidates).view(np.int32).reshape(nodes, candidates),
        top_count=sparse_memory.zeros(2 * nodes * candidates).view(np.float64).reshape(nodes, candidates),
        top_size=np.zeros(nodes, np.int32),
        recall=np.zeros((nodes, 2)),
        gain=np.zeros(nodes),
        cell_key=keys,
        cell_count=cell_counts,
        used=np.zeros(1, np.int64),
        secret=hash_table.new_secret(),
    )


def _new_cells(cells: int) -> tuple[UInt64s, Float64s]:
    """Return an empty hash table as two views of one array: its keys and its counts, both [cells, 3]."""
    keys = np.zeros((cells, 3), np.uint64)
    return keys, keys.view(np.float64)


def with_cells(counts: Counts, cells: int) -> Counts:
    """Return the same counts with a hash table of `cells` cells, a power of two."""
    keys, cell_counts = _new_cells(cells)
    larger = counts._replace(cell_key=keys, cell_count=cell_counts, used=np.zeros(1, np.int64))
    rehash(counts.cell_key, counts.cell_count, larger)
    return larger


def serialize(archive: Archive, c: Counts, classes: int, deepest: int, left: Int32s, finite: bool) -> Counts:
    """Save the nodes that have seen examples and the cells in use, or return counts filled from a model.

    The kernels of `routing` and `scoring` use candidates as classes and `top_size` as a loop bound, so both are
    checked; counts are only compared and added. Strictly ascending keys are distinct, so `find` reaches each of them;
    at least 3/8 of the cells stay empty, where searches end. If learning continues and has to stay `finite`,
    `entropy_with` and `bound` need finite counts, and no label may be counted more often at a node than the node's
    weight allows. `left` is int32[m], left child of each node, 0 at a leaf. Predictions do not need the cells.
    """
    seen = np.flatnonzero((c.node[:, WEIGHT] > 0) | (c.gain != 0)).astype(np.int32)
    seen = archive.take("nodes.id", seen)
    if not archive.saves:
        stored_arrays.check_row_numbers("nodes.id", seen, len(c.node))
    most = np.full(c.node.shape[1], MAX_SUM)
    most[[ENTROPY, BOUND]] = MOST_ENTROPY
    least = np.where(most == MAX_SUM, 0, -most)
    for name, target, low, high in (
        ("state", c.node, least if finite else None, most),
        ("top_label", c.top_label, 0, classes - 1),
        ("top_count", c.top_count, 0 if finite else None, MAX_SUM),
        ("top_size", c.top_size, 0, c.top_label.shape[1]),
        ("recall", c.recall, 0 if finite else None, MAX_SUM),
        ("gain", c.gain, -MAX_SUM, MAX_SUM),
    ):
        own = archive.take(f"nodes.{name}", target[seen], (len(seen), *target.shape[1:]), low, high)
        if not archive.saves:
            target[seen] = own
    if not archive.has("cells.key"):
        return c
    cells = np.flatnonzero(c.cell_key[:, 0])
    order = cells[np.argsort(c.cell_key[cells, 0])]
    keys = archive.take("cells.key", c.cell_key[order, 0])
    counts = np.ascontiguousarray(c.cell_count[order, 1:])
    counts = archive.take("cells.count", counts, (len(keys), 2), 0 if finite else None, MAX_SUM)
    if archive.saves:
        return c
    _check_keys(keys, classes, left > 0)
    if finite:
        _check_counts(c.node, counts, keys, left)
    size = FIRST_CELLS
    while size * 5 < len(keys) * 8 + 8 * (deepest + 2):
        size *= 2
    loaded_keys, loaded_counts = _new_cells(len(keys))
    loaded_keys[:, 0], loaded_counts[:, 1:] = keys, counts
    return with_cells(c._replace(cell_key=loaded_keys, cell_count=loaded_counts), size)


def _check_keys(keys: UInt64s, classes: int, inner: AnyArray) -> None:
    """Raise ModelError unless keys ascend and belong to classes and to nodes with children (`inner`, bool[m])."""
    if not (keys[1:] > keys[:-1]).all():
        raise stored_arrays.unfit("cells.key", "its keys are not in ascending order")
    stored_arrays.check_range("cells.key", keys & np.uint64(0xFFFFFFFF), 1, classes)
    above = (keys >> np.uint64(32)).astype(np.int64) - 1
    stored_arrays.check_range("cells.key", above, -1, len(inner) - 1)
    if not inner[above[np.searchsorted(above, 0) :]].all():
        raise stored_arrays.unfit("cells.key", "it counts labels below nodes that have no children")


def _check_counts(node: AnyArray, counts: AnyArray, keys: UInt64s, left: Int32s) -> None:
    """Raise ModelError if a label is counted more often at a node than the node's weight allows."""
    above = (keys >> np.uint64(32)).astype(np.int64) - 1
    child = np.where(above >= 0, left[above], 0)  # the root is a left child
    second = np.where(above >= 0, child + 1, 0)
    limit = np.stack([node[child, WEIGHT], np.where(above >= 0, node[second, WEIGHT], MAX_SUM)], axis=1)
    exceeds = counts > limit * (1 + ROUNDING)
    if exceeds.any():
        at = int(np.argmax(exceeds.any(axis=1)))
        label = int(keys[at] & np.uint64(0xFFFFFFFF))
        raise stored_arrays.unfit("cells.count", f"its count of label {label} at a node exceeds the count of the node")
