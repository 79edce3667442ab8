"""Count the processors that this process may use, which a container or `taskset` may restrict."""

from __future__ import annotations

import os


def count() -> int:
    """Return the number of processors that this process may use, at least 1."""
    try:
        return len(os.sched_getaffinity(0)) or 1
    except (AttributeError, OSError):  # sched_getaffinity is missing on macOS and Windows
        return os.cpu_count() or 1
