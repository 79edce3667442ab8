"""Deliver the examples of a part round by round, in a worker, and number their classes as the model does.

Idea      Where labels are names, the parser numbers them as they occur in this part, which depends on how far reading
          is ahead. `ModelNumbers` replaces these numbers by those of the model of a round.
          What is delivered depends only on the part and the `Cursor`. A worker that takes the place of another reads
          the part from its beginning up to the cursor again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ..api.configuration import Config
from ..array_types import Float64s, Int64s
from ..data import batch_ops
from ..data.batch import Batch
from ..data.class_names import Names, key_of
from ..data.schema import Schema
from ..reductions.core.spec import LabelRange
from .shards import DataPart, PartReader


class Cursor(NamedTuple):
    """Say which examples of a part are still to be learned in a pass.

    Positions are those of `PartReader`. Examples of classes that the model did not have when they were read wait, and
    are learned first in the next round.
    """

    position: int = 0  # the last position that was read
    waiting: tuple[int, ...] = ()  # positions of the examples that wait, rising
    ended: bool = False  # whether the part has no examples after `position`

    @property
    def done(self) -> bool:
        return self.ended and not self.waiting


class ModelNumbers:
    """Replace the numbers of names in a part by their numbers in a model."""

    def __init__(self, config: Config) -> None:
        self.names = Names(config.parser.label_names(), config.parser.learn_names)  # in the order of this part
        self._by_name = config.parser.learn_names
        self._place: dict[str, int] = {}  # key of a name of the model -> its number
        self._number = np.zeros(1)  # number in the model of each number in this part, 0 for none

    def of(self, label: Float64s, model_names: list[str]) -> Float64s:
        """Return labels as the model numbers them, float64[n], 0 for names that it does not have.

        `label` is float64[n], as the parser numbers them, NaN for none. Between two calls, `model_names` may only grow.
        """
        if not self._by_name:
            return label
        own, known = self.names.names, len(self._place)
        if known < len(model_names) or len(self._number) <= len(own):
            self._place.update({key_of(name): number for number, name in enumerate(model_names[known:], known + 1)})
            numbers = np.zeros(len(own) + 1)
            numbers[: len(self._number)] = self._number
            for i in (np.flatnonzero(numbers[1:] == 0) + 1).tolist():
                numbers[i] = self._place.get(key_of(own[i - 1]), 0)
            self._number = numbers
        labelled = ~np.isnan(label)
        result = label.copy()
        result[labelled] = self._number[label[labelled].astype(np.int64)]
        return result


class PartStream:
    """Read a part in one pass; `numbers` may be those of an earlier pass, the others are parameters of `PartReader`."""

    def __init__(
        self, part: DataPart, config: Config, label_range: LabelRange, numbers: ModelNumbers, schema: Schema
    ) -> None:
        self.reader = PartReader(part, config, numbers.names, label_range, schema)
        self.numbers = numbers
        self._batches: Iterator[tuple[Batch, Int64s]] | None = None
        self._next: tuple[Batch, Int64s] | None = None  # the rest of a batch that was read
        self.position = 0  # of the last example that was delivered
        self._waiting: tuple[Batch, Int64s] | None = None  # examples that wait, and their positions

    def move_to(self, cursor: Cursor) -> None:
        """Continue at a cursor; this reads the part again unless it is where this stream is."""
        waiting = np.array(cursor.waiting, np.int64)
        held = np.empty(0, np.int64) if self._waiting is None else self._waiting[1]
        if self._batches is None or self.position != cursor.position or not np.isin(waiting, held).all():
            self._open(cursor)
        elif self._waiting is not None:
            batch, positions = self._waiting
            rows = np.flatnonzero(np.isin(positions, waiting))
            self._waiting = (batch_ops.pick([(batch, rows)]), positions[rows]) if len(rows) else None

    def _open(self, cursor: Cursor) -> None:
        waiting = np.array(cursor.waiting, np.int64)
        begin = int(waiting[0]) - 1 if len(waiting) else cursor.position
        self._batches, self._next, self.position, self._waiting = self.reader.after(begin), None, begin, None
        if begin < cursor.position:
            for batch, positions in self._until(cursor.position):
                self.wait(batch, positions, np.flatnonzero(np.isin(positions, waiting)))
        self.position = cursor.position

    def waiting(self) -> tuple[Batch, Int64s] | None:
        """Return the examples that wait and their positions, None if there are none; they no longer wait then."""
        waiting, self._waiting = self._waiting, None
        return waiting

    def wait(self, batch: Batch, positions: Int64s, rows: Int64s) -> None:
        """Let some examples of a batch wait."""
        if not len(rows):
            return
        parts = [(batch, rows)]
        places = positions[rows]
        if self._waiting is not None:
            before, earlier = self._waiting
            parts.insert(0, (before, np.arange(before.n)))
            places = np.concatenate([earlier, places])
        self._waiting = batch_ops.pick(parts), places

    def cursor(self) -> Cursor:
        """Return where the stream is; this may read on to see whether the part ends there."""
        waiting = () if self._waiting is None else tuple(self._waiting[1].tolist())
        return Cursor(self.position, waiting, self._item() is None)

    def take(self, count: int) -> Iterator[tuple[Batch, Int64s]]:
        """Yield the next examples with their positions, `count` at most."""
        while count > 0 and (item := self._item()) is not None:
            batch, positions = item
            taken = min(count, batch.n)
            self._deliver(batch, positions, taken)
            count -= taken
            yield batch_ops.cut(batch, 0, taken), positions[:taken]

    def _until(self, position: int) -> Iterator[tuple[Batch, Int64s]]:
        while (item := self._item()) is not None and item[1][0] <= position:
            batch, positions = item
            taken = int(np.searchsorted(positions, position, side="right"))
            self._deliver(batch, positions, taken)
            yield batch_ops.cut(batch, 0, taken), positions[:taken]

    def _item(self) -> tuple[Batch, Int64s] | None:
        """Return the batch to deliver from next, None at the end."""
        if self._next is None and self._batches is not None:
            self._next = next(self._batches, None)
        return self._next

    def _deliver(self, batch: Batch, positions: Int64s, taken: int) -> None:
        self.position = int(positions[taken - 1])
        self._next = (batch_ops.cut(batch, taken, batch.n), positions[taken:]) if taken < batch.n else None
