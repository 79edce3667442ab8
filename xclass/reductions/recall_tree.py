"""Recall tree: route by a binary tree, then score only the classes most often seen at the node.

Source    Daume, Karampatziakis, Langford, Mineiro, "Logarithmic Time One-Against-Some", ICML 2017.
Learners  R routers, one per internal node of a complete tree, and one scorer per class.
Cost      learn and predict O(s (depth + F)) for an example of s features, whatever K is.
Names     F max_candidates | lambda bern_hyper | n, H weight and label entropy [hist, total] of a node |
          recall lower bound [recall-hat] | path features x + {(n.id : 1)} | K classes | a node id.
Differs   from the paper: entropies are kept incrementally in nats, as VW does; the child an example stops short
          of also counts it (Algorithm 2 updates c before it breaks).
          From VW's recall_tree.cc: counts are found by hashing (node, label), not by scanning, with the same
          order of candidates; `--router_weight entropy` gives routers the importance of Algorithm 3, which VW
          computes and drops; examples of weight 0 are not learned (VW's entropy becomes NaN); bern_hyper is in
          the model; under the default layout routers and scorers have tables of their own and path features are
          hashed like all others. With `--layout vw --router_weight example` predictions are VW's.

The recall bound, paper and VW in one formula: r is the share of the node's weight n that its F candidates hold,

    bound = max(0, r - sqrt(lambda r (1 - r) / n) - lambda * DIAMETER / n)        DIAMETER = 15 / sqrt(18)

(the paper writes lambda / n for the last term and leaves the constant to lambda; VW's constant is used).

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

Two stages. Routing needs no scorer, so it runs ahead on a thread of its own and hands over a plan: which classes
to score and which to train, per example. Scoring is split by class into SHARDS with tables of their own, so any
number of threads gives the same bytes.
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .. import answers, elementary, learner, model_file, rng
from ..errors import UsageError
from ..jit import jit
from ..options import option, options_of
from ..reliability import Report
from .contract import Look, Reduction, Work

SHARDS = 3  # scorers' tables; with the routers' they make four equal parts of 2**b slots
FIFTEEN = np.float32(15)
ROOT_18 = np.float32(math.sqrt(18.0))
PATH_GROUP = 0x88  # namespace of the path features, where interactions name it
WILDCARD = ord(":")
PATH_HASH = 868771  # index of the path feature of node a: PATH_HASH * a, VW's
WEIGHT, ENTROPY, HELD, BOUND = 0, 1, 2, 3  # columns of Counts.node
EXAMPLE, ENTROPY_CHANGE, MEAN_ENTROPY = 0, 1, 2
ROUTER_WEIGHTS = ("example", "entropy", "mean_entropy")
LN_2 = math.log(2.0)
FADE = 0.99  # what an example predicted at a node leaves of the recall counted there before
ASKED, MET = 0, 1  # columns of Counts.recall
LARGEST_SCORE = 50.0  # in a probability
NODE_BYTES, CANDIDATE_BYTES = 16 + 52, 12  # Tree and Counts, per node and per candidate of a node
NONE, SAME, OTHER = 0, 1, 2  # Plan.mode: no scorer learns; those scored learn; another list learns
ZERO = np.float32(0)
ONE = np.float32(1)


@dataclass(frozen=True)
class Options:
    """Recall tree."""

    recall_tree: int = option("number of classes, labels 1..K", kind=int, metavar="K", minimum=1, stored=True)
    max_candidates: int = option(
        "classes scored at a node [F]",
        kind=int,
        metavar="F",
        minimum=1,
        default_text="4 ceil(log2 K), at most K",
        stored=True,
    )
    max_depth: int = option(
        "levels of routers", kind=int, metavar="D", minimum=0, maximum=26, default_text="ceil(log2 K)", stored=True
    )
    bern_hyper: float = option(
        "multiplier of the recall bound's penalty [lambda]; 0 never stops above a leaf",
        kind=float,
        default=1.0,
        minimum=0,
        metavar="LAMBDA",
        stored=True,
    )
    node_only: bool = option("the only path feature is the node reached", kind=bool, stored=True)
    no_path_features: bool = option("score without path features", kind=bool, stored=True)
    randomized_routing: bool = option("while learning, turn at random by the router's score", kind=bool, stored=True)
    router_weight: str = option(
        "importance of a router's example: `entropy` is by how many bits the turn changes what is to be told "
        "[n.total |dH|], `mean_entropy` the same per example seen [|dH|], `example` the example's own (VW)",
        choices=("entropy", "mean_entropy", "example"),
        default="entropy",
        stored=True,
    )


class Tree(NamedTuple):
    """A complete binary tree; nodes are numbered depth first, siblings next to each other."""

    left: np.ndarray  # int32[m], left child (right: + 1), 0 at a leaf
    parent: np.ndarray  # int32[m], -1 above the root
    router: np.ndarray  # int64[m], sub-problem of the node's router, -1 at a leaf


class Counts(NamedTuple):
    """What was seen at every node. `cell_key` and `cell_count` are two views of one hash table.

    A cell belongs to a node and a label and counts that label in the node's two children side by side, since
    routing asks for both; the root is the left child of a node above it.

        24 bytes  | key: (node + 1) << 32 | label + 1 | count in left child | count in right child |
    """

    node: np.ndarray  # float64[m, 4]: weight n, entropy H in nats, weight held by the candidates, recall bound
    top_label: np.ndarray  # int32[m, F], candidates by falling count
    top_count: np.ndarray  # float64[m, F]
    top_size: np.ndarray  # int32[m]
    recall: np.ndarray  # float64[m, 2]: weight of predictions that ended here, and of those with the label a candidate
    cell_key: np.ndarray  # uint64[cells, 3], column 0; 0 is an empty cell
    cell_count: np.ndarray  # float64[cells, 3], columns 1 and 2
    used: np.ndarray  # int64[1], cells in use


class Settings(NamedTuple):
    """The options a kernel needs."""

    bern: np.float32
    router_weight: int
    randomized: bool
    path: bool
    node_only: bool
    classes: int


class Plan(NamedTuple):
    """What routing found for n examples; `label` is 0-based, -1 where nothing is learned.

    Example i: classes `item[first[i]:scored[i]]` are scored for the prediction; mode SAME: they learn, but for
    the one at `dropped[i]`, and so does the class at `item[scored[i]]` if there is one before `first[i + 1]`;
    mode OTHER: classes `item[scored[i]:first[i + 1]]` learn, with the path of node `last[i]`.
    """

    label: np.ndarray  # int64[n]
    node: np.ndarray  # int32[n], where prediction ended
    recall: np.ndarray  # float64[n], probability that the label is among the classes scored
    last: np.ndarray  # int32[n], where learning ended
    mode: np.ndarray  # int8[n]
    dropped: np.ndarray  # int64[n], position in item or -1
    first: np.ndarray  # int64[n + 1]
    scored: np.ndarray  # int64[n]
    item: np.ndarray  # int32[room]
    score: np.ndarray  # float32[room], filled by the scorers


# -- kernels: counting


@jit
def _find(counts, above, label):
    """The cell of `label` under node `above`, made if there is none; the caller has seen to room."""
    key = (np.uint64(above + 1) << np.uint64(32)) | np.uint64(label + 1)
    last = np.int64(counts.cell_key.shape[0] - 1)
    at = np.int64((key * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(24)) & last
    while counts.cell_key[at, 0] != key:
        if counts.cell_key[at, 0] == np.uint64(0):
            counts.cell_key[at, 0] = key
            counts.used[0] += 1
            break
        at = (at + 1) & last
    return at


@jit
def rehash(old_key, old_count, counts):
    """Move all cells of an old table into `counts`, which is empty."""
    last = np.int64(counts.cell_key.shape[0] - 1)
    for i in range(old_key.shape[0]):
        key = old_key[i, 0]
        if key != np.uint64(0):
            at = np.int64((key * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(24)) & last
            while counts.cell_key[at, 0] != np.uint64(0):
                at = (at + 1) & last
            counts.cell_key[at, 0] = key
            counts.cell_count[at, 1] = old_count[i, 1]
            counts.cell_count[at, 2] = old_count[i, 2]
            counts.used[0] += 1


@jit
def _plogp(c, n):
    return (c / n) * math.log(c / n) if c != 0.0 else 0.0


@jit
def _entropy_with(n, h, c, i):
    """Entropy of a node of weight n and entropy h once weight i of a label counted c so far is added."""
    share = n / (i + n)
    log_share = math.log(share) if share != 0.0 else 0.0
    h += _plogp(c, n)
    h *= share
    h -= log_share * ((n - c) / (n + i))
    h -= _plogp(c + i, n + i)
    return h


@jit
def _bound(settings, held, n):
    """Lower bound of a node's recall, in float32 as in VW."""
    n = np.float32(n)
    r = np.float32(held) / n
    spread = np.float32(math.sqrt(r * (ONE - r) / n))
    diameter = FIFTEEN / (ROOT_18 * n)
    low = r - np.float32(math.sqrt(settings.bern)) * spread - settings.bern * diameter
    return low if low > ZERO else ZERO  # not max: rounding can leave r above 1 and low NaN


@jit
def _insert(counts, settings, a, label, c, i, h):
    """Count weight i of a label at node a, where it had c so far and h is the entropy with it.

    The candidates stay ordered as in VW: an entry moves before all of strictly smaller count. A label outside
    comes in only when it passes the last candidate, so the labels outside need no order.
    """
    node, top_label, top_count = counts.node, counts.top_label, counts.top_count
    room = top_label.shape[1]
    size = counts.top_size[a]
    new = c + i
    held = node[a, HELD]
    at = -1
    if c == 0.0 and size < room:
        at = size
        counts.top_size[a] = size + 1
        held += i
    elif size < room or new > top_count[a, size - 1]:
        at = size - 1
        while at >= 0 and top_label[a, at] != label:
            at -= 1
        if at >= 0:
            held += i
        else:  # passes the last candidate and takes its place
            at = size - 1
            held += new - top_count[a, at]
    if at >= 0:
        while at > 0 and top_count[a, at - 1] < new:
            top_label[a, at] = top_label[a, at - 1]
            top_count[a, at] = top_count[a, at - 1]
            at -= 1
        top_label[a, at] = label
        top_count[a, at] = new
    node[a, ENTROPY] = h
    node[a, WEIGHT] += i
    node[a, HELD] = held
    node[a, BOUND] = _bound(settings, held, node[a, WEIGHT])


@jit
def _recall(counts, settings, a):
    """The estimated probability that the label of an example predicted at node a is a candidate there."""
    if counts.top_size[a] == settings.classes:
        return 1.0
    if counts.top_size[a] == 0:
        return 0.0
    return (counts.recall[a, MET] + 0.5) / (counts.recall[a, ASKED] + 1.0)


@jit
def _count_recall(counts, a, met, weight):
    """Count one example predicted at node a, before its label is counted."""
    if counts.top_size[a] == 0:
        return
    counts.recall[a, ASKED] = FADE * counts.recall[a, ASKED] + np.float64(weight)
    counts.recall[a, MET] = FADE * counts.recall[a, MET] + (np.float64(weight) if met else 0.0)


@jit
def _stops(counts, settings, parent, child):
    return settings.bern > ZERO and counts.node[parent, BOUND] >= counts.node[child, BOUND]


# -- kernels: routing


@jit
def _descend(tree, counts, settings, table, place, x, count, initial):
    """Algorithm 1 up to the candidates: the node where prediction ends."""
    a = 0
    while tree.router[a] >= 0:
        s = learner.score(table, place, x, count, np.uint64(tree.router[a]), initial)
        child = tree.left[a] + (0 if s < ZERO else 1)
        if _stops(counts, settings, a, child):
            break
        a = child
    return a


@jit
def _learn_route(tree, counts, settings, table, rule, place, x, count, label, weight, clock, random):
    """Algorithms 2 and 3 up to the regressors: train the routers on the way, count the label, return the node."""
    i = np.float64(weight)
    a = 0
    cell = _find(counts, -1, label)
    side = 1
    h = _entropy_with(counts.node[0, WEIGHT], counts.node[0, ENTROPY], counts.cell_count[cell, 1], i)
    while tree.router[a] >= 0:
        below = _find(counts, a, label)
        l_, r_ = tree.left[a], tree.left[a] + 1
        n_l, n_r = counts.node[l_, WEIGHT], counts.node[r_, WEIGHT]
        h_l = _entropy_with(n_l, counts.node[l_, ENTROPY], counts.cell_count[below, 1], i)
        h_r = _entropy_with(n_r, counts.node[r_, ENTROPY], counts.cell_count[below, 2], i)
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
            learner.widen(table.range, y)
        if importance > ZERO:
            p = learner.clip(learner.score(table, place, x, count, router, ZERO), table.range)
            learner.learn(table, rule, place, x, count, router, p, y, importance, clock)
        s = learner.clip(learner.score(table, place, x, count, router, ZERO), table.range)
        if settings.randomized:
            s = -ONE if rng.draw(random) > max(ZERO, min(ONE, np.float32(0.5) * (ONE + np.float32(2) * s))) else ONE
        right = 0 if s < ZERO else 1
        child = l_ + right
        stop = _stops(counts, settings, a, child)
        c = counts.cell_count[cell, side]
        counts.cell_count[cell, side] = c + i
        _insert(counts, settings, a, label, c, i, h)
        cell, side, h = below, 1 + right, h_r if right else h_l
        if stop:
            c = counts.cell_count[cell, side]
            counts.cell_count[cell, side] = c + i
            _insert(counts, settings, child, label, c, i, h)
            return a
        a = child
    c = counts.cell_count[cell, side]
    counts.cell_count[cell, side] = c + i
    _insert(counts, settings, a, label, c, i, h)
    return a


@jit
def _path(tree, settings, pairs, a, width, batch, i, place, x, count):
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
def _load(batch, i, width, place, x):
    """Copy the features of example i to `place` and `x`; return their number."""
    begin, end = batch.start[i], batch.start[i + 1]
    for f in range(end - begin):
        place[f] = np.uint64(batch.index[begin + f]) * width
        x[f] = batch.value[begin + f]
    return end - begin


@jit
def _has_room(tree_depth, counts):
    """Whether one more example surely finds empty cells; at most 5/8 of them are used."""
    return (counts.used[0] + tree_depth + 2) * 8 <= counts.cell_key.shape[0] * 5


@jit
def route(tree, depth, counts, settings, table, rule, batch, clock, random, plan, begin, place, x):
    """Route rows `begin`... of a batch, learning where `plan.label` is given; return the first row not done."""
    for i in range(begin, batch.label.shape[0]):
        label = plan.label[i]
        if label >= 0 and not _has_room(depth, counts):
            return i
        count = _load(batch, i, table.width, place, x)
        a = _descend(tree, counts, settings, table, place, x, count, batch.initial[i])
        at = plan.first[i]
        size = counts.top_size[a]
        known = False
        for j in range(size):
            plan.item[at + j] = counts.top_label[a, j]
            known |= counts.top_label[a, j] == label
        full = size == counts.top_label.shape[1]
        at += size
        plan.node[i] = a
        plan.recall[i] = _recall(counts, settings, a)
        plan.last[i] = a
        plan.scored[i] = at
        plan.mode[i] = NONE
        plan.dropped[i] = -1
        if label >= 0:
            _count_recall(counts, a, known, batch.weight[i])
            z = _learn_route(
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
    return batch.label.shape[0]


# -- kernels: scoring


@jit
def _gather(plan, begin, end, skip, shard, label, scratch, position):
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
def _clip_lanes(table, scratch, out, lanes):
    for j in range(lanes):
        scratch.p[j] = learner.clip(out[j], table.range)


@jit
def score_shard(tree, settings, pairs, table, rule, shard, batch, clock, plan, place, x, scratch, position, out):
    """Score and train this shard's classes, example by example, as the plan says."""
    for i in range(batch.label.shape[0]):
        label = plan.label[i]
        count = _load(batch, i, table.width, place, x)
        full = _path(tree, settings, pairs, plan.node[i], table.width, batch, i, place, x, count)
        mode = plan.mode[i]
        lanes = _gather(plan, plan.first[i], plan.scored[i], -1, shard, label, scratch, position)
        learner.score_lanes(table, place, x, full, scratch.sub, lanes, out)
        for j in range(lanes):
            plan.score[position[j]] = out[j]
        if mode == NONE:
            continue
        if rule.widen:
            learner.widen(table.range, -ONE)
            learner.widen(table.range, ONE)
        if mode == SAME:
            extra = plan.first[i + 1] - plan.scored[i]
            if extra > 0:  # the label came in and pushed another candidate out: not the lanes just scored
                lanes = _gather(
                    plan, plan.first[i], plan.first[i + 1], plan.dropped[i], shard, label, scratch, position
                )
                learner.score_lanes(table, place, x, full, scratch.sub, lanes, out)
        else:
            full = _path(tree, settings, pairs, plan.last[i], table.width, batch, i, place, x, count)
            lanes = _gather(plan, plan.scored[i], plan.first[i + 1], -1, shard, label, scratch, position)
            learner.score_lanes(table, place, x, full, scratch.sub, lanes, out)
        _clip_lanes(table, scratch, out, lanes)
        learner.learn_lanes(table, rule, place, x, full, lanes, scratch, batch.weight[i], clock[i])


@jit
def choose(plan, prediction):
    """`prediction[i]` = label of the best score, the earlier candidate on a tie; 0 without candidates."""
    for i in range(prediction.shape[0]):
        best = -1
        for j in range(plan.first[i], plan.scored[i]):
            if best < 0 or plan.score[j] > plan.score[best]:
                best = j
        prediction[i] = plan.item[best] + 1 if best >= 0 else 0.0


@jit
def judge(plan, classes, label, odds, own):
    """`odds[j]` = probability of the candidate at place j, `own[i]` = that of the 0-based label of example i.

    A label that is no candidate has its share of what the candidates leave, one that is no class has 0.
    """
    for i in range(label.shape[0]):
        begin, end = plan.first[i], plan.scored[i]
        total = 0.0
        for j in range(begin, end):
            s = np.float64(plan.score[j])
            odds[j] = 1.0 if math.isnan(s) else elementary.exp(min(max(s, -LARGEST_SCORE), LARGEST_SCORE))
            total += odds[j]
        own[i] = (1.0 - plan.recall[i]) / (classes - (end - begin)) if end - begin < classes else 0.0
        if not 0 <= label[i] < classes:
            own[i] = 0.0
        for j in range(begin, end):
            odds[j] *= plan.recall[i] / total
            if plan.item[j] == label[i]:
                own[i] = odds[j]


@jit
def best_candidates(plan, odds, top, top_p):
    """`top[i]`, `top_p[i]` = the candidates (1-based) of the highest scores, the earlier first on a tie; 0 for none."""
    place = np.empty(top.shape[1], np.int64)
    for i in range(top.shape[0]):
        size = answers.rank(plan.score, plan.first[i], plan.scored[i], place)
        for r in range(top.shape[1]):
            top[i, r] = plan.item[place[r]] + 1 if r < size else 0
            top_p[i, r] = odds[place[r]] if r < size else 0.0


@jit
def learn_in_turn(
    tree,
    depth,
    counts,
    settings,
    pairs,
    table,
    rule,
    routers,
    batch,
    clock,
    random,
    plan,
    begin,
    place,
    x,
    scratch,
    out,
):
    """Route, score and train one example after the other with one table: VW's order to the last collision.

    Under `--layout vw` routers, scorers and the path features, which VW does not scale by the number of
    sub-problems, can share slots, so neither stages nor shards nor lanes may run ahead.
    """
    unscaled = np.uint64(1)
    for i in range(begin, batch.label.shape[0]):
        label = plan.label[i]
        if label >= 0 and not _has_room(depth, counts):
            return i
        count = _load(batch, i, table.width, place, x)
        a = _descend(tree, counts, settings, table, place, x, count, batch.initial[i])
        full = _path(tree, settings, pairs, a, unscaled, batch, i, place, x, count)
        at = plan.first[i]
        size = counts.top_size[a]
        known = False
        for j in range(size):
            plan.item[at + j] = counts.top_label[a, j]
            known |= counts.top_label[a, j] == label
            scratch.sub[j] = np.uint64(routers + counts.top_label[a, j])
        learner.score_lanes(table, place, x, full, scratch.sub, size, out)
        for j in range(size):
            plan.score[at + j] = out[j]
        plan.node[i] = a
        plan.recall[i] = _recall(counts, settings, a)
        plan.scored[i] = at + size
        plan.first[i + 1] = at + size
        if label < 0:
            continue
        weight = batch.weight[i]
        _count_recall(counts, a, known, weight)
        z = _learn_route(tree, counts, settings, table, rule, place, x, count, label, weight, clock[i], random)
        plan.last[i] = z
        size = counts.top_size[z]
        candidate = False
        for j in range(size):
            candidate |= counts.top_label[z, j] == label
        if not candidate:
            continue
        full = _path(tree, settings, pairs, z, unscaled, batch, i, place, x, count)
        for j in range(-1, size):  # the label first
            c = label if j < 0 else np.int64(counts.top_label[z, j])
            if j >= 0 and c == label:
                continue
            y = ONE if c == label else -ONE
            if rule.widen:
                learner.widen(table.range, y)
            sub = np.uint64(routers + c)
            p = learner.clip(learner.score(table, place, x, full, sub, ZERO), table.range)
            learner.learn(table, rule, place, x, full, sub, p, y, weight, clock[i])
    return batch.label.shape[0]


@jit
def grow_tree(depth, blocked, left, parent, router, order):
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


def settle(config) -> dict:
    """Options whose defaults depend on K."""
    o = config.recall_tree
    classes = o.recall_tree
    levels = max(0, classes - 1).bit_length()
    found = {}
    if o.max_candidates is None:
        found["max_candidates"] = max(1, min(classes, 4 * levels))
    if o.max_depth is None:
        found["max_depth"] = levels
    depth = found.get("max_depth", o.max_depth)
    return {**found, **learner.settle(config.learner, (1 << depth) - 1 + classes, reduction=True)}


def check(config) -> None:
    """Refuse options that cannot be meant together."""
    learner.check(config)
    o = config.recall_tree
    if config.learner.loss_function not in (None, "logistic"):
        for name in options_of(answers.Options):
            if name in config.given:
                raise UsageError(
                    f"--{name} with --recall_tree needs scores that are log odds: give --loss_function logistic"
                )
    if o.no_path_features and o.node_only:
        raise UsageError("--node_only chooses among path features and --no_path_features has none: give one of them")


def allowed(config) -> tuple[int, int, str]:
    """Lowest and highest label, and the option that says so."""
    classes = config.recall_tree.recall_tree
    return 1, classes, f"--recall_tree {classes}"


def new_counts(nodes: int, candidates: int, cells: int = 1 << 14) -> Counts:
    """Empty counts; pages of nodes never reached are never taken from the machine."""
    keys, shared = _new_cells(cells)
    return Counts(
        node=np.zeros((nodes, 4)),
        top_label=np.zeros((nodes, candidates), np.int32),
        top_count=np.zeros((nodes, candidates)),
        top_size=np.zeros(nodes, np.int32),
        recall=np.zeros((nodes, 2)),
        cell_key=keys,
        cell_count=shared,
        used=np.zeros(1, np.int64),
    )


def _new_cells(cells: int):
    keys = np.zeros((cells, 3), np.uint64)
    return keys, keys.view(np.float64)


def _grown(counts: Counts, cells: int) -> Counts:
    keys, shared = _new_cells(cells)
    larger = counts._replace(cell_key=keys, cell_count=shared, used=np.zeros(1, np.int64))
    rehash(counts.cell_key, counts.cell_count, larger)
    return larger


def new_tree(depth: int, blocked: bool) -> tuple[Tree, int]:
    """A complete tree and the number of sub-problems its routers take."""
    nodes = (2 << depth) - 1
    tree = Tree(np.zeros(nodes, np.int32), np.zeros(nodes, np.int32), np.zeros(nodes, np.int64))
    taken = grow_tree(depth, blocked, tree.left, tree.parent, tree.router, np.zeros(depth + 2, np.int64))
    return tree, int(taken)


class RecallTree:
    """The learner behind `--recall_tree`."""

    def __init__(self, config, testing: bool):
        o = config.recall_tree
        self.classes = o.recall_tree
        self.candidates = o.max_candidates
        self.depth = o.max_depth
        self.rule = learner.make_rule(config.learner, reduction=True)
        self.in_turn = config.learner.layout == "vw"
        self.settings = Settings(
            bern=np.float32(o.bern_hyper),
            router_weight=ROUTER_WEIGHTS.index(o.router_weight),
            randomized=o.randomized_routing,
            path=not o.no_path_features,
            node_only=o.node_only,
            classes=self.classes,
        )
        self.random = np.array([config.driver.random_seed], np.uint64)
        self.outside = 0
        self.resume = config.learner.resume
        self.pairs = np.empty((0, 2), np.uint8)
        self.learner_options = config.learner
        bits = config.learner.bits
        nodes = (2 << self.depth) - 1
        self.memory = learner.SLOT_BYTES << bits, nodes * (NODE_BYTES + CANDIDATE_BYTES * self.candidates)
        learner.check_memory(bits, more=self.memory[1])
        self.tree, taken = new_tree(self.depth, blocked=not self.in_turn)
        self.routers = taken
        self.counts = new_counts(len(self.tree.left), self.candidates)
        if self.in_turn:
            subs = taken + self.classes
            self.tables = [learner.new_table(self.rule, bits, subs, learner.vw_width(subs))]
            self.stages = [self._in_turn]
        else:
            part = max(bits - 2, 2)
            shard = -(-self.classes // SHARDS)
            self.tables = [learner.new_table(self.rule, part, taken, learner.odd_width(taken))]
            for _ in range(SHARDS):
                self.tables.append(learner.new_table(self.rule, part, shard, learner.odd_width(shard)))
            self.stages = [self._route, self._score]
        width = learner.vw_width(taken + self.classes)
        self.crowding = learner.crowding(bits, self.classes, width, config.learner.layout)
        self.threads = ThreadPoolExecutor(SHARDS, "score")
        self.keep_scores = config.driver.raw_predictions is not None
        self.asked = config.answers
        self.report = Report(self.asked, "labels that are no class")

    def close(self):
        self.threads.shutdown()

    def cross_path(self, interactions: list[bytes]) -> None:
        """Cross the path features, group PATH_GROUP, with one other namespace each."""
        pairs = []
        for one in interactions:
            others = [group for group in one if group != PATH_GROUP]
            if len(one) != 2 or len(others) != 1 or WILDCARD in others:
                raise UsageError(
                    "the path features, namespace \\x88, can be crossed with one named namespace at a time"
                )
            pairs.append((others[0], one[0] == PATH_GROUP))
        if pairs and not self.settings.path:
            raise UsageError("--no_path_features leaves nothing to cross with namespace \\x88: drop one of them")
        self.pairs = np.array(pairs, np.uint8).reshape(-1, 2)

    # stages

    def _new_plan(self, work: Work) -> Plan:
        batch = work.batch
        n = batch.n
        label = np.full(n, -1, np.int64)
        if work.learn:
            given = work.learns() & ~np.isnan(batch.label) & (batch.weight > 0)
            inside = given & (batch.label >= 1) & (batch.label <= self.classes)
            label[inside] = batch.label[inside].astype(np.int64) - 1
            if not self.outside and (given & ~inside).any():
                first = int(np.argmax(given & ~inside))
                work.notes.append(
                    f"label {batch.label[first]:.0f} in line {batch.line[first]} is outside 1..{self.classes}"
                    f" (--recall_tree {self.classes}): such examples count as errors and are not learned"
                )
            self.outside += int((given & ~inside).sum())
        room = n * (2 * self.candidates + 1)
        return Plan(
            label=label,
            node=np.empty(n, np.int32),
            recall=np.empty(n),
            last=np.empty(n, np.int32),
            mode=np.empty(n, np.int8),
            dropped=np.empty(n, np.int64),
            first=np.zeros(n + 1, np.int64),
            scored=np.empty(n, np.int64),
            item=np.empty(room, np.int32),
            score=np.empty(room, np.float32),
        )

    def _row_scratch(self, batch):
        longest = int(np.diff(batch.start).max(initial=0))
        longest += (1 + len(self.pairs) * longest) * (self.depth + 1) + 1
        return np.empty(longest, np.uint64), np.empty(longest, np.float32)

    def _route(self, work: Work) -> None:
        batch = work.batch
        plan = work.plan = self._new_plan(work)
        place, x = self._row_scratch(batch)
        done = 0
        while True:
            done = route(
                self.tree, self.depth, self.counts, self.settings, self.tables[0], self.rule, batch, work.clock,
                self.random, plan, done, place, x,
            )  # fmt: skip
            if done == batch.n:
                return
            self.counts = _grown(self.counts, 2 * len(self.counts.cell_key))

    def _score(self, work: Work) -> None:
        batch, plan = work.batch, work.plan

        def one(shard):
            place, x = self._row_scratch(batch)
            most = self.candidates + 1
            score_shard(
                self.tree, self.settings, self.pairs, self.tables[1 + shard], self.rule, shard, batch, work.clock,
                plan, place, x, learner.new_lanes(most), np.empty(most, np.int64), np.empty(most, np.float32),
            )  # fmt: skip

        list(self.threads.map(one, range(SHARDS)))
        self._finish(work)

    def _in_turn(self, work: Work) -> None:
        batch = work.batch
        plan = work.plan = self._new_plan(work)
        place, x = self._row_scratch(batch)
        most = self.candidates + 1
        done = 0
        while True:
            done = learn_in_turn(
                self.tree, self.depth, self.counts, self.settings, self.pairs, self.tables[0], self.rule, self.routers,
                batch, work.clock, self.random, plan, done, place, x, learner.new_lanes(most),
                np.empty(most, np.float32),
            )  # fmt: skip
            if done == batch.n:
                break
            self.counts = _grown(self.counts, 2 * len(self.counts.cell_key))
        self._finish(work)

    def _finish(self, work: Work) -> None:
        batch, plan = work.batch, work.plan
        work.prediction = np.empty(batch.n)
        choose(plan, work.prediction)
        wrong = (work.prediction != batch.label) & ~np.isnan(batch.label)
        work.loss = np.where(wrong, batch.weight.astype(np.float64), 0.0)
        if self.keep_scores:
            work.score_start, chosen = _scored_items(plan)
            work.scores = plan.score[chosen]
            work.score_labels = plan.item[chosen].astype(np.int64) + 1
        if self.asked.wanted:
            self._judge(work)
        work.plan = None

    def _judge(self, work: Work) -> None:
        """What is to be told of probabilities."""
        batch, plan = work.batch, work.plan
        labelled = ~np.isnan(batch.label)
        weight = batch.weight.astype(np.float64)
        label = np.where(labelled, batch.label, 0.0).astype(np.int64) - 1
        k = min(self.asked.top_k or 1, self.candidates)
        odds, own = np.empty(len(plan.score)), np.empty(batch.n)
        top, top_p = np.empty((batch.n, k), np.int64), np.empty((batch.n, k))
        judge(plan, self.classes, label, odds, own)
        best_candidates(plan, odds, top, top_p)
        self.report.losses(labelled, weight, (label >= 0) & (label < self.classes), own)
        self.report.answers(top_p[:, 0], labelled, weight, top[:, 0] == batch.label)
        if self.asked.top_k is not None:
            self.report.tops(labelled, weight, batch.label, top)
            size = np.count_nonzero(top, axis=1)
            rest = np.where(size == self.classes, 0.0, np.maximum(0.0, 1.0 - top_p.sum(axis=1)))
            work.listing = answers.listing(top, top_p, size, rest)
        elif self.asked.probabilities:
            work.listing = _by_class(plan, odds)

    def summary(self) -> list[str]:
        """Lines after those every run has."""
        if not self.asked.wanted:
            return []
        self.report.write_calibration()
        return self.report.lines()

    def end_pass(self) -> None:
        self.rule = learner.after_pass(self.rule, self.learner_options)

    # inspection

    @property
    def own_rows(self) -> bool:
        return self.in_turn and not len(self.pairs)

    def places(self, table: int, index: np.ndarray) -> np.ndarray:
        return index.astype(np.uint64) * self.tables[table].width

    def look(self, batch) -> list[Look]:
        """The routers on the way and the candidates where it ends, and the scorer of the label."""
        place, x = self._row_scratch(batch)
        count = batch.start[1] - batch.start[0]
        place[:count] = self.places(0, batch.index)
        x[:count] = batch.value
        found = []
        a = 0
        while self.tree.router[a] >= 0:
            router = int(self.tree.router[a])
            found.append(Look(0, router, router))
            s = learner.score(self.tables[0], place, x, count, np.uint64(router), batch.initial[0])
            child = int(self.tree.left[a]) + (0 if s < 0 else 1)
            if _stops(self.counts, self.settings, a, child):
                break
            a = child
        labels = self.counts.top_label[a, : self.counts.top_size[a]].tolist()
        y = batch.label[0] - 1
        if 0 <= y < self.classes and y not in labels:
            labels.append(int(y))
        for c in labels:
            table, sub = (0, self.routers + c) if self.in_turn else (1 + c % SHARDS, c // SHARDS)
            place[:count] = self.places(table, batch.index)
            width = np.uint64(1) if self.in_turn else self.tables[table].width
            full = _path(self.tree, self.settings, self.pairs, a, width, batch, 0, place, x, count)
            extra = tuple(zip(place[count:full].tolist(), x[count:full].tolist(), strict=True))
            found.append(Look(table, sub, self.routers + c, extra))
        return found

    def added(self) -> list[Look]:
        """The path features of every node for the labels counted there."""
        return [
            Look(0, self.routers + y, self.routers + y, tuple((PATH_HASH * b, 1.0) for b in self._path_nodes(a)))
            for a, labels in self._labels_of_nodes().items()
            for y in labels
        ]

    def _path_nodes(self, a: int) -> list[int]:
        """The nodes that have a path feature at node a."""
        if not self.settings.path or self.settings.node_only:
            return [a] if self.settings.path else []
        found = []
        while a > 0:
            found.append(a)
            a = int(self.tree.parent[a])
        return found

    def _labels_of_nodes(self) -> dict[int, dict[int, float]]:
        """Node -> 0-based label -> count."""
        c, counted = self.counts, {}
        for at in np.flatnonzero(c.cell_key[:, 0]).tolist():
            key = int(c.cell_key[at, 0])
            above, y = (key >> 32) - 1, (key & 0xFFFFFFFF) - 1
            left = int(self.tree.left[above]) if above >= 0 else 0  # the root is a left child
            for side in (0, 1):
                if c.cell_count[at, 1 + side] > 0:
                    counted.setdefault(left + side, {})[y] = float(c.cell_count[at, 1 + side])
        return counted

    def describe(self) -> list[str]:
        """VW's lines: the tree, and the labels counted at every node, the candidates first."""
        c, tree = self.counts, self.tree
        counted = self._labels_of_nodes()
        lines = [
            f"k = {self.classes}",
            f"node_only = {str(self.settings.node_only).lower()}",
            f"nodes = {len(tree.left)}",
            f"max_candidates = {self.candidates}",
            f"max_depth = {self.depth}",
        ]
        depth = np.zeros(len(tree.left), np.int64)
        for a in range(len(tree.left)):
            internal = bool(tree.router[a] >= 0)
            if a:
                depth[a] = depth[tree.parent[a]] + 1
            top = c.top_label[a, : c.top_size[a]].tolist()
            counts = counted.get(a, {})
            labels = top + sorted(set(counts) - set(top), key=lambda y, counts=counts: (-counts[y], y))
            lines += [
                f"parent = {max(tree.parent[a], 0)}",
                f"recall_lbest = {_shown(np.float32(c.node[a, BOUND]))}",
                f"internal = {str(internal).lower()}",
                f"depth = {depth[a]}",
                f"base_router = {max(tree.router[a], 0)}",
                f"left = {tree.left[a]}",
                f"right = {tree.left[a] + 1 if internal else 0}",
                f"n = {_shown(c.node[a, WEIGHT])}",
                f"entropy = {_shown(c.node[a, ENTROPY])}",
                "passes = 1",
                f"n_preds = {len(labels)}",
            ]
            for y in labels:
                lines += [f"label = {y + 1}", f"label_count = {_shown(counts[y])}"]
        return lines

    # model

    def banner(self) -> list[str]:
        o = self.settings
        routing = "randomized" if o.randomized else "deterministic"
        return [
            f"recall_tree: node_only = {int(o.node_only)} bern_hyper = {o.bern:g} max_depth = {self.depth} "
            f"routing = {routing}",
            f"memory: {self.memory[0] / 2**20:.0f} MB of weights, at most {self.memory[1] / 2**20:.0f} MB for "
            f"{len(self.tree.left)} nodes of {self.candidates} candidates",
            *self.crowding,
        ]

    def arrays(self) -> dict[str, np.ndarray]:
        c = self.counts
        seen = np.flatnonzero(c.node[:, WEIGHT] > 0)
        cells = np.flatnonzero(c.cell_key[:, 0])
        order = cells[np.argsort(c.cell_key[cells, 0])]
        found = {
            "nodes.id": seen.astype(np.int32),
            "nodes.state": c.node[seen],
            "nodes.top_label": c.top_label[seen],
            "nodes.top_count": c.top_count[seen],
            "nodes.top_size": c.top_size[seen],
            "nodes.recall": c.recall[seen],
            "cells.key": c.cell_key[order, 0],
            "cells.count": np.ascontiguousarray(c.cell_count[order, 1:]),
            "random": self.random,
        }
        for name, table in zip(self._names(), self.tables, strict=True):
            found.update(learner.table_arrays(name, table, self.learner_options.predict_only_model))
        return found

    def _names(self):
        return ["weights"] if self.in_turn else ["routers"] + [f"scorers.{j}" for j in range(SHARDS)]

    def facts(self) -> dict:
        return {"outside": self.outside}

    def restore(self, arrays: dict[str, np.ndarray], facts: dict) -> None:
        c = self.counts
        seen = model_file.rows("nodes.id", arrays, len(c.node))
        for name, target in (
            ("nodes.state", c.node),
            ("nodes.top_label", c.top_label),
            ("nodes.top_count", c.top_count),
            ("nodes.top_size", c.top_size),
            ("nodes.recall", c.recall),
        ):
            target[seen] = model_file.take(name, arrays, target.dtype, (len(seen), *target.shape[1:]))
        model_file.check_range("nodes.top_label", arrays["nodes.top_label"], 0, self.classes - 1)
        model_file.check_range("nodes.top_size", arrays["nodes.top_size"], 0, self.candidates)
        keys = model_file.take("cells.key", arrays, np.uint64, None)
        cells = 1 << 14
        while cells * 5 < len(keys) * 8 + 8 * (self.depth + 2):
            cells *= 2
        loaded_keys, loaded_counts = _new_cells(len(keys))
        loaded_keys[:, 0] = keys
        loaded_counts[:, 1:] = model_file.take("cells.count", arrays, np.float64, (len(keys), 2))
        self.counts = _grown(c._replace(cell_key=loaded_keys, cell_count=loaded_counts), cells)
        model_file.fill("random", arrays, self.random)
        self.outside = facts["outside"]
        for name, table in zip(self._names(), self.tables, strict=True):
            learner.restore_table(name, table, arrays, self.resume, self.rule)


def _scored_items(plan: Plan) -> tuple[np.ndarray, np.ndarray]:
    """Where the candidates of each example begin once they stand without gaps, and their places in `plan.item`."""
    size = plan.scored - plan.first[:-1]
    start = np.concatenate([[0], np.cumsum(size)])
    return start, np.repeat(plan.first[:-1] - start[:-1], size) + np.arange(start[-1])


def _by_class(plan: Plan, odds: np.ndarray) -> answers.Listing:
    """All candidates in order of class, and what they leave."""
    start, chosen = _scored_items(plan)
    n = len(plan.scored)
    row = np.repeat(np.arange(n), np.diff(start))
    label = plan.item[chosen].astype(np.int64) + 1
    order = np.lexsort((label, row))
    last = start[1:]  # `insert` counts places before anything is inserted
    scores = np.insert(odds[chosen][order], last, 1.0 - plan.recall)
    return answers.Listing(scores.astype(np.float32), np.insert(label[order], last, 0), start + np.arange(n + 1))


def _shown(value) -> str:
    """A number as short as it can be: 2, 0.5, 0.21432579."""
    text = str(value)
    return text.removesuffix(".0")


REDUCTION = Reduction(
    name="recall_tree",
    title="Recall tree",
    summary="a tree proposes a few classes, their scorers decide; logarithmic time, for thousands of classes and more",
    options=Options,
    labels="multiclass",
    enabled="gd, scorer-identity, recall_tree",
    build=RecallTree,
    check=check,
    settle=settle,
    allowed=allowed,
    probabilities=True,
)
