"""Fit a leaf of very many classes in a few passes: an L1-regularised softmax by stochastic gradient descent.

Source    The objective is that of `leaf_exact`, minimised approximately.
Idea      Each pass visits the rows in a new random order, in blocks. The probabilities of a block's rows are computed
          with the weights before the block. Then each row takes a gradient step: it adds rate * importance * value *
          (1 - p) to the weights of its features for its own class, and subtracts rate * importance * value * p from
          those for other classes of probability p. Classes with p <= LEAST_P are sampled: each takes part with
          probability p / LEAST_P, and then counts as if p were LEAST_P, which is unbiased and saves most of the time.
          Several times per pass all weights move towards 0 by the penalties for the rows since the last time.
          The rate falls linearly to 0. The rates of intercepts follow AdaGrad, written out
          here because the tables of `binary.adagrad` hold hashed features only.
          Frequent features have weights for all classes, side by side, so that adding them to the scores vectorises.
          Other features have weights only for the classes with which they occur.
              place[f] -> w[place .. place + K]
                      or  w[place .. place + class_count[f]] of the classes owner[place - base ..]
          The rows of a block are divided among threads; the results do not depend on the number of threads.
Cost      Per pass, n * (features of a row + 1) * K additions in single precision, limited by memory bandwidth; updates
          are a small part. 4 bytes per weight, at most MOST_DENSE bytes for frequent features.
Names     K classes, rounded up to a multiple of LANES; those beyond k have no weights and probability 0 | n rows |
          F features
Differs   from the paper (docs/papers.md says why, and what it costs):
          * with `--leaf_solver steps` leaves are fitted by stochastic gradient steps
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...array_types import Float32s, Float64s, Int32s, Int64s
from ...kernels import fast_math
from ...kernels.constants import LARGEST, ONE, ZERO
from ...kernels.jit import jit
from ...system import thread_limit
from ..clusters.two_means import Share
from . import leaf_exact
from .newton_step import NewtonProblem

PASSES = 8
RATE = 5.0  # initial rate for rows of length 1 and importance 1, and classes of at least FEW_ROWS rows
FEW_ROWS = 20.0
FASTEST = 12.0  # largest initial rate
LARGEST_RATE = 1e30  # for any length and importance
BIAS_RATE = 0.5
LEAST_P = 4e-3  # classes of a smaller probability are sampled
MOST_SAMPLED = int(1 / LEAST_P) + 16  # most classes of a row that have a slope, its own included
LANES = 16  # scores that a vector instruction handles
MOST_DENSE = 1 << 28  # bytes of the weights of frequent features
SHRINKS = 4  # how often the L1 penalty is applied per pass
CLASSES_A_ROW = 32  # a block has k / CLASSES_A_ROW rows: with few classes the steps of many rows would add up
LARGEST_BLOCK = 64
WORTH_THREADS = 1e6  # additions per block above which several threads are faster than one
PADDING_SCORE = np.float32(-1e30)  # score of a class beyond k


class StepWeights(NamedTuple):
    """Hold the weights while they are learned, laid out as described above."""

    place: Int64s  # int64[F], first weight of each feature
    class_count: Int32s  # int32[F], classes of a rare feature, -1 for frequent ones
    base: Int64s  # int64[1], first weight of the rare features
    owner: Int32s  # int32[...], class of each of their weights, ascending within a feature
    w: Float32s  # float32[...], weights
    bias: Float32s  # float32[K], intercepts
    square: Float32s  # float32[K], sums of the squared slopes of intercepts


class Visits(NamedTuple):
    """Hold the order in which a pass visits the rows."""

    order: Int64s  # int64[n], rows
    draw: Float32s  # float32[n], a random number from 0 to 1 for each visit
    y: Int32s  # int32[n], the class of each row


class SampledSlopes(NamedTuple):
    """Hold, for each row of a block, the classes whose weights it changes, and its slopes in their scores."""

    count: Int64s  # type: ignore[assignment]  # hides tuple.count; int64[block], number of classes of each row
    owner: Int32s  # int32[block, MOST_LISTED], the classes
    slope: Float32s  # float32[block, MOST_LISTED], probability, minus 1 for the row's class


class StepScratch(NamedTuple):
    z: Float32s  # float32[K], scores
    lane: Float32s  # float32[LANES]


# -- kernels


@jit
def _exponentials(z: Float32s, lane: Float32s) -> np.float32:
    """Replace scores `z` (float32[K]) by their exponentials up to a common factor; return their sum."""
    for j in range(LANES):
        lane[j] = PADDING_SCORE
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
def sample_slopes(
    problem: NewtonProblem, table: StepWeights, order: Int64s, draw: Float32s, first: int, low: int, high: int,
    y: Int32s, scratch: StepScratch, output: SampledSlopes,
) -> None:  # fmt: skip
    """Compute the slopes of the rows order[low:high], sampling improbable classes.

    `order` is int64[n], and `draw` float32[n], a random number from 0 to 1 for each visit. The slopes of order[first],
    the block's first row, are at 0 of `output`. `y` is int32[n], class of each row.
    """
    z = scratch.z
    base = table.base[0]
    size = z.shape[0]
    for at in range(low, high):
        r = order[at]
        for c in range(size):
            z[c] = table.bias[c]
        for i in range(problem.row_start[r], problem.row_start[r + 1]):
            f = problem.row_feature[i]
            x = problem.row_value[i]
            p = table.place[f]
            if table.class_count[f] < 0:
                w = table.w[p : p + size]
                for c in range(size):
                    z[c] += x * w[c]
            else:
                for j in range(p, p + table.class_count[f]):
                    z[table.owner[j - base]] += x * table.w[j]
        total = _exponentials(z, scratch.lane)
        inverse = ONE / total
        limit = total * np.float32(LEAST_P)
        own = y[r]
        here = at - first
        skipped_mass = draw[at] * limit
        count = 0
        own_mass = z[own]
        z[own] = ZERO
        for low_c in range(0, size, LANES):
            a = b = c_ = d = ZERO
            for j in range(low_c, low_c + LANES, 4):
                a += z[j]
                b += z[j + 1]
                c_ += z[j + 2]
                d += z[j + 3]
            lane_sum = (a + b) + (c_ + d)
            if skipped_mass + lane_sum < limit:
                skipped_mass += lane_sum
                continue
            for c in range(low_c, low_c + LANES):
                if z[c] > limit:
                    output.owner[here, count] = c
                    output.slope[here, count] = z[c] * inverse
                    count += 1
                else:
                    skipped_mass += z[c]
                    if skipped_mass >= limit:
                        skipped_mass -= limit
                        output.owner[here, count] = c
                        output.slope[here, count] = np.float32(LEAST_P)
                        count += 1
        output.owner[here, count] = own
        output.slope[here, count] = own_mass * inverse - ONE
        output.count[here] = count + 1


@jit
def learn(
    problem: NewtonProblem, table: StepWeights, order: Int64s, low: int, high: int, block_slopes: SampledSlopes,
    slope: Float32s, rate: np.float32, bias_rate: np.float32,
) -> None:  # fmt: skip
    """Update the weights by the slopes of the rows order[low:high]; `slope` is float32[K], 0 before and after."""
    base = table.base[0]
    for at in range(low, high):
        r = order[at]
        here = at - low
        count = block_slopes.count[here]
        c_n = np.float32(problem.weight[r])
        for j in range(count):
            c = block_slopes.owner[here, j]
            g = block_slopes.slope[here, j] * c_n
            slope[c] = g
            if bias_rate > ZERO:
                table.square[c] += g * g
                table.bias[c] -= bias_rate * g / np.float32(math.sqrt(table.square[c]))
        for i in range(problem.row_start[r], problem.row_start[r + 1]):
            f = problem.row_feature[i]
            x = problem.row_value[i] * rate
            p = table.place[f]
            if table.class_count[f] < 0:
                for j in range(count):
                    c = block_slopes.owner[here, j]
                    table.w[p + c] -= x * slope[c]
            else:
                for j in range(p, p + table.class_count[f]):
                    table.w[j] -= x * slope[table.owner[j - base]]
        for j in range(count):
            slope[block_slopes.owner[here, j]] = ZERO


@jit
def learn_sequentially(
    problem: NewtonProblem, table: StepWeights, visits: Visits, low: int, high: int, block: int, scratch: StepScratch,
    block_slopes: SampledSlopes, slope: Float32s, rate: np.float32, bias_rate: np.float32,
) -> None:  # fmt: skip
    """Learn all blocks of visits[low:high] in one thread; the parameters are those of `sample_slopes` and `learn`."""
    order, draw, y = visits
    for first in range(low, high, block):
        last = min(first + block, high)
        sample_slopes(problem, table, order, draw, first, first, last, y, scratch, block_slopes)
        learn(problem, table, order, first, last, block_slopes, slope, rate, bias_rate)


@jit
def shrink(w: Float32s, limit: np.float32) -> None:
    """Move all weights `w` (float32[...]) towards 0 by `limit`, but not beyond 0."""
    for i in range(w.shape[0]):
        w[i] = max(w[i] - limit, ZERO) + min(w[i] + limit, ZERO)


@jit
def load_weights(table: StepWeights, start: Int64s, feature: Int32s, value: Float64s) -> None:
    """Copy the weights of classes, as in `leaf_exact.LeafWeights`, into a table; those without a place are dropped."""
    base = table.base[0]
    for c in range(start.shape[0] - 1):
        for i in range(start[c], start[c + 1]):
            f = feature[i]
            p = table.place[f]
            if table.class_count[f] < 0:
                table.w[p + c] = np.float32(value[i])
            else:
                for j in range(p, p + table.class_count[f]):
                    if table.owner[j - base] == c:
                        table.w[j] = np.float32(value[i])


@jit
def place_rare(problem: NewtonProblem, y: Int32s, base: int, place: Int64s, class_count: Int32s, owner: Int32s) -> int:
    """Set `place`, `class_count` and `owner` of the features whose `class_count` is 0; return their number of weights.

    Their weights begin at `base`. `y` is int32[n], class of each row, ascending.
    """
    used = 0
    for f in range(place.shape[0]):
        if class_count[f] == 0:
            place[f] = base + used
            for i in range(problem.col_start[f], problem.col_start[f + 1]):
                c = y[problem.col_row[i]]
                if class_count[f] == 0 or owner[used - 1] != c:
                    owner[used] = c
                    used += 1
                    class_count[f] += 1
    return used


@jit
def store_weights(table: StepWeights, end: Int64s, feature: Int32s, value: Float64s) -> None:
    """Add to end[c] the number of class c's weights that are not 0, and store them from end[c] on if there is space."""
    base = table.base[0]
    for f in range(table.place.shape[0]):
        p, count = table.place[f], table.class_count[f]
        for j in range(end.shape[0] if count < 0 else count):
            w = table.w[p + j]
            if w != ZERO:
                c = j if count < 0 else table.owner[p - base + j]
                if feature.shape[0] > 0:
                    feature[end[c]] = f
                    value[end[c]] = w
                end[c] += 1


# -- Python


def new_table(problem: NewtonProblem, y: Int32s, bias: Float64s, most_dense: int = MOST_DENSE) -> StepWeights:
    """Return a table with weights 0.

    `y` is int32[n], class of each row, ascending, and `bias` float64[k], initial intercepts. The weights of frequent
    features take at most `most_dense` bytes.
    """
    k = len(bias)
    size = -(-k // LANES) * LANES
    frequency = np.diff(problem.col_start)
    features = len(frequency)
    dense = min(int((frequency > 1).sum()), most_dense // (4 * size))
    rank = np.argsort(-frequency, kind="stable")
    place, class_count = np.empty(features, np.int64), np.zeros(features, np.int32)
    place[rank[:dense]] = np.arange(dense) * size
    class_count[rank[:dense]] = -1
    base = dense * size
    owner = np.empty(int(frequency[rank[dense:]].sum()), np.int32)
    rare = place_rare(problem, y, base, place, class_count, owner)
    padded_bias = np.full(size, PADDING_SCORE, np.float32)
    padded_bias[:k] = bias
    return StepWeights(
        place, class_count, np.array([base]), owner[:rare].copy(), np.zeros(base + rare, np.float32), padded_bias,
        np.ones(size, np.float32),
    )  # fmt: skip


def weights(table: StepWeights, k: int) -> leaf_exact.LeafWeights:
    """Return the weights of a table that are not 0."""
    start = np.zeros(k + 1, np.int64)
    store_weights(table, start[1:], np.empty(0, np.int32), np.empty(0))
    np.cumsum(start, out=start)
    found = leaf_exact.LeafWeights(start, np.empty(start[-1], np.int32), np.empty(start[-1]))
    store_weights(table, start[:-1].copy(), found.feature, found.value)
    return found


def run_serially(job: Callable[..., None], items: Sequence[tuple[Any, ...]]) -> None:
    for item in items:
        job(*item)


def rate_for(n: int, k: int) -> float:
    """Return the initial rate, which is larger if classes have few rows."""
    return min(FASTEST, RATE * math.sqrt(max(1.0, FEW_ROWS * k / max(n, 1))))


def fit(
    problem: NewtonProblem, class_start: Int64s, alpha: float, initial: leaf_exact.LeafWeights, bias: Float64s,
    intercept: bool = True, passes: int = PASSES, seed: int = 0, share: Share = run_serially,
    stopped: Callable[[], bool] = lambda: False, l2: float = 0.0,
) -> leaf_exact.LeafWeights:  # fmt: skip
    """Fit a softmax with the L1 penalty alpha and the penalty l2 / 2 |W|^2, from initial weights; return its weights.

    Parameters
    ----------
    class_start : int64[k + 1], class c has the rows class_start[c] .. class_start[c + 1] - 1
    bias : float64[k], initial intercepts, written
    intercept : whether intercepts may change
    share : `share(job, items)` calls `job(*item)` for all items, on any number of threads
    stopped : called several times per pass; True ends the fit
    """
    n, k = len(problem.weight), len(bias)
    y = np.repeat(np.arange(k), np.diff(class_start)).astype(np.int32)
    table = new_table(problem, y, bias)
    load_weights(table, initial.start, initial.feature, initial.value)
    size = len(table.bias)
    block = max(1, min(LARGEST_BLOCK, k // CLASSES_A_ROW))
    gradients = SampledSlopes(
        np.zeros(block, np.int64),
        np.zeros((block, MOST_SAMPLED), np.int32),
        np.zeros((block, MOST_SAMPLED), np.float32),
    )
    slope = np.zeros(size, np.float32)
    width = len(problem.row_feature) / max(n, 1)
    workers = 1 if share is run_serially or block * size * (width + 1) < WORTH_THREADS else thread_limit.processors()
    scratch = [StepScratch(np.empty(size, np.float32), np.empty(LANES, np.float32)) for _ in range(workers)]
    mean = float(problem.weight.mean())
    squared_length = float((problem.row_value.astype(np.float64) ** 2).sum()) / max(n, 1)  # mean squared length
    rate = min(rate_for(n, k) / (mean * max(squared_length, 1e-12)), LARGEST_RATE)
    bias_rate = np.float32(BIAS_RATE if intercept else 0.0)
    rng = np.random.default_rng(seed)
    piece = -(-max(1, n // SHRINKS) // block) * block
    pieces = [(low, min(low + piece, n)) for low in range(0, n, piece)]
    for number in range(passes):
        order, draw = rng.permutation(n), rng.random(n, np.float32)
        for j, (low, high) in enumerate(pieces):
            current_rate = rate * (1.0 - (number + j / len(pieces)) / passes)
            if workers == 1:
                visits = Visits(order, draw, y)
                learn_sequentially(
                    problem, table, visits, low, high, block, scratch[0], gradients, slope, np.float32(current_rate),
                    bias_rate,
                )  # fmt: skip
            else:
                for first in range(low, high, block):
                    last = min(first + block, high)
                    edges = [first + (last - first) * t // workers for t in range(workers + 1)]
                    parts = [(first, *edges[t : t + 2], y, scratch[t], gradients) for t in range(workers)]
                    share(sample_slopes, [(problem, table, order, draw, *part) for part in parts])
                    learn(problem, table, order, first, last, gradients, slope, np.float32(current_rate), bias_rate)
            shrink(table.w, np.float32(min(current_rate * alpha * (high - low) / n, LARGEST)))
            if l2:
                table.w[:] /= np.float32(min(1.0 + current_rate * l2 * (high - low) / n, LARGEST))
            if stopped():
                break
        if stopped():
            break
    bias[:] = table.bias[:k]
    return weights(table, k)
