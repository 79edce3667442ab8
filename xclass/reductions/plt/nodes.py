"""Score, search and train the nodes of a probabilistic label tree.

Cost      Learning takes O(s) for each node that is trained, in long loops over these nodes; a search scores the
          children of each node that it opens.
Names     n a node, numbered breadth first: the root is 0, the children of n are B n + 1 to B n + B. The last K nodes
          are the leaves of the labels.
Idea      The nodes on the paths of an example's labels, in falling order, follow from merging the leaves and the
          parents of the nodes found so far, both in falling order: no set of nodes is needed. What an example trains
          are the root and the children of these nodes. Their scores are kept for the search, which precedes training.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ...array_types import Bools, Float32s, Float64s, Int, Int64s, UInt64s
from ...binary import gd
from ...data.batch import Batch
from ...kernels import fast_math, intrinsics
from ...kernels.constants import ONE, ZERO
from ...kernels.jit import bare

SURE = np.float32(4)  # score from which on a node is not trained towards what it says, a probability of 0.982
FIRST = 3  # subproblem of the root if the layout is not VW's: children begin at multiples of 2 or 4, in one cache line


class Tree(NamedTuple):
    """Describe a tree by its numbers of labels, children of a node, inner nodes and nodes, and by its subproblems."""

    labels: int
    arity: int
    inner: int
    nodes: int
    # children of an inner node that are scored: below `nodes`, or with --vw_exact of any number; VW also scores the
    # children that the last inner node lacks, and xclass does not predict their labels
    end: int
    first: int  # subproblem of the root, whose next ones are those of the other nodes; see FIRST


class Search(NamedTuple):
    """Say what a search for labels finds."""

    least: int  # number of labels to find, the most probable ones; below it, labels of any probability are found
    threshold: np.float32  # all labels whose probability is above it are found as well
    known: Int64s  # int64[n], how many labels each example may get, the first ones


class Scratch(NamedTuple):
    """Hold one thread's scratch for an example."""

    place: UInt64s  # uint64[s], hash * width of each feature
    x: Float32s  # float32[s], values
    heap_p: Float32s  # float32[nodes + B], probabilities of the nodes in the heap
    heap_node: Int64s  # int64[nodes + B]
    child: UInt64s  # uint64[B], subproblems of the children of the node that is opened, with --vw_exact
    child_score: Float32s  # float32[B]
    label: Int64s  # int64[K], labels found
    p: Float32s  # float32[K], their probabilities
    positive: Int64s  # int64[...], nodes on the paths of the labels
    first: Int64s  # int64[...], for each of them the lane of its first child
    score: Float32s  # float32[lanes], scores of the nodes that are trained
    lanes: gd.Lanes


class Found(NamedTuple):
    """Hold the labels found for some examples of a batch, those of an example in falling order of probability."""

    label: Int64s  # int64[...], 0-based
    p: Float32s  # float32[...]
    count: Int64s  # type: ignore[assignment]  # hides tuple.count; int64[n], number of labels of each example
    size: Int64s  # int64[1], labels found so far


def new_tree(labels: int, arity: int, phantoms: bool, first: int) -> Tree:
    inner = -(-(labels - 1) // (arity - 1))
    nodes = labels + inner
    return Tree(labels, arity, inner, nodes, nodes + arity if phantoms else nodes, first)


def new_found(count: Int64s, room: int) -> Found:
    """Return room for so many labels; `count` is that of all examples of the batch."""
    return Found(np.empty(room, np.int64), np.empty(room, np.float32), count, np.zeros(1, np.int64))


def grown(found: Found, labels: int) -> Found:
    """Return the same with twice the room, and room for `labels` more."""
    larger = new_found(found.count, 2 * len(found.label) + labels)
    size = larger.size[0] = found.size[0]
    larger.label[:size], larger.p[:size] = found.label[:size], found.p[:size]
    return larger


def new_scratch(tree: Tree, features: int, labels: int) -> Scratch:
    """Return scratch for examples of at most so many features and labels."""
    depth, below = 1, tree.nodes - 1
    while below > 0:
        depth, below = depth + 1, (below - 1) // tree.arity
    nodes = labels * depth
    lanes = min(tree.nodes, 1 + nodes * tree.arity)
    heap = tree.nodes + tree.arity
    return Scratch(
        np.empty(features, np.uint64), np.empty(features, np.float32), np.empty(heap, np.float32),
        np.empty(heap, np.int64), np.empty(tree.arity, np.uint64), np.empty(tree.arity, np.float32),
        np.empty(tree.labels, np.int64), np.empty(tree.labels, np.float32), np.empty(nodes, np.int64),
        np.empty(nodes, np.int64), np.empty(lanes, np.float32), gd.new_lanes(lanes),
    )  # fmt: skip


# -- kernels


@bare
def load(table: gd.Table, batch: Batch, i: Int, scratch: Scratch) -> Int:
    """Copy the features of example i; return their number."""
    begin = batch.start[i]
    count = np.int64(batch.start[i + 1] - begin)
    for f in range(count):
        scratch.place[f] = np.uint64(batch.index[begin + f]) * table.width
        scratch.x[f] = batch.value[begin + f]
    table.guard.now[0] = i
    return count


@bare
def sigmoid(s: np.float32) -> np.float32:
    """Return the probability of a score, NaN for NaN."""
    return s if math.isnan(s) else ONE / (ONE + fast_math.expf(-s))


# the heap, whose order at equal probabilities is that of libstdc++'s push_heap and pop_heap, as in VW


@bare
def _rise(heap_p: Float32s, heap_node: Int64s, i: Int, p: np.float32, n: Int) -> None:
    """Put a node into the free place i or above it."""
    while i > 0 and heap_p[(i - 1) // 2] < p:
        heap_p[i], heap_node[i] = heap_p[(i - 1) // 2], heap_node[(i - 1) // 2]
        i = (i - 1) // 2
    heap_p[i], heap_node[i] = p, n


@bare
def _remove_first(heap_p: Float32s, heap_node: Int64s, size: Int) -> None:
    """Remove the first node of a heap that has `size` of them afterwards."""
    hole = 0
    while 2 * hole + 1 < size:
        child = 2 * hole + 2
        if child == size or heap_p[child] < heap_p[child - 1]:
            child -= 1
        heap_p[hole], heap_node[hole] = heap_p[child], heap_node[child]
        hole = child
    _rise(heap_p, heap_node, hole, heap_p[size], heap_node[size])


@bare
def _score_row(table: gd.Table, scratch: Scratch, features: Int, begin: Int, count: Int) -> None:
    """Score subproblems from `begin` on, which are neighbours, as `gd.score` would one by one, two at a time."""
    flat, mask, stride, place, x = table.flat, table.mask, table.stride, scratch.place, scratch.x
    for j in range(0, count - 1, 2):
        first = np.uint64(begin + j)
        second = first + np.uint64(1)
        a, b = ZERO, ZERO
        for f in range(features):
            a += flat[((place[f] + first) & mask) * stride] * x[f]
            b += flat[((place[f] + second) & mask) * stride] * x[f]
        scratch.child_score[j], scratch.child_score[j + 1] = a, b
    for j in range(0 if len(table.shrunk) > 0 else count & ~1, count):
        scratch.child_score[j] = gd.score(table, place, x, features, np.uint64(begin + j), ZERO)


@bare
def _prefetch(tree: Tree, table: gd.Table, scratch: Scratch, features: Int, n: Int) -> None:
    """Prefetch the weights of the first children of a node, which is probably opened next."""
    child = np.uint64(tree.arity * n + 1 + tree.first)
    for f in range(features):
        intrinsics.prefetch(table.flat, np.int64(((scratch.place[f] + child) & table.mask) * table.stride))


@bare
def _first_leaf(tree: Tree, n: Int) -> Int:
    """Return the leaf below a node that has the lowest label, or the node if it is a leaf."""
    last = n
    while last < tree.inner:
        n, last = tree.arity * n + 1, tree.arity * last + tree.arity
    return max(n, tree.inner)


@bare
def search(
    tree: Tree, table: gd.Table, scratch: Scratch, features: Int, wanted: Search, positive: Int, root: np.float32,
    i: Int,
) -> int:  # fmt: skip
    """Find the best labels of example i, which is loaded; return how many.

    `scratch.label` and `scratch.p` are written, best first. The children of the first `positive` nodes of
    `scratch.positive`, which are in falling order, have been scored; `root` is the score of the root.
    """
    heap_p, heap_node, score = scratch.heap_p, scratch.heap_node, scratch.child_score
    heap_p[0], heap_node[0] = sigmoid(root), 0
    known = wanted.known[i]
    size, found = int(known > 0), 0
    while size > 0:
        p, n = heap_p[0], heap_node[0]
        if found >= wanted.least and not p > wanted.threshold:
            break
        size -= 1
        _remove_first(heap_p, heap_node, size)
        if size > 0 and heap_node[0] < tree.inner:
            _prefetch(tree, table, scratch, features, heap_node[0])
        if n >= tree.inner:
            if n < tree.nodes:
                scratch.label[found], scratch.p[found] = n - tree.inner, p
                found += 1
            continue
        begin = tree.arity * n + 1
        end = min(begin + tree.arity, tree.end)
        place = _find(scratch.positive, positive, n)
        if place >= 0:
            for j in range(end - begin):
                score[j] = scratch.score[scratch.first[place] + j]
        else:
            _score_row(table, scratch, features, begin + tree.first, end - begin)
        for j in range(end - begin):
            if known < tree.labels and _first_leaf(tree, begin + j) >= tree.inner + known:
                continue
            _rise(heap_p, heap_node, size, p * sigmoid(score[j]), begin + j)
            size += 1
    return found


@bare
def _find(nodes: Int64s, count: Int, n: Int) -> Int:
    """Return the place of a node among the first `count` of `nodes`, which fall; -1 if it is not there."""
    low, high = np.int64(0), np.int64(count)
    while low < high:
        middle = (low + high) // 2
        if nodes[middle] > n:
            low = middle + 1
        else:
            high = middle
    return low if low < count and nodes[low] == n else np.int64(-1)


@bare
def paths(tree: Tree, label: Int64s, first: Int, last: Int, nodes: Int64s) -> int:
    """Write the nodes on the paths of `label[first:last]`, in falling order; return how many.

    The labels ascend and are 0-based, -1 for those that the tree lacks.
    """
    size, up, j = 0, 0, last - 1
    while True:
        while j >= first and label[j] < 0:
            j -= 1
        leaf = tree.inner + label[j] if j >= first else np.int64(-1)
        above = (nodes[up] - 1) // tree.arity if up < size and nodes[up] > 0 else np.int64(-1)
        n = max(leaf, above)
        if n < 0:
            return size
        j -= leaf == n
        up += above == n
        if size == 0 or nodes[size - 1] != n:
            nodes[size] = n
            size += 1


@bare
def targets(tree: Tree, scratch: Scratch, positive: Int) -> int:
    """List the nodes that an example trains, and their labels, as lanes; return how many.

    The first `positive` nodes of `scratch.positive` are as from `paths`. If there are none, the root learns -1.
    """
    sub, y = scratch.lanes.sub, scratch.lanes.y
    sub[0] = tree.first
    y[0] = ONE if positive > 0 else -ONE
    lanes, following = 1, positive - 2
    for j in range(positive - 1, -1, -1):
        n = scratch.positive[j]
        if n >= tree.inner:
            break
        scratch.first[j] = lanes
        begin = tree.arity * n + 1
        for c in range(begin, min(begin + tree.arity, tree.nodes)):
            sub[lanes] = np.uint64(c + tree.first)
            y[lanes] = -ONE
            if following >= 0 and scratch.positive[following] == c:
                y[lanes] = ONE
                following -= 1
            lanes += 1
    return lanes


@bare
def train(
    tree: Tree, table: gd.Table, rule: gd.Rule, scratch: Scratch, features: Int, lanes: Int, weight: np.float32,
    updated: Float64s,
) -> None:  # fmt: skip
    """Train the nodes of the lanes, whose scores are known; `updated`, the weight of their updates, is their clock."""
    lane = scratch.lanes
    trained = 0
    for j in range(lanes):
        p, y = gd.clip(scratch.score[j], table.range), lane.y[j]
        if p * y > SURE:
            continue
        lane.sub[trained], lane.p[trained], lane.y[trained] = lane.sub[j], p, y
        updated[np.int64(lane.sub[j]) - tree.first] += weight
        trained += 1
    if rule.adaptive:
        gd.learn_lanes(table, rule, scratch.place, scratch.x, features, trained, lane, weight, np.float64(0))
        return
    for j in range(trained):
        clock = updated[np.int64(lane.sub[j]) - tree.first]
        gd.learn(table, rule, scratch.place, scratch.x, features, lane.sub[j], lane.p[j], lane.y[j], weight, clock)


@bare
def has_room(found: Found, scratch: Scratch, count: Int, i: Int) -> bool:
    """Add the `count` labels found for example i to the others; return False, and add none, if there is no room."""
    size = found.size[0]
    if size + count > len(found.label):
        return False
    for j in range(count):
        found.label[size + j], found.p[size + j] = scratch.label[j], scratch.p[j]
    found.count[i] = count
    found.size[0] = size + count
    return True


@bare
def learn_batch(
    tree: Tree, table: gd.Table, rule: gd.Rule, wanted: Search, batch: Batch, label: Int64s, learned: Bools,
    begin: int, end: int, scratch: Scratch, updated: Float64s, found: Found,
) -> int:  # fmt: skip
    """Search the best labels of examples begin..end-1, and train on those that are learned.

    Return the first example for which `found` has no room, or `end`. `label` has the 0-based labels of all examples, as
    `paths` needs them, `learned` is bool[n], and `updated` as in `train`.
    """
    for i in range(begin, end):
        features = load(table, batch, i, scratch)
        positive, lanes = 0, 0
        if learned[i]:
            positive = paths(tree, label, batch.label_start[i], batch.label_start[i + 1], scratch.positive)
            lanes = targets(tree, scratch, positive)
            gd.score_lanes(table, scratch.place, scratch.x, features, scratch.lanes.sub, lanes, scratch.score)
            root = scratch.score[0]
        else:
            root = gd.score(table, scratch.place, scratch.x, features, np.uint64(tree.first), ZERO)
        if not has_room(found, scratch, search(tree, table, scratch, features, wanted, positive, root, i), i):
            return i
        if learned[i]:
            train(tree, table, rule, scratch, features, lanes, batch.weight[i], updated)
    return end
