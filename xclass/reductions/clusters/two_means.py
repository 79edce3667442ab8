"""Order classes by similarity, with balanced hierarchical 2-means over prototypes of the classes.

Source    the label trees of Prabhu, Kag, Harsola, Agrawal, Varma, "Parabel", WWW 2018, section 3.2, and of Jasinska-
          Kobus, Wydmuch, Dembczynski, Kuznetsov, Busa-Fekete, "Probabilistic Label Trees", 2020; written anew.
Idea      A prototype is the weighted sum of a class's examples, each scaled to length 1; its features are then
          multiplied by log((1 + k) / classes that have the feature), and the result is scaled to length 1.
          The labels of a node are split into two halves, which begin as two random labels. In each round, the centre
          of a half is the sum of its prototypes; the labels are compared by similarity to the first centre minus
          similarity to the second, and the half of them with the largest differences becomes the first half. Rounds
          end when the mean similarity to the centres hardly grows. Splitting recursively down to single labels puts
          the labels in an order; the tree that halves this order (`cpt.label_tree.balanced_tree`) has the least
          possible depth.
Cost      collecting: see `centroids`, which computes the prototypes; splitting: O(z) for each of log2 k levels, about 8
          rounds and all tries.
Names     k classes, z features of all prototypes, F distinct features | rows are prototypes, in the order of labels
Differs   from the sources: the rounds end in a local optimum, so a split is tried from several pairs of labels and the
          best one is taken. The smaller the prototypes, the more tries are made (WORK).

docs/defaults.md has measurements of variants.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ...array_types import Bools, Float32s, Float64s, Int, Int8s, Int64s
from ...data import batch_ops
from ...data.batch import NO_LABELS, NO_LISTS, Batch
from ...kernels import quickselect, rng
from ...kernels.constants import GOLDEN, ONE, ZERO
from ...kernels.jit import jit
from . import centroids

WORK = 1 << 21  # intended product of z and the number of tries
FEWEST_TRIES, MOST_TRIES = 2, 16
ROUNDS = 30
LEAST_GAIN = 1e-5  # minimum gain of the mean similarity to the centres for another round
SERIAL = 3  # upper levels, split one after the other; each subtree below them is split as a whole by one thread
DEEPEST = 64  # exceeds the number of times that an array can be halved


# `share(job, items)` calls `job(*item)` for all items, possibly on several threads, see `Reduction.share`
Share: TypeAlias = Callable[[Callable[..., None], Sequence[tuple[Any, ...]]], None]


class OrderScratch(NamedTuple):
    """Hold the scratch arrays of one order, with one entry per row."""

    first: Float64s  # float64[k], product with the first sum, then similarity to the first minus the second centre
    second: Float64s  # float64[k], product with the second sum
    side: Int8s  # int8[k], half of the row, 0 or 1; -1 for none yet
    best: Int8s  # int8[k], half of the row in the best split so far
    item: Int64s  # int64[k], rows, partitioned by `quickselect`


# -- kernels


@jit
def _move(rows: centroids.PrototypeRows, r: int, centre: Float32s, side: Int, sign: np.float32) -> None:
    """Add row r, times `sign`, to the sum of one side; `centre` (float32[F, 2]) is written."""
    for j in range(rows.start[r], rows.start[r + 1]):
        centre[rows.feature[j], side] += sign * rows.value[j]


@jit
def _split(
    rows: centroids.PrototypeRows,
    order: Int64s,
    begin: int,
    end: int,
    centre: Float32s,
    scratch: OrderScratch,
    seed: np.uint64,
) -> float:
    """Split `order[begin:end]` into similar halves by 2-means from one random pair of rows.

    `scratch.side` receives the half of each row; of an odd number of rows, the first half gets one more. `centre` is
    float32[F, 2], sums of the halves; zero before and after. Return the mean similarity of the rows to the centre of
    their half.
    """
    n = end - begin
    middle = begin + (n + 1) // 2
    side, item = scratch.side, scratch.item
    for m in range(begin, end):
        side[order[m]] = -1
        item[m] = order[m]
    first = np.int64(rng.mix(seed) % np.uint64(n))
    second = (first + 1 + np.int64(rng.mix(seed + GOLDEN) % np.uint64(n - 1))) % n
    side[order[begin + first]] = 0
    _move(rows, order[begin + first], centre, 0, ONE)
    side[order[begin + second]] = 1
    _move(rows, order[begin + second], centre, 1, ONE)
    similarity: float = 0.0
    for t in range(ROUNDS):
        square_0: float = 0.0
        square_1: float = 0.0
        for m in range(begin, end):
            r = order[m]
            x, y = ZERO, ZERO
            for j in range(rows.start[r], rows.start[r + 1]):
                f = rows.feature[j]
                x += rows.value[j] * centre[f, 0]
                y += rows.value[j] * centre[f, 1]
            scratch.first[r] = x
            scratch.second[r] = y
            if side[r] == 0:
                square_0 += np.float64(x)
            elif side[r] == 1:
                square_1 += np.float64(y)
        length_0 = math.sqrt(max(square_0, 0.0))
        length_1 = math.sqrt(max(square_1, 0.0))
        before = similarity
        similarity = (length_0 + length_1) / n
        if t > 1 and similarity - before < LEAST_GAIN:
            break
        inverse_0 = 1.0 / length_0 if length_0 > 0.0 else 0.0
        inverse_1 = 1.0 / length_1 if length_1 > 0.0 else 0.0
        for m in range(begin, end):
            r = order[m]
            scratch.first[r] = scratch.first[r] * inverse_0 - scratch.second[r] * inverse_1
        quickselect.select(item, begin, end, middle, scratch.first)
        moved = False
        for m in range(begin, end):
            r = item[m]
            s = np.int64(m >= middle)
            if side[r] != s:
                moved = True
                if side[r] >= 0:
                    _move(rows, r, centre, 1 - s, -ONE)
                _move(rows, r, centre, s, ONE)
                side[r] = s
        if not moved:
            break
    for m in range(begin, end):
        for j in range(rows.start[order[m]], rows.start[order[m] + 1]):
            centre[rows.feature[j], 0] = ZERO
            centre[rows.feature[j], 1] = ZERO
    return similarity


@jit
def split(
    rows: centroids.PrototypeRows, order: Int64s, begin: int, end: int, centre: Float32s, scratch: OrderScratch,
    seed: np.uint64, tries: int,
) -> int:  # fmt: skip
    """Partition `order[begin:end]` into two similar halves; return where the second half begins.

    The best of `tries` splits is taken. Rows must be in ascending order and stay so within each half. `centre` is
    float32[F, 2], zero before and after.
    """
    salt = np.uint64(begin) << np.uint64(32) | np.uint64(end)
    best = -1.0
    for t in range(tries):
        similarity = _split(rows, order, begin, end, centre, scratch, rng.mix(seed + np.uint64(t)) ^ salt)
        if similarity > best:
            best = similarity
            for m in range(begin, end):
                scratch.best[order[m]] = scratch.side[order[m]]
    middle = begin + (end - begin + 1) // 2
    low, high = begin, middle
    for m in range(begin, end):
        scratch.item[m] = order[m]
    for m in range(begin, end):
        r = scratch.item[m]
        if scratch.best[r] == 0:
            order[low] = r
            low += 1
        else:
            order[high] = r
            high += 1
    return middle


@jit
def split_all(
    rows: centroids.PrototypeRows, order: Int64s, begin: int, end: int, centre: Float32s, scratch: OrderScratch,
    seed: np.uint64, tries: int,
) -> None:  # fmt: skip
    """Split `order[begin:end]` recursively down to pairs of labels; parameters as in `split`."""
    stack = np.empty((DEEPEST, 2), np.int64)
    stack[0, 0], stack[0, 1] = begin, end
    size = 1
    while size > 0:
        size -= 1
        low, high = stack[size, 0], stack[size, 1]
        if high - low > 2:
            middle = split(rows, order, low, high, centre, scratch, seed, tries)
            stack[size, 0], stack[size, 1] = middle, high
            stack[size + 1, 0], stack[size + 1, 1] = low, middle
            size += 2


# -- Python


class ExampleSample:
    """Collect the first `examples` examples of a preview, all for 0, and order their labels; `seen` are added."""

    def __init__(self, examples: int) -> None:
        self.examples = examples or math.inf
        self.seen = 0
        self._sums = centroids.new_sums(centroids.FIRST_CELLS)

    def add(self, batch: Batch, counted: Bools) -> bool:
        """Add the counted examples (bool[n]) of a batch; return whether more are needed."""
        counted = counted & (np.cumsum(counted) <= self.examples - self.seen)
        self.seen += int(np.count_nonzero(counted))
        if batch.has_lists:  # an example counts for each of its labels
            rows = np.repeat(np.arange(batch.n), np.diff(batch.label_start))
            label, counted = batch.labels, counted[rows] & (batch.labels > 0)
            batch = batch_ops.pick([(batch, rows)])._replace(label=label, label_start=NO_LISTS, labels=NO_LABELS)
        self._sums = centroids.add_batch(self._sums, batch, counted)
        return self.seen < self.examples

    def orders(self, seeds: list[int], share: Share) -> list[Int64s]:
        """Return for each seed the labels, int64[k], in an order in which similar labels are near each other.

        Each half of an order, each half of these halves and so on contains similar labels. `share(job, items)` calls
        `job(*item)` for all items, possibly on several threads.
        """
        label, feature, rows, classes = centroids.to_rows(self._sums)
        centroids.weight_and_normalise(rows, centroids.idf(classes, len(label)))
        k = len(label)
        tries = min(max(WORK // max(len(rows.value), 1), FEWEST_TRIES), MOST_TRIES)
        orders = [np.arange(k) for _ in seeds]
        buffers = [
            OrderScratch(np.zeros(k), np.zeros(k), np.zeros(k, np.int8), np.zeros(k, np.int8), np.zeros(k, np.int64))
            for _ in seeds
        ]

        def job(kernel: Callable[..., object], t: int, low: int, high: int) -> None:
            centre = np.zeros((len(feature), 2), np.float32)
            kernel(rows, orders[t], low, high, centre, buffers[t], np.uint64(seeds[t]), tries)

        edges = [0, k]
        for _ in range(SERIAL):
            parts = [(low, high) for low, high in itertools.pairwise(edges) if high - low > 2]
            share(job, [(split, t, *part) for t in range(len(seeds)) for part in parts])
            edges = sorted({*edges, *(low + (high - low + 1) // 2 for low, high in itertools.pairwise(edges))})
        parts = [(low, high) for low, high in itertools.pairwise(edges) if high - low > 2]
        share(job, [(split_all, t, *part) for t in range(len(seeds)) for part in parts])
        return [label[order].astype(np.int64) for order in orders]
