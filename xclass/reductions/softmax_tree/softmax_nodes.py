"""Represent a softmax tree while it is trained: convert it from and to arrays, route rows through it, and prune it.

A node is a number, and 0 is the root. Features are numbered as in `row_store.FeatureRows` while a tree is trained,
and are hashes in a model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ...array_types import AnyArray, Bools, Float64s, Int32s, Int64s, UInt32s
from ..clusters.two_means import Share
from . import inference, row_store

CHUNK = 4096  # rows that a thread routes at a time


class Router(NamedTuple):
    """Hold a router, which sends an example right if w.x + b >= 0."""

    feature: UInt32s  # uint32[q], ascending
    weight: Float64s  # float64[q]
    bias: float


class Leaf(NamedTuple):
    """Hold a softmax; the weights of class c are at `start[c]` .. `start[c + 1] - 1`."""

    label: Int64s  # int64[k], ascending
    bias: Float64s  # float64[k], intercepts
    start: Int64s  # int64[k + 1]
    feature: UInt32s  # uint32[q]
    weight: Float64s  # float64[q]


NO_ROUTER = Router(np.empty(0, np.uint32), np.empty(0), 0.0)
NO_LEAF = Leaf(np.empty(0, np.int64), np.empty(0), np.zeros(1, np.int64), np.empty(0, np.uint32), np.empty(0))


class SoftmaxNodes:
    """Hold the nodes of a tree: the children of each, -1 for a leaf, and its contents."""

    def __init__(self, left: list[int], right: list[int]) -> None:
        self.left, self.right = left, right
        self.contents: list[Router | Leaf] = [NO_LEAF if child < 0 else NO_ROUTER for child in left]

    @classmethod
    def complete(cls, depth: int) -> SoftmaxNodes:
        """Return the tree with all leaves at one depth, in breadth-first order."""
        inner = (1 << depth) - 1
        nodes = 2 * inner + 1
        return cls(
            [2 * i + 1 if i < inner else -1 for i in range(nodes)],
            [2 * i + 2 if i < inner else -1 for i in range(nodes)],
        )

    def router(self, i: int) -> Router:
        router = self.contents[i]
        assert isinstance(router, Router)
        return router

    def leaf(self, i: int) -> Leaf:
        leaf = self.contents[i]
        assert isinstance(leaf, Leaf)
        return leaf

    def levels(self) -> list[list[int]]:
        """Return the nodes by level, the root first."""
        levels, level = [], [0]
        while level:
            levels.append(level)
            level = [child for i in level if self.left[i] >= 0 for child in (self.left[i], self.right[i])]
        return levels

    def leaves(self) -> list[int]:
        """Return the leaves from left to right."""
        leaves, waiting = [], [0]
        while waiting:
            i = waiting.pop()
            if self.left[i] < 0:
                leaves.append(i)
            else:
                waiting += [self.right[i], self.left[i]]
        return leaves

    def penalty(self, leaves: bool) -> float:
        """Return the sum of the absolute weights, of routers only unless `leaves`."""
        return float(sum(np.abs(node.weight).sum() for node in self.contents if leaves or isinstance(node, Router)))

    def nonzeros(self) -> int:
        return sum(len(node.weight) for node in self.contents)


def to_arrays(tree: SoftmaxNodes) -> inference.TreeArrays:
    """Return a tree as arrays; leaves are numbered from left to right."""
    leaves = tree.leaves()
    left, right = np.array(tree.left, np.int32), np.array(tree.right, np.int32)
    bias = np.zeros(len(left), np.float32)
    routers = [i for i, contents in enumerate(tree.contents) if isinstance(contents, Router)]
    for i in routers:
        bias[i] = tree.contents[i].bias
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
    arrays = (
        left, right, bias,
        _joined([np.full(len(tree.contents[i].feature), i) for i in routers]),
        _joined([tree.contents[i].feature for i in routers]),
        _joined([tree.contents[i].weight for i in routers]),
        _joined(node), _joined(feature), _joined([*entry, [seen]]), _joined(owner), _joined(value),
        np.concatenate([[0], np.cumsum(leaf_size)]),
        _joined([tree.leaf(i).label for i in leaves]), _joined([tree.leaf(i).bias for i in leaves]),
    )  # fmt: skip
    dtypes = inference.DTYPES.values()
    return inference.TreeArrays(*(np.ascontiguousarray(a, d) for a, d in zip(arrays, dtypes, strict=True)))


def _joined(arrays: Sequence[AnyArray | list[int]]) -> AnyArray:
    """Return the concatenation of any number of arrays, none included."""
    return np.concatenate([np.empty(0), *arrays]) if not arrays else np.concatenate(arrays)


def with_feature_names(tree: SoftmaxNodes, name: Callable[[UInt32s], AnyArray]) -> SoftmaxNodes:
    """Return a tree with its features renamed by `name`, which keeps their order and returns -1 for those to drop."""
    result = SoftmaxNodes(tree.left, tree.right)
    for i, contents in enumerate(tree.contents):
        new = name(contents.feature)
        kept = new >= 0
        feature, weight = new[kept].astype(np.uint32), contents.weight[kept]
        if isinstance(contents, Router):
            result.contents[i] = Router(feature, weight, contents.bias)
        else:
            result.contents[i] = Leaf(
                contents.label, contents.bias, np.concatenate([[0], np.cumsum(kept)])[contents.start], feature, weight
            )
    return result


def from_arrays(stored: inference.TreeArrays, name: Callable[[UInt32s], AnyArray]) -> SoftmaxNodes:
    """Return the tree stored by `to_arrays`, with its features renamed as by `with_feature_names`."""
    tree = SoftmaxNodes([max(int(i), -1) for i in stored.left], stored.right.tolist())
    for i, child in enumerate(stored.left.tolist()):
        if child >= 0:
            own = slice(*np.searchsorted(stored.router_node, [i, i + 1]))
            tree.contents[i] = Router(
                stored.router_feature[own], stored.weight[own].astype(np.float64), float(stored.bias[i])
            )
            continue
        rows = np.flatnonzero(stored.leaf_node == i)
        low, high = stored.first[-1 - child], stored.first[-child]
        if len(rows):
            ends = stored.entry[[rows[0], rows[-1] + 1]].tolist()
            sizes = np.diff(stored.entry[rows[0] : rows[-1] + 2])
        else:
            ends, sizes = [0, 0], np.empty(0, np.int64)
        owner = stored.owner[ends[0] : ends[1]]
        order = np.argsort(owner, kind="stable")
        tree.contents[i] = Leaf(
            stored.label[low:high], stored.score[low:high].astype(np.float64),
            np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=high - low))]).astype(np.int64),
            np.repeat(stored.leaf_feature[rows], sizes).astype(np.uint32)[order],
            stored.value[ends[0] : ends[1]].astype(np.float64)[order],
        )  # fmt: skip
    return with_feature_names(tree, name)


def walk(
    tree: SoftmaxNodes,
    rows: row_store.FeatureRows,
    share: Share,
    node: Int32s | None = None,
    chosen: Bools | None = None,
    prepared: inference.PreparedTree | None = None,
) -> inference.WalkResult:
    """Route rows to a leaf and return the results.

    `node` is int32[n], node at which each row begins, the root by default. `chosen` is bool[n], rows of interest;
    chunks without any are skipped and their results are 0. `prepared` is the tree if the caller has prepared it
    already.
    """
    prepared = prepared or inference.prepare(to_arrays(tree))
    n = len(rows.label)
    node = np.zeros(n, np.int32) if node is None else node
    leaf_output = inference.new_walk_result(n, 0)

    def job(low: int, high: int) -> None:
        scratch = inference.new_scratch(prepared, 0)
        inference.walk(
            prepared, rows.start, rows.feature, rows.value, rows.label, node, low, high, scratch, leaf_output
        )

    begins = [low for low in range(0, n, CHUNK) if chosen is None or chosen[low : low + CHUNK].any()]
    share(job, [(low, min(low + CHUNK, n)) for low in begins])
    return leaf_output


def sides(prepared: inference.PreparedTree, rows: row_store.FeatureRows, share: Share, node: Int32s) -> Bools:
    """Return whether routers send rows right (bool[n]), False at a leaf; `node` is int32[n], node of each row."""
    n = len(rows.label)
    right = np.zeros(n, bool)

    def job(low: int, high: int) -> None:
        inference.sides(prepared, rows.start, rows.feature, rows.value, node, low, high, right)

    share(job, [(low, min(low + CHUNK, n)) for low in range(0, n, CHUNK)])
    return right


def prune(tree: SoftmaxNodes, leaf_rows: dict[int, float]) -> tuple[SoftmaxNodes, int]:
    """Return a tree without useless nodes, and the number of nodes removed.

    Leaves that no row reaches and routers without weights are removed, and subtrees with a single class become a leaf.
    `leaf_rows` has the weight of the rows in every leaf.
    """
    left: list[int] = []
    right: list[int] = []
    contents: list[Router | Leaf] = []

    def weight(i: int) -> float:
        return leaf_rows.get(i, 0.0) if tree.left[i] < 0 else weight(tree.left[i]) + weight(tree.right[i])

    def labels(i: int) -> set[int]:
        if tree.left[i] < 0:
            return set(tree.leaf(i).label[:2].tolist())
        return labels(tree.left[i]) | labels(tree.right[i])

    def copy(i: int) -> int:
        while tree.left[i] >= 0:
            node = tree.contents[i]
            sides = [side for side in (tree.left[i], tree.right[i]) if weight(side) > 0.0]
            if not len(node.weight):
                i = tree.right[i] if node.bias >= 0.0 else tree.left[i]
            elif len(sides) == 1 or len(labels(i)) == 1:
                i = sides[0]
            else:
                break
        here = len(left)
        left.append(-1)
        right.append(-1)
        contents.append(tree.contents[i])
        if tree.left[i] >= 0:
            left[here] = copy(tree.left[i])
            right[here] = copy(tree.right[i])
        return here

    copy(0)
    pruned = SoftmaxNodes(left, right)
    pruned.contents = contents
    return pruned, len(tree.left) - len(left)
