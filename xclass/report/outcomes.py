"""Predict the test data, keep for each labelled example what the report needs, and count the training data.

Without training data, the model may say how many examples each class had and which features occurred; without either,
classes are counted in the test data.

Cost      about 70 bytes of memory for each example.
Names     m labelled examples | place of a label among the listed classes, 1 for the first.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..abilities.find import described
from ..api import files
from ..api.learner_core import LearnerCore
from ..array_types import Bools, Float64s, Int32s, Int64s, UInt32s
from ..data import class_names
from ..data.batch import CONSTANT, Batch
from ..errors import DataError
from ..reductions.core.contract import BatchTask
from ..reductions.core.label_lists import MultilabelLearner
from ..reductions.core.probabilities import ListingOptions
from ..reductions.core.spec import LearnerUse
from ..run.results.outcomes import Measured, select
from ..system import thread_limit
from ..text import reader

LISTED = 5  # classes that are listed for each example
TRAINING, MODEL, TEST = "training data", "model", "test data"  # where the examples of classes are counted
MOST_WAITING = 1 << 20  # features of batches that are collected before they are sorted
NOT_KNOWN = -1  # in `ModelOutcomes.place`, `ModelOutcomes.proposed` and `ModelOutcomes.seen`

Seen = Callable[[UInt32s], Bools]  # from features to whether each of them occurred in training


@dataclass(frozen=True)
class ModelOutcomes(Measured):
    """Hold the results of m labelled examples in the order of the data; `row` is the position among all examples."""

    place: Int32s  # int32[m], place of the label among the first LISTED classes, 0 if it is not there, or NOT_KNOWN
    proposed: Int32s  # int32[m], whether the label was among the classes that were compared, or NOT_KNOWN
    features: Int32s  # int32[m], number of features, generated ones and the constant included
    seen: Int32s  # int32[m], number of features that occurred in training, without the constant, or NOT_KNOWN


def wanted(learner: LearnerCore) -> LearnerUse:
    if not learner.config.reduction.probabilities:
        return LearnerUse()
    return LearnerUse(listing_options=ListingOptions(top_k=LISTED), example_probabilities=True)


def measure(learner: LearnerCore, source: reader.ReaderOptions, is_seen: Seen | None = None) -> ModelOutcomes | None:
    """Predict files of examples (see `files.batches`) and return the outcomes of those with labels.

    They are None for lists of labels. The report of the learner then has the measures.
    """
    lists = learner.config.reduction.labels == "multilabel"
    for path in () if lists else source.data:
        if os.path.exists(path) and not os.path.isfile(path):
            raise DataError(f"{path}: this is no file, and the data are read twice; write them to a file first")
    parts, seen, weight = [], 0, 0.0
    batches = (batch for _, batch in files.batches(learner, source))
    for task in thread_limit.each(learner.predict(batches, wanted(learner))):
        has_label = task.batch.label > 0 if lists else ~np.isnan(task.batch.label)
        weight += float(task.batch.weight[has_label].sum())
        if not lists:
            parts.append(_outcomes(task, seen, is_seen))
        seen += task.batch.n
    if not weight > 0:
        raise DataError(
            f"{' '.join(source.data)}: none of {seen:g} examples has a label with a weight above 0, so there are no "
            "errors to report; give labelled data"
        )
    if lists:
        return None
    return ModelOutcomes(*map(np.concatenate, zip(*(vars(part).values() for part in parts), strict=True)))


def _outcomes(task: BatchTask, before: int, is_seen: Seen | None) -> ModelOutcomes:
    """Return the outcomes of a task; `before` is the number of examples before it, `is_seen` see `measure`."""
    batch = task.batch
    own = select(task, False)
    row, label = own.row, own.label
    proposed = np.full(len(row), NOT_KNOWN, np.int32)
    if task.candidates is not None:
        proposed = (task.candidates[row] == label[:, None]).any(axis=1).astype(np.int32)
    return ModelOutcomes(
        **{**vars(own), "row": row + before},
        place=_places(task, row, label),
        proposed=proposed,
        features=np.diff(batch.start)[row].astype(np.int32),
        seen=_features_seen(batch, row, is_seen),
    )


def _features_seen(batch: Batch, row: Int64s, is_seen: Seen | None) -> Int32s:
    """Return the number of features of each example that occurred in training, see `ModelOutcomes.seen`."""
    if is_seen is None:
        return np.full(len(row), NOT_KNOWN, np.int32)
    before = np.zeros(int(batch.start[-1]) + 1, np.int32)
    end = int(batch.start[-1])
    np.cumsum(is_seen(batch.index[:end]) & (batch.index[:end] != CONSTANT), out=before[1:])
    return before[batch.start[row + 1]] - before[batch.start[row]]


def _places(task: BatchTask, row: Int64s, label: Int64s) -> Int32s:
    """Return the place of each label in the list of classes of its example, see `ModelOutcomes.place`."""
    lists = task.class_lists
    if lists is None:
        return np.full(len(row), NOT_KNOWN, np.int32)
    place = np.zeros(len(row), np.int32)
    begin, end = lists.start[row], lists.start[row + 1] - int(lists.has_rest)
    for k in range(LISTED):
        at = begin + k
        listed = np.where(at < end, lists.labels[np.minimum(at, len(lists.labels) - 1)], 0)
        place[(listed == label) & (listed > 0) & (place == 0)] = k + 1
    return place


def name_of(learner: LearnerCore, label: int) -> str:
    """Return the text of a class: its name, or its number if classes have no names."""
    if not label and learner.label_range.lowest != 0:
        return "(none)"
    return class_names.text_of(label, learner.names.class_list, "(a name that the model does not know)")


# -- the training data


class ClassFrequencies(NamedTuple):
    """Hold the number of examples of classes."""

    examples: Mapping[int, float]  # class -> sum of the weights of its examples
    source: str  # TRAINING, MODEL or TEST

    @property
    def is_training(self) -> bool:
        """Return whether the counts are those of the examples that the model has learned."""
        return self.source != TEST

    def of(self, label: Int64s) -> Float64s:
        """Return the number of examples of each class in int64[n] `label`; 0 for those that did not occur."""
        labels, place = np.unique(label, return_inverse=True)
        return np.array([self.examples.get(y, 0.0) for y in labels.tolist()])[place]


class Training(NamedTuple):
    """Hold what is known about the training data."""

    classes: ClassFrequencies | None  # None if not known
    is_seen: Seen | None  # returns whether features occurred; None if not known


def of_training(learner: LearnerCore, training: reader.ReaderOptions) -> Training:
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
        None if counts is None else ClassFrequencies(_by_class(*counts), MODEL),
        None if by_model(np.empty(0, np.uint32)) is None else lambda index: np.asarray(by_model(index)) > 0,
    )


def of_test(tested: ModelOutcomes) -> ClassFrequencies:
    return ClassFrequencies(_by_class(tested.label, tested.weight), TEST)


def _by_class(label: Int64s, weight: Float64s) -> dict[int, float]:
    """Return the sum of the weights of each class."""
    labels, place = np.unique(label, return_inverse=True)
    return dict(zip(labels.tolist(), np.bincount(place, weight, len(labels)).tolist(), strict=True))


def _counted(learner: LearnerCore, training: reader.ReaderOptions) -> Training:
    """Count the classes in training data, and collect their features."""
    counts: Counter[int] = Counter()
    features, new, waiting = np.empty(0, np.uint32), list[UInt32s](), 0
    for _, batch in files.batches(learner, training):
        for task in learner.tasks(batch, False, learner.clock):
            own = task.batch
            labelled = ~np.isnan(own.label)
            counts.update(_by_class(own.label[labelled].astype(np.int64), own.weight[labelled].astype(np.float64)))
            new.append(np.unique(own.index[: int(own.start[-1])]))
            waiting += len(new[-1])
            if waiting > max(MOST_WAITING, len(features)):
                features, new, waiting = np.unique(np.concatenate([features, *new])), [], 0
    features = np.unique(np.concatenate([features, *new]))
    counts.pop(class_names.UNKNOWN, None)
    return Training(ClassFrequencies(counts, TRAINING), lambda index: np.isin(index, features))
