"""Output to a terminal: nothing in the data may move the cursor or change the display."""

import ast
import io
import json
import re
import sys
import warnings
from pathlib import Path

import pytest
from command import learn, on_a_terminal

import xclass
from xclass.errors import DataError, XclassWarning
from xclass.system import terminal
from xclass.system.terminal import TerminalOutput


def test_control_characters_are_escaped():
    file = io.BytesIO()
    output = TerminalOutput(file)
    for part in (b"a\tb\x1b[2J\n", b"\xc3", b"\xa9\xc2\x9b31m", b"\xff\n"):
        assert output.write(memoryview(part)) == len(part)
    assert file.getvalue() == b"a\tb\\x1b[2J\n\xc3\xa9\\x9b31m\\xff\n"


EACH = "import sys; from xclass.cli.command import status; print([status(w.split()) for w in sys.argv[1:]])"


def shown(lines, folder, streams=("stdout",)):
    """Return what command lines show on a terminal, and at the end the list of their statuses."""
    return on_a_terminal(["-c", EACH, *lines], streams, cwd=folder)


OWN = re.compile(rb"\x1b\[(1|1;31|33|0|A)m?")  # styles of xclass, and how a bar goes up a line
HOSTILE = "\x1b]0;t\x07 \x9b31m \u202e\u2066\u200f \ud8ff \udcff x\ny"


def test_no_other_module_writes_to_the_terminal():
    """`cli.command` replaces streams that are closed, and flushes them; it writes nothing."""
    root = Path(xclass.__file__).parent
    for path in root.rglob("*.py"):
        name, text = path.relative_to(root).as_posix(), path.read_text(encoding="utf-8")
        if not any(word in text for word in ("print(", "print_exc", "echo(", "stdout", "stderr")):
            continue
        for node in ast.walk(ast.parse(text)):
            called = node.func if isinstance(node, ast.Call) else None
            assert not (isinstance(called, ast.Name) and called.id == "print"), f"{name} prints"
            assert getattr(called, "attr", "") not in ("echo", "secho", "print_exc"), f"{name} prints"
            is_stream = isinstance(node, ast.Attribute) and node.attr in ("stdout", "stderr", "__stdout__")
            if is_stream and isinstance(node.value, ast.Name) and node.value.id == "sys":
                assert name in ("system/terminal.py", "cli/command.py"), f"{name} uses a stream"


def test_texts_for_people_are_escaped_wherever_they_go(capsys):
    terminal.line(HOSTILE)
    terminal.error_line(HOSTILE)
    expected = "\\x1b]0;t\\x07 \\x9b31m \\u202e\\u2066\\u200f \\ud8ff \\xff x\\ny\n"
    assert capsys.readouterr() == (expected, expected)
    assert str(DataError("a", HOSTILE)) == "a\n" + expected[:-1]
    with pytest.warns(XclassWarning) as caught:
        warnings.warn(HOSTILE, XclassWarning, stacklevel=1)
    assert str(caught[0].message) == expected[:-1]


def test_a_stream_that_lacks_a_character_gets_its_escape(monkeypatch):
    file = io.TextIOWrapper(io.BytesIO(), "latin-1")
    monkeypatch.setattr(sys, "stdout", file)
    terminal.line("caf\xe9 \u2192")
    file.flush()
    assert file.buffer.getvalue() == b"caf\xe9 \\u2192\n"


def test_the_summary_of_a_stranger_does_not_move_the_cursor(tmp_path):
    (tmp_path / "d.vw").write_text("1 | a\n2 | b\n" * 20)
    learn("-d", "d.vw", "--oaa", 2, "-b", 8, "--quiet", "--summary", "a.json", cwd=tmp_path)
    record = json.loads((tmp_path / "a.json").read_text())
    hostile, lines = HOSTILE.replace("\ud8ff", ""), []
    for name, change in {
        "reduction": {"reduction": hostile}, "option": {"options": {**record["options"], hostile: hostile}},
        "value": {"options": {**record["options"], "learning_rate": hostile}}, "schema": {"schema": hostile},
        "figure": {"figures": {hostile: "x"}},
    }.items():  # fmt: skip
        (tmp_path / f"{name}.json").write_text(json.dumps({**record, **change}))
        lines.append(f"compare a.json {name}.json")
    output = OWN.sub(b"", shown(lines, tmp_path, ("stdout", "stderr")))
    for bad in (b"\x1b", b"\x07", b"\x9b", "\u202e".encode(), "\u200f".encode()):
        assert bad not in output, output
    assert output.count(b"\\x1b") >= 4  # the option has no place
    assert output.endswith(b"[0, 0, 0, 1, 1]\r\n")


def test_predictions_and_audits_reach_a_terminal_without_escape_sequences(tmp_path):
    text = "1 'tag\x1b[31m |f x\x1b[2J\n2 'tag\x1b]0;t\x07 | y\n"
    (tmp_path / "data.vw").write_text(text)
    words = "-d data.vw --oaa 3 -b 8 --quiet"
    output = shown([f"{words} -p stdout", f"{words} -a"], tmp_path)
    assert b"\x1b" not in output and b"\x07" not in output
    predicted, _, audited = output.partition(b"x\\x1b")  # the name of a feature, which the audit alone shows
    assert b"\\x1b" in predicted and audited.endswith(b"[0, 0]\r\n")
    piped = learn("-d", "data.vw", "--oaa", 3, "-b", 8, "--quiet", "-p", "stdout", cwd=tmp_path)
    assert "\x1b[31m" in piped.out or "\x1b]0;t" in piped.out
