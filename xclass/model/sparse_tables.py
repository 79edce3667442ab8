"""Restore tables for learners that only predict, without their empty rows if few rows are in use."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import DTypeLike

from ..array_types import AnyArray, UInt32s
from ..kernels import used_items
from ..system import memory
from . import stored_arrays
from .stored_arrays import Stored


def rows_in_use(
    name: str, arrays: Mapping[str, Stored], slots: int, planes: Mapping[str, DTypeLike]
) -> tuple[UInt32s, dict[str, AnyArray]] | None:
    """Return the rows of a table that are in use if they are few (see `used_items.are_few`), else None.

    Returns
    -------
    index : uint32[n], rising row numbers
    rows : for each plane its numbers in these rows, in memory of their own
    """
    if f"{name}.index" not in arrays or not used_items.are_few(np.size(arrays[f"{name}.index"]), slots):
        return None
    stored_index = stored_arrays.take_index(name, arrays, slots)
    index, rows = stored_index.copy(), {}
    stored_arrays.release(stored_index)
    for key, dtype in planes.items():
        stored_rows = stored_arrays.take(f"{name}.{key}", arrays, dtype, index.shape)
        rows[key] = stored_rows.copy()
        stored_arrays.release(stored_rows)
    return index, rows


def check_memory(name: str, needed: int) -> None:
    """Raise ModelError if a table, one of whose arrays has this name, needs more bytes than are free."""
    free = memory.available()
    if free is not None and needed > free:
        raise stored_arrays.unfit(
            name, f"the table takes {needed / 2**20:,.0f} MB, but only {free / 2**20:,.0f} MB of memory are free"
        )
