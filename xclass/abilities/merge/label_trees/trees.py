"""Merge trees of labels that have grown apart from one tree.

Idea      A new label splits a leaf, whose old label goes left. So the pair of labels (p, q) of a node, the first label
          on its left and the first one on its right, says that q was inserted at the leaf of p. The merged tree begins
          as the tree of the first model. A label that only another model has is inserted at the leaf of the same label
          as there, whatever else that leaf has been split for, and with it the pair of its node. If the model has no
          label from which to go on, `with_missing` descends by balance alone, which is the rule of insertion for a
          regressor that knows nothing.
Cost      O(nodes) for each model.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ....array_types import Int, Int64s
from ....kernels.jit import jit
from ....reductions.cpt import binary_nodes, label_tree
from ....reductions.cpt.label_tree import NODES, Tree

UNDECIDED = 0.5  # probability of the right child at every node, as of a regressor that has learned nothing


def renumbered(tree: Tree, numbers: Int64s | None) -> Tree:
    """Return a tree whose labels have other numbers; `numbers` (int64[labels + 1]) has the new number of each."""
    if numbers is None:
        return tree
    nodes = int(tree.size[NODES])
    label = tree.label[:nodes].copy()
    leaf = label > 0
    label[leaf] = numbers[label[leaf]]
    return label_tree.from_arrays(tree.left[:nodes], label)


def equal(first: Tree, second: Tree) -> bool:
    """Return whether two trees have the same nodes."""
    nodes = int(first.size[NODES])
    return nodes == int(second.size[NODES]) and all(
        np.array_equal(a[:nodes], b[:nodes]) for a, b in ((first.left, second.left), (first.label, second.label))
    )


def extends(tree: Tree, base: Tree) -> bool:
    """Return whether a tree has grown from another one, which must not be empty, by inserting labels."""
    nodes = int(base.size[NODES])
    if nodes == 0 or nodes > int(tree.size[NODES]):
        return False
    inner = base.left[:nodes] > 0
    first = first_labels(tree)[:nodes]
    return bool(
        np.array_equal(tree.left[:nodes][inner], base.left[:nodes][inner])
        and (tree.left[:nodes][~inner] >= nodes * (tree.left[:nodes][~inner] > 0)).all()
        and np.array_equal(first[~inner], base.label[:nodes][~inner])
    )


def first_labels(tree: Tree) -> Int64s:
    """Return the label of the leftmost leaf at or below each node, int64[nodes]."""
    first = tree.label[: int(tree.size[NODES])].copy()
    fill_first_labels(tree, first)
    return first


def grown_together(trees: Sequence[Tree], base: Tree) -> Tree:
    """Return the first of some trees with the labels that only others have, in the order of these trees.

    Parameters
    ----------
    trees : trees that extend `base`, read only
    base : their common beginning
    """
    result = copied(trees[0])
    for tree in trees[1:]:
        first = first_labels(tree)
        nodes = int(tree.size[NODES])
        for left in range(int(base.size[NODES]), nodes, 2):
            result = inserted(result, int(first[left + 1]), int(first[left]))
    return result


def with_missing(tree: Tree, labels: Sequence[int]) -> Tree:
    """Return a copy of a tree with those of some labels that it lacks, each inserted where the tree is balanced."""
    result = copied(tree)
    for label in labels:
        result = inserted(result, label, 0)
    return result


def copied(tree: Tree) -> Tree:
    """Return a copy of a tree."""
    nodes = int(tree.size[NODES])
    return label_tree.from_arrays(tree.left[:nodes], tree.label[:nodes])


def inserted(tree: Tree, label: int, at: int) -> Tree:
    """Insert a label into a tree unless it has one, and return the tree, or a larger one in its place.

    Parameters
    ----------
    at : label at whose leaf to insert it; 0, or a label that the tree lacks, to choose the leaf by balance
    """
    if not label_tree.has_capacity(tree):
        tree = label_tree.with_double_capacity(tree)
    insert(tree, label, at)
    return tree


# -- kernels


@jit
def fill_first_labels(tree: Tree, first: Int64s) -> None:
    """Set `first` (int64[nodes], labels of the leaves) at inner nodes to the label of the leftmost leaf below."""
    for a in range(tree.size[NODES] - 1, -1, -1):
        if tree.left[a] > 0:
            first[a] = first[tree.left[a]]


@jit
def insert(tree: Tree, label: Int, at: Int) -> None:
    """Insert a label, see `inserted`; the tree has capacity for it."""
    if label_tree.find(tree, label) >= 0:
        return
    if tree.size[NODES] == 0:
        label_tree.insert_root(tree, label)
        return
    a = label_tree.find(tree, at) if at > 0 else np.int64(-1)
    if a < 0:
        a = np.int64(0)
        while tree.left[a] > 0:
            left = np.int64(tree.left[a])
            sides = np.float64(tree.leaves[left]), np.float64(tree.leaves[left + 1])
            a = left + 1 if binary_nodes.objective(1.0, UNDECIDED, sides[0], sides[1]) > 0.0 else left
    node = a
    while node >= 0:
        tree.leaves[node] += 1
        node = np.int64(tree.parent[node])
    label_tree.split(tree, a, label)
