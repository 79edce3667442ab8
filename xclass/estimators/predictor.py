"""Predict labels, or lists of labels, and probabilities by a learner, for an estimator that has labels of its own.

Predictions are positions in the sorted labels. Only labels that were learned are predicted, although the learner may
have classes without examples.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ..api import results
from ..api.learner import Learner
from ..array_types import AnyArray, Bools, Float32s, Float64s, Int64s
from ..kernels.jit import jit
from ..options.declare import options_of
from ..reductions.core import probabilities
from ..reductions.core.contract import BatchTask
from ..reductions.core.probabilities import ListingOptions
from ..reductions.core.spec import LearnerUse
from . import class_labels
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
            assert task.label_lists is not None
            chosen = task.label_lists.chosen
            position = self._to_positions(chosen.labels)
            row = np.repeat(np.arange(task.batch.n), np.diff(chosen.start))
            return np.bincount(row[position >= 0], minlength=task.batch.n), position[position >= 0]

        counts, positions = map(np.concatenate, zip(*self._learner.predict_each(X, of_task), strict=True))
        return class_labels.matrix(np.concatenate([[0], np.cumsum(counts)]), positions, self._labels)

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
LIST_ALL = "oaa", "recall_tree"  # reductions that list all the probabilities that they estimate at little cost
LISTED_LABELS = 100  # whose probabilities `predict_proba` takes from other reductions if there are more labels
LISTED = LearnerUse(probabilities.ListingOptions(top_k=LISTED_LABELS))


class Predictor:
    """Predict by a learner whose classes are labels, K of them.

    `scores_all` says whether the reduction scores every class, so that its lists contain all of them.
    """

    def __init__(self, learner: Learner, labels: ClassLabels) -> None:
        self._learner, self._labels, self._learned = learner, labels, labels.learned
        self._to_positions = labels.class_positions(learner.core.names.names)
        name = learner.core.config.reduction.name
        self.scores_all = name == "oaa"
        lists_all = name in LIST_ALL or len(self._learned) <= LISTED_LABELS
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
