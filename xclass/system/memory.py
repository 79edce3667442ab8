"""Determine how much memory this process can still allocate.

The free memory of the machine comes from /proc/meminfo if it exists, else from sysconf.
"""

from __future__ import annotations

import os

from . import address_space


def available() -> int | None:
    """Return the number of bytes that this process can still allocate, or None if it is not known."""
    bounds = [bound for bound in (_free_memory(), address_space.remaining()) if bound is not None]
    return min(bounds, default=None)


def _free_memory() -> int | None:
    try:
        with open("/proc/meminfo", encoding="ascii") as f:
            for line in f:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return None
