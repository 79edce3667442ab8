"""Convert the labels and weights that a program passes beside its examples."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..data import array_input, class_names
from ..data.class_names import Names
from ..data.schema import written
from ..errors import DataError
from ..system.printable import short_repr
from .configuration import LabelRange


def are_names(labels: Any) -> bool:
    """Return whether labels, or a single label, are names: the first one that is not missing is text."""
    if isinstance(labels, (str, bytes)):
        return True
    if isinstance(labels, np.ndarray) or hasattr(labels, "dtype"):
        kind = getattr(labels.dtype, "kind", "O")
        if kind in "US":
            return True
        if kind in "iufb":
            return False
    if not hasattr(labels, "__iter__"):
        return False
    return isinstance(next((label for label in labels if not array_input.is_missing(label)), None), (str, bytes))


class LabelConverter:
    """Convert labels into numbers of classes, or into real-valued labels; new names are added to `names`."""

    def __init__(self, names: Names, label_range: LabelRange) -> None:
        self._names, self._range = names, label_range
        self._numbers: dict[Any, int] = {}  # labels that the program gave before -> class
        self._classes: dict[str, int] = {}  # key -> class, for the first names of `names`
        self._spellings: dict[str, str] = {}  # key -> the name as the program spells it

    def labels(self, labels: Any, n: int, learn: bool) -> np.ndarray:
        """Return the labels of n examples as float64[n], NaN for those without a label.

        With `learn`, new names become classes, else `class_names.UNKNOWN`. After an error nothing has changed.
        """
        named = self._names.class_list is not None
        if isinstance(labels, (str, bytes)):
            raise DataError(f"y is the text {short_repr(labels)}; give a list, with one for each example")
        labels = array_input.flat("y", labels)
        if n == 1 and type(labels) is list and len(labels) == 1:
            label = self._single(labels[0], named)
            if label is not None:
                return label
        if named and are_names(labels):
            values = labels.tolist() if hasattr(labels, "tolist") else list(labels)
            if len(values) != n:
                raise DataError(f"y: {len(values)} of them for {n} examples; give one for each example")
            return self._numbered(values, learn)
        if not named and are_names(labels):
            labels = [self._number_in(value, i) for i, value in enumerate(labels)]
        label = array_input.column("y", labels, n)
        self._check(label, named, learn, labels)
        return label

    def _single(self, label: Any, named: bool) -> np.ndarray | None:
        """Return the label of a single example as float64[1], if it is the most usual kind of label; else None."""
        if named:
            number = self._numbers.get(label) if type(label) is str else None
            return None if number is None else np.array([number], np.float64)
        lowest, highest, _ = self._range
        if type(label) is int and lowest is not None and highest is not None and lowest <= label <= highest:
            return np.array([label], np.float64)
        return None

    def _number_in(self, value: Any, i: int) -> Any:
        """Return the class that a text at position `i` writes, and other values as they are."""
        if not isinstance(value, str):
            return value
        number = class_names.number_of(value)
        if number < 0 or self._range.highest is None:
            raise DataError(f"y[{i}] is {short_repr(value)}, and the classes of this learner are numbers: give numbers")
        return number

    def _numbered(self, values: Sequence[Any], learn: bool) -> np.ndarray:
        names, numbers, classes = self._names, self._numbers, self._classes
        try:
            label = np.array([numbers.get(value, 0) for value in values], np.float64)
        except TypeError:  # a list or another object that cannot be a key
            wrong = [not (isinstance(value, str) or array_input.is_missing(value)) for value in values]
            raise _no_name(values, wrong.index(True)) from None
        if label.all():
            return label
        for number in range(len(classes), len(names.names)):
            classes[class_names.key_of(names.names[number])] = number + 1
        new: dict[str, int] = {}  # name -> class
        given: dict[Any, int] = {}
        spellings: dict[str, str] = {}
        growing = learn and names.growing
        most = self._range.highest
        for i in np.flatnonzero(label == 0).tolist():
            value = values[i]
            if value in given:
                label[i] = given[value]
                continue
            if array_input.is_missing(value):
                label[i] = math.nan
                continue
            if not isinstance(value, str):
                raise _no_name(values, i)
            key = class_names.key_of(value)
            if not key:
                raise DataError(f"y[{i}] is empty text; give None for no label")
            earlier = self._spellings.get(key) or spellings.setdefault(key, value)
            if earlier != value:
                raise DataError(
                    f"y[{i}] is {short_repr(value)}, which is the same class as {short_repr(earlier)}, because names "
                    "have _ in place of blanks, and none at their ends; if they are two classes, rename one"
                )
            if key not in classes and not growing:
                if learn:
                    raise DataError(f"y[{i}] is {short_repr(value)}, which is not the name of a class")
                label[i] = class_names.UNKNOWN
                continue
            if key not in classes and value not in new:
                if not class_names.is_allowed(value):
                    raise DataError(
                        f"y[{i}] is {short_repr(value)}; a name has no control characters or halves of surrogate pairs"
                    )
                new[value] = len(classes) + len(new) + 1
                if most is not None and new[value] > most:
                    allowed = f"allowed are {most} different names" + (f" ({self._range.set_by})" if most else "")
                    raise DataError(f"y[{i}] is {short_repr(value)}, a name too many: {allowed}")
            label[i] = given[value] = classes.get(key) or new[value]
        names.append(list(new))
        self._numbers.update(given)
        self._spellings.update(spellings)
        return label

    def _check(self, label: np.ndarray, named: bool, learn: bool, given: Any) -> None:
        """Check that all labels, float64[n], `given` by a program, are NaN or classes in the range of the learner.

        Test data that were read from a file have the label UNKNOWN in place of a name that the learner does not know.
        """
        lowest, highest, _ = self._range
        if named:
            highest = len(self._names.names)  # a class without a name cannot be predicted
        if highest is None:
            return
        wrong = ~np.isnan(label) & ~((label >= lowest) & (label <= highest) & (label == np.floor(label)))
        if named and not learn:
            wrong &= label != class_names.UNKNOWN
        if not wrong.any():
            return
        at = int(np.argmax(wrong))
        allowed = f"allowed are whole numbers from {lowest} to {highest}"
        if named:
            allowed = f"{allowed}, the classes that have a name" if highest else "no class has a name yet: give names"
        value = array_input.array("y", given).tolist()[at]
        if value is False:
            allowed = f"as a number it is 0, and {allowed}; give names, such as 'True' and 'False'"
        raise DataError(f"y[{at}] is {written(value)}; {allowed}")


def _no_name(values: Sequence[Any], i: int) -> DataError:
    """Return the error for a label that is no name, although the first one is."""
    if isinstance(values[i], bytes):
        return DataError(f"y[{i}] is {short_repr(values[i])}, bytes that would be predicted as text; decode them")
    return DataError(f"y[{i}] is {short_repr(values[i])}; allowed are names, because other labels are names")


def weights_of(values: Any, n: int) -> np.ndarray:
    """Return the weights of n examples, numbers from 0 to `array_input.LARGEST`, as float32[n]."""
    weights = array_input.column("sample_weight", values, n)
    wrong = ~((weights >= 0) & (weights <= array_input.LARGEST))
    if wrong.any():
        at = int(np.argmax(wrong))
        raise DataError(f"sample_weight[{at}] is {weights[at]:g}; allowed are numbers from 0 to 3.4e38")
    return np.ascontiguousarray(weights, np.float32)
