"""Which classes are alike: an order of the labels by balanced hierarchical 2-means over prototypes of the classes.

Source    the label trees of Prabhu, Kag, Harsola, Agrawal, Varma, "Parabel", WWW 2018, section 3.2, and of Jasinska-
          Kobus, Wydmuch, Dembczynski, Kuznetsov, Busa-Fekete, "Probabilistic Label Trees", 2020; written anew.
Idea      A prototype is the sum of a class's examples, each of length 1, its features then weighed by
          log((1 + k) / classes that have the feature) and the whole brought to length 1. The labels of a node are
          split into halves around two centres: one half is those that are nearer to the first centre than the others
          are; each centre is then the sum of its half; and so on until the sum of similarities to the centres grows
          no more. The halves of all halves, down to single labels, put the labels in an order; the tree is the
          one that halves this order (cpt's `label_tree.balanced_tree`), of the least depth there can be.
Cost      reading: see centroids, which makes the prototypes; splitting: z features of prototypes * log2 k levels *
          some 8 rounds * tries.
Names     k classes, z features of all prototypes, F different features | rows are prototypes, in the order of labels

The rounds end in a local optimum, so a split is tried from several pairs of labels and the best one is taken; from more
pairs where the prototypes are few (WORK). What was tried, by error % on the last tenth of train: one pass of `--cpt`
with squared loss and rate .35 at -b 24 (26 for ptb and wiki), mean of 4 seeds (2 from panlex on):

                                clinc150  reuters  spelling  wordnet  panlex   ptb    wiki
    as it is                       7.9      16.5     13.7     73.4     77.7    77.7   82.6
    always 1 try                   8.5      16.8     13.7     73.7     77.8    77.9   82.5
    always 16                      7.9      16.5     13.8     73.1     77.5    77.7   82.5
    features not weighed           7.7      15.1     15.7     74.5     78.0    77.8   82.7
    by the root of log(...)        7.5      15.8     14.9     73.9     77.7    77.8   82.6
    by its square                  8.3      16.0     13.2     73.1     78.0    77.6   82.4
    a look at 3,000 examples       7.8      16.8     15.2     74.8     79.6    77.9   82.4
    10,000                         8.0      16.5     14.1     74.3     79.1    77.9   82.2
    30,000                         7.9      16.5     13.8     73.8     78.2    78.0   82.5
    all of the data                7.9      16.5     13.7     73.4     77.6    77.6   82.6

`reuters` has weights of this kind in its features already. First centres far apart made no difference, and 100 features
of a prototype did as well as all.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ...array_types import Bools, Float32s, Float64s, Int, Int8s, Int64s
from ...data.batch import Batch
from ...kernels import quickselect, rng
from ...kernels.constants import GOLDEN, ONE, ZERO
from ...kernels.jit import jit
from . import centroids

WORK = 1 << 21  # features of prototypes, times tries
FEWEST_TRIES, MOST_TRIES = 2, 16
ROUNDS = 30
LEAST_GAIN = 1e-5  # of the mean similarity to the centres, for another round
SERIAL = 3  # levels that are split one node after the other; the nodes below are shared out to threads
DEEPEST = 64  # more levels than the halves of an array can have


# `share(job, items)` does `job(*item)` for all items, on as many threads as it likes
Share: TypeAlias = Callable[[Callable[..., None], Sequence[tuple[Any, ...]]], None]


class Scratch(NamedTuple):
    """What splitting needs of each row."""

    first: Float64s  # float64[k], similarity to the first sum, then by how much it is nearer to the first centre
    second: Float64s  # float64[k]
    side: Int8s  # int8[k], which sum it is part of, -1 for none
    best: Int8s  # int8[k], the side in the best split so far
    item: Int64s  # int64[k], rows in any order


# -- kernels


@jit
def _move(rows: centroids.Rows, r: int, centre: Float32s, side: Int, sign: np.float32) -> None:
    for j in range(rows.start[r], rows.start[r + 1]):
        centre[rows.feature[j], side] += sign * rows.value[j]


@jit
def _split(
    rows: centroids.Rows, order: Int64s, begin: int, end: int, centre: Float32s, scratch: Scratch, seed: np.uint64
) -> float:
    """Find halves of `order[begin:end]`, two rows or more, that are alike: `scratch.side`; return how much they are.

    `centre` : float32[F, 2], the sums of the halves, is 0 before and after. The first half has the odd row.
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
    alike: float = 0.0
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
        before = alike
        alike = (length_0 + length_1) / n
        if t > 1 and alike - before < LEAST_GAIN:
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
    return alike


@jit
def split(
    rows: centroids.Rows, order: Int64s, begin: int, end: int, centre: Float32s, scratch: Scratch, seed: np.uint64,
    tries: int,
) -> int:  # fmt: skip
    """Bring `order[begin:end]`, rising rows, into halves of rising rows that are alike; return where the second begins.

    Of several pairs of first centres the best one is taken.
    """
    place = np.uint64(begin) << np.uint64(32) | np.uint64(end)
    most = -1.0
    for t in range(tries):
        alike = _split(rows, order, begin, end, centre, scratch, rng.mix(seed + np.uint64(t)) ^ place)
        if alike > most:
            most = alike
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
    rows: centroids.Rows, order: Int64s, begin: int, end: int, centre: Float32s, scratch: Scratch, seed: np.uint64,
    tries: int,
) -> None:  # fmt: skip
    """Split `order[begin:end]` and its halves, down to two labels."""
    waiting = np.empty((DEEPEST, 2), np.int64)
    waiting[0, 0], waiting[0, 1] = begin, end
    size = 1
    while size > 0:
        size -= 1
        low, high = waiting[size, 0], waiting[size, 1]
        if high - low > 2:
            middle = split(rows, order, low, high, centre, scratch, seed, tries)
            waiting[size, 0], waiting[size, 1] = middle, high
            waiting[size + 1, 0], waiting[size + 1, 1] = low, middle
            size += 2


# -- Python


class Sample:
    """Examples that are looked at, and what they say of their labels.

    Parameters
    ----------
    examples : how many are looked at; 0 for all that come

    Attributes
    ----------
    seen : how many were
    """

    def __init__(self, examples: int) -> None:
        self.examples = examples
        self.seen = 0
        self._sums = centroids.new_sums(centroids.FIRST_CELLS)

    def add(self, batch: Batch, counted: Bools) -> bool:
        """Look at the examples of a batch that are `counted` (bool[n]); return whether more are wanted."""
        if self.examples:
            counted = counted & (np.cumsum(counted) <= self.examples - self.seen)
        self.seen += int(np.count_nonzero(counted))
        self._sums = centroids.with_examples(self._sums, batch, counted)
        return not self.examples or self.seen < self.examples

    def orders(self, seeds: list[int], share: Share) -> list[Int64s]:
        """For each seed the labels in an order whose halves, and halves of halves, are alike: int64[k].

        `share(job, items)` does `job(*item)` for all items, on as many threads as it likes.
        """
        label, feature, rows, classes = centroids.in_rows(self._sums)
        centroids.weigh(rows, centroids.rareness(classes, len(label)))
        k = len(label)
        tries = min(max(WORK // max(len(rows.value), 1), FEWEST_TRIES), MOST_TRIES)
        orders = [np.arange(k) for _ in seeds]
        each = [
            Scratch(np.zeros(k), np.zeros(k), np.zeros(k, np.int8), np.zeros(k, np.int8), np.zeros(k, np.int64))
            for _ in seeds
        ]

        def job(kernel: Callable[..., object], t: int, low: int, high: int) -> None:
            centre = np.zeros((len(feature), 2), np.float32)
            kernel(rows, orders[t], low, high, centre, each[t], np.uint64(seeds[t]), tries)

        edges = [0, k]
        for _ in range(SERIAL):
            parts = [(low, high) for low, high in itertools.pairwise(edges) if high - low > 2]
            share(job, [(split, t, *part) for t in range(len(seeds)) for part in parts])
            edges = sorted({*edges, *(low + (high - low + 1) // 2 for low, high in itertools.pairwise(edges))})
        parts = [(low, high) for low, high in itertools.pairwise(edges) if high - low > 2]
        share(job, [(split_all, t, *part) for t in range(len(seeds)) for part in parts])
        return [label[order].astype(np.int64) for order in orders]
