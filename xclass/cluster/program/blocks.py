"""Read the blocks of a Ray Data data set as text, in the workers.

    blocks = blocks_of(dataset, least, label_column)        # in the driver: names that know their blocks
    blocks = session.call(described, blocks)                # on a node: what the rows are
    blocks[0].opened()                                      # in a worker: the text of a block

Idea      Each block stands for a file with one line for each row, so everything that reads files reads blocks, too. The
          name of a block carries the reference to its rows, which go from the object store to the worker that reads
          them, and not through the driver.
Rows      A data set with one column of text has lines of any format or, if no bar occurs in the first block and no
          format is recognised, plain text. Rows of other data sets become JSON lines: the columns `label`, `weight`,
          `tag`, `text` and `features` mean what they mean there, and any other column is a feature of its name.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

from ...data.array_input import is_missing
from ...errors import DataError, UsageError
from ...formats import detect
from ...formats.json_lines import KEYS
from ...system.printable import short_repr
from ...text.urls import VirtualFile

LINES, TEXTS, ROWS = "lines", "texts", "rows"  # what the rows of a data set are
ROWS_AT_ONCE = 4096
CAUSE = re.compile(r"^[\w.]*(?:Error|Exception): .*$", re.MULTILINE)  # the last line of each traceback


class Block(VirtualFile):
    """Name a block of a data set.

    Parameters
    ----------
    name : name for messages
    ref : reference to the block, a table of pyarrow
    label_column : name of the column of the label; None for the column `label`
    kind : LINES, TEXTS or ROWS; empty as long as it is not known
    """

    _ref: Any
    _label_column: str | None
    _kind: str

    def __new__(cls, name: str, ref: Any, label_column: str | None, kind: str = "") -> Block:
        block = super().__new__(cls, name)
        block._ref, block._label_column, block._kind = ref, label_column, kind
        return block

    def __reduce__(self) -> tuple[Any, ...]:
        return Block, (str(self), self._ref, self._label_column, self._kind)

    @property
    def has_rows(self) -> bool:
        """Return whether rows become JSON lines, because there are several columns or no text."""
        return self._kind != LINES

    def with_kind(self, kind: str) -> Block:
        """Return this name with the kind of the rows."""
        return Block(str(self), self._ref, self._label_column, kind)

    def table(self) -> Any:
        """Return the block; raise DataError if it cannot be read."""
        import ray

        try:
            return ray.get(self._ref)
        except Exception as error:  # of Ray, of pyarrow, or of the functions that compute the data set
            raise DataError(
                f"{self}: the block cannot be read ({_described(error)}); check the data set, and that every node has "
                "pyarrow"
            ) from None

    def kind_of(self, table: Any) -> str:
        """Return what the rows of a block are, empty if it has none."""
        if not table.num_rows:
            return ""
        values = table.column(0).to_pylist()
        if table.num_columns > 1 or not all(isinstance(value, str) for value in values):
            return ROWS
        text = "\n".join(values).encode("utf-8", "surrogatepass")
        return LINES if b"|" in text or detect.detect(text, True, "") != "vw" else TEXTS

    def opened(self) -> BinaryIO:
        """Return the text of the block as a stream; raise DataError if it cannot be read."""
        table = self.table()
        kind = self._kind or self.kind_of(table)
        text = io.BytesIO()
        row = 0
        for batch in table.to_batches(max_chunksize=ROWS_AT_ONCE):
            for line in self._lines(batch, kind, row):
                text.write(line.encode("utf-8", "surrogatepass") + b"\n")
            row += batch.num_rows
        text.seek(0)
        return text

    def _lines(self, batch: Any, kind: str, first: int) -> Iterator[str]:
        """Yield a line for each row of a batch whose first row is number `first`, from 0."""
        if kind != ROWS:
            for number, value in enumerate(batch.column(0).to_pylist(), first + 1):
                yield self._line(value, number) if kind == LINES else json.dumps({"text": value})
            return
        for number, row in enumerate(batch.to_pylist(), first + 1):
            yield self._object(row, number)

    def _line(self, value: object, number: int) -> str:
        """Return a row that is a line; raise DataError if it is none."""
        if not isinstance(value, str) or "\n" in value:
            raise DataError(f"{self}:{number}: {short_repr(value)} is not one line of text; give a line in each row")
        return value

    def _object(self, row: dict[str, Any], number: int) -> str:
        """Return a row as a line of JSON."""
        label = self._label_column or "label"
        if self._label_column is not None and label not in row:
            raise UsageError(
                f"label_column: the data set has no column {label!r}; its columns are {', '.join(map(repr, row))}"
            )
        row = {name: None if is_missing(value) else value for name, value in row.items()}
        known = {name: row.pop(name) for name in KEYS if name in row and name != "label"}
        known["label"] = row.pop(label, None)
        if row:
            features = known.get("features") or {}
            if not isinstance(features, dict) or features.keys() & row.keys():
                raise DataError(
                    f"{self}:{number}: the column `features` is {short_repr(features)} beside the columns "
                    f"{', '.join(map(repr, row))}; it has to hold other names of features and their values"
                )
            known["features"] = {**features, **row}
        try:
            return json.dumps(known)
        except TypeError:
            columns = {**row, **known}
            name, value = next((name, value) for name, value in columns.items() if not _is_json(value))
            raise DataError(
                f"{self}:{number}: the column {name!r} holds {type(value).__name__} {short_repr(value)}; convert it to "
                "numbers or text"
            ) from None


def _is_json(value: object) -> bool:
    """Return whether a value can be written as JSON."""
    try:
        json.dumps(value)
    except TypeError:
        return False
    return True


def _described(error: Exception) -> str:
    """Return the type and the message of an error; Ray's errors have the tracebacks of their causes as message."""
    causes = CAUSE.findall(str(error))
    causes = [cause for cause in causes if not cause.startswith("ray.")] or causes  # errors of Ray wrap the others
    return (causes[-1] if causes else f"{type(error).__name__}: {' '.join(str(error).split())}")[:500]


def is_dataset(data: object) -> bool:
    """Return whether an object is a data set of Ray Data, which is not imported for that."""
    return hasattr(data, "to_arrow_refs")


def blocks_of(dataset: Any, least: int, label_column: str | None) -> list[Block]:
    """Compute the blocks of a `ray.data.Dataset`, at least `least`, and keep them in the object store."""
    ordered = dataset.context.execution_options.preserve_order
    dataset.context.execution_options.preserve_order = True
    try:
        refs = dataset.to_arrow_refs()
        if len(refs) < least:
            refs = dataset.repartition(least).to_arrow_refs()
    except Exception as error:  # of Ray, or of the functions that compute the data set
        raise DataError(f"the data set cannot be computed ({_described(error)}); check its functions") from error
    finally:
        dataset.context.execution_options.preserve_order = ordered
    return [Block(f"dataset-block-{number}", ref, label_column) for number, ref in enumerate(refs, 1)]


def described(blocks: Sequence[Block]) -> list[Block]:
    """Return the blocks with the kind of their rows, which the first block with rows decides."""
    kind = next(filter(None, (block.kind_of(block.table()) for block in blocks)), ROWS)
    return [block.with_kind(kind) for block in blocks]
