"""Output to a terminal: nothing in the data may move the cursor or change the display."""

import io
import os
import pty
import subprocess
import sys

from command import learn

from xclass.system.terminal import TerminalOutput, output_of


def test_control_characters_are_escaped():
    file = io.BytesIO()
    output = TerminalOutput(file)
    for part in (b"a\tb\x1b[2J\n", b"\xc3", b"\xa9\xc2\x9b31m", b"\xff\n"):
        assert output.write(memoryview(part)) == len(part)
    assert file.getvalue() == b"a\tb\\x1b[2J\n\xc3\xa9\\x9b31m\\xff\n"


def test_files_are_written_as_they_are():
    file = io.BytesIO()
    assert output_of(file) is file


def test_predictions_and_audits_reach_a_terminal_without_escape_sequences(tmp_path):
    text = "1 'tag\x1b[31m |f x\x1b[2J\n2 'tag\x1b]0;t\x07 | y\n"
    (tmp_path / "data.vw").write_text(text)
    words = [sys.executable, "-m", "xclass", "-d", "data.vw", "--oaa", "3", "-b", "8", "--quiet"]
    for more in (["-p", "stdout"], ["-a"]):
        controller, terminal = pty.openpty()
        child = subprocess.Popen([*words, *more], stdout=terminal, cwd=tmp_path)
        os.close(terminal)
        output = b""
        while True:
            try:
                part = os.read(controller, 1 << 16)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            output += part
        os.close(controller)
        assert child.wait() == 0
        assert b"\x1b" not in output and b"\x07" not in output
        assert b"\\x1b" in output
    piped = learn("-d", "data.vw", "--oaa", 3, "-b", 8, "--quiet", "-p", "stdout", cwd=tmp_path)
    assert "\x1b[31m" in piped.out or "\x1b]0;t" in piped.out
