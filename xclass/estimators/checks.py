"""Check examples, labels, weights and numbers as scikit-learn's estimators do."""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Callable, Sized
from typing import Any

import numpy as np
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    assert_all_finite,
    check_consistent_length,
    validate_data,
)

from ..api import labels
from ..api.inputs import Documents, collected, collected_examples
from ..array_types import AnyArray, Float64s
from ..data import array_input, schema
from ..data.array_input import is_missing
from ..data.frames import Frame, is_frame
from ..data.schema import NUMBER, Schema
from ..errors import DataError, UsageError
from ..system.printable import short_repr
from .class_labels import Targets


def checked(
    estimator: Any, X: Any, y: Any, sample_weight: Any, reset: bool, read: Callable[[Any], Targets]
) -> tuple[Any, Targets, Float64s | None]:
    """Return examples, labels and weights after all checks that do not depend on the learner; `read` checks labels."""
    y, sample_weight = map(collected, (y, sample_weight))
    if y is None:
        raise ValueError(f"This {type(estimator).__name__} requires y to be passed, but the target y is None.")
    X = checked_examples(estimator, X, reset)
    targets = read(y)
    check_consistent_length(X, range(targets.n))
    if sample_weight is None:
        return X, targets, None
    weight: Float64s = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    if not weight.any():
        raise ValueError("sample_weight: all weights are zero, so there is nothing to learn from; give others")
    return X, targets, weight


def checked_examples(estimator: Any, X: Any, reset: bool) -> Any:
    """Return examples after scikit-learn's checks: a matrix, a DataFrame with columns of text, or `Documents`."""
    X = collected_examples(X)
    if isinstance(X, str):
        raise UsageError(f"X is the text {short_repr(X)}; give a list of texts, such as [{short_repr(X)}]")
    on_texts = not reset and not hasattr(estimator, "n_features_in_")
    first = _first_item(X, "" if on_texts else None)
    texts = isinstance(first, str)
    if reset:
        for name in ("n_features_in_", "feature_names_in_"):
            estimator.__dict__.pop(name, None)
    elif texts and estimator.learner_.core.schema.text_column is not None:
        return Documents("" if is_missing(text) else text for text in X)
    elif texts != on_texts:
        if isinstance(X, Sized) and not len(X):
            raise ValueError("X has 0 examples; give at least one")
        if on_texts and first is not None and not np.ndim(first):
            shown = f"{type(first).__name__} {short_repr(first)}"
            raise UsageError(f"X has {shown} among its items, and the estimator was fitted on texts; give texts")
        kinds = ("a matrix or DataFrame", "a sequence of texts")
        raise UsageError(f"X is {kinds[texts]}, and the estimator was fitted on {kinds[not texts]}; give the same")
    if texts:
        return Documents("" if is_missing(text) else text for text in X)
    columns = None if reset else estimator.learner_.core.schema  # of the DataFrame that it was fitted on
    if is_frame(X):
        return _checked_frame(estimator, X, reset, columns)
    if columns:
        raise UsageError(
            f"X is {type(X).__name__}, and the estimator was fitted on a DataFrame with the columns "
            f"{schema.listed(list(columns.columns))}; give a DataFrame with these columns"
        )
    if array_input.is_array(X) and np.asarray(X).ndim == 1:
        shown = array_input.described(np.asarray(X))
        raise UsageError(f"X is an array {shown}, of one dimension. Reshape your data: give a row for each example")
    if isinstance(X, np.ma.MaskedArray):
        X = array_input.filled(array_input.dense(X))
    elif isinstance(X, (list, tuple)) or getattr(getattr(X, "dtype", None), "kind", "") == "O":
        _refuse_text(X)
    return validate_data(estimator, X, reset=reset, accept_sparse="csr", dtype="numeric")


def _checked_frame(estimator: Any, X: Any, reset: bool, known: Schema | None) -> Any:
    """Return a DataFrame after scikit-learn's checks of its columns; one of numbers becomes a matrix.

    `known` are the columns by which cells are read: none if it was fitted on a matrix, None if it is new.
    """
    X = _with_names(X)
    validate_data(estimator, X, reset=reset, skip_check_array=True)
    frame = Frame(X, known or Schema())
    if not frame.n:
        raise ValueError("X has 0 rows; give at least one")
    numbers = known is not None or all(kind == NUMBER for _, kind in frame.columns)
    if known or not numbers or "dense" in estimator.options:  # which names columns
        return X
    return check_array(frame.matrix(), input_name="X")


def _with_names(X: Any) -> Any:
    """Return a DataFrame with names of columns that scikit-learn compares: text, or none if they are 0, 1, 2, ..."""
    names = [*map(str, X.columns)] if hasattr(X, "iloc") else []
    if all(map(operator.eq, names, getattr(X, "columns", ()))):
        return X
    if sorted(names) == sorted(map(str, range(len(names)))):
        return X.iloc[:, np.argsort([int(name) for name in names])]
    return X.set_axis(names, axis=1)


def checked_labels(y: Any, name: str) -> AnyArray:
    """Return labels, or `classes` of `partial_fit`, as an array of one dimension."""
    y = collected(y)
    if hasattr(y, "iloc"):
        y = array_input.flat(name, y)
        if getattr(y.dtype, "kind", "O") in "iub" and hasattr(y.dtype, "numpy_dtype") and not y.isna().any():
            y = y.to_numpy(y.dtype.numpy_dtype)  # scikit-learn makes floats of these types, which hold no large numbers
    listed = isinstance(y, (list, tuple)) and any(isinstance(label, str) for label in y)
    y = column_or_1d(np.array(y, object) if listed else y, warn=True)  # NumPy makes text of all that is beside text
    if y.dtype.kind == "T":  # NumPy's strings of variable length
        y = y.astype(object)
    if not len(y):
        raise ValueError(f"{name} is empty; give at least one label")
    of_objects = y.dtype.kind == "O"
    missing = [i for i, label in enumerate(y.tolist()) if is_missing(label)] if of_objects else []
    if missing:
        shown = f"{name}[{missing[0]}] is {short_repr(y[missing[0]])}"
        raise ValueError(
            f"Input {name} contains missing values: {shown}; leave such examples out, or read the file by "
            "keep_default_na=False if a class is called NA, None or null"
        )
    assert_all_finite(y, input_name=name)
    check_array(y, ensure_2d=False, dtype=None)  # refuses complex numbers
    others = [i for i, label in enumerate(y.tolist()) if not isinstance(label, str)] if of_objects else []
    if 0 < len(others) < len(y):
        shown = f"{name}[{others[0]}] is {short_repr(y[others[0]])}"
        raise ValueError(f"{name} holds text, and {shown}; give labels of one type")
    if others or y.dtype.kind not in "OiubU":  # others are always labels, and scikit-learn warns of many
        check_classification_targets(y)
    return np.array(y.tolist()) if listed else np.asarray(y)


def checked_lists(y: Any, columns: AnyArray | None, lists: bool) -> Targets:
    """Return labels in any form that `XMultilabelClassifier` takes.

    Parameters
    ----------
    columns : labels of the columns of a matrix; None for 0, 1, 2, ...
    lists : whether lists of 0 and 1 alone are lists of labels, and no matrix
    """
    y = collected(y)
    if isinstance(y, (list, tuple)):
        y = labels.one_by_one(y) if lists else np.array(y) if labels.is_listed_matrix(y) else y
    elif not hasattr(y, "shape"):
        y = np.asarray(y)
    elif len(y.shape) == 2 and y.shape[1] == 1 and not hasattr(y, "dtype"):  # a DataFrame
        y = array_input.flat("y", y)
    if len(getattr(y, "shape", ())) == 2 and y.shape[1] != 1:
        y = check_array(y, accept_sparse="csr", dtype=None, input_name="y")
        if (found := labels.of_matrix(y, y.shape[0])) is not None:
            start, column, width = found
            own = np.arange(width) if columns is None else columns
            if len(own) != width:
                raise DataError(f"y has {width} columns; give one for each of the {len(own)} labels in `classes_`")
            return Targets(own[column], start, "sparse" if hasattr(y, "indptr") else "dense", own)
        y = y.tolist()  # names
    if getattr(getattr(y, "dtype", None), "kind", "O") != "O" or not any(map(labels.is_list, y)):
        return Targets(checked_labels(y, "y"))
    start, given, known = labels.joined(y, len(y))
    if not known.all():
        raise ValueError(f"y[{int(np.argmin(known))}] is missing; leave such examples out, or give an empty list")
    if not given and columns is None:
        raise ValueError("y has no labels: all lists are empty; give at least one label")
    with labels.placed(start):
        return Targets(checked_labels(given, "y") if given else np.asarray(columns)[:0], start, "lists")


def is_number(value: Any, lowest: int | None = None) -> bool:
    """Return whether a value is a whole number of at least `lowest`."""
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    return whole and (lowest is None or bool(value >= lowest))


def _refuse_text(X: Any) -> None:
    """Raise DataError if there is text in a matrix of objects, which scikit-learn takes as numbers."""
    with contextlib.suppress(ValueError):  # rows of different lengths, which scikit-learn refuses
        values = np.asarray(X)
        if values.dtype.kind != "O" or not any(issubclass(kind, (str, bytes)) for kind in set(map(type, values.flat))):
            return
        X = values
    array_input.dense(X)


def _first_item(X: Any, all_missing: Any) -> Any:
    """Return the first item of a sequence that is not missing, which is a text in a sequence of texts.

    Return `all_missing` if all items are missing, and None for an empty sequence and what is none.
    """
    if isinstance(X, (list, tuple)) or (getattr(X, "ndim", 0) == 1 and hasattr(X, "__iter__")):
        return next((item for item in X if not is_missing(item)), all_missing if len(X) else None)
    return None
