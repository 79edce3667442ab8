"""Define what the estimators of scikit-learn share: parameters, learning, models and explanations."""

from __future__ import annotations

import contextlib
import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from os import PathLike
from types import MethodType
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ..api import configuration
from ..api.configuration import OptionOfRun
from ..api.labels import HIGHEST_NUMBER, placed
from ..api.learner import Learner, is_identity
from ..api.learner_core import LearnerCore
from ..array_types import AnyArray, Float64s
from ..errors import UsageError
from ..explain.records import Explanation
from ..kernels import jit
from ..options.declare import options_of
from ..options.spelling import Spelling, suggestion
from ..reductions import presets, registry
from ..reductions.core.base import ReductionRecord
from ..reductions.core.spec import LearnerUse
from ..system import thread_limit
from ..system.exclusive import Exclusive
from . import checks
from .checks import is_number
from .class_labels import ClassLabels, Targets, distinct

Method = Callable[..., Any]


class AvailableMethod:
    """Hold a method that an estimator may lack; `reason_against` returns why, or an empty text."""

    def __init__(self, method: Method, reason_against: Callable[[Any], str]) -> None:
        self._method, self._reason_against = method, reason_against
        self.__doc__ = method.__doc__

    def __get__(self, estimator: Any, owner: type) -> Method:
        if estimator is None:
            return self._method
        reason = self._reason_against(estimator)
        if reason:
            raise AttributeError(f"{owner.__name__} has no {self._method.__name__} here: {reason}")
        return MethodType(self._method, estimator)


def _reason_against_probabilities(estimator: Any) -> str:
    record = configuration.record_of(estimator.reduction)
    if record is None:
        return f"{estimator.reduction!r} is no reduction"
    if record.probabilities:
        return ""
    names = registry.listed(lambda other: other.probabilities and other.labels == record.labels)
    return f"{estimator.reduction} does not estimate probabilities; choose one of {names}"


def _reason_against_pieces(estimator: Any) -> str:
    record = configuration.record_of(estimator.reduction)
    if record is not None and record.learns_at_end:
        return f"{estimator.reduction} learns from all examples at once, not piece by piece; call fit"
    return ""


with_probabilities = functools.partial(AvailableMethod, reason_against=_reason_against_probabilities)
piece_by_piece = functools.partial(AvailableMethod, reason_against=_reason_against_pieces)


FREE_CLASSES = 1000  # least number of classes beyond those of the first `partial_fit` that a fixed reduction has
IDENTIFIERS = 10  # integers larger than this multiple of the number of classes are identifiers, and become names
OWN_OPTIONS = {  # options that parameters of the estimator set, or that belong to its labels
    "passes": "passes",
    "bits": "bits",
    "learning_rate": "learning_rate",
    "loss_function": "loss",
    "random_seed": "random_state",
    "learn_names": "",
    "named_labels": "",
    "indexing": "",
}

OF_RUN = {  # flags of options of a run that parameters and methods of the estimator stand for, and these
    "--passes": "give passes=N",
    "--threads": "give n_jobs=N",
    "--quiet": "give verbose=0",
    "--progress": "give verbose=1",
    "--top_k": "call predict_top_k(X, k)",
    "--probabilities": "call predict_proba(X)",
}
NAMED = "options__"  # begins the name of an option in `set_params`
CLASSIFIERS = {"multiclass": "XClassifier", "multilabel": "XMultilabelClassifier"}  # by `ReductionRecord.labels`


def _parameters(complete: bool) -> dict[str, str]:
    """Return the parameters by the flags of the command, see `Spelling`."""
    names = {flag: OWN_OPTIONS.get(name) or name for flag, name in configuration.keywords(complete).items()}
    for name in configuration.reductions():
        record, chosen = configuration.record_of(name), f"reduction={name!r}"
        if record is not None and record.labels == "multilabel":
            chosen = f"{CLASSIFIERS[record.labels]}({chosen})"
        names.update({f"--{name}": chosen, f"--{name} N": "max_classes"})
    return names


PARAMETERS = Spelling(_parameters)


def with_named(options: Any, named: Mapping[str, Any]) -> dict[str, Any]:
    """Return options of an estimator by keyword, with those in `named`; raise UsageError if there is none of a name."""
    changed = {name.removeprefix(NAMED): value for name, value in named.items()}
    for name in changed.keys() - configuration.declared_options().keys():
        known = [f"{NAMED}{one}" for one in configuration.declared_options()]
        raise UsageError(f"there is no parameter {NAMED}{name}{suggestion(NAMED + name, known)}")
    return {name: value for name, value in {**_by_keyword(options), **changed}.items() if value is not None}


def _by_keyword(options: Any) -> dict[str, Any]:
    """Return the parameter `options` of an estimator as a dictionary."""
    if options is None or isinstance(options, dict):
        return dict(options or {})
    if not isinstance(options, str):
        raise UsageError(f"options: {options!r} is neither text nor a dictionary")
    try:
        reduction, _, given = configuration.of_words(options, "")
    except OptionOfRun as error:
        raise error.of_attribute("learner_", OF_RUN) from None
    if reduction:
        raise UsageError(f"options: {options!r} holds --{reduction}; give reduction={reduction!r}")
    return dict(given)


# -- the estimator


@dataclass(eq=False, repr=False)
class Parameters:
    """Declare the parameters that estimators share; scikit-learn reads them from the signature that is made of them."""

    reduction: str
    passes: int = 1
    bits: int | None = None
    learning_rate: float | None = None
    loss: str | None = None
    options: str | dict[str, Any] | None = ""
    max_classes: int | None = None
    n_jobs: int | None = None
    random_state: Any = None
    warm_start: bool = False


class Estimator(Parameters, ClassifierMixin, BaseEstimator, ABC):
    """Define what `XClassifier` and `XMultilabelClassifier` share."""

    KIND: ClassVar[str]  # of the reductions that it can have, see `ReductionRecord.labels`
    verbose: int  # the last parameter, after those that not all estimators have
    learner_: Learner
    classes_: AnyArray
    _labels: ClassLabels
    _form: str  # of the first labels, see `Targets`
    _fitted_reduction: str  # value of `reduction` when `learner_` was made

    # parameters

    def set_params(self, **params: Any) -> Any:
        """Set parameters; `options__NAME` sets one of `options` by its keyword, as in a grid, and None takes it out."""
        named = {name: params.pop(name) for name in list(params) if name.startswith(NAMED)}
        super().set_params(**params)
        if named:
            self.options = with_named(self.options, named)
        return self

    # the learner

    def _record(self) -> ReductionRecord:
        """Return the record of the chosen reduction; raise UsageError if it is none that classifies."""
        record = configuration.record_of(self.reduction)
        if record is None or record.labels != self.KIND:
            names = [other.name for other in registry.REDUCTIONS if other.labels == self.KIND]
            other = CLASSIFIERS.get(record.labels if record else "")
            cure = f"; give it to {other}" if other else ""
            allowed = ", ".join([*presets.reductions(names), *names])
            raise UsageError(f"reduction: {self.reduction!r} is none of {allowed}{cure}")
        if self.max_classes is not None and not is_number(self.max_classes, 1):
            raise UsageError(f"max_classes: {self.max_classes!r} is not a whole number of at least 1, or None")
        return record

    def _new(self, labels: AnyArray, passes: int, exact: bool) -> tuple[Learner, ClassLabels]:
        """Return a new learner with the options that the parameters stand for, and its labels.

        `exact` says whether there are no labels besides `labels`, so that a fixed number of classes is theirs.
        """
        record, classes = self._record(), self.max_classes
        grows, highest = configuration.grows(record), HIGHEST_NUMBER  # the highest integer that can be a class
        if not grows:
            highest = min(highest, int(classes or max(FREE_CLASSES, IDENTIFIERS * len(distinct(labels)))))
        known = ClassLabels(labels, highest, int(record.labels == "multiclass"))
        if not grows:
            if classes is None:
                classes = known.needed if exact else max(2 * known.needed, known.needed + FREE_CLASSES)
                classes = max(classes, int(options_of(record.options)[record.name].minimum or 1))
            self._check_classes(known, classes)
        options = self._options()
        if not known.numbered:
            options["learn_names"] = True
        try:
            identity = is_identity(options.pop("feature_hash", "names"))
            jit.activate(hide_scipy=False)
            config = configuration.configured(self.reduction, classes, options, LearnerUse(passes=passes))
            return Learner.of(LearnerCore(config), identity), known
        except OptionOfRun as error:
            raise error.of_attribute("learner_", OF_RUN) from None
        except UsageError as error:
            name = PARAMETERS(error.args[0]).partition(" ")[0].rstrip(":")
            if name in options and not OWN_OPTIONS.get(name):
                error.args = (f"options: {error.args[0]}",)
            raise

    def _check_classes(self, labels: ClassLabels, classes: int | None, numbers: bool = True) -> None:
        """Raise UsageError if labels need more classes than the learner has, which are `numbers` or names."""
        needed = labels.needed if numbers else len(labels.values)
        if classes is not None and needed > classes:
            kind = "the label" if numbers and labels.numbered and labels.lowest else "the number of labels"
            grow = ", or a reduction whose classes grow, such as 'multiclass'" if self.KIND == "multiclass" else ""
            raise UsageError(
                f"y: {kind} {needed} is above the {classes} classes of this {self.reduction}; give "
                f"max_classes={needed} or more{grow}"
            )

    def _make_room(self, learner: Learner, labels: ClassLabels) -> None:
        """Let any number be a label if some are no numbers of classes; raise UsageError if these are too many."""
        core = learner.core
        lowest, highest, _ = core.label_range
        if configuration.grows(core.config.reduction) or highest is None:
            return  # the learner does so itself
        numbers = core.names.class_list is None
        learned = labels.values[labels.learned]
        if numbers and (labels.values[0] < (lowest or 0) or labels.values[-1] > HIGHEST_NUMBER):
            numbers = not (len(learned) and learner.name_numbers(int(learned[-1])))
        self._check_classes(labels, highest + 1 - (lowest or 0), numbers)

    def _options(self) -> dict[str, Any]:
        """Return the options of the learner by keyword."""
        options = _by_keyword(self.options)
        for name, parameter in OWN_OPTIONS.items():
            if name in options:
                advice = f"give {parameter}={options[name]!r}" if parameter else "the estimator sets it from the labels"
                raise UsageError(f"options: {name} cannot be given here; {advice}")
        given = {"bits": self.bits, "learning_rate": self.learning_rate, "loss_function": self.loss}
        options.update((name, value) for name, value in given.items() if value is not None)
        if isinstance(self.random_state, (int, np.integer)):
            options["random_seed"] = int(self.random_state)
        elif self.random_state is not None:
            options["random_seed"] = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        return options

    # learning

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Learn from examples, in `passes` passes over the data.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), DataFrame, or sequence of str
            Examples: numbers, or texts, whose words are the features. A DataFrame may have columns of numbers and of
            text.
        y : array-like of shape (n_samples,), or for XMultilabelClassifier other forms
            Labels.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the examples, at least 0.

        Returns
        -------
        self

        Notes
        -----
        If a parameter or a value in the data is refused, or the call is interrupted, the estimator is as before: a
        model of an earlier call stays in memory until the new one is complete. With `warm_start`, this model itself
        learns, so it may have learned from some of the examples.
        """
        if not checks.is_number(self.passes, 1):
            raise UsageError(f"passes: {self.passes!r} is not a whole number of at least 1")
        with self._turn, self._unchanged_if_refused():
            goes_on = bool(self.warm_start) and hasattr(self, "learner_")
            read = functools.partial(self._checked_targets, goes_on=goes_on)
            X, y, weight = checks.checked(self, X, y, sample_weight, not goes_on, read)
            self._learn(X, y, weight, int(self.passes), None, goes_on)
        return self

    @piece_by_piece
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Any:
        """Learn from further examples, in one pass over them.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`. Labels may be new; with a fixed number of classes up to that number, see `max_classes`.
        classes : array-like of shape (n_classes,), optional
            Labels that will occur. They are added to `classes_`, and in the first call they decide how many classes a
            reduction with a fixed number of classes has.

        Returns
        -------
        self

        Notes
        -----
        The other parameters that describe the learner, such as `bits`, `learning_rate` and `options`, are those of the
        first call: `set_params` changes them only for the next `fit`.
        """
        with self._turn, self._unchanged_if_refused():
            goes_on = hasattr(self, "learner_")
            known = None if classes is None else checks.checked_labels(classes, "classes")
            read = functools.partial(self._checked_targets, goes_on=goes_on, classes=known)
            X, y, weight = checks.checked(self, X, y, sample_weight, not goes_on, read)
            self._learn(X, y, weight, 0, known, goes_on)
        return self

    @contextlib.contextmanager
    def _unchanged_if_refused(self) -> Iterator[None]:
        """Restore all attributes after an error in the `with` block; a learner of an earlier call may have learned."""
        before = dict(self.__dict__)
        try:
            with PARAMETERS:
                yield
        except BaseException:
            self.__dict__ = before
            raise

    @property
    def _turn(self) -> Any:
        """Return the lock that a thread holds while it uses this estimator; copies and pickles have others."""
        turn: Exclusive = self.__dict__.get("_own_turn") or self.__dict__.setdefault("_own_turn", Exclusive())
        return turn.lock

    def _learn(
        self, X: Any, y: Targets, weight: Float64s | None, passes: int, classes: AnyArray | None, goes_on: bool
    ) -> None:
        """Learn from checked examples.

        Parameters
        ----------
        passes : number of passes of `fit`; 0 for one pass of `partial_fit`, which may go on and bring new labels
        classes : labels that will occur, None if they are unknown
        goes_on : whether the learner of earlier calls learns, and not a new one
        """
        own = y.labels
        weight = self._weighted(own, weight, whole=passes > 0)
        expected = np.concatenate([known for known in (classes, y.columns, own) if known is not None])
        if goes_on:
            if self.reduction != self._fitted_reduction:
                raise UsageError(
                    f"reduction: {self.reduction!r} is not {self._fitted_reduction!r}, by which the model was made; "
                    "call fit without warm_start to learn a new model, or set the parameter back"
                )
            learner, labels = self.learner_, self._labels
            with placed(y.start):
                own, expected = labels.converted(own), labels.converted(expected)
            labels = labels.extended(expected)
            self._make_room(learner, labels)
        else:
            exact = passes > 0 or classes is not None or y.columns is not None
            learner, labels = self._new(expected, max(passes, 1), exact)
        self._prepare(learner)
        given = y._replace(labels=own).for_learner(labels)
        for number in range(max(passes, 1)):
            learner.core.reduction.begin_pass(number)
            with learner.shown(int(self.verbose), y.n, f"pass {number + 1}"):
                learner.learn_many(X, given, weight)
                if passes:
                    learner.end_pass()
        self.__dict__.update(  # in one step, which Ctrl-C cannot interrupt
            learner_=learner, _labels=labels.with_weight(own, y.repeated(weight)), classes_=labels.values,
            _fitted_reduction=self.reduction, n_iter_=max(passes, 1), _form=self._form if goes_on else y.form,
        )  # fmt: skip

    @abstractmethod
    def _checked_targets(self, y: Any, goes_on: bool, classes: AnyArray | None = None) -> Targets:
        """Return the labels of examples after scikit-learn's checks; see `_learn`."""

    def _weighted(self, y: AnyArray, weight: Float64s | None, whole: bool) -> Float64s | None:
        """Return the weights of examples; `whole` says whether the labels `y` are all that will be learned from."""
        return weight

    def _prepare(self, learner: Learner) -> None:
        """Let a learner, which may come from a file, name options as this estimator does, and use its processors."""
        learner.spelling = PARAMETERS
        if self.n_jobs is None:
            return
        if not checks.is_number(self.n_jobs) or self.n_jobs == 0:
            raise UsageError(f"n_jobs: {self.n_jobs!r} is not a whole number other than 0, or None")
        threads = self.n_jobs if self.n_jobs > 0 else thread_limit.processors() + 1 + self.n_jobs
        learner.core.reduction.begin_pass(0, threads=max(1, int(threads)))

    # predicting

    @with_probabilities
    def predict_top_k(self, X: Any, k: int = 5) -> tuple[AnyArray, Float64s]:
        """Return the k most probable labels of each example and their probabilities.

        It never makes an array of all examples and all classes. If the learner lists fewer than k classes for an
        example, because its trees propose no others, the most frequent of the other classes follow, with equal shares
        of the probability that is left.

        Parameters
        ----------
        k : int, default 5
            Number of labels; all of them if there are fewer.

        Returns
        -------
        labels : ndarray of shape (n_samples, k)
            The most probable label is the first.
        probabilities : ndarray of shape (n_samples, k), dtype float64
        """
        if not checks.is_number(k, 1):
            raise UsageError(f"k: {k!r} is not a whole number of at least 1")
        with self._turn:
            X, predictor = self._ready(X)
            positions, p = predictor.top(X, min(int(k), len(self.classes_)))
            return self.classes_[positions], p

    def explain(self, X: Any, k: int = 2, feature_names: Any = None) -> list[Explanation]:
        """Explain the prediction of each example: what the scores of the classes are sums of.

        Parameters
        ----------
        k : int, default 2
            Number of classes to explain, the most probable first.
        feature_names : array-like of shape (n_features,), optional
            Names of the columns of a matrix; `xclass.sklearn.explain` takes those of a Pipeline.

        Returns
        -------
        explanations : list of Explanation
            As `Learner.explain_many` returns them, with the labels of `fit`.
        """
        with self._turn:
            X, _ = self._ready(X)
            if feature_names is None and isinstance(X, np.ndarray):
                feature_names = getattr(self, "feature_names_in_", None)
            explanations = self.learner_.explain_many(X, k, feature_names=feature_names)
            return list(map(self._labels.explained, explanations))

    def _ready(self, X: Any) -> tuple[Any, Any]:
        """Return checked examples and what predicts them, after learning from examples that the learner still holds."""
        check_is_fitted(self)
        X = checks.checked_examples(self, X, reset=False)
        self._prepare(self.learner_)
        self._end_learning()
        return X, self._predictor()

    @abstractmethod
    def _predictor(self) -> Any:
        """Return what predicts examples, by a learner that has learned all of its examples."""

    def _end_learning(self) -> None:
        if self.learner_.core.unlearned:
            self.learner_.end_pass()

    # models

    def save(self, path: str | PathLike[str]) -> None:
        """Save the model to a file, which `xclass.load` and the command can read.

        It does not contain the type of the labels; use pickle or joblib to keep the estimator.
        """
        with self._turn:
            check_is_fitted(self)
            self._end_learning()
            self.learner_.save(path)

    def __getstate__(self) -> dict[str, Any]:
        with self._turn:
            if hasattr(self, "learner_"):
                self._end_learning()
            state: dict[str, Any] = dict(super().__getstate__())
        state.pop("_own_turn", None)
        return state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
