"""A binary tree whose leaves split as examples come and, once it is full, take back the leaf least used.

Source    Choromanska, Langford, "Logarithmic Time Online Multiclass Prediction", NIPS 2015, Algorithm 1: SetNode,
          UpdateC, Swap and the counts. Knows nothing of learning.
Names     j node | y label | E, C as in the paper, see Tree | l, m, n, e, see split_cells | T most inner nodes |
          R_S resistance.
Cost      O(1) per node an example passes, O(depth) for the leaf that is taken back and the counts above it,
          whatever the number of labels: what a node counts of a label is found by hashing (split_cells), and what a
          recycled node had counted is not cleared but outdated: `RECYCLED` is the version of what it counts.
Differs   from the paper: C is also passed up when an example ends at a leaf, as its definition asks. A leaf right below
          the root has no grandparent; if it is the smallest, its sibling becomes the root.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from ...array_types import Float64s, Int32s, Int64s
from ...kernels import intrinsics
from ...kernels.jit import bare
from ...model import stored_arrays
from ...model.stored_arrays import Stored
from . import split_cells
from .split_cells import Cells

LEFT, RIGHT, PARENT, ROUTER = 0, 1, 2, 3  # columns of Tree.link
SMALLEST, LARGEST, ANSWER, LABELS, TRAINED, RECYCLED, SCORES, ARRIVED = range(8)  # of Tree.count
NODES, ROUTERS, BLOCKS, DEEPEST, SWAPS, ROOT = range(6)  # of Tree.size
COLUMNS = 8
FIRST_NODES = 1 << 10


class Tree(NamedTuple):
    """m nodes of which `size[NODES]` are in use. `count` and `score` are two views of one array.

    Columns of a node's row in `count`: SMALLEST examples of the smallest leaf below [C], LARGEST those of the label
    seen most, ANSWER that label, LABELS different labels, TRAINED examples its router learned [sum of n], RECYCLED
    how often it was taken back, SCORES sum of its scores as float64 [sum of m], ARRIVED examples.
    """

    link: Int32s  # int32[m, 4]: left and right child (0 at a leaf), parent (-1 above the root), router (-1)
    count: Int64s  # int64[m, 8]
    score: Float64s  # float64[m, 8]
    flat: Int64s  # int64[8 m], a view of count
    size: Int64s  # int64[6]: nodes, routers and their blocks, depth of the deepest leaf ever, swaps, root


# -- kernels


@bare
def prefetch_counts(tree, cells, a, label):
    """Ask for the cache lines of a node's counts and of its label's cell."""
    intrinsics.prefetch(tree.flat, np.int64(a) * COLUMNS)
    split_cells.prefetch_counts(cells, a, label)


@bare
def guess(tree, cells, a, label):
    """What `expects_more` will say, for a label whose cell may not be there yet; nothing is written."""
    at = split_cells.seek(cells, a, label)
    if at < 0:
        return tree.score[a, SCORES] > 0.0
    return expects_more(tree, cells, a, at)


@bare
def has_room(tree, cells, examples):
    """Whether so many examples surely find nodes and empty cells."""
    if tree.size[NODES] + 2 * examples > tree.link.shape[0]:
        return False
    return split_cells.has_room(cells, (levels(tree) + examples + 2) * examples)


@bare
def levels(tree):
    """The depth no leaf goes beyond; where the tree was lost, that of the leaf that is left."""
    return tree.size[DEEPEST] if tree.size[NODES] > 1 else np.int64(0)


@bare
def is_leaf(tree, a):
    return tree.link[a, ROUTER] < 0


@bare
def arrive(tree, cells, a, label):
    """Count an example of a label that arrives at node a [l(y)++]; return its cell, where l is one behind."""
    at = split_cells.find(cells, a, label, tree.count[a, RECYCLED])
    seen = split_cells.arrived(cells, at) + 1
    if seen == 1:
        tree.count[a, LABELS] += 1
    if seen > tree.count[a, LARGEST]:
        tree.count[a, LARGEST] = seen
        tree.count[a, ANSWER] = label
    tree.count[a, ARRIVED] += 1
    return at


@bare
def end(tree, cells, a, at):
    """The example ends at leaf a [C++]."""
    split_cells.end(cells, at)
    tree.count[a, SMALLEST] += 1
    _pass_up(tree, a)


@bare
def trained(tree, cells, a, at, score):
    """The router of node a has learned from the example and gives it this score now."""
    tree.score[a, SCORES] += score
    tree.count[a, TRAINED] += 1
    split_cells.trained(cells, at, score)


@bare
def expects_more(tree, cells, a, at):
    """Whether examples of all labels have the higher score at node a, on average, than those of this one [E > e(y)].

    Sums in float64, means in float32, as in VW.
    """
    n = tree.count[a, TRAINED]
    mean = np.float32(tree.score[a, SCORES]) / np.float32(n) if n > 0 else np.float32(0)
    return mean > split_cells.mean(cells, at)


@bare
def _pass_up(tree, a):
    """Bring the nodes above a up to date with its SMALLEST [UpdateC]."""
    while tree.link[a, PARENT] >= 0:
        up = np.int64(tree.link[a, PARENT])
        if tree.count[up, SMALLEST] == tree.count[a, SMALLEST]:
            return
        left, right = np.int64(tree.link[up, LEFT]), np.int64(tree.link[up, RIGHT])
        tree.count[up, SMALLEST] = min(tree.count[left, SMALLEST], tree.count[right, SMALLEST])
        a = up


@bare
def _set(tree, a, parent, answer):
    """Make a node a new leaf [SetNode]; until it has seen an example it answers what its parent answered."""
    tree.link[a, LEFT] = 0
    tree.link[a, RIGHT] = 0
    tree.link[a, PARENT] = parent
    tree.link[a, ROUTER] = -1
    for j in range(COLUMNS):
        if j != RECYCLED:
            tree.count[a, j] = 0
    tree.count[a, ANSWER] = answer


@bare
def plant(tree, answer):
    """Make the root."""
    tree.size[NODES] = 1
    _set(tree, 0, -1, answer)


@bare
def _new_router(tree, a, blocked):
    """The number of a router for node a: the next one, or a place in a block (see routers)."""
    tree.size[ROUTERS] += 1
    if not blocked:
        return tree.size[ROUTERS] - 1
    up = np.int64(tree.link[a, PARENT])
    if up >= 0:
        number = np.int64(tree.link[up, ROUTER])
        q = 2 * (number & 7) + (1 if tree.link[up, RIGHT] == a else 0)
        if q < 8:
            return (number & ~np.int64(7)) + q
    tree.size[BLOCKS] += 1
    return 8 * tree.size[BLOCKS] + 1


@bare
def splits(tree, a, most, resistance):
    """Whether leaf a splits: it has seen two labels, and there are fewer than `most` routers or (2) of the paper holds:
    C - max l > R_S (C_root + 1)."""
    if tree.count[a, LABELS] < 2:
        return False
    if tree.size[ROUTERS] < most:
        return True
    spare = tree.count[a, SMALLEST] - tree.count[a, LARGEST]
    least = tree.count[tree.size[ROOT], SMALLEST]
    # the first follows from the second but where the product overflows, and says that leaf a is not the smallest
    return spare > least and spare > resistance * (least + 1)


@bare
def split(tree, a, most, blocked, depth):
    """Give leaf a, at this depth, a router and two leaves: new nodes while there are routers, else recycled ones."""
    if tree.size[ROUTERS] < most:
        left = tree.size[NODES]
        right = left + 1
        tree.size[NODES] += 2
        number = _new_router(tree, a, blocked)
    else:
        left = _smallest_leaf(tree)
        right = np.int64(tree.link[left, PARENT])
        number = np.int64(tree.link[right, ROUTER])
        _detach(tree, left, right)
        tree.count[left, RECYCLED] += 1
        tree.count[right, RECYCLED] += 1
        tree.size[SWAPS] += 1
    _set(tree, left, a, tree.count[a, ANSWER])
    _set(tree, right, a, tree.count[a, ANSWER])
    tree.link[a, LEFT] = left
    tree.link[a, RIGHT] = right
    tree.link[a, ROUTER] = number
    tree.count[left, SMALLEST] = tree.count[a, SMALLEST] // 2
    tree.count[right, SMALLEST] = tree.count[a, SMALLEST] - tree.count[left, SMALLEST]
    _pass_up(tree, left)
    tree.size[DEEPEST] = max(tree.size[DEEPEST], depth + 1)


@bare
def hangs_at_root(tree):
    """Whether the leaf a swap would take back is right below the root."""
    return tree.link[_smallest_leaf(tree), PARENT] == tree.size[ROOT]


@bare
def lose(tree, a):
    """What VW does where leaf a splits and the leaf taken back is right below the root: the root is left alone, a leaf
    that answers what leaf a did and never splits. Returns the router leaf a is given for the example at hand."""
    number = np.int64(tree.link[0, ROUTER])
    smallest = tree.count[a, SMALLEST]
    answer = tree.count[a, ANSWER]
    _set(tree, 0, -1, answer)
    tree.count[0, SMALLEST] = smallest - smallest // 2
    tree.count[0, RECYCLED] += 1
    tree.size[SWAPS] += 1
    tree.size[NODES] = 1
    return number


@bare
def _smallest_leaf(tree):
    """A leaf that has seen as few examples as any [C_s = C_root]."""
    a = tree.size[ROOT]
    while not is_leaf(tree, a):
        left, right = np.int64(tree.link[a, LEFT]), np.int64(tree.link[a, RIGHT])
        a = left if tree.count[left, SMALLEST] < tree.count[right, SMALLEST] else right
    return a


@bare
def _detach(tree, leaf, parent):
    """Take a leaf and its parent out of the tree; the leaf's sibling comes to the parent's place [Swap]."""
    sibling = np.int64(tree.link[parent, RIGHT if tree.link[parent, LEFT] == leaf else LEFT])
    above = np.int64(tree.link[parent, PARENT])
    tree.link[sibling, PARENT] = above
    if above < 0:
        tree.size[ROOT] = sibling
        return
    tree.link[above, LEFT if tree.link[above, LEFT] == parent else RIGHT] = sibling
    _pass_up(tree, sibling)


@bare
def depths(tree, depth):
    """Fill in the depth of every node, int32[m], -1 where there is none; children may have lower numbers."""
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


def new_tree(nodes: int = FIRST_NODES) -> Tree:
    """An empty tree with room for some nodes; `plant` begins it."""
    count = split_cells.aligned(nodes * COLUMNS).view(np.int64)
    rows = count.reshape(nodes, COLUMNS)
    return Tree(np.zeros((nodes, 4), np.int32), rows, rows.view(np.float64), count, np.zeros(6, np.int64))


def with_room_for(tree: Tree, cells: Cells, examples: int) -> tuple[Tree, Cells]:
    """The same with more room where `has_room` finds too little for so many; outdated cells are dropped."""
    nodes = len(tree.link)
    if tree.size[NODES] + 2 * examples > nodes:
        larger = new_tree(2 * nodes)
        larger.link[:nodes] = tree.link
        larger.count[:nodes] = tree.count
        tree = larger._replace(size=tree.size)
    if not has_room(tree, cells, examples):
        cells = split_cells.with_room_for(cells, versions(tree), (int(levels(tree)) + examples) * examples)
    return tree, cells


def versions(tree: Tree) -> np.ndarray:
    """That of every node in use, int64[nodes]."""
    return np.ascontiguousarray(tree.count[: tree.size[NODES], RECYCLED])


def is_lost(tree: Tree) -> bool:
    """Whether `lose` has left a single leaf."""
    return bool(tree.size[NODES] == 1 and tree.size[ROUTERS] > 0)


def arrays(tree: Tree, cells: Cells) -> dict[str, Stored]:
    """What a model keeps: the same for the same stream."""
    nodes = int(tree.size[NODES])
    return {
        "tree.link": tree.link[:nodes],
        "tree.count": tree.count[:nodes],
        "tree.size": tree.size,
        "cells": split_cells.array(cells, versions(tree)),
    }


def restored(found: Mapping[str, Stored], labels: tuple[int, int], most: int, blocked: bool) -> tuple[Tree, Cells]:
    """The tree and the cells `arrays` gave, of labels in a range and at most so many routers.

    What is checked protects the kernels here and in `split_walk`, which walk down by LEFT and RIGHT, up by PARENT and
    to the smallest leaf by SMALLEST, write nodes from NODES on, ask routers by their numbers, and take room for DEEPEST
    levels: all of these are those of one tree, and the numbers of routers are the first ones, or places in blocks.

    Raises
    ------
    ModelError
        where this is no tree.
    """
    size = stored_arrays.take("tree.size", found, np.int64, (6,)).copy()
    link = stored_arrays.take("tree.link", found, np.int32, (None, 4))
    count = stored_arrays.take("tree.count", found, np.int64, (len(link), COLUMNS))
    _check_size(size, len(link), most)
    _check_links(link, int(size[ROOT]))
    tree = new_tree(max(FIRST_NODES, len(link) + 2))._replace(size=size)
    tree.link[: len(link)] = link
    tree.count[: len(link)] = count
    depth = np.full(len(tree.link), -1, np.int32)
    depths(tree, depth)
    depth = depth[: len(link)]
    if depth.min() < 0:
        raise stored_arrays.unfit("tree.link", f"it describes no tree: node {int(depth.argmin())} is in a ring")
    if len(link) > 1 and depth.max() > size[DEEPEST]:
        raise stored_arrays.unfit(
            "tree.size", f"it says that no leaf is deeper than {size[DEEPEST]}, the tree has {depth.max()} levels"
        )
    _check_routers(link, size, blocked)
    _check_counts(link, count, labels)
    return tree, split_cells.restored("cells", found, versions(tree), labels)


def _check_size(size: np.ndarray, nodes: int, most: int) -> None:
    """Refuse numbers that are not those of a tree of so many nodes; a lost tree has one node and all routers."""
    routers = int(size[ROUTERS])
    if size[NODES] != nodes or nodes < 1:
        raise stored_arrays.unfit("tree.size", f"it says {size[NODES]} nodes, 'tree.link' has {nodes}")
    if not (routers == nodes // 2 and nodes % 2 == 1 and routers <= most) and not (nodes == 1 and routers == most):
        raise stored_arrays.unfit(
            "tree.size", f"it says {routers} routers of at most {most}, {nodes} nodes have {nodes // 2}"
        )
    for place, high in (
        (ROOT, nodes - 1),
        (BLOCKS, routers),
        (DEEPEST, routers + 1),
        (SWAPS, stored_arrays.MOST_COUNTED),
    ):
        stored_arrays.check_range("tree.size", size[place : place + 1], 0, high)


def _check_links(link: np.ndarray, root: int) -> None:
    """Refuse nodes unless each but the root is the child of one inner node; then `depths` comes to an end."""
    inner = np.flatnonzero(link[:, ROUTER] >= 0)
    children = link[inner, :2].ravel()
    others = np.delete(np.arange(len(link)), root)
    if not np.array_equal(np.sort(children), others):
        raise stored_arrays.unfit("tree.link", "it describes no tree: every node but the root is the child of one node")
    parent = np.full(len(link), -1, np.int32)
    parent[children] = np.repeat(inner, 2)
    if (link[:, PARENT] != parent).any():
        at = int(np.argmax(link[:, PARENT] != parent))
        raise stored_arrays.unfit(
            "tree.link", f"it describes no tree: node {at} has the parent {link[at, PARENT]}, and is a child of "
            f"{parent[at]}"
        )  # fmt: skip


def _check_routers(link: np.ndarray, size: np.ndarray, blocked: bool) -> None:
    """Refuse leaves that are not marked as leaves, and numbers of routers other than `_new_router` gives."""
    leaf = link[:, ROUTER] < 0
    if (link[leaf] * np.array([1, 1, 0, 1]) != np.array([0, 0, 0, -1])).any():
        raise stored_arrays.unfit("tree.link", "a leaf has children, or another router than -1")
    number = np.sort(link[~leaf, ROUTER])
    low, high = (9, 8 * int(size[BLOCKS]) + 7) if blocked else (0, int(size[ROUTERS]) - 1)
    stored_arrays.check_range("tree.link", number, low, high)
    if (number[1:] == number[:-1]).any() or (blocked and (number & 7 == 0).any()):
        raise stored_arrays.unfit("tree.link", "two nodes have the same router, or a place is none of a block")


def _check_counts(link: np.ndarray, count: np.ndarray, labels: tuple[int, int]) -> None:
    """Refuse counts below 0, answers that are no class, and a SMALLEST that is not the smaller one of the children's.

    By the last a walk down to the smallest leaf finds it, so that it is another leaf than the one that splits.
    """
    for column in (SMALLEST, LARGEST, LABELS, TRAINED, ARRIVED):
        stored_arrays.check_range("tree.count", count[:, column], 0, stored_arrays.MOST_COUNTED)
    stored_arrays.check_range("tree.count", count[:, RECYCLED], 0, 2**31)
    stored_arrays.check_range("tree.count", count[:, ANSWER], *labels)
    inner = link[:, ROUTER] >= 0
    below = count[link[inner, :2], SMALLEST].min(axis=1)
    if (count[inner, SMALLEST] != below).any():
        raise stored_arrays.unfit("tree.count", "a node's smallest leaf is not the smaller one of its children's")
