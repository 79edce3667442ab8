"""Advice about memory, limits, variables and packages is followed as it is shown, and leads to success."""

import contextlib
import importlib
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest
import tomllib
from command import xclass as run
from command import xclass_process

import xclass
import xclass.ray
from xclass import serve
from xclass.cli import PACKAGES
from xclass.kernels import jit
from xclass.system import memory

ROOT = Path(xclass.__file__).parents[1]
DATA = "1 | a b\n2 | b\n" * 30
SMALL, CPT = "--oaa 3 -d d.vw", "--cpt 3 -d d.vw"
# free memory in MB, words of the command, the advice, and the words that follow it
OF_MEMORY = [
    (100, f"{SMALL} -b 28", r"the largest that fits is (-b \d+)$", f"{SMALL} {{}}"),
    (2, "--random_tree 300000 -d d.vw -b 10", "give fewer (classes)$", "--random_tree 300 -d d.vw -b 10"),
    (2, "--recall_tree 300000 -d d.vw -b 10", "give a smaller (--max_depth)$",
     "--recall_tree 300000 -d d.vw -b 10 {} 1"),
    (90, f"{CPT} -b 18 --layout tagged --max_doublings 6", r"give at most (--max_doublings \d+),",
     f"{CPT} -b 18 --layout tagged {{}}"),
    (90, f"{CPT} -b 18 --layout tagged --max_doublings 6", "or give a smaller (-b)$",
     f"{CPT} {{}} 10 --layout tagged --max_doublings 6"),
    (9, f"{CPT} -b 10 --cpt_arity 65536", r"give at most (--cpt_arity \d+)$", f"{CPT} -b 10 {{}}"),
]  # fmt: skip


@pytest.mark.parametrize(("megabytes", "words", "advice", "instead"), OF_MEMORY)
def test_advice_about_memory_is_followed(place, monkeypatch, megabytes, words, advice, instead):
    Path("d.vw").write_text(DATA)
    monkeypatch.setattr(memory, "available", lambda: megabytes << 20)
    refused = run(*words.split())
    found = re.search(advice, refused.err, re.MULTILINE)
    assert refused.status and found, refused.err
    followed = run(*instead.format(found[1]).split())
    assert followed.status == 0, followed.err


PYTHON = f"{sys.executable} -c"
COMMAND = f"{sys.executable} -m xclass --oaa 3 -d d.vw --quiet"
CACHED = f"{sys.executable} -m xclass --oaa 3 --cache_file c --quiet"
WARMUP = f"{sys.executable} -m xclass warmup scalar"
OTHER = f"{sys.executable} -m xclass"
TUNE = f"{sys.executable} -m xclass tune --multiclass -d d.vw --settings 2"
CHECK = "'import xclass; print(xclass.check_reduction(\"scalar\"))'"
SERVER = f"""{PYTHON} '
import xclass.serve
xclass.serve.run(xclass.Learner("oaa", 3, bits=10), port=0, ready=lambda server: server.stop_soon())
'"""
FOLDER = f"""{PYTHON} '
import sys
from xclass.kernels import jit
jit.activate()
print(jit.cache_problem(), jit.save_problem(), file=sys.stderr)
'"""
LIMITED = "ulimit -v 300000"
# commands of a shell, the advice, and the commands that follow it
OF_A_SHELL = [
    (f"{LIMITED}; {COMMAND}", r"raise the limit, `(ulimit -v \d+)`", f"{{}}; {COMMAND}"),
    (f"{LIMITED}; {COMMAND}", "or remove it, `(ulimit -v unlimited)`", f"{{}}; {COMMAND}"),
    (f"ulimit -n 70; {SERVER}", r"as by `(ulimit -n \d+)`", f"{{}}; {SERVER}"),
    (f"{sys.executable} -O -c {CHECK}", "start it (without) -O", f"{PYTHON} {CHECK}"),
    (f"export NUMBA_CACHE_DIR=d.vw/x; {COMMAND}", "set that variable to a (folder)",
     f"export NUMBA_CACHE_DIR=$OWN; {COMMAND}"),
    (f"export NUMBA_CACHE_DIR=d.vw/x; {COMMAND}", "or (unset) it", f"{{}} NUMBA_CACHE_DIR; {COMMAND}"),
    (f"ulimit -f 1; {COMMAND} -f m", r"raise the limit, `(ulimit -f)`", f"{{}} unlimited; {COMMAND} -f m"),
    (f"{CACHED} < /dev/null", "give the data with (-d)", f"{CACHED} {{}} d.vw"),
    (f"{CACHED} -d d.vw; {CACHED} --ngram 2 < /dev/null", "or the (options) it was made with",
     f"{CACHED} -d d.vw; {CACHED} < /dev/null"),
    (f"ulimit -f 1; {COMMAND} --summary s", r"raise the limit, `(ulimit -f)`",
     f"{{}} unlimited; {COMMAND} --summary s"),
    (f"ulimit -f 1; {COMMAND} --summary s", "or give a file (elsewhere)$", f"{COMMAND} --summary s"),
    (f"export NUMBA_DISABLE_JIT=1; {WARMUP}", "nothing is compiled; (unset) it",
     f"export NUMBA_DISABLE_JIT=1; {{}} NUMBA_DISABLE_JIT; {WARMUP}"),
    (f"export TMPDIR=$PWD/none; {OTHER} --softmax_tree 3 -d d.vw", "set (TMPDIR) to another folder",
     f"export {{}}=$PWD; {OTHER} --softmax_tree 3 -d d.vw"),
    (f"export TMPDIR=$PWD/none; cat d.vw | {OTHER} --oaa 3 --passes 2", "set (TMPDIR) to another",
     f"export {{}}=$PWD; cat d.vw | {OTHER} --oaa 3 --passes 2"),
    (f"export TMPDIR=$PWD/none; {TUNE}", "set (TMPDIR) to another", f"export {{}}=$PWD; {TUNE}"),
    (f"{COMMAND} -f m; cat d.vw | {OTHER} report -i m -d /dev/stdin -o r.html", "write them to a (file) first",
     f"{COMMAND} -f m; {OTHER} report -i m -d d.vw -o r.html"),
    (f"{OTHER} --oaa 3 -d file://$PWD/d.vw -c", "; copy the (file), or", f"{OTHER} --oaa 3 -d d.vw -c"),
    (f"{OTHER} --oaa 3 -d file://$PWD/d.vw -c", "or leave (-c) out", f"{OTHER} --oaa 3 -d file://$PWD/d.vw"),
    (f"ln -s loop loop; {COMMAND} -p loop", "leads back to itself; (remove) it", f"{COMMAND} -p loop"),
    (f"ln -s loop loop; {COMMAND} -f loop", "leads back to itself; (remove) it", f"{COMMAND} -f loop"),
    (f"ln -s loop loop; {COMMAND} -f loop", "or give another (file)$", f"ln -s loop loop; {COMMAND} -f m"),
    (f"{COMMAND} -p none/p", "; (create) it, or", f"mkdir none; {COMMAND} -p none/p"),
    (f"{COMMAND} -f none/m", "; (create) it, or", f"mkdir none; {COMMAND} -f none/m"),
    (f"{TUNE} --memory 5M", r"of at least (\d+),", f"{TUNE} --memory {{}}"),
    (f"export XDG_CACHE_HOME=$PWD/d.vw/x; {FOLDER}", "set (XDG_CACHE_HOME) to a folder",
     f"export {{}}=$PWD; {FOLDER}"),
    (f"mkdir -p k/lock; export NUMBA_CACHE_DIR=k; {FOLDER}", "or (let this user write) there",
     f"mkdir k; export NUMBA_CACHE_DIR=k; {FOLDER}"),
    (f"mkdir -p k/lock; export NUMBA_CACHE_DIR=k; {FOLDER}", "or set (NUMBA_CACHE_DIR) to another folder",
     f"mkdir -p k/lock; export {{}}=other; {FOLDER}"),
    (f"mkdir -m 777 open; export NUMBA_CACHE_DIR=open; {FOLDER}", r"write from others \((chmod go-w)\)",
     f"mkdir -m 777 open; {{}} open; export NUMBA_CACHE_DIR=open; {FOLDER}"),
    (f"mkdir -m 777 open; export NUMBA_CACHE_DIR=open; {FOLDER}", "or set (NUMBA_CACHE_DIR) to a folder that only",
     f"mkdir -m 700 own; export {{}}=own; {FOLDER}"),
]  # fmt: skip


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux has all of these limits")
@pytest.mark.parametrize(("words", "advice", "instead"), OF_A_SHELL)
def test_advice_about_limits_and_variables_is_followed(tmp_path, words, advice, instead):
    variables = {**os.environ, "PYTHONPATH": str(ROOT), "OWN": str(jit.folder())}
    if "CACHE" in words:
        variables.pop("NUMBA_CACHE_DIR", None)

    def said(script, folder):
        folder.mkdir()
        (folder / "d.vw").write_text(DATA)
        return subprocess.run(
            ["bash", "-c", script], cwd=folder, env=variables, capture_output=True, text=True, timeout=400
        )

    found = re.search(advice, said(words, tmp_path / "first").stderr)
    assert found
    followed = said(instead.format(found[1]), tmp_path / "second")
    assert followed.returncode == 0, followed.stderr
    assert not re.search(advice, followed.stderr), followed.stderr


def stranger():
    """Go on as a user who may neither write to the files of others nor read their compiled kernels."""
    jit._folder = None
    if os.getuid() == 0:
        os.setgid(65534)
        os.setuid(65534)


def with_few_processes():
    import resource

    stranger()
    resource.setrlimit(resource.RLIMIT_NPROC, (1, resource.getrlimit(resource.RLIMIT_NPROC)[1]))


def with_little_memory():
    """Refuse what takes more than the threads of a run do, as where free memory is not known before."""
    import resource

    memory.available = lambda: None
    most = memory._used() + memory.THREADS + (64 << 20)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def with_a_mounted_folder():
    """Take the folder `closed` for one of a file system that is mounted read-only."""
    allowed, described = os.access, os.statvfs
    os.access = lambda path, mode: "closed" not in str(path) and allowed(path, mode)
    os.statvfs = lambda path: SimpleNamespace(f_flag=os.ST_RDONLY) if "closed" in str(path) else described(path)


def as_before():
    jit._folder = None


RECALL_TREE = "-d large.vw -b 10 --max_depth 1 --recall_tree"
# what happens to a process, words of the command, the advice, and the process and the words that follow it
OF_A_PROCESS = [
    (with_few_processes, SMALL, r"raise the limit of processes \(`(ulimit -u)`\)", stranger, SMALL),
    (with_little_memory, f"{SMALL} -b 28", r"not enough memory \(.+\); try a smaller (-b),", with_little_memory,
     f"{SMALL} {{}} 10"),
    (with_little_memory, f"{RECALL_TREE} 2000000000", "fewer (classes),", with_little_memory,
     "-d d.vw -b 10 --recall_tree 2"),
    (with_little_memory, f"{RECALL_TREE} 2000000000", "or (--learn_names) for large", with_little_memory,
     f"{RECALL_TREE} 2 {{}}"),
    (stranger, f"{SMALL} -p closed/p", "give a file in a (folder of your own)", stranger, f"{SMALL} -p own/p"),
    (stranger, f"{SMALL} -f closed/m", "give a file in a (folder of your own)", stranger, f"{SMALL} -f own/m"),
    (stranger, f"{SMALL} -p own/protected", "change that by (chmod) or chown", stranger, f"{SMALL} -p own/protected"),
    (stranger, f"{SMALL} -p own/protected", "or give another (file)$", stranger, f"{SMALL} -p own/p"),
    (with_a_mounted_folder, f"{SMALL} -p closed/p", "(mount it) so that it can be written to", as_before,
     f"{SMALL} -p closed/p"),
    (with_a_mounted_folder, f"{SMALL} -p closed/p", "or give a file (elsewhere)$", with_a_mounted_folder,
     f"{SMALL} -p own/p"),
    (with_a_mounted_folder, f"{SMALL} -f closed/m", "or give a file (elsewhere)$", with_a_mounted_folder,
     f"{SMALL} -f own/m"),
]  # fmt: skip


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux has all of these limits")
@pytest.mark.parametrize(("prepare", "words", "advice", "prepare_again", "instead"), OF_A_PROCESS)
def test_advice_about_what_a_process_may_not_do_is_followed(
    monkeypatch, prepare, words, advice, prepare_again, instead
):
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:  # which others may enter, unlike that of `tmp_path`
        monkeypatch.chdir(folder)
        Path(folder).chmod(0o755)
        Path("d.vw").write_text(DATA)
        Path("large.vw").write_text("1 | a\n1900000000 | b\n")
        Path("closed").mkdir(0o755)
        Path("own").mkdir()
        Path("own").chmod(0o777)
        Path("own/protected").touch(0o444)
        if os.getuid():
            Path("closed").chmod(0o555 if prepare is stranger else 0o755)
        run(*SMALL.split(), "-p", "p", "-f", "m")  # a stranger may not be able to load modules
        refused = xclass_process(*words.split(), preexec_fn=prepare)
        found = re.search(advice, refused.err, re.MULTILINE)
        assert refused.status and found, refused.err
        if found[1] == "chmod":
            Path("own/protected").chmod(0o666)
        followed = xclass_process(*instead.format(found[1]).split(), preexec_fn=prepare_again)
        assert followed.status == 0 and found[0] not in followed.err, followed.err


BLOCKS_IMPORTS = "import os, sys\nsys.modules.update(dict.fromkeys(os.environ['BLOCKED'].split()))\n"


@pytest.mark.parametrize("packages", [["numpy"], ["numba"], ["click"], ["mmh3"], ["tqdm"], ["numba", "mmh3"]])
@pytest.mark.parametrize("words", ["--oaa 3 -d d.vw", "--help", "warmup", "tune --multiclass -d d.vw", "serve -i m"])
def test_a_missing_package_of_the_core_is_named_without_a_traceback(place, packages, words):
    """Installing is not tried; the packages that the command is to install are those that cannot be imported."""
    Path("sitecustomize.py").write_text(BLOCKS_IMPORTS)
    variables = {**os.environ, "PYTHONPATH": f".:{ROOT}", "BLOCKED": " ".join(packages)}
    refused = subprocess.run(
        [sys.executable, "-m", "xclass", *words.split()], env=variables, capture_output=True, text=True, timeout=60
    )
    (message,) = refused.stderr.splitlines()
    found = re.search(r"^xclass: (.*), which xclass needs.*`(\S+) -m pip install (.*)`$", message)
    assert refused.returncode and found, message
    assert found[1].split(" and ") == found[3].split(" ") == packages and found[2] == sys.executable


def test_the_packages_of_the_core_are_those_that_installing_takes():
    with open(ROOT / "pyproject.toml", "rb") as file:
        needed = tomllib.load(file)["project"]["dependencies"]
    assert [re.match(r"\w+", one)[0] for one in needed] == [*PACKAGES]


@pytest.mark.parametrize("second_problem", ["", "no such member"])
def test_the_version_of_numba_that_advice_names_is_one_that_can_be_used(monkeypatch, second_problem):
    """Installing is not tried; the version that is installed here is one of those that are named."""
    requirements = pytest.importorskip("packaging.requirements")
    import numba

    for name, value in (("_is_kept", True), ("_plain", False), ("_cache_problem", "")):
        monkeypatch.setattr(jit, name, value)
    monkeypatch.setattr(jit, "is_first_run", lambda component: True)
    problems = iter(["no such member", second_problem])
    with monkeypatch.context() as patch:
        patch.setattr(jit, "_trial_problem", lambda: next(problems))
        try:
            jit._try_numba()
            message = jit.cache_problem()
        except xclass.XclassError as error:
            message = str(error)
    found = re.search(r"install a newer xclass, or a version .* \(pip install '([^']*)'\)$", message)
    assert found and ("cannot compile" in message) == bool(second_problem), message
    named = requirements.Requirement(found[1])
    assert named.name == "numba" and named.specifier.contains(numba.__version__)
    monkeypatch.setattr(jit, "_plain", False)
    assert not jit._trial_problem()


def imported_anew(name):
    def call():
        with pytest.MonkeyPatch.context() as patch:
            patch.delitem(sys.modules, name, raising=False)
            importlib.import_module(name)

    return call


def packed():
    import zstandard

    Path("d.vw.zst").write_bytes(zstandard.compress(DATA.encode()))


def with_model(use, *prepare):
    def call():
        with xclass.Learner("oaa", 3, bits=10) as model:
            use(model)

    return call


# a module that is missing, a call that needs it, and the advice, whose group is an extra or a package
OF_PACKAGES = [
    ("ray", lambda: xclass.ray.fit("d.vw", xclass.Learner("oaa", 3, bits=10), workers=1),
     r"run pip install '\.\[(\w+)\]' in the folder of xclass"),
    ("river", imported_anew("xclass.river"), r"run pip install '\.\[(\w+)\]' in the folder of xclass"),
    ("sklearn.metrics", imported_anew("xclass.sklearn"), r"run pip install '\.\[(\w+)\]' in the folder of xclass"),
    ("httptools", with_model(lambda model: serve.run(model, port=0, http="0", ready=lambda one: one.stop_soon())),
     r"run pip install '\.\[(\w+)\]' in the folder of xclass"),
    ("zstandard", with_model(lambda model: model.learn_file("d.vw.zst")), "install it, `pip install (zstandard)`"),
    ("fsspec.core", with_model(lambda model: model.learn_file(Path("d.vw").absolute().as_uri())),
     "install it, `pip install (fsspec)`"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("module", "call", "advice"), OF_PACKAGES, ids=lambda given: given if "." in str(given) else ""
)
def test_the_package_that_advice_installs_is_the_one_that_is_missing(place, monkeypatch, module, call, advice):
    pytest.importorskip(module, reason=f"{module} is not installed")
    Path("d.vw").write_text(DATA)
    with contextlib.suppress(ImportError):
        packed()
    with monkeypatch.context() as patch:
        for name in [name for name in sys.modules if name.startswith("xclass.serving.http")]:
            patch.delitem(sys.modules, name)
        for name in [module, *(name for name in sys.modules if name.startswith(f"{module}."))]:
            patch.setitem(sys.modules, name, None)
        with pytest.raises((xclass.XclassError, ImportError)) as raised:
            call()
    found = re.search(advice, str(raised.value))
    assert found, str(raised.value)
    package = {"sklearn.metrics": "scikit-learn"}.get(module, module.split(".")[0])
    if "[" in advice:
        with open(ROOT / "pyproject.toml", "rb") as file:
            extras = tomllib.load(file)["project"]["optional-dependencies"]
        assert any(re.match(rf"{package}\b", needed) for needed in extras[found[1]])
    else:
        assert found[1] == package
    if module != "ray":  # that starts in seconds; `tests/cluster` runs it
        call()
