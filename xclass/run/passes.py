"""Passes over the data: how many, what is held out of learning, where in a pass the model is saved.

Source    VW 9.11 (parser.cc, gd.cc): lines are counted from 1 in every pass, empty ones too; a line is held out if
          its number is a multiple of --holdout_period, or beyond --holdout_after. Held-out examples are predicted,
          not learned from, and judge the pass. --initial_pass_length N: as many passes as asked for take the first N
          lines, as many again the first 2 N + 1, and so on until a pass comes to the end of the data. A single pass
          is not made again but continued: it ends after N lines, after 2 N + 1 more, and so on.
Differs   from VW: when the passes run out, the model of the best pass is kept (`--keep_last`: that of the last, as
          in VW); passes without any held-out example are not counted as misses (VW stops after the fourth).
          `save_NAME` tags write inside the current folder only, follow no symbolic link, and replace nothing but models
          (NAME.0, as in VW, with --save_per_pass). Where it makes a cache in the same run VW never sees a line beyond
          the first N, and where it has one it makes a single pass again.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..cache.source import Source
from ..data import batch_ops
from ..data.batch import CONSTANT_GROUP, Batch
from ..errors import DataError
from ..options.declare import option
from ..reductions.core.base import Previews
from ..reductions.core.contract import BatchTask
from .shuffle import Shuffler


@dataclass(frozen=True)
class Options:
    """Passes over the data."""

    passes: int = option("number of passes over the data", kind=int, default=1, minimum=1, metavar="N")
    holdout_off: bool = option("with several passes, learn from every example", kind=bool)
    holdout_period: int = option(
        "with several passes, hold out every Nth line: it is predicted but not learned from, and its loss decides "
        "which pass was best",
        kind=int,
        default=10,
        minimum=1,
        metavar="N",
    )
    holdout_after: int = option(
        "hold out every line after line N instead, even in a single pass", kind=int, default=0, minimum=0, metavar="N"
    )
    early_terminate: int = option(
        "stop after N consecutive passes that were no better than the best", kind=int, default=3, minimum=1, metavar="N"
    )
    keep_last: bool = option("save the model of the last pass instead of the best", kind=bool)
    initial_pass_length: int = option(
        "end the first --passes passes after N lines, the next after 2 N + 1 lines, and so on to the end of the data;"
        " with a single pass, each part continues where the last one ended",
        kind=int,
        minimum=1,
        metavar="N",
    )
    examples: int = option("end each pass after N lines", kind=int, minimum=1, metavar="N")
    save_per_pass: bool = option("also save the model after every pass, as MODEL.1, MODEL.2 and so on", kind=bool)
    checkpoint: int = option(
        "save the model to -f every N examples, so that an interrupted run can be continued with -i",
        kind=int,
        minimum=1,
        metavar="N",
    )


class SavePoint(NamedTuple):
    """A place within a pass where the learner comes to rest and the model is saved."""

    path: str | None
    by_data: bool  # whether the data named the file
    words: str  # for the user, before it is saved
    refused: str = ""  # why it is not saved after all


class PassSegment:
    """The items of a pass up to the next save point, which is then in `save_point`."""

    def __init__(self, items: Iterator[BatchTask | SavePoint]) -> None:
        self.save_point: SavePoint | None = None
        self._items = items

    def __iter__(self) -> Iterator[BatchTask]:
        for item in self._items:
            if isinstance(item, SavePoint):
                self.save_point = item
                return
            yield item


def previewed(items: Iterator[BatchTask | SavePoint], learner: Previews) -> Iterator[BatchTask | SavePoint]:
    """Show a learner as many of the first items as it wants, then give them out, and then the rest.

    They are held in memory until then: a run stopped by a signal before has learned nothing. An error that ends the
    items early is raised behind those that are held.
    """
    held: list[BatchTask | SavePoint] = []
    error, more = None, True
    try:
        while more and (item := next(items, None)) is not None:
            held.append(item)
            more = isinstance(item, SavePoint) or learner.preview(item)
    except DataError as caught:
        error = caught
    learner.end_preview()
    held.reverse()
    while held:
        yield held.pop()
    if error is not None:
        raise error
    yield from items


class Holdout:
    """Which lines are held out."""

    def __init__(self, options: Options) -> None:
        self.on = (options.passes > 1 or options.holdout_after > 0) and not options.holdout_off
        self._after = options.holdout_after
        self._period = options.holdout_period

    def mask(self, line: np.ndarray) -> np.ndarray:
        """Whether each line is held out: int64[n] -> bool[n]."""
        if not self.on:
            return np.zeros(len(line), bool)
        return line > self._after if self._after else line % self._period == 0


def source_limit(options: Options) -> int | None:
    """Lines of the data a run looks at; None for all."""
    return None if options.initial_pass_length is not None and options.passes == 1 else options.examples


class Stream:
    """Batches with what is held out, and save points: one iteration is one pass.

    Parameters
    ----------
    source : yields Batch and the number of lines before its file, for one pass
    options : of this room
    holdout : which lines are held out
    shuffler : or None
    model : file of -f, or None
    """

    def __init__(
        self, source: Source, options: Options, holdout: Holdout, shuffler: Shuffler | None, model: str | None
    ) -> None:
        self._source = source
        self._passes = options.passes
        self._limit = options.examples
        self._length = options.initial_pass_length  # of the passes of this round
        self._ended = 0  # of them
        self._reached = False  # whether the last pass had so many lines
        self._rest: Iterator[tuple[Batch, np.ndarray]] | None = None  # of a single pass that is continued
        self._left: tuple[Batch, np.ndarray] | None = None  # of its last batch
        self._begin = 0  # lines before the pass, where it is
        self._holdout = holdout
        self._shuffler = shuffler
        self._model = model
        self._numbered_saves = options.save_per_pass
        self._every = options.checkpoint if model is not None else None
        self._seen = 0  # examples in all passes

    def plain(self) -> Iterator[tuple[Batch, np.ndarray]]:
        """One pass without save points, in the order of the data."""
        return ((batch, self._holdout.mask(line)) for batch, line in self._numbered())

    def __iter__(self) -> Iterator[tuple[Batch, np.ndarray] | SavePoint]:
        marked: Iterator[tuple[Batch, np.ndarray]] = (
            (batch, self._holdout.mask(line)) for batch, line in self._lines()
        )
        if self._shuffler is not None:
            marked = self._shuffler.pass_through(marked)
        for batch, held in marked:
            low = 0
            for i in save_commands(batch):
                yield from self._piece(batch, held, low, i)
                yield self._save_point(batch, i)
                low = i + 1
            yield from self._piece(batch, held, low, batch.n)

    def another(self) -> bool:
        """Whether another pass follows the one that ended; to be asked once after each."""
        self._ended += 1
        if self._ended < self._passes:
            return True
        if self._length is None or not self._reached:
            return False
        self._ended = 0
        self._length = 2 * self._length + 1
        return True

    def _lines(self) -> Iterator[tuple[Batch, np.ndarray]]:
        """The batches of a pass, and the number of each example's line in it: int64[n]."""
        if self._length is None:
            yield from self._numbered()
        elif self._passes > 1:
            yield from self._first(self._length)
        else:
            yield from self._next(self._length)

    def _numbered(self) -> Iterator[tuple[Batch, np.ndarray]]:
        for batch, before in self._source:
            yield batch, batch.line + before

    def _first(self, length: int) -> Iterator[tuple[Batch, np.ndarray]]:
        """The first lines of the data."""
        self._reached = False
        for batch, line in self._numbered():
            if self._reached:
                continue
            high = int(np.searchsorted(line, length, side="right"))
            if high:
                yield batch_ops.cut(batch, 0, high), line[:high]
            self._reached = line[-1] >= length
            if self._reached and not self._source.writing:
                return
        self._reached |= self._source.lines >= length and length <= (self._limit or length)

    def _next(self, length: int) -> Iterator[tuple[Batch, np.ndarray]]:
        """The lines after those of the pass before."""
        if self._rest is None:
            self._rest = self._numbered()
        last = self._begin + min(length, self._limit or length)
        while True:
            item = self._left or next(self._rest, None)
            self._left = None
            if item is None:
                ended = self._source.lines < last
                break
            batch, line = item
            high = int(np.searchsorted(line, last, side="right"))
            if high:
                yield batch_ops.cut(batch, 0, high), line[:high] - self._begin
            if high < batch.n:
                self._left = batch_ops.cut(batch, high, batch.n), line[high:]
            if line[-1] >= last:
                ended = False
                break
        self._begin = last
        self._reached = not ended and length <= (self._limit or length)

    def _piece(
        self, batch: Batch, held: np.ndarray, low: int, end: int
    ) -> Iterator[tuple[Batch, np.ndarray] | SavePoint]:
        while low < end:
            high = end
            if self._every is not None:
                high = min(end, low + self._every - self._seen % self._every)
            yield batch_ops.cut(batch, low, high), held[low:high]
            self._seen += high - low
            low = high
            if self._every is not None and self._seen % self._every == 0:
                yield SavePoint(self._model, False, f"checkpoint after {self._seen} examples: {self._model}")

    def _save_point(self, batch: Batch, i: int) -> SavePoint:
        tag = batch.text[batch.tag_start[i] : batch.tag_end[i]].tobytes()
        name = os.fsdecode(tag[5:]) if tag[4:5] == b"_" and len(tag) > 5 else ""
        refused = ""
        if name:
            refused = _why_not(name)
        elif self._model is None:
            refused = "no -f was given"
        path = name or self._model
        words = f"saving regressor to {path}"
        if path is not None and self._numbered_saves:
            path += ".0"
        return SavePoint(path, bool(name), words, refused)


def save_commands(batch: Batch) -> list[int]:
    """Rows that tell to save the model: no features, and a tag that begins with `save`."""
    size = batch.tag_end - batch.tag_start
    if not len(size) or size.max() < 4:
        return []
    found = []
    for i in np.flatnonzero((size >= 4) & (np.diff(batch.start) <= 1)).tolist():
        groups = batch.group_name[batch.group_first[i] : batch.group_first[i + 1]]
        at = batch.tag_start[i]
        if (groups == CONSTANT_GROUP).all() and batch.text[at : at + 4].tobytes() == b"save":
            found.append(i)
    return found


def _why_not(name: str) -> str:
    """Why the data may not name this file."""
    if os.path.isabs(name) or ".." in name.split("/"):
        return "data may only name files in the current folder"
    return ""
