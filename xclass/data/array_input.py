"""Check arrays that a program passes, and convert them into the arrays that kernels take.

Kernels do not check bounds, so every array of a program goes through this module. Values mean what they mean to NumPy
and SciPy: a masked entry is missing, entries of a sparse matrix may have any order, and those in the same place are
added. What would lose a part of a value, such as the imaginary part or the fraction of a column's number, is refused
with its place. The arrays of the program are never changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from ..array_types import AnyArray, Float32s, Float64s, Int64s
from ..errors import DataError, UsageError, XclassError
from ..system.printable import short_repr
from . import batch_ops
from .batch import DTYPES, LENGTHS, NO_DENSE, Batch, sizes
from .class_names import UNKNOWN

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

LARGEST = float(np.nextafter(2.0**128 - 2.0**103, 0.0))  # the largest float64 that is finite in float32
LARGEST_COLUMN = 2**32 - 1
FINITE = "allowed are finite numbers up to 3.4e38"
PLACES = 1 << 16  # entries to look at a time, so that checks need little memory
MISSING = ("NAType", "NaTType", "MaskedConstant")  # types of pandas.NA, pandas.NaT and numpy.ma.masked


class SparseRows(Protocol):
    """Describe a matrix in compressed sparse rows, such as SciPy's CSR matrices and arrays.

    Row i has the entries `indptr[i]:indptr[i + 1]`; a column is from 0 to 2**32 - 1. If there is an attribute `shape`,
    (n, d), columns have to be less than d.
    """

    indptr: ArrayLike
    indices: ArrayLike
    data: ArrayLike


class MatrixRows(NamedTuple):
    """Hold a matrix in compressed sparse rows, whose columns rise within each row."""

    start: Int64s  # int64[n + 1]
    column: AnyArray  # whole numbers[z], 0..LARGEST_COLUMN
    value: AnyArray  # real numbers[z], finite as float32


# -- single values


def is_missing(value: object) -> bool:
    """Return whether a value stands for a missing one: None, NaN, NaT, pandas.NA, or NumPy's `masked`."""
    if value is None or type(value).__name__ in MISSING:
        return True
    if isinstance(value, (float, Decimal, np.floating, np.datetime64, np.timedelta64)):
        return bool(value != value)
    return False


def is_number(kind: type) -> bool:
    """Return whether the values of a type are real numbers; text and complex numbers are none."""
    return issubclass(kind, (Real, Decimal, np.bool_))


def number(value: object) -> float | None:
    """Return a value as a float, None if it is no real number; numbers that are too large become infinite."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if not is_number(type(value)):
        return None
    try:
        return float(value)  # type: ignore[arg-type]  # `is_number`
    except OverflowError:
        return float("inf")


# -- arrays of one dimension


def is_array(given: object) -> bool:
    """Return whether NumPy takes an object as an array: it has one of NumPy's protocols or is a buffer."""
    if isinstance(given, np.generic):
        return False
    return isinstance(given, memoryview) or any(
        hasattr(given, name) for name in ("__array__", "__array_interface__", "__array_struct__", "__dlpack__")
    )


def items_of(given: Any) -> Any:
    """Return a column of pandas, polars or Arrow, or an array, of texts, lists or dictionaries as a list of these."""
    name = next((name for name in ("to_pylist", "to_list", "tolist") if hasattr(given, name)), None)
    if name is None or hasattr(given, "columns") or hasattr(given, "column_names") or getattr(given, "ndim", 1) != 1:
        return given
    if getattr(getattr(given, "dtype", None), "kind", "O") in "iufbc":
        return given
    items = list(given) if name == "tolist" else getattr(given, name)()  # arrays in an array stay as they are
    first = next((item for item in items if not is_missing(item)), None)
    return items if isinstance(first, (str, list, tuple, np.ndarray, Mapping)) else given


def array(name: str, given: Any) -> AnyArray:
    """Return anything that NumPy takes as an array, masked arrays as such; raise UsageError for other objects."""
    if isinstance(given, np.ma.MaskedArray):
        return given
    try:
        if hasattr(given, "__dlpack__") and not hasattr(given, "__array__"):
            return np.from_dlpack(given)
        return np.asarray(given)
    except Exception as error:  # of whatever converts the object, such as a tensor on another device
        raise UsageError(f"{name}: {type(given).__name__} is no array ({' '.join(str(error).split())})") from None


def whole_numbers(name: str, given: Any, lowest: int = -(2**63), highest: int = 2**63 - 1) -> AnyArray:
    """Return whole numbers as an array of one dimension, of an integer type; raise DataError if they are none."""
    values = array(name, given)
    if values.ndim != 1 or (values.dtype.kind not in "iu" and len(values)):
        raise DataError(f"{name} is an array {described(values)}; give whole numbers in one dimension")
    if np.ma.is_masked(values):
        raise DataError(f"{name}[{int(np.argmax(np.ma.getmaskarray(values)))}] is masked; give a whole number")
    values = np.asarray(values) if len(values) else np.empty(0, np.int64)
    if len(values) and (int(values.min()) < lowest or int(values.max()) > highest):
        at = int(np.argmax((values < lowest) if int(values.min()) < lowest else (values > highest)))
        raise DataError(f"{name}[{at}] is {values[at]}; allowed are whole numbers from {lowest} to {highest}")
    return values


def flat(name: str, given: Any) -> Any:
    """Return labels or weights that are a table of a single column in one dimension, and others as they are."""
    if isinstance(given, (set, frozenset, Mapping)):
        raise DataError(f"{name} is a {type(given).__name__}; give a list, with one for each example")
    shape = getattr(given, "shape", ())
    if isinstance(given, (list, tuple)) and given and isinstance(given[0], (list, tuple)):
        given = array(name, given)
        shape = given.shape
    if not isinstance(shape, tuple) or len(shape) < 2:
        return given
    if len(shape) > 2 or shape[1] != 1:
        raise DataError(f"{name} has the shape {shape}; give one for each example, in one dimension")
    if hasattr(given, "iloc"):
        return given.iloc[:, 0]
    return given.column(0) if hasattr(given, "column_names") else array(name, given).reshape(-1)


def column(name: str, given: Any, n: int) -> Float64s:
    """Return the labels or weights of n examples as float64[n], NaN for missing and masked ones."""
    given = flat(name, given)
    values = array(name, given)
    if values.dtype.kind in "US" and values.ndim == 1:
        values = np.asarray(given, object)  # NumPy makes text of the numbers beside a text
    if values.dtype.kind == "O" and values.ndim == 1:
        values = _of_objects(values, lambda at: f"{name}[{at}]")
    if values.shape != (n,) or values.dtype.kind not in "iufb":
        raise DataError(f"{name} is an array {described(values)}; give a number for each of the {n} examples")
    if np.ma.is_masked(values):
        return np.ma.filled(values.astype(np.float64), np.nan)
    return np.ascontiguousarray(values, np.float64)


def described(values: AnyArray) -> str:
    first = f" with the entry {short_repr(values.reshape(-1)[:1].tolist()[0])}" if values.size else ""
    return f"{values.dtype}{list(values.shape)}{first}"


def _of_objects(values: AnyArray, place: Any) -> Float64s:
    """Return objects that are numbers as float64, NaN for missing ones; `place` names the position of one."""
    flat = np.ma.getdata(values).reshape(-1)
    masked = np.ma.getmaskarray(values).reshape(-1)
    numbers = np.full(flat.size, np.nan)
    for at, value in enumerate(flat.tolist()):
        if masked[at] or is_missing(value):
            continue
        converted = number(value)
        if converted is None:
            raise DataError(f"{place(at)} is {type(value).__name__} {short_repr(value)}; allowed are numbers")
        numbers[at] = converted
    return numbers.reshape(values.shape)


# -- matrices


def dense(given: Any) -> AnyArray:
    """Return a dense matrix as an array of two dimensions and of a type of real numbers, which may be masked."""
    if isinstance(given, (list, tuple)):
        given = _of_rows(given)
    values = array("examples", given)
    if values.ndim == 2 and values.dtype.kind == "O":
        width = values.shape[1]
        values = _of_objects(values, lambda at: f"row {at // width}, column {at % width}: the value")
    if values.ndim != 2 or values.dtype.kind not in "iufb":
        raise UsageError(
            f"examples are an array {described(values)}; give numbers in two dimensions, one row for "
            "each example, a sparse matrix, a DataFrame, or a list of texts or dictionaries"
        )
    return values


def _of_rows(rows: Sequence[Any]) -> AnyArray:
    """Return lists of numbers, one for each row, as an array; raise DataError if their lengths differ, or for words."""
    words = [i for i, row in enumerate(rows) if isinstance(row, (list, tuple)) and set(map(type, row)) == {str}]
    if words:
        shown = short_repr(rows[words[0]])
        raise DataError(f"row {words[0]} is a list of words, {shown}; give numbers or texts: ' '.join(words) makes one")
    lengths = [len(row) if hasattr(row, "__len__") else -1 for row in rows]
    wrong = next((i for i, length in enumerate(lengths) if length != lengths[0]), None)
    if wrong is not None:
        shown = short_repr(rows[wrong])
        raise DataError(f"row {wrong} is {shown}; allowed are rows of {lengths[0]} numbers, as row 0 has them")
    values = array("examples", rows)
    return values if values.dtype.kind in "iufb" else np.array(rows, object)  # [1, "3"] is text to NumPy


def filled(values: AnyArray) -> AnyArray:
    """Return a part of a dense matrix, with 0, which is no feature, for masked entries."""
    return np.ma.filled(values, 0) if isinstance(values, np.ma.MaskedArray) else values


def rows_of(given: Any) -> MatrixRows:
    """Return a sparse matrix, of SciPy or with the attributes of `SparseRows`, as compressed sparse rows.

    Values are not checked, because that is done piece by piece.
    """
    missing = [name for name in ("indptr", "indices", "data") if not hasattr(given, name)]
    if missing and not hasattr(given, "tocsr"):
        raise UsageError(f"examples are {type(given).__name__} with indptr, but without {' and '.join(missing)}")
    shape = getattr(given, "shape", None)
    if shape is not None:
        shape = tuple(whole_numbers("shape", shape, 0).tolist())
        if len(shape) != 2:
            raise UsageError(f"examples are a sparse array of the shape {shape}; give a matrix, with a row for each")
    if hasattr(given, "tocsr"):
        try:
            _check_before_conversion(given, shape)
            if getattr(given, "format", None) == "coo" and _sum_type(given.dtype) != given.dtype:
                given = given.astype(_sum_type(given.dtype))
            given = given.tocsr()  # SciPy's CSC has the attributes of CSR with another meaning
        except XclassError:
            raise
        except Exception as error:  # of SciPy, whose arrays the program may have replaced
            raise DataError(f"examples are a matrix that SciPy cannot convert to CSR ({error})") from None
    if getattr(given, "format", "csr") != "csr":
        raise UsageError(f"examples are a matrix of the format {given.format!r}; give compressed sparse rows (CSR)")
    last = LARGEST_COLUMN if shape is None else min(LARGEST_COLUMN, shape[1] - 1)
    reason = "" if shape is None else f", because the matrix has {shape[1]} columns"
    start, indices = _compressed(given, None if shape is None else shape[0], last, reason)
    value = array("data", given.data)
    if value.ndim != 1 or (value.dtype.kind not in "iufb" and len(value)):
        raise DataError(f"data is an array {described(value)}; give real numbers in one dimension")
    if len(indices) != len(value):
        raise DataError(
            f"indices and data have {len(indices)} and {len(value)} entries; they have to have the same length"
        )
    if np.ma.is_masked(value):
        value = np.ma.filled(value, 0)
    value = np.asarray(value) if len(value) else np.empty(0, np.float32)
    end = int(start[-1])
    return _canonical(MatrixRows(start, indices[:end], value[:end]))


def _compressed(given: Any, rows: int | None, last: int, reason: str) -> tuple[Int64s, AnyArray]:
    """Return `indptr` as int64 and `indices` of a compressed matrix after checking them.

    `rows` is None if the matrix has no shape, `last` is the largest number that `indices` may hold, and `reason` says
    why.
    """
    start = whole_numbers("indptr", given.indptr).astype(np.int64)
    if not len(start) or start[0] != 0 or (start[1:] < start[:-1]).any():
        raise DataError("indptr has to start at 0, and never decrease")
    if rows is not None and len(start) != rows + 1:
        raise DataError(f"indptr has {len(start)} entries; the matrix has {rows} rows, so give {rows + 1}")
    indices = whole_numbers("indices", given.indices)
    if start[-1] > len(indices):
        raise DataError(f"indptr has to end at most at {len(indices)}, the length of indices")
    used = indices[: start[-1]]
    if len(used) and (int(used.min()) < 0 or int(used.max()) > last):
        at = int(np.argmax((used < 0) | (used > last)))
        row = int(np.searchsorted(start, at, side="right")) - 1
        raise DataError(f"row {row}: indices contains {used[at]}; allowed are 0 to {last}{reason}")
    return start, indices


def _check_before_conversion(given: Any, shape: tuple[int, int] | None) -> None:
    """Check the arrays that SciPy does not check when it converts a matrix to CSR."""
    form = getattr(given, "format", None)
    if shape is None:
        raise UsageError(f"examples are {type(given).__name__}, a matrix without a shape; give one of SciPy")
    if form == "csc":
        _compressed(given, shape[1], shape[0] - 1, f", because the matrix has {shape[0]} rows")
    elif form == "bsr":
        height, width = given.blocksize
        _compressed(given, shape[0] // height, shape[1] // width - 1, f", because {width} columns are a block")
    elif form == "coo":
        for name, numbers, size in (("row", given.row, shape[0]), ("col", given.col, shape[1])):
            whole_numbers(name, numbers, 0, size - 1)


def _canonical(rows: MatrixRows) -> MatrixRows:
    """Return rows in which columns rise, with the sums of entries in the same place, as SciPy's `sum_duplicates`."""
    start, column, value = rows
    if _rises(start, column):
        return rows
    row = np.repeat(np.arange(len(start) - 1), np.diff(start))
    order = np.lexsort((column, row))
    row, column, value = row[order], column[order], value[order]
    first = np.flatnonzero(np.concatenate([[True], (row[1:] != row[:-1]) | (column[1:] != column[:-1])]))
    native = value.astype(value.dtype.newbyteorder("="), copy=False)
    sums = np.add.reduceat(native, first, dtype=_sum_type(native.dtype))
    return MatrixRows(np.searchsorted(row[first], np.arange(len(start))), column[first], sums)


def _sum_type(given: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type of sums, in which whole numbers and those of float16 do not overflow."""
    return np.dtype(np.float64) if given.kind in "iu" or given == np.float16 else given


def _rises(start: Int64s, column: AnyArray) -> bool:
    for low in range(0, len(column) - 1, PLACES):
        part = column[low : low + PLACES + 1]
        fall = np.flatnonzero(part[1:] <= part[:-1]) + low + 1
        if len(fall) and (start[np.searchsorted(start, fall)] != fall).any():  # not between two rows
            return False
    return True


def first_wrong(values: AnyArray) -> int | None:
    """Return the position of the first value that is not finite as float32, or None; `values` is number[z]."""
    if values.dtype.kind != "f" or not len(values):
        return None
    with np.errstate(over="ignore"):
        wrong = ~np.isfinite(values.astype(np.float32, copy=False))
    return int(np.argmax(wrong)) if wrong.any() else None


def wrong_value(place: str, value: Any, cell: Any = None) -> DataError:
    """Return the error for a value of a matrix that is not finite; `cell` is the text that writes it, if any."""
    advice = "fill in or leave out missing values" if value != value else "scale the values"
    shown = cell if isinstance(cell, str) else f"{float(value):g}"
    return DataError(f"{place}: the value is {shown}; {FINITE}: {advice}")


def block(name: str, given: Any) -> Float32s:
    """Return rows of numbers as float32[n, d], contiguous, 0 for masked entries, and [0, 0] if there are no columns.

    Raise DataError with row and column for a value that is not finite as float32.
    """
    values = array(name, given)
    if values.ndim != 2 or values.dtype.kind not in "iufb":
        raise DataError(f"{name} is an array {described(values)}; give numbers in two dimensions")
    values = filled(values)
    if not values.shape[1]:
        return NO_DENSE
    with np.errstate(over="ignore"):
        rows = np.require(values, np.float32, ["A", "C", "E", "W"])  # for read-only arrays, numba compiles anew
    if not np.isfinite(rows).all():
        row, column = np.argwhere(~np.isfinite(rows))[0]
        raise wrong_value(f"{name}: row {row}, column {column}", values[row, column])
    return rows


# -- batches


def batch(given: Batch) -> Batch:
    """Return a batch of a program with contiguous arrays of the types of `Batch`, after checking what they hold."""
    fields = {}
    for name, values, dtype in zip(Batch._fields[:-1], given, DTYPES, strict=False):
        fields[name] = _field(f"batch.{name}", values, dtype)
    checked = Batch(**fields, dense=block("batch.dense", given.dense))
    n, z, groups = checked.n, len(checked.index), len(checked.group_name)
    lengths = sizes(n, z, groups, len(checked.labels) if checked.has_lists else None)
    if checked.columns and len(checked.dense) != n:
        raise DataError(f"batch.dense has {len(checked.dense)} rows; the batch has {n} examples")
    for name, k in zip(Batch._fields, LENGTHS, strict=True):
        if k is not None and len(fields[name]) != lengths[k]:
            raise DataError(f"batch.{name} has {len(fields[name])} entries; the other arrays need {lengths[k]}")
    starts = {"start": z, "group_first": groups, "group_start": z}
    for name, last in (starts | {"label_start": len(checked.labels)} if checked.has_lists else starts).items():
        values = fields[name]
        if values[0] != 0 or values[-1] != last or (values[1:] < values[:-1]).any():
            raise DataError(f"batch.{name} has to start at 0, never decrease, and end at {last}")
    apart = np.flatnonzero(checked.group_start[checked.group_first] != checked.start)
    if len(apart):
        raise DataError(f"batch.group_first[{apart[0]}] names a group that does not begin where the example does")
    tags = (checked.tag_start < 0) | (checked.tag_end < checked.tag_start) | (checked.tag_end > len(checked.text))
    if tags.any():
        raise DataError(f"batch.tag_start[{int(np.argmax(tags))}] and tag_end are no part of the text")
    return _with_lists(checked) if checked.has_lists else checked


def _with_lists(given: Batch) -> Batch:
    """Return a batch with lists of labels, ascending and distinct, after checking the labels and their numbers."""
    wrong = ~((given.labels >= 0) & (given.labels <= UNKNOWN) & (given.labels == np.floor(given.labels)))
    if wrong.any():
        at = int(np.argmax(wrong))
        raise DataError(f"batch.labels[{at}] is {given.labels[at]:g}; allowed are whole numbers from 0 to {UNKNOWN}")
    count = np.diff(given.label_start)
    wrong = (given.label != count) & ~(np.isnan(given.label) & (count == 0))
    if wrong.any():
        at = int(np.argmax(wrong))
        raise DataError(f"batch.label[{at}] is {given.label[at]:g}; the example has {count[at]} labels in batch.labels")
    return batch_ops.with_lists_in_order(given)


def _field(name: str, given: Any, dtype: np.dtype[Any]) -> AnyArray:
    """Return an array of a batch with the type `dtype`; raise DataError if a value would change."""
    if isinstance(given, np.ndarray) and given.dtype == dtype and given.ndim == 1:
        return np.ascontiguousarray(given, dtype)
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return np.ascontiguousarray(whole_numbers(name, given, int(limits.min), int(limits.max)), dtype)
    values = array(name, given)
    values = column(name, values, len(values) if values.ndim else 0)
    at = first_wrong(values) if dtype == np.float32 else None
    if at is not None:
        raise wrong_value(f"{name}[{at}]", values[at])
    return np.ascontiguousarray(values, dtype)
