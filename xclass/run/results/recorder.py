"""Collect the results of a run that are requested as files, and write the files at the end of the run."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from ...array_types import Float64s
from ...data import class_names
from ...options.declare import options_of
from ...reductions.core.base import Learner
from ...reductions.core.contract import BatchTask
from ...reductions.core.label_lists import MultilabelLearner
from ...system import output_file
from . import by_class, measured, summary
from .by_class import PairSums
from .curve import Curve
from .options import Options
from .outcomes import Outcomes
from .wrong_lines import WrongLines

UNKNOWN = "unknown"


class Recorder:
    """Collect results. With several passes, those by example are of the last pass, and of held-out lines if there are
    some.

    `labels` is that of the reduction's record. `names` are those of the classes 1, 2, ..., or None if labels are
    numbers; the list may grow. `learner` is that of the run, if it may learn lists of labels.
    """

    def __init__(
        self, options: Options, labels: str, names: Sequence[str] | None, holds_out: bool,
        learner: Learner | None = None,
    ) -> None:  # fmt: skip
        self.options = options
        self._names = names
        self._holds_out, self._lists = holds_out, labels == "multilabel"
        self.curve = None if options.curve is None else Curve()
        self._measured = learner if isinstance(learner, MultilabelLearner) and options.per_class is not None else None
        self.report = None if self._measured is None else self._measured.new_report()
        self.pairs = PairSums() if options.per_class is not None and self._measured is None else None
        self.wrong_lines = None if options.errors is None else WrongLines(options.most_errors)
        self.outcomes = Outcomes(self.class_text) if options.summary is not None and labels != "simple" else None
        self._by_example = [part for part in (self.pairs, self.wrong_lines, self.outcomes) if part is not None]
        self._begins_pass = False

    def class_text(self, label: int) -> str:
        """Return the text of a class: its number or its name, and for the answer 0 an empty text."""
        return class_names.text_of(label, self._names, UNKNOWN) if label or self._lists else ""

    def count(
        self, task: BatchTask, highest_seen: Float64s | None, printed: Sequence[int], file: str, with_text: bool
    ) -> None:
        """Count a task that has passed the stages.

        `highest_seen` is as in `measured.select`, `printed` as in `Curve.add`. `with_text` says whether the batch
        contains the text that it was read from.
        """
        if self._begins_pass:
            for part in self._by_example:
                part.clear()
            self.report = None if self._measured is None else self._measured.new_report()
            self._begins_pass = False
        if self.curve is not None:
            self.curve.add(task, printed, self._holds_out)
        if task.batch.has_lists:
            self._count_lists(task)
            return
        if not self._by_example:
            return
        examples = measured.select(task, highest_seen, self._holds_out)
        if self.pairs is not None:
            self.pairs.add(examples)
        if self.wrong_lines is not None:
            self.wrong_lines.add(task.batch, examples, file, with_text)
        if self.outcomes is not None:
            self.outcomes.add(examples)

    def _count_lists(self, task: BatchTask) -> None:
        """Count a task whose examples have lists of labels."""
        chosen = measured.measures(task, self._holds_out)
        if self.outcomes is not None:
            self.outcomes.add_lists(task, chosen)
        if self._measured is not None and self.report is not None:
            weights = np.where(chosen, task.batch.weight, np.float32(0))
            self._measured.measure(self.report, task, weights=weights)

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
            outcomes = None if self.outcomes is None else self.outcomes.record()
            text = json.dumps(summary.finite({**make_record(), "outcomes": outcomes}), indent=1, allow_nan=False)
            self._replace("summary", _encoded([text + "\n"]))

    def _replace(self, name: str, pieces: Iterable[bytes]) -> None:
        """Write the file of the option with this field."""
        output_file.replace(getattr(self.options, name), options_of(Options)[name].writes, pieces)


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
