"""Examples through a tree that splits its leaves: the loop of Algorithm 1, some examples at a time.

Source    Choromanska, Langford, "Logarithmic Time Online Multiclass Prediction", NIPS 2015, Algorithm 1; see
          reductions/log_multi for what is learned and where that differs.
Idea      The loop is bound by memory latency, so a group of examples first descends together and their cache misses
          overlap; then they are predicted and learned one after the other.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...array_types import Bools, Float32s, Int64s
from ...binary import finite
from ...kernels.constants import ONE, ZERO
from ...kernels.jit import bare
from ..core import tree_routers
from . import split_tree


class Settings(NamedTuple):
    """The options a kernel needs."""

    most: int  # T
    resistance: int
    as_vw: bool  # --lom_rules vw
    listing: bool  # the scores of the routers on the way are asked for


class Found(NamedTuple):
    """What a batch of n examples found; the scores of example i are those from `first[i]` to `first[i + 1]`."""

    answer: Int64s  # int64[n]
    first: Int64s  # int64[n + 1]
    node: Int64s  # int64[room]
    score: Float32s  # float32[room]
    asked: Bools  # bool[n], whether a router was asked, where all examples are taken in turn


# -- kernels


@bare
def _fits(tree, cells, settings, row, found, i, size, learning):
    """Whether there is room for examples i..i+size-1 in everything that grows."""
    levels = split_tree.levels(tree) + size + 1
    if learning and not split_tree.has_room(tree, cells, size):
        return False
    if levels > row.node.shape[0]:
        return False
    return not settings.listing or found.first[i] + levels * size <= found.node.shape[0]


@bare
def _child(tree, regressors, a, s):
    """Where an example with score s goes from node a."""
    right = not tree_routers.routing_score(regressors, s) < ZERO
    return np.int64(tree.link[a, split_tree.RIGHT if right else split_tree.LEFT])


@bare
def _prefetch_walk(tree, cells, regressors, row, label, learns, begin, size):
    """Walk examples begin..begin+size-1 to their leaves, all at a time, each stopping where a new block begins.

    Where nothing is learned these are their leaves, in `row.at`. Else, what earlier examples learn can send later ones
    another way, and an example is learned from on the way to which its own routers are about to be trained; the
    scouts follow that one too, so that most of the memory they will need is on its way.
    """
    root = tree.size[split_tree.ROOT]
    for g in range(size):
        row.at[g] = root
        row.other[g] = root if learns[begin + g] else -1
        if not split_tree.is_leaf(tree, root):
            tree_routers.enter(regressors, row, g, np.int64(tree.link[root, split_tree.ROUTER]) >> 3)
        if learns[begin + g]:
            split_tree.prefetch_counts(tree, cells, root, label[begin + g])
    walking = True
    while walking:
        walking = False
        for g in range(size):
            a = row.at[g]
            while not split_tree.is_leaf(tree, a):
                number = np.int64(tree.link[a, split_tree.ROUTER])
                if number >> 3 != row.block[g]:
                    tree_routers.enter(regressors, row, g, number >> 3)
                    walking = True
                    break
                a = _child(tree, regressors, a, tree_routers.score(regressors, row, g, number))
            row.at[g] = a
            a = row.other[g]
            if a >= 0 and not split_tree.is_leaf(tree, a):
                walking = True
                block = np.int64(tree.link[a, split_tree.ROUTER]) >> 3
                left = split_tree.guess(tree, cells, a, label[begin + g])
                a = np.int64(tree.link[a, split_tree.LEFT if left else split_tree.RIGHT])
                split_tree.prefetch_counts(tree, cells, a, label[begin + g])
                next_block = np.int64(tree.link[a, split_tree.ROUTER]) >> 3
                if next_block != block and next_block >= 0:
                    tree_routers.prefetch_block(regressors, row, g, next_block)
                row.other[g] = a


@bare
def predict(tree, regressors, row, g):
    """Walk to a leaf; return it and the number of routers asked, which are kept in `row` level by level."""
    a = tree.size[split_tree.ROOT]
    level = 0
    while not split_tree.is_leaf(tree, a):
        s = tree_routers.score(regressors, row, g, np.int64(tree.link[a, split_tree.ROUTER]))
        row.node[level] = a
        row.score[level] = s
        level += 1
        a = _child(tree, regressors, a, s)
    return a, level


@bare
def _counted(regressors, s):
    """A score as it is added to others: 0 where it is no finite number, unless VW's sums are wanted."""
    return np.float64(s) if not regressors.rule.checked or abs(s) < finite.INFINITE else 0.0


@bare
def _learn(tree, cells, settings, regressors, row, g, known, label, weight, clock):
    """Algorithm 1 for one example. The scores of `known` levels are in `row`, for those nodes that are met again."""
    a = tree.size[split_tree.ROOT]
    level = 0
    while True:
        at = split_tree.arrive(tree, cells, a, label)
        if split_tree.is_leaf(tree, a):
            if not split_tree.splits(tree, a, settings.most, settings.resistance):
                split_tree.end(tree, cells, a, at)
                return
            full = tree.size[split_tree.ROUTERS] >= settings.most
            if full and settings.as_vw and split_tree.hangs_at_root(tree):
                number = split_tree.lose(tree, a)
                s = tree_routers.score(regressors, row, g, number)
                s = tree_routers.learn(regressors, row, g, number, s, ONE, weight, clock)
                if not tree_routers.routing_score(regressors, s) < ZERO:
                    split_tree.end(tree, cells, 0, split_tree.arrive(tree, cells, 0, label))
                return
            split_tree.split(tree, a, settings.most, not regressors.exact, level)
        split_tree.prefetch_counts(tree, cells, np.int64(tree.link[a, split_tree.LEFT]), label)
        split_tree.prefetch_counts(tree, cells, np.int64(tree.link[a, split_tree.RIGHT]), label)
        number = np.int64(tree.link[a, split_tree.ROUTER])
        if level >= known or row.node[level] != a:
            known = 0
        s = row.score[level] if known > 0 else tree_routers.score(regressors, row, g, number)
        y = -ONE if split_tree.expects_more(tree, cells, a, at) else ONE
        s = tree_routers.learn(regressors, row, g, number, s, y, weight, clock)
        split_tree.trained(tree, cells, a, at, _counted(regressors, s))
        a = _child(tree, regressors, a, s)
        level += 1


@bare
def learn_batch(tree, cells, settings, regressors, batch, label, learns, clock, begin, end, row, found):
    """Predict examples begin..end-1 of a batch and learn where `learns`; return the first not done."""
    group = row.at.shape[0]
    for first in range(begin, end, group):
        size = min(group, end - first)
        learning = False
        for g in range(size):
            learning |= learns[first + g]
        if not _fits(tree, cells, settings, row, found, first, size, learning):
            return first
        for g in range(size):
            tree_routers.load(regressors, batch, first + g, row, g, learns[first + g])
        final = not (learning or settings.listing or regressors.exact)
        if not regressors.exact:
            _prefetch_walk(tree, cells, regressors, row, label, learns, first, size)
        for g in range(size):
            i = first + g
            if final:
                found.answer[i] = tree.count[row.at[g], split_tree.ANSWER]
                continue
            found.asked[i] = not split_tree.is_leaf(tree, tree.size[split_tree.ROOT])
            a, known = predict(tree, regressors, row, g)
            found.answer[i] = tree.count[a, split_tree.ANSWER]
            found.first[i + 1] = found.first[i]
            if settings.listing:
                for level in range(known):
                    found.node[found.first[i] + level] = row.node[level]
                    found.score[found.first[i] + level] = row.score[level]
                found.first[i + 1] = found.first[i] + known
            if learns[i]:
                if regressors.exact:
                    known = 0
                regressors.table.watch.now[0] = i
                _learn(tree, cells, settings, regressors, row, g, known, label[i], batch.weight[i], clock[i])
                found.asked[i] |= not split_tree.is_leaf(tree, tree.size[split_tree.ROOT])
    return end
