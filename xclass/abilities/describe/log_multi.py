"""Describe a LOMTree, and explain its predictions by the routers on the way to their leaves."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from ...array_types import Float64s
from ...binary import gd
from ...data.batch import Batch
from ...explain.records import Reasons
from ...reductions.core import tree_routers
from ...reductions.log_multi import split_cells, split_tree, split_walk
from ...reductions.log_multi.reduction import LomTree
from . import views
from .reasons import Way
from .views import TableView, TreeNode


def banner(learner: LomTree) -> list[str]:
    tree = f"Tree: up to {learner.most_routers:,} routers; swap resistance {learner.options.swap_resistance}"
    return [tree, tree_routers.weights_line(learner.routers, learner.learner_options), *_crowding(learner)]


def vw_banner(learner: LomTree) -> list[str]:
    return [
        f"log_multi: max_predictors = {learner.most_routers} swap_resistance = {learner.options.swap_resistance} "
        f"routers' loss = {learner.learner_options.loss_function}",
        f"memory: {tree_routers.memory(learner.routers) / 2**20:.0f} MB of weights",
        *_crowding(learner),
    ]


def learning_lines(learner: LomTree, binary: gd.BinaryOptions) -> list[str]:
    return tree_routers.learning_lines(learner.routers, binary)


def summary(learner: LomTree) -> list[str]:
    known, tree = figures(learner), learner.tree
    most = tree.count[: tree.size[split_tree.NODES], split_tree.RECYCLED].max()
    recycled = f"recycled nodes = {known['recycled_nodes']}, each at most {most} times"
    return [*views.lines(known), f"swaps = {known['swaps']}, {recycled}"]


def figures(learner: LomTree) -> dict[str, float]:
    tree, nodes = learner.tree, int(learner.tree.size[split_tree.NODES])
    depth = np.full(len(tree.link), -1, np.int32)
    split_tree.depths(tree, depth)  # nodes that cannot be reached stay -1
    leaf = (tree.link[:nodes, split_tree.ROUTER] < 0) & (depth[:nodes] >= 0)
    recycled = np.count_nonzero(tree.count[:nodes, split_tree.RECYCLED])
    figures = {"swaps": int(tree.size[split_tree.SWAPS]), "recycled_nodes": int(recycled)}
    return {**views.figures(nodes, depth[:nodes][leaf]), **figures}


def objectives(tree: split_tree.SplitTree, cells: split_cells.Cells) -> Float64s:
    """Return J of every node, equation (1) of the paper, by the examples at its children; NaN if there are none.

    J = 2 sum_i pi_i |P(right) - P(right | i)|, where pi_i is the share of label i. It is 1 for a pure and balanced
    split, and 0 if labels go right equally often.
    """
    words, nodes = split_cells.array(cells, split_tree.versions(tree)), int(tree.size[split_tree.NODES])
    node = (words[:, 0] >> np.uint64(32)).astype(np.int64) - 1
    count = words.view(np.int64)[:, split_cells.TRAINED] + words.view(np.uint32)[:, split_cells.ENDED]
    parent = tree.link[node, split_tree.PARENT].astype(np.int64)
    right = np.where(tree.link[parent, split_tree.RIGHT] == node, count, 0)
    label = (words[:, 0] & np.uint64(0xFFFFFFFF)).astype(np.int64)
    below = parent >= 0
    pair, at = np.unique((parent[below] << 32) | label[below], return_inverse=True)
    seen, gone_right = np.bincount(at, count[below]), np.bincount(at, right[below])
    node = pair >> 32
    with np.errstate(invalid="ignore"):
        mean = np.bincount(node, gone_right, nodes) / np.bincount(node, seen, nodes)
        total = np.bincount(node, np.abs(seen * mean[node] - gone_right), nodes)
        objective: Float64s = 2.0 * total / np.bincount(node, seen, nodes)
    return objective


def outline(learner: LomTree, levels: int) -> Iterator[TreeNode]:
    t = learner.tree
    objective = objectives(t, learner.cells)

    def view(a: int) -> views.NodeView:
        left, right, _, router = t.link[a].tolist()
        row = t.count[a]
        facts: dict[str, object] = {"examples": int(row[split_tree.ARRIVED]), "labels": int(row[split_tree.LABELS])}
        if router >= 0:
            average = mean(t.score[a, split_tree.SCORES], int(row[split_tree.TRAINED]))
            facts.update({"router": router, "mean score": f"{average:.3g}"})
            if not np.isnan(objective[a]):
                facts["J"] = f"{objective[a]:.3g}"
            labels: tuple[tuple[int, float], ...] = ()
        else:
            labels = ((int(row[split_tree.PREDICTION]), float(row[split_tree.LARGEST])),)
        facts["smallest leaf"] = int(row[split_tree.SMALLEST])
        if row[split_tree.RECYCLED]:
            facts["recycled"] = int(row[split_tree.RECYCLED])
        children = (left, right) if router >= 0 else ()
        return views.NodeView(children, labels, facts)

    return views.preorder(int(t.size[split_tree.ROOT]), levels, view)


def _crowding(learner: LomTree) -> list[str]:
    o = learner.learner_options
    return gd.crowding_warning(
        o.bits, max(1, learner.most_routers), int(learner.routers.table.width), o.layout, "router"
    )


def table_view(learner: LomTree) -> TableView:
    return TableView(lambda batch: _walk(learner, batch)[1].lookups, lines=partial(_lines, learner))


def _walk(learner: LomTree, batch: Batch) -> tuple[int, Way]:
    """Return the leaf that the only example of a batch reaches, and its way."""
    scratch = tree_routers.new_scratch(batch.most_features, learner.levels())
    tree_routers.load(learner.routers, batch, 0, scratch, 0, False)
    leaf, level = split_walk.predict(learner.tree, learner.routers, scratch, 0)
    return int(leaf), Way(scratch, learner.tree.link[scratch.node[:level], split_tree.ROUTER].tolist())


def _lines(learner: LomTree) -> list[str]:
    """Return VW's description of the tree: every node, and its counts of every label."""
    t, size = learner.tree, learner.tree.size
    used = int(size[split_tree.ROUTERS])
    lines = [
        f"k = {learner.options.log_multi}nodes = {size[split_tree.NODES]} max predictors = {learner.most_routers} "
        f"predictors_used = {used} progress = 1 "
        f"swap_resist = {learner.options.swap_resistance}"
    ]
    counted = split_cells.by_node(split_cells.array(learner.cells, split_tree.versions(learner.tree)))
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


def explain(learner: LomTree, batch: Batch, k: int) -> Reasons:
    leaf, way = _walk(learner, batch)
    return way.reasons(learner.routers, int(learner.tree.count[leaf, split_tree.PREDICTION]))
