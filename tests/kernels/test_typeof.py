"""numba determines the types of arrays as before, where it does not look for masked ones."""

import sys

import numba
import numpy as np
import pytest
from numba.core.errors import NumbaTypeError

from xclass.kernels import jit

ARRAYS = [
    np.zeros(3, np.float32),
    np.zeros((2, 3), np.uint8, order="F"),
    np.zeros((4, 6), bool)[::2, ::3],
    np.zeros(2, np.int64).view(),
    np.frombuffer(b"abcd", np.uint8),  # cannot be written to
    np.zeros(2, [("a", np.int32)]),
    np.zeros(2, np.complex64),
]


@pytest.mark.parametrize("array", ARRAYS, ids=lambda array: f"{array.dtype} {array.flags.num}")
def test_arrays_have_the_same_types_whether_or_not_masked_ones_are_possible(array, monkeypatch):
    jit.activate(hide_scipy=False)
    monkeypatch.setitem(sys.modules, "numpy.ma", np.ma)
    before = numba.typeof(array)
    monkeypatch.delitem(sys.modules, "numpy.ma")
    assert numba.typeof(array) == before


def test_masked_arrays_are_still_refused():
    jit.activate(hide_scipy=False)
    with pytest.raises(NumbaTypeError, match="MaskedArray"):
        numba.typeof(np.ma.zeros(3))
