"""Find the most probable labels of a conditional probability tree without visiting all leaves.

Source    This project's own. A leaf is at most as probable as each node above it. So once k labels are found, a node
          that is less probable than the last of them need not be opened; the result is that of a search of all leaves.
Idea      `find_best` searches depth first, the more probable child first. If it is only to be known whether a given
          label is the best, it ends at the first better label. `find_top_k` searches best first: it opens the most
          probable node next, so it opens fewer nodes. The nodes that wait to be opened are kept in buckets by
          priority, four buckets for each factor of two, so a heap is not needed. In a bucket, the node added last is
          opened first. The weights of a waiting node's regressor are prefetched.
          While learning, `beam_search` is used if there are several trees whose weights are tagged words. Without it, a
          search may open few nodes only. Where probabilities are spread, the most probable nodes are
          those near the root, and a budget would be used up before the search reaches leaves. `guided` searches divide
          the probability of a node by the fourth root of the number of its leaves, an estimate of what the best of them
          has. They find the same labels in half of the nodes; docs/defaults.md has the measurements.
Cost      O(s) for every node opened.
Names     mass: probability that the label is at or below a node | open: score a node's regressor.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...array_types import Float64s, Int64s
from ...kernels import intrinsics, top_k
from ...kernels.jit import jit
from . import node_scores

BUCKETS = 256
LAST = BUCKETS - 1
STEP = 50  # bits of a float64 below those that choose a bucket, which are the exponent and two bits of the mantissa
ONE_BITS = intrinsics.bits_of(1.0)


class Waiting(NamedTuple):
    """Hold up to m nodes that a search has reached but not opened, for one thread."""

    node: Int64s  # int64[m]
    mass: Float64s  # float64[m]
    next_item: Int64s  # int64[m], next item of the same bucket, -1 for the last
    head: Int64s  # int64[BUCKETS], first item of each bucket; -1 everywhere between searches


def new_waiting(capacity: int) -> Waiting:
    """Return buffers for `capacity` nodes."""
    return Waiting(
        np.empty(capacity, np.int64), np.empty(capacity), np.empty(capacity, np.int64), np.full(BUCKETS, -1, np.int64)
    )  # fmt: skip


# -- kernels
#
# `settings` are binary_nodes.Settings and `scratch` is its Scratch, in which the first `known` nodes of the path are
# scored already. `top` (int64[k]) and `top_p` (float64[k]) are 0 before the search, which writes them. A search returns
# the number of nodes opened, and a bound on the probability of an unlisted label if the budget ended it early, else 0.
# Both searches contain the code that opens a node: a shared function that is passed all parts of a tree takes twice
# the time.


@jit
def find_best(tree, weights, settings, budget, scratch, count, known, floor, label, top, top_p):
    """Find the most probable label, if its probability is at least `floor`.

    Parameters
    ----------
    budget : most nodes to open
    scratch : its `waiting` is written
    floor : least probability of interest
    label : if above 0, a label of probability `floor`, and the search ends at the first other label that has as much
    top, top_p : int64[1 or more], float64[1 or more], the first item is written

    Returns
    -------
    opened : number of nodes opened
    gap : bound on the probability of an unlisted label if the budget ended the search early, else 0
    """
    h, x, path, path_right = scratch.h, scratch.x, scratch.path, scratch.right
    node, mass = scratch.waiting.node, scratch.waiting.mass
    opened = 0
    gap = 0.0
    size = 1
    node[0] = 0
    mass[0] = 1.0
    while size > 0:
        size -= 1
        a = node[size]
        p = mass[size]
        while tree.left[a] > 0 and p >= floor and (p > top_p[0] or top[0] == 0):
            if opened >= budget and top[0] > 0:
                gap = max(gap, p)
                break
            opened += 1
            d = np.int64(tree.depth[a])
            if d < known and path[d] == a:
                right = path_right[d]
            else:
                right = node_scores.probability(weights, scratch.memo, h, x, count, tree.place[a])
            left = np.int64(tree.left[a])
            goes_right = right > 0.5
            other_mass = p * (1.0 - right if goes_right else right)
            if not settings.greedy and other_mass >= floor and (other_mass > top_p[0] or top[0] == 0):
                node[size] = left if goes_right else left + 1
                mass[size] = other_mass
                node_scores.prefetch(weights, h, count, tree.place[node[size]])
                size += 1
            a = left + 1 if goes_right else left
            p *= right if goes_right else 1.0 - right
        if tree.left[a] > 0 or p < floor or (p <= top_p[0] and top[0] > 0):
            continue
        top[0] = tree.label[a]
        top_p[0] = p
        if label > 0 and top[0] != label:
            break
    return opened, gap if gap > top_p[0] else 0.0


@jit
def _bucket(p, leaves):
    """Return the bucket of a node with probability p; 0 is opened first.

    Parameters
    ----------
    leaves : number of leaves below the node, of whose fourth root p is divided; 1 if p alone decides
    """
    # the bits of a float64 are nearly linear in its logarithm
    spread = (intrinsics.bits_of(np.float64(leaves)) - ONE_BITS) >> 2
    return min((ONE_BITS - intrinsics.bits_of(p) + spread) >> STEP, LAST)


@jit
def find_top_k(tree, weights, settings, budget, guided, scratch, count, known, top, top_p):
    """Find the k most probable labels.

    Parameters
    ----------
    budget : most nodes to open
    guided : whether nodes with fewer leaves are preferred
    scratch : its `waiting` is written
    top, top_p : int64[k], float64[k], written

    Returns
    -------
    opened : number of nodes opened
    gap : bound on the probability of an unlisted label if the budget ended the search early, else 0
    """
    k = top.shape[0]
    h, x, path, path_right = scratch.h, scratch.x, scratch.path, scratch.right
    node, mass, next_item, head = scratch.waiting
    size = np.int64(0)
    opened = 0
    gap = 0.0
    items = np.int64(0)
    first, last = np.int64(0), np.int64(-1)  # all items are in the buckets first..last
    least = 0.0
    a, p = np.int64(0), 1.0
    if tree.left[a] == 0:
        size = top_k.insert(top, top_p, size, tree.label[a], p)
        a = np.int64(-1)
    while a >= 0:
        if opened >= budget and size > 0:
            gap = p
            for bucket in range(first, last + 1):  # another node of the same bucket may have more mass
                item = head[bucket]
                while item >= 0:
                    gap = max(gap, mass[item])
                    item = next_item[item]
            break
        opened += 1
        d = np.int64(tree.depth[a])
        if d < known and path[d] == a:
            right = path_right[d]
        else:
            right = node_scores.probability(weights, scratch.memo, h, x, count, tree.place[a])
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
            bucket = _bucket(q, np.int64(tree.leaves[c]) if guided else np.int64(1))
            if child == 0 and (bucket <= first or (opened >= budget and size == 0)):
                a, p = c, q
                continue
            node_scores.prefetch(weights, h, count, tree.place[c])
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
    while size > 1 and top_p[size - 1] < settings.cut * top_p[0]:
        size -= 1
        top[size] = 0
        top_p[size] = 0.0
    return opened, gap if size < k or gap > top_p[k - 1] else 0.0
