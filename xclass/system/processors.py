"""How many processors this process may use: what a container or `taskset` leaves it, not what the machine has."""

from __future__ import annotations

import os


def count() -> int:
    """At least 1."""
    try:
        return len(os.sched_getaffinity(0)) or 1
    except (AttributeError, OSError):  # not everywhere
        return os.cpu_count() or 1
