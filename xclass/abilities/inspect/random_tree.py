"""Show the weights and the leaves of a random tree."""

from __future__ import annotations

from functools import partial

import numpy as np

from ...data.batch import Batch
from ...reductions.core import tree_routers
from ...reductions.random_tree import reduction
from ...reductions.random_tree.reduction import RandomTree
from .views import TableView, WeightLookup


def table_view(learner: RandomTree) -> TableView:
    return TableView(partial(_lookups, learner), lines=partial(_lines, learner))


def _lookups(learner: RandomTree, batch: Batch) -> list[WeightLookup]:
    scratch = tree_routers.new_scratch(batch.most_features, learner.levels)
    tree_routers.load(learner.routers, batch, 0, scratch, 0, False)
    _, level = reduction.predict(learner.routers, scratch, np.int64(learner.classes - 1))
    return [WeightLookup(0, a, a) for a in scratch.node[:level].tolist()]


def _lines(learner: RandomTree) -> list[str]:
    return [f"k = {learner.classes}", *(f"leaf = {i} label = {y + 1}" for i, y in enumerate(learner.order.label))]
