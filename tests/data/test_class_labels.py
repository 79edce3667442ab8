"""What the label of a class is: the kernel and the function in Python agree, and equal names have one key."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from xclass.data import class_names
from xclass.data.class_names import MOST_NUMBER, NEGATIVE, NO_NUMBER, OTHER_FORM, key_of, number_of, spelled

WRITTEN = st.from_regex(r"[+-]?[0-9]{0,19}(\.[0-9]{0,3})?", fullmatch=True) | st.text("0123456789.+-e x", max_size=8)


@given(WRITTEN)
@example("")
@example("٣")
def test_the_kernel_reads_what_python_reads(text):
    raw = text.encode()
    data = np.frombuffer(bytearray(raw + b" " * 8), np.uint8)
    assert class_names.class_number(data, 0, len(raw)) == number_of(text)


@given(st.integers(0, MOST_NUMBER - 1), st.sampled_from(["", ".", ".0", ".000"]))
def test_what_is_a_number_is_written_in_one_way(number, decimals):
    assert number_of(f"{number}{decimals}") == number
    assert number_of(f"0{number}{decimals}") == number_of(f"+{number}") == OTHER_FORM
    assert number_of(f"-{number}") == (NEGATIVE if number else OTHER_FORM)
    assert number_of(f"{number}.5") == number_of(f"{number}e0") == number_of(f"x{number}") == NO_NUMBER


@given(st.text(" \t\n_ab\u00a0é", max_size=12))
def test_a_name_and_its_key_are_those_of_bytes(name):
    assert spelled(name).encode() == b" ".join(name.encode().split())
    assert key_of(name).encode() == b"_".join(name.encode().split())
    assert spelled(spelled(name)) == spelled(name) and key_of(spelled(name)) == key_of(name) == key_of(key_of(name))


@pytest.mark.parametrize(
    ("label", "name"),
    [(1, "1"), (1.0, "1"), (np.float32(3), "3"), (1.5, "1.5"), (2.0**70, str(2**70)), (np.inf, "inf"), (True, "True")],
)
def test_equal_numbers_have_one_name(label, name):
    assert spelled(label) == name
