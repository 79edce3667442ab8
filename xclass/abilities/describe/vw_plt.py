"""Describe a probabilistic label tree."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from ...binary import gd, in_words
from ...data.batch import Batch
from ...reductions.core import label_arrays
from ...reductions.plt import vw_nodes
from ...reductions.plt.vw_learner import VwLabelTree
from . import tree_view
from .tree_view import NodeView, TreeNode
from .weight_views import TableView, WeightLookup


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


def table_view(learner: VwLabelTree) -> TableView:
    exclusive = learner.learner_options.layout == "vw"
    return TableView(partial(_lookups, learner), exclusive, lines=lambda: [f"k = {learner.tree.labels}"])


def _lookups(learner: VwLabelTree, batch: Batch) -> list[WeightLookup]:
    """Return the nodes on the paths of the predicted labels and their siblings, then those that the example trains."""
    tree, found = learner.tree, learner.best_labels(batch)[0]
    own = label_arrays.whole(batch) - learner.lowest
    trained = [*_trained(tree, found.tolist())]
    if not np.isnan(batch.label[0]):
        trained += [n for n in _trained(tree, own[(own >= 0) & (own < tree.labels)].tolist()) if n not in trained]
    return [WeightLookup(0, n, n) for n in trained]


def _trained(tree: vw_nodes.Tree, labels: Sequence[int]) -> list[int]:
    """Return the nodes that an example with these labels trains: those on the paths, and their siblings."""
    above: set[int] = set()
    for label in labels:
        n = tree.inner + label
        while n > 0:
            n = (n - 1) // tree.arity
            above.add(n)
    children = (range(tree.arity * n + 1, min(tree.arity * (n + 1) + 1, tree.nodes)) for n in sorted(above))
    return [0, *itertools.chain.from_iterable(children)]
