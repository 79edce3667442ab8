"""Find the names of the features of examples that a program passes as Python objects.

`data` converts the same objects into batches, which have only the hashes of the names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ..text.text_format import WrittenFeature


def written(given: Any, i: int) -> Iterator[WrittenFeature] | None:
    """Return the features of example i, with their names; None if it is not known how they are named.

    Parameters
    ----------
    given : examples that `Learner.predict_many` accepts and that are not VW text
    i : number of the example
    """
    if hasattr(given, "columns") and hasattr(given, "dtypes"):
        return _of_row(given.iloc[i : i + 1] if hasattr(given, "iloc") else given[i : i + 1])
    if hasattr(given, "tocsr"):
        given = given.tocsr()
    if hasattr(given, "indptr"):
        begin, end = int(given.indptr[i]), int(given.indptr[i + 1])
        return _of_columns(given.indices[begin:end], given.data[begin:end])
    if isinstance(given, np.ndarray) and given.ndim == 2:
        columns = np.flatnonzero(given[i])
        return _of_columns(columns, given[i][columns])
    if isinstance(given, (list, tuple, np.ndarray)):
        if isinstance(given[i], Mapping):
            return _of_dict(given[i], b"")
        if isinstance(given[i], str):
            return _of_words(given[i], b"")
    return None


def _of_columns(columns: Any, values: Any) -> Iterator[WrittenFeature]:
    """Yield the features of a row of a matrix; column j is the feature named `j`."""
    for column, value in zip(columns.tolist(), values.tolist(), strict=True):
        yield WrittenFeature(b"%d" % column, np.float32(value))


def _of_words(text: str, namespace: bytes) -> Iterator[WrittenFeature]:
    """Yield the words of a text as features."""
    for word in _bytes(text).split():
        yield WrittenFeature(word, np.float32(1), namespace)


def _of_dict(example: Mapping[Any, Any], namespace: bytes) -> Iterator[WrittenFeature]:
    """Yield the features of a dictionary, and those of the dictionaries in it, whose names are namespaces."""
    for name, value in example.items():
        if isinstance(value, Mapping):
            yield from _of_dict(value, _bytes(str(name)))
        elif isinstance(value, str):
            yield WrittenFeature(_bytes(str(name)), np.float32(1), namespace, _bytes(value))
        elif value is not None:
            yield WrittenFeature(_bytes(str(name)), np.float32(value), namespace)


def _of_row(row: Any) -> Iterator[WrittenFeature]:
    """Yield the features of a DataFrame of one row: numbers, and the words of columns of text."""
    for name in row.columns:
        (value,) = row[name].to_list()
        if isinstance(value, str):
            yield from _of_words(value, _bytes(str(name)))
        elif isinstance(value, (int, float, np.number, np.bool_)) and value == value:
            yield WrittenFeature(_bytes(str(name)), np.float32(value))


def _bytes(text: str) -> bytes:
    """Return the bytes that are hashed for a text."""
    return text.encode("utf-8", "surrogateescape")
