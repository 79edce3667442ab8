"""Provide `Learner` and `load`, the public interface of the library; a run of the command uses a `Learner`, too."""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from os import PathLike
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import UsageError, XclassWarning
from ..kernels import jit
from ..reductions import registry
from ..reductions.core.contract import BatchTask
from ..reductions.core.probabilities import Options as ListingOptions
from ..reductions.core.spec import Wanted
from ..system import exclusive, thread_limit
from ..text import reader
from . import arrays, configuration, files, inputs, model_contents
from .batch_learner import BatchLearner, Outcome, Scores, T
from .configuration import Config, LearnerUse
from .inputs import Example, Examples
from .learner_core import LearnerCore
from .model_contents import Contents
from .progress import Progress

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from ..explain.records import Explanation


class Learner(BatchLearner):
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
        option that may be repeated on the command line takes a list. `feature_hash="identity"` belongs to the library
        alone: the number of a matrix's column is then the index of the feature itself, and not a name to hash.

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
    >>> model = xclass.Learner(bits=12)
    >>> for _ in range(10):
    ...     _ = model.learn({"sunny": 1, "temperature": 0.9}, "dry")
    ...     _ = model.learn({"cold": 1, "temperature": 0.2}, "wet")
    >>> model.predict({"sunny": 1})
    'dry'
    >>> model.predict_many([{"sunny": 1}, {"cold": 1, "temperature": 0.1}]).tolist()
    ['dry', 'wet']
    >>> model.close()
    """

    def __init__(self, reduction: str = "multiclass", classes: int | None = None, **options: Any) -> None:
        self.identity = _is_identity(options.pop("feature_hash", "names"))
        with configuration.KEYWORDS:
            self._configure(reduction, classes, options)

    @classmethod
    def from_command(cls, command: str | Sequence[str], reduction: str = "multiclass") -> Learner:
        """Return a new learner with options that are written as on the command line.

        Parameters
        ----------
        command : str or sequence of str
            Options such as `"--recall_tree 1000 -b 24"`, as one text, which is split as a shell splits it, or as a list
            of words. Options that belong to a run of the command, such as `-d`, `-f` or `--passes`, are refused.
        reduction : str, default "multiclass"
            Reduction or preset if the options name none.

        Raises
        ------
        UsageError
            If an option is unknown, belongs to a run of the command, has a value that is not allowed, or contradicts
            another option.

        Examples
        --------
        >>> import xclass
        >>> with xclass.Learner.from_command("--oaa 3 -b 12 -l 0.3") as model:
        ...     model, model.options["bits"], model.options["learning_rate"]
        (xclass.Learner('oaa', classes=3), 12, 0.3)
        """
        learner: Learner = cls.__new__(cls)
        learner._configure(*configuration.of_words(command, reduction))
        return learner

    @classmethod
    def from_config(
        cls, config: Config, use: LearnerUse, contents: Contents | None = None, identity: bool = False
    ) -> Learner:
        """Return a learner with options that are already resolved.

        The caller has to call `jit.activate` first.

        Parameters
        ----------
        config, use, contents : see `LearnerCore`
        identity : whether the number of a matrix's column is the index of its feature
        """
        learner: Learner = cls.__new__(cls)
        learner.identity = identity
        learner._start(config, use, contents)
        return learner

    @classmethod
    def for_passes(cls, passes: int, reduction: str, classes: int | None, **options: Any) -> Learner:
        """Return a new learner whose defaults suit a number of passes, as those of a run with `--passes` do.

        Parameters
        ----------
        passes : number of passes that the learner will make
        reduction, classes, options : as for the constructor; labels become names only with `learn_names`
        """
        identity = _is_identity(options.pop("feature_hash", "names"))
        jit.activate(hide_scipy=False)
        use = LearnerUse(passes=passes)
        with configuration.KEYWORDS:
            return cls.from_config(configuration.configured(reduction, classes, options, use), use, None, identity)

    # learning and predicting

    def learn(self, example: Example, label: Any = None, weight: float | None = None) -> Any:
        """Predict a single example and then learn from it.

        Parameters
        ----------
        example : str or dict
            A line of VW text, `label | features`; plain text, whose words are features; a dictionary from names of
            features to numbers or text; or a dictionary from names of namespaces to such dictionaries.
        label : str or number, optional
            Its label, unless VW text contains it; None for no label.
        weight : float, optional
            Its weight, 1 unless VW text contains another one.

        Returns
        -------
        prediction : int, str, float or None
            What was predicted before learning: a class, or a number for "scalar". None if there is no class to predict
            yet, or while a learner holds examples, see `learn_many`.

        Raises
        ------
        DataError
            If the example is malformed or the label is not one of the classes.
        UsageError
            If `example` is not a single example, or the learner cannot learn from it, see `learn_many`.

        Examples
        --------
        >>> import xclass
        >>> with xclass.Learner(bits=12) as model:
        ...     first = model.learn("tea | kettle leaf")
        ...     second = model.learn({"kettle": 1, "leaf": 0.5}, "tea")
        >>> first, second
        (None, 'tea')
        """

        def learned() -> tuple[Any, tuple[str, ...]]:
            self.use_names_if(lambda: inputs.have_names(example, label))
            tasks = list(self.learn_batches([self._example(example, label, weight, learn=True)]))
            return self._first_prediction(tasks), self.take_notes()

        prediction, notes = self._learning(learned)
        _warn(notes)
        return prediction

    def predict(self, example: Example, k: int | None = None) -> Any:
        """Predict the label of a single example.

        Parameters
        ----------
        example : str or dict
            As in `learn`. A label in it is not used.
        k : int, optional
            Number of classes to list.

        Returns
        -------
        prediction : int, str, float or None
            A class, or a number for "scalar"; None if there is no class to predict yet.
            With `k`: a list of up to k pairs of a class and its probability, the most probable first.

        Raises
        ------
        DataError
            If the example is malformed.
        UsageError
            If `example` is not a single example, or if the reduction does not estimate the probabilities that `k` asks
            for.

        Examples
        --------
        >>> import xclass
        >>> with xclass.Learner("oaa", classes=2, bits=10, named_labels="dry,wet") as model:
        ...     for _ in range(10):
        ...         _ = model.learn("dry | sunny warm"), model.learn("wet | rainy cold")
        ...     best = model.predict("| cold")
        ...     listed = model.predict("| cold", k=2)
        >>> best, [name for name, probability in listed]
        ('wet', ['wet', 'dry'])
        """
        try:
            with self.turn.lock:
                batch = self._example(example, None, None, learn=False)
                if k is None:
                    prediction = self._first_prediction(list(self._predict_tasks(batch)))
                else:
                    labels, p = self.top([batch], k)
                    listed = zip(labels[0].tolist(), p[0].tolist(), strict=True)
                    prediction = [pair for pair in listed if pair[0] not in (-1, None)]
                notes = self.take_notes()
        except SystemError as error:  # numba's dispatcher makes it of Ctrl-C within a call of a kernel
            raise (error.__cause__ or error) from None
        _warn(notes)
        return prediction

    learn_one, predict_one = learn, predict  # the names of these methods in River

    def learn_many(
        self, X: Examples, y: Any = None, sample_weight: ArrayLike | None = None, verbose: int = 0
    ) -> Outcome:
        """Predict each example and then learn from it, one example after the other.

        Some learners need to see examples before they learn from any: `cpt_tree="kmeans"` and `"huffman"` need
        `tree_sample` examples. They hold the examples until they have seen enough. The outcome covers the examples
        that were learned in this call: none while they are held, and then all that were held and the new ones.

        Parameters
        ----------
        X : sparse matrix, array, DataFrame, Batch, str, or iterable of str or dict
            n examples. Column j of a matrix (`indptr`, `indices` and `data`, as SciPy's CSR matrices, a method `tocsr`,
            or a dense array) is the feature named `j`. A column of a DataFrame is a feature of its name if it holds
            numbers, and else a namespace of the words of its text or of its categories; the columns of the first
            table decide how later ones are read. A text without a bar is plain text, whose words are features; one
            with a bar is a line of VW text.
        y : array-like of shape (n,), optional
            Labels, numbers or names; None or NaN for no label. The labels of VW text are in the text.
        sample_weight : array-like of shape (n,), optional
            Weights, finite and at least 0.
        verbose : int, default 0
            1 shows a bar of the examples learned on standard error, with the mean loss of the predictions made before
            learning; 2 writes a line at the end in its place.

        Returns
        -------
        outcome : Outcome
            Predictions made before learning, their losses, and warnings.

        Raises
        ------
        DataError
            If an example is malformed, or a value, label or weight is not allowed. Nothing is learned then.
        UsageError
            If the learner needs to see all of the data first and `preview` was not called, if it is closed, or if the
            examples are of a type that is not supported.

        Examples
        --------
        >>> import xclass
        >>> model = xclass.Learner("oaa", classes=2, bits=10)
        >>> model.learn_many("1 | sunny warm\\n2 | rainy cold").prediction.tolist()
        [1, 1]
        >>> from scipy.sparse import csr_matrix
        >>> _ = model.learn_many(csr_matrix([[1.0, 0.5], [0.0, 2.0]]), [1, 2])
        >>> model.examples
        4
        >>> model.close()
        """
        X, y, sample_weight = map(inputs.collected, (X, y, sample_weight))

        def learned() -> Outcome:
            self.use_names_if(lambda: inputs.have_names(X, y))
            batches = self._batches(X, y, sample_weight, learn=True)
            with self.shown(verbose, inputs.count(X), "learning"):
                return self._outcome(self.learn_batches(batches))

        outcome = self._learning(learned)
        _warn(outcome.warnings)
        return outcome

    def preview(self, X: Examples, y: Any = None, sample_weight: ArrayLike | None = None) -> bool:
        """Show examples to a learner that needs to see some before it learns from any.

        This is required if the learner needs to see all of the data (`preview_size == 0`, set by `tree_sample=0`), and
        optional if it needs to see some. Pass the same examples to `learn` afterwards; its first call ends the preview.

        Parameters
        ----------
        X, y, sample_weight
            As in `learn_many`.

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
        ...     _ = model.learn_many(lines)
        ...     model.predict_many("| sunny warm").tolist()
        [1]
        """
        X, y, sample_weight = map(inputs.collected, (X, y, sample_weight))

        def previewed() -> tuple[str, ...]:
            if self.preview_size is None or self._pending:
                raise UsageError(
                    "learn_many() was already called; call preview() before it"
                    if self._pending
                    else "this learner does not need to see examples first, or has seen enough; call learn_many()"
                )
            self.use_names_if(lambda: inputs.have_names(X, y))
            batches = self._batches(X, y, sample_weight, learn=True)
            self._previewed = True
            for batch in batches:
                for task in self.tasks(batch, True, self.clock):
                    self._wants_more = self._wants_more and self.reduction.preview(task)
            return self.take_notes()

        _warn(self._learning(previewed))
        return self._wants_more

    def predict_many(self, X: Examples, k: int | None = None) -> Any:
        """Predict the label of each example, or list its k most probable classes.

        While a learner holds examples because it has not seen enough of them, it predicts like a new learner.

        Parameters
        ----------
        X : sparse matrix, array, DataFrame, Batch, str, or iterable of str or dict
            n examples, as in `learn_many`. Labels are checked but not used.
        k : int, optional
            Number of classes to list, at least 1.

        Returns
        -------
        predictions : ndarray of shape (n,)
            Classes (int64), the names of classes (object) if labels are names, or numbers (float64) for "scalar".
            With `k`, two arrays instead:
        labels : ndarray of shape (n, k)
            Classes (int64), -1 beyond the last candidate; or the names of classes (object), None beyond the last
            candidate. The most probable class is the first.
        probabilities : ndarray of shape (n, k), dtype float64
            Probability of each class, 0 beyond the last candidate.

        Raises
        ------
        DataError
            If an example is malformed.
        UsageError
            If the learner is closed, if the examples are of a type that is not supported, if `k` is not a whole number
            of at least 1, or if the reduction does not estimate the probabilities that `k` asks for.

        Examples
        --------
        >>> import xclass
        >>> model = xclass.Learner("oaa", classes=3, bits=10)
        >>> _ = model.learn_many(["1 | sunny warm", "2 | rainy cold", "3 | snow cold"] * 10)
        >>> model.predict_many(["| warm", "| cold rainy"]).tolist()
        [1, 2]
        >>> labels, probabilities = model.predict_many(["| warm", "| cold rainy"], k=2)
        >>> labels[1].tolist(), bool(probabilities[1, 0] > probabilities[1, 1])
        ([2, 3], True)
        >>> model.close()
        """
        X = inputs.collected(X)

        def predicted() -> Any:
            batches = self._batches(X)
            return self.predictions(batches) if k is None else self.top(batches, k)

        return self._answer(predicted)

    def predict_each(self, X: Examples, result: Callable[[BatchTask], T], wanted: Wanted | None = None) -> list[T]:
        """Predict examples, and return what a function makes of each task of the reduction; classes are numbers.

        Parameters
        ----------
        X : as in `predict_many`
        result : the function; arrays of the task are valid until it returns
        wanted : results in addition to predictions; None for none

        Raises
        ------
        DataError, UsageError
            As in `predict_many`.
        """
        X = inputs.collected(X)

        return self._answer(
            lambda: [result(task) for batch in self._batches(X) for task in self._predict_tasks(batch, wanted)]
        )

    def probabilities(self, X: Examples) -> tuple[np.ndarray, np.ndarray]:
        """Return the probability of every class for each example.

        Parameters
        ----------
        X : sparse matrix, array, DataFrame, Batch, str, or iterable of str or dict
            n examples, as in `learn_many`. Labels are checked but not used.

        Returns
        -------
        classes : ndarray of shape (m,)
            Classes (int64) in rising order, or their names (object).
        probabilities : ndarray of shape (n, m), dtype float64
            Probability of each class for each example. Rows sum to 1 unless some probability belongs to classes that
            the learner has not seen, or does not list. The predicted class is the most probable one, unless the search
            for it is limited (`cpt` without `exact`, `trees` without `rerank`).

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
        >>> _ = model.learn_many(["1 | sunny warm", "2 | rainy cold"] * 10)
        >>> classes, probabilities = model.probabilities(["| warm", "| cold rainy"])
        >>> classes.tolist()
        [1, 2]
        >>> probabilities.shape
        (2, 2)
        >>> model.close()
        """
        X = inputs.collected(X)

        def predicted() -> tuple[np.ndarray, np.ndarray]:
            tasks = list(self._predict_listings(self._batches(X), ListingOptions(probabilities=True)))
            labels, p = arrays.probability_matrix([task.class_lists for task in tasks if task.class_lists is not None])
            return self._class_labels(labels, None), p

        return self._answer(predicted)

    def explain(self, example: Example, k: int = 2, label: Any = None) -> Explanation:
        """Explain the prediction of a single example: what the scores of the classes are sums of.

        Parameters
        ----------
        example : str or dict
            As in `predict`.
        k : int, default 2
            Number of classes to explain, the most probable first. Learners without scores of classes explain one.
        label : str or number, optional
            The right class, unless VW text contains it; it is explained, too.

        Returns
        -------
        explanation : Explanation
            The prediction; for each class its score, its probability, the shares of the features in the score, and
            the path through each tree.

        Raises
        ------
        DataError
            If the example is malformed or the label is not one of the classes.
        UsageError
            If `example` is not a single example, or `k` is not a whole number of at least 1.

        Examples
        --------
        >>> import xclass
        >>> with xclass.Learner("oaa", classes=2, bits=10, named_labels="dry,wet") as model:
        ...     for _ in range(10):
        ...         _ = model.learn("dry | sunny warm"), model.learn("wet | rainy cold")
        ...     explained = model.explain("| cold windy")
        >>> explained.prediction, [entry.label for entry in explained.classes]
        ('wet', ['wet', 'dry'])
        >>> [share.name for share in explained.classes[0].shares]
        ['cold', 'Constant']
        """
        from ..explain import records

        def explained() -> Explanation:
            batch = self._example(example, label, None, learn=False)
            (explanation,) = self._explanations([batch], inputs.written_by_program(self._inputs.opened([example])), k)
            self._inputs.notes += records.notes([explanation])
            return explanation

        return self._answer(explained)

    def explain_many(
        self, X: Examples, k: int = 2, y: Any = None, feature_names: Sequence[Any] | None = None
    ) -> list[Explanation]:
        """Explain the prediction of each example; this takes some milliseconds for each.

        Parameters
        ----------
        X : sparse matrix, array, DataFrame, Batch, str, or iterable of str or dict
            n examples, as in `learn_many`. Features of a Batch that was not read from VW text have no names.
        k : int, default 2
            As in `explain`.
        y : array-like of shape (n,), optional
            Their labels, which are explained, too.
        feature_names : sequence of str, optional
            Names of the columns of a matrix, such as `get_feature_names_out()` of a vectoriser.

        Returns
        -------
        explanations : list of Explanation
            `print` writes one as text, and a notebook shows it.

        Raises
        ------
        DataError, UsageError
            As in `predict_many`.

        Examples
        --------
        >>> import xclass
        >>> with xclass.Learner("oaa", classes=2, bits=10) as model:
        ...     _ = model.learn_many(["1 | sunny warm", "2 | rainy cold"] * 10)
        ...     explanations = model.explain_many([{"warm": 1}, {"cold": 1, "rainy": 1}])
        >>> [explained.prediction for explained in explanations]
        [1, 2]
        """
        from ..explain import records

        X, y = inputs.collected(X), inputs.collected(y)

        def explained() -> list[Explanation]:
            given = self._inputs.opened(X)
            explanations = list(self._explanations(self._batches(given, y), inputs.written_by_program(given), k))
            self._inputs.notes += records.notes(explanations)
            return explanations

        explanations = self._answer(explained)
        if feature_names is not None:
            explanations = [records.with_feature_names(explanation, feature_names) for explanation in explanations]
        return explanations

    def scores(self, X: Examples) -> Scores:
        """Return the scores of the classes whose regressors are compared for each example.

        With "oaa" these are all classes in rising order, so `scores(X).scores.reshape(n, -1)` is a matrix as that of
        `decision_function` in scikit-learn. With "recall_tree" they are the candidates that the tree proposes.

        Parameters
        ----------
        X : sparse matrix, array, DataFrame, Batch, str, or iterable of str or dict
            n examples, as in `learn_many`. Labels are checked but not used.

        Returns
        -------
        scores : Scores
            Classes and scores of all examples.

        Raises
        ------
        UsageError
            If the reduction does not compare scores of classes.
        DataError
            If an example is malformed.

        Examples
        --------
        >>> import xclass
        >>> with xclass.Learner("oaa", classes=2, bits=10) as model:
        ...     _ = model.learn_many(["1 | sunny warm", "2 | rainy cold"] * 10)
        ...     scores = model.scores(["| warm", "| cold rainy"])
        >>> scores.classes.tolist()
        [1, 2, 1, 2]
        >>> (scores.scores.reshape(2, 2) > 0).tolist()
        [[True, False], [False, True]]
        """
        record = self.config.reduction
        if not record.class_scores:
            names = ", ".join(other.name for other in registry.REDUCTIONS if other.class_scores)
            raise UsageError(f"{record.name} does not compare scores of classes; choose one of {names}")
        X = inputs.collected(X)

        def predicted() -> Scores:
            wanted = Wanted(scores=True)
            tasks = [task for batch in self._batches(X) for task in self._predict_tasks(batch, wanted)]
            start, labels, scores = arrays.joined_scores(tasks)
            return Scores(start, self._class_labels(labels, None), scores)

        return self._answer(predicted)

    def learn_file(
        self,
        *paths: str | PathLike[str],
        passes: int = 1,
        format: str = "auto",
        label_column: str | int | None = None,
        verbose: int = 0,
        **columns: Any,
    ) -> dict[str, float]:
        """Learn from files, as the command does with `-d`.

        Parameters
        ----------
        *paths : str or path-like
            Files of examples, one after the other, plain or compressed (`.gz`, `.bz2`, `.xz`, `.zst`).
        passes : int, default 1
            Number of passes over the files. `end_pass` is called after each.
        format : {"auto", "vw", "fasttext", "libsvm", "xmc", "csv", "jsonl"}, default "auto"
            Format of the files; "auto" chooses by the first lines and the name of the first file.
        label_column : str or int, optional
            Column of the label in a CSV file, by its name or its number from 1, or key of the label in JSON lines. The
            default is that of the tables learned before, else `label`, else the first column.
        verbose : int, default 0
            1 shows a bar for each pass, 2 writes a line after each, as in `learn_many`.
        **columns
            The options of the command that say how columns are read: lists of names `columns`, `ignore_column` and
            `header`, and the dictionary `column_kind` from names to "number", "text" or "category".

        Returns
        -------
        figures : dict
            Figures of the last pass, from predictions made before learning: "examples", "weighted_examples" (the sum of
            the weights of the labelled examples), "average_loss" (NaN without labels) and "features".

        Raises
        ------
        DataError
            If a file cannot be read or a line is malformed; the examples before that line are learned then. Also if
            none of the examples has a label to learn from.
        UsageError
            If `format` is none of the words above, or an option names a column that a file does not have.

        Examples
        --------
        >>> import os, tempfile
        >>> import xclass
        >>> path = os.path.join(tempfile.mkdtemp(), "train.vw")
        >>> with open(path, "w") as file:
        ...     _ = file.write("dry | sunny warm\\nwet | rainy cold\\n" * 10)
        >>> with xclass.Learner(bits=12) as model:
        ...     figures = model.learn_file(path, passes=2)
        ...     model.evaluate(path)["average_loss"]
        0.0
        >>> figures["examples"]
        20
        """
        if not isinstance(passes, (int, np.integer)) or passes < 1:
            raise UsageError(f"passes: {passes!r} is not a whole number of at least 1")
        _ = self.reduction
        given = files.options_of(paths, format, label_column=label_column, **columns)
        examples = None
        for number in range(passes):
            shown = functools.partial(self.shown, verbose, examples, f"pass {number + 1}")
            counted, notes = Progress(self.config.reduction.labels, None), list[str]()
            try:
                self._learning(functools.partial(self._learn_pass, given, counted, notes, shown))
            finally:  # an error does not concern the examples before it
                _warn(notes)
            examples = counted.examples
        return _figures(counted)

    def _learn_pass(
        self,
        given: reader.Options,
        counted: Progress,
        notes: list[str],
        shown: Callable[[], AbstractContextManager[None]],
    ) -> None:
        """Learn from files in one pass, count the examples in `counted`, and add the messages about them to `notes`."""
        self.use_names_if(lambda: files.are_names(given, "indexing" in self.config.given))
        try:
            with shown():
                self._learn_files(given, counted)
        finally:
            notes += self.take_notes()

    def _learn_files(self, given: reader.Options, counted: Progress) -> None:
        """Learn from files in one pass and count the examples in `counted`."""
        if self.preview_size is not None:
            for batch in self._inputs.read(given, learn=True):
                if not self.preview(batch):
                    break
        for batch in exclusive.until_interrupted(self._inputs.read(given, learn=True)):
            for task in self.learn_batches([batch]):
                counted.count(task)
        for task in self._end_preview() if self.preview_size is not None else []:
            counted.count(task)
        self._inputs.notes += self.preparation.idle_arguments(ended=True)
        self.reduction.end_pass()

    def evaluate(
        self, *paths: str | PathLike[str], format: str = "auto", label_column: str | int | None = None, **columns: Any
    ) -> dict[str, float]:
        """Predict the examples of files and compare the predictions with their labels; nothing is learned.

        Parameters
        ----------
        *paths, format, label_column, **columns
            Files of examples, as in `learn_file`.

        Returns
        -------
        figures : dict
            As in `learn_file`. For classes, "average_loss" is the error: the share of the labelled examples, by weight,
            whose prediction is not their label.

        Raises
        ------
        DataError
            If a file cannot be read or a line is malformed.
        """
        return self.evaluate_files(files.options_of(paths, format, label_column=label_column, **columns))

    def evaluate_files(self, given: reader.Options) -> dict[str, float]:
        """Predict the examples of files that options of the reader describe, as `evaluate` does."""
        _ = self.reduction
        counted, notes = Progress(self.config.reduction.labels, None), list[str]()

        def evaluated() -> None:
            try:
                for batch in exclusive.until_interrupted(self._inputs.read(given, learn=False)):
                    for task in thread_limit.each(self._predict_tasks(batch)):
                        counted.count(task)
            finally:
                notes.extend(self.take_notes())

        try:
            self._reading(evaluated)
        finally:
            _warn(notes)
        return _figures(counted)

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
        ...     first = model.learn_many(lines)  # held: fewer than 100 examples
        ...     second = model.end_pass()
        >>> len(first.prediction), len(second.prediction)
        (0, 2)
        """

        def ended() -> Outcome:
            learned = self._end_preview() if self.preview_size is not None else []
            self.reduction.end_pass()
            self._inputs.notes += self.preparation.idle_arguments(ended=True)
            return self._outcome(learned)

        outcome = self._learning(ended)
        _warn(outcome.warnings)
        return outcome

    def _answer(self, job: Callable[[], T]) -> T:
        """Call a function that does not change what was learned, and issue the messages about its examples."""
        answer, notes = self._reading(lambda: (job(), self.take_notes()))
        _warn(notes, 4)
        return answer

    # properties

    @property
    def classes(self) -> list[str] | int | None:
        """Return the names of the classes seen, the number of classes if labels are numbers, or None for "scalar"."""
        if self.config.reduction.labels != "multiclass":
            return None
        if self.names.class_list is not None:
            return self.names.names[: self.names.highest_seen]
        return self.spec.classes or self.reduction.classes_seen

    @property
    def options(self) -> dict[str, Any]:
        """Return the value of every option by the name of its keyword, defaults included."""
        return self.config.values()

    @property
    def average_loss(self) -> float | None:
        """Return the mean loss of the predictions made before learning from each example, or None without any."""
        return self.progress.average_loss

    def __reduce__(self) -> tuple[Any, ...]:
        """Return how to pickle the learner, as the bytes of its model file; raise UsageError where `save` does."""
        return _unpickled, (self._reading(self.saved_bytes), self.identity, bool(self.options.get("exact")))

    def __repr__(self) -> str:
        classes = self.spec.classes or None
        return f"xclass.Learner({configuration.chosen_name(self.config)!r}" + (
            f", classes={classes})" if classes is not None else ")"
        )

    # models

    def save(self, path: str | PathLike[str]) -> None:
        """Save a model, which `load` and the command line can read.

        An existing file, whatever it holds, is replaced, but only after all of the new file is written.

        Parameters
        ----------
        path : str or path-like
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
        ...     _ = model.learn_many(["1 | sunny warm", "2 | rainy cold"] * 10)
        ...     model.save(path)
        >>> os.path.exists(path)
        True
        """

        def save() -> None:
            self.check_learned()
            model_contents.save(files.path_of(path), self.contents)

        self._reading(save)

    def close(self) -> None:
        """Stop the threads of the learner and free its memory; it cannot be used afterwards.

        A call of another thread that has begun ends first. Leaving a `with` block closes the learner, too.
        """

        def close() -> None:
            self._pending.clear()
            LearnerCore.close(self)

        self.turn.complete(close)

    def __enter__(self) -> Learner:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _is_identity(feature_hash: object) -> bool:
    """Return whether the value of `feature_hash` is "identity"; raise UsageError if it is unknown."""
    if feature_hash not in ("names", "identity"):
        raise UsageError(f"feature_hash: {feature_hash!r} is none of 'names', 'identity'")
    return feature_hash == "identity"


def _figures(counted: Progress) -> dict[str, float]:
    """Return the figures of the summary as a program uses them."""
    loss = counted.average_loss
    return {
        "examples": counted.examples,
        "weighted_examples": counted.labelled_weight,
        "average_loss": math.nan if loss is None else loss,
        "features": counted.features,
    }


def _unpickled(data: bytes, identity: bool, exact: bool) -> Learner:
    """Return a learner from its pickle."""
    return _restored("the model in memory", identity, exact, lambda _: model_contents.from_bytes(data))


def _restored(name: str, identity: bool, exact: bool, read: Callable[[str], Contents]) -> Learner:
    """Return a learner from the model `name`, whose contents `read` returns."""
    jit.activate(hide_scipy=False)
    with configuration.KEYWORDS:
        contents = read(name)
        config = configuration.of_model(name, contents.options, {"exact": True} if exact else {})
    with model_contents.naming(name), configuration.KEYWORDS:
        return Learner.from_config(config, LearnerUse(loaded=True), contents, identity)


def _warn(notes: Sequence[str], level: int = 3) -> None:
    """Issue messages as Python warnings, which point at the caller of the public method, `level` calls above."""
    for note in notes:
        warnings.warn(note, XclassWarning, stacklevel=level)


def load(path: str | PathLike[str], feature_hash: str = "names", exact: bool = False) -> Learner:
    """Load a learner from a model file; it can predict and continue to learn.

    Parameters
    ----------
    path : str or path-like
        Path of a model that `Learner.save` or the command line has written.
    feature_hash : {"names", "identity"}, default "names"
        As in `Learner`. The model file does not store it.
    exact : bool, default False
        As `--exact`: whether to search the trees of `--cpt` and `--multiclass` until the most probable classes are
        certain. The model file does not store it.

    Returns
    -------
    learner : Learner
        The learner with the options of the model.

    Raises
    ------
    ModelError
        If the file cannot be read, is damaged, or is not a model.
    UsageError
        If `exact` has no effect on the model's reduction.

    Examples
    --------
    >>> import os, tempfile
    >>> import xclass
    >>> path = os.path.join(tempfile.mkdtemp(), "model.bin")
    >>> with xclass.Learner("oaa", classes=2, bits=10) as model:
    ...     _ = model.learn_many(["1 | sunny warm", "2 | rainy cold"] * 10)
    ...     model.save(path)
    >>> with xclass.load(path) as model:
    ...     model.predict_many(["| warm", "| cold rainy"]).tolist()
    [1, 2]
    """
    return _restored(files.path_of(path), _is_identity(feature_hash), exact, model_contents.load)
