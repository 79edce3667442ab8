"""Collect the results of a run that are requested as files, and write the files at the end of the run."""

from __future__ import annotations

import csv
import heapq
import io
import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from ...api.configuration import Config
from ...api.learner_core import LearnerCore
from ...api.progress import running_sums
from ...array_types import Bools, Float64s
from ...data import batch_ops, class_names
from ...data.batch import Batch
from ...options.declare import options_of
from ...reductions.core.contract import BatchTask
from ...reductions.core.label_lists import MultilabelLearner
from ...system import output_file
from ..options import ResultOptions
from . import by_class, outcomes, summary
from .by_class import PairSums
from .outcomes import Measured, OutcomeRecorder

COLUMNS = ("place", "label", "answer", "answer_probability", "label_probability", "line")
OF_CURVE = (  # columns of --curve
    "pass", "examples", "weight", "average_loss", "recent_loss", "average_log_loss", "held_out_loss", "seconds",
)  # fmt: skip
GROWTH = 1.05  # factor by which the number of examples grows between two rows, unless the progress table has a row
LEAST_PROBABILITY = 1e-300  # taken for probabilities below it, as in the summary
NOT_KNOWN = 2.0  # sorts labels without a probability after all others
UNKNOWN = "unknown"


class Recorder:
    """Collect results. With several passes, those by example are of the last pass, and of held-out lines if there are
    some.

    `config` and `model` are those of the run.
    """

    def __init__(self, config: Config, model: LearnerCore) -> None:
        self.options: ResultOptions = config.results
        options, labels, learner = self.options, config.reduction.labels, model.reduction
        self._names = model.names.class_list  # which may grow
        self._holds_out, self._lists = config.passes.holds_out, labels == "multilabel"
        self.curve = None if options.curve is None else Curve()
        self._measured = learner if isinstance(learner, MultilabelLearner) and options.per_class is not None else None
        self.report = None if self._measured is None else self._measured.new_report()
        self.pairs = PairSums() if options.per_class is not None and self._measured is None else None
        self.wrong_lines = None if options.errors is None else WrongLines(options.most_errors)
        self.outcomes = OutcomeRecorder(self.class_text) if options.summary is not None and labels != "simple" else None
        self._by_example = [part for part in (self.pairs, self.wrong_lines, self.outcomes) if part is not None]
        self._begins_pass = False

    def class_text(self, label: int) -> str:
        """Return the text of a class: its number or its name, and for the answer 0 an empty text."""
        return class_names.text_of(label, self._names, UNKNOWN) if label or self._lists else ""

    def count(self, task: BatchTask, printed: Sequence[int], file: str, with_text: bool) -> None:
        """Count a task that has passed the stages.

        `printed` is as in `Curve.add`. `with_text` says whether the batch contains the text that it was read from.
        """
        if self._begins_pass:
            for part in self._by_example:
                part.clear()
            self.report = None if self._measured is None else self._measured.new_report()
            self._begins_pass = False
        if self.curve is not None:
            self.curve.add(task, printed, self._holds_out)
        if task.batch.has_lists:
            chosen = outcomes.measures(task, self._holds_out)
            if self.outcomes is not None:
                self.outcomes.add_lists(task, chosen)
            if self._measured is not None and self.report is not None:
                weights = np.where(chosen, task.batch.weight, np.float32(0))
                self._measured.measure(self.report, task, weights=weights)
            return
        if not self._by_example:
            return
        examples = outcomes.select(task, self._holds_out)
        if self.pairs is not None:
            self.pairs.add(examples)
        if self.wrong_lines is not None:
            self.wrong_lines.add(task.batch, examples, file, with_text)
        if self.outcomes is not None:
            self.outcomes.add(examples)

    def end_pass(self) -> None:
        """Note that a pass has ended."""
        if self.curve is not None:
            self.curve.end_pass()
        self._begins_pass = True

    def notes(self) -> list[str]:
        """Return notes about what the files do not contain."""
        left_out = "" if self.wrong_lines is None else self.wrong_lines.left_out()
        return [f"{self.options.errors}: {left_out}"] if left_out else []

    def write(self, make_record: Callable[[], dict[str, Any]]) -> None:
        """Write the files that are requested. `make_record` returns the summary, without outcomes."""
        if self.curve is not None:
            self.curve.finish()
            self._replace("curve", _csv(self.curve.table()))
        if self.pairs is not None:
            self._replace("per_class", _csv(by_class.rows(self.pairs, self.class_text)))
        if self.report is not None:
            self._replace("per_class", _csv(by_class.label_rows(self.report, self.class_text)))
        if self.wrong_lines is not None:
            self._replace("errors", _encoded(line + "\n" for line in self.wrong_lines.lines(self.class_text)))
        if self.options.summary is not None:
            record = {**make_record(), "outcomes": None if self.outcomes is None else self.outcomes.record()}
            text = json.dumps(summary.finite(record), indent=1, allow_nan=False)
            self._replace("summary", _encoded([text + "\n"]))

    def _replace(self, name: str, pieces: Iterable[bytes]) -> None:
        """Write the file of the option with this field."""
        output_file.replace(getattr(self.options, name), options_of(ResultOptions)[name].writes, pieces)


def _csv(rows: Iterable[list[str]]) -> Iterator[bytes]:
    line = io.StringIO()
    writer = csv.writer(line, lineterminator="\n")
    for row in rows:
        writer.writerow(row)
        yield line.getvalue().encode("utf-8", "surrogateescape")
        line.seek(0)
        line.truncate()


def _encoded(lines: Iterable[str]) -> Iterator[bytes]:
    """Yield lines as bytes; bytes that could not be decoded stay as they are."""
    for line in lines:
        yield line.encode("utf-8", "surrogateescape")


class WrongLines:
    """Keep the wrongly predicted lines whose labels have the lowest probabilities, for `--errors`.

    Lines whose label has no probability, because it occurs for the first time or the reduction gives none, come last.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.clear()

    def clear(self) -> None:
        """Forget all lines."""
        # a heap with the first to be dropped on top: (-probability, -number of the line), then the columns
        self._kept: list[tuple[float, int, tuple[str, int, int, float, float, bytes]]] = []
        self._count = 0  # of lines that were compared with the kept ones
        self._wrong = 0

    def add(self, batch: Batch, examples: Measured, file: str, with_text: bool) -> None:
        """Add the wrong ones among the measured examples of a batch, with their lines if the batch contains its
        text.
        """
        probability = np.where(np.isnan(examples.label_probability), NOT_KNOWN, examples.label_probability)
        wrong = np.flatnonzero(examples.wrong)
        self._wrong += len(wrong)
        if len(wrong) > self.most:  # of one batch, those with the lowest probabilities are enough
            wrong = np.sort(wrong[np.argsort(probability[wrong], kind="stable")[: self.most]])
        for j in wrong.tolist():
            self._count += 1
            key = (-float(probability[j]), -self._count)
            if len(self._kept) == self.most and key < self._kept[0][:2]:
                continue
            i = int(examples.row[j])
            text = b""
            if with_text:
                begin, end = batch_ops.line_of(batch, i)
                text = batch.text[begin:end].tobytes()
            columns = (
                f"{file}:{batch.line[i]}",
                int(examples.label[j]),
                int(examples.answer[j]),
                float(examples.answer_probability[j]),
                float(examples.label_probability[j]),
                text,
            )
            change = heapq.heappush if len(self._kept) < self.most else heapq.heapreplace
            change(self._kept, (*key, columns))

    def left_out(self) -> str:
        """Return a note about the wrong lines that were not kept, an empty text if all were."""
        if self._wrong <= self.most:
            return ""
        return f"{self.most} of {self._wrong} wrong lines are written; --most_errors {self._wrong} writes all"

    def lines(self, name: Callable[[int], str]) -> Iterator[str]:
        """Yield a header and the lines, columns separated by tabs; the text of the line comes last."""
        yield "\t".join(COLUMNS)
        for _, _, (place, label, answer, of_answer, of_label, text) in sorted(self._kept, reverse=True):
            line = text.rstrip(b"\r").decode("utf-8", "surrogateescape")
            yield "\t".join((place, name(label), name(answer), _probability(of_answer), _probability(of_label), line))


def _probability(p: float) -> str:
    return "" if np.isnan(p) else f"{p:.6g}"


class Curve:
    """Record the learning curve: a row for every row of the progress table, and for every 5 % more examples.

    Losses are sums over all examples so far that are not held out, as in the progress table. The held-out loss is that
    of the current pass.
    """

    def __init__(self) -> None:
        self.rows: list[list[str]] = []
        self._started = time.perf_counter()
        self._pass = 1
        self._examples = 0
        self._due = 1
        # weight, labelled weight, loss, weight of labels with a probability, log loss, held-out weight and loss
        self._sums = np.zeros(7)
        self._last_weight = self._last_loss = 0.0
        self._recorded = 0

    def add(self, task: BatchTask, printed: Sequence[int], holds_out: bool) -> None:
        """Add a task that has passed the stages.

        `printed` are the positions of the examples for which the progress table has a row; `holds_out` says whether
        lines are held out.
        """
        n = task.batch.n
        if n == 0:
            return
        held_out = np.zeros(n, bool) if task.held_out is None or not holds_out else task.held_out
        number = self._examples + np.cumsum(~held_out)
        sums = np.stack(
            [
                running_sums(total, values)
                for total, values in zip(self._sums, self._values(task, held_out), strict=True)
            ]
        )
        points = set(printed)
        while self._due <= number[-1]:
            points.add(int(np.searchsorted(number, self._due)))
            self._due = max(self._due + 1, int(self._due * GROWTH))
        for i in sorted(points):
            self._record(int(number[i]), sums[:, i])
        self._examples, self._sums = int(number[-1]), sums[:, -1].copy()

    def _values(self, task: BatchTask, held_out: Bools) -> list[Float64s]:
        """Return what each example adds to the sums, float64[n] each."""
        n = task.batch.n
        weight = task.batch.weight.astype(np.float64)
        labelled = ~np.isnan(task.batch.label)
        counted = labelled & ~held_out
        loss = np.zeros(n) if task.loss is None else task.loss
        p = np.full(n, np.nan) if task.label_probability is None else task.label_probability
        known = counted & ~np.isnan(p)
        log_loss = -np.log(np.maximum(np.where(known, p, 1.0), LEAST_PROBABILITY))
        measured = labelled & held_out
        pairs = (
            (~held_out, weight), (counted, weight), (counted, loss), (known, weight), (known, weight * log_loss),
            (measured, weight), (measured, loss),
        )  # fmt: skip
        return [np.where(chosen, values, 0.0) for chosen, values in pairs]

    def _record(self, examples: int, sums: Float64s) -> None:
        """Add a row, given the sums up to an example."""
        weight, labelled, loss, known, log_loss, held_out, held_out_loss = sums.tolist()
        recent = _ratio(loss - self._last_loss, labelled - self._last_weight)
        self._last_weight, self._last_loss, self._recorded = labelled, loss, examples
        self.rows.append([
            str(self._pass), str(examples), f"{weight:.9g}", _ratio(loss, labelled), recent, _ratio(log_loss, known),
            _ratio(held_out_loss, held_out), f"{time.perf_counter() - self._started:.3f}",
        ])  # fmt: skip

    def end_pass(self) -> None:
        """End a pass."""
        self.finish()
        self._pass += 1
        self._sums[5:] = 0.0

    def finish(self) -> None:
        """Add a row about all examples of the pass, unless the last row is about them."""
        if self._examples > self._recorded or self._sums[5] > 0:
            self._record(self._examples, self._sums)

    def table(self) -> Iterator[list[str]]:
        """Yield the header and the rows."""
        yield list(OF_CURVE)
        yield from self.rows


def _ratio(total: float, weight: float) -> str:
    return f"{total / weight:.6f}" if weight else ""
