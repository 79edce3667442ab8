"""What a tree of probabilities computes for one example after the other: f(y|x), the best labels, an update.

Source    Beygelzimer, Langford, Lifshits, Sorkin, Strehl, "Conditional Probability Tree Estimation Analysis and
          Algorithms", UAI 2009, algorithms 1 and 3.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ...array_types import Bools, Float32s, Float64s, Int64s, UInt64s
from ...binary import adagrad
from ...kernels import rng, top_k
from ...kernels.constants import HALF, ONE
from ...kernels.jit import jit
from . import label_tree, tree_search

NODES, DEEPEST = label_tree.NODES, label_tree.DEEPEST
ROOT_12 = np.float32(math.sqrt(12.0))


class Settings(NamedTuple):
    """The options a kernel needs."""

    alpha: float  # of the insertion rule; at random where it is 0
    noise: np.float32  # standard deviation of what is added to the rule
    unit: bool
    greedy: bool
    budget: int
    search: bool
    cut: float  # what is less than this share as likely as the best is not looked for; 0 leaves nothing out


class Scratch(NamedTuple):
    """Rows of one thread: features, the label's path, what a search leaves for later."""

    h: UInt64s  # uint64[s]
    x: Float32s  # float32[s]
    rate: Float32s  # float32[s]
    at: Int64s  # int64[levels * s], slots of the nodes on the path
    path: Int64s  # int64[levels], from the root to the label's leaf
    score: Float32s  # float32[levels]
    right: Float64s  # float64[levels], p
    waiting: tree_search.Waiting


class Found(NamedTuple):
    """What a batch of n examples found."""

    known: Bools  # bool[n], the label has a leaf
    p: Float64s  # float64[n], f(y|x), 0 where it has none
    asked: Int64s  # int64[n], regressors on the way to that leaf
    loss: Float64s  # float64[n], their mean squared loss
    top: Int64s  # int64[n, k], most probable labels; 0 where there are fewer
    top_p: Float64s  # float64[n, k]
    opened: Int64s  # int64[n], nodes the search opened
    gap: Float64s  # float64[n], most a label left out can have where the search ended early, else 0


# -- kernels


@jit
def _follow(tree, weights, scratch, leaf, count, learns):
    """Score the nodes from the root to a leaf; return f(y|x)."""
    path = scratch.path
    depth = np.int64(tree.depth[leaf])
    a = leaf
    for d in range(depth, -1, -1):
        path[d] = a
        a = np.int64(tree.parent[a])
    for d in range(depth + 1 if learns else depth):
        adagrad.locate(weights, scratch.h, count, tree.place[path[d]], scratch.at, d * count)
    p = 1.0
    for d in range(depth):
        s = adagrad.score(weights, scratch.at, d * count, count, scratch.x)
        right = adagrad.probability(weights, s)
        scratch.score[d] = s
        scratch.right[d] = right
        p *= right if path[d + 1] > tree.left[path[d]] else 1.0 - right
    if learns:
        scratch.score[depth] = adagrad.score(weights, scratch.at, depth * count, count, scratch.x)
    return p


@jit
def _asked(tree, scratch, leaf):
    """How many regressors `_follow` asked on the way to a leaf, and their mean squared loss."""
    depth = np.int64(tree.depth[leaf])
    total = 0.0
    for d in range(depth):
        right = scratch.right[d]
        total += (1.0 - right) ** 2 if scratch.path[d + 1] > tree.left[scratch.path[d]] else right * right
    return depth, total / max(depth, 1)


@jit
def _learn_path(tree, weights, scratch, leaf, count, weight):
    """Train the nodes `_follow` scored with the turns to the leaf, and the leaf with left."""
    depth = np.int64(tree.depth[leaf])
    for d in range(depth + 1):
        y = ONE if d < depth and scratch.path[d + 1] > tree.left[scratch.path[d]] else -ONE
        adagrad.learn(weights, scratch.at, d * count, count, scratch.x, scratch.score[d], y, weight, scratch.rate)


@jit
def _train(tree, weights, scratch, a, count, y, weight):
    """Score one node and train it."""
    adagrad.locate(weights, scratch.h, count, tree.place[a], scratch.at, 0)
    s = adagrad.score(weights, scratch.at, 0, count, scratch.x)
    adagrad.learn(weights, scratch.at, 0, count, scratch.x, s, y, weight, scratch.rate)


@jit
def objective(alpha, p, left, right):
    """The paper's rule for a new label at a node with so many leaves left and right: above 0 it goes right."""
    return (1.0 - alpha) * 2.0 * (p - 0.5) + alpha * math.log2(left / right)


@jit
def _insert(tree, weights, settings, random, scratch, label, count, weight):
    """Bring a new label into the tree and train the nodes on its way."""
    if tree.size[NODES] == 0:
        label_tree.plant(tree, label)
        _train(tree, weights, scratch, 0, count, -ONE, weight)
        return
    a = np.int64(0)
    while tree.left[a] > 0:
        left = np.int64(tree.left[a])
        if settings.alpha == 0.0:
            right = rng.draw(random) >= HALF
        else:
            s = adagrad.score_place(weights, scratch.h, scratch.x, count, tree.place[a])
            p = adagrad.probability(weights, s)
            rule = objective(settings.alpha, p, np.float64(tree.leaves[left]), np.float64(tree.leaves[left + 1]))
            if settings.noise > np.float32(0):
                rule += np.float64(settings.noise * ROOT_12 * (rng.draw(random) - HALF))
            right = rule > 0.0
        _train(tree, weights, scratch, a, count, ONE if right else -ONE, weight)
        tree.leaves[a] += 1
        a = left + 1 if right else left
    tree.leaves[a] += 1
    leaf = label_tree.split(tree, a, label)
    _train(tree, weights, scratch, a, count, ONE, weight)
    _train(tree, weights, scratch, leaf, count, -ONE, weight)


@jit
def _fits(tree, scratch):
    """Whether there is room for one more label, and on the path for a deeper leaf."""
    return label_tree.has_room(tree) and tree.size[DEEPEST] + 3 <= scratch.path.shape[0]


@jit
def learn_batch(tree, weights, settings, random, batch, label, learns, whole, begin, end, scratch, found):
    """Examples begin..end-1 of a batch: f(y|x) and the most probable labels, then learn; return the first not done.

    `label[i]` is 0 where there is none; `whole[i]` asks for a complete search.
    """
    for i in range(begin, end):
        y = label[i]
        leaf = label_tree.find(tree, y) if y > 0 else np.int64(-1)
        if learns[i] and leaf < 0 and not _fits(tree, scratch):
            return i
        count = adagrad.load(batch, i, settings.unit, scratch.h, scratch.x)
        floor = 0.0
        if leaf >= 0:
            found.known[i] = True
            floor = _follow(tree, weights, scratch, leaf, count, learns[i])
            found.p[i] = floor
            found.asked[i], found.loss[i] = _asked(tree, scratch, leaf)
        if settings.search and tree.size[NODES] > 0:
            known = np.int64(tree.depth[leaf]) if leaf >= 0 else np.int64(0)
            if found.top.shape[1] == 1 or settings.greedy:
                complete = whole[i] or leaf < 0
                opened, gap = tree_search.one(
                    tree, weights, settings, scratch, count, known,
                    0.0 if complete or settings.greedy else floor, np.int64(0) if complete else y, found.top[i],
                    found.top_p[i],
                )  # fmt: skip
            else:
                opened, gap = tree_search.several(
                    tree, weights, settings, scratch, count, known,
                    found.top[i], found.top_p[i],
                )  # fmt: skip
            found.opened[i] = opened
            found.gap[i] = gap
        if learns[i]:
            if leaf >= 0:
                _learn_path(tree, weights, scratch, leaf, count, batch.weight[i])
            else:
                _insert(tree, weights, settings, random, scratch, y, count, batch.weight[i])
    return end


@jit
def all_probabilities(tree, weights, settings, batch, i, scratch, mass):
    """`mass[a]` = probability that the label of example i is at or below node a; at a leaf f(y|x)."""
    count = adagrad.load(batch, i, settings.unit, scratch.h, scratch.x)
    mass[0] = 1.0
    for a in range(tree.size[NODES]):  # children come after their parent
        left = np.int64(tree.left[a])
        if left > 0:
            s = adagrad.score_place(weights, scratch.h, scratch.x, count, tree.place[a])
            right = adagrad.probability(weights, s)
            mass[left] = mass[a] * (1.0 - right)
            mass[left + 1] = mass[a] * right


@jit
def union_of_candidates(top, candidate):
    """`candidate[i]` = the different labels of `top[t, i, j]` for all trees t and places j, 0 behind the last."""
    trees, n, k = top.shape
    for i in range(n):
        size = 0
        for j in range(k):
            for t in range(trees):
                label = top[t, i, j]
                known = label == 0
                for c in range(size):
                    known |= candidate[i, c] == label
                if not known:
                    candidate[i, size] = label
                    size += 1
        for c in range(size, candidate.shape[1]):
            candidate[i, c] = 0


@jit
def candidate_probabilities(tree, weights, settings, batch, begin, end, scratch, memo_row, memo_p, candidate, p):
    """`p[i, c]` = probability of `candidate[i, c]`, 0 where the tree does not have it; a node is scored once.

    `memo_row` and `memo_p` have an item per node; memo_row is less than `begin` everywhere.
    """
    for i in range(begin, end):
        count = adagrad.load(batch, i, settings.unit, scratch.h, scratch.x)
        for c in range(candidate.shape[1]):
            label = candidate[i, c]
            p[i, c] = 0.0
            leaf = label_tree.find(tree, label) if label > 0 else np.int64(-1)
            if leaf < 0:
                continue
            product = 1.0
            while tree.parent[leaf] >= 0:
                a = np.int64(tree.parent[leaf])
                if memo_row[a] != i:
                    s = adagrad.score_place(weights, scratch.h, scratch.x, count, tree.place[a])
                    memo_p[a] = adagrad.probability(weights, s)
                    memo_row[a] = i
                product *= memo_p[a] if leaf > tree.left[a] else 1.0 - memo_p[a]
                leaf = a
            p[i, c] = product


@jit
def vote(top, top_p, candidate, p, judged, label, mass):
    """The best of the candidates by the sum over trees of log probabilities, in falling order.

    Not `judged`, only what the trees list themselves is known: a candidate that a tree leaves out counts with the
    least probability the tree lists. `mass` is the mean probability, of which the listed ones are known.
    """
    trees, n, k = top.shape
    best = label.shape[1]
    rank, place = np.empty(best), np.empty(best, np.int64)
    means = np.empty(candidate.shape[1])
    for i in range(n):
        size = 0
        for c in range(candidate.shape[1]):
            y = candidate[i, c]
            if y == 0:
                break
            total = 0.0
            mean = 0.0
            for t in range(trees):
                if judged:
                    found = p[t, i, c]
                    mean += found
                else:
                    found = 0.0
                    for j in range(k):
                        if top[t, i, j] == y:
                            found = top_p[t, i, j]
                            mean += found
                        elif top[t, i, j] > 0 and found == 0.0 and j == k - 1:
                            found = top_p[t, i, j]
                total += math.log(max(found, 1e-300))
            means[c] = mean / trees
            size = top_k.insert(place, rank, size, c, total)
        for j in range(size):
            label[i, j] = candidate[i, place[j]]
            mass[i, j] = means[place[j]]
