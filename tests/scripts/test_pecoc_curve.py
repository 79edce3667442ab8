"""The script that draws the paper's curve of multiplier against work, on a tiny set."""

from __future__ import annotations

import json
import math
import sys

import pytest
from command import learn
from library import fact
from running import process, tool
from streams import multiclass

pytestmark = pytest.mark.usefixtures("place")


@pytest.fixture
def sets(place):
    """A data set of 20 classes."""
    (place / "data" / "tiny").mkdir(parents=True)
    (place / "data" / "tiny" / "labels.txt").write_text("".join(f"l{y}\n" for y in range(1, 21)))
    (place / "data" / "tiny" / "train.vw").write_text(multiclass(16, 20, 800))
    (place / "data" / "tiny" / "test.vw").write_text(multiclass(17, 20, 100))
    return place / "data"


def test_curve_is_measured_beside_the_theory(sets, place):
    result = tool("figures.pecoc", sets, "--sets", "tiny", "--arities", "2,4,32", "--args=-b 18", "--json", "j")
    assert result.returncode == 0, result.stderr
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in result.stdout.splitlines() if line[:1] == "|"]
    head, body = rows[0], rows[2:]
    assert [row[head.index("m")] for row in body] == ["2", "4", "32"]
    theory = [float(row[head.index("multiplier, theory")]) for row in body]
    assert theory == pytest.approx([math.log2(20) ** 2, 2.25 * math.log(20, 4) ** 2, 4 * (31 / 32) ** 2], abs=0.05)
    for row in body:
        assert 0 < float(row[head.index("multiplier, measured")]) < float(row[head.index("theory of this tree")])
    records = json.loads((place / "j").read_text())
    for m, record in zip((2, 4, 32), records, strict=True):
        text = (sets / "tiny" / "train.vw").read_text()
        err = learn("--cpt", 20, "-b", 18, "--cpt_arity", m, stdin=text).err
        assert record["squared"] == pytest.approx(fact(err, "average squared loss"), abs=1e-6)
        assert record["error"] == pytest.approx(fact(err, "average loss"), abs=1e-6)
        assert record["asked"] == pytest.approx(fact(err, "regressors scored per label"), abs=1e-6)
        n, new = 800, fact(err, "labels seen for the first time")
        known = (record["squared"] * n - new) / (n - new)
        assert record["measured"] == pytest.approx(known / fact(err, "their average squared loss"), rel=1e-3)


def test_curve_without_matplotlib_says_what_to_install(sets, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = tool("figures.pecoc", sets, "--sets", "tiny", "--arities", "2", "--plot", "curve.png")
    assert result.returncode == 1
    assert "--plot needs matplotlib" in result.stderr
    assert ".[plot]" in result.stderr
    assert result.stdout == ""  # an error before anything is measured


def test_wrong_command_lines_are_refused(sets):
    result = tool("figures.pecoc", sets, "--sets", "tiny", "--arities", "2,3")
    assert result.returncode == 1
    assert "3 is not a power of two" in result.stderr
    result = tool("figures.pecoc", sets, "--sets", "nothing")
    assert result.returncode == 1
    assert "nothing" in result.stderr


@pytest.mark.slow
def test_point_is_measured_in_whole_processes(sets):
    words = (sets, "--sets", "tiny", "--arities", "2", "--args=-b 12")
    result, here = process("figures.pecoc", *words), tool("figures.pecoc", *words)
    assert result.returncode == 0, result.stderr
    assert [line.rsplit("|", 2)[0] for line in result.stdout.splitlines()] == [  # but for the seconds
        line.rsplit("|", 2)[0] for line in here.stdout.splitlines()
    ]


def test_curve_is_drawn(sets, place):
    pytest.importorskip("matplotlib")
    result = tool("figures.pecoc", sets, "--sets", "tiny", "--arities", "2,4", "--args=-b 16", "--plot", "curve.svg")
    assert result.returncode == 0, result.stderr
    assert "<svg" in (place / "curve.svg").read_text()
