"""Losses: the slope is the derivative, the invariant step is the limit of small ones, lanes equal scalars."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xclass.binary import loss

F = np.float32
MARGINS = st.floats(-20, 20, width=32)
SIGNS = st.sampled_from([F(-1), F(1)])
ALL = sorted(loss.CODES.values())


def value(kind, p, y):
    return loss.value(kind, F(0.3), F(p), F(y), F(-50), F(50))


@pytest.mark.parametrize("kind", ALL)
@given(p=st.floats(-5, 5, width=32), y=SIGNS)
def test_squared_slope_is_the_square_of_the_derivative(kind, p, y):
    if (kind == loss.HINGE and abs(1 - y * p) < 0.1) or (kind == loss.QUANTILE and abs(y - p) < 0.1):
        return  # a kink
    h = 2.0**-6
    slope = (float(value(kind, p + h, y)) - float(value(kind, p - h, y))) / (2 * h)
    assert math.isclose(loss.squared_slope(kind, F(0.3), F(p), y), slope**2, rel_tol=2e-2, abs_tol=1e-4)


@pytest.mark.parametrize("kind", [kind for kind in ALL if kind != loss.CLASSIC])  # which has plain steps only
@given(p=st.floats(-3, 3, width=32), y=SIGNS, s=st.floats(0.0625, 2, width=32), q=st.floats(0.25, 4, width=32))
def test_invariant_step_is_the_limit_of_many_small_steps(kind, p, y, s, q):
    at, moved, parts = F(p), 0.0, 2000
    small = F(s / parts)
    for _ in range(parts):
        u = float(loss.plain_step(kind, F(0.3), F(at), y, small))
        moved += u
        at = F(float(p) + moved * q)
    # VW's Lambert W is good to 1e-4, and small steps hover around a kink
    assert math.isclose(loss.step(kind, F(0.3), F(p), y, F(s), F(q)), moved, rel_tol=1e-2, abs_tol=5e-3)


@given(
    st.lists(st.tuples(MARGINS, SIGNS, st.floats(2.0**-20, 8, width=32)), min_size=1, max_size=40),
    st.floats(2.0**-20, 4, width=32),
)
def test_lanes_have_the_numbers_of_scalars(lanes, s):
    p, y, q = (np.array(column, np.float32) for column in zip(*lanes, strict=True))
    d, g2, u = (np.empty(len(p), np.float32) for _ in range(3))
    loss.logistic_slopes(p, y, d, g2, len(p))
    loss.logistic_steps(p, y, d, F(s), q, u, len(p))
    for j in range(len(p)):
        nothing = not value(loss.LOGISTIC, p[j], y[j]) > 0
        assert g2[j] == (0 if nothing else loss.squared_slope(loss.LOGISTIC, F(0), p[j], y[j]))
        assert u[j] == loss.step(loss.LOGISTIC, F(0), p[j], y[j], F(s), q[j])


def test_squared_loss_is_linear_outside_the_label_range():
    inside = loss.value(loss.SQUARED, F(0), F(1), F(0), F(0), F(1))
    beyond = loss.value(loss.SQUARED, F(0), F(2), F(0), F(0), F(1))
    assert inside == 1
    assert beyond == 3
