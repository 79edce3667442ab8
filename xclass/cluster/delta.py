"""Encode what learning has changed in the arrays of a model, so that only touched slots travel from worker to driver.

Idea      Tables are stored with or without their empty rows (`stored_arrays.pack_table`). If both models store a table
          in the same way, the rows that differ are listed with their numbers; all planes of a table share the list.
          Other arrays travel whole unless they are equal, and so do tables that were doubled, because their rows have
          other numbers. Bits are compared, so that the decoded model has the bytes of the encoded one.
Cost      O(size of the model).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ..abilities.merge import parts
from ..array_types import AnyArray
from ..binary import merged_words, weight_table
from ..model import table_changes
from ..model.stored_arrays import Arrays, Stored
from ..model.table_changes import Changes

INDEX = "." + table_changes.INDEX  # end of the name of the array that holds the row numbers of a table
DOUBLINGS = ".doublings"  # end of the name of the array that says how often a table was doubled
# planes of the tables of which merging takes the changes instead of the tables
MERGED = (weight_table.COLUMNS, (merged_words.WORD,), parts.PLANES)


class Delta(NamedTuple):
    """Hold the arrays of a model as changes of those of the base."""

    whole: dict[str, AnyArray]
    same: tuple[str, ...]  # arrays that have not changed
    tables: dict[str, Changes]  # table -> its changed rows; its planes have the names of their arrays

    @property
    def nbytes(self) -> int:
        tables = sum(one.nbytes for one in self.tables.values())
        return tables + sum(array.nbytes for array in self.whole.values())


def encode(arrays: Arrays, base: Arrays) -> Delta:
    """Return the changes between the arrays of a base and those of a model that has continued from it."""
    new, old = _in_memory(arrays), _in_memory(base)
    delta = Delta({}, (), {})
    same = []
    tables: dict[str, list[str]] = {}
    for name, array in new.items():
        table = _table_of(name, new, old)
        if table is not None:
            tables.setdefault(table, []).append(name)
        elif name in old and _equal(array, old[name]):
            same.append(name)
        else:
            delta.whole[name] = array
    for table, names in tables.items():
        if table + INDEX in new:
            changes = table_changes.of_sparse(_planes(table, names, new), _planes(table, names, old))
            planes = {f"{table}.{plane}": items for plane, items in changes.planes.items()}
            changes = changes._replace(planes=planes)
        else:
            changes = table_changes.of_whole({name: new[name] for name in names}, old)
        if len(changes.rows):
            delta.tables[table] = changes
        else:
            same += names
    return delta._replace(same=tuple(same))


def _table_of(name: str, new: Mapping[str, AnyArray], base: Mapping[str, AnyArray]) -> str | None:
    """Return the table whose rows are listed that an array belongs to, None if there is none."""
    array = new[name]
    if array.ndim != 1 or name not in base or base[name].dtype != array.dtype:
        return None
    table = name.rpartition(".")[0]
    times = table + DOUBLINGS
    if times in new and times in base and not _equal(new[times], base[times]):
        return None
    lengths = [len(one[table + INDEX]) if table + INDEX in one else -1 for one in (new, base)]
    if lengths == [len(array), len(base[name])]:
        return table
    if lengths == [-1, -1] and len(array) == len(base[name]):
        # arrays of a table that is stored whole may have different lengths, and are tables of their own then
        return f"{table}:{len(array)}"
    return None


def decode(delta: Delta, base: Arrays) -> dict[str, Stored]:
    """Return the arrays that were encoded; `base` are those that were given to `encode`."""
    old = _in_memory(base)
    arrays: dict[str, Stored] = {**delta.whole, **{name: old[name] for name in delta.same}}
    for table, changes in delta.tables.items():
        if table + INDEX not in old:
            arrays.update(table_changes.changed_whole(old, changes))
            continue
        names = [table + INDEX, *changes.planes]
        own = changes._replace(planes=_planes(table, list(changes.planes), changes.planes))
        changed = table_changes.changed_sparse(_planes(table, names, old), own)
        arrays.update({f"{table}.{plane}": array for plane, array in changed.items()})
    return arrays


def listed(delta: Delta, base: Arrays) -> tuple[Delta, dict[str, Changes]]:
    """Take the changes of tables that are merged out of a delta, if it lists their rows or they are the same.

    `base` are the arrays that were given to `encode`. Return the delta of a model in which these tables are empty, and
    for each table its changes.
    """
    old = _in_memory(base)
    tables = {name.rpartition(".")[0]: planes for name in old for planes in MERGED if name.endswith(f".{planes[0]}")}
    whole, same, others = dict(delta.whole), dict.fromkeys(delta.same), dict(delta.tables)
    found = {}
    for table, planes in tables.items():
        names = [f"{table}.{plane}" for plane in planes]
        if not all(name in old for name in names) or table + DOUBLINGS in delta.whole:
            continue
        key = table if table + INDEX in old else f"{table}:{len(old[names[0]])}"
        if key in others and len(others[key].planes) == len(planes):
            changes = others.pop(key)
            items = {plane: changes.planes[name] for plane, name in zip(planes, names, strict=True)}
            found[table] = Changes(changes.rows, items)
        elif all(name in same for name in names):
            items = {plane: np.empty(0, old[name].dtype) for plane, name in zip(planes, names, strict=True)}
            found[table] = Changes(np.empty(0, np.uint32), items)
        else:
            continue
        for name in (table + INDEX, *names):
            same.pop(name, None)
            whole[name] = np.empty(0, np.uint32 if name == table + INDEX else old[name].dtype)
    return Delta(whole, tuple(same), others), found


def _in_memory(arrays: Arrays) -> dict[str, AnyArray]:
    return {name: np.asarray(array) for name, array in arrays.items()}


def _planes(table: str, names: Sequence[str], arrays: Mapping[str, AnyArray]) -> dict[str, AnyArray]:
    return {name[len(table) + 1 :]: arrays[name] for name in names}


def _equal(a: AnyArray, b: AnyArray) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
