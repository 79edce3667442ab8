"""Names of classes: those that were listed, and with `--learn_names` every new one as it comes.

Idea      A block of text is parsed on any thread, with no knowledge of the blocks before, so the parser leaves as an
          example's label the place of its first word. Blocks are then taken in the order of the file, and here names
          get the numbers 1, 2, ... in the order in which they come: the same at any number of threads.
Cost      a hash and a look into a table of open addressing for each example, some 20 ns.
Secret    Names are hashed by SipHash with a key that each table draws, so that nobody can choose names that collide.
Differs   from VW, whose --named_labels has to list all names before.
"""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..array_types import AnyArray, Float64s, Int, Int32s, Int64s, UInt8s, UInt64s
from ..kernels import intrinsics
from ..kernels.jit import jit
from . import hashing

SPACE = 32
DONE, NO_ROOM, ONE_TOO_MANY = range(3)
UNKNOWN = 2**32 - 2  # label of a name that the model of -t does not know; no class has it
NAMELESS = 2**53  # stands for a class whose name has not come yet, where names are written


class Table(NamedTuple):
    """Names by hash; name j (from 0) has the letters `start[j]:start[j + 1]`."""

    slot: Int32s  # int32[power of two], number of the name there, or 0
    hash: UInt64s  # uint64[capacity]
    start: Int64s  # int64[capacity + 1]
    letters: UInt8s  # uint8[...]
    key: UInt64s  # uint64[2], of the hash


# -- kernels


@jit
def slot_of(data: UInt8s, begin: Int, end: Int, h: np.uint64, table: Table) -> np.int64:
    """Where the name `data[begin:end]`, whose hash is h, is in the table, or has its free place.

    Not `hash_table.probe`: a slot holds the number of a name, and names are equal when their letters are.
    """
    last = len(table.slot) - 1
    i = np.int64(h >> np.uint64(1)) & last
    while table.slot[i] > 0:
        j = np.int64(table.slot[i]) - 1
        low = table.start[j]
        if table.hash[j] == h and table.start[j + 1] - low == end - begin:
            p = 0
            while p < end - begin and table.letters[low + p] == data[begin + p]:
                p += 1
            if p == end - begin:
                break
        i = (i + 1) & last
    return i


@jit
def class_of(data: UInt8s, begin: Int, end: Int, table: Table) -> int:
    """The class named `data[begin:end]`, 0 if there is none."""
    found: int = table.slot[slot_of(data, begin, end, hashing.siphash(data, begin, end, table.key), table)]
    return found


@jit
def number_names(
    data: UInt8s, label: Float64s, row: int, table: Table, count: int, most: int, fixed: bool
) -> tuple[int, int, int]:
    """Turn places of names, as they are in `label` from `row` on, into their numbers; new names go into the table.

    Parameters
    ----------
    data : uint8[...], the text; every name ends with a blank, which is followed by three bytes or more
    label : float64[n], where in the text the name begins, NaN where there is none; written
    count, most : names known, and how many there may be
    fixed : no name is new: others are UNKNOWN

    Returns
    -------
    row, count : the row that could not be numbered, or n; names known
    why : DONE, NO_ROOM in the table, or ONE_TOO_MANY
    """
    text = intrinsics.pointer(data)
    for i in range(row, len(label)):
        if label[i] != label[i]:
            continue
        begin = np.int64(label[i])
        end = begin
        while text[end] != SPACE:
            end += 1
        h = hashing.siphash(text, begin, end, table.key)
        at = slot_of(data, begin, end, h, table)
        if table.slot[at] == 0:
            if fixed:
                label[i] = UNKNOWN
                continue
            if count >= most:
                return i, count, ONE_TOO_MANY
            low = table.start[count]
            if 2 * (count + 1) > len(table.slot) or low + end - begin > len(table.letters):
                return i, count, NO_ROOM
            for p in range(end - begin):
                table.letters[low + p] = data[begin + p]
            table.hash[count] = h
            count += 1
            table.start[count] = low + end - begin
            table.slot[at] = count
        label[i] = table.slot[at]
    return len(label), count, DONE


@jit
def fill_slots(table: Table, count: int) -> None:
    """Hash the names and put them into slots that are all free."""
    last = len(table.slot) - 1
    for j in range(count):
        table.hash[j] = hashing.siphash(table.letters, table.start[j], table.start[j + 1], table.key)
        i = np.int64(table.hash[j] >> np.uint64(1)) & last
        while table.slot[i] > 0:
            i = (i + 1) & last
        table.slot[i] = j + 1


# -- Python


class Names:
    """The names of classes 1, 2, ...

    Parameters
    ----------
    listed : those known from the start
    growing : whether others may come

    Attributes
    ----------
    names : str list, in the order of the classes; grows while data are read, ahead of what is learned, so it is shared
        and never copied
    met : the highest class the learner has met; what is saved and shown goes no further, or it would depend on how far
        the reader is ahead
    """

    def __init__(self, listed: tuple[str, ...] = (), growing: bool = False) -> None:
        self.names = list(listed)
        self.met = len(listed)
        self.growing = growing
        self._table: Table | None = None

    @property
    def shown(self) -> list[str] | None:
        """`names`; None where labels are numbers."""
        return self.names if self.names or self.growing else None

    def meet(self, label: Float64s) -> Float64s:
        """Take note of the labels of examples that were learned, or predicted: float64[n], NaN where there is none.

        Returns the highest class met up to and with each example: float64[n].
        """
        met = np.fmax.accumulate(np.concatenate(([self.met], label)))[1:]
        if len(met):
            self.met = int(met[-1])
        return met

    def add(self, names: list[str]) -> None:
        """Take in names in their order, known ones among them."""
        known = set(self.names)
        self.names += [name for name in names if name not in known]
        self._table = None

    def number(self, text: UInt8s, label: Float64s, row: int, most: int | None = None) -> int:
        """Number the names of a block: see `number_names`; return the first row whose name is one too many, or n.

        Where names do not grow, unknown ones are UNKNOWN.

        Parameters
        ----------
        most : how many names there may be; None for as many as come
        """
        table = self._table or self._new_table(0)
        count = known = len(self.names)
        while True:
            room = 1 << 31 if most is None else most
            row, count, why = number_names(text, label, row, table, count, room, not self.growing)
            if count > known:
                ends = table.start[known : count + 1].tolist()
                for low, high in itertools.pairwise(ends):
                    self.names.append(table.letters[low:high].tobytes().decode("utf-8", "surrogateescape"))
                known = count
            if why != NO_ROOM:
                return row
            begin = int(label[row])
            table = self._new_table(text[begin:].tobytes().index(b" "))

    def _new_table(self, needed: int) -> Table:
        """Make room for as many names again, and for `needed` letters more."""
        count = len(self.names)
        self._table = new_table(self.names, 1 << max(10, (2 * count).bit_length()), needed)
        return self._table


def new_table(names: Sequence[str], capacity: int, needed: int = 0) -> Table:
    """A table of names, class 1 the first.

    Parameters
    ----------
    capacity : names there is room for; 0, or a power of two
    needed : letters more than theirs that there is room for
    """
    raw = [name.encode("utf-8", "surrogateescape") for name in names]
    count = len(raw)
    end = np.zeros(capacity + 1, np.int64)
    end[1 : count + 1] = np.cumsum([len(one) for one in raw])
    letters = np.zeros(2 * int(end[count]) + needed + 16 * capacity, np.uint8)
    letters[: end[count]] = np.frombuffer(b"".join(raw), np.uint8)
    key = np.array([secrets.randbits(64) for _ in range(2)], np.uint64)
    table = Table(np.zeros(max(1, 2 * capacity), np.int32), np.zeros(capacity, np.uint64), end, letters, key)
    fill_slots(table, count)
    return table


def listed_table(names: Sequence[str]) -> Table:
    """A table of names that stay as they are."""
    return new_table(names, 1 << len(names).bit_length() if names else 0)


def shown(classes: AnyArray, met: AnyArray) -> AnyArray:
    """The classes with NAMELESS in place of those beyond `met`, of the same shape."""
    return np.where(classes > met, NAMELESS, classes)
