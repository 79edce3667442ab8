"""Number the labels that a learner has seen, in the order in which they were first learned."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...array_types import Int, Int32s, Int64s
from ...data.batch import HIGHEST_LABEL
from ...kernels import hash_table
from ...kernels.jit import bare, jit
from ...model import stored_arrays
from ...model.archive import Archive

NO_ROOM = -2  # returned for a label that finds no room


class Seen(NamedTuple):
    size: Int64s  # int64[1], how many labels there are
    label: Int64s  # int64[capacity], the label with each number
    key: Int64s  # int64[2 * capacity], labels in a hash table, 0 in an empty cell
    number: Int32s  # int32[2 * capacity], number of the label in `key`
    secret: np.uint64  # of the hash table


def new(capacity: int) -> Seen:
    """Return no labels, with room for `capacity`, a power of two."""
    return Seen(
        np.zeros(1, np.int64), np.zeros(capacity, np.int64), np.zeros(2 * capacity, np.int64),
        np.empty(2 * capacity, np.int32), hash_table.new_secret(),
    )  # fmt: skip


def of(label: Int64s, capacity: int) -> Seen:
    """Return labels with their numbers, which are distinct, with room for `capacity` labels or more."""
    seen = new(1 << max(0, capacity - 1).bit_length())
    enter(seen, label)
    return seen


def serialize(archive: Archive, name: str, label: Int64s) -> Int64s:
    """Save the labels that were seen, or return those of a model, which have to be distinct."""
    label = archive.take(name, label, None, 1, HIGHEST_LABEL)
    if not archive.saves and len(np.unique(label)) < len(label):
        raise stored_arrays.unfit(name, "a label occurs twice")
    return label


@bare
def number_of(seen: Seen, label: Int, learns: bool) -> Int:
    """Return the number of a label, -1 for one that was not seen; if it `learns`, add it, or return NO_ROOM."""
    if not 0 < label <= HIGHEST_LABEL:
        return -1
    cell = hash_table.probe(seen.key, label, 0, seen.secret)
    if seen.key[cell] == label:
        return np.int64(seen.number[cell])
    if not learns:
        return -1
    at = seen.size[0]
    if at == seen.label.shape[0]:
        return NO_ROOM
    seen.size[0] = at + 1
    seen.label[at] = label
    seen.key[cell] = label
    seen.number[cell] = at
    return np.int64(at)


@jit
def enter(seen: Seen, label: Int64s) -> None:
    """Add labels, for which there is room."""
    for y in label:
        number_of(seen, y, True)
