"""Refuse a limit of the address space (`ulimit -v`) that native code would run into.

LLVM, which compiles the kernels, and the threads of BLAS end the process where the system gives them no more address
space, and no message of ours could come after that. So what they need is compared with the limit before.

Figures   peak in MB with small tables, on Linux x86-64 with Python 3.11 and numba 0.68, every reduction and 2 to 32
          processors: 550 to 1,010 with kernels that were compiled before, 815 to 925 where they are compiled. Of these
          150 are taken when the command begins and 350 when the learner is built.
"""

from __future__ import annotations

import os

from ..errors import XclassError

COMMAND = 150 << 20  # bytes: what a bare Python takes more to show the help
RUN = 950 << 20  # what a run takes more than that
THREADS = 750 << 20  # what is still to come of it when the learner is built: kernels, threads and their heaps


def check_command() -> None:
    """Make sure that there is room for numpy; XclassError where not."""
    _check(COMMAND, COMMAND + RUN, "")


def check_run() -> None:
    """Make sure that there is room for the compiler and for small tables; XclassError where not."""
    _check(RUN, RUN, "")


def check_threads() -> None:
    """Make sure that a learner that is built leaves enough room for its threads; XclassError where not."""
    _check(THREADS, THREADS, ", or give a smaller -b")


def left() -> int | None:
    """Return the bytes that are left for tables, None where there is no limit."""
    limit = _limit()
    return None if limit is None else max(0, limit - _used() - THREADS)


def _check(more: int, whole: int, cure: str) -> None:
    limit = _limit()
    if limit is None or _used() + more <= limit:
        return
    needed = _used() + whole
    raise XclassError(
        f"the address space is limited to {limit >> 20:,} MB, and this run needs about {needed >> 20:,} MB: raise the "
        f"limit, `ulimit -v {needed >> 10}`, or remove it, `ulimit -v unlimited`{cure}"
    )


def _limit() -> int | None:
    try:
        import resource
    except ImportError:  # not on every system
        return None
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return None if limit == resource.RLIM_INFINITY else limit


def _used() -> int:
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0
