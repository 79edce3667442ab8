"""xclass without what only Linux offers, as on macOS, and its message on Windows."""

import subprocess
import sys

import pytest
from command import script
from streams import multiclass

LIKE_MACOS = """
import builtins, io, os, time

for module, names in ((os, ["O_TMPFILE", "O_PATH", "sched_getaffinity"]), (time, ["CLOCK_BOOTTIME"])):
    for name in names:
        vars(module).pop(name, None)
opened, opened_low, listed = open, os.open, os.listdir

def refuse(path):
    if isinstance(path, (str, bytes, os.PathLike)) and os.fsdecode(path).startswith("/proc"):
        raise FileNotFoundError(2, "No such file or directory", path)

def open(path, *args, **more):
    refuse(path)
    return opened(path, *args, **more)

def open_low(path, *args, **more):
    refuse(path)
    return opened_low(path, *args, **more)

builtins.open = io.open = open
os.open = open_low
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ("--oaa", 9, "--passes", 3, "-c", "-k", "--checkpoint", 60),
        ("--cpt", 9, "--cpt_tree", "kmeans", "--tree_sample", 0, "--timing"),
    ],
    ids=lambda words: words[0],
)
def test_a_run_needs_nothing_that_linux_alone_has(words, tmp_path):
    (tmp_path / "d.vw").write_text(multiclass(1, 9, 300))
    usual = script("", "d.vw", *words, "-b", 12, "-f", "m", "-p", "p", cwd=tmp_path, new=True)
    expected = (tmp_path / "m").read_bytes(), (tmp_path / "p").read_bytes()
    assert usual.status == 0, usual.err
    for name in ("m", "p"):
        (tmp_path / name).unlink()
    other = script(LIKE_MACOS, "d.vw", *words, "-b", 12, "-f", "m", "-p", "p", cwd=tmp_path, new=True)
    assert other.status == 0, other.err
    assert ((tmp_path / "m").read_bytes(), (tmp_path / "p").read_bytes()) == expected
    assert {path.name for path in tmp_path.iterdir()} <= {"d.vw", "m", "p", "d.vw.cache"}


@pytest.mark.parametrize("program", ["import xclass; xclass.Learner", "from xclass import cli; cli.main()"])
def test_windows_users_are_referred_to_wsl(program):
    code = f"import os; os.name = 'nt'; import sys; sys.argv = ['xclass', '--version']; {program}"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 1
    assert "xclass runs on Linux and macOS; on Windows, use the Windows Subsystem for Linux (WSL)" in result.stderr
