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

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from ...array_types import Int32s, Int64s
from ...data.batch import HIGHEST_LABEL
from ...kernels import hash_table
from ...kernels.jit import jit
from ...model import stored_arrays
from ...model.stored_arrays import Stored
from ..core.tree_view import NodeView

NODES, BLOCKS, DEEPEST = 0, 1, 2  # Tree.size
FIRST_NODES, FIRST_CELLS = 1 << 10, 1 << 11
NODE_BYTES = 20  # in a model
FINE, TWICE, NO_TREE, NO_LABEL = range(4)  # what may be wrong with a tree that comes from a file
WHY = {
    TWICE: "a label has two leaves",
    NO_TREE: "it describes no tree: a child is out of range or has another parent too, or a node has no parent",
    NO_LABEL: f"a leaf's label is outside 1..{HIGHEST_LABEL}, or another node has one",
}


class Tree(NamedTuple):
    """m nodes of which `size[NODES]` are in use, node 0 the root; and where each label's leaf is."""

    left: Int32s  # int32[m], left child (right: + 1), 0 at a leaf
    parent: Int32s  # int32[m], -1 above the root
    depth: Int32s  # int32[m]
    leaves: Int32s  # int32[m], leaves at and below the node
    place: Int64s  # int64[m], of the node's regressor
    label: Int64s  # int64[m], -1 at a node that is no leaf
    secret: np.uint64  # of the hash of labels
    key: Int64s  # int64[cells], labels by hash, 0 is an empty cell
    leaf: Int32s  # int32[cells], node of the label
    size: Int64s  # int64[3]: nodes, blocks and depth of the deepest node


# -- kernels


@jit
def _cell(tree, label):
    """Where `label` is, or the empty cell where it belongs."""
    return hash_table.probe(tree.key, label, 0, tree.secret)


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
def enter(tree, label, node):
    """Enter a label that may be there already: return FINE or TWICE."""
    at = _cell(tree, label)
    if tree.key[at] == label:
        return TWICE
    tree.key[at] = label
    tree.leaf[at] = node
    return FINE


@jit
def complete(tree, nodes):
    """Fill in what follows from `left`, `place` and `label` of so many nodes; return what `enter` says of labels."""
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
            entered = enter(tree, tree.label[a], a)
            if entered != FINE:
                return entered
    for a in range(nodes - 1, 0, -1):
        tree.leaves[tree.parent[a]] += tree.leaves[a]
    return FINE


@jit
def check(left, label, parent):
    """What is wrong with nodes that came from a file, FINE where they are a tree. `parent` is scratch: int32[m].

    Node 0 is the root, every other one is met once as a child with a higher number than its parent, siblings stand
    together, and leaves alone have labels.
    """
    nodes = left.shape[0]
    if nodes == 0:
        return FINE
    if nodes % 2 == 0:
        return NO_TREE
    parent[:] = -1
    for a in range(nodes):
        child = left[a]
        if child == 0:
            if not 1 <= label[a] <= HIGHEST_LABEL:
                return NO_LABEL
            continue
        if child <= a or child % 2 == 0 or child + 1 >= nodes or parent[child] >= 0:
            return NO_TREE
        parent[child] = a
        if label[a] != -1:
            return NO_LABEL
    for child in range(1, nodes, 2):
        if parent[child] < 0:
            return NO_TREE
    return FINE


# -- Python


def new_tree(nodes: int = FIRST_NODES, cells: int = FIRST_CELLS) -> Tree:
    """An empty tree with room for some nodes; `cells` is a power of two."""
    small = [np.zeros(nodes, np.int32) for _ in range(4)]
    wide = [np.zeros(nodes, np.int64) for _ in range(2)]
    key, leaf = np.zeros(cells, np.int64), np.zeros(cells, np.int32)
    return Tree(*small, *wide, hash_table.new_secret(), key, leaf, np.zeros(3, np.int64))


def empty_tree(labels: int) -> Tree:
    """An empty tree for so many labels, if there are no more."""
    cells = FIRST_CELLS
    while cells * 10 < (2 * labels + 8) * 8:
        cells *= 2
    return new_tree(max(FIRST_NODES, 2 * labels + 2), cells)


def with_double_capacity(tree: Tree) -> Tree:
    """The same tree with twice the room."""
    return _filled(empty_tree(len(tree.left)), tree.left, tree.place, tree.label, int(tree.size[NODES]))[0]


def _filled(tree: Tree, left, place, label, nodes: int) -> tuple[Tree, int]:
    """An empty tree with these nodes, and what `complete` says of it."""
    tree.left[:nodes] = left[:nodes]
    tree.place[:nodes] = place[:nodes]
    tree.label[:nodes] = label[:nodes]
    return tree, complete(tree, nodes)


def shaped(left: np.ndarray, label: np.ndarray, room: int = 0) -> Tree:
    """A tree of these nodes (int32[m], int64[m]; siblings behind their parent), with `room` for so many labels."""
    return _filled(empty_tree(max(len(left), room)), left, _places(left), label, len(left))[0]


def checked(left: np.ndarray, label: np.ndarray) -> tuple[Tree | None, int]:
    """As `shaped`, for nodes that somebody else wrote: the tree, and FINE or what is wrong in place of it.

    What is checked keeps every kernel that walks up or down (`complete`, `deepen`, `grow` and the searches of
    `tree_search` and `binary_nodes`) inside the arrays, and makes its walk end.
    """
    wrong = check(left, label, np.empty(len(left), np.int32))
    if wrong != FINE:
        return None, wrong
    return _filled(empty_tree(len(left)), left, _places(left), label, len(left))


def _places(left: np.ndarray) -> np.ndarray:
    """The places `find_places` gives."""
    place = np.empty(len(left), np.int64)
    if len(left):
        find_places(left, place, len(left))
    return place


def balanced_tree(labels: np.ndarray, room: int = 0) -> Tree:
    """The tree of least depth whose leaves are these labels (int64[k], all different), from left to right."""
    nodes = 2 * len(labels) - 1
    left, label = np.empty(nodes, np.int32), np.empty(nodes, np.int64)
    halve(labels, left, label)
    return shaped(left, label, room)


def node_view(tree: Tree, a: int) -> NodeView:
    """A node as it is shown."""
    left = int(tree.left[a])
    if left == 0:
        return NodeView(labels=((int(tree.label[a]), None),))
    return NodeView((left, left + 1), facts={"leaves": int(tree.leaves[a])})


def depths(tree: Tree) -> np.ndarray:
    """The depth of every leaf."""
    nodes = int(tree.size[NODES])
    return tree.depth[:nodes][tree.left[:nodes] == 0]


def arrays(name: str, tree: Tree) -> dict[str, Stored]:
    """What a model keeps of a tree."""
    nodes = int(tree.size[NODES])
    return {f"{name}.{part}": getattr(tree, part)[:nodes] for part in ("left", "place", "label")}


def restored(name: str, found: Mapping[str, Stored]) -> Tree:
    """The tree `arrays` gave.

    `checked` says what it protects. Places are those that growing the tree gives: `adagrad` finds regressors by
    them, and two nodes of one place would share theirs.

    Raises
    ------
    ModelError
        where this is no tree.
    """
    left = stored_arrays.take(f"{name}.left", found, np.int32, None)
    nodes = len(left)
    place = stored_arrays.take(f"{name}.place", found, np.int64, (nodes,))
    label = stored_arrays.take(f"{name}.label", found, np.int64, (nodes,))
    tree, wrong = checked(left, label)
    if tree is None or wrong != FINE:
        raise stored_arrays.unfit(f"{name}.{'left' if wrong == NO_TREE else 'label'}", WHY[wrong])
    if not np.array_equal(tree.place[:nodes], place):
        at = int(np.argmax(tree.place[:nodes] != place))
        raise stored_arrays.unfit(
            f"{name}.place", f"node {at} has the place {place[at]}, the tree puts it at {tree.place[at]}"
        )
    return tree
