"""One scorer per class decides among the few classes that trees propose, and says how likely each is.

Idea      Trees of probabilities are good at naming a few classes the label is one of, and less good at choosing
          between them: their regressors separate sets of classes, none of them two given ones. Here each class has a
          scorer w_y, as in one-against-all, but only the proposed ones are asked and taught.
Model     p(y|x, y proposed) = softmax over the proposed of  w_y . x + v . o(y), where o(y) are the mean and the largest
          of the trees' log probabilities of y (a tree that does not propose y counts with the least it does propose)
          and the share of trees that propose it. The label is none of the proposed with probability
          1 / (1 + e**-(A r + B)), r the log odds of what the trees leave for other classes. w, v, A and B are learned.
Learners  by the gradient of log loss on proposals made before the example was learned from: AdaGrad with DELTA added to
          the sum of squares, so that the first steps of a weight are small where the slope is; STEPS steps per
          example, which one pass needs.
Figures   before steps of the trees ended at the label, error % on the last tenth of train, clinc150 / reuters /
          spelling, 4 trees with 8 candidates each:
          DELTA 0: 5.7 / 16.3 / 11.7 (5 candidates); with DELTA 5.4 / 15.2 / 11.1; o(y) of three in place of the mean
          4.9 / 15.3 / 11.0; STEPS 2 in place of 1: 5.2 / 15.2 / 10.8. One logistic regression per class in place of
          the softmax: 7.3 / 18.1 / 16.0 with one tree, softmax 6.8 / 17.9 / 14.0.
          Since then, by candidates of a tree and the least share of its best they have, spelling / wordnet / reuters,
          and seconds of wordnet:
          10 and .01  10.8 / 69.0 / 14.4, 11.8;  8 and .05  11.0 / 69.1 / 14.2, 9.6;  6 and .03  11.0 / 69.4 / 14.3, 8.1
          10 and .1   11.1 / 68.9 / 14.3, 10.7. One tree has to propose more itself: next tokens of Python with crossed
          features, 10 and .01 60.2, 8 and .05 61.0 (test).
Cost      O(s C) for C proposed classes and s features.
Slots     of adagrad, each found by a hash of (feature, class); the lines are asked for before they are read.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from ...array_types import Bools, Float32s, Float64s, Int64s, UInt64s
from ...binary import adagrad
from ...kernels import fast_math, intrinsics, top_k
from ...kernels.constants import GOLDEN, SPREAD, ZERO
from ...kernels.jit import jit
from ...model import stored_arrays
from ...model.stored_arrays import Stored
from ..core import probabilities

DELTA = np.float32(0.003)
STILL = 1e-4  # slopes less than this teach nothing
FIRST_SUM = 0.01  # of squared slopes, for v
STEP = 0.1  # learning rate of v, A and B
STEPS = 2
MEAN, LARGEST, SUPPORT, SLOPE, SHIFT, NUMBERS = range(6)  # v, A and B in `Scorers.state`


class Scorers(NamedTuple):
    """The scorers' table, and what is learned beside."""

    weights: adagrad.Weights
    state: Float64s  # float64[2, NUMBERS], values and sums of squared slopes


class Scratch(NamedTuple):
    """Rows of one thread, for at most C candidates."""

    h: UInt64s  # uint64[s]
    x: Float32s  # float32[s]
    at: Int64s  # int64[C * s]
    offset: Float64s  # float64[C, 3], what the trees say: o
    share: Float64s  # float64[C], score, then probability among the candidates


class Proposed(NamedTuple):
    """What the trees propose for n examples."""

    top: Int64s  # int64[trees, n, k], labels; 0 where there are fewer
    top_p: Float64s  # float64[trees, n, k]
    p: Float64s  # float64[trees, n], probability of the example's label
    candidate: Int64s  # int64[n, C], all that a tree proposes, 0 behind the last


class Ranked(NamedTuple):
    """What a batch of n examples found."""

    top: Int64s  # int64[n, k], most probable labels; 0 where there are fewer
    top_p: Float64s  # float64[n, k]
    p: Float64s  # float64[n], probability of the label, 0 where it is new
    inside: Bools  # bool[n], the label is proposed


def new_scorers(bits: int, kind: int, rate: float) -> Scorers:
    """Scorers that change nothing of the trees' order."""
    state = np.zeros((2, NUMBERS))
    state[0, [MEAN, SLOPE]] = 1.0
    state[1] = FIRST_SUM
    state[1, [SLOPE, SHIFT]] = 1.0
    return Scorers(adagrad.new_weights(bits, kind, rate), state)


def scratch(batch, candidates: int) -> Scratch:
    """Rows for one thread."""
    longest = int(np.diff(batch.start).max(initial=0))
    return Scratch(
        np.empty(longest, np.uint64), np.empty(longest, np.float32), np.empty(longest * candidates, np.int64),
        np.empty((candidates, 3)), np.empty(candidates),
    )  # fmt: skip


def arrays(scorers: Scorers) -> dict[str, Stored]:
    """What a model keeps."""
    return {"scorers.state": scorers.state, **adagrad.weights_arrays("scorers", scorers.weights)}


def restore(scorers: Scorers, found: Mapping[str, Stored]) -> None:
    """Fill new scorers with what `arrays` gave; weights may be any numbers, since `_score` looks at them first."""
    state = stored_arrays.take("scorers.state", found, np.float64, (2, NUMBERS))
    most = sys.float_info.max
    stored_arrays.check_range("scorers.state", state[0], -most, most)
    stored_arrays.check_range("scorers.state", state[1], 0, most)
    scorers.state[:] = state
    adagrad.restore_weights("scorers", scorers.weights, found)


def rescaled_listing(listing: probabilities.Listing, ranked: Ranked) -> probabilities.Listing:
    """Lists of all labels as the trees see them, with what the scorers say of those proposed.

    What these leave goes to the others as the trees share it out, or to 0 where there are no others.
    """
    p = listing.scores.astype(np.float64)
    for i in range(len(ranked.top)):
        begin, end = listing.start[i], listing.start[i + 1]
        here = p[begin:end]
        size = np.count_nonzero(ranked.top[i])
        if size == 0:
            continue
        at = np.searchsorted(listing.labels[begin : end - 1], ranked.top[i, :size])
        here[at] = 0.0
        rest = max(0.0, 1.0 - ranked.top_p[i].sum())
        others = here[:-1].sum()
        here *= rest / others if others > 0 else 0.0
        here[-1] = 0.0 if others > 0 else rest
        here[at] = ranked.top_p[i, :size]
    return listing._replace(scores=p.astype(np.float32))


# -- kernels


@jit
def _slot(weights, feature, label):
    """Where in `flat` the weight of a feature in a class lies."""
    z = (feature ^ (np.uint64(label) * SPREAD)) * GOLDEN
    return np.int64((z >> weights.shift) * np.uint64(2))


@jit
def _locate(weights, rows, count, candidate):
    """Find all weights of an example and ask for their cache lines; return the number of candidates."""
    size = 0
    while size < candidate.shape[0] and candidate[size] > 0:
        for f in range(count):
            s = _slot(weights, rows.h[f], candidate[size])
            rows.at[size * count + f] = s
            intrinsics.prefetch(weights.flat, s)
        size += 1
    return size


@jit
def _proposed(top, top_p, i, candidate, size, offset):
    """Set what the trees say of the candidates; return what all trees together leave for other classes."""
    trees, _, k = top.shape
    rest = 1.0
    for c in range(size):
        offset[c, MEAN] = 0.0
        offset[c, LARGEST] = -1e300
        offset[c, SUPPORT] = 0.0
    for t in range(trees):
        least = 1.0
        for j in range(k):
            if top[t, i, j] > 0:
                least = top_p[t, i, j]
                rest -= least / trees
        least = math.log(max(least, 1e-9))
        for c in range(size):
            found = least
            for j in range(k):
                if top[t, i, j] == candidate[c]:
                    found = math.log(max(top_p[t, i, j], 1e-9))
                    offset[c, SUPPORT] += 1.0 / trees
            offset[c, MEAN] += found / trees
            offset[c, LARGEST] = max(offset[c, LARGEST], found)
    return min(max(rest, 1e-6), 1.0 - 1e-6)


@jit
def _score(scorers, rows, count, size):
    """`rows.share` = probability of each candidate if the label is one of them."""
    weights, state = scorers
    highest = -1e300
    for c in range(size):
        s = ZERO
        for f in range(count):
            s += weights.flat[rows.at[c * count + f]] * rows.x[f]
        if not math.isfinite(s):
            s = ZERO
        rows.share[c] = np.float64(s)
        for v in range(3):
            rows.share[c] += state[0, v] * rows.offset[c, v]
        highest = max(highest, rows.share[c])
    total = 0.0
    for c in range(size):
        rows.share[c] = fast_math.exp(max(rows.share[c] - highest, -700.0))
        total += rows.share[c]
    for c in range(size):
        rows.share[c] /= total


@jit
def _update(weights, rows, count, c, slope, weight):
    """One AdaGrad step of a scorer.

    Not by `adagrad.find_rates` and `move`: DELTA is added under the root, and squares are multiplied in another order.
    """
    slope = np.float32(slope)
    square = weight * slope * slope
    step = weights.rate * weight * slope
    for f in range(count):
        a = rows.at[c * count + f]
        x = rows.x[f]
        g = weights.flat[a + 1] + square * x * x
        weights.flat[a + 1] = g
        weights.flat[a] -= step * x / np.float32(math.sqrt(g + DELTA))


@jit
def _adapt(state, which, slope, weight):
    """One AdaGrad step of one of v, A and B."""
    state[1, which] += weight * slope * slope
    state[0, which] -= STEP * weight * slope / math.sqrt(state[1, which])


@jit
def _learn(scorers, rows, count, size, truth, weight):
    """Teach all candidates' scorers, and v."""
    for turn in range(STEPS):
        if turn > 0:
            _score(scorers, rows, count, size)
        for c in range(size):
            slope = rows.share[c] - (1.0 if c == truth else 0.0)
            if abs(slope) >= STILL:
                _update(scorers.weights, rows, count, c, slope, weight)
        if turn == 0:
            for v in range(3):
                slope = -rows.offset[truth, v]
                for c in range(size):
                    slope += rows.share[c] * rows.offset[c, v]
                _adapt(scorers.state, v, slope, np.float64(weight))


@jit
def rank(scorers, unit, batch, label, learns, begin, end, proposed, rows, found):
    """Examples begin..end-1: choose among the candidates, then learn."""
    weights, state = scorers
    top, top_p, tree_p, candidate = proposed
    trees = top.shape[0]
    for i in range(begin, end):
        y = label[i]
        count = adagrad.load(batch, i, unit, rows.h, rows.x)
        size = _locate(weights, rows, count, candidate[i])
        if size == 0:
            continue
        rest = _proposed(top, top_p, i, candidate[i], size, rows.offset)
        truth = -1
        for c in range(size):
            if candidate[i, c] == y:
                truth = c
        _score(scorers, rows, count, size)
        odds = math.log(rest / (1.0 - rest))
        z = min(max(state[0, SLOPE] * odds + state[0, SHIFT], -30.0), 30.0)
        outside = 1.0 / (1.0 + fast_math.exp(-z))
        found.inside[i] = truth >= 0
        if truth >= 0:
            found.p[i] = (1.0 - outside) * rows.share[truth]
        else:
            mean = 0.0
            for t in range(trees):
                mean += tree_p[t, i] / trees
            found.p[i] = outside * min(mean / rest, 1.0)
        best, best_p = found.top[i], found.top_p[i]
        filled = 0
        for c in range(size):
            filled = top_k.insert(best, best_p, filled, candidate[i, c], (1.0 - outside) * rows.share[c])
        if not learns[i]:
            continue
        weight = batch.weight[i]
        slope = outside - (0.0 if truth >= 0 else 1.0)
        _adapt(state, SLOPE, slope * odds, np.float64(weight))
        _adapt(state, SHIFT, slope, np.float64(weight))
        if truth >= 0:
            _learn(scorers, rows, count, size, truth, weight)
