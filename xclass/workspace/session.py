"""Run the stages of a run for examples that a program passes one by one, behind a Workspace."""

from __future__ import annotations

import contextlib
import gc
import os
import time
import weakref
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ..api.configuration import Config
from ..api.inputs import Inputs
from ..api.model_contents import Contents
from ..data import class_names
from ..data.batch import Batch
from ..errors import DataError, UsageError
from ..kernels import jit
from ..model import model_file
from ..reductions.core.contract import BatchTask
from ..run.report.console import Console
from ..run.run import Local, Run
from ..system import exclusive, output_file
from ..system.printable import short_repr
from .types import PredictionType

_saving: weakref.WeakValueDictionary[str, Session] = weakref.WeakValueDictionary()  # file of -f -> who saves to it


class Session(Run):
    """Execute the run behind a Workspace; messages are added to `log`, or written to standard error if it is None."""

    def __init__(self, config: Config, notes: Sequence[str], contents: Contents | None, log: list[str] | None) -> None:
        path = config.run.final_regressor
        if path is not None:
            model_file.check_writable(path)
            if (path := os.path.realpath(path)) in _saving:
                gc.collect()  # perhaps of one that the program has dropped
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
            closing.callback(self.console.end_bar)
            self._prepare(contents, closing)
            self._banner()
            self._open_writers(closing)
            self.model.reduction.report_to(self.console, self.reader.fraction_read)
            self._closing = closing.pop_all()
        self.prediction_type = self._prediction_type()
        self.inputs = Inputs(self.model, vw_text=True)
        if config.reader.data:
            self._learn_data()
        if self.inspector is not None:
            self.model.preparation.one_by_one = self.inspector.one_by_one
            self.model.preparation.keep_names = False
        if path is not None:
            _saving[path] = self
        self._stages = self.model.stages if self.inspector is None else self.inspector.stages(self.model.stages)

    def _learn_data(self) -> None:
        """Execute the passes over the data; after an error or a signal, end the run and raise it."""
        with self.signals:
            error = self._run_passes()
        if error is not None or self.signals.stopped:
            self._end(error)
            raise KeyboardInterrupt

    def _prediction_type(self) -> PredictionType:
        if self.config.reduction.labels == "simple":
            return PredictionType.SCALAR
        listing, scores = self.config.listing_options, self.model.reduction.lists_scores
        lists = scores or listing.lists_classes
        if self.config.reduction.labels == "multilabel" and not scores:
            has_pairs = listing.probabilities or (lists and not self.options.vw_exact)
            return PredictionType.ACTION_PROBS if has_pairs else PredictionType.MULTILABELS
        return PredictionType.SCALARS if lists else PredictionType.MULTICLASS

    def batch(self, content: str | Mapping[str, Any] | None, learn: bool) -> Batch:
        """Return an example as a batch; if it is learned, a new name of a class becomes a class."""
        if isinstance(content, Mapping):
            if self.inspector is not None:
                inspecting = ("invert_hash", "audit", "readable_model", "explain")
                option = next(name for name in inspecting if name in self.config.given)
                raise UsageError(f"--{option} needs lines of text, because it shows names of features")
            return self.inputs.example(_namespaces(content), None, None, learn)
        line = (content or "").replace("\r", "").strip()
        if "\n" in line:
            raise TypeError(f"an example is one line, and this text holds {line.count(chr(10)) + 1}")
        batch = self.inputs.example(line if "|" in line else f"{line} |", None, None, learn)
        if batch.n == 0:
            raise DataError(f"example: {short_repr(line)} is malformed and left out, see --on_bad_line")
        return batch

    def process(self, batch: Batch, learn: bool) -> tuple[BatchTask, np.ndarray | None]:
        """Learn from a single example or predict it; return its task and the highest class seen, for `report`."""
        if learn and (self.config.reduction.learns_at_end or self.model.preview_size is not None):
            raise UsageError(
                f"{self.config.reduction.name} with these options needs to see the data before it learns: give "
                "data=FILE, or use xclass.Learner"
            )
        (task,) = self.model.tasks(batch, learn and self.learning, self.model.clock)
        for stage in self._stages:
            stage(task)
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
        if self.prediction_type == PredictionType.MULTILABELS and task.chosen is not None:
            return list(map(self._label, task.chosen.labels.tolist()))
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

    def save(self, path: str) -> None:
        if self.model.unlearned:
            raise UsageError("some examples are not learned yet; the reduction learns at the end of the data")
        self.saver.save(path)

    def finish(self) -> None:
        """Write the files of the options and the summary, and free the memory."""
        self._end(None)

    def _end(self, error: BaseException | None) -> None:
        """End the run, which `error` has ended early if it is not None; the error is raised again."""
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


class _Features(Mapping[str, Any]):
    """Hold the features of a namespace, in which a name may occur several times."""

    def __init__(self, pairs: Sequence[tuple[str, Any]]) -> None:
        self._pairs = pairs

    def items(self) -> Any:
        return self._pairs

    def __getitem__(self, name: str) -> Any:
        return dict(self._pairs)[name]

    def __iter__(self) -> Iterator[str]:
        return iter(name for name, _ in self._pairs)

    def __len__(self) -> int:
        return len(self._pairs)


def _namespaces(content: Mapping[str, Any]) -> dict[str, _Features]:
    """Return the namespaces of an example that is a dictionary, see `Example`."""
    converted = {}
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
        converted[namespace or " "] = _Features(pairs)
    return converted
