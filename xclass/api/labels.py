"""Convert the labels and weights that a program passes beside its examples."""

from __future__ import annotations

import contextlib
import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..array_types import AnyArray, Bools, Int64s
from ..data import array_input, batch_ops, class_names
from ..data.batch import Batch, empty
from ..data.class_names import Names
from ..data.schema import Schema, written
from ..errors import DataError, NotClassNumber, XclassError
from ..reductions.core.spec import LabelRange
from ..system.printable import short_repr
from ..text.label_detection import LabelDetector
from ..text.malformed import LEARNS_ONE

HIGHEST_NUMBER = 10**7  # larger integers that a program gives are identifiers, and become names
POSITION = re.compile(r"\by\[(\d+)\]")


class KindOfLabels(NamedTuple):
    """Say whether labels are names, and whether they are lists."""

    names: bool
    lists: bool
    outside: bool = False  # whether some are whole numbers that are no numbers of classes
    silent: bool = False  # whether there is no label

    @classmethod
    def of(cls, found: LabelDetector) -> KindOfLabels:
        """Return what a detector has found."""
        return cls(
            found.names_in_list if found.list else bool(found.name), bool(found.list), found.outside, found.silent
        )


def are_lists(labels: Any) -> bool:
    """Return whether some of the labels of several examples are lists, or labels are a matrix."""
    shape: tuple[int, ...] = getattr(labels, "shape", ())
    if len(shape) > 1:
        return bool(shape[1] != 1)
    kind = getattr(getattr(labels, "dtype", None), "kind", "O")
    return kind == "O" and hasattr(labels, "__iter__") and any(map(is_list, labels))


def are_names(labels: Any) -> bool:
    """Return whether labels, a single label or lists are names: the first label that is not missing is text."""
    if isinstance(labels, (str, bytes)) or column_names(labels):
        return True
    if len(getattr(labels, "shape", ())) == 2 and not hasattr(labels, "dtype"):  # a DataFrame
        labels = array_input.array("y", labels)
    if isinstance(labels, np.ndarray) or hasattr(labels, "dtype"):
        kind = getattr(labels.dtype, "kind", "O")
        if kind in "US":
            return True
        if kind in "iufb":
            return False
    if not hasattr(labels, "__iter__"):
        return False
    known = (label for label in labels if not array_input.is_missing(label))
    first = next((label for label in known if not is_list(label) or len(label)), None)
    return first is not None and are_names(first.as_py() if hasattr(first, "as_py") else first)  # of Arrow


def column_names(y: Any) -> list[str]:
    """Return the names of the columns of a DataFrame that has several, nothing for other labels and other names."""
    names = list(getattr(y, "column_names", getattr(y, "columns", ())))
    return names if len(names) > 1 and all(isinstance(name, str) for name in names) else []


def is_list(label: Any) -> bool:
    """Return whether an object is the list of labels of an example: a list, a set, an array or the like."""
    return hasattr(label, "__len__") and not isinstance(label, (str, bytes, Mapping)) and getattr(label, "ndim", 1) > 0


def is_listed_matrix(y: Any) -> bool:
    """Return whether labels are a matrix that is given as rows of 0 and 1, and no lists of the labels 0 and 1."""
    rows = (list, tuple, np.ndarray)
    if not isinstance(y, (list, tuple)) or not y or not isinstance(y[0], rows) or not is_list(y[0]) or len(y[0]) < 2:
        return False
    width = len(y[0])
    return all(
        isinstance(row, rows) and is_list(row) and len(row) == width and all(is_bit(value) for value in row)
        for row in y
    )


def is_bit(value: Any) -> bool:
    """Return whether a value is 0 or 1."""
    return not is_list(value) and value in (0, 1)


def one_by_one(labels: Sequence[Any]) -> Any:
    """Return labels of examples that were given one by one, so that rows of 0 and 1 are lists of labels."""
    if not any(map(is_list, labels)):
        return labels
    each = np.empty(len(labels), object)
    for i, label in enumerate(labels):
        each[i] = label
    return each


class LabelConverter:
    """Convert labels into numbers of classes, or into real-valued labels; new names are added to `names`.

    `lists` says whether each example has a list of labels. A number to learn above `highest` is an identifier, which
    becomes a name where that is possible.
    """

    highest: float = HIGHEST_NUMBER

    def __init__(self, names: Names, label_range: LabelRange, lists: bool, schema: Schema) -> None:
        self._names, self._range, self.lists, self._schema = names, label_range, lists, schema
        self._numbers: dict[Any, int] = {}  # labels that the program gave before -> class
        self._classes: dict[str, int] = {}  # key -> class, for the first names of `names`
        self._spellings: dict[str, str] = {}  # key -> the name as the program spells it

    def fields(self, y: Any, n: int, learn: bool) -> dict[str, AnyArray]:
        """Return the labels of n examples as fields of a Batch; none of one label each if `y` is None.

        `y` may be a Batch that has the labels. With `learn`, new names become classes, else `class_names.UNKNOWN`.
        After an error nothing has changed.
        """
        if isinstance(y, (str, bytes)):
            raise DataError(f"y is the text {short_repr(y)}; give a list, with one for each example")
        if self.lists:
            return self._list_fields(y, n, learn)
        if isinstance(y, Batch):
            return {"label": self._of_classes(y.label, n, learn)}
        try:
            return {} if y is None else {"label": self._labels(y, n, learn)}
        except XclassError:
            refuse_lists(y, LEARNS_ONE)
            raise

    def _list_fields(self, y: Any, n: int, learn: bool) -> dict[str, AnyArray]:
        given: Any
        if y is None or (isinstance(y, Batch) and not y.has_lists):
            start, given, known = np.zeros(n + 1, np.int64), [], np.zeros(n, bool)
        elif isinstance(y, Batch):
            start, given, known = y.label_start, self._of_classes(y.labels, len(y.labels), learn), ~np.isnan(y.label)
        elif (matrix := of_matrix(y, n)) is not None:
            start, column, width = matrix
            lowest, numbers = self._range.lowest or 0, bool(self._schema.classes)
            named = self._names.class_list is not None and not numbers
            names = column_names(y) if named else []
            if named and not names and self._names.growing:
                raise DataError(
                    "y is a matrix of 0 and 1 whose columns have no names, and the labels learned are names; give "
                    "lists of names, or a DataFrame whose columns are the names"
                )
            highest = len(self._names.names) if named else self._range.highest
            if not names and not numbers and highest is not None and width > highest + 1 - lowest:
                raise DataError(
                    f"y has {width} columns; give one for each of the {highest + 1 - lowest} labels, or lists of them"
                )
            if names:
                given = self._numbered(names, learn, "y.columns")[column]
            else:
                given = column.tolist() if numbers else self._of_classes(column + lowest, len(column), learn)
            known = np.ones(n, bool)
        else:
            start, given, known = joined(y, n)
        with placed(start):
            labels = given if isinstance(given, np.ndarray) else self._labels(given, int(start[-1]), learn)
        label = np.where(known, np.diff(start), np.nan)
        batch = batch_ops.with_lists_in_order(empty(n, 0, 0)._replace(label=label, label_start=start, labels=labels))
        return {name: getattr(batch, name) for name in ("label", "label_start", "labels")}

    def _labels(self, labels: Any, n: int, learn: bool) -> np.ndarray:
        """Return n labels as float64[n], NaN for missing ones."""
        named = self._names.class_list is not None
        labels = array_input.flat("y", labels)
        if n == 1 and type(labels) is list and len(labels) == 1:
            label = self._single(labels[0], named)
            if label is not None:
                return label
        if named:
            values = labels.tolist() if hasattr(labels, "tolist") else list(labels)
            if len(values) != n:
                raise DataError(f"y: {len(values)} of them for {n} examples; give one for each example")
            return self._numbered(values, learn)
        if are_names(labels):
            labels = [self._number_in(value, i) for i, value in enumerate(labels)]
        return self._of_classes(labels, n, learn)

    def _of_classes(self, labels: Any, n: int, learn: bool) -> np.ndarray:
        """Return n numbers of classes as float64[n], NaN for missing ones."""
        label = array_input.column("y", labels, n)
        if self._range.highest is not None and n and _is_truth(labels):
            raise DataError(
                "y[0] is a truth value, and classes are whole numbers; give names, such as 'True' and 'False'"
            )
        self._check(label, self._names.class_list is not None, learn, labels)
        return label

    def _single(self, label: Any, named: bool) -> np.ndarray | None:
        """Return the label of a single example as float64[1], if it is the most usual kind of label; else None."""
        if named:
            number = self._numbers.get(label) if type(label) in (str, int) else None
            return None if number is None else np.array([number], np.float64)
        lowest, highest, _ = self._range
        if (
            type(label) is int
            and lowest is not None
            and highest is not None
            and lowest <= label <= min(highest, self.highest)
        ):
            return np.array([label], np.float64)
        return None

    def _number_in(self, value: Any, i: int) -> Any:
        """Return the class that a text at position `i` writes, and other values as they are."""
        if not isinstance(value, str):
            return value
        name = class_names.spelled(value)
        if not name:
            raise DataError(f"y[{i}] is empty text; give None for no label")
        number = class_names.number_of(name)
        if number in (class_names.NO_NUMBER, class_names.OTHER_FORM) or self._range.highest is None:
            raise DataError(f"y[{i}] is {short_repr(value)}, and the classes of this learner are numbers: give numbers")
        return int(float(name))

    def _numbered(self, values: Sequence[Any], learn: bool, place: str = "y") -> np.ndarray:
        names, numbers, classes = self._names, self._numbers, self._classes
        try:
            label = np.array([numbers.get(value, 0) for value in values], np.float64)
        except TypeError:  # a list or another object that cannot be a key
            wrong = [
                not (isinstance(value, str) or array_input.is_missing(value) or _written_number(value))
                for value in values
            ]
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
            own = values[i]
            if own in given:
                label[i] = given[own]
                continue
            if array_input.is_missing(own):
                label[i] = math.nan
                continue
            value = own if isinstance(own, str) else _written_number(own)
            if value is None:
                raise _no_name(values, i)
            key = class_names.key_of(value)
            if not key:
                raise DataError(f"{place}[{i}] is empty text; give None for no label")
            earlier = self._spellings.get(key) or spellings.setdefault(key, value)
            if earlier != value:
                raise DataError(
                    f"{place}[{i}] is {short_repr(value)}, which is the same class as {short_repr(earlier)}, because "
                    "names have _ in place of blanks, and none at their ends; if they are two classes, rename one"
                )
            if key not in classes and not growing:
                if learn:
                    raise DataError(f"{place}[{i}] is {short_repr(value)}, which is not the name of a class")
                label[i] = class_names.UNKNOWN
                continue
            if key not in classes and value not in new:
                if fault := class_names.fault_of(value):
                    raise DataError(f"{place}[{i}] is {short_repr(value)}; {fault}")
                new[value] = len(classes) + len(new) + 1
                if most is not None and new[value] > most:
                    allowed = f"allowed are {most} different names" + (f" ({self._range.set_by})" if most else "")
                    cure = "give a larger number of classes"
                    raise DataError(f"{place}[{i}] is {short_repr(value)}, a name too many: {allowed}; {cure}")
            label[i] = given[own] = classes.get(key) or new[value]
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
        elif learn and highest is not None:
            highest = int(min(highest, self.highest))
        if highest is None:
            return
        known, values = ~np.isnan(label), array_input.array("y", given)
        wrong = known & ~((label >= lowest) & (label <= highest) & (label == np.floor(label)))
        if named and not learn:
            wrong &= label != class_names.UNKNOWN
        if values.dtype.kind == "O" or values.dtype.itemsize > label.itemsize:  # such as decimals, which floats round
            wrong |= [k and value != y for k, value, y in zip(known, values.tolist(), label, strict=True)]
        if not wrong.any():
            return
        at = int(np.argmax(wrong))
        allowed = f"allowed are whole numbers from {lowest} to {highest}"
        if named:
            allowed = f"{allowed}, the classes that have a name" if highest else "no class has a name yet: give names"
        value = values.tolist()[at]
        whole = value == np.floor(label[at])
        raise (NotClassNumber if whole else DataError)(f"y[{at}] is {written(value)}; {allowed}")


def _is_truth(labels: Any) -> bool:
    """Return whether the first of several labels is a truth value."""
    first = labels[0] if isinstance(labels, (list, tuple)) else getattr(labels, "dtype", None)
    return isinstance(first, (bool, np.bool_)) or getattr(first, "kind", "") == "b"


def refuse_lists(y: Any, cure: str) -> None:
    """Raise DataError if examples have lists of labels; `cure` ends its message."""
    if _columns(y) != 1:
        raise DataError(f"y has the shape {y.shape}, a list of labels for each example, {cure}") from None
    for i, label in enumerate(y if hasattr(y, "__iter__") else ()):
        if is_list(label):
            raise DataError(f"y[{i}] is {short_repr(label)}, a list of labels, {cure}") from None


def of_examples(y: Any, n: int) -> list[Any]:
    """Return what labels n examples have, each a label or a list of them, as a list of objects of Python."""
    if (matrix := of_matrix(y, n)) is not None:
        start, column, width = matrix
        column = np.array(column_names(y) or range(width), object)[column]
        return [column[low:high].tolist() for low, high in itertools.pairwise(start.tolist())]
    y = y if isinstance(y, (list, tuple)) or _columns(y) != 1 else array_input.flat("y", y)
    convert = next((name for name in ("to_pylist", "tolist", "to_list") if hasattr(y, name)), None)
    values = list(getattr(y, convert)() if convert else y)
    if len(values) != n:
        raise DataError(f"y has {len(values)} labels for {n} examples; give one, or a list of them, for each example")
    for i, value in enumerate(values):
        if isinstance(value, (set, frozenset)):
            values[i] = sorted(value, key=str)  # names are numbered as they come, always in the same order
        elif is_list(value):
            values[i] = value.tolist() if isinstance(value, np.ndarray) else list(value)
    return values


def joined(y: Any, n: int) -> tuple[Int64s, list[Any], Bools]:
    """Return where the labels of each of n examples begin, all labels, and for which examples they are known."""
    values = of_examples(y, n)
    missing = list(map(array_input.is_missing, values))
    lists = [
        value if isinstance(value, list) else [] if unknown else [value]
        for value, unknown in zip(values, missing, strict=True)
    ]
    start = np.concatenate([[0], np.cumsum(list(map(len, lists)), dtype=np.int64)])
    labels = [label for value in lists for label in value]
    for k, label in enumerate(labels):
        if is_list(label) or isinstance(label, (bool, np.bool_)) or array_input.is_missing(label):
            raise DataError(
                f"{_place(start, k)} is {short_repr(label)}; allowed are lists of names or numbers, None in place of a "
                "list that is not known, and a matrix of 0 and 1 with a column for each label"
            )
    return start, labels, ~np.array(missing, bool)


def of_matrix(y: Any, n: int) -> tuple[Int64s, Int64s, int] | None:
    """Return where the entries of each row of an indicator matrix begin, their columns, and how many columns there are.

    None stands for labels that are no matrix with several columns of numbers.
    """
    y = np.array(y) if is_listed_matrix(y) else y
    if hasattr(y, "tocsr") or hasattr(y, "indptr"):
        rows = array_input.rows_of(y)
        row, column, value = np.repeat(np.arange(len(rows.start) - 1), np.diff(rows.start)), rows.column, rows.value
        row, column, value = row[value != 0], column[value != 0].astype(np.int64), value[value != 0]
        height, width = getattr(y, "shape", (len(rows.start) - 1, int(column.max(initial=-1)) + 1))
    else:
        values = array_input.array("y", y) if _columns(y) != 1 else np.empty(0)
        if values.ndim != 2 or values.dtype.kind not in "iufbO":
            return None
        values = array_input.filled(array_input.dense(values))
        row, column = np.nonzero(values)
        value, (height, width) = values[row, column], values.shape
    if height != n:
        raise DataError(f"y has {height} rows for {n} examples; give a row for each example")
    if (wrong := value != 1).any():
        at = int(np.argmax(wrong))
        raise DataError(
            f"y[{row[at]}][{column[at]}] is {written(value[at].item())}; allowed in a matrix are 0 and 1; give "
            "lists of labels as a list of lists"
        )
    return np.searchsorted(row, np.arange(n + 1)), column, width


def _columns(y: Any) -> int:
    """Return the number of columns of a table, 1 for labels in one dimension."""
    shape: tuple[int, ...] = getattr(y, "shape", ())
    return shape[1] if len(shape) == 2 else 1


@contextlib.contextmanager
def placed(start: Int64s | None) -> Iterator[None]:
    """Name the place in the list of an example in errors about one of all labels; without lists, `start` is None."""
    try:
        yield
    except ValueError as error:
        if start is None:
            raise
        error.args = (POSITION.sub(lambda found: _place(start, int(found[1])), str(error), count=1),)
        raise


def _place(start: Int64s, k: int) -> str:
    i = int(np.searchsorted(start, k, side="right")) - 1
    return f"y[{i}][{k - start[i]}]"


def _no_name(values: Sequence[Any], i: int) -> DataError:
    """Return the error for a label that is no name, although the first one is."""
    if isinstance(values[i], bytes):
        return DataError(f"y[{i}] is {short_repr(values[i])}, bytes that would be predicted as text; decode them")
    return DataError(
        f"y[{i}] is {short_repr(values[i])}; allowed are names, and finite numbers, which are names as written"
    )


def _written_number(value: Any) -> str | None:
    """Return how a number is written, which is then the name of a class; None if it is no number."""
    number = None if isinstance(value, (bool, np.bool_)) else array_input.number(value)
    return None if number is None or not math.isfinite(number) else class_names.spelled(value)


def weights_of(values: Any, n: int) -> np.ndarray:
    """Return the weights of n examples, numbers from 0 to `array_input.LARGEST`, as float32[n]."""
    weights = array_input.column("sample_weight", values, n)
    wrong = ~((weights >= 0) & (weights <= array_input.LARGEST))
    if wrong.any():
        at = int(np.argmax(wrong))
        raise DataError(f"sample_weight[{at}] is {weights[at]:g}; allowed are numbers from 0 to 3.4e38")
    return np.ascontiguousarray(weights, np.float32)
