"""Show the weights and the tree of a LOMTree."""

from __future__ import annotations

from functools import partial

import numpy as np

from ...data.batch import Batch
from ...reductions.core import tree_routers
from ...reductions.log_multi import split_cells, split_tree, split_walk
from ...reductions.log_multi.reduction import LomTree
from .views import TableView, WeightLookup


def table_view(learner: LomTree) -> TableView:
    return TableView(partial(_lookups, learner), lines=partial(_lines, learner))


def _lookups(learner: LomTree, batch: Batch) -> list[WeightLookup]:
    scratch = tree_routers.new_scratch(batch.most_features, learner.levels())
    tree_routers.load(learner.routers, batch, 0, scratch, 0, False)
    _, level = split_walk.predict(learner.tree, learner.routers, scratch, 0)
    routers = learner.tree.link[scratch.node[:level], split_tree.ROUTER].tolist()
    return [WeightLookup(0, router, router) for router in routers]


def _lines(learner: LomTree) -> list[str]:
    """Return VW's description of the tree: every node, and its counts of every label."""
    t, size = learner.tree, learner.tree.size
    used = int(size[split_tree.ROUTERS])
    lines = [
        f"k = {learner.options.log_multi}nodes = {size[split_tree.NODES]} max predictors = {learner.most_routers} "
        f"predictors_used = {used} progress = 1 "
        f"swap_resist = {learner.options.swap_resistance}"
    ]
    counted = split_cells.by_node(np.asarray(split_tree.arrays(learner.tree, learner.cells)["cells"]))
    for a in range(int(size[split_tree.NODES])):
        left, right, parent, router = t.link[a].tolist()
        labels = counted.get(a, [])
        line = f" parent = {max(parent, 0)} preds = {len(labels)} min_count = {t.count[a, split_tree.SMALLEST]}"
        if router >= 0:
            total, n = t.score[a, split_tree.SCORES], int(t.count[a, split_tree.TRAINED])
            line += (
                f" internal = 1 base_predictor = {router} left = {left} right = {right} "
                f"norm_Eh = {mean(total, n):g} Eh = {total:g} n = {n}"
            )
        else:
            line += (
                f" internal = 0 max_count = {t.count[a, split_tree.LARGEST]} "
                f"max_count_label = {t.count[a, split_tree.PREDICTION]}"
            )
        lines.append(line)
        lines += [
            f"  Ehk = {total:g} norm_Ehk = {mean(total, n):g} nk = {n} label = {y} label_count = {n + ended}"
            for y, total, n, ended in labels
        ]
    return lines


def mean(total: float, n: int) -> np.float32:
    """Return the mean of n scores with the sum `total` in float32, as in VW; 0 if n is 0."""
    return np.float32(total) / np.float32(n) if n else np.float32(0)
