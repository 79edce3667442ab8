"""scripts/bench/merging.py on a tiny set."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
from running import tool


@pytest.fixture
def data(tmp_path):
    rng = np.random.default_rng(1)
    folder = tmp_path / "tiny"
    folder.mkdir()
    for name, n in (("train", 240), ("test", 60)):
        with gzip.open(folder / f"{name}.vw.gz", "wt") as file:
            for y in rng.integers(1, 9, n):
                words = [f"w{(5 * y + i) % 40 if rng.random() < 0.9 else rng.integers(40)}" for i in range(4)]
                file.write(f"{y} | {' '.join(words)}\n")
    return tmp_path


def test_table_of_parts_and_rounds(data):
    done = tool("bench.merging", data, "--sets", "tiny", "--reductions", "oaa,cpt", "--parts", 2, "--rounds", 2)
    assert done.returncode == 0, done.stderr
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in done.stdout.splitlines()]
    assert rows[0][2:] == ["one process", "part", "merged", "part, base", "merged, base", "2 rounds"]
    assert [row[:2] for row in rows[2:]] == [["tiny", "oaa"], ["tiny", "cpt"]]
    assert rows[3][4] == "-"  # trees without a base
    assert all(0 <= float(cell) <= 100 for row in rows[2:] for cell in row[2:] if cell != "-")


@pytest.mark.slow
def test_table_of_new_classes(data):
    done = tool(
        "bench.merging", data, "--sets", "tiny", "--reductions", "multiclass", "--parts", 2, "--new_classes", 0.5
    )
    assert done.returncode == 0, done.stderr
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in done.stdout.splitlines()[2:]]
    assert [row[2] for row in rows] == ["one process", "part 1", "part 2", "merged"]
    assert float(rows[3][3]) < min(float(row[3]) for row in rows[1:3])


def test_an_unknown_reduction_is_refused(data):
    done = tool("bench.merging", data, "--sets", "tiny", "--reductions", "tree")
    assert done.returncode != 0 and "none of oaa, cpt, multiclass" in done.stderr
