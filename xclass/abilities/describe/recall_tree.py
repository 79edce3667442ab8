"""Describe a recall tree."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial

import numpy as np

from ...array_types import Bools, Int64s
from ...binary import gd, in_words
from ...reductions.recall_tree.label_counts import BOUND, ENTROPY, WEIGHT, Counts
from ...reductions.recall_tree.reduction import RecallTree
from ...reductions.recall_tree.routing import Tree
from . import tree_view
from .tree_view import NodeView, TreeNode

MOST_SHOWN = 5  # most candidates in the view of a node


def banner(learner: RecallTree) -> list[str]:
    o, nodes = learner.settings, len(learner.tree.left)
    lines = [
        f"Tree: up to {nodes:,} nodes in {learner.depth} levels, {learner.candidates} candidates each, at most "
        f"{in_words.size(learner.memory[1])}"
    ]
    if o.randomized:
        lines.append("Routing: random while learning, by the scores of the routers")
    if o.bern != 1:
        lines.append(f"Recall bound: penalty with weight {o.bern:g}")
    if not o.path or o.node_only:
        lines.append(f"Path features: {'the node reached' if o.path else 'none'}")
    return [*lines, in_words.table(learner.learner_options.bits, gd.SLOT_BYTES), *learner.crowding]


def vw_banner(learner: RecallTree) -> list[str]:
    o = learner.settings
    mode = "randomized" if o.randomized else "deterministic"
    return [
        f"recall_tree: node_only = {int(o.node_only)} bern_hyper = {o.bern:g} max_depth = {learner.depth} "
        f"routing = {mode}",
        f"memory: {learner.memory[0] / 2**20:.0f} MB of weights, at most {learner.memory[1] / 2**20:.0f} MB for "
        f"{len(learner.tree.left)} nodes of {learner.candidates} candidates",
        *learner.crowding,
    ]


def figures(learner: RecallTree) -> dict[str, float]:
    return {**learner.report.figures(), **tree_view.figures(*_size(learner.tree, learner.counts))}


def outline(learner: RecallTree, levels: int) -> Iterator[TreeNode]:
    """Yield the nodes of the first `levels` levels that examples have reached, and their siblings."""
    return tree_view.preorder(0, levels, partial(_node_view, learner.tree, learner.counts))


def _node_view(tree: Tree, counts: Counts, a: int) -> NodeView:
    """Return the printable view of a node; a node whose children have seen no example appears as a leaf."""
    has_children = _children_seen(tree, counts, np.array([a]))
    weight, nats = float(counts.node[a, WEIGHT]), float(counts.node[a, ENTROPY])
    size = int(counts.top_size[a])
    top = zip(counts.top_label[a, :MOST_SHOWN].tolist(), counts.top_count[a, :MOST_SHOWN].tolist(), strict=True)
    facts: dict[str, object] = {
        "candidates": size,
        "weight": f"{weight:g}",
        "bits": f"{nats / math.log(2.0):.2f}" if weight > 0 else "0.00",
        "recall at least": f"{float(counts.node[a, BOUND]):.3f}",
    }
    left = int(tree.left[a])
    return NodeView((left, left + 1) if has_children[0] else (), tuple((y + 1, c) for y, c in list(top)[:size]), facts)


def _children_seen(tree: Tree, counts: Counts, nodes: Int64s) -> Bools:
    """Return for each of `nodes` (int64[k]) whether a child of it has seen an example, as bool[k]."""
    left = tree.left[nodes]
    seen: Bools = (counts.node[left, WEIGHT] > 0) | (counts.node[np.minimum(left + 1, len(tree.left) - 1), WEIGHT] > 0)
    return seen & (left > 0)


def _size(tree: Tree, counts: Counts) -> tuple[int, Int64s]:
    level, depth, nodes, depths = np.zeros(1, np.int64), 0, 0, []
    while len(level):
        nodes += len(level)
        inner = _children_seen(tree, counts, level)
        depths.append(np.full(len(level) - np.count_nonzero(inner), depth))
        left = tree.left[level[inner]]
        level, depth = np.concatenate([left, left + 1]), depth + 1
    return nodes, np.concatenate(depths)
