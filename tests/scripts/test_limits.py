"""scripts/memory/limits.py on a tiny set."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from running import tool
from streams import multiclass

from scripts.lib import memory_accesses
from scripts.memory import limits

pytestmark = pytest.mark.slow

K, LINES = 12, 300


@pytest.fixture
def data(tmp_path, monkeypatch):
    """One set of 12 classes, and loops that visit few lines."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(limits, "COUNT", 6400)
    folder = tmp_path / "data" / "tiny"
    folder.mkdir(parents=True)
    for part, n in (("train.vw", LINES), ("test.vw", 20)):
        (folder / part).write_text(multiclass(51, K, n))
    (folder / "labels.txt").write_text("".join(f"{y}\tl{y}\n" for y in range(1, K + 1)))
    return tmp_path / "data"


def test_every_reduction_has_times_and_lines(data):
    words = [data, "--sets", "tiny", "--reductions", "oaa,cpt", "--args=-b 12", "--json", "j"]
    result = tool("memory.limits", *words)
    assert result.returncode == 0, result.stderr
    tables = [part.splitlines() for part in result.stdout.split("\n\n")]
    assert len(tables) == 3
    head, _, *rows = (line.strip("| ").split(" | ") for line in tables[0])
    assert head == limits.HEADS
    assert [row[:2] for row in rows] == [["tiny", "`--oaa`"], ["tiny", "`--cpt`"]]
    assert all(len(row) == len(head) for row in rows)
    stored = {"oaa": {}, "cpt": {}}
    for one in json.loads((data.parent / "j").read_text()):
        for reduction, found in stored.items():
            if reduction in one["key"].get("options", reduction):
                found |= one["found"]
    for row, found in zip(rows, stored.values(), strict=True):
        assert found["us"] == pytest.approx(100)  # running.EXAMPLE
        assert found["weights"] >= found["features"] > 2
        assert found["apart"] + found["following"] == pytest.approx(found["weights"] + found["other"])
        assert found["new_apart"] + found["new_following"] < found["apart"] + found["following"]
        assert all(float(cell) >= 0 for cell in row[7:9])  # microseconds, which the load of the machine changes
        assert all(found[f"{kind}, {pages}"] > 0 for kind in limits.KINDS for pages in ("huge", "small"))
    assert stored["oaa"]["bytes"] == 2**12 * 16  # a slot of --oaa has four numbers
    assert all(re.fullmatch(r"[\d.]+ / [\d.]+", cell) for cell in tables[2][2].strip("| ").split(" | ")[1:])
    assert tool("memory.limits", *words).stdout == result.stdout  # nothing is measured again


def test_a_file_without_further_examples_is_refused(data):
    (data / "tiny" / "train.vw").write_text(multiclass(51, K, 20))
    result = tool("memory.limits", data, "--sets", "tiny", "--reductions", "cpt")
    assert result.returncode == 1
    assert f"train.vw has fewer than {memory_accesses.NEEDED} lines after line 2" in result.stderr


def test_indices_are_positions_in_the_flattened_array():
    array = np.arange(12).reshape(3, 4).view(memory_accesses.Counted)
    array.clear()
    assert array[1, 2] == 6
    array[2] = 0
    array[0, 1:3] += 1  # read and written
    assert array.positions == {6, 8, 9, 10, 11, 1, 2}


def test_streams_of_any_number_of_classes_are_generated(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(limits, "COUNT", 6400)
    result = tool(
        "memory.limits", "--classes", "5,1000", "--examples", "300", "--reductions", "random_tree", "--args=-b 12"
    )
    assert result.returncode == 0, result.stderr
    rows = [line.strip("| ").split(" | ") for line in result.stdout.splitlines()[2:4]]
    assert [row[0] for row in rows] == ["5 classes", "1,000 classes"]
    assert float(rows[1][3]) > 2 * float(rows[0][3])  # a deeper tree has more routers on a path


def test_data_and_sets_belong_together():
    result = tool("memory.limits", "--sets", "tiny")
    assert result.returncode == 2
    assert "give DATA_DIR and --sets, or --classes" in result.stderr
