"""Learn and predict batches on behalf of `Learner`: pending examples, previews, names of classes, and results."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from ..data import batch_ops, class_names
from ..data.batch import Batch
from ..errors import UsageError
from ..kernels import jit
from ..options.declare import options_of
from ..reductions import registry
from ..reductions.core.contract import BatchTask
from ..reductions.core.probabilities import Options as ListingOptions
from ..reductions.core.spec import Wanted
from ..system import exclusive, terminal
from ..system.pipeline import Pipeline
from . import arrays, configuration, model_contents
from .configuration import Config, LearnerUse
from .inputs import Example, Examples, Inputs
from .learner_core import LearnerCore
from .model_contents import Contents
from .skipped_steps import SkippedSteps

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from ..explain.records import Explanation


T = TypeVar("T")


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
    ...     outcome = model.learn_many(["1 | sunny warm", "2 | rainy cold", "| no label"])
    >>> outcome.prediction.tolist(), outcome.loss.tolist()
    ([1, 1, 1], [0.0, 1.0, 0.0])
    """

    prediction: np.ndarray  # int64[n] or float64[n]
    loss: np.ndarray  # float64[n]
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

    start: np.ndarray  # int64[n + 1]
    classes: np.ndarray  # int64[m] or object[m]
    scores: np.ndarray  # float32[m]


class BatchLearner(LearnerCore):
    """Learn and predict batches, and turn their results into arrays; `Learner` has the public methods.

    Attributes
    ----------
    turn : gives the learner to one thread at a time; the public methods take it, and those here expect to have it
    learned : called with each task after it was learned and counted, None for nothing
    """

    turn: exclusive.Exclusive
    learned: Callable[[BatchTask], None] | None = None
    _arguments: tuple[str, int | None, dict[str, Any]] | None = None  # of the constructor, for `use_names_if`
    identity = False  # whether a column's number is the index of its feature

    def __new__(cls, *_: Any, **__: Any) -> Any:
        """Return a learner that is not initialised; `_start` may initialise one again while it has its turn."""
        learner = super().__new__(cls)
        learner.turn = exclusive.Exclusive()
        return learner

    def _configure(self, reduction: str, classes: int | None, options: dict[str, Any]) -> None:
        """Initialise a new learner with the arguments of the constructor; messages name flags of the command line."""
        jit.activate(hide_scipy=False)
        self._arguments = (reduction, classes, options)
        self._start(configuration.configured(reduction, classes, options), LearnerUse(), None)

    def _start(self, config: Config, use: LearnerUse, contents: Contents | None) -> None:
        """Initialise the learner with resolved options."""
        super().__init__(config, use, contents)
        self._inputs = Inputs(config, self.names, self.label_range, self.schema, self.identity)
        self._pending: list[BatchTask] = []  # passed to `learn` before the reduction had seen enough examples
        self._previewed = False  # whether `preview` was called
        self._wants_more = True  # whether the reduction wants to see more examples in `preview`
        self._skipped_steps = SkippedSteps("batch")
        self._growing = self.names.growing  # `predict`, if it is interrupted, may leave another value

    def _learning(self, job: Callable[[], T]) -> T:
        """Call a function that learns: alone, and to its end; Ctrl-C ends it after the batch that is learned."""

        def whole() -> T:
            self.names.growing = self._growing
            self._want(self.spec.wanted)
            return job()

        def stop() -> None:
            if self._reduction is not None:
                self._reduction.stop()

        return self.turn.complete(whole, stop)

    def _reading(self, job: Callable[[], T]) -> T:
        """Call a function that does not change what was learned: alone, and to its end."""
        return self.turn.complete(job, changes=False)

    def learn_batches(self, batches: Iterable[Batch]) -> Iterator[BatchTask]:
        """Learn from batches in their order; yield the tasks that were learned."""
        batches = exclusive.until_interrupted(batches)
        if self._previewed:
            self._end_preview()
        if self.preview_size == 0:
            raise UsageError(
                "this learner needs to see all of the data before it learns; pass every batch to preview() first, and "
                "then to learn_many()"
            )
        while self.preview_size is not None:
            batch = next(batches, None)
            if batch is None:
                return
            yield from self._hold(arrays.copied(batch))
        first = list(itertools.islice(batches, 2))
        if len(first) < 2 or self.reduction.workers == 1:
            for batch in itertools.chain(first, batches):
                for task in self.tasks(batch, True, self.clock):
                    yield self._learn_task(task)
        else:
            yield from self._learn_in_stages(itertools.chain(first, batches))

    def _learn_in_stages(self, batches: Iterator[Batch]) -> Iterator[BatchTask]:
        """Learn from batches with each stage on a thread of its own, as a run does; yield the tasks in order."""

        def tasks(clock: float) -> Iterator[BatchTask]:
            for batch in batches:
                for task in self.tasks(batch, True, clock):
                    clock = float(task.clock[-1]) if task.batch.n else clock
                    yield task

        pipeline = Pipeline(tasks(self.clock), self.stages)
        try:
            for task in pipeline:
                yield self._count_task(task)
        finally:  # after an error of the caller, wait for the stages and count what they have learned
            pipeline.stop()
            for task in pipeline:
                self._count_task(task)

    def _hold(self, batch: Batch) -> Iterator[BatchTask]:
        """Keep a batch until the reduction has seen enough examples; then yield the tasks of all batches held."""
        for task in self.tasks(batch, True, self._clock):
            if self.preview_size is None:
                yield self._learn_task(task)
                continue
            self._pending.append(task)
            if not self.reduction.preview(task):
                yield from self._end_preview()

    def saved_bytes(self) -> bytes:
        """Return the bytes that `save` writes."""
        self.check_learned()
        return model_contents.to_bytes(self.contents())

    def check_learned(self) -> None:
        """Raise UsageError if the learner holds examples that it has not learned."""
        if self.preview_size is not None or self.unlearned:
            raise UsageError(
                "some examples are not learned yet; call end_pass() at the end of the data, and then save()"
            )

    def _batches(
        self, X: Examples, y: Any = None, sample_weight: ArrayLike | None = None, learn: bool = False
    ) -> Iterator[Batch]:
        """Convert examples into batches, until the caller is interrupted; raise UsageError if the learner is closed."""
        _ = self.reduction  # a closed learner has none
        with configuration.KEYWORDS:
            return exclusive.until_interrupted(self._inputs.batches(X, y, sample_weight, learn))

    def _example(self, example: Example, label: Any, weight: float | None, learn: bool) -> Batch:
        """Convert a single example into a batch; raise UsageError if the learner is closed."""
        _ = self.reduction
        with configuration.KEYWORDS:
            return self._inputs.example(example, label, weight, learn)

    @property
    def is_new(self) -> bool:
        """Return whether the learner has neither learned nor seen an example, nor was loaded."""
        return not (self.examples or self.spec.loaded or self._pending or self._previewed)

    def use_names_if(self, are_names: Callable[[], bool]) -> None:
        """Take labels as names from now on if `are_names` returns True and nothing was learned or chosen before."""
        if self._arguments is None:
            return
        reduction, classes, options = self._arguments
        if (
            not self.is_new
            or self.config.reduction.labels != "multiclass"
            or {"learn_names", "named_labels"} & options.keys()
        ):
            self._arguments = None
        elif are_names():
            self._arguments = None
            self.close()
            with configuration.KEYWORDS:
                config = configuration.configured(reduction, classes, {**options, "learn_names": True})
                self._start(config, LearnerUse(), None)

    @property
    def _clock(self) -> float:
        """Return the sum of the weights of the labelled examples, held examples included."""
        return next((float(task.clock[-1]) for task in reversed(self._pending) if task.batch.n), self.clock)

    def _learn_task(self, task: BatchTask) -> BatchTask:
        """Pass a task through the stages, count it and return it."""
        for stage in self.stages:
            stage(task)
        return self._count_task(task)

    def _count_task(self, task: BatchTask) -> BatchTask:
        """Count a task that has passed the stages and return it."""
        self.note(task)
        self.progress.count(task)
        task.notes.extend(self._skipped_steps.count(task))
        self._inputs.notes += task.notes
        if self.learned is not None:
            self.learned(task)
        return task

    @contextlib.contextmanager
    def shown(self, verbose: int, examples: int | None, name: str) -> Iterator[None]:
        """Show on standard error what the `with` block learns, with the loss of predictions made before learning.

        Parameters
        ----------
        verbose : 0 shows nothing, 1 a bar, 2 a line at the end
        examples : number of examples, None if it is not known
        name : what is learned, such as "pass 1"
        """
        if not verbose:
            yield
            return
        from tqdm import tqdm

        count, loss_before, weight_before = 0, self.progress.loss_sum, self.progress.labelled_weight

        def loss() -> str:
            weight = self.progress.labelled_weight - weight_before
            return f"{(self.progress.loss_sum - loss_before) / weight if weight else 0.0:.4f}"

        with tqdm(total=examples, desc=name, unit=" examples", disable=verbose > 1) as bar:

            def learned(task: BatchTask) -> None:
                nonlocal count
                count += task.batch.n
                bar.set_postfix_str(f"loss={loss()}", refresh=False)
                bar.update(task.batch.n)

            self.learned = learned
            try:
                yield
            finally:
                self.learned = None
        if verbose > 1:
            terminal.error_line(f"{name}: {count} examples, loss {loss()}")

    def _predict_tasks(self, batch: Batch, wanted: Wanted | None = None) -> Iterator[BatchTask]:
        """Yield the tasks of a batch after predicting it, with the results that are wanted; None for no others."""
        self._want(wanted or self.spec.wanted)
        for task in self.tasks(batch, False, self.clock):
            for stage in self.stages:
                stage(task)
            self._inputs.notes += task.notes
            yield task

    def _explanations(self, batches: Iterable[Batch], given: Examples, k: int) -> Iterator[Explanation]:
        """Yield an explanation of the prediction of each example.

        Parameters
        ----------
        given : the examples as the program has passed them, which have the names of features
        k : number of classes to explain
        """
        from ..abilities.find import ability
        from ..explain import feature_names, naming, python_features

        explain = ability(self.config.reduction, "explain")
        if explain is None:
            raise UsageError(f"{self.config.reduction.name} does not explain its predictions")
        k = configuration.checked_value("k", options_of(ListingOptions)["top_k"], k)
        self._want(self.spec.wanted)
        c, named = self.config, naming.naming_of(self.names.class_list, self.config.reduction.labels == "multiclass")
        names = feature_names.Namer(
            c.parser, c.features, c.interactions, configuration.feature_bits(c), self.preparation.crosser
        )
        number = 0
        for batch in batches:
            for task in self.tasks(batch, False, self.clock):
                for i in range(task.batch.n):
                    example = naming.without_unknown_label(batch_ops.cut(task.batch, i, i + 1))
                    written = python_features.written(given, number)
                    features = names.of(example, 0) if written is None else names.of_written(written)
                    reasons = explain.explain(self.reduction, example, k)
                    yield naming.explanation(reasons, example, features, named)
                    number += 1

    def _end_preview(self) -> list[BatchTask]:
        """End the preview, learn from the examples that were held, and return their tasks."""
        self.reduction.end_preview()
        if self._previewed:
            self.preparation.forget_namespaces()  # interactions see those of all examples again, from the first on
        self._previewed = False
        pending, self._pending = self._pending, []
        return [self._learn_task(task) for task in pending]

    def predictions(self, batches: Iterable[Batch]) -> np.ndarray:
        """Return the predictions of batches as an array."""
        kind = np.int64 if self.config.reduction.labels == "multiclass" else np.float64
        predictions = [np.empty(0, kind)]
        for batch in batches:
            for task in self._predict_tasks(batch):
                if task.prediction is not None:
                    predictions.append(task.prediction.astype(kind))
        joined = np.concatenate(predictions)
        return joined if kind is np.float64 else self._class_labels(joined, "")

    def _first_prediction(self, tasks: Sequence[BatchTask]) -> Any:
        """Return the first prediction of tasks, None if there is none, or if it is no class."""
        for task in tasks:
            if task.prediction is not None and len(task.prediction):
                if self.config.reduction.labels != "multiclass":
                    return float(task.prediction[0])
                label = int(task.prediction[0])
                if self.names.class_list is None:
                    return label if label or self.label_range.lowest == 0 else None
                return class_names.name_of(label, self.names.names)
        return None

    def top(self, batches: Iterable[Batch], k: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the k most probable classes of each example, and their probabilities, as `predict_many` does."""
        k = configuration.checked_value("k", options_of(ListingOptions)["top_k"], k)
        labels, p = [np.empty((0, k), np.int64)], [np.empty((0, k))]
        for task in self._predict_listings(batches, ListingOptions(top_k=k)):
            if task.class_lists is not None:
                of_task = arrays.top_k_arrays([task.class_lists], k)
                labels.append(of_task[0])
                p.append(of_task[1])
        return self._class_labels(np.concatenate(labels), None), np.concatenate(p)

    def _predict_listings(self, batches: Iterable[Batch], listing_options: ListingOptions) -> Iterator[BatchTask]:
        """Predict batches with the listings of classes and probabilities that `listing_options` describes."""
        record = self.config.reduction
        if not record.probabilities:
            names = ", ".join(other.name for other in registry.REDUCTIONS if other.probabilities)
            raise UsageError(f"{record.name} does not estimate probabilities; choose one of {names}")
        wanted = Wanted(listing_options=listing_options)
        for batch in batches:
            yield from self._predict_tasks(batch, wanted)

    def _class_labels(self, labels: np.ndarray, other: object) -> np.ndarray:
        """Return labels as numbers, or as names if the classes have names, with `other` for label 0."""
        if self.names.class_list is None:
            return labels
        names = np.array([other, *self.names.names], object)
        return names[np.where((labels > 0) & (labels < len(names)), labels, 0)]

    def _outcome(self, tasks: Iterable[BatchTask]) -> Outcome:
        """Return the joint outcome of tasks that have passed the stages, without keeping their batches in memory."""
        predictions, losses = [np.empty(0)], [np.empty(0)]
        for task in tasks:
            losses.append(np.zeros(task.batch.n) if task.loss is None else task.loss)
            if task.prediction is not None:
                predictions.append(task.prediction)
        kind = np.int64 if self.config.reduction.labels == "multiclass" else np.float64
        return Outcome(np.concatenate(predictions).astype(kind), np.concatenate(losses), self.take_notes())

    def take_notes(self) -> tuple[str, ...]:
        """Return the messages about the examples, and forget them."""
        notes = [*self._inputs.notes, *self.preparation.idle_arguments()]
        self._inputs.notes.clear()
        return tuple(map(configuration.KEYWORDS, notes))
