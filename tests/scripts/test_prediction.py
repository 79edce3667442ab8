"""scripts/bench/prediction.py on a tiny set."""

from __future__ import annotations

import re

import pytest
from running import process
from streams import multiclass


@pytest.mark.slow
def test_both_tools_predict_a_repeated_test_file(tmp_path):
    pytest.importorskip("vowpalwabbit")
    folder = tmp_path / "data" / "made"
    folder.mkdir(parents=True)
    (folder / "train.vw").write_text(multiclass(1, 5, 60))
    (folder / "test.vw").write_text(multiclass(2, 5, 7))
    (folder / "labels.txt").write_text("1\n2\n3\n4\n5\n")
    words = ["--sets", "made", "--reductions=--oaa,--ect", "--lines", 20, "--bits", 12, "--repetitions", 1]
    done = process("bench.prediction", tmp_path / "data", *words, "--work", tmp_path / "work")
    assert done.returncode == 0, done.stderr
    rows = [
        re.fullmatch(r"\| made \| `(--\w+)` \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|", line)
        for line in done.stdout.splitlines()[2:4]
    ]
    assert [row[1] for row in rows] == ["--oaa", "--ect"]
    assert "Geometric mean: " in done.stdout
    lines = [path.read_text().splitlines() for path in (tmp_path / "work").rglob("many.vw")]
    assert [len(file) for file in lines] == [20] and lines[0][:6] == lines[0][7:13]
    assert all(len(path.read_text().split()) == 20 for path in (tmp_path / "work").rglob("*.predictions"))
