"""Provide `Learner` and `load`, the public interface of the library."""

from __future__ import annotations

import contextlib
import functools
import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np

from ..data.batch import Batch
from ..data.schema import NUMBER
from ..errors import NotClassNumber, UsageError, XclassWarning
from ..kernels import jit
from ..reductions import presets, registry
from ..reductions.core.contract import BatchTask
from ..reductions.core.label_lists import MultilabelLearner
from ..reductions.core.spec import LearnerUse
from ..system import exclusive, terminal, thread_limit
from ..text import reader
from . import configuration, files, inputs, model_contents, results
from .inputs import Example, Examples, Inputs
from .labels import KindOfLabels
from .learner_core import LearnerCore
from .model_contents import ModelContents
from .progress import Progress
from .results import Outcome, Scores

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from ..explain.records import Explanation

T = TypeVar("T")
DEFAULT = "multiclass"  # reduction of labels that are no lists
Arguments: TypeAlias = tuple[str | None, int | str | None, dict[str, Any]]  # of `configuration.configured`


class Learner:
    """Learn to predict classes, or real numbers, from one example after the other.

    Parameters
    ----------
    reduction : str, optional
        Name of a reduction or preset in `xclass --help` without its dashes, such as "recall_tree", "oaa", "cpt" or
        "multiclass"; "scalar" learns real numbers. By default it is "multilabel" if labels of the first examples
        learned are lists, otherwise "multiclass".
    classes : int or str, optional
        Number of classes. It is required unless the reduction is "cpt", "hsm", "multiclass" or "scalar"; the last one
        has no classes. For "mach" it is the value of `--mach`, such as "8,256".
    **options
        Options by the long names of the command line without dashes, such as `learning_rate=0.1` or `bits=24`. An
        option that may be repeated on the command line takes a list. `feature_hash="identity"` belongs to the library
        alone: the number of a matrix's column is then the index of the feature itself, and not a name to hash.

    Attributes
    ----------
    core : LearnerCore
        What learns and predicts batches, for code of this package.
    growing : bool
        Whether new names of labels become classes where it learns.

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

    core: LearnerCore
    growing: bool

    spelling = configuration.KEYWORDS  # of the options in its messages

    def __init__(self, reduction: str | None = None, classes: int | str | None = None, **options: Any) -> None:
        identity = is_identity(options.pop("feature_hash", "names"))
        jit.activate(hide_scipy=False)
        with configuration.KEYWORDS:
            chosen = DEFAULT if reduction is None else reduction
            core = LearnerCore(configuration.configured(chosen, classes, options))
        self._begin(core, identity, (reduction, classes, options))

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

        Examples
        --------
        >>> import xclass
        >>> with xclass.Learner.from_command("--oaa 3 -b 12 -l 0.3") as model:
        ...     model, model.options["bits"], model.options["learning_rate"]
        (xclass.Learner('oaa', classes=3), 12, 0.3)
        """
        arguments = configuration.of_words(command, reduction)
        jit.activate(hide_scipy=False)
        return cls.of(LearnerCore(configuration.configured(*arguments)), arguments=arguments)

    @classmethod
    def of(cls, core: LearnerCore, identity: bool = False, arguments: Arguments | None = None) -> Learner:
        """Return a learner that has a core.

        `identity` says whether the number of a matrix's column is the index of its feature. With the `arguments` for
        another core, labels may turn out to be names.
        """
        learner: Learner = cls.__new__(cls)
        learner._begin(core, identity, arguments)
        return learner

    def _begin(self, core: LearnerCore, identity: bool, arguments: Arguments | None) -> None:
        self.turn = exclusive.Exclusive()  # gives the learner to one thread at a time
        self.identity, self._arguments = identity, arguments
        self._unlabelled = False  # whether what was learned says nothing of the kind of labels, see `adapt`
        self._take(core)

    def _take(self, core: LearnerCore) -> None:
        self.core, self.inputs = core, Inputs(core, self.identity)
        self.growing = core.names.growing  # `predict`, if it is interrupted, may leave another value

    # learning and predicting

    def learn(self, example: Example, label: Any = None, weight: float | None = None) -> Any:
        """Predict a single example and then learn from it.

        Parameters
        ----------
        example : str or dict
            A line of VW text, `label | features`; plain text, whose words are features; a dictionary from names of
            features to numbers or text; or a dictionary from names of namespaces to such dictionaries.
        label : str, number or list of them, optional
            Its label or labels, unless VW text contains them; None if they are not known.
        weight : float, optional
            Its weight, 1 unless VW text contains another one.

        Returns
        -------
        prediction : int, str, float or None
            What was predicted before learning: a class, a number for "scalar", or a list of labels. None if there is no
            class to predict yet, or while a learner holds examples, see `learn_many`.

        Raises
        ------
        DataError
            If the example is malformed or the label is not one of the classes. Nothing is learned then.

        Examples
        --------
        >>> import xclass
        >>> with xclass.Learner(bits=12) as model:
        ...     first = model.learn("tea | kettle leaf")
        ...     second = model.learn({"kettle": 1, "leaf": 0.5}, "tea")
        >>> first, second
        (None, 'tea')
        """

        def job() -> Any:
            self.adapt(lambda lists: inputs.kind_of_labels(example, None if label is None else [label], lists))
            batch = self._example(example, label, weight, learn=True)
            return results.single(self.core, list(self.core.learn([batch])))

        return self._call(job, learns=True)[0]

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
        prediction : int, str, float, list or None
            A class, or a number for "scalar"; None if there is no class to predict yet. For a reduction that learns
            lists of labels, the list of the labels above the threshold.
            With `k`: a list of up to k pairs of a class and its probability, the most probable first.

        Raises
        ------
        UsageError
            If the reduction does not estimate the probabilities that `k` asks for.

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
            with self.turn.lock, self.spelling:
                batch = self._example(example, None, None, learn=False)
                if k is None:
                    prediction = results.single(self.core, list(self.core.predict([batch])))
                else:
                    labels, p = results.top(self.core, [batch], k)
                    listed = zip(labels[0].tolist(), p[0].tolist(), strict=True)
                    prediction = [pair for pair in listed if pair[0] not in (-1, None)]
                notes = self._take_notes()
        except SystemError as error:  # numba's dispatcher makes it of Ctrl-C within a call of a kernel
            raise (error.__cause__ or error) from None
        _warn(notes, 3)
        return prediction

    learn_one, predict_one = learn, predict  # the names of these methods in River

    def learn_many(
        self, X: Examples, y: Any = None, sample_weight: ArrayLike | None = None, verbose: int = 0
    ) -> Outcome:
        """Predict each example and then learn from it, one example after the other.

        Some learners need to see examples before they learn from any: `cpt_tree="kmeans"` and `"huffman"` need
        `tree_sample` examples, and all until `end_pass` if that is 0. They hold the examples until they have seen
        enough. The outcome covers the examples that were learned in this call: none while they are held, and then all
        that were held and the new ones.

        Parameters
        ----------
        X : sparse matrix, array, DataFrame, Batch, str, or iterable of str or dict
            n examples. Column j of a matrix (`indptr`, `indices` and `data`, as SciPy's CSR matrices, a method `tocsr`,
            or a dense array) is the feature named `j`. A column of a DataFrame is a feature of its name if it holds
            numbers, and else a namespace of the words of its text or of its categories; the columns of the first
            table decide how later ones are read. A text without a bar is plain text, whose words are features; one
            with a bar is a line of VW text.
        y : array-like of shape (n,), optional
            Labels, numbers or names; None or NaN for no label. The labels of VW text are in the text. For a reduction
            that learns lists of labels, a list for each example, None for one that is not known; or a matrix of 0 and
            1, dense or sparse, with a column for each label.
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
        X = inputs.collected_examples(X)
        y, sample_weight = map(inputs.collected, (y, sample_weight))

        def job() -> tuple[np.ndarray, np.ndarray]:
            self.adapt(lambda lists: inputs.kind_of_labels(X, y, lists))
            batches = self._batches(X, y, sample_weight, learn=True)
            with self.shown(verbose, inputs.count(X), "learning"):
                return results.with_losses(self.core, self.core.learn(batches))

        found, notes = self._call(job, learns=True)
        return Outcome(*found, notes)

    def predict_many(self, X: Examples, k: int | None = None) -> Any:
        """Predict the label of each example, or list its k most probable classes.

        While a learner holds examples because it has not seen enough of them, it predicts like a new learner.

        Parameters
        ----------
        X
            n examples, as in `learn_many`. Labels are checked but not used.
        k : int, optional
            Number of classes to list, at least 1.

        Returns
        -------
        predictions : ndarray of shape (n,)
            Classes (int64), the names of classes (object) if labels are names, or numbers (float64) for "scalar"; for
            a reduction that learns lists of labels, lists of those above the threshold (object).
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
            If the reduction does not estimate the probabilities that `k` asks for.

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
        X = inputs.collected_examples(X)

        def predicted() -> Any:
            batches = self._batches(X)
            return results.predictions(self.core, batches) if k is None else results.top(self.core, batches, k)

        return self._call(predicted)[0]

    def predict_each(self, X: Examples, result: Callable[[BatchTask], T], wanted: LearnerUse | None = None) -> list[T]:
        """Predict examples, and return what the function `result` makes of each task; classes are numbers.

        The arrays of a task are valid until the function returns.
        """
        X = inputs.collected_examples(X)
        return self._call(lambda: list(map(result, self.core.predict(self._batches(X), wanted))))[0]

    def probabilities(self, X: Examples, raw: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """Return the probability of every class for each of n examples, which are given as in `predict_many`.

        With `raw`, of `oaa` alone, they are what the regressor of each class estimates, and do not sum to 1.

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

        Examples
        --------
        >>> import xclass
        >>> with xclass.Learner("oaa", classes=2, bits=10) as model:
        ...     _ = model.learn_many(["1 | sunny warm", "2 | rainy cold"] * 10)
        ...     classes, probabilities = model.probabilities(["| warm", "| cold rainy"])
        >>> classes.tolist(), probabilities.shape
        ([1, 2], (2, 2))
        """
        X = inputs.collected_examples(X)
        return self._call(lambda: results.probabilities(self.core, self._batches(X), raw))[0]

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
            the path through each tree. `print` writes it as text, and a notebook shows it.

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

        def explained() -> list[Explanation]:
            batch = self._example(example, label, None, learn=False)
            return list(results.explanations(self.core, [batch], self.inputs.opened([example]), k))

        ((explanation,), _) = self._call(explained)
        return explanation

    def explain_many(
        self, X: Examples, k: int = 2, y: Any = None, feature_names: Sequence[Any] | None = None
    ) -> list[Explanation]:
        """Explain the prediction of each example; this takes some milliseconds for each.

        Parameters
        ----------
        X
            n examples, as in `learn_many`. Features of a Batch that was not read from VW text have no names.
        k, y
            As `k` and `label` in `explain`; `y` has n labels.
        feature_names : sequence of str, optional
            Names of the columns of a matrix, such as `get_feature_names_out()` of a vectoriser.
        """
        X, y = inputs.collected_examples(X), inputs.collected(y)

        def explained() -> list[Explanation]:
            given = self.inputs.opened(X)
            return list(results.explanations(self.core, self._batches(given, y), given, k, columns=feature_names))

        return self._call(explained)[0]

    def scores(self, X: Examples) -> Scores:
        """Return the scores of the classes whose regressors are compared for each example; `Scores` has an example.

        With "oaa" these are all classes in rising order, so `scores(X).scores.reshape(n, -1)` is a matrix as that of
        `decision_function` in scikit-learn. With "recall_tree" they are the candidates that the tree proposes. The
        examples are given as in `predict_many`.

        Raises
        ------
        UsageError
            If the reduction does not compare scores of classes.
        """
        record = self.core.config.reduction
        if not record.class_scores:
            names = registry.listed(lambda one: one.class_scores and one.labels != "multilabel")
            raise UsageError(f"{record.name} does not compare scores of classes; choose one of {names}")
        X = inputs.collected_examples(X)
        return self._call(lambda: results.scores(self.core, self._batches(X)))[0]

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
        format : {"auto", "vw", "fasttext", "libsvm", "xmc", "csv", "jsonl", "npy"}, default "auto"
            Format of the files; "auto" chooses by the first lines and the name of the first file.
        label_column : str or int, optional
            Column of the label in a CSV file, by its name or its number from 1, or key of the label in JSON lines. The
            default is that of the tables learned before, else `label`, else the first column.
        verbose : int, default 0
            1 shows a bar for each pass, 2 writes a line after each, as in `learn_many`.
        **columns
            The options of the command that say how columns are read: lists of names `columns`, `ignore_column`,
            `label_columns` and `header`, the text `label_separator`, and the dictionary `column_kind` from names to
            "number", "text" or "category"; text in place of a list or a dictionary is as in the command. `label_file`
            names the labels of an array of NumPy.

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
        _ = self.core.reduction  # a closed learner has none
        given = files.options_of(paths, format, label_column=label_column, **columns)
        if passes > 1 and (once := reader.read_once(given.data)):
            raise UsageError(f"passes: {passes} are too many for {once}, which can be read only once; give a file")
        examples = None
        try:
            for number in range(passes):
                self.core.reduction.begin_pass(number)
                learn = functools.partial(self._learn_files, given, verbose, examples, f"pass {number + 1}")
                counted, _ = self._call(learn, learns=True)
                examples = counted.examples
        finally:
            self.core.reduction.begin_pass(0)
        return _figures(counted)

    def _learn_files(self, given: reader.ReaderOptions, verbose: int, examples: int | None, name: str) -> Progress:
        """Learn from files in one pass, and return the counts of their examples; the others are those of `shown`."""
        peeked = reader.Peeked()
        self.adapt(lambda lists: files.kind_of_labels(given, self.core.config, lists, peeked))
        core, counted = self.core, Progress(self.core.config.reduction.labels, None)
        with self.shown(verbose, examples, name):
            for batch in exclusive.until_interrupted(files.read(core, given, learn=True, peeked=peeked)):
                for task in core.learn([batch]):
                    counted.count(task)
            for task in core.end_pass():
                counted.count(task)
        return counted

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
            As in `learn_file`. For classes, "average_loss" is the error, by weight; for lists of labels it is that of
            the best label, and all measures of the summary follow, such as "precision_at_5".
        """
        given = files.options_of(paths, format, label_column=label_column, **columns)
        _ = self.core.reduction  # a closed learner has none
        counted = Progress(self.core.config.reduction.labels, None)
        reduction = self.core.reduction
        measured = reduction if isinstance(reduction, MultilabelLearner) else None
        report = None if measured is None else measured.new_report()

        def evaluated() -> None:
            batches = exclusive.until_interrupted(files.read(self.core, given))
            for task in thread_limit.each(self.core.predict(batches)):
                counted.count(task)
                if measured is not None and report is not None:
                    measured.measure(report, task)

        self._call(evaluated)
        return _figures(counted) | ({} if report is None else report.figures())

    def end_pass(self) -> Outcome:
        """End a pass over the data.

        Learning rates decay between passes. Learners that learn from all of the data at once do so now, and examples
        that are held because the learner has not seen enough of them are learned now; the outcome is that of these.

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
        found, notes = self._call(lambda: results.with_losses(self.core, self.core.end_pass()), learns=True)
        return Outcome(*found, notes)

    # what the methods above share

    def adapt(self, kind_of_labels: Callable[[bool], KindOfLabels]) -> None:
        """Take labels as names or lists from now on if they are, and no label was learned or chosen before.

        `kind_of_labels` returns of which kind they are; its argument says whether they are examined for lists.
        """
        if self._arguments is None:
            return
        reduction, classes, options = self._arguments
        names_chosen = bool({"learn_names", "named_labels"} & options.keys())
        if (
            not (self.core.is_new or self._unlabelled)
            or self.core.config.reduction.labels == "simple"
            or (names_chosen and reduction is not None)
        ):
            self._arguments = None
            return
        names, lists, outside, self._unlabelled = kind_of_labels(reduction is None)
        names = names and not names_chosen
        if not self.core.is_new:
            if names:
                self.name_numbers((self.core.label_range.lowest or 0) - 1, "")
        elif names or lists:
            added = {"learn_names": True} if names else {}
            config = configuration.configured(
                presets.LISTS if lists else reduction or DEFAULT, classes, {**options, **added}
            )
            if not self._unlabelled:
                self._arguments = None
            self.core.close()
            self._take(LearnerCore(config))
        elif outside and self.core.label_range.lowest:
            self.name_numbers()

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

        before, count = self.core.progress, 0
        loss_before, weight_before = before.loss_sum, before.labelled_weight

        def loss() -> str:
            progress = self.core.progress  # of another core if labels that come make names of the classes
            weight = progress.labelled_weight - weight_before
            return f"{(progress.loss_sum - loss_before) / weight if weight else 0.0:.4f}"

        with tqdm(total=examples, desc=name, unit=" examples", disable=verbose > 1) as bar:

            def show(task: BatchTask) -> None:
                nonlocal count
                count += task.batch.n
                bar.set_postfix_str(f"loss={loss()}", refresh=False)
                bar.update(task.batch.n)

            self.core.on_learned = show
            try:
                yield
            finally:
                self.core.on_learned = None
        if verbose > 1:
            terminal.error_line(f"{name}: {count} examples, loss {loss()}")

    def _batches(
        self, X: Examples, y: Any = None, sample_weight: ArrayLike | None = None, learn: bool = False
    ) -> Iterator[Batch]:
        """Convert examples into batches, until the caller is interrupted."""
        _ = self.core.reduction  # a closed learner has none
        return exclusive.until_interrupted(self.converted(lambda own: own.batches(X, y, sample_weight, learn), learn))

    def _example(self, example: Example, label: Any, weight: float | None, learn: bool) -> Batch:
        _ = self.core.reduction
        return self.converted(lambda own: own.example(example, label, weight, learn), learn)

    def converted(self, convert: Callable[[Inputs], T], learn: bool) -> T:
        """Return examples that a function converts; numbers that no class has become names of classes with `learn`."""
        try:
            return convert(self.inputs)
        except NotClassNumber:
            if not learn:
                raise
            if not self.name_numbers():
                self.inputs.labels.highest = math.inf
            return convert(self.inputs)

    def name_numbers(self, highest: int | None = None, given: str = NUMBER) -> bool:
        """Let classes have names, so that any number can be one; return whether that is possible, see `with_names`."""
        core = None if self.core.names.class_list is not None else self.core.with_names(highest, given)
        if core is not None:
            self._take(core)
        return core is not None

    def _call(self, job: Callable[[], T], learns: bool = False) -> tuple[T, tuple[str, ...]]:
        """Call a function alone, and to its end; issue the messages about its examples, and return them, too.

        If it `learns`, Ctrl-C ends it after the batch that is learned.
        """
        notes: tuple[str, ...] = ()

        def noted() -> T:
            nonlocal notes
            try:
                with self.spelling:
                    if learns:
                        self.core.names.growing = self.growing
                        self.core.want()
                    return job()
            finally:  # an error does not concern the examples before it
                notes = self._take_notes()

        try:
            return self.turn.complete(noted, (lambda: self.core.stop()) if learns else None, learns), notes
        finally:
            _warn(notes, 4)

    def _take_notes(self) -> tuple[str, ...]:
        return tuple(map(self.spelling, self.core.take_notes()))

    # properties

    @property
    def classes(self) -> list[Any] | int | None:
        """Return the names of the classes seen, the number of classes if labels are numbers, or None for "scalar"."""
        names = self.core.names
        if self.core.config.reduction.labels == "simple":
            return None
        if (listed := self.core.classes) is not None:
            return list(listed[: names.highest_seen])
        return self.core.spec.classes or self.core.reduction.classes_seen

    @property
    def options(self) -> dict[str, Any]:
        """Return the value of every option by the name of its keyword, defaults included."""
        return self.core.option_values()

    @property
    def average_loss(self) -> float | None:
        """Return the mean loss of the predictions made before learning from each example, or None without any."""
        return self.core.progress.average_loss

    @property
    def examples(self) -> int:
        """Return the number of examples learned from."""
        return self.core.examples

    @property
    def preview_size(self) -> int | None:
        """Return how many examples it needs to see before it learns: 0 for all of the data, None for none."""
        size = self.core.reduction.awaited
        return None if size == 0 else 0 if size == math.inf else int(size)

    def __reduce__(self) -> tuple[Any, ...]:
        """Return how to pickle the learner, as the bytes of its model file; raise UsageError where `save` does."""

        def saved() -> bytes:
            self.core.check_learned()
            return model_contents.to_bytes(self.core.contents())

        return _unpickled, (self._call(saved)[0], self.identity, bool(self.options.get("exact")))

    def __repr__(self) -> str:
        classes = f", classes={self.core.spec.classes}" if self.core.spec.classes else ""
        return f"xclass.Learner({configuration.chosen_name(self.core.config)!r}{classes})"

    # models

    def save(self, path: str | PathLike[str]) -> None:
        """Save a model, which `load` and the command line can read.

        An existing model is replaced, but only after all of the new file is written.

        Raises
        ------
        ModelError
            If the file cannot be written, or there is another file than a model.
        UsageError
            If the learner holds examples that it learns from at the end of the data and `end_pass` was not called.
        """

        def save() -> None:
            self.core.check_learned()
            model_contents.save(files.path_of(path), self.core.contents)

        self._call(save)

    def close(self) -> None:
        """Stop the threads of the learner and free its memory; it cannot be used afterwards.

        A call of another thread that has begun ends first. Leaving a `with` block closes the learner, too.
        """
        self.turn.complete(lambda: self.core.close())

    def __enter__(self) -> Learner:
        _ = self.core.reduction  # a closed learner has none
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def is_identity(feature_hash: object) -> bool:
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
    return _restored("the model in memory", identity, {"exact": exact}, lambda _: model_contents.from_bytes(data))


def _restored(name: str, identity: bool, chosen: Mapping[str, Any], read: Callable[[str], ModelContents]) -> Learner:
    """Return a learner from the model `name`, whose contents `read` returns; options not `chosen` are None or False."""
    jit.activate(hide_scipy=False)
    with configuration.KEYWORDS:
        contents = read(name)
        values = {option: value for option, value in chosen.items() if value is not None and value is not False}
        declared = configuration.declared_options() if values else {}  # those of all reductions, which takes time
        given = {
            option: configuration.checked_value(f"--{option}", declared[option], value)
            for option, value in values.items()
        }
        config = configuration.of_model(name, contents.options, given)
    with model_contents.naming(name), configuration.KEYWORDS:
        return Learner.of(LearnerCore(config, contents), identity)


def _warn(notes: Sequence[str], level: int) -> None:
    """Issue messages as Python warnings, which point `level` calls above, at the caller of a public method."""
    for note in notes:
        warnings.warn(note, XclassWarning, stacklevel=level)


def load(
    path: str | PathLike[str], feature_hash: str = "names", exact: bool = False, threshold: float | str | None = None
) -> Learner:
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
    threshold : float or str, optional
        As `--threshold`: the probability above which a learner of lists predicts labels, instead of that of the model;
        or "auto", see the command.

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
    ...     _ = model.learn_many(["1 | sunny warm", "2 | rainy cold"] * 10)
    ...     model.save(path)
    >>> with xclass.load(path) as model:
    ...     model.predict_many(["| warm", "| cold rainy"]).tolist()
    [1, 2]
    """
    chosen = {"exact": exact, "threshold": threshold}
    return _restored(files.path_of(path), is_identity(feature_hash), chosen, model_contents.load)
