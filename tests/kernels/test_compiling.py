"""A line, on a terminal a bar, and a line at the end tell that kernels are compiled, wherever that happens."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import threading
import time

import pytest
from command import learn
from streams import multiclass

from xclass.kernels import compiling

BEGIN = "xclass: compiling kernels for this machine; this takes seconds to minutes"
END = re.compile(r"xclass: (\d+) kernels? compiled in \d+ s")
LIBRARY = "import xclass; xclass.Learner('oaa', 2, bits=10)"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with data and two models."""
    folder = tmp_path_factory.mktemp("compiling")
    for name in "ab":
        (folder / f"{name}.vw").write_text(multiclass(ord(name), 3, 20))
        learn(f"{name}.vw", "--oaa", 3, "-b", 10, "-f", name, "--quiet", cwd=folder)
    return folder


def errors_of(words, place, kernels, **more) -> list[str]:
    """The lines that a new process writes to standard error, whose compiled kernels are kept in a folder of its own."""
    kernels.mkdir(0o700, exist_ok=True)
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(kernels)}
    environment.pop("NUMBA_DISABLE_JIT", None)
    result = subprocess.run(
        [sys.executable, *words], cwd=place, env=environment, timeout=600, stdin=subprocess.DEVNULL,
        **(more or {"capture_output": True, "text": True}),
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    return (result.stderr or "").splitlines()


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(["-c", LIBRARY], id="library"),
        pytest.param(["-m", "xclass", "merge", "a", "b", "-f", "merged"], id="merge"),
        pytest.param(["-m", "xclass", "a.vw", "--oaa", "3", "-b", "10", "-f", "c"], id="run", marks=pytest.mark.slow),
    ],
)
def test_two_lines_say_what_is_waited_for_and_how_long_it_took(place, tmp_path, words):
    lines = errors_of(words, place, tmp_path / "k")
    assert lines.count(BEGIN) == 1
    (end,) = [found for found in map(END.fullmatch, lines) if found]
    assert int(end[1]) >= 2 and lines.index(BEGIN) < lines.index(end[0])
    assert not [line for line in errors_of(words, place, tmp_path / "k") if "compil" in line]  # they are loaded
    if "-m" in words:
        assert errors_of([*words, "--quiet"], place, tmp_path / "quiet") == []


def test_a_terminal_shows_a_bar_that_counts_kernels(place, tmp_path):
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    shown = bytearray()

    def read():
        while data := os.read(ours, 1 << 12):
            shown.extend(data)

    reading = threading.Thread(target=read, daemon=True)
    reading.start()
    errors_of(["-c", LIBRARY], place, tmp_path / "k", stderr=theirs)
    deadline = time.monotonic() + 60
    while not END.search(shown.decode()) and time.monotonic() < deadline:
        time.sleep(0.05)
    text = shown.decode()
    assert text.startswith(BEGIN)
    counts = [int(count) for count in re.findall(r"compiling kernels: (\d+) done in 00:\d\d", text)]
    assert counts == sorted(counts)
    end = END.fullmatch(text.splitlines()[-1].rpartition("\r")[2])
    assert end is not None and int(end[1]) >= max(1, counts[-1])


def test_what_is_compiled_later_is_told_of_again(monkeypatch):
    told: list[str] = []
    monkeypatch.setattr(compiling, "IDLE", 0.0)
    monkeypatch.setattr(compiling, "INTERVAL", 0.01)
    monkeypatch.setattr(compiling, "_say", told.append)
    monkeypatch.setattr(compiling, "_ended", threading.Event())  # which the tests have set
    for _ in range(2):
        with compiling.under_way():
            with compiling.under_way():  # a kernel that the first one calls
                compiling.add_one()
            compiling.add_one()
        compiling._watch.join()
    with compiling.under_way(shown=False):
        pass
    assert told == [BEGIN, "xclass: 2 kernels compiled in 0 s"] * 2
