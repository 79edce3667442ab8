"""Batch, the one record everybody passes: parsed examples in compressed sparse rows.

Letters used everywhere: n examples in a batch, z features of a batch, g namespaces of a batch, s features of
one example, k classes, b table bits.
"""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import numpy as np

from ..array_types import Float32s, Float64s, Int64s, UInt8s, UInt32s

CONSTANT = 11650396  # index of the constant feature, as in VW
CROSSED_GROUP = 255  # group of the generated features in a batch; no UTF-8 name begins with it
CONSTANT_GROUP = 128  # its namespace group; groups from 128 on are reserved

HIGHEST_LABEL = 2**31  # of a class


class Batch(NamedTuple):
    """n examples. Features of example i are `index[start[i]:start[i + 1]]`, the constant last.

    Within an example the features are ordered by namespace group (the first byte of the name), the groups in
    the order of their first feature; group j of the batch spans features `group_start[j]:group_start[j + 1]`
    and example i owns groups `group_first[i]:group_first[i + 1]` (the constant is a group of its own).
    """

    start: Int64s  # int64[n + 1]
    index: UInt32s  # type: ignore[assignment]  # hides tuple.index; uint32[z], hash of the feature, masked to b bits as vw-style hashing asks
    value: Float32s  # float32[z]
    label: Float64s  # float64[n]: class as written in the file, or the real label; NaN where there is none
    weight: Float32s  # float32[n], importance
    initial: Float32s  # float32[n], offset of the prediction (third word of a simple label), else 0
    group_first: Int64s  # int64[n + 1]
    group_name: UInt8s  # uint8[g]
    group_start: Int64s  # int64[g + 1]
    tag_start: Int64s  # int64[n], where the tag begins in `text`
    tag_end: Int64s  # int64[n], one past its end; equal to tag_start where there is no tag
    line: Int64s  # int64[n], line number in the file, from 1
    text: UInt8s  # uint8[...], the bytes the examples were read from

    @property
    def n(self) -> int:
        """Number of examples."""
        return len(self.label)


_FIELDS: tuple[tuple[np.dtype[Any], int, int], ...] = (
    # dtype of a field of Batch, bytes of a number, how many: of [n, n + 1, z, g, g + 1]
    (np.dtype(np.int64), 8, 1),
    (np.dtype(np.uint32), 4, 2),
    (np.dtype(np.float32), 4, 2),
    (np.dtype(np.float64), 8, 0),
    (np.dtype(np.float32), 4, 0),
    (np.dtype(np.float32), 4, 0),
    (np.dtype(np.int64), 8, 1),
    (np.dtype(np.uint8), 1, 3),
    (np.dtype(np.int64), 8, 4),
    (np.dtype(np.int64), 8, 0),
    (np.dtype(np.int64), 8, 0),
    (np.dtype(np.int64), 8, 0),
)


class Pool:
    """Memory for batches, given out again once nobody holds an array made of it.

    Fresh memory costs more than parsing into it: the system clears every page of it when it is first touched.
    One thread takes; any thread may let go.
    """

    KEPT = 32  # pieces; further ones are left to the garbage collector

    def __init__(self) -> None:
        self._pieces: list[UInt8s] = []
        probe = np.empty(0, np.uint8)
        self._pieces.append(probe)
        del probe
        self._unheld = self._holders(0)
        self._pieces.clear()

    def _holders(self, i: int) -> int:
        return sys.getrefcount(self._pieces[i])

    def take(self, size: int) -> UInt8s:
        """Return at least `size` bytes as uint8[...], whatever they hold."""
        pieces = self._pieces
        for i in range(len(pieces)):
            if len(pieces[i]) >= size and self._holders(i) == self._unheld:
                return pieces[i]
        piece = np.empty(1 << max(12, (size - 1).bit_length()), np.uint8)
        if len(pieces) >= self.KEPT:
            pieces.pop(min(range(len(pieces)), key=lambda i: len(pieces[i])))
        pieces.append(piece)
        return piece

    def batch(self, n: int, z: int, g: int, text: UInt8s) -> Batch:
        """A batch with room for n examples, z features and g groups; only the first `start`s are set."""
        lengths = (n, n + 1, z, g, g + 1)
        places = []
        end = 0
        for _, size, which in _FIELDS:
            places.append(end)
            end += (lengths[which] * size + 63) & ~63
        memory = self.take(end)
        arrays = [
            np.ndarray(lengths[which], dtype, memory, place)
            for (dtype, _, which), place in zip(_FIELDS, places, strict=True)
        ]
        out = Batch._make([*arrays, text])
        out.start[0] = out.group_first[0] = out.group_start[0] = 0
        return out
