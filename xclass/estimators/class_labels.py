"""Map the labels of a program, which may be of any type, to the classes of a learner, and predict them.

A learner numbers its classes from 1, and the labels of lists from 0. If all labels are such whole numbers, as integers
or as floats, they are the classes. All other labels become names, which the learner numbers in the order in which they
first occur. Labels that are equal are one class, whatever their type.

Predictions are positions in the sorted labels. Only labels that were learned are predicted, although the learner may
have classes without examples.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from ..api import results
from ..api.labels import HIGHEST_NUMBER
from ..api.learner import Learner
from ..array_types import AnyArray, Bools, Float32s, Float64s, Int64s
from ..data import array_input, class_names
from ..errors import DataError, UsageError
from ..explain.records import ExplainedClass, Explanation
from ..kernels.jit import jit
from ..options.declare import options_of
from ..reductions.core import probabilities
from ..reductions.core.contract import BatchTask
from ..reductions.core.probabilities import ListingOptions
from ..reductions.core.spec import LearnerUse
from ..system.printable import short_repr

KINDS = {"i": "integers", "u": "integers", "f": "floats", "b": "booleans", "U": "strings", "O": "strings"}


class ClassLabels:
    """Hold the distinct labels of a program and the class that each of them is to a learner.

    An instance is never changed: `extended` returns another one. So a call that fails leaves what was known before.

    Parameters
    ----------
    labels : array[n], the first labels
    highest, lowest : whole numbers up to `highest` are classes; if others occur, labels become names. Labels of lists
        begin at 0, and their names have no commas
    """

    def __init__(self, labels: AnyArray, highest: int = HIGHEST_NUMBER, lowest: int = 1) -> None:
        self.values, self.lowest = distinct(labels), lowest  # array[K], distinct labels, sorted
        inside = self.values.dtype.kind in "iuf" and self.values[0] >= lowest and self.values[-1] <= highest
        self.numbered = bool(inside)  # whether labels are the numbers of classes; if not, they are names
        self.numbered = self.numbered and bool((self.values == np.floor(self.values)).all())
        # float64[K], sum of the weights of the examples of each label that were learned from
        self.weight = np.zeros(len(self.values))
        self._names: dict[Any, str] = {}
        self._positions: dict[str, int] = {}
        self._name_values()

    def extended(self, labels: AnyArray) -> ClassLabels:
        """Return the labels together with others; `labels` (array[n]) has passed `converted`."""
        values = np.union1d(self.values, distinct(labels) if self.numbered else self._unknown(labels))
        if len(values) == len(self.values):
            return self
        result = copy.copy(self)
        result.values, result.weight, result._names = values, np.zeros(len(values)), dict(self._names)
        result.weight[np.searchsorted(values, self.values)] = self.weight
        result._name_values()
        return result

    def with_weight(self, labels: AnyArray, weight: Float64s | None) -> ClassLabels:
        """Return the same labels with the weights (float64[n], None for 1) of learned examples (array[n]) added."""
        result = copy.copy(self)
        result.weight = self.weight + np.bincount(self.positions(labels), weight, len(self.values))
        return result

    def _name_values(self) -> None:
        """Set the names of all labels and the position of each name."""
        if self.numbered:
            return
        for value in self.values.tolist():
            if value not in self._names:
                text = class_names.spelled(value)
                text = class_names.in_lists(text)
                text = class_names.in_lists(repr(value)) if class_names.fault_of(text) else text
                if fault := class_names.fault_of(text):
                    raise DataError(f"y holds the label {short_repr(value)}; {fault}")
                self._names[value] = text
        self._positions = {self._names[value]: j for j, value in enumerate(self.values.tolist())}
        known: dict[str, Any] = {}
        for value in self.values.tolist():
            if (other := known.setdefault(class_names.key_of(self._names[value]), value)) != value:
                raise DataError(
                    f"y holds the labels {short_repr(other)} and {short_repr(value)}, which have the same name "
                    f"{self._names[value]!r}, because names have _ in place of blanks, and ; in place of commas; "
                    "rename one"
                )

    def _unknown(self, labels: AnyArray) -> AnyArray:
        """Return the labels that are not known yet."""
        names = self._names
        unknown = [value for value in dict.fromkeys(labels.tolist()) if value not in names]
        return np.array(unknown, labels.dtype) if unknown else labels[:0]

    def explained(self, explanation: Explanation) -> Explanation:
        """Return an explanation with the labels of the program in the place of those of a learner."""

        def of_class(explained: ExplainedClass) -> ExplainedClass:
            return replace(explained, label=self._value_of(explained.label))

        return replace(
            explanation,
            prediction=self._value_of(explanation.prediction),
            label=self._value_of(explanation.label),
            classes=tuple(map(of_class, explanation.classes)),
            others=tuple(map(of_class, explanation.others)),
        )

    def _value_of(self, shown: Any) -> Any:
        """Return the label of a class that a learner shows by its number or name; other values are returned as is."""
        position = self._positions.get(shown)
        return shown if position is None else self.values.tolist()[position]

    @property
    def learned(self) -> Bools:
        """Return bool[K], whether an example of the label was learned from."""
        return self.weight > 0

    @property
    def needed(self) -> int:
        """Return how many classes a learner needs for these labels."""
        return int(self.values[-1]) + 1 - self.lowest if self.numbered else len(self.values)

    def converted(self, labels: AnyArray) -> AnyArray:
        """Return labels in the type of the first labels."""
        if not len(labels):
            return self.values[:0]
        if labels.dtype.kind in "iufb" and self.values.dtype.kind in "iufb":
            same = labels.astype(self.values.dtype)
            labels = same if (same == labels).all() else labels
        kind, own = (KINDS.get(array.dtype.kind, str(array.dtype)) for array in (labels, self.values))
        if kind != own:
            raise DataError(
                f"y holds {kind}, and the classes of this estimator are {own}; give labels of the same "
                "type, or fit a new estimator"
            )
        if self.numbered:
            if (wrong := labels != np.floor(labels)).any():
                at = int(np.argmax(wrong))
                raise DataError(
                    f"y[{at}] is {labels[at]}; allowed are whole numbers, because the first labels were such numbers"
                )
            return labels
        if labels.dtype.kind == "O" and self.values.dtype.kind == "U":
            labels = np.array(labels.tolist())
        elif labels.dtype.kind == "U" and self.values.dtype.kind == "O":
            labels = labels.astype(object)
        if labels.dtype.kind == "O":
            wrong_at = next((i for i, value in enumerate(labels.tolist()) if not isinstance(value, str)), None)
            if wrong_at is not None and all(isinstance(value, str) for value in self.values.tolist()):
                raise DataError(f"y[{wrong_at}] is {short_repr(labels[wrong_at])}; the other labels are strings")
        return labels

    def for_learner(self, labels: AnyArray) -> Any:
        """Return known labels (array[n]) as the learner takes them: as numbers, or as a list of names."""
        return labels if self.numbered else list(map(self._names.__getitem__, labels.tolist()))

    def positions(self, labels: AnyArray) -> Int64s:
        """Return the position in `values` of each of the known labels (array[n]) as int64[n]."""
        if self.numbered:
            return np.searchsorted(self.values, labels)
        names, positions = self._names, self._positions
        return np.array([positions[names[label]] for label in labels.tolist()], np.int64)

    def class_positions(self, names: list[str]) -> Callable[[Int64s], Int64s]:
        """Return a function from classes of the learner (int64[...]) to positions in `values`, -1 without a label.

        Some of the `names` of classes may be no labels, because a call was interrupted before it had learned from them.
        """
        if self.numbered and not names:

            def position_of_number(classes: Int64s) -> Int64s:
                at = np.minimum(np.searchsorted(self.values, classes), len(self.values) - 1)
                return np.where(self.values[at] == classes, at, -1)

            return position_of_number
        positions = self._positions
        if self.numbered:  # and later labels were no numbers of classes
            positions = {class_names.spelled(value): j for j, value in enumerate(self.values.tolist())}
        by_class = np.array([-1, *(positions.get(name, -1) for name in names)], np.int64)
        return lambda classes: by_class[np.where((classes > 0) & (classes < len(by_class)), classes, 0)]


def weights_of_labels(class_weight: Any, labels: AnyArray, whole: bool) -> Float64s:
    """Return the weight of each label (array[n]) as float64[n]: "balanced", or by a mapping, in which others have 1.

    If these are all labels (`whole`), a key that is none of them is a mistake where a label has no weight.
    """
    kinds = list(dict.fromkeys(labels.tolist()))
    position = {label: i for i, label in enumerate(kinds)}
    at = np.array([position[label] for label in labels.tolist()], np.int64)
    if isinstance(class_weight, str) and class_weight == "balanced":
        return (len(labels) / (len(kinds) * np.bincount(at)))[at]
    if not isinstance(class_weight, Mapping):
        raise UsageError(f"class_weight: {short_repr(class_weight)} is neither 'balanced' nor a dictionary")
    texts = {str(label): label for label in kinds}
    weight = np.ones(len(kinds))
    for key, value in class_weight.items():
        if key in position:
            number = array_input.number(value)
            if number is None or not 0 <= number <= array_input.LARGEST:
                raise UsageError(
                    f"class_weight: the weight of {short_repr(key)} is {short_repr(value)}, no number from 0 on"
                )
            weight[position[key]] = number
        elif str(key) in texts:
            raise UsageError(
                f"class_weight: the key {short_repr(key)} does not equal the label {short_repr(texts[str(key)])}; give "
                "keys of the type of the labels"
            )
        elif whole and (others := [label for label in kinds if label not in class_weight]):
            raise UsageError(
                f"class_weight: no label is {short_repr(key)}, and the label {short_repr(others[0])} has no weight"
            )
    return weight[at]


def distinct(labels: AnyArray) -> AnyArray:
    """Return the distinct labels, sorted; text is sorted only after equal texts are removed, which is faster."""
    if labels.dtype.kind in "iufb":
        return np.unique(labels)
    return np.unique(np.array(list(dict.fromkeys(labels.tolist())), labels.dtype))


class Targets(NamedTuple):
    """Hold the labels of n examples.

    Attributes
    ----------
    labels : array[m], the labels of all examples, one after the other
    start : int64[n + 1], those of example i are `labels[start[i]:start[i + 1]]`; None if each has one
    form : "labels" for one label each, "lists", or "dense" or "sparse" for a matrix with a column for each label
    columns : array[K], the labels of the columns of a matrix; None for other forms
    """

    labels: AnyArray
    start: Int64s | None = None
    form: str = "labels"
    columns: AnyArray | None = None

    @property
    def starts(self) -> Int64s:
        return np.arange(len(self.labels) + 1) if self.start is None else self.start

    @property
    def n(self) -> int:
        return len(self.starts) - 1

    def repeated(self, weight: Float64s | None) -> Float64s | None:
        """Return the weights of examples, float64[n], as those of all labels, float64[m]."""
        return weight if weight is None or self.start is None else np.repeat(weight, np.diff(self.start))

    def for_learner(self, labels: ClassLabels) -> Any:
        """Return them as the learner takes them: as numbers or names, or lists of names, or a matrix."""
        given = labels.for_learner(self.labels)
        if self.start is None:
            return given
        if not labels.numbered or labels.values[0] < 0 or labels.needed > HIGHEST_NUMBER:
            return [given[low:high] for low, high in pairwise(self.start.tolist())]
        return matrix(self.start, given.astype(np.int64), labels.needed)


def matrix(start: Int64s, column: Int64s, width: int) -> Any:
    """Return a CSR matrix, int64[n, width], of 1 in the columns of each row, `column[start[i]:start[i + 1]]`."""
    rows = sparse.csr_matrix((np.ones(len(column), np.int64), column, start), (len(start) - 1, width))
    rows.sum_duplicates()
    rows.data[:] = 1
    return rows


LEAST = np.finfo(np.float64).epsneg  # probability at least: estimates may be 0 and 1, and not all labels may be ranked


class ListPredictor:
    """Predict by a learner of lists of labels, K of them."""

    def __init__(self, learner: Learner, labels: ClassLabels) -> None:
        self._learner, self._labels = learner, len(labels.values)
        self._to_positions = labels.class_positions(learner.core.names.names)

    @property
    def _classes(self) -> int:
        """Return the number of classes of the learner, those seen so far if it grows."""
        core = self._learner.core
        return core.spec.classes or core.reduction.classes_seen

    def chosen(self, X: Any) -> Any:
        """Return the labels above the threshold as a CSR matrix, int64[n, K]."""

        def of_task(task: BatchTask) -> tuple[Int64s, Int64s]:
            assert task.label_lists is not None
            chosen = task.label_lists.chosen
            position = self._to_positions(chosen.labels)
            row = np.repeat(np.arange(task.batch.n), np.diff(chosen.start))
            return np.bincount(row[position >= 0], minlength=task.batch.n), position[position >= 0]

        counts, positions = map(np.concatenate, zip(*self._learner.predict_each(X, of_task), strict=True))
        return matrix(np.concatenate([[0], np.cumsum(counts)]), positions, self._labels)

    def probabilities(self, X: Any) -> Float64s:
        """Return the probabilities of all labels, float64[n, K]."""
        wanted = LearnerUse(ListingOptions(top_k=self._classes))
        return np.concatenate(self._learner.predict_each(X, self._all, wanted))

    def top(self, X: Any, k: int) -> tuple[Int64s, Float64s]:
        """Return the positions of the k most probable labels, int64[n, k], and their probabilities, float64[n, k]."""
        all_known = self._classes == self._labels
        wanted = LearnerUse(ListingOptions(top_k=k if all_known else self._classes))
        result = functools.partial(self._first if all_known else self._first_of_all, k)
        positions, p = zip(*self._learner.predict_each(X, result, wanted), strict=True)
        return np.concatenate(positions), np.concatenate(p)

    def _all(self, task: BatchTask) -> Float64s:
        position, listed = self._first(self._classes, task)
        p = np.full((task.batch.n, self._labels + 1), LEAST)  # the last column is that of other classes
        np.put_along_axis(p, position, listed, axis=1)
        return p[:, :-1]

    def _first(self, k: int, task: BatchTask) -> tuple[Int64s, Float64s]:
        """Return the first k labels that a task ranks, -1 for a class that is no label, and their probabilities."""
        assert task.label_lists is not None
        ranked = task.label_lists.ranked
        classes, p = results.top_k_arrays(ranked, max(k, int(np.diff(ranked.start).max(initial=0))))
        return self._to_positions(classes[:, :k]), np.clip(p[:, :k], LEAST, 1 - LEAST)

    def _first_of_all(self, k: int, task: BatchTask) -> tuple[Int64s, Float64s]:
        p = self._all(task)
        order = np.argsort(-p, axis=1, kind="stable")[:, :k]
        return order, np.take_along_axis(p, order, axis=1)


ABOVE = 1 + 1e-12  # factor that makes the predicted class the most probable one where another one is as probable

PROBABILITIES = LearnerUse(probabilities.ListingOptions(probabilities=probabilities.NORMALIZED))
MOST_LISTED = options_of(probabilities.ListingOptions)["top_k"].maximum or 1
LISTED_LABELS = 100  # whose probabilities `predict_proba` takes from other reductions if there are more labels
LISTED = LearnerUse(probabilities.ListingOptions(top_k=LISTED_LABELS))


class Predictor:
    """Predict by a learner whose classes are labels, K of them.

    `scores_all` says whether the reduction scores every class, so that its lists contain all of them.
    """

    def __init__(self, learner: Learner, labels: ClassLabels) -> None:
        self._learner, self._labels, self._learned = learner, labels, labels.learned
        self._to_positions = labels.class_positions(learner.core.names.names)
        record = learner.core.config.reduction
        self.scores_all = record.class_estimates
        lists_all = record.class_scores or len(self._learned) <= LISTED_LABELS
        self._wanted = PROBABILITIES if lists_all else LISTED

    def predict(self, X: Any) -> Int64s:
        """Return the position of the predicted label of each example, int64[n].

        Where the learner predicts a class that it has not learned, or none, the most probable of the learned labels is
        predicted instead, or the most frequent one if the reduction does not estimate probabilities.
        """
        position = np.concatenate(self._learner.predict_each(X, self._predicted))
        rows = np.flatnonzero(position < 0)
        if not len(rows):
            return position
        if self._learner.core.config.reduction.probabilities:
            position[rows] = self.probabilities(rows_of(X, rows)).argmax(axis=1)
        else:
            position[rows] = self._labels.weight.argmax()
        return position

    def probabilities(self, X: Any) -> Float64s:
        """Return the probabilities of all labels, float64[n, K].

        The learned labels that are not listed share the rest of the probability equally. Those are all that
        --recall_tree does not consider; of more than LISTED_LABELS labels, other reductions list the most probable.
        """
        p = np.empty((X.shape[0] if hasattr(X, "shape") else len(X), len(self._learned)))
        done = 0

        def write(task: BatchTask) -> None:
            nonlocal done
            self._write(task, p[done : done + task.batch.n])
            done += task.batch.n

        self._learner.predict_each(X, write, self._wanted)
        return p

    def _write(self, task: BatchTask, p: Float64s) -> None:
        lists = task.class_lists
        assert lists is not None
        if task.batch.n:
            label = lists.labels
            if not lists.has_rest:
                column = self._learned_positions(label[: lists.start[1]])
            elif (highest := int(label.max())) < len(label):
                column = self._learned_positions(np.arange(highest + 1))
            else:  # a table of the classes would be longer than the lists
                label, column = np.arange(len(label)), self._learned_positions(label)
            write(
                lists.scores, label, lists.start, int(lists.has_rest), column, self._learned, self._predicted(task), p
            )  # fmt: skip

    def top(self, X: Any, k: int) -> tuple[Int64s, Float64s]:
        """Return the positions of the k most probable labels, int64[n, k], and their probabilities, float64[n, k].

        Classes that the learner lists but has not learned have to be left out, which takes the probabilities of all.
        """
        learned = self._learned
        spare = self.scores_all and learned.sum() < (self._learner.core.label_range.highest or 0)
        if k > MOST_LISTED or spare or not learned.all():
            wanted = self._wanted if k <= LISTED_LABELS else PROBABILITIES
            result = functools.partial(self._first_of_all, k)
        else:
            frequent = np.argsort(-self._labels.weight, kind="stable")[:k]
            wanted = LearnerUse(probabilities.ListingOptions(top_k=k))
            result = functools.partial(self._listed, k, frequent)
        blocks = self._learner.predict_each(X, result, wanted)
        return np.concatenate([positions for positions, _ in blocks]), np.concatenate([p for _, p in blocks])

    def _first_of_all(self, k: int, task: BatchTask) -> tuple[Int64s, Float64s]:
        """Return the k most probable labels of the examples of a task that lists all classes."""
        p = np.empty((task.batch.n, len(self._learned)))
        self._write(task, p)
        order = np.argsort(-p, axis=1, kind="stable")[:, :k]
        return order, np.take_along_axis(p, order, axis=1)

    def _listed(self, k: int, frequent: Int64s, task: BatchTask) -> tuple[Int64s, Float64s]:
        """Return the k most probable labels of the examples of a task that lists k classes."""
        assert task.class_lists is not None
        listed, p = results.top_k_arrays(task.class_lists, k)
        positions = self._to_positions(listed)
        short = np.flatnonzero(positions[:, -1] < 0)
        if len(short):
            positions[short], p[short] = filled(positions[short], p[short], frequent, len(self._learned))
        return positions, p

    def scores(self, X: Any) -> Float64s:
        """Return the scores of all labels, float64[n, K], if the reduction scores all."""
        return np.concatenate(self._learner.predict_each(X, self._scores, LearnerUse(scores=True)))

    def _scores(self, task: BatchTask) -> Float64s:
        result = np.empty((task.batch.n, len(self._learned)))
        if task.batch.n:
            assert task.scored is not None
            scores = task.scored.scores.reshape(task.batch.n, -1)
            position = self._learned_positions(task.scored.labels[: scores.shape[1]])
            kept = position >= 0
            result[:, position[kept]] = scores[:, kept]
            result[:, ~self._learned] = scores[:, kept].min(axis=1, keepdims=True) - 1
        return result

    def _predicted(self, task: BatchTask) -> Int64s:
        assert task.prediction is not None
        return self._learned_positions(task.prediction.astype(np.int64))

    def _learned_positions(self, classes: Int64s) -> Int64s:
        """Return the positions of the labels of classes, -1 for a class without a learned label."""
        position = self._to_positions(classes)
        return np.where(self._learned[position], position, -1)


def filled(positions: Int64s, p: Float64s, frequent: Int64s, labels: int) -> tuple[Int64s, Float64s]:
    """Fill lists of k labels, int64[n, k] that end with -1, with the first of the k most frequent that are not listed.

    These share the rest of the probability equally with all others of the `labels` that are not listed.
    """
    size = np.count_nonzero(positions >= 0, axis=1)[:, None]
    taken = (positions[:, :, None] == frequent).any(axis=1)
    others = frequent[np.argsort(taken, axis=1, kind="stable")]
    rank = np.arange(positions.shape[1]) - size
    complete = np.where(rank >= 0, np.take_along_axis(others, np.maximum(rank, 0), axis=1), positions)
    share = np.maximum(0.0, 1.0 - p.sum(axis=1, keepdims=True)) / (labels - size)
    last = np.take_along_axis(p, np.maximum(size - 1, 0), axis=1)
    share = np.where(size > 0, np.minimum(share, last), share)  # lists are in descending order
    return complete, np.where(rank >= 0, share, p)


def rows_of(X: Any, rows: Int64s) -> AnyArray:
    """Return rows (int64[...], their numbers) of a matrix, a DataFrame or texts."""
    if isinstance(X, tuple):  # `Documents`
        return type(X)(X[row] for row in rows.tolist())  # type: ignore[return-value]  # any examples
    result: AnyArray = X.iloc[rows] if hasattr(X, "iloc") else X.take(rows) if hasattr(X, "num_rows") else X[rows]
    return result


@jit
def write(
    listed: Float32s, label: Int64s, start: Int64s, rest: int, column: Int64s, learned: Bools, predicted: Int64s,
    p: Float64s,
) -> None:  # fmt: skip
    """Write rows of probabilities that sum to 1, of which that of the predicted label is the highest.

    Parameters
    ----------
    listed : float32[m], probabilities of the listed classes; those of example i are `start[i]:start[i + 1]`
    label : int64[m], the listed classes
    start : int64[n + 1]
    rest : 1 if the last entry of each example stands for all other classes together, else 0; the learned labels that
        are not listed share their probability equally
    column : int64[...], column of each class, -1 for those without a learned label. Without a rest, all examples list
        the same classes in the same order, and this has the columns of the classes of one list
    learned : bool[K], which labels were learned; others get 0
    predicted : int64[n], column of the predicted label, -1 for none or one that was not learned
    p : float64[n, K], written
    """
    n, k = p.shape
    learnable = 0
    for j in range(k):
        learnable += learned[j]
    for i in range(n):
        begin, end, top = start[i], start[i + 1] - rest, predicted[i]
        total, highest, own, size = 0.0, 0.0, 0.0, 0  # `own` is that of the predicted label, `highest` of all others
        for e in range(begin, end):
            j = column[label[e] if rest else e - begin]
            if j >= 0 and listed[e] > 0.0:
                total += listed[e]
                size += 1
                if j == top:
                    own = listed[e]
                elif listed[e] > highest:
                    highest = listed[e]
        share = 0.0
        if rest and size < learnable and total < 1.0:
            share = (1.0 - total) / (learnable - size)
        elif size == 0:
            share = 1.0 / learnable
        total += share * (learnable - size)
        if top >= 0:
            own = own if own > 0.0 else share
            higher = max(highest, share) * ABOVE
            if own < higher:
                total += higher - own
                own = higher
        scale = 1.0 / total
        if size < k:
            for j in range(k):
                p[i, j] = share * scale if learned[j] else 0.0
        for e in range(begin, end):
            j = column[label[e] if rest else e - begin]
            if j >= 0 and listed[e] > 0.0:
                p[i, j] = listed[e] * scale
        if top >= 0:
            p[i, top] = own * scale
