"""Describe a probabilistic label tree."""

from __future__ import annotations

from collections.abc import Iterator

from ...binary import arow, gd, in_words, tagged_words
from ...reductions.cpt import label_tree
from ...reductions.plt import nodes
from ...reductions.plt.options import GROWN, SAMPLED
from ...reductions.plt.reduction import LabelTree
from . import tree_view
from .tree_view import NodeView, TreeNode


def banner(learner: LabelTree) -> list[str]:
    o, words = learner.options, learner.nodes.words
    origin = f"Tree: grown as by --plt_tree {o.plt_tree}"
    if o.plt_tree == SAMPLED:
        origin = f"Tree: built from {f'the first {o.tree_sample:,}' if o.tree_sample else 'all'} examples"
    elif o.plt_tree not in GROWN:
        origin = f"Tree: that of {o.plt_tree}"
    used = 4 * tagged_words.size(words)
    more = o.max_doublings or 0
    growth = f"growing to at most {in_words.size(used << more)}" if more and not learner.testing else "at most"
    size = f"{in_words.size(used)}, {growth}" if more and not learner.testing else f"at most {in_words.size(used)}"
    return [
        *([] if learner.loaded else [f"{origin}, up to {nodes.LANES} children each"]),
        f"Weights: {tagged_words.size(words):,} of 4 bytes (-b {learner.bits}), {size}",
    ]


def learning_lines(learner: LabelTree, binary: gd.Options) -> list[str]:
    return ["Regressors: AROW; features are weighted by log count and inverse document frequency"]


def summary(learner: LabelTree) -> list[str]:
    return [
        *learner.report.lines(),
        f"regularisation of AROW = {arow.r_of(learner.nodes.regularisation):.3g}",
        tagged_words.occupancy([learner.nodes.words]),
        *tree_view.lines(figures(learner)),
    ]


def figures(learner: LabelTree) -> dict[str, float]:
    own = tree_view.figures(int(learner.tree.size[nodes.NODES]), label_tree.depths(learner.tree))
    return {**learner.report.figures(), **own}


def outline(learner: LabelTree, levels: int) -> Iterator[TreeNode]:
    tree = learner.tree

    def view(a: int) -> NodeView:
        left = int(tree.left[a])
        if left == 0:
            label = int(tree.label[a]) - 1
            return NodeView(labels=((label + learner.lowest, float(learner.counts[label])),))
        return NodeView((left, left + 1), facts={"leaves": int(tree.leaves[a])})

    if tree.size[nodes.NODES]:
        yield from tree_view.preorder(0, levels, view)
