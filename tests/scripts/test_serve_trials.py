"""The trials of servers, on a small scale, and the benchmark."""

import pytest
from running import tool

from scripts.lib import tables
from scripts.serve import servers


@pytest.mark.parametrize(("trial", "count"), [("connections", 40), ("hour", 4)])
def test_a_trial(trial, count):
    result = tool("serve.trials", trial, "--count", count, "--seed", 3)
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith(f"{count} ")


def test_valid_requests_get_labels_and_lines_that_the_model_accepts():
    pytest.importorskip("schemathesis", reason="schemathesis, which makes the requests, is not installed")
    from scripts.serve.valid_requests import accepted

    assert accepted({"lines": ["x 'y|a:b c", "|"]}, learns=False) == {"lines": ["|ab c", "|"]}
    assert accepted({"lines": ["|a"]}, learns=True) == {"lines": ["1 |a"]}
    given = {"texts": ["a", "b"], "labels": [["x"]], "weights": [], "k": 2}
    assert accepted(given, learns=True) == {"texts": ["a", "b"], "labels": [1, 1], "weights": [1, 1], "k": 2}
    examples = [{"features": {"a": None}, "label": "x"}, {"features": {}, "weight": 2}]
    changed = [{"features": {"a": None}, "label": 1}, {"features": {}, "weight": 2}]
    assert accepted({"examples": examples}, learns=True) == {"examples": changed}


def test_lines_of_one_seed_are_the_same():
    one, two = (servers.lines(5, 10, 4, 1, labelled=True) for _ in range(2))
    assert one == two and all(line.endswith(b"\n") and b"|a f" in line for line in one)


def test_the_table_has_medians():
    about = {"set": "lines", "method": "xclass"}
    rounds = [{**about, "a_second": n, **servers.milliseconds([n / 1e4] * 100)} for n in (10.0, 3000.0, 20.0)]
    assert tables.of_page("serving_lines", rounds).splitlines()[2:] == ["| xclass | 20 | 2.00 | 2.00 |"]
