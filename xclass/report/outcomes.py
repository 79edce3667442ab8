"""Predict the test data with a model, and keep for each labelled example what the report needs.

Cost      about 70 bytes of memory for each example.
Names     m labelled examples | place of a label among the listed classes, 1 for the first.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import numpy as np

from ..api import files
from ..api.learner_core import LearnerCore
from ..array_types import Bools, Int32s, Int64s, UInt32s
from ..data import class_names
from ..data.batch import CONSTANT, Batch
from ..errors import DataError
from ..reductions.core.contract import BatchTask
from ..reductions.core.label_lists import MultilabelLearner
from ..reductions.core.label_report import LabelReport
from ..reductions.core.probabilities import Options as ListingOptions
from ..reductions.core.spec import Wanted
from ..run.results.measured import Measured, select
from ..system import thread_limit
from ..text import reader

LISTED = 5  # classes that are listed for each example
NOT_KNOWN = -1  # in `Outcomes.place`, `Outcomes.proposed` and `Outcomes.seen`

Seen = Callable[[UInt32s], Bools]  # from features to whether each of them occurred in training


@dataclass(frozen=True)
class Outcomes(Measured):
    """Hold the results of m labelled examples in the order of the data; `row` is the position among all examples."""

    place: Int32s  # int32[m], place of the label among the first LISTED classes, 0 if it is not there, or NOT_KNOWN
    proposed: Int32s  # int32[m], whether the label was among the classes that were compared, or NOT_KNOWN
    features: Int32s  # int32[m], number of features, generated ones and the constant included
    seen: Int32s  # int32[m], number of features that occurred in training, without the constant, or NOT_KNOWN


def wanted(learner: LearnerCore) -> Wanted:
    if not learner.config.reduction.probabilities:
        return Wanted()
    return Wanted(listing_options=ListingOptions(top_k=LISTED), example_probabilities=True)


def measure_lists(learner: LearnerCore, source: reader.Options) -> LabelReport:
    """Predict files of examples with lists of labels, and return the measures."""
    reduction = cast(MultilabelLearner, learner.reduction)
    report = reduction.new_report()
    for task in thread_limit.each(learner.predict(batch for _, batch in files.batches(learner, source))):
        reduction.measure(report, task)
    if not report.sums.total[0] > 0:
        raise _without_labels(source, float(report.sums.total[2]))
    return report


def _without_labels(source: reader.Options, seen: float) -> DataError:
    return DataError(
        f"{' '.join(source.data)}: none of {seen:g} examples has a label with a weight above 0, so there are no errors "
        "to report; give labelled data"
    )


def measure(learner: LearnerCore, source: reader.Options, is_seen: Seen | None = None) -> Outcomes:
    """Predict files of examples (see `files.batches`) and return the outcomes of those with labels."""
    for path in source.data:
        if os.path.exists(path) and not os.path.isfile(path):
            raise DataError(f"{path}: this is no file, and the data are read twice; write them to a file first")
    parts, seen = [], 0
    batches = (batch for _, batch in files.batches(learner, source))
    for task in thread_limit.each(learner.predict(batches, wanted(learner))):
        parts.append(_outcomes(task, seen, is_seen))
        seen += task.batch.n
    joined = (
        Outcomes(*map(np.concatenate, zip(*(vars(part).values() for part in parts), strict=True))) if parts else None
    )
    if joined is None or not len(joined.label) or not joined.weight.sum() > 0:
        raise _without_labels(source, seen)
    return joined


def _outcomes(task: BatchTask, before: int, is_seen: Seen | None) -> Outcomes:
    """Return the outcomes of a task; `before` is the number of examples before it, `is_seen` see `measure`."""
    batch = task.batch
    own = select(task, None, False)
    row, label = own.row, own.label
    proposed = np.full(len(row), NOT_KNOWN, np.int32)
    if task.candidates is not None:
        proposed = (task.candidates[row] == label[:, None]).any(axis=1).astype(np.int32)
    return Outcomes(
        **{**vars(own), "row": row + before},
        place=_places(task, row, label),
        proposed=proposed,
        features=np.diff(batch.start)[row].astype(np.int32),
        seen=_features_seen(batch, row, is_seen),
    )


def _features_seen(batch: Batch, row: Int64s, is_seen: Seen | None) -> Int32s:
    """Return the number of features of each example that occurred in training, see `Outcomes.seen`."""
    if is_seen is None:
        return np.full(len(row), NOT_KNOWN, np.int32)
    before = np.zeros(int(batch.start[-1]) + 1, np.int32)
    end = int(batch.start[-1])
    np.cumsum(is_seen(batch.index[:end]) & (batch.index[:end] != CONSTANT), out=before[1:])
    return before[batch.start[row + 1]] - before[batch.start[row]]


def _places(task: BatchTask, row: Int64s, label: Int64s) -> Int32s:
    """Return the place of each label in the list of classes of its example, see `Outcomes.place`."""
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
