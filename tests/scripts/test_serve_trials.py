"""The trials of servers, on a small scale, and the benchmark."""

import pytest
from running import tool

from scripts.serve import bench, servers


@pytest.mark.parametrize(("trial", "count"), [("connections", 40), ("fuzz", 2000), ("http", 2000), ("kills", 1)])
def test_a_trial(trial, count):
    result = tool("serve.trials", trial, "--count", count, "--seed", 3)
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith(f"{count} ")


def test_lines_of_one_seed_are_the_same():
    one, two = (servers.lines(5, 10, 4, 1, labelled=True) for _ in range(2))
    assert one == two and all(line.endswith(b"\n") and b"|a f" in line for line in one)


def test_the_table_has_medians():
    times = {"one": [[0.001] * 100, [0.003] * 100, [0.002] * 100], "many": []}
    assert bench.row("xclass", times, [10.0, 3000.0, 20.0]) == "| xclass | 20 | 2.00 | 2.00 |  |  |"
