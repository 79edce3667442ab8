"""Find the names of the features of examples that a program passes as Python objects.

`data` converts the same objects into batches, which have only the hashes of the names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ..data.array_input import is_missing
from ..data.feature_names import encoded
from ..data.frames import Frame
from ..data.schema import DENSE, NUMBER, TEXT
from ..text.text_format import WrittenFeature


def written(given: Any, i: int) -> Iterator[WrittenFeature] | None:
    """Return the features of example i, with their names; None if it is not known how they are named.

    `given` are examples that `Learner.predict_many` accepts and that are not VW text; a sparse matrix is in rows.
    """
    if isinstance(given, Frame):
        return _of_row(given, i)
    if hasattr(given, "indptr"):
        begin, end = int(given.indptr[i]), int(given.indptr[i + 1])
        return _of_columns(given.indices[begin:end], given.data[begin:end])
    if isinstance(given, (list, tuple, np.ndarray)):
        if isinstance(given[i], (list, tuple, np.ndarray)):
            row = np.ma.filled(np.ma.asarray(given[i], np.float32), 0)
            columns = np.flatnonzero(row)
            return _of_columns(columns, row[columns])
        if isinstance(given[i], Mapping):
            return _of_dict(given[i], b"")
        if isinstance(given[i], str):
            return iter([WrittenFeature(encoded(given[i]), np.float32(1), is_text=True)])
    return None


def _of_columns(columns: Any, values: Any) -> Iterator[WrittenFeature]:
    """Yield the features of a row of a matrix; column j is the feature named `j`."""
    for column, value in zip(columns.tolist(), values.tolist(), strict=True):
        yield WrittenFeature(b"%d" % column, np.float32(value), is_index=True)


def _of_dict(example: Mapping[Any, Any], namespace: bytes) -> Iterator[WrittenFeature]:
    """Yield the features of a dictionary, and those of the dictionaries in it, whose names are namespaces."""
    for name, value in example.items():
        if isinstance(value, Mapping):
            yield from _of_dict(value, encoded(str(name)))
        elif isinstance(value, str):
            yield WrittenFeature(encoded(str(name)), np.float32(1), namespace, encoded(value))
        elif not is_missing(value):
            yield WrittenFeature(encoded(str(name)), np.float32(value), namespace)


def _of_row(frame: Frame, i: int) -> Iterator[WrittenFeature]:
    """Yield the features of a row of a DataFrame: numbers, and the words of columns of text and categories."""
    for j, (name, kind) in enumerate(frame.columns):
        if kind == NUMBER:
            (value,) = frame.numbers(j, i, i + 1).astype(np.float32)
            if not np.isnan(value):
                yield WrittenFeature(encoded(name), value)
        elif kind == DENSE:  # features of learners that do not take the numbers as they are
            for k, value in enumerate(frame.block(j, i, i + 1)[0].tolist()):
                yield WrittenFeature(b"%d" % k, np.float32(value), encoded(name))
        else:
            (text,) = frame.words(j, i, i + 1)
            if text:
                yield WrittenFeature(encoded(text), np.float32(1), encoded(name), is_text=kind == TEXT)
