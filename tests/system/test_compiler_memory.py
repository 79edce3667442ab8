"""LLVM's code leaves the memory of the process, and is read again when a kernel is compiled after that."""

import subprocess
import sys

import pytest

RELEASED = """
import re
import numba

def resident():
    pages = 0
    for segment in re.split(r"\\n(?=[0-9a-f]+-[0-9a-f]+ )", open("/proc/self/smaps").read()):
        if "libllvmlite" in segment and " r-xp " in segment:
            pages += int(re.search(r"Rss: +(\\d+)", segment)[1])
    return pages

from xclass.system import memory
before = numba.njit(lambda x: x + 1)(1)
full = resident()
memory.release_compiler()
print(full, resident(), before + numba.njit(lambda x: x + 2)(1))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has /proc")
def test_code_leaves_memory_and_comes_back():
    result = subprocess.run([sys.executable, "-c", RELEASED], capture_output=True, text=True, timeout=120, check=True)
    full, released, total = (int(word) for word in result.stdout.split())
    assert released < full / 4
    assert total == 5
