"""Check that a limit of the address space (`ulimit -v`) leaves enough for native code.

LLVM, which compiles the kernels, and the threads of BLAS abort the process without a message of xclass if they get no
more address space. The space that they need is therefore compared with the limit beforehand.
"""

from __future__ import annotations

import os

from ..errors import XclassError

# In bytes, measured on Linux x86-64 with Python 3.11 and numba 0.68; see docs/defaults.md.
COMMAND = 150 << 20  # needed by the help, in addition to a bare Python
RUN = 1100 << 20  # needed by a run, in addition to that
THREADS = 750 << 20  # part of RUN that is needed after the learner is built: kernels, threads and their heaps


def check(needed: int, later: int = 0, remedy: str = "") -> None:
    """Raise XclassError if the limit leaves fewer than `needed` bytes.

    The message recommends a limit with `later` bytes more, and ends with `remedy`.
    """
    limit = _limit()
    if limit is None or _used() + needed <= limit:
        return
    total = _used() + needed + later
    raise XclassError(
        f"the address space is limited to {limit >> 20:,} MB, and this run needs about {total >> 20:,} MB: raise the "
        f"limit, `ulimit -v {total >> 10}`, or remove it, `ulimit -v unlimited`{remedy}"
    )


def remaining() -> int | None:
    """Return the bytes that are left for weight tables, or None if there is no limit."""
    limit = _limit()
    return None if limit is None else max(0, limit - _used() - THREADS)


def _limit() -> int | None:
    try:
        import resource
    except ImportError:  # Windows
        return None
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return None if limit == resource.RLIM_INFINITY else limit


def _used() -> int:
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0
