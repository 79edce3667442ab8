"""Predict and learn batches of examples with a LOMTree: the main loop of Algorithm 1.

Source    Choromanska, Langford, "Logarithmic Time Online Multiclass Prediction", NIPS 2015, Algorithm 1.
Cost      O(s depth) for an example of s features.
Names     T most inner nodes | R_S resistance | C of a node, the examples of the smallest leaf below it.
Idea      The loop is bound by memory latency, so a group of examples first descends together and their cache misses
          overlap; then they are predicted and learned one after the other.

In the kernels, `scratch` has the features of a group of examples; `g` is the position of an example in its group.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...array_types import Bools, Float32s, Float64s, Int, Int64s
from ...data.batch import Batch
from ...kernels.constants import INFINITE, ONE, ZERO
from ...kernels.jit import bare
from ..core import tree_routers
from ..core.tree_routers import GroupScratch, Routers
from . import split_tree
from .split_cells import Cells
from .split_tree import SplitTree


class SplitTreeSettings(NamedTuple):
    most_routers: int  # T, --max_predictors
    resistance: int  # R_S, --swap_resistance
    as_vw: bool  # --lom_rules vw
    keep_scores: bool  # whether the scores of the routers on the path are wanted


class LogMultiPredictions(NamedTuple):
    """Hold the results of a batch of n examples.

    The scores of example i are at positions `first[i]` to `first[i + 1]` (exclusive).
    """

    predicted: Int64s  # int64[n], predicted label
    first: Int64s  # int64[n + 1], start of each example's scores
    node: Int64s  # int64[capacity], node whose router gave the score
    score: Float32s  # float32[capacity]
    scored: Bools  # bool[n], whether a router scored the example; not written where `_prefetch_walk` finds the leaf


# -- kernels


@bare
def _fits(
    tree: SplitTree, cells: Cells, settings: SplitTreeSettings, scratch: GroupScratch, output: LogMultiPredictions,
    i: Int, size: int, learning: bool,
) -> bool:  # fmt: skip
    """Return whether tree, cells, scratch and output have space for the examples [i, i + size) of a batch."""
    levels = split_tree.levels(tree) + size + 1
    if learning and not split_tree.has_capacity(tree, cells, size):
        return False
    if levels > scratch.node.shape[0]:
        return False
    return not settings.keep_scores or output.first[i] + levels * size <= output.node.shape[0]


@bare
def _child(tree: SplitTree, regressors: Routers, a: Int, s: np.float32) -> np.int64:
    """Return the child of node a to which an example with score s goes."""
    right = not tree_routers.routing_score(regressors, s) < ZERO
    return np.int64(tree.link[a, split_tree.RIGHT if right else split_tree.LEFT])


@bare
def _prefetch_walk(
    tree: SplitTree, cells: Cells, regressors: Routers, scratch: GroupScratch, label: Int64s, learns: Bools, begin: int,
    size: int,
) -> None:  # fmt: skip
    """Descend with the examples [begin, begin + size) together, and prefetch the memory that they will need.

    Each example pauses where a new block of routers begins, so that the cache misses of the group overlap. If nothing
    is learned, `scratch.at` holds the leaves afterwards. Otherwise an example may take another path when it is learned,
    because routers change with earlier examples, and because each router is trained before it decides. A second walk
    (`scratch.other`) therefore follows the directions towards which the routers will be trained, so that most of the
    memory of the path is prefetched. `label` is int64[n], and `learns` bool[n], whether each example is learned.
    """
    root = tree.size[split_tree.ROOT]
    for g in range(size):
        scratch.at[g] = root
        scratch.other[g] = root if learns[begin + g] else -1
        if not split_tree.is_leaf(tree, root):
            tree_routers.locate_block(regressors, scratch, g, np.int64(tree.link[root, split_tree.ROUTER]) >> 3)
        if learns[begin + g]:
            split_tree.prefetch_counts(tree, cells, root, label[begin + g])
    walking = True
    while walking:
        walking = False
        for g in range(size):
            a = scratch.at[g]
            while not split_tree.is_leaf(tree, a):
                router = np.int64(tree.link[a, split_tree.ROUTER])
                if router >> 3 != scratch.block[g]:
                    tree_routers.locate_block(regressors, scratch, g, router >> 3)
                    walking = True
                    break
                a = _child(tree, regressors, a, tree_routers.score(regressors, scratch, g, router))
            scratch.at[g] = a
            a = scratch.other[g]
            if a >= 0 and not split_tree.is_leaf(tree, a):
                walking = True
                block = np.int64(tree.link[a, split_tree.ROUTER]) >> 3
                left = split_tree.guess(tree, cells, a, label[begin + g])
                a = np.int64(tree.link[a, split_tree.LEFT if left else split_tree.RIGHT])
                split_tree.prefetch_counts(tree, cells, a, label[begin + g])
                next_block = np.int64(tree.link[a, split_tree.ROUTER]) >> 3
                if next_block != block and next_block >= 0:
                    tree_routers.prefetch_block(regressors, scratch, g, next_block)
                scratch.other[g] = a


@bare
def predict(tree: SplitTree, regressors: Routers, scratch: GroupScratch, g: Int) -> tuple[Int, int]:
    """Descend from the root to a leaf; return the leaf and the number of routers on the path.

    `node` and `score` of the scratch are written, one entry for each level.
    """
    a = tree.size[split_tree.ROOT]
    level = 0
    while not split_tree.is_leaf(tree, a):
        s = tree_routers.score(regressors, scratch, g, np.int64(tree.link[a, split_tree.ROUTER]))
        scratch.node[level] = a
        scratch.score[level] = s
        level += 1
        a = _child(tree, regressors, a, s)
    return a, level


@bare
def _counted(regressors: Routers, s: np.float32) -> float:
    """Return what a score adds to the sums of scores: 0 if it is not finite, except with --vw_exact."""
    return np.float64(s) if not regressors.rule.checked or abs(s) < INFINITE else 0.0


@bare
def _learn(
    tree: SplitTree, cells: Cells, settings: SplitTreeSettings, regressors: Routers, scratch: GroupScratch, g: Int,
    known: int, label: Int, weight: np.float32, clock: np.float64,
) -> None:  # fmt: skip
    """Learn one example (Algorithm 1).

    `known` is the number of levels whose scores `scratch.node` and `scratch.score` hold; a score is reused while the
    path is the same.
    """
    a = tree.size[split_tree.ROOT]
    level = 0
    while True:
        at = split_tree.arrive(tree, cells, a, label)
        if split_tree.is_leaf(tree, a):
            if not split_tree.should_split(tree, a, settings.most_routers, settings.resistance):
                split_tree.end(tree, cells, a, at)
                return
            full = tree.size[split_tree.ROUTERS] >= settings.most_routers
            if full and settings.as_vw and split_tree.smallest_is_below_root(tree):
                router = split_tree.collapse(tree, a)
                s = tree_routers.score(regressors, scratch, g, router)
                s = tree_routers.learn(regressors, scratch, g, router, s, ONE, weight, clock)
                if not tree_routers.routing_score(regressors, s) < ZERO:
                    split_tree.end(tree, cells, 0, split_tree.arrive(tree, cells, 0, label))
                return
            split_tree.split(tree, a, settings.most_routers, not regressors.vw_layout, level)
        split_tree.prefetch_counts(tree, cells, np.int64(tree.link[a, split_tree.LEFT]), label)
        split_tree.prefetch_counts(tree, cells, np.int64(tree.link[a, split_tree.RIGHT]), label)
        router = np.int64(tree.link[a, split_tree.ROUTER])
        if level >= known or scratch.node[level] != a:
            known = 0
        s = scratch.score[level] if known > 0 else tree_routers.score(regressors, scratch, g, router)
        y = -ONE if split_tree.expects_more(tree, cells, a, at) else ONE
        s = tree_routers.learn(regressors, scratch, g, router, s, y, weight, clock)
        split_tree.trained(tree, cells, a, at, _counted(regressors, s))
        a = _child(tree, regressors, a, s)
        level += 1


@bare
def process_batch(
    tree: SplitTree, cells: Cells, settings: SplitTreeSettings, regressors: Routers, batch: Batch, label: Int64s,
    learns: Bools, clock: Float64s, begin: int, end: int, scratch: GroupScratch, output: LogMultiPredictions,
) -> int:  # fmt: skip
    """Predict the examples [begin, end) of a batch, and learn those that `learns` (bool[n]) selects.

    `label` is int64[n], and `clock` float64[n], weight of the labelled examples up to and including each one. Return
    the index of the first example not processed, which is less than `end` if tree, cells, `scratch` or `output` have to
    grow first.
    """
    group = scratch.at.shape[0]
    for first in range(begin, end, group):
        size = min(group, end - first)
        learning = False
        for g in range(size):
            learning |= learns[first + g]
        if not _fits(tree, cells, settings, scratch, output, first, size, learning):
            return first
        for g in range(size):
            tree_routers.load(regressors, batch, first + g, scratch, g, learns[first + g])
        final = not (learning or settings.keep_scores or regressors.vw_layout)
        if not regressors.vw_layout:
            _prefetch_walk(tree, cells, regressors, scratch, label, learns, first, size)
        for g in range(size):
            i = first + g
            if final:
                output.predicted[i] = tree.count[scratch.at[g], split_tree.PREDICTION]
                continue
            output.scored[i] = not split_tree.is_leaf(tree, tree.size[split_tree.ROOT])
            a, known = predict(tree, regressors, scratch, g)
            output.predicted[i] = tree.count[a, split_tree.PREDICTION]
            output.first[i + 1] = output.first[i]
            if settings.keep_scores:
                for level in range(known):
                    output.node[output.first[i] + level] = scratch.node[level]
                    output.score[output.first[i] + level] = scratch.score[level]
                output.first[i + 1] = output.first[i] + known
            if learns[i]:
                if regressors.vw_layout:
                    known = 0
                regressors.table.guard.now[0] = i
                _learn(tree, cells, settings, regressors, scratch, g, known, label[i], batch.weight[i], clock[i])
                output.scored[i] |= not split_tree.is_leaf(tree, tree.size[split_tree.ROOT])
    return end
