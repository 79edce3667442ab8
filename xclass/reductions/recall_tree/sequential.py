"""Route, score and train examples one after the other in one weight table, as VW does (`--layout vw`)."""

from __future__ import annotations

import numpy as np

from ...array_types import Float32s, Float64s, UInt8s, UInt64s
from ...binary import gd
from ...data.batch import Batch
from ...kernels.constants import ONE, ZERO
from ...kernels.jit import jit
from . import label_counts, routing, scoring


@jit
def _exchange(place: UInt64s, x: Float32s, low: int, middle: int, high: int) -> None:
    """Exchange the features [low, middle) with the features [middle, high), keeping the order within each."""
    if low == middle or middle == high:
        return
    _reverse(place, x, low, middle)
    _reverse(place, x, middle, high)
    _reverse(place, x, low, high)


@jit
def _reverse(place: UInt64s, x: Float32s, low: int, high: int) -> None:
    """Reverse the order of the features [low, high) in place."""
    while low < high - 1:
        high -= 1
        place[low], place[high] = place[high], place[low]
        x[low], x[high] = x[high], x[low]
        low += 1


@jit
def _mark(tree: routing.RouterTree, z: int, scratch: gd.Lanes, lanes: int, marks: UInt8s, mark: int) -> None:
    """Set `marks` (uint8[subproblems]) to `mark` for all lanes and for the routers on the path to node z."""
    for j in range(lanes):
        marks[np.int64(scratch.sub[j])] = mark
    a = z
    while a >= 0:
        if tree.router[a] >= 0:
            marks[tree.router[a]] = mark
        a = tree.parent[a]


@jit
def _slots_are_distinct(
    tree: routing.RouterTree, table: gd.WeightTable, place: UInt64s, count: int, full: int, z: int, scratch: gd.Lanes,
    lanes: int, marks: UInt8s,
) -> bool:  # fmt: skip
    """Return whether no lane shares a slot with another lane or with a router on the path to node z.

    The places of the first `count` features are multiples of the table's width, so different subproblems have different
    slots there. The places of path features are not. But the lanes' slots of one path feature lie in at most two rows,
    that of the lowest and that of the highest subproblem, so its slots are compared one by one only if another feature
    has one of these rows. `marks` (uint8[subproblems]) are all 0 before and after.
    """
    width, mask = table.width, table.mask
    if width > mask:
        return False
    _mark(tree, z, scratch, lanes, marks, 1)
    shared = False
    least, most = scratch.sub[0], scratch.sub[0]
    for j in range(lanes):
        least = min(least, scratch.sub[j])
        most = max(most, scratch.sub[j])
    row = mask ^ (width - np.uint64(1))  # bits of a slot that depend on the feature
    for q in range(count, full):
        if shared:
            break
        first, last = (place[q] + least) & row, (place[q] + most) & row
        near = False
        for f in range(count):
            near |= (place[f] & row) == first or (place[f] & row) == last
        for other in range(count, q):
            between = (place[q] - place[other]) & mask
            if min(between, mask + np.uint64(1) - between) < np.uint64(marks.shape[0]):
                for j in range(lanes):
                    sub = (scratch.sub[j] + between) & mask
                    shared |= sub < np.uint64(marks.shape[0]) and marks[np.int64(sub)] > 0
        if near:
            for j in range(lanes):
                slot = (place[q] + scratch.sub[j]) & mask
                sub = slot & (width - np.uint64(1))
                if sub < np.uint64(marks.shape[0]) and marks[np.int64(sub)] > 0:
                    for f in range(count):
                        shared |= (place[f] & row) == (slot & row)
    _mark(tree, z, scratch, lanes, marks, 0)
    return not shared


@jit
def process(
    tree: routing.RouterTree, counts: label_counts.Counts, settings: routing.RecallTreeSettings,
    crosses: scoring.Crosses, table: gd.WeightTable, rule: gd.UpdateRule, batch: Batch, clock: Float64s,
    random: UInt64s, plan: routing.RoutingPlan, begin: int, scratch: scoring.ScoringScratch,
) -> int:  # fmt: skip
    """Route, score and train examples one after the other in one weight table, with the same collisions as VW.

    Under `--layout vw` routers, scorers and path features, which VW does not scale by the number of subproblems, can
    share slots. Therefore neither stages nor shards may run ahead, and lanes are trained together only if they share no
    slot. With --vw_exact, scorers add the path features before the generated crosses, as in VW.

    Return the index of the first example not processed, which is less than n if the hash table of `counts` has to grow
    first. `label` of the plan is read; `node`, `recall`, `last`, `first`, `scored`, `item` and `score` are written.
    """
    (place, x), lane_scratch, _, out, marks = scratch
    routers = settings.routers
    unscaled = np.uint64(1)
    # Otherwise learning in one lane changes the range or the weights of all, or there are too many places to compare.
    independent = not rule.widen and not rule.regularized and crosses.term_start.shape[0] == 1
    for i in range(begin, batch.label.shape[0]):
        label = plan.label[i]
        if label >= 0 and not label_counts.has_capacity(settings.depth, counts):
            return i
        table.guard.now[0] = i
        count = routing.load(batch, i, table.width, place, x)
        a = routing.descend(tree, counts, settings, table, place, x, count, batch.initial[i], label)
        crossed = 0 if rule.checked or crosses.all else scoring.crossed_features(batch, i)
        steps, full = scoring.path(tree, settings, crosses, a, unscaled, batch, i, place, x, count)
        _exchange(place, x, count - crossed, count, count + steps)
        at = plan.first[i]
        size: int = np.int64(counts.top_size[a])  # type: ignore[assignment]  # an int to numba
        known = label_counts.is_candidate(counts, a, label)
        for j in range(size):
            plan.item[at + j] = counts.top_label[a, j]
            lane_scratch.sub[j] = np.uint64(routers + counts.top_label[a, j])
        gd.score_lanes(table, place, x, full, lane_scratch.sub, size, out)
        _exchange(place, x, count - crossed, count - crossed + steps, count + steps)  # routers have no path features
        if crosses.all:
            routing.load(batch, i, table.width, place, x)
        for j in range(size):
            plan.score[at + j] = out[j]
        plan.node[i] = a
        plan.recall[i] = label_counts.recall(counts, settings.classes, a)
        plan.scored[i] = at + size
        plan.first[i + 1] = at + size
        if label < 0:
            continue
        weight = batch.weight[i]
        label_counts.count_recall(counts, a, known, weight)
        z = routing.learn_route(tree, counts, settings, table, rule, place, x, count, label, weight, clock[i], random)
        plan.last[i] = z
        size = np.int64(counts.top_size[z])  # type: ignore[assignment]
        if not label_counts.is_candidate(counts, z, label):
            continue
        steps, full = scoring.path(tree, settings, crosses, z, unscaled, batch, i, place, x, count)
        for j in range(size):
            lane_scratch.sub[j] = np.uint64(routers + counts.top_label[z, j])
        distinct = independent and _slots_are_distinct(tree, table, place, count, full, z, lane_scratch, size, marks)
        _exchange(place, x, count - crossed, count, count + steps)
        if distinct:
            if z == a and known:  # the same classes, perhaps in another order, and their weights are unchanged
                for j in range(size):
                    lane_scratch.sub[j] = np.uint64(routers + plan.item[at + j])
                    out[j] = plan.score[at + j]
            else:
                gd.score_lanes(table, place, x, full, lane_scratch.sub, size, out)
            for j in range(size):
                lane_scratch.y[j] = ONE if lane_scratch.sub[j] == np.uint64(routers + label) else -ONE
            lanes = scoring.learning_lanes(table, settings.margin, lane_scratch, out, size)
            gd.learn_lanes(table, rule, place, x, full, lanes, lane_scratch, weight, clock[i])
            continue
        for j in range(-1, size):  # the label first
            c = label if j < 0 else np.int64(counts.top_label[z, j])
            if j >= 0 and c == label:
                continue
            y = ONE if c == label else -ONE
            if rule.widen:
                gd.widen(table.range, y)
            sub = np.uint64(routers + c)
            p = gd.clip(gd.score(table, place, x, full, sub, ZERO), table.range)
            if y > ZERO or p > -settings.margin:
                gd.learn(table, rule, place, x, full, sub, p, y, weight, clock[i])
    return len(batch.label)
