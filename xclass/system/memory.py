"""How much memory a process may take.

Source    /proc/meminfo where there is one, else sysconf.
"""

from __future__ import annotations

import os

from . import address_space


def available() -> int | None:
    """Bytes this process may still take, or None where the machine does not tell."""
    bounds = [bound for bound in (_free_memory(), address_space.left()) if bound is not None]
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
