"""Provide `Workspace`, so that a program written for VW's Python module runs after one changed import.

    from xclass.vw import Workspace          # instead of: from vowpalwabbit import Workspace

A Workspace is a run of the command to which a program passes examples one by one: it has the options, files, messages
and sums of a run. With `vw_exact` its predictions are those of VW.

Differs   from VW: an example is a line of text, or a dictionary from namespaces to features, and its features cannot be
          changed or listed afterwards. A malformed example raises `DataError`. There are no examples of several lines,
          and no reductions other than those of xclass.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

import numpy as np

from . import __version__
from .api import files
from .errors import UsageError
from .reductions.core.contract import BatchTask
from .system.printable import short_repr
from .workspace.configuration import arguments_of, configured, words_of
from .workspace.session import Session
from .workspace.types import LabelType, MulticlassLabel, MultilabelLabel, PredictionType, SimpleLabel

__all__ = [
    "Example", "LabelType", "MulticlassLabel", "MultilabelLabel", "PredictionType", "SimpleLabel", "Workspace",
    "__version__", "pyvw", "vw",
]  # fmt: skip

LARGEST_INDEX = 2**32 - 1


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
        config, notes, contents = configured(words_of(arg_str, arg_list, kw))
        self._session = session = Session(config, notes, contents, self._log)
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

    # examples

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

        Parameters
        ----------
        ec : str or Example
            A line of VW text, `label | features`, or an example that `parse` or `example` has made.
        """
        self._process(ec, learn=True)

    def predict(
        self, ec: str | Mapping[str, Any] | Example, prediction_type: int | None = None
    ) -> float | int | str | list[Any]:
        """Predict an example.

        Parameters
        ----------
        ec : str, dict or Example
            As in `learn`, or a dictionary as for `Example`.
        prediction_type : int, optional
            Type of the prediction, which has to be that of the options, see `get_prediction_type`.

        Returns
        -------
        prediction : float, int, str or list
            The number, without a reduction; the class; the scores or probabilities of the classes 1 to K with `--oaa`
            and `--scores` or `--probabilities`. As in VW, a class is a number even if its name is listed by
            `--named_labels`; with `--learn_names`, which VW does not have, it is a name. With `--top_k`, and with
            `--probabilities` of other reductions, a list of pairs of a class and its probability; the last one has None
            in place of a class, for all other classes. With lists of labels, the list of the labels above the
            threshold, or pairs without such a last one.
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

        def process() -> Example:
            self._check_open()
            example = ec if isinstance(ec, Example) else Example(self, ec, learn=learn)
            example._task = self._session.process(example._batch, learn)
            if example is not ec:
                self.finish_example(example)
            return example

        return self._session.turn.complete(process)

    def finish_example(self, ex: Example) -> None:
        """Count an example that was made by `parse` or `example`, and write its prediction to the file of `-p`."""

        def finish() -> None:
            if not ex.finished and ex._task is not None:
                self._check_open()
                self._session.report(*ex._task)
            ex.finished = True

        self._session.turn.complete(finish)

    # models and the end

    def save(self, filename: str | PathLike[str]) -> None:
        """Save the model in the format of xclass; it can be loaded by `-i` and by `xclass.load`."""

        def save() -> None:
            self._check_open()
            self._session.save(files.path_of(filename))

        self._session.turn.complete(save)

    def finish(self) -> None:
        """Write the files of the options and the summary, and free the memory; a second call does nothing."""
        self._session.turn.complete(self._finish)

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
        return arguments_of(self._session.config)

    def get_weighted_examples(self) -> float:
        """Return the sum of the weights of the examples, those of `predict` included."""
        return float(self._session.progress.weight)

    # weights

    def num_weights(self) -> int:
        """Return the number of weights, 2**b."""
        return 1 << int(self._session.config.learner.bits)

    def get_weight(self, index: int, offset: int = 0) -> float:
        """Return a number of the weight table; raise UsageError if the reduction has none.

        Parameters
        ----------
        index : int
            Slot in the table, from 0 to 2**32 - 1; as in VW, slots beyond the table begin again at its start. With
            `vw_exact` or `--layout vw`, slots are numbered as in VW.
        offset : int, default 0
            0 for the weight, 1 for the sum of the squared gradients, 2 for the largest value of the feature.
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

    # checks

    def _check_open(self) -> None:
        if not self._finish.alive:
            raise UsageError("this Workspace is finished; make another one, with -i FILE to go on with a saved model")

    def _check_type(self, kind: str, given: int | None, own: int) -> None:
        """Raise UsageError if another type than that of the options is asked for; 0 stands for it in VW."""
        if given is not None and given != own and not (kind == "label" and given == 0):
            raise UsageError(f"{kind} type {given!r}: these options have {own!r}; leave the argument out")


class Example:
    """Hold an example of a Workspace; `finished` says whether `Workspace.finish_example` was called.

    Parameters
    ----------
    vw : Workspace
    content : str or dict, optional
        A line of VW text; or a dictionary from namespaces to features, which are a dictionary from names to values, or
        a list of names and of pairs of a name and a value. None for no features.
    labelType : int, optional
        Type of the label, which has to be that of the reduction.
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
        self._batch = vw._session.turn.complete(lambda: vw._session.batch(content, learn))
        self._task: tuple[BatchTask, np.ndarray | None] | None = None

    def learn(self) -> None:
        """Learn from this example."""
        self.vw.learn(self)

    def set_label_string(self, string: str) -> None:
        """Give this example another label and weight, written as before the bar of a line."""
        label = self.vw._session.turn.complete(lambda: self.vw._session.batch(f"{string} |", True))
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
        if self._task is not None and self._task[0].prediction is not None:
            prediction = float(self._task[0].prediction[0])
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
        return None if self._task is None else self.vw._session.prediction(self._task[0])


vw = Workspace
pyvw = sys.modules[__name__]
