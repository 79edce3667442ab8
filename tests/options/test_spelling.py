"""How interfaces name options in messages."""

from __future__ import annotations

import pickle

import pytest

from xclass.errors import UsageError
from xclass.options.spelling import Spelling


def names() -> dict[str, str]:
    return {"-b": "bits", "--oaa": "oaa", "--oaa N": "classes", "--sgd": "sgd"}


@pytest.mark.parametrize(
    ("message", "spelled"),
    [
        ("-b 99: give --sgd.", "bits 99: give sgd."),
        ("--oaa 3, or --oaa", "classes 3, or oaa"),
        ("--oaa.model, -b/x, x--sgd and '--sgd'", "--oaa.model, -b/x, x--sgd and '--sgd'"),
        ("--other", "--other"),
    ],
)
def test_flags_become_names_and_paths_and_quotations_stay(message, spelled):
    assert Spelling(names)(message) == spelled


def test_the_outermost_interface_names_the_options_of_an_error():
    with pytest.raises(UsageError) as caught, Spelling(lambda: {"--sgd": "outer"}), Spelling(names):
        raise UsageError("--sgd", "--oaa 3")
    assert str(caught.value) == "outer\n--oaa 3"
    assert caught.value.args == ("--sgd", "--oaa 3")


def test_an_error_keeps_its_names_in_another_process():
    error = UsageError("--sgd")
    error.spelling = Spelling(names)
    assert str(pickle.loads(pickle.dumps(error))) == "sgd"
