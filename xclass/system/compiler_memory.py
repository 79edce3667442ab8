"""Release the memory that the code of the compiler takes while no kernel is compiled or loaded.

A run needs LLVM's code (50 MB) for moments only: to compile kernels, or to load compiled ones. Its pages are copies of
the file, so the system reads them again when they are used.
"""

from __future__ import annotations

import contextlib

LIBRARY = "libllvmlite"
DONT_NEED = 4  # MADV_DONTNEED of Linux


def release() -> None:
    """Tell the system that the pages of LLVM's code are not needed now; do nothing where there is no /proc."""
    import ctypes

    with contextlib.suppress(OSError, ValueError, AttributeError):
        library = ctypes.CDLL(None)
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
            for line in maps:
                # only code: the linker has changed pages of the other segments
                if LIBRARY in line and " r-xp " in line:
                    begin, end = (int(word, 16) for word in line.split(maxsplit=1)[0].split("-"))
                    library.madvise(ctypes.c_void_p(begin), ctypes.c_size_t(end - begin), DONT_NEED)
