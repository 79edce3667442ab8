"""Explain a prediction of a random tree by the routers on the way to its leaf."""

from __future__ import annotations

import numpy as np

from ...data.batch import Batch
from ...explain.records import ExplainedClass, Reasons
from ...reductions.core import tree_routers
from ...reductions.random_tree import reduction
from ...reductions.random_tree.reduction import RandomTree
from .reasons import turns_of


def explain(learner: RandomTree, batch: Batch, k: int) -> Reasons:
    scratch = tree_routers.new_scratch(batch.most_features, learner.levels)
    tree_routers.load(learner.routers, batch, 0, scratch, 0, False)
    leaf, level = reduction.predict(learner.routers, scratch, np.int64(learner.classes - 1))
    nodes, numbers = scratch.node[:level].tolist(), [-1]
    for a in nodes:
        below = reduction.router_below(np.int64(numbers[-1]), np.int64(a), learner.routers.vw_layout)
        numbers.append(int(below))
    way = zip(nodes, numbers[1:], scratch.score[:level].tolist(), strict=True)
    label = int(learner.order.label[leaf]) + 1
    return Reasons([ExplainedClass(label, path=turns_of(learner.routers, scratch, way))], [], 1)
