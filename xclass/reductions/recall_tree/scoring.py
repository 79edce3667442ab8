"""The classes proposed for an example: their scores, their training, the best of them and their probabilities.

Source    Daume, Karampatziakis, Langford, Mineiro, "Logarithmic Time One-Against-Some", ICML 2017, algorithm 1.
Cost      O(s F) for an example of s features.
Names     F candidates | path features x + {(n.id : 1)} | lane: a class scored beside others | others as in routing.

Scorers are split by class into SHARDS with tables of their own, so that any number of threads gives the same bytes.
Weights are loaded as they are needed: the loads of an example's lanes do not wait for one another, and asking for them
ahead (spelling, panlex, wiki at -b 24; processor time of all scoring and training, median over batches) took 0.99 to
1.04 of the time one, two or four features ahead, 1.04 to 1.12 one or two candidates ahead, and 1.08 to 1.09 with the
next example's. Under --vw_exact, where one thread does all, a second one that touched the slots of 2, 8 or 32 examples
ahead took twice the processor time for no less of the clock.

Probabilities, where they are asked for: the candidates' are proportional to e**score, the odds the logistic link
gives, and add up to the node's recall; what is left belongs to the other classes, each of them the same share.
The recall is that of progressive validation, how often the labels of examples whose prediction ended at the node
were candidates there, of the last 1 / (1 - FADE) or so: candidates are counted after routers have learned from
the label, so that their share of the node's weight says much more than they keep. With K candidates it is 1.

    log loss (calibration error) on test, -b 24     spelling        wiki         wordnet       panlex
    e**score, progressive recall (this)            1.01 (.06)    6.58 (.06)    8.31 (.08)   6.24 (.02)
    logistic of the score, the same                1.05 (.14)    6.56 (.02)    8.35 (.10)   6.24 (.04)
    e**score, the share of the node's weight       1.09 (.02)    6.59 (.09)   11.45 (.13)   7.10 (.12)
    e**score, the recall bound                     1.02 (.02)    6.59 (.09)   10.09 (.12)   6.79 (.11)
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ...array_types import Float32s, Float64s, Int64s, UInt8s, UInt64s
from ...binary import gd
from ...data.batch import CROSSED_GROUP, Batch
from ...kernels import fast_math, top_k
from ...kernels.constants import ONE, ZERO
from ...kernels.jit import jit
from ..core import probabilities
from . import label_counts, routing
from .routing import NONE, SAME, Plan

SHARDS = 3  # scorers' tables; with the routers' they make four equal parts of 2**b slots
PATH_HASH = 868771  # index of the path feature of node a: PATH_HASH * a, VW's
LARGEST_SCORE = 50.0  # in a probability


class Scratch(NamedTuple):
    """OptionGroup for one example and its lanes."""

    row: routing.Row
    lanes: gd.Lanes
    position: Int64s  # int64[lanes], of a lane in `plan.item`
    out: Float32s  # float32[lanes], scores
    met: UInt8s  # uint8[sub-problems] for `learn_sequentially`, 0 between examples


def new_scratch(row: routing.Row, candidates: int, subs: int = 0) -> Scratch:
    """OptionGroup for so many candidates, and the label."""
    most = candidates + 1
    return Scratch(
        row, gd.new_lanes(most), np.empty(most, np.int64), np.empty(most, np.float32), np.zeros(subs, np.uint8)
    )


# -- kernels


@jit
def path(
    tree: routing.Tree, settings: routing.Settings, pairs: UInt8s, a: int, width: np.uint64, batch: Batch, i: int,
    place: UInt64s, x: Float32s, count: int,
) -> int:  # fmt: skip
    """Add the path features of node a, and their crosses, behind the `count` others; return the new count.

    Row k of `pairs` crosses namespace group `pairs[k, 0]` with the path, the path first where `pairs[k, 1]`.
    """
    if not settings.path:
        return count
    begin = count
    if settings.node_only:
        place[count] = np.uint64(PATH_HASH * a) * width
        x[count] = ONE
        count += 1
    else:
        while a > 0:
            place[count] = np.uint64(PATH_HASH * a) * width
            x[count] = ONE
            count += 1
            a = tree.parent[a]
    end = count
    for k in range(pairs.shape[0]):
        for j in range(batch.group_first[i], batch.group_first[i + 1]):
            if batch.group_name[j] == pairs[k, 0]:
                for f in range(batch.group_start[j] - batch.start[i], batch.group_start[j + 1] - batch.start[i]):
                    for q in range(begin, end):  # as VW crosses, on places: hash * width keeps what it needs
                        first, second = (place[q], place[f]) if pairs[k, 1] else (place[f], place[q])
                        place[count] = (np.uint64(16777619) * first) ^ second
                        x[count] = x[f]
                        count += 1
    return count


@jit
def _crossed(batch: Batch, i: int) -> int:
    """The number of features of row i that crosses made; they are its last ones."""
    last = batch.group_first[i + 1] - 1
    if last < batch.group_first[i] or batch.group_name[last] != CROSSED_GROUP:
        return 0
    size: int = batch.group_start[last + 1] - batch.group_start[last]
    return size


@jit
def _path_size(tree: routing.Tree, settings: routing.Settings, a: int) -> int:
    """The number of path features of node a."""
    if not settings.path:
        return 0
    if settings.node_only:
        return 1
    size = 0
    while a > 0:
        size += 1
        a = tree.parent[a]
    return size


@jit
def _exchange(place: UInt64s, x: Float32s, low: int, middle: int, high: int) -> None:
    """Let features low..middle-1 and middle..high-1 change places, each in their order."""
    if low == middle or middle == high:
        return
    _reverse(place, x, low, middle)
    _reverse(place, x, middle, high)
    _reverse(place, x, low, high)


@jit
def _reverse(place: UInt64s, x: Float32s, low: int, high: int) -> None:
    while low < high - 1:
        high -= 1
        place[low], place[high] = place[high], place[low]
        x[low], x[high] = x[high], x[low]
        low += 1


@jit
def _gather(
    plan: Plan, begin: int, end: int, skip: int, shard: int, label: int, scratch: gd.Lanes, position: Int64s
) -> int:
    """Lanes of this shard among items begin..end-1; return how many."""
    lanes = 0
    for j in range(begin, end):
        c = np.int64(plan.item[j])
        if c % SHARDS == shard and j != skip:
            scratch.sub[lanes] = np.uint64(c // SHARDS)
            scratch.y[lanes] = ONE if c == label else -ONE
            position[lanes] = j
            lanes += 1
    return lanes


@jit
def _clip_lanes(table: gd.Table, scratch: gd.Lanes, out: Float32s, lanes: int) -> None:
    for j in range(lanes):
        scratch.p[j] = gd.clip(out[j], table.range)


@jit
def score_shard(
    tree: routing.Tree, settings: routing.Settings, pairs: UInt8s, table: gd.Table, rule: gd.Rule, shard: int,
    batch: Batch, clock: Float64s, plan: Plan, room: Scratch,
) -> None:  # fmt: skip
    """Score and train this shard's classes, example by example, as the plan says."""
    (place, x), scratch, position, out, _ = room
    for i in range(batch.label.shape[0]):
        table.watch.now[0] = i
        label = plan.label[i]
        count = routing.load(batch, i, table.width, place, x)
        full = path(tree, settings, pairs, plan.node[i], table.width, batch, i, place, x, count)
        mode = plan.mode[i]
        lanes = _gather(plan, plan.first[i], plan.scored[i], -1, shard, label, scratch, position)
        gd.score_lanes(table, place, x, full, scratch.sub, lanes, out)
        for j in range(lanes):
            plan.score[position[j]] = out[j]
        if mode == NONE:
            continue
        if rule.widen:
            gd.widen(table.range, -ONE)
            gd.widen(table.range, ONE)
        if mode == SAME:
            extra = plan.first[i + 1] - plan.scored[i]
            if extra > 0:  # the label came in and pushed another candidate out: not the lanes just scored
                lanes = _gather(
                    plan, plan.first[i], plan.first[i + 1], plan.dropped[i], shard, label, scratch, position
                )
                gd.score_lanes(table, place, x, full, scratch.sub, lanes, out)
        else:
            full = path(tree, settings, pairs, plan.last[i], table.width, batch, i, place, x, count)
            lanes = _gather(plan, plan.scored[i], plan.first[i + 1], -1, shard, label, scratch, position)
            gd.score_lanes(table, place, x, full, scratch.sub, lanes, out)
        _clip_lanes(table, scratch, out, lanes)
        gd.learn_lanes(table, rule, place, x, full, lanes, scratch, batch.weight[i], clock[i])


@jit
def choose(plan: Plan, prediction: Float64s) -> None:
    """`prediction[i]` = label of the best score, the earlier candidate on a tie; 0 without candidates."""
    for i in range(prediction.shape[0]):
        best = -1
        for j in range(plan.first[i], plan.scored[i]):
            if best < 0 or plan.score[j] > plan.score[best]:
                best = j
        prediction[i] = plan.item[best] + 1 if best >= 0 else 0.0


@jit
def candidate_probabilities(plan: Plan, classes: int, label: Int64s, odds: Float64s, own: Float64s) -> None:
    """`odds[j]` = probability of the candidate at place j, `own[i]` = that of the 0-based label of example i.

    A label that is no candidate has its share of what the candidates leave, one that is no class has 0.
    """
    for i in range(label.shape[0]):
        begin, end = plan.first[i], plan.scored[i]
        total = 0.0
        for j in range(begin, end):
            s = np.float64(plan.score[j])
            odds[j] = 1.0 if math.isnan(s) else fast_math.exp(min(max(s, -LARGEST_SCORE), LARGEST_SCORE))
            total += odds[j]
        own[i] = (1.0 - plan.recall[i]) / (classes - (end - begin)) if end - begin < classes else 0.0
        if not 0 <= label[i] < classes:
            own[i] = 0.0
        for j in range(begin, end):
            odds[j] *= plan.recall[i] / total
            if plan.item[j] == label[i]:
                own[i] = odds[j]


@jit
def best_candidates(plan: Plan, odds: Float64s, top: Int64s, top_p: Float64s) -> None:
    """`top[i]`, `top_p[i]` = the candidates (1-based) of the highest scores, the earlier first on a tie; 0 for none."""
    place = np.empty(top.shape[1], np.int64)
    for i in range(top.shape[0]):
        size = top_k.rank(plan.score, plan.first[i], plan.scored[i], place)
        for r in range(top.shape[1]):
            top[i, r] = plan.item[place[r]] + 1 if r < size else 0
            top_p[i, r] = odds[place[r]] if r < size else 0.0


@jit
def _mark(tree: routing.Tree, z: int, scratch: gd.Lanes, lanes: int, met: UInt8s, mark: int) -> None:
    """`met` = `mark` for the lanes and the routers on the way to node z."""
    for j in range(lanes):
        met[np.int64(scratch.sub[j])] = mark
    a = z
    while a >= 0:
        if tree.router[a] >= 0:
            met[tree.router[a]] = mark
        a = tree.parent[a]


@jit
def _apart(
    tree: routing.Tree, table: gd.Table, place: UInt64s, count: int, full: int, z: int, scratch: gd.Lanes, lanes: int,
    met: UInt8s,
) -> bool:  # fmt: skip
    """Whether no lane shares a slot with another or with a router on the way to node z.

    Places of the first `count` features are multiples of the table's width, so that different sub-problems have
    different slots there. Those of path features, behind them, are not; but the lanes' slots of one lie in two rows
    at most, those of the first and the last, and only where another feature has one of these is every slot looked at.
    `met` (uint8, 0 for every sub-problem) is left as it was.
    """
    width, mask = table.width, table.mask
    if width > mask:
        return False
    _mark(tree, z, scratch, lanes, met, 1)
    shared = False
    least, most = scratch.sub[0], scratch.sub[0]
    for j in range(lanes):
        least = min(least, scratch.sub[j])
        most = max(most, scratch.sub[j])
    row = mask ^ (width - np.uint64(1))  # the bits of a slot that are the feature's
    for q in range(count, full):
        if shared:
            break
        first, last = (place[q] + least) & row, (place[q] + most) & row
        near = False
        for f in range(count):
            near |= (place[f] & row) == first or (place[f] & row) == last
        for o in range(count, q):
            between = (place[q] - place[o]) & mask
            if min(between, mask + np.uint64(1) - between) < np.uint64(met.shape[0]):
                for j in range(lanes):
                    sub = (scratch.sub[j] + between) & mask
                    shared |= sub < np.uint64(met.shape[0]) and met[np.int64(sub)] > 0
        if near:
            for j in range(lanes):
                slot = (place[q] + scratch.sub[j]) & mask
                sub = slot & (width - np.uint64(1))
                if sub < np.uint64(met.shape[0]) and met[np.int64(sub)] > 0:
                    for f in range(count):
                        shared |= (place[f] & row) == (slot & row)
    _mark(tree, z, scratch, lanes, met, 0)
    return not shared


@jit
def learn_sequentially(
    tree: routing.Tree, counts: label_counts.Counts, settings: routing.Settings, pairs: UInt8s, table: gd.Table,
    rule: gd.Rule, batch: Batch, clock: Float64s, random: UInt64s, plan: Plan, begin: int, room: Scratch,
) -> int:  # fmt: skip
    """Route, score and train one example after the other with one table: VW's order to the last collision.

    Under `--layout vw` routers, scorers and the path features, which VW does not scale by the number of
    sub-problems, can share slots, so neither stages nor shards may run ahead, and lanes only where an example shares
    none. With --vw_exact scorers meet the path features before the crosses, as in VW.
    """
    (place, x), scratch, _, out, met = room
    routers = settings.routers
    unscaled = np.uint64(1)
    # else what one lane learns changes the range or the weights of all, or there are too many places to look at
    independent = not rule.widen and not rule.regular and pairs.shape[0] == 0
    for i in range(begin, batch.label.shape[0]):
        label = plan.label[i]
        if label >= 0 and not label_counts.has_room(settings.depth, counts):
            return i
        table.watch.now[0] = i
        count = routing.load(batch, i, table.width, place, x)
        a = routing.descend(tree, counts, settings, table, place, x, count, batch.initial[i])
        crossed = 0 if rule.checked else _crossed(batch, i)
        full = path(tree, settings, pairs, a, unscaled, batch, i, place, x, count)
        steps = _path_size(tree, settings, a)
        _exchange(place, x, count - crossed, count, count + steps)
        at = plan.first[i]
        size = counts.top_size[a]
        known = False
        for j in range(size):
            plan.item[at + j] = counts.top_label[a, j]
            known |= counts.top_label[a, j] == label
            scratch.sub[j] = np.uint64(routers + counts.top_label[a, j])
        gd.score_lanes(table, place, x, full, scratch.sub, size, out)
        _exchange(place, x, count - crossed, count - crossed + steps, count + steps)  # routers know no path
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
        size = counts.top_size[z]
        candidate = False
        for j in range(size):
            candidate |= counts.top_label[z, j] == label
        if not candidate:
            continue
        full = path(tree, settings, pairs, z, unscaled, batch, i, place, x, count)
        for j in range(size):
            scratch.sub[j] = np.uint64(routers + counts.top_label[z, j])
        apart = independent and _apart(tree, table, place, count, full, z, scratch, size, met)
        _exchange(place, x, count - crossed, count, count + _path_size(tree, settings, z))
        if apart:
            if z == a and known:  # the same classes, in another order at most, and nothing they know has changed
                for j in range(size):
                    scratch.sub[j] = np.uint64(routers + plan.item[at + j])
                    out[j] = plan.score[at + j]
            else:
                gd.score_lanes(table, place, x, full, scratch.sub, size, out)
            for j in range(size):
                scratch.y[j] = ONE if scratch.sub[j] == np.uint64(routers + label) else -ONE
            _clip_lanes(table, scratch, out, size)
            gd.learn_lanes(table, rule, place, x, full, size, scratch, weight, clock[i])
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
            gd.learn(table, rule, place, x, full, sub, p, y, weight, clock[i])
    examples: int = batch.label.shape[0]
    return examples


# -- Python


def scored_items(plan: Plan) -> tuple[Int64s, Int64s]:
    """Where the candidates of each example begin once they stand without gaps, and their places in `plan.item`."""
    size = plan.scored - plan.first[:-1]
    start = np.concatenate([[0], np.cumsum(size)])
    return start, np.repeat(plan.first[:-1] - start[:-1], size) + np.arange(start[-1])


def by_class(plan: Plan, odds: Float64s) -> probabilities.Listing:
    """All candidates in order of class, and what they leave."""
    start, chosen = scored_items(plan)
    n = len(plan.scored)
    row = np.repeat(np.arange(n), np.diff(start))
    label = plan.item[chosen].astype(np.int64) + 1
    order = np.lexsort((label, row))
    last = start[1:]  # `insert` counts places before anything is inserted
    scores = np.insert(odds[chosen][order], last, 1.0 - plan.recall)
    return probabilities.Listing(scores.astype(np.float32), np.insert(label[order], last, 0), start + np.arange(n + 1))
