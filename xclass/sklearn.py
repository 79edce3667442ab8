"""Provide `XClassifier` and `XMultilabelClassifier`, the reductions of xclass as classifiers of scikit-learn.

It needs the extra `sklearn`, see `errors.install_extra`.
"""

from __future__ import annotations

import contextlib
import warnings
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from .errors import UsageError, XclassWarning, install_extra

try:
    from sklearn.metrics import accuracy_score
    from sklearn.pipeline import Pipeline
    from sklearn.utils.validation import check_is_fitted

    from .estimators import checks
    from .estimators.estimator import Estimator
except ImportError as error:
    raise ImportError(
        f"xclass.sklearn needs scikit-learn 1.6 or later ({error}); {install_extra('sklearn')}"
    ) from error

from .api.inputs import collected
from .api.labels import refuse_lists
from .array_types import AnyArray, Float64s
from .estimators.class_labels import ListPredictor, Predictor, Targets, distinct, matrix, weights_of_labels
from .estimators.estimator import with_probabilities
from .explain.records import Explanation
from .system.printable import short_repr

LEARNS_ONE = "and XClassifier learns one; XMultilabelClassifier learns lists of labels"


@dataclass(eq=False, repr=False)
class XClassifier(Estimator):
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
    options : str, dict or None, default ""
        Further options, as words of the command line, `"--trees 2 -q ab"`, or by keyword, `{"trees": 2}`. In
        `set_params` and grids, `options__trees` sets the option `trees` alone.
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
    The first call decides which of the two is the case. Later labels have to be of the same type; if labels are
    integers, any integer may follow: one that cannot be the number of a class is a name, and then all labels are.

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

    KIND = "multiclass"
    reduction: str = "multiclass"
    class_weight: Any = None
    verbose: int = 0

    def _checked_targets(self, y: Any, goes_on: bool, classes: AnyArray | None = None) -> Targets:
        try:
            return Targets(checks.checked_labels(y, "y"))
        except ValueError:
            refuse_lists(y, LEARNS_ONE)
            raise

    def _weighted(self, y: AnyArray, weight: Float64s | None, whole: bool) -> Float64s | None:
        if self.class_weight is None:
            return weight
        if isinstance(self.class_weight, str) and not whole:
            raise UsageError(
                f"class_weight: {self.class_weight!r} needs all data, so only fit takes it; give partial_fit a "
                "dictionary, label -> weight"
            )
        of_labels = weights_of_labels(self.class_weight, y, whole)
        return of_labels if weight is None else weight * of_labels

    def _predictor(self) -> Predictor:
        return Predictor(self.learner_, self._labels)

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
            p: Float64s = predictor.probabilities(X)
            return p

    @with_probabilities
    def predict_log_proba(self, X: Any) -> Float64s:
        """Return the logarithm of the probability of each class for each example; see `predict_proba`."""
        p: Float64s = self.predict_proba(X)
        with np.errstate(divide="ignore"):
            return np.log(p)

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
                scores: Float64s = predictor.scores(X)
                return scores
            p = predictor.probabilities(X)
        log_p: Float64s = np.log(np.maximum(p, np.finfo(np.float64).tiny))
        return log_p[:, 1] - log_p[:, 0] if len(self.classes_) == 2 else log_p


@dataclass(eq=False, repr=False)
class XMultilabelClassifier(Estimator):
    """Learn and predict lists of labels by one of the reductions of xclass, as a classifier of scikit-learn.

    Parameters
    ----------
    reduction : str, default "multilabel"
        Name of a reduction: "multilabel", whose labels grow; "multilabel_oaa", which scores every label; or "plt",
        whose tree suits many labels.
    max_classes : int, optional
        Number of labels that the learner provides for. If it is None, it is the number in the data for `fit`: of
        columns of a matrix, or, of lists, one more than the highest number, or the number of names. For the first
        `partial_fit` with lists, it is the number of `classes`, or else twice the number in the data and at least 1000
        more.
    passes, bits, learning_rate, loss, options, n_jobs, random_state, warm_start, verbose
        As in `XClassifier`. By default, labels with a probability above 0.5 are predicted. `options="--threshold
        auto"` lets learning choose this threshold, and short texts seldom get no label then.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels of the columns of a matrix, 0, 1, 2, ...; or the distinct labels in lists, sorted. They grow if
        `partial_fit` gets lists with new labels.
    learner_, n_features_in_, feature_names_in_, n_iter_
        As in `XClassifier`.

    Notes
    -----
    `y` is a matrix of shape (n_samples, n_classes), dense or sparse, of 1 for the labels of an example and 0 for
    others; or a sequence of lists of labels, which are numbers from 0 or names; or a label for each example. `predict`
    gives what the first `y` was. Lists of the same length of 0 and 1 alone are a matrix.

    Examples
    --------
    >>> from xclass.sklearn import XMultilabelClassifier
    >>> texts = ["tea with milk", "green tea", "coffee with milk", "black coffee"]
    >>> labels = [["tea", "milk"], ["tea"], ["coffee", "milk"], ["coffee"]]
    >>> model = XMultilabelClassifier(bits=14, options="--threshold auto").fit(texts * 5, labels * 5)
    >>> model.predict(["green tea", "milk coffee"])
    [['tea'], ['coffee', 'milk']]
    >>> model.classes_.tolist()
    ['coffee', 'milk', 'tea']
    """

    KIND = "multilabel"
    reduction: str = "multilabel"
    verbose: int = 0

    def _checked_targets(self, y: Any, goes_on: bool, classes: AnyArray | None = None) -> Targets:
        columns = self.classes_ if goes_on else None if classes is None else distinct(classes)
        return checks.checked_lists(y, columns, goes_on and self._form == "lists")

    def _predictor(self) -> ListPredictor:
        return ListPredictor(self.learner_, self._labels)

    def predict(self, X: Any) -> Any:
        """Predict the labels of each example, those whose probability is above the threshold.

        Returns
        -------
        labels : ndarray or CSR matrix of shape (n_samples, n_classes), list of lists, or ndarray of shape (n_samples,)
            In the form of the first `y`; if that was one label for each example, the most probable one.
        """
        with self._turn:
            X, predictor = self._ready(X)
            if self._form == "labels":
                return self.classes_[predictor.top(X, 1)[0][:, 0]]
            chosen = predictor.chosen(X)
        if self._form == "lists":
            return [self.classes_[chosen.indices[low:high]].tolist() for low, high in pairwise(chosen.indptr.tolist())]
        return chosen.toarray() if self._form == "dense" else chosen

    @with_probabilities
    def predict_proba(self, X: Any) -> Float64s:
        """Return the probability of each label for each example, float64[n_samples, n_classes].

        They are independent of each other; only if each example has one label, rows sum to 1.
        """
        with self._turn:
            X, predictor = self._ready(X)
            p: Float64s = predictor.probabilities(X)
        return p / p.sum(axis=1, keepdims=True) if self._form == "labels" else p

    @with_probabilities
    def decision_function(self, X: Any) -> Float64s:
        """Return the log odds of each label for each example, float64[n_samples, n_classes].

        If each example has one of two labels, it is float64[n_samples], that of the second.
        """
        p = self.predict_proba(X)
        if self._form == "labels" and len(self.classes_) == 2:
            p = p[:, 1]
        odds: Float64s = np.log(p / np.maximum(1 - p, np.finfo(np.float64).epsneg))
        return odds

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of the examples, by weight, whose predicted labels are exactly their labels `y`."""
        X, y, weight = map(collected, (X, y, sample_weight))
        with self._turn:
            check_is_fitted(self)
            if self._form == "labels":
                return float(super().score(X, y, weight))
            given = self._checked_targets(y, goes_on=True)
            X, predictor = self._ready(X)
            predicted = predictor.chosen(X)
        labels, size = self._labels.converted(given.labels), len(self.classes_)
        column = np.minimum(np.searchsorted(self.classes_, labels), size - 1)
        column[self.classes_[column] != labels] = size  # is never predicted
        predicted.resize(predicted.shape[0], size + 1)
        return float(accuracy_score(matrix(given.starts, column, size + 1), predicted, sample_weight=weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
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
    if not isinstance(classifier, Estimator):
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
