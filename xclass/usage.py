"""How full the weight tables are: slots in use, so that a user can choose -b.

A slot is in use once its weight, G or N differs from what it started at. Tables of which little is in use lie mostly on
pages of memory that were never written; where the system tells which (Linux), those are not looked at, for
looking at a page would take it from the machine.

Cost      about 1 ns per slot on pages in use: 20 ms for a full table of 2**24 slots, once, at the end of a run.
"""

from __future__ import annotations

import os

import numpy as np

from . import learner
from .jit import jit

PAGE = 4096
PRESENT = np.uint64(3 << 62)  # bits of an entry of pagemap: in memory, or swapped out


@jit
def count_used(flat, stride, field, slots, offset, page_bytes, pages, weight, start):
    """Slots whose w, G or N is not `weight`, `start` and 0.

    Parameters
    ----------
    offset : bytes from the begin of the first page to the table
    pages : bool[...], pages that are in use; empty where that is not known
    """
    size = 4 * stride
    used = 0
    s = 0
    while s < slots:
        end = slots
        if len(pages) > 0:
            page = (offset + s * size) // page_bytes
            end = min(slots, ((page + 1) * page_bytes - offset + size - 1) // size)
            if not pages[page]:
                s = end
                continue
        for i in range(s, end):
            at = i * stride
            used += (flat[at + field] != start) | (flat[at + 2 * field] != 0) | (flat[at] != weight)
        s = end
    return used


def used(tables: list[learner.Table], rule: learner.Rule) -> tuple[int, int]:
    """Return how many slots are in use, and how many there are."""
    total = found = 0
    start = np.float32(rule.initial_t if rule.adaptive else 0)
    for table in tables:
        slots, stride = int(table.mask) + 1, int(table.stride)
        address, size = table.flat.ctypes.data, slots * stride * 4
        whole = rule.initial_weight != 0 or start != 0  # every page was written
        page = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else PAGE
        pages = np.empty(0, bool) if whole else _pages_in_use(address, size, page)
        found += count_used(
            table.flat, stride, int(table.field), slots, address % page, page, pages, rule.initial_weight, start
        )
        total += slots
    return int(found), total


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
    return (entries & PRESENT) != 0


def line(tables: list[learner.Table], rule: learner.Rule) -> str:
    """What the summary says."""
    found, total = used(tables, rule)
    return f"slots in use = {found} of {total} ({100 * found / total:.1f}%)"
