"""Every member of REDUCTIONS has the abilities that it has to have."""

from __future__ import annotations

from pathlib import Path

import pytest
from variants import BY_NAME

import xclass.abilities
from xclass.abilities.find import ability

FUNCTIONS = {  # what a module has to have; see the docstrings of the folders
    "describe": ("explain",),  # a new reduction has to say how; see `explain.records`
    "merge": ("merge",),
}
ROOT = Path(xclass.abilities.__file__).parent


@pytest.mark.parametrize("name", BY_NAME)
def test_a_reduction_has_the_modules_of_its_abilities(name):
    record = BY_NAME[name]
    for folder, functions in FUNCTIONS.items():
        module = ability(record, folder)
        assert (module is not None) == (ROOT / folder / f"{name}.py").exists()
        assert module is None or all(callable(getattr(module, function)) for function in functions)
