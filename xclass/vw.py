"""Provide `Workspace`, so that a program written for VW's Python module runs after one changed import.

    from xclass.vw import Workspace          # instead of: from vowpalwabbit import Workspace

A Workspace is a run of the command to which a program passes examples one by one: it has the options, files, messages
and sums of a run. With `vw_exact` its predictions are those of VW.

Differs   from VW: an example is a line of text, or a dictionary from namespaces to features, and its features cannot be
          changed or listed afterwards. A malformed example raises `DataError`. There are no examples of several lines,
          and no reductions other than those of xclass.
"""

from __future__ import annotations

import contextlib
import enum
import sys
import time
import weakref
from collections.abc import Iterator, Mapping, Sequence
from os import PathLike, fspath
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np

from .api import model_contents
from .api.configuration import Config, LearnerUse
from .api.inputs import Inputs
from .api.model_contents import Contents
from .cli import arguments, command, help_text, vw_flags
from .data import feature_names
from .data.batch import Batch
from .errors import DataError, UsageError
from .kernels import jit
from .model import model_file
from .options import resolve as options_resolve
from .options.declare import long_flag, options_of
from .reductions.core.base import Inspectable, LearnsAtEnd
from .reductions.core.contract import BatchTask
from .reductions.presets import PRESETS
from .run import file_conflicts, finish, learner_use
from .run.predictions import files
from .run.report.console import Console
from .run.run import Run
from .system.printable import short_repr

__all__ = [
    "Example", "LabelType", "MulticlassLabel", "PredictionType", "SimpleLabel", "Workspace", "pyvw", "vw",
]  # fmt: skip

WITHOUT_DATA = ("holdout_off", "keep_last")  # options about passes that say what is done without data, too
NUMBERS = 3  # numbers of a slot that `get_weight` returns


class PredictionType(enum.IntEnum):
    """List the types of predictions, by VW's numbers."""

    SCALAR = 0
    SCALARS = 1
    MULTICLASS = 4


class LabelType(enum.IntEnum):
    """List the types of labels, by VW's numbers."""

    SIMPLE = 1
    MULTICLASS = 2


class SimpleLabel(NamedTuple):
    """Hold the real-valued label of an example."""

    label: float
    weight: float
    initial: float
    prediction: float


class MulticlassLabel(NamedTuple):
    """Hold the class of an example."""

    label: int
    weight: float
    prediction: int


class Workspace:
    """Learn and predict as `vowpalwabbit.Workspace` does.

    With data (`-d`, `--data`) the data are learned at once, with all options of the command, such as passes and a
    cache. Otherwise a program passes the examples to `learn` and `predict`. The files of `-f`, `--readable_model` and
    `--invert_hash` are written by `finish`, which is also called when a `with` block or the program ends.

    Parameters
    ----------
    arg_str : str, optional
        Options as on the command line, separated by blanks.
    enable_logging : bool, default False
        Keep the messages for `get_log` instead of writing them to standard error.
    arg_list : list of str, optional
        Words of a command line, which may contain blanks.
    **kw
        Further options: `b=18` for `-b 18`, `quiet=True` for `--quiet`, `q=["ab", "ac"]` for `-q ab -q ac`. False
        leaves the option out.

    Raises
    ------
    UsageError
        If an option is unknown, has a value that is not allowed, or has no effect.
    DataError, ModelError
        If the data or the model of `-i` cannot be read.

    Examples
    --------
    >>> from xclass.vw import Workspace
    >>> with Workspace("--oaa 3 --quiet", b=12) as model:
    ...     for _ in range(5):
    ...         model.learn("1 | sunny warm")
    ...         model.learn("2 | rainy cold")
    ...     model.predict("| cold")
    2
    """

    def __init__(
        self,
        arg_str: str | None = None,
        enable_logging: bool = False,
        arg_list: Sequence[str] | None = None,
        **kw: Any,
    ) -> None:
        self._log: list[str] | None = [] if enable_logging else None
        config, notes, contents = _configured(_words(arg_str, arg_list, kw))
        self._session = session = _Session(config, notes, contents, self._log)
        self._finish = weakref.finalize(self, session.finish)  # also when the object or the interpreter ends

    def __enter__(self) -> Workspace:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.finish()

    @property
    def init(self) -> bool:
        """Return whether `finish` was not called yet."""
        return bool(self._finish.alive)

    @property
    def finished(self) -> bool:
        """Return whether `finish` was called."""
        return not self._finish.alive

    # examples

    def parse(self, str_ex: str | list[str] | Example, labelType: int | None = None) -> Example:
        """Parse an example.

        Parameters
        ----------
        str_ex : str or list of str
            A line of VW text, or a list that holds one.
        labelType : int, optional
            Type of the label, which has to be that of the reduction.

        Returns
        -------
        example : Example
            The example, for `learn`, `predict` and `finish_example`.
        """
        if isinstance(str_ex, Example):
            return str_ex
        if not isinstance(str_ex, (list, str)):
            raise TypeError(f"an example is text or a list of text, and not {type(str_ex).__name__}")
        return Example(self, str_ex if isinstance(str_ex, str) else "\n".join(str_ex), labelType)

    def example(self, stringOrDict: str | Mapping[str, Any] | None = None, labelType: int | None = None) -> Example:
        """Make an example from text or from a dictionary, see `Example`."""
        return Example(self, stringOrDict, labelType)

    def learn(self, ec: str | Example) -> None:
        """Learn from an example, after predicting it.

        Parameters
        ----------
        ec : str or Example
            A line of VW text, `label | features`, or an example that `parse` or `example` has made.

        Raises
        ------
        DataError
            If the text is malformed or the label is not allowed.
        UsageError
            If the reduction learns only from data that are read by `-d`, or `finish` was called.
        """
        self._process(ec, learn=True)

    def predict(
        self, ec: str | Mapping[str, Any] | Example, prediction_type: int | None = None
    ) -> float | int | str | list[Any]:
        """Predict an example.

        Parameters
        ----------
        ec : str, dict or Example
            A line of VW text, a dictionary as for `Example`, or an example that `parse` or `example` has made.
        prediction_type : int, optional
            Type of the prediction, which has to be that of the options, see `get_prediction_type`.

        Returns
        -------
        prediction : float, int, str or list
            The number, without a reduction; the class; the scores or probabilities of the classes 1 to K with `--oaa`
            and `--scores` or `--probabilities`. As in VW, a class is a number even if its name is listed by
            `--named_labels`; with `--learn_names`, which VW does not have, it is a name. With `--top_k`, and with
            `--probabilities` of other reductions, a list of pairs of a class and its probability.

        Raises
        ------
        DataError
            If the text is malformed.
        """
        self._check_type("prediction", prediction_type, self.get_prediction_type())
        prediction: float | int | str | list[Any] = self._process(ec, learn=False).get_prediction()
        return prediction

    def _process(self, ec: str | Mapping[str, Any] | Example, learn: bool) -> Example:
        """Learn from an example or predict it; return it as an Example."""
        if isinstance(ec, list):
            raise TypeError("a list is an example of several lines, which no reduction of xclass has; give one line")
        if not isinstance(ec, (str, Mapping, Example)):
            raise TypeError(f"an example is text, a dictionary or an Example, and not {type(ec).__name__}")
        self._check_open()
        example = ec if isinstance(ec, Example) else Example(self, ec, learn=learn)
        example._task = self._session.process(example._batch, learn)
        if example is not ec:
            self.finish_example(example)
        return example

    def finish_example(self, ex: Example) -> None:
        """Count an example that was made by `parse` or `example`, and write its prediction to the file of `-p`."""
        if not ex.finished and ex._task is not None:
            self._check_open()
            self._session.report(*ex._task)
        ex.finished = True

    # models and the end

    def save(self, filename: str | PathLike[str]) -> None:
        """Save the model in the format of xclass; it can be loaded by `-i` and by `xclass.load`."""
        self._check_open()
        self._session.save(fspath(filename))

    def finish(self) -> None:
        """Write the files of the options and the summary, and free the memory; a second call does nothing."""
        self._finish()

    def get_log(self) -> list[str]:
        """Return the messages so far, a line each; raise UsageError without `enable_logging`."""
        if self._log is None:
            raise UsageError("get_log: make the Workspace with enable_logging=True")
        return list(self._log)

    # facts

    def get_prediction_type(self) -> PredictionType:
        """Return the type of the predictions."""
        return self._session.prediction_type

    def get_label_type(self) -> LabelType:
        """Return the type of the labels."""
        return LabelType.SIMPLE if self._session.config.reduction.labels == "simple" else LabelType.MULTICLASS

    def get_sum_loss(self) -> float:
        """Return the sum of the losses of the examples, those of `predict` included."""
        return float(self._session.progress.loss_sum)

    def get_weighted_examples(self) -> float:
        """Return the sum of the weights of the examples, those of `predict` included."""
        return float(self._session.progress.weight)

    # weights

    def num_weights(self) -> int:
        """Return the number of weights, 2**b."""
        return 1 << int(self._session.config.learner.bits)

    def get_weight(self, index: int, offset: int = 0) -> float:
        """Return a number of the weight table.

        Parameters
        ----------
        index : int
            Slot in the table. With `vw_exact` or `--layout vw`, slots are numbered as in VW.
        offset : int, default 0
            0 for the weight, 1 for the sum of the squared gradients, 2 for the largest value of the feature.

        Returns
        -------
        number : float

        Raises
        ------
        UsageError
            If the reduction has no weight table.
        """
        self._check_open()
        reduction = self._session.model.reduction
        if not isinstance(reduction, Inspectable) or not reduction.tables:
            raise UsageError(f"get_weight: {self._session.config.reduction.name} has no table of weights")
        if not 0 <= offset < NUMBERS:
            raise UsageError(f"get_weight: the offset {offset} is not a number from 0 to {NUMBERS - 1}")
        index %= sum(int(table.mask) + 1 for table in reduction.tables)
        for table in reduction.tables:
            if index <= int(table.mask):
                return float(table.flat[index * int(table.stride) + offset * int(table.field)])
            index -= int(table.mask) + 1
        raise AssertionError("an index is within the tables")

    def get_weight_from_name(self, feature_name: str, namespace_name: str = " ") -> float:
        """Return the weight of a feature, as VW does: in reductions, `get_weight` of the hash of the feature."""
        return self.get_weight(self.hash_feature(feature_name, self.hash_space(namespace_name)))

    def hash_space(self, s: str) -> int:
        """Return the hash of the name of a namespace."""
        return self._session.hasher.hash(s, self._session.config.parser.hash_seed)

    def hash_feature(self, s: str, u: int) -> int:
        """Return the index of a feature in a namespace with the hash `u`."""
        return self._session.hasher.index(s, u)

    # checks

    def _check_open(self) -> None:
        """Raise UsageError if `finish` was called."""
        if not self._finish.alive:
            raise UsageError("this Workspace is finished; make another one, with -i FILE to go on with a saved model")

    def _check_type(self, kind: str, given: int | None, own: int) -> None:
        """Raise UsageError if another type than that of the options is asked for; 0 stands for it in VW."""
        if given is not None and given != own and not (kind == "label" and given == 0):
            raise UsageError(f"{kind} type {given!r}: these options have {own!r}; leave the argument out")


class Example:
    """Hold an example of a Workspace.

    Parameters
    ----------
    vw : Workspace
        The Workspace.
    content : str or dict, optional
        A line of VW text; or a dictionary from namespaces to features, which are a dictionary from names to values, or
        a list of names and of pairs of a name and a value. None for no features.
    labelType : int, optional
        Type of the label, which has to be that of the reduction.

    Attributes
    ----------
    vw : Workspace
        The Workspace.
    finished : bool
        Whether `Workspace.finish_example` was called.
    """

    def __init__(
        self, vw: Workspace, content: str | Mapping[str, Any] | None = None, labelType: int | None = None,
        learn: bool = True,
    ) -> None:  # fmt: skip
        vw._check_open()
        vw._check_type("label", labelType, vw.get_label_type())
        self.vw = vw
        self.finished = False
        self.labelType = vw.get_label_type()
        self._batch = vw._session.batch(content, learn)
        self._task: tuple[BatchTask, np.ndarray | None] | None = None

    def learn(self) -> None:
        """Learn from this example."""
        self.vw.learn(self)

    def set_label_string(self, string: str) -> None:
        """Give this example another label, weight and tag, written as before the bar of a line."""
        label = self.vw._session.batch(f"{string} |", True)
        self._batch = self._batch._replace(label=label.label, weight=label.weight, initial=label.initial)

    def get_label(self, label_class: int | None = None) -> SimpleLabel | MulticlassLabel:
        """Return the label with the weight and the latest prediction; a missing class is 2**32 - 1, as in VW."""
        self.vw._check_type("label", label_class, self.labelType)
        label, weight = float(self._batch.label[0]), float(self._batch.weight[0])
        prediction = 0.0
        if self._task is not None and self._task[0].prediction is not None:
            prediction = float(self._task[0].prediction[0])
        if self.labelType == LabelType.SIMPLE:
            label = float(np.finfo(np.float32).max) if np.isnan(label) else label
            return SimpleLabel(label, weight, float(self._batch.initial[0]), prediction)
        return MulticlassLabel(2**32 - 1 if np.isnan(label) else int(label), weight, int(prediction))

    def get_prediction(self, prediction_type: int | None = None) -> Any:
        """Return the latest prediction, see `Workspace.predict`; None before the first one."""
        self.vw._check_type("prediction", prediction_type, self.vw.get_prediction_type())
        return None if self._task is None else self.vw._session.prediction(self._task[0])


class _Session(Run):
    """Be the run behind a Workspace.

    Parameters
    ----------
    config : options of the run
    notes : lines to show at its start
    contents : contents of the model of -i, or None
    log : list to which messages are added instead of writing them to standard error, or None
    """

    def __init__(self, config: Config, notes: Sequence[str], contents: Contents | None, log: list[str] | None) -> None:
        file_conflicts.check(config)
        if config.run.final_regressor is not None:
            model_file.check_writable(config.run.final_regressor)
        jit.activate(hide_scipy=False)
        super().__init__(config, notes, b"")
        self._started = time.perf_counter()
        if log is not None:
            self.console = _Log(config.run.quiet, log)
        with contextlib.ExitStack() as closing:
            closing.callback(self.console.end_bar)
            self._prepare(contents, closing)
            self._banner()
            self.writers = files.open_writers(config, self.model.names, self.model.reduction.lists_scores)
            if isinstance(self.model.reduction, LearnsAtEnd):
                self.model.reduction.report_to(self.console, self.reader.fraction_read)
            self._closing = closing.pop_all()
        self.prediction_type = self._prediction_type()
        self._inputs = Inputs(config, self.model.names, self.model.label_range)
        rule = feature_names.new_hashing(config.parser.hash_seed, config.parser.hash == "all", config.learner.bits)
        self.hasher = feature_names.NameHasher(rule)
        if config.reader.data:
            self._learn_data()
        if self.inspector is not None:
            self.model.preparation.one_by_one = self.inspector.one_by_one
            self.model.preparation.keep_names = False
        self._stages = self.model.stages if self.inspector is None else self.inspector.stages(self.model.stages)

    def _use(self) -> LearnerUse:
        """Return how the learner is used: every prediction is shown to the program."""
        return learner_use.of_run(self.config)._replace(exact_prediction=True)

    def _learn_data(self) -> None:
        """Execute the passes over the data; after an error or a signal, end the run and raise it."""
        with self.signals:
            error = self._run_passes()
        self.pipeline = None
        if error is not None or self.signals.stopped:
            self._end(error)
            raise KeyboardInterrupt

    def _prediction_type(self) -> PredictionType:
        """Return the type of the predictions."""
        if self.config.reduction.labels == "simple":
            return PredictionType.SCALAR
        lists = self.model.reduction.lists_scores or self.config.listing_options.lists_classes
        return PredictionType.SCALARS if lists else PredictionType.MULTICLASS

    def batch(self, content: str | Mapping[str, Any] | None, learn: bool) -> Batch:
        """Return an example as a batch.

        Parameters
        ----------
        content : as in `Example`
        learn : whether a new name of a class becomes a class
        """
        if isinstance(content, Mapping):
            if self.inspector is not None:
                raise UsageError(
                    f"--{_inspecting(self.config)} needs lines of text, because it shows names of features"
                )
            return self._inputs.example(_namespaces(content), None, None, learn)
        line = (content or "").replace("\r", "").strip()
        if "\n" in line:
            raise TypeError(f"an example is one line, and this text holds {line.count(chr(10)) + 1}")
        batch = self._inputs.example(line if "|" in line else f"{line} |", None, None, learn)
        if batch.n == 0:
            raise DataError(f"example: {short_repr(line)} is malformed and left out, see --on_bad_line")
        return batch

    def process(self, batch: Batch, learn: bool) -> tuple[BatchTask, np.ndarray | None]:
        """Learn from a single example or predict it; return its task and the highest class seen, for `report`."""
        if learn and (isinstance(self.model.reduction, LearnsAtEnd) or self.model.preview_size is not None):
            raise UsageError(
                f"{self.config.reduction.name} with these options needs to see the data before it learns: give "
                "data=FILE, or use xclass.Learner"
            )
        (task,) = self.model.tasks(batch, learn and self.learning, self.model.clock)
        for stage in self._stages:
            stage(task)
        task.notes[:0] = self._inputs.notes
        self._inputs.notes.clear()
        clock = self.model.clock
        highest_seen = self.model.note(task)
        if self.options.vw_exact:  # VW's clock advances in `finish_example`, by examples that are only predicted, too
            self.model.clock = clock
        return task, highest_seen

    def report(self, task: BatchTask, highest_seen: np.ndarray | None) -> None:
        """Count a task, show its messages, and write its prediction."""
        if self.options.vw_exact and not np.isnan(task.batch.label[0]):
            self.model.clock += float(task.batch.weight[0])
        self._report(task, highest_seen)

    def prediction(self, task: BatchTask) -> Any:
        """Return the prediction of the only example of a task, see `Workspace.predict`."""
        if self.prediction_type == PredictionType.SCALARS and task.class_lists is not None:
            listed = task.class_lists
            scores = listed.scores.tolist()
            if self.config.reduction.name == "oaa" and self.config.listing_options.top_k is None:
                return scores
            return list(zip(map(self._label, listed.labels.tolist()), scores, strict=True))
        assert task.prediction is not None
        prediction = float(task.prediction[0])
        return prediction if self.prediction_type == PredictionType.SCALAR else self._label(int(prediction))

    def _label(self, number: int) -> int | str:
        """Return a class as the program sees it: a name if names are learned."""
        names = self.model.names.names if self.config.parser.learn_names else ()
        return names[number - 1] if 0 < number <= len(names) else number

    def save(self, path: str) -> None:
        """Save the model."""
        if self.model.unlearned:
            raise UsageError("some examples are not learned yet; the reduction learns at the end of the data")
        self.saver.save(path)

    def finish(self) -> None:
        """Write the files of the options and the summary, and free the memory."""
        self._end(None)

    def _end(self, error: BaseException | None) -> None:
        """End the run, which `error` has ended early if it is not None; the error is raised again."""
        with self._closing:
            for writer in self.writers.values():
                writer.close()
            finish.finish(self._parts(), error, time.perf_counter() - self._started)


class _Log(Console):
    """Add the messages of a run to a list."""

    def __init__(self, quiet: bool, lines: list[str]) -> None:
        super().__init__(quiet)
        self._lines = lines

    def line(self, text: str) -> None:
        """Add one line."""
        self._lines.append(text)

    def start_bar(self, size: int | None) -> None:
        """Show no bar."""


class _Features(Mapping[str, Any]):
    """Hold the features of a namespace, in which a name may occur several times."""

    def __init__(self, pairs: Sequence[tuple[str, Any]]) -> None:
        self._pairs = pairs

    def items(self) -> Any:
        """Return the pairs of names and values."""
        return self._pairs

    def __getitem__(self, name: str) -> Any:
        return dict(self._pairs)[name]

    def __iter__(self) -> Iterator[str]:
        return iter(name for name, _ in self._pairs)

    def __len__(self) -> int:
        return len(self._pairs)


def _namespaces(content: Mapping[str, Any]) -> dict[str, _Features]:
    """Return the namespaces of an example that is a dictionary, see `Example`."""
    namespaces = {}
    for namespace, features in content.items():
        if not isinstance(features, (Mapping, list, tuple)):
            raise UsageError(f"namespace {namespace!r}: {short_repr(features)} is neither a dictionary nor a list")
        items = features.items() if isinstance(features, Mapping) else features
        pairs = []
        for item in items:
            name, value = item if isinstance(item, tuple) and len(item) == 2 else (item, 1.0)
            if not isinstance(name, str):
                raise UsageError(f"namespace {namespace!r}: the feature {short_repr(name)} is not text; give its name")
            pairs.append((name, value))
        namespaces[namespace or " "] = _Features(pairs)
    return namespaces


def _words(arg_str: str | None, arg_list: Sequence[str] | None, keywords: Mapping[str, Any]) -> list[str]:
    """Return the words of a command line from the arguments of a Workspace."""
    if arg_str is not None and not isinstance(arg_str, str):
        raise TypeError("arg_str must be a string")
    if isinstance(arg_list, str):
        raise TypeError("arg_list must be a list of strings")
    words = [*(arg_str or "").split(), *(arg_list or ())]
    for keyword, value in keywords.items():
        flag = f"-{keyword}" if len(keyword) == 1 else f"--{keyword}"
        if isinstance(value, bool):
            words += [flag] if value else []
            continue
        for item in value if isinstance(value, (list, tuple)) else [value]:
            words += [flag, fspath(item) if isinstance(item, PathLike) else str(item)]
    return words


def _configured(words: Sequence[str]) -> tuple[Config, list[str], Contents | None]:
    """Return the options of a run from words of a command line, notes for the user, and the contents of the model."""
    groups, reductions = command.option_groups()
    arranged = help_text.sections(groups, reductions)
    given = arguments.read(arranged, words)
    for information in ("help", "version"):
        if information in given:
            raise UsageError(f"--{information} belongs to the command; run `xclass --{information}`")
    notes = vw_flags.take(given.pop("accepted", ()), given)
    command.read_names(given, {flag: name for name, flag in _flags(arranged)})
    if not given.get("data"):
        given["no_stdin"] = True
        for group in ("passes", "cache", "shuffle"):
            for name, option in options_of(groups[group]).items():
                if name in given and name not in WITHOUT_DATA and (name, given[name]) != ("passes", 1):
                    raise UsageError(f"{long_flag(option)} has no effect without data: give data=FILE, or leave it out")
    model = given.get("initial_regressor")
    contents = model_contents.load(model) if model is not None else None
    config = options_resolve.resolve(
        given,
        contents.options if contents is not None else None,
        groups,
        reductions,
        model=model or "",
        presets=PRESETS,
        resolve_defaults=learner_use.with_defaults,
    )
    return config, notes, contents


def _flags(sections: Sequence[help_text.Section]) -> Iterator[tuple[str, str]]:
    """Yield the name and the flag of every option."""
    for section in sections:
        for name, option in section.options.items():
            for flag in option.flags:
                yield name, flag


def _inspecting(config: Config) -> str:
    """Return the option that shows names of features."""
    return next(name for name in ("invert_hash", "audit", "readable_model") if name in config.given)


vw = Workspace
pyvw = sys.modules[__name__]
