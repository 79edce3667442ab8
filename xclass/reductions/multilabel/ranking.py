"""Rank labels by one scorer each and by what proposed them, and estimate their probabilities.

Idea      Each label has a linear scorer w with a bias b and a confidence in each weight, which AROW learns from the
          examples for which the label is a candidate, and from those that have it. A logistic regression, learned
          before the scorers see an example, turns what all parts say about a label into its probability:

              p(y) = 1 / (1 + e**-z),  z = V . o(y),  o(y) = 1, s, s+, (s + .6)+, cosine, root of cosine,
                     L = log(n + 1) / 10, s L, 1 / (1 + n), vote, root of vote

          s = b + w . x is the score, within 3 of 0; n examples have had the label; the index gives the cosine, and the
          nearest examples vote. V and E are learned by AdaGrad in the first pass, on the candidates that are ranked:
          all of them where some labels are candidates, else the best by score and by vote. n counts the examples from
          which V learns. Eight labels y with the same y // 8, from 1, are a block, see `tagged_words`; blocks learn in
          the order of the candidates, by scores from before the example.
Source    Crammer, Kulesza, Dredze, "Adaptive Regularization of Weight Vectors", NIPS 2009, with diagonal confidences:
          G is the sum of x**2 over a weight's steps, and its variance 1 / (1 + G / r). The rest is this project's own;
          docs/defaults.md has the measurements.
Cost      O(s C) for C candidates and s features.
Names     t 1 for labels of the example, else -1 | tau size of a step | E exponent of idf (`features`)
          r regularisation, learned in the first pass unless it is given, see `arow` | c weight of the example

    v = sum of x**2 / (1 + G / r) + B**2 / (1 + G_b / r),  tau = t (1 - t s) / (v + r / c)  where t s < 1 - SLACK
    w += tau x / (1 + G / r);  G += c x**2;  b += tau B**2 / (1 + G_b / r);  G_b += c B**2
"""

from __future__ import annotations

import math
import sys
from typing import NamedTuple

import numpy as np

from ...array_types import Bools, Float32s, Float64s, Int, Int64s, UInt32s, UInt64s
from ...binary import adagrad, arow, document_frequency, tagged_words
from ...kernels import fast_math, top_k
from ...kernels.constants import GOLDEN, LARGEST, ONE, ZERO
from ...kernels.jit import bare
from ...model import stored_arrays
from ...model.archive import Archive
from ..core import label_arrays
from ..multiclass import feature_index
from . import features

BIAS2 = np.float32(0.09)  # B**2, the square of the constant feature's value
FIRST_BIAS = np.float32(-1.0)
SLACK_ALL, SLACK_SOME = np.float32(0.02), np.float32(0.2)  # where all labels are candidates, and where some are
EAGER_DOUBLINGS = 0  # of the table: what is evicted are the weights that have learned least, which costs little
BEST_SCORES = 20  # labels that are ranked, where all labels are candidates
LEAST_SLOPE = 0.02  # of z, below which a candidate does not count for E
STEP = 0.1  # learning rate of V and E
LARGEST_SCORE, LARGEST_Z = 3.0, 30.0  # sizes of s and z
NEAR_ZERO = 0.6  # (s + .6)+ is above 0 for scores above -.6
# indices into o(y) and V; then E in `state`
(ONE_, SCORE, ABOVE, NEAR, COSINE, ROOT_COSINE, COUNT, SCORE_COUNT, RARE, VOTE, ROOT_VOTE, OPINIONS) = range(12)
EXPONENT = OPINIONS
NUMBERS = OPINIONS + 1
LARGEST_EXPONENT = 2.0
LEAST_R, MOST_R = 0.5, 4.0  # between which r is learned
LEAST_GIVEN_R, MOST_GIVEN_R = 0.001, 1000.0
LARGEST_PARAMETER = 1e30  # of V, E and b in a model file
BY_LABEL = {  # fields of `RankingScorers`: least and largest number in a model file
    "bias": (-LARGEST_PARAMETER, LARGEST_PARAMETER), "bias_g": (0, LARGEST), "examples": (0, stored_arrays.MAX_SUM),
}  # fmt: skip


class RankingScorers(NamedTuple):
    """Hold what is learned about labels."""

    words: tagged_words.Words
    bias: Float32s  # float32[labels + 1], b by label
    bias_g: Float32s  # float32[labels + 1]
    examples: Float64s  # float64[labels + 1], n by label
    state: Float64s  # float64[2, NUMBERS], V and E, and their sums of squared slopes
    regularisation: Float64s  # float64[2], log r, and its sum


class RankingScratch(NamedTuple):
    """Provide buffers for one thread and up to C candidates."""

    feature: UInt32s  # uint32[s]
    x: Float32s  # float32[s]
    change: Float32s  # float32[s]
    h: UInt64s  # uint64[s], hash of each feature
    slope_x: Float32s  # float32[s], x * change
    at: Int64s  # int64[2 * s]
    block: Int64s  # int64[M], blocks of the candidates and of the labels of the example
    number: Int64s  # int64[blocks of all labels], position of a block in `block`, from 1, or 0; zeros between examples
    place: Int64s  # int64[8 * M], label of each regressor of these blocks
    s: Float32s  # float32[8 * M], scores of these regressors
    slope_s: Float32s  # float32[8 * M], derivatives of the scores with respect to E, of some blocks
    y: Float32s  # float32[8 * M], 1 for labels of the example, -1 for other candidates, 0 for others
    steps: arow.ArowScratch
    regressor: Int64s  # int64[C], position of each candidate in the arrays by regressor
    score: Float64s  # float64[C], s
    z: Float64s  # float64[C]
    opinion: Float64s  # float64[C, OPINIONS]
    ranked: Bools  # bool[C], whether the candidate is ranked
    own: Bools  # bool[C], whether a candidate that is ranked is a label of the example
    best: Int64s  # int64[BEST_SCORES]
    best_score: Float64s  # float64[BEST_SCORES]


class ProposedLabels(NamedTuple):
    """Hold the candidates of n examples and what is said about them."""

    candidate: Int64s  # int64[n, C], distinct labels from 1, then 0
    score: Float64s  # float64[n, C, feature_index.SCORES]
    vote: Float64s  # float64[n, C]
    every: Bools  # bool[n], whether all labels are candidates


class RankedLabels(NamedTuple):
    """Hold the ranked labels of n examples, in falling order of probability."""

    label: Int64s  # int64[n, R], from 1, then 0
    p: Float64s  # float64[n, R]
    count: Int64s  # type: ignore[assignment]  # hides tuple.count; int64[n], number of labels
    log_loss: Float64s  # float64[n], of the candidates that were ranked


def new_ranking(n: int, most: int) -> RankedLabels:
    return RankedLabels(np.zeros((n, most), np.int64), np.zeros((n, most)), np.zeros(n, np.int64), np.zeros(n))


def log_loss(ranked: RankedLabels) -> Float64s:
    return ranked.log_loss


def serialize(archive: Archive, scorers: RankingScorers, labels: int) -> RankingScorers:
    """Save scorers for so many labels, or return new ones filled from a model.

    Parameters are bounded so that their products stay finite, and sums of squared slopes are never below the initial 1.
    """
    low, high = np.full((2, NUMBERS), -LARGEST_PARAMETER), np.full((2, NUMBERS), LARGEST_PARAMETER)
    low[0, EXPONENT:], high[0, EXPONENT:] = 0, LARGEST_EXPONENT
    low[1], high[1] = 1, sys.float_info.max
    archive.fill("ranking.state", scorers.state, low, high)
    arow.serialize_regularisation(archive, scorers.regularisation, LEAST_GIVEN_R, MOST_GIVEN_R)
    scorers = with_labels(scorers, labels)
    for name, limits in BY_LABEL.items():
        if name != "bias_g" or archive.has("ranking.bias_g"):
            archive.fill(f"ranking.{name}", getattr(scorers, name)[: labels + 1], *limits)
    return scorers._replace(words=tagged_words.serialize(archive, "scorers", scorers.words))


def copied(scorers: RankingScorers) -> RankingScorers:
    own = {name: getattr(scorers, name).copy() for name in (*BY_LABEL, "state", "regularisation")}
    return scorers._replace(words=tagged_words.copied(scorers.words), **own)


def with_double_capacity(scorers: RankingScorers) -> RankingScorers:
    return scorers._replace(words=tagged_words.doubled(scorers.words))


def new_scorers(bits: int, doublings: int, weights_only: bool = False, r: float = 1.0) -> RankingScorers:
    """Return untrained scorers, r of which is given or begins so; the parameters are those of `adagrad.new_weights`."""
    state = np.zeros((2, NUMBERS))
    state[0, [ONE_, SCORE, COSINE, EXPONENT]] = -1.0, 2.0, 0.5, 1.0
    state[1] = 1.0
    none = np.empty(0, np.float32)
    words = tagged_words.new_words(max(bits - adagrad.LOG2_LINE_SLOTS, 1), doublings, weights_only, EAGER_DOUBLINGS)
    return with_labels(RankingScorers(words, none, none, np.empty(0), state, arow.new_regularisation(r)), 1)


def with_labels(scorers: RankingScorers, labels: int) -> RankingScorers:
    """Return the scorers with room for labels up to `labels`."""
    if labels < len(scorers.bias):
        return scorers
    old = len(scorers.bias)
    size = max(labels + 1, 2 * old) + 7 & ~7  # whole blocks
    bias, bias_g, examples = np.full(size, FIRST_BIAS), np.zeros(size, np.float32), np.zeros(size)
    bias[:old], bias_g[:old], examples[:old] = scorers.bias, scorers.bias_g, scorers.examples
    return scorers._replace(bias=bias, bias_g=bias_g, examples=examples)


def new_scratch(scorers: RankingScorers, most_features: int, candidates: int, most_labels: int) -> RankingScratch:
    blocks = candidates + most_labels
    s, slope_s, y = (np.empty(8 * blocks, np.float32) for _ in range(3))
    return RankingScratch(
        np.empty(most_features, np.uint32), np.empty(most_features, np.float32), np.empty(most_features, np.float32),
        np.empty(most_features, np.uint64), np.empty(most_features, np.float32), np.empty(2 * most_features, np.int64),
        np.empty(blocks, np.int64), np.zeros((len(scorers.bias) >> 3) + 1, np.int64), np.empty(8 * blocks, np.int64),
        s, slope_s, y, arow.block_scratch(most_features),
        np.empty(candidates, np.int64), np.empty(candidates), np.empty(candidates), np.empty((candidates, OPINIONS)),
        np.empty(candidates, np.bool_), np.empty(candidates, np.bool_),
        np.empty(BEST_SCORES, np.int64), np.empty(BEST_SCORES),
    )  # fmt: skip


# -- kernels


@bare
def regressor_of(scratch: RankingScratch, blocks: Int, label: Int) -> tuple[Int, Int]:
    """Return the position of a label in the arrays by regressor, and the number of blocks, its own included."""
    block = label >> 3
    if scratch.number[block] == 0:
        scratch.block[blocks] = block
        for q in range(8):
            scratch.place[8 * blocks + q] = 8 * block + q
            scratch.y[8 * blocks + q] = ZERO
        blocks += 1
        scratch.number[block] = blocks
    return 8 * (scratch.number[block] - 1) + (label & 7), blocks


@bare
def score_blocks(scorers: RankingScorers, scratch: RankingScratch, count: Int, begin: Int, end: Int) -> None:
    """Set the scores of the regressors of blocks begin..end-1, 0 where they are not finite.

    The lines of a block are fetched while those of the one before are read.
    """
    for j in range(begin, end + 1):
        if j < end:
            tagged_words.fetch_block(scorers.words, scratch.h, count, scratch.block[j], scratch.at, (j & 1) * count)
        if j > begin:
            tagged_words.score_fetched(
                scorers.words, scratch.x, count, scratch.at, (j - 1 & 1) * count, scratch.s, 8 * (j - 1)
            )
    for k in range(8 * begin, 8 * end):
        s = scratch.s[k] + scorers.bias[scratch.place[k]]
        scratch.s[k] = s if math.isfinite(s) else ZERO


@bare
def set_opinions(scorers: RankingScorers, s: float, score: Float64s, vote: float, label: Int, o: Float64s) -> None:
    """Set o(y) of a label with score s; `score` is what the index says about it."""
    s = min(max(s, -LARGEST_SCORE), LARGEST_SCORE)
    cosine = max(score[feature_index.COSINE], 0.0)
    n = scorers.examples[label]
    rarity = 0.1 * math.log(n + 1.0)
    o[ONE_], o[SCORE], o[ABOVE], o[NEAR] = 1.0, s, max(s, 0.0), max(s + NEAR_ZERO, 0.0)
    o[COSINE], o[ROOT_COSINE] = cosine, math.sqrt(cosine)
    o[COUNT], o[SCORE_COUNT], o[RARE] = rarity, s * rarity, 1.0 / (1.0 + n)
    o[VOTE], o[ROOT_VOTE] = vote, math.sqrt(vote)


@bare
def is_own(label: Int64s, first: Int, last: Int, y: Int) -> bool:
    own = False
    for j in range(first, last):
        own |= label[j] == y
    return own


@bare
def adapt(state: Float64s, number: int, slope: float) -> None:
    state[1, number] += slope * slope
    state[0, number] -= STEP * slope / math.sqrt(state[1, number])


@bare
def adapt_parameters(scorers: RankingScorers, scratch: RankingScratch, count: Int, size: Int, weight: float) -> None:
    """Update V and E by an example, from the candidates that are ranked."""
    state = scorers.state
    of_exponent = 0.0
    for c in range(size):
        if not scratch.ranked[c]:
            continue
        o, s, k = scratch.opinion[c], scratch.score[c], scratch.regressor[c]
        slope = weight * (1.0 / (1.0 + fast_math.exp(-scratch.z[c])) - (1.0 if scratch.own[c] else 0.0))
        if abs(slope) > LEAST_SLOPE and abs(s) < LARGEST_SCORE:
            of_s = state[0, SCORE] + state[0, SCORE_COUNT] * o[COUNT]
            of_s += state[0, ABOVE] * (s > 0.0) + state[0, NEAR] * (s > -NEAR_ZERO)
            tagged_words.score_block(
                scorers.words, scratch.h, scratch.slope_x, count, scratch.block[k >> 3], scratch.at, scratch.slope_s,
                k & ~7,
            )  # fmt: skip
            of_exponent += slope * of_s * np.float64(scratch.slope_s[k])
        for v in range(OPINIONS):
            adapt(state, v, slope * o[v])
    if math.isfinite(of_exponent):
        adapt(state, EXPONENT, of_exponent)
        state[0, EXPONENT] = min(max(state[0, EXPONENT], 0.0), LARGEST_EXPONENT)


@bare
def rank(
    scorers: RankingScorers, weighted: document_frequency.Weighted, label: Int64s, learns: Bools, adapts: bool,
    adapts_r: bool, begin: int, end: int, proposed: ProposedLabels, scratch: RankingScratch, output: RankedLabels,
) -> int:  # fmt: skip
    """Rank the candidates of the examples begin..end-1, and learn from each example afterwards.

    Return the first example that was not processed, because the table has to be doubled first, or `end`.

    Parameters
    ----------
    label : see `label_arrays.span`
    learns : bool[n], whether to learn from the example
    adapts, adapts_r : whether to learn V and E, and r, too
    """
    state, batch = scorers.state, weighted.batch
    for i in range(begin, end):
        if learns[i] and tagged_words.is_full(scorers.words):
            return i
        count = features.load(weighted, i, state[0, EXPONENT], scratch.feature, scratch.x, scratch.change)
        for f in range(count):
            scratch.h[f] = np.uint64(scratch.feature[f]) * GOLDEN
            scratch.slope_x[f] = scratch.x[f] * scratch.change[f]
        candidate, every = proposed.candidate[i], proposed.every[i]
        size: Int = 0
        blocks: Int = 0
        while size < len(candidate) and candidate[size] > 0:
            scratch.regressor[size], blocks = regressor_of(scratch, blocks, candidate[size])
            scratch.y[scratch.regressor[size]] = -ONE
            size += 1
        score_blocks(scorers, scratch, count, 0, blocks)
        for c in range(size):
            scratch.score[c] = np.float64(scratch.s[scratch.regressor[c]])
            scratch.ranked[c] = not every
        if every:
            best = 0
            for c in range(size):
                best = top_k.insert(scratch.best, scratch.best_score, best, c, scratch.score[c])
            for j in range(best):
                scratch.ranked[scratch.best[j]] = True
            best = 0
            for c in range(size):
                if proposed.vote[i, c] > 0.0:
                    best = top_k.insert(scratch.best, scratch.best_score, best, c, proposed.vote[i, c])
            for j in range(best):
                scratch.ranked[scratch.best[j]] = True
        first, last = label_arrays.span(batch, label, i)
        filled = 0
        log_loss = 0.0
        for c in range(size):
            if scratch.ranked[c]:
                o = scratch.opinion[c]
                set_opinions(scorers, scratch.score[c], proposed.score[i, c], proposed.vote[i, c], candidate[c], o)
                z = 0.0
                for v in range(OPINIONS):
                    z += state[0, v] * o[v]
                scratch.z[c] = min(max(z, -LARGEST_Z), LARGEST_Z)
                p = 1.0 / (1.0 + fast_math.exp(-scratch.z[c]))
                filled = top_k.insert(output.label[i], output.p[i], filled, candidate[c], p)
                scratch.own[c] = is_own(label, first, last, candidate[c])
                log_loss -= math.log(p if scratch.own[c] else 1.0 - p)
        output.count[i], output.log_loss[i] = filled, log_loss
        if learns[i]:
            if adapts:
                adapt_parameters(scorers, scratch, count, size, np.float64(batch.weight[i]))
            known = blocks
            for j in range(first, last):
                k, blocks = regressor_of(scratch, blocks, label[j])
                scratch.y[k] = ONE
                if adapts:
                    scorers.examples[label[j]] += np.float64(batch.weight[i])
            score_blocks(scorers, scratch, count, known, blocks)
            biases = arow.Biases(scorers.bias, scorers.bias_g, scratch.place)
            rule = arow.ArowRule(arow.r_of(scorers.regularisation), BIAS2, SLACK_ALL if every else SLACK_SOME)
            for j in range(blocks):
                arow.learn_block(
                    scorers.words, scratch.h, scratch.x, count, scratch.block[j], scratch.s, 8 * j,
                    scratch.y[8 * j : 8 * j + 8], biases, batch.weight[i], rule, scratch.steps,
                )  # fmt: skip
            if adapts_r:
                arow.adapt_r(scorers.regularisation, scratch.steps, LEAST_R, MOST_R)
        for j in range(blocks):
            scratch.number[scratch.block[j]] = 0
    return end
