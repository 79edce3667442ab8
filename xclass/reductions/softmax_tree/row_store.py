"""Store examples for a learner that reads them many times, as compact rows in memory-mapped temporary files.

    five files, unnamed   size int64[n]   index uint32[z]   value float32[z]   label int32[n]   weight float32[n]

The files are in the folder for temporary files (TMPDIR). Values are stored as they were read. At the end of the data
they are scaled, the distinct features are numbered 0..F-1 in the order of their hashes, and equal features of a row are
merged. The constant feature is left out, because the learner has intercepts.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from typing import BinaryIO, NamedTuple

import numpy as np

from ...array_types import AnyArray, Bools, Float32s, Float64s, Int32s, Int64s, UInt32s
from ...data.batch import CONSTANT_GROUP, Batch
from ...errors import DataError
from ...kernels.jit import jit
from ...system import leftovers

PIECE = 1 << 20  # features numbered at a time


class FeatureRows(NamedTuple):
    """Hold n rows over F features; those of row r are `feature[start[r]:start[r + 1]]`, ascending."""

    start: Int64s  # int64[n + 1]
    feature: UInt32s  # uint32[z], 0..F-1
    value: Float32s  # float32[z]
    label: Int64s  # int64[n], labels of the data
    weight: Float64s  # float64[n]


def values(batch: Batch, unit: bool) -> Float32s:
    """Return the values of a batch (float32[z]): 0 for the constant, and rows of length 1 if `unit`."""
    low, high = int(batch.start[0]), int(batch.start[-1])
    result: Float32s = batch.value[low:high].copy()
    groups = np.flatnonzero(batch.group_name == CONSTANT_GROUP)
    places = batch.group_start[groups] - low
    result[places[(places >= 0) & (places < high - low)]] = 0.0
    if unit:
        to_unit(batch.start - low, result)
    return result


def positions(names: AnyArray, wanted: AnyArray) -> tuple[Int64s, Bools]:
    """Return where each of the wanted numbers is among `names`, which ascend, and whether it is there."""
    place = np.minimum(np.searchsorted(names, wanted), max(len(names) - 1, 0))
    return place, names[place] == wanted if len(names) else np.zeros(len(wanted), bool)


def chosen(rows: FeatureRows, numbers: Int64s) -> FeatureRows:
    size = rows.start[numbers + 1] - rows.start[numbers]
    start = np.concatenate([[0], np.cumsum(size)])
    places = np.arange(start[-1]) + np.repeat(rows.start[numbers] - start[:-1], size)
    return FeatureRows(start, rows.feature[places], rows.value[places], rows.label[numbers], rows.weight[numbers])


class Store:
    """Collect `rows` rows in temporary files and return them all at the end.

    `part_read` returns the fraction of the data that was read, None if it is unknown. DataError is raised if the folder
    for temporary files has no space for them.
    """

    KINDS: tuple[type[np.generic], ...] = (np.int64, np.uint32, np.float32, np.int32, np.float32)

    def __init__(self) -> None:
        self.rows = 0
        self.part_read: Callable[[], float | None] = lambda: None
        self._size = 0  # bytes
        self._files: list[BinaryIO] = []
        try:
            for _ in self.KINDS:
                self._files.append(leftovers.open_spill_file())
        except OSError as error:
            self.close()
            raise self._space_error(error) from None

    def add(self, batch: Batch, chosen: Bools) -> None:
        if not chosen.any():
            return
        value = values(batch, False)
        row = np.repeat(np.arange(batch.n), np.diff(batch.start))
        kept = chosen[row] & (value != 0.0)
        index = batch.index[int(batch.start[0]) : int(batch.start[-1])][kept]
        size = np.bincount(row[kept], minlength=batch.n)[chosen]
        columns: tuple[AnyArray, ...] = (size, index, value[kept], batch.label[chosen], batch.weight[chosen])
        parts = [np.ascontiguousarray(part, kind) for kind, part in zip(self.KINDS, columns, strict=True)]
        self.rows += len(size)
        self._size += sum(part.nbytes for part in parts)
        try:
            for file, part in zip(self._files, parts, strict=True):
                file.write(part.data)
                file.flush()  # so that a failure to write is reported here and not lost at the end
        except OSError as error:
            raise self._space_error(error) from None

    def _space_error(self, error: OSError) -> DataError:
        folder, part_read = leftovers.temporary_folder(), self.part_read()
        failure = (
            f"{folder}: cannot keep the examples that are learned at the end of the data: {error.strerror or error}"
        )
        if error.errno not in leftovers.TOO_LARGE:
            return DataError(f"{failure}; set TMPDIR to another folder")
        needed = ""
        if self._size:
            needed = f"{self.rows} examples take {leftovers.megabytes(self._size)} MB, "
            # Reading is ahead of storing, so less than this part of the data is stored.
            needed += (
                f"all of the data at least {leftovers.megabytes(self._size / part_read)} MB, " if part_read else ""
            )
        space = leftovers.free_space(folder)
        return DataError(f"{failure}: {needed}{space}; set TMPDIR to a folder with more space")

    def finish(self, unit: bool, scale: Callable[[UInt32s, Float32s], None] | None) -> tuple[FeatureRows, UInt32s]:
        """Number the features, scale the values, and return all rows and the hashes of the features, ascending.

        `scale(hashes, value)` changes values in place before; with `unit`, rows are scaled to length 1. The arrays of
        the rows lie in the temporary files.
        """
        size, index, value, label, weight = (
            _mapped(file, kind) for file, kind in zip(self._files, self.KINDS, strict=True)
        )
        start = np.concatenate([[0], np.cumsum(size)])
        if scale is not None:
            scale(index, value)
        if unit:
            to_unit(start, value)
        pieces = [index[i : i + PIECE] for i in range(0, len(index), PIECE)]
        hashes = np.unique(np.concatenate([np.empty(0, np.uint32), *(np.unique(piece) for piece in pieces)]))
        for piece in pieces:
            piece[:] = np.searchsorted(hashes, piece)
        merged = np.zeros_like(start)
        used = merge(start, index, value, merged)
        return FeatureRows(
            merged, index[:used], value[:used], label.astype(np.int64), weight.astype(np.float64)
        ), hashes

    def close(self) -> None:
        """Close the files, which deletes them."""
        for file in self._files:
            with contextlib.suppress(OSError):  # closing may repeat an earlier failure to write
                file.close()


def _mapped(file: BinaryIO, kind: type[np.generic]) -> AnyArray:
    """Return the numbers in a file as a writable array."""
    file.flush()
    size = file.seek(0, 2) // np.dtype(kind).itemsize
    if not size:
        return np.empty(0, kind)
    return np.asarray(np.memmap(file, kind, "r+", shape=(size,))).view(np.ndarray)


# -- kernels


@jit
def to_unit(start: Int64s, value: Float32s) -> None:
    """Scale rows to length 1 in place; `start` is int64[n + 1], `value` float32[z]."""
    for r in range(start.shape[0] - 1):
        square = 0.0
        for i in range(start[r], start[r + 1]):
            square += np.float64(value[i]) * np.float64(value[i])
        if square > 0.0:
            scale = 1.0 / math.sqrt(square)
            for i in range(start[r], start[r + 1]):
                value[i] = np.float32(np.float64(value[i]) * scale)


@jit
def merge(start: Int64s, feature: UInt32s, value: Float32s | Float64s, merged: Int64s) -> int:
    """Sort each row by feature and add the values of equal features, in place; return the number of features left.

    `merged`, int64[n + 1], is written: the start of each merged row.
    """
    used: int = start[0]
    for r in range(start.shape[0] - 1):
        begin, end = start[r], start[r + 1]
        step = 1
        while 3 * step + 1 < end - begin:
            step = 3 * step + 1
        while step > 0:  # Shellsort
            for i in range(begin + step, end):
                f, x = feature[i], value[i]
                j = i
                while j - step >= begin and feature[j - step] > f:
                    feature[j] = feature[j - step]
                    value[j] = value[j - step]
                    j -= step
                feature[j] = f
                value[j] = x
            step //= 3
        merged[r] = used
        for i in range(begin, end):
            if used > merged[r] and feature[used - 1] == feature[i]:
                value[used - 1] += value[i]
            else:
                feature[used] = feature[i]
                value[used] = value[i]
                used += 1
    merged[start.shape[0] - 1] = used
    return used


@jit
def renumber_features(
    start: Int64s, feature: UInt32s, value: Float32s, chosen: Int64s, number: Int32s, out_start: Int64s,
    out_feature: Int32s, out_value: Float32s, name: Int32s,
) -> int:  # fmt: skip
    """Copy rows and renumber their features 0, 1, ...; return the number of distinct features.

    `chosen` is int64[m], numbers of the rows to copy; `number` is int32[F], scratch, -1 before and after. Written are
    the copy, int64[m + 1], int32[z] and float32[z], and `name`, int32[...], the original number of every feature.
    """
    count = 0
    at = 0
    for i in range(chosen.shape[0]):
        r = chosen[i]
        out_start[i] = at
        for j in range(start[r], start[r + 1]):
            f = feature[j]
            if number[f] < 0:
                number[f] = count
                name[count] = f
                count += 1
            out_feature[at] = number[f]
            out_value[at] = value[j]
            at += 1
    out_start[chosen.shape[0]] = at
    for i in range(count):
        number[name[i]] = -1
    return count
