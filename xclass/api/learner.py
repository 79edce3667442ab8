"""Learners for Python programs: `Learner` and `load`. A run of the command has one, too."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..data.batch import Batch
from ..errors import UsageError, XclassWarning
from ..kernels import jit
from ..options.declare import options_of
from ..reductions import registry
from ..reductions.core.base import Previews
from ..reductions.core.contract import BatchTask
from ..reductions.core.probabilities import Options as Listed
from ..reductions.core.spec import Wanted
from . import arrays, configuration, model_contents
from .configuration import Config, Purpose
from .inputs import Examples, Inputs
from .learner_core import LearnerCore
from .model_contents import Contents
from .untaken import Untaken

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


class Outcome(NamedTuple):
    """What learning from n examples came to."""

    prediction: np.ndarray  # float64[n], made before the example was learned from: a class, or a number
    loss: np.ndarray  # float64[n], times weight; 0 where there is no label
    warnings: tuple[str, ...]  # about these examples; each is also a Python warning


class Learner(LearnerCore):
    """A learner of classes, or of numbers, that learns example by example.

    Parameters
    ----------
    reduction : a reduction of `xclass --help` without its dashes, such as "recall_tree", "oaa", "cpt" or "multiclass";
        "scalar" learns numbers
    classes : how many classes there are; `cpt` and `multiclass` need not be told
    **options : options by the names of their fields, which are those of the command line without dashes and with
        underscores (`learning_rate=0.1`, `bits=24`); an option that may be repeated takes a list

    Attributes are those of `learner_core.LearnerCore`.

    Raises
    ------
    UsageError
        where an option is not known, has a value that is not allowed, or does not go with another.

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
        jit.activate(quick=False)
        with configuration.naming_keywords():
            self._start(configuration.configured(reduction, classes, options), Purpose(), None)

    @classmethod
    def from_config(cls, config: Config, purpose: Purpose, contents: Contents | None = None) -> Learner:
        """Return a learner whose options are decided already, as the command makes it; see `LearnerCore`.

        Kernels have to be active, see `jit.activate`.
        """
        made = cls.__new__(cls)
        made._start(config, purpose, contents)
        return made

    def _start(self, config: Config, purpose: Purpose, contents: Contents | None) -> None:
        super().__init__(config, purpose, contents)
        self._inputs = Inputs(config, self.names, self.label_range)
        self._held: list[BatchTask] = []  # given to `learn` before the learner had seen enough
        self._shown = False  # whether `preview` was called
        self._wants_more = True  # of what it shows
        self._untaken = Untaken("batch")

    # learning and predicting

    def learn(self, batch: Examples, labels: ArrayLike | None = None, weights: ArrayLike | None = None) -> Outcome:
        """Predict examples, then learn from them, one after the other.

        A learner that wants to see examples before it learns from any (`cpt_tree="kmeans"` and `"huffman"` want to
        see `tree_sample`) holds those that it is given until it has seen enough. The outcome is that of the examples
        learned in this call: of none while they are held, then of all that were held and the rest.

        Parameters
        ----------
        batch : a `Batch`; lines of VW text, as one string or several; or anything with `indptr`, `indices` and `data`
            as SciPy's CSR matrices have them, whose column numbers are taken for hashes of features
        labels, weights : [n] of a matrix; labels of text are in the text

        Raises
        ------
        DataError
            where a line is malformed or a label is none of the classes; nothing of the batch is learned then.
        UsageError
            where all of the data have to be seen first, and `preview` has not shown any.
        """
        if self._shown:
            self._end_preview()
        if self.preview_size == 0:
            raise UsageError(
                "this learner looks at all of the data before it learns from any: show them by preview(), batch by "
                "batch, and then call learn()"
            )
        learned: list[BatchTask] = []
        given = self._batch(batch, labels, weights, learn=True)
        for task in self.tasks(given if self.preview_size is None else arrays.copied(given), True, self._clock):
            if self.preview_size is None:
                learned.append(self._learned(task))
                continue
            self._held.append(task)
            if not self._show(task):
                learned += self._end_preview()
        outcome = self._outcome(learned)
        _warn(outcome.warnings)
        return outcome

    def preview(self, batch: Examples, labels: ArrayLike | None = None, weights: ArrayLike | None = None) -> bool:
        """Show examples to a learner that looks at some before it learns from any; return whether more are wanted.

        The first call of `learn` ends it. It is needed where all of the data are to be seen (`tree_sample=0`), and
        possible where some of them are. Parameters are those of `learn`, which is to be given the same examples again.

        Raises
        ------
        UsageError
            where the learner does not look at examples first, or has been given some to learn from.
        """
        if self.preview_size is None or self._held:
            why = "it has been given examples to learn from" if self._held else "it does not look at examples first"
            raise UsageError(f"this learner has no use for preview(): {why}")
        given = self._batch(batch, labels, weights, learn=True)
        self._shown = True
        for task in self.tasks(given, True, self.clock):
            self._wants_more = self._wants_more and self._show(task)
        _warn(self._notes([]))
        return self._wants_more

    def predict(self, batch: Examples) -> np.ndarray:
        """Predict examples: int64[n] classes, float64[n] numbers of "scalar", or an array of names where labels are.

        A learner that has not learned yet, because it has not seen enough examples, predicts like a new one.
        """
        outcome = self._outcome(self._predicted(self._batch(batch)))
        _warn(outcome.warnings)
        if self.config.reduction.labels != "multiclass":
            return outcome.prediction
        return self._shown_as(outcome.prediction.astype(np.int64), "")

    def top_k(self, batch: Examples, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the k most probable classes of each example and how probable they are, the best first.

        Parameters
        ----------
        batch : as in `learn`
        k : how many

        Returns
        -------
        labels : int64[n, k], -1 where there are fewer; of names, an array of objects, None where there are fewer
        probabilities : float64[n, k]

        Raises
        ------
        UsageError
            where the reduction gives no probabilities.
        """
        k = configuration.checked_value("k", options_of(Listed)["top_k"], k)
        tasks = self._listed(batch, Listed(top_k=k))
        _warn(self._notes(tasks))
        labels, p = arrays.top_of([task.listing for task in tasks if task.listing is not None], k)
        return self._shown_as(labels, None), p

    def probabilities(self, batch: Examples) -> tuple[np.ndarray, np.ndarray]:
        """Return how probable every class is.

        Returns
        -------
        classes : int64[m] labels in rising order, or m names
        probabilities : float64[n, m]

        Raises
        ------
        UsageError
            where the reduction gives no probabilities.
        """
        tasks = self._listed(batch, Listed(probabilities=True))
        _warn(self._notes(tasks))
        labels, p = arrays.matrix_of([task.listing for task in tasks if task.listing is not None])
        return self._shown_as(labels, None), p

    def end_pass(self) -> Outcome:
        """Come to the end of the data: rates decay, and learners that learn from all of the data at once do so.

        Returns
        -------
        outcome : of the examples that were held until now because the learner wanted to see more of them, see `learn`
        """
        learned = self._end_preview() if self.preview_size is not None else []
        self.reduction.end_pass()
        outcome = self._outcome(learned)
        _warn(outcome.warnings)
        return outcome

    # looking at it

    @property
    def classes(self) -> list[str] | int | None:
        """The names of the classes met; where labels are numbers, how many classes there are; None of "scalar"."""
        if self.config.reduction.labels != "multiclass":
            return None
        if self.names.shown is not None:
            return self.names.names[: self.names.met]
        return self._spec.classes or self.reduction.classes_met

    @property
    def options(self) -> dict[str, Any]:
        """The value of every option, by the name of its field, defaults included."""
        return self.config.values()

    @property
    def average_loss(self) -> float | None:
        """The mean loss of all examples so far, each predicted before it was learned from; None without any."""
        return self.progress.average_loss

    def __repr__(self) -> str:
        classes = self._spec.classes or None
        return f"xclass.Learner({self._spec.name!r}" + (f", classes={classes})" if classes is not None else ")")

    # models

    def save(self, path: str) -> None:
        """Write a model that `load` and the command read; the file is replaced only when all of it is written.

        Raises
        ------
        ModelError
            where it cannot be written.
        UsageError
            where some of the examples are learned at the end of the data only, and `end_pass` was not called.
        """
        if self.preview_size is not None or self.unlearned:
            raise UsageError("what was given is not learned yet: call end_pass() at the end of the data, then save()")
        model_contents.save(path, self.contents)

    def close(self) -> None:
        """End the threads that the learner has started and free its memory; it cannot be used any more."""
        self._held.clear()
        super().close()

    def __enter__(self) -> Learner:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # from batches to what came of them

    def _batch(
        self, given: Examples, labels: ArrayLike | None = None, weights: ArrayLike | None = None, learn: bool = False
    ) -> Batch:
        _ = self.reduction  # a closed learner has none
        with configuration.naming_keywords():
            return self._inputs.batch(given, labels, weights, learn)

    @property
    def _clock(self) -> float:
        """The weight of the labelled examples, of those that are held too."""
        return next((float(task.clock[-1]) for task in reversed(self._held) if task.batch.n), self.clock)

    def _learned(self, task: BatchTask) -> BatchTask:
        for stage in self.stages:
            stage(task)
        self.note(task)
        self.progress.count(task)
        task.notes.extend(self._untaken.count(task))
        return task

    def _predicted(self, batch: Batch) -> list[BatchTask]:
        tasks = []
        for task in self.tasks(batch, False, self.clock):
            for stage in self.stages:
                stage(task)
            tasks.append(task)
        return tasks

    def _show(self, task: BatchTask) -> bool:
        assert isinstance(self.reduction, Previews)
        return self.reduction.preview(task)

    def _end_preview(self) -> list[BatchTask]:
        """Let the learner begin with what it has seen; return the examples that were held, learned now."""
        assert isinstance(self.reduction, Previews)
        self.reduction.end_preview()
        if self._shown:
            self.preparation.begin()  # learning finds every group for the first time
        self._shown = False
        held, self._held = self._held, []
        return [self._learned(task) for task in held]

    def _listed(self, batch: Examples, asked: Listed) -> list[BatchTask]:
        """Predict examples with lists of classes."""
        record = self.config.reduction
        if not record.probabilities:
            giving = ", ".join(one.name for one in registry.REDUCTIONS if one.probabilities)
            raise UsageError(f"{record.name} gives no probabilities; choose one of {giving}")
        given = self._batch(batch)
        self.reduction.want(Wanted(answers=asked))
        try:
            return self._predicted(given)
        finally:
            self.reduction.want(self._spec.wanted)

    def _shown_as(self, labels: np.ndarray, other: object) -> np.ndarray:
        """Labels as the user knows them: numbers, or names in place of them with `other` for 0."""
        if self.names.shown is None:
            return labels
        names = np.array([other, *self.names.names], object)
        return names[np.where((labels > 0) & (labels < len(names)), labels, 0)]

    def _outcome(self, tasks: Sequence[BatchTask]) -> Outcome:
        """What came of work that went through the stages."""
        losses = [np.zeros(task.batch.n) if task.loss is None else task.loss for task in tasks]
        predictions = [task.prediction for task in tasks if task.prediction is not None]
        return Outcome(
            np.concatenate([np.empty(0), *predictions]), np.concatenate([np.empty(0), *losses]), self._notes(tasks)
        )

    def _notes(self, tasks: Sequence[BatchTask]) -> tuple[str, ...]:
        """Take the messages about text and about work."""
        found = (*self._inputs.notes, *(note for task in tasks for note in task.notes))
        self._inputs.notes.clear()
        return tuple(map(configuration.with_keywords, found))


def _warn(notes: Sequence[str]) -> None:
    """Turn messages into Python warnings at the place that called the calling method."""
    for note in notes:
        warnings.warn(note, XclassWarning, stacklevel=3)


def load(path: str) -> Learner:
    """Return the learner that a model file holds; it can predict and go on learning.

    Raises
    ------
    ModelError
        where the file is damaged, or no model.
    """
    jit.activate(quick=False)
    with configuration.naming_keywords():
        contents = model_contents.load(path)
        config = configuration.of_model(path, contents.options)
    with model_contents.naming(path), configuration.naming_keywords():
        return Learner.from_config(config, Purpose(loaded=True), contents)
