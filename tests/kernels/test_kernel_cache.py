"""Compiled kernels are found again exactly where all that they depend on is the same."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import xclass
from xclass.kernels import kernel_cache

MODULE = '''
from typing import NamedTuple
import numpy as np
from xclass.binary import loss

FACTOR = 2.0
TABLE = np.ones(3)


class Pair(NamedTuple):
    first: int
    second: int


def inner(x):
    """One."""
    return x + 1.0


def outer(x):
    pair = Pair(1, 2)
    return inner(x) * FACTOR + TABLE[0] + pair.first + loss.LOGISTIC
'''


def fingerprint(source: str) -> str:
    """The fingerprint of `outer` in a module of this source, as if it were one of the package."""
    names = {"__name__": "xclass.made"}
    exec(compile(source, "made.py", "exec"), names)
    return kernel_cache.fingerprint(names["outer"])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("return inner(x) *", "return inner(x) +"),
        ("return x + 1.0", "return x + 2.0"),
        ("return x + 1.0", "return x - 1.0"),
        ("FACTOR = 2.0", "FACTOR = 3.0"),
        ("FACTOR = 2.0", "FACTOR = 2"),
        ("FACTOR = 2.0", "FACTOR = np.float32(2.0)"),
        ("np.ones(3)", "np.ones(4)"),
        ("np.ones(3)", "np.zeros(3)"),
        ("np.ones(3)", "np.ones(3, np.float32)"),
        ("    first: int\n    second: int", "    second: int\n    first: int"),
        ("loss.LOGISTIC", "loss.HINGE"),
        ("def outer(x):", "def outer(x, y=1):"),
        ("def inner(x):", "def inner(x, y=1):"),
    ],
)
def test_a_change_of_what_is_compiled_is_seen(old, new):
    assert old in MODULE
    assert fingerprint(MODULE.replace(old, new)) != fingerprint(MODULE)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"""One."""', '"""Another."""'),
        ("FACTOR = 2.0", "FACTOR = 2.0  # a comment"),
        ("FACTOR = 2.0", "FACTOR = 2.0\n\n\nOTHER = 5"),
        ("def inner", "def other(x):\n    return x\n\n\ndef inner"),
    ],
)
def test_a_change_of_something_else_is_not(old, new):
    assert old in MODULE
    assert fingerprint(MODULE.replace(old, new)) == fingerprint(MODULE)


def test_a_global_of_an_unknown_kind_is_refused():
    with pytest.raises(TypeError, match="FACTOR"):
        fingerprint(MODULE.replace("FACTOR = 2.0", "FACTOR = {1: 2}"))


def test_fields_of_records_that_change_places_are_seen():
    numba = pytest.importorskip("numba")
    made = {}
    exec("from typing import NamedTuple\nclass Pair(NamedTuple):\n    a: int\n    b: int", made)
    before = kernel_cache._fields(numba.typeof((made["Pair"](1, 2), np.zeros(1))))
    exec("class Pair(NamedTuple):\n    b: int\n    a: int", made)
    assert kernel_cache._fields(numba.typeof((made["Pair"](1, 2), np.zeros(1)))) != before


RUN = """
import sys
from numba.core import event
found = []
class Listener(event.Listener):
    def on_start(self, one):
        found.append(one.data["dispatcher"].py_func.__name__)
    def on_end(self, one):
        pass
event.register("numba:compile", Listener())
from xclass.cli import command as cli
status = cli.status(["-d", "d.vw", "-p", "stdout", "--quiet", "-b", "8"])
print(*sorted(set(found)), file=sys.stderr)
sys.exit(status)
"""


@pytest.fixture
def edited(tmp_path):
    """Run a copy of the package after an edit of a file; returns predictions and the kernels that were compiled."""
    shutil.copytree(Path(xclass.__file__).parent, tmp_path / "xclass", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "d.vw").write_text("1 |w a\n-1 |w b\n1 |w a b\n" * 20)
    variables = {**os.environ, "PYTHONPATH": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    variables.pop("NUMBA_CACHE_DIR", None)

    def run(name: str = "", old: str = "", new: str = "") -> tuple[str, list[str]]:
        if name:
            path = tmp_path / "xclass" / name
            assert old in path.read_text()
            path.write_text(path.read_text().replace(old, new, 1))
        done = subprocess.run(
            [sys.executable, "-c", RUN], cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=400
        )
        assert done.returncode == 0, done.stderr
        return done.stdout, done.stderr.split()

    return run


def test_an_edit_compiles_what_depends_on_it_and_nothing_else(edited):
    first, compiled = edited()
    assert len(compiled) > 5
    assert edited() == (first, [])
    assert edited("binary/gd.py", "# -- kernels", "# -- compiled functions") == (first, [])
    assert edited("reductions/log_multi/split_tree.py", "def arrive(", "def arrive_there(") == (first, [])
    other, compiled = edited("binary/gd.py", "    s = initial\n    for f", "    s = initial + ONE\n    for f")
    assert other != first
    assert "score" in compiled
    assert "parse_lines" not in compiled
    assert edited("binary/gd.py", "    s = initial + ONE\n    for f", "    s = initial\n    for f") == (first, [])
