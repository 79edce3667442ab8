"""Provide `XClassifier`, which offers the reductions of xclass as a classifier of scikit-learn.

It needs the extra `sklearn`, see `errors.install_extra`.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from os import PathLike
from typing import Any

import numpy as np

from .errors import UsageError, XclassWarning, install_extra

try:
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.pipeline import Pipeline
    from sklearn.utils.validation import check_is_fitted

    from .estimators import checks, new_learner
except ImportError as error:
    raise ImportError(
        f"xclass.sklearn needs scikit-learn 1.6 or later ({error}); {install_extra('sklearn')}"
    ) from error

from .api.inputs import collected
from .api.learner import Learner
from .array_types import AnyArray, Float64s
from .estimators.availability import piece_by_piece, with_probabilities
from .estimators.class_labels import ClassLabels, weights_of_labels
from .estimators.predictor import Predictor
from .explain.records import Explanation
from .system import processors
from .system.exclusive import Exclusive
from .system.printable import short_repr


class XClassifier(ClassifierMixin, BaseEstimator):
    """Learn and predict classes by one of the reductions of xclass, as a classifier of scikit-learn.

    Parameters
    ----------
    reduction : str, default "multiclass"
        Name of a reduction or preset: "multiclass", "oaa", "recall_tree", "cpt", "softmax_tree", "log_multi", "ect",
        "random_tree", "sparse_experts" or "hsm".
    passes : int, default 1
        Number of passes of `fit` over the data. Small data need more than one; see the example.
    bits : int, optional
        The weight table has `2**bits` slots. By default, the number of classes and the free memory decide.
    learning_rate : float, optional
        Learning rate; the default depends on the reduction.
    loss : str, optional
        Loss of the binary learners, such as "logistic" or "squared"; the default depends on the reduction.
    options : str or dict, default ""
        Further options, as words of the command line, `"--trees 2 -q ab"`, or by keyword, `{"trees": 2}`.
    max_classes : int, optional
        Number of classes that the learner provides for. "multiclass", "cpt" and "hsm" take any number of classes and
        use this number only for the size of the weight table. The other reductions have a fixed number of classes. If
        `max_classes` is None, it is the number in the data for `fit`. For the first `partial_fit`, it is the number of
        `classes`, or else twice the number in the data and at least 1000 more.
    n_jobs : int, optional
        Number of threads; None and -1 stand for one thread per processor. Results do not depend on it.
    random_state : int, RandomState instance or None, default None
        Seed of the random choices of the learner. None stands for 0, so that results are always reproducible.
    warm_start : bool, default False
        Whether `fit` continues from the model of the previous call. The model keeps its options and number of classes;
        another `reduction` is refused.
    class_weight : dict, "balanced" or None, default None
        Weights of labels, label -> weight, 1 for others; "balanced" weights each label by
        `n_samples / (n_classes * count)`. They multiply `sample_weight`, as in scikit-learn. "balanced" needs all data,
        so `partial_fit` refuses it.
    verbose : int, default 0
        1 shows a bar of the examples learned on standard error, with the share of them that were predicted wrongly
        before they were learned; 2 writes a line after each pass in its place.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Distinct labels, sorted. They grow if `partial_fit` gets new labels.
    learner_ : xclass.Learner
        The learner.
    n_features_in_, feature_names_in_
        As in scikit-learn; not defined if the examples are texts.
    n_iter_ : int
        Number of passes of the last `fit`; 1 after `partial_fit`.

    Notes
    -----
    Labels that are integers from 1 to 10 million are the numbers of the classes, as in the data of the command. All
    other labels are names, numbered in the order in which they first occur. A reduction with a fixed number of classes
    takes integers as numbers only up to `max_classes` or, without it, up to 1000 or ten times the number of classes.
    The first call decides which of the two is the case, and later labels have to be of the same kind.

    Column j of a matrix is the feature named `j`, and so is that of a DataFrame if all of its columns hold numbers.
    Else its columns are features by their names. The words of a text are features. `save` therefore writes the model
    that the command learns from the same data.

    Examples
    --------
    >>> from sklearn.feature_extraction.text import HashingVectorizer
    >>> from sklearn.pipeline import make_pipeline
    >>> from xclass.sklearn import XClassifier
    >>> texts = ["free money now", "meeting at ten", "dinner on sunday", "free offer", "the meeting room"]
    >>> labels = ["spam", "work", "family", "spam", "work"]
    >>> model = make_pipeline(HashingVectorizer(), XClassifier(passes=5, bits=16)).fit(texts, labels)
    >>> model.predict(["free dinner for you", "ten meeting rooms"]).tolist()
    ['spam', 'work']
    >>> model.classes_.tolist()
    ['family', 'spam', 'work']
    """

    learner_: Learner
    classes_: AnyArray
    _labels: ClassLabels
    _fitted_reduction: str  # value of `reduction` when `learner_` was made

    def __init__(
        self,
        reduction: str = "multiclass",
        passes: int = 1,
        bits: int | None = None,
        learning_rate: float | None = None,
        loss: str | None = None,
        options: str | dict[str, Any] = "",
        max_classes: int | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        warm_start: bool = False,
        class_weight: Any = None,
        verbose: int = 0,
    ) -> None:
        self.reduction = reduction
        self.passes = passes
        self.bits = bits
        self.learning_rate = learning_rate
        self.loss = loss
        self.options = options
        self.max_classes = max_classes
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.warm_start = warm_start
        self.class_weight = class_weight
        self.verbose = verbose

    # learning

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> XClassifier:
        """Learn from examples, in `passes` passes over the data.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), DataFrame, or sequence of str
            Examples: numbers, or texts, whose words are the features. A DataFrame may have columns of numbers and of
            text.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the examples, at least 0.

        Returns
        -------
        self : XClassifier

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
            X, y, weight = checks.checked(self, X, y, sample_weight, reset=not goes_on)
            weight = self._weighted(y, weight, whole=True)
            self._learn(X, y, weight, int(self.passes), None, goes_on, exact=True)
        return self

    @piece_by_piece
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> XClassifier:
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
        self : XClassifier

        Notes
        -----
        The other parameters that describe the learner, such as `bits`, `learning_rate` and `options`, are those of the
        first call: `set_params` changes them only for the next `fit`.
        """
        with self._turn, self._unchanged_if_refused():
            goes_on = hasattr(self, "learner_")
            X, y, weight = checks.checked(self, X, y, sample_weight, reset=not goes_on)
            if isinstance(self.class_weight, str):
                raise UsageError(
                    f"class_weight: {self.class_weight!r} needs all data, so only fit takes it; give partial_fit a "
                    "dictionary, label -> weight"
                )
            weight = self._weighted(y, weight, whole=False)
            known = None if classes is None else checks.checked_labels(classes, "classes")
            self._learn(X, y, weight, 0, known, goes_on, exact=False)
        return self

    @contextlib.contextmanager
    def _unchanged_if_refused(self) -> Iterator[None]:
        """Restore all attributes after an error in the `with` block; a learner of an earlier call may have learned."""
        before = dict(self.__dict__)
        try:
            with new_learner.PARAMETERS:
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
        self,
        X: Any,
        y: AnyArray,
        weight: Float64s | None,
        passes: int,
        classes: AnyArray | None,
        goes_on: bool,
        exact: bool,
    ) -> None:
        """Learn from checked examples, in one pass that may go on if `passes` is 0.

        `classes` are labels that will occur, and a new learner gets as many classes as the data have if `exact`.
        """
        expected = y if classes is None else np.concatenate([classes, y])
        if goes_on:
            if self.reduction != self._fitted_reduction:
                raise UsageError(
                    f"reduction: {self.reduction!r} is not {self._fitted_reduction!r}, by which the model was made; "
                    "call fit without warm_start to learn a new model, or set the parameter back"
                )
            learner, labels = self.learner_, self._labels
            y, expected = labels.converted(y), labels.converted(expected)
            labels = labels.extended(expected)
            new_learner.check_classes(self, labels, learner.core.label_range.highest)
        else:
            record = new_learner.record_of(self)
            labels = ClassLabels(expected, new_learner.highest_number(self, record, expected))
            learner = new_learner.new_learner(self, record, labels, max(passes, 1), exact or classes is not None)
        self._set_workers(learner)
        given = labels.for_learner(y)
        for number in range(max(passes, 1)):
            with learner.shown(int(self.verbose), len(y), f"pass {number + 1}"):
                learner.learn_many(X, given, weight)
                if passes:
                    learner.end_pass()
        self.__dict__.update(  # in one step, which Ctrl-C cannot interrupt
            learner_=learner, _labels=labels.with_weight(y, weight), classes_=labels.values,
            _fitted_reduction=self.reduction, n_iter_=max(passes, 1),
        )  # fmt: skip

    def _weighted(self, y: AnyArray, weight: Float64s | None, whole: bool) -> Float64s | None:
        """Return the weights of examples, multiplied by those of their labels."""
        if self.class_weight is None:
            return weight
        of_labels = weights_of_labels(self.class_weight, y, whole)
        return of_labels if weight is None else weight * of_labels

    def _set_workers(self, learner: Learner) -> None:
        if self.n_jobs is None:
            return
        if not checks.is_number(self.n_jobs) or self.n_jobs == 0:
            raise UsageError(f"n_jobs: {self.n_jobs!r} is not a whole number other than 0, or None")
        threads = self.n_jobs if self.n_jobs > 0 else processors.count() + 1 + self.n_jobs
        learner.core.reduction.workers = max(1, int(threads))

    # predicting

    def predict(self, X: Any) -> AnyArray:
        """Predict the label of each example, an ndarray of shape (n_samples,); `X` is as in `fit`."""
        with self._turn:
            X, predictor = self._ready(X)
            labels: AnyArray = self.classes_[predictor.predict(X)]
            return labels

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of the examples, by weight, whose predicted label is their label `y`."""
        return float(super().score(X, collected(y), collected(sample_weight)))

    @with_probabilities
    def predict_proba(self, X: Any) -> Float64s:
        """Return the probability of each class for each example.

        With many classes, `predict_top_k` needs less memory and time. With more than 100 classes, "oaa" and
        "recall_tree" give all probabilities that they estimate, and other reductions those of the 100 most probable
        classes; the other classes share the rest equally. The predicted class has the highest probability.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            In the order of `classes_`; rows sum to 1.
        """
        with self._turn:
            X, predictor = self._ready(X)
            return predictor.probabilities(X)

    @with_probabilities
    def predict_log_proba(self, X: Any) -> Float64s:
        """Return the logarithm of the probability of each class for each example; see `predict_proba`."""
        p: Float64s = self.predict_proba(X)
        with np.errstate(divide="ignore"):
            return np.log(p)

    @with_probabilities
    def predict_top_k(self, X: Any, k: int = 5) -> tuple[AnyArray, Float64s]:
        """Return the k most probable labels of each example and their probabilities.

        It never makes an array of all examples and all classes. If the learner lists fewer than k classes for an
        example, because its trees propose no others, the most frequent of the other classes follow, with equal shares
        of the probability that is left.

        Parameters
        ----------
        k : int, default 5
            Number of labels, at most the number of classes.

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
            if k > len(self.classes_):
                raise UsageError(f"k: {k} is more than the {len(self.classes_)} classes")
            positions, p = predictor.top(X, int(k))
            return self.classes_[positions], p

    @with_probabilities
    def decision_function(self, X: Any) -> Float64s:
        """Return a score of each class for each example; the class with the highest score is the prediction.

        Returns
        -------
        scores : ndarray of shape (n_samples, n_classes), or (n_samples,) for two classes
            For "oaa", the scores of the classes' regressors; for other reductions, the logarithms of probabilities, at
            least -708. For two classes, the log odds of the second class.
        """
        with self._turn:
            X, predictor = self._ready(X)
            if len(self.classes_) != 2 and predictor.scores_all:
                return predictor.scores(X)
            p = predictor.probabilities(X)
        log_p: Float64s = np.log(np.maximum(p, np.finfo(np.float64).tiny))
        return log_p[:, 1] - log_p[:, 0] if len(self.classes_) == 2 else log_p

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

    def _ready(self, X: Any) -> tuple[Any, Predictor]:
        """Return checked examples and what predicts them, after learning from examples that the learner still holds."""
        check_is_fitted(self)
        X = checks.checked_examples(self, X, reset=False)
        self._set_workers(self.learner_)
        self._end_learning()
        return X, Predictor(self.learner_, self._labels)

    def _end_learning(self) -> None:
        if self.learner_.preview_size is not None or self.learner_.core.unlearned:
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


def explain(pipeline: Pipeline, X: Any, k: int = 2) -> list[Explanation]:
    """Explain the predictions of a Pipeline, with the names that its steps give to the features.

    Parameters
    ----------
    pipeline : Pipeline
        Its last step is an XClassifier. The names are those of `get_feature_names_out` of the steps before it. If the
        last of these has no such method, such as HashingVectorizer, a warning says so, and features have numbers.
    X, k
        As in `XClassifier.explain`, which says what is returned.

    Examples
    --------
    >>> from sklearn.feature_extraction.text import CountVectorizer
    >>> from sklearn.pipeline import make_pipeline
    >>> from xclass.sklearn import XClassifier, explain
    >>> texts = ["free money now", "meeting at ten", "free offer", "the meeting room"]
    >>> model = make_pipeline(CountVectorizer(), XClassifier("oaa", passes=5)).fit(texts, ["spam", "work"] * 2)
    >>> [share.name for share in explain(model, ["free money"])[0].classes[0].shares]
    ['free', 'money', 'Constant']
    """
    steps = getattr(pipeline, "steps", None) or [("", None)]
    classifier = steps[-1][1]
    if not isinstance(classifier, XClassifier):
        raise UsageError(
            f"pipeline: {short_repr(pipeline)} is no Pipeline whose last step is an XClassifier; an XClassifier alone "
            "has the method explain"
        )
    check_is_fitted(classifier)
    if len(steps) == 1:
        return classifier.explain(X, k)
    for first in range(len(steps) - 1):  # a step that changes texts names nothing, and the vectoriser after it does
        with contextlib.suppress(AttributeError, ValueError):
            names = pipeline[first:-1].get_feature_names_out()
            break
    else:
        names = None
        last = type(steps[-2][1]).__name__
        warnings.warn(
            f"{last}, the step before {type(classifier).__name__}, does not name its features "
            "(get_feature_names_out), so they are shown by their numbers",
            XclassWarning,
            stacklevel=2,
        )
    return classifier.explain(pipeline[:-1].transform(X), k, names)
