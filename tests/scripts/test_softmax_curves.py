"""The script that draws error and time of softmax trees, on a tiny set."""

from __future__ import annotations

import json

import pytest
from command import learn
from running import tool
from streams import multiclass

from scripts.figures import softmax_tree


@pytest.fixture
def sets(tmp_path, monkeypatch):
    """A data set of 12 classes."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(softmax_tree, "ENOUGH", 500)
    (tmp_path / "data" / "tiny").mkdir(parents=True)
    (tmp_path / "data" / "tiny" / "labels.txt").write_text("".join(f"l{y}\n" for y in range(1, 13)))
    (tmp_path / "data" / "tiny" / "train.vw").write_text(multiclass(21, 12, 1200, noise=0.3))
    (tmp_path / "data" / "tiny" / "test.vw").write_text(multiclass(22, 12, 300, noise=0.3))
    return tmp_path / "data"


def test_curves_are_what_single_runs_say(sets, tmp_path):
    result = tool(
        "figures.softmax_tree", sets, "--sets", "tiny", "--depths", "0,2", "--leaf_classes", "all,3", "--json", "j"
    )
    assert result.returncode == 0, result.stderr
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in result.stdout.splitlines()]
    assert [(row[2], row[3]) for row in rows[2:]] == [("0", "all"), ("2", "all"), ("0", "3"), ("2", "3")]
    records = [record["found"] for record in json.loads((tmp_path / "j").read_text())]
    last = records[-1]
    text = (sets / "tiny" / "train.vw").read_text()
    learn("--softmax_tree", 12, "--depth", 2, "--leaf_classes", 3, "-f", "m", "--quiet", stdin=text)
    err = learn("-i", "m", "-t", stdin=(sets / "tiny" / "test.vw").read_text()).err
    assert f"average loss = {last['error']:.6f}\n" in err
    assert f"class is in the leaf = {last['covered']:.6f}\n" in err
    assert records[2]["error"] > 0.5 > records[0]["error"]  # three classes of twelve
    again = tool(
        "figures.softmax_tree", sets, "--sets", "tiny", "--depths", "0,2", "--leaf_classes", "all,3", "--json", "j"
    )
    assert again.stdout == result.stdout  # times too: nothing is measured again


def test_curves_refuse_what_they_do_not_know(sets):
    result = tool("figures.softmax_tree", sets, "--sets", "tiny", "--inits", "best")
    assert result.returncode == 1
    assert "--inits: 'best' is none of clusters, prototypes, whole, random" in result.stderr
    result = tool("figures.softmax_tree", sets, "--sets", "tiny", "--depths", "0,30")
    assert result.returncode == 1
    assert "--depths" in result.stderr


def test_curves_are_drawn(sets, tmp_path):
    pytest.importorskip("matplotlib")
    result = tool("figures.softmax_tree", sets, "--sets", "tiny", "--depths", "0,1", "--plot", "curves.svg")
    assert result.returncode == 0, result.stderr
    assert "<svg" in (tmp_path / "curves.svg").read_text()


def test_settings_of_the_paper_are_those_of_its_appendix(sets, tmp_path):
    words = ["--sets", "tiny", "--inits", "random", "--depths", "1", "--paper", "aloi", "--json", "j"]
    assert tool("figures.softmax_tree", sets, *words).returncode == 0
    (record,) = json.loads((tmp_path / "j").read_text())
    assert "--l1 0.1 --tao_iterations 30 --tao_tolerance 0 --leaf_passes 20" in record["key"]["args"]
