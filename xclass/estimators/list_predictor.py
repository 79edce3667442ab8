"""Predict lists of labels and their probabilities by a learner, for an estimator that has labels of its own.

Predictions are positions in the sorted labels. A learner may have classes that are none of them.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ..api import arrays
from ..api.learner import Learner
from ..array_types import Float64s, Int64s
from ..reductions.core.contract import BatchTask
from ..reductions.core.probabilities import Options
from ..reductions.core.spec import Wanted
from . import targets
from .class_labels import ClassLabels

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
            assert task.chosen is not None
            position = self._to_positions(task.chosen.labels)
            row = np.repeat(np.arange(task.batch.n), np.diff(task.chosen.start))
            return np.bincount(row[position >= 0], minlength=task.batch.n), position[position >= 0]

        counts, positions = map(np.concatenate, zip(*self._learner.predict_each(X, of_task), strict=True))
        return targets.matrix(np.concatenate([[0], np.cumsum(counts)]), positions, self._labels)

    def probabilities(self, X: Any) -> Float64s:
        """Return the probabilities of all labels, float64[n, K]."""
        wanted = Wanted(Options(top_k=self._classes))
        return np.concatenate(self._learner.predict_each(X, self._all, wanted))

    def top(self, X: Any, k: int) -> tuple[Int64s, Float64s]:
        """Return the positions of the k most probable labels, int64[n, k], and their probabilities, float64[n, k]."""
        all_known = self._classes == self._labels
        wanted = Wanted(Options(top_k=k if all_known else self._classes))
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
        assert task.ranked is not None
        most = max(k, int(np.diff(task.ranked.start).max(initial=0)))
        classes, p = arrays.top_k_arrays(task.ranked, most)
        return self._to_positions(classes[:, :k]), np.clip(p[:, :k], LEAST, 1 - LEAST)

    def _first_of_all(self, k: int, task: BatchTask) -> tuple[Int64s, Float64s]:
        p = self._all(task)
        order = np.argsort(-p, axis=1, kind="stable")[:, :k]
        return order, np.take_along_axis(p, order, axis=1)
