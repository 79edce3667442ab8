"""Read the cells of a DataFrame by the schema of a learner.

A DataFrame is one of pandas, polars or pyarrow, or an object that pyarrow or pandas converts. Without a schema, the
types of its columns say what they are: numbers and truth values are of the kind `number`, categories of the kind
`category`, text is of the kind `text`, and lists of numbers are of the kind `dense`. With a schema, columns are found
by name, and their cells are converted to the kind that the learner has learned; cells that cannot be converted are
refused.
"""

from __future__ import annotations

import contextlib
import importlib
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..array_types import AnyArray, Float64s
from ..errors import DataError, UsageError
from ..system.printable import short_repr
from . import array_input, cells, schema
from .schema import CATEGORY, DENSE, NUMBER, TEXT, UNNAMED, Column, Schema

# types of columns, as the libraries write them in lower case
KIND_OF_TYPE = (
    (NUMBER, re.compile(r"(sparse\[)?(u?int(8|16|32|64|128)|float|double|halffloat|bool|decimal)")),
    (DENSE, re.compile(r"(large_|fixed_size_)?list|array\(")),
    (CATEGORY, re.compile(r"category|categorical|enum|dictionary")),
    (TEXT, re.compile(r"(object|str|string|string_view|large_string|null)(\[|$)")),
)
LISTS = (list, tuple, np.ndarray)  # types of cells of the kind `dense`
WHOLE = re.compile(r"(sparse\[)?u?int(32|64|128)")
NARROW = re.compile(r"(sparse\[)?(float16|float32|halffloat|float(\[|$))")


def is_frame(given: object) -> bool:
    """Return whether examples are read by their columns: those of a DataFrame, or of an array with text."""
    if isinstance(given, np.ndarray):
        texts = (cell for cell in given.flat if isinstance(cell, str))
        return given.ndim == 2 and given.dtype.kind in "OUT" and any(schema.number_in(text) is None for text in texts)
    if hasattr(given, "columns") and hasattr(given, "dtypes"):
        return True
    is_stream = hasattr(given, "__arrow_c_stream__") and not hasattr(given, "__array__")  # columns are arrays
    return is_stream or hasattr(given, "column_names") or hasattr(given, "__dataframe__")


class Frame:
    """Read the cells of a DataFrame, or of a sequence of dictionaries or an array[n, d] by the columns of `known`.

    `known` is empty if the learner has not learned from a table; `keeps` says whether it keeps the columns then, and
    `dense` are those whose numbers belong to the dense block. Of its columns, `columns` are read, and `additional` are
    left out, because the schema does not contain them.
    """

    def __init__(self, given: Any, known: Schema, keeps: bool = True, dense: Sequence[str] = ()) -> None:
        self.keeps = keeps
        self._widths: dict[int, int | None] = {}  # of columns of the kind `dense`
        cells: list[Any]
        types: list[Any]
        if isinstance(given, np.ndarray):
            names, cells = list(known.columns), [given[:, j] for j in range(given.shape[1])]
            if len(names) not in (0, len(cells)):
                raise DataError(
                    f"the array has {len(cells)} columns, and the model has learned from a table of {len(names)}; give "
                    f"the {schema.columns_named(names)} in this order, or a DataFrame"
                )
            names = names or [str(j) for j in range(len(cells))]
            types, self.n = [given.dtype if given.dtype.kind in "iufb" else "object"] * len(names), len(given)
        elif isinstance(given, (list, tuple)):
            rows = [{str(name): cell for name, cell in row.items()} for row in given]
            twice = [i for i, row in enumerate(rows) if len(row) < len(given[i])]
            if twice:
                raise DataError(f"example {twice[0]}: two names of {short_repr([*given[twice[0]]])} are the same text")
            names = list(dict.fromkeys([*known.columns, *(name for row in rows for name in row)]))
            cells = [[row.get(name) for row in rows] for name in names]
            types, self.n = ["object"] * len(names), len(rows)
        else:
            names, cells, types, self.n = _opened(given)
            if keeps:
                names = [name if name in known.columns else name.strip() for name in names]  # as in a CSV file
        _check_names(names)
        if known:
            self.additional = known.additional(names)
            positions = known.positions(names, "the DataFrame")
            self.columns = [Column(*column) for column in known.columns.items()]
        else:
            self.additional = [name for name in names if keeps and UNNAMED.fullmatch(name)]  # as in a CSV file
            positions = [i for i, name in enumerate(names) if name not in self.additional]
        self._cells = [cells[i] for i in positions]
        self._types = [str(types[i]) for i in positions]
        self._stored = [_kind_of(names[i], types[i]) for i in positions]  # what the type says
        if not known:
            self.columns = [
                Column(names[i], self._kind_of_cells(j) if self._types[j] == "object" else kind)
                for j, (i, kind) in enumerate(zip(positions, self._stored.copy(), strict=True))
            ]
            place = {column.name: j for j, column in enumerate(self.columns)}
            for name in dense:
                j = place.get(name, -1)
                if j < 0 or self.columns[j].kind not in (NUMBER, DENSE):
                    what = "no column" if j < 0 else "text in the column"
                    raise UsageError(f"--dense {name!r}: the DataFrame has {what} {name!r}; name columns of numbers")
                self.columns[j] = Column(name, DENSE)
        self._is_only_dense = sum(column.kind == DENSE for column in self.columns) == 1

    def numbers(self, j: int, low: int, high: int) -> Float64s:
        """Return rows of column j, which has the kind `number`, as float64[high - low], NaN for missing cells."""
        name = self.columns[j].name
        if self._stored[j] == NUMBER:
            values = array_input.column(f"column {name!r}", _numbers(self._cells[j][low:high]), high - low)
        else:
            cells = _listed(self._cells[j][low:high])
            values = np.array([_number(cell, name, low + i) for i, cell in enumerate(cells)], np.float64)
        infinite = np.flatnonzero(~(np.abs(values) <= array_input.LARGEST) & ~np.isnan(values))
        if len(infinite):
            at = int(infinite[0])
            (cell,) = _listed(self._cells[j][low + at : low + at + 1])
            raise array_input.wrong_value(f"row {low + at}, column {name!r}", values[at], cell)
        return values

    def block(self, j: int, low: int, high: int) -> AnyArray:
        """Return rows of column j, which has the kind `dense`, as numbers[high - low, d]; 0 for missing cells.

        d is 0 if the only column of this kind has no cell that says its width.
        """
        name = self.columns[j].name
        width = self._width(j)
        if width is None:
            values = self.numbers(j, low, high)
            if self._is_only_dense and self._stored[j] != NUMBER and np.isnan(values).all():
                return np.empty((high - low, 0))
            return np.nan_to_num(values)[:, None]
        cells = self._lists(j, low, high)
        missing = np.zeros(width, np.float32)
        for i, cell in enumerate(cells):
            if isinstance(cell, LISTS) and len(cell) == width:
                continue
            if not array_input.is_missing(cell):
                seen = f"has {len(cell)} numbers" if isinstance(cell, LISTS) else f"is {short_repr(cell)}"
                raise DataError(
                    f"row {low + i}, column {name!r}: the cell {seen}; the first list has {width}; give lists of equal "
                    "length"
                )
            cells[i] = missing
        try:
            values = np.asarray(cells)
        except ValueError:
            values = np.asarray(cells, object)
        if len(cells) and (values.ndim != 2 or values.dtype.kind not in "iufb"):
            i = next(i for i, cell in enumerate(cells) if not _is_row(cell))
            raise DataError(
                f"row {low + i}, column {name!r}: the cell is {short_repr(cells[i])}; give lists of numbers, "
                "none missing"
            )
        at = array_input.first_wrong(values.reshape(-1))
        if at is not None:
            i, k = divmod(at, values.shape[1])
            raise array_input.wrong_value(f"row {low + i}, column {name!r}, position {k}", values[i, k])
        return values

    def matrix(self) -> Float64s:
        """Return all columns as float64[n, d], 0 for missing cells; raise DataError if one holds something else."""
        values = np.empty((self.n, len(self.columns)))
        for j in range(len(self.columns)):
            values[:, j] = np.nan_to_num(self.numbers(j, 0, self.n))
        return values

    def words(self, j: int, low: int, high: int) -> list[str]:
        """Return rows of column j, which has the kind `text` or `category`, as words; empty text for missing cells."""
        name, kind = self.columns[j]
        cells = _listed(self._cells[j][low:high])
        if NARROW.match(self._types[j].lower()):
            cells = [cell if cell is None else float(str(np.float32(cell))) for cell in cells]  # as it is written
        for wrong in set(map(type, cells)):
            if issubclass(wrong, str) or array_input.is_number(wrong):
                continue
            for row, cell in enumerate(cells):
                if type(cell) is wrong and not array_input.is_missing(cell):
                    raise DataError(
                        f"row {low + row}, column {name!r}: the value is {wrong.__name__} {short_repr(cell)}; allowed "
                        "are text and numbers: convert the column to text, or to columns of numbers"
                    )
        texts = ["" if array_input.is_missing(cell) else schema.written(cell) for cell in cells]
        return texts if kind == TEXT else [text and schema.category(text) for text in texts]

    def first_cells(self) -> dict[str, list[Any]]:
        """Return the first cells of each column of text or categories, without missing ones."""
        listed = {
            column.name: _listed(self._cells[j][: min(self.n, cells.SAMPLE)])
            for j, column in enumerate(self.columns)
            if column.kind in (TEXT, CATEGORY)
        }
        return {name: [cell for cell in found if not array_input.is_missing(cell)] for name, found in listed.items()}

    def rounded(self) -> list[str]:
        """Return a note about each column of whole numbers with one that float32 does not hold."""
        notes = []
        for j, (name, kind) in enumerate(self.columns):
            if kind == NUMBER and WHOLE.match(self._types[j].lower()):
                values = self.numbers(j, 0, self.n)
                wrong = np.flatnonzero((np.abs(values) > schema.EXACT) & (values.astype(np.float32) != values))
                if len(wrong):
                    (cell,) = _listed(self._cells[j][int(wrong[0]) : int(wrong[0]) + 1])
                    notes.append(schema.rounded(name, int(cell), "convert the column to categories, or to text"))
        return notes

    def _lists(self, j: int, low: int, high: int) -> list[Any]:
        cells = self._cells[j][low:high]
        return list(cells if isinstance(cells, list) else np.asarray(cells))

    def _width(self, j: int) -> int | None:
        """Return the length of the first list in column j, which has the kind `dense`, None if it has no lists."""
        if j not in self._widths:
            lows = range(0, 0 if self._stored[j] == NUMBER else self.n, 256)
            cells = (cell for low in lows for cell in self._lists(j, low, min(low + 256, self.n)))
            self._widths[j] = next((len(cell) for cell in cells if isinstance(cell, LISTS)), None)
        return self._widths[j]

    def _kind_of_cells(self, j: int) -> str:
        """Return the kind of a column of objects: NUMBER if they are numbers, or missing."""
        kinds = set(map(type, _listed(self._cells[j][: self.n])))
        if kinds.intersection(LISTS):
            self._stored[j] = DENSE
            return DENSE
        numbers = {kind for kind in kinds if array_input.is_number(kind)}
        others = {kind for kind in kinds if kind.__name__ not in array_input.MISSING} - {type(None)}
        if not numbers or others != numbers:
            return TEXT
        self._stored[j] = TEXT  # so that each cell is looked at
        return NUMBER


def _is_row(cell: Any) -> bool:
    """Return whether a list is one of numbers."""
    try:
        values = np.asarray(cell)
    except ValueError:
        return False
    return values.ndim == 1 and values.dtype.kind in "iufb"


def _listed(cells: Any) -> list[Any]:
    """Return cells of a column of any library as objects of Python."""
    for name in ("to_pylist", "to_list"):  # of pyarrow, and of pandas and polars
        if hasattr(cells, name):
            return list(getattr(cells, name)())
    return list(cells)


def _numbers(cells: Any) -> Any:
    """Return cells of a column of numbers as an array; a missing one is NaN, or an object that stands for it."""
    if hasattr(cells, "to_pylist"):
        return np.array(cells.to_pylist(), object) if cells.null_count else np.asarray(cells)
    if hasattr(cells, "iloc"):
        with contextlib.suppress(TypeError, ValueError):
            return cells.to_numpy(np.float64, na_value=np.nan)
    return cells.to_numpy() if hasattr(cells, "to_numpy") else cells


def _opened(given: Any) -> tuple[list[str], list[Any], list[Any], int]:
    """Return names of the columns of a DataFrame, what slices them by position, their types, and the number of rows."""
    if hasattr(given, "iloc"):  # pandas
        columns = [given.iloc[:, j].iloc for j in range(given.shape[1])]
        return [str(name) for name in given.columns], columns, list(given.dtypes), len(given)
    if hasattr(given, "get_columns") and hasattr(given, "height"):  # polars
        return list(given.columns), given.get_columns(), list(given.dtypes), int(given.height)
    if hasattr(given, "column_names") and hasattr(given, "num_rows"):  # pyarrow
        columns = [given.column(j) for j in range(len(given.column_names))]
        return list(given.column_names), columns, [column.type for column in columns], int(given.num_rows)
    return _opened(_converted(given))


def _converted(given: Any) -> Any:
    if hasattr(given, "__arrow_c_stream__"):
        with contextlib.suppress(ImportError):
            return importlib.import_module("pyarrow").table(given)
    raise UsageError(
        f"examples are {type(given).__module__}.{type(given).__name__}; give a DataFrame of pandas or polars "
        "(`collect()` makes one of a LazyFrame), or a table of pyarrow"
    )


def _check_names(names: Sequence[str]) -> None:
    """Raise UsageError if the names of columns are no text that a model can contain, or not distinct."""
    known: set[str] = set()
    for j, name in enumerate(names):
        if name in known:
            raise UsageError(f"the DataFrame has two columns named {name!r}; give each a name of its own")
        known.add(name)
        if not name or any("\ud800" <= c <= "\udfff" for c in name):
            raise UsageError(f"column {j} of the DataFrame is named {short_repr(name)}; give it a name that is text")


def _kind_of(name: str, dtype: Any) -> str:
    text = str(dtype).lower()
    kind = next((kind for kind, pattern in KIND_OF_TYPE if pattern.match(text)), None)
    if kind is None:
        raise UsageError(f"column {name!r} holds {dtype}; convert it to numbers or to text")
    return kind


def _number(cell: Any, name: str, row: int) -> float:
    """Return a cell of any type as a number, NaN if it is missing; raise DataError if it is none."""
    if array_input.is_missing(cell):
        return np.nan
    value = schema.number_in(cell) if isinstance(cell, str) else array_input.number(cell)
    if value is None:
        raise DataError(
            f"row {row}, column {name!r}: the value is {type(cell).__name__} {short_repr(cell)}, and the model has "
            "learned this column as numbers: give numbers, or learn the column as text from the first table on"
        )
    return value
