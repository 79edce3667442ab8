"""Find the most probable labels of a conditional probability tree exactly, without visiting all leaves (`--exact`).

Source    This project's own. A leaf is at most as probable as each node above it. So once k labels are found, a node
          that is less probable than the last of them need not be opened; the result is that of a search of all leaves.
Idea      The search is best first: it opens the most probable node next. The nodes that wait to be opened are kept in
          buckets by priority, four buckets for each factor of two, so a heap is not needed. In a bucket, the node added
          last is opened first. The weights of a waiting node's regressor are prefetched. A search for one label begins
          with the leaf to which the more probable children lead. Where probabilities are spread over many labels,
          thousands of nodes are opened, so that `beam_search` is the default.
Cost      O(s) for every node opened.
Names     mass: probability that the label is at or below a node | open: score a node's regressor.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...array_types import Float64s, Int, Int64s
from ...binary import adagrad
from ...kernels import intrinsics, top_k
from ...kernels.jit import bare, on_demand
from . import node_scores
from .label_tree import ClassTree

BUCKETS = 256
LAST = BUCKETS - 1
STEP = 50  # bits of a float64 below those that choose a bucket, which are the exponent and two bits of the mantissa
ONE_BITS = int(np.float64(1.0).view(np.int64))  # of a float64


class Waiting(NamedTuple):
    """Hold up to m nodes that a search has reached but not opened, for one thread."""

    node: Int64s  # int64[m]
    mass: Float64s  # float64[m]
    next_item: Int64s  # int64[m], next item of the same bucket, -1 for the last
    head: Int64s  # int64[BUCKETS], first item of each bucket; -1 everywhere between searches


def new_waiting(capacity: int) -> Waiting:
    return Waiting(
        np.empty(capacity, np.int64), np.empty(capacity), np.empty(capacity, np.int64), np.full(BUCKETS, -1, np.int64)
    )  # fmt: skip


# -- kernels
#
# `settings` are `binary_nodes.TreeSettings`, and `scratch` is `binary_nodes.BinaryNodeScratch`.


@bare
def _bucket(p: float) -> Int:
    """Return the bucket of a node with probability p; 0 is opened first."""
    return min((ONE_BITS - intrinsics.bits_of(p)) >> STEP, LAST)  # the bits are nearly linear in the logarithm


@on_demand
def find_top_k(
    tree: ClassTree,
    weights: adagrad.SharedWeights,
    settings: Any,
    scratch: Any,
    count: Int,
    top: Int64s,
    top_p: Float64s,
) -> int:
    """Find the k most probable labels as `beam_search.find_top_k` does; return the number of nodes opened."""
    k = top.shape[0]
    node, mass, next_item, head = scratch.waiting
    size = np.int64(0)
    opened = 0
    items = np.int64(0)
    first, last = np.int64(0), np.int64(-1)  # all items are in the buckets first..last
    least = 0.0
    a, p = np.int64(0), 1.0
    if tree.left[a] == 0:
        size = top_k.insert(top, top_p, size, tree.label[a], p)
        a = np.int64(-1)
    elif k == 1:
        insert_first(tree, weights, scratch, count, top, top_p)
        size, least = np.int64(1), top_p[0]
    while a >= 0:
        opened += 1
        right = node_scores.probability(weights, scratch.memo, scratch.h, scratch.x, count, tree.place[a])
        left = np.int64(tree.left[a])
        right_first = right > 0.5
        parent_p = p
        a = np.int64(-1)
        for child in range(2):  # the more probable one first
            c = left + 1 if right_first == (child == 0) else left
            q = parent_p * (right if c > left else 1.0 - right)
            if q < least or (size == k and q == least):
                continue
            if tree.left[c] == 0:
                size = top_k.insert(top, top_p, size, tree.label[c], q)
                least = max(settings.cut * top_p[0], top_p[k - 1])
                continue
            bucket = _bucket(q)
            if child == 0 and bucket <= first:
                a, p = c, q
                continue
            node_scores.prefetch(weights, scratch.h, count, tree.place[c])
            node[items] = c
            mass[items] = q
            next_item[items] = head[bucket]
            head[bucket] = items
            items += 1
            first = min(first, bucket)
            last = max(last, bucket)
        while a < 0 and first <= last:
            item = head[first]
            if item < 0:
                first += 1
                continue
            head[first] = next_item[item]
            if mass[item] > least or (mass[item] == least and size < k):
                a, p = node[item], mass[item]
    for bucket in range(first, last + 1):
        head[bucket] = -1
    drop_improbable(settings, top, top_p, size)
    return opened


@bare
def insert_first(
    tree: ClassTree, weights: adagrad.SharedWeights, scratch: Any, count: Int, top: Int64s, top_p: Float64s
) -> None:
    """Insert the label to which the more probable children lead, the left one of two that are equally probable."""
    a, p = np.int64(0), 1.0
    while tree.left[a] > 0:
        right = node_scores.probability(weights, scratch.memo, scratch.h, scratch.x, count, tree.place[a])
        a = np.int64(tree.left[a]) + (1 if right > 0.5 else 0)
        p *= max(right, 1.0 - right)
    top[0] = tree.label[a]
    top_p[0] = p


@bare
def drop_improbable(settings: Any, top: Int64s, top_p: Float64s, size: Int) -> None:
    """Remove the labels found that are less probable than `cut` times the best one; there are `size` of them."""
    while size > 1 and top_p[size - 1] < settings.cut * top_p[0]:
        size -= 1
        top[size] = 0
        top_p[size] = 0.0
