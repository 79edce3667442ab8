"""Nothing that moves a cursor, forges a line or reorders text reaches a terminal, whatever the names are."""

import unicodedata

import pytest
from command import learn, xclass
from hypothesis import given
from hypothesis import strategies as st

from xclass.system.printable import printable

ESC = "\x1b[31m"
DATA = "1 | a\n2 | b\n3 | c\n"


@given(st.text(st.characters()))
def test_what_is_shown_is_printable_and_can_be_encoded(text):
    escaped = printable(text)
    assert all(c.isprintable() or unicodedata.category(c) == "Zs" for c in escaped)
    escaped.encode("utf-8")
    assert printable(escaped) == escaped


@pytest.mark.parametrize(
    "words",
    [
        ["missing" + ESC],
        ["-d", "d.vw", "-i", "missing" + ESC],
        ["-d", "d.vw", "--oaa", ESC],
        ["-d", "d.vw", "--loss_function", ESC],
        ["-d", "d.vw", "--" + ESC],
        ["-d", "d.vw", "-f", f"no{ESC}/where"],
        ["-d", "d.vw", "--named_labels", f"a{ESC},a{ESC}"],
        ["-d", "d.vw", "--named_labels", "@" + ESC],
        ["-d", "d.vw", "--cpt", "3", "--cpt_tree", "tree" + ESC],
        ["two\nxclass: done\x1b"],
    ],
)
def test_errors_escape_the_words_of_a_command_line(tmp_path, words):
    (tmp_path / "d.vw").write_text(DATA)
    result = xclass(*words, cwd=tmp_path)
    assert result.status != 0
    assert "\x1b" not in result.err
    assert "\\x1b" in result.err
    assert result.err.count("\n") == 1


def test_a_whole_run_escapes_names_of_files(tmp_path):
    data, model = f"data{ESC}\n.vw", f"model\u202e{ESC}"
    (tmp_path / data).write_text(DATA)
    result = learn("-d", data, "--oaa", "3", "-b", 8, "-f", model, "-p", "out\x07", cwd=tmp_path)
    assert {data, model, "out\x07"} <= {path.name for path in tmp_path.iterdir()}
    assert not set("\x1b\x07\u202e") & set(result.err)
    assert "Data: data\\x1b[31m\\n.vw" in result.err


def test_a_malformed_line_is_told_with_the_name_escaped(tmp_path):
    (tmp_path / f"d{ESC}").write_text("1 | a\nx y z | b\n")
    result = xclass("-d", f"d{ESC}", "--oaa", "3", "-b", 8, cwd=tmp_path)
    assert result.status == 1
    assert "\x1b" not in result.err
    assert "xclass: d\\x1b[31m:2:" in result.err


def test_names_of_classes_are_escaped_in_the_table_and_the_tree_and_are_bytes_in_predictions(tmp_path):
    text = "\x7fone | a\n\x9btwo | b\nthree | c\n".encode()
    (tmp_path / "d.vw").write_bytes(text)
    result = learn("-d", "d.vw", "--cpt", 3, "-b", 8, "--learn_names", "-p", "stdout", "-f", "m", cwd=tmp_path)
    assert not set("\x7f\x9b") & set(result.err)
    assert "\\x7fone" in result.err
    tree_run = learn("-t", "-i", "m", "--no_stdin", "--print_tree", "stdout", "--quiet", cwd=tmp_path)
    assert "\\x7fone" in tree_run.out
    assert "\\x9btwo" in tree_run.out
    assert not set("\x7f\x9b") & set(tree_run.out)
    predicted = learn("-t", "-i", "m", "d.vw", "-p", "stdout", "--quiet", cwd=tmp_path)
    assert set(predicted.lines) <= {"\x7fone", "\x9btwo", "three"}
