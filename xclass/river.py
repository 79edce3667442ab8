"""Provide classifiers with the interface of River, for any reduction of xclass.

    from xclass.river import Classifier, MultiLabelClassifier

The extra `river` installs what it needs, see `errors.install_extra`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from .errors import DataError, UsageError, install_extra

try:
    from river import base
except ImportError:
    raise ImportError(f"xclass.river needs River; {install_extra('river')}") from None

from .api import configuration
from .api.learner import Learner
from .data import class_names
from .data.array_input import is_missing
from .data.frames import Frame
from .data.schema import TEXT, Schema
from .options.declare import options_of
from .reductions.core import probabilities
from .system.printable import short_repr

if TYPE_CHECKING:
    import pandas as pd


class _Labels:
    """Map labels, which may be of any type, to the names of a learner's classes."""

    def __init__(self, reduction: str, classes: int | None, **options: Any) -> None:
        self.reduction, self.classes, self.options = reduction, classes, options
        try:
            self.learner = Learner(reduction, classes, **{"learn_names": True, **options})
        except configuration.OptionOfRun as error:
            raise error.of_attribute("learner") from None
        self._names: dict[Hashable, str] = {}  # label -> name of its class; equal labels are one key
        self._labels: dict[str, Hashable] = {}  # name of a class -> label
        self._keys: dict[str, Hashable] = {}  # key of that name -> label

    def _name(self, label: Any) -> str | None:
        """Return the name of a label's class, None for no label."""
        if label is None:
            return None
        if is_missing(label):
            raise DataError(f"the label {short_repr(label)} is a missing value; give None for no label")
        if isinstance(label, np.generic):
            label = label.item()
        if label in self._names:
            return self._names[label]
        name = class_names.in_lists(class_names.spelled(label))
        if not name:
            raise DataError(f"the label {short_repr(label)} is empty text; give None for no label")
        other = self._keys.setdefault(class_names.key_of(name), label)
        if other != label:
            raise DataError(
                f"the labels {short_repr(label)} and {short_repr(other)} are both written {short_repr(name)}, where "
                "blanks and _ are the same, and commas and ;; give labels that differ as text"
            )
        self._names[label], self._labels[name] = name, label
        return name

    def _label(self, name: str | None) -> Any:
        return None if name is None else self._labels.get(name, name)


class Classifier(_Labels, base.MiniBatchClassifier):
    """Classify by a reduction of xclass, which learns from one example after the other.

    A feature may have any name. Its value is a number, a bool, or text: the feature is then the name together with the
    text. None stands for a missing value. A label is text, a number, a bool, or anything else that `str` tells apart.

    Parameters
    ----------
    reduction : str, default "multiclass"
        Name of a reduction or preset as in `xclass.Learner`, except "scalar" and "softmax_tree".
    classes : int, optional
        Number of classes, for the reductions that need it.
    top_k : int, default 100
        Number of classes to which `predict_proba_one` gives probabilities, the most probable ones.
    **options
        Further options of `xclass.Learner`, such as `bits=24`.

    Attributes
    ----------
    learner : xclass.Learner
        The learner. Its `save` writes a model with the names of the labels, which the command and `xclass.load` read.

    Examples
    --------
    >>> from river import metrics
    >>> from xclass.river import Classifier
    >>> model = Classifier(bits=14)
    >>> accuracy = metrics.Accuracy()
    >>> examples = [({"sunny": True, "temperature": 0.9}, "dry"), ({"sky": "grey", "temperature": 0.2}, "wet")] * 10
    >>> for x, y in examples:
    ...     y_pred = model.predict_one(x)
    ...     if y_pred is not None:
    ...         accuracy.update(y, y_pred)
    ...     model.learn_one(x, y)
    >>> accuracy
    Accuracy: 89.47%
    >>> model.predict_one({"sky": "grey"})
    'wet'
    >>> sorted(model.predict_proba_one({"sky": "grey"}))
    ['dry', 'wet']
    """

    def __init__(
        self, reduction: str = "multiclass", classes: int | None = None, top_k: int = 100, **options: Any
    ) -> None:
        if reduction == "scalar":
            raise UsageError("reduction: 'scalar' learns numbers; choose another reduction for classes")
        record = configuration.record_of(reduction)
        if record is not None and record.labels == "multilabel":
            raise UsageError(f"reduction: {reduction!r} learns lists of labels; give it to MultiLabelClassifier")
        if record is not None and record.learns_at_end:
            raise UsageError(
                f"reduction: {reduction!r} learns from all examples at the end of the data, which River never reaches; "
                "choose another one, such as 'multiclass', or use xclass.Learner"
            )
        configuration.checked_value("top_k", options_of(probabilities.ListingOptions)["top_k"], top_k)
        self.top_k = top_k
        super().__init__(reduction, classes, **options)

    @property
    def _multiclass(self) -> bool:
        """Return whether there may be more than two labels, as River asks."""
        return True

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        """Yield the parameters for River's own checks."""
        yield {"bits": 14}
        yield {"reduction": "log_multi", "classes": 10, "bits": 14}

    # single examples

    def learn_one(self, x: dict[Any, Any], y: Any, w: float = 1.0) -> None:
        """Learn from an example with the features `x`, name -> value, the label `y`, None for none, and the weight `w`.

        If a value, the label or the weight is not allowed, DataError is raised, and nothing is learned.
        """
        self.learner.learn(_sorted(x), self._name(y), w)

    def predict_one(self, x: dict[Any, Any], **kwargs: Any) -> Any:
        """Predict the label of an example with the features `x`, name -> value; None before any label was learned."""
        return self._label(self.learner.predict(_sorted(x)))

    def predict_proba_one(self, x: dict[Any, Any], **kwargs: Any) -> dict[Any, float]:
        """Predict the probabilities of the `top_k` most probable labels; NotImplementedError if there are none.

        Returns
        -------
        probabilities : dict
            Label -> probability, the most probable one first. The probabilities are scaled so that their sum is 1. If
            at most `top_k` labels were learned, all of them are listed. Empty before any label was learned.
        """
        self._require_probabilities()
        return self._distribution(self.learner.predict(_sorted(x), self.top_k))

    # mini-batches

    def learn_many(self, X: pd.DataFrame, y: pd.Series, w: pd.Series | None = None) -> None:
        """Learn from the rows of a DataFrame, exactly as `learn_one` does from one row after the other.

        A missing label is None, which a Series of text may hold as NaN. Errors are as in `learn_one`.
        """
        self.learner.learn_many(self._rows(X), [self._name(label) for label in _labels(y)], w)

    def predict_many(self, X: pd.DataFrame) -> pd.Series:
        """Return a Series of the labels predicted for the rows of a DataFrame; None before any label was learned."""
        import pandas as pd

        predicted = [self._label(name or None) for name in self.learner.predict_many(self._rows(X))]
        return pd.Series(predicted, index=X.index, dtype=None if predicted else object)

    def predict_proba_many(self, X: pd.DataFrame) -> pd.DataFrame:
        """Predict the probabilities of the `top_k` most probable labels of each row of a DataFrame.

        Returns
        -------
        probabilities : DataFrame of shape (n, m)
            Rows as `predict_proba_one` returns them. A column for each label that is listed for any row; 0 where it is
            not listed.
        """
        import pandas as pd

        self._require_probabilities()
        names, p = self.learner.predict_many(self._rows(X), self.top_k)
        listed = [
            self._distribution([pair for pair in zip(*row, strict=True) if pair[0] is not None])
            for row in zip(names.tolist(), p.tolist(), strict=True)
        ]
        columns = list(dict.fromkeys(label for row in listed for label in row))
        values = [[row.get(label, 0.0) for label in columns] for row in listed]
        return pd.DataFrame(np.reshape(values, (len(listed), len(columns))), index=X.index, columns=columns)

    # rows, labels and probabilities

    def _rows(self, X: pd.DataFrame) -> Any:
        """Return a DataFrame as examples for the learner: itself if all features are numbers, or else dictionaries."""
        import pandas as pd

        if not isinstance(X, pd.DataFrame):
            raise TypeError(f"X is {type(X).__name__}; give a pandas.DataFrame, or use xclass.Learner for other tables")
        kinds = self.learner.core.schema.names.get("", {})
        numeric = (pd.api.types.is_numeric_dtype(kind) or pd.api.types.is_bool_dtype(kind) for kind in X.dtypes)
        if all(numeric) and not any(kinds.get(str(name)) == TEXT for name in X.columns):
            return Frame(X[sorted(X.columns, key=str)], Schema(), keeps=False)  # features may come and go, as in rows
        return [_sorted(row) for row in X.to_dict("records")]

    def _distribution(self, pairs: list[tuple[str, float]]) -> dict[Any, float]:
        """Return label -> probability from names and probabilities; all labels if there are at most `top_k`."""
        total = sum(p for _, p in pairs)
        scaled = {self._label(name): p / total for name, p in pairs} if total > 0 else {}
        seen = self.learner.classes
        assert isinstance(seen, list)
        if len(scaled) < len(seen) <= self.top_k:
            share = 0.0 if scaled else 1.0 / len(seen)
            for name in seen:
                scaled.setdefault(self._label(name), share)
        return scaled

    def _require_probabilities(self) -> None:
        """Raise NotImplementedError, as River expects, if the reduction does not estimate probabilities."""
        if not self.learner.core.config.reduction.probabilities:
            raise NotImplementedError(f"{self.reduction} does not estimate probabilities")


class MultiLabelClassifier(_Labels, base.MultiLabelClassifier):
    """Predict which of several labels an example has, by a reduction of xclass that learns lists of labels.

    Features and labels are as those of `Classifier`.

    Parameters
    ----------
    reduction : str, default "multilabel"
        "multilabel", "multilabel_oaa" or "plt", see `xclass.Learner`.
    classes : int, optional
        Number of labels that may occur as True, for the reductions that need it.
    **options
        Further options of `xclass.Learner`, such as `bits=24`.

    Attributes
    ----------
    learner : xclass.Learner
        As in `Classifier`.

    Examples
    --------
    >>> from xclass.river import MultiLabelClassifier
    >>> model = MultiLabelClassifier(bits=14)
    >>> for _ in range(10):
    ...     model.learn_one({"tea": 1, "cup": 1}, {"hot": True, "sweet": False})
    ...     model.learn_one({"cake": 1}, {"hot": False, "sweet": True})
    >>> model.predict_one({"cake": 1, "fork": 1})
    {'hot': False, 'sweet': True}
    """

    def __init__(self, reduction: str = "multilabel", classes: int | None = None, **options: Any) -> None:
        record = configuration.record_of(reduction)
        if record is not None and record.labels != "multilabel":
            raise UsageError(f"reduction: {reduction!r} learns one label an example; give it to Classifier")
        super().__init__(reduction, classes, **options)

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        """Yield the parameters for River's own checks."""
        yield {"bits": 14}
        yield {"reduction": "multilabel_oaa", "classes": 10, "bits": 14}
        yield {"reduction": "plt", "classes": 10, "bits": 14}

    def learn_one(self, x: dict[Any, Any], y: dict[Any, bool], w: float = 1.0) -> None:
        """Learn from an example with the features `x`, the labels `y`, label -> whether it has it, and the weight `w`.

        A label that is not in `y` is False. If something is not allowed, DataError is raised, and nothing is learned.
        """
        if not isinstance(y, Mapping):
            raise TypeError(f"y is {type(y).__name__} {short_repr(y)}; give a dictionary of labels, label -> bool")
        missing = [label for label, has_it in y.items() if is_missing(label) or is_missing(has_it)]
        if missing:
            raise DataError(f"the label {short_repr(missing[0])} is {y[missing[0]]}; give True or False for each label")
        names = {label: self._name(label) for label in y}
        self.learner.learn(_sorted(x), [names[label] for label, has_it in y.items() if has_it], w)

    def predict_one(self, x: dict[Any, Any], **kwargs: Any) -> dict[Any, bool]:
        """Return for each label seen whether the example with the features `x` has it."""
        chosen = set(self.learner.predict(_sorted(x)))
        return {label: name in chosen for label, name in self._names.items()}

    def predict_proba_one(self, x: dict[Any, Any], **kwargs: Any) -> dict[Any, dict[bool, float]]:
        """Return for each label seen the probabilities of False and True; they are independent of other labels."""
        seen = self.learner.core.names.highest_seen
        p = dict(self.learner.predict(_sorted(x), seen)) if seen else {}
        return {label: {False: 1 - p.get(name, 0.0), True: p.get(name, 0.0)} for label, name in self._names.items()}


def _sorted(x: Mapping[Any, Any]) -> dict[Any, Any]:
    """Return features in the order of their names, on which the last digits of the sums of weights depend."""
    if not isinstance(x, Mapping):
        raise TypeError(f"x is {type(x).__name__} {short_repr(x)}; give a dictionary of features, name -> value")
    return {name: x[name] for name in sorted(x, key=str)}


def _labels(y: pd.Series) -> Any:
    """Return the labels of a Series; a missing one of a Series that can hold it is None, as it was given."""
    import pandas as pd

    if isinstance(y, pd.Series) and not (isinstance(y.dtype, np.dtype) and y.dtype.kind in "iufb"):
        return [None if missing else label for label, missing in zip(y, y.isna(), strict=True)]
    return y
