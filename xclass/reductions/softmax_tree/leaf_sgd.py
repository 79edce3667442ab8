"""An L1-regularised softmax of k classes by stochastic gradient steps: a leaf of very many classes, in a few passes.

Problem   that of `leaf_exact`, solved roughly. The paper's leaves are solved by SAGA, which takes such steps too.
Idea      rows come in an order drawn anew for each pass. A step is that of a block of rows: their probabilities are
          found with the weights as they were before the block, then each row moves the weights of its features by
          rate * (its class - probability), for its class and those of more than `LEAST_P`. Of the others it draws some,
          each as often as it is probable, and takes them to have LEAST_P: right on average, and most of the time saved.
          Some times a pass all weights come nearer to 0 by what alpha amounts to since the last time. The rate falls
          to 0 in a line. Intercepts move at rates that fall with the squares of their slopes (AdaGrad).
Layout    frequent features have a weight for every class, side by side, so that adding one to the scores vectorises;
          the others for classes they occur with only.
              place[f] -> w[place .. place + K]  or  w[place .. place + many[f]] of the classes owner[place - base ..]
Cost      a pass: examples * (features * K + K) sums in single precision, which is memory bandwidth; learning is a small
          part. Memory: 4 bytes a weight, at most MOST_DENSE bytes for frequent features.
Threads   rows of a block are shared out; what each finds does not depend on who finds it.
Names     K classes, a multiple of LANES, those beyond k have no weights and no probability | n, F rows and features
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ...array_types import Float32s, Int32s, Int64s
from ...kernels import fast_math
from ...kernels.constants import ONE, ZERO
from ...kernels.jit import jit
from ...system import processors
from . import leaf_exact

PASSES = 8
RATE = 5.0  # for rows of length 1 and importance 1, and classes of FEW_ROWS or more of them
FEW_ROWS = 20.0
FASTEST = 12.0
BIAS_RATE = 0.5
LEAST_P = 4e-3
MOST_LISTED = int(1 / LEAST_P) + 16  # classes of a row, its own among them
LANES = 16
MOST_DENSE = 1 << 28  # bytes
SHRINKS = 4  # a pass
CLASSES_A_ROW = 32  # a block has a row for so many classes, at most LARGEST_BLOCK: with few classes rows would add up
LARGEST_BLOCK = 64
WORTH_THREADS = 1e6  # sums of a block
NOWHERE = np.float32(-1e30)


class Table(NamedTuple):
    """The weights while they are learned, see Layout."""

    place: Int64s  # int64[F]
    many: Int32s  # int32[F], classes of a feature that has not all of them, -1 for the others
    base: Int64s  # int64[1]
    owner: Int32s  # int32[...], rising within a feature
    w: Float32s  # float32[...]
    bias: Float32s  # float32[K]
    square: Float32s  # float32[K], sums of the squared slopes of intercepts


class Visits(NamedTuple):
    """The rows of a pass as they come."""

    order: Int64s  # int64[n], rows
    draw: Float32s  # float32[n], a number from 0 to 1 for each of these places
    y: Int32s  # int32[n], the class of each row


class Listed(NamedTuple):
    """The classes that a block's rows have slopes in."""

    count: Int64s  # int64[block]
    owner: Int32s  # int32[block, MOST_LISTED]
    slope: Float32s  # float32[block, MOST_LISTED], probability less 1 for the row's class


class Scratch(NamedTuple):
    """OptionGroup for one thread."""

    z: Float32s  # float32[K]
    lane: Float32s  # float32[LANES]


# -- kernels


@jit
def _exponentials(z, lane):
    """Make of scores their exponentials, less a common factor; return the sum."""
    for j in range(LANES):
        lane[j] = NOWHERE
    for c in range(0, z.shape[0], LANES):
        for j in range(LANES):
            lane[j] = max(lane[j], z[c + j])
    most = lane[0]
    for j in range(LANES):
        most = max(most, lane[j])
        lane[j] = ZERO
    for c in range(z.shape[0]):
        z[c] = fast_math.exp32(z[c] - most)
    for c in range(0, z.shape[0], LANES):
        for j in range(LANES):
            lane[j] += z[c + j]
    total = ZERO
    for j in range(LANES):
        total += lane[j]
    return total


@jit
def listed(problem, table, order, draw, first, low, high, y, scratch, found):
    """List the slopes of rows order[low:high]; those of order[first] are at 0.

    Parameters
    ----------
    order, draw : int64[n] and float32[n], rows as they come, and a number from 0 to 1 for each of these places.
    y : int32[n], the class of each row.
    """
    z = scratch.z
    base = table.base[0]
    size = z.shape[0]
    for at in range(low, high):
        r = order[at]
        z[:] = table.bias
        for i in range(problem.row_start[r], problem.row_start[r + 1]):
            f = problem.row_feature[i]
            x = problem.row_value[i]
            p = table.place[f]
            if table.many[f] < 0:
                w = table.w[p : p + size]
                for c in range(size):
                    z[c] += x * w[c]
            else:
                for j in range(p, p + table.many[f]):
                    z[table.owner[j - base]] += x * table.w[j]
        total = _exponentials(z, scratch.lane)
        inverse = ONE / total
        limit = total * np.float32(LEAST_P)
        own = y[r]
        here = at - first
        rest = draw[at] * limit
        count = 0
        mine = z[own]
        z[own] = ZERO
        for low_c in range(0, size, LANES):
            a = b = c_ = d = ZERO
            for j in range(low_c, low_c + LANES, 4):
                a += z[j]
                b += z[j + 1]
                c_ += z[j + 2]
                d += z[j + 3]
            sum_of = (a + b) + (c_ + d)
            if rest + sum_of < limit:
                rest += sum_of
                continue
            for c in range(low_c, low_c + LANES):
                if z[c] > limit:
                    found.owner[here, count] = c
                    found.slope[here, count] = z[c] * inverse
                    count += 1
                else:
                    rest += z[c]
                    if rest >= limit:
                        rest -= limit
                        found.owner[here, count] = c
                        found.slope[here, count] = np.float32(LEAST_P)
                        count += 1
        found.owner[here, count] = own
        found.slope[here, count] = mine * inverse - ONE
        found.count[here] = count + 1


@jit
def learn(problem, table, order, low, high, found, slope, rate, bias_rate):
    """Move the weights by the slopes of rows order[low:high]; `slope` : float32[K], 0 before and after."""
    base = table.base[0]
    for at in range(low, high):
        r = order[at]
        here = at - low
        count = found.count[here]
        c_n = np.float32(problem.weight[r])
        for j in range(count):
            c = found.owner[here, j]
            g = found.slope[here, j] * c_n
            slope[c] = g
            if bias_rate > ZERO:
                table.square[c] += g * g
                table.bias[c] -= bias_rate * g / np.float32(math.sqrt(table.square[c]))
        for i in range(problem.row_start[r], problem.row_start[r + 1]):
            f = problem.row_feature[i]
            x = problem.row_value[i] * rate
            p = table.place[f]
            if table.many[f] < 0:
                for j in range(count):
                    c = found.owner[here, j]
                    table.w[p + c] -= x * slope[c]
            else:
                for j in range(p, p + table.many[f]):
                    table.w[j] -= x * slope[table.owner[j - base]]
        for j in range(count):
            slope[found.owner[here, j]] = ZERO


@jit
def alone(problem, table, visits, low, high, block, scratch, found, slope, rate, bias_rate):
    """All blocks of visits[low:high] in one thread."""
    order, draw, y = visits
    for first in range(low, high, block):
        last = min(first + block, high)
        listed(problem, table, order, draw, first, first, last, y, scratch, found)
        learn(problem, table, order, first, last, found, slope, rate, bias_rate)


@jit
def shrink(w, limit):
    """Bring all weights nearer to 0 by `limit`, not beyond."""
    for i in range(w.shape[0]):
        w[i] = max(w[i] - limit, ZERO) + min(w[i] + limit, ZERO)


@jit
def put(table, start, feature, value):
    """Enter the weights of classes, as in `leaf_exact.Weights`; those without a place are left out."""
    base = table.base[0]
    for c in range(start.shape[0] - 1):
        for i in range(start[c], start[c + 1]):
            f = feature[i]
            p = table.place[f]
            if table.many[f] < 0:
                table.w[p + c] = np.float32(value[i])
            else:
                for j in range(p, p + table.many[f]):
                    if table.owner[j - base] == c:
                        table.w[j] = np.float32(value[i])


@jit
def count_weights(table, k, start):
    """`start[c + 1]` = how many weights of class c are not 0; start is 0."""
    base = table.base[0]
    for f in range(table.place.shape[0]):
        p = table.place[f]
        if table.many[f] < 0:
            for c in range(k):
                if table.w[p + c] != ZERO:
                    start[c + 1] += 1
        else:
            for j in range(p, p + table.many[f]):
                if table.w[j] != ZERO:
                    start[table.owner[j - base] + 1] += 1


@jit
def take(table, k, end, feature, value):
    """Copy the weights that are not 0 to where their classes begin, `end`, which goes up to where they end."""
    base = table.base[0]
    for f in range(table.place.shape[0]):
        p = table.place[f]
        if table.many[f] < 0:
            for c in range(k):
                if table.w[p + c] != ZERO:
                    feature[end[c]] = f
                    value[end[c]] = table.w[p + c]
                    end[c] += 1
        else:
            for j in range(p, p + table.many[f]):
                if table.w[j] != ZERO:
                    c = table.owner[j - base]
                    feature[end[c]] = f
                    value[end[c]] = table.w[j]
                    end[c] += 1


# -- Python


def new_table(problem, y: np.ndarray, bias: np.ndarray, most_dense: int = MOST_DENSE) -> Table:
    """Weights of 0 for a problem whose rows have the classes y (int32[n])."""
    k = len(bias)
    size = -(-k // LANES) * LANES
    often = np.diff(problem.col_start)
    features = len(often)
    dense = min(int((often > 1).sum()), most_dense // (4 * size))
    rank = np.argsort(-often, kind="stable")
    place, many = np.empty(features, np.int64), np.full(features, -1, np.int32)
    place[rank[:dense]] = np.arange(dense) * size
    base = dense * size
    rare = np.zeros(features, bool)
    rare[rank[dense:]] = True
    row = np.repeat(np.arange(len(y)), np.diff(problem.row_start))
    there = rare[problem.row_feature]
    pair = np.unique(problem.row_feature[there].astype(np.int64) * k + y[row[there]])
    counts = np.bincount(pair // k, minlength=features)
    ends = base + np.cumsum(counts)
    place[rare] = (ends - counts)[rare]
    many[rare] = counts[rare]
    full = np.full(size, NOWHERE, np.float32)
    full[:k] = bias
    return Table(
        place, many, np.array([base]), (pair % k).astype(np.int32), np.zeros(base + len(pair), np.float32), full,
        np.ones(size, np.float32),
    )  # fmt: skip


def weights(table: Table, k: int) -> leaf_exact.Weights:
    """By class, those that are not 0."""
    start = np.zeros(k + 1, np.int64)
    count_weights(table, k, start)
    start = np.cumsum(start)
    feature, value = np.empty(int(start[-1]), np.int32), np.empty(int(start[-1]))
    take(table, k, start[:-1].copy(), feature, value)
    return leaf_exact.Weights(start, feature, value)


def in_turn(job, items) -> None:
    """Do a job for every item, in this thread."""
    for one in items:
        job(*one)


def rate_for(n: int, k: int) -> float:
    """The rate to begin with: rows of length 1 whose class has few others have to do more each."""
    return min(FASTEST, RATE * math.sqrt(max(1.0, FEW_ROWS * k / max(n, 1))))


def fit(
    problem, class_start, alpha: float, begin: leaf_exact.Weights, bias, intercept=True, passes=PASSES, seed=0,
    share: Callable = in_turn, stopped: Callable[[], bool] = lambda: False,
) -> leaf_exact.Weights:  # fmt: skip
    """Fit from `begin` on; return the weights. `bias` is changed.

    Parameters
    ----------
    class_start : int64[k + 1], rows of class c are class_start[c] .. class_start[c + 1] - 1.
    share : `share(job, items)` does `job(*item)` for all items, on as many threads as it likes.
    stopped : whether to be content with what there is; asked now and then.
    """
    n, k = len(problem.weight), len(bias)
    y = np.repeat(np.arange(k), np.diff(class_start)).astype(np.int32)
    table = new_table(problem, y, bias)
    put(table, begin.start, begin.feature, begin.value)
    size = len(table.bias)
    block = max(1, min(LARGEST_BLOCK, k // CLASSES_A_ROW))
    found = Listed(
        np.zeros(block, np.int64), np.zeros((block, MOST_LISTED), np.int32), np.zeros((block, MOST_LISTED), np.float32)
    )
    slope = np.zeros(size, np.float32)
    width = len(problem.row_feature) / max(n, 1)
    workers = 1 if share is in_turn or block * size * (width + 1) < WORTH_THREADS else processors.count()
    scratch = [Scratch(np.empty(size, np.float32), np.empty(LANES, np.float32)) for _ in range(workers)]
    mean = float(problem.weight.mean())
    long = float((problem.row_value.astype(np.float64) ** 2).sum()) / max(n, 1)  # mean squared length
    rate = rate_for(n, k) / (mean * max(long, 1e-12))
    bias_rate = np.float32(BIAS_RATE if intercept else 0.0)
    rng = np.random.default_rng(seed)
    piece = -(-max(1, n // SHRINKS) // block) * block
    pieces = [(low, min(low + piece, n)) for low in range(0, n, piece)]
    for number in range(passes):
        order, draw = rng.permutation(n), rng.random(n, np.float32)
        for j, (low, high) in enumerate(pieces):
            now = rate * (1.0 - (number + j / len(pieces)) / passes)
            if workers == 1:
                visits = Visits(order, draw, y)
                alone(problem, table, visits, low, high, block, scratch[0], found, slope, np.float32(now), bias_rate)
            else:
                for first in range(low, high, block):
                    last = min(first + block, high)
                    edges = [first + (last - first) * t // workers for t in range(workers + 1)]

                    def job(t, order=order, draw=draw, first=first, edges=edges):
                        listed(problem, table, order, draw, first, edges[t], edges[t + 1], y, scratch[t], found)

                    share(job, [(t,) for t in range(workers)])
                    learn(problem, table, order, first, last, found, slope, np.float32(now), bias_rate)
            shrink(table.w, np.float32(now * alpha * (high - low) / n))
            if stopped():
                break
        if stopped():
            break
    bias[:] = table.bias[:k]
    return weights(table, k)
