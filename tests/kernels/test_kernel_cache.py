"""Compiled kernels are found again exactly where all that they depend on is the same."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from compiled_names import NOTE_COMPILED

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


def fingerprint(source: str, settings: str = "") -> str:
    """The fingerprint of `outer` in a module of this source, as if it were one of the package."""
    names = {"__name__": "xclass.made"}
    exec(compile(source, "made.py", "exec"), names)
    return kernel_cache.fingerprint(names["outer"], settings)


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


RUN = f"""
import sys
import numpy as np
{NOTE_COMPILED}from xclass.binary import gd
from xclass.kernels import jit, quickselect
from xclass.reductions.log_multi import split_tree
jit.activate()
options = gd.BinaryOptions(bits=4, learning_rate=0.5, initial_t=1.0, loss_function="squared")
table = gd.new_table(gd.make_rule(options, reduction=True), 4, 1, 1)
table.flat[:] = 2
print(gd.score(table, np.array([1, 5], np.uint64), np.ones(2, np.float32), 2, np.uint64(0), np.float32(0)))
item = np.arange(5)
quickselect.select(item, 0, 5, 2, np.array([3.0, 1, 4, 1, 5]))
print(item)
print(*sorted(set(compiled)), file=sys.stderr)
"""


class Package:
    """A copy of the package that is edited, and what a program that uses two of its kernels does with it."""

    def __init__(self, place: Path) -> None:
        root = Path(xclass.__file__).parent
        self._place = place
        shutil.copytree(root, place / "xclass", ignore=shutil.ignore_patterns("__pycache__"))
        self._variables = {**os.environ, "PYTHONPATH": str(place), "XDG_CACHE_HOME": str(place / "cache")}
        self._variables.pop("NUMBA_CACHE_DIR", None)

    def edit(self, name: str, old: str, new: str) -> None:
        """Replace the first `old` in a file."""
        path = self._place / "xclass" / name
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new, 1))

    def start(self) -> subprocess.Popen:
        return subprocess.Popen(
            [sys.executable, "-c", RUN], cwd=self._place, env=self._variables,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    @staticmethod
    def end(process: subprocess.Popen) -> tuple[str, list[str]]:
        """What was printed, and the kernels that were compiled."""
        out, err = process.communicate(timeout=400)
        assert process.returncode == 0, err
        return out, err.split()

    def run(self) -> tuple[str, list[str]]:
        return self.end(self.start())


@pytest.fixture
def package(tmp_path):
    return Package(tmp_path)


@pytest.mark.slow
def test_an_edit_compiles_what_depends_on_it_and_nothing_else(package):
    first, compiled = package.run()
    assert {"score", "truncated", "select", "mix"} <= set(compiled)
    assert package.run() == (first, [])
    package.edit("binary/gd.py", "# -- kernels", "# -- compiled functions")
    package.edit("reductions/log_multi/split_tree.py", "def arrive(", "def arrive_there(")
    assert package.run() == (first, [])
    package.edit("binary/gd.py", "    s = initial\n    for f", "    s = initial + ONE\n    for f")
    other, compiled = package.run()
    assert other != first
    assert "score" in compiled and "select" not in compiled
    package.edit("binary/gd.py", "    s = initial + ONE\n    for f", "    s = initial\n    for f")
    assert package.run() == (first, [])
    package.edit(
        "binary/weight_table.py",
        "def truncated(w: np.float32, gravity: np.float32) -> np.float32:\n",
        "def truncated(w: np.float32, gravity: np.float32) -> np.float32:\n    w = w + w\n",
    )
    again, compiled = package.run()
    assert again == first  # which is no score under --l1, but compiled with one
    assert {"score", "truncated"} <= set(compiled) and "select" not in compiled


@pytest.mark.slow
def test_processes_that_compile_at_once_into_one_cache_agree(package):
    at_once = [package.start() for _ in range(3)]
    outputs = {package.end(process)[0] for process in at_once}
    assert len(outputs) == 1
    assert package.run() == (*outputs, [])


def test_settings_of_the_compiler_are_part_of_the_fingerprint():
    assert fingerprint(MODULE, "bounds are checked") != fingerprint(MODULE)
