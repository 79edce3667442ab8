"""Rerank the classes that trees propose by one scorer per class, and estimate their probabilities.

Idea      Conditional probability trees are good at proposing a few classes that include the label, and worse at
          choosing among them: their regressors separate sets of classes, not two given classes. Here each class has a
          scorer w_y, as in one-against-all, but only the scorers of proposed classes are evaluated and trained.
          p(y|x, y proposed) = softmax over the proposed classes of  w_y . x + v . o(y), where o(y) are the mean and the
          largest of the trees' log probabilities of y (a tree that does not propose y counts with the least that it
          proposes) and the share of trees that propose it. The probability that the label is not proposed is
          1 / (1 + e**-(A r + B)), where r are the log odds of the probability that the trees leave to other classes.
Source    This project's own. w, v, A and B minimise the log loss by AdaGrad, on proposals made before the trees learn
          the example. DELTA is added to a weight's sum of squared slopes, so that its first steps are small if its
          slope is small. Each example updates w STEPS times, because one pass would otherwise be too short.
          docs/defaults.md contains the measurements.
Cost      O(s C) for C proposed classes and s features.
Names     y class | c index of a candidate | o(y) features of a candidate from the trees (`Scratch.offset`) |
          w weights of a scorer | v, A, B parameters that all classes share
Differs   from one-against-all: the scorers of classes that are not proposed learn nothing from an example.

The weights are slots of `adagrad`, found by a hash of feature and class. Their cache lines are prefetched.
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
from ...kernels.jit import bare, jit
from ...model import stored_arrays
from ...model.stored_arrays import Stored
from ..core import probabilities

DELTA = np.float32(0.003)
LEAST_SLOPE = 1e-4  # slopes smaller than this are skipped
FIRST_SUM = 0.01  # initial sum of squared slopes of v
STEP = 0.1  # learning rate of v, A and B
STEPS = 2  # updates of the scorers per example
MEAN, LARGEST, SUPPORT, SLOPE, SHIFT, NUMBERS = range(6)  # indices into `Scorers.state`: v (three), A and B


class Scorers(NamedTuple):
    """Hold the weight table of the scorers and the shared parameters."""

    weights: adagrad.Weights
    state: Float64s  # float64[2, NUMBERS], v, A and B, and their sums of squared slopes


class Scratch(NamedTuple):
    """Provide buffers for one thread and up to C candidates."""

    h: UInt64s  # uint64[s]
    x: Float32s  # float32[s]
    at: Int64s  # int64[C * s]
    offset: Float64s  # float64[C, 3], o(y) of each candidate
    share: Float64s  # float64[C], scores, then probabilities among the candidates


class Proposed(NamedTuple):
    """Hold the proposals of the trees for n examples."""

    top: Int64s  # int64[trees, n, k], labels, then 0
    top_p: Float64s  # float64[trees, n, k]
    p: Float64s  # float64[trees, n], probability of the example's label
    candidate: Int64s  # int64[n, C], distinct labels of all trees, then 0


class Ranked(NamedTuple):
    """Hold the results for a batch of n examples."""

    top: Int64s  # int64[n, k], most probable labels, then 0
    top_p: Float64s  # float64[n, k], their probabilities
    p: Float64s  # float64[n], probability of the label, 0 if it is new
    inside: Bools  # bool[n], whether the label is proposed


def new_scorers(bits: int, kind: int, rate: float) -> Scorers:
    """Return untrained scorers, with which candidates keep the order in which the trees rank them."""
    state = np.zeros((2, NUMBERS))
    state[0, [MEAN, SLOPE]] = 1.0
    state[1] = FIRST_SUM
    state[1, [SLOPE, SHIFT]] = 1.0
    return Scorers(adagrad.new_weights(bits, kind, rate), state)


def scratch(batch, candidates: int) -> Scratch:
    """Return buffers for one thread, a batch and up to `candidates` candidates per example."""
    most_features = batch.most_features
    return Scratch(
        np.empty(most_features, np.uint64), np.empty(most_features, np.float32),
        np.empty(most_features * candidates, np.int64),
        np.empty((candidates, 3)), np.empty(candidates),
    )  # fmt: skip


def arrays(scorers: Scorers) -> dict[str, Stored]:
    """Return the arrays that a model file stores."""
    return {"scorers.state": scorers.state, **adagrad.weights_arrays("scorers", scorers.weights)}


def restore(scorers: Scorers, stored: Mapping[str, Stored]) -> None:
    """Fill new scorers with the arrays of a model file.

    Weights may be any numbers, because `_score` replaces scores that are not finite.

    Raises
    ------
    ModelError
        if an array is missing, has a wrong shape or is out of range.
    """
    state = stored_arrays.take("scorers.state", stored, np.float64, (2, NUMBERS))
    most = sys.float_info.max
    stored_arrays.check_range("scorers.state", state[0], -most, most)
    stored_arrays.check_range("scorers.state", state[1], 0, most)
    scorers.state[:] = state
    adagrad.restore_weights("scorers", scorers.weights, stored)


def with_reranked(class_lists: probabilities.ClassLists, ranked: Ranked) -> probabilities.ClassLists:
    """Return the listing of all labels with the probabilities of the ranked labels replaced by those of the scorers.

    The remaining probability goes to the other labels in proportion to the trees' probabilities, or to label 0, which
    stands for all other classes, if no others have any.
    """
    p = class_lists.scores.astype(np.float64)
    for i in range(len(ranked.top)):
        begin, end = class_lists.start[i], class_lists.start[i + 1]
        example_p = p[begin:end]
        size = np.count_nonzero(ranked.top[i])
        if size == 0:
            continue
        at = np.searchsorted(class_lists.labels[begin : end - 1], ranked.top[i, :size])
        example_p[at] = 0.0
        rest = max(0.0, 1.0 - ranked.top_p[i].sum())
        others = example_p[:-1].sum()
        example_p *= rest / others if others > 0 else 0.0
        example_p[-1] = 0.0 if others > 0 else rest
        example_p[at] = ranked.top_p[i, :size]
    return class_lists._replace(scores=p.astype(np.float32))


# -- kernels


@jit
def _slot(weights, feature, label):
    """Return the index in `flat` of the weight of a feature for a class."""
    z = (feature ^ (np.uint64(label) * SPREAD)) * GOLDEN
    return np.int64((z >> weights.shift) * np.uint64(2))


@jit
def _locate(weights, scratch, count, candidate):
    """Find and prefetch the slots of all candidates of an example; return the number of candidates."""
    size = 0
    while size < candidate.shape[0] and candidate[size] > 0:
        for f in range(count):
            s = _slot(weights, scratch.h[f], candidate[size])
            scratch.at[size * count + f] = s
            intrinsics.prefetch(weights.flat, s)
        size += 1
    return size


@jit
def _tree_features(top, top_p, i, candidate, size, offset):
    """Compute o(y) of the candidates; return the probability that the trees leave to other classes."""
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
            log_p = least
            for j in range(k):
                if top[t, i, j] == candidate[c]:
                    log_p = math.log(max(top_p[t, i, j], 1e-9))
                    offset[c, SUPPORT] += 1.0 / trees
            offset[c, MEAN] += log_p / trees
            offset[c, LARGEST] = max(offset[c, LARGEST], log_p)
    return min(max(rest, 1e-6), 1.0 - 1e-6)


@jit
def _score(scorers, scratch, count, size):
    """Set `scratch.share` to the probability of each candidate, given that the label is one of them."""
    weights, state = scorers
    highest = -1e300
    for c in range(size):
        s = ZERO
        for f in range(count):
            s += weights.flat[scratch.at[c * count + f]] * scratch.x[f]
        if not math.isfinite(s):
            s = ZERO
        scratch.share[c] = np.float64(s)
        for v in range(3):
            scratch.share[c] += state[0, v] * scratch.offset[c, v]
        highest = max(highest, scratch.share[c])
    total = 0.0
    for c in range(size):
        scratch.share[c] = fast_math.exp(max(scratch.share[c] - highest, -700.0))
        total += scratch.share[c]
    for c in range(size):
        scratch.share[c] /= total


@jit
def _update(weights, scratch, count, c, slope, weight):
    """Update the scorer of candidate c by one AdaGrad step.

    `adagrad.find_rates` and `move` do not fit: DELTA is added under the root, and the order of multiplications differs.
    """
    slope = np.float32(slope)
    square = weight * slope * slope
    step = weights.rate * weight * slope
    for f in range(count):
        a = scratch.at[c * count + f]
        x = scratch.x[f]
        g = weights.flat[a + 1] + square * x * x
        weights.flat[a + 1] = g
        weights.flat[a] -= step * x / np.float32(math.sqrt(g + DELTA))


@jit
def _adapt(state, parameter, slope, weight):
    """Update one of v, A and B by one AdaGrad step.

    `adagrad` has no function for it: there, regressors have many hashed weights in float32; this is one float64.
    """
    state[1, parameter] += weight * slope * slope
    state[0, parameter] -= STEP * weight * slope / math.sqrt(state[1, parameter])


@jit
def _learn(scorers, scratch, count, size, truth, weight):
    """Train the scorers of all candidates, and v, on the candidate `truth`."""
    for repeat in range(STEPS):
        if repeat > 0:
            _score(scorers, scratch, count, size)
        for c in range(size):
            slope = scratch.share[c] - (1.0 if c == truth else 0.0)
            if abs(slope) >= LEAST_SLOPE:
                _update(scorers.weights, scratch, count, c, slope, weight)
        if repeat == 0:
            for v in range(3):
                slope = -scratch.offset[truth, v]
                for c in range(size):
                    slope += scratch.share[c] * scratch.offset[c, v]
                _adapt(scorers.state, v, slope, np.float64(weight))


@bare
def rank(scorers, unit, batch, label, learns, begin, end, proposed, scratch, output):
    """Rank the candidates of the examples begin..end-1, and learn from each example afterwards.

    Parameters
    ----------
    scorers : written
    unit : whether examples are scaled to length 1
    label : int64[n], 0 for examples without a label; read only
    learns : bool[n], whether to learn from the example; read only
    proposed : Proposed, read only
    scratch : Scratch, written
    output : Ranked, rows begin..end-1 are written
    """
    weights, state = scorers
    top, top_p, tree_p, candidate = proposed
    trees = top.shape[0]
    for i in range(begin, end):
        y = label[i]
        count = adagrad.load(batch, i, unit, scratch.h, scratch.x)
        size = _locate(weights, scratch, count, candidate[i])
        if size == 0:
            continue
        rest = _tree_features(top, top_p, i, candidate[i], size, scratch.offset)
        truth = -1
        for c in range(size):
            if candidate[i, c] == y:
                truth = c
        _score(scorers, scratch, count, size)
        odds = math.log(rest / (1.0 - rest))
        z = min(max(state[0, SLOPE] * odds + state[0, SHIFT], -30.0), 30.0)
        outside = 1.0 / (1.0 + fast_math.exp(-z))
        output.inside[i] = truth >= 0
        if truth >= 0:
            output.p[i] = (1.0 - outside) * scratch.share[truth]
        else:
            mean = 0.0
            for t in range(trees):
                mean += tree_p[t, i] / trees
            output.p[i] = outside * min(mean / rest, 1.0)
        best, best_p = output.top[i], output.top_p[i]
        filled = 0
        for c in range(size):
            filled = top_k.insert(best, best_p, filled, candidate[i, c], (1.0 - outside) * scratch.share[c])
        if not learns[i]:
            continue
        weight = batch.weight[i]
        slope = outside - (0.0 if truth >= 0 else 1.0)
        _adapt(state, SLOPE, slope * odds, np.float64(weight))
        _adapt(state, SHIFT, slope, np.float64(weight))
        if truth >= 0:
            _learn(scorers, scratch, count, size, truth, weight)


@jit
def sum_errors(label, weight, inside, prediction):
    """Return the weight of the labelled examples, and what it consists of besides those predicted right.

    Parameters
    ----------
    label, weight, prediction : float64[n], float32[n], float64[n]
    inside : bool[n], whether the label is proposed

    Returns
    -------
    total : weight of the labelled examples
    not_proposed, not_chosen : weight of those whose label is not proposed, and of those where another one is chosen
    """
    total = not_proposed = not_chosen = 0.0
    for i in range(len(label)):
        if math.isnan(label[i]):
            continue
        total += np.float64(weight[i])
        if not inside[i]:
            not_proposed += np.float64(weight[i])
        elif prediction[i] != label[i]:
            not_chosen += np.float64(weight[i])
    return total, not_proposed, not_chosen
