"""Describe a random tree, and explain its predictions by the routers on the way to their leaves."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from ...binary import gd
from ...data.batch import Batch
from ...explain.records import Reasons
from ...reductions.core import tree_routers
from ...reductions.random_tree import reduction
from ...reductions.random_tree.reduction import RandomTree
from . import views
from .reasons import Way
from .views import TableView, TreeNode


def banner(learner: RandomTree) -> list[str]:
    return [
        "Tree: balanced, with the classes in random order",
        tree_routers.weights_line(learner.routers, learner.learner_options),
    ]


def learning_lines(learner: RandomTree, binary: gd.BinaryOptions) -> list[str]:
    return tree_routers.learning_lines(learner.routers, binary)


def figures(learner: RandomTree) -> dict[str, float]:
    k = learner.classes
    deepest = (k - 1).bit_length()
    shallow = (1 << deepest) - k  # leaves one level higher
    return {"nodes": 2 * k - 1, "leaves": k, "mean_depth": deepest - shallow / k, "largest_depth": deepest}


def outline(learner: RandomTree, levels: int) -> Iterator[TreeNode]:
    inner = learner.classes - 1

    def view(a: int) -> views.NodeView:
        if a >= inner:
            return views.NodeView(labels=((int(learner.order.label[a - inner]) + 1, None),))
        return views.NodeView((2 * a + 1, 2 * a + 2), facts={"leaves": _leaves(learner, a)})

    return views.preorder(0, levels, view)


def _leaves(learner: RandomTree, a: int) -> int:
    first = last_of_level = a
    count = 0
    last = 2 * learner.classes - 2
    while first <= last:
        count += max(0, min(last_of_level, last) - max(first, learner.classes - 1) + 1)
        first, last_of_level = 2 * first + 1, 2 * last_of_level + 2
    return count


def table_view(learner: RandomTree) -> TableView:
    return TableView(lambda batch: _walk(learner, batch)[1].lookups, lines=partial(_lines, learner))


def _walk(learner: RandomTree, batch: Batch) -> tuple[int, Way]:
    """Return the leaf that the only example of a batch reaches, and its way."""
    scratch = tree_routers.new_scratch(batch.most_features, learner.levels)
    tree_routers.load(learner.routers, batch, 0, scratch, 0, False)
    leaf, level = reduction.predict(learner.routers, scratch, np.int64(learner.classes - 1))
    routers = [-1]
    for a in scratch.node[:level].tolist():
        routers.append(int(reduction.router_below(np.int64(routers[-1]), np.int64(a), learner.routers.vw_layout)))
    return int(leaf), Way(scratch, routers[1:])


def _lines(learner: RandomTree) -> list[str]:
    return [f"k = {learner.classes}", *(f"leaf = {i} label = {y + 1}" for i, y in enumerate(learner.order.label))]


def explain(learner: RandomTree, batch: Batch, k: int) -> Reasons:
    leaf, way = _walk(learner, batch)
    return way.reasons(learner.routers, int(learner.order.label[leaf]) + 1)
