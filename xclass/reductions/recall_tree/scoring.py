"""Score and train the candidate classes of an example, and turn scores into predictions and probabilities.

Source    Daume, Karampatziakis, Langford, Mineiro, "Logarithmic Time One-Against-Some", ICML 2017, Algorithm 1.
Cost      O(s F) for an example of s features.
Names     F most candidates of a node [max_candidates] | K classes | path features as in `reduction` |
          lane: a class scored or trained together with others on the same example | other names as in `routing`.
Differs   from the paper (docs/papers.md says why, and what it costs):
          * the scores of the candidates give probabilities
Idea      The classes are divided into SHARDS parts with weight tables of their own, so that the results do not depend
          on the number of threads. Weights are loaded when they are needed: the loads of different lanes do not depend
          on each other, and prefetching does not make them faster (docs/defaults.md).

The probabilities of the candidates are proportional to e**(score * (1 + 2 / M)), a power of the odds of the logistic
link, and add up to the recall of the node. The power makes up for the scores that --candidate_margin M keeps near -M.
The remaining probability is divided equally among the other classes. The recall is estimated by progressive
validation: it is the share of about the last 1 / (1 - RECALL_DECAY) examples predicted at the node whose labels were
candidates there (`label_counts.recall`). The share of the node's weight that belongs to candidates would
be too high, because labels are counted at the node to which routers lead after they have learned from the label. With
K candidates the recall is 1.

The kernels receive an example as `place` (uint64[s], hash * width of each feature) and `x` (float32[s], values). Its
own features come first, and the path features follow: `count` is the number of features without the path features,
`full` the number with them and their crosses. `odds` (float64[capacity]) are the probabilities of the classes of
`plan.item`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ...array_types import Float32s, Float64s, Int64s, UInt8s, UInt64s
from ...binary import gd
from ...data.batch import CROSSED_GROUP, PATH_GROUP, Batch
from ...data.interactions import PRIME
from ...kernels import fast_math, top_k
from ...kernels.constants import ONE, ZERO
from ...kernels.jit import bare, jit, on_demand
from ..core import probabilities
from . import routing
from .routing import NONE, OTHER, RoutingPlan

SHARDS = 4  # tables of scorers; each has an eighth of the 2**b slots, and the routers' table has half of them
PATH_HASH = 868771  # the path feature of node a has the index PATH_HASH * a, as in VW
LARGEST_SCORE = 50.0  # scores are clipped to +-50 before they become probabilities


class Crosses(NamedTuple):
    """List the interactions that a tree generates, as `interactions.count_crossed` describes them."""

    terms: UInt8s
    term_start: Int64s
    permuted: bool
    all: bool  # whether they include those without path features, which replace those of the batch, in VW's order


class ScoringScratch(NamedTuple):
    """Provide buffers for one example and its lanes."""

    features: routing.FeatureBuffers  # features of the example
    lanes: gd.Lanes  # inputs and intermediate results of the lanes
    position: Int64s  # int64[lanes], position of each lane in `plan.item`
    out: Float32s  # float32[lanes], score of each lane
    marks: UInt8s  # uint8[subproblems], marks of `sequential.process`, all 0 between examples


def new_scratch(features: routing.FeatureBuffers, candidates: int, subs: int = 0) -> ScoringScratch:
    """Return buffers for one example, with a lane more than candidates, for the label.

    `subs` is the number of subproblems of the table that `sequential.process` uses, 0 for `score_shard`.
    """
    lanes = candidates + 1
    return ScoringScratch(
        features, gd.new_lanes(lanes), np.empty(lanes, np.int64), np.empty(lanes, np.float32), np.zeros(subs, np.uint8)
    )


# -- kernels


@bare
def path(
    tree: routing.RouterTree, settings: routing.RecallTreeSettings, crosses: Crosses, a: int, width: np.uint64,
    batch: Batch, i: int, place: UInt64s, x: Float32s, count: int,
) -> tuple[int, int]:  # fmt: skip
    """Append the path features of node `a`, and their crosses, to the features of example i.

    Return the number of path features, and the new number of features. `width` is the slots per path feature.
    """
    if not settings.path:
        return 0, count
    if crosses.all:
        count -= crossed_features(batch, i)
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
    steps = count - begin
    return steps, _cross(crosses, batch, i, begin, place, x, count) if crosses.term_start.shape[0] > 1 else count


@on_demand
def _cross(crosses: Crosses, batch: Batch, i: int, path: int, place: UInt64s, x: Float32s, count: int) -> int:
    """Append what interactions generate from example i and its path features [path, count); return the new number.

    As in VW, they cross places, which are multiples of the indices; a product keeps the low bits that are needed.
    """
    terms, start = crosses.terms, crosses.term_start
    low, high = np.zeros(256, np.int64), np.zeros(256, np.int64)
    for j in range(batch.group_first[i], batch.group_first[i + 1]):
        low[batch.group_name[j]] = batch.group_start[j] - batch.start[i]
        high[batch.group_name[j]] = batch.group_start[j + 1] - batch.start[i]
    low[PATH_GROUP], high[PATH_GROUP] = path, count
    at, mixed, product = np.empty(len(terms), np.int64), np.empty(len(terms), np.uint64), np.empty(len(terms), x.dtype)
    for t in range(len(start) - 1):
        present = True
        for j in range(start[t], start[t + 1]):
            present = present and high[terms[j]] > 0
        if not present:
            continue
        j = start[t]
        at[j] = low[terms[j]]
        while j >= start[t]:
            f = at[j]
            if f == high[terms[j]]:
                j -= 1
                if j >= start[t]:
                    at[j] += 1
                continue
            mixed[j] = place[f] if j == start[t] else (PRIME * mixed[j - 1]) ^ place[f]
            product[j] = x[f] if j == start[t] else product[j - 1] * x[f]
            if j == start[t + 1] - 1:
                place[count], x[count] = mixed[j], product[j]
                count += 1
                at[j] += 1
            else:
                j += 1
                at[j] = f if terms[j] == terms[j - 1] and not crosses.permuted else low[terms[j]]
    return count


@bare
def crossed_features(batch: Batch, i: int) -> int:
    """Return the number of features of example i that interactions generated; they come last."""
    last = batch.group_first[i + 1] - 1
    if last < batch.group_first[i] or batch.group_name[last] != CROSSED_GROUP:
        return 0
    size: int = batch.group_start[last + 1] - batch.group_start[last]
    return size


@bare
def _gather(
    plan: RoutingPlan, begin: int, end: int, skip: int, shard: int, label: int, scratch: gd.Lanes, position: Int64s
) -> int:
    """Fill the lanes with the classes of this shard among the items [begin, end) of the plan, except item `skip`.

    `sub` and `y` of `scratch` are written, with y = 1 for the `label` and -1 for others, and so is `position`
    (int64[lanes]), the position of each lane in `plan.item`. Return the number of lanes.
    """
    lanes = 0
    for j in range(begin, end):
        c = np.int64(plan.item[j])
        if c % SHARDS == shard and j != skip:
            scratch.sub[lanes] = np.uint64(c // SHARDS)
            scratch.y[lanes] = ONE if c == label else -ONE
            position[lanes] = j
            lanes += 1
    return lanes


@bare
def learning_lanes(table: gd.WeightTable, margin: np.float32, scratch: gd.Lanes, out: Float32s, lanes: int) -> int:
    """Keep the lanes that learn: that of the label, and those of scores above -`margin`. Return their number.

    The prediction `p` of a lane is its score in `out` (float32[lanes]), clipped to the label range.
    """
    kept = 0
    for j in range(lanes):
        p = gd.clip(out[j], table.range)
        if scratch.y[j] > ZERO or p > -margin:
            scratch.sub[kept], scratch.y[kept], scratch.p[kept] = scratch.sub[j], scratch.y[j], p
            kept += 1
    return kept


@bare
def score_shard(
    tree: routing.RouterTree, settings: routing.RecallTreeSettings, crosses: Crosses, table: gd.WeightTable,
    rule: gd.UpdateRule, shard: int, batch: Batch, clock: Float64s, plan: RoutingPlan, scratch: ScoringScratch,
) -> None:  # fmt: skip
    """Score and train the classes c with c % SHARDS == shard on every example of a batch, as the plan says.

    Their scores are written to `plan.score`.
    """
    (place, x), lane_scratch, position, out, _ = scratch
    for i in range(batch.label.shape[0]):
        table.guard.now[0] = i
        label = plan.label[i]
        count = routing.load(batch, i, table.width, place, x)
        _, full = path(tree, settings, crosses, plan.node[i], table.width, batch, i, place, x, count)
        mode = plan.mode[i]
        lanes = _gather(plan, plan.first[i], plan.scored[i], -1, shard, label, lane_scratch, position)
        gd.score_lanes(table, place, x, full, lane_scratch.sub, lanes, out)
        for j in range(lanes):
            plan.score[position[j]] = out[j]
        if mode == NONE:
            continue
        if rule.widen:
            gd.widen(table.range, -ONE)
            gd.widen(table.range, ONE)
        begin, end = plan.first[i], plan.first[i + 1]
        if mode == OTHER:
            begin = plan.scored[i]
            _, full = path(tree, settings, crosses, plan.last[i], table.width, batch, i, place, x, count)
        if end > plan.scored[i]:  # other classes learn, or the label has become a candidate and may replace another one
            lanes = _gather(plan, begin, end, plan.dropped[i], shard, label, lane_scratch, position)
            gd.score_lanes(table, place, x, full, lane_scratch.sub, lanes, out)
        lanes = learning_lanes(table, settings.margin, lane_scratch, out, lanes)
        gd.learn_lanes(table, rule, place, x, full, lanes, lane_scratch, batch.weight[i], clock[i])


@bare
def choose(plan: RoutingPlan, prediction: Float64s) -> None:
    """Set each prediction to the 1-based label of the best score, 0 without candidates; the earlier one wins a tie."""
    for i in range(prediction.shape[0]):
        best = -1
        for j in range(plan.first[i], plan.scored[i]):
            if best < 0 or plan.score[j] > plan.score[best]:
                best = j
        prediction[i] = plan.item[best] + 1 if best >= 0 else 0.0


@jit
def candidate_probabilities(
    plan: RoutingPlan, classes: int, power: float, label: Int64s, odds: Float64s, own: Float64s
) -> None:  # fmt: skip
    """Compute the probabilities of the candidates (`odds`) and of the labels (`own`, float64[n]).

    Those of the candidates are proportional to e**(score * power). A label that is no candidate gets an equal share of
    the probability that the candidates leave; a label that is no class gets 0.
    """
    for i in range(label.shape[0]):
        begin, end = plan.first[i], plan.scored[i]
        total = 0.0
        for j in range(begin, end):
            s = power * np.float64(plan.score[j])
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
def best_candidates(plan: RoutingPlan, odds: Float64s, top: Int64s, top_p: Float64s) -> None:
    """Rank the k best candidates of each example by their scores; the earlier candidate wins a tie.

    Written are their 1-based labels, `top` (int64[n, k]), and their probabilities, `top_p` (float64[n, k]), 0 where
    there are fewer.
    """
    ranked = np.empty(top.shape[1], np.int64)
    for i in range(top.shape[0]):
        size = top_k.rank(plan.score, plan.first[i], plan.scored[i], ranked)
        for r in range(top.shape[1]):
            top[i, r] = plan.item[ranked[r]] + 1 if r < size else 0
            top_p[i, r] = odds[ranked[r]] if r < size else 0.0


# -- Python


def power(settings: routing.RecallTreeSettings) -> float:
    """Return the power of the odds of candidates to which their probabilities are proportional."""
    return 1.0 + 2.0 / float(settings.margin)


def scored_items(plan: RoutingPlan) -> tuple[Int64s, Int64s]:
    """Return the scored candidates of a batch without the gaps between examples.

    They are the start of each example's candidates, int64[n + 1], and their positions in `plan.item`.
    """
    size = plan.scored - plan.first[:-1]
    start = np.concatenate([[0], np.cumsum(size)])
    return start, np.repeat(plan.first[:-1] - start[:-1], size) + np.arange(start[-1])


def by_class(plan: RoutingPlan, odds: Float64s) -> probabilities.ClassLists:
    """Return the probabilities of all candidates in ascending order of classes, and then the rest under label 0."""
    start, chosen = scored_items(plan)
    n = len(plan.scored)
    row = np.repeat(np.arange(n), np.diff(start))
    label = plan.item[chosen].astype(np.int64) + 1
    order = np.lexsort((label, row))
    last = start[1:]  # np.insert takes positions in the array before insertion
    scores = np.insert(odds[chosen][order], last, 1.0 - plan.recall)
    return probabilities.ClassLists(
        scores.astype(np.float32), np.insert(label[order], last, 0), start + np.arange(n + 1)
    )
