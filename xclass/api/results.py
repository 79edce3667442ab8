"""Turn the tasks that a learner has predicted into what a program gets: numbers or names of classes, and arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from ..data import batch_ops, class_names
from ..data.batch import Batch
from ..errors import UsageError
from ..options.declare import options_of
from ..reductions import registry
from ..reductions.core.contract import BatchTask
from ..reductions.core.label_lists import MultilabelLearner
from ..reductions.core.probabilities import NORMALIZED, RAW, ClassLists, ListingOptions
from ..reductions.core.spec import LearnerUse
from . import configuration
from .inputs import Examples, written_by_program
from .learner_core import LearnerCore

if TYPE_CHECKING:
    from ..explain.records import Explanation


class Outcome(NamedTuple):
    """Hold the result of learning from n examples.

    Attributes
    ----------
    prediction : ndarray of shape (n,)
        Prediction of each example before it was learned from: a class (int64, 0 while there is none to predict), a
        number of "scalar" (float64), or the list of the labels above the threshold (object). Where labels are names,
        the names (object).
    loss : ndarray of shape (n,), dtype float64
        Loss of each prediction times the weight of the example; 0 without a label.
    warnings : tuple of str
        Messages about these examples. Each is also issued as an `XclassWarning`.

    Examples
    --------
    >>> import xclass
    >>> with xclass.Learner("oaa", classes=2, bits=10) as model:
    ...     outcome = model.learn_many(["1 | sunny warm", "2 | rainy cold", "| no label"])
    >>> outcome.prediction.tolist(), outcome.loss.tolist()
    ([1, 1, 1], [0.0, 1.0, 0.0])
    """

    prediction: np.ndarray
    loss: np.ndarray
    warnings: tuple[str, ...]


class Scores(NamedTuple):
    """Hold the scores of classes for n examples, as rows of different lengths.

    Attributes
    ----------
    start : ndarray of shape (n + 1,), dtype int64
        Example i has the entries `start[i]:start[i + 1]` of the other arrays.
    classes : ndarray of shape (m,)
        Class of each score (int64), or its name (object).
    scores : ndarray of shape (m,), dtype float32
        The scores. The class with the highest score is predicted.

    Examples
    --------
    >>> import xclass
    >>> with xclass.Learner("oaa", classes=3, bits=10) as model:
    ...     _ = model.learn_many(["1 | sunny warm", "2 | rainy cold", "3 | snow cold"] * 10)
    ...     result = model.scores(["| warm", "| snow"])
    >>> result.start.tolist(), result.classes.tolist()
    ([0, 3, 6], [1, 2, 3, 1, 2, 3])
    >>> result.scores.reshape(2, 3).argmax(axis=1).tolist()
    [0, 2]
    """

    start: np.ndarray
    classes: np.ndarray
    scores: np.ndarray


def _answers(core: LearnerCore, task: BatchTask, best_first: bool = False) -> np.ndarray:
    """Return the predictions of a task: classes, numbers, or lists of labels as objects.

    Lists are ascending, or have the most probable labels first.
    """
    if task.label_lists is not None:
        lists, (of_best, chosen) = np.empty(task.batch.n, object), task.label_lists
        labels, ends = chosen.labels.tolist(), chosen.start.tolist()
        for i in range(task.batch.n):
            lists[i] = labels[ends[i] : ends[i + 1]]
            if best_first and len(lists[i]) > 1:
                ranked = of_best.labels[of_best.start[i] : of_best.start[i + 1]].tolist()
                lists[i] = [y for y in ranked if y in lists[i]] + [y for y in lists[i] if y not in ranked]
        return lists
    assert task.prediction is not None  # the stages have set it
    return task.prediction.astype(_kind(core))


def _kind(core: LearnerCore) -> type[np.generic]:
    """Return the type of predictions."""
    return {"multiclass": np.int64, "multilabel": np.object_}.get(core.config.reduction.labels, np.float64)


def _named(core: LearnerCore, labels: list[int]) -> list[Any]:
    """Return a list of labels as numbers, or as names if labels are names, without those that have none yet."""
    names = core.classes
    return labels if names is None else [names[y - 1] for y in labels if y <= len(names)]


def with_losses(core: LearnerCore, tasks: Iterable[BatchTask]) -> tuple[np.ndarray, np.ndarray]:
    """Return the predictions and the losses of tasks, without keeping their batches in memory."""
    predictions, losses = [np.empty(0, _kind(core))], [np.empty(0)]
    for task in tasks:
        losses.append(np.zeros(task.batch.n) if task.loss is None else task.loss)
        predictions.append(_answers(core, task))
    return _labelled(core, predictions), np.concatenate(losses)


def single(core: LearnerCore, tasks: Sequence[BatchTask]) -> Any:
    """Return the first prediction of tasks, None if there is none, or if it is no class."""
    return next((answers(core, task)[0] for task in tasks if task.batch.n), None)


def answers(core: LearnerCore, task: BatchTask, best_first: bool = False) -> list[Any]:
    """Return the predictions of a task: classes or their names, numbers, or lists of labels; None for no class."""
    found: list[Any] = _answers(core, task, best_first).tolist()
    if core.config.reduction.labels == "multilabel":
        return [_named(core, labels) for labels in found]
    if core.config.reduction.labels != "multiclass":
        return found
    if core.classes is None:
        return found if core.label_range.lowest == 0 else [label or None for label in found]
    return [class_names.name_of(label, core.classes) for label in found]


def predictions(core: LearnerCore, batches: Iterable[Batch]) -> np.ndarray:
    """Return the predictions of batches, as `Learner.predict_many` does."""
    return _labelled(core, [np.empty(0, _kind(core)), *(_answers(core, task) for task in core.predict(batches))])


def _labelled(core: LearnerCore, found: list[np.ndarray]) -> np.ndarray:
    """Return predictions as one array, with names in place of classes that have some."""
    if core.config.reduction.labels == "multilabel":
        for part in found:
            for i, labels in enumerate(part):
                part[i] = _named(core, labels)
        return np.concatenate(found)
    return class_labels(core, np.concatenate(found), "")


def top(core: LearnerCore, batches: Iterable[Batch], k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the k most probable classes of each example, and their probabilities, as `Learner.predict_many` does."""
    k = configuration.checked_value("k", options_of(ListingOptions)["top_k"], k)
    if core.config.values().get("scores"):
        raise UsageError("--scores lists the scores of all classes, and no probabilities; leave it out, or leave out k")
    found = [(np.empty((0, k), np.int64), np.empty((0, k)))]
    for task in _listing(core, batches, ListingOptions(top_k=k)):
        lists = best_lists(core, task, k)
        if lists is not None:
            found.append(top_k_arrays(lists, k))
    labels, p = map(np.concatenate, zip(*found, strict=True))
    return class_labels(core, labels), p


def best_lists(core: LearnerCore, task: BatchTask, k: int) -> ClassLists | None:
    """Return the lists of the k most probable classes of a task that was predicted with the listing option `top_k`."""
    if task.label_lists is not None:  # --vw_exact lists no probabilities
        return cast(MultilabelLearner, core.reduction).best(task.label_lists.ranked, k)
    return task.class_lists


def probabilities(core: LearnerCore, batches: Iterable[Batch], raw: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the classes and a matrix of their probabilities, as `Learner.probabilities` does."""
    tasks = _listing(core, batches, ListingOptions(probabilities=RAW if raw else NORMALIZED))
    labels, p = probability_matrix([task.class_lists for task in tasks if task.class_lists is not None])
    return class_labels(core, labels), p


def _listing(core: LearnerCore, batches: Iterable[Batch], listing_options: ListingOptions) -> Iterable[BatchTask]:
    """Predict batches with the listings of classes and probabilities that the options describe."""
    record = core.config.reduction
    if not record.probabilities:
        names = registry.listed(lambda one: one.probabilities and one.labels != "multilabel")
        raise UsageError(f"{record.name} does not estimate probabilities; choose one of {names}")
    return core.predict(batches, LearnerUse(listing_options=listing_options))


def scores(core: LearnerCore, batches: Iterable[Batch]) -> Scores:
    """Return the scores of the classes that are compared, as `Learner.scores` does."""
    start, labels, values = joined_scores(list(core.predict(batches, LearnerUse(scores=True))))
    return Scores(start, class_labels(core, labels), values)


def explanations(
    core: LearnerCore, batches: Iterable[Batch], given: Examples, k: int, most: int | None = None,
    name: Callable[[int], str] | None = None, columns: Sequence[Any] | None = None,
) -> Iterator[Explanation]:  # fmt: skip
    """Yield explanations with k classes; `given` are the examples of the program, which have the names of features.

    With `most`, they are limited as by `Explanation.limited(most, most)`. Between those of two batches, the learner may
    be used otherwise. `name` returns the text of a class, if it is not to be that of the learner, and `columns` are the
    names of the features that are columns of a matrix, which are numbers otherwise.
    """
    from ..abilities import find
    from ..explain import feature_names, records

    k = configuration.checked_value("k", options_of(ListingOptions)["top_k"], k)
    c = core.config
    names = feature_names.Namer(
        c.parser, c.features, c.interactions, configuration.feature_bits(c), core.preparation.crosser
    )
    given = written_by_program(given)
    found: list[Explanation] = []
    for batch in batches:
        core.want()
        naming = name or records.naming_of(core.classes, c.reduction.labels != "simple")
        tasks = core.tasks(batch, False, core.clock)
        examples = (batch_ops.cut(task.batch, i, i + 1) for task in tasks for i in range(task.batch.n))
        for example in examples:
            written = feature_names.written_features(given, len(found))
            features = names.of(example, 0) if written is None else names.of_written(written)
            if columns is not None:
                features = feature_names.with_columns(features, columns)
            found.append(find.explanation(c.reduction, core.reduction, example, features, naming, k, most))
            yield found[-1]
    core.notes += records.notes(found)


def class_labels(core: LearnerCore, labels: np.ndarray, other: object = None) -> np.ndarray:
    """Return labels as numbers, or as names if the classes have names, with `other` for label 0."""
    if core.classes is None:
        return labels
    names = np.array([other, *core.classes], object)
    return names[np.where((labels > 0) & (labels < len(names)), labels, 0)]


def joined_scores(tasks: Sequence[BatchTask]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the scores of n examples: where those of each begin (int64[n + 1]), their labels and the scores."""
    starts, labels, scores = [np.zeros(1, np.int64)], [np.empty(0, np.int64)], [np.empty(0, np.float32)]
    for task in tasks:
        listed = task.scored if task.class_lists is None else task.class_lists  # --oaa --scores
        assert listed is not None
        starts.append(starts[-1][-1] + listed.start[1:])
        labels.append(listed.labels)
        scores.append(listed.scores)
    return np.concatenate(starts), np.concatenate(labels), np.concatenate(scores)


def top_k_arrays(lists: ClassLists, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the first k labels of each of n examples and their probabilities: int64[n, k] and float64[n, k].

    Beyond the last listed label, the label is -1 and the probability 0.
    """
    n = len(lists.start) - 1
    labels, p = np.full((n, k), -1), np.zeros((n, k))
    row, single = _single_classes(lists)
    rank = np.arange(len(row)) - np.searchsorted(row, row)
    labels[row, rank], p[row, rank] = lists.labels[single], lists.scores[single]
    return labels, p


def probability_matrix(batches_of_lists: Sequence[ClassLists]) -> tuple[np.ndarray, np.ndarray]:
    """Return the labels that are listed for any of n examples, int64[m] in rising order, and their probabilities.

    The probabilities are float64[n, m], 0 where a label is not listed for an example.
    """
    n = sum(len(lists.start) - 1 for lists in batches_of_lists)
    labels_of_lists = [lists.labels[_single_classes(lists)[1]] for lists in batches_of_lists]
    labels = np.unique(np.concatenate([np.zeros(0, np.int64), *labels_of_lists]))
    p = np.zeros((n, len(labels)))
    first = 0
    for lists in batches_of_lists:
        row, single = _single_classes(lists)
        p[first + row, np.searchsorted(labels, lists.labels[single])] = lists.scores[single]
        first += len(lists.start) - 1
    return labels, p


def _single_classes(lists: ClassLists) -> tuple[np.ndarray, np.ndarray]:
    """Select the probabilities of single classes, without those that stand for all other classes together.

    Return the example of each selected probability, int64[m], and whether each probability is selected, bool[all].
    """
    row = np.repeat(np.arange(len(lists.start) - 1), np.diff(lists.start))
    single = np.ones(len(row), bool)
    if lists.has_rest:
        single[lists.start[1:] - 1] = False
    return row[single], single
