"""How interfaces name options in messages."""

import ast
import pickle
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import xclass
from xclass.errors import DataError, UsageError, XclassError
from xclass.options.spelling import Spelling

PACKAGE = Path(xclass.__file__).parent


def names(complete: bool) -> dict[str, str]:
    return {"-b": "bits", "--oaa": "oaa", "--oaa N": "classes", "--oaa K": "oaa(K)", "--sgd": "sgd"}


@pytest.mark.parametrize(
    ("message", "spelled"),
    [
        ("-b 99: give --sgd.", "bits 99: give sgd."),
        ("--oaa 3, or --oaa", "classes 3, or oaa"),
        ("--oaa K, --oaa Kb, --sgd K, --other K", "oaa(K), oaa Kb, sgd K, --other K"),
        ("--oaa.model, -b/x, x--sgd and '--sgd'", "--oaa.model, -b/x, x--sgd and '--sgd'"),
        ("--other", "--other"),
    ],
)
def test_flags_become_names_and_paths_and_quotations_stay(message, spelled):
    assert Spelling(names)(message) == spelled


@given(
    st.lists(st.sampled_from(["--sgd", "-b", "--oaa 3", " ", ": ", ":", "'", '"', "\\", "/", "...", "a"])).map("".join)
)
def test_texts_of_data_are_never_taken_for_flags(text):
    spelling = Spelling(names)
    assert spelling(f"--sgd: {text!r} is not -b") == f"sgd: {text!r} is not bits"
    assert spelling(f"text {text!r} is not -b") == f"text {text!r} is not bits"
    path = "./" + "".join(c for c in text if c not in "'\":")
    assert spelling(f"{path}:3:1: label {text!r}; give --sgd") == f"{path}:3:1: label {text!r}; give sgd"


def test_a_message_begins_with_a_flag_or_has_none_before_its_first_colon():
    """Else the flag would be a part of the place. Messages of `cli` are left out, because flags are its names."""
    wrong = re.compile(r"(?!-)((?!: ).)*(?<![\w/'-])--?[A-Za-z]((?!: ).)*: ")
    messages = []
    for path in set(PACKAGE.rglob("*.py")) - set(PACKAGE.glob("cli/*")):
        for call in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(call, ast.Call) and ast.unparse(call.func).endswith(("Error", "conflict", "notes.append")):
                for message in call.args:
                    parts = getattr(message, "values", [message])  # of an f-string
                    messages.append(
                        "".join(str(part.value) if isinstance(part, ast.Constant) else "x" for part in parts)
                    )
    assert len(messages) > 500 and not list(filter(wrong.match, messages))


def test_a_file_and_a_label_that_look_like_options_stay_in_the_messages_of_a_learner(place):
    (place / "--bits").write_text("--oaa | a\n")
    with xclass.Learner("oaa", classes=2, bits=10, named_labels="a,b") as model, pytest.raises(DataError) as caught:
        model.learn_file("--bits")
    assert str(caught.value).startswith("./--bits:1:1: label '--oaa' is not one of named_labels. ")


def test_values_columns_and_names_that_look_like_options_stay(tmp_path):
    def said(make) -> str:
        with pytest.raises(XclassError) as caught:
            make()
        return str(caught.value)

    assert said(lambda: xclass.Learner("cpt", 3, cpt_tree="--bits")).startswith("./--bits: there is no such file; give")
    assert said(lambda: xclass.Learner("plt", 3, propensity="-b")).startswith("propensity '-b': give two numbers")
    assert said(lambda: xclass.Learner("oaa", 3, ngram="-b")).startswith("ngram '-b': give the longest gram")
    with xclass.Learner("oaa", 3, bits=10, learn_names=True) as model:
        assert "as one word: '--learn_names'. Correct" in said(lambda: model.learn_many("--learn names | a"))
    (tmp_path / "t.csv").write_text("label,a' -b \n1,2\n2,x\n")
    with xclass.Learner("oaa", 3, bits=10) as model:
        message = said(lambda: model.learn_file(tmp_path / "t.csv", column_kind={"a' -b": "number"}))
    assert """the column "a' -b" has the kind""" in message and """column_kind "a' -b:text\"""" in message


def test_the_outermost_interface_names_the_options_of_an_error():
    with pytest.raises(UsageError) as caught, Spelling(lambda _: {"--sgd": "outer"}), Spelling(names):
        raise UsageError("--sgd", "--oaa 3")
    assert str(caught.value) == "outer\n--oaa 3"
    assert caught.value.args == ("--sgd", "--oaa 3")


def test_an_error_keeps_its_names_in_another_process():
    error = UsageError("--sgd")
    error.spelling = Spelling(names)
    assert str(pickle.loads(pickle.dumps(error))) == "sgd"
