"""Encode what learning has changed in the arrays of a model, so that only touched slots travel from worker to driver.

Idea      Tables are stored with or without their empty rows (`stored_arrays.pack_table`). If both models store a table
          in the same way, the rows that differ are listed with their numbers; all planes of a table share the list.
          Other arrays travel whole unless they are equal. Bits are compared, so that the decoded model has the bytes of
          the encoded one.
Cost      O(size of the model), by NumPy.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ..array_types import AnyArray
from ..model.stored_arrays import Stored

INDEX = ".index"  # end of the name of the array that holds the row numbers of a table


class Rows(NamedTuple):
    """Hold the rows of a table that have changed."""

    removed: AnyArray  # numbers of the rows that only the base has, of tables without their empty rows
    changed: AnyArray  # numbers of the rows that are new or have changed, rising
    planes: dict[str, AnyArray]  # array of the model -> its items in these rows


class Delta(NamedTuple):
    """Hold the arrays of a model as changes of those of the base."""

    whole: dict[str, AnyArray]
    same: tuple[str, ...]  # arrays that have not changed
    tables: dict[str, Rows]  # table -> its changed rows

    @property
    def nbytes(self) -> int:
        """Return the bytes of all arrays."""
        rows = [array for one in self.tables.values() for array in (one.removed, one.changed, *one.planes.values())]
        return sum(array.nbytes for array in (*self.whole.values(), *rows))


def encode(arrays: Mapping[str, Stored], base: Mapping[str, AnyArray]) -> Delta:
    """Return the changes between the arrays of a base and those of a model that has continued from it."""
    new = {name: np.asarray(array) for name, array in arrays.items()}
    delta = Delta({}, (), {})
    same = []
    tables: dict[str, list[str]] = {}
    for name, array in new.items():
        if array.ndim == 1 and name in base and base[name].dtype == array.dtype:
            table = name.rpartition(".")[0]
            lengths = [len(one[table + INDEX]) if table + INDEX in one else -1 for one in (new, base)]
            if lengths == [len(array), len(base[name])]:
                tables.setdefault(table, []).append(name)
                continue
            if lengths == [-1, -1] and len(array) == len(base[name]):
                # arrays of a table that is stored whole may have different lengths, and are tables of their own then
                tables.setdefault(f"{table}:{len(array)}", []).append(name)
                continue
        if name in base and _equal(array, base[name]):
            same.append(name)
        else:
            delta.whole[name] = array
    for table, names in tables.items():
        rows = _sparse_rows(table, names, new, base) if table + INDEX in new else _dense_rows(names, new, base)
        if len(rows.changed) or len(rows.removed):
            delta.tables[table] = rows
        else:
            same += names
    return delta._replace(same=tuple(same))


def decode(delta: Delta, base: Mapping[str, AnyArray]) -> dict[str, AnyArray]:
    """Return the arrays that were encoded; `base` are those that were given to `encode`."""
    arrays: dict[str, AnyArray] = {**delta.whole, **{name: base[name] for name in delta.same}}
    for table, rows in delta.tables.items():
        if table + INDEX in rows.planes:
            _add_sparse(arrays, table, rows, base)
            continue
        for name, values in rows.planes.items():
            arrays[name] = base[name].copy()
            arrays[name][rows.changed] = values
    return arrays


def _equal(a: AnyArray, b: AnyArray) -> bool:
    """Return whether two arrays have the same type, shape and bits."""
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def _bits(array: AnyArray) -> AnyArray:
    """Return an array of one dimension as whole numbers of the same size."""
    return np.ascontiguousarray(array).view(f"u{array.itemsize}")


def _dense_rows(names: list[str], new: Mapping[str, AnyArray], base: Mapping[str, AnyArray]) -> Rows:
    """Return the rows in which arrays of one length differ from those of the base."""
    differs = np.zeros(len(new[names[0]]), bool)
    for name in names:
        differs |= _bits(new[name]) != _bits(base[name])
    index = np.flatnonzero(differs)
    if len(differs) < 1 << 32:
        index = index.astype(np.uint32)
    return Rows(np.empty(0, np.uint32), index, {name: new[name][index] for name in names})


def _sparse_rows(table: str, names: list[str], new: Mapping[str, AnyArray], base: Mapping[str, AnyArray]) -> Rows:
    """Return the changed rows of a table that is stored without its empty rows."""
    index, before = new[table + INDEX], base[table + INDEX]
    at = np.searchsorted(before, index)
    known = at < len(before)
    known[known] = before[at[known]] == index[known]
    changed = ~known
    for name in names:
        changed[known] |= _bits(new[name])[known] != _bits(base[name])[at[known]]
    kept = np.zeros(len(before), bool)
    kept[at[known]] = True
    return Rows(before[~kept], index[changed], {name: new[name][changed] for name in names})


def _add_sparse(arrays: dict[str, Any], table: str, rows: Rows, base: Mapping[str, AnyArray]) -> None:
    """Add the decoded arrays of a table that is stored without its empty rows."""
    before = base[table + INDEX]
    left = ~np.isin(before, np.concatenate([rows.removed, rows.changed]), assume_unique=True)
    order = np.argsort(np.concatenate([before[left], rows.changed]), kind="stable")
    for name, values in rows.planes.items():
        arrays[name] = np.concatenate([base[name][left], values])[order]
