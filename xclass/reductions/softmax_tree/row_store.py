"""Examples kept for a learner that goes through them many times: compact rows in files that are mapped into memory.

    five files, unnamed   size int64[n]   index uint32[z]   value float32[z]   label int32[n]   weight float32[n]

The folder is that of temporary files (TMPDIR). At the end the different features are numbered 0..F-1 in the order of
their hashes, features that stand twice in a row are one, and values, kept as they were read, are scaled. The constant
is left out: who learns has intercepts.
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

PIECE = 1 << 20  # features looked at at a time


class Rows(NamedTuple):
    """n rows over F features: those of row r are `feature[start[r]:start[r + 1]]`, rising."""

    start: Int64s  # int64[n + 1]
    feature: UInt32s  # uint32[z], 0..F-1
    value: Float32s  # float32[z]
    label: Int64s  # int64[n], as written in the file
    weight: Float64s  # float64[n]


def values(batch: Batch, unit: bool) -> Float32s:
    """The values of a batch's features, 0 for the constant; scaled to rows of length 1 where `unit`: float32[z]."""
    low, high = int(batch.start[0]), int(batch.start[-1])
    found: Float32s = batch.value[low:high].copy()
    groups = np.flatnonzero(batch.group_name == CONSTANT_GROUP)
    places = batch.group_start[groups] - low
    found[places[(places >= 0) & (places < high - low)]] = 0.0
    if unit:
        size = np.diff(batch.start)
        row = np.repeat(np.arange(batch.n), size)
        square = np.bincount(row, found.astype(np.float64) ** 2, minlength=batch.n)
        scale = np.where(square > 0, 1.0 / np.sqrt(np.where(square > 0, square, 1.0)), 0.0)
        found = (found * scale[row]).astype(np.float32)
    return found


def chosen(rows: Rows, which: Int64s) -> Rows:
    """Some rows only: int64[...], their numbers."""
    size = rows.start[which + 1] - rows.start[which]
    start = np.concatenate([[0], np.cumsum(size)])
    places = np.arange(start[-1]) + np.repeat(rows.start[which] - start[:-1], size)
    return Rows(start, rows.feature[places], rows.value[places], rows.label[which], rows.weight[which])


class Store:
    """Takes rows in, gives them back as one.

    Attributes
    ----------
    rows : how many it holds
    part : returns how much of the data was read, 0 to 1, or None where that is not known

    Raises
    ------
    DataError
        where the folder of temporary files has no room for them.
    """

    KINDS: tuple[type[np.generic], ...] = (np.int64, np.uint32, np.float32, np.int32, np.float32)

    def __init__(self) -> None:
        self.rows = 0
        self.part: Callable[[], float | None] = lambda: None
        self._size = 0  # bytes
        self._files: list[BinaryIO] = []
        try:
            for _ in self.KINDS:
                self._files.append(leftovers.spill())
        except OSError as error:
            self.close()
            raise self._no_room(error) from None

    def add(self, batch: Batch, chosen: Bools) -> None:
        """Keep the rows of a batch that are `chosen` (bool[n])."""
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
                file.flush()  # so that what is not written yet is not lost without a word at the end
        except OSError as error:
            raise self._no_room(error) from None

    def _no_room(self, error: OSError) -> DataError:
        """Say what the folder of temporary files lacks."""
        folder, part = leftovers.temporary_folder(), self.part()
        needed = ""
        if self._size:
            needed = f"{self.rows} examples take {leftovers.megabytes(self._size)} MB, "
            # reading is ahead of what arrives here, so that less of the data has arrived than that part
            needed += f"all of the data at least {leftovers.megabytes(self._size / part)} MB, " if part else ""
        return DataError(
            f"{folder}: cannot keep the examples that are learned at the end of the data: "
            f"{error.strerror or error}: {needed}{leftovers.free_space(folder)}; set TMPDIR to a folder with room"
        )

    def finish(self, unit: bool, scale: Callable[[UInt32s, Float32s], None] | None) -> tuple[Rows, UInt32s]:
        """All rows, and the hash of every feature: uint32[F], rising.

        Parameters
        ----------
        unit : scale rows to length 1
        scale : before that, `scale(hashes, value)` changes values in place
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
        return Rows(merged, index[:used], value[:used], label.astype(np.int64), weight.astype(np.float64)), hashes

    def close(self) -> None:
        """Give the files back."""
        for file in self._files:
            with contextlib.suppress(OSError):  # what could not be written before
                file.close()


def _mapped(file: BinaryIO, kind: type[np.generic]) -> AnyArray:
    """The numbers in a file, as an array that may be written to."""
    file.flush()
    size = file.seek(0, 2) // np.dtype(kind).itemsize
    if not size:
        return np.empty(0, kind)
    return np.asarray(np.memmap(file, kind, "r+", shape=(size,))).view(np.ndarray)


# -- kernels


@jit
def to_unit(start: Int64s, value: Float32s) -> None:
    """Scale rows to length 1, in place."""
    for r in range(start.shape[0] - 1):
        square = 0.0
        for i in range(start[r], start[r + 1]):
            square += np.float64(value[i]) * np.float64(value[i])
        if square > 0.0:
            scale = 1.0 / math.sqrt(square)
            for i in range(start[r], start[r + 1]):
                value[i] = np.float32(np.float64(value[i]) * scale)


@jit
def merge(start: Int64s, feature: UInt32s, value: Float32s, merged: Int64s) -> int:
    """Sort each row by feature and make equal ones one, in place; return the end of `merged`, the new `start`."""
    used: int = start[0]
    for r in range(start.shape[0] - 1):
        begin, end = start[r], start[r + 1]
        step = 1
        while 3 * step + 1 < end - begin:
            step = 3 * step + 1
        while step > 0:  # Shell's sort
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
def local(
    start: Int64s, feature: UInt32s, value: Float32s, chosen: Int64s, number: Int32s, out_start: Int64s,
    out_feature: Int32s, out_value: Float32s, name: Int32s,
) -> int:  # fmt: skip
    """Copy rows, with numbers of their own for the features they have; return how many these are.

    Parameters
    ----------
    chosen : int64[m], rows.
    number : int32[F], -1 everywhere before and after.
    out_start, out_feature, out_value : int64[m + 1], int32[z], float32[z], the copy.
    name : int32[at least as many], the feature of every number.
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
