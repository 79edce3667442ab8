"""Train the nodes of a probabilistic label tree in VW's order, in which it adds their losses, for `--vw_exact`.

Source    VW 9.11.9, plt.cc: two `std::unordered_set` of the C++ library of GNU hold the nodes that learn 1 and -1.
Cost      O(s) for each node that is trained, one after the other.
Names     before[b]: the entry in front of the first entry of bucket b, -1 if the bucket is empty.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...array_types import Bools, Float64s, Int, Int64s
from ...binary import gd, loss
from ...data.batch import Batch
from ...kernels.constants import ONE, ZERO
from ...kernels.jit import bare
from . import search, vw_nodes
from .search import Found, Search
from .vw_nodes import Scratch, Tree

PRIMES = np.array(  # numbers of buckets, of which each set takes the next one when it grows
    [13, 29, 59, 127, 257, 541, 1109, 2357, 5087, 10273, 20753, 42043, 85229, 172933, 351061, 712697, 1447153, 2938679],
    np.int64,
)
MOST_NODES = 2**32 - 1


class Set(NamedTuple):
    """Hold numbers in the order of `std::unordered_set`: a list whose entries of one bucket are neighbours."""

    value: Int64s  # int64[entries + 1]; entry 0 is in front of the first
    following: Int64s  # int64[entries + 1], entry after each one, 0 for none
    before: Int64s  # int64[buckets]
    size: Int64s  # int64[2], entries and buckets; clearing keeps the buckets


class Order(NamedTuple):
    """Hold what VW keeps from one example to the next: two sets of nodes, and the weight of what was not learned."""

    positive: Set
    negative: Set
    left_out: Float64s  # float64[1]
    updated: Float64s  # float64[nodes], weight of each node's updates


class Results(NamedTuple):
    """Hold the results of a batch."""

    found: Found
    above: Found  # labels above the threshold, of which there are never more than in `found`
    losses: Float64s  # float64[n], sum of the losses of the nodes of each example


def new_order(tree: Tree, updated: Float64s) -> Order:
    return Order(_new_set(tree.nodes), _new_set(tree.nodes), np.zeros(1), updated)


def _new_set(entries: int) -> Set:
    """Return a set for so many entries."""
    buckets = int(next((prime for prime in PRIMES if prime >= entries), PRIMES[-1]))
    entry = np.zeros(entries + 1, np.int64)
    return Set(entry, entry.copy(), np.full(buckets, -1, np.int64), np.array([0, 1]))


# -- kernels


@bare
def _clear(these: Set) -> None:
    these.size[0], these.following[0] = 0, 0
    for b in range(these.size[1]):
        these.before[b] = -1


@bare
def _contains(these: Set, v: Int) -> bool:
    buckets = these.size[1]
    previous = these.before[v % buckets]
    if previous < 0:
        return False
    entry = these.following[previous]
    while entry > 0 and these.value[entry] % buckets == v % buckets:
        if these.value[entry] == v:
            return True
        entry = these.following[entry]
    return False


@bare
def _link(these: Set, entry: Int) -> None:
    """Put an entry in front of the first of its bucket, or in front of all if the bucket is empty."""
    value, following, before, buckets = these.value, these.following, these.before, these.size[1]
    b = value[entry] % buckets
    if before[b] >= 0:
        following[entry], following[before[b]] = following[before[b]], entry
        return
    following[entry], following[0], before[b] = following[0], entry, 0
    if following[entry] > 0:
        before[value[following[entry]] % buckets] = entry


@bare
def _add(these: Set, v: Int) -> None:
    if _contains(these, v):
        return
    these.size[0] += 1
    if these.size[0] > these.size[1] or these.size[1] == 1:
        for prime in PRIMES:
            if prime > these.size[1]:
                these.size[1] = prime
                break
        for b in range(these.size[1]):
            these.before[b] = -1
        entry, these.following[0] = these.following[0], 0
        while entry > 0:
            after = these.following[entry]
            _link(these, entry)
            entry = after
    these.value[these.size[0]] = v
    _link(these, these.size[0])


@bare
def _collect(tree: Tree, label: Int64s, first: Int, last: Int, positive: Set, negative: Set) -> None:
    """Collect the nodes that learn 1 and -1 from an example with the labels `label[first:last]`."""
    _clear(positive)
    _clear(negative)
    for j in range(first, last):
        n = (label[j] + tree.inner) & MOST_NODES  # so -1, which VW reads as the largest number, is an inner node
        if n < tree.nodes:
            _add(positive, n)
            while n > 0:
                n = (n - 1) // tree.arity
                _add(positive, n)
    entry = positive.following[0]
    while entry > 0:
        n = positive.value[entry]
        if n < tree.inner:
            for c in range(tree.arity * n + 1, min(tree.arity * n + 1 + tree.arity, tree.nodes)):
                if not _contains(positive, c):
                    _add(negative, c)
        entry = positive.following[entry]


@bare
def _above(tree: Tree, table: gd.Table, scratch: Scratch, features: Int, threshold: np.float32) -> int:
    """Find the labels whose probability is above a threshold, in VW's order; return how many."""
    stack_p, stack, score = scratch.heap_p, scratch.heap_node, scratch.child_score
    stack[0] = 0
    stack_p[0] = vw_nodes.sigmoid(gd.score(table, scratch.place, scratch.x, features, np.uint64(0), ZERO))
    size, found = int(stack_p[0] > threshold), 0
    while size > 0:
        size -= 1
        n, p = stack[size], stack_p[size]
        if n >= tree.inner:
            scratch.label[0], scratch.p[0] = 0, p  # the only node is a leaf
            return 1
        for j in range(tree.arity):
            scratch.child[j] = np.uint64(tree.arity * n + 1 + j)
        gd.score_lanes(table, scratch.place, scratch.x, features, scratch.child, tree.arity, score)
        for j in range(tree.arity):
            c = tree.arity * n + 1 + j
            below = p * vw_nodes.sigmoid(score[j])
            if below > threshold and c < tree.inner:
                stack[size], stack_p[size] = c, below
                size += 1
            elif below > threshold and c < tree.nodes:
                scratch.label[found], scratch.p[found] = c - tree.inner, below
                found += 1
    return found


@bare
def _train(
    tree: Tree, table: gd.Table, rule: gd.Rule, scratch: Scratch, features: Int, these: Set, y: np.float32,
    weight: np.float32, learns: bool, order: Order, total: np.float32,
) -> np.float32:  # fmt: skip
    """Add the losses of the nodes of a set to a total and return it; train the nodes if `learns`.

    The clock of a node is the weight of its updates less that of all examples that were not learned.
    """
    entry = these.following[0]
    while entry > 0:
        n = these.value[entry]
        sub = np.uint64(n)
        p = gd.clip(gd.score(table, scratch.place, scratch.x, features, sub, ZERO), table.range)
        total += loss.value(rule.loss, rule.tau, p, y, table.range[0], table.range[1])
        if learns:
            order.updated[n] += weight
            clock = order.updated[n] - order.left_out[0]
            gd.learn(table, rule, scratch.place, scratch.x, features, sub, p, y, weight, clock)
        entry = these.following[entry]
    return total


@bare
def learn_batch(
    tree: Tree, table: gd.Table, rule: gd.Rule, wanted: Search, batch: Batch, label: Int64s, learned: Bools,
    begin: int, end: int, scratch: Scratch, order: Order, results: Results,
) -> int:  # fmt: skip
    """Predict examples begin..end-1, and train on those that are learned.

    Return the first example for which `results` have no room, or `end`. `label` has the 0-based labels of all examples,
    as they are in the file, and `learned` is bool[n].
    """
    for i in range(begin, end):
        features = vw_nodes.load(table, batch, i, scratch)
        count = vw_nodes.find_best(tree, table, scratch, features, wanted, i)
        if not search.has_room(results.found, scratch, count, i):
            return i
        search.has_room(results.above, scratch, _above(tree, table, scratch, features, wanted.threshold), i)
        results.losses[i] = 0.0
        if not learned[i]:
            order.left_out[0] += batch.weight[i]
        if np.isnan(batch.label[i]):
            continue
        for _ in range(1 + learned[i]):  # the second time, the sets have grown for all nodes of the example
            _collect(tree, label, batch.label_start[i], batch.label_start[i + 1], order.positive, order.negative)
        total = ZERO
        for these, y in ((order.positive, ONE), (order.negative, -ONE)):
            total = _train(tree, table, rule, scratch, features, these, y, batch.weight[i], learned[i], order, total)
        results.losses[i] = np.float64(total)
    return end
