"""Describe conditional probability trees and their scorers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from ...array_types import Float64s, Int64s, UInt32s
from ...binary import feature_scaling, gd, in_words, tagged_words
from ...reductions.cpt import label_tree
from ...reductions.cpt.binary_nodes import DEEPEST, NODES
from ...reductions.cpt.label_tree import Tree
from ...reductions.cpt.options import GROWN, SAMPLED, index_bytes, weight_bytes
from ...reductions.cpt.reduction import ProbabilityTree
from ...reductions.means.reduction import Means
from ...reductions.multiclass.reduction import Multiclass
from ...reductions.multiclass.with_rows import MulticlassWithRows
from ..inspect.cpt import weight_tables
from . import means, tree_view
from .tree_view import NodeView, TreeNode


def banner(learner: ProbabilityTree) -> list[str]:
    o = learner.options
    lines = [f"Trees: {o.trees}, {o.cpt_arity} branches per node", *_tree_origin(learner)]
    if o.rerank:
        index = f" and {o.index_candidates} from the index" if learner.index is not None else ""
        lines.append(f"Candidates: {o.candidates} per tree{index}; one scorer per class decides")
    elif o.trees > 1:
        lines.append(f"Candidates: {o.candidates} per tree; the trees vote")
    number = sum(tagged_words.size(weights.words) for weights in weight_tables(learner))
    weights, used = f"Weights: {number:,} of 4 bytes (-b {learner.bits}), ", 4 * number
    if o.max_doublings and not learner.testing:
        most = weight_bytes(o, learner.bits) << o.max_doublings
        lines.append(f"{weights}{in_words.size(used)}, growing to at most {in_words.size(most)}")
    else:
        lines.append(f"{weights}at most {in_words.size(used)}")
    if learner.index is not None:
        memory = in_words.size(index_bytes(o))
        lines.append(f"Index: {o.index_slots} classes for each of 2^{o.index_bits} features, at most {memory}")
    return lines


def _tree_origin(learner: ProbabilityTree) -> list[str]:
    """Return the line about how trees are built, for the banner; none for the default and for a loaded model."""
    o = learner.options
    if o.cpt_tree in SAMPLED:
        examples = f"the first {o.tree_sample:,} examples" if o.tree_sample else "all examples"
        basis = "similar classes" if o.cpt_tree == "kmeans" else "class frequencies"
        return [f"Tree built from: {basis} in {examples}"] if learner.sample is not None else []
    if o.cpt_tree in GROWN:
        places = {"balanced": ["Classes placed: by balance alone"], "random": ["Classes placed: at random"]}
        return places.get(o.cpt_tree, [])
    return [] if learner.loaded else [f"Tree built from: {o.cpt_tree}"]


def learning_lines(learner: ProbabilityTree, binary: gd.Options) -> list[str]:
    scorers = f" for trees, {learner.options.rerank_rate:g} for scorers" if learner.options.rerank else ""
    rule = "plain gradient descent" if binary.sgd else "AdaGrad"
    return [f"Learning rate: {binary.learning_rate:g}{scorers} ({rule})", in_words.loss(binary)]


def _means_alone(learner: ProbabilityTree) -> Means | None:
    """Return the class means of a learner that has learned nothing but dense rows, else None."""
    if not isinstance(learner, MulticlassWithRows) or learner.has_features or learner.means.classes is None:
        return None
    return learner.means


def summary(learner: ProbabilityTree) -> list[str]:
    alone = _means_alone(learner)
    if alone is not None:
        return means.summary(alone)
    known, shares = figures(learner), []
    depth = max(int(member.tree.size[DEEPEST]) for member in learner.members)
    if isinstance(learner, Multiclass) and learner.label_weight > 0:
        shares.append(f"label not proposed (routing error) = {known['routing_error']:.6f}")
        shares.append(f"label proposed, not chosen (scoring error) = {known['scoring_error']:.6f}")
    weighted = []
    if learner.frequencies is not None and learner.frequencies.active:
        weighted.append("features are weighted by inverse document frequency")
    shares.append(tagged_words.occupancy([weights.words for weights in weight_tables(learner)]))
    return [
        *learner.report.lines(), *shares, *(learner.scales.summary_lines if learner.scales is not None else []),
        *weighted,
        *(means.facts_of_rows(learner.means) if isinstance(learner, MulticlassWithRows) else []),
        *(learner.searched.lines() if learner.searched is not None else []),
        f"classes in the tree = {known['classes_in_tree']}{learner.placed_text}, depth = {depth}",
        *tree_view.lines(known),
    ]  # fmt: skip


def figures(learner: ProbabilityTree) -> dict[str, float]:
    alone = _means_alone(learner)
    if alone is not None:
        return means.figures(alone)
    figures = learner.report.figures()
    if isinstance(learner, Multiclass) and learner.label_weight > 0:
        figures["routing_error"] = learner.not_proposed / learner.label_weight
        figures["scoring_error"] = learner.not_chosen / learner.label_weight
    figures["classes_in_tree"] = (int(learner.members[0].tree.size[NODES]) + 1) // 2
    nodes = sum(int(member.tree.size[NODES]) for member in learner.members)
    depths = np.concatenate([label_tree.depths(member.tree) for member in learner.members])
    return {**figures, **tree_view.figures(nodes, depths)}


def outline(learner: ProbabilityTree, levels: int) -> Iterator[TreeNode]:
    for t, member in enumerate(learner.members):
        if member.tree.size[NODES]:
            look = partial(_node_view, member.tree)
            yield from tree_view.preorder(0, levels, look, learner.node_name(t))


def class_counts(learner: ProbabilityTree) -> tuple[Int64s, Float64s] | None:
    alone = _means_alone(learner)
    if alone is not None:
        return means.class_counts(alone)
    if learner.index is None:
        return None
    index = learner.index.index
    size = int(index.size[0])
    return index.label[:size], index.weight[:size]


def feature_counts(learner: ProbabilityTree, index: UInt32s) -> Float64s | None:
    """Return the weight of the learned examples with each feature, None if they are not counted or packed."""
    if learner.frequencies is None or len(learner.frequencies.bitmap):  # packed counts belong to other slots
        return None
    return learner.frequencies.count[feature_scaling.slots_of(index)]


def _node_view(tree: Tree, a: int) -> NodeView:
    left = int(tree.left[a])
    if left == 0:
        return NodeView(labels=((int(tree.label[a]), None),))
    return NodeView((left, left + 1), facts={"leaves": int(tree.leaves[a])})
