"""How full the weight tables are: slots in use, so that a user can choose -b.

A slot is in use once its weight, G or N differs from what it started at. Tables of which little is in use lie mostly on
pages of memory that were never written; where the system tells which (Linux), those are not looked at, for
looking at a page would take it from the machine. Where more than EXACT slots remain, one block of BLOCK slots in EVERY
is counted: hashing spreads features evenly.

Cost      once, at the end of a run: at most some 15 ms for 2**24 slots.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np

from ...array_types import Int
from ...binary import gd
from ...kernels.jit import jit

PRESENT = np.uint64(3 << 62)  # bits of an entry of pagemap: in memory, or swapped out
EXACT = 1 << 22  # slots
BLOCK, EVERY = 1024, 8


@jit
def count_pairs(pairs: np.ndarray, begin: Int, end: Int, every: Int) -> Int:
    """Slots of begin..end-1 with a w, G or N that is not 0, sampling one block in `every`.

    `pairs` : uint64[2 * slots], (w, G) and (N, rate) of each.
    """
    used: Int = 0
    for low in range(begin, end, BLOCK * every):
        for i in range(low, min(low + BLOCK, end)):
            used += np.int64((pairs[2 * i] | (pairs[2 * i + 1] << np.uint64(32))) != 0)
    return used


@jit
def count_planes(words: np.ndarray, field: Int, begin: Int, end: Int, every: Int) -> Int:
    """The same for a table of planes, `words` : uint32[...]."""
    w, g, n = words[:field], words[field : 2 * field], words[2 * field : 3 * field]
    used: Int = 0
    for low in range(begin, end, BLOCK * every):
        for i in range(low, min(low + BLOCK, end)):
            used += np.int64((w[i] | g[i] | n[i]) != 0)
    return used


@jit
def count_changed(
    flat: np.ndarray, stride: Int, field: Int, slots: Int, every: Int, weight: np.float32, start: np.float32
) -> Int:
    """The same for a table that did not start at 0: w, G or N is not `weight`, `start` and 0."""
    used: Int = 0
    for low in range(0, slots, BLOCK * every):
        for i in range(low, min(low + BLOCK, slots)):
            at = i * stride
            used += (flat[at + field] != start) | (flat[at + 2 * field] != 0) | (flat[at] != weight)
    return used


def used(tables: Sequence[gd.Table], rule: gd.Rule) -> tuple[int, int, bool]:
    """Return how many slots are in use, how many there are, and whether the first number is exact."""
    start = np.float32(rule.initial_t if rule.adaptive else 0)
    changed = rule.initial_weight != 0 or start != 0  # every page was written
    runs = [[(0, int(table.mask) + 1)] if changed else _runs(table) for table in tables]
    every = 1 if sum(end - begin for one in runs for begin, end in one) <= EXACT else EVERY
    found = 0
    for table, one in zip(tables, runs, strict=True):
        stride, field = int(table.stride), int(table.field)
        for begin, end in one:
            if changed:
                found += count_changed(table.flat, stride, field, end, every, rule.initial_weight, start)
            elif stride == 1:
                found += count_planes(table.flat.view(np.uint32), field, begin, end, every)
            else:
                found += count_pairs(table.flat.view(np.uint64), begin, end, every)
    return int(found) * every, sum(int(table.mask) + 1 for table in tables), every == 1


def _runs(table: gd.Table) -> list[tuple[int, int]]:
    """Runs of slots that lie on pages in use."""
    slots, size = int(table.mask) + 1, 4 * int(table.stride)
    page = os.sysconf("SC_PAGE_SIZE")
    address = table.flat.ctypes.data
    pages = _pages_in_use(address, slots * size, page)
    if not len(pages):
        return [(0, slots)]
    edges = np.flatnonzero(np.diff(pages, prepend=False, append=False))
    # a slot belongs to the page it begins on
    firsts = np.clip(-(-(edges * page - address % page) // size), 0, slots).tolist()
    return list(zip(firsts[::2], firsts[1::2], strict=True))


def _pages_in_use(address: int, size: int, page: int) -> np.ndarray:
    """Whether each page of a piece of memory was ever written, bool[...]; empty where the system does not tell."""
    first, last = address // page, (address + size - 1) // page
    try:
        with open("/proc/self/pagemap", "rb", buffering=0) as file:
            file.seek(first * 8)
            entries = np.frombuffer(file.read((last - first + 1) * 8), np.uint64)
    except OSError:
        return np.empty(0, bool)
    if len(entries) != last - first + 1:
        return np.empty(0, bool)
    present: np.ndarray = (entries & PRESENT) != 0
    return present


def line(tables: Sequence[gd.Table], rule: gd.Rule) -> str:
    """What the summary says."""
    found, total, exact = used(tables, rule)
    return f"slots in use = {'' if exact else 'about '}{found} of {total} ({100 * found / total:.1f}%)"
