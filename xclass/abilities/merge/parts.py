"""Merge what several learners have: indexes of features, the counts of features, and trees of labels.

Idea      In an index, counts are added since the base, class by class; classes are found by their labels. A row keeps
          the classes with the largest counts; a class that all models have dropped since the base stays dropped. Its
          wear is added, too, and reaches at most the count of the last class. The squared length of a centroid is a sum
          of squares of counts: to what the models have added to it come, for each pair that several of them have
          counted, the products of their counts.
          A new label of a tree splits a leaf, whose old label goes left. So a tree has grown from another one if it has
          its nodes and, where a leaf of the other one is split, the label of the leaf is the first one below.
Cost      O(rows * slots) for each index; O(nodes) for each tree.
Names     As in `feature_index`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...array_types import Float32s, Float64s, Int, Int64s, UInt32s
from ...binary.document_frequency import VALUED, WEIGHT, DocumentFrequencies
from ...binary.merging import added_counts
from ...kernels.constants import LARGEST
from ...kernels.jit import jit
from ...model.table_changes import Changes, joined
from ...reductions.core import seen_labels
from ...reductions.cpt import binary_nodes, label_tree
from ...reductions.cpt.label_tree import NODES, ClassTree
from ...reductions.multiclass.feature_index import MOST_SHARE, FeatureIndex, Index
from .sources import Sources, add_up

UNDECIDED = 0.5  # probability of the right child at every node, as of a regressor that has learned nothing
MOST = float(np.finfo(np.float64).max)  # of the numbers of a class in a model file
CLASS, COUNT = "class", "count"  # planes of the pairs in a model file
PLANES = (CLASS, COUNT)


def merge_of(target: Any, sources: Sources) -> None:
    """Merge the indexes of learners, after the counts of their features."""
    index = sources.of("index")
    merge(target.index, index.learners, index.base, target.frequencies, sources.live)


def merge(
    target: FeatureIndex,
    models: Sequence[FeatureIndex],
    base: FeatureIndex,
    frequencies: DocumentFrequencies,
    live: bool,
) -> None:
    """Merge the counts of indexes.

    Parameters
    ----------
    target : a new index, which gets the arrays of the base, whose rows are replaced by the merged ones
    frequencies : counts of the features in the result
    live : whether rows are merged elsewhere
    """
    label_lists = [one.index.classes.label[: one.index.classes.size[0]] for one in (base, *models)]
    joined_labels = np.concatenate(label_lists)
    # in the order of the base and of the models
    labels = joined_labels[np.sort(np.unique(joined_labels, return_index=True)[1])]
    order = np.argsort(labels)
    maps = [order[np.searchsorted(labels, own, sorter=order)] for own in label_lists]
    before = [base.index.weight[: len(maps[0])].copy(), base.index.norm2[: len(maps[0])].copy()]
    target.index = base.index
    target.reserve(len(labels) - len(maps[0]))
    index = target.index
    seen_labels.enter(index.classes, labels)
    cross = np.zeros(len(labels))
    if not live:
        listed = [changed_pairs(one.index.pair, index.pair, own) for one, own in zip(models, maps[1:], strict=True)]
        wear, weight = [one.index.wear for one in models], row_weights(frequencies, len(index.wear))
        merge_pairs(index.pair, index.wear, listed, wear, weight, cross)
    own_numbers = [before, *([one.index.weight, one.index.norm2] for one in models)]
    _merge_classes(index, own_numbers, maps, cross)


def merge_pairs(
    pair: UInt32s, wear: Float32s, changes: Sequence[Changes], wears: Sequence[Float32s], weight: Float64s,
    cross: Float64s,
) -> None:  # fmt: skip
    """Replace pairs and wear of some rows of a base by the merged ones; `wears` are those of the models.

    `changes` are the pairs of each model that differ; `weight` and `cross` are as in `merge_rows`.
    """
    start = np.cumsum([0, *(len(one.rows) for one in changes)])
    rows, times = np.concatenate([one.rows for one in changes]), pair.view(np.float32)
    slots = len(pair) // (2 * len(wear))
    merge_rows(pair, times, slots, rows, joined(changes, CLASS), joined(changes, COUNT), start, weight, cross)
    added = added_counts([one.astype(np.float64) for one in wears], wear.astype(np.float64))
    full = times.reshape(len(wear), -1)[:, -1]  # count of the last class, 0 if there is space for more
    wear[:] = np.minimum(added, full)


def merge_frequencies(target: DocumentFrequencies, sources: Sources) -> None:
    """Fill new counts of features with those of a base and what models have added to them."""
    add_up(target, sources, "state")
    target.state[VALUED] = max(one.state[VALUED] for one in sources.learners)
    add_up(target, sources, "count")


def changed_pairs(pair: UInt32s, base: UInt32s, classes: Int64s) -> Changes:
    """Return the pairs in which a model differs from a base; `classes` are the numbers of its classes in the result."""
    number = np.concatenate([[0], classes + 1])  # 0 stands for an empty slot
    rows = np.empty(count_pairs(pair, base, number), np.uint32)
    changes = Changes(rows, {CLASS: np.empty(len(rows), np.uint32), COUNT: np.empty(len(rows), np.float32)})
    list_pairs(pair, pair.view(np.float32), base, number, rows, changes.planes[CLASS], changes.planes[COUNT])
    return changes


def _merge_classes(
    index: Index, numbers: Sequence[Sequence[Float64s]], maps: Sequence[Int64s], cross: Float64s
) -> None:
    """Fill the weights of the classes and the squared lengths of their centroids in the result.

    `numbers` are weights and squared lengths of the classes of the base, then of each model, and `maps`,
    int64[classes], the numbers of their classes in the result. `cross` is what `merge_rows` adds.
    """
    size = int(index.classes.size[0])
    for k, (target, more) in enumerate(((index.weight, np.zeros(size)), (index.norm2, cross))):
        every = np.zeros((len(numbers), size))
        for own, classes, values in zip(every, maps, numbers, strict=True):
            own[classes] = values[k][: len(classes)]
        target[:size] = np.fmin(added_counts([*every[1:]], every[0]) + more, MOST)  # sums may not be finite


def row_weights(frequencies: DocumentFrequencies, rows: int) -> Float64s:
    """Return log q of the features of each row of an index, 0 for those that it does not learn, float64[rows]."""
    df = frequencies.count
    df = df.reshape(rows, -1).max(axis=1) if rows <= len(df) else np.repeat(df, rows // len(df))
    q = (df + 0.5) / (frequencies.state[WEIGHT] + 1.0)
    return np.where((q > 0) & (q <= MOST_SHARE), np.log(np.maximum(q, 1e-300)), 0.0)


# -- trees


def extends(tree: ClassTree, base: ClassTree) -> bool:
    """Return whether a tree is equal to another one or has grown from it, so that the nodes of both are the same."""
    nodes = int(base.size[NODES])
    if nodes == 0 or nodes > int(tree.size[NODES]):
        return nodes == 0
    left, inner = tree.left[:nodes], base.left[:nodes] > 0
    first = tree.label[: int(tree.size[NODES])].copy()
    fill_first_labels(tree, first)
    return bool(
        np.array_equal(left[inner], base.left[:nodes][inner])
        and (left[~inner] >= nodes * (left[~inner] > 0)).all()
        and np.array_equal(first[:nodes][~inner], base.label[:nodes][~inner])
    )


def leaves(tree: ClassTree) -> Int64s:
    """Return the labels of a tree, int64[leaves]."""
    label = tree.label[: int(tree.size[NODES])]
    return label[label > 0]


def with_missing(tree: ClassTree, labels: Sequence[int]) -> ClassTree:
    """Insert those of some labels that a tree lacks, each where it is balanced; return it, or a larger one."""
    for label in labels:
        if not label_tree.has_capacity(tree):
            tree = label_tree.with_double_capacity(tree)
        insert(tree, label)
    return tree


# -- kernels


@jit
def count_pairs(pair: UInt32s, base: UInt32s, number: Int64s) -> int:
    """Return in how many slots a model differs from a base, see `list_pairs`."""
    count = 0
    for i in range(0, len(pair), 2):
        count += number[pair[i]] != base[i] or pair[i + 1] != base[i + 1]
    return count


@jit
def list_pairs(
    pair: UInt32s, times: Float32s, base: UInt32s, number: Int64s, rows: UInt32s, classes: UInt32s, counts: Float32s
) -> None:
    """List the slots in which a model differs from a base, and what they hold.

    `number` is int64[classes + 1], the number in `base` of each number in `pair`; `rows`, `classes` and `counts` have
    `count_pairs(pair, base, number)` elements and are written.
    """
    n = 0
    for i in range(0, len(pair), 2):
        if number[pair[i]] != base[i] or pair[i + 1] != base[i + 1]:
            rows[n] = i // 2
            classes[n] = number[pair[i]]
            counts[n] = times[i + 1]
            n += 1


@jit
def merge_rows(
    pair: UInt32s, times: Float32s, slots: int, rows: UInt32s, classes: UInt32s, counts: Float32s, start: Int64s,
    weight: Float64s, cross: Float64s,
) -> None:  # fmt: skip
    """Merge the rows of several indexes in which one differs from the base.

    Rows of the base are replaced by the classes with the largest counts, in descending order; equal ones in the order
    in which they are listed. `rows` are the slots in which models differ from the base, rising for each model,
    `classes` and `counts` the pairs there, and `start` is int64[models + 1], where the changes of each model begin.
    `weight` is float64[rows of the index]. To `cross`, float64[classes], is added by how much the square of a merged
    count, times that of the weight, grows more than those of all models together.
    """
    models = len(start) - 1
    at = start[:models].copy()
    own, own_count = np.empty((models + 1, slots), np.int64), np.empty((models + 1, slots))
    number, before, total = np.empty(models * slots, np.int64), np.empty(models * slots), np.empty(models * slots)
    squares = np.empty(models * slots)
    while True:
        row: Int = len(pair)
        for k in range(models):
            if at[k] < start[k + 1]:
                row = min(row, np.int64(rows[at[k]]) // slots)
        if row == len(pair):
            return
        begin = row * slots
        for k in range(models + 1):
            for j in range(slots):
                own[k, j] = pair[2 * (begin + j)]
                own_count[k, j] = times[2 * (begin + j) + 1]
        for k in range(models):
            while at[k] < start[k + 1] and np.int64(rows[at[k]]) - begin < slots:
                own[k + 1, np.int64(rows[at[k]]) - begin] = classes[at[k]]
                own_count[k + 1, np.int64(rows[at[k]]) - begin] = counts[at[k]]
                at[k] += 1
        size = 0
        for k in range(1, models + 1):
            for j in range(slots):
                y = own[k, j]
                if y == 0:
                    break
                e = 0
                while e < size and number[e] != y:
                    e += 1
                if e == size:
                    number[e] = y
                    before[e] = 0.0
                    for i in range(slots):
                        if own[0, i] == y:
                            before[e] = own_count[0, i]
                    total[e] = before[e]
                    squares[e] = before[e] * before[e]
                    size += 1
                count = own_count[k, j]
                if count >= before[e]:
                    total[e] += count - before[e]
                    squares[e] += count * count - before[e] * before[e]
                else:  # the class had lost its slot since the base and has begun anew
                    total[e] += count
                    squares[e] += count * count
        for e in range(size):
            cross[number[e] - 1] += max(total[e] * total[e] - squares[e], 0.0) * weight[row] * weight[row]
        for place in range(slots):
            best = 0
            for e in range(1, size):
                if total[e] > total[best]:
                    best = e
            s = 2 * (begin + place)
            pair[s] = number[best] if place < size else 0
            times[s + 1] = min(total[best], LARGEST) if place < size else 0.0
            if place < size:
                total[best] = -1.0


@jit
def fill_first_labels(tree: ClassTree, first: Int64s) -> None:
    """Set `first` (int64[nodes], labels of the leaves) at inner nodes to the label of the leftmost leaf below."""
    for a in range(tree.size[NODES] - 1, -1, -1):
        if tree.left[a] > 0:
            first[a] = first[tree.left[a]]


@jit
def insert(tree: ClassTree, label: Int) -> None:
    """Insert a label, see `with_missing`; the tree has capacity for it."""
    if label_tree.find(tree, label) >= 0:
        return
    if tree.size[NODES] == 0:
        label_tree.insert_root(tree, label)
        return
    a = np.int64(0)
    tree.leaves[a] += 1
    while tree.left[a] > 0:
        left = np.int64(tree.left[a])
        sides = np.float64(tree.leaves[left]), np.float64(tree.leaves[left + 1])
        a = left + 1 if binary_nodes.objective(1.0, UNDECIDED, sides[0], sides[1]) > 0.0 else left
        tree.leaves[a] += 1
    label_tree.split(tree, a, label)
