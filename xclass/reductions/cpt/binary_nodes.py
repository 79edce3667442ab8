"""Predict with and train a binary conditional probability tree, one example after the other.

Source    Beygelzimer, Langford, Lifshits, Sorkin, Strehl, "Conditional Probability Tree Estimation Analysis and
          Algorithms", UAI 2009, algorithms 1 and 3.
Idea      The regressor of a node estimates the probability that the label is in the right subtree. The probability of
          a label is the product of these estimates along the path to its leaf.
Names     f(y|x) probability of the label | s features of an example | n examples | k labels listed per example

In all kernels `tree` is a label_tree.Tree, `weights` are adagrad.Weights, `settings` are Settings, `scratch` is a
Scratch that is written, and `count` is the number of features in its `h` and `x`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ...array_types import Bools, Float32s, Float64s, Int64s, UInt64s
from ...binary import adagrad, tagged_words
from ...kernels import rng, top_k
from ...kernels.constants import HALF, ONE, ZERO
from ...kernels.jit import bare, jit
from . import beam_search, label_tree, node_scores, tree_search

NODES, DEEPEST = label_tree.NODES, label_tree.DEEPEST
ROOT_12 = np.float32(math.sqrt(12.0))


class Settings(NamedTuple):
    """Hold the options that kernels need."""

    alpha: float  # --cpt_alpha, see `objective`; 0 inserts new labels at random
    noise: np.float32  # standard deviation of the noise added to the objective
    unit: bool  # whether examples are scaled to length 1
    beam: int  # blocks that a search keeps on each level of blocks
    exact: bool  # whether a search opens all nodes that may lead to the most probable labels
    search: bool  # whether to search for the most probable labels
    cut: float  # least probability of a listed label as a share of the best one's; 0 lists all


class Scratch(NamedTuple):
    """Provide buffers for one thread: features, the path to the label, and the nodes of a search."""

    h: UInt64s  # uint64[s]
    x: Float32s  # float32[s]
    rate: Float32s  # float32[s]
    at: Int64s  # int64[levels * s], slots of the nodes on the path
    path: Int64s  # int64[levels], from the root to the label's leaf
    score: Float32s  # float32[levels]
    right: Float64s  # float64[levels], probability of the right child at each node of the path
    waiting: tree_search.Waiting
    beam: beam_search.Beam
    memo: node_scores.Memo


class Predictions(NamedTuple):
    """Hold the results for a batch of n examples."""

    known: Bools  # bool[n], whether the label has a leaf
    p: Float64s  # float64[n], f(y|x), 0 if it has no leaf
    regressors: Int64s  # int64[n], regressors on the path to that leaf
    loss: Float64s  # float64[n], their mean squared loss
    top: Int64s  # int64[n, k], most probable labels, then 0
    top_p: Float64s  # float64[n, k], their probabilities
    opened: Int64s  # int64[n], nodes opened by the search
    gap: Float64s  # float64[n], bound on the probability of a label that should be listed but is not, else 0


# -- kernels


@jit
def _follow(tree, weights, scratch, leaf, count, learns):
    """Score the nodes from the root to a leaf, and the leaf if it `learns`; return f(y|x)."""
    path = scratch.path
    depth = np.int64(tree.depth[leaf])
    a = leaf
    for d in range(depth, -1, -1):
        path[d] = a
        a = np.int64(tree.parent[a])
    scored = depth + 1 if learns else depth
    for d in range(scored):
        if weights.tagged:
            node_scores.prefetch(weights, scratch.h, count, tree.place[path[d]])
        else:
            adagrad.locate(weights, scratch.h, count, tree.place[path[d]], scratch.at, d * count)
    p = 1.0
    for d in range(depth):
        s = _path_score(tree, weights, scratch, d, count)
        right = adagrad.probability(weights, s)
        scratch.score[d] = s
        scratch.right[d] = right
        p *= right if path[d + 1] > tree.left[path[d]] else 1.0 - right
    if learns:
        scratch.score[depth] = _path_score(tree, weights, scratch, depth, count)
    return p


@bare
def _path_score(tree, weights, scratch, d, count):
    """Return the score of node d of the path."""
    if weights.tagged:
        return node_scores.score(weights, scratch.memo, scratch.h, scratch.x, count, tree.place[scratch.path[d]])
    return adagrad.score(weights, scratch.at, d * count, count, scratch.x)


@jit
def _path_loss(tree, scratch, leaf):
    """Return the number of regressors that `_follow` scored above a leaf, and their mean squared loss."""
    depth = np.int64(tree.depth[leaf])
    total = 0.0
    for d in range(depth):
        right = scratch.right[d]
        total += (1.0 - right) ** 2 if scratch.path[d + 1] > tree.left[scratch.path[d]] else right * right
    return depth, total / max(depth, 1)


@jit
def _learn_path(tree, weights, scratch, leaf, count, weight):
    """Train the nodes scored by `_follow` towards the directions of the path, and the leaf towards left."""
    depth = np.int64(tree.depth[leaf])
    if weights.tagged:
        _learn_path_by_blocks(tree, weights, scratch, depth, count, weight)
        return
    for d in range(depth + 1):
        y = ONE if d < depth and scratch.path[d + 1] > tree.left[scratch.path[d]] else -ONE
        adagrad.learn(weights, scratch.at, d * count, count, scratch.x, scratch.score[d], y, weight, scratch.rate)


@jit
def _learn_path_by_blocks(tree, weights, scratch, depth, count, weight):
    """Train the nodes of a path of `depth` levels and its leaf, the nodes of a block together."""
    memo = scratch.memo
    memo.block_label[:] = ZERO
    for d in range(depth + 1):
        place = np.int64(tree.place[scratch.path[d]])
        right = d < depth and scratch.path[d + 1] > tree.left[scratch.path[d]]
        memo.block_score[place & 7] = scratch.score[d]
        memo.block_label[place & 7] = ONE if right else -ONE
        if d == depth or tree.place[scratch.path[d + 1]] >> 3 != place >> 3:
            adagrad.learn_block(
                weights, scratch.h, scratch.x, count, place >> 3, memo.block_score, memo.block_label, weight, memo.block
            )
            memo.block_label[:] = ZERO


@jit
def _train(tree, weights, scratch, a, count, y, weight):
    """Score one node and train it towards y, -1 for left or 1 for right."""
    if weights.tagged:
        node_scores.train(weights, scratch.memo, scratch.h, scratch.x, count, tree.place[a], y, weight)
        return
    adagrad.locate(weights, scratch.h, count, tree.place[a], scratch.at, 0)
    s = adagrad.score(weights, scratch.at, 0, count, scratch.x)
    adagrad.learn(weights, scratch.at, 0, count, scratch.x, s, y, weight, scratch.rate)


@jit
def objective(alpha, p, left, right):
    """Return the paper's objective for inserting a new label at a node; if it is positive, the label goes right.

    Parameters
    ----------
    alpha : weight of the balance of the tree; the regressor has the weight 1 - alpha
    p : probability of right according to the regressor
    left, right : number of leaves in each subtree
    """
    return (1.0 - alpha) * 2.0 * (p - 0.5) + alpha * math.log2(left / right)


@jit
def _insert(tree, weights, settings, random, scratch, label, count, weight):
    """Insert a new label into the tree and train the nodes on its path."""
    if tree.size[NODES] == 0:
        label_tree.insert_root(tree, label)
        _train(tree, weights, scratch, 0, count, -ONE, weight)
        return
    a = np.int64(0)
    while tree.left[a] > 0:
        left = np.int64(tree.left[a])
        if settings.alpha == 0.0:
            right = rng.draw(random) >= HALF
        else:
            p = node_scores.probability(weights, scratch.memo, scratch.h, scratch.x, count, tree.place[a])
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
    """Return whether the tree has capacity for one more label, and the scratch for a deeper path."""
    return label_tree.has_capacity(tree) and tree.size[DEEPEST] + 3 <= scratch.path.shape[0]


@bare
def learn_batch(tree, weights, settings, random, batch, label, learns, begin, end, scratch, output):
    """Predict the examples begin..end-1 and learn from them, in order; return the first example that was not processed.

    A return value below `end` means that the tree, the weights or the scratch lack capacity; enlarge them and call
    again.

    Parameters
    ----------
    tree, weights : written
    random : uint64[1], state of the generator, written
    batch : read only
    label : int64[n], 0 for examples without a label
    learns : bool[n], whether to learn from the example
    output : Predictions, rows begin..end-1 are written
    """
    for i in range(begin, end):
        y = label[i]
        leaf = label_tree.find(tree, y) if y > 0 else np.int64(-1)
        if learns[i] and ((leaf < 0 and not _fits(tree, scratch)) or tagged_words.is_full(weights.words)):
            return i
        count = adagrad.load(batch, i, settings.unit, scratch.h, scratch.x)
        node_scores.forget(scratch.memo)
        if leaf >= 0:
            output.known[i] = True
            output.p[i] = _follow(tree, weights, scratch, leaf, count, learns[i])
            output.regressors[i], output.loss[i] = _path_loss(tree, scratch, leaf)
        if settings.search and tree.size[NODES] > 0:
            top, top_p = output.top[i], output.top_p[i]
            if settings.exact:
                output.opened[i] = tree_search.find_top_k(tree, weights, settings, scratch, count, top, top_p)
            else:
                output.opened[i], output.gap[i] = beam_search.find_top_k(
                    tree, weights, settings, scratch, count, top, top_p
                )
        if learns[i]:
            if leaf >= 0:
                _learn_path(tree, weights, scratch, leaf, count, batch.weight[i])
            else:
                _insert(tree, weights, settings, random, scratch, y, count, batch.weight[i])
    return end


@jit
def all_probabilities(tree, weights, settings, batch, i, scratch, mass):
    """Compute the probability of every node for example i; at a leaf it is f(y|x).

    Parameters
    ----------
    mass : float64[nodes or more], written: probability that the label is at or below the node
    """
    count = adagrad.load(batch, i, settings.unit, scratch.h, scratch.x)
    node_scores.forget(scratch.memo)
    mass[0] = 1.0
    for a in range(tree.size[NODES]):  # children have higher numbers than their parent
        left = np.int64(tree.left[a])
        if left > 0:
            right = node_scores.probability(weights, scratch.memo, scratch.h, scratch.x, count, tree.place[a])
            mass[left] = mass[a] * (1.0 - right)
            mass[left + 1] = mass[a] * right


@jit
def union_of_candidates(top, candidate):
    """Collect the distinct labels that the trees propose for each example.

    Parameters
    ----------
    top : int64[trees, n, k], labels proposed, then 0; read only
    candidate : int64[n, trees * k], written: the distinct labels, then 0
    """
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
    """Compute the probabilities of given candidates for the examples begin..end-1, scoring each node once per example.

    Parameters
    ----------
    memo_row : int64[nodes], less than `begin` everywhere, written
    memo_p : float64[nodes], scratch
    candidate : int64[n, C], labels or 0; read only
    p : float64[n, C], written: probability of the candidate, 0 if it has no leaf
    """
    for i in range(begin, end):
        count = adagrad.load(batch, i, settings.unit, scratch.h, scratch.x)
        node_scores.forget(scratch.memo)
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
                    memo_p[a] = node_scores.probability(
                        weights, scratch.memo, scratch.h, scratch.x, count, tree.place[a]
                    )
                    memo_row[a] = i
                product *= memo_p[a] if leaf > tree.left[a] else 1.0 - memo_p[a]
                leaf = a
            p[i, c] = product


@jit
def vote(top, top_p, candidate, p, p_given, label, mass):
    """Rank the candidates of each example by the sum over the trees of log probabilities.

    Parameters
    ----------
    top, top_p : int64[trees, n, k], float64[trees, n, k], labels listed by each tree and their probabilities; read only
    candidate : int64[n, C], distinct labels, then 0; read only
    p : float64[trees, n, C], probabilities of the candidates; read only if `p_given`
    p_given : whether `p` is given. If not, a candidate that a tree does not list counts with the least probability that
        the tree lists.
    label : int64[n, best], written: the best labels in descending order
    mass : float64[n, best], written: their mean probabilities over the trees; without `p` an unlisted label counts as 0
    """
    trees, n, k = top.shape
    best = label.shape[1]
    best_total, place = np.empty(best), np.empty(best, np.int64)
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
                if p_given:
                    tree_p = p[t, i, c]
                    mean += tree_p
                else:
                    tree_p = 0.0
                    for j in range(k):
                        if top[t, i, j] == y:
                            tree_p = top_p[t, i, j]
                            mean += tree_p
                        elif top[t, i, j] > 0 and tree_p == 0.0 and j == k - 1:
                            tree_p = top_p[t, i, j]
                total += math.log(max(tree_p, 1e-300))
            means[c] = mean / trees
            size = top_k.insert(place, best_total, size, c, total)
        for j in range(size):
            label[i, j] = candidate[i, place[j]]
            mass[i, j] = means[place[j]]
