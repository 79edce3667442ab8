"""Create arrays of which a run may use a small part only.

NumPy asks Linux for huge pages (2 MB) for large arrays. A table of which a few places are used, all over it, would then
take all of its memory; with small pages (4 kB) it takes what is used. Learning with tagged words takes the same time.
"""

from __future__ import annotations

import contextlib
import mmap

import numpy as np

from ..array_types import UInt32s

LINE_NUMBERS = 16  # uint32 of a cache line
LARGE = 1 << 22  # bytes of arrays for which NumPy asks for huge pages


def zeros(size: int) -> UInt32s:
    """Return uint32[size], zeros, that begin with a cache line and, on Linux, are kept in small pages."""
    allocated = np.zeros(size + LINE_NUMBERS, np.uint32)
    _refuse_huge_pages(allocated)
    skip = -allocated.ctypes.data // 4 % LINE_NUMBERS
    return allocated[skip : skip + size]


def _refuse_huge_pages(array: UInt32s) -> None:
    """Ask Linux to keep the whole pages of an array small; other systems are left alone."""
    if array.nbytes < LARGE or not hasattr(mmap, "MADV_NOHUGEPAGE"):
        return
    import ctypes

    begin = -(-array.ctypes.data // mmap.PAGESIZE) * mmap.PAGESIZE
    length = (array.ctypes.data + array.nbytes) // mmap.PAGESIZE * mmap.PAGESIZE - begin
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).madvise(ctypes.c_void_p(begin), ctypes.c_size_t(length), mmap.MADV_NOHUGEPAGE)
