"""Let OpenBLAS, which computes NumPy's linear algebra, use one thread for a while.

How OpenBLAS divides a decomposition among threads changes the last bits of its result. Wheels of NumPy contain it. If
NumPy uses another library, nothing is limited, and equal bytes need equal settings of that library.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

FOLDERS = ("../numpy.libs", ".dylibs", "../numpy/.libs")  # of wheels for Linux and Windows, for macOS, and older ones
NAMES = ("scipy_openblas_{}64_", "scipy_openblas_{}", "openblas_{}64_", "openblas_{}")
_lock = threading.Lock()


@functools.cache
def _functions() -> tuple[Callable[[], int], Callable[[int], None]] | None:
    """Return the functions that tell and set the number of threads, None if OpenBLAS is not found."""
    home = Path(np.__file__).parent
    for path in (path for folder in FOLDERS for path in sorted((home / folder).glob("*openblas*"))):
        with contextlib.suppress(OSError):
            library = ctypes.CDLL(str(path))
            for name in NAMES:
                if hasattr(library, name.format("set_num_threads")):
                    return getattr(library, name.format("get_num_threads")), getattr(
                        library, name.format("set_num_threads")
                    )
    return None


@contextlib.contextmanager
def one() -> Iterator[bool]:
    """Limit OpenBLAS to one thread until the context ends; yield whether it could be limited.

    The number is that of the process, so calls of other threads of the program are limited meanwhile.
    """
    functions = _functions()
    if functions is None:
        yield False
        return
    tell, limit = functions
    with _lock:
        before = tell()
        limit(1)
        try:
            yield True
        finally:
            limit(before)
