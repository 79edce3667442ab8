"""A tree of nodes of m branches, for one example after the other: f(y|x), the best labels, an update.

Source    Beygelzimer, Langford, Lifshits, Sorkin, Strehl, "Conditional Probability Tree Estimation Analysis and
          Algorithms", UAI 2009, section "hpecoc" (theorem: the squared loss of f(y|x) is at most
          4 (1 - 1/m)**2 (log_m K)**2 times the mean squared loss of the regressors asked); the search is ours.
Idea      The tree is the binary one of label_tree, `levels` of its levels are one node of m = 2**levels branches.
          Bit l of a branch says whether the turn at level l goes right; a leaf further up has zeros behind. So a
          leaf that is split inside a block keeps its branch, the new label has one nobody used, and the tree grows
          as labels come.
Cost      learning and the probability of a given label O(s m log_m K); a search the same for every node it opens.
Names     block: a node of m branches | root: where it begins in the binary tree, at a depth divisible by levels |
          branch: a code 0..m-1 | child[c]: binary node at branch c, a leaf or the root of the next block.
Differs   from the paper, where the tree is given: a block fills up before another begins below it, so that m >= K
          is one node, plain PECOC. In a block with room a new label goes where there is room; else by the binary
          tree's rule, p being the estimated mass to the right over that on both sides.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...array_types import Float32s, Float64s, Int64s, UInt64s
from ...binary import adagrad
from ...kernels import rng, top_k
from ...kernels.constants import HALF, ZERO
from ...kernels.jit import jit
from . import binary_nodes, label_tree, pecoc

NODES, DEEPEST = label_tree.NODES, label_tree.DEEPEST
ROOT_12 = binary_nodes.ROOT_12


class Scratch(NamedTuple):
    """Rows of one thread: features, the blocks on the label's path, those the search is in."""

    h: UInt64s  # uint64[s]
    x: Float32s  # float32[s]
    at: Int64s  # int64[2 * s]
    root: Int64s  # int64[blocks], of the blocks from the tree's root to the label's leaf
    branch: Int64s  # int64[blocks], which leads to the leaf
    score: Float32s  # float32[blocks, m]
    mass: Float64s  # float64[blocks, m], of the branches
    child: Int64s  # int64[blocks, m], of the blocks the search is in
    left: Float64s  # float64[blocks, m], mass of their branches that wait, -1 of those that are done
    one: Float32s  # float32[m], scores of any other block
    square: Float32s  # float32[m], of its update
    step: Float32s  # float32[m]
    reach: Float32s  # float32[m]
    levels: int


def scratch(levels: int, longest: int, depth: int) -> Scratch:
    """Rows for examples of up to `longest` features and a binary tree of up to `depth`."""
    m, blocks = 1 << levels, depth // levels + 2
    return Scratch(
        np.empty(longest, np.uint64), np.empty(longest, np.float32), np.empty(2 * longest, np.int64),
        np.empty(blocks, np.int64), np.empty(blocks, np.int64), np.empty((blocks, m), np.float32),
        np.empty((blocks, m)), np.empty((blocks, m), np.int64), np.empty((blocks, m)), np.empty(m, np.float32),
        np.empty(m, np.float32), np.empty(m, np.float32), np.empty(m, np.float32), levels,
    )  # fmt: skip


def path_bytes(levels: int, depth: int) -> int:
    """What the blocks of the longest path take in a thread's `scratch`."""
    return (depth // levels + 2) * (28 << levels)


# -- kernels


@jit
def _place(root, m):
    """Where the regressors of a block begin: places are numbered as nodes are."""
    return m * (root + 1)


@jit
def _children(tree, root, levels, child):
    """`child[c]` = the node at branch c of a block, -1 where nobody uses it; return how many do."""
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
def _open(tree, weights, scratch, count, root, s, child, v):
    """Score a block and estimate its branches."""
    pecoc.score(weights, scratch.h, scratch.x, count, _place(root, s.shape[0]), scratch.at, s)
    _children(tree, root, scratch.levels, child)
    pecoc.estimate(weights, s, child, v)


@jit
def _root(tree, levels, a):
    """Where the block begins of which node a is a branch."""
    a = np.int64(tree.parent[a])
    while tree.depth[a] % levels > 0:
        a = np.int64(tree.parent[a])
    return a


@jit
def _blocks(tree, scratch, leaf):
    """Blocks on the way to a leaf, without one of its own."""
    return -(-np.int64(tree.depth[leaf]) // scratch.levels)


@jit
def _trace(tree, scratch, leaf):
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
def _follow(tree, weights, scratch, leaf, count):
    """Open the blocks from the root to a leaf; return f(y|x)."""
    blocks = _trace(tree, scratch, leaf)
    p = 1.0
    for b in range(blocks):
        _open(tree, weights, scratch, count, scratch.root[b], scratch.score[b], scratch.child[b], scratch.mass[b])
        p *= scratch.mass[b, scratch.branch[b]]
    return p


@jit
def _asked(tree, weights, scratch, leaf):
    """How many regressors `_follow` asked, and their mean squared loss."""
    blocks = _blocks(tree, scratch, leaf)
    total = 0.0
    for b in range(blocks):
        total += pecoc.loss(weights, scratch.score[b], scratch.branch[b])
    asked = blocks * (scratch.score.shape[1] - 1)
    return asked, total / max(asked, 1)


@jit
def _learn_path(tree, weights, scratch, leaf, count, weight):
    """Train the blocks `_follow` opened with the branches to the leaf, and the leaf's own block with branch 0.

    A leaf has a block of its own where it is next to be split: below a block that is full.
    """
    m = scratch.score.shape[1]
    blocks = _blocks(tree, scratch, leaf)
    for b in range(blocks):
        pecoc.learn(
            weights, scratch.h, scratch.x, count, _place(scratch.root[b], m), scratch.branch[b], scratch.score[b],
            scratch.square, scratch.step, scratch.reach, weight,
        )  # fmt: skip
    if tree.depth[leaf] % scratch.levels > 0:
        return
    if blocks == 0 or _children(tree, scratch.root[blocks - 1], scratch.levels, scratch.child[0]) == m:
        place = _place(leaf, m)
        pecoc.score(weights, scratch.h, scratch.x, count, place, scratch.at, scratch.one)
        pecoc.learn(
            weights, scratch.h, scratch.x, count, place, 0, scratch.one, scratch.square, scratch.step, scratch.reach,
            weight,
        )  # fmt: skip


@jit
def _sums(child, v, first, gap):
    """Branches in use among first, first + gap, ..., and their mass."""
    used = 0
    mass = 0.0
    for c in range(first, v.shape[0], gap):
        if child[c] >= 0:
            used += 1
            mass += v[c]
    return used, mass


@jit
def _seek(tree, weights, settings, random, scratch, count):
    """The leaf a new label splits; it is counted on the way there."""
    a = np.int64(0)
    m = scratch.score.shape[1]
    child, v = scratch.child[0], scratch.mass[0]
    while tree.left[a] > 0:
        _open(tree, weights, scratch, count, a, scratch.one, child, v)
        branch = 0
        for level in range(scratch.levels):
            if tree.left[a] == 0:
                break
            half = 1 << level
            most = m >> (level + 1)
            used_left, mass_left = _sums(child, v, branch, 2 * half)
            used_right, mass_right = _sums(child, v, branch + half, 2 * half)
            left = np.int64(tree.left[a])
            if (used_left == most) != (used_right == most):
                right = used_left == most
            elif settings.alpha == 0.0:
                right = rng.draw(random) >= HALF
            else:
                rule = binary_nodes.objective(
                    settings.alpha, mass_right / (mass_left + mass_right), np.float64(tree.leaves[left]),
                    np.float64(tree.leaves[left + 1]),
                )  # fmt: skip
                if settings.noise > ZERO:
                    rule += np.float64(settings.noise * ROOT_12 * (rng.draw(random) - HALF))
                right = rule > 0.0
            tree.leaves[a] += 1
            if right:
                a = left + 1
                branch += half
            else:
                a = left
    tree.leaves[a] += 1
    return a


@jit
def _insert(tree, weights, settings, random, scratch, label, count, weight):
    """Bring a new label into the tree and train the blocks on its way."""
    if tree.size[NODES] == 0:
        label_tree.plant(tree, label)
        leaf = np.int64(0)
    else:
        leaf = label_tree.split(tree, _seek(tree, weights, settings, random, scratch, count), label)
    _follow(tree, weights, scratch, leaf, count)
    _learn_path(tree, weights, scratch, leaf, count, weight)


@jit
def _likeliest(left):
    """The branch of most mass."""
    best = 0
    for c in range(1, left.shape[0]):
        if left[c] > left[best]:
            best = c
    return best


@jit
def _search(tree, weights, settings, scratch, count, known, floor, label, complete, i, found):
    """The most probable labels of example i, depth first and the likeliest branch first.

    As in binary_nodes: a branch that has no more mass than the last of the labels found is not opened. A block's
    leaves are looked at when it is opened. The first `known` blocks on the label's path are estimated already.
    """
    top, top_p = found.top[i], found.top_p[i]
    k = top.shape[0]
    m = scratch.left.shape[1]
    size = 0
    opened = 0
    gap = 0.0
    if tree.left[0] == 0:
        top[0] = tree.label[0]
        top_p[0] = 1.0
        return
    a = np.int64(0)
    p = 1.0
    depth = -1
    going = True
    while going:
        # open a, of mass p
        opened += 1
        depth += 1
        child, left = scratch.child[depth], scratch.left[depth]
        if depth < known and scratch.root[depth] == a:
            _children(tree, a, scratch.levels, child)
            left[:] = scratch.mass[depth]
        else:
            _open(tree, weights, scratch, count, a, scratch.one, child, left)
        for c in range(m):
            left[c] = left[c] * p if child[c] >= 0 else -1.0
        if settings.greedy:
            best = _likeliest(left)
            for c in range(m):
                if c != best:
                    left[c] = -1.0
        for c in range(m):
            if left[c] >= 0.0 and tree.left[child[c]] == 0:
                if left[c] >= max(floor, settings.cut * top_p[0]):
                    size = top_k.insert(top, top_p, size, tree.label[child[c]], left[c])
                    going &= complete or top[0] == label
                left[c] = -1.0
        # the next one to open
        while going:
            best = _likeliest(scratch.left[depth])
            p = scratch.left[depth, best]
            if p < 0.0 or p < max(floor, settings.cut * top_p[0]) or (size == k and p <= top_p[k - 1]):
                depth -= 1
            elif opened >= settings.budget and size > 0:
                gap = max(gap, p)
                depth -= 1
            else:
                scratch.left[depth, best] = -1.0
                a = scratch.child[depth, best]
                break
            going = depth >= 0
    found.opened[i] = opened
    found.gap[i] = gap if size < k or gap > top_p[k - 1] else 0.0


@jit
def _fits(tree, scratch):
    """Whether there is room for one more label, and on the path for a deeper leaf."""
    return label_tree.has_room(tree) and (tree.size[DEEPEST] + 3) // scratch.levels + 2 <= scratch.root.shape[0]


@jit
def learn_batch(tree, weights, settings, random, batch, label, learns, whole, begin, end, scratch, found):
    """As binary_nodes.learn_batch: f(y|x), the most probable labels, then learn; return the first example not done."""
    for i in range(begin, end):
        y = label[i]
        leaf = label_tree.find(tree, y) if y > 0 else np.int64(-1)
        if learns[i] and leaf < 0 and not _fits(tree, scratch):
            return i
        count = adagrad.load(batch, i, settings.unit, scratch.h, scratch.x)
        floor = 0.0
        known = np.int64(0)
        if leaf >= 0:
            found.known[i] = True
            floor = _follow(tree, weights, scratch, leaf, count)
            found.p[i] = floor
            found.asked[i], found.loss[i] = _asked(tree, weights, scratch, leaf)
            known = _blocks(tree, scratch, leaf)
        if settings.search and tree.size[NODES] > 0:
            complete = whole[i] or leaf < 0
            _search(
                tree, weights, settings, scratch, count, known, 0.0 if complete or settings.greedy else floor, y,
                complete, i, found
            )  # fmt: skip
        if learns[i]:
            if leaf >= 0:
                _learn_path(tree, weights, scratch, leaf, count, batch.weight[i])
            else:
                _insert(tree, weights, settings, random, scratch, y, count, batch.weight[i])
    return end


@jit
def all_probabilities(tree, weights, settings, batch, i, scratch, mass):
    """`mass[a]` = probability that the label of example i is at or below a, for leaves and roots of blocks."""
    count = adagrad.load(batch, i, settings.unit, scratch.h, scratch.x)
    child, v = scratch.child[0], scratch.mass[0]
    mass[0] = 1.0
    for a in range(tree.size[NODES]):  # children come after their parent
        if tree.left[a] > 0 and tree.depth[a] % scratch.levels == 0:
            _open(tree, weights, scratch, count, a, scratch.one, child, v)
            for c in range(child.shape[0]):
                if child[c] >= 0:
                    mass[child[c]] = mass[a] * v[c]


@jit
def candidate_probabilities(tree, weights, settings, batch, begin, end, scratch, memo_row, memo_p, candidate, p):
    """Do what `binary_nodes.candidate_probabilities` does.

    `memo_row` is of a block's root, `memo_p` of the nodes that its branches lead to.
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
                    _open(tree, weights, scratch, count, root, scratch.one, child, v)
                    for c in range(child.shape[0]):
                        if child[c] >= 0:
                            memo_p[child[c]] = v[c]
                    memo_row[root] = i
                product *= memo_p[leaf]
                leaf = root
            p[i, j] = product
