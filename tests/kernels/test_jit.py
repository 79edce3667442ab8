"""All kernels are compiled when a run begins, and none for `--help` alone."""

import os
import subprocess
import sys

import pytest
from compiled_names import NOTE_COMPILED

from xclass import Learner
from xclass.kernels import jit
from xclass.run import warm_up
from xclass.system import thread_limit

RUN = """
import sys
from xclass.cli import command as cli; from xclass.kernels import jit
status = cli.status(["--oaa", "2", "--quiet", "-p", "stdout", "-d", sys.argv[1]])
plain = [f"{f.__module__}.{f.__name__}" for f in jit._marked]
sys.exit(f"status {status}, never compiled: {plain}" if status or plain else 0)
"""


@pytest.fixture(scope="module")
def first_run(tmp_path_factory):
    """Data, and the result of a first run over them, which has compiled what was not compiled."""
    data = tmp_path_factory.mktemp("first") / "d.vw"
    data.write_text("1 |w a\n2 |w b\n")
    return data, subprocess.run([sys.executable, "-c", RUN, str(data)], capture_output=True, text=True, timeout=400)


def test_every_kernel_is_compiled(first_run):
    _, result = first_run
    assert result.returncode == 0, result.stderr


def test_a_later_run_is_not_announced_as_a_first_one(first_run):
    words = [sys.executable, "-m", "xclass", "-d", str(first_run[0]), "--oaa", "2"]
    result = subprocess.run(words, capture_output=True, text=True, timeout=240)
    assert "finished run" in result.stderr
    assert "compiling the kernels" not in result.stderr


WARM = """
import importlib.metadata, sys
from xclass.cli import command as cli
from xclass.kernels import jit
searched, search = [], importlib.metadata.entry_points
importlib.metadata.entry_points = lambda **_: searched.append("installed packages") or search()
status = cli.status(["--oaa", "2", "--quiet", "-p", "stdout", "-d", sys.argv[1]])
needless = [name for name in ("scipy", "numpy.ma", "numba.np.npyimpl", "numba.np.arrayobj") if name in sys.modules]
needless += searched
importlib.metadata.entry_points = search
waiting = len(jit._without_dispatcher)
import numba
double = numba.njit(lambda x: [2 * y for y in x])  # a list: numba has to know its own functions again
wrong = status or needless or waiting <= 100 or double((1, 2)) != [2, 4]
sys.exit(f"status {status}, imported: {needless}, kernels without dispatcher: {waiting}" if wrong else 0)
"""


def test_a_warm_start_makes_few_dispatchers_and_imports_no_compiler_of_what_it_does_not_compile(first_run):
    words = [sys.executable, "-c", WARM, str(first_run[0])]
    result = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stderr


COMPILED = f"""
import sys
{NOTE_COMPILED}from xclass.cli import command as cli
status = cli.status(["-d", sys.argv[1], "-p", "stdout", "--quiet"])
print(*sorted(set(compiled)), file=sys.stderr)
sys.exit(status)
"""


@pytest.mark.slow
def test_a_first_run_compiles_reading_beside_learning_and_the_next_nothing(tmp_path):
    data = tmp_path / "d.vw"
    data.write_text("1 |w a\n-1 |w b\n1 |w a b\n" * 20)
    place = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    place.pop("NUMBA_CACHE_DIR", None)
    words = [sys.executable, "-c", COMPILED, str(data)]
    first, again = (subprocess.run(words, env=place, capture_output=True, text=True, timeout=400) for _ in range(2))
    assert first.returncode == again.returncode == 0
    assert first.stdout == again.stdout
    assert "learn" in first.stderr
    if thread_limit.processors() > 1:
        assert "parse_lines" not in first.stderr
    assert not again.stderr.split()


def test_nothing_is_kept_that_cannot_be_locked(tmp_path, monkeypatch):
    fcntl = pytest.importorskip("fcntl")

    def refuses(*args):
        raise OSError("no locks here")

    saved = []
    monkeypatch.setattr(jit, "_folder", tmp_path)
    jit._save(lambda: saved.append(1))
    monkeypatch.setattr(fcntl, "flock", refuses)
    jit._save(lambda: saved.append(2))
    assert saved == [1]


def test_installations_that_take_turns_keep_their_notes(tmp_path, monkeypatch):
    monkeypatch.setattr(jit, "_folder", tmp_path)
    for number in range(20):
        monkeypatch.setattr(jit, "_stamp", lambda number=number: f"{number}")
        jit.note_compiled("cpt")
        os.utime(tmp_path / f"cpt-{number}.ready", (number, number))
        assert not jit.is_first_run("cpt")
    assert len(list(tmp_path.iterdir())) == 1 + jit.KEPT_NOTES
    monkeypatch.setattr(jit, "_stamp", lambda: "15")
    assert not jit.is_first_run("cpt")
    monkeypatch.setattr(jit, "_stamp", lambda: "0")
    assert jit.is_first_run("cpt")


def test_without_room_for_another_process_this_one_compiles(monkeypatch):
    def none(*args, **more):
        raise BlockingIOError("no more processes")

    monkeypatch.setattr(warm_up.subprocess, "Popen", none)
    monkeypatch.setattr(jit, "is_first_run", lambda mark: True)
    monkeypatch.setattr(thread_limit, "processors", lambda: 2)
    monkeypatch.setattr(jit, "is_kept", lambda: True)
    monkeypatch.setattr(jit, "folder", lambda: "somewhere")
    learned = []
    monkeypatch.setattr(warm_up, "parts", lambda learner, learn, reads: {"a": lambda: learned.append(learn), "b": None})
    with Learner("oaa", classes=2) as model:
        warm_up.prepare(model.core.config, model.core.reduction, True)
    assert learned == [True]


def cold(tmp_path, **changed):
    """Environment and command of a run that finds no compiled kernels where the user keeps them."""
    data = tmp_path / "d.vw"
    data.write_text("1 |w a\n2 |w b\n")
    variables = {**os.environ, **changed}
    environment = {name: value for name, value in variables.items() if value is not None}
    words = [sys.executable, "-m", "xclass", "-d", str(data), "--oaa", "2", "--no_stdin"]
    return environment, words


def test_numba_cache_dir_that_cannot_be_used_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    for place in ("/proc/nope", str(tmp_path / "file" / "below")):
        environment, words = cold(tmp_path, NUMBA_CACHE_DIR=place)
        result = subprocess.run(words[:-1], env=environment, capture_output=True, text=True, timeout=60)
        assert result.returncode == 1
        assert result.stderr.startswith(f"xclass: NUMBA_CACHE_DIR={place}: compiled kernels cannot be kept there (")
        assert result.stderr.endswith(
            "; set that variable to a folder that can be created and written to, or unset it\n"
        )
        assert result.stderr.count("\n") == 1


CHOSEN = """
import pathlib
from xclass.kernels import jit
jit._choose_folder()
print(jit.folder(), jit.cache_problem(), sep="\\n")
"""


def test_kernels_are_kept_nowhere_where_there_is_no_home(tmp_path):
    (tmp_path / "file").write_text("")
    for changed in ({"XDG_CACHE_HOME": str(tmp_path / "file")}, {"XDG_CACHE_HOME": None, "HOME": "/proc/nope"}):
        environment, _ = cold(tmp_path, TMPDIR=str(tmp_path), NUMBA_CACHE_DIR=None, **changed)
        result = subprocess.run(
            [sys.executable, "-c", CHOSEN], env=environment, capture_output=True, text=True, timeout=60
        )
        assert result.returncode == 0, result.stderr
        folder, warning = result.stdout.splitlines()
        assert folder == "None"
        assert "so every run compiles them again; set XDG_CACHE_HOME to a folder that can be written to" in warning


def test_a_user_without_a_home_gets_no_traceback(monkeypatch):
    def no_home():
        raise RuntimeError("Could not determine home directory.")

    for name in ("XDG_CACHE_HOME", "NUMBA_CACHE_DIR", "NUMBA_DISABLE_JIT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(jit.Path, "home", no_home)
    monkeypatch.setattr(jit, "_folder", None)
    monkeypatch.setattr(jit, "_cache_problem", "")
    jit._choose_folder()
    assert jit.folder() is None
    assert "Could not determine home directory." in jit.cache_problem()


INNER = f"""
from xclass.kernels import jit
{NOTE_COMPILED}
@jit.jit
def twice(x):
    return 2 * x

@jit.jit
def outer(x):
    return twice(x) + twice(3) + twice(5)

jit.activate()
print(outer(4), compiled.count("twice"), twice(7), compiled.count("twice"), outer(1), twice(8))
print(compiled.count("twice") + compiled.count("outer"))
"""


def test_a_kernel_can_be_called_by_python_after_another_kernel_has_called_it(tmp_path):
    script = tmp_path / "kernels.py"
    script.write_text(INNER)
    place = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "compiled")}
    place.pop("NUMBA_DISABLE_JIT", None)
    words = [sys.executable, str(script)]
    first, again = (subprocess.run(words, env=place, capture_output=True, text=True, timeout=200) for _ in range(2))
    # one version for all whole numbers, and another one for Python, which the next run finds in the cache
    assert first.stdout.split() == ["24", "1", "14", "2", "18", "16", "3"], first.stderr
    assert again.stdout.split() == ["24", "0", "14", "0", "18", "16", "0"], again.stderr


READ_ONLY = f"""
import errno, os, tempfile
def refuse(*words, **named):
    raise OSError(errno.EROFS, os.strerror(errno.EROFS))
tempfile.TemporaryFile = os.utime = refuse
{INNER}
print(jit.is_kept(), jit.cache_problem())
"""


def test_compiled_kernels_are_read_where_none_can_be_written(tmp_path):
    script, folder = tmp_path / "kernels.py", tmp_path / "compiled"
    place = {**os.environ, "NUMBA_CACHE_DIR": str(folder)}
    place.pop("NUMBA_DISABLE_JIT", None)
    script.write_text(READ_ONLY)
    words = [sys.executable, str(script)]
    folder.mkdir()
    empty = subprocess.run(words, env=place, capture_output=True, text=True, timeout=200)
    assert f"NUMBA_CACHE_DIR={folder}: compiled kernels cannot be kept there (Read-only file system)" in empty.stderr
    script.write_text(INNER)
    subprocess.run(words, env=place, check=True, timeout=200)
    script.write_text(READ_ONLY)
    again = subprocess.run(words, env=place, capture_output=True, text=True, timeout=200)
    assert again.stdout.split() == ["24", "0", "14", "0", "18", "16", "0", "False"], again.stderr


ABILITIES = """
import xclass
from xclass.kernels import jit

models = [xclass.Learner("multiclass", bits=10, index_bits=8) for _ in "ab"]
for model, word in zip(models, "uv"):
    model.learn_many([f"1 | {word} b", "2 | c d"])
xclass.merge(models)
models[0].save("m")
print(len(jit._marked))
"""


@pytest.mark.parametrize("after", ["", "-t -i m -d m.vw --quiet --explain 1 --explain_file text"])
def test_kernels_of_modules_that_are_imported_late_are_compiled(after, tmp_path):
    (tmp_path / "m.vw").write_text("1 | u b\n")
    code = ABILITIES
    if after:
        code += f"import sys; from xclass.cli import command\nsys.argv[1:] = {after.split()}\n"
        code += "import atexit; atexit.register(lambda: print(len(jit._marked), flush=True))\ncommand.main()\n"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=200)
    assert done.stdout.split() == ["0", "0"][: 1 + bool(after)], done.stderr


LATER = """
import sys
import llvmlite.binding
from xclass.kernels import jit

parsed = []
parse = llvmlite.binding.parse_bitcode
llvmlite.binding.parse_bitcode = lambda code: parsed.append(len(code)) or parse(code)

@jit.jit
def twice(x):
    return 2 * x

@jit.jit
def outer(x):
    return twice(x) + 1

jit.activate()
print(twice(7), len(parsed), outer(4) if sys.argv[1] == "outer" else "", len(parsed) > 0)
"""


def test_the_intermediate_code_of_a_stored_kernel_is_parsed_when_another_one_is_compiled_from_it(tmp_path):
    script = tmp_path / "kernels.py"
    script.write_text(LATER)
    place = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "compiled")}
    place.pop("NUMBA_DISABLE_JIT", None)
    results = []
    for word in ("alone", "alone", "outer"):
        result = subprocess.run(
            [sys.executable, str(script), word], env=place, capture_output=True, text=True, timeout=200
        )
        assert result.returncode == 0, result.stderr
        results.append(result.stdout.split())
    assert results[1:] == [["14", "0", "False"], ["14", "0", "9", "True"]]


OTHER_NUMBA = """
from numba.core import codegen, options
del codegen.JITCodeLibrary
parse = options.TargetOptions.parse_as_flags.__func__
def parse_known(cls, flags, given):
    if {"_nrt", "no_cfunc_wrapper"} & given.keys():
        raise TypeError("unknown options")
    return parse(cls, flags, given)
options.TargetOptions.parse_as_flags = classmethod(parse_known)
"""

FALLBACK = f"""
import sys
import numpy as np
from xclass.kernels import jit
if "other" in sys.argv:
    exec({OTHER_NUMBA!r})
{NOTE_COMPILED}
@jit.bare
def scaled(x, factor):
    return x / factor

@jit.jit
def outer(array):
    total = np.float32(0)
    for x in array:
        total += scaled(x, 3)
    return total

jit.activate(hide_scipy=False)
jit.activate(hide_scipy=False)
print(outer(np.arange(1000, dtype=np.float32)).hex(), scaled(2.0, 7.0).hex())
print(jit._plain, "outer" in compiled, compiled.count("scaled"))
"""


def test_kernels_are_compiled_and_stored_if_the_private_members_of_numba_are_others(tmp_path):
    script = tmp_path / "kernels.py"
    script.write_text(FALLBACK)
    place = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "compiled")}
    place.pop("NUMBA_DISABLE_JIT", None)
    results = []
    for words in ([], ["other"], ["other"]):
        result = subprocess.run(
            [sys.executable, str(script), *words], env=place, capture_output=True, text=True, timeout=200
        )
        assert result.returncode == 0, result.stderr
        results.append(result.stdout.splitlines())
        for note in (tmp_path / "compiled").glob("numba-*.ready"):  # as in the folder of another version of numba
            note.unlink()
        assert result.stderr.count("so kernels are compiled and stored without these; results are") == len(words)
    assert len({numbers for numbers, _ in results}) == 1
    assert [state for _, state in results] == ["False True 2", "True True 2", "True False 0"]
