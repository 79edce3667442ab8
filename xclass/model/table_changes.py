"""Find the rows in which two tables differ that are stored in models, and change tables by them.

Cost      O(rows), by kernels for tables that are stored without their empty rows.
Names     plane, row: as in `stored_arrays`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ..array_types import AnyArray, Bools, Int, UInt32s
from ..kernels.jit import jit

INDEX = "index"  # name of the array with the row numbers of a table that is stored without its empty rows


class Changes(NamedTuple):
    """Hold the rows of a table that differ from those of a base."""

    rows: AnyArray  # whole numbers[m], rising
    planes: dict[str, AnyArray]  # plane -> its items in these rows; a row that is empty now has zeros

    @property
    def nbytes(self) -> int:
        """Return the bytes of all arrays."""
        return self.rows.nbytes + sum(plane.nbytes for plane in self.planes.values())


def of_whole(new: Mapping[str, AnyArray], base: Mapping[str, AnyArray]) -> Changes:
    """Return the changes of planes that are stored with all rows, as many in both tables; bits are compared."""
    differs = np.zeros(len(next(iter(new.values()))), bool)
    for name, plane in new.items():
        differs |= bits(plane) != bits(base[name])
    rows = np.flatnonzero(differs)
    if len(differs) < 1 << 32:
        rows = rows.astype(np.uint32)
    return Changes(rows, {name: plane[rows] for name, plane in new.items()})


def of_sparse(new: Mapping[str, AnyArray], base: Mapping[str, AnyArray]) -> Changes:
    """Return the changes of a table that is stored without its empty rows; `INDEX` is one of the arrays of both."""
    rows, before = np.ascontiguousarray(new[INDEX]), np.ascontiguousarray(base[INDEX])
    changed, gone = np.zeros(len(rows), bool), np.zeros(len(before), bool)
    names = [name for name in new if name != INDEX]
    for name in names:
        mark_changed(rows, _as_words(new[name]), before, _as_words(base[name]), changed, gone)
    at, lost = np.flatnonzero(changed), before[gone]
    order = np.argsort(np.concatenate([rows[at], lost]), kind="stable")
    planes = {}
    for name in names:
        plane = new[name][at]
        planes[name] = np.concatenate([plane, np.zeros(len(lost), plane.dtype)])[order]
    return Changes(np.concatenate([rows[at], lost])[order], planes)


def changed_whole(base: Mapping[str, AnyArray], changes: Changes) -> dict[str, AnyArray]:
    """Return the planes of which `of_whole` has returned the changes."""
    planes = {name: base[name].copy() for name in changes.planes}
    for name, plane in planes.items():
        plane[changes.rows] = changes.planes[name]
    return planes


def changed_sparse(base: Mapping[str, AnyArray], changes: Changes) -> dict[str, AnyArray]:
    """Return the arrays of which `of_sparse` has returned the changes."""
    used = np.zeros(len(changes.rows), bool)
    for plane in changes.planes.values():
        used |= bits(plane) != 0
    left = np.ones(len(base[INDEX]), bool)
    unmark(np.ascontiguousarray(base[INDEX]), np.array(changes.rows), left)  # a copy may be written, as kernels expect
    index = np.concatenate([base[INDEX][left], changes.rows[used]])
    order = np.argsort(index, kind="stable")
    planes = {name: np.concatenate([base[name][left], plane[used]])[order] for name, plane in changes.planes.items()}
    return {INDEX: index[order], **planes}


def joined(changes: Sequence[Changes], plane: str) -> AnyArray:
    """Return the items of a plane of several changes, one after the other."""
    return np.concatenate([one.planes[plane] for one in changes])


def bits(array: AnyArray) -> AnyArray:
    """Return an array of one dimension as whole numbers of the same size."""
    return np.ascontiguousarray(array).view(f"u{array.itemsize}")


def _as_words(plane: AnyArray) -> UInt32s:
    """Return the bits of a plane as uint32[items, words of an item]."""
    if plane.itemsize < 4:
        plane = bits(plane).astype(np.uint32)
    return np.ascontiguousarray(plane).view(np.uint32).reshape(len(plane), plane.itemsize // 4)


# -- kernels


@jit
def mark_changed(rows: UInt32s, plane: UInt32s, before: UInt32s, old: UInt32s, changed: Bools, gone: Bools) -> None:
    """Mark the rows whose items in a plane differ from those of a base, and the rows that only the base has.

    Parameters
    ----------
    rows, before : uint32[n] and uint32[m], rising row numbers of the table and of the base
    plane, old : uint32[n, words] and uint32[m, words], the items of these rows
    changed, gone : bool[n] and bool[m], written; marks that are already set stay
    """
    i: Int = 0
    j: Int = 0
    while i < len(rows) or j < len(before):
        if j == len(before) or (i < len(rows) and rows[i] < before[j]):
            changed[i] = True
            i += 1
        elif i == len(rows) or before[j] < rows[i]:
            gone[j] = True
            j += 1
        else:
            for k in range(plane.shape[1]):
                changed[i] |= plane[i, k] != old[j, k]
            i += 1
            j += 1


@jit
def unmark(rows: UInt32s, removed: UInt32s, left: Bools) -> None:
    """Clear the marks (bool[n]) of those rows (uint32[n], rising) that are removed (uint32[m], rising)."""
    j: Int = 0
    for i in range(len(rows)):
        while j < len(removed) and removed[j] < rows[i]:
            j += 1
        if j < len(removed) and removed[j] == rows[i]:
            left[i] = False
