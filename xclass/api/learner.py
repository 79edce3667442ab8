"""Provide `Learner` and `load`, the public interface of the library; a run of the command uses a `Learner`, too."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np

from ..data.batch import Batch
from ..errors import UsageError, XclassWarning
from ..kernels import jit
from ..options.declare import options_of
from ..reductions import registry
from ..reductions.core.base import Previews
from ..reductions.core.contract import BatchTask
from ..reductions.core.probabilities import Options as ListingOptions
from ..reductions.core.spec import Wanted
from . import arrays, configuration, model_contents
from .configuration import Config, LearnerUse
from .inputs import Examples, Inputs
from .learner_core import LearnerCore
from .model_contents import Contents
from .skipped_steps import SkippedSteps

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


class Outcome(NamedTuple):
    """Hold the result of learning from n examples.

    Attributes
    ----------
    prediction : ndarray of shape (n,)
        Prediction of each example before it was learned from: a class (int64, 0 while there is none to predict), or a
        number of "scalar" (float64). Where labels are names, class c has the name `Learner.classes[c - 1]`.
    loss : ndarray of shape (n,), dtype float64
        Loss of each prediction times the weight of the example; 0 without a label.
    warnings : tuple of str
        Messages about these examples. Each is also issued as an `XclassWarning`.

    Examples
    --------
    >>> import xclass
    >>> with xclass.Learner("oaa", classes=2, bits=10) as model:
    ...     outcome = model.learn(["1 | sunny warm", "2 | rainy cold", "| no label"])
    >>> outcome.prediction.tolist(), outcome.loss.tolist()
    ([1, 1, 1], [0.0, 1.0, 0.0])
    """

    prediction: np.ndarray  # int64[n] or float64[n]
    loss: np.ndarray  # float64[n]
    warnings: tuple[str, ...]


class Learner(LearnerCore):
    """Learn to predict classes, or real numbers, from one example after the other.

    Parameters
    ----------
    reduction : str, default "multiclass"
        Name of a reduction or preset in `xclass --help` without its dashes, such as "recall_tree", "oaa", "cpt" or
        "multiclass"; "scalar" learns real numbers.
    classes : int, optional
        Number of classes. It is required unless the reduction is "cpt", "hsm", "multiclass" or "scalar"; the last one
        has no classes.
    **options
        Options by the long names of the command line without dashes, such as `learning_rate=0.1` or `bits=24`. An
        option that may be repeated on the command line takes a list.

    Attributes
    ----------
    classes : list of str, int or None
        Names of the classes seen, or the number of classes; None for "scalar".
    options : dict
        Value of every option, defaults included.
    average_loss : float or None
        Mean loss of all predictions made before learning; None before the first labelled example.
    examples : int
        Number of examples learned from.
    preview_size : int or None
        Number of examples that the learner needs to see before it learns from any; 0 for all of the data, None if it
        does not need to see examples first.

    Raises
    ------
    UsageError
        If an option is unknown, has a value that is not allowed, or contradicts another option.

    Examples
    --------
    >>> import xclass
    >>> model = xclass.Learner("oaa", classes=2, bits=10)
    >>> _ = model.learn(["1 | sunny warm", "2 | rainy cold"] * 10)
    >>> model.predict(["| warm", "| cold rainy"]).tolist()
    [1, 2]
    >>> model.close()
    """

    def __init__(self, reduction: str = "multiclass", classes: int | None = None, **options: Any) -> None:
        jit.activate(hide_scipy=False)
        with configuration.naming_keywords():
            self._start(configuration.configured(reduction, classes, options), LearnerUse(), None)

    @classmethod
    def from_config(cls, config: Config, use: LearnerUse, contents: Contents | None = None) -> Learner:
        """Return a learner with options that are already resolved.

        The caller has to call `jit.activate` first.

        Parameters
        ----------
        config, use, contents : see `LearnerCore`
        """
        learner = cls.__new__(cls)
        learner._start(config, use, contents)
        return learner

    def _start(self, config: Config, use: LearnerUse, contents: Contents | None) -> None:
        """Initialise the learner with resolved options."""
        super().__init__(config, use, contents)
        self._inputs = Inputs(config, self.names, self.label_range)
        self._pending: list[BatchTask] = []  # passed to `learn` before the reduction had seen enough examples
        self._previewed = False  # whether `preview` was called
        self._wants_more = True  # whether the reduction wants to see more examples in `preview`
        self._skipped_steps = SkippedSteps("batch")

    # learning and predicting

    def learn(self, batch: Examples, labels: ArrayLike | None = None, weights: ArrayLike | None = None) -> Outcome:
        """Predict each example and then learn from it, one example after the other.

        Some learners need to see examples before they learn from any: `cpt_tree="kmeans"` and `"huffman"` need
        `tree_sample` examples. They hold the examples until they have seen enough. The outcome covers the examples
        that were learned in this call: none while they are held, and then all that were held and the new ones.

        Parameters
        ----------
        batch : Batch, str, bytes, iterable of str, or sparse matrix
            n examples. Text has one example per line in VW's format. A matrix has `indptr`, `indices` and `data`, as
            SciPy's CSR matrices, or a method `tocsr`; its column numbers are used as hashes of features.
        labels : array-like of shape (n,), optional
            Labels of the rows of a matrix or batch; NaN for no label. Labels of text are in the text.
        weights : array-like of shape (n,), optional
            Weights of the rows of a matrix or batch, finite and at least 0.

        Returns
        -------
        outcome : Outcome
            Predictions made before learning, their losses, and warnings.

        Raises
        ------
        DataError
            If a line is malformed or a label is not one of the classes. Nothing of the batch is learned then.
        UsageError
            If the learner needs to see all of the data first and `preview` was not called, if it is closed, or if the
            examples are of a type that is not supported.

        Examples
        --------
        >>> import xclass
        >>> model = xclass.Learner("oaa", classes=2, bits=10)
        >>> model.learn("1 | sunny warm\\n2 | rainy cold").prediction.tolist()
        [1, 1]
        >>> from scipy.sparse import csr_matrix
        >>> _ = model.learn(csr_matrix([[1.0, 0.5], [0.0, 2.0]]), labels=[1, 2])
        >>> model.examples
        4
        >>> model.close()
        """
        if self._previewed:
            self._end_preview()
        if self.preview_size == 0:
            raise UsageError(
                "this learner needs to see all of the data before it learns; pass every batch to preview() first, and "
                "then to learn()"
            )
        learned: list[BatchTask] = []
        checked_batch = self._batch(batch, labels, weights, learn=True)
        own_batch = checked_batch if self.preview_size is None else arrays.copied(checked_batch)
        for task in self.tasks(own_batch, True, self._clock):
            if self.preview_size is None:
                learned.append(self._learn_task(task))
                continue
            self._pending.append(task)
            if not self._preview_task(task):
                learned += self._end_preview()
        outcome = self._outcome(learned)
        _warn(outcome.warnings)
        return outcome

    def preview(self, batch: Examples, labels: ArrayLike | None = None, weights: ArrayLike | None = None) -> bool:
        """Show examples to a learner that needs to see some before it learns from any.

        This is required if the learner needs to see all of the data (`preview_size == 0`, set by `tree_sample=0`), and
        optional if it needs to see some. Pass the same examples to `learn` afterwards; its first call ends the preview.

        Parameters
        ----------
        batch, labels, weights
            As in `learn`.

        Returns
        -------
        wants_more : bool
            Whether the learner wants to see more examples.

        Raises
        ------
        UsageError
            If the learner does not need to see examples first, or if `learn` was already called.

        Examples
        --------
        >>> import xclass
        >>> lines = ["1 | sunny warm", "2 | rainy cold"] * 10
        >>> with xclass.Learner("cpt", bits=10, cpt_tree="huffman", tree_sample=0) as model:
        ...     wants_more = model.preview(lines)
        ...     _ = model.learn(lines)
        ...     model.predict("| sunny warm").tolist()
        [1]
        """
        if self.preview_size is None or self._pending:
            if self._pending:
                raise UsageError("learn() was already called; call preview() before it")
            raise UsageError("this learner does not need to see examples first, or has seen enough; call learn()")
        checked_batch = self._batch(batch, labels, weights, learn=True)
        self._previewed = True
        for task in self.tasks(checked_batch, True, self.clock):
            self._wants_more = self._wants_more and self._preview_task(task)
        _warn(self._notes([]))
        return self._wants_more

    def predict(self, batch: Examples) -> np.ndarray:
        """Predict the label of each example.

        While a learner holds examples because it has not seen enough of them, it predicts like a new learner.

        Parameters
        ----------
        batch : Batch, str, bytes, iterable of str, or sparse matrix
            n examples, as in `learn`. Labels are checked but not used.

        Returns
        -------
        predictions : ndarray of shape (n,)
            Classes (int64), the names of classes (object) if labels are names, or numbers (float64) for "scalar".

        Raises
        ------
        DataError
            If a line is malformed.
        UsageError
            If the learner is closed, or if the examples are of a type that is not supported.

        Examples
        --------
        >>> import xclass
        >>> model = xclass.Learner("oaa", classes=2, bits=10, named_labels="dry,wet")
        >>> _ = model.learn(["dry | sunny warm", "wet | rainy cold"] * 10)
        >>> model.predict(["| warm", "| cold rainy"]).tolist()
        ['dry', 'wet']
        >>> model.close()
        """
        outcome = self._outcome(self._predict_tasks(self._batch(batch)))
        _warn(outcome.warnings)
        if self.config.reduction.labels != "multiclass":
            return outcome.prediction
        return self._class_labels(outcome.prediction.astype(np.int64), "")

    def top_k(self, batch: Examples, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the k most probable classes of each example with their probabilities, the most probable first.

        Parameters
        ----------
        batch : Batch, str, bytes, iterable of str, or sparse matrix
            n examples, as in `learn`. Labels are checked but not used.
        k : int
            Number of classes, at least 1.

        Returns
        -------
        labels : ndarray of shape (n, k)
            Classes (int64), -1 beyond the last candidate; or the names of classes (object), None beyond the last
            candidate.
        probabilities : ndarray of shape (n, k), dtype float64
            Probability of each class, 0 beyond the last candidate.

        Raises
        ------
        UsageError
            If the reduction does not estimate probabilities, or if `k` is not a whole number of at least 1.
        DataError
            If a line is malformed.

        Examples
        --------
        >>> import xclass
        >>> model = xclass.Learner("oaa", classes=3, bits=10)
        >>> _ = model.learn(["1 | sunny warm", "2 | rainy cold", "3 | snow cold"] * 10)
        >>> labels, probabilities = model.top_k("| cold rainy", 2)
        >>> labels.tolist()
        [[2, 3]]
        >>> bool(probabilities[0, 0] > probabilities[0, 1])
        True
        >>> model.close()
        """
        k = configuration.checked_value("k", options_of(ListingOptions)["top_k"], k)
        tasks = self._predict_listings(batch, ListingOptions(top_k=k))
        _warn(self._notes(tasks))
        labels, p = arrays.top_k_arrays([task.listing for task in tasks if task.listing is not None], k)
        return self._class_labels(labels, None), p

    def probabilities(self, batch: Examples) -> tuple[np.ndarray, np.ndarray]:
        """Return the probability of every class for each example.

        Parameters
        ----------
        batch : Batch, str, bytes, iterable of str, or sparse matrix
            n examples, as in `learn`. Labels are checked but not used.

        Returns
        -------
        classes : ndarray of shape (m,)
            Classes (int64) in rising order, or their names (object).
        probabilities : ndarray of shape (n, m), dtype float64
            Probability of each class for each example. Rows sum to 1 unless some probability belongs to classes that
            the learner has not seen.

        Raises
        ------
        UsageError
            If the reduction does not estimate probabilities.
        DataError
            If a line is malformed.

        Examples
        --------
        >>> import xclass
        >>> model = xclass.Learner("oaa", classes=2, bits=10)
        >>> _ = model.learn(["1 | sunny warm", "2 | rainy cold"] * 10)
        >>> classes, probabilities = model.probabilities(["| warm", "| cold rainy"])
        >>> classes.tolist()
        [1, 2]
        >>> probabilities.shape
        (2, 2)
        >>> model.close()
        """
        tasks = self._predict_listings(batch, ListingOptions(probabilities=True))
        _warn(self._notes(tasks))
        labels, p = arrays.probability_matrix([task.listing for task in tasks if task.listing is not None])
        return self._class_labels(labels, None), p

    def end_pass(self) -> Outcome:
        """End a pass over the data.

        Learning rates decay between passes. Learners that learn from all of the data at once do so now, and examples
        that are held because the learner has not seen enough of them are learned now.

        Returns
        -------
        outcome : Outcome
            Outcome of the examples that were held until now, see `learn`.

        Examples
        --------
        >>> import xclass
        >>> lines = ["1 | sunny warm", "2 | rainy cold"]
        >>> with xclass.Learner("cpt", bits=10, cpt_tree="huffman", tree_sample=100) as model:
        ...     first = model.learn(lines)  # held: fewer than 100 examples
        ...     second = model.end_pass()
        >>> len(first.prediction), len(second.prediction)
        (0, 2)
        """
        learned = self._end_preview() if self.preview_size is not None else []
        self.reduction.end_pass()
        outcome = self._outcome(learned)
        _warn(outcome.warnings)
        return outcome

    # properties

    @property
    def classes(self) -> list[str] | int | None:
        """Return the names of the classes seen, the number of classes if labels are numbers, or None for "scalar"."""
        if self.config.reduction.labels != "multiclass":
            return None
        if self.names.class_list is not None:
            return self.names.names[: self.names.highest_seen]
        return self._spec.classes or self.reduction.classes_seen

    @property
    def options(self) -> dict[str, Any]:
        """Return the value of every option by the name of its keyword, defaults included."""
        return self.config.values()

    @property
    def average_loss(self) -> float | None:
        """Return the mean loss of the predictions made before learning from each example, or None without any."""
        return self.progress.average_loss

    def __getstate__(self) -> NoReturn:
        """Refuse to be pickled, copied, or sent to another process."""
        raise TypeError(
            "a Learner cannot be pickled or copied; save() it, and xclass.load() the file where it is needed"
        )

    def __repr__(self) -> str:
        classes = self._spec.classes or None
        return f"xclass.Learner({configuration.chosen_name(self.config)!r}" + (
            f", classes={classes})" if classes is not None else ")"
        )

    # models

    def save(self, path: str) -> None:
        """Save a model, which `load` and the command line can read.

        An existing file is replaced only after all of the new file is written.

        Parameters
        ----------
        path : str
            Path of the model file.

        Raises
        ------
        ModelError
            If the file cannot be written.
        UsageError
            If the learner holds examples that it learns from at the end of the data and `end_pass` was not called.

        Examples
        --------
        >>> import os, tempfile
        >>> import xclass
        >>> path = os.path.join(tempfile.mkdtemp(), "model.bin")
        >>> with xclass.Learner("oaa", classes=2, bits=10) as model:
        ...     _ = model.learn(["1 | sunny warm", "2 | rainy cold"] * 10)
        ...     model.save(path)
        >>> os.path.exists(path)
        True
        """
        if self.preview_size is not None or self.unlearned:
            raise UsageError(
                "some examples are not learned yet; call end_pass() at the end of the data, and then save()"
            )
        model_contents.save(path, self.contents)

    def close(self) -> None:
        """Stop the threads of the learner and free its memory; it cannot be used afterwards.

        Leaving a `with` block closes the learner, too.
        """
        self._pending.clear()
        super().close()

    def __enter__(self) -> Learner:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # batches, tasks and outcomes

    def _batch(
        self, examples: Examples, labels: ArrayLike | None = None, weights: ArrayLike | None = None, learn: bool = False
    ) -> Batch:
        """Convert examples into a batch; raise UsageError if the learner is closed."""
        _ = self.reduction  # a closed learner has none
        with configuration.naming_keywords():
            return self._inputs.batch(examples, labels, weights, learn)

    @property
    def _clock(self) -> float:
        """Return the sum of the weights of the labelled examples, held examples included."""
        return next((float(task.clock[-1]) for task in reversed(self._pending) if task.batch.n), self.clock)

    def _learn_task(self, task: BatchTask) -> BatchTask:
        """Pass a task through the stages, count it and return it."""
        for stage in self.stages:
            stage(task)
        self.note(task)
        self.progress.count(task)
        task.notes.extend(self._skipped_steps.count(task))
        return task

    def _predict_tasks(self, batch: Batch) -> list[BatchTask]:
        """Return the tasks of a batch after predicting it."""
        tasks = []
        for task in self.tasks(batch, False, self.clock):
            for stage in self.stages:
                stage(task)
            tasks.append(task)
        return tasks

    def _preview_task(self, task: BatchTask) -> bool:
        """Show a task to the reduction; return whether it wants to see more."""
        assert isinstance(self.reduction, Previews)
        return self.reduction.preview(task)

    def _end_preview(self) -> list[BatchTask]:
        """End the preview, learn from the examples that were held, and return their tasks."""
        assert isinstance(self.reduction, Previews)
        self.reduction.end_preview()
        if self._previewed:
            self.preparation.forget_namespaces()  # interactions see those of all examples again, from the first on
        self._previewed = False
        pending, self._pending = self._pending, []
        return [self._learn_task(task) for task in pending]

    def _predict_listings(self, batch: Examples, listing_options: ListingOptions) -> list[BatchTask]:
        """Predict examples with the listings of classes and probabilities that `listing_options` describes."""
        record = self.config.reduction
        if not record.probabilities:
            names = ", ".join(other.name for other in registry.REDUCTIONS if other.probabilities)
            raise UsageError(f"{record.name} does not estimate probabilities; choose one of {names}")
        checked_batch = self._batch(batch)
        self.reduction.want(Wanted(listing_options=listing_options))
        try:
            return self._predict_tasks(checked_batch)
        finally:
            self.reduction.want(self._spec.wanted)

    def _class_labels(self, labels: np.ndarray, other: object) -> np.ndarray:
        """Return labels as numbers, or as names if the classes have names, with `other` for label 0."""
        if self.names.class_list is None:
            return labels
        names = np.array([other, *self.names.names], object)
        return names[np.where((labels > 0) & (labels < len(names)), labels, 0)]

    def _outcome(self, tasks: Sequence[BatchTask]) -> Outcome:
        """Return the joint outcome of tasks that have passed the stages."""
        losses = [np.zeros(task.batch.n) if task.loss is None else task.loss for task in tasks]
        predictions = [task.prediction for task in tasks if task.prediction is not None]
        kind = np.int64 if self.config.reduction.labels == "multiclass" else np.float64
        return Outcome(
            np.concatenate([np.empty(0), *predictions]).astype(kind),
            np.concatenate([np.empty(0), *losses]),
            self._notes(tasks),
        )

    def _notes(self, tasks: Sequence[BatchTask]) -> tuple[str, ...]:
        """Return the messages about the text and the tasks, and clear those about the text."""
        notes = (*self._inputs.notes, *(note for task in tasks for note in task.notes))
        self._inputs.notes.clear()
        return tuple(map(configuration.with_keywords, notes))


def _warn(notes: Sequence[str]) -> None:
    """Issue messages as Python warnings; the warning points at the caller of the calling method."""
    for note in notes:
        warnings.warn(note, XclassWarning, stacklevel=3)


def load(path: str) -> Learner:
    """Load a learner from a model file; it can predict and continue to learn.

    Parameters
    ----------
    path : str
        Path of a model that `Learner.save` or the command line has written.

    Returns
    -------
    learner : Learner
        The learner with the options of the model.

    Raises
    ------
    ModelError
        If the file cannot be read, is damaged, or is not a model.

    Examples
    --------
    >>> import os, tempfile
    >>> import xclass
    >>> path = os.path.join(tempfile.mkdtemp(), "model.bin")
    >>> with xclass.Learner("oaa", classes=2, bits=10) as model:
    ...     _ = model.learn(["1 | sunny warm", "2 | rainy cold"] * 10)
    ...     model.save(path)
    >>> with xclass.load(path) as model:
    ...     model.predict(["| warm", "| cold rainy"]).tolist()
    [1, 2]
    """
    jit.activate(hide_scipy=False)
    with configuration.naming_keywords():
        contents = model_contents.load(path)
        config = configuration.of_model(path, contents.options)
    with model_contents.naming(path), configuration.naming_keywords():
        return Learner.from_config(config, LearnerUse(loaded=True), contents)
