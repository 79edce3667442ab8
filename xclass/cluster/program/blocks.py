"""Read the blocks of a Ray Data data set as text, in the workers.

    blocks = blocks_of(dataset, least)                              # in the driver: names that know their blocks
    blocks, options = session.call(described, blocks, ...)          # on a node: what the rows are
    blocks[0].opened()                                              # in a worker: the text of a block

Idea      Each block stands for a file, so everything that reads files reads blocks, too. The name of a block carries
          the reference to its rows, which go from the object store to the worker that reads them, and not through the
          driver.
Rows      A data set with one column of text has lines of any format if a bar occurs in the first block or a format is
          recognised. Rows of other data sets are those of a table, whose columns mean what those of a DataFrame mean: a
          block is then a CSV file.
"""

from __future__ import annotations

import importlib
import io
import re
from collections.abc import Sequence
from typing import Any, BinaryIO

from ...data.frames import Frame
from ...data.schema import DENSE, Schema
from ...errors import DataError, UsageError
from ...formats import columns, detect
from ...system.printable import short_repr
from ...text import reader
from ...text.urls import VirtualFile

CAUSE = re.compile(r"^[\w.]*(?:Error|Exception): .*$", re.MULTILINE)  # the last line of each traceback


class Block(VirtualFile):
    """Name a block of a data set.

    Parameters
    ----------
    name : name for messages
    ref : reference to the block, a table of pyarrow
    columns : names of the columns of the table; None if the rows are lines
    """

    _ref: Any
    _columns: Sequence[str] | None

    def __new__(cls, name: str, ref: Any, columns: Sequence[str] | None = None) -> Block:
        block = super().__new__(cls, name)
        block._ref, block._columns = ref, columns
        return block

    def __reduce__(self) -> tuple[Any, ...]:
        return Block, (str(self), self._ref, self._columns)

    def of_table(self, columns: Sequence[str]) -> Block:
        return Block(str(self), self._ref, columns)

    def table(self) -> Any:
        import ray

        try:
            return ray.get(self._ref)
        except Exception as error:  # of Ray, of pyarrow, or of the functions that compute the data set
            raise DataError(
                f"{self}: the block cannot be read ({_described(error)}); check the data set, and that every node has "
                "pyarrow"
            ) from None

    def opened(self) -> BinaryIO:
        table, text = self.table(), io.BytesIO()
        if self._columns is not None:
            self._write_table(table, text)
        elif table.num_rows:
            for number, line in enumerate(table.column(0).to_pylist(), 1):
                if not isinstance(line, str) or "\n" in line:
                    raise DataError(
                        f"{self}:{number}: {short_repr(line)} is not one line of text; give a line in each row"
                    )
                text.write(line.encode("utf-8", "surrogatepass") + b"\n")
        text.seek(0)
        return text

    def _write_table(self, table: Any, text: BinaryIO) -> None:
        """Write the columns of the table as a CSV file; a block without rows may lack them."""
        pyarrow: Any = importlib.import_module("pyarrow")
        assert self._columns is not None
        cells = {name: table.column(name) if table.num_rows else pyarrow.array([]) for name in self._columns}
        for name, column in cells.items():
            if pyarrow.types.is_nested(column.type):
                raise DataError(
                    f"{self}: column {short_repr(name)} has values of type {column.type}; give numbers or texts"
                )
            if pyarrow.types.is_boolean(column.type):
                cells[name] = column.cast(pyarrow.int8())
            elif pyarrow.types.is_floating(column.type):  # NaN is a missing cell, as in a DataFrame
                compute = importlib.import_module("pyarrow.compute")
                cells[name] = compute.if_else(compute.is_nan(column), None, column)
        importlib.import_module("pyarrow.csv").write_csv(pyarrow.table(cells), text)


def _described(error: Exception) -> str:
    """Return the type and the message of an error; Ray's errors have the tracebacks of their causes as message."""
    causes = CAUSE.findall(str(error))
    causes = [cause for cause in causes if not cause.startswith("ray.")] or causes  # errors of Ray wrap the others
    return (causes[-1] if causes else f"{type(error).__name__}: {' '.join(str(error).split())}")[:500]


def is_dataset(data: object) -> bool:
    """Return whether an object is a data set of Ray Data, which is not imported for that."""
    return hasattr(data, "to_arrow_refs")


def blocks_of(dataset: Any, least: int) -> list[Block]:
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
    return [Block(f"dataset-block-{number}", ref) for number, ref in enumerate(refs, 1)]


def described(
    blocks: Sequence[Block], options: reader.ReaderOptions, known: bool
) -> tuple[Sequence[Block], reader.ReaderOptions]:
    """Return the blocks and how they are read, which the first block with rows decides; no blocks without rows.

    `options` are those that the program has given, and `known` says whether the learner knows what columns mean.
    """
    table = next(filter(len, (block.table() for block in blocks)), None)
    if table is None:
        return [], options
    if _are_lines(table, options.format):
        return blocks, reader.ReaderOptions(format=options.format)
    kinds: tuple[str, ...] = ()
    names, label = table.column_names, options.label_column
    if label is not None and label not in names:
        raise UsageError(
            f"--label_column {label!r}: the data set has no such column; its columns are {', '.join(map(repr, names))}"
        )
    if not known:
        label = label or ("label" if "label" in names else "0")
        frame = Frame(table.select([name for name in names if name != label]), Schema())
        lists = [name for name, kind in frame.columns if kind == DENSE]
        if lists:
            raise UsageError(
                f"the column {lists[0]!r} holds lists, which a data set of Ray cannot pass on; convert it to numbers "
                "or to text, or write lists of numbers as .npy files, or learn them with a Learner"
            )
        kinds = columns.as_typed(dict(frame.columns))
    read = reader.ReaderOptions(format="csv", label_column=label, column_kind=kinds)
    return [block.of_table(names) for block in blocks], read


def _are_lines(table: Any, text_format: str) -> bool:
    """Return whether rows are lines of text: of the format that is named, or of one that the lines plainly have."""
    values = table.column(0).to_pylist()
    if table.num_columns > 1 or not all(isinstance(value, str) for value in values):
        return False
    text = "\n".join(values).encode("utf-8", "surrogatepass")
    return text_format != "auto" or b"|" in text or detect.detect(text, True, "") not in ("vw", "csv")
