"""Measured tables of the pages: what docs/figures has, and how records become tables."""

from __future__ import annotations

import json
import re

import pytest
import tracked
from running import tool

from scripts.lib import tables
from scripts.lib.measurements import Measurement

PAGES = [page for page in tracked.files("docs/*.md") if "<!--table:" in page.read_text(encoding="utf-8")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_page_has_the_tables_of_its_figures(page):
    text = page.read_text(encoding="utf-8")
    assert tables.filled(text) == text, "run python -m scripts.measure pages"


def test_every_table_stands_between_its_markers_in_one_page():
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    marked = re.findall(r"^<!--table:(\w+)-->\n\n\|(?:.+\n)+\n<!--end:\1-->$", text, re.MULTILINE)
    assert sorted(marked) == sorted(tables.TABLES) and text.count("<!--table:") == len(marked)


@pytest.mark.parametrize("name", tables.TABLES)
def test_figures_name_what_was_measured(name):
    records = json.loads(tables.file_of(name).read_text(encoding="utf-8"))
    assert all(isinstance(one["set"], str) and isinstance(one["method"], str) for one in records)
    assert len(tables.of_page(name).splitlines()) > 3


def test_cells_have_no_zero_before_a_point_no_exponent_and_nothing_for_what_is_missing():
    see = {"share": 0.25, "none": 0.0, "large": 1234.5, "text": "-l 0.5", "VW": {"share": -0.5}}
    cell = "{share:.2f} {none:.1f} {large:.2g} {text} {VW[share]:.1f} ({missing:.1f} / {VW[missing]:.1f})"
    assert tables.cell_of(cell, see) == ".25 0.0 1234 -l 0.5 -.5"
    assert tables.cell_of("{share:.2f}", None) == "" and tables.cell_of("{us}", {"stopped": 28}) == "> 28 s"


def records():
    return [
        {
            "set": name,
            "method": method,
            "repetition": i,
            "error": error,
            "train": seconds * (1 + i),
            "date": "2026-11-29",
        }
        for name, method, error, seconds in (("a", "own", 0.25, 2.0), ("a", "VW", 0.5, 4.0), ("b", "own", 0.125, 3.0))
        for i in range(3)
    ]


def test_ratios_medians_and_the_least_numbers():
    wanted = Measurement(beside={"own": ["VW"]}, mean={"mean": ["a"]})
    seen = tables.points(records(), wanted)
    own = Measurement(across="set", cell="{percent:.1f} ({train:.1f})", sets=("a", "b"), heads=("x",), best=True)
    assert tables.shown(own, seen).splitlines() == [
        "| x | a | b |",
        "| --- | --: | --: |",
        "| own | **25.0** (4.0) | **12.5** (6.0) |",
        "| VW | 50.0 (8.0) | |",
    ]
    by_set = Measurement(rows=("set",), columns={"ratio": "{own[to VW]:.2f} ({own[percent]:.1f} / {VW[percent]:.1f})"})
    assert tables.shown(by_set, seen).splitlines()[2:] == [
        "| a | .50 (25.0 / 50.0) |",
        "| b | (12.5) |",
        "| mean | .50 |",
    ]


def test_means_are_of_what_was_measured_now_and_before(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "PAGES", tmp_path)
    monkeypatch.setattr(tables, "TABLES", {"speed": Measurement(rows=("set",), columns={"ratio": "{own[to VW]:.2f}"})})
    monkeypatch.setattr(
        tables, "MEASUREMENTS", {"speed": Measurement(beside={"own": ["VW"]}, mean={"mean": ["a", "c"]})}
    )
    (tmp_path / "figures").mkdir()
    old = [{"set": "c", "method": "own", "to VW": 2.0}, {"set": "mean", "method": "own", "to VW": 9.0}]
    (tmp_path / "figures" / "speed.json").write_text(json.dumps(old))
    tables.store("speed", records())
    assert tables.of_page("speed").splitlines()[2:] == ["| c | 2.00 |", "| a | .50 |", "| b | |", "| mean | 1.00 |"]


def test_what_was_measured_takes_the_place_of_figures_and_goes_into_the_page(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "PAGES", tmp_path)
    table = Measurement(rows=("set",), columns={"error": "{own[percent]:.1f} ({VW[percent]:.1f})"})
    monkeypatch.setattr(tables, "TABLES", {"small": table})
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures" / "small.json").write_text('[{"set": "c", "method": "own", "percent": 9.5}]')
    (tmp_path / "page.md").write_text("before\n<!--table:small-->\n\nold\n\n<!--end:small-->\nafter\n")
    (tmp_path / "measured.json").write_text(json.dumps(records()))
    result = tool("measure", "small", "--json", tmp_path / "measured.json", "--page")
    assert result.returncode == 0, result.stderr
    page = (tmp_path / "page.md").read_text()
    assert page.startswith("before\n<!--table:small-->\n\n| |") and page.endswith("\n\n<!--end:small-->\nafter\n")
    assert "| c | 9.5 |\n| a | 25.0 (50.0) |\n| b | 12.5 |" in page
    stored = json.loads((tmp_path / "figures" / "small.json").read_text())
    assert stored[1] == {"set": "a", "method": "own", "percent": 25.0, "date": "2026-11-29"}
