"""Predict with and train a binary conditional probability tree, one example after the other.

Source    Beygelzimer, Langford, Lifshits, Sorkin, Strehl, "Conditional Probability Tree Estimation Analysis and
          Algorithms", UAI 2009, algorithms 1 and 3.
Idea      The regressor of a node estimates the probability that the label is in the right subtree. The probability of
          a label is the product of these estimates along the path to its leaf.
Names     f(y|x) probability of the label | s features of an example | n examples | k labels listed per example

In all kernels `scratch` is written, and `count` is the number of features in its `h` and `x`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ...array_types import Bools, Float32s, Float64s, Int, Int64s, UInt64s
from ...binary import adagrad, tagged_words
from ...data.batch import Batch
from ...kernels import rng, top_k
from ...kernels.constants import HALF, ONE, ZERO
from ...kernels.jit import apart, bare, jit
from ..core import label_arrays
from . import beam_search, label_tree, node_scores, tree_search
from .label_tree import ClassTree

NODES, DEEPEST = label_tree.NODES, label_tree.DEEPEST
ROOT_12 = np.float32(math.sqrt(12.0))
RANDOM = -1.0  # for `TreeSettings.alpha`
FORMS = 2  # of a batch: trees see them in turn, tree 0 that with weighted features, tree 1 that without


class TreeSettings(NamedTuple):
    """Hold the options that kernels need."""

    alpha: float  # --cpt_alpha, see `objective`; RANDOM inserts new labels at random
    noise: np.float32  # standard deviation of the noise added to the objective
    unit: bool  # whether examples are scaled to length 1
    beam: int  # blocks that a search keeps on each level of blocks
    exact: bool  # whether a search opens all nodes that may lead to the most probable labels
    search: bool  # whether to search for the most probable labels
    cut: float  # least probability of a listed label as a share of the best one's; 0 lists all


class BinaryNodeScratch(NamedTuple):
    """Provide buffers for one thread: features, the path to the label, and the nodes of a search."""

    h: UInt64s  # uint64[s]
    x: Float32s  # float32[s]
    path: Int64s  # int64[levels], from the root to the label's leaf
    score: Float32s  # float32[levels]
    waiting: tree_search.Waiting
    beam: beam_search.Beam
    memo: node_scores.Memo


class TreePredictions(NamedTuple):
    """Hold the results for a batch of n examples; the first four are those of labels, see `label_arrays.span`."""

    known: Bools  # bool[n], whether the label has a leaf
    p: Float64s  # float64[n], f(y|x), 0 if it has no leaf
    regressors: Int64s  # int64[n], regressors on the path to that leaf
    loss: Float64s  # float64[n], their mean squared loss
    top: Int64s  # int64[n, k], most probable labels, then 0
    top_p: Float64s  # float64[n, k], their probabilities
    opened: Int64s  # int64[n], nodes opened by the search
    gap: Float64s  # float64[n], bound on the probability of a label that should be listed but is not, else 0

    def of_tree(self, t: int) -> TreePredictions:
        """Return those of tree t, if the first index of all arrays is the number of a tree."""
        return TreePredictions(*[array[t] for array in self])


def new_predictions(*shape: int, k: int) -> TreePredictions:
    """Return predictions to be written, of n examples (`shape` is n) or of trees, too (trees, n)."""
    known, regressors, opened = np.zeros(shape, bool), np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    p, loss, gap, top = np.zeros(shape), np.zeros(shape), np.zeros(shape), np.zeros((*shape, k), np.int64)
    return TreePredictions(known, p, regressors, loss, top, np.zeros((*shape, k)), opened, gap)


# -- kernels


@bare
def _follow(
    tree: ClassTree, weights: adagrad.SharedWeights, scratch: BinaryNodeScratch, leaf: Int, count: Int, learns: bool
) -> tuple[float, float]:
    """Score the nodes from the root to a leaf, and the leaf if it `learns`.

    Return f(y|x), and the sum of the squared losses of the regressors above the leaf.
    """
    path = scratch.path
    depth = np.int64(tree.depth[leaf])
    a = leaf
    for d in range(depth, -1, -1):
        path[d] = a
        a = np.int64(tree.parent[a])
    scored = depth + 1 if learns else depth
    for d in range(scored):
        node_scores.prefetch(weights, scratch.h, count, tree.place[path[d]])
    p, total = 1.0, 0.0
    for d in range(depth):
        s = node_scores.score(weights, scratch.memo, scratch.h, scratch.x, count, tree.place[path[d]])
        right = adagrad.probability(weights, s)
        scratch.score[d] = s
        goes_right = path[d + 1] > tree.left[path[d]]
        p *= right if goes_right else 1.0 - right
        total += (1.0 - right) ** 2 if goes_right else right * right
    if learns:
        place = tree.place[leaf]
        scratch.score[depth] = node_scores.score(weights, scratch.memo, scratch.h, scratch.x, count, place)
    return p, total


@bare
def _learn_path(
    tree: ClassTree,
    weights: adagrad.SharedWeights,
    scratch: BinaryNodeScratch,
    leaf: Int,
    count: Int,
    weight: np.float32,
) -> None:
    """Train the nodes scored by `_follow` towards the directions of the path, and the leaf towards left.

    The nodes of a block learn together.
    """
    depth, memo = np.int64(tree.depth[leaf]), scratch.memo
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


@apart
def _train(
    tree: ClassTree,
    weights: adagrad.SharedWeights,
    scratch: BinaryNodeScratch,
    a: Int,
    count: Int,
    y: np.float32,
    weight: np.float32,
) -> None:
    """Score one node and train it towards y, -1 for left or 1 for right."""
    memo, place = scratch.memo, tree.place[a]
    node_scores.forget(memo)
    memo.block_label[:] = ZERO
    memo.block_label[place & 7] = y
    memo.block_score[place & 7] = node_scores.score(weights, memo, scratch.h, scratch.x, count, place)
    adagrad.learn_block(
        weights, scratch.h, scratch.x, count, place >> 3, memo.block_score, memo.block_label, weight, memo.block
    )
    node_scores.forget(memo)


@bare
def objective(alpha: float, p: float, left: float, right: float) -> float:
    """Return the paper's objective for inserting a new label at a node; if it is positive, the label goes right.

    `p` is the probability of right according to the regressor; `left` and `right` are the leaves in each subtree.
    """
    return (1.0 - alpha) * 2.0 * (p - 0.5) + alpha * math.log2(left / right)


@bare
def inserts_right(tree: ClassTree, settings: TreeSettings, random: UInt64s, left: Int, p: float) -> bool | np.bool_:
    """Return whether a new label goes to the right one of two children, given the probability of right."""
    if settings.alpha < 0.0:
        return rng.draw(random) >= HALF
    rule = objective(settings.alpha, p, np.float64(tree.leaves[left]), np.float64(tree.leaves[left + 1]))
    if settings.noise > ZERO:
        rule += np.float64(settings.noise * ROOT_12 * (rng.draw(random) - HALF))
    return rule > 0.0


@bare
def _insert(
    tree: ClassTree, weights: adagrad.SharedWeights, settings: TreeSettings, random: UInt64s,
    scratch: BinaryNodeScratch, label: Int, count: Int, weight: np.float32,
) -> None:  # fmt: skip
    """Insert a new label into the tree and train the nodes on its path."""
    if tree.size[NODES] == 0:
        label_tree.insert_root(tree, label)
        _train(tree, weights, scratch, 0, count, -ONE, weight)
        return
    a = np.int64(0)
    while tree.left[a] > 0:
        left = np.int64(tree.left[a])
        p = 0.5
        if settings.alpha >= 0.0:
            p = node_scores.probability(weights, scratch.memo, scratch.h, scratch.x, count, tree.place[a])
        right = inserts_right(tree, settings, random, left, p)
        _train(tree, weights, scratch, a, count, ONE if right else -ONE, weight)
        tree.leaves[a] += 1
        a = left + 1 if right else left
    tree.leaves[a] += 1
    leaf = label_tree.split(tree, a, label)
    _train(tree, weights, scratch, a, count, ONE, weight)
    _train(tree, weights, scratch, leaf, count, -ONE, weight)


@bare
def _fits(tree: ClassTree, scratch: BinaryNodeScratch, labels: Int) -> bool:
    """Return whether the tree has capacity for more labels, and the scratch for deeper paths."""
    return label_tree.has_capacity(tree, labels) and tree.size[DEEPEST] + 2 + labels <= scratch.path.shape[0]


@bare
def process_batch(
    tree: ClassTree, weights: adagrad.SharedWeights, settings: TreeSettings, random: UInt64s, batch: Batch,
    label: Int64s, learns: Bools, begin: int, end: int, scratch: BinaryNodeScratch, output: TreePredictions,
) -> int:  # fmt: skip
    """Predict the examples begin..end-1 and learn from them, in order; return the first example that was not processed.

    A return value below `end` means that the tree, the weights or the scratch lack capacity; enlarge them and call
    again.

    Parameters
    ----------
    tree, weights : written
    random : uint64[1], state of the generator, written
    label : see `label_arrays.span`
    learns : bool[n], whether to learn from the example
    output : rows begin..end-1 are written
    """
    for i in range(begin, end):
        first, last = label_arrays.span(batch, label, i)
        if learns[i] and (not _fits(tree, scratch, last - first) or tagged_words.is_full(weights.words)):
            return i
        count = adagrad.load(batch, i, settings.unit, scratch.h, scratch.x)
        node_scores.forget(scratch.memo)
        for j in range(first, last):
            leaf = label_tree.find(tree, label[j])
            if leaf >= 0:
                output.known[j] = True
                output.p[j], total = _follow(tree, weights, scratch, leaf, count, learns[i])
                output.regressors[j] = tree.depth[leaf]
                output.loss[j] = total / max(tree.depth[leaf], 1)
        if settings.search and tree.size[NODES] > 0:
            top, top_p = output.top[i], output.top_p[i]
            if settings.exact:
                output.opened[i] = tree_search.find_top_k(tree, weights, settings, scratch, count, top, top_p)
            else:
                output.opened[i], output.gap[i] = beam_search.find_top_k(
                    tree, weights, settings, scratch, count, top, top_p
                )
        for j in range(first, last if learns[i] else first):
            leaf = label_tree.find(tree, label[j])
            if leaf < 0:
                _insert(tree, weights, settings, random, scratch, label[j], count, batch.weight[i])
                continue
            if last - first > 1:  # another path has been followed or learned since
                node_scores.forget(scratch.memo)
                _follow(tree, weights, scratch, leaf, count, True)
            _learn_path(tree, weights, scratch, leaf, count, batch.weight[i])
    return end


@jit
def union_of_candidates(top: Int64s, candidate: Int64s) -> None:
    """Write the distinct labels that the trees propose in `top`, int64[trees, n, k], to `candidate`, followed by 0."""
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
def candidate_probabilities(
    tree: ClassTree, weights: adagrad.SharedWeights, settings: TreeSettings, batch: Batch, begin: int, end: int,
    scratch: BinaryNodeScratch, memo_row: Int64s, memo_p: Float64s, candidate: Int64s, p: Float64s,
) -> None:  # fmt: skip
    """Compute the probabilities of given candidates for the examples begin..end-1, scoring each node once per example.

    `candidate`, int64[n, C], has labels or 0. `p` is written: probability of the candidate, 0 if it has no leaf.
    `memo_row`, int64[nodes], is less than `begin` everywhere and written; `memo_p`, float64[nodes], is scratch.
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
def vote(
    top: Int64s, top_p: Float64s, candidate: Int64s, p: Float64s, p_given: bool, label: Int64s, mass: Float64s
) -> None:
    """Rank the candidates of each example by the sum over the trees of log probabilities.

    `p`, float64[trees, n, C], has the probabilities of the candidates. Without it, a candidate that a tree does not
    list counts with the least probability that the tree lists, but as 0 in the mean. Written are the best labels in
    descending order, and to `mass` their mean probabilities over the trees.
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
