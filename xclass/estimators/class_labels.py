"""Map the labels of a program, which may be of any type, to the classes of a learner.

A learner numbers its classes from 1, and the labels of lists from 0. If all labels are such whole numbers, as integers
or as floats, they are the classes. All other labels become names, which the learner numbers in the order in which they
first occur. Labels that are equal are one class, whatever their type.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from ..api.labels import HIGHEST_NUMBER
from ..array_types import AnyArray, Bools, Float64s, Int64s
from ..data import array_input, class_names
from ..errors import DataError, UsageError
from ..explain.records import ExplainedClass, Explanation
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
