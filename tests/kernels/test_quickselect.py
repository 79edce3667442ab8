"""The best of many items come first, the others behind, and nothing else moves."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from xclass.kernels import quickselect


@settings(max_examples=80, deadline=None)
@given(
    worth=st.lists(st.sampled_from([0.0, -1.0, 1.0, 2.5, -3.0, 7.0]), min_size=1, max_size=60),
    data=st.data(),
)
def test_selection_puts_the_best_first(worth, data):
    n = len(worth)
    start = data.draw(st.integers(0, n - 1))
    end = data.draw(st.integers(start + 1, n))
    middle = data.draw(st.integers(start, end))
    item = np.arange(n)[::-1].copy()
    before = item.copy()
    quickselect.select(item, start, end, middle, np.array(worth))
    assert item[:start].tolist() == before[:start].tolist()
    assert item[end:].tolist() == before[end:].tolist()
    ranked = sorted(before[start:end].tolist(), key=lambda i: (-worth[i], i))
    assert sorted(item[start:middle].tolist()) == sorted(ranked[: middle - start])
    assert sorted(item[middle:end].tolist()) == sorted(ranked[middle - start :])
