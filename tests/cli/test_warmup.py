"""`xclass warmup` compiles all that learning, predicting and serving need, once, wherever the package is installed."""

import http.client
import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import pytest
from command import xclass
from running import ROOT
from streams import of_kind
from variants import KINDS, chosen

from xclass.cli import warmup
from xclass.client import Client
from xclass.errors import XclassError
from xclass.kernels import jit
from xclass.run import warm_up

K = 5
SECONDS = 900
TESTED = ["oaa"]  # the others are slow tests
TABLE = "label,size,colour,text\n1,2.25,red,a kettle\n2,1e3,blue,a bean\n"
LIBRARY = """
import sys
import numpy as np
import xclass

name, k = sys.argv[1:]
one = xclass.Learner(*([name] if name == "scalar" else [name, k if name == "mach" else int(k)]))
labels = {"simple": [-1, 1], "multilabel": [[1], [1, 2]]}.get(one.core.config.reduction.labels, [1, 2]) * 30
rows = np.eye(6, dtype=np.float32)[np.arange(60) % 6]
one.learn_many(rows, labels, np.full(60, 0.5))
one.end_pass()
one.predict_many(rows.astype(np.float64))
if one.core.config.reduction.probabilities:
    one.predict_many(rows, k=3)
"""
READ_ONLY = """
import errno, os, sys, tempfile
def refuse(*words, **named):
    raise OSError(errno.EROFS, os.strerror(errno.EROFS))
tempfile.TemporaryFile = os.utime = refuse
from xclass.kernels import jit
jit._save = refuse
from xclass.cli import main
main()
"""


class Warm:
    """Hold a folder of kernels, which `xclass warmup` has compiled for some reductions, and start processes with it."""

    def __init__(self, folder: Path, *names: str) -> None:
        self.kernels, self.place = folder / "kernels", folder
        self.kernels.mkdir(0o700)
        self.first = self.run("-m", "xclass", "warmup", *names).stderr
        self.files = self.found()

    def found(self) -> dict[str, int]:
        """Return the files of kernels, and the names of the notes, with the times when the files were written."""
        return {
            path.name: 0 if path.suffix == ".ready" else path.stat().st_mtime_ns
            for path in self.kernels.iterdir() if path.name != "lock"
        }  # fmt: skip

    def environment(self, package: Path = ROOT) -> dict[str, str]:
        given = {**os.environ, "PYTHONPATH": str(package), "NUMBA_CACHE_DIR": str(self.kernels)}
        return {name: value for name, value in given.items() if name != "NUMBA_DISABLE_JIT"}

    def run(self, *words: object, package: Path = ROOT) -> subprocess.CompletedProcess:
        result = subprocess.run(
            [sys.executable, *map(str, words)], cwd=self.place, env=self.environment(package), timeout=SECONDS,
            capture_output=True, text=True, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert result.returncode == 0, result.stderr
        return result

    def loads(self, *words: object, **more: Path) -> str:
        """Run a command that must not compile or write a kernel, and return what it writes to standard error."""
        before = self.found()
        result = self.run(*words, **more)
        new = self.found()
        assert {name for name, time in new.items() if before.get(name) != time} == set(), words
        assert "compiling" not in result.stderr
        return result.stderr


def use_everything(warm: Warm, name: str) -> None:
    """Learn, predict and serve in all ways that have to find their kernels, with other data than those of `warmup`."""
    kind = KINDS[{"multiclass": "cpt", "hsm": "cpt"}.get(name, name)]
    if name == "mach":
        learn = ["--mach", "2,4"]
    elif name in KINDS:
        learn = list(chosen(name, K))
    else:
        learn = [f"--{name}", K]
    text = of_kind(kind, 3, K, 200, tags=True, weights=(1, 0.5, 2), unlabelled=0.1)
    (warm.place / "d.vw").write_text(text)
    (warm.place / "d.csv").write_text(TABLE)
    run = partial(warm.loads, "-m", "xclass")
    learns = name != "softmax_tree"  # else it learns at the end of the data, in a single pass
    several = ["--passes", 2, "-c", "-k"] if learns and kind != "rows" else []
    run(*learn, "-d", "d.vw", "-f", "m", "-p", "p", *several)
    run("-t", "-i", "m", "-d", "d.vw", "-p", "p")
    help_text = xclass("--help", name).out
    if "--top_k" in help_text:
        run("-t", "-i", "m", "-d", "d.vw", "-p", "p", "--top_k", 5)
    if "--max_doublings" in help_text:  # tables that grow
        run(*learn, "-d", "d.vw", "-b", 6, "--max_doublings", 4)
    if kind in ("multiclass", "rows"):
        (warm.place / "n.vw").write_text(re.sub("^([0-9])", r"class\1", text, flags=re.MULTILINE))
        run(*learn, "-d", "n.vw", "-f", "n", "--learn_names")
    if kind != "rows":
        run(*learn, "-d", "d.csv", "-f", "t")
    warm.loads("-c", LIBRARY, name, learn[1] if len(learn) > 1 else "")
    serve(warm, text.splitlines(), [] if learns else ["-t"])


def serve(warm: Warm, lines: list[str], words: list[str]) -> None:
    """Ask a server for all forms, by HTTP if that is installed."""
    before = warm.found()
    has_http = importlib.util.find_spec("httptools") is not None
    command = [sys.executable, "-m", "xclass", "serve", "-i", "m", "--port", "0", *words]
    process = subprocess.Popen(
        [*command, *(["--http", "0"] if has_http else [])], cwd=warm.place, env=warm.environment(),
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    said = []
    try:
        while len(ports := re.findall(r"^serving .*:(\d+)/?$", "".join(said), re.MULTILINE)) < 1 + has_http:
            said.append(process.stderr.readline())
            assert said[-1], "".join(said)
        bare = [line[line.index("|") :] for line in lines[:9]]
        with Client(port=int(ports[0]), timeout=SECONDS) as client:
            client.predict(bare)
            if not words:
                client.learn(lines[:9])
        if has_http:
            connection = http.client.HTTPConnection("127.0.0.1", int(ports[1]), timeout=SECONDS)
            for path, body in (
                ("predict", {"lines": bare}),
                ("predict", {"examples": [{"colour": "red", "size": 2.5}]}),
                ("predict", {"texts": ["a red cup"]}),
            ):
                connection.request("POST", f"/v1/{path}", json.dumps(body), {"Content-Type": "application/json"})
                answer = connection.getresponse()
                assert answer.status in (200, 400), answer.read()  # rows of numbers are no text
                answer.read()
    finally:
        process.terminate()
        said.append(process.communicate(timeout=SECONDS)[1])
    assert warm.found() == before, {*warm.found()} - {*before}
    assert "compiling" not in "".join(said)


def check_messages(warm: Warm) -> None:
    counts = re.findall(r"^(.+): (\d+) kernels? compiled$", warm.first, re.MULTILINE)
    assert [name for name, _ in counts] == [*TESTED, "files of each format"]
    assert sum(int(count) for _, count in counts) > 100
    kept = rf"the kernels of oaa are kept in {re.escape(str(warm.kernels))}, which has \d+ MB\n"
    assert re.search(rf"^{kept}", warm.first, re.MULTILINE)
    again = warm.loads("-m", "xclass", "warmup", *TESTED)
    assert re.fullmatch(f"nothing had to be compiled: {kept}", again)
    assert warm.loads("-m", "xclass", "warmup", "--quiet", *TESTED) == ""


def use_a_copy_of_the_package(warm: Warm) -> None:
    """Run a copy in another folder, whose files have other times."""
    shutil.copytree(ROOT / "xclass", warm.place / "copy/xclass", ignore=shutil.ignore_patterns("__pycache__"))
    for path in (warm.place / "copy").rglob("*.py"):
        path.touch()
    for words in (["--oaa", K, "-d", "c.vw", "-f", "c"], ["-t", "-i", "c", "-d", "c.vw"]):
        warm.loads("-m", "xclass", *words, package=warm.place / "copy")
    said = warm.loads("-m", "xclass", "warmup", *TESTED, package=warm.place / "copy")
    assert "nothing had to be compiled" in said


def only_read(warm: Warm) -> None:
    """Use a folder that cannot be written to."""
    said = warm.loads("-c", READ_ONLY, "--oaa", K, "-d", "c.vw")
    assert "warning" not in said and "finished run" in said
    assert "nothing had to be compiled" in warm.loads("-c", READ_ONLY, "warmup", *TESTED)


def test_whatever_uses_the_reductions_finds_all_their_kernels(tmp_path):
    """One test, because several would compile the same kernels in different processes of the test run."""
    warm = Warm(tmp_path, *TESTED)
    check_messages(warm)
    for name in TESTED:
        use_everything(warm, name)
    (tmp_path / "c.vw").write_text(of_kind("multiclass", 4, K, 50))
    use_a_copy_of_the_package(warm)
    only_read(warm)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in dict.fromkeys((*warmup.COMMON, *KINDS)) if name not in TESTED])
def test_what_uses_another_reduction_finds_all_its_kernels(tmp_path, name):
    use_everything(Warm(tmp_path, name), name)


def test_an_interruption_leaves_neither_processes_nor_temporary_files(tmp_path):
    kernels, temporary = tmp_path / "kernels", tmp_path / "temporary"
    kernels.mkdir(0o700)
    temporary.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-m", "xclass", "warmup", "oaa"], stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT), "NUMBA_CACHE_DIR": str(kernels), "TMPDIR": str(temporary)},
    )  # fmt: skip
    while not list(temporary.glob("*/*/data*")):  # a job has begun
        assert process.poll() is None
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=SECONDS)  # once all processes that have its standard error have ended
    assert process.returncode == 130 and not list(temporary.iterdir())


def test_a_note_is_of_a_processor(monkeypatch):
    from numba.core import config

    stamps = set()
    for name, features in ((None, None), ("generic", ""), ("x86-64-v3", ""), ("generic", "+avx2")):
        monkeypatch.setattr(config, "CPU_NAME", name)
        monkeypatch.setattr(config, "CPU_FEATURES", features)
        stamps.add(jit._stamp.__wrapped__())
    assert len(stamps) == 4


def test_a_process_that_fails_is_reported(monkeypatch):
    with pytest.raises(XclassError, match=r"^it: its kernels could not be compiled: FileNotFoundError: .*/nowhere"):
        list(warm_up.ahead({"it": partial(os.mkdir, "/nowhere/at/all")}))
    monkeypatch.setattr(jit, "_save_problem", "/full: compiled kernels cannot be kept there (No space left on device)")
    monkeypatch.setattr(jit, "take_turns", lambda path: None)
    monkeypatch.setattr(tempfile, "tempdir", None)
    with pytest.raises(XclassError, match=r"^/full: compiled kernels cannot be kept there"):
        warm_up._in_turns("", lambda: None)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["recal_tree"], "there is no reduction 'recal_tree'; did you mean recall_tree?"),
        (["oaa", "x"], "there is no reduction 'x'; the reductions are scalar, "),
        (["-b", "18"], "there is no option -b; xclass warmup --help lists all options"),
    ],
)
def test_what_is_no_reduction_is_refused(words, message):
    result = xclass("warmup", *words)
    assert result.status == 2 and result.err.startswith(f"xclass: {message}")


def test_nothing_is_compiled_where_nothing_is_kept(monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(jit, "_is_kept", False)
        patch.setattr(jit, "is_first_run", lambda component: component == "warmup-oaa")
        result = xclass("warmup", "oaa", "ect")
        assert result.status == 1 and ": the kernels of oaa cannot be kept there, because" in result.err
    monkeypatch.setattr(jit, "_folder", None)
    for problem, message in (
        ("compiled kernels cannot be kept in /x", "compiled kernels cannot be kept in /x"),
        ("", "NUMBA_DISABLE_JIT is set, so that nothing is compiled; unset it"),
    ):
        monkeypatch.setattr(jit, "_cache_problem", problem)
        result = xclass("warmup", "oaa")
        assert (result.status, result.err) == (1, f"xclass: {message}\n")
