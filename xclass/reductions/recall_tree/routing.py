"""Route examples down a complete binary tree and train its routers.

Source    Daume, Karampatziakis, Langford, Mineiro, "Logarithmic Time One-Against-Some", ICML 2017, Algorithms 1 to 3.
Cost      O(s depth) for an example of s features.
Names     a node id, 0 for the root | m nodes | h entropy with the example | c count of its label before it |
          _l, _r of the left and the right child | d change of n H | y side that a router learns, -1 for left |
          other names as in `label_counts`.
Idea      Routing needs no scorer. It therefore runs ahead of scoring and produces a `RoutingPlan`, which lists for each
          example the classes to score and the classes to train. An example goes down twice: first to be predicted, and
          if it has a label, then to be learned and counted. Since routers and bounds change on the second way, it may
          end at another node than the first.

The kernels receive an example as `place` (uint64[s], hash * width of each feature), `x` (float32[s], values) and
`count`, the number of its features; kernels that score or train only read these. `label` is 0-based, -1 where nothing
is learned, `initial` the score of an example before its features are added, `clock` the weight of the labelled
examples up to and including one, and `random` the state of the random generator, uint64[1]. `table` has the weights
of the routers, and `rule` says how they are updated (`gd`). Recall bound and gain of a node are explained in
`label_counts`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ...array_types import Float32s, Float64s, Int8s, Int32s, Int64s, UInt64s
from ...binary import gd
from ...data.batch import Batch
from ...kernels import rng
from ...kernels.constants import ONE, TWO, ZERO
from ...kernels.jit import bare
from . import label_counts
from .label_counts import BOUND, ENTROPY, WEIGHT, Counts

EXAMPLE, ENTROPY_CHANGE, MEAN_ENTROPY, PAPER = 0, 1, 2, 3
ROUTER_WEIGHTS = ("example", "entropy", "mean_entropy", "paper")
LEAST_CHANGE = 1e-12  # smaller changes of the entropy in bits are rounding errors
LN_2 = math.log(2.0)
NODE_BYTES = 16  # of a node in `RouterTree`
NONE, SAME, OTHER = 0, 1, 2  # `RoutingPlan.mode`: no scorer learns; the scored ones do; others do


class RouterTree(NamedTuple):
    """Describe a complete binary tree of m nodes, numbered depth first with siblings next to each other."""

    left: Int32s  # int32[m], left child, 0 at a leaf; the right child is left + 1
    parent: Int32s  # int32[m], parent, -1 for the root
    router: Int64s  # int64[m], subproblem of the node's router, -1 at a leaf


class Stop(NamedTuple):
    """Say where descent ends. By default it ends at a node whose bound is at least that of the child, as in VW."""

    gain: bool = False  # but not at a node whose child recalled clearly more labels of the examples routed to the child
    never: bool = False  # only at a leaf
    above: bool = False  # only where the node's bound is above that of the child
    counted: bool = False  # while learning, the bounds are those with the example counted, as in Algorithm 2
    paper: bool = False  # the bound is equation (1) of the paper, see `label_counts`


STOPS = {
    "gain": Stop(gain=True),
    "bound": Stop(),
    "paper": Stop(above=True, counted=True, paper=True),
    "never": Stop(never=True),
}


class RecallTreeSettings(NamedTuple):
    """Hold the options that the kernels read."""

    bern: np.float32  # lambda, --bern_hyper
    stop: Stop  # --recall_stop
    router_weight: int  # index into ROUTER_WEIGHTS
    randomized: bool  # --randomized_routing
    glf1: bool  # --link glf1
    margin: np.float32  # --candidate_margin
    path: bool  # whether path features are used
    node_only: bool  # whether the node where an example ends is its only path feature
    classes: int  # K
    depth: int  # levels of routers
    routers: int  # subproblems of the routers, which precede those of the classes in a shared table


class RoutingPlan(NamedTuple):
    """Tell the scorers which classes to score and which to train, for a batch of n examples.

    The classes `item[first[i]:scored[i]]`, the candidates of node `node[i]`, are scored to predict example i. What
    learns are the candidates of node `last[i]` once the example is counted. The mode says which they are:

    NONE    none: there is no label, or it is not among them.
    SAME    the scored classes, because the nodes are the same. If the label has just become a candidate, it follows at
            `item[scored[i]]`, and the candidate whose place it took, if any, is at position `dropped[i]`.
    OTHER   the classes `item[scored[i]:first[i + 1]]`, with the path features of node `last[i]`.
    """

    label: Int64s  # int64[n], 0-based label, -1 where nothing is learned
    node: Int32s  # int32[n], node where prediction ended
    recall: Float64s  # float64[n], estimated probability that the label is among the scored classes
    last: Int32s  # int32[n], node where learning ended
    mode: Int8s  # int8[n], NONE, SAME or OTHER
    dropped: Int64s  # int64[n], position in `item` of a scored class that does not learn, -1 for none
    first: Int64s  # int64[n + 1], start of each example in `item`
    scored: Int64s  # int64[n], end of the scored classes in `item`
    item: Int32s  # int32[capacity], classes, 0-based
    score: Float32s  # float32[capacity], score of each class, filled by the scorers


class FeatureBuffers(NamedTuple):
    """Provide buffers for `place` and `x` of one example and its path features."""

    place: UInt64s
    x: Float32s


# -- kernels


@bare
def recall_bound(counts: Counts, a: int) -> float:
    """Return the recall bound of a node, which is below all others if it has counted nothing."""
    bound: float = counts.node[a, BOUND] if counts.node[a, WEIGHT] > 0.0 else -np.inf
    return bound


@bare
def ends(counts: Counts, stop: Stop, child: int, above: float, below: float) -> bool:
    """Return whether an example ends at a node of recall bound `above`, not at its child of recall bound `below`."""
    if stop.never or (stop.gain and counts.gain[child] > label_counts.LEAST_GAIN):
        return False
    return above > below or (above == below and not stop.above)


@bare
def stops(counts: Counts, settings: RecallTreeSettings, parent: int, child: int) -> bool:
    """Return whether an example that is predicted ends at `parent` instead of going on to `child`."""
    return ends(counts, settings.stop, child, recall_bound(counts, parent), recall_bound(counts, child))


@bare
def descend(
    tree: RouterTree, counts: Counts, settings: RecallTreeSettings, table: gd.WeightTable, place: UInt64s, x: Float32s,
    count: int, initial: np.float32, label: int,
) -> int:  # fmt: skip
    """Return the node whose candidates an example is predicted from (Algorithm 1 without the scorers).

    If the example has a label, it counts for the gains of the nodes to which routers send it.
    """
    a = 0
    while tree.router[a] >= 0:
        s = gd.score(table, place, x, count, np.uint64(tree.router[a]), initial)
        child = tree.left[a] + (0 if s < ZERO else 1)
        stop = stops(counts, settings, a, child)
        if settings.stop.gain and label >= 0:
            label_counts.count_gain(counts, a, child, label)
        if stop:
            break
        a = child
    return a


@bare
def learn_route(
    tree: RouterTree, counts: Counts, settings: RecallTreeSettings, table: gd.WeightTable, rule: gd.UpdateRule,
    place: UInt64s, x: Float32s, count: int, label: int, weight: np.float32, clock: np.float64, random: UInt64s,
) -> int:  # fmt: skip
    """Train the routers on the path of an example and count its label (Algorithms 2 and 3 without the scorers).

    A router learns the side whose entropy the example raises less, and then sends the example on. Return the node whose
    candidates learn.
    """
    i = np.float64(weight)
    a = 0
    cell = label_counts.find(counts, -1, label)
    h = label_counts.entropy_with(counts.node[0, WEIGHT], counts.node[0, ENTROPY], counts.cell_count[cell, 1], i)
    stop, above = settings.stop, recall_bound(counts, 0)
    c = counts.cell_count[cell, 1]
    counts.cell_count[cell, 1] = c + i
    label_counts.insert(counts, settings.bern, stop.paper, 0, label, c, i, h)
    while tree.router[a] >= 0:
        child_cell = label_counts.find(counts, a, label)
        l_, r_ = tree.left[a], tree.left[a] + 1
        n_l, n_r = counts.node[l_, WEIGHT], counts.node[r_, WEIGHT]
        h_l = label_counts.entropy_with(n_l, counts.node[l_, ENTROPY], counts.cell_count[child_cell, 1], i)
        h_r = label_counts.entropy_with(n_r, counts.node[r_, ENTROPY], counts.cell_count[child_cell, 2], i)
        d_l = n_l * (h_l - counts.node[l_, ENTROPY])
        d_r = n_r * (h_r - counts.node[r_, ENTROPY])
        if settings.router_weight != PAPER:  # the expectation includes the example itself, as in VW
            d_l += i * h_l
            d_r += i * h_r
        y = -ONE if d_l < d_r else ONE
        importance = weight
        if settings.router_weight != EXAMPLE:
            change = abs(d_l - d_r) / LN_2  # n.total |dH| of Algorithm 3, in bits
            if settings.router_weight == MEAN_ENTROPY:
                change /= n_l + n_r + i
            elif settings.router_weight == PAPER:
                change = change / counts.node[a, WEIGHT] if change > LEAST_CHANGE else 0.0
            importance = np.float32(change)
        router = np.uint64(tree.router[a])
        if rule.widen:
            gd.widen(table.range, y)
        if importance > ZERO:
            p = gd.clip(gd.score(table, place, x, count, router, ZERO), table.range)
            gd.learn(table, rule, place, x, count, router, p, y, importance, clock)
        s = gd.clip(gd.score(table, place, x, count, router, ZERO), table.range)
        if settings.randomized:
            if settings.glf1:
                s = TWO / (ONE + np.exp(-s)) - ONE
            s = -ONE if rng.draw(random) > max(ZERO, min(ONE, np.float32(0.5) * (ONE + np.float32(2) * s))) else ONE
        right = 0 if s < ZERO else 1
        child = l_ + right
        below = recall_bound(counts, child)
        c = counts.cell_count[child_cell, 1 + right]
        counts.cell_count[child_cell, 1 + right] = c + i
        label_counts.insert(counts, settings.bern, stop.paper, child, label, c, i, h_r if right else h_l)
        if ends(
            counts, stop, child, recall_bound(counts, a) if stop.counted else above,
            recall_bound(counts, child) if stop.counted else below,
        ):  # fmt: skip
            return a
        a, above = child, below
    return a


@bare
def load(batch: Batch, i: int, width: np.uint64, place: UInt64s, x: Float32s) -> int:
    """Copy the features of example i into `place` and `x`; return their number. `width` is the slots per feature."""
    begin: int = batch.start[i]
    count: int = batch.start[i + 1] - begin
    for f in range(count):
        place[f] = np.uint64(batch.index[begin + f]) * width
        x[f] = batch.value[begin + f]
    return count


@bare
def route(
    tree: RouterTree, counts: Counts, settings: RecallTreeSettings, table: gd.WeightTable, rule: gd.UpdateRule,
    batch: Batch, clock: Float64s, random: UInt64s, plan: RoutingPlan, begin: int, features: FeatureBuffers,
) -> int:  # fmt: skip
    """Route the examples of a batch, starting with example `begin`, and learn from those with a label in the plan.

    All fields of the plan but `label` and `score` are written. Return the index of the first example not routed, which
    is less than n if the hash table of `counts` has to grow first.
    """
    place, x = features
    for i in range(begin, batch.label.shape[0]):
        label = plan.label[i]
        if label >= 0 and not label_counts.has_capacity(settings.depth, counts):
            return i
        table.guard.now[0] = i
        count = load(batch, i, table.width, place, x)
        a = descend(tree, counts, settings, table, place, x, count, batch.initial[i], label)
        at = plan.first[i]
        size = counts.top_size[a]
        known = label_counts.is_candidate(counts, a, label)
        for j in range(size):
            plan.item[at + j] = counts.top_label[a, j]
        full = size == counts.top_label.shape[1]
        at += size
        plan.node[i] = a
        plan.recall[i] = label_counts.recall(counts, settings.classes, a)
        plan.last[i] = a
        plan.scored[i] = at
        plan.mode[i] = NONE
        plan.dropped[i] = -1
        if label >= 0:
            label_counts.count_recall(counts, a, known, batch.weight[i])
            z = learn_route(
                tree, counts, settings, table, rule, place, x, count, label, batch.weight[i], clock[i], random
            )
            plan.last[i] = z
            size = counts.top_size[z]
            candidate = label_counts.is_candidate(counts, z, label)
            if candidate and z == a:
                plan.mode[i] = SAME
                if not known:
                    plan.item[at] = label
                    if full:
                        plan.dropped[i] = at - 1
                    at += 1
            elif candidate:
                plan.mode[i] = OTHER
                for j in range(size):
                    plan.item[at + j] = counts.top_label[z, j]
                at += size
        plan.first[i + 1] = at
    examples: int = batch.label.shape[0]
    return examples


# -- Python


def new_tree(depth: int, blocked: bool) -> RouterTree:
    """Return a complete tree with `depth` levels of routers.

    Nodes are numbered as VW does: in the order in which a descent to the left first expands them. Routers have the
    order of their nodes or, if `blocked`, a router and its two children share a block of four, which is one cache line
    for every feature.
    """
    nodes = (2 << depth) - 1
    left, parent, router = np.zeros(nodes, np.int32), np.full(nodes, -1, np.int32), np.full(nodes, -1, np.int64)
    level, routers, blocks = (np.zeros(1, np.int64) for _ in range(3))  # nodes, and what precedes each in their order
    for d in range(depth):
        first = _begins_block(d, depth)
        if not blocked:
            router[level] = routers
        elif first:
            router[level] = 4 * blocks
        else:
            router[level] = router[parent[level]] + 1 + np.arange(len(level)) % 2
        left[level] = 2 * routers + 1
        children = left[level][:, None] + np.arange(2)
        parent[children] = level[:, None]
        routers = (routers[:, None] + np.array([1, 1 << (depth - 1 - d)])).ravel()
        blocks = (blocks[:, None] + np.array([first, first + _blocks(d + 1, depth)])).ravel()
        level = children.ravel()
    return RouterTree(left, parent, router)


def _begins_block(level: int, depth: int) -> bool:
    return level == 0 or (level + depth) % 2 == 0


def _blocks(level: int, depth: int) -> int:
    """Return the number of blocks that begin in the subtree of a node."""
    return sum(1 << (d - level) for d in range(level, depth) if _begins_block(d, depth))


def subs(depth: int, blocked: bool) -> int:
    """Return the number of subproblems that the routers of `new_tree` occupy."""
    return max(1, 4 * _blocks(0, depth)) if blocked else (1 << depth) - 1


def new_features(size: int) -> FeatureBuffers:
    """Return buffers for an example of up to `size` features."""
    return FeatureBuffers(np.empty(size, np.uint64), np.empty(size, np.float32))
