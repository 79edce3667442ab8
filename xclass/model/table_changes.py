"""Find the rows in which two tables differ that are stored in models, and change tables by them.

Names     plane, row: as in `stored_arrays`.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ..array_types import AnyArray, Bools, Int64s

PIECE = 1 << 16  # rows that are compared at a time
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
    size = len(next(iter(new.values())))
    kind = np.int64 if size > 1 << 32 else np.uint32
    parts: list[AnyArray] = [np.empty(0, kind)]
    for i in range(0, size, PIECE):
        piece = slice(i, i + PIECE)
        differs = (bits(plane[piece]) != bits(base[name][piece]) for name, plane in new.items())
        parts.append((np.flatnonzero(functools.reduce(np.bitwise_or, differs)) + i).astype(kind))
    rows = np.concatenate(parts)
    return Changes(rows, {name: plane[rows] for name, plane in new.items()})


def of_sparse(new: Mapping[str, AnyArray], base: Mapping[str, AnyArray]) -> Changes:
    """Return the changes of a table that is stored without its empty rows; `INDEX` is one of the arrays of both."""
    rows, before = new[INDEX], base[INDEX]
    place, stays = _places(before, rows)
    place = place[stays]
    changed = np.ones(len(rows), bool)
    changed[place] = False
    planes = {name: plane for name, plane in new.items() if name != INDEX}
    for name, plane in planes.items():
        changed[place] |= bits(plane)[place] != bits(base[name])[stays]
    found, lost = rows[changed], before[~stays]
    place = np.searchsorted(found, lost)
    return Changes(
        np.insert(found, place, lost), {name: np.insert(plane[changed], place, 0) for name, plane in planes.items()}
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
    place, stays = _places(changes.rows, base[INDEX])
    left = np.ones(len(base[INDEX]), bool)
    left[place[stays]] = False
    place = np.searchsorted(base[INDEX][left], changes.rows[used])
    planes = {INDEX: changes.rows, **changes.planes}
    return {name: np.insert(base[name][left], place, plane[used]) for name, plane in planes.items()}


def _places(numbers: AnyArray, others: AnyArray) -> tuple[Int64s, Bools]:
    """Return where `numbers` are, or would be, among `others`, and whether they are there; both rise."""
    place = np.searchsorted(others, numbers)
    return place, others.take(place, mode="clip") == numbers if len(others) else np.zeros(len(numbers), bool)


def joined(changes: Sequence[Changes], plane: str) -> AnyArray:
    """Return the items of a plane of several changes, one after the other."""
    return np.concatenate([one.planes[plane] for one in changes])


def bits(array: AnyArray) -> AnyArray:
    """Return an array of one dimension as whole numbers of the same size."""
    return np.ascontiguousarray(array).view(f"u{array.itemsize}")
