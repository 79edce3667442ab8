"""Propose classes by an index that stores, for each hashed feature, the classes in which it occurs most often.

Idea      A tree proposes classes by about log2 K decisions, each of which learns from many classes at once. Where rare
          words tell the class, it is simpler to remember which classes a word occurred in. The index keeps a few pairs
          (class, count) for each feature. They give two scores for each class: the cosine between the example and the
          tf-idf centroid of the class, and the log probability of naive Bayes, both as far as the stored pairs tell.
          The classes with the largest cosine are proposed, and both scores become features of all candidates in
          `reranking`.
Source    This project's own; the centroid classifier is that of Rocchio, "Relevance feedback in information retrieval",
          1971. docs/defaults.md contains the measurements.
Cost      O(s m) per example for s features and m slots, and one cache line per feature if m is 8.
Names     y class | n weight of its examples | c count of a feature in a class | q share of all examples that contain
          the feature (`document_frequency`), w = log(1 / q)**2 | norm2 estimate of the centroid's squared length.
Differs   from an inverted index: a row keeps at most m classes, the most frequent first. A class that finds its row
          full adds its weight to the `wear` of the row; as soon as this reaches the count of the last class, it takes
          the place of that class.

    cosine(y) = GAIN * (sum of w c) / (sqrt(norm2) + SHRINK) / sqrt(sum of w)
    bayes(y)  = (sum of log(1 + c / (PRIOR q)) - s log(1 + n / PRIOR) + log(n + 1)) / sqrt(s + 1), where s counts the
                features that the index knows; less the largest of the candidates, and at least LEAST

In further passes over the same data nothing is counted again, and an example's own counts are left out of c and n, so
that the index says about it what it would say about a new example.

Features that occur in more than MOST_SHARE of the examples tell nothing and are left out, and so is the constant. A
count is the weight of the examples; their values are not used.
"""

from __future__ import annotations

import math
import sys
from typing import NamedTuple

import numpy as np

from ...array_types import Bools, Float32s, Float64s, Int, Int64s, UInt32s, UInt64s
from ...data.batch import Batch
from ...kernels import fast_math, top_k
from ...kernels.constants import LARGEST, ZERO
from ...kernels.direct import DirectCall
from ...kernels.jit import bare, jit
from ...model import stored_arrays
from ...model.archive import PAIRS, Archive, LiveTable
from ...model.stored_arrays import Arrays
from ..core import label_arrays, seen_labels
from ..core.seen_labels import Seen
from . import index_rows

GAIN, SHRINK = 10.0, 25.0  # of the cosine: its scale, and what is added to the length of a centroid
PRIOR = 50.0  # of naive Bayes: examples that are added to those of a class
LEAST = -20.0  # smallest score of naive Bayes
MOST_SHARE = 0.5  # features that occur in a larger share of the examples are not used
COSINE, PROPOSED, BAYES, SCORES = range(4)  # positions in `Opinions.score`, and their number
PAIR_BYTES = 8  # memory of a slot
FIRST_CLASSES = 256  # classes for which memory is reserved at first


class Index(NamedTuple):
    """Hold the rows of the index and the counts of its classes, for kernels."""

    pair: UInt32s  # the rows, see `index_rows.IndexRows`
    times: Float32s
    wear: Float32s
    bitmap: UInt64s
    first: UInt32s
    shift: np.uint64  # 64 - log2 of the rows
    slots: int
    classes: Seen  # the classes with their numbers
    weight: Float64s  # float64[capacity], n
    norm2: Float64s  # float64[capacity]


class IndexScratch(NamedTuple):
    """Provide buffers for one thread; sums are 0 between examples."""

    dot: Float64s  # float64[capacity], sum of w c for each class
    log_odds: Float64s  # float64[capacity], sum of log(1 + c / (PRIOR q))
    touched: Int64s  # int64[features * slots], classes whose sums are not 0
    best: Int64s  # int64[proposals], classes with the largest cosine
    best_score: Float64s  # float64[proposals]
    own: Float64s  # float64[capacity], what the example itself has added to the counts of each class


class Opinions(NamedTuple):
    """Hold the candidates of n examples and what the index says about each."""

    candidate: Int64s  # int64[n, C], distinct labels of the trees, then those that only the index proposes, then 0
    score: Float64s  # float64[n, C, SCORES], cosine, 1 if the index proposes the class, and score of naive Bayes
    label_weight: Float64s  # float64[n], weight of the earlier examples of the label; infinite without an index


def no_opinions(candidate: Int64s) -> Opinions:
    """Return opinions that say nothing, for the candidates (int64[n, C]) of trees without an index."""
    n, size = candidate.shape
    return Opinions(candidate, np.zeros((n, size, SCORES)), np.full(n, np.inf))


class FeatureIndex:
    """Hold an index of 2**bits rows with `slots` classes each, which proposes some classes and grows with the classes.

    With `weights_only` it only predicts and is not inspected, so that it is packed. The arrays in `index` are replaced
    when they are enlarged.
    """

    def __init__(self, bits: int, slots: int, proposals: int, weights_only: bool = False) -> None:
        self.proposals, self._bits = proposals, bits
        rows = index_rows.packed_rows(bits, slots) if weights_only else index_rows.all_rows(bits, slots)
        none = Index(*rows, np.uint64(64 - bits), slots, seen_labels.new(1), np.empty(0), np.empty(0))
        self.index = _with_capacity(none, FIRST_CLASSES)
        self._scratches: list[IndexScratch] = []  # buffers that no thread uses
        self._kernel = DirectCall(sys.modules[__name__], "propose")

    def reserve(self, classes: int) -> None:
        needed = int(self.index.classes.size[0]) + classes
        if needed > len(self.index.weight):
            self.index = _with_capacity(self.index, max(needed, 2 * len(self.index.weight)))

    def propose(
        self, batch: Batch, share: Float32s, label: Int64s, learns: Bools, again: bool, begin: int, end: int,
        opinions: Opinions,
    ) -> None:  # fmt: skip
        """Do what the kernel `propose` does."""
        needed = batch.most_features * self.index.slots
        scratch = self._scratches.pop() if self._scratches else None
        if scratch is None or len(scratch.dot) < len(self.index.weight) or len(scratch.touched) < needed:
            capacity = len(self.index.weight)
            scratch = IndexScratch(
                np.zeros(capacity), np.zeros(capacity), np.empty(needed, np.int64),
                np.empty(self.proposals, np.int64), np.empty(self.proposals), np.zeros(capacity),
            )  # fmt: skip
        self._kernel(self.index, batch, share, label, learns, again, begin, end, scratch, opinions)
        self._scratches.append(scratch)

    def serialize(self, archive: Archive) -> None:
        """Save the index, or fill a new one from a model.

        The numbers of classes are used as indices, so they are checked to be below the number of classes. Labels must
        differ, because each has one cell of the hash table.
        """
        size = int(self.index.classes.size[0])
        label = seen_labels.serialize(archive, "index_classes.label", self.index.classes.label[:size])
        if not archive.saves:
            size = len(label)
            self.reserve(size)
        index = self.index = self._with_rows(archive, size)
        for name, array in (("weight", index.weight), ("norm2", index.norm2)):
            archive.fill(f"index_classes.{name}", array[:size], 0, sys.float_info.max)
        if archive.live is None and archive.has("index_rows.wear"):
            wear = index.wear if len(index.wear) else np.zeros(1 << self._bits, np.float32)
            archive.table("index_rows", {"wear": wear}, {"wear": (0, LARGEST)})
        if not archive.saves:
            seen_labels.enter(index.classes, label)

    def _with_rows(self, archive: Archive, classes: int) -> Index:
        """Save the rows, or return the index with those of a model; one that is packed stays so if few are in use."""
        bits, index = self._bits, self.index
        if archive.live is not None:
            live = archive.hand_over("index", LiveTable(PAIRS, (index.pair, index.wear.view(np.uint32))))
            if archive.saves or live is None:
                return index
            pair, wear = live.planes
            return index._replace(pair=pair, times=pair.view(np.float32), wear=wear.view(np.float32))
        ranges = {"class": (0, classes), "count": (0, LARGEST)}
        if len(index.bitmap):
            if archive.saves:
                n = 2 * int(index.first[-1])
                rows = {
                    "index": index_rows.slots_in_use(index),
                    "class": index.pair[0:n:2],
                    "count": index.times[1:n:2],
                }
                archive.arrays.update({f"index.{name}": array for name, array in rows.items()})
                return index
            planes = {"class": np.uint32, "count": np.float32}
            few = stored_arrays.rows_in_use("index", archive.arrays, index.slots << bits, planes)
            if few is not None:
                slot, own = few
                for plane, x in own.items():
                    stored_arrays.check_range(f"index.{plane}", x, *ranges[plane])
                packed_rows = index_rows.packed_rows(bits, index.slots, slot, own["class"], own["count"])
                return index._replace(**packed_rows._asdict())
            stored_arrays.check_memory("index.class", PAIR_BYTES * index.slots << bits)
            index = index._replace(**index_rows.all_rows(bits, index.slots)._asdict())
        pairs = {"class": index.pair[0::2], "count": index.times[1::2]}
        archive.table("index", pairs, ranges, index.pair.view(np.uint64))
        return index


def _with_capacity(index: Index, classes: int) -> Index:
    """Return the index with space for at least `classes` classes."""
    size = int(index.classes.size[0])
    known = seen_labels.of(index.classes.label[:size], classes)
    weight, norm2 = np.zeros(len(known.label)), np.zeros(len(known.label))
    weight[:size], norm2[:size] = index.weight[:size], index.norm2[:size]
    return index._replace(classes=known, weight=weight, norm2=norm2)


def check_sizes(arrays: Arrays, slots: int, bits: int) -> None:
    """Refuse a model whose index has rows of another size, before memory is allocated for them."""
    if "index.index" not in arrays and "index.class" in arrays:
        rows = np.shape(arrays["index.class"])
        if rows != (slots << bits,):
            raise stored_arrays.unfit("index.class", f"it has the shape {list(rows)}")


# -- kernels


@bare
def class_number(index: Index, label: int) -> int:
    """Return the number of a label's class, -1 if the index has not learned it."""
    return int(seen_labels.number_of(index.classes, label, False))


@bare
def other_weight(index: Index, number: int, own: Float64s) -> float:
    """Return the weight of the examples of class `number` (-1: none) without that of this example."""
    weight: float = max(index.weight[number] - own[number], 0.0) if number >= 0 else 0.0
    return weight


@bare
def set_own(index: Index, label: Int64s, begin: Int, end: Int, weight: float, own: Float64s) -> None:
    """Set the items of the classes of labels begin..end-1 in `own` to a weight."""
    for j in range(begin, end):
        number = class_number(index, label[j])
        if number >= 0:
            own[number] = weight


@bare
def cosine(index: Index, dot: float, number: int, total: float) -> float:
    """Return the cosine of class `number`; `total` is the sum of w of the example's features."""
    return GAIN * dot / ((math.sqrt(index.norm2[number]) + SHRINK) * math.sqrt(total))


@jit
def propose(
    index: Index, batch: Batch, share: Float32s, label: Int64s, learns: Bools, again: bool, begin: int, end: int,
    scratch: IndexScratch, opinions: Opinions,
) -> None:  # fmt: skip
    """Add candidates and scores to the examples begin..end-1, and learn each example afterwards.

    Parameters
    ----------
    share : float32[z], q of each feature, 0 for the constant
    label : see `label_arrays.span`
    learns : bool[n], whether to learn from the example
    again : whether examples were learned in an earlier pass
    opinions : rows begin..end-1 are written; `candidate` holds the candidates of the trees and has space for more
    """
    candidate, score, label_weight = opinions
    for i in range(begin, end):
        first, last = batch.start[i], batch.start[i + 1]
        for f in range(first, last):
            index_rows.prefetch_row(index, batch.index[f])
        begin_label, end_label = label_arrays.span(batch, label, i)
        learned = again and learns[i] and batch.weight[i] > ZERO
        if learned:
            set_own(index, label, begin_label, end_label, np.float64(batch.weight[i]), scratch.own)
        touched, features, total = add_rows(index, batch, share, first, last, learned, scratch)
        proposed = 0
        for t in range(touched):
            number = scratch.touched[t]
            value = cosine(index, scratch.dot[number], number, total)
            proposed = top_k.insert(scratch.best, scratch.best_score, proposed, number, value)
        score_candidates(index, candidate[i], score[i], scratch, proposed, features, total)
        for t in range(touched):
            scratch.dot[scratch.touched[t]] = 0.0
            scratch.log_odds[scratch.touched[t]] = 0.0
        for j in range(begin_label, end_label):
            label_weight[j] = other_weight(index, class_number(index, label[j]), scratch.own)
            if learns[i] and batch.weight[i] > ZERO and not again:
                learn(index, batch.index, share, first, last, label[j], batch.weight[i])
        if learned:
            set_own(index, label, begin_label, end_label, 0.0, scratch.own)


@bare
def add_rows(
    index: Index, batch: Batch, share: Float32s, first: int, last: int, learned: bool, scratch: IndexScratch
) -> tuple[int, int, float]:
    """Add up the scores of all classes that the rows of features first..last-1 contain.

    `learned` says whether counts include this example, by `scratch.own`.
    Return the number of these classes, that of the features that the index knows, and the sum of their w.
    """
    touched = features = 0
    total = 0.0
    for f in range(first, last):
        q = np.float64(share[f])
        at, end = index_rows.row_range(index, batch.index[f])
        if not 0.0 < q <= MOST_SHARE or at == end or index.pair[at] == 0:
            continue
        w = fast_math.log(q)
        w *= w
        features += 1
        total += w
        scale = 1.0 / (PRIOR * q)
        for a in range(at, end, 2):
            if index.pair[a] == 0:
                break
            number = np.int64(index.pair[a]) - 1
            count = np.float64(index.times[a + 1])
            if learned and scratch.own[number] > 0.0:
                count -= scratch.own[number]
                if count <= 0.0:
                    continue
            if scratch.dot[number] == 0.0:
                scratch.touched[touched] = number
                touched += 1
            scratch.dot[number] += w * count
            scratch.log_odds[number] += fast_math.log(1.0 + scale * count)
    return touched, features, total


@jit
def add_cosines(index: Index, feature: UInt32s, share: Float32s, label: int, added: Float64s) -> None:
    """Add to `added` (float64[s]) what each feature of an example adds to the cosine of a label that it proposes."""
    number = class_number(index, label)
    total = 0.0
    for f in range(len(feature)):
        q = np.float64(share[f])
        at, end = index_rows.row_range(index, feature[f])
        if not 0.0 < q <= MOST_SHARE or at == end or index.pair[at] == 0:
            continue
        w = fast_math.log(q) * fast_math.log(q)
        total += w
        for a in range(at, end, 2):
            if index.pair[a] == number + 1:
                added[f] += w * np.float64(index.times[a + 1])
    for f in range(len(feature)):
        if added[f] > 0.0:
            added[f] = cosine(index, added[f], number, total)


@bare
def score_candidates(
    index: Index, candidate: Int64s, score: Float64s, scratch: IndexScratch, proposed: int, features: int, total: float
) -> None:
    """Append the `proposed` classes in `scratch.best` to the candidates of an example, and score all candidates.

    `candidate`, int64[C], has labels, then 0; it and `score`, float64[C, SCORES], are written. `add_rows` explains
    `features` and `total`.
    """
    size = 0
    while size < candidate.shape[0] and candidate[size] > 0:
        size += 1
    of_trees = size
    for j in range(proposed):
        y = index.classes.label[scratch.best[j]]
        c = 0
        while c < of_trees and candidate[c] != y:
            c += 1
        if c == of_trees:
            c = size
            candidate[c] = y
            size += 1
        score[c, PROPOSED] = 1.0
    largest = -math.inf
    for c in range(size):
        number = class_number(index, candidate[c])
        weight = other_weight(index, number, scratch.own)
        log_odds = scratch.log_odds[number] if number >= 0 else 0.0
        if number >= 0 and total > 0.0:
            score[c, COSINE] = cosine(index, scratch.dot[number], number, total)
        bayes = log_odds - features * fast_math.log(1.0 + weight / PRIOR) + fast_math.log(weight + 1.0)
        score[c, BAYES] = bayes / math.sqrt(features + 1.0)
        largest = max(largest, score[c, BAYES])
    for c in range(size):
        score[c, BAYES] = max(score[c, BAYES] - largest, LEAST)


@bare
def learn(
    index: Index, feature: UInt32s, share: Float32s, first: int, last: int, label: int, weight: np.float32
) -> None:
    """Count features first..last-1 for a label; there is space for a new class."""
    number = np.int64(seen_labels.number_of(index.classes, label, True))
    index.weight[number] += np.float64(weight)
    for f in range(first, last):
        q = np.float64(share[f])
        if not 0.0 < q <= MOST_SHARE:
            continue
        begin = index_rows.row_begin(index, feature[f])
        end = begin + 2 * index.slots
        a = begin
        while a < end and index.pair[a] != 0 and index.pair[a] != number + 1:
            a += 2
        if a == end:
            replace_last(index, end - 2, number, weight)
            continue
        w = fast_math.log(q)
        count = np.float64(index.times[a + 1])
        index.norm2[number] += w * w * np.float64(weight) * (2.0 * count + np.float64(weight))
        index.pair[a] = number + 1
        index.times[a + 1] = np.float32(min(count + np.float64(weight), LARGEST))
        while a > begin and index.times[a + 1] > index.times[a - 1]:
            index.pair[a], index.pair[a - 2] = index.pair[a - 2], index.pair[a]
            index.times[a + 1], index.times[a - 1] = index.times[a - 1], index.times[a + 1]
            a -= 2


@bare
def replace_last(index: Index, at: Int, number: Int, weight: np.float32) -> None:
    """Add to the wear of a full row, and replace its last class, at position `at`, as soon as it is worn out."""
    row = at // (2 * index.slots)
    index.wear[row] = np.float32(min(np.float64(index.wear[row]) + np.float64(weight), LARGEST))
    if index.wear[row] >= index.times[at + 1]:
        index.pair[at] = number + 1
        index.times[at + 1] = weight
        index.wear[row] = ZERO
