"""The script that compares averages with one process and with Vowpal Wabbit's nodes, on few lines."""

from __future__ import annotations

import pytest
from streams import multiclass

from scripts.cluster import averages, spanning_tree
from scripts.lib.processes import BenchError

pytestmark = pytest.mark.slow


@pytest.fixture
def data_dir(tmp_path):
    (tmp_path / "small").mkdir()
    for name, seed, lines in (("train", 1, 1600), ("test", 2, 60)):
        (tmp_path / "small" / f"{name}.vw").write_text(multiclass(seed, 20, lines))
    return tmp_path


def cells(line):
    return [cell.strip() for cell in line.strip("| \n").split("|")]


def test_errors_and_costs_are_shown(cluster, data_dir, monkeypatch, capsys):
    monkeypatch.setitem(averages.CASES, "small", (["--oaa", "20", "-b", "12"], []))
    words = [str(data_dir), "--sets", "small", "--workers", "2", "--sync_every", "50", "--ray", cluster.address]
    averages.main(words)
    _, _, one, many = (cells(line) for line in capsys.readouterr().out.splitlines())
    assert one[:3] == ["small", "--oaa 20 -b 12", "one process"] and one[4] == "1"
    assert many[2] == "--workers 2 --sync_every 50"
    assert 0 < float(one[3]) < 100 and 0 < float(many[3]) < 100
    assert float(many[5]) > 0 and float(many[6]) > 0


def test_vw_nodes_average(data_dir, monkeypatch, capsys):
    pytest.importorskip("vowpalwabbit")
    monkeypatch.setitem(averages.CASES, "small", (["--oaa", "20"], ["--oaa", "20", "-b", "12"]))
    averages.main([str(data_dir), "--sets", "small", "--vw"])
    _, _, one, many = (cells(line) for line in capsys.readouterr().out.splitlines())
    assert one[2] == "one process" and many[2] == "4 nodes, averaged at the end"
    assert 0 < float(many[3]) < 100


def test_vw_nodes_end_with_the_same_weights(data_dir, tmp_path):
    pytest.importorskip("vowpalwabbit")
    quarters = averages.quarters(data_dir / "small" / "train.vw", tmp_path)
    first = spanning_tree.learn(quarters, ["--oaa", "20", "-b", "12", "--quiet"], tmp_path)
    test = data_dir / "small" / "test.vw"
    errors = {averages.error_of(tmp_path / f"node{i}.model", test, tmp_path, "vw") for i in range(4)}
    assert first == tmp_path / "node0.model" and len(errors) == 1


def test_a_node_that_fails_is_named(data_dir, tmp_path):
    pytest.importorskip("vowpalwabbit")
    quarters = averages.quarters(data_dir / "small" / "train.vw", tmp_path)
    with pytest.raises(BenchError, match="node 0 of Vowpal Wabbit ended with status"):
        spanning_tree.learn(quarters, ["--oaa", "many"], tmp_path)


def test_tree_of_nodes():
    for count in range(1, 20):
        tree = spanning_tree.tree_of(count)
        assert sorted(tree.children) == sorted(tree.parents.count(i) for i in range(count))
        assert tree.parents.count(-1) == 1
        for i in range(count):
            steps = 0
            while i >= 0:
                i, steps = tree.parents[i], steps + 1
                assert steps <= count.bit_length()


def test_missing_files_are_named(tmp_path):
    with pytest.raises(BenchError, match=r"ptb/train\.vw is missing or empty"):
        averages.main([str(tmp_path), "--sets", "ptb"])
    with pytest.raises(BenchError, match="none is none of"):
        averages.main([str(tmp_path), "--sets", "none"])
