"""Determine how much memory this process takes and can still allocate, and release what it does not need.

The free memory of the machine comes from /proc/meminfo, which only Linux has.

LLVM, which compiles the kernels, and the threads of BLAS abort the process without a message of xclass if a limit of
the address space (`ulimit -v`) leaves them too little. The space that they need is therefore compared with the limit
beforehand. A run needs LLVM's code (50 MB) for moments only: to compile kernels, or to load compiled ones. Its pages
are copies of the file, so the system reads them again when they are used.
"""

from __future__ import annotations

import contextlib
import os
import sys

from ..errors import XclassError

# In bytes, measured on Linux x86-64 with Python 3.11 and numba 0.68; see docs/defaults.md.
COMMAND = 150 << 20  # needed by the help, in addition to a bare Python
RUN = 1100 << 20  # needed by a run, in addition to that
THREADS = 750 << 20  # part of RUN that is needed after the learner is built: kernels, threads and their heaps

COMPILER = "libllvmlite"
DONT_NEED = 4  # MADV_DONTNEED of Linux


def available() -> int | None:
    """Return the number of bytes that this process can still allocate, or None if it is not known."""
    bounds = [bound for bound in (_free_memory(), remaining()) if bound is not None]
    return min(bounds, default=None)


def _free_memory() -> int | None:
    with contextlib.suppress(OSError), open("/proc/meminfo", encoding="ascii") as file:
        for line in file:
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return None


def taken() -> int:
    """Return the bytes of memory that this process takes now; where that is not known, the most that it has taken."""
    return _size(1) or peak()


def peak() -> int:
    """Return the most bytes of memory that this process has taken."""
    import resource

    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def _size(field: int) -> int | None:
    """Return the address space (0) or the memory (1) that this process takes, in bytes, None if it is not known."""
    with contextlib.suppress(OSError, ValueError, IndexError), open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[field]) * os.sysconf("SC_PAGE_SIZE")
    return None


def check_address_space(needed: int, later: int = 0, remedy: str = "") -> None:
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
    return _size(0) or 0


def release_compiler() -> None:
    """Tell the system that the pages of LLVM's code are not needed now; do nothing where there is no /proc."""
    import ctypes

    with contextlib.suppress(OSError, ValueError, AttributeError):
        library = ctypes.CDLL(None)
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
            for line in maps:
                # only code: the linker has changed pages of the other segments
                if COMPILER in line and " r-xp " in line:
                    begin, end = (int(word, 16) for word in line.split(maxsplit=1)[0].split("-"))
                    library.madvise(ctypes.c_void_p(begin), ctypes.c_size_t(end - begin), DONT_NEED)
