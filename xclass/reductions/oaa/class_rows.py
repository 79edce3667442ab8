"""Scoring and training rows of neighbouring classes, in long runs that vectorise: the kernels of one-against-all.

Layout    A feature owns a row of K scorers side by side, beginning at `(hash mod rows) * width`.
Cost      O(s K) for an example of s features.
Names     K classes | block: neighbouring classes handled together | place: where a feature's row begins.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ...array_types import Bools, Float32s, Float64s, Int32s, Int64s, UInt64s
from ...binary import finite, gd, loss
from ...data.batch import Batch
from ...kernels import fast_math, rng, top_k
from ...kernels.constants import ONE, ZERO
from ...kernels.jit import jit

BLOCK = 512  # classes handled together; 128 to 1024 take the same time
CHUNK = 64  # classes looked at at once for the best
LONGEST = 1 << 13  # features of an example whose rates are kept for a block: 16 MB; longer ones go class by class


class Inputs(NamedTuple):
    """A batch of n examples, and what is learned from each."""

    batch: Batch
    label: Int64s  # int64[n], 0-based class; -1: every class learns that it is none of them
    learns: Bools  # bool[n]
    sampled: Int32s  # int32[n, draws], the only classes that learn besides the label's, where there are columns
    clock: Float64s  # float64[n]


class Found(NamedTuple):
    """What classes begin..end-1 find."""

    best: Int64s  # int64[n], the class of the highest score, the lowest on a tie
    best_score: Float32s  # float32[n]
    scores: Float32s  # float32[n, K], of all classes, or without rows


class Scratch(NamedTuple):
    """OptionGroup for one example of s features, and for one block of classes."""

    row: Int64s  # int64[s], the rows of features
    place: UInt64s  # uint64[s], where rows begin
    x: Float32s  # float32[s]
    final: Int64s  # int64[s], the last feature in the same row
    owner: Int64s  # int64[rows]
    s: Float32s  # float32[BLOCK] each: scores
    p: Float32s  # predictions; float32[K] for `learn_batch_sequentially`
    y: Float32s
    d: Float32s
    g2: Float32s
    q: Float32s
    norm: Float32s
    u: Float32s
    rate: Float32s  # float32[s * BLOCK]


def new_scratch(longest: int, rows: int, classes: int = BLOCK) -> Scratch:
    """OptionGroup for examples of up to so many features, and for so many classes side by side."""
    s, y, d, g2, q, norm, u = (np.empty(BLOCK, np.float32) for _ in range(7))
    return Scratch(
        np.empty(longest, np.int64), np.empty(longest, np.uint64), np.empty(longest, np.float32),
        np.empty(longest, np.int64), np.empty(rows, np.int64), s, np.empty(classes, np.float32), y, d, g2, q, norm, u,
        np.empty(min(longest, LONGEST) * BLOCK, np.float32),
    )  # fmt: skip


# -- kernels


@jit
def _find_rows(table: gd.Table, rows: np.uint64, batch: Batch, i: int, row: Int64s, place: UInt64s, x: Float32s) -> int:
    """`row[f]` = feature f's row, `place[f]` = its first slot; return the number of features."""
    begin, end = batch.start[i], batch.start[i + 1]
    for f in range(end - begin):
        at = np.uint64(batch.index[begin + f]) % rows
        row[f] = at
        place[f] = at * table.width
        x[f] = batch.value[begin + f]
    count: int = end - begin
    return count


@jit
def _score_block(table: gd.Table, place: UInt64s, x: Float32s, count: int, c: int, size: int, s: Float32s) -> None:
    """`s[:size]` = scores of classes c, c + 1, ..."""
    for j in range(size):
        s[j] = ZERO
    for f in range(count):
        at = np.int64(place[f]) + c
        w = table.flat[at : at + size]
        xv = x[f]
        for j in range(size):
            s[j] += w[j] * xv


@jit
def _grow_norms(w: Float32s, n: Float32s, size_x: np.float32, g2: Float32s, size: int) -> np.float32:
    """Let N of the classes that learn grow to |x|, and return the N that all classes have then, 0 if they differ."""
    below = False
    for j in range(size):  # not by min, which does not vectorise
        below |= n[j] < size_x
    if below:
        for j in range(size):
            if n[j] < size_x and g2[j] > ZERO:
                if n[j] > ZERO:
                    w[j] *= n[j] / size_x
                n[j] = size_x
    first = n[0]
    differs = False
    for j in range(size):
        differs |= n[j] != first
    return ZERO if differs else first


@jit
def _block_is_safe(
    table: gd.Table, rule: gd.Rule, place: UInt64s, x: Float32s, count: int, c: int, size: int, g2: Float32s,
    weight: np.float32, clock: np.float64,
) -> bool:  # fmt: skip
    """Whether the steps of classes c, c + 1, ... can be taken unseen; `g2` holds squared slopes."""
    if not finite.is_safe(rule, table.watch, weight, weight, gd.step_scale(rule, weight, clock)):
        return False
    sums = table.sums.reshape(-1)[2 * c : 2 * (c + size)]
    least = table.watch.span[table.watch.now[0], 2]
    unsafe = False
    far = False
    for j in range(size):
        some = g2[j] > ZERO
        unsafe |= some & (g2[j] * weight < least)
        far |= some & ((sums[2 * j + 1] + weight) * finite.MEAN_NORM > sums[2 * j])
    if far and not unsafe:
        for j in range(size):
            sub = np.uint64(c + j)
            unsafe = unsafe or (g2[j] > ZERO and not gd.norms_are_safe(table, place, x, count, sub, weight))
    return not unsafe


@jit
def _learn_block(
    table: gd.Table, rule: gd.Rule, scratch: Scratch, count: int, norms: Float32s, k: int, c: int, size: int,
    weight: np.float32, clock: np.float64,
) -> bool:  # fmt: skip
    """`gd.learn` for neighbouring classes c, c + 1, ... under the default rule and logistic loss.

    `norms[r, k]` is the N that all of them have for row r, so that it need not be read, or 0. Returns False, having
    changed nothing, where a step has to be looked at.
    """
    row, place, x, final, _, _, p, y, d, g2, q, norm, u, rate = scratch
    flat, field = table.flat, np.int64(table.field)
    loss.logistic_slopes(p, y, d, g2, size)
    if rule.checked and not _block_is_safe(table, rule, place, x, count, c, size, g2, weight, clock):
        return False
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
        shared = norms[row[f], k]
        if shared < size_x:  # unknown or to grow
            shared = _grow_norms(flat[at : at + size], n, size_x, g2, size)
            norms[row[f], k] = shared
        r = rate[f * BLOCK : f * BLOCK + size]
        if shared > ZERO:  # the usual case, where x / N is the same for all and two divisions can go
            inverse = ONE / shared
            share = x2 / (shared * shared)
            for j in range(size):
                g[j] += g2[j] * x2
                v = (ONE / np.float32(math.sqrt(g[j]))) * inverse
                r[j] = v if g2[j] > ZERO else ZERO
                q[j] += x2 * r[j]
                norm[j] += share
        else:
            for j in range(size):
                g[j] += g2[j] * x2
                v = (ONE / np.float32(math.sqrt(g[j]))) * (ONE / n[j])
                r[j] = v if g2[j] > ZERO else ZERO
                q[j] += x2 * r[j]
                norm[j] += x2 / (n[j] * n[j])
    sums = table.sums.reshape(-1)[2 * c : 2 * (c + size)]  # in one dimension, where steps of two vectorise
    counted = weight
    if not rule.checked:  # VW's product has 64 bits
        counted = ZERO
        for j in range(size):
            sums[2 * j] += gd.weighted(rule, weight, norm[j]) if g2[j] > ZERO else 0.0
    for j in range(size):  # without branches, for the same reason
        some = g2[j] > ZERO
        sums[2 * j] += counted * norm[j] if some else ZERO
        sums[2 * j + 1] += weight if some else ZERO
        mean = np.float32(math.sqrt(np.float32(sums[2 * j + 1]) / np.float32(sums[2 * j])))
        norm[j] = mean if some else ZERO
        q[j] = q[j] * mean if some else ONE
    loss.logistic_steps(p, y, d, gd.step_scale(rule, weight, clock), q, u, size)
    for j in range(size):
        u[j] = u[j] * norm[j] if g2[j] > ZERO and math.isfinite(u[j]) else ZERO
    for f in range(count):
        at = np.int64(place[f]) + c
        w = flat[at : at + size]
        # a row met twice in an example has one rate, the last
        r = rate[final[f] * BLOCK : final[f] * BLOCK + size]
        xv = x[f]
        for j in range(size):
            w[j] += u[j] * (xv * r[j]) if u[j] != ZERO else ZERO  # the rate may be infinite
    return True


@jit
def _keep_best(p: Float32s, size: int, c: int, i: int, best: Int64s, best_score: Float32s) -> None:
    """Note the best of the scores `p[:size]` of classes c, c + 1, ... if it beats what was found before."""
    if best[i] < 0:
        best[i] = c
        best_score[i] = p[0]
    for begin in range(0, size, CHUNK):
        end = min(size, begin + CHUNK)
        better = False
        for j in range(begin, end):  # vectorises; there is something to note in few of the chunks
            better |= p[j] > best_score[i]
        if better:
            for j in range(begin, end):
                if p[j] > best_score[i]:
                    best[i] = c + j
                    best_score[i] = p[j]


@jit
def learn_batch(
    table: gd.Table, rule: gd.Rule, rows: np.uint64, begin: int, end: int, norms: Float32s, link: bool, inputs: Inputs,
    found: Found, scratch: Scratch,
) -> None:  # fmt: skip
    """Score and train classes begin..end-1 on every example of a batch, in order.

    `norms` (rows x blocks) is kept from one batch to the next, zeros at first: the N that all classes of a block have
    for a feature's row, 0 where they differ or nobody looked.
    """
    batch, label, learns, sampled, clock = inputs
    best, best_score, scores = found
    row, place, x, final, owner, s, p, y = scratch[:8]
    fast = rule.adaptive and rule.normalized and rule.invariant and rule.root and rule.loss == loss.LOGISTIC
    fast = fast and not rule.regular
    wanted = scores.shape[0] > 0
    draws = sampled.shape[1]
    limits = table.range.copy()  # what scores are clipped to changes after an example, not within it
    for i in range(batch.label.shape[0]):
        count = _find_rows(table, rows, batch, i, row, place, x)
        learn = learns[i]
        whole = learn and draws == 0
        table.watch.now[0] = i
        quick = whole and fast and count <= LONGEST and finite.is_plain(table.watch)
        if quick:
            for f in range(count):
                owner[row[f]] = f
            for f in range(count):
                final[f] = owner[row[f]]
        elif whole:  # N may grow unseen
            for f in range(count):
                norms[row[f]] = ZERO
        best[i] = -1
        for c in range(begin, end, BLOCK):
            size = min(BLOCK, end - c)
            _score_block(table, place, x, count, c, size, s)
            for j in range(size):
                p[j] = gd.clip(s[j], limits)
            if link:
                for j in range(size):
                    p[j] = ONE / (ONE + fast_math.expf(-p[j]))
            _keep_best(p, size, c, i, best, best_score)
            if wanted:
                scores[i, c : c + size] = p[:size]
            if not whole:
                continue
            for j in range(size):
                y[j] = ONE if c + j == label[i] else -ONE
            done = False
            if quick:
                k = (c - begin) // BLOCK
                done = _learn_block(table, rule, scratch, count, norms, k, c, size, batch.weight[i], clock[i])
                for f in range(0 if done else count):  # N may grow unseen
                    norms[row[f], k] = ZERO
            if not done:
                for j in range(size):
                    if rule.widen:
                        gd.widen(table.range, y[j])
                    gd.learn(table, rule, place, x, count, np.uint64(c + j), p[j], y[j], batch.weight[i], clock[i])
        if learn and draws > 0:
            for k in range(-1, draws):
                c = label[i] if k < 0 else np.int64(sampled[i, k])  # type: ignore[assignment]  # an int to numba
                yv = ONE if k < 0 else -ONE
                if rule.widen:
                    gd.widen(table.range, yv)
                if begin <= c < end:
                    sub = np.uint64(c)
                    pv = gd.clip(gd.score(table, place, x, count, sub, ZERO), table.range)
                    weight = batch.weight[i]
                    if k >= 0:  # the few stand for all
                        weight *= np.float32(table.sums.shape[0]) / np.float32(draws)
                    gd.learn(table, rule, place, x, count, sub, pv, yv, weight, clock[i])
        if learn and rule.widen:
            limits[0] = table.range[0]
            limits[1] = table.range[1]


@jit
def learn_batch_sequentially(
    table: gd.Table, rule: gd.Rule, rows: np.uint64, link: bool, inputs: Inputs, found: Found, scratch: Scratch
) -> None:
    """`learn_batch` of all classes for rules under which an update of one class is felt by all (--l1, --l2)."""
    batch, label, learns, sampled, clock = inputs
    best, best_score, scores = found
    row, place, x, p = scratch.row, scratch.place, scratch.x, scratch.p
    classes = table.sums.shape[0]
    draws = sampled.shape[1]
    for i in range(batch.label.shape[0]):
        table.watch.now[0] = i
        count = _find_rows(table, rows, batch, i, row, place, x)
        best[i] = -1
        for c in range(classes):
            p[c] = gd.clip(gd.score(table, place, x, count, np.uint64(c), ZERO), table.range)
            if link:
                p[c] = ONE / (ONE + fast_math.expf(-p[c]))
            if best[i] < 0 or p[c] > best_score[i]:
                best[i] = c
                best_score[i] = p[c]
        if scores.shape[0] > 0:
            scores[i] = p
        if not learns[i]:
            continue
        for k in range(draws + 1 if draws > 0 else classes):
            c = k
            weight = batch.weight[i]
            if draws > 0:  # the label's class, then those drawn
                c = label[i] if k == 0 else np.int64(sampled[i, k - 1])  # type: ignore[assignment]  # an int to numba
                if k > 0:
                    weight *= np.float32(classes) / np.float32(draws)
            y = ONE if c == label[i] else -ONE
            if rule.widen:
                gd.widen(table.range, y)
            if c < 0:
                continue
            sub = np.uint64(c)
            if draws > 0:
                p[c] = gd.clip(gd.score(table, place, x, count, sub, ZERO), table.range)
            gd.learn(table, rule, place, x, count, sub, p[c], y, weight, clock[i])


@jit
def shuffle(order: Int32s, random: UInt64s) -> None:
    """Permute `order` as VW does before it draws."""
    classes = order.shape[0]
    for i in range(classes):
        j = np.int64(rng.draw(random) * np.float32(classes - i)) + i
        order[i], order[j] = order[j], order[i]


@jit
def draw_negatives(order: Int32s, start: int, label: Int64s, learns: Bools, sampled: Int32s) -> int:
    """Go on cyclically through `order` for every learned example, passing over its label; return where it ends."""
    classes = order.shape[0]
    for i in range(label.shape[0]):
        if learns[i]:
            taken = 0
            while taken < sampled.shape[1]:
                c = order[start]
                start = (start + 1) % classes
                if c != label[i]:
                    sampled[i, taken] = c
                    taken += 1
    return start


@jit
def merge(best: Int64s, best_score: Float32s, winner: Int64s) -> None:
    """`winner[i]` = best class over the threads' shares, the lowest on a tie; shares come in class order."""
    for i in range(winner.shape[0]):
        at = 0
        for t in range(1, best.shape[0]):
            if best_score[t, i] > best_score[at, i]:
                at = t
        winner[i] = best[at, i]


@jit
def class_probabilities(
    scores: Float32s, linked: bool, begin: int, end: int, p: Float32s, top: Int64s, top_p: Float64s
) -> None:
    """`p` (n x K) = logistic probabilities of the scores that add up to 1, for examples begin..end-1.

    `linked`: the scores are between 0 and 1 already.
    `top` and `top_p` (n x k): the k classes of the highest scores in falling order, the lower first on a tie, 0-based.
    """
    classes = scores.shape[1]
    place = np.empty(top.shape[1], np.int64)
    for i in range(begin, end):
        row = p[i]
        for j in range(classes):
            s = scores[i, j]
            row[j] = s if linked else ONE / (ONE + fast_math.expf(-s))
        total = ZERO
        for j in range(classes):  # in VW's order
            total += row[j]
        for j in range(classes):
            row[j] *= ONE / total
        for r in range(top_k.rank(scores[i], 0, classes, place)):
            top[i, r] = place[r]
            top_p[i, r] = np.float64(row[place[r]])
