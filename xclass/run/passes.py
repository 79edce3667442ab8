"""Run several passes over the data, hold out examples, and find the save points within a pass.

Source    VW 9.11 (parser.cc, gd.cc): lines are counted from 1 in every pass, empty lines included. A line is held out
          if its number is a multiple of --holdout_period, or beyond --holdout_after. Held-out examples are predicted
          but not learned from, and measure how good the pass was. With --initial_pass_length N, the first --passes
          passes use the first N lines, the next --passes passes the first 2 N + 1, and so on until a pass reaches the
          end of the data. A single pass is not repeated but continued: it ends after N lines, then after 2 N + 1 more
          lines, and so on.
Differs   from VW: after the last pass the model of the best pass is saved (with `--keep_last` that of the last pass, as
          in VW). Passes without held-out examples do not count as misses (VW stops after the fourth). `save_NAME` tags
          write only inside the current folder, follow no symbolic links, and replace only models (NAME.0 with
          --save_per_pass, as in VW). With --initial_pass_length, VW never reads a line beyond the first N if it makes a
          cache in the same run, and repeats a single pass if it has a cache.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..cache.source import Source
from ..data import batch_ops
from ..data.batch import CONSTANT_GROUP, Batch
from ..errors import DataError
from ..options.declare import OptionGroup, no_effect, one_of, option, warned
from ..reductions.core.base import Reduction
from ..reductions.core.contract import BatchTask
from ..system import output_file
from .shuffle import Shuffler

STATE = ".parts"  # added to the name of the model: the state of a run on a cluster at its last checkpoint


def _models_of_passes(saves: bool | None, given: Mapping[str, Any]) -> list[re.Pattern[str]]:
    """Return a pattern for the models that --save_per_pass saves."""
    if not saves or "final_regressor" not in given:
        return []
    return [re.compile(re.escape(os.path.realpath(given["final_regressor"])) + r"\.[0-9]+")]


def _state_of_run(every: int | None, given: Mapping[str, Any]) -> list[str]:
    """Return the file of the state that a run on a cluster writes at its checkpoints."""
    return [f"{given['final_regressor']}{STATE}"] if every and {"workers", "final_regressor"} <= given.keys() else []


class PassOptions(OptionGroup):
    """Declare the options of passes over the data."""

    passes: int = option(
        "number of passes over the data",
        default=1,
        minimum=1,
        search=one_of(1, 2, 3, 4, 5, 8, 12, first=(3, 8), weight=3.0),
    )
    holdout_off: bool = option("with several passes, learn from every example")
    holdout_period: int = option(
        "with several passes, hold out every Nth line: it is predicted but not learned from, and its loss decides "
        "which pass was best",
        default=10,
        minimum=1,
    )
    holdout_after: int = option("hold out every line after line N instead, even in a single pass", default=0, minimum=0)
    early_terminate: int = option(
        "stop after N consecutive passes that were no better than the best", default=3, minimum=1
    )
    keep_last: bool = option("save the model of the last pass instead of the best", aliases=("--save_last_pass",))
    initial_pass_length: int = option(
        "end the first --passes passes after N lines, the next after 2 N + 1 lines, and so on to the end of the data;"
        " with a single pass, each part continues where the last one ended",
        minimum=1,
    )
    examples: int = option("end each pass after N lines", minimum=1)
    save_per_pass: bool = option(
        "also save the model after every pass, as MODEL.1, MODEL.2 and so on",
        writes=output_file.MODEL,
        files=_models_of_passes,
    )
    checkpoint: int = option(
        "save the model to -f every N examples, so that an interrupted run can be continued with -i",
        minimum=1,
        writes=output_file.MODEL,
        files=_state_of_run,
    )

    RULES = (
        no_effect("save_per_pass checkpoint", "it needs -f FILE, the model to save", final_regressor=None),
        no_effect("checkpoint", "with -t nothing is learned", testonly=True),
        no_effect("holdout_period holdout_after", "with --holdout_off no example is held out", holdout_off=True),
        no_effect("early_terminate", "without held-out examples no pass is better than another", holdout_off=True),
        *(
            warned("early_terminate", "no pass is compared with an earlier one; give --passes", passes=1, **missing)
            for missing in ({"initial_pass_length": None}, {"initial_pass_length": True, "holdout_after": None})
        ),
        warned(
            "holdout_period",
            "in a single pass no line is held out; give --passes, or --holdout_after N in place of {flag}",
            passes=1,
            holdout_after=None,
        ),
        warned(
            "keep_last",
            "with one pass, the model of the last pass is always saved; give --passes 2 or more, or leave it out",
            passes=1,
            data=True,
        ),
        warned("holdout_period", "--holdout_after says which lines are held out", holdout_after=True),
    )

    @property
    def holds_out(self) -> bool:
        """Return whether lines are held out."""
        return (self.passes > 1 or self.holdout_after > 0) and not self.holdout_off

    def held_out(self, line: np.ndarray) -> np.ndarray:
        """Return, as bool[n], whether each line is held out; `line` is int64[n], numbers of lines."""
        if not self.holds_out:
            return np.zeros(len(line), bool)
        return line > self.holdout_after if self.holdout_after else line % self.holdout_period == 0


@dataclass(frozen=True)
class SavePoint:
    """Mark a position within a pass where the pipeline is emptied and the model is saved."""

    path: str | None
    by_data: bool  # whether a tag in the data names the file
    message: str  # message to show when the model is saved
    refusal: str = ""  # reason for not saving, or empty


def previewed(items: Iterator[BatchTask | SavePoint], learner: Reduction) -> Iterator[BatchTask | SavePoint]:
    """Show a learner as many of the first tasks as it wants to see, then yield these and the remaining items.

    The first tasks are held in memory meanwhile, so a run that a signal stops during the preview has learned nothing.
    An error that ends `items` during the preview is raised after the tasks before it are yielded.
    """
    buffered: list[BatchTask | SavePoint] = []
    error, more = None, True
    try:
        while more and (item := next(items, None)) is not None:
            buffered.append(item)
            more = isinstance(item, SavePoint) or learner.preview(item)
    except DataError as caught:
        error = caught
    learner.end_preview()
    buffered.reverse()
    while buffered:
        yield buffered.pop()
    if error is not None:
        raise error
    yield from items


class PassStream:
    """Iterate over a pass: over batches, each with a mask of held-out examples, and save points.

    `source` yields, for one pass, each batch and the lines of its examples. `model` is the path of -f, and `ended` the
    number of passes over the same lines that have ended.
    """

    def __init__(self, source: Source, options: PassOptions, shuffler: Shuffler | None, model: str | None) -> None:
        self.source = source
        self._options = options
        # a round is --passes passes over the same number of lines, see the head of this module
        self._length = options.initial_pass_length  # number of lines in each pass of the current round
        self.ended = 0  # number of passes of the round that have ended
        self._length_reached = False  # whether the data had at least `_length` lines for the last pass
        self._rest_of_pass: Iterator[tuple[Batch, np.ndarray]] | None = None  # rest of a single pass that is continued
        self._rest_of_batch: tuple[Batch, np.ndarray] | None = None  # rest of the last batch of that pass
        self._lines_before = 0  # lines before the current part of that pass
        self._shuffler = shuffler
        self._model = model
        self._every = options.checkpoint if model is not None else None
        self._seen = 0  # number of examples in all passes

    def unshuffled(self) -> Iterator[tuple[Batch, np.ndarray]]:
        """Return the batches of one pass in the order of the data, with masks of held-out examples."""
        return ((batch, self._options.held_out(line)) for batch, line in self.source)

    def __iter__(self) -> Iterator[tuple[Batch, np.ndarray] | SavePoint]:
        lines = iter(self.source)
        if self._length is not None:
            lines = self._first(self._length) if self._options.passes > 1 else self._next(self._length)
        masked: Iterator[tuple[Batch, np.ndarray]] = ((batch, self._options.held_out(line)) for batch, line in lines)
        if self._shuffler is not None:
            masked = self._shuffler.pass_through(masked)
        for batch, held_out in masked:
            low = 0
            for i in save_commands(batch):
                yield from self._with_checkpoints(batch, held_out, low, i)
                yield self._save_point(batch, i)
                low = i + 1
            yield from self._with_checkpoints(batch, held_out, low, batch.n)

    def count_pass(self) -> bool:
        """Count a pass that has ended, and return whether another one follows."""
        self.ended += 1
        if self.ended < self._options.passes:
            return True
        if self._length is None or not self._length_reached:
            return False
        self.ended = 0
        self._length = 2 * self._length + 1
        return True

    def _first(self, length: int) -> Iterator[tuple[Batch, np.ndarray]]:
        """Yield the examples of the first `length` lines of the data."""
        self._length_reached = False
        for batch, line in self.source:
            if self._length_reached:
                continue
            high = int(np.searchsorted(line, length, side="right"))
            if high:
                yield batch_ops.cut(batch, 0, high), line[:high]
            self._length_reached = line[-1] >= length
            if self._length_reached and not self.source.writing:
                return
        self._length_reached |= self.source.lines >= length and length <= (self._options.examples or length)

    def _next(self, length: int) -> Iterator[tuple[Batch, np.ndarray]]:
        """Yield the examples of the next `length` lines after the previous pass."""
        if self._rest_of_pass is None:
            self._rest_of_pass = iter(self.source)
        last = self._lines_before + min(length, self._options.examples or length)
        while True:
            item = self._rest_of_batch or next(self._rest_of_pass, None)
            self._rest_of_batch = None
            if item is None:
                ended = self.source.lines < last
                break
            batch, line = item
            high = int(np.searchsorted(line, last, side="right"))
            if high:
                yield batch_ops.cut(batch, 0, high), line[:high] - self._lines_before
            if high < batch.n:
                self._rest_of_batch = batch_ops.cut(batch, high, batch.n), line[high:]
            if line[-1] >= last:
                ended = False
                break
        self._lines_before = last
        self._length_reached = not ended and length <= (self._options.examples or length)

    def _with_checkpoints(
        self, batch: Batch, held_out: np.ndarray, low: int, end: int
    ) -> Iterator[tuple[Batch, np.ndarray] | SavePoint]:
        """Yield examples low .. end - 1 of a batch, with a save point after every --checkpoint examples."""
        while low < end:
            high = end
            if self._every is not None:
                high = min(end, low + self._every - self._seen % self._every)
            yield batch_ops.cut(batch, low, high), held_out[low:high]
            self._seen += high - low
            low = high
            if self._every is not None and self._seen % self._every == 0:
                yield SavePoint(self._model, False, f"checkpoint after {self._seen} examples: {self._model}")

    def _save_point(self, batch: Batch, i: int) -> SavePoint:
        """Return the save point for the tag `save` or `save_NAME` of example i."""
        tag = batch.text[batch.tag_start[i] : batch.tag_end[i]].tobytes()
        name = os.fsdecode(tag[5:]) if tag[4:5] == b"_" and len(tag) > 5 else ""
        refusal = ""
        if name and (os.path.isabs(name) or ".." in name.split("/")):
            refusal = "data may only name files in the current folder"
        elif not name and self._model is None:
            refusal = "no -f was given"
        path = name or self._model
        message = f"saving regressor to {path}"
        if path is not None and self._options.save_per_pass:
            path += ".0"
        return SavePoint(path, bool(name), message, refusal)


def save_commands(batch: Batch) -> list[int]:
    """Return the examples that request a save point: those without features whose tag begins with `save`."""
    size = batch.tag_end - batch.tag_start
    if not len(size) or size.max() < 4:
        return []
    rows = []
    for i in np.flatnonzero((size >= 4) & (np.diff(batch.start) <= 1)).tolist():
        groups = batch.group_name[batch.group_first[i] : batch.group_first[i + 1]]
        at = batch.tag_start[i]
        if (groups == CONSTANT_GROUP).all() and batch.text[at : at + 4].tobytes() == b"save":
            rows.append(i)
    return rows
