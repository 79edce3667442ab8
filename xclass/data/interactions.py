"""Interactions: features made of one feature from each of several namespaces (`-q ab`, `--cubic abc`).

For the groups n1 .. nk of an interaction take one feature of each; with 32-bit wraparound

    h = 16777619 * index1;  h = 16777619 * (h XOR index2) for each middle one;  index = h XOR indexk

and the value is the product of the values. A group that stands twice gives combinations with repetition, i.e.
features i <= j, or all pairs under `--permutations`. `:` stands for every group seen so far in the run whose name is
in 32..126.

Source    VW 9.11 (interactions.h, interactions_predict.h); order and names are VW's.
Cost      a few ns per generated feature.
Differs   from VW: all features are made before learning, piece by piece in bounded memory.

Batch in, batches out. An interaction with a group that is not in the text, such as the recall tree's node features
(0x88), yields nothing here; `Crosser.with_group` lists it for whoever makes that group.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ..array_types import Bools, Float64s, Int64s, UInt8s
from ..errors import UsageError
from ..kernels import intrinsics
from ..kernels.jit import jit
from ..options.declare import option
from . import batch_ops
from .batch import CROSSED_GROUP, Batch, Pool
from .feature_limit import check_features
from .namespaces import decode

WILDCARD = ord(":")
PIECE = 1 << 21  # features of one batch, 16 MB
PRIME = np.uint64(16777619)


@dataclass(frozen=True)
class Options:
    quadratic: tuple[str, ...] = option(
        "cross the features of two namespaces; `:` is any namespace",
        flags=("-q", "--quadratic"),
        metavar="AB",
        repeated=True,
        stored=True,
    )
    cubic: tuple[str, ...] = option("cross the features of three namespaces", metavar="ABC", repeated=True, stored=True)
    interactions: tuple[str, ...] = option(
        "cross the features of two or more namespaces", metavar="ABCD", repeated=True, stored=True
    )
    permutations: bool = option(
        "when a namespace is crossed with itself, add the features of both orders", kind=bool, stored=True
    )
    leave_duplicate_interactions: bool = option(
        "keep interactions that are given more than once", kind=bool, stored=True
    )


# -- kernels -------------------------------------------------------------------------------------------------------


@jit
def first_rows(batch: Batch, seen: UInt8s, rows: Int64s) -> None:
    """For each group in 32..126 that is not `seen` (uint8[256]): `rows[group]` becomes its first row, or -1."""
    rows[:] = -1
    for i in range(len(batch.label)):
        for j in range(batch.group_first[i], batch.group_first[i + 1]):
            name = batch.group_name[j]
            if name >= 32 and name <= 126 and seen[name] == 0 and rows[name] < 0:
                rows[name] = i


@jit
def _find_groups(batch: Batch, i: int, begin: Int64s, end: Int64s, row_of: Int64s) -> None:
    """Note where the groups of row i are: `begin[group]`, `end[group]`, valid where `row_of[group] == i`."""
    for j in range(batch.group_first[i], batch.group_first[i + 1]):
        name = batch.group_name[j]
        begin[name] = batch.group_start[j]
        end[name] = batch.group_start[j + 1]
        row_of[name] = i


@jit
def count_crossed(batch: Batch, terms: UInt8s, term_start: Int64s, permuted: bool, counts: Float64s) -> None:
    """How many features the interactions `terms[term_start[t]:term_start[t + 1]]` make of each row: float64[n]."""
    begin = np.empty(256, np.int64)
    end = np.empty(256, np.int64)
    row_of = np.full(256, -1, np.int64)
    for i in range(len(batch.label)):
        _find_groups(batch, i, begin, end, row_of)
        counts[i] = 0.0
        for t in range(len(term_start) - 1):
            product = 1.0
            same = 0
            for j in range(term_start[t], term_start[t + 1]):
                name = terms[j]
                if row_of[name] != i:
                    product = 0.0
                    break
                same = same + 1 if j > term_start[t] and terms[j - 1] == name and not permuted else 0
                product *= (end[name] - begin[name] + same) / (same + 1.0)  # combinations with repetition
            counts[i] += np.rint(product)


@jit
def cross_rows(
    batch: Batch, low: int, terms: UInt8s, term_start: Int64s, permuted: bool, longest: int, out: Batch
) -> int:
    """Write rows low .. low + n - 1 of `batch` and what the interactions make of them to `out`, a batch of n rows."""
    begin = np.empty(256, np.int64)
    end = np.empty(256, np.int64)
    row_of = np.full(256, -1, np.int64)
    place = np.empty(longest, np.int64)
    hashed = np.empty(longest, np.uint32)
    product = np.empty(longest, np.float32)
    old_index, old_value = intrinsics.pointer(batch.index), intrinsics.pointer(batch.value)
    index, value = intrinsics.pointer(out.index), intrinsics.pointer(out.value)
    z = g = 0
    for r in range(len(out.label)):
        i = low + r
        _find_groups(batch, i, begin, end, row_of)
        shift = z - batch.start[i]
        for p in range(batch.start[i], batch.start[i + 1]):
            out.index[z] = batch.index[p]
            out.value[z] = batch.value[p]
            z += 1
        for j in range(batch.group_first[i], batch.group_first[i + 1]):
            out.group_name[g] = batch.group_name[j]
            out.group_start[g] = batch.group_start[j] + shift
            g += 1
        made = z
        for t in range(len(term_start) - 1):
            t0 = term_start[t]
            last = term_start[t + 1] - t0 - 1
            present = True
            for j in range(t0, t0 + last + 1):
                present = present and row_of[terms[j]] == i
            if not present:
                continue
            depth = 0
            place[0] = begin[terms[t0]]
            while depth >= 0:
                name = terms[t0 + depth]
                if depth == last:
                    p0, h, v = place[depth], hashed[depth - 1], product[depth - 1]
                    size = end[name] - p0
                    for j in range(size):
                        index[z + j] = h ^ old_index[p0 + j]
                        value[z + j] = v * old_value[p0 + j]
                    z += size
                    depth -= 1
                    place[depth] += 1
                    continue
                p = place[depth]
                if p == end[name]:
                    depth -= 1
                    if depth >= 0:
                        place[depth] += 1
                    continue
                if depth == 0:
                    hashed[0] = np.uint32(PRIME * np.uint64(batch.index[p]))
                    product[0] = batch.value[p]
                else:
                    mixed = np.uint64(hashed[depth - 1] ^ batch.index[p])
                    hashed[depth] = np.uint32(PRIME * mixed)
                    product[depth] = product[depth - 1] * batch.value[p]
                following = terms[t0 + depth + 1]
                place[depth + 1] = p if following == name and not permuted else begin[following]
                depth += 1
        if z > made:
            out.group_name[g] = np.uint8(CROSSED_GROUP)
            out.group_start[g] = made
            g += 1
        out.start[r + 1] = z
        out.group_first[r + 1] = g
    out.group_start[g] = z
    return g


class Counted(Protocol):
    """What is known of a batch of work, see `reductions.core.contract.BatchTask`."""

    @property
    def batch(self) -> Batch: ...

    @property
    def features(self) -> Int64s | None: ...

    @property
    def unasked(self) -> Bools | None: ...


def counted(task: Counted) -> Int64s:
    """The number of features of each example of a batch of work, as the progress table shows it: int64[n].

    Where no regressor was asked about an example, and it is known, its crosses are not counted: VW makes them when it
    is asked.
    """
    assert task.features is not None  # counted before a learner gets the batch
    if task.unasked is None:
        return task.features
    return task.features - np.where(task.unasked, crossed(task.batch), 0)


def crossed(batch: Batch) -> Int64s:
    """The number of features of each row that crosses made; they are its last ones: int64[n]."""
    last = batch.group_first[1:] - 1
    some = batch.group_first[:-1] <= last
    found = np.zeros(batch.n, np.int64)
    of = last[some]
    sizes = batch.group_start[of + 1] - batch.group_start[of]
    found[some] = np.where(batch.group_name[of] == CROSSED_GROUP, sizes, 0)
    return found


# -- which interactions --------------------------------------------------------------------------------------------


def _in_order(found: list[bytes]) -> list[bytes]:
    return sorted(found, key=lambda one: (len(one), one))


def _is_mixed(ordered: bytes) -> bool:
    """Whether a group stands twice beside others: `aab`, not `aaa` or `abc`."""
    return 1 < len(set(ordered)) < len(ordered)


def without_duplicates(found: list[bytes], leave: bool = False) -> tuple[list[bytes], int, int]:
    """Drop interactions equal but for the order (unless `leave`), sort those that repeat a group and have others too.

    Returns
    -------
    kept, number removed, number sorted (as VW counts: those that were in order already, too)
    """
    kept: list[bytes] = []
    met: set[bytes] = set()
    moved = 0
    for one in found:
        ordered = bytes(sorted(one))
        if leave or ordered not in met:
            met.add(ordered)
            mixed = _is_mixed(ordered)
            moved += mixed
            kept.append(ordered if mixed else one)
    return kept, len(found) - len(kept), moved


def expand(found: list[bytes], groups: list[int], leave: bool = False) -> list[bytes]:
    """Replace wildcards by all combinations of `groups`, as VW does."""
    result = []
    for one in found:
        wild = one.count(WILDCARD)
        if wild == 0:
            result.append(one)
            continue
        # VW makes pairs in ascending order and everything else in descending order
        choices = itertools.combinations_with_replacement(sorted(groups, reverse=wild != 2), wild)
        for chosen in itertools.product(sorted(groups), repeat=wild) if leave else choices:
            fill = iter(chosen)
            result.append(bytes(next(fill) if name == WILDCARD else name for name in one))
    return without_duplicates(_in_order(result), leave)[0]


class Crosser:
    """Adds the features of interactions to batches.

    Attributes
    ----------
    interactions : as asked for, in order, with wildcards
    active : whether there are any
    wild : whether there are wildcards
    notes : what VW says about the arguments
    """

    def __init__(self, options: Options, piece: int = PIECE) -> None:
        self.notes: list[str] = []
        found = []
        for arguments, flag, length, what in (
            (options.quadratic, "-q", 2, "two namespaces, such as -q ab"),
            (options.cubic, "--cubic", 3, "three namespaces, such as --cubic abc"),
            (options.interactions, "--interactions", 0, "two or more namespaces, such as --interactions abcd"),
        ):
            for argument in arguments:
                one = decode(argument, self.notes)
                if len(one) < 2 or (length and len(one) != length):
                    many = "1 namespace" if len(one) == 1 else f"{len(one)} namespaces"
                    raise UsageError(f"{flag} {argument} names {many}; it takes {what}")
                found.append(one)
        self.wild = any(WILDCARD in one for one in found)
        self._permuted = options.permutations
        self._leave = options.leave_duplicate_interactions
        if self.wild and not self._leave:
            self.notes.append("[info] Any duplicate namespace interactions will be removed")
        self.interactions, removed, moved = without_duplicates(_in_order(found), self._leave)
        if removed:
            self.notes.append(f"[warning] Duplicate namespace interactions were found. Removed: {removed}.")
        if moved:
            self.notes.append(
                "[warning] Some interactions contain duplicate characters and their characters order has been "
                f"changed. Interactions affected: {moved}."
            )
        self._piece = piece
        self._pool = Pool()
        self._seen = np.zeros(256, np.uint8)
        self._rows = np.empty(256, np.int64)
        self._list([] if self.wild else self.interactions)

    @property
    def active(self) -> bool:
        """Whether there is anything to do."""
        return bool(self.interactions)

    def with_group(self, group: int) -> list[bytes]:
        """The interactions that name `group`, as asked for."""
        return [one for one in self.interactions if group in one]

    def after(self, groups: list[int]) -> list[bytes]:
        """Take note of an example's groups; return the interactions that hold for it, wildcards filled in."""
        fresh = [group for group in groups if 32 <= group <= 126 and not self._seen[group]]
        if self.wild and fresh:
            self._seen[fresh] = 1
            self._list(expand(self.interactions, np.flatnonzero(self._seen).tolist(), self._leave))
        return self._current

    def cross(self, batch: Batch) -> Iterator[Batch]:
        """Yield `batch` with the features of the interactions after the constant of each example, in pieces."""
        low = 0
        if self.wild:
            first_rows(batch, self._seen, self._rows)
            for row in sorted(set(self._rows[self._rows >= 0].tolist())):
                if row > low:
                    yield from self._cross(batch_ops.cut(batch, low, row))
                    low = row
                self._seen[self._rows == row] = 1
                self._list(expand(self.interactions, np.flatnonzero(self._seen).tolist(), self._leave))
        yield from self._cross(batch_ops.cut(batch, low, batch.n) if low else batch)

    def _list(self, found: list[bytes]) -> None:
        self._current = found
        self._terms = np.frombuffer(bytearray(b"".join(found) or b"\0"), np.uint8)
        self._term_start = np.cumsum([0] + [len(one) for one in found], dtype=np.int64)

    def _cross(self, batch: Batch) -> Iterator[Batch]:
        if not self._current or batch.n == 0:
            yield batch
            return
        counts = np.empty(batch.n, np.float64)
        count_crossed(batch, self._terms, self._term_start, self._permuted, counts)
        check_features(counts, batch.line, "the interactions make", "use fewer or smaller interactions")
        total = np.cumsum(counts + np.diff(batch.start))
        low = 0
        while low < batch.n:
            before = total[low - 1] if low else 0
            high = max(low + 1, int(np.searchsorted(total, before + self._piece, side="right")))
            some = batch_ops.cut(batch, low, high)
            n = high - low
            features = int(total[high - 1] - before)
            groups = int(batch.group_first[high] - batch.group_first[low]) + n
            made = self._pool.batch(n, features, groups, batch.text)
            out = some._replace(
                start=made.start,
                index=made.index,
                value=made.value,
                group_first=made.group_first,
                group_name=made.group_name,
                group_start=made.group_start,
            )
            longest = int(np.diff(self._term_start).max())
            g = cross_rows(batch, low, self._terms, self._term_start, self._permuted, longest, out)
            yield out._replace(group_name=out.group_name[:g], group_start=out.group_start[: g + 1])
            low = high
