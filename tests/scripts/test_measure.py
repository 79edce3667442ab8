"""The runner of measurements on tiny sets: every measurement of the table, its options, figures and records."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from command import learn
from library import fact
from running import environment, tool
from streams import multiclass

from scripts.lib import measurements, peers, runner
from scripts.lib.processes import BenchError

K = 12
SMALL = ["--lines", 400, "--tested", 300, "--repetitions", 1, "--options=--threads 1"]


@pytest.fixture
def data(tmp_path, monkeypatch):
    """Sets of classes, lists of labels, texts and rows, each by the name that a measurement has for it."""
    monkeypatch.chdir(tmp_path)
    for name in ("tiny", "aloi27"):
        folder = tmp_path / "data" / name
        folder.mkdir(parents=True)
        (folder / "train.vw").write_text(multiclass(41, K, 600, noise=0.3))
        (folder / "test.vw").write_text(multiclass(42, K, 150, noise=0.3))
        (folder / "labels.txt").write_text("".join(f"{y}\tl{y}\n" for y in range(1, K + 1)))
    lists, texts, rows = (tmp_path / "data" / name for name in ("lists", "texts", "rows"))
    for folder in (lists, texts, rows):
        folder.mkdir()
    draw = np.random.default_rng(3)
    for part, n in (("train", 400), ("test", 100)):
        labels = [sorted({int(y) for y in draw.integers(0, 8, 2)}) for _ in range(n)]
        made = [
            f"{','.join(map(str, own))} | {' '.join(f'w{y}' for y in own)} x{i % 9}\n" for i, own in enumerate(labels)
        ]
        (lists / f"{part}.vw").write_text("".join(made))
        (texts / f"{part}.csv").write_text(
            "label,text\n" + "".join(f"c{i % 3},Word{i % 3} and {i}\n" for i in range(n))
        )
        label = np.arange(n) % 5 + 1
        np.save(rows / f"{part}.npy", (draw.normal(size=(n, 6)) + 9 * np.eye(6)[label]).astype(np.float32))
        np.save(rows / f"{part}.labels.npy", label)
    (lists / "labels.txt").write_text("".join(f"{y}\tl{y}\n" for y in range(8)))
    return tmp_path / "data"


def cells(result) -> list[list[str]]:
    """Return the rows of the first table, its heads first."""
    assert result.returncode == 0, result.stderr
    first = result.stdout.split("\n\n")[0]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in first.splitlines() if line.startswith("|")]
    return [rows[0], *rows[2:]]


def alone(name, *words) -> subprocess.CompletedProcess:
    """Run a command of scripts/ in a process that forks no others of this one."""
    command = [sys.executable, "-m", f"scripts.{name}", *map(str, words)]
    env = {**environment(), "RAY_worker_niceness": "0"}  # at 15, its default, workers wait for the other tests
    return subprocess.run(command, capture_output=True, text=True, env=env, timeout=600, start_new_session=True)


def drawn() -> list[str]:
    return ["--plot", "f.png"] if importlib.util.find_spec("matplotlib") else []


@pytest.mark.slow
@pytest.mark.parametrize("name", measurements.MEASUREMENTS)
def test_every_measurement_has_a_figure_for_each_method(name, data):
    wanted = measurements.MEASUREMENTS[name]
    words = [name, data, *(SMALL if name != "cluster" else SMALL[:4])]
    sets = {"lists": "lists", "texts": "texts", "rows": "rows", "candidates": "aloi27"}
    words += ["--stream", wanted.stream, "--examples", 300] if wanted.stream else ["--sets", sets.get(name, "tiny")]
    small = {"classes": "5", "--depth": "2", "curve": "64", "--examples": "100"}
    words += ["--values", small.get(wanted.axis, wanted.values[0])] if wanted.axis else []
    methods = {method: text for method, text in wanted.methods.items() if not peers.missing(text.split()[0])}
    if name == "tuning":
        words += ["--methods", "defaults;tuned=xclass tune --time 5s"]
    result = (alone if name == "cluster" else tool)("measure", *words, "--json", "j")
    head, *rows = cells(result)
    assert "failed: " not in result.stderr, result.stderr
    records = json.loads(Path("j").read_text())
    assert {record["method"] for record in records} >= ({"defaults"} if name == "tuning" else methods.keys())
    assert len(rows) >= 1 and all(any(cell for cell in row[1:]) for row in rows), result.stdout
    for column in wanted.columns:
        if column not in ("lines of weights", "ratio", "MB sent", "MB received", "CPU s of a worker", "waiting s"):
            assert column in head, result.stdout


def test_errors_are_those_of_the_command(data):
    head, *rows = cells(
        tool("measure", "any", data, "--sets", "tiny", "--methods", "tree=xclass --cpt {K};xclass --ect {K} -l 2")
    )
    assert head == ["", "tiny, 12"] and [row[0] for row in rows] == ["tree", "xclass --ect {K} -l 2"]
    learn("--ect", K, "-l", 2, "-d", data / "tiny" / "train.vw", "-f", "m")
    err = learn("-i", "m", "-t", "-d", data / "tiny" / "test.vw").err
    assert float(rows[1][1].strip("*").split()[0].strip("*")) == pytest.approx(
        100 * fact(err, "average loss"), abs=0.06
    )


def test_what_is_stored_is_not_measured_again_and_is_drawn(data):
    words = [
        "measure",
        "memory",
        data,
        "--sets",
        "tiny",
        "--values",
        "8,16",
        "--methods",
        "xclass --cpt",
        "--json",
        "j",
    ]
    first = tool(*words)
    assert cells(first)[0] == ["", "", "-b 8", "-b 16"] and "'command': 'xclass --cpt 12 -b 8'" in first.stderr
    stored = Path("j").read_text()
    again = tool(*words, *drawn())
    assert again.stdout == first.stdout and not again.stderr and Path("j").read_text() == stored
    head, row = cells(tool("measure", "memory", "--json", "j"))
    assert head == ["", "", "-b 8", "-b 16"] and row == cells(first)[1]
    assert not drawn() or Path("f.png").read_bytes().startswith(b"\x89PNG")
    small, large = json.loads(stored)
    assert large["error"] <= small["error"] and large["train_cpu"] == pytest.approx(
        0.5 + 600e-4
    )  # running.START, EXAMPLE


def test_ratios_are_to_the_method_beside(data):
    pytest.importorskip("vowpalwabbit")
    result = tool("measure", "speed", data, "--sets", "tiny", "--methods", "xclass --cpt;VW --log_multi", *SMALL)
    head, own, other, mean = cells(result)
    assert float(own[head.index("ratio")]) > 0 and other[head.index("ratio")] == ""
    assert mean[:2] == ["geometric mean of these", "xclass --cpt"] and mean[-1] == own[-1]


@pytest.mark.parametrize("kind", ["even", "power_law", "lists"])
def test_streams_vary_in_classes_features_and_processors(kind, data):
    words = ["measure", "any", "--stream", kind, "--examples", 200, "--classes", 6]
    method = "xclass --multilabel {K}" if kind == "lists" else "xclass --cpt {K}"
    for axis, values in (("classes", "5,9"), ("features", "9,12"), ("processors", "1")):
        head, row = cells(tool(*words, "--axis", axis, "--values", values, "--methods", method))
        assert head[2:] == [f"{axis} {value}" for value in values.split(",")] and all(row[1:])


def test_a_command_that_fails_is_told(data):
    result = tool("measure", "any", data, "--sets", "tiny", "--methods", "xclass --no_such;tree=xclass --cpt {K}")
    assert "failed: tiny xclass --no_such: exit status 2 from: " in result.stderr and cells(result)[1][0] == "tree"
    with pytest.raises(BenchError, match="exit status 2"):
        runner.run("xclass", ["--no_such"], data / "tiny")


def test_other_tools_get_the_same_features(tmp_path):
    (tmp_path / "a.vw").write_text("3 1.5 'tag|f x:2 y |g x y\n1 |f y y\n\n| unlabelled\n")
    (tmp_path / "b.vw").write_text("2 |f new x:0.5\n")
    vocabulary: dict[str, int] = {}
    peers.to_libsvm(tmp_path / "a.vw", tmp_path / "a.svm", vocabulary, True)
    peers.to_libsvm(tmp_path / "b.vw", tmp_path / "b.svm", vocabulary, False)
    assert (tmp_path / "a.svm").read_text() == "3 1:2 2:1 3:1 4:1\n1 2:2\n"
    assert (tmp_path / "b.svm").read_text() == "2 1:0.5\n"
    peers.to_fasttext(tmp_path / "a.vw", tmp_path / "a.words")
    assert (tmp_path / "a.words").read_text() == "__label__3 f|x f|y g|x g|y\n__label__1 f|y f|y\n"
    peers.to_texts(tmp_path / "a.vw", tmp_path / "a.csv")
    assert (tmp_path / "a.csv").read_text() == "label,text\n3,x y x y\n1,y y\n"
