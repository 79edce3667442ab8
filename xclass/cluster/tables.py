"""Hold the large tables of a learner in a worker, list what has changed in a range of them, and merge ranges.

Names     range: the k-th of n parts of every table, of as many rows each. A plane is an array of numbers of 32 bits.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ..abilities.merge import ranges
from ..api.model_contents import ModelContents
from ..array_types import Int64s, UInt32s, UInt64s
from ..binary import tagged_words, update_rule
from ..model.archive import SLOTS, WORDS, LiveTable
from ..system import sparse_memory
from . import lines
from .lines import LINE, Lines


class TableLines(NamedTuple):
    """Hold lines of a range of a table."""

    kind: str
    doublings: int  # of the table
    sizes: tuple[int, ...]  # of its planes
    planes: tuple[Lines, ...]


RangeLines: TypeAlias = Mapping[str, TableLines]  # by table


def nbytes(of_range: RangeLines) -> int:
    return sum(plane.nbytes for table in of_range.values() for plane in table.planes)


class Tables:
    """Hold tables by name, those of the contents of a live model or empty ones that grow as lines are written."""

    def __init__(self, contents: ModelContents | None = None) -> None:
        self.live: dict[str, LiveTable] = {}
        self._times: dict[str, int] = {}
        if contents is not None:
            self.go_on(contents)
        self._marked: dict[str, tuple[tuple[int, ...], list[UInt64s]]] = {}  # sizes and hashes of the planes

    def mark(self) -> None:
        """Let `changes` list what differs from now on."""
        for name, table in self.live.items():
            if table.kind == SLOTS and len(table.planes) == 1:  # the rate of a slot is computed anew in each step
                table.planes[0][3::4] = 0
            self._marked[name] = _sizes(table), [lines.hashes(plane) for plane in table.planes]

    def go_on(self, contents: ModelContents) -> None:
        """Take the tables of a learner that has learned since `mark`."""
        self.live = dict(contents.live or {})
        self._times = {name: doublings_of(contents, name) for name in self.live}

    def of_range(self, k: int, n: int) -> RangeLines:
        """Return all of a range."""
        return {
            name: self._listed(name, [lines.listed(plane[a:b], a) for plane, a, b in _cut(table.planes, k, n)])
            for name, table in self.live.items()
        }

    def changes(self, k: int, n: int) -> RangeLines:
        """Return the lines of a range that have changed since `mark`; all lines of tables that were doubled."""
        found = {}
        for name, table in self.live.items():
            sizes, before = self._marked[name]
            listed = []
            for own, old, (plane, a, b) in zip(before, sizes, _cut(table.planes, k, n, sizes), strict=True):
                part = plane[a:b]
                if len(plane) > old:
                    listed.append(lines.listed(part, a))
                else:
                    differs = lines.hashes(part) != own[a // LINE : a // LINE + -(-len(part) // LINE)]
                    listed.append(lines.listed(part, a, np.flatnonzero(differs)))
            found[name] = self._listed(name, listed)
        return found

    def _listed(self, name: str, planes: Sequence[Lines]) -> TableLines:
        table = self.live[name]
        return TableLines(table.kind, self._times[name], _sizes(table), tuple(planes))

    def write(self, of_range: RangeLines) -> None:
        """Write lines, after doubling tables that are smaller."""
        for name, table in of_range.items():
            if name not in self.live:
                self.live[name] = LiveTable(table.kind, tuple(map(sparse_memory.zeros, table.sizes)))
                self._times[name] = table.doublings
            if self._times[name] < table.doublings:
                planes = _doubled(self.live[name].planes, self._times[name], table.doublings)
                self.live[name], self._times[name] = LiveTable(table.kind, tuple(planes)), table.doublings
            for plane, own in zip(self.live[name].planes, table.planes, strict=True):
                lines.write(plane[own.begin : own.end], own)


def merged(base: RangeLines, models: Sequence[RangeLines], facts: ranges.Merging) -> tuple[ranges.Report, RangeLines]:
    """Merge a range; return what has to be added to the rest of the model, and the places that a model has changed.

    `base` has all lines, the models those that they have changed. Only rows that a model has changed are merged; a row
    is a line of words, a row of an index, or a slot.
    """
    found, report = {}, {}
    for name, table in base.items():
        target = facts.doublings.get(name, 0)
        start = [_filled(sparse_memory.zeros(own.end - own.begin), own) for own in table.planes]
        every = [_at(model[name], start, table.doublings, target) for model in models]
        start = _doubled(start, table.doublings, target)
        sizes = [max(len(own) // max(min(map(len, start)), 1), 1) for own in start]
        if len(start) == 1:
            sizes = [LINE if table.kind == WORDS else update_rule.FIELDS]
        used = np.zeros(len(start[0]) // sizes[0], bool)
        for own, size in itertools.chain(*(zip(model, sizes, strict=True) for model in every)):
            lines.mark(own.line, LINE, size, used)
            used |= own.complete
        rows = np.flatnonzero(used)
        old = [plane.reshape(-1, size)[rows] for plane, size in zip(start, sizes, strict=True)]
        picked = [_picked(model, start, sizes, rows, old) for model in every]
        result = [one.reshape(-1).copy() for one in old]
        scale = 1 << (target - table.doublings)
        first = table.planes[-1].begin * scale // sizes[-1]
        report[name] = ranges.merge(table.kind, result, picked, facts, rows + first)
        planes = []
        for p, (plane, own, size) in enumerate(zip(start, table.planes, sizes, strict=True)):
            changed = result[p].reshape(-1, size) != old[p]
            for one in picked:
                changed |= one[p].reshape(-1, size) != old[p]
            places = np.zeros(len(plane), bool)
            places.reshape(-1, size)[rows] = changed
            plane.reshape(-1, size)[rows] = result[p].reshape(-1, size)
            used = np.zeros(-(-len(plane) // LINE), bool)
            lines.mark(rows[changed.any(axis=1)], size, LINE, used)
            planes.append(lines.listed(plane, own.begin * scale, np.flatnonzero(used), places))
        found[name] = TableLines(table.kind, target, tuple(size * scale for size in table.sizes), tuple(planes))
    return report, found


def _at(model: TableLines, start: Sequence[UInt32s], times: int, target: int) -> Sequence[Lines]:
    """Return the changes of a model with its table doubled to a target; `start` is the base, doubled so many times."""
    if model.doublings == target == times:
        return model.planes
    planes = _doubled(start, times, model.doublings)
    planes = [_filled(plane.copy(), own) for plane, own in zip(planes, model.planes, strict=True)]
    return [lines.listed(plane, 0) for plane in _doubled(planes, model.doublings, target)]


def _picked(
    model: Sequence[Lines], start: Sequence[UInt32s], sizes: Sequence[int], rows: Int64s, old: Sequence[UInt32s]
) -> list[UInt32s]:
    """Return some rows of a model; its lines are written to the planes of the base, which are restored."""
    found = []
    for own, plane, size, before in zip(model, start, sizes, old, strict=True):
        table = plane.reshape(-1, size)
        lines.write(plane, own)
        found.append(table[rows].reshape(-1))
        table[rows] = before
    return found


def doublings_of(contents: ModelContents, table: str) -> int:
    times: Any = contents.arrays.get(f"{table}.doublings", (0,))
    return int(times[0])


def _sizes(table: LiveTable) -> tuple[int, ...]:
    return tuple(map(len, table.planes))


def _cut(planes: Sequence[UInt32s], k: int, n: int, sizes: Sequence[int] = ()) -> Iterator[tuple[UInt32s, int, int]]:
    """Yield planes with begin and end of their k-th range of n; `sizes` are those of the tables before doublings."""
    before = sizes or [len(plane) for plane in planes]
    pieces = max(1, min(before) // LINE)
    for plane, size in zip(planes, before, strict=True):
        a, b = (size * (pieces * i // n) // pieces * (len(plane) // size) for i in (k, k + 1))
        yield plane, a, b


def _filled(part: UInt32s, own: Lines) -> UInt32s:
    lines.write(part, own)
    return part


def _doubled(planes: Sequence[UInt32s], times: int, target: int) -> list[UInt32s]:
    """Return a range of a table of words that was doubled so many times, doubled to a target."""
    every = list(planes)
    for done in range(times, target):
        for i, plane in enumerate(every):
            every[i] = sparse_memory.zeros(2 * len(plane))
            tagged_words.spread_lines(plane, every[i], tagged_words.TAG_BITS - 1 - done)
    return every
