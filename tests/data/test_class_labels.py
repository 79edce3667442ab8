"""What the label of a class is: the kernel and the function in Python agree, and equal names have one key."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import xclass
from xclass.api import model_contents
from xclass.data import class_names
from xclass.data.class_names import MOST_BYTES, MOST_NUMBER, NEGATIVE, NO_NUMBER, OTHER_FORM, key_of, number_of, spelled

NUMBERS = st.from_regex(r"[+-]?[0-9]{0,19}(\.[0-9]{0,3})?([eE][+-]?[0-9]{0,2})?", fullmatch=True)
WRITTEN = NUMBERS | st.text("0123456789.+-e x", max_size=8)


@given(WRITTEN)
@example("")
@example("٣")
def test_the_kernel_reads_what_python_reads(text):
    raw = text.encode()
    data = np.frombuffer(bytearray(raw + b" " * 8), np.uint8)
    assert class_names.class_number(data, 0, len(raw)) == number_of(text)


@given(st.integers(0, MOST_NUMBER - 1), st.sampled_from(["", ".", ".0", ".000", "e0", ".e+00", ".0E0"]))
def test_what_is_a_number_is_written_in_one_way(number, decimals):
    assert number_of(f"{number}{decimals}") == number
    assert number_of(f"0{number}{decimals}") == number_of(f"+{number}") == OTHER_FORM
    assert number_of(f"-{number}") == (NEGATIVE if number else OTHER_FORM)
    others = ("{}.5", "{}e", "{}e+", "{}e-1", "{}e0x", "{}.5e0", "{}e10", "x{}")
    assert [number_of(text.format(number)) for text in others] == [NO_NUMBER] * len(others)


@given(st.integers(0, 2**31))
def test_a_number_with_an_exponent_is_that_in_digits(number):
    assert number_of(f"{number:.18e}") == number_of(f"{number:.9E}") == number_of(f"{number}.0e0") == number


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


LONGEST, TOO_LONG = "n" * MOST_BYTES, "n" * (MOST_BYTES + 1)


@pytest.mark.parametrize(
    "file, line",
    [
        ("t.vw", "{} | x\n"),
        ("t.jsonl", '{{"label": "{}", "text": "x"}}\n'),
        ("t.csv", "{},x\n"),
        ("t.ft", "__label__{} x\n"),
        ("t.svm", "{} 1:1\n"),
        ("lists.vw", "tea,{} | x\n"),
    ],
)
def test_a_file_in_any_format_has_names_of_at_most_4096_bytes(tmp_path, file, line):
    names = ["tea", "beer", "coffee", LONGEST, TOO_LONG]
    path = tmp_path / file
    path.write_text(("label,text\n" if file == "t.csv" else "") + "".join(map(line.format, names)))
    learner = xclass.Learner("multilabel" if file == "lists.vw" else "oaa", classes=9, learn_names=True, bits=10)
    with pytest.raises(xclass.DataError, match=r":[56]:[0-9]+: the name of a class .* has more than 4096 bytes"):
        learner.learn_file(path)
    assert LONGEST in learner.classes and TOO_LONG not in learner.classes


def test_a_program_a_list_of_names_and_a_model_have_names_of_at_most_4096_bytes(tmp_path):
    learner = xclass.Learner("oaa", classes=3, learn_names=True, bits=10)
    learner.learn_many(["| a", "| b"], ["tea", LONGEST])
    learner.save(tmp_path / "model.bin")
    assert xclass.load(tmp_path / "model.bin").classes == ["tea", LONGEST]
    bound = "at most 4096 bytes, and this one has 4097"
    with pytest.raises(xclass.DataError, match=bound):
        learner.learn_many(["| c"], [TOO_LONG])
    with pytest.raises(xclass.UsageError, match=bound):
        xclass.Learner("oaa", classes=2, named_labels=f"tea,{TOO_LONG}")
    contents = learner.core.contents()
    strange = contents._replace(options={**contents.options, "named_labels": f"tea,{TOO_LONG}"})
    model_contents.save(str(tmp_path / "strange.bin"), lambda: strange)
    with pytest.raises(xclass.ModelError, match=bound):
        xclass.load(tmp_path / "strange.bin")
