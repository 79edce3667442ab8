"""What the record of every member of REDUCTIONS says that it can do, it can."""

from __future__ import annotations

from pathlib import Path

import pytest
from variants import BY_NAME

import xclass.abilities
from xclass.abilities.find import ability

FUNCTIONS = {  # what a module has to have; see the docstrings of the folders
    "describe": ("explain",),  # a new reduction has to say how; see `explain.records`
    "merge": ("listed_tables", "merge"),
}
ROOT = Path(xclass.abilities.__file__).parent


@pytest.mark.parametrize("name", BY_NAME)
def test_the_modules_of_a_reduction_are_those_that_its_record_names(name):
    record = BY_NAME[name]
    assert record.abilities == tuple(folder for folder in FUNCTIONS if (ROOT / folder / f"{name}.py").exists())
    for folder in record.abilities:
        assert all(callable(getattr(ability(record, folder), function)) for function in FUNCTIONS[folder])
    assert ("merge" in record.abilities) == (not record.not_merged)
    assert "describe" in record.abilities
