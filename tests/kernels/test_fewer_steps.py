"""Steps of numba that are left out have nothing to do for the kernels of this package."""

import subprocess
import sys

import pytest
from numba.core import typed_passes, untyped_passes

from xclass.kernels import fewer_steps

KERNELS = """
import importlib, pkgutil
import xclass
from xclass.kernels import jit
for module in pkgutil.walk_packages(xclass.__path__, "xclass."):
    if "__main__" not in module.name:
        importlib.import_module(module.name)
import dis
from types import CodeType
for function in jit._marked:
    code = function.__code__
    found = {line.opname for line in dis.get_instructions(code)} | set(code.co_names)
    if any(isinstance(constant, CodeType) for constant in code.co_consts):
        found.add("a function or comprehension")
    print(function.__module__, function.__name__, *found, sep=",")
"""
# a closure or comprehension, a context, a generator, and literals
UNWANTED = {
    "a function or comprehension", "LIST_APPEND", "SET_ADD", "MAP_ADD", "MAKE_FUNCTION", "BEFORE_WITH", "YIELD_VALUE",
    "literally", "literal_unroll", "reduce", "stencil",
}  # fmt: skip


def test_no_kernel_contains_what_the_passes_look_for():
    result = subprocess.run([sys.executable, "-c", KERNELS], capture_output=True, text=True, check=True)
    kernels = [line.split(",") for line in result.stdout.splitlines()]
    assert len(kernels) > 300
    assert [kernel for kernel in kernels if UNWANTED & set(kernel)] == []


@pytest.mark.parametrize("name", sorted(fewer_steps.UNNEEDED))
def test_numba_has_the_passes_that_are_left_out(name):
    assert hasattr(untyped_passes, name) or hasattr(typed_passes, name)
