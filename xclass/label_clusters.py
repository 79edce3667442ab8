"""Which classes are alike: an order of the labels by balanced hierarchical 2-means over prototypes of the classes.

Source    the label trees of Prabhu, Kag, Harsola, Agrawal, Varma, "Parabel", WWW 2018, section 3.2, and of Jasinska-
          Kobus, Wydmuch, Dembczynski, Kuznetsov, Busa-Fekete, "Probabilistic Label Trees", 2020; written anew.
Idea      A prototype is the sum of a class's examples, each of length 1, its features then weighed by
          log((1 + k) / classes that have the feature) and the whole brought to length 1. The labels of a node are
          split into halves around two centres: one half is those that are nearer to the first centre than the others
          are; each centre is then the sum of its half; and so on until the sum of similarities to the centres grows
          no more. The halves of all halves, down to single labels, put the labels in an order; the tree is the
          one that halves this order (`label_tree.halved`), of the least depth there can be.
Cost      reading: a cell of a hash map a feature; splitting: z features of prototypes * log2 k levels * some 8 rounds
          * tries. Memory 12 bytes a cell, at most MOST_CELLS of them: beyond, classes keep their heaviest features.
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
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from . import label_tree
from .jit import jit

FIRST_CELLS, MOST_CELLS = 1 << 14, 1 << 24  # of the map, at most half of them in use
WORK = 1 << 21  # features of prototypes, times tries
FEWEST_TRIES, MOST_TRIES = 2, 16
ROUNDS = 30
LEAST_GAIN = 1e-5  # of the mean similarity to the centres, for another round
SERIAL = 3  # levels that are split one node after the other; the nodes below are shared out to threads
DEEPEST = 64  # more levels than the halves of an array can have

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
LOW = np.uint64(0xFFFFFFFF)
NOTHING = np.uint64(0)
ONE, ZERO = np.float32(1), np.float32(0)


class Sums(NamedTuple):
    """A hash map from (label, feature) to the sum of the feature over the label's examples."""

    key: np.ndarray  # uint64[cells], label << 32 | feature, 0 is an empty cell
    value: np.ndarray  # float32[cells]
    used: np.ndarray  # int64[1], cells in use


class Rows(NamedTuple):
    """Prototypes: features of row r are `feature[start[r]:start[r + 1]]`."""

    start: np.ndarray  # int64[k + 1]
    feature: np.ndarray  # int32[z], 0..F-1
    value: np.ndarray  # float32[z]


class Scratch(NamedTuple):
    """What splitting needs of each row."""

    first: np.ndarray  # float64[k], similarity to the first sum, then by how much it is nearer to the first centre
    second: np.ndarray  # float64[k]
    side: np.ndarray  # int8[k], which sum it is part of, -1 for none
    best: np.ndarray  # int8[k], the side in the best split so far
    item: np.ndarray  # int64[k], rows in any order


# -- kernels


@jit
def _mix(z):
    """Steele, Lea, Flood, "Fast Splittable Pseudorandom Number Generators", 2014."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@jit
def _cell(key, wanted):
    """Where `wanted` is, or the empty cell where it belongs."""
    last = np.int64(key.shape[0] - 1)
    z = wanted * GOLDEN
    at = np.int64((z ^ (z >> np.uint64(29))) >> np.uint64(7)) & last
    while key[at] != wanted and key[at] != NOTHING:
        at = (at + 1) & last
    return at


@jit
def add(sums, batch, counted, begin):
    """Add the examples from `begin` on that are `counted`; return the first that finds no room."""
    most = np.int64(sums.key.shape[0] // 2)
    for i in range(begin, batch.label.shape[0]):
        if not counted[i]:
            continue
        low, high = batch.start[i], batch.start[i + 1]
        if sums.used[0] + high - low > most:
            return i
        total = 0.0
        for f in range(low, high):
            total += np.float64(batch.value[f]) * np.float64(batch.value[f])
        if not (total > 0.0 and total < np.inf):
            continue
        scale = np.float32(np.float64(batch.weight[i]) / math.sqrt(total))
        label = np.uint64(np.int64(batch.label[i])) << np.uint64(32)
        for f in range(low, high):
            wanted = label | np.uint64(batch.index[f])
            at = _cell(sums.key, wanted)
            if sums.key[at] == NOTHING:
                sums.key[at] = wanted
                sums.used[0] += 1
            sums.value[at] += batch.value[f] * scale
    return np.int64(batch.label.shape[0])


@jit
def move_cells(sums, larger):
    """Copy a map into an empty one."""
    for c in range(sums.key.shape[0]):
        if sums.key[c] != NOTHING:
            at = _cell(larger.key, sums.key[c])
            larger.key[at] = sums.key[c]
            larger.value[at] = sums.value[c]
    larger.used[0] = sums.used[0]


@jit
def lay_out(sums, label, feature, key, number, rows, classes):
    """Bring the sums into rows.

    `label` and `feature` (uint64[k], uint64[F]) are the different ones, `key` and `number` an empty map with room for
    both; `classes` : int64[F] becomes the rows that have a feature.
    """
    k = label.shape[0]
    inside = np.uint64(1) << np.uint64(63)  # tells labels from features
    for r in range(k):
        at = _cell(key, label[r])
        key[at] = label[r]
        number[at] = r
    for f in range(feature.shape[0]):
        at = _cell(key, feature[f] | inside)
        key[at] = feature[f] | inside
        number[at] = f
    for c in range(sums.key.shape[0]):
        if sums.key[c] != NOTHING:
            rows.start[number[_cell(key, sums.key[c] >> np.uint64(32))] + 1] += 1
    for r in range(k):
        rows.start[r + 1] += rows.start[r]
    end = rows.start.copy()
    for c in range(sums.key.shape[0]):
        if sums.key[c] != NOTHING:
            r = number[_cell(key, sums.key[c] >> np.uint64(32))]
            f = number[_cell(key, (sums.key[c] & LOW) | inside)]
            rows.feature[end[r]] = f
            rows.value[end[r]] = sums.value[c]
            end[r] += 1
            classes[f] += 1


@jit
def weigh(rows, weight):
    """Multiply each feature by its weight (float64[F]) and bring rows to length 1; a sum that overflowed is nothing."""
    for r in range(rows.start.shape[0] - 1):
        total = 0.0
        for j in range(rows.start[r], rows.start[r + 1]):
            x = np.float64(rows.value[j]) * weight[rows.feature[j]]
            total += x * x
        scale = 1.0 / math.sqrt(total) if total > 0.0 and total < np.inf else 0.0
        for j in range(rows.start[r], rows.start[r + 1]):
            x = np.float64(rows.value[j]) * weight[rows.feature[j]]
            rows.value[j] = np.float32(x * scale) if scale > 0.0 else ZERO


@jit
def _before(worth, a, b):
    return worth[a] > worth[b] or (worth[a] == worth[b] and a < b)


@jit
def select(item, begin, end, middle, worth):
    """Put the items of most worth into `item[begin:middle]`, the others into `item[middle:end]`.

    `worth[i]` is that of item i; of equals the lower one is worth more. Hoare's selection.
    """
    low, high = begin, end - 1
    seed = np.uint64(begin)
    while low < high:
        seed = _mix(seed + GOLDEN)
        pivot = item[low + np.int64(seed % np.uint64(high - low + 1))]
        i, j = low, high
        while i <= j:
            while _before(worth, item[i], pivot):
                i += 1
            while _before(worth, pivot, item[j]):
                j -= 1
            if i <= j:
                item[i], item[j] = item[j], item[i]
                i += 1
                j -= 1
        if middle <= j:
            high = j
        elif middle >= i:
            low = i
        else:
            return


@jit
def heaviest(start, worth, most, kept):
    """Mark those features of every row that are worth most, `most` of them; `worth` : float64[z], `kept` : bool[z]."""
    item = np.arange(worth.shape[0])
    for r in range(start.shape[0] - 1):
        middle = min(start[r] + most, start[r + 1])
        select(item, start[r], start[r + 1], middle, worth)
        for j in range(start[r], middle):
            kept[item[j]] = True


@jit
def keep(rows, label, feature, kept, sums):
    """Put what is kept of the rows into an empty map; `label`, `feature` : uint64[k], uint64[F]."""
    for r in range(rows.start.shape[0] - 1):
        for j in range(rows.start[r], rows.start[r + 1]):
            if kept[j]:
                wanted = label[r] << np.uint64(32) | feature[rows.feature[j]]
                at = _cell(sums.key, wanted)
                sums.key[at] = wanted
                sums.value[at] = rows.value[j]
                sums.used[0] += 1


@jit
def _move(rows, r, centre, side, sign):
    for j in range(rows.start[r], rows.start[r + 1]):
        centre[rows.feature[j], side] += sign * rows.value[j]


@jit
def _split(rows, order, begin, end, centre, scratch, seed):
    """Find halves of `order[begin:end]`, two rows or more, that are alike: `scratch.side`; return how much they are.

    `centre` : float32[F, 2], the sums of the halves, is 0 before and after. The first half has the odd row.
    """
    n = end - begin
    middle = begin + (n + 1) // 2
    side, item = scratch.side, scratch.item
    for m in range(begin, end):
        side[order[m]] = -1
        item[m] = order[m]
    first = np.int64(_mix(seed) % np.uint64(n))
    second = (first + 1 + np.int64(_mix(seed + GOLDEN) % np.uint64(n - 1))) % n
    side[order[begin + first]] = 0
    _move(rows, order[begin + first], centre, 0, ONE)
    side[order[begin + second]] = 1
    _move(rows, order[begin + second], centre, 1, ONE)
    alike = 0.0
    for t in range(ROUNDS):
        square_0 = square_1 = 0.0
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
                square_0 += x
            elif side[r] == 1:
                square_1 += y
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
        select(item, begin, end, middle, scratch.first)
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
def split(rows, order, begin, end, centre, scratch, seed, tries):
    """Bring `order[begin:end]`, rising rows, into halves of rising rows that are alike; return where the second begins.

    Of several pairs of first centres the best one is taken.
    """
    place = np.uint64(begin) << np.uint64(32) | np.uint64(end)
    most = -1.0
    for t in range(tries):
        alike = _split(rows, order, begin, end, centre, scratch, _mix(seed + np.uint64(t)) ^ place)
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
def split_all(rows, order, begin, end, centre, scratch, seed, tries):
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


def new_sums(cells: int) -> Sums:
    """An empty map."""
    return Sums(np.zeros(cells, np.uint64), np.zeros(cells, np.float32), np.zeros(1, np.int64))


def in_rows(sums: Sums) -> tuple[np.ndarray, np.ndarray, Rows, np.ndarray]:
    """Labels (uint64[k]), features (uint64[F]), the sums of each label, and how many labels have each feature."""
    used = sums.key[sums.key != 0]
    label, feature = np.unique(used >> np.uint64(32)), np.unique(used & LOW)
    cells = 2 << int(len(label) + len(feature)).bit_length()
    rows = Rows(np.zeros(len(label) + 1, np.int64), np.zeros(len(used), np.int32), np.zeros(len(used), np.float32))
    classes = np.zeros(len(feature), np.int64)
    lay_out(sums, label, feature, np.zeros(cells, np.uint64), np.zeros(cells, np.int64), rows, classes)
    return label, feature, rows, classes


def rareness(classes: np.ndarray, k: int) -> np.ndarray:
    """Weight of features that so many of k classes have: float64[F]."""
    return np.log((1.0 + k) / classes)


def trimmed(sums: Sums, target: int) -> Sums:
    """A map of as many cells with `target` of them in use, or one per label: its heaviest features."""
    label, feature, rows, classes = in_rows(sums)
    size = np.diff(rows.start)
    low, high = 1, int(size.max())  # most features of a label, such that all are `target`
    while low < high:
        middle = (low + high + 1) // 2
        if int(np.minimum(size, middle).sum()) <= target:
            low = middle
        else:
            high = middle - 1
    worth = np.abs(rows.value) * rareness(classes, len(label))[rows.feature]
    kept = np.zeros(len(worth), bool)
    heaviest(rows.start, worth, low, kept)
    found = new_sums(len(sums.key))
    keep(rows, label, feature, kept, found)
    return found


class Sample:
    """Examples that are looked at, and what they say of their labels.

    Parameters
    ----------
    examples : how many are looked at; 0 for all that come

    Attributes
    ----------
    seen : how many were
    """

    def __init__(self, examples: int):
        self.examples = examples
        self.seen = 0
        self._sums = new_sums(FIRST_CELLS)

    def add(self, batch, counted: np.ndarray) -> bool:
        """Look at the examples of a batch that are `counted` (bool[n]); return whether more are wanted."""
        if self.examples:
            counted = counted & (np.cumsum(counted) <= self.examples - self.seen)
        self.seen += int(np.count_nonzero(counted))
        done = 0
        while (done := add(self._sums, batch, counted, done)) < batch.n:
            self._make_room()
        return not self.examples or self.seen < self.examples

    def _make_room(self) -> None:
        cells = len(self._sums.key)
        if cells >= MOST_CELLS and self._sums.used[0] > cells // 4:
            self._sums = trimmed(self._sums, cells // 4)
            if self._sums.used[0] <= cells // 4:
                return
        larger = new_sums(2 * cells)
        move_cells(self._sums, larger)
        self._sums = larger

    def trees(self, seeds: list[int], share: Callable, room: int) -> list[label_tree.Tree]:
        """For each seed the tree of least depth that has alike labels together, with `room` for so many; or none."""
        return [label_tree.halved(order, room) for order in self.orders(seeds, share) if len(order)]

    def orders(self, seeds: list[int], share: Callable) -> list[np.ndarray]:
        """For each seed the labels in an order whose halves, and halves of halves, are alike: int64[k].

        `share(job, items)` does `job(*item)` for all items, on as many threads as it likes.
        """
        label, feature, rows, classes = in_rows(self._sums)
        weigh(rows, rareness(classes, len(label)))
        k = len(label)
        tries = min(max(WORK // max(len(rows.value), 1), FEWEST_TRIES), MOST_TRIES)
        orders = [np.arange(k) for _ in seeds]
        each = [
            Scratch(np.zeros(k), np.zeros(k), np.zeros(k, np.int8), np.zeros(k, np.int8), np.zeros(k, np.int64))
            for _ in seeds
        ]

        def job(kernel, t, low, high):
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
