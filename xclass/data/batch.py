"""Define Batch, the record of parsed examples in compressed sparse rows, and a pool of memory for batches.

Names     n examples in a batch, z features of a batch, g namespace groups of a batch, s features of one example,
          b bits of the weight table.
"""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import numpy as np

from ..array_types import Float32s, Float64s, Int64s, UInt8s, UInt32s

CONSTANT = 11650396  # index of the constant feature, as in VW
CROSSED_GROUP = 255  # group of the features that interactions generate; no UTF-8 name begins with it
PATH_GROUP = 0x88  # group of the features that encode an example's path in a tree, which the tree generates
UNNAMED_GROUP = ord(" ")  # group of the features without a namespace
CONSTANT_GROUP = 128  # group of the constant feature; groups from 128 on are reserved

HIGHEST_LABEL = 2**31  # largest label of a class
NO_TEXT = np.zeros(0, np.uint8)
NO_LISTS, NO_LABELS = np.zeros(0, np.int64), np.zeros(0)  # of a batch whose examples have one label each
NO_DENSE = np.zeros((0, 0), np.float32)
SMALL = 1 << 11  # examples, features and groups of a batch whose memory is not worth recycling


class Batch(NamedTuple):
    """Hold n examples. Features of example i are `index[start[i]:start[i + 1]]`, the constant last.

    Within an example the features are ordered by namespace group (the first byte of the name), the groups in
    the order of their first feature; group j of the batch spans features `group_start[j]:group_start[j + 1]`
    and example i has groups `group_first[i]:group_first[i + 1]` (the constant is a group of its own).

    The examples have one label each, `label`, or lists of labels: `label` is then the number of labels of each example,
    and example i has `labels[label_start[i]:label_start[i + 1]]`, ascending and distinct.

    Examples
    --------
    >>> import pathlib, xclass
    >>> _ = pathlib.Path("weather.vw").write_text("1 | warm sunny\\n2 0.5 | cold\\n")
    >>> (batch,) = xclass.read_vw("weather.vw")
    >>> batch.n, batch.label.tolist(), batch.weight.tolist()
    (2, [1.0, 2.0], [1.0, 0.5])
    >>> batch.start.tolist()  # two words and the constant, then a word and the constant
    [0, 3, 5]
    """

    start: Int64s  # int64[n + 1], where the features of each example begin
    index: UInt32s  # type: ignore[assignment]  # hides tuple.index; uint32[z], hash of the feature, cut to b bits; the constant and crosses are not cut, and tables mask them
    value: Float32s  # float32[z], value of the feature
    label: Float64s  # float64[n], class as written in the file, the real label, or the number of labels; NaN if unknown
    weight: Float32s  # float32[n], importance
    initial: Float32s  # float32[n], offset of the prediction (third word of a simple label), or 0
    group_first: Int64s  # int64[n + 1], first group of each example
    group_name: UInt8s  # uint8[g], first byte of the name
    group_start: Int64s  # int64[g + 1], first feature of each group
    tag_start: Int64s  # int64[n], position of the tag in `text`
    tag_end: Int64s  # int64[n], end of the tag; equal to tag_start if there is no tag
    line: Int64s  # int64[n], line number in the file, from 1
    text: UInt8s  # uint8[...], the bytes that the examples were read from
    label_start: Int64s = NO_LISTS  # int64[n + 1], where the labels of each example begin; int64[0] without lists
    labels: Float64s = NO_LABELS  # float64[m], classes as written in the file
    dense: Float32s = NO_DENSE  # float32[n, d], contiguous rows of numbers that are not hashed; float32[0, 0] without

    @property
    def has_lists(self) -> bool:
        """Return whether the examples have lists of labels instead of one label each."""
        return len(self.label_start) > 0

    @property
    def columns(self) -> int:
        """Return the number of columns of the dense block, 0 without one."""
        return int(self.dense.shape[1])

    @property
    def n(self) -> int:
        """Return the number of examples."""
        return len(self.label)

    @property
    def most_features(self) -> int:
        """Return the number of features of the longest example, 0 without examples."""
        if len(self.label) == 1:
            return int(self.start[1] - self.start[0])
        return int(np.diff(self.start).max(initial=0))


class Features(NamedTuple):
    """Hold the fields of a batch for a kernel that needs no others; numba takes long to compile it for all of them."""

    start: Int64s
    index: UInt32s  # type: ignore[assignment]  # hides tuple.index
    value: Float32s
    group_first: Int64s
    group_name: UInt8s
    group_start: Int64s


def features_of(batch: Batch) -> Features:
    """Return the features of a batch, and their groups."""
    return Features(batch.start, batch.index, batch.value, batch.group_first, batch.group_name, batch.group_start)


# of the fields of Batch: types, and the length of each but text and block as a position in the result of `sizes`
DTYPES = tuple(
    map(np.dtype, ["i8", "u4", "f4", "f8", "f4", "f4", "i8", "u1", "i8", "i8", "i8", "i8", "u1", "i8", "f8", "f4"])
)
LENGTHS = (1, 2, 2, 0, 0, 0, 1, 3, 4, 0, 0, 0, None, 5, 6, None)


def sizes(n: int, z: int, g: int, labels: int | None) -> tuple[int, ...]:
    """Return the lengths of the arrays of a batch; `labels` is the number of labels in lists, None without lists."""
    return n, n + 1, z, g, g + 1, 0 if labels is None else n + 1, labels or 0


def _arrays(n: int, z: int, g: int, labels: int | None) -> list[tuple[int, np.dtype[Any]]]:
    """Return length and type of each array of a batch but the text and the dense block."""
    lengths = sizes(n, z, g, labels)
    return [(lengths[k], dtype) for k, dtype in zip(LENGTHS, DTYPES, strict=True) if k is not None]


def _batch(arrays: list[Any], text: UInt8s, dense: Float32s) -> Batch:
    """Return a batch of the arrays of `_arrays`, a text and a dense block."""
    return Batch._make([*arrays[:-2], text, *arrays[-2:], dense])


def empty(n: int, z: int, g: int, text: UInt8s = NO_TEXT, labels: int | None = None, d: int = 0) -> Batch:
    """Return a batch with space for n examples, z features, g groups and `labels` in lists, filled with zeros.

    Without `labels`, the examples have one label each. The dense block has d columns.
    """
    dense = np.zeros((n, d), np.float32) if d else NO_DENSE
    return _batch([np.zeros(length, dtype) for length, dtype in _arrays(n, z, g, labels)], text, dense)


class Pool:
    """Recycle memory for all but small batches: a piece is reused once no array refers to it.

    Allocating new memory takes longer than parsing into it, because the system clears each page on first access.
    Only one thread may call `take`; arrays may be released in any thread.
    """

    MAX_PIECES = 32  # maximum number of pieces; others are left to the garbage collector

    def __init__(self) -> None:
        self._pieces: list[UInt8s] = [np.empty(0, np.uint8)]
        self._free_count = self._reference_count(0)
        self._pieces.clear()

    def _reference_count(self, i: int) -> int:
        return sys.getrefcount(self._pieces[i])

    def take(self, size: int) -> UInt8s:
        """Return uint8[...] of at least `size` bytes with undefined contents."""
        pieces = self._pieces
        for i in range(len(pieces)):
            if len(pieces[i]) >= size and self._reference_count(i) == self._free_count:
                return pieces[i]
        piece = np.empty(1 << max(12, (size - 1).bit_length()), np.uint8)
        if len(pieces) >= self.MAX_PIECES:
            pieces.pop(min(range(len(pieces)), key=lambda i: len(pieces[i])))
        pieces.append(piece)
        return piece

    def batch(self, n: int, z: int, g: int, text: UInt8s, labels: int | None = None, d: int = 0) -> Batch:
        """Return a batch with the space that `empty` gives.

        Only the first elements of `start`, `group_first`, `group_start` and `label_start` are set.
        """
        if n + z + g + n * d <= SMALL:
            return empty(n, z, g, text, labels, d)
        fields = _arrays(n, z, g, labels)
        offsets = [0]
        for length, dtype in fields:
            offsets.append(offsets[-1] + ((length * dtype.itemsize + 63) & ~63))
        memory = self.take(offsets[-1] + 4 * n * d)
        arrays = [np.ndarray(*field, memory, offset) for field, offset in zip(fields, offsets, strict=False)]
        batch = _batch(arrays, text, np.ndarray((n, d), np.float32, memory, offsets[-1]) if d else NO_DENSE)
        batch.start[0] = batch.group_first[0] = batch.group_start[0] = 0
        batch.label_start[:1] = 0
        return batch
