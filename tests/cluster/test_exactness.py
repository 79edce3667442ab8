"""The script that compares a cluster with one process, on few lines."""

from __future__ import annotations

import pytest
from streams import multiclass

from scripts.cluster import exactness, runs

pytestmark = pytest.mark.slow


def test_models_are_equal_and_the_costs_are_shown(cluster, tmp_path, monkeypatch, capsys):
    (tmp_path / "small").mkdir()
    (tmp_path / "small" / "train.vw").write_text(multiclass(1, 20, 200))
    monkeypatch.setitem(exactness.CASES, "small", ["--oaa", "20", "-b", "12"])
    words = [str(tmp_path), "--sets", "small", "--workers", "2", "--lines", "150", "--ray", cluster.address]
    assert exactness.main(words) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("small --oaa 20 -b 12: one process, ")
    assert lines[1].startswith("  2 workers: equal, ")
    assert lines[2].startswith("    worker 1: examples = 150, ")


def test_other_bytes_are_not_the_same(tmp_path):
    made = []
    for name, model in (("a", b"1"), ("b", b"1"), ("c", b"2")):
        (tmp_path / f"{name}.bin").write_bytes(model)
        (tmp_path / f"{name}.txt").write_bytes(b"")
        made.append(runs.Run(tmp_path / f"{name}.bin", tmp_path / f"{name}.txt", [], 0.0, 0.0, 0))
    assert exactness.same(made[0], made[1])
    assert not exactness.same(made[0], made[2])
