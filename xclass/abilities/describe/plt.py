"""Describe a probabilistic label tree, and explain its predictions by the nodes on the paths of the best labels."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from ...array_types import AnyArray, Int64s
from ...binary import arow, gd, in_words, tagged_words
from ...data import class_names
from ...data.batch import Batch
from ...explain.records import ExplainedClass, Reasons, Share, Turn
from ...kernels.constants import GOLDEN
from ...reductions.core import label_arrays
from ...reductions.core.contract import BatchTask
from ...reductions.core.label_lists import MultilabelLearner
from ...reductions.cpt import label_tree
from ...reductions.plt import nodes
from ...reductions.plt.options import GROWN, SAMPLED
from ...reductions.plt.reduction import LabelTree
from ...system.printable import printable
from . import reasons, tree_view
from .reasons import MOST_OTHERS, NOTHING, shares_of
from .tree_view import NodeView, TreeNode
from .weight_views import WordTable

LEAST = 1e-300  # of a probability, so that its logarithm is finite


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


def word_tables(learner: LabelTree) -> list[WordTable]:
    return [WordTable("tree", learner.nodes.words, True)]


def word_keys(learner: LabelTree, task: BatchTask) -> list[Int64s]:
    """Return the blocks on the paths to the labels of n examples, int64[n, k]; -1 for none.

    A path only gets longer, so it has all blocks that ever learned the label. Examples without a label learn nothing
    but the root.
    """
    tree, batch = learner.tree, task.batch
    rows = []
    for i in range(batch.n):
        blocks = {nodes.ROOT_BLOCK}
        for label in batch.labels[batch.label_start[i] : batch.label_start[i + 1]].astype(np.int64).tolist():
            a = int(label_tree.find(tree, label + 1 - learner.lowest)) if label >= learner.lowest else -1
            while a > 0:
                a = int(nodes.top_of(tree, a))
                blocks.add(int(tree.place[a]) >> 3)
        rows.append(sorted(blocks))
    keys = np.full((batch.n, max(map(len, rows), default=1)), -1)
    for key, row in zip(keys, rows, strict=True):
        key[: len(row)] = row
    return [keys]


def word_places(learner: LabelTree, table: int, key: Int64s, number: Int64s) -> AnyArray:
    """Return the nodes of words as text in brackets, object[n] of bytes, empty if there is none.

    `key` are their blocks, and `number` their lanes.
    """
    tree = learner.tree
    of_lane = {(int(tree.place[nodes.top_of(tree, a)]) >> 3, int(nodes.lane_of(tree, a))): a for a in children(learner)}
    of_lane[nodes.ROOT_BLOCK, 0] = 0
    found = (of_lane.get(pair) for pair in zip(key.tolist(), number.tolist(), strict=True))
    return np.array([b"" if a is None else f"[node {a} depth {tree.depth[a]}]".encode() for a in found], object)


def word_lines(learner: LabelTree) -> Iterator[str]:
    """Yield lines of the readable model about the nodes that have a regressor."""
    tree = learner.tree
    for a in [0, *children(learner)] if tree.size[nodes.NODES] else []:
        label = int(tree.label[a]) - 1 + learner.lowest
        name = printable(class_names.text_of(label, learner.names)) if learner.lowest else label
        rest = f" label = {name}" if tree.left[a] == 0 else ""
        above = f" above = {nodes.top_of(tree, a)} lane = {nodes.lane_of(tree, a)}" if a else ""
        seen = "" if learner.predict_only else f" sum = {learner.nodes.seen[a]:g}"
        yield f"node = {a}{above} bias = {learner.nodes.bias[a]:g}{seen}{rest}"


def children(learner: LabelTree) -> list[int]:
    """Return the nodes that have a regressor, without the root: leaves, and tops of blocks."""
    tree, m = learner.tree, int(learner.tree.size[nodes.NODES])
    own = (tree.left[:m] == 0) | (tree.place[:m] & 7 == 1)
    found: list[int] = (np.flatnonzero(own[1:]) + 1).tolist()
    return found


def explain(learner: LabelTree, batch: Batch, k: int) -> Reasons:
    """Explain the k best labels for the only example of a batch, and its own labels."""
    tree = learner.tree
    if not tree.size[nodes.NODES]:
        return NOTHING
    x, found, p = learner.best_labels(batch, k + MOST_OTHERS)
    h = batch.index.astype(np.uint64) * GOLDEN

    def turn(a: int) -> Turn:
        place = 0 if a == 0 else 8 * int(tree.place[nodes.top_of(tree, a)] >> 3) + int(nodes.lane_of(tree, a))
        products, bias = reasons.of_regressor(learner.nodes.words, h, x, place), float(learner.nodes.bias[a])
        score = float(products.sum()) + bias
        side = f"branch {place & 7}" if a else "root"
        return Turn(str(a), side, score, float(nodes.probability(np.float32(score))), (
            *shares_of(products), Share("bias", bias)
        ))  # fmt: skip

    ranked = dict(zip(found.tolist(), p.tolist(), strict=True))
    return by_paths(
        learner, batch, k, ranked, int(tree.leaves[0]), lambda y: int(label_tree.find(tree, y + 1)),
        lambda a: int(nodes.top_of(tree, a)), turn,
    )  # fmt: skip


def by_paths(
    learner: MultilabelLearner, batch: Batch, k: int, ranked: dict[int, float], labels: int,
    leaf: Callable[[int], int], parent: Callable[[int], int], turn: Callable[[int], Turn],
) -> Reasons:  # fmt: skip
    """Explain the first k ranked labels, and the own labels of the only example of a batch that the tree has.

    The score of a label is the logarithm of its probability, the sum of those of the nodes on its path. `ranked` are
    labels from 0 and their probabilities, in falling order, and `labels` is the number of all labels. The leaf of a
    label that the tree does not have is -1; node 0 is the root. `turn` returns what a node says.
    """
    own = label_arrays.whole(batch)[: None if not np.isnan(batch.label[0]) else 0] - learner.lowest
    wanted = dict.fromkeys([*list(ranked)[:k], *(y for y in own.tolist() if leaf(y) >= 0)])

    def explained(y: int) -> ExplainedClass:
        path = [leaf(y)]
        while path[0] > 0:
            path.insert(0, parent(path[0]))
        turns = tuple(map(turn, path))
        logs = [Share(f"node {one.node}", math.log(max(one.probability or 0.0, LEAST))) for one in turns]
        score = math.fsum(share.share for share in logs)
        return ExplainedClass(y + learner.lowest, score, math.exp(score), tuple(logs), turns, by_path=True)

    others = [
        ExplainedClass(y + learner.lowest, math.log(max(q, LEAST)), q) for y, q in ranked.items() if y not in wanted
    ]
    return Reasons(list(map(explained, wanted)), others, labels, "exp(score)")
