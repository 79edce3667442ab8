"""Propose all labels while there are few, and the most frequent ones when there are many.

Idea      An index and near examples propose labels that an example's features point to. A frequent label can belong to
          examples of any features, so its scorer always decides. Where few labels are known, all scorers do, and none
          of them learns from a selection of examples. Of equally frequent ones, the one
          that was so first comes first.
Names     n weight of the examples of a label.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...array_types import Bools, Float64s, Int, Int64s
from ...data.batch import Batch
from ...kernels.jit import bare, jit
from ...model import stored_arrays
from ...model.archive import Archive
from ..core import label_arrays

MOST_ALL = 1024  # labels up to which all of them are proposed
FREQUENT = 64  # labels that are proposed if there are more
SEEN = 0  # position in `FrequentLabels.state`: number of labels


class FrequentLabels(NamedTuple):
    """Hold the labels seen so far, from 1."""

    weight: Float64s  # float64[labels + 1], n by label
    first: Int64s  # int64[MOST_ALL], labels in the order in which they were first seen, then 0
    frequent: Int64s  # int64[FREQUENT], labels in falling order of n, then 0
    state: Int64s  # int64[1]


def new_labels() -> FrequentLabels:
    return FrequentLabels(
        np.zeros(1), np.zeros(MOST_ALL, np.int64), np.zeros(FREQUENT, np.int64), np.zeros(1, np.int64)
    )


def with_labels(labels: FrequentLabels, highest: int) -> FrequentLabels:
    """Return the same with room for labels up to `highest`."""
    if highest < len(labels.weight):
        return labels
    weight = np.zeros(max(highest + 1, 2 * len(labels.weight)))
    weight[: len(labels.weight)] = labels.weight
    return labels._replace(weight=weight)


def most_proposed(labels: FrequentLabels, new: int) -> int:
    """Return how many labels `propose` may propose for an example, if a batch brings at most `new` new ones."""
    return max(FREQUENT, min(MOST_ALL, int(labels.state[SEEN]) + new))


def serialize(archive: Archive, labels: FrequentLabels, highest: int) -> FrequentLabels:
    """Save labels up to `highest`, or return those of a model."""
    labels = with_labels(labels, highest)
    weight = labels.weight[: highest + 1]
    archive.fill("labels.weight", weight, 0, stored_arrays.MAX_SUM)
    for name in ("first", "frequent", "state"):
        archive.fill(f"labels.{name}", getattr(labels, name), 0, highest)
    seen, known = labels.state[SEEN], np.count_nonzero(weight)
    if not archive.saves and seen != known:
        raise stored_arrays.unfit("labels.state", f"it counts {seen} labels, but {known} have examples")
    return labels


# -- kernels


@bare
def count(labels: FrequentLabels, label: Int, weight: float) -> None:
    """Count an example of a label."""
    weights, frequent = labels.weight, labels.frequent
    if weights[label] == 0.0:
        if labels.state[SEEN] < MOST_ALL:
            labels.first[labels.state[SEEN]] = label
        labels.state[SEEN] += 1
    weights[label] += weight
    at = np.int64(0)
    while at < FREQUENT - 1 and frequent[at] != label and frequent[at] > 0:
        at += 1
    if frequent[at] != label and frequent[at] > 0 and weights[label] <= weights[frequent[at]]:
        return
    while at > 0 and weights[frequent[at - 1]] < weights[label]:
        frequent[at] = frequent[at - 1]
        at -= 1
    frequent[at] = label


@jit
def propose(
    labels: FrequentLabels, batch: Batch, label: Int64s, learns: Bools, again: bool, begin: int, end: int,
    candidate: Int64s, every: Bools,
) -> None:  # fmt: skip
    """Set the candidates of the examples begin..end-1, and count the labels of each afterwards.

    Parameters
    ----------
    label : int64[m], labels from 1, see `label_arrays.span`; there is room for all of them
    learns : bool[n], whether to learn from the example
    again : whether examples were counted in an earlier pass
    candidate : int64[n, C], zeros, written
    every : bool[n], whether all labels are proposed, written
    """
    for i in range(begin, end):
        seen = labels.state[SEEN]
        every[i] = seen <= MOST_ALL
        chosen = labels.first if every[i] else labels.frequent
        for c in range(min(seen, MOST_ALL) if every[i] else FREQUENT):
            candidate[i, c] = chosen[c]
        if learns[i] and not again:
            first, last = label_arrays.span(batch, label, i)
            for j in range(first, last):
                if label[j] > 0:
                    count(labels, label[j], np.float64(batch.weight[i]))
