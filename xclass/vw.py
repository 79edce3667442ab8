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
import functools
import gc
import os
import shlex
import sys
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeVar

import numpy as np

from . import __version__
from .api import files, model_contents
from .api.configuration import Config
from .api.inputs import Inputs
from .api.model_contents import ModelContents
from .cli import arguments, command, vw_flags
from .cli.declared import prepare_files, resolved
from .data import class_names
from .data.batch import Batch
from .errors import DataError, UsageError
from .kernels import jit
from .model import model_file
from .options.declare import all_options, as_words, long_flag, options_of
from .reductions.core.contract import BatchTask
from .run.report.console import Console
from .run.run import Local, Run
from .system import exclusive, output_file
from .system.printable import short_repr
from .text import malformed

__all__ = [
    "Example", "LabelType", "MulticlassLabel", "MultilabelLabel", "PredictionType", "SimpleLabel", "Workspace",
    "__version__", "pyvw", "vw",
]  # fmt: skip

P = ParamSpec("P")
T = TypeVar("T")
LARGEST_INDEX = 2**32 - 1
WITHOUT_DATA = ("holdout_off", "keep_last")  # options about passes that say what is done without data, too


class PredictionType(enum.IntEnum):
    """List the types of predictions, by VW's numbers."""

    SCALAR = 0
    SCALARS = 1
    ACTION_PROBS = 3
    MULTICLASS = 4
    MULTILABELS = 5


class LabelType(enum.IntEnum):
    """List the types of labels, by VW's numbers."""

    SIMPLE = 1
    MULTICLASS = 2
    MULTILABEL = 10


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


class MultilabelLabel(NamedTuple):
    """Hold the list of labels of an example."""

    labels: list[int]


def _in_turn(method: Callable[Concatenate[Workspace, P], T]) -> Callable[Concatenate[Workspace, P], T]:
    """Return a method of a Workspace that one thread at a time executes, and to its end."""

    @functools.wraps(method)
    def in_turn(self: Workspace, /, *args: P.args, **given: P.kwargs) -> T:
        return self._session.turn.complete(lambda: method(self, *args, **given))

    return in_turn


class Workspace:
    """Learn and predict as `vowpalwabbit.Workspace` does.

    With data (`-d`, `--data`) the data are learned at once, with all options of the command, such as passes and a
    cache. Otherwise a program passes the examples to `learn` and `predict`. The files of `-f`, `--readable_model` and
    `--invert_hash` are written by `finish`, which is also called when a `with` block or the program ends.

    `arg_str` has options as on the command line, separated by blanks, `arg_list` its words, which may contain blanks,
    and keywords are further options: `b=18` for `-b 18`, `quiet=True` for `--quiet`, `q=["ab", "ac"]` for `-q ab -q
    ac`; False leaves the option out. With `enable_logging`, messages are kept for `get_log` instead of being written to
    standard error.

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
        self, arg_str: str | None = None, enable_logging: bool = False, arg_list: Sequence[str] | None = None, **kw: Any
    ) -> None:
        self._log: list[str] | None = [] if enable_logging else None
        self._session = session = _Session(*_configured(_words_of(arg_str, arg_list, kw)), self._log)
        self._finish = weakref.finalize(self, session.finish)  # also when the object or the interpreter ends

    def __enter__(self) -> Workspace:
        return self

    def __reduce__(self) -> Any:
        raise TypeError("a Workspace cannot be pickled or copied; call save(FILE), and make another one with -i FILE")

    def __exit__(self, *error: object) -> None:
        self.finish()

    @property
    def init(self) -> bool:
        """Return whether `finish` was not called yet."""
        return bool(self._finish.alive)

    @property
    def finished(self) -> bool:
        """Return whether `finish` was called."""
        return not self._finish.alive

    def parse(self, str_ex: str | list[str] | Example, labelType: int | None = None) -> Example:
        """Parse a line of VW text, or a list that holds one; return it for `learn`, `predict` and `finish_example`."""
        if isinstance(str_ex, Example):
            return str_ex
        if not isinstance(str_ex, (list, str)):
            raise TypeError(f"an example is text or a list of text, and not {type(str_ex).__name__}")
        return Example(self, str_ex if isinstance(str_ex, str) else "\n".join(str_ex), labelType)

    def example(self, stringOrDict: str | Mapping[str, Any] | None = None, labelType: int | None = None) -> Example:
        """Make an example from text or from a dictionary, see `Example`."""
        return Example(self, stringOrDict, labelType)

    def learn(self, ec: str | Example) -> None:
        """Learn from an example, after predicting it; raise DataError if it is malformed or its label is not allowed.

        The example is a line of VW text, `label | features`, or one that `parse` or `example` has made.
        """
        self._process(ec, learn=True)

    def predict(
        self, ec: str | Mapping[str, Any] | Example, prediction_type: int | None = None
    ) -> float | int | str | list[Any]:
        """Predict an example, given as in `learn` or as a dictionary for `Example`.

        Return the number, without a reduction; the class; the scores or probabilities of the classes 1 to K with
        `--oaa` and `--scores` or `--probabilities`. As in VW, a class is a number even if its name is listed by
        `--named_labels`; with `--learn_names`, which VW does not have, it is a name. With `--top_k`, and with
        `--probabilities` of other reductions, return a list of pairs of a class and its probability; the last one has
        None in place of a class, for all other classes. With lists of labels, return the list of the labels above the
        threshold, or pairs without such a last one. `prediction_type` has to be that of the options.
        """
        self._check_type("prediction", prediction_type, self.get_prediction_type())
        prediction: float | int | str | list[Any] = self._process(ec, learn=False).get_prediction()
        return prediction

    @_in_turn
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

    @_in_turn
    def finish_example(self, ex: Example) -> None:
        """Count an example that was made by `parse` or `example`, and write its prediction to the file of `-p`."""
        if not ex.finished and ex._task is not None:
            self._check_open()
            self._session.report(ex._task)
        ex.finished = True

    @_in_turn
    def _batch(self, content: str | Mapping[str, Any] | None, learn: bool) -> Batch:
        """Return an example as a batch; if it is learned, a new name of a class becomes a class."""
        session = self._session
        if isinstance(content, Mapping):
            if session.inspector is not None:
                inspecting = ("invert_hash", "audit", "readable_model", "explain")
                option = next(name for name in inspecting if name in session.config.given)
                raise UsageError(f"--{option} needs lines of text, because it shows names of features")
            return session.inputs.example(_namespaces(content), None, None, learn)
        line = (content or "").replace("\r", "").strip()
        if "\n" in line:
            raise TypeError(f"an example is one line, and this text holds {line.count(chr(10)) + 1}")
        try:
            batch = session.inputs.example(line if "|" in line else f"{line} |", None, None, learn)
        except DataError as error:  # to skip the only line would be an error, too
            raise type(error)(malformed.without_skip(str(error))) from None
        if batch.n == 0:
            raise DataError(f"{session.inputs.notes[-1]}{malformed.CORRECT}")
        return batch

    @_in_turn
    def save(self, filename: str | PathLike[str]) -> None:
        """Save the model in the format of xclass; it can be loaded by `-i` and by `xclass.load`."""
        self._check_open()
        self._session.saver.save(files.path_of(filename))

    @_in_turn
    def finish(self) -> None:
        """Write the files of the options and the summary, and free the memory; a second call does nothing."""
        self._finish()

    def get_log(self) -> list[str]:
        """Return the messages so far, a line each; raise UsageError without `enable_logging`."""
        if self._log is None:
            raise UsageError("get_log: make the Workspace with enable_logging=True")
        return list(self._log)

    def get_prediction_type(self) -> PredictionType:
        """Return the type of the predictions."""
        return self._session.prediction_type

    def get_label_type(self) -> LabelType:
        """Return the type of the labels."""
        return LabelType[self._session.config.reduction.labels.upper()]

    def get_sum_loss(self) -> float:
        """Return the sum of the losses of the examples, those of `predict` included."""
        return float(self._session.progress.loss_sum)

    def get_holdout_sum_loss(self) -> float:
        """Return the sum of the losses of the examples that were held out, with data and several passes; else 0."""
        holdout = self._session.progress.holdout
        return 0.0 if holdout is None else float(holdout.loss)

    def get_arguments(self) -> str:
        """Return the options that were given, as text of a command line with the long names in alphabetical order."""
        config = self._session.config
        values = config.values()
        given = (item for item in config.declared().items() if item[0] in config.given)
        listed = sorted(as_words(option, values[name], long_flag(option)) for name, option in given)
        return shlex.join(word for words in listed for word in words)

    def get_weighted_examples(self) -> float:
        """Return the sum of the weights of the examples, those of `predict` included."""
        return float(self._session.progress.weight)

    def num_weights(self) -> int:
        """Return the number of weights, 2**b."""
        return 1 << int(self._session.config.learner.bits)

    def get_weight(self, index: int, offset: int = 0) -> float:
        """Return the number in a slot of the weight table; raise UsageError if the reduction has none.

        As in VW, slots beyond the table begin again at its start; with `vw_exact` or `--layout vw`, they are numbered
        as in VW. The offset is 0 for the weight, 1 for the sum of the squared gradients, and 2 for the largest value of
        the feature.
        """
        self._check_open()
        if not isinstance(index, (int, np.integer)) or not 0 <= index <= LARGEST_INDEX:
            raise TypeError(
                f"get_weight: the index {short_repr(index)} is not a whole number from 0 to {LARGEST_INDEX}; "
                f"num_weights() is {self.num_weights()}, and get_weight_from_name takes the name of a feature"
            )
        reduction = self._session.model.reduction
        if not reduction.tables:
            raise UsageError(f"get_weight: {self._session.config.reduction.name} has no table of weights")
        if offset not in range(3):
            raise UsageError(f"get_weight: the offset {short_repr(offset)} is not a number from 0 to 2")
        index = int(index) % sum(int(table.mask) + 1 for table in reduction.tables)
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
        return self._session.inputs.hasher.hash(s, self._session.config.parser.hash_seed)

    def hash_feature(self, s: str, u: int) -> int:
        """Return the index of a feature in a namespace with the hash `u`."""
        return self._session.inputs.hasher.index(s, u)

    def _check_open(self) -> None:
        if not self._finish.alive:
            raise UsageError("this Workspace is finished; make another one, with -i FILE to go on with a saved model")

    def _check_type(self, kind: str, given: int | None, own: int) -> None:
        """Raise UsageError if another type than that of the options is asked for; 0 stands for it in VW."""
        if given is not None and given != own and not (kind == "label" and given == 0):
            raise UsageError(f"{kind} type {given!r}: these options have {own!r}; leave the argument out")


class Example:
    """Hold an example of a Workspace; `finished` says whether `Workspace.finish_example` was called.

    `content` is a line of VW text; or a dictionary from namespaces to features, which are a dictionary from names to
    values, or a list of names and of pairs of a name and a value. `labelType` has to be that of the reduction.
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
        self._batch = vw._batch(content, learn)
        self._task: BatchTask | None = None

    def learn(self) -> None:
        """Learn from this example."""
        self.vw.learn(self)

    def set_label_string(self, string: str) -> None:
        """Give this example another label and weight, written as before the bar of a line."""
        label = self.vw._batch(f"{string} |", True)
        self._batch = self._batch._replace(
            label=label.label, weight=label.weight, initial=label.initial, label_start=label.label_start,
            labels=label.labels,
        )  # fmt: skip

    def get_label(self, label_class: int | None = None) -> SimpleLabel | MulticlassLabel | MultilabelLabel:
        """Return the label with the weight and the latest prediction; a missing class is 2**32 - 1, as in VW.

        Of a reduction that learns lists of labels, return the list.
        """
        self.vw._check_type("label", label_class, self.labelType)
        if self.labelType == LabelType.MULTILABEL:
            return MultilabelLabel(self._batch.labels.astype(np.int64).tolist())
        label, weight = float(self._batch.label[0]), float(self._batch.weight[0])
        prediction = 0.0
        if self._task is not None and self._task.prediction is not None:
            prediction = float(self._task.prediction[0])
        if self.labelType == LabelType.SIMPLE:
            label = float(np.finfo(np.float32).max) if np.isnan(label) else label
            return SimpleLabel(label, weight, float(self._batch.initial[0]), prediction)
        return MulticlassLabel(2**32 - 1 if np.isnan(label) else int(label), weight, int(prediction))

    def get_multiclass_label(self) -> int:
        """Return the class of the label, 2**32 - 1 without one; raise UsageError if labels are real numbers."""
        label = self.get_label(LabelType.MULTICLASS)
        assert isinstance(label, MulticlassLabel)
        return int(label.label)

    def get_tag(self) -> str:
        """Return the tag, empty without one."""
        batch = self._batch
        return batch.text[batch.tag_start[0] : batch.tag_end[0]].tobytes().decode("utf-8", "surrogateescape")

    def get_prediction(self, prediction_type: int | None = None) -> Any:
        """Return the latest prediction, see `Workspace.predict`; None before the first one."""
        self.vw._check_type("prediction", prediction_type, self.vw.get_prediction_type())
        return None if self._task is None else self.vw._session.prediction(self._task)


def _words_of(arg_str: str | None, arg_list: Sequence[str] | None, keywords: Mapping[str, Any]) -> list[str]:
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
            words += [flag, os.fspath(item) if isinstance(item, PathLike) else str(item)]
    return words


def _configured(words: Sequence[str]) -> tuple[Config, list[str], ModelContents | None]:
    """Return the options of a run from words of a command line, notes for the user, and the contents of the model."""
    groups, reductions = command.option_groups()
    given = arguments.read(groups, reductions, words)
    for information in ("help", "version"):
        if information in given:
            raise UsageError(f"--{information} belongs to the command; run `xclass --{information}`")
    if "threads" in given:
        raise UsageError("--threads belongs to the command; limit the processors by os.sched_setaffinity")
    notes = vw_flags.take(given)
    prepare_files(given, all_options(groups))
    if not given.get("data"):
        given["no_stdin"] = True
        for group in ("passes", "cache", "shuffle"):
            for name, option in options_of(groups[group]).items():
                if name in given and name not in WITHOUT_DATA and (name, given[name]) != ("passes", 1):
                    raise UsageError(f"{long_flag(option)} has no effect without data: give data=FILE, or leave it out")
    model = given.get("initial_regressor")
    contents = model_contents.load(model) if model is not None else None
    return resolved(given, contents), notes, contents


COLLECTIONS = 20  # of garbage, before a Workspace that the program may have dropped counts as in use
_saving: weakref.WeakValueDictionary[str, _Session] = weakref.WeakValueDictionary()  # file of -f -> who saves to it


class _Session(Run):
    """Execute the run behind a Workspace; messages are added to `log`, or written to standard error if it is None."""

    def __init__(
        self, config: Config, notes: Sequence[str], contents: ModelContents | None, log: list[str] | None
    ) -> None:
        path = config.run.final_regressor
        if path is not None:
            model_file.check_writable(path)
            path = os.path.realpath(path)
            for _ in range(COLLECTIONS):
                if path in _saving:  # perhaps one that the program has dropped
                    gc.collect()  # does nothing while another thread collects
                    time.sleep(0.01)
            if path in _saving:
                raise UsageError(
                    f"-f {path}: another Workspace of this program saves to this file; finish it first, or give each a "
                    "file of its own"
                )
        jit.activate(hide_scipy=False)
        super().__init__(config, notes, Local(), None if log is None else _Log(config.run.quiet, log))
        self._started = time.perf_counter()
        self.turn = exclusive.Exclusive()  # `Workspace` takes it for each call
        with contextlib.ExitStack() as closing:
            self._begin(contents, closing)
            self._closing = closing.pop_all()
        self.prediction_type = self._prediction_type()
        self.inputs = Inputs(self.model, vw_text=True)
        if config.reader.data:
            with self.signals:
                error = self._run_passes()
            if error is not None or self.signals.stopped:
                self.finish(error)
                raise KeyboardInterrupt
        if self.inspector is not None:
            self.model.preparation.one_by_one = self.inspector.one_by_one
            self.model.preparation.keep_names = False
        if path is not None:
            _saving[path] = self
        stages = self.model.reduction.stages
        self._stages = stages if self.inspector is None else self.inspector.stages(stages)

    def _prediction_type(self) -> PredictionType:
        if self.config.reduction.labels == "simple":
            return PredictionType.SCALAR
        listing, scores = self.config.listing_options, self.model.reduction.lists_scores
        lists = scores or listing.lists_classes
        if self.config.reduction.labels == "multilabel" and not scores:
            has_pairs = listing.probabilities or (lists and not self.options.vw_exact)
            return PredictionType.ACTION_PROBS if has_pairs else PredictionType.MULTILABELS
        return PredictionType.SCALARS if lists else PredictionType.MULTICLASS

    def process(self, batch: Batch, learn: bool) -> BatchTask:
        """Learn from a single example or predict it; return its task, for `report`."""
        if learn and (self.config.reduction.learns_at_end or self.model.reduction.awaited):
            raise UsageError(
                f"{self.config.reduction.name} with these options needs to see the data before it learns: give "
                "data=FILE, or use xclass.Learner"
            )
        (task,) = self.model.tasks(batch, learn and self.learning, self.model.clock)
        clock = self.model.clock
        self.model.execute(task, self._stages)
        if self.options.vw_exact:  # VW's clock advances in `finish_example`, by examples that are only predicted, too
            self.model.clock = clock
        return task

    def report(self, task: BatchTask) -> None:
        """Count a task, show its messages, and write its prediction."""
        if self.options.vw_exact and not np.isnan(task.batch.label[0]):
            self.model.clock += float(task.batch.weight[0])
        self._report(task)

    def prediction(self, task: BatchTask) -> Any:
        """Return the prediction of the only example of a task, see `Workspace.predict`."""
        if self.prediction_type == PredictionType.MULTILABELS and task.label_lists is not None:
            return list(map(self._label, task.label_lists.chosen.labels.tolist()))
        if task.class_lists is not None:
            listed = task.class_lists
            scores = listed.scores.tolist()
            if (
                self.prediction_type == PredictionType.SCALARS
                and self.model.reduction.lists_scores
                and self.config.listing_options.top_k is None
            ):
                return scores
            labels: list[int | str | None] = list(map(self._label, listed.labels.tolist()))
            if listed.has_rest:
                labels[-1] = None
            return list(zip(labels, scores, strict=True))
        assert task.prediction is not None
        prediction = float(task.prediction[0])
        return prediction if self.prediction_type == PredictionType.SCALAR else self._label(int(prediction))

    def _label(self, number: int) -> int | str:
        """Return a class as the program sees it: a name if names are learned."""
        names = self.model.names.names if self.config.parser.learn_names else None
        return class_names.name_of(number, names) or number

    def finish(self, error: BaseException | None = None) -> None:
        """Write files and the summary; an `error` has ended the run early, and is raised again."""
        with self._closing:
            try:
                self._finish(error, self._started)
            finally:
                if self.config.run.final_regressor is not None:
                    _saving.pop(os.path.realpath(self.config.run.final_regressor), None)
                    output_file.drop_claims(self.config.run.final_regressor)


class _Log(Console):
    """Add the messages of a run to a list."""

    def __init__(self, quiet: bool, lines: list[str]) -> None:
        super().__init__(quiet)
        self._lines = lines

    def line(self, text: str) -> None:
        self._lines.append(text)

    def start_bar(self, size: int | None) -> None:
        pass


class _Features(dict[str, Any]):
    """Hold the features of a namespace, in which a name may occur several times."""

    def __init__(self, pairs: Sequence[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self._pairs = pairs

    def items(self) -> Any:
        return self._pairs


def _namespaces(content: Mapping[str, Any]) -> dict[str, _Features]:
    """Return the namespaces of an example that is a dictionary, see `Example`."""
    converted = {}
    for namespace, features in content.items():
        if not isinstance(features, (Mapping, list, tuple)):
            raise UsageError(f"namespace {namespace!r}: {short_repr(features)} is neither a dictionary nor a list")
        pairs = []
        for item in features.items() if isinstance(features, Mapping) else features:
            name, value = item if isinstance(item, tuple) and len(item) == 2 else (item, 1.0)
            if not isinstance(name, str):
                raise UsageError(f"namespace {namespace!r}: the feature {short_repr(name)} is not text; give its name")
            pairs.append((name, value))
        converted[namespace or " "] = _Features(pairs)
    return converted


vw = Workspace
pyvw = sys.modules[__name__]
