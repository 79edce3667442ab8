"""Rerank the classes that trees propose by one scorer per class, and estimate their probabilities.

Idea      Conditional probability trees are good at proposing a few classes that include the label, and worse at
          choosing among them: their regressors separate sets of classes, not two given classes. Here each class has a
          scorer w_y, as in one-against-all, but only the scorers of proposed classes are evaluated and trained.
          p(y|x, y proposed) = softmax over the proposed classes of  T (w_y . x + v . o(y)), where o(y) are the mean and
          the largest of the trees' log probabilities of y (a tree that does not propose y counts with the least that it
          proposes), the share of trees that propose it, and the three scores of `feature_index`. x are the features
          times sqrt(idf)**E (`document_frequency`), scaled to length 1. The probability that the label is not proposed
          is 1 / (1 + e**-(A r + B + D u)), where r are the log odds of the probability that the trees leave to other
          classes, and u is the largest cosine that the index finds. It is divided among the other classes in proportion
          to their probabilities by the trees; those of the trees that see weighted features have the weight
          1 / (1 + e**-M), those of the others the rest.
Source    This project's own. w, v and the parameters minimise the log loss by AdaGrad, on proposals made before the
          trees and the index learn the example. DELTA is added to a weight's sum of squared slopes, so that its first
          steps are small if its slope is small. Each example updates w STEPS times, because one pass would otherwise be
          too short. docs/defaults.md contains the measurements.
Cost      O(s C) for C proposed classes and s features.
Names     y class | c index of a candidate | o(y) features of a candidate (`RerankingScratch.offset`) |
          w weights of a scorer | v, A, B, D, E, M, T parameters that all classes share
Differs   from one-against-all: the scorers of classes that are not proposed learn nothing from an example, except that
          of the label if there is an index. This one is taught as if the label had been proposed with the smallest of
          each o(y), with weight min(1, FIRST_EXAMPLES / n) for the n-th example of its class, because the first
          examples of a class are never proposed. To teach the proposed classes too makes them too improbable where
          many labels are not proposed. The weight of the constant is left out, because it would prefer classes that are
          not proposed to the others in every example.
          In further passes over the same data, v and the parameters stay as they are, because trees and index know
          these examples and are right more often than on new data.
          T does not enter the slopes from which w and v learn. Without it, predictions are too sure where the next word
          is predicted. E matters because a step changes the score in proportion to x**2: rare words are learned the
          faster the larger E is, which helps in short texts and hurts if the next word is predicted.

The weights are tagged words, found by a hash of feature and class. Their cache lines are prefetched.
"""

from __future__ import annotations

import math
import sys
from typing import NamedTuple

import numpy as np

from ...array_types import Bools, Float, Float32s, Float64s, Int, Int64s, UInt64s
from ...binary import adagrad, tagged_words
from ...data.batch import Batch
from ...kernels import fast_math, top_k
from ...kernels.constants import GOLDEN, ONE, ZERO
from ...kernels.jit import bare, jit
from ...model.archive import Archive
from ..core import label_arrays, probabilities
from ..cpt.binary_nodes import FORMS
from . import feature_index

DELTA = np.float32(0.003)
LEAST_SLOPE = 1e-4  # slopes smaller than this are skipped
LEAST_PROBABILITY = 1e-9  # of a label whose logarithm is taken
LEAST_SHARPNESS = 0.05  # T stays between this and its inverse
LARGEST_PARAMETER = 1e100  # of v, A, B and D in a model file
LARGEST_EXPONENT = 2.0  # E stays between 0 and this
LARGEST_MIXTURE = 30.0  # M stays between this and its negative
FIRST_SUM = 0.01  # initial sum of squared slopes of v
STEP = 0.1  # learning rate of v and of A, B, D, E, M and T
STEPS = 2  # updates of the scorers per example
FIRST_EXAMPLES = 5.0  # examples of a class whose scorer learns with full weight although it is not proposed
# indices into o(y) and `RerankingScorers.state`: v (one for each o(y)), then A, B, D, E, M and T
MEAN, LARGEST, SUPPORT, OF_COSINE, OF_PROPOSAL, OF_BAYES, OFFSETS = range(7)
SLOPE, SHIFT, CLOSENESS, EXPONENT, MIXTURE, SHARPNESS, NUMBERS = range(6, 13)
LIMITS = {
    EXPONENT: (0.0, LARGEST_EXPONENT), MIXTURE: (-LARGEST_MIXTURE, LARGEST_MIXTURE),
    SHARPNESS: (LEAST_SHARPNESS, 1 / LEAST_SHARPNESS),
}  # fmt: skip


class RerankingScorers(NamedTuple):
    """Hold the weight table of the scorers and the shared parameters."""

    weights: adagrad.SharedWeights
    state: Float64s  # float64[2, NUMBERS], v, A, B, D, E, M and T, and their sums of squared slopes
    constants: int  # number of constant features at the end of each example, 0 or 1


class RerankingScratch(NamedTuple):
    """Provide buffers for one thread and up to C candidates."""

    h: UInt64s  # uint64[s]
    x: Float32s  # float32[s]
    change: Float32s  # float32[s], derivative of log x with respect to E
    rest: Float64s  # float64[2], probability left to other classes by trees with and without weighted features
    pairs: tagged_words.Pairs  # (C + 1) * s words of each candidate, and of a label that is not proposed
    offset: Float64s  # float64[C, OFFSETS], o(y) of each candidate
    score: Float64s  # float64[C]
    share: Float64s  # float64[C], probabilities among the candidates from which the scorers learn
    reported: Float64s  # float64[C], probabilities among the candidates that are reported


class ProposedClasses(NamedTuple):
    """Hold the proposals for n examples."""

    top: Int64s  # int64[trees, n, k], labels, then 0
    top_p: Float64s  # float64[trees, n, k]
    p: Float64s  # float64[trees, n], probability of the example's label
    opinions: feature_index.Opinions  # candidates of the trees and the index, and the scores of the index


class RankedCandidates(NamedTuple):
    """Hold the results for a batch of n examples; the last two are those of labels, see `label_arrays.span`."""

    top: Int64s  # int64[n, k], most probable labels, then 0
    top_p: Float64s  # float64[n, k], their probabilities
    p: Float64s  # float64[n], probability of the label, 0 if it is new
    inside: Bools  # bool[n], whether the label is proposed


def new_ranking(n: int, k: int) -> RankedCandidates:
    return RankedCandidates(np.zeros((n, k), np.int64), np.zeros((n, k)), np.zeros(n), np.zeros(n, bool))


def log_loss(ranked: RankedCandidates) -> Float64s:
    losses: Float64s = -np.log(np.maximum(ranked.p, LEAST_PROBABILITY))
    return losses


def new_scorers(
    bits: int, kind: int, rate: float, constant: bool, doublings: int = 0, weights_only: bool = False
) -> RerankingScorers:
    """Return untrained scorers, with which candidates keep the order in which the trees rank them."""
    state = np.zeros((2, NUMBERS))
    state[0, [MEAN, SLOPE, EXPONENT, SHARPNESS]] = 1.0
    state[1, :SLOPE] = FIRST_SUM
    state[1, SLOPE:] = 1.0
    weights = adagrad.new_weights(bits, kind, rate, False, doublings, weights_only)
    return RerankingScorers(weights, state, int(constant))


def copied(scorers: RerankingScorers) -> RerankingScorers:
    return scorers._replace(weights=adagrad.copied(scorers.weights), state=scorers.state.copy())


def with_double_capacity(scorers: RerankingScorers) -> RerankingScorers:
    return scorers._replace(weights=adagrad.doubled(scorers.weights))


def scratch(batch: Batch, candidates: int) -> RerankingScratch:
    most_features = batch.most_features
    pairs = tagged_words.new_pairs(most_features * (candidates + 1))
    return RerankingScratch(
        np.empty(most_features, np.uint64), np.empty(most_features, np.float32), np.empty(most_features, np.float32),
        np.empty(2), pairs,
        np.empty((candidates, OFFSETS)), np.empty(candidates), np.empty(candidates), np.empty(candidates),
    )  # fmt: skip


def serialize(archive: Archive, scorers: RerankingScorers) -> RerankingScorers:
    """Save scorers, or return new ones filled from a model.

    Sums of squared slopes never fall below their initial values, so they are never 0; parameters are bounded so that
    their products stay finite.
    """
    low, high = np.array([LIMITS.get(n, (-LARGEST_PARAMETER, LARGEST_PARAMETER)) for n in range(NUMBERS)]).T
    most = np.full(NUMBERS, sys.float_info.max)
    archive.fill("scorers.state", scorers.state, [low, scorers.state[1].copy()], [high, most])
    words = tagged_words.serialize(archive, "scorers", scorers.weights.words)
    return scorers._replace(weights=scorers.weights._replace(words=words))


def with_reranked(class_lists: probabilities.ClassLists, ranked: RankedCandidates) -> probabilities.ClassLists:
    """Return the listing of all labels with the probabilities of the ranked labels replaced by those of the scorers.

    The remaining probability goes to the other labels in proportion to the trees' probabilities, but each gets less
    than the best label has, and label 0, which stands for all other classes, gets what is left. Otherwise labels that
    are not proposed would be the most probable ones where most of those learned from were new and thus not proposed.
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
        below = np.nextafter(np.float32(ranked.top_p[i, 0]), np.float32(0))
        example_p[-1] = np.maximum(example_p[:-1] - below, 0.0).sum() if others > 0 else rest
        example_p[at] = ranked.top_p[i, :size]
        np.minimum(example_p[:-1], below, out=example_p[:-1])
        example_p[at[0]] = ranked.top_p[i, 0]
    return class_lists._replace(scores=p.astype(np.float32))


# -- kernels


@bare
def _load(
    batch: Batch, log_weight: Float32s, i: Int, unit: bool, exponent: np.float32, scratch: RerankingScratch
) -> Int:
    """Copy example i with weighted values to `scratch`; return the number of features."""
    begin, end = batch.start[i], batch.start[i + 1]
    total = 0.0
    for f in range(end - begin):
        x = batch.value[begin + f]
        if log_weight[begin + f] != ZERO:
            x *= fast_math.exp32(exponent * log_weight[begin + f])
        total += np.float64(x) * np.float64(x)
        scratch.x[f] = x
        scratch.h[f] = np.uint64(batch.index[begin + f]) * GOLDEN
    scale = adagrad.inverse_root(total) if unit else ONE
    mean = ZERO
    for f in range(end - begin):
        scratch.x[f] *= scale
        if unit:
            mean += scratch.x[f] * scratch.x[f] * log_weight[begin + f]
    for f in range(end - begin):
        scratch.change[f] = log_weight[begin + f] - mean
    return end - begin


@bare
def _locate(weights: adagrad.SharedWeights, scratch: RerankingScratch, count: Int, candidate: Int64s) -> int:
    """Find and read the words of all candidates of an example; return the number of candidates."""
    size = 0
    while size < candidate.shape[0] and candidate[size] > 0:
        _locate_one(weights, scratch, count, size, candidate[size])
        size += 1
    tagged_words.read_words(weights.words, scratch.pairs, 0, size * count)
    return size


@bare
def _locate_one(weights: adagrad.SharedWeights, scratch: RerankingScratch, count: Int, c: Int, label: Int) -> None:
    """Find and prefetch the lines of a label as candidate c."""
    for f in range(count):
        position, tag = tagged_words.locate(weights.words, scratch.h[f], label)
        scratch.pairs.at[c * count + f] = position
        scratch.pairs.tag[c * count + f] = tag
        tagged_words.prefetch_line(weights.words, position)


@bare
def _tree_features(
    top: Int64s, top_p: Float64s, trees: int, i: Int, candidate: Int64s, size: Int, scratch: RerankingScratch
) -> float:
    """Compute o(y) of the candidates; return the probability that the trees leave to other classes."""
    k = top.shape[2]
    rest = 1.0
    scratch.rest[:] = 1.0
    offset = scratch.offset
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
                scratch.rest[t % FORMS] -= least / ((trees + 1 - t % FORMS) // FORMS)
        least = math.log(max(least, LEAST_PROBABILITY))
        for c in range(size):
            log_p = least
            for j in range(k):
                if top[t, i, j] == candidate[c]:
                    log_p = math.log(max(top_p[t, i, j], LEAST_PROBABILITY))
                    offset[c, SUPPORT] += 1.0 / trees
            offset[c, MEAN] += log_p / trees
            offset[c, LARGEST] = max(offset[c, LARGEST], log_p)
    for group in range(2):
        scratch.rest[group] = min(max(scratch.rest[group], 1e-6), 1.0 - 1e-6)
    return min(max(rest, 1e-6), 1.0 - 1e-6)


@bare
def _weights_score(scratch: RerankingScratch, count: Int, c: Int) -> float:
    """Return w . x for candidate c, 0 if it is not finite."""
    s = ZERO
    for f in range(count):
        s += scratch.pairs.w[c * count + f] * scratch.x[f]
    return np.float64(s) if math.isfinite(s) else 0.0


@bare
def _score(scorers: RerankingScorers, scratch: RerankingScratch, count: Int, size: Int) -> float:
    """Set `scratch.share` to the probability of each candidate, given that the label is one of them.

    Return the logarithm of the sum of e**score of the candidates.
    """
    highest = -1e300
    for c in range(size):
        score = _weights_score(scratch, count, c)
        for v in range(OFFSETS):
            score += scorers.state[0, v] * scratch.offset[c, v]
        scratch.score[c] = score
        highest = max(highest, score)
    total = _softmax(scratch.score, size, highest, 1.0, scratch.share)
    return highest + fast_math.log(total)


@bare
def _softmax(score: Float64s, size: Int, highest: float, factor: float, share: Float64s) -> float:
    """Set `share` to the softmax of factor * score; return the sum of e**(factor * (score - highest))."""
    total = 0.0
    for c in range(size):
        share[c] = fast_math.exp(max(factor * (score[c] - highest), -700.0))
        total += share[c]
    for c in range(size):
        share[c] /= total
    return total


@bare
def _learn_exponent(
    scorers: RerankingScorers, scratch: RerankingScratch, count: Int, size: Int, truth: Int, weight: np.float64
) -> None:
    """Update E, the exponent of the weights of features."""
    slope = 0.0
    for c in range(size):
        change = ZERO
        for f in range(count):
            change += scratch.pairs.w[c * count + f] * (scratch.x[f] * scratch.change[f])
        slope += (scratch.share[c] - (1.0 if c == truth else 0.0)) * np.float64(change)
    if math.isfinite(slope):
        _adapt(scorers.state, EXPONENT, slope, weight)
        scorers.state[0, EXPONENT] = min(max(scorers.state[0, EXPONENT], 0.0), LARGEST_EXPONENT)


@bare
def _other_probability(
    scorers: RerankingScorers,
    scratch: RerankingScratch,
    tree_p: Float64s,
    trees: int,
    j: Int,
    label_learns: bool,
    weight: np.float64,
) -> float:
    """Return p(y|x, y not proposed) of label j; learn M if `label_learns`."""
    state = scorers.state
    sums = (0.0, 0.0)
    for t in range(trees):
        sums = (sums[0] + tree_p[t, j], sums[1]) if t % FORMS == 0 else (sums[0], sums[1] + tree_p[t, j])
    first, second = sums[0] / ((trees + 1) // FORMS), sums[1] / max(trees // FORMS, 1)
    share = 1.0 / (1.0 + fast_math.exp(-state[0, MIXTURE])) if trees > 1 else 1.0
    p = share * first + (1.0 - share) * second
    rest = share * scratch.rest[0] + (1.0 - share) * scratch.rest[1]
    if label_learns and trees > 1 and p > 0.0:
        slope = share * (1.0 - share) * ((scratch.rest[0] - scratch.rest[1]) / rest - (first - second) / p)
        _adapt(state, MIXTURE, slope, weight)
        state[0, MIXTURE] = min(max(state[0, MIXTURE], -LARGEST_MIXTURE), LARGEST_MIXTURE)
    return min(p / rest, 1.0)


@bare
def _learn_sharpness(state: Float64s, scratch: RerankingScratch, size: Int, truth: Int, weight: np.float64) -> None:
    """Update T, the factor of the scores in the reported probabilities."""
    slope = -scratch.score[truth]
    for c in range(size):
        slope += scratch.reported[c] * scratch.score[c]
    _adapt(state, SHARPNESS, slope, weight)
    state[0, SHARPNESS] = min(max(state[0, SHARPNESS], LEAST_SHARPNESS), 1.0 / LEAST_SHARPNESS)


@bare
def _update(
    weights: adagrad.SharedWeights,
    scratch: RerankingScratch,
    count: Int,
    used: Int,
    c: Int,
    slope: Float,
    weight: np.float32,
) -> None:
    """Update the scorer of candidate c by one AdaGrad step, for the first `used` of `count` features.

    `adagrad.learn_block` does not fit: it has no DELTA under the root, and it trains the regressors of a block.
    """
    slope = np.float32(slope)
    square = weight * slope * slope
    step = weights.rate * weight * slope
    number = weights.words.state[tagged_words.COUNTER]
    weights.words.state[tagged_words.COUNTER] += used
    x, pairs, begin = scratch.x, scratch.pairs, c * count
    tagged_words.step_words(x, used, pairs, begin, square, step, DELTA, number)
    tagged_words.write_words(weights.words, x, used, pairs, begin, square, step, DELTA, number)


@bare
def _adapt(state: Float64s, parameter: int, slope: float, weight: np.float64) -> None:
    """Update one of v, A, B, D, E, M and T by one AdaGrad step.

    `adagrad` has no function for it: there, regressors have many hashed weights in float32; this is one float64.
    """
    state[1, parameter] += weight * slope * slope
    state[0, parameter] -= STEP * weight * slope / math.sqrt(state[1, parameter])


@bare
def _learn(
    scorers: RerankingScorers,
    adapts: bool,
    scratch: RerankingScratch,
    count: Int,
    size: Int,
    truth: Int,
    weight: np.float32,
) -> None:
    """Train the scorers of all candidates, and v if `adapts` is set, on the candidate `truth`."""
    for repeat in range(STEPS):
        if repeat > 0:
            _score(scorers, scratch, count, size)
        for c in range(size):
            slope = scratch.share[c] - (1.0 if c == truth else 0.0)
            if abs(slope) >= LEAST_SLOPE:
                _update(scorers.weights, scratch, count, count, c, slope, weight)
        if repeat == 0 and adapts:
            for v in range(OFFSETS):
                slope = -scratch.offset[truth, v]
                for c in range(size):
                    slope += scratch.share[c] * scratch.offset[c, v]
                _adapt(scorers.state, v, slope, np.float64(weight))


@bare
def _learn_label(
    scorers: RerankingScorers,
    scratch: RerankingScratch,
    count: Int,
    size: Int,
    label: Int,
    log_total: float,
    weight: np.float32,
) -> None:
    """Train the scorer of a label that is not proposed, but for its constant; `log_total` is what `_score` returned."""
    weights, state = scorers.weights, scorers.state
    _locate_one(weights, scratch, count, size, label)
    tagged_words.read_words(weights.words, scratch.pairs, size * count, (size + 1) * count)
    s = _weights_score(scratch, count, size)
    for v in range(OFFSETS):
        least = scratch.offset[0, v]
        for c in range(1, size):
            least = min(least, scratch.offset[c, v])
        s += state[0, v] * least
    slope = -1.0 / (1.0 + fast_math.exp(min(max(s - log_total, -700.0), 700.0)))
    if slope <= -LEAST_SLOPE:
        _update(weights, scratch, count, count - scorers.constants, size, slope, weight)


@bare
def rank(
    scorers: RerankingScorers, unit: bool, batch: Batch, log_weight: Float32s, label: Int64s, learns: Bools,
    adapts: bool, begin: int, end: int, proposed: ProposedClasses, scratch: RerankingScratch, output: RankedCandidates,
) -> int:  # fmt: skip
    """Rank the candidates of the examples begin..end-1, and learn from each example afterwards.

    Return the first example that was not processed, because the table has to be doubled first, or `end`.

    Parameters
    ----------
    unit : whether examples are scaled to length 1
    log_weight : float32[z], see `document_frequency.Weighted`
    label : see `label_arrays.span`
    learns : bool[n], whether to learn from the example
    adapts : whether to learn the shared parameters, too
    output : rows begin..end-1 are written
    """
    weights, state, _ = scorers
    top, top_p, tree_p, opinions = proposed
    candidate = opinions.candidate
    for i in range(begin, end):
        if learns[i] and tagged_words.is_full(weights.words):
            return i
        count = _load(batch, log_weight, i, unit, np.float32(state[0, EXPONENT]), scratch)
        size = _locate(weights, scratch, count, candidate[i])
        if size == 0:
            continue
        trees = 1
        while trees < top.shape[0] and top[trees, i, 0] > 0:  # the others are not searched
            trees += 1
        rest = _tree_features(top, top_p, trees, i, candidate[i], size, scratch)
        closeness = 0.0
        for c in range(size):
            for v in range(feature_index.SCORES):
                scratch.offset[c, OF_COSINE + v] = opinions.score[i, c, v]
            closeness = max(closeness, opinions.score[i, c, feature_index.COSINE])
        log_total = _score(scorers, scratch, count, size)
        _softmax(scratch.score, size, log_total, state[0, SHARPNESS], scratch.reported)
        odds = math.log(rest / (1.0 - rest))
        z = state[0, SLOPE] * odds + state[0, SHIFT] + state[0, CLOSENESS] * closeness
        z = min(max(z, -30.0), 30.0)
        outside = 1.0 / (1.0 + fast_math.exp(-z))
        best, best_p = output.top[i], output.top_p[i]
        filled = 0
        for c in range(size):
            filled = top_k.insert(best, best_p, filled, candidate[i, c], (1.0 - outside) * scratch.reported[c])
        first, last = label_arrays.span(batch, label, i)
        for j in range(first, last):
            truth = -1
            for c in range(size):
                if candidate[i, c] == label[j]:
                    truth = c
            weight = batch.weight[i]
            output.inside[j] = truth >= 0
            if truth >= 0:
                output.p[j] = (1.0 - outside) * scratch.reported[truth]
            else:
                output.p[j] = outside * _other_probability(
                    scorers, scratch, tree_p, trees, j, learns[i] and adapts, np.float64(weight)
                )
            if not learns[i]:
                continue
            slope = outside - (0.0 if truth >= 0 else 1.0)
            if adapts:
                _adapt(state, SLOPE, slope * odds, np.float64(weight))
                _adapt(state, SHIFT, slope, np.float64(weight))
                _adapt(state, CLOSENESS, slope * closeness, np.float64(weight))
                if truth >= 0:
                    _learn_exponent(scorers, scratch, count, size, truth, np.float64(weight))
                    _learn_sharpness(state, scratch, size, truth, np.float64(weight))
            if truth >= 0:
                _learn(scorers, adapts, scratch, count, size, truth, weight)
            elif opinions.label_weight[j] < np.inf:
                share = min(1.0, FIRST_EXAMPLES / (opinions.label_weight[j] + 1.0))
                _learn_label(scorers, scratch, count, size, label[j], log_total, weight * np.float32(share))
    return end


@jit
def sum_errors(label: Float64s, weight: Float32s, inside: Bools, prediction: Float64s) -> tuple[float, float, float]:
    """Return the weight of the labelled examples, of those whose label is not proposed, and of those not chosen then.

    `inside` is bool[n], whether the label is proposed.
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
