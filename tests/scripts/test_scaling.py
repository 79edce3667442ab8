"""scripts/bench/scaling.py on tiny streams."""

from __future__ import annotations

import re

import pytest
from running import process, tool

from scripts.bench import scaling
from scripts.lib import streams

NUMBER = r"-?\d+\.\d"


def test_table_has_every_reduction_and_number_of_classes():
    words = ["--reductions", "log_multi,oaa", "--classes", "4,16", "--examples", "600", "--features", "3"]
    result = tool("bench.scaling", *words, "--args=-b 12")
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    assert lines[2] == "| | K = 4 | K = 16 | growth: learning, testing, depth |"
    times = rf"{NUMBER} / {NUMBER}, {NUMBER} / {NUMBER}"
    assert re.match(rf"\| log_multi \| {times}, \d\.\d / \d+ \| {times}, \d\.\d / \d+ \|", lines[4])
    assert re.match(rf"\| oaa \| {times} \| {times} \|", lines[5])
    depths = re.findall(r", (\d\.\d) / (\d+) \|", lines[4])
    assert float(depths[0][0]) < float(depths[1][0])


@pytest.mark.slow
def test_reading_alone_is_timed_in_whole_processes():
    result = process("bench.scaling", "--reductions", "reading", "--classes", 4, "--examples", 2000, "--features", 3)
    assert result.returncode == 0, result.stderr
    assert re.match(rf"\| reading \| {NUMBER} / {NUMBER}, {NUMBER} / {NUMBER} \|", result.stdout.splitlines()[4])


def test_features_the_table_and_processors_are_varied_one_at_a_time():
    def run(*words):
        return tool("bench.scaling", "--reductions", "cpt", "--classes", "5", "--examples", "400", *words)

    for words, head in (
        (["--features", "2,8", "--bits", "12"], "| | features = 2 | features = 8 |"),
        (["--bits", "10,14", "--features", "2"], "| | bits = 10 | bits = 14 |"),
        (["--processors", "1", "--features", "2"], "| | K = 5 |"),
    ):
        result = run(*words)
        assert result.returncode == 0, result.stderr
        assert result.stdout.splitlines()[2].startswith(head)
    assert "vary one at a time" in run("--features", "2,8", "--bits", "10,14").stderr
    assert "processors, not 9999" in run("--processors", "1,9999").stderr


def test_streams_have_as_many_words_whatever_the_classes(tmp_path):
    vocabularies = []
    for k in (100, 100_000):
        streams.write_stream(tmp_path / "s", 0, k, 3000, 4)
        lines = [line.split() for line in (tmp_path / "s").read_text().splitlines()]
        assert {len(words) for words in lines} == {6}
        assert all(1 <= int(words[0]) <= k for words in lines)
        vocabularies.append({word for words in lines for word in words[2:]})
    assert len(vocabularies[1]) <= 4 * streams.VOCABULARY


def test_growth_is_of_the_largest_over_the_smallest():
    points = {k: streams.Point(2.0 * k, 1.0, 1.0 * k, 1.0, (float(k), k)) for k in (10, 20, 40)}
    assert scaling.row("x", points, True).endswith("| 1.00, 1.00, 4.00 |")
    assert scaling.row("x", points, False).endswith("| 4.00, 4.00, 4.00 |")
    assert streams.depth_of("nodes = 9, leaves = 5, depth mean = 2.40, max = 3\n") == (2.4, 3)
    assert streams.depth_of("average loss = 1\n") is None
