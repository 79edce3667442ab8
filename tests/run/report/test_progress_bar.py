"""The progress bar: what a terminal of 80 columns shows, and nothing elsewhere."""

import fcntl
import io
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator

import pytest
from command import run_forked
from streams import multiclass

from xclass.api import progress_table
from xclass.run.report import console

MB = 2**20


class Terminal:
    """A terminal of 80 columns.

    Attributes
    ----------
    file : what a program writes to
    """

    def __init__(self) -> None:
        self._screen, self.descriptor = pty.openpty()
        fcntl.ioctl(self.descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.file = os.fdopen(self.descriptor, "w")

    def shown(self) -> str:
        """All that was written; the file is closed."""
        self.file.flush()
        os.set_blocking(self._screen, False)
        text = b""
        try:
            while piece := os.read(self._screen, 1 << 16):
                text += piece
        except OSError:  # nothing is left
            pass
        return text.decode()

    def last_line(self) -> str:
        """The last state of the line of the bar."""
        return [text.rstrip() for text in re.split(r"[\r\n]", self.shown()) if text.strip()][-1]

    def close(self) -> None:
        self.file.close()
        os.close(self._screen)


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    made = Terminal()
    yield made
    made.close()


def reading(terminal, monkeypatch, size, seconds, position, examples, megabytes):
    """The line of a bar of reading at a position after some seconds."""
    monkeypatch.setattr(sys, "stderr", terminal.file)
    monkeypatch.setattr(console.memory, "peak", lambda: megabytes * MB)
    output = console.Console(quiet=False)
    output.start_bar(size)
    output._bar.start_t -= seconds
    output.move_bar(lambda: position, examples)
    output._bar.refresh()
    shown = terminal.last_line()
    output.end_bar()
    return shown


def test_80_columns_have_room_for_everything(terminal, monkeypatch):
    shown = reading(terminal, monkeypatch, 10**9, 3600, 250_000_000, 90_000_000, 12_345)
    assert len(shown) <= 79
    assert re.fullmatch(r" 25%\|.{16,}\| 1:00:0\d, 3:00:0\d left, 2\d,\d{3} examples/s, 12,345 MB", shown), shown


def test_without_a_size_there_is_no_time_left(terminal, monkeypatch):
    shown = reading(terminal, monkeypatch, None, 10, 2_500_000, 1000, 100)
    assert re.fullmatch(r"2\.50MB in 00:1\d, \d+ examples/s, 100 MB", shown), shown


def test_steps_are_counted(terminal, monkeypatch):
    monkeypatch.setattr(sys, "stderr", terminal.file)
    output = console.Console(quiet=False)
    output.start_steps(12, "nodes")
    for _ in range(3):
        output.step()
    output._bar.refresh()
    shown = terminal.last_line()
    output.end_bar()
    assert re.fullmatch(r" 25%\|.{20,}\| 3 of 12 nodes, 00:00, .* left", shown), shown
    assert len(shown) <= 79


@pytest.mark.parametrize("quiet", [False, True])
def test_only_a_terminal_has_a_bar(monkeypatch, terminal, quiet):
    written = io.StringIO()
    monkeypatch.setattr(sys, "stderr", terminal.file if quiet else written)
    output = console.Console(quiet)
    output.start_bar(1000)
    output.move_bar(lambda: 500, 10)
    output.end_bar()
    output.start_steps(3, "nodes")
    output.step()
    output.end_bar()
    assert written.getvalue() == ""
    assert terminal.shown() == ""


def test_the_table_fits_into_80_columns(monkeypatch, terminal):
    monkeypatch.setattr(sys, "stderr", terminal.file)
    row = progress_table.row("0.161621", "0.081299", 8192, 8192.0, "79", "149", 9, " h")
    long = progress_table.row("0.161621", "0.081299", 123456789012, 123456789012.0, "a" * 14, "b" * 14, 12345678)
    output = console.Console(quiet=False)
    for line in (*progress_table.HEADER, row, long):
        output.table_line(line)
    *header, shown, wide = terminal.shown().splitlines()
    assert header == [
        "average  since       example      example       current       current  current",
        "loss     last        counter       weight         label       predict features",
    ]
    assert len(shown) == 80 and shown.split() == row.split()
    assert wide.split() == long.split()
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    output.table_line(row)
    assert sys.stderr.getvalue() == f"{row}\n"


def test_a_run_in_a_terminal_shows_a_bar_over_all_passes_and_removes_it(tmp_path, terminal):
    (tmp_path / "train.vw").write_text(multiclass(1, 5, 400))
    words = [sys.executable, "-m", "xclass", "--oaa", "5", "-b", "10", "-d", "train.vw", "--passes", "3"]
    run_forked(words, cwd=tmp_path, stderr=terminal.file, stdin=subprocess.DEVNULL, check=True)
    text = terminal.shown()
    assert re.search(r"\d%\|", text)
    assert " left" in text
    assert re.search(r"\r +\r", text)  # the bar is wiped out
    assert "finished run" in text
