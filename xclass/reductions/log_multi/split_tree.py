"""Grow a binary tree by splitting leaves and, once it is full, recycle its smallest leaf.

Source    Choromanska, Langford, "Logarithmic Time Online Multiclass Prediction", NIPS 2015, Algorithm 1: SetNode,
          UpdateC, Swap and the counts.
Cost      O(1) per node that an example passes, and O(depth) for recycling a leaf and updating the counts above it,
          whatever the number of labels. The counts of a label at a node are found by hashing (`split_cells`).
Names     j node | y label | E mean score at a node | C examples of the smallest leaf below a node | l, m, n, e counts
          of a label at a node, see `split_cells` | T most inner nodes [max_predictors] | R_S resistance
          [swap_resistance].
Differs   from the paper (docs/papers.md says why, and what it costs):
          * C is also passed up when an example ends at a leaf
Idea      When a node is recycled its counts are not cleared. They become outdated, because the version of a node is
          RECYCLED, how often it was recycled, and every count is stored with the version of its node (`split_cells`).

In the kernels, `a` is a node and `at` the number of a cell. This module does not know how routers learn.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...array_types import Float64s, Int, Int32s, Int64s
from ...kernels import intrinsics
from ...kernels.jit import bare
from ...model import stored_arrays
from ...model.archive import Archive
from . import split_cells
from .split_cells import Cells

LEFT, RIGHT, PARENT, ROUTER = 0, 1, 2, 3  # columns of Tree.link
SMALLEST, LARGEST, PREDICTION, LABELS, TRAINED, RECYCLED, SCORES, ARRIVED = range(8)  # columns of Tree.count
NODES, ROUTERS, BLOCKS, DEEPEST, SWAPS, ROOT = range(6)  # positions in Tree.size
COLUMNS = 8  # of Tree.count
FIRST_NODES = 1 << 10


class SplitTree(NamedTuple):
    """Hold a tree with capacity for m nodes, of which the first `size[NODES]` are in use.

    `count`, `score` and `flat` are views of one array. A row of `count` has the columns

    SMALLEST   examples of the smallest leaf below the node [C]
    LARGEST    examples of the most frequent label
    PREDICTION the most frequent label, which a leaf predicts
    LABELS     number of different labels
    TRAINED    examples that its router has learned [sum of n]
    RECYCLED   how often the node was recycled
    SCORES     sum of its router's scores, as float64 [sum of m]
    ARRIVED    examples that arrived
    """

    link: Int32s  # int32[m, 4]: left child, right child (both 0 at a leaf), parent (root: -1), router (leaf: -1)
    count: Int64s  # type: ignore[assignment]  # hides tuple.count; int64[m, 8], see above
    score: Float64s  # float64[m, 8], view of `count` for column SCORES
    flat: Int64s  # int64[8 m], view of `count` for prefetching
    size: Int64s  # int64[6]: nodes, routers, blocks of routers, depth of the deepest leaf ever, swaps, root


# -- kernels


@bare
def prefetch_counts(tree: SplitTree, cells: Cells, a: Int, label: Int) -> None:
    """Prefetch the cache lines of a node's counts and of its label's cell."""
    intrinsics.prefetch(tree.flat, np.int64(a) * COLUMNS)
    split_cells.prefetch_counts(cells, a, label)


@bare
def guess(tree: SplitTree, cells: Cells, a: Int, label: Int) -> np.bool_:
    """Return what `expects_more` would return for a label whose cell may not exist yet; nothing is written."""
    at = split_cells.seek(cells, a, label)
    if at < 0:
        return tree.score[a, SCORES] > 0.0
    return expects_more(tree, cells, a, at)


@bare
def has_capacity(tree: SplitTree, cells: Cells, examples: Int) -> bool:
    """Return whether tree and cells have capacity for the nodes and cells that `examples` examples can create."""
    if tree.size[NODES] + 2 * examples > tree.link.shape[0]:
        return False
    return split_cells.has_capacity(cells, (levels(tree) + examples + 2) * examples)


@bare
def levels(tree: SplitTree) -> np.int64:
    """Return a bound on the depth of all leaves; 0 for a tree reduced to one leaf by `collapse`."""
    return tree.size[DEEPEST] if tree.size[NODES] > 1 else np.int64(0)


@bare
def is_leaf(tree: SplitTree, a: Int) -> bool:
    return tree.link[a, ROUTER] < 0


@bare
def arrive(tree: SplitTree, cells: Cells, a: Int, label: Int) -> np.int64:
    """Count an example of a label that arrives at node a [l(y)++], and return its cell.

    The cell itself is counted up by `end` or `trained`, so its l is one behind until then.
    """
    at = split_cells.find(cells, a, label, tree.count[a, RECYCLED])
    seen = split_cells.arrived(cells, at) + 1
    if seen == 1:
        tree.count[a, LABELS] += 1
    if seen > tree.count[a, LARGEST]:
        tree.count[a, LARGEST] = seen
        tree.count[a, PREDICTION] = label
    tree.count[a, ARRIVED] += 1
    return at


@bare
def end(tree: SplitTree, cells: Cells, a: Int, at: Int) -> None:
    """Count an example that ends at leaf a [C++]."""
    split_cells.end(cells, at)
    tree.count[a, SMALLEST] += 1
    _pass_up(tree, a)


@bare
def trained(tree: SplitTree, cells: Cells, a: Int, at: Int, score: float) -> None:
    """Count an example with which the router of node a was trained, and add its score after training."""
    tree.score[a, SCORES] += score
    tree.count[a, TRAINED] += 1
    split_cells.trained(cells, at, score)


@bare
def expects_more(tree: SplitTree, cells: Cells, a: Int, at: Int) -> np.bool_:
    """Return whether the mean score at node a over all labels is higher than that of this label [E > e(y)].

    Sums are float64 and means float32, as in VW.
    """
    n = tree.count[a, TRAINED]
    mean = np.float32(tree.score[a, SCORES]) / np.float32(n) if n > 0 else np.float32(0)
    return mean > split_cells.mean(cells, at)


@bare
def _pass_up(tree: SplitTree, a: Int) -> None:
    """Update SMALLEST of the nodes above node a after its own has changed [UpdateC]."""
    while tree.link[a, PARENT] >= 0:
        up = np.int64(tree.link[a, PARENT])
        if tree.count[up, SMALLEST] == tree.count[a, SMALLEST]:
            return
        left, right = np.int64(tree.link[up, LEFT]), np.int64(tree.link[up, RIGHT])
        tree.count[up, SMALLEST] = min(tree.count[left, SMALLEST], tree.count[right, SMALLEST])
        a = up


@bare
def _make_leaf(tree: SplitTree, a: Int, parent: Int, prediction: Int) -> None:
    """Make node a a new leaf [SetNode], which predicts `prediction` until an example arrives."""
    tree.link[a, LEFT] = 0
    tree.link[a, RIGHT] = 0
    tree.link[a, PARENT] = parent
    tree.link[a, ROUTER] = -1
    for j in range(COLUMNS):
        if j != RECYCLED:
            tree.count[a, j] = 0
    tree.count[a, PREDICTION] = prediction


@bare
def create_root(tree: SplitTree, prediction: Int) -> None:
    tree.size[NODES] = 1
    _make_leaf(tree, 0, -1, prediction)


@bare
def _new_router(tree: SplitTree, a: Int, blocked: bool) -> np.int64:
    """Return the number of a new router for node a: the next one, or a place in a block (see `tree_routers`)."""
    tree.size[ROUTERS] += 1
    if not blocked:
        return tree.size[ROUTERS] - 1
    up = np.int64(tree.link[a, PARENT])
    if up >= 0:
        router = np.int64(tree.link[up, ROUTER])
        q = 2 * (router & 7) + (1 if tree.link[up, RIGHT] == a else 0)
        if q < 8:
            return (router & ~np.int64(7)) + q
    tree.size[BLOCKS] += 1
    return 8 * tree.size[BLOCKS] + 1


@bare
def should_split(tree: SplitTree, a: Int, most_routers: int, resistance: int) -> bool:
    """Return whether leaf a is to be split.

    It must have seen two labels. In addition, there must be fewer than `most_routers` routers, or else condition (2) of
    the paper must hold: C - max l > R_S (C_root + 1).
    """
    if tree.count[a, LABELS] < 2:
        return False
    if tree.size[ROUTERS] < most_routers:
        return True
    spare = tree.count[a, SMALLEST] - tree.count[a, LARGEST]
    least = tree.count[tree.size[ROOT], SMALLEST]
    # `spare > least` makes sure that leaf a is not the smallest one; unless the product overflows, the second condition
    # implies it.
    return spare > least and spare > resistance * (least + 1)


@bare
def split(tree: SplitTree, a: Int, most_routers: int, blocked: bool, depth: Int) -> None:
    """Split leaf a, at this depth: give it a router and two leaves.

    The leaves are new nodes while there are fewer than `most_routers` routers; afterwards the smallest leaf and its
    parent are recycled, and leaf a takes over the parent's router [Swap]. `blocked` says whether routers are numbered
    by blocks, see `tree_routers`.
    """
    if tree.size[ROUTERS] < most_routers:
        left = tree.size[NODES]
        right = left + 1
        tree.size[NODES] += 2
        router = _new_router(tree, a, blocked)
    else:
        left = _smallest_leaf(tree)
        right = np.int64(tree.link[left, PARENT])
        router = np.int64(tree.link[right, ROUTER])
        _detach(tree, left, right)
        tree.count[left, RECYCLED] += 1
        tree.count[right, RECYCLED] += 1
        tree.size[SWAPS] += 1
    _make_leaf(tree, left, a, tree.count[a, PREDICTION])
    _make_leaf(tree, right, a, tree.count[a, PREDICTION])
    tree.link[a, LEFT] = left
    tree.link[a, RIGHT] = right
    tree.link[a, ROUTER] = router
    tree.count[left, SMALLEST] = tree.count[a, SMALLEST] // 2
    tree.count[right, SMALLEST] = tree.count[a, SMALLEST] - tree.count[left, SMALLEST]
    _pass_up(tree, left)
    tree.size[DEEPEST] = max(tree.size[DEEPEST], depth + 1)


@bare
def smallest_is_below_root(tree: SplitTree) -> bool:
    """Return whether the smallest leaf, which a swap would recycle, is a child of the root."""
    return tree.link[_smallest_leaf(tree), PARENT] == tree.size[ROOT]


@bare
def collapse(tree: SplitTree, a: Int) -> np.int64:
    """Reduce the tree to a single leaf, as VW does when leaf a splits and the recycled leaf is a child of the root.

    The root becomes a leaf that predicts what leaf a predicted and that never splits. Return the router that leaf a
    gets for the current example.
    """
    router = np.int64(tree.link[0, ROUTER])
    smallest = tree.count[a, SMALLEST]
    prediction = tree.count[a, PREDICTION]
    _make_leaf(tree, 0, -1, prediction)
    tree.count[0, SMALLEST] = smallest - smallest // 2
    tree.count[0, RECYCLED] += 1
    tree.size[SWAPS] += 1
    tree.size[NODES] = 1
    return router


@bare
def _smallest_leaf(tree: SplitTree) -> Int:
    """Return a leaf with the fewest examples [C_s = C_root]."""
    a = tree.size[ROOT]
    while not is_leaf(tree, a):
        left, right = np.int64(tree.link[a, LEFT]), np.int64(tree.link[a, RIGHT])
        a = left if tree.count[left, SMALLEST] < tree.count[right, SMALLEST] else right
    return a


@bare
def _detach(tree: SplitTree, leaf: Int, parent: Int) -> None:
    """Remove a leaf and its parent from the tree; the leaf's sibling takes the parent's place [Swap]."""
    sibling = np.int64(tree.link[parent, RIGHT if tree.link[parent, LEFT] == leaf else LEFT])
    above = np.int64(tree.link[parent, PARENT])
    tree.link[sibling, PARENT] = above
    if above < 0:
        tree.size[ROOT] = sibling
        return
    tree.link[above, LEFT if tree.link[above, LEFT] == parent else RIGHT] = sibling
    _pass_up(tree, sibling)


@bare
def depths(tree: SplitTree, depth: Int32s) -> None:
    """Compute the depth of every node, int32[m], -1 for nodes that cannot be reached.

    Children may have lower numbers than their parents.
    """
    a: Int
    for a in range(tree.size[NODES]):
        depth[a] = -1
    a = tree.size[ROOT]
    depth[a] = 0
    back = False
    while True:
        if not back and not is_leaf(tree, a):
            left = np.int64(tree.link[a, LEFT])
            depth[left] = depth[a] + 1
            a = left
            continue
        up = np.int64(tree.link[a, PARENT])
        if up < 0:
            return
        back = tree.link[up, RIGHT] == a
        if back:
            a = up
        else:
            right = np.int64(tree.link[up, RIGHT])
            depth[right] = depth[up] + 1
            a = right


# -- Python


def new_tree(nodes: int = FIRST_NODES) -> SplitTree:
    """Return a tree with capacity for `nodes` nodes and none in use; `create_root` creates its root."""
    count = split_cells.aligned(nodes * COLUMNS).view(np.int64)
    rows = count.reshape(nodes, COLUMNS)
    return SplitTree(np.zeros((nodes, 4), np.int32), rows, rows.view(np.float64), count, np.zeros(6, np.int64))


def with_capacity_for(tree: SplitTree, cells: Cells, examples: int) -> tuple[SplitTree, Cells]:
    """Return tree and cells with capacity for `examples` more examples, see `has_capacity`.

    What is large enough is returned unchanged; outdated cells are dropped when the table of cells is replaced.
    """
    nodes = len(tree.link)
    if tree.size[NODES] + 2 * examples > nodes:
        larger = new_tree(2 * nodes)
        larger.link[:nodes] = tree.link
        larger.count[:nodes] = tree.count
        tree = larger._replace(size=tree.size)
    if not has_capacity(tree, cells, examples):
        cells = split_cells.with_capacity_for(cells, versions(tree), (int(levels(tree)) + examples) * examples)
    return tree, cells


def versions(tree: SplitTree) -> Int64s:
    """Return the version of every node in use, as int64[nodes]: how often it was recycled."""
    return np.ascontiguousarray(tree.count[: tree.size[NODES], RECYCLED])


def is_collapsed(tree: SplitTree) -> bool:
    """Return whether `collapse` has reduced the tree to a single leaf."""
    return bool(tree.size[NODES] == 1 and tree.size[ROUTERS] > 0)


def serialize(
    archive: Archive, tree: SplitTree, cells: Cells, labels: tuple[int, int], most_routers: int, blocked: bool
) -> tuple[SplitTree, Cells]:
    """Save the tree and the cells, or return those of a model; predictions alone need no cells.

    The checks protect the kernels here and in `split_walk`. They descend by LEFT and RIGHT, ascend by PARENT, reach the
    smallest leaf by SMALLEST, write nodes from NODES on, use the numbers of routers as places of weights, and allocate
    space for DEEPEST levels. So all of these have to belong to one tree, and routers have to be numbered consecutively
    or, if they are `blocked`, by places in blocks. `labels` are the lowest and highest label allowed.
    """
    nodes = int(tree.size[NODES])
    size = archive.take("tree.size", tree.size, tree.size.shape)
    link = archive.take("tree.link", tree.link[:nodes], (None, 4))
    count = archive.take("tree.count", tree.count[:nodes], (len(link), COLUMNS))
    if not archive.saves:
        tree = _checked(size.copy(), link, count, labels, most_routers, blocked)
    if archive.has("cells"):
        return tree, split_cells.serialize(archive, "cells", cells, versions(tree), labels)
    return tree, cells


def _checked(
    size: Int64s, link: Int32s, count: Int64s, labels: tuple[int, int], most_routers: int, blocked: bool
) -> SplitTree:
    """Return the tree of a model after the checks of `serialize`."""
    _check_size(size, len(link), most_routers)
    _check_links(link, int(size[ROOT]))
    tree = new_tree(max(FIRST_NODES, len(link) + 2))._replace(size=size)
    tree.link[: len(link)] = link
    tree.count[: len(link)] = count
    depth = np.full(len(tree.link), -1, np.int32)
    depths(tree, depth)
    depth = depth[: len(link)]
    if depth.min() < 0:
        raise stored_arrays.unfit(
            "tree.link", f"its nodes do not form a tree: node {int(depth.argmin())} is in a cycle"
        )
    if len(link) > 1 and depth.max() > size[DEEPEST]:
        raise stored_arrays.unfit(
            "tree.size", f"it says that no leaf is deeper than {size[DEEPEST]}, but the tree has {depth.max()} levels"
        )
    _check_routers(link, size, blocked)
    _check_counts(link, tree.count[: len(link)], labels)
    return tree


def _check_size(size: Int64s, nodes: int, most_routers: int) -> None:
    """Raise ModelError unless the sizes fit a tree of `nodes` nodes.

    A tree reduced by `collapse` has one node and T routers.
    """
    routers = int(size[ROUTERS])
    if size[NODES] != nodes or nodes < 1:
        raise stored_arrays.unfit(
            "tree.size", f"it says that there are {size[NODES]} nodes, but 'tree.link' has {nodes}"
        )
    if not (routers == nodes // 2 and nodes % 2 == 1 and routers <= most_routers) and not (
        nodes == 1 and routers == most_routers
    ):
        raise stored_arrays.unfit(
            "tree.size",
            f"it says that there are {routers} routers of at most {most_routers}, but {nodes} nodes have {nodes // 2}",
        )
    size[SWAPS] = stored_arrays.counts("tree.size", size[SWAPS : SWAPS + 1])[0]
    for position, high in ((ROOT, nodes - 1), (BLOCKS, routers), (DEEPEST, routers + 1)):
        stored_arrays.check_range("tree.size", size[position : position + 1], 0, high)


def _check_links(link: Int32s, root: int) -> None:
    """Raise ModelError unless every node but the root is the child of one inner node, so that `depths` ends."""
    inner = np.flatnonzero(link[:, ROUTER] >= 0)
    children = link[inner, :2].ravel()
    others = np.delete(np.arange(len(link)), root)
    if not np.array_equal(np.sort(children), others):
        raise stored_arrays.unfit(
            "tree.link", "its nodes do not form a tree: every node but the root must be the child of one node"
        )
    parent = np.full(len(link), -1, np.int32)
    parent[children] = np.repeat(inner, 2)
    if (link[:, PARENT] != parent).any():
        at = int(np.argmax(link[:, PARENT] != parent))
        raise stored_arrays.unfit(
            "tree.link", f"its nodes do not form a tree: node {at} has the parent {link[at, PARENT]}, but is a "
            f"child of {parent[at]}"
        )  # fmt: skip


def _check_routers(link: Int32s, size: Int64s, blocked: bool) -> None:
    """Raise ModelError if a leaf is not marked as a leaf or `_new_router` cannot have numbered the routers."""
    leaf = link[:, ROUTER] < 0
    if (link[leaf] * np.array([1, 1, 0, 1]) != np.array([0, 0, 0, -1])).any():
        raise stored_arrays.unfit("tree.link", "a leaf has children, or a router other than -1")
    routers = np.sort(link[~leaf, ROUTER])
    low, high = (9, 8 * int(size[BLOCKS]) + 7) if blocked else (0, int(size[ROUTERS]) - 1)
    stored_arrays.check_range("tree.link", routers, low, high)
    if (routers[1:] == routers[:-1]).any() or (blocked and (routers & 7 == 0).any()):
        raise stored_arrays.unfit(
            "tree.link", "two nodes have the same router, or a router is not at a place in a block"
        )


def _check_counts(link: Int32s, count: Int64s, labels: tuple[int, int]) -> None:
    """Limit counts; raise ModelError for negative ones, answers that are no classes, or a wrong SMALLEST of a node.

    SMALLEST of an inner node is the minimum of its children's. This makes sure that a descent by SMALLEST ends at the
    smallest leaf, which is not the leaf that splits.
    """
    columns = [SMALLEST, LARGEST, LABELS, TRAINED, ARRIVED]
    count[:, columns] = stored_arrays.counts("tree.count", count[:, columns])
    stored_arrays.check_range("tree.count", count[:, RECYCLED], 0, 2**31)
    stored_arrays.check_range("tree.count", count[:, PREDICTION], *labels)
    inner = link[:, ROUTER] >= 0
    minimum = count[link[inner, :2], SMALLEST].min(axis=1)
    if (count[inner, SMALLEST] != minimum).any():
        raise stored_arrays.unfit(
            "tree.count", "the count of the smallest leaf below a node is not the smaller one of its children's counts"
        )
