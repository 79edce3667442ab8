"""scripts/bench/scaling.py on tiny streams, and the part of its figures that no clock changes."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from running import process, tool

import xclass
from scripts.bench import scaling
from scripts.lib import streams

NUMBER = r"-?\d+\.\d"
BOTH = rf"{NUMBER} / {NUMBER}"
OPENED = 24  # nodes that a search opens at most for each level of a balanced tree


@pytest.mark.parametrize("reduction", ["cpt", "multiclass"])
def test_searches_open_a_few_nodes_for_each_level_in_learning_and_predicting(tmp_path, reduction):
    for k, learned in ((100, 1000), (3000, 4000)):
        streams.write_power_law(tmp_path / "s", 0, k, learned + 500, 37)
        lines = (tmp_path / "s").read_text().splitlines()
        with xclass.Learner(reduction=reduction, classes=k, bits=18) as learner:
            opened = learner.core.reduction.report.opened_counts
            for act, some in ((learner.learn_many, lines[:learned]), (learner.predict_many, lines[learned:])):
                opened[:] = 0
                act(some)
                assert 1 < np.flatnonzero(opened)[-1] <= OPENED * math.log2(k), f"{act.__name__}, {k} classes"


def test_table_has_every_reduction_and_number_of_classes():
    words = ["--reductions", "log_multi,cpt", "--classes", "4,16", "--examples", "600", "--features", "3"]
    result = tool("bench.scaling", *words, "--args=-b 12", "--stream", "power_law", "--peers", "napkinXC HSM")
    assert result.returncode == 0, result.stderr
    head, _, *rows = (line.strip("|").split("|") for line in result.stdout.splitlines())
    assert [cell.strip() for cell in head] == ["", "learning / testing", "K = 4", "K = 16", "growth"]
    rows = [[cell.strip() for cell in row] for row in rows]
    kinds = ["CPU us", "depth", "test error"], ["CPU us", "nodes opened", "depth", "test error"]
    assert [row[1] for row in rows if row[0] not in ("napkinXC HSM",)][:7] == [*kinds[0], *kinds[1]]
    assert [row[0] for row in rows[:4]] == ["log_multi", "", "", "cpt"]
    assert all(re.fullmatch(BOTH, cell) for row in (rows[0], rows[3], rows[4]) for cell in row[2:4])
    means = [float(cell.split(" / ")[0]) for cell in rows[1][2:4]]
    assert means[0] < means[1]
    assert 0 <= float(rows[2][2]) < float(rows[2][3]) < 1


@pytest.mark.slow
def test_lines_of_weights_are_counted_and_reading_alone_is_timed_in_whole_processes(tmp_path):
    words = ["--reductions", "reading,random_tree", "--classes", 4, "--examples", 2000, "--features", 3, "--lines"]
    result = process("bench.scaling", *words, "--args=-b 12", "--json", tmp_path / "j", "--most", 1000)
    assert result.returncode == 0, result.stderr
    rows = result.stdout.splitlines()[2:]
    assert re.match(rf"\| reading \| CPU us \| {BOTH} \|", rows[0])
    assert re.fullmatch(r"\|  \| lines of weights \| [1-9] / [1-9] \|  \|", rows[2])
    again = process("bench.scaling", *words, "--args=-b 12", "--json", tmp_path / "j", "--most", 1000)
    assert again.stdout == result.stdout  # nothing is measured again


def test_features_the_table_and_processors_are_varied_one_at_a_time():
    def run(*words):
        return tool("bench.scaling", "--reductions", "cpt", "--classes", "5", "--examples", "400", *words)

    for words, head in (
        (["--features", "2,8", "--bits", "12"], "|  | learning / testing | features = 2 | features = 8 |"),
        (["--bits", "10,14", "--features", "2"], "|  | learning / testing | bits = 10 | bits = 14 |"),
        (["--processors", "1", "--features", "2"], "|  | learning / testing | K = 5 |"),
    ):
        result = run(*words)
        assert result.returncode == 0, result.stderr
        assert result.stdout.startswith(head)
    assert "vary one at a time" in run("--features", "2,8", "--bits", "10,14").stderr
    assert "processors, not 9999" in run("--processors", "1,9999").stderr
    assert "begins neither with VW nor with napkinXC" in run("--peers", "fastText hs").stderr


def test_a_method_that_takes_long_is_not_measured_at_larger_values():
    words = ["--reductions", "cpt", "--classes", "3,5", "--examples", "400", "--args=-b 12", "--most", "0.01"]
    assert "|  | " in tool("bench.scaling", *words).stdout.splitlines()[2]  # `tool` says 100 us an example


def test_streams_have_as_many_words_whatever_the_classes(tmp_path):
    vocabularies = []
    for k in (100, 100_000):
        streams.write_stream(tmp_path / "s", 0, k, 3000, 4)
        lines = [line.split() for line in (tmp_path / "s").read_text().splitlines()]
        assert {len(words) for words in lines} == {6}
        assert all(1 <= int(words[0]) <= k for words in lines)
        vocabularies.append({word for words in lines for word in words[2:]})
    assert len(vocabularies[1]) <= 4 * streams.VOCABULARY


def test_classes_of_a_power_law_have_the_same_words_in_every_stream(tmp_path):
    words = []
    for seed in (0, 1):
        streams.write_power_law(tmp_path / "s", seed, 50, 2000, 6)
        lines = [line.split() for line in (tmp_path / "s").read_text().splitlines()]
        words.append({word for line in lines if line[0] == "1" for word in line[2:4]})
        counts = [sum(line[0] == str(y) for line in lines) for y in (1, 16)]
        assert counts[0] == pytest.approx(16**0.8 * counts[1], rel=0.4)
    assert words[0] == words[1] and len(words[0]) == streams.OWN


def test_growth_is_of_the_largest_over_the_smallest():
    points = {k: streams.Point(2.0 * k, 1.0, 1.0 * k, 1.0, (float(k), k)) for k in (10, 20, 40)}
    cpu, wall, depth = scaling.rows("x", points, list(points), True)
    assert cpu == ["x", "CPU us", "20.0 / 10.0", "40.0 / 20.0", "80.0 / 40.0", "4.00 / 4.00"]
    assert wall[-1] == "1.00 / 1.00" and depth[-1] == "4.00 / 4.00"
    assert streams.depth_of("nodes = 9, leaves = 5, depth mean = 2.40, max = 3\n") == (2.4, 3)
    assert streams.depth_of("average loss = 1\n") is None
