"""The script that times xclass beside Vowpal Wabbit, on a tiny set: every part of its table has both results."""

from __future__ import annotations

import gzip
import importlib.util
import json
import re

import pytest
from running import tool
from streams import multiclass

pytestmark = pytest.mark.slow


@pytest.fixture
def sets(tmp_path, monkeypatch):
    """A data set of 12 classes."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "data" / "tiny"
    folder.mkdir(parents=True)
    (folder / "labels.txt").write_text("".join(f"l{y}\n" for y in range(1, 13)))
    with gzip.open(folder / "train.vw.gz", "wt") as train:
        train.write(multiclass(21, 12, 600, noise=0.3))
    (folder / "test.vw").write_text(multiclass(22, 12, 200, noise=0.3))
    return tmp_path / "data"


def cells(text: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("|")]


def test_the_table_compares_both_tools(sets, tmp_path):
    pytest.importorskip("vowpalwabbit")
    parts = "recall_tree,log_multi,reading"
    result = tool("bench.table", sets, "--parts", parts, "--sets", "tiny", "--repetitions", 1, "--json", "j.json")
    assert result.returncode == 0, result.stderr
    _, recall, tree, reading = result.stdout.split("## ")
    head, _, *rows = cells(recall.split("reached after")[0])
    rows = {row[2]: dict(zip(head, row, strict=True)) for row in rows if row[0] == "tiny" and len(row) == len(head)}
    assert set(rows) == {"xclass", "vw", "xclass --recall_tree --vw_exact"}
    exact = rows["xclass --recall_tree --vw_exact"]
    assert exact["other answers"] == "0"
    assert exact["test error"] == rows["vw"]["test error"]
    assert float(exact["train ratio"]) > 0
    assert rows["vw"]["train ratio"] == ""
    assert "xclass -d train.vw --recall_tree 12 -b 24 --loss_function logistic --vw_exact -f" in recall
    assert "xclass -d train.vw --cpt 12 -b 24 -f" in tree
    assert "vowpalwabbit -d train.vw --log_multi 12 -b 24 -f" in tree
    assert [row[2] for row in cells(reading)] == ["file", "---", "text", "gzip"]
    report = json.loads((tmp_path / "j.recall_tree.json").read_text())
    assert {entry["tool"] for entry in report["results"]} == set(rows)
    assert all(entry["test_memory"] > 1e6 for entry in report["results"])


def test_two_runs_of_xclass_are_compared(sets, tmp_path):
    words = ["--sets", "tiny", "--only", "xclass", "--reduction", "oaa", "--args=-b 12", "--beside", "ect"]
    result = tool("bench.compare", sets, *words, "--repetitions", 2, "--json", tmp_path / "j")
    assert result.returncode == 0, result.stderr
    assert [row[:3] for row in cells(result.stdout)[2:]] == [["tiny", "12", "xclass"], ["tiny", "12", "xclass --ect"]]
    assert "    xclass -d train.vw --oaa 12 -b 12 -f xclass.model\n    xclass -d train.vw --ect 12" in result.stdout
    report = json.loads((tmp_path / "j").read_text())
    assert [len(entry["train"]) for entry in report["results"]] == [2, 2] and report["reach"] == []


def test_the_table_has_batch_learners_that_are_installed(sets):
    result = tool("bench.table", sets, "--parts", "peers", "--sets", "tiny", "--repetitions", 1, "--json", "j.json")
    assert result.returncode == 0, result.stderr
    head, _, *rows = cells(result.stdout)
    methods = {row[2]: dict(zip(head, row, strict=True)) for row in rows if row[0] == "tiny"}
    assert {"xclass", "xclass --cpt"} <= set(methods)
    for medians in methods.values():
        assert medians["runs"] == "1"
        assert 0 <= float(medians["test error"]) < 0.9
        assert float(medians["CPU s"]) > 0
    drawn = tool("bench.peers", "--table", sets.parent / "j.peers.json")
    assert "| xclass --cpt |" in drawn.stdout
    for name, other in (("napkinxc", "napkinXC PLT"), ("fasttext", "fastText softmax")):
        there = importlib.util.find_spec(name) is not None
        assert (other in methods) == there
        assert (f"| xclass / {other} |" in result.stdout) == there


def test_the_table_refuses_parts_it_does_not_have(sets):
    result = tool("bench.table", sets, "--parts", "speed", "--sets", "tiny")
    assert result.returncode == 1
    assert "--parts: 'speed' is none of recall_tree, oaa" in result.stderr


def test_the_table_refuses_methods_it_does_not_have(sets):
    result = tool("bench.table", sets, "--parts", "peers", "--sets", "tiny", "--methods", "xclass,liblinear")
    assert result.returncode == 1
    assert "--methods: 'liblinear' is none of xclass, napkinXC PLT" in result.stderr


@pytest.mark.parametrize(
    ("command", "words", "message"),
    [
        ("bench.table", ["--parts", "oaa", "--methods", "xclass"], "--methods chooses from the part peers"),
        ("bench.compare", ["--beside", ""], "--beside: name a reduction"),
    ],
)
def test_options_that_would_do_nothing_are_refused(sets, command, words, message):
    result = tool(command, sets, *words)
    assert result.returncode == 2
    assert message in result.stderr


def test_estimators_are_compared_with_others_and_with_the_command(sets):
    pytest.importorskip("sklearn")
    done = tool("bench.estimators", sets, "--sets", "tiny", "--beside", "tiny", "--repetitions", 1)
    assert done.returncode == 0, done.stderr
    head, _, *rows = cells(done.stdout)
    found = {row[0]: row[1] for row in rows}
    assert head == ["accuracy % (s of `fit`)", "tiny"]
    names = {"`XClassifier()`", '`XClassifier("oaa", passes=5)`', '`SGDClassifier("log_loss")`'}
    assert names <= found.keys() and all(float(found[name].split()[0]) > 50 for name in names)
    if importlib.util.find_spec("vowpalwabbit"):
        assert float(found["`VWMultiClassifier(oaa=K, passes=5)`"].split()[0]) > 50
    assert all(re.fullmatch(r"\d+\.\d", seconds) for seconds in rows[-1][1:]) and len(rows[-1]) == 5
