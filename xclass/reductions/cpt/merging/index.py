"""Merge indexes of features: pairs of a class and its count, and the lengths of the centroids of the classes.

Idea      Counts are added since the base, class by class; classes are found by their labels. A row keeps the classes
          with the largest counts; a class that all models have dropped since the base stays dropped. Its wear is added,
          too, and reaches at most the count of the last class. The squared length of a centroid is not a sum over
          models, because the centroids of the models differ in direction. It is computed from the merged counts, times
          the ratio between what the models store and what the same computation gives for their own counts.
Cost      O(rows * slots) for each model.
Names     As in `feature_index`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ....array_types import Float64s, Int64s
from ....binary.document_frequency import WEIGHT, Frequencies
from ....binary.merging import added_counts
from ....kernels.constants import LARGEST
from ....kernels.jit import jit
from .. import feature_index
from ..feature_index import MOST_SHARE, FeatureIndex, Index

PIECE = 1 << 12  # rows to merge at a time
MOST = float(np.finfo(np.float64).max)  # of the numbers of a class in a model file


def merge(
    target: FeatureIndex,
    models: Sequence[FeatureIndex],
    base: FeatureIndex,
    numbers: Sequence[Int64s | None],
    frequencies: Sequence[Frequencies],
) -> None:
    """Fill a new index with the merged counts.

    Parameters
    ----------
    target : written
    models, base : read only
    numbers : for each model, int64[labels + 1], the new number of each label; None for the same numbers
    frequencies : counts of the features: of the result, then of each model
    """
    label_lists = [base.index.label[: base.index.size[0]]]
    for model, number in zip(models, numbers, strict=True):
        label = model.index.label[: model.index.size[0]]
        label_lists.append(label if number is None else number[label])
    joined = np.concatenate(label_lists)
    labels = joined[np.sort(np.unique(joined, return_index=True)[1])]  # in the order of the base and of the models
    target.reserve(len(labels))
    index = target.index
    index.label[: len(labels)] = labels
    index.size[0] = len(labels)
    feature_index.enter_labels(index)
    order = np.argsort(labels)
    maps = [order[np.searchsorted(labels, own, sorter=order)] for own in label_lists]
    sources = [base.index, *(model.index for model in models)]
    _merge_pairs(index, sources, maps)
    full = index.times.reshape(len(index.wear), -1)[:, -1]  # count of the last class, 0 if there is space for more
    wear = added_counts([source.wear.astype(np.float64) for source in sources[1:]], sources[0].wear.astype(np.float64))
    index.wear[:] = np.minimum(wear, full)
    _merge_classes(index, sources, maps, frequencies)


def _merge_pairs(index: Index, sources: Sequence[Index], maps: Sequence[Int64s]) -> None:
    """Fill the rows of an index with the pairs of the sources, whose classes have the numbers `maps` in the result."""
    known = [np.concatenate([[0], own + 1]) for own in maps]  # 0 stands for an empty slot
    pair, times = index.pair.reshape(-1, 2 * index.slots), index.times.reshape(-1, 2 * index.slots)
    for begin in range(0, len(pair), PIECE):
        rows = slice(begin, begin + PIECE)
        classes, counts = [], []
        for source, number in zip(sources, known, strict=True):
            classes.append(number[source.pair.reshape(pair.shape)[rows, 0::2]])
            counts.append(source.times.reshape(pair.shape)[rows, 1::2].astype(np.float64))
        if not any(one.any() for one in classes):
            continue
        merged_class, merged_count = np.zeros_like(classes[0]), np.zeros_like(counts[0])
        merge_rows(np.stack(classes), np.stack(counts), merged_class, merged_count)
        pair[rows, 0::2] = merged_class
        times[rows, 1::2] = np.minimum(merged_count, LARGEST)


def _merge_classes(
    index: Index, sources: Sequence[Index], maps: Sequence[Int64s], frequencies: Sequence[Frequencies]
) -> None:
    """Fill the weights of the classes and the squared lengths of their centroids."""
    size = int(index.size[0])
    weights, stored, computed = [], np.zeros(size), np.zeros(size)
    largest, holders = np.zeros(size), np.zeros(size)
    for number, (source, own) in enumerate(zip(sources, maps, strict=True)):
        weight = np.zeros(size)
        weight[own] = source.weight[: len(own)]
        weights.append(weight)
        norm2 = source.norm2[: len(own)]
        if number > 0:  # the models contain the base
            largest[own] = np.maximum(largest[own], norm2)
            holders[own] += 1
            own_computed = _squared_lengths(source, frequencies[number])
            stored[own] += np.where(own_computed > 0, norm2, 0.0)
            computed[own] += own_computed
    index.weight[:size] = np.minimum(added_counts(weights[1:], weights[0]), MOST)
    ratio = np.divide(stored, computed, where=computed > 0, out=np.ones(size))
    lengths = _squared_lengths(index, frequencies[0])
    several = (lengths > 0) & (computed > 0) & (holders > 1)
    merged = np.where(several, ratio * lengths, largest)
    index.norm2[:size] = np.where(merged <= MOST, merged, MOST)  # sums of large numbers may not be finite


def _squared_lengths(index: Index, frequencies: Frequencies) -> Float64s:
    """Return the sum of (count * log q)**2 of each class over the rows, float64[classes]."""
    rows = len(index.wear)
    df = frequencies.count
    if rows <= len(df):
        df = df.reshape(rows, -1).max(axis=1)
    else:
        df = np.repeat(df, rows // len(df))
    q = (df + 0.5) / (frequencies.state[WEIGHT] + 1.0)
    w = np.where((q > 0) & (q <= MOST_SHARE), np.log(np.maximum(q, 1e-300)), 0.0)
    classes, counts = index.pair[0::2], index.times[1::2]
    used = np.flatnonzero(classes)
    amount = (counts[used].astype(np.float64) * w[used // index.slots]) ** 2
    lengths = np.bincount(classes[used].astype(np.int64) - 1, amount, int(index.size[0]))
    return lengths.astype(np.float64)


# -- kernels


@jit
def merge_rows(classes: Int64s, counts: Float64s, merged_class: Int64s, merged_count: Float64s) -> None:
    """Merge the rows of several indexes; the first is that of the base.

    Parameters
    ----------
    classes : int64[models + 1, rows, slots], numbers of classes plus 1, or 0; read only
    counts : float64[models + 1, rows, slots], read only
    merged_class, merged_count : int64[rows, slots], float64[rows, slots], zeros, written: the classes with the largest
        counts, in descending order; equal ones in the order in which they are listed
    """
    models, rows, slots = classes.shape
    number, before, total = np.empty(models * slots, np.int64), np.empty(models * slots), np.empty(models * slots)
    for r in range(rows):
        size = 0
        for k in range(1, models):
            for j in range(slots):
                y = classes[k, r, j]
                if y == 0:
                    break
                e = 0
                while e < size and number[e] != y:
                    e += 1
                if e == size:
                    number[e] = y
                    before[e] = 0.0
                    for i in range(slots):
                        if classes[0, r, i] == y:
                            before[e] = counts[0, r, i]
                    total[e] = before[e]
                    size += 1
                count = counts[k, r, j]
                if count >= before[e]:
                    total[e] += count - before[e]
                else:  # the class had lost its slot since the base and has begun anew
                    total[e] += count
        for place in range(min(size, slots)):
            best = 0
            for e in range(1, size):
                if total[e] > total[best]:
                    best = e
            merged_class[r, place] = number[best]
            merged_count[r, place] = total[best]
            total[best] = -1.0
