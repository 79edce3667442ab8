"""Predict with and train a conditional probability tree whose nodes have m branches, one example after the other.

Source    Beygelzimer, Langford, Lifshits, Sorkin, Strehl, "Conditional Probability Tree Estimation Analysis and
          Algorithms", UAI 2009, section "hpecoc" (theorem: the squared loss of f(y|x) is at most
          4 (1 - 1/m)**2 (log_m K)**2 times the mean squared loss of the regressors used); the search is this project's.
Idea      The tree is the binary tree of label_tree, in which `levels` levels form one node of m = 2**levels branches.
          Bit l of a branch says whether the path goes right at level l; for a leaf above the lowest level of a block
          the remaining bits are 0. So if a leaf is split inside a block, the old label keeps its branch and the new
          label gets an unused one, and the tree can grow while new labels arrive.
Cost      O(s m log_m K) for learning and for the probability of a given label; O(s m) per block that a search opens.
Names     block: a node of m branches | root: the binary node at the top of a block, at a depth divisible by levels |
          branch: a code 0..m-1 | child[c]: binary node at branch c, which is a leaf or the root of another block.
Differs   from the paper (docs/papers.md says why, and what it costs):
          * nodes of m branches grow with the labels, and K need not be a power of m
          A block fills up before another begins below it. At a binary node in a block with unused branches, a new label
          goes to the side that has some; if both have, the rule of the binary tree decides, where p is the estimated
          mass on the right divided by that on both sides.

The kernels take the same arguments as those of binary_nodes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...array_types import Bools, Float32s, Float64s, Int, Int64s, UInt64s
from ...binary import adagrad, tagged_words
from ...data.batch import Batch
from ...kernels import top_k
from ...kernels.jit import jit
from ..core import label_arrays
from . import binary_nodes, label_tree, node_scores, pecoc
from .binary_nodes import TreePredictions, TreeSettings
from .label_tree import ClassTree

NODES, DEEPEST = label_tree.NODES, label_tree.DEEPEST


class WideNodeScratch(NamedTuple):
    """Provide buffers for one thread: features, the blocks on the path to the label, the blocks of a search."""

    h: UInt64s  # uint64[s]
    x: Float32s  # float32[s]
    root: Int64s  # int64[blocks], roots of the blocks from the tree's root to the label's leaf
    branch: Int64s  # int64[blocks], branch that leads to the leaf
    score: Float32s  # float32[blocks, m], scores of the regressors
    mass: Float64s  # float64[blocks, m], probabilities of the branches
    child: Int64s  # int64[blocks, m], children of the blocks that the search is in
    waiting_mass: Float64s  # float64[blocks, m], mass of their waiting branches, -1 for the others
    other_scores: Float32s  # float32[m], scores of a block that is not on the path
    memo: node_scores.Memo  # its buffers for training a block
    levels: int  # of the binary tree in a block


def scratch(levels: int, most_features: int, depth: int) -> WideNodeScratch:
    m, blocks = 1 << levels, depth // levels + 2
    return WideNodeScratch(
        np.empty(most_features, np.uint64), np.empty(most_features, np.float32), np.empty(blocks, np.int64),
        np.empty(blocks, np.int64), np.empty((blocks, m), np.float32), np.empty((blocks, m)),
        np.empty((blocks, m), np.int64), np.empty((blocks, m)), np.empty(m, np.float32),
        node_scores.new_memo(most_features), levels,
    )  # fmt: skip


# -- kernels


@jit
def _place(root: Int, m: Int) -> Int:
    """Return the place of a block's first regressor; places are numbered as nodes are."""
    return m * (root + 1)


@jit
def _children(tree: ClassTree, root: Int, levels: int, child: Int64s) -> int:
    """Fill `child` (int64[m]) with the node at each branch of a block, -1 if unused; return the number used."""
    child[0] = root
    used = 1
    for level in range(levels):
        half = 1 << level
        for c in range(half):
            a = child[c]
            child[c + half] = -1
            if a >= 0 and tree.left[a] > 0:
                child[c] = np.int64(tree.left[a])
                child[c + half] = child[c] + 1
                used += 1
    return used


@jit
def _open(
    tree: ClassTree, weights: adagrad.SharedWeights, scratch: WideNodeScratch, count: Int, root: Int, s: Float32s,
    child: Int64s, v: Float64s,
) -> None:  # fmt: skip
    """Score a block into `s` (float32[m]) and estimate its branches `child` (int64[m]) and `v` (float64[m])."""
    pecoc.score(weights, scratch.h, scratch.x, count, _place(root, s.shape[0]), scratch.memo, s)
    _children(tree, root, scratch.levels, child)
    pecoc.estimate(weights, s, child, v)


@jit
def _root(tree: ClassTree, levels: int, a: Int) -> np.int64:
    """Return the root of the block in which node a is a branch."""
    a = np.int64(tree.parent[a])
    while tree.depth[a] % levels > 0:
        a = np.int64(tree.parent[a])
    return a


@jit
def _blocks(tree: ClassTree, scratch: WideNodeScratch, leaf: Int) -> np.int64:
    """Return the number of blocks on the path to a leaf, without a block that begins at the leaf."""
    return -(-np.int64(tree.depth[leaf]) // scratch.levels)


@jit
def _trace(tree: ClassTree, scratch: WideNodeScratch, leaf: Int) -> np.int64:
    """Find the blocks and branches from the root to a leaf; return the number of blocks."""
    a = leaf
    branch = np.int64(0)
    for d in range(np.int64(tree.depth[leaf]) - 1, -1, -1):
        up = np.int64(tree.parent[a])
        level = d % scratch.levels
        if a > tree.left[up]:
            branch |= 1 << level
        a = up
        if level == 0:
            scratch.root[d // scratch.levels] = a
            scratch.branch[d // scratch.levels] = branch
            branch = np.int64(0)
    return _blocks(tree, scratch, leaf)


@jit
def _follow(
    tree: ClassTree, weights: adagrad.SharedWeights, scratch: WideNodeScratch, leaf: Int, count: Int
) -> tuple[float, float]:
    """Open the blocks from the root to a leaf; return f(y|x), and the sum of the squared losses of regressors."""
    blocks = _trace(tree, scratch, leaf)
    p, total = 1.0, 0.0
    for b in range(blocks):
        _open(tree, weights, scratch, count, scratch.root[b], scratch.score[b], scratch.child[b], scratch.mass[b])
        p *= scratch.mass[b, scratch.branch[b]]
        total += pecoc.loss(weights, scratch.score[b], scratch.branch[b])
    return p, total


@jit
def _learn_path(
    tree: ClassTree, weights: adagrad.SharedWeights, scratch: WideNodeScratch, leaf: Int, count: Int, weight: np.float32
) -> None:
    """Train the blocks opened by `_follow` towards the branches of the path, and the leaf's block towards branch 0.

    A leaf below a full block has a block of its own, which begins there when the leaf is split.
    """
    m = scratch.score.shape[1]
    blocks = _blocks(tree, scratch, leaf)
    for b in range(blocks):
        place = _place(scratch.root[b], m)
        pecoc.learn(
            weights, scratch.h, scratch.x, count, place, scratch.branch[b], scratch.score[b], scratch.memo, weight
        )
    if tree.depth[leaf] % scratch.levels > 0:
        return
    if blocks == 0 or _children(tree, scratch.root[blocks - 1], scratch.levels, scratch.child[0]) == m:
        place = _place(leaf, m)
        pecoc.score(weights, scratch.h, scratch.x, count, place, scratch.memo, scratch.other_scores)
        pecoc.learn(weights, scratch.h, scratch.x, count, place, 0, scratch.other_scores, scratch.memo, weight)


@jit
def _used_branches(child: Int64s, v: Float64s, first: int, gap: int) -> tuple[int, float]:
    """Return the number of used branches among first, first + gap, ..., and their mass."""
    used = 0
    mass = 0.0
    for c in range(first, v.shape[0], gap):
        if child[c] >= 0:
            used += 1
            mass += v[c]
    return used, mass


@jit
def _seek(
    tree: ClassTree,
    weights: adagrad.SharedWeights,
    settings: TreeSettings,
    random: UInt64s,
    scratch: WideNodeScratch,
    count: Int,
) -> np.int64:
    """Return the leaf that a new label splits, and count the label at the nodes on the path."""
    a = np.int64(0)
    m = scratch.score.shape[1]
    child, v = scratch.child[0], scratch.mass[0]
    while tree.left[a] > 0:
        _open(tree, weights, scratch, count, a, scratch.other_scores, child, v)
        branch = 0
        for level in range(scratch.levels):
            if tree.left[a] == 0:
                break
            half = 1 << level
            capacity = m >> (level + 1)
            used_left, mass_left = _used_branches(child, v, branch, 2 * half)
            used_right, mass_right = _used_branches(child, v, branch + half, 2 * half)
            left = np.int64(tree.left[a])
            if (used_left == capacity) != (used_right == capacity):
                right = used_left == capacity
            else:
                p = mass_right / (mass_left + mass_right)
                right = binary_nodes.inserts_right(tree, settings, random, left, p)
            tree.leaves[a] += 1
            if right:
                a = left + 1
                branch += half
            else:
                a = left
    tree.leaves[a] += 1
    return a


@jit
def _insert(
    tree: ClassTree, weights: adagrad.SharedWeights, settings: TreeSettings, random: UInt64s, scratch: WideNodeScratch,
    label: Int, count: Int, weight: np.float32,
) -> None:  # fmt: skip
    """Insert a new label into the tree and train the blocks on its path."""
    if tree.size[NODES] == 0:
        label_tree.insert_root(tree, label)
        leaf = np.int64(0)
    else:
        leaf = label_tree.split(tree, _seek(tree, weights, settings, random, scratch, count), label)
    _follow(tree, weights, scratch, leaf, count)
    _learn_path(tree, weights, scratch, leaf, count, weight)


@jit
def _search(
    tree: ClassTree, weights: adagrad.SharedWeights, settings: TreeSettings, scratch: WideNodeScratch, count: Int,
    known: Int, i: Int, output: TreePredictions,
) -> None:  # fmt: skip
    """Find the most probable labels of example i, depth first and the likeliest branch first.

    As in tree_search, a branch is not opened if it has no more mass than the last of the labels found. The leaves of a
    block are listed when it is opened. The first `known` blocks on the path to the label are estimated already. Unless
    it is exact, the search opens at most as many blocks as a beam search would on all levels, see `beam_search`.
    """
    top, top_p = output.top[i], output.top_p[i]
    k = top.shape[0]
    m = scratch.waiting_mass.shape[1]
    size = 0
    opened = 0
    gap = 0.0
    most = settings.beam * (tree.size[DEEPEST] // scratch.levels + 1) if not settings.exact else tree.size[NODES]
    if tree.left[0] == 0:
        top[0] = tree.label[0]
        top_p[0] = 1.0
        return
    a = np.int64(0)
    p = 1.0
    depth = -1
    while True:
        # open the block at a, of mass p
        opened += 1
        depth += 1
        child, waiting_mass = scratch.child[depth], scratch.waiting_mass[depth]
        if depth < known and scratch.root[depth] == a:
            _children(tree, a, scratch.levels, child)
            for c in range(m):
                waiting_mass[c] = scratch.mass[depth, c]
        else:
            _open(tree, weights, scratch, count, a, scratch.other_scores, child, waiting_mass)
        for c in range(m):
            waiting_mass[c] = waiting_mass[c] * p if child[c] >= 0 else -1.0
        for c in range(m):
            if waiting_mass[c] >= 0.0 and tree.left[child[c]] == 0:
                if waiting_mass[c] >= settings.cut * top_p[0]:
                    size = top_k.insert(top, top_p, size, tree.label[child[c]], waiting_mass[c])
                waiting_mass[c] = -1.0
        # find the next block to open
        while depth >= 0:
            best = np.argmax(scratch.waiting_mass[depth])
            p = scratch.waiting_mass[depth, best]
            if p < 0.0 or p < settings.cut * top_p[0] or (size == k and p <= top_p[k - 1]):
                depth -= 1
            elif opened >= most and size > 0:
                gap = max(gap, p)
                depth -= 1
            else:
                scratch.waiting_mass[depth, best] = -1.0
                a = scratch.child[depth, best]
                break
        if depth < 0:
            break
    output.opened[i] = opened
    output.gap[i] = gap if size < k or gap > top_p[k - 1] else 0.0


@jit
def _fits(tree: ClassTree, scratch: WideNodeScratch, labels: Int) -> bool:
    """Return whether the tree has capacity for more labels, and the scratch for deeper paths."""
    blocks = (tree.size[DEEPEST] + 2 + labels) // scratch.levels + 2
    return label_tree.has_capacity(tree, labels) and blocks <= scratch.root.shape[0]


@jit
def process_batch(
    tree: ClassTree, weights: adagrad.SharedWeights, settings: TreeSettings, random: UInt64s, batch: Batch,
    label: Int64s, learns: Bools, begin: int, end: int, scratch: WideNodeScratch, output: TreePredictions,
) -> int:  # fmt: skip
    """Do what `binary_nodes.process_batch` does."""
    for i in range(begin, end):
        first, last = label_arrays.span(batch, label, i)
        if learns[i] and (not _fits(tree, scratch, last - first) or tagged_words.is_full(weights.words)):
            return i
        count = adagrad.load(batch, i, settings.unit, scratch.h, scratch.x)
        known = np.int64(0)
        for j in range(first, last):
            leaf = label_tree.find(tree, label[j])
            if leaf >= 0:
                output.known[j] = True
                output.p[j], total = _follow(tree, weights, scratch, leaf, count)
                known = _blocks(tree, scratch, leaf)
                output.regressors[j] = known * (scratch.score.shape[1] - 1)
                output.loss[j] = total / max(output.regressors[j], 1)
        if settings.search and tree.size[NODES] > 0:
            _search(tree, weights, settings, scratch, count, known, i, output)
        for j in range(first, last if learns[i] else first):
            leaf = label_tree.find(tree, label[j])
            if leaf < 0:
                _insert(tree, weights, settings, random, scratch, label[j], count, batch.weight[i])
                continue
            if last - first > 1:  # another path has been followed or learned since
                _follow(tree, weights, scratch, leaf, count)
            _learn_path(tree, weights, scratch, leaf, count, batch.weight[i])
    return end


@jit
def candidate_probabilities(
    tree: ClassTree, weights: adagrad.SharedWeights, settings: TreeSettings, batch: Batch, begin: int, end: int,
    scratch: WideNodeScratch, memo_row: Int64s, memo_p: Float64s, candidate: Int64s, p: Float64s,
) -> None:  # fmt: skip
    """Compute the probabilities of given candidates, as `binary_nodes.candidate_probabilities` does.

    `memo_row` is indexed by the root of a block, `memo_p` by the nodes that its branches lead to.
    """
    child, v = scratch.child[0], scratch.mass[0]
    for i in range(begin, end):
        count = adagrad.load(batch, i, settings.unit, scratch.h, scratch.x)
        for j in range(candidate.shape[1]):
            label = candidate[i, j]
            p[i, j] = 0.0
            leaf = label_tree.find(tree, label) if label > 0 else np.int64(-1)
            if leaf < 0:
                continue
            product = 1.0
            while tree.parent[leaf] >= 0:
                root = _root(tree, scratch.levels, leaf)
                if memo_row[root] != i:
                    _open(tree, weights, scratch, count, root, scratch.other_scores, child, v)
                    for c in range(child.shape[0]):
                        if child[c] >= 0:
                            memo_p[child[c]] = v[c]
                    memo_row[root] = i
                product *= memo_p[leaf]
                leaf = root
            p[i, j] = product
