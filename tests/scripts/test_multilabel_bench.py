"""The table and the picture of the learners of lists of labels, on a tiny set."""

from __future__ import annotations

import importlib.util
import json
import random
from pathlib import Path

import pytest
from command import learn
from running import tool

from scripts.lib import papers


@pytest.fixture
def data(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "data" / "tiny"
    folder.mkdir(parents=True)
    draw = random.Random(3)
    for part, n in (("train", 600), ("test", 100)):
        lines = []
        for _ in range(n):
            labels = sorted(draw.sample(range(8), draw.choice([1, 2, 2, 3])))
            shown = [label if draw.random() < 0.6 else draw.randrange(8) for label in labels]
            words = [f"w{label}_{draw.randrange(3)}" for label in shown] + [f"x{draw.randrange(20)}"]
            lines.append(f"{','.join(map(str, labels))} | {' '.join(words)}\n")
        (folder / f"{part}.vw").write_text("".join(lines) + ("| w1_1\n" if part == "test" else ""))
    (folder / "labels.txt").write_text("".join(f"{label}\tl{label}\n" for label in range(8)))
    return tmp_path / "data"


def cells(result):
    assert result.returncode == 0, result.stderr
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in result.stdout.splitlines()[2:]]


def test_precision_is_that_of_the_summary_and_measured_once(data):
    words = [data, "--sets", "tiny", "--bits", 18, "--json", "j", "--methods", "xclass --plt;xclass --multilabel_oaa"]
    rows = cells(tool("multilabel.bench", *words, "--variant", "slow=--multilabel_oaa {K} -l 0.001"))
    assert [row[1:3] for row in rows] == [
        [name, passes] for name in ("xclass --plt", "xclass --multilabel_oaa", "slow") for passes in "13"
    ]
    assert {row[0] for row in rows} == {"tiny, 8"} and float(rows[4][3]) < float(rows[0][3])
    folder = data / "tiny"
    learn("--plt", 8, "-b", 18, "-d", folder / "train.vw", "-f", "m")
    summary = learn("-i", "m", "-t", "-d", folder / "test.vw").err
    expected = [papers.measured(summary, f"p{k}") for k in (1, 3, 5)]
    assert [float(cell) for cell in rows[0][3:6]] == pytest.approx(expected, abs=0.006)
    stored = Path("j").read_text()
    assert cells(tool("multilabel.bench", *words)) == rows[:4] and Path("j").read_text() == stored


def test_picture_has_the_peers(data):
    if not importlib.util.find_spec("matplotlib"):
        pytest.skip("matplotlib is not installed")
    peers = [{"set": name, "method": "peer", "precision": [50, 30, 20], "cpu": 3.0} for name in ("tiny", "other")]
    Path("peers").write_text(json.dumps(peers))
    words = [data, "--sets", "tiny", "--bits", 18, "--json", "j", "--methods", "xclass --plt", "--plot", "f.png"]
    cells(tool("multilabel.bench", *words))
    alone = Path("f.png").read_bytes()
    cells(tool("multilabel.bench", *words, "--peers", "peers"))
    assert alone.startswith(b"\x89PNG") and Path("f.png").read_bytes() != alone


def test_methods_that_are_not_there_are_named(data):
    result = tool("multilabel.bench", data, "--sets", "tiny", "--methods", "xclass --plt;plt")
    assert result.returncode == 1 and "--methods: 'plt' is none of xclass --multilabel; VW --plt" in result.stderr
    result = tool(
        "multilabel.bench",
        data,
        "--sets",
        "tiny",
        "--passes",
        1,
        "--variant",
        "new=--no_such {K}",
        "--methods",
        "xclass --plt",
    )
    assert "left out: new: xclass has no --no_such\n" in result.stderr and len(cells(result)) == 1
