"""The nodes of a softmax tree as they are trained: made into arrays, out of arrays, walked through, pruned.

A node is a number, 0 the root. Features have the numbers of `row_store.Rows` while a tree is trained, and are
hashes in a model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ...array_types import AnyArray, Bools, Float64s, Int32s, Int64s, UInt32s
from ..clusters.two_means import Share
from . import inference, row_store

CHUNK = 4096  # rows a thread walks at a time


class Router(NamedTuple):
    """Right where w.x + b >= 0."""

    feature: UInt32s  # uint32[q], rising
    weight: Float64s  # float64[q]
    bias: float


class Leaf(NamedTuple):
    """A softmax: weights of class c are those at `start[c]` .. `start[c + 1] - 1`."""

    label: Int64s  # int64[k], rising
    bias: Float64s  # float64[k]
    start: Int64s  # int64[k + 1]
    feature: UInt32s  # uint32[q]
    weight: Float64s  # float64[q]


NO_ROUTER = Router(np.empty(0, np.uint32), np.empty(0), 0.0)
NO_LEAF = Leaf(np.empty(0, np.int64), np.empty(0), np.zeros(1, np.int64), np.empty(0, np.uint32), np.empty(0))


class Tree:
    """Nodes: children by number, -1 for a leaf; what is in each node."""

    def __init__(self, left: list[int], right: list[int]) -> None:
        self.left, self.right = left, right
        self.inside: list[Router | Leaf] = [NO_LEAF if one < 0 else NO_ROUTER for one in left]

    @classmethod
    def complete(cls, depth: int) -> Tree:
        """All leaves at one depth, in breadth-first order."""
        inner = (1 << depth) - 1
        nodes = 2 * inner + 1
        return cls(
            [2 * i + 1 if i < inner else -1 for i in range(nodes)],
            [2 * i + 2 if i < inner else -1 for i in range(nodes)],
        )

    def router(self, i: int) -> Router:
        """What is in an inner node."""
        found = self.inside[i]
        assert isinstance(found, Router)
        return found

    def leaf(self, i: int) -> Leaf:
        """What is in a leaf."""
        found = self.inside[i]
        assert isinstance(found, Leaf)
        return found

    def levels(self) -> list[list[int]]:
        """Nodes by level, the root first."""
        found, here = [], [0]
        while here:
            found.append(here)
            here = [child for i in here if self.left[i] >= 0 for child in (self.left[i], self.right[i])]
        return found

    def leaves(self) -> list[int]:
        """Leaves from left to right."""
        found, waiting = [], [0]
        while waiting:
            i = waiting.pop()
            if self.left[i] < 0:
                found.append(i)
            else:
                waiting += [self.right[i], self.left[i]]
        return found

    def penalty(self, leaves: bool) -> float:
        """Sum of the sizes of all weights, with those of leaves or without."""
        return float(sum(np.abs(one.weight).sum() for one in self.inside if leaves or isinstance(one, Router)))

    def nonzeros(self) -> int:
        """Number of weights."""
        return sum(len(one.weight) for one in self.inside)


def parts(tree: Tree) -> inference.Parts:
    """A tree as arrays. Leaves are numbered from left to right."""
    leaves = tree.leaves()
    left, right = np.array(tree.left, np.int32), np.array(tree.right, np.int32)
    bias = np.zeros(len(left), np.float32)
    routers = [i for i, one in enumerate(tree.inside) if isinstance(one, Router)]
    for i in routers:
        bias[i] = tree.inside[i].bias
    node, feature, entry, owner, value = [], [], [], [], []
    seen = 0
    for number, i in enumerate(leaves):
        leaf = tree.leaf(i)
        left[i] = -1 - number
        order = np.argsort(leaf.feature, kind="stable")
        names, first = np.unique(leaf.feature[order], return_index=True)
        node.append(np.full(len(names), i))
        feature.append(names)
        entry.append(first + seen)
        owner.append(np.repeat(np.arange(len(leaf.label)), np.diff(leaf.start))[order])
        value.append(leaf.weight[order])
        seen += len(order)
    leaf_size = [len(tree.leaf(i).label) for i in leaves]
    found = (
        left, right, bias,
        _joined([np.full(len(tree.inside[i].feature), i) for i in routers]),
        _joined([tree.inside[i].feature for i in routers]),
        _joined([tree.inside[i].weight for i in routers]),
        _joined(node), _joined(feature), _joined([*entry, [seen]]), _joined(owner), _joined(value),
        np.concatenate([[0], np.cumsum(leaf_size)]),
        _joined([tree.leaf(i).label for i in leaves]), _joined([tree.leaf(i).bias for i in leaves]),
    )  # fmt: skip
    dtypes = inference.DTYPES.values()
    return inference.Parts(*(np.ascontiguousarray(a, d) for a, d in zip(found, dtypes, strict=True)))


def _joined(arrays: Sequence[AnyArray | list[int]]) -> AnyArray:
    return np.concatenate([np.empty(0), *arrays]) if not arrays else np.concatenate(arrays)


def renamed(tree: Tree, name: Callable[[UInt32s], AnyArray]) -> Tree:
    """A tree with other names for its features; `name` keeps their order, and gives -1 for those to drop."""
    found = Tree(tree.left, tree.right)
    for i, one in enumerate(tree.inside):
        new = name(one.feature)
        kept = new >= 0
        feature, weight = new[kept].astype(np.uint32), one.weight[kept]
        if isinstance(one, Router):
            found.inside[i] = Router(feature, weight, one.bias)
        else:
            found.inside[i] = Leaf(
                one.label, one.bias, np.concatenate([[0], np.cumsum(kept)])[one.start], feature, weight
            )
    return found


def unparted(stored: inference.Parts, name: Callable[[UInt32s], AnyArray]) -> Tree:
    """The tree of `parts`, its features by other names, see `renamed`."""
    tree = Tree([max(int(i), -1) for i in stored.left], stored.right.tolist())
    for i, one in enumerate(stored.left.tolist()):
        if one >= 0:
            mine = slice(*np.searchsorted(stored.router_node, [i, i + 1]))
            tree.inside[i] = Router(
                stored.router_feature[mine], stored.weight[mine].astype(np.float64), float(stored.bias[i])
            )
            continue
        rows = np.flatnonzero(stored.leaf_node == i)
        low, high = stored.first[-1 - one], stored.first[-one]
        if len(rows):
            ends = stored.entry[[rows[0], rows[-1] + 1]].tolist()
            sizes = np.diff(stored.entry[rows[0] : rows[-1] + 2])
        else:
            ends, sizes = [0, 0], np.empty(0, np.int64)
        owner = stored.owner[ends[0] : ends[1]]
        order = np.argsort(owner, kind="stable")
        tree.inside[i] = Leaf(
            stored.label[low:high], stored.score[low:high].astype(np.float64),
            np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=high - low))]).astype(np.int64),
            np.repeat(stored.leaf_feature[rows], sizes).astype(np.uint32)[order],
            stored.value[ends[0] : ends[1]].astype(np.float64)[order],
        )  # fmt: skip
    return renamed(tree, name)


def walk(
    tree: Tree,
    rows: row_store.Rows,
    share: Share,
    node: Int32s | None = None,
    chosen: Bools | None = None,
    paths: inference.Paths | None = None,
) -> inference.Found:
    """What `inference.Found` says of rows that begin at the root or at `node` (int32[n]), each to a leaf.

    With `chosen` (bool[n]) pieces without any such row are left out, and their results are 0.
    """
    paths = paths or inference.new_paths(parts(tree))
    n = len(rows.label)
    node = np.zeros(n, np.int32) if node is None else node
    found = inference.new_found(n, 0)

    def job(low: int, high: int) -> None:
        scratch = inference.new_scratch(paths, 0)
        inference.walk(paths, rows.start, rows.feature, rows.value, rows.label, node, low, high, scratch, found)

    edges = [low for low in range(0, n, CHUNK) if chosen is None or chosen[low : low + CHUNK].any()]
    share(job, [(low, min(low + CHUNK, n)) for low in edges])
    return found


def sides(paths: inference.Paths, rows: row_store.Rows, share: Share, node: Int32s) -> Bools:
    """Whether the routers that rows are at, `node` (int32[n]), send them right: bool[n], False where it is a leaf."""
    n = len(rows.label)
    right = np.zeros(n, bool)

    def job(low: int, high: int) -> None:
        inference.sides(paths, rows.start, rows.feature, rows.value, node, low, high, right)

    share(job, [(low, min(low + CHUNK, n)) for low in range(0, n, CHUNK)])
    return right


def prune(tree: Tree, leaf_rows: dict[int, float]) -> tuple[Tree, int]:
    """Without what does nothing; return the tree and how many nodes went.

    Gone are leaves no row reaches, routers without weights, and subtrees with one and the same class only.

    `leaf_rows` : weight of the rows in every leaf.
    """
    left: list[int] = []
    right: list[int] = []
    inside: list[Router | Leaf] = []

    def weight(i: int) -> float:
        return leaf_rows.get(i, 0.0) if tree.left[i] < 0 else weight(tree.left[i]) + weight(tree.right[i])

    def labels(i: int) -> set[int]:
        if tree.left[i] < 0:
            return set(tree.leaf(i).label[:2].tolist())
        return labels(tree.left[i]) | labels(tree.right[i])

    def copy(i: int) -> int:
        while tree.left[i] >= 0:
            one = tree.inside[i]
            sides = [side for side in (tree.left[i], tree.right[i]) if weight(side) > 0.0]
            if not len(one.weight):
                i = tree.right[i] if one.bias >= 0.0 else tree.left[i]
            elif len(sides) == 1 or len(labels(i)) == 1:
                i = sides[0]
            else:
                break
        here = len(left)
        left.append(-1)
        right.append(-1)
        inside.append(tree.inside[i])
        if tree.left[i] >= 0:
            left[here] = copy(tree.left[i])
            right[here] = copy(tree.right[i])
        return here

    copy(0)
    found = Tree(left, right)
    found.inside = inside
    return found, len(tree.left) - len(left)
