"""A complete tree of routers: the way an example takes through it, and how the routers learn from its label.

Source    Daume, Karampatziakis, Langford, Mineiro, "Logarithmic Time One-Against-Some", ICML 2017, algorithms 1 to 3.
Cost      O(s depth) for an example of s features.
Names     a node id | other names as in label_counts.

Routing needs no scorer, so it runs ahead and leaves a `Plan`: which classes are scored, which are trained, per example.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ...array_types import Bools, Float32s, Float64s, Int8s, Int32s, Int64s, UInt64s
from ...binary import gd
from ...data.batch import Batch
from ...kernels import rng
from ...kernels.constants import ONE, ZERO
from ...kernels.jit import jit
from ..core import tree_view
from ..core.tree_view import NodeView
from . import label_counts
from .label_counts import BOUND, ENTROPY, WEIGHT, Counts

EXAMPLE, ENTROPY_CHANGE, MEAN_ENTROPY = 0, 1, 2
ROUTER_WEIGHTS = ("example", "entropy", "mean_entropy")
LN_2 = math.log(2.0)
NODE_BYTES = 16  # of Tree, per node
NONE, SAME, OTHER = 0, 1, 2  # Plan.mode: no scorer learns; those scored learn; another list learns


class Tree(NamedTuple):
    """A complete binary tree; nodes are numbered depth first, siblings next to each other."""

    left: Int32s  # int32[m], left child (right: + 1), 0 at a leaf
    parent: Int32s  # int32[m], -1 above the root
    router: Int64s  # int64[m], sub-problem of the node's router, -1 at a leaf


class Settings(NamedTuple):
    """The options a kernel needs."""

    bern: np.float32
    router_weight: int
    randomized: bool
    path: bool
    node_only: bool
    classes: int
    depth: int  # levels of routers
    routers: int  # sub-problems of the routers, which come before the classes where they share a table


class Plan(NamedTuple):
    """What routing found for n examples; `label` is 0-based, -1 where nothing is learned.

    Example i: classes `item[first[i]:scored[i]]` are scored for the prediction; mode SAME: they learn, but for
    the one at `dropped[i]`, and so does the class at `item[scored[i]]` if there is one before `first[i + 1]`;
    mode OTHER: classes `item[scored[i]:first[i + 1]]` learn, with the path of node `last[i]`.
    """

    label: Int64s  # int64[n]
    node: Int32s  # int32[n], where prediction ended
    recall: Float64s  # float64[n], probability that the label is among the classes scored
    last: Int32s  # int32[n], where learning ended
    mode: Int8s  # int8[n]
    dropped: Int64s  # int64[n], position in item or -1
    first: Int64s  # int64[n + 1]
    scored: Int64s  # int64[n]
    item: Int32s  # int32[room]
    score: Float32s  # float32[room], filled by the scorers


class Row(NamedTuple):
    """OptionGroup for one example and the features of its path."""

    place: UInt64s  # uint64[s]
    x: Float32s  # float32[s]


# -- kernels


@jit
def stops(counts: Counts, settings: Settings, parent: int, child: int) -> bool:
    """Whether an example goes no further than `parent`, whose bound on recall is as good as the child's."""
    return bool(settings.bern > ZERO and counts.node[parent, BOUND] >= counts.node[child, BOUND])


@jit
def descend(
    tree: Tree, counts: Counts, settings: Settings, table: gd.Table, place: UInt64s, x: Float32s, count: int,
    initial: np.float32,
) -> int:  # fmt: skip
    """Algorithm 1 up to the candidates: the node where prediction ends."""
    a = 0
    while tree.router[a] >= 0:
        s = gd.score(table, place, x, count, np.uint64(tree.router[a]), initial)
        child = tree.left[a] + (0 if s < ZERO else 1)
        if stops(counts, settings, a, child):
            break
        a = child
    return a


@jit
def learn_route(
    tree: Tree, counts: Counts, settings: Settings, table: gd.Table, rule: gd.Rule, place: UInt64s, x: Float32s,
    count: int, label: int, weight: np.float32, clock: np.float64, random: UInt64s,
) -> int:  # fmt: skip
    """Algorithms 2 and 3 up to the regressors: train the routers on the way, count the label, return the node."""
    i = np.float64(weight)
    a = 0
    cell = label_counts.find(counts, -1, label)
    side = 1
    h = label_counts.entropy_with(counts.node[0, WEIGHT], counts.node[0, ENTROPY], counts.cell_count[cell, 1], i)
    while tree.router[a] >= 0:
        below = label_counts.find(counts, a, label)
        l_, r_ = tree.left[a], tree.left[a] + 1
        n_l, n_r = counts.node[l_, WEIGHT], counts.node[r_, WEIGHT]
        h_l = label_counts.entropy_with(n_l, counts.node[l_, ENTROPY], counts.cell_count[below, 1], i)
        h_r = label_counts.entropy_with(n_r, counts.node[r_, ENTROPY], counts.cell_count[below, 2], i)
        d_l = n_l * (h_l - counts.node[l_, ENTROPY]) + i * h_l
        d_r = n_r * (h_r - counts.node[r_, ENTROPY]) + i * h_r
        y = -ONE if d_l < d_r else ONE
        importance = weight
        if settings.router_weight != EXAMPLE:
            change = abs(d_l - d_r) / LN_2  # n.total |dH| of Algorithm 3, in bits; grows with the weight
            if settings.router_weight == MEAN_ENTROPY:
                change /= n_l + n_r + i
            importance = np.float32(change)
        router = np.uint64(tree.router[a])
        if rule.widen:
            gd.widen(table.range, y)
        if importance > ZERO:
            p = gd.clip(gd.score(table, place, x, count, router, ZERO), table.range)
            gd.learn(table, rule, place, x, count, router, p, y, importance, clock)
        s = gd.clip(gd.score(table, place, x, count, router, ZERO), table.range)
        if settings.randomized:
            s = -ONE if rng.draw(random) > max(ZERO, min(ONE, np.float32(0.5) * (ONE + np.float32(2) * s))) else ONE
        right = 0 if s < ZERO else 1
        child = l_ + right
        stop = stops(counts, settings, a, child)
        c = counts.cell_count[cell, side]
        counts.cell_count[cell, side] = c + i
        label_counts.insert(counts, settings.bern, a, label, c, i, h)
        cell, side, h = below, 1 + right, h_r if right else h_l
        if stop:
            c = counts.cell_count[cell, side]
            counts.cell_count[cell, side] = c + i
            label_counts.insert(counts, settings.bern, child, label, c, i, h)
            return a
        a = child
    c = counts.cell_count[cell, side]
    counts.cell_count[cell, side] = c + i
    label_counts.insert(counts, settings.bern, a, label, c, i, h)
    return a


@jit
def load(batch: Batch, i: int, width: np.uint64, place: UInt64s, x: Float32s) -> int:
    """Copy the features of example i to `place` and `x`; return their number."""
    begin: int = batch.start[i]
    count: int = batch.start[i + 1] - begin
    for f in range(count):
        place[f] = np.uint64(batch.index[begin + f]) * width
        x[f] = batch.value[begin + f]
    return count


@jit
def route(
    tree: Tree, counts: Counts, settings: Settings, table: gd.Table, rule: gd.Rule, batch: Batch, clock: Float64s,
    random: UInt64s, plan: Plan, begin: int, row: Row,
) -> int:  # fmt: skip
    """Route rows `begin`... of a batch, learning where `plan.label` is given; return the first row not done."""
    place, x = row
    for i in range(begin, batch.label.shape[0]):
        label = plan.label[i]
        if label >= 0 and not label_counts.has_room(settings.depth, counts):
            return i
        table.watch.now[0] = i
        count = load(batch, i, table.width, place, x)
        a = descend(tree, counts, settings, table, place, x, count, batch.initial[i])
        at = plan.first[i]
        size = counts.top_size[a]
        known = False
        for j in range(size):
            plan.item[at + j] = counts.top_label[a, j]
            known |= counts.top_label[a, j] == label
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
            candidate = False
            for j in range(size):
                candidate |= counts.top_label[z, j] == label
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


@jit
def grow_tree(depth: int, blocked: bool, left: Int32s, parent: Int32s, router: Int64s, order: Int64s) -> int:
    """Fill in a complete tree of `depth` levels of routers, depth first; `order` is an int64 stack of nodes.

    Routers are numbered in the order nodes are expanded (VW), or, `blocked`, so that a router and the two below
    it share a block of four, which is one cache line of every feature.
    """
    level = order.copy()
    size = 1
    nodes = 1
    routers = 0
    blocks = 0
    order[0] = 0
    level[0] = 0
    parent[0] = -1
    odd = depth % 2
    while size > 0:
        size -= 1
        a = order[size]
        d = level[size]
        if d >= depth:
            router[a] = -1
            left[a] = 0
            continue
        if not blocked:
            router[a] = routers
        elif (d + odd) % 2 == 0 or d == 0:
            router[a] = 4 * blocks
            blocks += 1
        else:
            up = parent[a]
            router[a] = router[up] + (1 if left[up] == a else 2)
        routers += 1
        left[a] = nodes
        parent[nodes] = a
        parent[nodes + 1] = a
        nodes += 2
        order[size] = left[a] + 1
        level[size] = d + 1
        order[size + 1] = left[a]
        level[size + 1] = d + 1
        size += 2
    return 4 * blocks if blocked else routers


# -- Python


def new_tree(depth: int, blocked: bool) -> tuple[Tree, int]:
    """A complete tree and the number of sub-problems its routers take."""
    nodes = (2 << depth) - 1
    tree = Tree(np.zeros(nodes, np.int32), np.zeros(nodes, np.int32), np.zeros(nodes, np.int64))
    taken = grow_tree(depth, blocked, tree.left, tree.parent, tree.router, np.zeros(depth + 2, np.int64))
    return tree, int(taken)


def subs(depth: int, blocked: bool) -> int:
    """The number of sub-problems that the routers of `new_tree` take."""
    if not blocked:
        return (1 << depth) - 1
    return sum(4 << level for level in range(depth) if (level + depth) % 2 == 0 or level == 0)


SHOWN = 5  # candidates of a node that are shown


def node_view(tree: Tree, counts: Counts, a: int) -> NodeView:
    """A node as it is shown; where no example has come to its children it is a leaf."""
    children = _children_met(tree, counts, np.array([a]))
    weight, nats = float(counts.node[a, WEIGHT]), float(counts.node[a, ENTROPY])
    size = int(counts.top_size[a])
    top = zip(counts.top_label[a, :SHOWN].tolist(), counts.top_count[a, :SHOWN].tolist(), strict=True)
    facts: dict[str, object] = {
        "candidates": size,
        "weight": f"{weight:g}",
        "bits": f"{nats / LN_2:.2f}" if weight > 0 else "0.00",
        "recall at least": f"{float(counts.node[a, BOUND]):.3f}",
    }
    left = int(tree.left[a])
    return NodeView((left, left + 1) if children[0] else (), tuple((y + 1, c) for y, c in list(top)[:size]), facts)


def _children_met(tree: Tree, counts: Counts, nodes: Int64s) -> Bools:
    """Whether an example has come to a child of these nodes."""
    left = tree.left[nodes]
    met: Bools = (counts.node[left, WEIGHT] > 0) | (counts.node[np.minimum(left + 1, len(tree.left) - 1), WEIGHT] > 0)
    return met & (left > 0)


def statistics(tree: Tree, counts: Counts) -> str:
    """A line for the summary about the nodes examples have come to, and their siblings."""
    level, depth, nodes, depths = np.zeros(1, np.int64), 0, 0, []
    while len(level):
        nodes += len(level)
        inner = _children_met(tree, counts, level)
        depths.append(np.full(len(level) - np.count_nonzero(inner), depth))
        left = tree.left[level[inner]]
        level, depth = np.concatenate([left, left + 1]), depth + 1
    return tree_view.statistics(nodes, np.concatenate(depths))


def readable_lines(tree: Tree, counts: Counts, settings: Settings, depth: int) -> list[str]:
    """VW's lines: the tree, and the labels counted at every node, the candidates first."""
    counted = label_counts.labels_of_nodes(counts, tree.left)
    lines = [
        f"k = {settings.classes}",
        f"node_only = {str(settings.node_only).lower()}",
        f"nodes = {len(tree.left)}",
        f"max_candidates = {counts.top_label.shape[1]}",
        f"max_depth = {depth}",
    ]
    level = np.zeros(len(tree.left), np.int64)
    for a in range(len(tree.left)):
        internal = bool(tree.router[a] >= 0)
        if a:
            level[a] = level[tree.parent[a]] + 1
        top = counts.top_label[a, : counts.top_size[a]].tolist()
        seen = counted.get(a, {})
        others = sorted((-seen[y], y) for y in set(seen) - set(top))
        labels = top + [y for _, y in others]
        lines += [
            f"parent = {max(tree.parent[a], 0)}",
            f"recall_lbest = {_shown(np.float32(counts.node[a, BOUND]))}",
            f"internal = {str(internal).lower()}",
            f"depth = {level[a]}",
            f"base_router = {max(tree.router[a], 0)}",
            f"left = {tree.left[a]}",
            f"right = {tree.left[a] + 1 if internal else 0}",
            f"n = {_shown(counts.node[a, WEIGHT])}",
            f"entropy = {_shown(counts.node[a, ENTROPY])}",
            "passes = 1",
            f"n_preds = {len(labels)}",
        ]
        for y in labels:
            # a model may have a candidate that it never counted
            lines += [f"label = {y + 1}", f"label_count = {_shown(seen.get(y, 0.0))}"]
    return lines


def _shown(value: float | np.float32) -> str:
    """A number as short as it can be: 2, 0.5, 0.21432579."""
    text = str(value)
    return text.removesuffix(".0")
