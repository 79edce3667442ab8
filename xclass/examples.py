"""Batch, the one record everybody passes: parsed examples in compressed sparse rows.

Letters used everywhere: n examples in a batch, z features of a batch, g namespaces of a batch, s features of
one example, k classes, b table bits.
"""

from __future__ import annotations

import sys
from typing import NamedTuple

import numpy as np

CONSTANT = 11650396  # index of the constant feature, as in VW
CONSTANT_GROUP = 128  # its namespace group; groups from 128 on are reserved


class Batch(NamedTuple):
    """n examples. Features of example i are `index[start[i]:start[i + 1]]`, the constant last.

    Within an example the features are ordered by namespace group (the first byte of the name), the groups in
    the order of their first feature; group j of the batch spans features `group_start[j]:group_start[j + 1]`
    and example i owns groups `group_first[i]:group_first[i + 1]` (the constant is a group of its own).
    """

    start: np.ndarray  # int64[n + 1]
    index: np.ndarray  # uint32[z], hash of the feature, masked to b bits as vw-style hashing asks
    value: np.ndarray  # float32[z]
    label: np.ndarray  # float64[n]: class as written in the file, or the real label; NaN where there is none
    weight: np.ndarray  # float32[n], importance
    initial: np.ndarray  # float32[n], offset of the prediction (third word of a simple label), else 0
    group_first: np.ndarray  # int64[n + 1]
    group_name: np.ndarray  # uint8[g]
    group_start: np.ndarray  # int64[g + 1]
    tag_start: np.ndarray  # int64[n], where the tag begins in `text`
    tag_end: np.ndarray  # int64[n], one past its end; equal to tag_start where there is no tag
    line: np.ndarray  # int64[n], line number in the file, from 1
    text: np.ndarray  # uint8[...], the bytes the examples were read from

    @property
    def n(self) -> int:
        """Number of examples."""
        return len(self.label)


_DTYPES = {
    "start": np.int64,
    "index": np.uint32,
    "value": np.float32,
    "label": np.float64,
    "weight": np.float32,
    "initial": np.float32,
    "group_first": np.int64,
    "group_name": np.uint8,
    "group_start": np.int64,
    "tag_start": np.int64,
    "tag_end": np.int64,
    "line": np.int64,
}


def rows_of(batch: Batch, low: int, high: int) -> Batch:
    """Rows low .. high - 1 as a batch of their own."""
    if low == 0 and high == batch.n:
        return batch
    z0, z1 = batch.start[low], batch.start[high]
    g0, g1 = batch.group_first[low], batch.group_first[high]
    return Batch(
        start=batch.start[low : high + 1] - z0,
        index=batch.index[z0:z1],
        value=batch.value[z0:z1],
        label=batch.label[low:high],
        weight=batch.weight[low:high],
        initial=batch.initial[low:high],
        group_first=batch.group_first[low : high + 1] - g0,
        group_name=batch.group_name[g0:g1],
        group_start=batch.group_start[g0 : g1 + 1] - z0,
        tag_start=batch.tag_start[low:high],
        tag_end=batch.tag_end[low:high],
        line=batch.line[low:high],
        text=batch.text,
    )


class Pool:
    """Memory for batches, given out again once nobody holds an array made of it.

    Fresh memory costs more than parsing into it: the system clears every page of it when it is first touched.
    One thread takes; any thread may let go.
    """

    KEPT = 32  # pieces; further ones are left to the garbage collector

    def __init__(self):
        self._pieces: list[np.ndarray] = []
        probe = np.empty(0, np.uint8)
        self._pieces.append(probe)
        del probe
        self._unheld = self._holders(0)
        self._pieces.clear()

    def _holders(self, i: int) -> int:
        return sys.getrefcount(self._pieces[i])

    def take(self, size: int) -> np.ndarray:
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

    def batch(self, n: int, z: int, g: int, text: np.ndarray) -> Batch:
        """A batch with room for n examples, z features and g groups; only the first `start`s are set."""
        lengths = dict.fromkeys(_DTYPES, n)
        lengths.update(start=n + 1, index=z, value=z, group_first=n + 1, group_name=g, group_start=g + 1)
        sizes = {name: -(-length * np.dtype(_DTYPES[name]).itemsize // 64) * 64 for name, length in lengths.items()}
        memory = self.take(sum(sizes.values()))
        arrays = {}
        begin = 0
        for name, length in lengths.items():
            end = begin + length * np.dtype(_DTYPES[name]).itemsize
            arrays[name] = memory[begin:end].view(_DTYPES[name])
            begin += sizes[name]
        for name in ("start", "group_first", "group_start"):
            arrays[name][0] = 0
        return Batch(text=text, **arrays)
