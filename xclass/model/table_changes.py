"""Find the rows in which two tables differ.

Names     plane, row: as in `stored_arrays`.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ..array_types import AnyArray

PIECE = 1 << 16  # rows that are compared at a time


class Changes(NamedTuple):
    """Hold the rows of a table that differ from those of a base."""

    rows: AnyArray  # whole numbers[m], rising
    planes: dict[str, AnyArray]  # plane -> its items in these rows; a row that is empty now has zeros


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


def joined(changes: Sequence[Changes], plane: str) -> AnyArray:
    """Return the items of a plane of several changes, one after the other."""
    return np.concatenate([one.planes[plane] for one in changes])


def bits(array: AnyArray) -> AnyArray:
    """Return an array of one dimension as whole numbers of the same size."""
    return np.ascontiguousarray(array).view(f"u{array.itemsize}")
