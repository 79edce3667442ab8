"""The scripts that draw the papers' figures, on tiny sets."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from command import learn
from running import tool
from streams import multiclass

from scripts.figures import lomtree
from scripts.lib import training
from scripts.lib.command_line import run
from scripts.lib.processes import Run
from scripts.lib.streams import Point

pytestmark = pytest.mark.slow


def script(name, *words) -> subprocess.CompletedProcess:
    return tool(f"figures.{name}", *words)


def body(result: subprocess.CompletedProcess) -> list[list[str]]:
    """The cells of the table a script prints, its head first."""
    assert result.returncode == 0, result.stderr
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in result.stdout.splitlines() if line[:1] == "|"]
    return [rows[0], *rows[2:]]


def fact(name: str, summary: str) -> float:
    """A number of a summary."""
    return float(re.search(rf"^{name} = (\S+)", summary, re.MULTILINE)[1])


def drawn(name, *words) -> None:
    """Draw what was measured before, where there is matplotlib."""
    if importlib.util.find_spec("matplotlib"):
        body(script(name, *words, "--plot", "f.png"))
        assert Path("f.png").read_bytes().startswith(b"\x89PNG")


@pytest.fixture
def data(tmp_path, monkeypatch):
    """Two sets; of one the classes come one after the other."""
    monkeypatch.chdir(tmp_path)
    for name, k in (("tiny", 12), ("sorted", 30)):
        folder = tmp_path / "data" / name
        folder.mkdir(parents=True)
        lines = multiclass(41, k, 3000, noise=0.3).splitlines(keepends=True)
        if name == "sorted":
            lines.sort(key=lambda line: int(line.split()[0]))
        (folder / "train.vw").write_text("".join(lines))
        (folder / "test.vw").write_text(multiclass(42, k, 400, noise=0.3))
        (folder / "labels.txt").write_text("".join(f"{y}\tl{y}\n" for y in range(1, k + 1)))
    return tmp_path / "data"


def test_order_of_the_file_is_put_beside_a_random_one(data, tmp_path):
    rows = body(script("recall_tree", "order", data, "--sets", "sorted,tiny", "--json", "j"))
    assert rows[0][2:4] == ["in order, error %", "permuted, error %"]
    last = {row[0]: row for row in rows[1:]}
    assert last["sorted"][1] == last["tiny"][1] == "3,000"
    assert float(last["sorted"][2]) < float(last["sorted"][3]) - 5  # one class after the other is easy
    assert abs(float(last["tiny"][4])) < 5  # random as it is
    err = learn("--recall_tree", 30, "-b", 18, stdin=(data / "sorted" / "train.vw").read_text()).err
    assert float(last["sorted"][2]) == pytest.approx(100 * fact("average loss", err), abs=0.006)
    stored = json.loads((tmp_path / "j").read_text())
    drawn("recall_tree", "order", data, "--sets", "sorted,tiny", "--json", "j")
    assert json.loads((tmp_path / "j").read_text()) == stored  # nothing is measured again
    rows = body(script("recall_tree", "order", data, "--sets", "tiny", "--examples", 1500))
    assert rows[-1][1] == "1,500"


def test_candidates_are_tried_with_and_without_path_features(data):
    words = ["--sets", "tiny", "--candidates", "2,6,40", "--passes", "2", "--json", "j"]
    rows = body(script("recall_tree", "candidates", data, *words))
    assert [row[1] for row in rows[1:]] == ["2", "6"]  # 40 are more than there are classes
    learn(
        "--recall_tree", 12, "-b", 18, "--max_candidates", 6, "--no_path_features", "--passes", 2, "--holdout_off",
        "-d", data / "tiny" / "train.vw", "-f", "m",
    )  # fmt: skip
    err = learn("-i", "m", "-t", "-d", data / "tiny" / "test.vw").err
    assert float(rows[2][3]) == pytest.approx(100 * fact("average loss", err), abs=0.006)
    assert rows[2][2] != rows[2][3]
    assert float(rows[2][2]) < float(rows[1][2])
    drawn("recall_tree", "candidates", data, *words)


def test_errors_and_times_are_put_beside_those_of_one_against_all(data):
    words = ["comparison", data, "--sets", "tiny", "--json", "j"]
    (heads, row) = body(script("recall_tree", *words))
    assert heads[2:5] == ["OAA, test error %", "Recall Tree, difference", "LOMTree, difference"]
    assert row[:2] == ["tiny", "12"]
    errors = []
    for reduction in ("oaa", "log_multi"):
        learn(f"--{reduction}", 12, "-b", 18, "-d", data / "tiny" / "train.vw", "-f", "m")
        errors.append(100 * fact("average loss", learn("-i", "m", "-t", "-d", data / "tiny" / "test.vw").err))
    assert [float(row[2]), float(row[4])] == pytest.approx([errors[0], errors[1] - errors[0]], abs=0.011)
    assert all(float(cell) > 0 for cell in row[5:])
    drawn("recall_tree", *words)
    (_, row) = body(script("recall_tree", *words, "--paper"))
    settings = ["-l", 1, "--loss_function", "logistic"]
    learn("--oaa", 12, "-b", 18, *settings, "-d", data / "tiny" / "train.vw", "-f", "m")
    err = learn("-i", "m", "-t", "-d", data / "tiny" / "test.vw").err
    assert float(row[2]) == pytest.approx(100 * fact("average loss", err), abs=0.006)


def test_multipliers_of_the_bound_are_tried(data):
    words = ["--sets", "tiny", "--multipliers", "0,2.5", "--json", "j"]
    rows = body(script("recall_tree", "bernstein", data, *words))
    assert [row[:2] for row in rows[1:]] == [["tiny", "0"], ["tiny", "2.5"], ["tiny", "never"]]
    err = learn("--recall_tree", 12, "-b", 18, "--bern_hyper", 2.5, "-d", data / "tiny" / "train.vw").err
    assert float(rows[2][3]) == pytest.approx(100 * fact("average loss", err), abs=0.006)
    assert rows[1][3] != rows[2][3]
    drawn("recall_tree", "bernstein", data, *words)


def test_methods_get_as_much_time_as_lomtree(data, tmp_path):
    words = ["--sets", "sorted,tiny", "--passes", "2", "--methods", "OAA", "--seconds", "0.1", "--json", "j"]
    rows = body(script("lomtree", "equal_time", data, *words))
    assert rows[0] == ["set", "K", "CPU us an example", "LOMTree", "OAA"]
    assert [row[:2] for row in rows[1:]] == [["tiny", "12"], ["sorted", "30"]]  # by the number of classes
    for record in json.loads((tmp_path / "j").read_text()):
        measured = record["found"]
        if "seconds" in record["key"]:
            assert measured["cost"] > 0
        else:
            unit_cost, budget = record["key"]["costs"]
            assert measured["examples"] == min(3000, max(1, round(3000 * budget / unit_cost)))
            assert 0 <= measured["accuracy"] <= 1
            assert unit_cost == budget or "--oaa" in record["key"]["command"]
    drawn("lomtree", "equal_time", data, *words)
    result = script("lomtree", "equal_time", data, "--sets", "tiny", "--methods", "oaa")
    assert result.returncode == 1 and "--methods: 'oaa' is none of LOMTree, OAA, filter tree" in result.stderr
    result = script("lomtree", "equal_time")
    assert result.returncode == 1 and "equal_time needs DATA_DIR and --sets" in result.stderr


def test_time_of_an_example_is_that_of_a_run_long_enough(monkeypatch, tmp_path):
    (tmp_path / "train.vw").write_text("1 | a\n" * 800)
    looks = []

    def learn(folder, words, data):
        passes = int(words[words.index("--passes") + 1]) if "--passes" in words else 1
        looks.append(passes * len((folder / data).read_text().splitlines()))
        return Run(9.0, 0.5 + 0.001 * looks[-1], 0.0, "")

    monkeypatch.setattr(training, "learn", learn)
    monkeypatch.setattr(lomtree, "learn", learn)
    monkeypatch.setattr(training, "start", lambda folder, words: 0.5)
    assert training.cost(tmp_path, [], 2.0, 800) == pytest.approx(0.001)
    assert looks == [100, 800, 3200]
    monkeypatch.setattr(lomtree, "error_of", lambda folder: 0.25)
    measured = lomtree.in_time(tmp_path, [], 0.004, 0.001, 5, 800)
    assert measured == {"examples": 200, "whole": 800, "accuracy": 0.75} and looks[-1] == 1000
    assert lomtree.in_time(tmp_path, [], 0.0004, 0.001, 1, 800)["examples"] == 800  # all, in less time


def test_ratio_of_times_is_that_of_what_was_timed(monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    seen = []

    def time_point(folder, examples, words):  # the clock is left out: short runs are as long as chance will have it
        seen.append((words, examples, len((folder / "test.vw").read_text().splitlines())))
        k = int(words[1])
        each = 2.0 if words[0] == "--log_multi" else k / 16
        return Point(2 * each, 0.0, each if k < 2000 else 0.0, 0.0)

    monkeypatch.setattr(lomtree, "time_point", time_point)
    monkeypatch.setattr(lomtree, "WORK", 11 * 1024 * 2500)
    words = ["lomtree.py", "ratio", "--classes", "16,1024", "--examples", "3000", "--args=-b 18", "--json", "j"]
    monkeypatch.setattr(sys, "argv", words)
    lomtree.main()
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in capsys.readouterr().out.splitlines()]
    assert rows[2:] == [
        ["16", "2.00", "1.00", "-1.0", "4.00", "2.00", "-1.0"],
        ["1,024", "2.00", "64.00", "5.0", "4.00", "128.00", "5.0"],
    ]
    assert seen[0] == (["--log_multi", "16", "-b", "18"], 3000, 3000)
    assert seen[3] == (["--oaa", "1024", "-b", "18"], 2500, 2500)  # fewer examples where classes are many
    if importlib.util.find_spec("matplotlib"):
        monkeypatch.setattr(sys, "argv", [*words, "--plot", "f.png"])
        lomtree.main()
        assert Path("f.png").read_bytes().startswith(b"\x89PNG")
    assert len(seen) == 4  # nothing is timed twice
    monkeypatch.setattr(sys, "argv", [*words[:2], "--classes", "2000", "--examples", "2000"])
    with pytest.raises(SystemExit, match="lomtree: 2000 examples are too few to be timed: --log_multi 2000"):
        run(lomtree.main)


def test_squared_loss_is_that_of_the_first_examples(data):
    rows = body(script("cpt", data, "--sets", "tiny", "--shares", "0.5,1", "--seconds", "0.1", "--json", "j"))
    assert rows[0][2:] == ["50 %", "100 %"]
    assert [row[1] for row in rows[1:]] == ["general", "balanced", "random", "one-against-all"]
    lines = (data / "tiny" / "train.vw").read_text().splitlines(keepends=True)
    err = learn("--cpt", 12, "-b", 18, stdin="".join(lines[:1500])).err
    assert float(rows[1][2].split()[0]) == pytest.approx(fact("average squared loss", err), abs=0.0001)
    err = learn("--oaa", 12, "-b", 18, "--probabilities", "-p", "p", stdin="".join(lines)).err
    assert float(rows[4][3].split()[0]) == pytest.approx(fact("average squared loss", err), abs=0.0001)
    drawn("cpt", data, "--sets", "tiny", "--shares", "0.5,1", "--seconds", "0.1", "--json", "j")


def test_sets_that_are_not_there_are_named(data):
    result = script("cpt", data, "--sets", "none")
    assert result.returncode == 1
    assert "cpt: " in result.stderr and "none has neither train.vw nor train.txt" in result.stderr
