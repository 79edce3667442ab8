"""The script that counts what a use of the package passes."""

import pytest
from running import tool


@pytest.mark.parametrize("name", ["multilabel", "http_learn", "estimator_of_table"])
def test_a_use_is_counted_and_its_functions_are_named(name):
    result = tool("flows", name)
    assert result.returncode == 0, result.stderr
    row = next(line for line in result.stdout.splitlines() if line.startswith(f"| `{name}`"))
    files, functions, generators = (int(cell) for cell in row.strip("| ").split(" | ")[1:])
    named = [line for line in result.stdout.splitlines() if line.endswith(".py")]
    assert files == len(named) > 20 and functions > files and generators < 14
    assert "api/learner.py" in named and "api/learner_core.py" in named
