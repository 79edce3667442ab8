"""Scripts that make tables of probabilities, on data made here."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from streams import multiclass

ROOT = Path(__file__).parents[1]


@pytest.fixture
def data(tmp_path):
    """A folder with a small set."""
    folder = tmp_path / "data" / "small"
    folder.mkdir(parents=True)
    for name, seed, n in (("train.vw", 1, 300), ("test.vw", 2, 40)):
        (folder / name).write_text(multiclass(seed, 15, n))
    (folder / "labels.txt").write_text("".join(f"{y}\t{y}\n" for y in range(1, 16)))
    return folder.parent


def run(script: str, *words: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, str(ROOT / "scripts" / script), *words], capture_output=True, text=True, timeout=400
    )


def test_exactness_finds_every_example_as_all_classes_say(data):
    done = run("exactness.py", str(data), "--sets", "small", "--args=-b 16", "--examples", "25")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("small: 25 of 25 as all classes say; opened for the best: mean ")


def test_exactness_sees_a_wrong_list(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    import exactness

    (tmp_path / "top").write_text("2:0.5 1:0.3 0:0.2\n2:0.5 1:0.3 0:0.2\n3:0.4 1:0.3 0:0.2\n")
    (tmp_path / "all").write_text("1:0.3 2:0.5 0:0\n1:0.3 2:0.4 0:0\n1:0.3 2:0.4 3:0.4\n")
    assert exactness.differing(tmp_path / "top", tmp_path / "all") == (3, 2)


def test_probabilities_has_a_row_for_every_way(data):
    done = run("probabilities.py", str(data), "--sets", "small", "--bits", "16", "--ways", "general;4 trees, reranked")
    assert done.returncode == 0, done.stderr
    rows = [line.split(" | ") for line in done.stdout.splitlines()[2:]]
    assert [row[1] for row in rows] == ["counts", "general", "4 trees, reranked"]
    for row in rows:
        squared, log, perplexity, error = (float(word) for word in row[2:6])
        assert 0 < squared < 1 and log > 0 and perplexity > 1 and 0 <= error <= 100
    assert float(rows[1][2]) < float(rows[0][2])
    assert run("probabilities.py", str(data), "--sets", "small", "--ways", "none").returncode == 1
