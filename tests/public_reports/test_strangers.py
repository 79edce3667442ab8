"""Files, folders and names of strangers: what crafted ones do to a run, its terminal and its compiled kernels."""

import json
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from command import learn, xclass

NOBODY = 65534
FACTS = '{"search": {"version": 1}}'


class Evil:
    """Make a pickle that writes a file when it is read."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


RUN = """
import sys
from xclass.kernels import compiling, jit

@jit.jit
def twice(x):
    return 2 * x

compiling.tell(None)
jit.activate(hide_scipy=True)
print(twice(4), jit.folder(), jit.cache_problem(), sep="\\n")
"""


def kernel_run(script, folder, **variables):
    """Compile or load the kernel of a script in a new process; return the folder of kernels and the warning."""
    environment = {**os.environ, "TMPDIR": str(folder), **{name: str(value) for name, value in variables.items()}}
    environment.pop("NUMBA_DISABLE_JIT", None)
    result = subprocess.run(
        [sys.executable, script], cwd=folder, env=environment, capture_output=True, text=True, timeout=200
    )
    assert result.returncode == 0 and not result.stderr, result.stderr
    value, used, problem = (result.stdout + "\n").split("\n")[:3]
    assert value == "8"
    return used, problem


def poisoned(folder, mark):
    """Replace every index of kernels by a pickle that creates the folder `mark`; return how many there were."""
    indexes = list(folder.rglob("*.nbi"))
    for index in indexes:
        index.unlink()
        index.write_bytes(pickle.dumps(Evil(mark)))
    return indexes


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """A script with a kernel, a folder for XDG_CACHE_HOME, and the one in it with what was compiled for the script."""
    folder = tmp_path_factory.mktemp("compiled")
    script, home = folder / "run.py", folder / "home"
    script.write_text(RUN)
    used, problem = kernel_run(script, folder, NUMBA_CACHE_DIR="", XDG_CACHE_HOME=home)
    assert used.startswith(f"{home}{os.sep}") and not problem
    assert list(Path(used).glob("*.nbi"))
    return script, home, used


def few_bits_changed(content):
    """Change bits that are far apart, of which machine code has a part."""
    return bytes(byte ^ (i % 97 == 0) for i, byte in enumerate(content))


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("kind", "damage"),
    [
        ("nbi", lambda content: b"\x96" + b"\xff" * 8 + b"."),
        ("nbi", lambda content: b"\x80\x05junk"),
        ("nbi", lambda content: b""),
        ("nbc", few_bits_changed),
        ("nbc", lambda content: content[:4096] + bytes(len(content) - 4096)),
        ("nbc", lambda content: content[: len(content) // 2]),
        ("nbc", lambda content: b""),
    ],
)
def test_a_damaged_file_of_kernels_is_made_again(compiled, tmp_path, kind, damage):
    script, home, _ = compiled
    place = tmp_path / "own"
    shutil.copytree(home, place)
    damaged = {path: damage(path.read_bytes()) for path in place.rglob(f"*.{kind}")}
    for path, content in damaged.items():
        path.write_bytes(content)
    kernel_run(script, tmp_path, NUMBA_CACHE_DIR="", XDG_CACHE_HOME=place)
    assert any(path.read_bytes() != content for path, content in damaged.items())


@pytest.mark.parametrize("variable", ["NUMBA_CACHE_DIR", "XDG_CACHE_HOME"])
def test_kernels_in_a_folder_that_others_may_write_to_are_not_loaded(compiled, tmp_path, variable):
    """An index of kernels that another user replaces is no code of the next run (CWE-502; numba's cache is pickles)."""
    script, home, kernels = compiled
    place, other, mark = tmp_path / "shared", tmp_path / "own", tmp_path / "mark"
    own = {"XDG_CACHE_HOME": other, "NUMBA_CACHE_DIR": ""}
    shutil.copytree(kernels if variable == "NUMBA_CACHE_DIR" else home, place)
    assert poisoned(place, mark)
    place.chmod(0o777)
    used, problem = kernel_run(script, tmp_path, **{**own, variable: place})
    assert not mark.exists()
    assert not used.startswith(str(place)) and f"other users may write to {place}" in problem
    assert "Take the permission to write from others" in problem
    if variable == "NUMBA_CACHE_DIR":  # the next one is the user's own cache, so later runs compile nothing
        assert used.startswith(str(other))
    else:
        assert used == "None"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to other users")
def test_kernels_that_another_user_wrote_are_compiled_again(compiled, tmp_path):
    """A file of another user in a folder that is safe today is not read; it may be older than the folder's mode."""
    script, _, kernels = compiled
    place, mark = tmp_path / "kernels", tmp_path / "mark"
    shutil.copytree(kernels, place)
    for index in poisoned(place, mark):
        os.chown(index, NOBODY, -1)
    used, problem = kernel_run(script, tmp_path, NUMBA_CACHE_DIR=place)
    assert (used, problem) == (str(place), "")
    assert not mark.exists()
    outer = tmp_path / "outer"
    outer.mkdir()
    os.chown(outer, NOBODY, -1)
    own = tmp_path / "own"
    used, problem = kernel_run(script, tmp_path, NUMBA_CACHE_DIR=outer / "inner", XDG_CACHE_HOME=own)
    assert f"{outer} belongs to user {NOBODY}" in problem and used.startswith(str(own))


def test_neither_settings_of_numba_nor_links_to_kernels_are_followed(compiled, tmp_path):
    """Settings in the current folder are not read, and an index that is a symbolic link is compiled again."""
    script, _, kernels = compiled
    place, mark, elsewhere = tmp_path / "kernels", tmp_path / "mark", tmp_path / "elsewhere"
    (tmp_path / ".numba_config.yaml").write_text("disable_jit: 1\n}")
    shutil.copytree(kernels, place)
    elsewhere.write_bytes(pickle.dumps(Evil(mark)))
    for index in poisoned(place, mark):
        index.unlink()
        index.symlink_to(elsewhere)
    assert kernel_run(script, tmp_path, NUMBA_CACHE_DIR=place) == (str(place), "")
    assert not mark.exists()


@pytest.fixture(scope="module")
def summaries(tmp_path_factory):
    """A folder with the summary `a.json` of a run, and its record."""
    folder = tmp_path_factory.mktemp("summaries")
    (folder / "d.vw").write_text("1 | a\n2 | b\n" * 30)
    learn("-d", "d.vw", "--oaa", 2, "-b", 8, "--quiet", "--summary", "a.json", cwd=folder)
    return folder, json.loads((folder / "a.json").read_text())


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("examples", "-1", "examples is -1; allowed is a whole number from 0"),
        ("seconds", "1e300", "seconds is 1e+300; allowed is a number from 0 to 1e+30"),
        ("reduction", "7", "reduction is 7; allowed is a text"),
        ("options", "[]", "options is []; allowed is an object"),
        ("figures", '{"log_loss": "x"}', "figures.log_loss is 'x'; allowed is a number"),
        ("outcomes", '{"examples": 5}', "outcomes.labels is missing"),
        ("outcomes", '{"examples": 0, "labels": "", "wrong": ""}', "outcomes.examples is 0; allowed is a whole number"),
        ("outcomes", '{"examples": 9, "labels": "", "wrong": "!"}', "outcomes.wrong is damaged"),
    ],
)
def test_a_crafted_summary_is_refused_with_its_place(summaries, name, value, message):
    """`xclass compare` takes what --summary writes, and names what differs (CWE-20)."""
    folder, record = summaries
    text = json.dumps({**record, name: "HERE"}).replace('"HERE"', value)
    (folder / "b.json").write_text(text)
    result = xclass("compare", "a.json", "b.json", cwd=folder)
    assert (result.status, result.out) == (1, "")
    assert result.err.startswith("xclass: b.json") and message in result.err and result.err.count("\n") == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            '{"search": 5}',
            "state: this is not a file of xclass tune, or it is damaged: search is 5; allowed is an object",
        ),
        (FACTS + '\n{"setting": "a", "learned": [[0, 5]], "judged": [5, 6], "seconds": 1, "failed": 3}', "failed is 3"),
        (FACTS + '\n{"setting": "a", "learned": 5, "judged": [5, 6], "seconds": 1, "failed": ""}', "learned is 5"),
        (FACTS + "\n\x1b[31m", "state:2:1: result 1 is damaged: this is no JSON"),
    ],
)
def test_a_crafted_state_of_tune_is_refused_with_its_place(tmp_path, monkeypatch, content, message):
    """`xclass tune --state` takes what it has written before (CWE-20, CWE-674)."""
    from xclass.tuning.search import Search

    monkeypatch.setattr(Search, "_facts", lambda self: {})
    (tmp_path / "d.vw").write_text("1 | a\n2 | b\n" * 300)
    (tmp_path / "state").write_text(content)
    result = xclass("tune", "-d", "d.vw", "--oaa", 2, "-b", 8, "--quiet", "--state", "state", cwd=tmp_path)
    assert result.status == 1, result.err
    assert message in result.err and "remove the file, or give another --state" in result.err
    assert "\x1b" not in result.err and "Traceback" not in result.err


def test_a_long_name_of_a_class_is_clipped_in_the_report(tmp_path):
    """The page shortens a name that a stranger's data give, wherever it stands; the JSON file has all of it."""
    pytest.importorskip("matplotlib", reason="reports need matplotlib")
    long = "x" * 4096
    (tmp_path / "d.vw").write_text(f"{long} | a\nshort | b\n{long} | b\n" * 20)
    learn("-d", "d.vw", "--oaa", 2, "--learn_names", "-b", 8, "--quiet", "-f", "m", cwd=tmp_path)
    result = xclass("report", "-i", "m", "-d", "d.vw", "-o", "r.html", "--json", "r.json", cwd=tmp_path)
    assert result.status == 0, result.err
    page = (tmp_path / "r.html").read_text()
    assert "x" * 59 + "…" in page and f"Class {'x' * 60}" not in page
    assert long in (tmp_path / "r.json").read_text()
