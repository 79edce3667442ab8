"""exp, expf, exp32 and log against libm, over their whole range."""

import ctypes
import ctypes.util
import math
import platform

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xclass.kernels import fast_math


@given(st.floats(-700, 700))
def test_exp_is_right_to_the_last_digits(x):
    assert math.isclose(fast_math.exp(x), math.exp(x), rel_tol=1e-15)


def test_exp_stays_finite_and_positive_outside_its_range():
    assert 0 < fast_math.exp(-1e9) < 1e-300
    assert 1e300 < fast_math.exp(1e9) < math.inf


@given(st.floats(1e-300, 1e300))
def test_log_is_right_to_the_last_digits(x):
    assert math.isclose(fast_math.log(x), math.log(x), rel_tol=1e-15, abs_tol=1e-15)


def test_log_near_one_keeps_its_digits():
    for x in 1 + np.linspace(-1e-6, 1e-6, 201):
        assert math.isclose(fast_math.log(x), math.log(x), rel_tol=1e-12, abs_tol=1e-22)


@given(st.floats(-110, 100, width=32))
def test_expf_is_right_to_the_last_place(x):
    with np.errstate(over="ignore"):
        want = np.float32(math.exp(x))
        assert np.nextafter(want, np.float32(0)) <= fast_math.expf(np.float32(x)) <= np.nextafter(want, np.inf)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library may round in another way")
def test_expf_is_that_of_the_c_library():
    c_expf = ctypes.CDLL(ctypes.util.find_library("m")).expf
    c_expf.restype, c_expf.argtypes = ctypes.c_float, [ctypes.c_float]
    x = np.random.default_rng(0).normal(0, 5, 20000).astype(np.float32)
    values = [float(fast_math.expf(number)) for number in x]
    assert sum(a != c_expf(float(b)) for a, b in zip(values, x, strict=True)) <= 1
    assert sum(np.float32(math.exp(b)) != np.float32(a) for a, b in zip(values, x, strict=True)) > 1  # what it is for


def test_expf_outside_the_range_of_single_precision():
    assert fast_math.expf(np.float32(-1e30)) == 0 and fast_math.expf(np.float32(1e30)) == math.inf


@given(st.floats(-86, 87, width=32))
def test_exp32_is_right_to_single_precision(x):
    assert math.isclose(fast_math.exp32(np.float32(x)), math.exp(x), rel_tol=3e-7)


def test_exp32_stays_finite_and_positive_outside_its_range():
    assert 0 < fast_math.exp32(np.float32(-1e30)) < 1e-37
    assert 1e38 < fast_math.exp32(np.float32(1e30)) < math.inf
