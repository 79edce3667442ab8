"""Adapt batches to a learner, and convert listed class probabilities into arrays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..data.batch import CONSTANT, Batch
from ..reductions.core.contract import BatchTask
from ..reductions.core.probabilities import ClassLists

LARGEST_HASH = 2**32 - 1


def have_constant(batch: Batch) -> np.ndarray:
    """Return bool[n]: whether the last feature of each example is the constant feature."""
    last = np.maximum(batch.start[1:] - 1, 0)
    return (np.diff(batch.start) > 0) & (batch.index[last] == CONSTANT) if len(batch.index) else np.zeros(batch.n, bool)


def masked(batch: Batch, bits: int) -> Batch:
    """Return a batch whose feature hashes are cut to `bits` bits, except that of the constant feature.

    The parser cuts hashes in the same way for a weight table of 2**bits slots.
    """
    if 1 << bits > LARGEST_HASH:
        return batch
    index = batch.index & np.uint32((1 << bits) - 1)
    index[batch.start[1:][have_constant(batch)] - 1] = CONSTANT
    return batch._replace(index=index)


def copied(batch: Batch) -> Batch:
    """Return a deep copy of a batch, which later changes by the caller to its arrays do not affect."""
    return batch._replace(**{name: array.copy() for name, array in batch._asdict().items()})


def joined_scores(tasks: Sequence[BatchTask]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the scores of n examples: where those of each begin (int64[n + 1]), their labels and the scores."""
    starts, labels, scores = [np.zeros(1, np.int64)], [np.empty(0, np.int64)], [np.empty(0, np.float32)]
    for task in tasks:
        listed = (task.scores, task.score_labels, task.score_start)
        if task.class_lists is not None:  # --oaa --scores
            listed = task.class_lists[:3]
        assert listed[0] is not None and listed[1] is not None and listed[2] is not None
        starts.append(starts[-1][-1] + listed[2][1:])
        labels.append(listed[1])
        scores.append(listed[0])
    return np.concatenate(starts), np.concatenate(labels), np.concatenate(scores)


def top_k_arrays(lists: ClassLists, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the first k labels of each of n examples and their probabilities: int64[n, k] and float64[n, k].

    Beyond the last listed label, the label is -1 and the probability 0.
    """
    n = len(lists.start) - 1
    labels, p = np.full((n, k), -1), np.zeros((n, k))
    row, single = _single_classes(lists)
    rank = np.arange(len(row)) - np.searchsorted(row, row)
    labels[row, rank], p[row, rank] = lists.labels[single], lists.scores[single]
    return labels, p


def probability_matrix(batches_of_lists: Sequence[ClassLists]) -> tuple[np.ndarray, np.ndarray]:
    """Return the labels that are listed for any of n examples, int64[m] in rising order, and their probabilities.

    The probabilities are float64[n, m], 0 where a label is not listed for an example.
    """
    n = sum(len(lists.start) - 1 for lists in batches_of_lists)
    labels_of_lists = [lists.labels[_single_classes(lists)[1]] for lists in batches_of_lists]
    labels = np.unique(np.concatenate([np.zeros(0, np.int64), *labels_of_lists]))
    p = np.zeros((n, len(labels)))
    first = 0
    for lists in batches_of_lists:
        row, single = _single_classes(lists)
        p[first + row, np.searchsorted(labels, lists.labels[single])] = lists.scores[single]
        first += len(lists.start) - 1
    return labels, p


def _single_classes(lists: ClassLists) -> tuple[np.ndarray, np.ndarray]:
    """Select the probabilities of single classes, without those that stand for all other classes together.

    Return the example of each selected probability, int64[m], and whether each probability is selected, bool[all].
    """
    row = np.repeat(np.arange(len(lists.start) - 1), np.diff(lists.start))
    single = np.ones(len(row), bool)
    if lists.has_rest:
        single[lists.start[1:] - 1] = False
    return row[single], single
