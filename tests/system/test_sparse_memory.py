"""Tables take the memory that is used of them."""

import os
import sys

import numpy as np
import pytest

from xclass.system import sparse_memory


def resident() -> int:
    """Return the bytes of memory that this process has."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize("size", [5, 1000, 1 << 20, 3 << 20])
def test_zeros_begin_with_a_cache_line(size):
    array = sparse_memory.zeros(size)
    assert array.shape == (size,) and array.dtype == np.uint32 and not array.any()
    assert array.ctypes.data % 64 == 0


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux alone is asked")
def test_an_array_takes_the_memory_of_its_pages_that_were_written():
    array = sparse_memory.zeros(64 << 18)  # 64 MB
    before = resident()
    array[:: 1 << 18] = 1  # a number in each MB
    assert resident() - before < 8 << 20
