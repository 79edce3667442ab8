"""Determine how much memory this process takes, and how much it can still allocate.

The free memory of the machine comes from /proc/meminfo, which only Linux has.
"""

from __future__ import annotations

import contextlib
import os
import sys

from . import address_space


def available() -> int | None:
    """Return the number of bytes that this process can still allocate, or None if it is not known."""
    bounds = [bound for bound in (_free_memory(), address_space.remaining()) if bound is not None]
    return min(bounds, default=None)


def _free_memory() -> int | None:
    with contextlib.suppress(OSError), open("/proc/meminfo", encoding="ascii") as file:
        for line in file:
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return None


def taken() -> int:
    """Return the bytes of memory that this process takes now; where that is not known, the most that it has taken."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024
