"""Compare trees of labels, and add labels that only other models have.

Idea      A new label splits a leaf, whose old label goes left. So a tree has grown from another one if it has its nodes
          and, where a leaf of the other one is split, the label of the leaf is the first one below.
Cost      O(nodes) for each model.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...array_types import Int, Int64s
from ...kernels.jit import jit
from ...reductions.cpt import binary_nodes, label_tree
from ...reductions.cpt.label_tree import NODES, Tree

UNDECIDED = 0.5  # probability of the right child at every node, as of a regressor that has learned nothing


def extends(tree: Tree, base: Tree) -> bool:
    """Return whether a tree is equal to another one or has grown from it, so that the nodes of both are the same."""
    nodes = int(base.size[NODES])
    if nodes == 0 or nodes > int(tree.size[NODES]):
        return nodes == 0
    left, inner = tree.left[:nodes], base.left[:nodes] > 0
    first = tree.label[: int(tree.size[NODES])].copy()
    fill_first_labels(tree, first)
    return bool(
        np.array_equal(left[inner], base.left[:nodes][inner])
        and (left[~inner] >= nodes * (left[~inner] > 0)).all()
        and np.array_equal(first[:nodes][~inner], base.label[:nodes][~inner])
    )


def leaves(tree: Tree) -> Int64s:
    """Return the labels of a tree, int64[leaves]."""
    label = tree.label[: int(tree.size[NODES])]
    return label[label > 0]


def with_missing(tree: Tree, labels: Sequence[int]) -> Tree:
    """Insert those of some labels that a tree lacks, each where it is balanced; return it, or a larger one."""
    for label in labels:
        if not label_tree.has_capacity(tree):
            tree = label_tree.with_double_capacity(tree)
        insert(tree, label)
    return tree


# -- kernels


@jit
def fill_first_labels(tree: Tree, first: Int64s) -> None:
    """Set `first` (int64[nodes], labels of the leaves) at inner nodes to the label of the leftmost leaf below."""
    for a in range(tree.size[NODES] - 1, -1, -1):
        if tree.left[a] > 0:
            first[a] = first[tree.left[a]]


@jit
def insert(tree: Tree, label: Int) -> None:
    """Insert a label, see `with_missing`; the tree has capacity for it."""
    if label_tree.find(tree, label) >= 0:
        return
    if tree.size[NODES] == 0:
        label_tree.insert_root(tree, label)
        return
    a = np.int64(0)
    tree.leaves[a] += 1
    while tree.left[a] > 0:
        left = np.int64(tree.left[a])
        sides = np.float64(tree.leaves[left]), np.float64(tree.leaves[left + 1])
        a = left + 1 if binary_nodes.objective(1.0, UNDECIDED, sides[0], sides[1]) > 0.0 else left
        tree.leaves[a] += 1
    label_tree.split(tree, a, label)
