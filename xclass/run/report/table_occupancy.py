"""Count the slots of the weight tables that are in use, so that a user can choose -b.

Idea      A slot is in use if its weight, G or N differs from its initial value. Most pages of a sparse table were never
          written. On Linux, which lists these pages, they are skipped, because reading a page would allocate it.
          If more than MAX_COUNTED slots remain, only one block of BLOCK slots in EVERY blocks is counted; the estimate
          is good because hashing spreads features evenly.
Cost      At most about 15 ms for 2**24 slots, once at the end of a run.
Names     w weight | G, N sums of the update rule, see `binary.weight_table`
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np

from ...array_types import Int, UInt32s
from ...binary import gd
from ...kernels.jit import jit

PRESENT = np.uint64(3 << 62)  # bits of an entry of pagemap: in memory, or swapped out
MAX_COUNTED = 1 << 22  # number of slots up to which all are counted
BLOCK, EVERY = 1024, 8  # slots in a block; one block in EVERY is counted


@jit
def count(words: UInt32s, stride: Int, field: Int, begin: Int, end: Int, every: Int, weight: Int, start: Int) -> Int:
    """Count the slots of begin..end-1 whose w, G or N differs from its initial value, sampling one block in `every`.

    Parameters
    ----------
    words : uint32[...], the bits of the table; not written
    stride : distance between slots
    field : distance between w, G and N of a slot
    weight, start : bits of the initial values of w and G; that of N is 0
    """
    used: Int = 0
    for low in range(begin, end, BLOCK * every):
        for i in range(low, min(low + BLOCK, end)):
            at = i * stride
            used += (words[at + field] != start) | (words[at + 2 * field] != 0) | (words[at] != weight)
    return used


def count_used(tables: Sequence[gd.WeightTable], rule: gd.UpdateRule) -> tuple[int, int, bool]:
    """Count the slots in use of all tables, and return that, the number of slots, and whether the count is no estimate.

    The update rule determines the initial values.
    """
    initial = np.array([rule.initial_weight, rule.initial_t if rule.adaptive else 0], np.float32)
    changed = bool(initial.any())  # then the initial values were written to every page
    weight, start = initial.view(np.uint32).tolist()
    runs = [[(0, int(table.mask) + 1)] if changed else _runs(table) for table in tables]
    every = 1 if sum(end - begin for table_runs in runs for begin, end in table_runs) <= MAX_COUNTED else EVERY
    counted = 0
    for table, table_runs in zip(tables, runs, strict=True):
        for begin, end in table_runs:
            stride, field = int(table.stride), int(table.field)
            counted += count(table.flat.view(np.uint32), stride, field, begin, end, every, weight, start)
    return int(counted) * every, sum(int(table.mask) + 1 for table in tables), every == 1


def _runs(table: gd.WeightTable) -> list[tuple[int, int]]:
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


def line(tables: Sequence[gd.WeightTable], rule: gd.UpdateRule) -> str:
    """Return the line of the summary about the slots in use."""
    count, total, exact = count_used(tables, rule)
    return f"slots in use = {'' if exact else 'about '}{count} of {total} ({100 * count / total:.1f}%)"
