"""Hold the labels of examples that an estimator is given, in any form."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from ..api.labels import HIGHEST_NUMBER
from ..array_types import AnyArray, Float64s, Int64s
from .class_labels import ClassLabels


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
