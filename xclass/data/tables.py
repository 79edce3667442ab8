"""Convert tables that a program holds in memory into features, a piece of the rows at a time.

A table is a sparse matrix, a dense array, a DataFrame with columns of numbers and of text, or a list of texts. Column j
of a matrix is the feature named `j`; a column of a DataFrame has its own name. A column of text is a namespace, and its
words are the features. All rows are checked before the first piece is converted, so that nothing is learned from a
table with a value that is not allowed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from ..array_types import AnyArray
from ..errors import DataError, UsageError
from ..kernels import jit
from ..system.printable import short_repr
from . import feature_names, matrix, words
from .batch import Batch
from .feature_names import Hashing, NameHasher
from .matrix import UNNAMED_GROUP, Part

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

LARGEST_COLUMN = 2**32 - 1
PIECE = 1 << 16  # entries, or bytes of text, to convert at a time
LARGEST = np.finfo(np.float32).max  # a float32, as a Python number compared with float16 would become infinite


@runtime_checkable
class SparseRows(Protocol):
    """Describe a matrix in compressed sparse rows, such as SciPy's CSR matrices and arrays.

    Attributes
    ----------
    indptr : int array[n + 1], row i has the entries `indptr[i]:indptr[i + 1]`
    indices : int array[nnz], column of each entry, 0..2**32 - 1
    data : float array[nnz], value of each entry

    If there is an attribute `shape`, (n, d), columns have to be less than d.
    """

    indptr: ArrayLike
    indices: ArrayLike
    data: ArrayLike


class Table(ABC):
    """Convert the rows of a table into features.

    Attributes
    ----------
    n : number of rows
    """

    n: int

    @abstractmethod
    def check(self) -> None:
        """Raise DataError if the table holds a value that is not allowed; the message names its row."""

    @abstractmethod
    def batch(self, low: int, high: int, constant: bool) -> Batch:
        """Return the rows low..high-1 as unlabelled examples, with the constant feature if `constant` is set."""

    @abstractmethod
    def pieces(self) -> Iterator[tuple[int, int]]:
        """Yield the first and the last row (exclusive) of each piece to convert at a time, in order."""


class SparseTable(Table):
    """Convert the rows of a sparse matrix.

    Parameters
    ----------
    rows : the matrix
    rule : how the names of columns are hashed

    Raises
    ------
    DataError
        if the arrays do not describe a matrix.
    """

    def __init__(self, rows: SparseRows, rule: Hashing) -> None:
        self._rule = rule
        self._start, self._column, self._value = (np.asarray(a) for a in (rows.indptr, rows.indices, rows.data))
        start = self._start
        if start.ndim != 1 or not len(start) or start[0] != 0 or (np.diff(start) < 0).any():
            raise DataError("indptr has to start at 0, and never decrease")
        if start[-1] > len(self._column):
            raise DataError(f"indptr has to end at most at {len(self._column)}, the length of indices")
        if len(self._column) != len(self._value):
            lengths = f"{len(self._column)} and {len(self._value)}"
            raise DataError(f"indices and data have {lengths} entries; they have to have the same length")
        self.n = len(start) - 1
        shape = getattr(rows, "shape", None)
        self._columns = None if shape is None else int(shape[1])  # None if any column number is allowed

    def arrays(self) -> tuple[AnyArray, AnyArray, AnyArray]:
        """Return the positions, columns and values of the entries as they were given."""
        return self._start, self._column, self._value

    def check(self) -> None:
        self._check_columns()
        for low, high in self.pieces():
            begin, end = self._start[low], self._start[high]
            at = _first_wrong(self._value[begin:end])
            if at is not None:
                row = int(np.searchsorted(self._start, begin + at, side="right")) - 1
                raise _wrong_value(row, f"column {self._column[begin + at]}", self._value[begin + at])

    def _check_columns(self) -> None:
        """Raise DataError if a number of a column is negative or beyond the last column."""
        column = self._column[: self._start[-1]]
        last = LARGEST_COLUMN if self._columns is None else min(LARGEST_COLUMN, self._columns - 1)
        if not column.size or (column.min() >= 0 and column.max() <= last):
            return
        at = int(np.argmax((column < 0) | (column > last)))
        row = int(np.searchsorted(self._start, at, side="right")) - 1
        allowed = f"0 to {last}" + (
            "" if self._columns is None else f", because the matrix has {self._columns} columns"
        )
        raise DataError(f"row {row}: indices contains {column[at]}; allowed are {allowed}")

    def batch(self, low: int, high: int, constant: bool) -> Batch:
        begin, end = self._start[low], self._start[high]
        start = self._start[low : high + 1].astype(np.int64, copy=False)
        column = np.ascontiguousarray(self._column[begin:end], np.int64)
        value = np.ascontiguousarray(self._value[begin:end], np.float32)
        return matrix.sparse_batch(start, column, value, self._rule, constant, low + 1)

    def pieces(self) -> Iterator[tuple[int, int]]:
        low = 0
        while low < self.n:
            high = int(np.searchsorted(self._start, self._start[low] + PIECE, side="right")) - 1
            high = min(max(high, low + 1), low + PIECE)
            yield low, high
            low = high


class DenseTable(Table):
    """Convert the rows of a dense array.

    Parameters
    ----------
    values : number array[n, d]
    rule : how the names of columns are hashed
    """

    def __init__(self, values: AnyArray, rule: Hashing) -> None:
        if values.ndim != 2 or values.dtype.kind not in "iufb":
            raise UsageError(
                f"examples are an array {values.dtype}{list(values.shape)}; give numbers in two dimensions, one row "
                "for each example, a sparse matrix, a DataFrame, or a list of texts or dictionaries"
            )
        self._values, self.n = values, len(values)
        self._indices = feature_names.column_indices(values.shape[1], rule)

    def check(self) -> None:
        if self._values.dtype.kind != "f":
            return
        for low, high in self.pieces():
            values = self._values[low:high]
            at = _first_wrong(values.reshape(-1))
            if at is not None:
                row, column = divmod(at, values.shape[1])
                raise _wrong_value(low + row, f"column {column}", values[row, column])

    def batch(self, low: int, high: int, constant: bool) -> Batch:
        part = matrix.dense_part(np.ascontiguousarray(self._values[low:high], np.float32), self._indices)
        return matrix.batch_of(high - low, [part], constant, low + 1)

    def pieces(self) -> Iterator[tuple[int, int]]:
        return _equal_pieces(self.n, max(1, self._values.shape[1]))


class TextTable(Table):
    """Convert texts, whose words, separated by white space, are features without a namespace.

    Parameters
    ----------
    texts : n texts, None for no words
    rule : how words are hashed
    """

    def __init__(self, texts: Sequence[str | None], rule: Hashing) -> None:
        self._texts, self._rule, self.n = texts, rule, len(texts)

    def check(self) -> None:
        for row, text in enumerate(self._texts):
            if text is not None and not isinstance(text, str):
                raise DataError(
                    f"row {row}: {type(text).__name__} {short_repr(text)}; give texts, or None for no words"
                )

    def batch(self, low: int, high: int, constant: bool) -> Batch:
        part = _words(self._texts[low:high], UNNAMED_GROUP, int(self._rule.unnamed), self._rule)
        return matrix.batch_of(high - low, [part], constant, low + 1)

    def pieces(self) -> Iterator[tuple[int, int]]:
        low = size = 0
        for row, text in enumerate(self._texts):
            size += len(text or "") + 1
            if size > PIECE:
                yield low, row + 1
                low, size = row + 1, 0
        if low < self.n:
            yield low, self.n


class Frame(Table):
    """Convert the rows of a DataFrame, of pandas or with the same interface.

    Columns of numbers are features without a namespace. All other columns hold text, or text and numbers: the column is
    a namespace, and the words of the text are features.

    Parameters
    ----------
    frame : n rows
    rule : how names are hashed
    hasher : hashes the names of the columns
    """

    def __init__(self, frame: Any, rule: Hashing, hasher: NameHasher) -> None:
        self._frame, self._rule, self.n = frame, rule, len(frame)
        self._columns = list(frame.columns)
        if len(set(self._columns)) < len(self._columns):
            twice = next(name for i, name in enumerate(self._columns) if name in self._columns[:i])
            raise UsageError(f"the DataFrame has two columns named {twice!r}; give each a name of its own")
        numeric = [_is_numeric(name, kind) for name, kind in zip(self._columns, frame.dtypes, strict=True)]
        self._numbers = [name for name, number in zip(self._columns, numeric, strict=True) if number]
        self._texts = [name for name, number in zip(self._columns, numeric, strict=True) if not number]
        unnamed = int(rule.unnamed)
        self._indices = np.array([hasher.index(str(name), unnamed) for name in self._numbers], np.uint32)
        self._seeds = [hasher.namespace(str(name)) for name in self._texts]

    def check(self) -> None:
        for low, high in self.pieces():
            values = self._values(low, high)
            at = _first_wrong(values.reshape(-1))
            if at is not None:
                row, column = divmod(at, values.shape[1])
                raise _wrong_value(low + row, f"column {self._numbers[column]!r}", values[row, column])
            rows = self._rows(low, high)
            for name in self._texts:
                _check_cells(rows[name].to_list(), name, low)

    def batch(self, low: int, high: int, constant: bool) -> Batch:
        parts = []
        if self._numbers:
            parts.append(matrix.dense_part(self._values(low, high).astype(np.float32), self._indices))
        rows = self._rows(low, high)
        for name, seed in zip(self._texts, self._seeds, strict=True):
            texts = [None if _is_missing(text) else str(text) for text in rows[name].to_list()]
            group = str(name).encode("utf-8", "surrogateescape")[:1]
            parts.append(_words(texts, group[0] if group else UNNAMED_GROUP, seed, self._rule))
        return matrix.batch_of(high - low, parts, constant, low + 1)

    def pieces(self) -> Iterator[tuple[int, int]]:
        return _equal_pieces(self.n, len(self._numbers) + 16 * len(self._texts) or 1)

    def _rows(self, low: int, high: int) -> Any:
        """Return rows of the DataFrame."""
        return self._frame.iloc[low:high] if hasattr(self._frame, "iloc") else self._frame[low:high]

    def _values(self, low: int, high: int) -> AnyArray:
        """Return the numbers of rows, float64[high - low, number of columns of numbers]; NaN for a missing one."""
        rows = self._rows(low, high)
        values = np.empty((high - low, len(self._numbers)))
        for j, name in enumerate(self._numbers):
            column = rows[name]
            try:
                values[:, j] = column.to_numpy()
            except (TypeError, ValueError):  # pandas.NA
                values[:, j] = column.to_numpy(np.float64, na_value=np.nan)
        return values


def table_of(given: Any, rule: Hashing, hasher: NameHasher) -> Table | None:
    """Return what converts a sparse matrix, a dense array or a DataFrame; None if `given` is none of these."""
    if hasattr(given, "columns") and hasattr(given, "dtypes"):
        return Frame(given, rule, hasher)
    if hasattr(given, "tocsr"):  # convert first: SciPy's CSC has the attributes of CSR with another meaning
        return SparseTable(given.tocsr(), rule)
    if isinstance(given, SparseRows):
        return SparseTable(given, rule)
    if hasattr(given, "__array__") and not isinstance(given, np.generic):
        values = np.asarray(given)
        if values.ndim == 1 and values.dtype.kind in "OU":
            return None  # texts or dictionaries
        return DenseTable(values, rule)
    return None


def sparse_arrays(given: Any) -> tuple[AnyArray, AnyArray, AnyArray]:
    """Return a matrix as compressed sparse rows: int64[n + 1], int64[z] and float32[z].

    Raises
    ------
    UsageError
        if it is not a sparse or dense matrix.
    DataError
        if a value is not finite, or the arrays do not describe a matrix.
    """
    jit.activate(hide_scipy=False)
    rule = feature_names.new_hashing(0, False, 32)
    table = table_of(given, rule, NameHasher(rule))
    if isinstance(table, SparseTable):
        table.check()
        start, column, value = table.arrays()
    elif isinstance(table, DenseTable):
        table.check()
        values = np.asarray(given)
        row, column = np.nonzero(values)
        start, value = np.searchsorted(row, np.arange(table.n + 1)), values[row, column]
    else:
        raise UsageError(f"{type(given).__name__} {short_repr(given)} is not a sparse matrix or an array of numbers")
    return start.astype(np.int64), column.astype(np.int64), value.astype(np.float32)


def _words(texts: Sequence[str | None], group: int, seed: int, rule: Hashing) -> Part:
    """Return the words of n texts as the features of a namespace."""
    encoded = [b"" if text is None else text.encode("utf-8", "surrogateescape") for text in texts]
    end = np.cumsum([len(text) for text in encoded], dtype=np.int64)
    begin = end - np.array([len(text) for text in encoded], np.int64)
    letters = np.frombuffer(b"".join([*encoded, bytes(words.PADDING)]), np.uint8)
    start, index = words.words(letters, begin, end, np.uint32(seed), rule.hash_all, rule.mask)
    return Part(group, start, index, np.ones(len(index), np.float32))


def _equal_pieces(n: int, width: int) -> Iterator[tuple[int, int]]:
    """Yield pieces of n rows with `width` entries each."""
    rows = max(1, PIECE // width)
    for low in range(0, n, rows):
        yield low, min(low + rows, n)


def _is_numeric(name: object, kind: Any) -> bool:
    """Return whether a column of a DataFrame with dtype `kind` holds numbers; raise UsageError for dates."""
    if hasattr(kind, "is_numeric"):  # polars
        return bool(kind.is_numeric()) or str(kind) == "Boolean"
    letter = getattr(kind, "kind", "O")
    if letter in "mMc":
        raise UsageError(f"column {name!r} holds {kind}; convert it to numbers or to text")
    return letter in "iufb"


def _is_missing(text: object) -> bool:
    """Return whether a cell of a column of text is empty: None, NaN, pandas.NA or pandas.NaT."""
    return text is None or (not isinstance(text, str) and str(text) in ("nan", "<NA>", "NaT"))


def _check_cells(cells: Sequence[object], name: object, first_row: int) -> None:
    """Raise DataError if a cell of the column of text `name` is neither text nor a number and is not empty."""
    for kind in set(map(type, cells)):
        if issubclass(kind, (str, int, float, np.number, np.bool_)):
            continue
        for row, cell in enumerate(cells):
            if type(cell) is kind and not _is_missing(cell):
                raise DataError(
                    f"row {first_row + row}, column {name!r}: the value is {kind.__name__} {short_repr(cell)}; allowed "
                    "are text and numbers: convert the column to text, or to columns of numbers"
                )


def _first_wrong(values: AnyArray) -> int | None:
    """Return the position of the first value that is not finite as float32, or None; `values` is number[z]."""
    if values.dtype.kind != "f" or not len(values):
        return None
    wrong = ~((values >= -LARGEST) & (values <= LARGEST))
    return int(np.argmax(wrong)) if wrong.any() else None


def _wrong_value(row: int, column: str, value: Any) -> DataError:
    """Return the error for a value that a table may not hold."""
    advice = "fill in or leave out missing values" if value != value else "scale the values"
    return DataError(f"row {row}, {column}: the value is {value:g}; allowed are finite numbers up to 3.4e38: {advice}")
