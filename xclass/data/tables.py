"""Convert tables that a program holds in memory into features, a piece of the rows at a time.

A table is a sparse matrix, a dense array, a DataFrame with columns of numbers and of text, or a list of texts. Column j
of a matrix is the feature named `j`; a column of a DataFrame has its own name. A column of text is a namespace, and its
words are the features. All rows are checked before the first piece is converted, so that nothing is learned from a
table with a value that is not allowed.

A learner that takes the dense block gets the rows of an array, and the columns of a DataFrame that are dense, as they
are.

Cost      about 1 ns for each entry.
Names     A part has the features of n examples in one namespace, in compressed sparse rows.
Differs   from text in nothing: entries of 0 are left out, as the parser leaves out features with the value 0, and
          namespaces whose names begin with the same byte are one group.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..array_types import AnyArray, Float32s, Int64s, UInt8s, UInt32s
from ..errors import UsageError
from ..kernels.jit import activate, jit
from ..system.printable import short_repr
from . import array_input, batch_ops, feature_names, frames, texts
from .array_input import SparseRows
from .batch import CONSTANT, CONSTANT_GROUP, NO_DENSE, UNNAMED_GROUP, Batch, empty
from .feature_names import Hashing, NameHasher
from .frames import Frame
from .schema import DENSE, NUMBER, TEXT, Schema


class NamespaceFeatures(NamedTuple):
    """Hold the features of n examples in one namespace."""

    group: int  # first byte of the name of the namespace, UNNAMED_GROUP if it has none
    start: Int64s  # int64[n + 1]
    index: UInt32s  # type: ignore[assignment]  # hides tuple.index; uint32[z]
    value: Float32s  # float32[z]


# -- kernels


@jit
def interleave(
    group: UInt8s, starts: Int64s, first: Int64s, index: UInt32s, value: Float32s, constant: bool, out: Batch
) -> int:
    """Write the features of all parts, example by example, into a batch; return the number of groups.

    Parameters
    ----------
    group : uint8[m], group of each part
    starts : int64[m, n + 1], `start` of each part
    first : int64[m], position of the first feature of each part in `index` and `value`
    index, value : uint32[z], float32[z], features of all parts
    out : Batch with space for the features and groups, written
    """
    parts, n = starts.shape[0], starts.shape[1] - 1
    out_index, out_value = out.index, out.value  # taking an array out of a tuple in a loop counts references each time
    z = g = 0
    for i in range(n):
        for t in range(parts):
            before = z
            for p in range(first[t] + starts[t, i], first[t] + starts[t, i + 1]):
                if value[p] != 0:
                    out_index[z], out_value[z] = index[p], value[p]
                    z += 1
            if z > before:
                out.group_name[g], out.group_start[g] = group[t], before
                g += 1
        if constant:
            out.group_name[g], out.group_start[g] = np.uint8(CONSTANT_GROUP), z
            out_index[z], out_value[z] = np.uint32(CONSTANT), np.float32(1)
            z, g = z + 1, g + 1
        out.start[i + 1], out.group_first[i + 1] = z, g
    out.group_start[g] = z
    return g


# -- batches


def batch_of(n: int, parts: Sequence[NamespaceFeatures], constant: bool, first_line: int = 1) -> Batch:
    """Return a batch of n unlabelled examples of weight 1 from the features in each namespace."""
    sizes = [len(part.index) for part in parts]
    out = empty(n, sum(sizes) + n * constant, n * (len(parts) + constant))
    out.label[:], out.weight[:] = np.nan, 1
    out.line[:] = np.arange(first_line, first_line + n)
    group = np.array([part.group for part in parts], np.uint8)
    starts = np.array([part.start for part in parts], np.int64).reshape(len(parts), n + 1)
    first = np.cumsum([0, *sizes], dtype=np.int64)[:-1]
    if len(parts) == 1:
        index, value = parts[0].index, parts[0].value
    else:
        index = np.concatenate([np.empty(0, np.uint32), *(part.index for part in parts)])
        value = np.concatenate([np.empty(0, np.float32), *(part.value for part in parts)])
    g = interleave(group, starts, first, index, value, constant, out)
    if len(np.unique(group)) < len(group):
        g = batch_ops.merge_groups(n, constant, out)
    return batch_ops.trimmed(out, n, int(out.start[-1]), g)


PIECE = 1 << 16  # entries, or bytes of text, to convert at a time
ROWS = 1 << 10  # rows of a dense block to convert at a time, at least


class TableConverter(ABC):
    """Convert the n rows of a table into features; `work` is int64[n + 1], entries, or bytes of text, in the rows
    before each one.
    """

    least = 1  # rows to convert at a time
    columns = 0  # of the dense block; known after `check`

    def __init__(self, work: Int64s) -> None:
        self.n, self.work = len(work) - 1, work

    @abstractmethod
    def check(self) -> None:
        """Raise DataError if the table holds a value that is not allowed; the message names its row."""

    @abstractmethod
    def parts(self, low: int, high: int) -> list[NamespaceFeatures]:
        """Return the features of the rows low..high-1."""

    def batch(self, low: int, high: int, constant: bool) -> Batch:
        """Return the rows low..high-1 as unlabelled examples, with the constant feature if `constant` is set."""
        batch = batch_of(high - low, self.parts(low, high), constant, low + 1)
        block = self.block(low, high)
        return batch if block is None else batch._replace(dense=block)

    def block(self, low: int, high: int) -> Float32s | None:
        """Return the dense block of the rows low..high-1, None if there is none."""
        return None

    def pieces(self) -> Iterator[tuple[int, int]]:
        """Yield the first and the last row (exclusive) of each piece to convert at a time, in order."""
        low = 0
        while low < self.n:
            high = int(np.searchsorted(self.work, self.work[low] + PIECE, side="right")) - 1
            high = min(max(high, low + self.least), low + PIECE, self.n)
            yield low, high
            low = high


class SparseTable(TableConverter):
    def __init__(self, rows: SparseRows, rule: Hashing) -> None:
        self._rule = rule
        self._start, self._column, self._value = self.rows = array_input.rows_of(rows)
        super().__init__(self._start)

    def first_columns(self) -> Int64s:
        """Return the columns with entries in the first rows, in rising order."""
        entries = slice(0, min(PIECE, int(self._start[-1])))
        return np.unique(self._column[entries][self._value[entries] != 0]).astype(np.int64)

    def check(self) -> None:
        for low, high in self.pieces():
            begin, end = self._start[low], self._start[high]
            at = array_input.first_wrong(self._value[begin:end])
            if at is not None:
                row = int(np.searchsorted(self._start, begin + at, side="right")) - 1
                place = f"row {row}, column {self._column[begin + at]}"
                raise array_input.wrong_value(place, self._value[begin + at])

    def parts(self, low: int, high: int) -> list[NamespaceFeatures]:
        begin, end = self._start[low], self._start[high]
        index = feature_names.column_indices(np.ascontiguousarray(self._column[begin:end], np.int64), self._rule)
        value = np.ascontiguousarray(self._value[begin:end], np.float32)
        return [NamespaceFeatures(UNNAMED_GROUP, self._start[low : high + 1] - begin, index, value)]


class DenseTable(TableConverter):
    """Convert the rows of a number array[n, d], or of n lists of d numbers; into a dense block of at most `widest`."""

    def __init__(self, given: Any, rule: Hashing, widest: int = 0) -> None:
        self.values = array_input.dense(given)
        n, columns = self.values.shape
        self._taken = 0 < columns <= widest
        self.least = ROWS if self._taken else 1
        self.columns = columns if self._taken else 0
        super().__init__(np.arange(n + 1) * max(1, columns))
        self._indices = feature_names.column_indices(np.arange(columns), rule)

    def first_columns(self) -> Int64s:
        """Return all columns, in rising order."""
        return np.arange(self.values.shape[1])

    def check(self) -> None:
        for low, high in self.pieces():
            values = array_input.filled(self.values[low:high])
            at = array_input.first_wrong(values.reshape(-1))
            if at is not None:
                row, column = divmod(at, values.shape[1])
                raise array_input.wrong_value(f"row {low + row}, column {column}", values[row, column])

    def parts(self, low: int, high: int) -> list[NamespaceFeatures]:
        return [] if self._taken else [_dense_part(array_input.filled(self.values[low:high]), self._indices)]

    def block(self, low: int, high: int) -> Float32s | None:
        return _rows(array_input.filled(self.values[low:high])) if self._taken else None


class TextTable(TableConverter):
    """Convert texts, whose words are features without a namespace."""

    def __init__(self, given: Sequence[str], rule: Hashing, read: texts.Texts) -> None:
        super().__init__(np.cumsum([0, *(len(text) + 1 for text in given)]))
        self._given, self._rule, self._read = given, rule, read

    def check(self) -> None:
        """Do nothing, because any text is allowed."""

    def parts(self, low: int, high: int) -> list[NamespaceFeatures]:
        return [_words(self._given[low:high], UNNAMED_GROUP, int(self._rule.unnamed), self._read)]


class FrameTable(TableConverter):
    """Convert the rows of a DataFrame.

    Columns of numbers are features without a namespace; other columns are namespaces, whose features are their words,
    or whole cells of categories. Missing cells are no features. Columns of the kind `dense` are the dense block if the
    learner takes one, and else namespaces.
    """

    least = 256  # because each column is converted by itself

    def __init__(self, frame: Frame, rule: Hashing, hasher: NameHasher, read: texts.Texts, widest: int = 0) -> None:
        self.frame, self._hasher, self._taken = frame, hasher, widest > 0
        as_written = texts.Texts(texts.TextOptions(text_split="spaces"), rule.hash_all, rule.mask)
        self._reads = [read if kind == TEXT else as_written for _, kind in frame.columns]
        names = [name for name, _ in frame.columns]
        self._numbers = [j for j, (_, kind) in enumerate(frame.columns) if kind == NUMBER]
        self._dense = [j for j, (_, kind) in enumerate(frame.columns) if kind == DENSE]
        self._texts = [j for j, (_, kind) in enumerate(frame.columns) if kind not in (NUMBER, DENSE)]
        super().__init__(np.arange(frame.n + 1) * max(1, len(self._numbers) + 16 * len(self._texts)))
        unnamed = int(rule.unnamed)
        self._indices = np.array([hasher.index(names[j], unnamed) for j in self._numbers], np.uint32)
        self._spaces = [(feature_names.encoded(names[j])[0], hasher.namespace(names[j])) for j in self._texts]

    def check(self) -> None:
        for low, high in self.pieces():
            for j in self._numbers:
                self.frame.numbers(j, low, high)
            for j in self._texts:
                self.frame.words(j, low, high)
            widths = [self.frame.block(j, low, high).shape[1] for j in self._dense]
            self.columns = sum(widths) if self._taken else 0

    def parts(self, low: int, high: int) -> list[NamespaceFeatures]:
        parts = []
        if self._numbers:
            values = np.array([self.frame.numbers(j, low, high) for j in self._numbers], np.float32).T
            parts.append(_dense_part(np.nan_to_num(values), self._indices))
        for j, (group, seed) in zip(self._texts, self._spaces, strict=True):
            parts.append(_words(self.frame.words(j, low, high), group, seed, self._reads[j]))
        for j in [] if self._taken else self._dense:
            name, values = self.frame.columns[j].name, self.frame.block(j, low, high)
            seed = self._hasher.namespace(name)
            indices = np.array([self._hasher.index(str(k), seed) for k in range(values.shape[1])], np.uint32)
            parts.append(_dense_part(values, indices)._replace(group=feature_names.encoded(name)[0]))
        return parts

    def block(self, low: int, high: int) -> Float32s | None:
        if not self._taken or not self._dense:
            return None
        return _rows(np.concatenate([self.frame.block(j, low, high) for j in self._dense], axis=1))


def table_of(
    given: Any, rule: Hashing, hasher: NameHasher, known: Schema, read: texts.Texts, widest: int = 0
) -> TableConverter | None:
    """Return what converts a sparse matrix, a dense array or a DataFrame; None if `given` is none of these.

    `read` says how texts are read. `widest` is the most columns of an array that the learner takes as they are, 0 if it
    takes no dense block.
    """
    if isinstance(given, Frame) or frames.is_frame(given):
        return FrameTable(given if isinstance(given, Frame) else Frame(given, known), rule, hasher, read, widest)
    if hasattr(given, "tocsr") or hasattr(given, "indptr"):
        return SparseTable(given, rule)
    if isinstance(given, (list, tuple)):
        rows = given and isinstance(given[0], (list, tuple, np.ndarray))
        return DenseTable(given, rule, widest) if rows else None
    if array_input.is_array(given):
        values = array_input.array("examples", given)
        if values.ndim == 1 and values.dtype.kind in "OUT":  # lists of numbers, as of Arrow, or texts, dictionaries
            return DenseTable(list(values), rule, widest) if len(values) and isinstance(values[0], np.ndarray) else None
        return DenseTable(values, rule, widest)
    return None


def sparse_arrays(given: Any) -> tuple[AnyArray, AnyArray, AnyArray]:
    """Return a matrix as compressed sparse rows: int64[n + 1], int64[z] and float32[z]."""
    activate(hide_scipy=False)
    rule = feature_names.new_hashing(0, False, 32)
    read = texts.Texts(texts.TextOptions(), rule.hash_all, rule.mask)
    table = table_of(given, rule, NameHasher(rule), Schema(), read)
    if not isinstance(table, (SparseTable, DenseTable)):
        raise UsageError(f"{type(given).__name__} {short_repr(given)} is not a sparse matrix or an array of numbers")
    table.check()
    if isinstance(table, SparseTable):
        start, column, value = table.rows
    else:
        values = array_input.filled(table.values)
        row, column = np.nonzero(values)
        start, value = np.searchsorted(row, np.arange(table.n + 1)), values[row, column]
    return start, column.astype(np.int64), value.astype(np.float32)


def _dense_part(values: AnyArray, indices: UInt32s) -> NamespaceFeatures:
    """Return the entries of a dense matrix as features without a namespace; `indices` are those of its columns."""
    n, columns = values.shape
    start = np.arange(n + 1) * columns
    return NamespaceFeatures(
        UNNAMED_GROUP, start, np.tile(indices, n), np.ascontiguousarray(values, np.float32).reshape(-1)
    )


def hashed(batch: Batch, rule: Hashing, constant: bool) -> Batch:
    """Return a batch that has only a dense block with features in its place, named by the numbers of the columns."""
    indices = feature_names.column_indices(np.arange(batch.columns), rule)
    features = batch_of(batch.n, [_dense_part(batch.dense, indices)], constant)
    return batch_ops.with_features(batch, features)._replace(dense=NO_DENSE)


def _rows(values: AnyArray) -> Float32s:
    """Return numbers, which were checked, as a dense block of its own memory."""
    return np.array(values, np.float32, order="C")


def _words(given: Sequence[str], group: int, seed: int, read: texts.Texts) -> NamespaceFeatures:
    start, index = texts.part_indices(given, seed, read)
    return NamespaceFeatures(group, start, index, np.ones(len(index), np.float32))
