"""Store and grow a binary tree whose leaves are labels; the nodes' regressors are kept elsewhere.

Source    Beygelzimer, Langford, Lifshits, Sorkin, Strehl, "Conditional Probability Tree Estimation Analysis and
          Algorithms", UAI 2009: a new label splits a leaf, which becomes a node with the old label on the left and the
          new label on the right.
Cost      O(1) to find the leaf of a label or to split a leaf.

Nodes are numbered in the order of their creation; siblings are neighbours, and children come after their parent. Every
node has a place for its regressor. Places come in blocks of up to three levels: the root of a block is at q = 1, the
children of q are at 2 q and 2 q + 1, and the children of q = 4 to 7 begin blocks of their own:

        place = 8 * block + q            1
                                      2     3
                                     4 5   6 7
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...array_types import Int, Int32s, Int64s
from ...data.batch import HIGHEST_LABEL
from ...kernels import hash_table
from ...kernels.jit import bare, jit
from ...model import stored_arrays
from ...model.archive import Archive

NODES, BLOCKS, DEEPEST = 0, 1, 2  # indices into Tree.size
FIRST_NODES, FIRST_CELLS = 1 << 10, 1 << 11
NODE_BYTES = 20  # of a node in a model file
VALID, DUPLICATE_LABEL, NOT_A_TREE, WRONG_LABEL = range(4)  # results of checking a tree that comes from a file
PROBLEMS = {
    DUPLICATE_LABEL: "a label has two leaves",
    NOT_A_TREE: "its nodes do not form a tree: a child is out of range or has two parents, or a node has no parent",
    WRONG_LABEL: f"a leaf's label is outside 1..{HIGHEST_LABEL}, or an inner node has a label",
}


class ClassTree(NamedTuple):
    """Hold m nodes, of which `size[NODES]` are used and node 0 is the root, and a hash map from labels to leaves."""

    left: Int32s  # int32[m], left child, 0 at a leaf; the right child is the next node
    parent: Int32s  # int32[m], -1 at the root
    depth: Int32s  # int32[m], 0 at the root
    leaves: Int32s  # int32[m], leaves at and below the node
    place: Int64s  # int64[m], place of the node's regressor
    label: Int64s  # int64[m], -1 at inner nodes
    secret: np.uint64  # secret of the hash of labels, see `hash_table`
    key: Int64s  # int64[cells], labels by hash, 0 in an empty cell
    leaf: Int32s  # int32[cells], leaf of the label
    size: Int64s  # int64[3], nodes, blocks and depth of the deepest leaf


# -- kernels


@bare
def find(tree: ClassTree, label: Int) -> np.int64:
    """Return the leaf of a label, or -1 if it has none."""
    at = hash_table.probe(tree.key, label, 0, tree.secret)
    return np.int64(tree.leaf[at]) if tree.key[at] == label else np.int64(-1)


@jit
def find_all(tree: ClassTree, label: Int64s, leaf: Int64s) -> None:
    """Write the leaf of each label to `leaf` (int64[n]), -1 if it has none; `label` (int64[n]) is read only."""
    for i in range(len(label)):
        leaf[i] = find(tree, label[i]) if label[i] > 0 else np.int64(-1)


@bare
def _set_leaf(tree: ClassTree, label: Int, node: Int) -> None:
    at = hash_table.probe(tree.key, label, 0, tree.secret)
    tree.key[at] = label
    tree.leaf[at] = node


@bare
def has_capacity(tree: ClassTree, labels: Int = 1) -> bool:
    """Return whether the tree has capacity for more labels; at most 5/8 of the cells are used."""
    nodes = tree.size[NODES] + 2 * labels
    return nodes <= tree.left.shape[0] and (nodes + 1) * 8 <= tree.key.shape[0] * 10


@bare
def insert_root(tree: ClassTree, label: Int) -> None:
    """Make the root of an empty tree, the leaf of the first label."""
    tree.left[0] = 0
    tree.parent[0] = -1
    tree.depth[0] = 0
    tree.leaves[0] = 1
    tree.place[0] = 9
    tree.label[0] = label
    tree.size[NODES] = 1
    tree.size[BLOCKS] = 1
    _set_leaf(tree, label, 0)


@bare
def _place(tree: ClassTree, left: Int) -> None:
    """Set the places of a left child and of its sibling, whose parent has a place."""
    above = tree.place[tree.parent[left]]
    for child in range(left, left + 2):
        q = 2 * (above & 7) + child - left
        if q < 8:
            tree.place[child] = (above & ~np.int64(7)) + q
        else:
            tree.size[BLOCKS] += 1
            tree.place[child] = 8 * tree.size[BLOCKS] + 1


@bare
def split(tree: ClassTree, a: Int, label: Int) -> np.int64:
    """Turn leaf a into a node with its old label on the left and `label` on the right; return the right child.

    The caller checks `has_capacity` before, and adds 1 to `leaves` of the nodes on the path to a, a included.
    """
    left = tree.size[NODES]
    tree.size[NODES] += 2
    tree.left[a] = left
    for child in range(left, left + 2):
        tree.left[child] = 0
        tree.parent[child] = a
        tree.depth[child] = tree.depth[a] + 1
        tree.leaves[child] = 1
    _place(tree, left)
    tree.size[DEEPEST] = max(tree.size[DEEPEST], np.int64(tree.depth[left]))
    tree.label[left] = tree.label[a]
    tree.label[left + 1] = label
    tree.label[a] = -1
    _set_leaf(tree, tree.label[left], left)
    _set_leaf(tree, label, left + 1)
    return left + 1


@jit
def build_balanced(labels: Int64s, left: Int32s, label: Int64s) -> None:
    """Halve a sequence of labels, int64[k], until each part has one; write 2 k - 1 nodes to `left` and `label`."""
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
def complete(tree: ClassTree, nodes: int) -> int:
    """Compute all other arrays from `left` and `label` of the first `nodes` nodes, as if the tree had grown to them.

    Return VALID, or DUPLICATE_LABEL if a label has two leaves; the tree cannot be used then.
    """
    tree.size[NODES] = nodes
    if nodes > 0:
        tree.parent[0] = -1
        tree.place[0] = 9
        tree.size[BLOCKS] = 1
    for a in range(nodes):
        tree.leaves[a] = 0 if tree.left[a] > 0 else 1
        if tree.left[a] > 0:
            for child in range(tree.left[a], tree.left[a] + 2):
                tree.parent[child] = a
                tree.depth[child] = tree.depth[a] + 1
                tree.size[DEEPEST] = max(tree.size[DEEPEST], np.int64(tree.depth[child]))
        elif find(tree, tree.label[a]) >= 0:
            return DUPLICATE_LABEL
        else:
            _set_leaf(tree, tree.label[a], a)
    for left in range(1, nodes, 2):
        _place(tree, left)
    for a in range(nodes - 1, 0, -1):
        tree.leaves[tree.parent[a]] += tree.leaves[a]
    return VALID


@jit
def check(left: Int32s, label: Int64s, parent: Int32s) -> int:
    """Check that nodes from a file form a tree, and return the problem found, or VALID; `parent` (int32[m]) is scratch.

    Node 0 must be the root, every other node must be the child of exactly one node with a lower number, siblings must
    be neighbours, and exactly the leaves must have labels.
    """
    nodes = left.shape[0]
    if nodes == 0:
        return VALID
    if nodes % 2 == 0:
        return NOT_A_TREE
    parent[:] = -1
    for a in range(nodes):
        child = left[a]
        if child == 0:
            if not 1 <= label[a] <= HIGHEST_LABEL:
                return WRONG_LABEL
            continue
        if child <= a or child % 2 == 0 or child + 1 >= nodes or parent[child] >= 0:
            return NOT_A_TREE
        parent[child] = a
        if label[a] != -1:
            return WRONG_LABEL
    for child in range(1, nodes, 2):
        if parent[child] < 0:
            return NOT_A_TREE
    return VALID


# -- Python


def new_tree(nodes: int = FIRST_NODES, cells: int = FIRST_CELLS) -> ClassTree:
    """Return an empty tree with capacity for `nodes` nodes; `cells`, the size of the hash map, is a power of two."""
    left, parent, depth, leaves = (np.zeros(nodes, np.int32) for _ in range(4))
    place, label = np.zeros(nodes, np.int64), np.zeros(nodes, np.int64)
    key, leaf = np.zeros(cells, np.int64), np.zeros(cells, np.int32)
    size = np.zeros(3, np.int64)
    return ClassTree(left, parent, depth, leaves, place, label, hash_table.new_secret(), key, leaf, size)


def empty_tree(labels: int) -> ClassTree:
    cells = FIRST_CELLS
    while cells * 10 < (2 * labels + 8) * 8:
        cells *= 2
    return new_tree(max(FIRST_NODES, 2 * labels + 2), cells)


def with_double_capacity(tree: ClassTree) -> ClassTree:
    nodes = int(tree.size[NODES])
    return _filled(empty_tree(len(tree.left)), tree.left[:nodes], tree.label[:nodes])[0]


def _filled(tree: ClassTree, left: Int32s, label: Int64s) -> tuple[ClassTree, int]:
    """Copy nodes into an empty tree; return it and what `complete` returns."""
    tree.left[: len(left)] = left
    tree.label[: len(left)] = label
    return tree, complete(tree, len(left))


def from_arrays(left: Int32s, label: Int64s, capacity: int = 0) -> ClassTree:
    """Return the tree of given nodes, of which siblings come after their parent, with capacity for some labels."""
    return _filled(empty_tree(max(len(left), capacity)), left, label)[0]


def checked(left: Int32s, label: Int64s) -> tuple[ClassTree | None, int]:
    """Return the tree of nodes that come from a file and VALID, or None and the problem found.

    The check guarantees that every kernel that walks up or down the tree (`complete`, and those of `tree_search`,
    `binary_nodes` and `wide_nodes`) stays inside the arrays and ends.
    """
    left, label = left.view(), label.view()
    left.flags.writeable = label.flags.writeable = False  # whatever they were: the kernel is compiled for one type
    problem = check(left, label, np.empty(len(left), np.int32))
    return _filled(empty_tree(len(left)), left, label) if problem == VALID else (None, problem)


def balanced_tree(labels: Int64s, capacity: int = 0) -> ClassTree:
    """Return the tree of least depth for distinct labels, those of the leaves from left to right."""
    nodes = 2 * len(labels) - 1
    left, label = np.empty(nodes, np.int32), np.empty(nodes, np.int64)
    build_balanced(labels, left, label)
    return from_arrays(left, label, capacity)


def depths(tree: ClassTree) -> Int32s:
    """Return the depth of every leaf."""
    nodes = int(tree.size[NODES])
    return tree.depth[:nodes][tree.left[:nodes] == 0]


def serialize(archive: Archive, name: str, tree: ClassTree) -> ClassTree:
    """Save a tree, or return that of a model after checking it.

    `checked` says what its checks protect. Places must be those that growing the tree assigns, because two nodes with
    the same place would share their regressor.
    """
    nodes = int(tree.size[NODES])
    left = archive.take(f"{name}.left", tree.left[:nodes])
    place = archive.take(f"{name}.place", tree.place[:nodes], left.shape)
    label = archive.take(f"{name}.label", tree.label[:nodes], left.shape)
    if archive.saves:
        return tree
    loaded, problem = checked(left, label)
    if loaded is None or problem != VALID:
        raise stored_arrays.unfit(f"{name}.{'left' if problem == NOT_A_TREE else 'label'}", PROBLEMS[problem])
    differs = loaded.place[: len(place)] != place
    if differs.any():
        at = int(np.argmax(differs))
        raise stored_arrays.unfit(
            f"{name}.place", f"node {at} has the place {place[at]}, but its place in this tree is {loaded.place[at]}"
        )
    return loaded
