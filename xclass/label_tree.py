"""A binary tree whose leaves are labels and which grows a leaf at a time; knows nothing of learning.

Source    Beygelzimer, Langford, Lifshits, Sorkin, Strehl, "Conditional Probability Tree Estimation Analysis and
          Algorithms", UAI 2009: a leaf that is reached becomes a node with the old label left, the new one right.
Cost      finding a label's leaf O(1), splitting a leaf O(depth).

Nodes are numbered as they come; siblings next to each other, children after their parent. Every node has a place
for its regressor, in blocks of up to three levels: the root of a block at 1, the children of place q at 2 q and
2 q + 1, and those of places 4 to 7 begin a block of their own:

        place = 8 * block + q            1
                                      2     3
                                     4 5   6 7
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from . import model_file
from .errors import ModelError
from .jit import jit
from .outline import Seen

NODES, BLOCKS, DEEPEST = 0, 1, 2  # Tree.size
HIGHEST_LABEL = 2**31
FIRST_NODES, FIRST_CELLS = 1 << 10, 1 << 11


class Tree(NamedTuple):
    """m nodes of which `size[NODES]` are in use, node 0 the root; and where each label's leaf is."""

    left: np.ndarray  # int32[m], left child (right: + 1), 0 at a leaf
    parent: np.ndarray  # int32[m], -1 above the root
    depth: np.ndarray  # int32[m]
    leaves: np.ndarray  # int32[m], leaves at and below the node
    place: np.ndarray  # int64[m], of the node's regressor
    label: np.ndarray  # int64[m], -1 at a node that is no leaf
    key: np.ndarray  # int64[cells], labels by hash, 0 is an empty cell
    leaf: np.ndarray  # int32[cells], node of the label
    size: np.ndarray  # int64[3]: nodes, blocks and depth of the deepest node


# -- kernels


@jit
def _cell(tree, label):
    """Where `label` is, or the empty cell where it belongs."""
    last = np.int64(tree.key.shape[0] - 1)
    at = np.int64((np.uint64(label) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32)) & last
    while tree.key[at] != label and tree.key[at] != 0:
        at = (at + 1) & last
    return at


@jit
def find(tree, label):
    """The leaf of a label, -1 where it has none."""
    at = _cell(tree, label)
    return np.int64(tree.leaf[at]) if tree.key[at] == label else np.int64(-1)


@jit
def _put(tree, label, node):
    at = _cell(tree, label)
    tree.key[at] = label
    tree.leaf[at] = node


@jit
def has_room(tree):
    """Whether one more label fits; at most 5/8 of the cells are used."""
    nodes = tree.size[NODES]
    return nodes + 2 <= tree.left.shape[0] and (nodes + 3) * 8 <= tree.key.shape[0] * 10


@jit
def plant(tree, label):
    """Make the root, the leaf of the first label."""
    tree.left[0] = 0
    tree.parent[0] = -1
    tree.depth[0] = 0
    tree.leaves[0] = 1
    tree.place[0] = 9
    tree.label[0] = label
    tree.size[NODES] = 1
    tree.size[BLOCKS] = 1
    _put(tree, label, 0)


@jit
def split(tree, a, label):
    """Turn leaf a into a node whose left child is its old label and whose right child is `label`; return the right.

    The caller has seen to room and counts the new leaf on the way down to a.
    """
    left = tree.size[NODES]
    tree.size[NODES] += 2
    tree.left[a] = left
    for child in range(left, left + 2):
        tree.left[child] = 0
        tree.parent[child] = a
        tree.depth[child] = tree.depth[a] + 1
        tree.leaves[child] = 1
        q = 2 * (tree.place[a] & 7) + child - left
        if q < 8:
            tree.place[child] = (tree.place[a] & ~np.int64(7)) + q
        else:
            tree.size[BLOCKS] += 1
            tree.place[child] = 8 * tree.size[BLOCKS] + 1
    tree.size[DEEPEST] = max(tree.size[DEEPEST], np.int64(tree.depth[left]))
    tree.label[left] = tree.label[a]
    tree.label[left + 1] = label
    tree.label[a] = -1
    _put(tree, tree.label[left], left)
    _put(tree, label, left + 1)
    return left + 1


@jit
def find_places(left, place, nodes):
    """The places that splitting leaves gives, siblings taken in the order of their numbers; `place` : int64[nodes]."""
    up = np.zeros(nodes, np.int64)
    for a in range(nodes):
        if left[a] > 0:
            up[left[a]] = a
    place[0] = 9
    blocks = 1
    for pair in range(1, nodes, 2):
        a = up[pair]
        for child in range(pair, pair + 2):
            q = 2 * (place[a] & 7) + child - pair
            if q < 8:
                place[child] = (place[a] & ~np.int64(7)) + q
            else:
                blocks += 1
                place[child] = 8 * blocks + 1


@jit
def halve(labels, left, label):
    """Fill in `left` and `label` (int32, int64[2 k - 1]) of the tree that halves k labels down to single ones."""
    nodes = 1
    begin = np.zeros(label.shape[0], np.int64)
    end = np.zeros(label.shape[0], np.int64)
    end[0] = labels.shape[0]
    for a in range(label.shape[0]):
        if end[a] - begin[a] == 1:
            left[a] = 0
            label[a] = labels[begin[a]]
        else:
            middle = begin[a] + (end[a] - begin[a] + 1) // 2
            left[a] = nodes
            label[a] = -1
            begin[nodes], end[nodes] = begin[a], middle
            begin[nodes + 1], end[nodes + 1] = middle, end[a]
            nodes += 2


@jit
def complete(tree, nodes):
    """Fill in what follows from `left`, `place` and `label` of so many nodes."""
    tree.size[NODES] = nodes
    if nodes > 0:
        tree.parent[0] = -1
        tree.depth[0] = 0
    for a in range(nodes):
        tree.leaves[a] = 0 if tree.left[a] > 0 else 1
        tree.size[BLOCKS] = max(tree.size[BLOCKS], tree.place[a] >> 3)
        if tree.left[a] > 0:
            for child in range(tree.left[a], tree.left[a] + 2):
                tree.parent[child] = a
                tree.depth[child] = tree.depth[a] + 1
                tree.size[DEEPEST] = max(tree.size[DEEPEST], np.int64(tree.depth[child]))
        else:
            _put(tree, tree.label[a], a)
    for a in range(nodes - 1, 0, -1):
        tree.leaves[tree.parent[a]] += tree.leaves[a]


# -- Python


def new_tree(nodes: int = FIRST_NODES, cells: int = FIRST_CELLS) -> Tree:
    """An empty tree with room for some nodes; `cells` is a power of two."""
    small = [np.zeros(nodes, np.int32) for _ in range(4)]
    wide = [np.zeros(nodes, np.int64) for _ in range(2)]
    return Tree(*small, *wide, np.zeros(cells, np.int64), np.zeros(cells, np.int32), np.zeros(3, np.int64))


def roomy(labels: int) -> Tree:
    """An empty tree for so many labels, if there are no more."""
    cells = FIRST_CELLS
    while cells * 10 < (2 * labels + 8) * 8:
        cells *= 2
    return new_tree(max(FIRST_NODES, 2 * labels + 2), cells)


def grown(tree: Tree) -> Tree:
    """The same tree with twice the room."""
    return _filled(roomy(len(tree.left)), tree.left, tree.place, tree.label, int(tree.size[NODES]))


def _filled(tree: Tree, left, place, label, nodes: int) -> Tree:
    tree.left[:nodes] = left[:nodes]
    tree.place[:nodes] = place[:nodes]
    tree.label[:nodes] = label[:nodes]
    complete(tree, nodes)
    return tree


def shaped(left: np.ndarray, label: np.ndarray, room: int = 0) -> Tree:
    """A tree of these nodes (int32[m], int64[m]; siblings behind their parent), with `room` for so many labels."""
    nodes = len(left)
    place = np.empty(nodes, np.int64)
    find_places(left, place, nodes)
    return _filled(roomy(max(nodes, room)), left, place, label, nodes)


def halved(labels: np.ndarray, room: int = 0) -> Tree:
    """The tree of least depth whose leaves are these labels (int64[k], all different), from left to right."""
    nodes = 2 * len(labels) - 1
    left, label = np.empty(nodes, np.int32), np.empty(nodes, np.int64)
    halve(labels, left, label)
    return shaped(left, label, room)


def seen(tree: Tree, a: int) -> Seen:
    """A node as it is shown."""
    left = int(tree.left[a])
    if left == 0:
        return Seen(labels=((int(tree.label[a]), None),))
    return Seen((left, left + 1), facts={"leaves": int(tree.leaves[a])})


def depths(tree: Tree) -> np.ndarray:
    """The depth of every leaf."""
    nodes = int(tree.size[NODES])
    return tree.depth[:nodes][tree.left[:nodes] == 0]


def arrays(name: str, tree: Tree) -> dict[str, np.ndarray]:
    """What a model keeps of a tree."""
    nodes = int(tree.size[NODES])
    return {f"{name}.{part}": getattr(tree, part)[:nodes] for part in ("left", "place", "label")}


def restored(name: str, found: dict[str, np.ndarray]) -> Tree:
    """The tree `arrays` gave.

    Raises
    ------
    ModelError
        where this is no tree.
    """
    left = model_file.take(f"{name}.left", found, np.int32, None)
    nodes = len(left)
    place = model_file.take(f"{name}.place", found, np.int64, (nodes,))
    label = model_file.take(f"{name}.label", found, np.int64, (nodes,))
    inner = left > 0
    is_tree = (
        np.array_equal(np.sort(left[inner]), np.arange(1, nodes, 2))
        and (left[inner] > np.flatnonzero(inner)).all()
        and (label[inner] == -1).all()
        and len(np.unique(label[~inner])) == len(label[~inner])
    )
    if not is_tree:
        raise ModelError(f"the model's array '{name}.left' describes no tree; train the model again")
    model_file.check_range(f"{name}.label", label[~inner], 1, HIGHEST_LABEL)
    model_file.check_range(f"{name}.place", place, 9, 16 * nodes + 16)
    return _filled(roomy(nodes), left, place, label, nodes)
