"""Describe conditional probability trees and their scorers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from ...array_types import AnyArray, Float64s, Int64s, UInt32s
from ...binary import feature_scaling, gd, in_words, tagged_words
from ...binary.adagrad import Weights
from ...data import class_names
from ...reductions.core.contract import BatchTask
from ...reductions.cpt import binary_nodes, label_tree, wide_nodes
from ...reductions.cpt.label_tree import DEEPEST, NODES, Tree
from ...reductions.cpt.options import GROWN, SAMPLED, index_bytes, weight_bytes
from ...reductions.cpt.reduction import ProbabilityTree
from ...reductions.cpt.tree_member import Member
from ...reductions.means.reduction import Means
from ...reductions.multiclass import reranking
from ...reductions.multiclass.reduction import Multiclass
from ...reductions.multiclass.with_rows import MulticlassWithRows
from ...system.printable import printable
from . import means, tree_view
from .tree_view import NodeView, TreeNode
from .weight_views import WordTable


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


def weight_tables(learner: ProbabilityTree) -> list[Weights]:
    scorers = [] if learner.scorers is None else [learner.scorers.weights]
    return [*(member.weights for member in learner.members), *scorers]


def word_tables(learner: ProbabilityTree) -> list[WordTable]:
    """Return the tables of the trees and of the scorers as they are now."""
    names = [f"tree{t}" for t in range(len(learner.members))]
    tables = [WordTable(name, table.words, True) for name, table in zip(names, weight_tables(learner), strict=False)]
    scorers = learner.scorers
    return tables + ([WordTable("scorers", scorers.weights.words, False)] if scorers is not None else [])


def word_keys(learner: ProbabilityTree, task: BatchTask) -> list[Int64s]:
    """Return for each table the keys with which it finds the words of n examples, int64[n, k]; -1 for none.

    These are the blocks on the paths to the labels, and the classes whose scorers saw the examples. A path only gets
    longer, so it has all nodes that ever learned the label. Examples without a label follow the path of their
    prediction. All stages have seen the task.
    """
    assert task.prediction is not None  # made by the stages
    label = np.where(np.isnan(task.batch.label), task.prediction, task.batch.label).astype(np.int64)
    keys = [_blocks(member, label) for member in learner.members]
    if learner.scorers is not None:
        assert task.candidates is not None  # made by the last stage
        classes = np.concatenate([label[:, None], task.candidates], axis=1)
        keys.append(np.where(classes > 0, classes, -1))
    return keys


def word_places(learner: ProbabilityTree, table: int, key: Int64s, number: Int64s) -> AnyArray:
    """Return what words of a table belong to as text in brackets, object[n] of bytes: nodes or classes, empty if none.

    `key` are their keys, and `number` those of their regressors within the block, from the tags of the words.
    """
    if table < len(learner.members):
        return _node_places(learner.members[table], 8 * key + number, learner.node_name(table))
    label, inverse = np.unique(key, return_inverse=True)
    texts = [f"[class {_class_name(learner, y)}]".encode("utf-8", "surrogateescape") for y in label.tolist()]
    return np.array(texts, object)[inverse.reshape(-1)]


def word_lines(learner: ProbabilityTree) -> Iterator[str]:
    """Yield lines of the readable model about the nodes of the trees and the parameters of the scorers."""
    yield f"trees = {len(learner.members)}"
    for t, member in enumerate(learner.members):
        yield from _node_lines(member.tree, f"tree = {t} ", lambda label: _class_name(learner, label))
    if learner.scorers is not None:
        names = [*(f"v{v}" for v in range(reranking.OFFSETS)), "A", "B", "D", "E", "M", "T"]
        yield from (f"{name} = {value:g}" for name, value in zip(names, learner.scorers.state[0], strict=True))


def _node_lines(tree: Tree, front: str, class_name: Callable[[int], str]) -> Iterator[str]:
    """Yield a line for each node of the readable model, which begins with `front`."""
    nodes = int(tree.size[NODES])
    columns = [array[:nodes].tolist() for array in (tree.parent, tree.depth, tree.left, tree.label)]
    for a, (parent, depth, left, label) in enumerate(zip(*columns, strict=True)):
        rest = f"left = {left} right = {left + 1}" if left > 0 else f"label = {class_name(label)}"
        yield f"{front}node = {a} parent = {parent} depth = {depth} {rest}"


def _blocks(member: Member, label: Int64s) -> Int64s:
    """Return int64[n, k]: the blocks of words whose regressors learn examples of these labels (0 for none), or -1."""
    tree, m = member.tree, 1 << member.levels
    unique, inverse = np.unique(label, return_inverse=True)
    node = np.empty(len(unique), np.int64)
    label_tree.find_all(tree, unique, node)
    columns = [np.full(len(unique), -1)]
    while np.any(node >= 0):
        if member.kernels is binary_nodes:
            block = np.where(node >= 0, tree.place[node] >> 3, -1)
            above = tree.place[tree.parent[node]] >> 3
            columns.append(np.where((node > 0) & (above == block), -1, block))  # each block once
        else:
            has_block = (node >= 0) & (tree.depth[node] % member.levels == 0)
            first = m * (node + 1) >> 3  # see `wide_nodes._place`
            columns += [np.where(has_block, first + b, -1) for b in range(max(1, m >> 3))]
        node = np.where(node >= 0, tree.parent[node], -1)
    return np.stack(columns, axis=1)[inverse.reshape(-1)]


def _node_places(member: Member, place: Int64s, name: str) -> AnyArray:
    """Return the nodes of places of regressors as text in brackets, object[n] of bytes; empty if there is no node."""
    nodes, m = int(member.tree.size[NODES]), 1 << member.levels
    if member.kernels is binary_nodes:
        order = np.argsort(member.tree.place[:nodes])
        ordered = member.tree.place[:nodes][order]
        at = np.minimum(np.searchsorted(ordered, place), nodes - 1)
        node, exists = order[at], ordered[at] == place
    else:
        node = place // m - 1
        exists = node < nodes
        node = np.minimum(node, nodes - 1)
    before, after = name.encode().split(b"{}")
    text = b"[node " + before + _as_text(node) + after + b" depth " + _as_text(member.tree.depth[node])
    if member.kernels is wide_nodes:
        text = text + b" regressor " + _as_text(place % m)
    return np.where(exists, text + b"]", b"")


def _as_text(number: AnyArray) -> AnyArray:
    return number.astype("S").astype(object)


def _class_name(learner: ProbabilityTree, label: int) -> str:
    return printable(class_names.text_of(label, learner.names))
