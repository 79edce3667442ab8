"""The files of a new reduction: they work, keep the contract, and are red where the author has to think."""

import importlib
import importlib.abc
import importlib.util
import sys
from pathlib import Path

import pytest
from running import ROOT

import xclass
from scripts import new_reduction

NAME = "new_toy"


class Finder(importlib.abc.MetaPathFinder):
    """Import the modules that were written to a folder as if they were in the package."""

    def __init__(self, root: Path):
        self.root = root

    def find_spec(self, name, path=None, target=None):
        place = self.root / name.replace(".", "/")
        if (place / "__init__.py").exists() and name.startswith("xclass.reductions."):
            return importlib.util.spec_from_file_location(name, place / "__init__.py", submodule_search_locations=[])
        file = place.with_suffix(".py")
        return importlib.util.spec_from_file_location(name, file) if NAME in name and file.exists() else None


@pytest.fixture
def written(tmp_path, monkeypatch):
    """A folder with the new files."""
    for path in (new_reduction.REGISTRY, new_reduction.VARIANTS):
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).write_text((ROOT / path).read_text(encoding="utf-8"), encoding="utf-8")
    new_reduction.write(tmp_path, NAME)
    monkeypatch.setattr(sys, "meta_path", [Finder(tmp_path), *sys.meta_path])
    yield tmp_path
    for module in [module for module in sys.modules if NAME in module]:
        del sys.modules[module]


def test_what_is_written_keeps_the_contract_but_learns_nothing(written):
    record = importlib.import_module(f"xclass.reductions.{NAME}.reduction").REDUCTION
    assert [problem.check for problem in xclass.check_reduction(record)] == ["learns_to_tell_classes_apart"]


def test_the_lists_have_the_new_reduction(written):
    registry = (written / new_reduction.REGISTRY).read_text(encoding="utf-8")
    assert f'    "{NAME}": "{NAME}.reduction",\n}}\nREDUCTIONS' in registry
    assert f'    "{NAME}": [],\n}}\nAT_THE_END' in (written / new_reduction.VARIANTS).read_text(encoding="utf-8")


def test_no_file_is_replaced_and_names_are_checked(written):
    with pytest.raises(ValueError, match=f"xclass/reductions/{NAME}/__init__.py exists"):
        new_reduction.write(written, NAME)
    for name in ("Naive", "naive-bayes", "class", ""):
        with pytest.raises(ValueError, match="is no name of a reduction: use lower-case letters, digits and _"):
            new_reduction.write(written, name)
