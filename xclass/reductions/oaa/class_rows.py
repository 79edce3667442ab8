"""Score and train many classes on a batch of examples: the vectorised kernels of one-against-all.

Source    Rifkin and Klautau, "In Defense of One-Vs-All Classification", JMLR 2004; updates as in `binary.gd`.
Cost      O(s K) for an example of s features.
Names     K classes | n examples | block: neighbouring classes processed together | row: the K neighbouring weights of a
          feature, one per class | place: first slot of a feature's row.
Differs   from `binary.gd` only in speed: the results have the same bits.
Idea      A feature owns a row of K weights side by side, which begins at `(hash mod rows) * width`. Loops over the
          classes of a block therefore read neighbouring weights and vectorise.

The kernels receive an example as `row` (int64[s]), `place` (uint64[s]) and `x` (float32[s], values of its features);
`c` is the first class of a block and `size` the number of its classes.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ...array_types import Bools, Float32s, Float64s, Int32s, Int64s, UInt64s
from ...binary import finite, gd, loss
from ...data.batch import Batch
from ...kernels import fast_math, rng, top_k
from ...kernels.constants import HALF, ONE, ZERO
from ...kernels.jit import bare, jit, on_demand

BLOCK = 512  # classes processed together; 128 to 1024 take the same time
RUN = 16  # classes of a block that are left out together if none of them has a loss
MOST_SQUARED = np.float32(16)  # largest squared slope of squared loss, for predictions and labels in [-1, 1]
CHUNK = 64  # classes compared at once with the best score
# examples with more features are learned class by class instead of by blocks; the rates of a block take 16 MB
MOST_FEATURES_IN_BLOCKS = 1 << 13


class OaaInputs(NamedTuple):
    """Hold a batch of n examples and say which classes learn from each."""

    batch: Batch
    label: Int64s  # int64[n], 0-based class, or int64[m] if the batch has lists; -1 if no class is meant
    learns: Bools  # bool[n], whether the example is learned
    sampled: Int32s  # int32[n, draws], negative classes that learn; without columns all classes learn
    clock: Float64s  # float64[n], weight of the labelled examples up to and including each one
    classes: int  # number of classes that negatives are sampled from
    clips: bool = True  # whether the scores that are returned are clipped to the range of labels


class ClassScores(NamedTuple):
    """Hold the results of the classes [begin, end) for a batch of n examples."""

    best: Int64s  # int64[n], class with the highest score; the lowest class wins a tie
    best_score: Float32s  # float32[n], its score
    scores: Float32s  # float32[n, K], scores of all classes, or float32[0, K] if they are not wanted


class ClassRowScratch(NamedTuple):
    """Provide buffers for one example of s features and for one block of classes."""

    row: Int64s  # int64[s], row of each feature
    place: UInt64s  # uint64[s], first slot of each row
    x: Float32s  # float32[s], value of each feature
    final: Int64s  # int64[s], last feature in the same row
    owner: Int64s  # int64[rows], last feature of the example in each row
    s: Float32s  # float32[BLOCK], scores; float32[K] if all classes are one block, see `process_batch`
    p: Float32s  # the same, predictions
    y: Float32s  # the same, labels -1 or 1
    d: Float32s  # float32[BLOCK], e**(y p)
    g2: Float32s  # float32[BLOCK], squared slopes of the loss, then times the weight
    q: Float32s  # float32[BLOCK], change of the prediction per unit of step
    norm: Float32s  # float32[BLOCK], sums of x**2 / N**2
    u: Float32s  # float32[BLOCK], steps
    rate: Float32s  # float32[s * BLOCK], rate of each feature and class
    shared: Float32s  # float32[blocks, rows], N of all classes of a block for a row; 0 if it differs or is not known


def new_scratch(most_features: int, rows: int, block: int, classes: int) -> ClassRowScratch:
    """Return buffers for `process_batch`, for at most `most_features` features and `classes` in blocks of `block`."""
    s, p, y = (np.empty(block, np.float32) for _ in range(3))
    d, g2, q, norm, u = (np.empty(BLOCK, np.float32) for _ in range(5))
    return ClassRowScratch(
        np.empty(most_features, np.int64), np.empty(most_features, np.uint64), np.empty(most_features, np.float32),
        np.empty(most_features, np.int64), np.empty(rows, np.int64), s, p, y, d, g2, q, norm, u,
        np.empty(min(most_features, MOST_FEATURES_IN_BLOCKS) * BLOCK, np.float32),
        np.zeros((-(-classes // BLOCK), rows), np.float32),
    )  # fmt: skip


# -- kernels


@bare
def _find_rows(
    table: gd.WeightTable, rows: np.uint64, batch: Batch, i: int, row: Int64s, place: UInt64s, x: Float32s
) -> int:
    """Fill in the rows, places and values of the features of example i; return their number."""
    begin, end = batch.start[i], batch.start[i + 1]
    for f in range(end - begin):
        at = np.uint64(batch.index[begin + f]) % rows
        row[f] = at
        place[f] = at * table.width
        x[f] = batch.value[begin + f]
    count: int = end - begin
    return count


@bare
def _score_block(
    table: gd.WeightTable, place: UInt64s, x: Float32s, count: int, c: int, size: int, s: Float32s
) -> None:
    """Compute the scores `s[:size]` (float32) of the classes [c, c + size)."""
    for j in range(size):
        s[j] = ZERO
    for f in range(count):
        at = np.int64(place[f]) + c
        w = table.flat[at : at + size]
        xv = x[f]
        for j in range(size):
            s[j] += w[j] * xv


@bare
def _block_is_safe(
    table: gd.WeightTable, rule: gd.UpdateRule, place: UInt64s, x: Float32s, count: int, c: int, size: int,
    g2: Float32s, weight: np.float32, clock: np.float64,
) -> bool:  # fmt: skip
    """Return whether the steps of the classes [c, c + size) are known to keep all numbers finite, see `finite`."""
    most = weight if rule.loss == loss.LOGISTIC else MOST_SQUARED * weight
    if not finite.is_safe(rule, table.guard, weight, most, gd.step_scale(rule, weight, clock)):
        return False
    sums = table.sums.reshape(-1)[2 * c : 2 * (c + size)]
    least = table.guard.value_range[table.guard.now[0], 2]
    unsafe = False
    far = False
    for j in range(size):
        learns = g2[j] > ZERO
        unsafe |= learns & (g2[j] * weight < least)
        far |= learns & ((sums[2 * j + 1] + weight) * finite.MEAN_NORM > sums[2 * j])
    if far and not unsafe:
        for j in range(size):
            sub = np.uint64(c + j)
            unsafe = unsafe or (g2[j] > ZERO and not gd.norms_are_safe(table, place, x, count, sub, weight))
    return not unsafe


@bare
def _learn_block(
    table: gd.WeightTable, rule: gd.UpdateRule, scratch: ClassRowScratch, count: int, shared: Float32s, c: int,
    size: int, weight: np.float32, clock: np.float64,
) -> bool:  # fmt: skip
    """Update the neighbouring classes [c, c + size) by the default rule and its loss, as `gd.learn` does.

    `place`, `x`, `final`, `p` and `y` of `scratch` are read, and the other arrays of a block are written, as is the
    block's row `shared` of `scratch.shared`. Return False if the steps have to be checked one by one; nothing was
    changed then.
    """
    g2 = scratch.g2
    if rule.loss == loss.LOGISTIC:
        loss.logistic_slopes(scratch.p, scratch.y, scratch.d, g2, size)
    else:
        loss.squared_slopes(scratch.p, scratch.y, g2, size)
    if rule.checked and not _block_is_safe(table, rule, scratch.place, scratch.x, count, c, size, g2, weight, clock):
        return False
    everyone = True
    for j in range(size):
        everyone &= g2[j] > ZERO
    begin = 0
    for at in range(0, size + RUN, RUN):  # the last is beyond the block, where no class has a loss
        learns = False
        for j in range(at, min(at + RUN, size)):
            learns |= g2[j] > ZERO
        if not learns:
            if begin < min(at, size):
                _learn_run(table, rule, scratch, count, shared, everyone, c, begin, min(at, size), weight, clock)
            begin = at + RUN
    return True


@bare
def _learn_run(
    table: gd.WeightTable, rule: gd.UpdateRule, scratch: ClassRowScratch, count: int, shared: Float32s, everyone: bool,
    first: int, begin: int, end: int, weight: np.float32, clock: np.float64,
) -> None:  # fmt: skip
    """Update the classes of a block from `begin` to `end`, whose first is `first`; see `_learn_block`.

    `everyone` says whether all classes of the block learn.
    """
    row, place, x, final, _, _, _, _, _, _, q, norm, u, rate, _ = scratch
    p, y, d, g2 = scratch.p[begin:end], scratch.y[begin:end], scratch.d[begin:end], scratch.g2[begin:end]
    flat, field, size, c = table.flat, np.int64(table.field), end - begin, first + begin
    learner = 0  # the first class that learns
    while g2[learner] == ZERO:
        learner += 1
    for j in range(size):
        g2[j] *= weight
        q[j] = ZERO
        norm[j] = ZERO
    for f in range(count):
        at = np.int64(place[f]) + c
        g = flat[at + field : at + field + size]
        n = flat[at + 2 * field : at + 2 * field + size]
        x2 = x[f] * x[f]
        size_x = abs(x[f])
        if x2 < gd.TINY_X2:
            x2 = gd.TINY_X2
            size_x = gd.TINY_X
        near, differs = shared[row[f]], False
        if near < size_x:  # not known, or it grows
            grows, near = False, n[learner]
            for j in range(size):  # min() would not vectorise
                grows |= (n[j] < size_x) & (g2[j] > ZERO)
                differs |= (n[j] != near) & (g2[j] > ZERO)
            if grows:
                w = flat[at : at + size]
                for j in range(size):
                    if n[j] < size_x and g2[j] > ZERO:
                        if n[j] > ZERO:
                            w[j] *= n[j] / size_x
                        n[j] = size_x
                near, differs = n[learner], False
                for j in range(size):
                    differs |= (n[j] != near) & (g2[j] > ZERO)
            shared[row[f]] = near if everyone and not differs else ZERO
        r = rate[f * BLOCK : f * BLOCK + size]
        if not differs:  # the usual case, and two of three divisions less
            inverse, part = ONE / near, x2 / (near * near)
            for j in range(size):
                g[j] += g2[j] * x2
                r[j] = (ONE / np.float32(math.sqrt(g[j]))) * inverse if g2[j] > ZERO else ZERO
                q[j] += x2 * r[j]
                norm[j] += part
            continue
        for j in range(size):
            g[j] += g2[j] * x2
            v = (ONE / np.float32(math.sqrt(g[j]))) * (ONE / n[j])
            r[j] = v if g2[j] > ZERO else ZERO
            q[j] += x2 * r[j]
            norm[j] += x2 / (n[j] * n[j])
    sums = table.sums.reshape(-1)[2 * c : 2 * (c + size)]  # one dimension, because strides of two vectorise
    counted = weight
    if not rule.checked:  # VW multiplies in float64
        counted = ZERO
        for j in range(size):
            sums[2 * j] += gd.weighted(rule, weight, norm[j]) if g2[j] > ZERO else 0.0
    for j in range(size):  # without branches, so that it vectorises
        learns = g2[j] > ZERO
        sums[2 * j] += counted * norm[j] if learns else ZERO
        sums[2 * j + 1] += weight if learns else ZERO
        mean = np.float32(math.sqrt(np.float32(sums[2 * j + 1]) / np.float32(sums[2 * j])))
        norm[j] = mean if learns else ZERO
        q[j] = q[j] * mean if learns else ONE
    if rule.loss == loss.LOGISTIC:
        loss.logistic_steps(p, y, d, gd.step_scale(rule, weight, clock), q, u, size)
    else:
        loss.squared_steps(p, y, gd.step_scale(rule, weight, clock), q, u, size)
    for j in range(size):
        u[j] = u[j] * norm[j] if g2[j] > ZERO and math.isfinite(u[j]) else ZERO
    for f in range(count):
        at = np.int64(place[f]) + c
        w = flat[at : at + size]
        # if several features share a row, the rate of the last one is used
        r = rate[final[f] * BLOCK : final[f] * BLOCK + size]
        xv = x[f]
        for j in range(size):
            w[j] += u[j] * (xv * r[j]) if u[j] != ZERO else ZERO  # an infinite rate times 0 would be NaN


@bare
def _keep_best(p: Float32s, size: int, c: int, i: int, best: Int64s, best_score: Float32s) -> None:
    """Update the best class of example i, -1 before the first block, with the classes [c, c + size) of scores `p`."""
    if best[i] < 0:
        best[i] = c
        best_score[i] = p[0]
    for begin in range(0, size, CHUNK):
        end = min(size, begin + CHUNK)
        better = False
        for j in range(begin, end):  # this loop vectorises, and few chunks contain a better score
            better |= p[j] > best_score[i]
        if better:
            for j in range(begin, end):
                if p[j] > best_score[i]:
                    best[i] = c + j
                    best_score[i] = p[j]


@bare
def _set_signs(batch: Batch, label: Int64s, i: int, c: int, size: int, y: Float32s) -> None:
    """Set `y[:size]` to 1 for the classes of example i among [c, c + size), and to -1 for the others."""
    start = batch.label_start
    first, last = (start[i], start[i + 1]) if len(start) > 0 else (i, i + 1)
    for j in range(size):
        y[j] = -ONE
    for j in range(first, last):
        if c <= label[j] < c + size:
            y[label[j] - c] = ONE


@on_demand
def _link(p: Float32s, size: int) -> None:
    """Pass the predictions `p[:size]` (float32) through the logistic link."""
    for j in range(size):
        p[j] = ONE / (ONE + fast_math.expf(-p[j]))


@on_demand
def _score_one_by_one(
    table: gd.WeightTable, place: UInt64s, x: Float32s, count: int, c: int, size: int, s: Float32s
) -> None:
    """Compute the scores `s[:size]` (float32) of the classes [c, c + size), whose weights are shrunk."""
    for j in range(size):
        s[j] = gd.score(table, place, x, count, np.uint64(c + j), ZERO)


@on_demand
def _learn_one_by_one(
    table: gd.WeightTable, rule: gd.UpdateRule, place: UInt64s, x: Float32s, count: int, c: int, size: int, p: Float32s,
    y: Float32s, weight: np.float32, clock: np.float64,
) -> None:  # fmt: skip
    """Update the classes [c, c + size) by any rule and loss."""
    for j in range(size):
        if rule.widen:
            gd.widen(table.range, y[j])
        gd.learn(table, rule, place, x, count, np.uint64(c + j), p[j], y[j], weight, clock)


@on_demand
def _learn_sampled(
    table: gd.WeightTable, rule: gd.UpdateRule, place: UInt64s, x: Float32s, count: int, label: int, sampled: Int32s,
    begin: int, end: int, classes: int, weight: np.float32, clock: np.float64,
) -> None:  # fmt: skip
    """Update those of the class `label` of an example and of its `sampled` classes that are in [begin, end)."""
    draws = len(sampled)
    for k in range(-1, draws):
        c = label if k < 0 else np.int64(sampled[k])
        y = ONE if k < 0 else -ONE
        if rule.widen:
            gd.widen(table.range, y)
        if begin <= c < end:
            sub = np.uint64(c)
            p = gd.clip(gd.score(table, place, x, count, sub, ZERO), table.range)
            # the sampled classes stand for all negative ones
            share = weight if k < 0 else weight * (np.float32(classes) / np.float32(draws))
            gd.learn(table, rule, place, x, count, sub, p, y, share, clock)


@jit
def process_batch(
    table: gd.WeightTable, rule: gd.UpdateRule, rows: np.uint64, begin: int, end: int, link: bool, inputs: OaaInputs,
    output: ClassScores, scratch: ClassRowScratch,
) -> None:  # fmt: skip
    """Score and train the classes [begin, end) on every example of a batch, in order.

    Under rules by which updating one class changes all (--l1 and --l2 with --vw_exact), all classes have to be one
    block, which is scored before any of its classes learns, or, as in VW's --multilabel_oaa, each one of its own.

    `rows` is the number of rows of the table, and `link` says whether predictions pass through the logistic link.
    """
    batch, label, learns, sampled, clock, classes, clips = inputs
    best, best_score, scores = output
    row, place, x, final, owner, s, p, y = scratch[:8]
    limits = table.range.copy()  # the range that clips scores changes after an example, not within it
    fast = rule.adaptive and rule.normalized and rule.invariant and rule.uses_sqrt and not rule.regularized
    fast = fast and (rule.loss == loss.LOGISTIC or (rule.loss == loss.SQUARED and not link and not rule.widen))
    fast = fast and (rule.loss == loss.LOGISTIC or (limits[0] >= -ONE and limits[1] <= ONE))
    wanted = scores.shape[0] > 0
    draws = sampled.shape[1]
    block = s.shape[0]
    for i in range(batch.label.shape[0]):
        count = _find_rows(table, rows, batch, i, row, place, x)
        learn = learns[i]
        all_learn = learn and draws == 0
        table.guard.now[0] = i
        quick = all_learn and fast and count <= MOST_FEATURES_IN_BLOCKS and finite.is_plain(table.guard)
        if quick:
            for f in range(count):
                owner[row[f]] = f
            for f in range(count):
                final[f] = owner[row[f]]
        best[i] = -1
        for c in range(begin, end, block):
            size = min(block, end - c)
            if rule.regularized:
                _score_one_by_one(table, place, x, count, c, size, s)
            else:
                _score_block(table, place, x, count, c, size, s)
            for j in range(size):
                p[j] = gd.clip(s[j], limits)
            if link:
                _link(p, size)
            _keep_best(p, size, c, i, best, best_score)
            if wanted:
                for j in range(size):  # numba compiles functions that format messages for the assignment of a slice
                    scores[i, c + j] = p[j] if clips else s[j]
            if not all_learn:
                continue
            _set_signs(batch, label, i, c, size, y)
            shared = scratch.shared[(c - begin) // BLOCK]
            if quick and _learn_block(table, rule, scratch, count, shared, c, size, batch.weight[i], clock[i]):
                continue
            for f in range(count):
                shared[row[f]] = ZERO
            _learn_one_by_one(table, rule, place, x, count, c, size, p, y, batch.weight[i], clock[i])
        if learn and draws > 0:
            _learn_sampled(
                table, rule, place, x, count, label[i], sampled[i], begin, end, classes, batch.weight[i], clock[i]
            )
        if learn and rule.widen:
            limits[0] = table.range[0]
            limits[1] = table.range[1]


@jit
def shuffle(order: Int32s, random: UInt64s) -> None:
    """Permute `order` (int32[K]) in place, as VW does before it samples classes."""
    classes = order.shape[0]
    for i in range(classes):
        j = np.int64(rng.draw(random) * np.float32(classes - i)) + i
        order[i], order[j] = order[j], order[i]


@jit
def draw_negatives(order: Int32s, start: int, label: Int64s, learns: Bools, sampled: Int32s) -> int:
    """Sample negative classes for each learned example by going cyclically through `order`, skipping its label.

    `start` is the position in `order` at which to continue; return that for the next call. `sampled` (int32[n, draws])
    is written for learned examples.
    """
    classes = order.shape[0]
    for i in range(label.shape[0]):
        if learns[i]:
            drawn = 0
            while drawn < sampled.shape[1]:
                c = order[start]
                start = (start + 1) % classes
                if c != label[i]:
                    sampled[i, drawn] = c
                    drawn += 1
    return start


@jit
def merge(best: Int64s, best_score: Float32s, winner: Int64s) -> None:
    """Select the best class of each example from those of the threads; the lowest class wins a tie.

    `best` and `best_score` are int64[threads, n] and float32[threads, n], in ascending order of classes.
    """
    for i in range(winner.shape[0]):
        at = 0
        for t in range(1, best.shape[0]):
            if best_score[t, i] > best_score[at, i]:
                at = t
        winner[i] = best[at, i]


@jit
def class_probabilities(
    scores: Float32s, linked: bool, least: np.float32, raw: bool, begin: int, end: int, p: Float32s, top: Int64s,
    top_p: Float64s,
) -> None:  # fmt: skip
    """Compute the probabilities of all classes for the examples [begin, end), and rank the best classes.

    A score is the log odds of its class or, if it was learned with squared loss, an estimate of the label, -1 or 1;
    with `linked` it is between 0 and 1 already. `least` is 0 for log odds, otherwise the least probability before
    normalisation; `raw` leaves out both. Written are `p` (float32[n, K]), which adds up to 1 unless `raw`, and the best
    0-based classes in `top` (int64[n, k]), the lower first on a tie, and their probabilities in `top_p`.
    """
    classes = scores.shape[1]
    ranked = np.empty(top.shape[1], np.int64)
    floor = ZERO if raw else least
    for i in range(begin, end):
        row = p[i]
        for j in range(classes):
            s = scores[i, j]
            if linked:
                row[j] = s
            elif least > ZERO:
                row[j] = floor + (ONE - floor) * (HALF + HALF * min(max(s, -ONE), ONE))
            else:
                row[j] = ONE / (ONE + fast_math.expf(-s))
        if not raw:
            total = ZERO
            for j in range(classes):  # sum in VW's order
                total += row[j]
            for j in range(classes):
                row[j] *= ONE / total
        for r in range(top_k.rank(scores[i], 0, classes, ranked)):
            top[i, r] = ranked[r]
            top_p[i, r] = np.float64(row[ranked[r]])
