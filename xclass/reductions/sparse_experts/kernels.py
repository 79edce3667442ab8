"""Choose an expert for each example, predict and learn with its softmax, and remove classes from experts.

Cost      O(s (N + C)) for an example of s features and N experts, the chosen one with C classes; a pruning reads and
          writes the weights of all classes that experts have.
Names     as in `reduction` | a score of a class before it is multiplied by G | G gate value | m mean gate values.
Idea      A feature has the row `hash mod rows` of the gate and of each expert. The weights of an expert's classes are
          side by side at the start of its row, in ascending order of the classes, so that loops over them vectorise.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ...array_types import Bools, Float32s, Float64s, Int, Int32s, Int64s, UInt64s
from ...binary import adagrad
from ...data.batch import Batch
from ...kernels import fast_math, rng, top_k
from ...kernels.constants import ONE, TWO, ZERO
from ...kernels.jit import apart, bare

WINDOW = 500.0  # number of examples over which the mean gate values forget
SPREAD = np.float32(4)  # largest initial weight of the gate


class ExpertSettings(NamedTuple):
    rate: np.float32  # learning rate
    lasso: float  # strength of the group lasso
    threshold: float  # least norm of a class that an expert keeps
    balance: float  # strength of the load balancing
    every: int  # number of examples between two prunings


class Experts(NamedTuple):
    """Hold a gate and N experts for K classes."""

    gate: Float32s  # float32[rows, N], weights of the gate
    w: Float32s  # float32[rows * N * K], those of expert e in row r begin at (r * N + e) * K
    label: Int32s  # int32[N, K], the classes of an expert are label[e, :size[e]], 0-based
    size: Int64s  # int64[N]
    seen: Bools  # bool[K], whether a class was learned
    mean: Float64s  # float64[N], m: mean of G, where G is 0 for the experts that were not chosen
    passed: Float64s  # float64[N], weight of the examples that each expert has learned since the last pruning
    learned: Int64s  # int64[1], number of examples learned


class ExpertScratch(NamedTuple):
    """Provide buffers for an example of s features."""

    row: Int64s  # int64[s]
    x: Float32s  # float32[s]
    gate: Float32s  # float32[N], scores of the gate, then G
    a: Float32s  # float32[K]
    p: Float32s  # float32[K], probabilities


class Pruning(NamedTuple):
    """Provide buffers for `prune`."""

    norm: Float64s  # float64[N, K], norm of each class of each expert
    largest: Float64s  # float64[K], largest norm of each class
    home: Int32s  # int32[K], the expert where it has this norm, -1 for none
    kept: Int32s  # int32[N, K], former positions of the classes that an expert keeps
    factor: Float32s  # float32[N, K], what their weights are multiplied by


class ExpertOutput(NamedTuple):
    """Hold the results for n examples, with up to k classes of each."""

    predicted: Int64s  # int64[n], class, from 1
    forecast: Float64s  # float64[n], its probability
    p_label: Float64s  # float64[n], probability of the label
    label: Int64s  # int64[n, k], best classes, from 1
    p: Float64s  # float64[n, k], their probabilities
    size: Int64s  # int64[n], their number


def new_scratch(most_features: int, experts: Experts) -> ExpertScratch:
    number, classes = experts.label.shape
    return ExpertScratch(
        np.empty(most_features, np.int64), np.empty(most_features, np.float32), np.empty(number, np.float32),
        np.empty(classes, np.float32), np.empty(classes, np.float32),
    )  # fmt: skip


def new_pruning(number: int, classes: int) -> Pruning:
    shape = number, classes
    return Pruning(
        np.empty(shape), np.empty(classes), np.empty(classes, np.int32), np.empty(shape, np.int32),
        np.empty(shape, np.float32),
    )  # fmt: skip


# -- kernels


@bare
def draw_gate(gate: Float32s, random: UInt64s) -> None:
    """Draw the initial weights of the gate from [-SPREAD, SPREAD)."""
    for r in range(gate.shape[0]):
        for e in range(gate.shape[1]):
            gate[r, e] = SPREAD * (TWO * rng.draw(random) - ONE)


@bare
def score(experts: Experts, batch: Batch, i: Int, scratch: ExpertScratch) -> tuple[int, int, np.float32]:
    """Choose the expert of example i and compute the probabilities of its classes.

    Return the number of features, the expert, and the probability of each class that the expert lacks.
    """
    rows, number = experts.gate.shape
    begin, count = batch.start[i], batch.start[i + 1] - batch.start[i]
    row, x, gate, a = scratch.row, scratch.x, scratch.gate, scratch.a
    total = 0.0
    for f in range(count):
        total += np.float64(batch.value[begin + f]) * np.float64(batch.value[begin + f])
    scale = adagrad.inverse_root(total)
    gate[:] = ZERO
    for f in range(count):
        row[f] = np.int64(batch.index[begin + f]) % rows
        x[f] = batch.value[begin + f] * scale
        for e in range(number):
            gate[e] += experts.gate[row[f], e] * x[f]
    chosen = 0
    for e in range(number):
        if gate[e] > gate[chosen]:
            chosen = e
    highest, odds = gate[chosen], ZERO
    for e in range(number):
        gate[e] = fast_math.exp32(gate[e] - highest)
        odds += gate[e]
    for e in range(number):
        gate[e] /= odds
    size, classes = experts.size[chosen], experts.seen.shape[0]
    for c in range(size):
        a[c] = ZERO
    for f in range(count):
        at = (row[f] * number + chosen) * classes
        xf = x[f]
        for c in range(size):
            a[c] += experts.w[at + c] * xf
    highest = ZERO if size < classes else a[0] * gate[chosen]
    for c in range(size):
        highest = max(highest, a[c] * gate[chosen])
    lacking = fast_math.exp32(-highest)
    odds = np.float32(classes - size) * lacking
    for c in range(size):
        scratch.p[c] = fast_math.exp32(a[c] * gate[chosen] - highest)
        odds += scratch.p[c]
    for c in range(size):
        scratch.p[c] /= odds
    return count, chosen, lacking / odds


@bare
def learn(
    experts: Experts,
    settings: ExpertSettings,
    scratch: ExpertScratch,
    count: int,
    e: int,
    label: Int,
    weight: np.float32,
) -> None:
    """Take a gradient step for the scored example in the weights of expert e and of the gate."""
    number, classes = experts.gate.shape[1], experts.seen.shape[0]
    size, own = experts.size[e], scratch.gate[e]
    slope_of_gate = 0.0
    for c in range(size):
        scratch.p[c] -= ONE if experts.label[e, c] == label else ZERO
        slope_of_gate += np.float64(scratch.p[c]) * np.float64(scratch.a[c])
    mean = squares = 0.0
    for j in range(number):
        mean += experts.mean[j] / number
        squares += experts.mean[j] * experts.mean[j] / number
    slope_of_gate += settings.balance * 2.0 / (number * mean) * (experts.mean[e] / mean - squares / (mean * mean))
    step = settings.rate * weight
    gate_step = np.float32(np.float64(step) * slope_of_gate * own)
    for f in range(count):
        at = (scratch.row[f] * number + e) * classes
        by = step * own * scratch.x[f]
        for c in range(size):
            experts.w[at + c] -= by * scratch.p[c]
        for j in range(number):
            others = (ONE if j == e else ZERO) - scratch.gate[j]
            experts.gate[scratch.row[f], j] -= gate_step * others * scratch.x[f]
    for j in range(number):
        experts.mean[j] += ((np.float64(own) if j == e else 0.0) - experts.mean[j]) / WINDOW
    experts.seen[label] = True
    experts.passed[e] += weight
    experts.learned[0] += 1


@apart
def prune(experts: Experts, settings: ExpertSettings, scratch: Pruning) -> None:
    """Shrink the norms of the classes of each expert by the group lasso, and remove classes with a small norm.

    A class stays, with its weights, in the expert where its norm is the largest, and so does the strongest class that
    was learned in each expert.
    """
    rows, number = experts.gate.shape
    classes = experts.seen.shape[0]
    norm, largest, home, kept, factor = scratch
    norm[:] = 0.0
    home[:] = -1
    for r in range(rows):
        for e in range(number):
            at = (r * number + e) * classes
            for c in range(experts.size[e]):
                norm[e, c] += np.float64(experts.w[at + c]) * np.float64(experts.w[at + c])
    for e in range(number):
        for c in range(experts.size[e]):
            y = experts.label[e, c]
            norm[e, c] = math.sqrt(norm[e, c])
            if home[y] < 0 or norm[e, c] > largest[y]:
                home[y] = e
                largest[y] = norm[e, c]
    for e in range(number):
        before = experts.size[e]
        strongest = -1
        for c in range(before):
            if experts.seen[experts.label[e, c]] and (strongest < 0 or norm[e, c] > norm[e, strongest]):
                strongest = c
        limit = settings.lasso * np.float64(settings.rate) * experts.passed[e]
        size = 0
        for c in range(before):
            left = norm[e, c]
            if home[experts.label[e, c]] != e and c != strongest:
                left = max(0.0, left - limit)
                if left < settings.threshold:
                    continue
            kept[e, size] = c
            factor[e, size] = np.float32(left / norm[e, c]) if norm[e, c] > 0.0 else ONE
            size += 1
        for c in range(size):
            experts.label[e, c] = experts.label[e, kept[e, c]]
        experts.size[e] = size
        experts.passed[e] = 0.0
        for r in range(rows):
            at = (r * number + e) * classes
            for c in range(size):
                experts.w[at + c] = experts.w[at + kept[e, c]] * factor[e, c]
            for c in range(size, before):
                experts.w[at + c] = ZERO


@bare
def process_batch(
    experts: Experts, settings: ExpertSettings, batch: Batch, label: Int64s, own: Int64s, begin: int, end: int,
    whole: bool, scratch: ExpertScratch, pruning: Pruning, output: ExpertOutput,
) -> None:  # fmt: skip
    """Predict examples begin..end-1 of a batch, and learn those that have a label.

    Parameters
    ----------
    label : int64[n], 0-based class, -1 for examples that are not learned from
    own : int64[n], 0-based class whose probability is wanted, -1 for none
    whole : whether `output` lists all classes of the expert, in ascending order, instead of the best ones
    """
    for i in range(begin, end):
        count, e, lacking = score(experts, batch, i, scratch)
        best, listed = -1, 0
        output.p_label[i] = lacking if own[i] >= 0 else ZERO
        for c in range(experts.size[e]):
            y = np.int64(experts.label[e, c])
            p = np.float64(scratch.p[c])
            if y == own[i]:
                output.p_label[i] = p
            if not experts.seen[y]:
                continue
            if best < 0 or scratch.p[c] > scratch.p[best]:
                best = c
            if whole:
                output.label[i, listed], output.p[i, listed] = y + 1, p
                listed += 1
            else:
                listed = top_k.insert(output.label[i], output.p[i], listed, y + 1, p)
        output.size[i] = listed
        best = max(best, 0)
        output.predicted[i] = np.int64(experts.label[e, best]) + 1
        output.forecast[i] = scratch.p[best]
        if label[i] >= 0:
            learn(experts, settings, scratch, count, e, label[i], batch.weight[i])
            if experts.learned[0] % settings.every == 0:
                prune(experts, settings, pruning)
