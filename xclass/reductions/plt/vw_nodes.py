"""Score and search the nodes of the probabilistic label tree of VW, for `--vw_exact`.

Cost      A search scores the children of each node that it opens.
Names     n a node, numbered breadth first: the root is 0, the children of n are B n + 1 to B n + B. The last K nodes
          are the leaves of the labels.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ...array_types import Float32s, Int, Int64s, UInt64s
from ...binary import gd
from ...data.batch import Batch
from ...kernels import fast_math
from ...kernels.constants import ONE, ZERO
from ...kernels.jit import bare
from . import search
from .search import Search


class Tree(NamedTuple):
    """Describe a tree by its numbers of labels, children of a node, inner nodes and nodes.

    VW also scores the children that the last inner node lacks, and xclass does not predict their labels.
    """

    labels: int
    arity: int
    inner: int
    nodes: int


class Scratch(NamedTuple):
    """Hold one thread's scratch for an example."""

    place: UInt64s  # uint64[s], hash * width of each feature
    x: Float32s  # float32[s], values
    heap_p: Float32s  # float32[nodes + B], probabilities of the nodes in the heap
    heap_node: Int64s  # int64[nodes + B]
    child: UInt64s  # uint64[B], subproblems of the children of the node that is opened
    child_score: Float32s  # float32[B]
    label: Int64s  # int64[K], labels found
    p: Float32s  # float32[K], their probabilities


def new_tree(labels: int, arity: int) -> Tree:
    inner = -(-(labels - 1) // (arity - 1))
    return Tree(labels, arity, inner, labels + inner)


def new_scratch(tree: Tree, features: int) -> Scratch:
    """Return scratch for examples of at most so many features."""
    heap = tree.nodes + tree.arity
    return Scratch(
        np.empty(features, np.uint64), np.empty(features, np.float32), np.empty(heap, np.float32),
        np.empty(heap, np.int64), np.empty(tree.arity, np.uint64), np.empty(tree.arity, np.float32),
        np.empty(tree.labels, np.int64), np.empty(tree.labels, np.float32),
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
def _first_leaf(tree: Tree, n: Int) -> Int:
    """Return the leaf below a node that has the lowest label, or the node if it is a leaf."""
    last = n
    while last < tree.inner:
        n, last = tree.arity * n + 1, tree.arity * last + tree.arity
    return max(n, tree.inner)


@bare
def find_best(
    tree: Tree, table: gd.Table, scratch: Scratch, features: Int, wanted: Search, i: Int
) -> int:  # fmt: skip
    """Find the best labels of example i, which is loaded; return how many.

    `scratch.label` and `scratch.p` are written, best first.
    """
    heap_p, heap_node, score = scratch.heap_p, scratch.heap_node, scratch.child_score
    heap_p[0] = sigmoid(gd.score(table, scratch.place, scratch.x, features, np.uint64(0), ZERO))
    heap_node[0] = 0
    known = wanted.known[i]
    size, found = int(known > 0), 0
    while size > 0:
        p, n = heap_p[0], heap_node[0]
        if found >= wanted.least and not p > wanted.threshold:
            break
        size -= 1
        search.remove_first(heap_p, heap_node, size)
        if n >= tree.inner:
            if n < tree.nodes:
                scratch.label[found], scratch.p[found] = n - tree.inner, p
                found += 1
            continue
        begin = tree.arity * n + 1
        _score_row(table, scratch, features, begin, tree.arity)
        for j in range(tree.arity):
            if known < tree.labels and _first_leaf(tree, begin + j) >= tree.inner + known:
                continue
            search.rise(heap_p, heap_node, size, p * sigmoid(score[j]), begin + j)
            size += 1
    return found
