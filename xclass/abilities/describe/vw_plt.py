"""Describe a probabilistic label tree."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...binary import gd, in_words
from ...reductions.plt.vw_learner import VwLabelTree
from . import tree_view
from .tree_view import NodeView, TreeNode


def banner(learner: VwLabelTree) -> list[str]:
    tree = learner.tree
    shape = f"Tree: {tree.nodes:,} nodes, {tree.arity} children each, labels in the order of their numbers"
    return [shape, in_words.table(learner.learner_options.bits, gd.SLOT_BYTES), *learner.crowding]


def vw_banner(learner: VwLabelTree) -> list[str]:
    top_k = learner.listing_options.top_k
    searches = [f"top_k = {top_k}" if top_k else f"threshold = {learner.threshold:g}"] if learner.testing else []
    return [f"PLT k = {learner.tree.labels}", f"kary_tree = {learner.tree.arity}", *searches]


def figures(learner: VwLabelTree) -> dict[str, float]:
    tree, depths, first, depth = learner.tree, [], 0, 0
    while first < tree.nodes:
        last = min(tree.arity * first + 1, tree.nodes)
        depths += [depth] * (last - max(first, min(tree.inner, last)))
        first, depth = tree.arity * first + 1, depth + 1
    return {**learner.report.figures(), **tree_view.figures(tree.nodes, np.array(depths))}


def outline(learner: VwLabelTree, levels: int) -> Iterator[TreeNode]:
    tree = learner.tree

    def view(n: int) -> NodeView:
        if n >= tree.inner:
            label = n - tree.inner
            return NodeView(labels=((label + learner.lowest, float(learner.counts[label])),))
        begin = tree.arity * n + 1
        return NodeView(
            tuple(range(begin, min(begin + tree.arity, tree.nodes))), facts={"updates": f"{learner.updated[n]:.12g}"}
        )

    return tree_view.preorder(0, levels, view)
