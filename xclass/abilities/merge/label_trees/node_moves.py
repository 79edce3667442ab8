"""Find the nodes of a merged tree that correspond to the nodes of a model's tree, and the moves of their words.

Idea      A leaf corresponds to the leaf of the same label. An inner node, at which label q was inserted at the leaf of
          label p, corresponds to the node of the merged tree at which the paths to p and q part, if q is on the right
          there. Different nodes correspond to different nodes, because `trees.grown_together` inserts q at the leaf of
          p, too. Only if several models have inserted q, at different leaves, an inner node may have no counterpart;
          its words are dropped.
Cost      O(depth) in time and space for each node that the base does not have; `cpt.MOST_LEVELS` bounds it.
"""

from __future__ import annotations

import numpy as np

from ....array_types import Int64s
from ....reductions.cpt import label_tree
from ....reductions.cpt.label_tree import NODES, Tree
from .moved_words import DROPPED, Move
from .trees import first_labels


def node_moves(tree: Tree, numbers: Int64s | None, merged: Tree, base: Tree) -> dict[int, list[Move]]:
    """Return the moves of the words of a model's nodes to the places of the merged tree, for each label that uses them.

    Parameters
    ----------
    tree : tree of the model, with the labels of the model
    numbers : int64[labels + 1], new number of each label; None for the same numbers
    merged : the merged tree
    base : the tree that both have grown from
    """
    nodes, old_nodes = int(tree.size[NODES]), int(base.size[NODES])
    changed = np.arange(nodes) >= old_nodes
    changed[:old_nodes] = base.left[:old_nodes] != tree.left[:old_nodes]  # leaves of the base that were split
    first = first_labels(tree)
    leaf_of = np.empty(nodes, np.int64)  # leaf, in the merged tree, of the first label
    label_tree.find_all(merged, first if numbers is None else numbers[first], leaf_of)
    leaf_of_node, left_of_node = leaf_of.tolist(), tree.left[:nodes].tolist()
    parent, depth, place = (array.tolist() for array in (merged.parent, merged.depth, merged.place))
    right_of = (merged.left + 1).tolist()
    taken = set(np.flatnonzero(~changed).tolist())  # nodes that the words of a changed node must not go to
    own_place, own_parent = tree.place[:nodes].tolist(), tree.parent[:nodes].tolist()
    move_of: dict[int, Move] = {}
    for a in np.flatnonzero(changed).tolist():
        left = left_of_node[a]
        node = leaf_of_node[a]
        fits = True
        if left:  # climb to where the paths part
            other = last = leaf_of_node[left + 1]
            while node != other:
                if depth[node] > depth[other]:
                    node = parent[node]
                else:
                    other, last = parent[other], other
            fits = last == right_of[node] and node not in taken
            taken.add(node)
        block, q = own_place[a] >> 3, own_place[a] & 7
        if not fits:
            move_of[a] = Move(block, q, DROPPED, 0)
        elif place[node] != own_place[a]:
            move_of[a] = Move(block, q, place[node] >> 3, place[node] & 7)
    moves: dict[int, list[Move]] = {}
    for a in np.flatnonzero(changed & (tree.left[:nodes] == 0)).tolist():
        path, node = [], a
        while node >= 0 and changed[node]:
            path += [move_of[node]] if node in move_of else []
            node = own_parent[node]
        if path:
            moves[int(first[a])] = path
    return moves
