"""The most probable labels of a tree of probabilities, found without looking at all of them.

Source    ours; a leaf has no more probability than any node above it, so that a node of less mass than the last of the
          labels found is never opened: the answer is that of a look at all leaves.
One       depth first, the likelier child first. Where it is enough to know whether a given label is the best, the
          search ends at the first better one.
Several   best first: the node of most mass is opened next, which opens fewer nodes (ptb, ten labels: 145 where depth
          first opens 237). The waiting nodes lie in buckets of mass, four to a halving, and not in a heap: masses fall
          along a path, so that the first bucket in use moves one way only. Within a bucket the last come is first.
Memory    A node that has to wait asks for the cache lines of its regressor.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...array_types import Float64s, Int64s
from ...binary import adagrad
from ...kernels import intrinsics, top_k
from ...kernels.jit import jit

BUCKETS = 256
LAST = BUCKETS - 1
STEP = 50  # bits of a float64 below those that choose a bucket: the exponent and two of the mantissa
ONE_BITS = intrinsics.bits_of(1.0)


class Waiting(NamedTuple):
    """Nodes a search has seen and not opened, for one thread and m of them at most."""

    node: Int64s  # int64[m]
    mass: Float64s  # float64[m]
    below: Int64s  # int64[m], next item of the same bucket, -1 behind the last
    head: Int64s  # int64[BUCKETS], first item of each bucket; -1 everywhere between searches


def new_waiting(most: int) -> Waiting:
    """Rows of one thread."""
    return Waiting(
        np.empty(most, np.int64), np.empty(most), np.empty(most, np.int64), np.full(BUCKETS, -1, np.int64)
    )  # fmt: skip


# -- kernels. `settings` are binary_nodes.Settings, `example` its Scratch; the scores of the first `known` nodes on
#    the path are there. `top` and `top_p`, of k items, are 0 at first. A search returns the nodes it opened and the
#    most that a label left out can have where the budget ended it early, else 0. What they do at a node stands in
#    each: with all a tree is made of passed to a function, a node takes twice the time.


@jit
def one(tree, weights, settings, example, count, known, floor, label, top, top_p):
    """The most probable label, if it has at least `floor`.

    `label` above 0 has the probability `floor`, and all that is asked is whether it is the best: another that has as
    much ends the search.
    """
    h, x, path, path_right = example.h, example.x, example.path, example.right
    node, mass = example.waiting.node, example.waiting.mass
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
            if opened >= settings.budget and top[0] > 0:
                gap = max(gap, p)
                break
            opened += 1
            d = np.int64(tree.depth[a])
            if d < known and path[d] == a:
                right = path_right[d]
            else:
                right = adagrad.probability(weights, adagrad.score_place(weights, h, x, count, tree.place[a]))
            left = np.int64(tree.left[a])
            turn = right > 0.5
            other = p * (1.0 - right if turn else right)
            if not settings.greedy and other >= floor and (other > top_p[0] or top[0] == 0):
                node[size] = left if turn else left + 1
                mass[size] = other
                adagrad.prefetch(weights, h, count, tree.place[node[size]])
                size += 1
            a = left + 1 if turn else left
            p *= right if turn else 1.0 - right
        if tree.left[a] > 0 or p < floor or (p <= top_p[0] and top[0] > 0):
            continue
        top[0] = tree.label[a]
        top_p[0] = p
        if label > 0 and top[0] != label:
            break
    return opened, gap if gap > top_p[0] else 0.0


@jit
def _bucket(p):
    """Which bucket a mass belongs to, 0 the likeliest."""
    return min(np.int64((ONE_BITS - intrinsics.bits_of(p)) >> STEP), LAST)


@jit
def several(tree, weights, settings, example, count, known, top, top_p):
    """The k most probable labels."""
    k = top.shape[0]
    h, x, path, path_right = example.h, example.x, example.path, example.right
    node, mass, below, head = example.waiting
    size = np.int64(0)
    opened = 0
    gap = 0.0
    items = np.int64(0)
    first, last = np.int64(0), np.int64(-1)  # no item is in a bucket before or behind
    least = 0.0
    a, p = np.int64(0), 1.0
    if tree.left[a] == 0:
        size = top_k.insert(top, top_p, size, tree.label[a], p)
        a = np.int64(-1)
    while a >= 0:
        if opened >= settings.budget and size > 0:
            gap = p
            for bucket in range(first, last + 1):  # one that waits in the same bucket may have more
                item = head[bucket]
                while item >= 0:
                    gap = max(gap, mass[item])
                    item = below[item]
            break
        opened += 1
        d = np.int64(tree.depth[a])
        if d < known and path[d] == a:
            right = path_right[d]
        else:
            right = adagrad.probability(weights, adagrad.score_place(weights, h, x, count, tree.place[a]))
        left = np.int64(tree.left[a])
        turn = right > 0.5
        parent_p = p
        a = np.int64(-1)
        for child in range(2):  # the likelier one first
            c = left + 1 if turn == (child == 0) else left
            q = parent_p * (right if c > left else 1.0 - right)
            if q < least or (size == k and q == least):
                continue
            if tree.left[c] == 0:
                size = top_k.insert(top, top_p, size, tree.label[c], q)
                least = max(settings.cut * top_p[0], top_p[k - 1])
                continue
            bucket = _bucket(q)
            if child == 0 and (bucket <= first or (opened >= settings.budget and size == 0)):
                a, p = c, q
                continue
            adagrad.prefetch(weights, h, count, tree.place[c])
            node[items] = c
            mass[items] = q
            below[items] = head[bucket]
            head[bucket] = items
            items += 1
            last = max(last, bucket)
        while a < 0 and first <= last:
            item = head[first]
            if item < 0:
                first += 1
                continue
            head[first] = below[item]
            if mass[item] > least or (mass[item] == least and size < k):
                a, p = node[item], mass[item]
    for bucket in range(first, last + 1):
        head[bucket] = -1
    while size > 1 and top_p[size - 1] < settings.cut * top_p[0]:
        size -= 1
        top[size] = 0
        top_p[size] = 0.0
    return opened, gap if size < k or gap > top_p[k - 1] else 0.0
