"""Count the slots of the weight tables that are in use, so that a user can choose -b.

Idea      A slot is in use if its weight, G or N differs from its initial value. Most pages of a sparse table were never
          written. On Linux, which lists these pages, they are skipped, because reading a page would allocate it.
          If more than MAX_COUNTED slots remain, only one block of BLOCK slots in EVERY blocks is counted; the estimate
          is good because hashing spreads features evenly.
Cost      At most about 15 ms for 2**24 slots, once at the end of a run.
Names     w weight | G, N sums of the update rule | rate scratch of one update | plane: all w, or all G, and so on, in
          one contiguous array, see `binary.weight_table`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np

from ...array_types import Int
from ...binary import gd
from ...kernels.jit import jit

PRESENT = np.uint64(3 << 62)  # bits of an entry of pagemap: in memory, or swapped out
MAX_COUNTED = 1 << 22  # number of slots up to which all are counted
BLOCK, EVERY = 1024, 8  # slots in a block; one block in EVERY is counted


@jit
def count_pairs(pairs: np.ndarray, begin: Int, end: Int, every: Int) -> Int:
    """Count the slots of begin..end-1 with a non-zero w, G or N, sampling one block in `every`.

    `pairs` is uint64[2 * slots], the pairs (w, G) and (N, rate) of each slot; not written.
    """
    used: Int = 0
    for low in range(begin, end, BLOCK * every):
        for i in range(low, min(low + BLOCK, end)):
            used += np.int64((pairs[2 * i] | (pairs[2 * i + 1] << np.uint64(32))) != 0)
    return used


@jit
def count_planes(words: np.ndarray, field: Int, begin: Int, end: Int, every: Int) -> Int:
    """Count the same as `count_pairs` in a table that consists of planes.

    Parameters
    ----------
    words : uint32[3 * field or more], the planes of w, G and N one after the other; not written
    field : length of a plane
    """
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
    """Count the slots whose w, G or N differs from the initial values, sampling one block in `every`.

    Parameters
    ----------
    flat : float32[...], the table; not written
    stride : distance between slots
    field : distance between w, G and N of a slot
    weight, start : initial values of w and G; that of N is 0
    """
    used: Int = 0
    for low in range(0, slots, BLOCK * every):
        for i in range(low, min(low + BLOCK, slots)):
            at = i * stride
            used += (flat[at + field] != start) | (flat[at + 2 * field] != 0) | (flat[at] != weight)
    return used


def count_used(tables: Sequence[gd.Table], rule: gd.Rule) -> tuple[int, int, bool]:
    """Count the slots in use of all tables. The update rule determines the initial values.

    Returns
    -------
    used : number of slots in use
    total : number of slots
    exact : whether `used` is exact, and not an estimate
    """
    start = np.float32(rule.initial_t if rule.adaptive else 0)
    changed = rule.initial_weight != 0 or start != 0  # the initial values were written to every page
    runs = [[(0, int(table.mask) + 1)] if changed else _runs(table) for table in tables]
    every = 1 if sum(end - begin for table_runs in runs for begin, end in table_runs) <= MAX_COUNTED else EVERY
    counted = 0
    for table, table_runs in zip(tables, runs, strict=True):
        stride, field = int(table.stride), int(table.field)
        for begin, end in table_runs:
            if changed:
                counted += count_changed(table.flat, stride, field, end, every, rule.initial_weight, start)
            elif stride == 1:
                counted += count_planes(table.flat.view(np.uint32), field, begin, end, every)
            else:
                counted += count_pairs(table.flat.view(np.uint64), begin, end, every)
    return int(counted) * every, sum(int(table.mask) + 1 for table in tables), every == 1


def _runs(table: gd.Table) -> list[tuple[int, int]]:
    """Return the runs of slots, as pairs of begin and end, that lie on pages that were written."""
    slots, size = int(table.mask) + 1, 4 * int(table.stride)
    page = os.sysconf("SC_PAGE_SIZE")
    address = table.flat.ctypes.data
    pages = _pages_in_use(address, slots * size, page)
    if not len(pages):
        return [(0, slots)]
    edges = np.flatnonzero(np.diff(pages, prepend=False, append=False))
    # a slot belongs to the page on which it begins
    firsts = np.clip(-(-(edges * page - address % page) // size), 0, slots).tolist()
    return list(zip(firsts[::2], firsts[1::2], strict=True))


def _pages_in_use(address: int, size: int, page: int) -> np.ndarray:
    """Return, as bool[pages], whether each page of a memory range was written; empty if that is not known."""
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
    """Return the line of the summary about the slots in use."""
    count, total, exact = count_used(tables, rule)
    return f"slots in use = {'' if exact else 'about '}{count} of {total} ({100 * count / total:.1f}%)"
