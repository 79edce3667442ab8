"""Describe a probabilistic label tree, and explain its predictions by the nodes on the paths of the best labels."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from ...binary import arow, gd, in_words, tagged_words
from ...data.batch import Batch
from ...explain.records import ExplainedClass, Reasons, Share, Turn
from ...kernels.constants import GOLDEN
from ...reductions.core import label_arrays
from ...reductions.cpt import label_tree
from ...reductions.plt import nodes
from ...reductions.plt.options import GROWN, SAMPLED
from ...reductions.plt.reduction import LabelTree
from . import reasons, views
from .reasons import MOST_OTHERS, NOTHING, shares_of
from .views import NodeView, TreeNode

LEAST = 1e-300  # of a probability, so that its logarithm is finite


def banner(learner: LabelTree) -> list[str]:
    o, words = learner.options, learner.nodes.words
    origin = f"Tree: grown as by --plt_tree {o.plt_tree}"
    if o.plt_tree == SAMPLED:
        origin = f"Tree: built from {f'the first {o.tree_sample:,}' if o.tree_sample else 'all'} examples"
    elif o.plt_tree not in GROWN:
        origin = f"Tree: that of {o.plt_tree}"
    size = tagged_words.size(words)
    most = 0 if learner.testing or not o.max_doublings else 4 * size << o.max_doublings
    return [
        *([] if learner.loaded else [f"{origin}, up to {nodes.LANES} children each"]),
        in_words.growing(size, learner.bits, most),
    ]


def learning_lines(learner: LabelTree, binary: gd.BinaryOptions) -> list[str]:
    return ["Regressors: AROW; features are weighted by log count and inverse document frequency"]


def summary(learner: LabelTree) -> list[str]:
    return [
        *learner.report.lines(),
        f"regularisation of AROW = {arow.r_of(learner.nodes.regularisation):.3g}",
        tagged_words.occupancy([learner.nodes.words]),
        *views.lines(figures(learner)),
    ]


def figures(learner: LabelTree) -> dict[str, float]:
    own = views.figures(int(learner.tree.size[nodes.NODES]), label_tree.depths(learner.tree))
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
        yield from views.preorder(0, levels, view)


def word_tables(learner: LabelTree) -> dict[str, tagged_words.Words]:
    return {"tree": learner.nodes.words}


def explain(learner: LabelTree, batch: Batch, k: int) -> Reasons:
    """Explain the k best labels for the only example of a batch, and its own labels that the tree has.

    The score of a label is the logarithm of its probability, the sum of those of the nodes on its path.
    """
    tree = learner.tree
    if not tree.size[nodes.NODES]:
        return NOTHING
    x, found, p = learner.best_labels(batch, k + MOST_OTHERS)
    h = batch.index.astype(np.uint64) * GOLDEN
    ranked = dict(zip(found.tolist(), p.tolist(), strict=True))
    own = label_arrays.whole(batch)[: None if not np.isnan(batch.label[0]) else 0] - learner.lowest
    leaf = {y: int(label_tree.find(tree, y + 1)) for y in [*list(ranked)[:k], *own.tolist()]}

    def turn(a: int) -> Turn:
        place = 0 if a == 0 else 8 * int(tree.place[nodes.top_of(tree, a)] >> 3) + int(nodes.lane_of(tree, a))
        products, bias = reasons.of_regressor(learner.nodes.words, h, x, place), float(learner.nodes.bias[a])
        score = float(products.sum()) + bias
        side = f"branch {place & 7}" if a else "root"
        return Turn(str(a), side, score, float(nodes.probability(np.float32(score))), (
            *shares_of(products), Share("bias", bias)
        ))  # fmt: skip

    def explained(y: int) -> ExplainedClass:
        path = [leaf[y]]
        while path[0] > 0:
            path.insert(0, int(nodes.top_of(tree, path[0])))
        turns = tuple(map(turn, path))
        logs = [Share(f"node {one.node}", math.log(max(one.probability or 0.0, LEAST))) for one in turns]
        score = math.fsum(share.share for share in logs)
        return ExplainedClass(y + learner.lowest, score, math.exp(score), tuple(logs), turns, by_path=True)

    others = [
        ExplainedClass(y + learner.lowest, math.log(max(q, LEAST)), q) for y, q in ranked.items() if y not in leaf
    ]
    wanted = [y for y, a in leaf.items() if a >= 0]
    return Reasons(list(map(explained, wanted)), others, int(tree.leaves[0]), "exp(score)")
