"""Count the processors that this process may use, which a container, `taskset` or `--threads` may restrict."""

from __future__ import annotations

import os

from . import thread_limit


def count() -> int:
    try:
        allowed = len(os.sched_getaffinity(0)) or 1
    except (AttributeError, OSError):  # sched_getaffinity is missing on macOS and Windows
        allowed = os.cpu_count() or 1
    return min(allowed, thread_limit.most() or allowed)
