"""scripts/bench/latency.py on tiny streams."""

from __future__ import annotations

import re

import pytest
from running import process

pytestmark = pytest.mark.slow


def test_table_has_every_way_to_pass_an_example():
    pytest.importorskip("vowpalwabbit")
    sizes = ["--classes", 5, "--features", 3, "--trained", 20, "--examples", 3, "--rounds", 2]
    done = process("bench.latency", "--reductions", "log_multi,cpt", *sizes)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "| reduction | system | learn | predict | both |"
    rows = [re.fullmatch(r"\| (\w+), 5 classes \| (.*) \| (\d+) \| (\d+) \| (\d+) \|", line) for line in lines[2:]]
    assert [(row[1], row[2]) for row in rows] == [
        ("log_multi", "xclass, VW text"),
        ("log_multi", "xclass, dict"),
        ("log_multi", "VW, text"),
        ("cpt", "xclass, VW text"),
        ("cpt", "xclass, dict"),
    ]
    assert all(0 < int(row[3]) <= int(row[5]) for row in rows)


def test_a_process_that_cannot_measure_ends_the_command():
    done = process("bench.latency", "--reductions", "nothing", "--classes", 5, "--trained", 20, "--no_vw")
    assert done.returncode == 1
    assert "a process that measures has ended" in done.stderr
    assert "table" not in done.stdout
