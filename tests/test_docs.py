"""Every option is documented, and the README says what the program says."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from xclass.cli import arguments, help_text
from xclass.cli import command as cli
from xclass.options import declare

ROOT = Path(__file__).parent.parent
SECTIONS = help_text.sections(*cli.rooms())
OPTIONS = {name: one for section in SECTIONS for name, one in section.options.items()}


@pytest.mark.parametrize("name", sorted(OPTIONS))
def test_option_has_help(name):
    text = OPTIONS[name].help
    assert len(text) > 5
    assert not text.endswith("."), "no full stop"
    assert text == text.strip()


def test_every_declared_option_stands_in_the_help():
    rooms, _ = cli.rooms()
    declared = {name for room in rooms.values() for name in declare.options_of(room)}
    assert declared == set(OPTIONS)
    text = arguments.read(SECTIONS, ["--help"])["help"]
    for one in OPTIONS.values():
        assert all(flag in text for flag in one.flags)


def test_no_flag_is_used_twice():
    flags = [flag for one in OPTIONS.values() for flag in one.flags]
    assert sorted(flags) == sorted(set(flags))
    assert not {"-h", "--help", "--version"} & set(flags)


def test_reduction_is_chosen_by_the_option_of_its_name():
    _, reductions = cli.rooms()
    for record in reductions:
        options = declare.options_of(record.options)
        assert record.name == "scalar" or options[record.name].kind is int


def test_readme_lists_the_options():
    script = runpy.run_path(str(ROOT / "scripts" / "readme_options.py"))
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert script["renewed"](text) == text, "run python scripts/readme_options.py"
