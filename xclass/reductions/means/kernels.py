"""Score dense rows against all classes, and take the steps of the softmax over the nearest ones.

Source    See `reduction`.
Cost      `best` multiplies n rows of d numbers with K classes at about 60 % of the speed of OpenBLAS, and needs no
          array of n K scores: K d multiplications a row. `learn` takes (R + 1) C steps of O(d) a row.
Names     n rows | d columns | K classes | C classes that are compared in a step | R replayed rows of a row.
Idea      A sum over columns is formed in the order of the columns, for several classes at once, one in each lane of a
          vector register. The result so depends neither on the number of rows of a call nor on that of threads. For
          this the classes are packed in blocks of LANES, column by column.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ...array_types import AnyArray, Bools, Float32s, Float64s, Int, Int32s, Int64s
from ...kernels import fast_math, rng
from ...kernels.constants import GOLDEN, ONE, ZERO
from ...kernels.jit import bare, jit
from ..core import seen_labels
from ..core.seen_labels import Seen

LANES = 128  # classes of a block
REPLAYS = 8  # R
OFFSET_RATE = np.float32(0.3)  # rate of the constants of the correction; that of its weights is 1
TILE = 512  # columns of a product that are computed together
LEAST_SCORE = np.float32(-3e38)
FEWEST = np.float32(1e-4)  # steps whose error is smaller are left out
LARGEST_SQUARES = np.float32(2.0**120)  # of `Classes.squares`


class Classes(NamedTuple):
    """Hold what is learned of each class, in the current space; classes are in the order first learned."""

    mean: Float32s  # float32[capacity, d], its shrunken mean A
    bias: Float32s  # float32[capacity], -|A|**2 / 2
    step: Float32s  # float32[capacity, d], weights V of the correction
    offset: Float32s  # float32[capacity], the constant v of the correction
    squares: Float32s  # float32[capacity], sum of squared gradients of V
    weight: Float64s  # float64[capacity], weight of its examples
    prior: Float32s  # float32[capacity], logarithm of its frequency when the last block of rows was finished


class Packed(NamedTuple):
    """Hold the scores of classes as functions of a row, for `best`."""

    weight: Float32s  # float32[blocks, columns, LANES], one block of classes after the other
    bias: Float32s  # float32[blocks * LANES], LEAST_SCORE beyond the last class


class Ring(NamedTuple):
    """Hold the latest rows, which are learned from again."""

    z: Float32s  # float32[size, d], rows in the current space
    own: Int32s  # int32[size], class of each
    near: Int32s  # int32[size, C], classes that were nearest, -1 beyond the last


class ScoreFactors(NamedTuple):
    """Hold the factors of the parts of a score."""

    sharpness: np.float32  # 1 / tau, factor of the scores of the means
    omega: np.float32  # factor of the correction
    frequency: np.float32  # factor of the logarithms of frequencies
    means_sharpness: np.float32  # factor of the scores of the means alone, frequencies included


@bare
def number_labels(seen: Seen, label: Int64s, learns: Bools, own: Int32s) -> int:
    """Number the labels of examples, and add those that are learned for the first time.

    `own` (int32[n]) gets the numbers, -1 for others. Return n, or the first example whose label finds no room.
    """
    n: int = label.shape[0]
    for i in range(n):
        own[i] = seen_labels.number_of(seen, label[i], learns[i])
        if own[i] == seen_labels.NO_ROOM:
            return i
    return n


@bare
def product(a: AnyArray, b: AnyArray, begin: int, end: int, c: AnyArray) -> None:
    """Add the product of rows [begin, end) of a, [n, d], and b, [d, m], to those rows of c, [n, m]."""
    d, m = b.shape
    whole = d - d % 8
    for low in range(0, m, TILE):
        high = min(low + TILE, m)
        for k in range(0, whole, 8):
            b0, b1, b2, b3 = b[k, low:high], b[k + 1, low:high], b[k + 2, low:high], b[k + 3, low:high]
            b4, b5, b6, b7 = b[k + 4, low:high], b[k + 5, low:high], b[k + 6, low:high], b[k + 7, low:high]
            for i in range(begin, end):
                row = c[i, low:high]
                x0, x1, x2, x3 = a[i, k], a[i, k + 1], a[i, k + 2], a[i, k + 3]
                x4, x5, x6, x7 = a[i, k + 4], a[i, k + 5], a[i, k + 6], a[i, k + 7]
                for j in range(high - low):
                    s = row[j] + x0 * b0[j] + x1 * b1[j] + x2 * b2[j] + x3 * b3[j]
                    row[j] = s + x4 * b4[j] + x5 * b5[j] + x6 * b6[j] + x7 * b7[j]
        for k in range(whole, d):
            b0 = b[k, low:high]
            for i in range(begin, end):
                row, x0 = c[i, low:high], a[i, k]
                for j in range(high - low):
                    row[j] += x0 * b0[j]


@bare
def limit(z: Float32s, most: np.float32) -> None:
    """Limit all numbers of [n, d], NaN too, to -most..most, so that squares of rows far outside the data are finite."""
    for i in range(z.shape[0]):
        for k in range(z.shape[1]):
            if not abs(z[i, k]) <= most:
                z[i, k] = most if z[i, k] > ZERO else -most


@bare
def pack(classes: Classes, size: int, settings: ScoreFactors, begin: int, end: int, packed: Packed) -> None:
    """Pack the scores of the classes in the blocks [begin, end), of the first columns if there is room for few."""
    columns = packed.weight.shape[1]
    for block in range(begin, end):
        for j in range(LANES):
            c = block * LANES + j
            weight = packed.weight[block]
            if c >= size:
                packed.bias[c] = LEAST_SCORE
                for k in range(columns):
                    weight[k, j] = ZERO
                continue
            bias = classes.bias[c]
            if columns < classes.mean.shape[1]:
                bias = ZERO
                for k in range(columns):
                    bias -= classes.mean[c, k] * classes.mean[c, k] / np.float32(2)
            packed.bias[c] = bias * settings.sharpness + settings.omega * classes.offset[c]
            packed.bias[c] += settings.frequency * classes.prior[c]
            for k in range(columns):
                weight[k, j] = classes.mean[c, k] * settings.sharpness + settings.omega * classes.step[c, k]


@bare
def _insert(near: Int32s, score: Float32s, c: Int, new: np.float32) -> None:
    """Insert a class into the sorted list of the best, whose last it beats; the earlier wins a tie."""
    at = near.shape[0] - 1
    while at > 0 and score[at - 1] < new:
        score[at] = score[at - 1]
        near[at] = near[at - 1]
        at -= 1
    score[at] = new
    near[at] = c


@jit
def best(
    z: Float32s, own: Int32s, packed: Packed, begin: int, end: int, sums: bool, near: Int32s, score: Float32s,
    own_score: Float32s, log_sum: Float64s,
) -> None:  # fmt: skip
    """Find the best classes of the rows [begin, end), their scores and the logarithm of the sum of exp(score) of all.

    Parameters
    ----------
    z : float32[n, d], rows in the space of the classes
    own : int32[n], the class whose score is wanted, -1 for none
    sums : whether `log_sum` is wanted
    near, score : int32[n, k] and float32[n, k], the best classes in descending order, -1 beyond the last; written
    own_score, log_sum : float32[n] and float64[n], LEAST_SCORE for a class that is not packed; written
    """
    columns, k_best = packed.weight.shape[1], near.shape[1]
    buffer, power = np.empty((2, LANES), np.float32), np.empty(LANES, np.float32)
    whole, total = columns - columns % 4, np.zeros(end - begin)
    near[begin:end] = -1
    score[begin:end] = LEAST_SCORE
    own_score[begin:end] = LEAST_SCORE
    top = np.full(end - begin, LEAST_SCORE)  # highest score before each block of classes
    c0, c1 = buffer[0], buffer[1]
    for block in range(packed.weight.shape[0]):
        weight, bias = packed.weight[block], packed.bias[block * LANES : (block + 1) * LANES]
        for first in range(begin, end, 2):
            second = min(first + 1, end - 1)
            for j in range(LANES):  # numba takes longest to compile assignments of arrays
                c0[j], c1[j] = bias[j], bias[j]
            for k in range(0, whole, 4):
                b0, b1, b2, b3 = weight[k], weight[k + 1], weight[k + 2], weight[k + 3]
                x0, x1, x2, x3 = z[first, k], z[first, k + 1], z[first, k + 2], z[first, k + 3]
                y0, y1, y2, y3 = z[second, k], z[second, k + 1], z[second, k + 2], z[second, k + 3]
                for j in range(LANES):
                    c0[j] = c0[j] + x0 * b0[j] + x1 * b1[j] + x2 * b2[j] + x3 * b3[j]
                    c1[j] = c1[j] + y0 * b0[j] + y1 * b1[j] + y2 * b2[j] + y3 * b3[j]
            for k in range(whole, columns):
                b0, x0, y0 = weight[k], z[first, k], z[second, k]
                for j in range(LANES):
                    c0[j] += x0 * b0[j]
                    c1[j] += y0 * b0[j]
            for i in range(first, second + 1):
                of_row, at = buffer[i - first], i - begin
                if own[i] // LANES == block:
                    own_score[i] = of_row[own[i] % LANES]
                worst, above = score[i, k_best - 1], 0
                for j in range(LANES):
                    above += of_row[j] > worst
                if above > 0:
                    for j in range(LANES):
                        if of_row[j] > score[i, k_best - 1]:
                            _insert(near[i], score[i], block * LANES + j, of_row[j])
                if sums:
                    if score[i, 0] > top[at]:
                        total[at] *= math.exp(max(np.float64(top[at]) - score[i, 0], -700.0))
                        top[at] = score[i, 0]
                    for j in range(LANES):
                        power[j] = fast_math.exp32(of_row[j] - top[at])
                    for j in range(LANES):
                        total[at] += power[j] if of_row[j] > LEAST_SCORE else ZERO
    if sums:
        for i in range(begin, end):
            log_sum[i] = top[i - begin] + math.log(max(total[i - begin], 1e-300))


@bare
def all_scores(z: Float32s, packed: Packed, begin: int, end: int, scores: Float32s) -> None:
    """Compute the scores of all classes, float32[n, K], for the rows [begin, end), in the order of sums of `best`."""
    columns, size = packed.weight.shape[1], scores.shape[1]
    for block in range(packed.weight.shape[0]):
        weight, first = packed.weight[block], block * LANES
        count = min(LANES, size - first)
        for i in range(begin, end):
            row = scores[i, first : first + count]
            for j in range(count):
                row[j] = packed.bias[first + j]
            for k in range(columns):
                x = z[i, k]
                for j in range(count):
                    row[j] += x * weight[k, j]


@bare
def dots(z: Float32s, a: Float32s, v: Float32s) -> tuple[np.float32, np.float32]:
    """Return the products of a row with two others, each summed in eight lanes."""
    s0, s1, s2, s3, s4, s5, s6, s7 = ZERO, ZERO, ZERO, ZERO, ZERO, ZERO, ZERO, ZERO
    t0, t1, t2, t3, t4, t5, t6, t7 = ZERO, ZERO, ZERO, ZERO, ZERO, ZERO, ZERO, ZERO
    whole = z.shape[0] - z.shape[0] % 8
    for k in range(0, whole, 8):
        s0 += z[k] * a[k]
        s1 += z[k + 1] * a[k + 1]
        s2 += z[k + 2] * a[k + 2]
        s3 += z[k + 3] * a[k + 3]
        s4 += z[k + 4] * a[k + 4]
        s5 += z[k + 5] * a[k + 5]
        s6 += z[k + 6] * a[k + 6]
        s7 += z[k + 7] * a[k + 7]
        t0 += z[k] * v[k]
        t1 += z[k + 1] * v[k + 1]
        t2 += z[k + 2] * v[k + 2]
        t3 += z[k + 3] * v[k + 3]
        t4 += z[k + 4] * v[k + 4]
        t5 += z[k + 5] * v[k + 5]
        t6 += z[k + 6] * v[k + 6]
        t7 += z[k + 7] * v[k + 7]
    for k in range(whole, z.shape[0]):
        s0 += z[k] * a[k]
        t0 += z[k] * v[k]
    return ((s0 + s4) + (s2 + s6)) + ((s1 + s5) + (s3 + s7)), ((t0 + t4) + (t2 + t6)) + ((t1 + t5) + (t3 + t7))


@bare
def parts(z: Float32s, classes: Classes, c: Int) -> tuple[np.float32, np.float32]:
    """Return the scores of class c by its mean and by its correction, without factors."""
    by_mean, correction = dots(z, classes.mean[c], classes.step[c])
    return by_mean + classes.bias[c], correction + classes.offset[c]


@jit
def rescore(
    z: Float32s, own: Int32s, classes: Classes, size: int, settings: ScoreFactors, begin: int, end: int, near: Int32s,
    score: Float32s, own_score: Float32s, log_sum: Float64s,
) -> None:  # fmt: skip
    """Score the classes in `near` by all columns, and sort them again; see `best`.

    The sum of the powers is that of these classes and the class of the row.
    """
    for i in range(begin, end):
        members, total, own_score[i] = 0, 0.0, LEAST_SCORE
        for r in range(near.shape[1]):
            c = near[i, r]
            if c >= 0:
                by_mean, correction = parts(z[i], classes, c)
                new = by_mean * settings.sharpness + settings.omega * correction
                new += settings.frequency * classes.prior[c]
                score[i, r] = LEAST_SCORE
                _insert(near[i, : r + 1], score[i, : r + 1], c, new)
                members += 1
                if c == own[i]:
                    own_score[i] = new
        for r in range(members):
            total += math.exp(score[i, r] - score[i, 0])
        if 0 <= own[i] < size and own_score[i] == LEAST_SCORE:
            by_mean, correction = parts(z[i], classes, own[i])
            own_score[i] = by_mean * settings.sharpness + settings.omega * correction
            own_score[i] += settings.frequency * classes.prior[own[i]]
            total += math.exp(min(0.0, np.float64(own_score[i]) - score[i, 0]))
        log_sum[i] = score[i, 0] + math.log(max(total, 1e-300))


@bare
def _means_slope(mean_score: Float32s, prior: Float32s, compared: Int32s, own: int, sharpness: np.float32) -> float:
    """Return the slope of the log loss of the means alone by the logarithm of their tau, 1 / `sharpness`."""
    highest = LEAST_SCORE
    for r in range(len(mean_score)):
        highest = max(highest, (mean_score[r] + prior[compared[r]]) * sharpness)
    total, mean, of_own = ZERO, ZERO, ZERO
    for r in range(len(mean_score)):
        score = (mean_score[r] + prior[compared[r]]) * sharpness - highest
        power = fast_math.exp32(score)
        total += power
        mean += power * score
        of_own = score if r == own else of_own
    return np.float64(of_own) - np.float64(mean / total)


@jit
def _step(
    z: Float32s, y: Int, weight: np.float32, near: Int32s, classes: Classes, settings: ScoreFactors, compared: Int32s,
    numbers: Float32s, sums: Float64s,
) -> None:  # fmt: skip
    """Take a step of the softmax over the nearest classes of a row and its own.

    Added to `sums` (float64[5], or [0] for a replayed row) are the slopes of the loss by log tau and omega, the hits of
    means and sum, and the slope of the loss of the means alone by their log tau. `compared` is int32[C + 1] and
    `numbers` float32[3, C + 1], for the classes.
    """
    score, mean_score, correction = numbers
    size, own = 0, -1
    for c in near:
        if c >= 0:
            own = size if c == y else own
            compared[size] = c
            size += 1
    if own < 0:
        own = size
        compared[size] = y
        size += 1
    first, first_by_mean = 0, 0
    for r in range(size):
        c = compared[r]
        mean_score[r], correction[r] = parts(z, classes, c)
        score[r] = mean_score[r] * settings.sharpness + settings.omega * correction[r] + classes.prior[c]
        first = r if score[r] > score[first] else first
        if mean_score[r] + classes.prior[c] > mean_score[first_by_mean] + classes.prior[compared[first_by_mean]]:
            first_by_mean = r
    highest, total = score[first], ZERO
    for r in range(size):
        score[r] = fast_math.exp32(score[r] - highest)
        total += score[r]
    by_tau, by_omega, q = 0.0, 0.0, ZERO
    for r in range(size):
        score[r] = (ONE if r == own else ZERO) - score[r] / total
        by_tau += np.float64(score[r]) * mean_score[r] * settings.sharpness
        by_omega -= np.float64(score[r]) * correction[r]
    if sums.shape[0] > 0:
        sums[4] += weight * _means_slope(mean_score[:size], classes.prior, compared, own, settings.means_sharpness)
        sums[0] += weight * by_tau
        sums[1] += weight * by_omega
        sums[2] += weight * np.float64(first_by_mean == own)
        sums[3] += weight * np.float64(first == own)
    for k in range(z.shape[0]):
        q += z[k] * z[k]
    q = max(q, ONE)  # so that a row near 0 takes no long steps
    for r in range(size):
        error = weight * score[r]
        if abs(error) > FEWEST:
            c = compared[r]
            classes.squares[c] = min(classes.squares[c] + error * error * q, LARGEST_SQUARES)
            h = error / math.sqrt(classes.squares[c] + q)
            row = classes.step[c]
            for k in range(z.shape[0]):
                row[k] += h * z[k]
            classes.offset[c] += OFFSET_RATE * h


@jit
def learn(
    z: Float32s, own: Int32s, weight: Float32s, near: Int32s, classes: Classes, settings: ScoreFactors, ring: Ring,
    filled: int, draws: int, sums: Float64s,
) -> None:  # fmt: skip
    """Take the steps of rows and, after each, of rows that are drawn from the `filled` rows of the ring.

    `near` is int32[n, C], `sums` as in `_step`, and `draws` how many rows were drawn before. A row of a class without
    examples takes no step.
    """
    compared = np.empty(near.shape[1] + 1, np.int32)
    numbers = np.empty((3, near.shape[1] + 1), np.float32)
    for i in range(len(own)):
        if classes.weight[own[i]] > 0:
            _step(z[i], own[i], weight[i], near[i], classes, settings, compared, numbers, sums)
        for _ in range(REPLAYS if filled > 0 else 0):
            draws += 1
            at = np.int64(rng.mix(np.uint64(draws) * GOLDEN) % np.uint64(filled))
            _step(ring.z[at], ring.own[at], ONE, ring.near[at], classes, settings, compared, numbers, sums[:0])


@bare
def count(z: Float32s, own: Int32s, weight: Float32s, psi: Float32s, classes: Classes) -> None:
    """Add rows to the means of their classes, psi n / (psi n + 1) times the mean of the rows in each column."""
    for i in range(len(own)):
        c = own[i]
        classes.weight[c] += np.float64(weight[i])
        n, square, mean = np.float32(classes.weight[c]), ZERO, classes.mean[c]
        for k in range(z.shape[1]):
            mean[k] += psi[k] * weight[i] / (psi[k] * n + ONE) * (z[i, k] - mean[k])
            square += mean[k] * mean[k]
        classes.bias[c] = -square / np.float32(2)


@bare
def set_biases(classes: Classes, size: int) -> None:
    """Set the biases of the classes from their means, by the sums that `count` forms."""
    for c in range(size):
        square = ZERO
        for k in range(classes.mean.shape[1]):
            square += classes.mean[c, k] * classes.mean[c, k]
        classes.bias[c] = -square / np.float32(2)
