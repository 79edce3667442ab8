"""Learn one example in many subproblems, one after the other: score, update, score again.

Source    The update is that of `gd`.
Cost      O(s) per subproblem for an example of s features.
Names     As in `gd`.
Differs   from `gd.score` and `gd.learn` only in speed: the results have the same bits.
Idea      Under the default update rule the slots of a subproblem are copied once into arrays with an element for each
          feature. All arithmetic then runs over these arrays, so that it vectorises, and the last pass also computes
          the score after the update. If two features of an example share a slot, the copies would disagree, so the
          scalar loop of `gd` is used.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ..array_types import Float32s, Int, Int64s, UInt64s
from ..data.batch import Batch
from ..kernels import hash_table
from ..kernels.constants import ONE, ZERO
from ..kernels.jit import jit
from . import finite, gd, loss


class ExampleScratch(NamedTuple):
    """Provide buffers for one example of up to s features."""

    place: UInt64s  # uint64[s], hash * width of each feature
    x: Float32s  # float32[s]
    square: Float32s  # float32[s], x * x, at least TINY_X2
    size: Float32s  # float32[s], |x|, at least TINY_X
    at: Int64s  # int64[s], position of each slot in `Table.flat`
    w: Float32s  # float32[s], weight
    g: Float32s  # float32[s], G
    n: Float32s  # float32[s], N
    rate: Float32s  # float32[s], rate
    norm_part: Float32s  # float32[s], x**2 / N**2
    seen: UInt64s  # uint64[cells], hash table of slots, to find duplicates
    owner: Int64s  # int64[cells], example that filled each cell, -1 for none
    secret: np.uint64  # secret of the hash function, see `hash_table`


def new_row(batch: Batch) -> ExampleScratch:
    """Return buffers for any example of a batch; they must not be reused for another batch."""
    max_features = int(np.diff(batch.start).max(initial=0))
    cells = 1 << (4 * max_features).bit_length()
    x, square, size, w, g, n, rate, norm_part = (np.empty(max_features, np.float32) for _ in range(8))
    return ExampleScratch(
        np.empty(max_features, np.uint64), x, square, size, np.empty(max_features, np.int64), w, g, n, rate, norm_part,
        np.empty(cells, np.uint64), np.full(cells, -1, np.int64), hash_table.new_secret(),
    )  # fmt: skip


# -- kernels


@jit
def load(row: ExampleScratch, table: gd.WeightTable, rule: gd.UpdateRule, batch: Batch, i: Int) -> tuple[int, bool]:
    """Fill `row` with example i; return its number of features and whether `update` can use the vectorised loops."""
    begin = batch.start[i]
    count = batch.start[i + 1] - begin
    last = row.seen.shape[0] - 1
    table.guard.now[0] = i
    vectorised = rule.adaptive and rule.normalized and rule.invariant and rule.uses_sqrt and not rule.regularized
    vectorised = vectorised and finite.is_plain(table.guard)
    for f in range(count):
        row.place[f] = np.uint64(batch.index[begin + f]) * table.width
        xv = batch.value[begin + f]
        row.x[f] = xv
        x2 = xv * xv
        tiny = x2 < gd.TINY_X2
        row.square[f] = gd.TINY_X2 if tiny else x2
        row.size[f] = gd.TINY_X if tiny else abs(xv)
    if vectorised:
        for f in range(count):
            slot = row.place[f] & table.mask
            # unlike in `hash_table.probe`, cells that other examples filled count as empty, so nothing is cleared
            cell = np.int64(hash_table.hashed(slot, row.secret)) & last
            while row.owner[cell] == i and row.seen[cell] != slot:
                cell = (cell + 1) & last
            vectorised = vectorised and row.owner[cell] != i
            row.owner[cell] = i
            row.seen[cell] = slot
    return count, vectorised


@jit
def score(row: ExampleScratch, table: gd.WeightTable, count: Int, sub: np.uint64) -> np.float32:
    return gd.score(table, row.place, row.x, count, sub, ZERO)


@jit
def update(
    row: ExampleScratch, table: gd.WeightTable, rule: gd.UpdateRule, count: Int, vectorised: bool, sub: np.uint64,
    y: np.float32, weight: np.float32, clock: np.float64,
) -> np.float32:  # fmt: skip
    """Extend the label range to include y, and update a subproblem towards y; return its unclipped score afterwards.

    `vectorised` is the second result of `load`, and `clock` as in `gd.learn`.
    """
    if rule.widen:
        gd.widen(table.range, y)
    if not vectorised:
        s = gd.score(table, row.place, row.x, count, sub, ZERO)
        if weight > ZERO:
            p = gd.clip(s, table.range)
            gd.learn(table, rule, row.place, row.x, count, sub, p, y, weight, clock)
            s = gd.score(table, row.place, row.x, count, sub, ZERO)
        return s
    flat, mask = table.flat, table.mask
    at, x, w = row.at, row.x, row.w
    s = ZERO
    for f in range(count):
        at[f] = np.int64(((row.place[f] + sub) & mask) << np.uint64(2))
    for f in range(count):
        w[f] = flat[at[f]]
    for f in range(count):
        s += w[f] * x[f]
    p = gd.clip(s, table.range)
    if weight <= ZERO or not loss.value(rule.loss, rule.tau, p, y, table.range[0], table.range[1]) > ZERO:
        return s
    g2 = weight * loss.squared_slope(rule.loss, rule.tau, p, y)
    step = gd.step_scale(rule, weight, clock)
    if g2 == ZERO or (rule.checked and not gd.is_safe(table, rule, row.place, x, count, sub, weight, g2, step)):
        gd.learn(table, rule, row.place, x, count, sub, p, y, weight, clock)
        return gd.score(table, row.place, x, count, sub, ZERO)
    g, n, rate, norm_part, square, size = row.g, row.n, row.rate, row.norm_part, row.square, row.size
    grown = False
    for f in range(count):
        g[f] = flat[at[f] + 1]
        n[f] = flat[at[f] + 2]
    for f in range(count):
        grown |= n[f] < size[f]
    if grown:
        for f in range(count):
            if n[f] < size[f]:
                if n[f] > ZERO:
                    w[f] *= n[f] / size[f]
                n[f] = size[f]
    for f in range(count):
        g[f] += g2 * square[f]
        rate[f] = (ONE / np.float32(math.sqrt(g[f]))) * (ONE / n[f])
        norm_part[f] = square[f] / (n[f] * n[f])
    q = ZERO
    norm = ZERO
    for f in range(count):
        q += square[f] * rate[f]
        norm += norm_part[f]
    k = np.int64(sub)
    table.sums[k, 0] += weight * norm
    table.sums[k, 1] += weight
    scale = gd.mean_scale(rule, table.sums[k, 0], table.sums[k, 1])
    u = loss.step(rule.loss, rule.tau, p, y, step, q * scale)
    if u != ZERO and math.isfinite(u):
        u *= scale
        for f in range(count):
            w[f] += u * (x[f] * rate[f])
    s = ZERO
    for f in range(count):
        s += w[f] * x[f]
        flat[at[f]] = w[f]
        flat[at[f] + 1] = g[f]
        flat[at[f] + 2] = n[f]
        flat[at[f] + 3] = rate[f]
    return s
