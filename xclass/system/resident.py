"""Determine how much memory this process takes."""

from __future__ import annotations

import os
import resource
import sys


def size() -> int:
    """Return the bytes of memory that this process takes now; where that is not known, the most that it has taken."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024
