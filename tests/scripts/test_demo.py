"""The quickstart's stream maker and report, and how its script and the tests' script stop."""

import gzip
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from running import ROOT

import xclass
from demo import make_stream, report


def parsed(path):
    """Return the examples of a stream as (label, [token in a, ..., token in f])."""
    rows = []
    for line in path.read_text("utf-8").splitlines():
        match = re.fullmatch(r"(\d+) " + " ".join(rf"\|{name} ([^ :|\t]+)" for name in "abcdef"), line)
        assert match, line
        rows.append((int(match[1]), list(match.groups()[1:])))
    return rows


def labels_of(folder):
    pairs = [line.split("\t") for line in (folder / "labels.txt").read_text("utf-8").splitlines()]
    assert [int(label) for label, _ in pairs] == list(range(1, len(pairs) + 1))
    return [token for _, token in pairs]


@pytest.fixture(scope="module")
def stream(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stream")
    return folder, make_stream.make(folder, limit=20_000)


def test_stream_of_the_library_is_next_token_data(stream):
    folder, facts = stream
    train, test, tokens = parsed(folder / "train.vw"), parsed(folder / "test.vw"), labels_of(folder)
    assert len(train) == facts["train"] == 20_000 and len(test) == facts["test"]
    assert len(tokens) == facts["classes"] and len(set(tokens)) == len(tokens)
    begun = 0
    for (label, _), (_, following) in itertools.pairwise(train):
        if following == ["<start>"] * 6:
            begun += 1
        else:
            assert tokens[label - 1] == following[0]
    assert begun == facts["train_files"] - 1
    for (_, context), (_, following) in itertools.pairwise(train):
        assert following == ["<start>"] * 6 or following[1:] == context[:-1]


def test_same_stream_every_time(stream, tmp_path):
    folder, facts = stream
    command = [sys.executable, ROOT / "demo" / "make_stream.py", tmp_path, "--limit", "20000"]
    result = subprocess.run(command, capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": "7"})
    assert f"{facts['classes']:,} classes" in result.stdout
    for name in ("train.vw", "test.vw", "labels.txt", "facts.json"):
        assert (tmp_path / name).read_bytes() == (folder / name).read_bytes()
    make_stream.make(tmp_path, limit=2000, seed=2)
    first = (tmp_path / "train.vw").read_bytes()
    make_stream.make(tmp_path, limit=2000, seed=3)
    assert (tmp_path / "train.vw").read_bytes() != first


def installed(folder, *scripts):
    """Copy scripts, and make an environment for them as if xclass was installed; return the folder of its programs."""
    for name in (*scripts, "demo/make_stream.py", "scripts/environment.sh"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    (folder / "pyproject.toml").touch()
    programs = folder / ".venv" / "bin"
    programs.mkdir(parents=True)
    package = Path(xclass.__file__).parents[1]
    for name, module in (("python", ""), ("xclass", " -m xclass")):
        (programs / name).write_text(f'#!/bin/sh\nPYTHONPATH="{package}" exec "{sys.executable}"{module} "$@"\n')
        (programs / name).chmod(0o755)
    wanted = subprocess.run(["cksum"], input="", capture_output=True, text=True).stdout
    (folder / ".venv" / "installed").write_text(f"{folder} {wanted.strip()}\n")
    return programs


def test_piped_stream_is_learned_as_it_goes_by(tmp_path):
    programs = installed(tmp_path, "demo/piped.sh")
    script = ["sh", tmp_path / "demo" / "piped.sh"]
    result = subprocess.run(script, cwd="/", env={**os.environ, "EXAMPLES": "6000"}, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert "--limit 6000 | xclass --cpt 0" in result.stdout
    rows = [line.split() for line in result.stderr.splitlines() if re.match(r"\d\.\d{6} ", line)]
    assert [int(row[2]) for row in rows] == [1 << i for i in range(len(rows))] and len(rows) == 13
    assert float(rows[-1][0]) < float(rows[5][0])
    assert "number of examples = 6000" in result.stderr
    (programs / "xclass").write_text("#!/bin/sh\nexit 1\n")
    result = subprocess.run(script, cwd="/", env={**os.environ, "EXAMPLES": "6000"}, capture_output=True, text=True)
    assert result.returncode == 1 and "piped: learning from the pipe failed" in result.stderr


# -- the report --------------------------------------------------------------------------------------------------


def test_report_compares_and_times(stream, tmp_path, capsys):
    folder, facts = stream
    for name in ("test.vw", "facts.json"):
        shutil.copy(folder / name, tmp_path)
    truth = [label for label, _ in parsed(folder / "test.vw")]
    half = [label if i % 2 else facts["classes"] + 1 for i, label in enumerate(truth)]
    for way, predictions in (("half", half), ("right", truth)):
        (tmp_path / f"{way}.predictions.txt").write_text("".join(f"{label}\n" for label in predictions))
    for name in ("half.train.json", "half.test.json", "right.train.json", "right.test.json"):
        assert report.run(tmp_path / name, [sys.executable, "-c", "bytearray(50_000_000)"]) == 0
    note = json.loads((tmp_path / "half.train.json").read_text())
    assert note["memory"] > 50e6 and 0 < note["seconds"] < 60
    report.show(tmp_path, ["half", "right"])
    output = capsys.readouterr().out
    assert re.search(r"0\.50\d\d  xclass half", output) and re.search(r"0\.0000  xclass right", output)
    assert len(re.findall(r"--\w+ +(train|test)ing .* examples/s", output)) == 4
    (tmp_path / "half.predictions.txt").write_text("1\n")
    with pytest.raises(SystemExit, match="one prediction for each line"):
        report.show(tmp_path, ["half"])


# -- the scripts -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("script", ["demo/quickstart.sh", "demo/piped.sh", "scripts/test.sh"])
def test_scripts_stop_where_there_is_no_python(tmp_path, script):
    for name in ("demo/quickstart.sh", "demo/piped.sh", "scripts/test.sh", "scripts/environment.sh"):
        (tmp_path / "a b" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / "a b" / name)
    (tmp_path / "a b" / "pyproject.toml").touch()
    result = subprocess.run(
        ["sh", tmp_path / "a b" / script],
        cwd="/",
        env={**os.environ, "PYTHON": "false"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert result.returncode == 1
    assert "false is not a Python of 3.10 or newer; name one with PYTHON=" in result.stderr
    assert not (tmp_path / "a b" / ".venv").exists()


def test_demo_of_texts_prints_the_most_probable_classes_without_matplotlib(tmp_path, monkeypatch, capsys):
    pytest.importorskip("sklearn")
    from demo import top5_text

    lines = "".join(f"{k + 1} |text word{k} other{k} more{i}\n" for i in range(20) for k in range(6))
    for name, content in (
        ("train.vw.gz", lines),
        ("test.vw.gz", lines),
        ("labels.txt.gz", "".join(f"{k + 1}\tclass{k}\n" for k in range(6))),
    ):
        with gzip.open(tmp_path / name, "wt") as file:
            file.write(content)
    monkeypatch.setitem(sys.modules, "matplotlib", None)  # an import of it fails
    monkeypatch.setattr(sys, "argv", ["top5_text.py", str(tmp_path), str(tmp_path / "plot.png")])
    top5_text.main()
    printed = capsys.readouterr().out
    assert printed.startswith("120 texts, 6 classes, test accuracy 1.000")
    assert len(re.findall(r"'word(\d) other\1 more\d+' is class\1\n  [01]\.\d{3}  class\1\n", printed)) == 3
    assert printed.endswith("no plot, because matplotlib is not installed: pip install matplotlib\n")
    assert not (tmp_path / "plot.png").exists()
