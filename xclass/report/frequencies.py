"""Find out how many training examples each class had, and which features occurred: from the training data or the model.

Without either, classes are counted in the test data.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import numpy as np

from ..abilities.find import described
from ..api import files
from ..api.learner_core import LearnerCore
from ..array_types import Float64s, Int64s, UInt32s
from ..data import class_names
from ..reductions.core.label_lists import MultilabelLearner
from ..text import reader
from . import outcomes
from .outcomes import Outcomes, Seen

TRAINING, MODEL, TEST = "training data", "model", "test data"
MOST_WAITING = 1 << 20  # features of batches that are collected before they are sorted


class Frequencies(NamedTuple):
    """Hold the number of examples of k classes."""

    label: Int64s  # int64[k], ascending
    examples: Float64s  # float64[k], sum of their weights
    source: str  # TRAINING, MODEL or TEST

    @property
    def is_training(self) -> bool:
        """Return whether the counts are those of the examples that the model has learned."""
        return self.source != TEST

    def of(self, label: Int64s) -> Float64s:
        """Return the number of examples of each class in int64[n] `label`; 0 for those that did not occur."""
        if not len(self.label):
            return np.zeros(len(label))
        at = np.minimum(np.searchsorted(self.label, label), len(self.label) - 1)
        return np.where(self.label[at] == label, self.examples[at], 0.0)


class Training(NamedTuple):
    """Hold what is known about the training data."""

    classes: Frequencies | None  # None if not known
    is_seen: Seen | None  # returns whether features occurred; None if not known


def of_training(learner: LearnerCore, training: reader.Options) -> Training:
    """Return what the files of training data tell, or the model if there are none."""
    if training.data:
        return _counted(learner, training)
    record, reduction = learner.config.reduction, learner.reduction
    counts: tuple[Int64s, Float64s] | None = described(record, "class_counts", reduction, None)
    if isinstance(reduction, MultilabelLearner):
        label = np.flatnonzero(reduction.counts[:-1])
        counts = label + reduction.lowest, reduction.counts[label].astype(np.float64)

    def by_model(index: UInt32s) -> Float64s | None:
        found: Float64s | None = described(record, "feature_counts", reduction, None, index)
        return found

    return Training(
        None if counts is None else _ascending(*counts, MODEL),
        None if by_model(np.empty(0, np.uint32)) is None else lambda index: np.asarray(by_model(index)) > 0,
    )


def of_test(tested: Outcomes) -> Frequencies:
    labels, place = np.unique(tested.label, return_inverse=True)
    return Frequencies(labels, np.bincount(place, tested.weight, len(labels)).astype(np.float64), TEST)


def _counted(learner: LearnerCore, training: reader.Options) -> Training:
    """Count the classes in training data, and collect their features."""
    counts: Counter[int] = Counter()
    features, new, waiting = np.empty(0, np.uint32), list[UInt32s](), 0
    for _, batch in files.batches(learner, training):
        for task in learner.tasks(batch, False, learner.clock):
            own = task.batch
            labelled = ~np.isnan(own.label)
            labels, place = np.unique(own.label[labelled].astype(np.int64), return_inverse=True)
            weights = np.bincount(place, own.weight[labelled].astype(np.float64), len(labels))
            counts.update(dict(zip(labels.tolist(), weights.tolist(), strict=True)))
            new.append(np.unique(own.index[: int(own.start[-1])]))
            waiting += len(new[-1])
            if waiting > max(MOST_WAITING, len(features)):
                features, new, waiting = np.unique(np.concatenate([features, *new])), [], 0
    features = np.unique(np.concatenate([features, *new]))
    counts.pop(class_names.UNKNOWN, None)
    found = _ascending(np.array([*counts], np.int64), np.array([*counts.values()], np.float64), TRAINING)
    return Training(found, lambda index: np.isin(index, features))


def _ascending(label: Int64s, count: Float64s, source: str) -> Frequencies:
    order = np.argsort(label)
    return Frequencies(label[order], count[order], source)


class Bin(NamedTuple):
    """Hold the classes whose number of examples is in a range."""

    low: int
    high: int
    classes: int
    examples: float  # weight of their test examples
    errors: float  # weight of those that were predicted wrongly
    in_list: float  # weight of those whose label was among the first listed classes; NaN if not known

    @property
    def text(self) -> str:
        return f"{self.low:,}" if self.low == self.high else f"{self.low:,} to {self.high:,}"

    @property
    def error(self) -> float:
        return self.errors / self.examples


def bins(tested: Outcomes, known: Frequencies) -> list[Bin]:
    """Return the errors by the number of examples of the label: 0, 1, 2, 3 to 4, 5 to 8, 9 to 16 and so on."""
    count = np.rint(known.of(tested.label)).astype(np.int64)
    level = np.where(count > 0, np.ceil(np.log2(np.maximum(count, 1))).astype(np.int64) + 1, 0)
    result = []
    for j in np.unique(level).tolist():
        chosen = level == j
        weight = tested.weight[chosen]
        low, high = (0, 0) if j == 0 else (1, 1) if j == 1 else ((1 << (j - 2)) + 1, 1 << (j - 1))
        place = tested.place[chosen]
        in_list = float("nan") if (place == outcomes.NOT_KNOWN).any() else float(weight[place > 0].sum())
        total = float(weight.sum())
        if total > 0:
            classes = len(np.unique(tested.label[chosen]))
            result.append(Bin(low, high, classes, total, float(weight[tested.wrong[chosen]].sum()), in_list))
    return result
