"""The readers of numbers against Python's `float`, in every place of every format."""

import itertools
import random
import re

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from scripts.fuzzing import decimals
from xclass.text import numbers, parser

# the largest float32, the middle above it, the smallest one, half of it, middles between neighbours
EDGES = [
    "3.4028235e38", "340282346638528859811704183484516925440", "340282356779733661637539395458142568447",
    "340282356779733661637539395458142568448", "1e39", "1e400", "-1e400", "1e99999999999999999999",
    "1.401298464324817e-45", "7.006492321624085e-46",
    "7.0064923216240853546186479164495806564013097093825788587853e-46",
    "7.0064923216240853546186479164495806564013097093825788587854e-46", "1e-46", "1e-230", "1e-256", "1e-400",
    "1.1754943e-38", "16777217", "16777217.0000000000001", "16777217.00000001", "16777219", "0.1",
    "1.00000005960464477539062499", "1.000000059604644775390625", "1.00000005960464477539063", "9007199254740993",
    "123456789012345678", "1234567890123456789", "00000000000000000000000000000000000001.5",
    "0.000000000000000000000000000000000000000000001", "1e22", "1e23", "-0", "+0", "-0e9999", "1.", ".5",
    "+.5E+1", "6.646450757947346680e-0114",
]  # fmt: skip


def read(text: str) -> tuple[float, int, int]:
    padded = np.frombuffer(bytearray(text.encode() + b"\n" + bytes(parser.PADDING)), np.uint8)
    return numbers.read_number(padded, 0)


@pytest.mark.parametrize("place", decimals.PLACES)
def test_numbers_as_python_reads_them(place):
    assert decimals.differences(decimals.drawn(random.Random(place), place, 300)) == []
    assert decimals.differences(decimals.Case(place, tuple(EDGES))) == []


@given(st.from_regex(decimals.NUMBER, fullmatch=True, alphabet="0123456789.eE+-") | st.floats(width=32).map(repr))
@example("0" * 30 + "1" * 300 + "e-310")
@example("1" + "0" * 250 + "1e-250")  # a digit far behind that decides
@example("1677721" + "7" + "." + "0" * 250 + "1")
def test_any_decimal_number(text):
    value, end, digits = read(text)
    if text.lstrip("-") in ("inf", "nan"):
        assert (end, digits) == (0, 0)
        return
    with np.errstate(over="ignore"):
        assert np.float32(value).tobytes() == np.float32(float(text)).tobytes()
    assert end == len(text) and digits == sum(c.isdigit() for c in text.lower().partition("e")[0])


@pytest.mark.parametrize("text", decimals.NO_NUMBERS)
def test_what_is_no_number_does_not_end_at_its_end(text):
    assert read(text)[1] < len(text)


@pytest.mark.plain
def test_short_texts_of_digits_points_and_signs():
    draw = random.Random(0)
    texts = ["".join(word) for size in range(1, 5) for word in itertools.product("05.-", repeat=size)]
    texts += [
        "".join(draw.choices("0123456789.-x", [9] * 10 + [6, 1, 1], k=size)) for size in range(5, 11) for _ in range(50)
    ]
    lines = "".join(f"1 | a:{text} b\n" for text in texts).encode()
    padded = np.frombuffer(bytearray(lines + bytes(parser.PADDING)), np.uint8)
    batch, error, _ = parser.Parser(parser.ParserOptions(on_bad_line="skip", noconstant=True), 18, "multiclass").parse(
        padded, len(lines), "d"
    )
    assert error is None
    values = np.where(np.diff(batch.start) == 2, batch.value[batch.start[:-1]], 0)
    read = dict(zip(batch.line.tolist(), values.tolist(), strict=True))
    for line, text in enumerate(texts, 1):
        if re.fullmatch(r"-?([0-9]+\.?[0-9]*|\.[0-9]+)", text):
            assert read[line] == np.float32(float(text)), text
        else:  # an error, or a word
            assert read.get(line, 1) == 1, text


def test_too_large():
    assert numbers.is_too_large(b"3.4028236e38") and numbers.is_too_large(b"-1e400|x")
    assert not numbers.is_too_large(b"3.4028235e38") and not numbers.is_too_large(b"inf")
