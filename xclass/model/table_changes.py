"""Find the rows in which two tables differ that are stored in models, and change tables by them.

Names     plane, row: as in `stored_arrays`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ..array_types import AnyArray

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
    rows, before = new[INDEX], base[INDEX]
    _, at, at_before = np.intersect1d(rows, before, assume_unique=True, return_indices=True)
    planes = {name: plane for name, plane in new.items() if name != INDEX}
    changed, lost = np.ones(len(rows), bool), np.delete(before, at_before)
    changed[at] = False
    for name, plane in planes.items():
        changed[at] |= bits(plane)[at] != bits(base[name])[at_before]
    found = np.concatenate([rows[changed], lost])
    order = np.argsort(found, kind="stable")
    return Changes(
        found[order],
        {
            name: np.concatenate([plane[changed], np.zeros(len(lost), plane.dtype)])[order]
            for name, plane in planes.items()
        },
    )


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
    left = ~np.isin(base[INDEX], changes.rows, assume_unique=True)
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
