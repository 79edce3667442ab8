"""Read measurements.ini and tables.ini, measurements and what pages show of them; these say what their keys mean."""

from __future__ import annotations

import configparser
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scripts.lib.command_line import names, numbers

COLUMN, LABEL = "| ", "> "  # begin the name of a column, and of what is called otherwise


@dataclass(frozen=True)
class Measurement:
    """Hold a section of measurements.ini, or of tables.ini, whose `methods` are names alone."""

    about: str = ""
    methods: dict[str, str] = field(default_factory=dict)
    sets: tuple[str, ...] = ()
    axis: str = ""
    values: tuple[int | float, ...] = ()
    cell: str = "{percent:.1f} ({train_cpu:.1f})"
    columns: dict[str, str] = field(default_factory=dict)
    beside: dict[str, list[str]] = field(default_factory=dict)
    ratio: str = "train"
    mean: dict[str, list[str]] = field(default_factory=dict)
    stream: str = ""
    holdout: bool = False
    repetitions: int = 1
    tested: int = 0
    lines: int | None = None
    plot: tuple[str, ...] = ("train_cpu", "percent")
    measurement: str = ""
    file: str = ""
    rows: tuple[str, ...] = ("method",)
    heads: tuple[str, ...] = ("",)
    across: str = ""
    set_title: str = "{set}"
    value_title: str = "{value}"
    labels: dict[str, str] = field(default_factory=dict)
    best: bool = False


def parts(text: str) -> tuple[str, ...]:
    """Return what stands between semicolons."""
    return tuple(names(text, ";"))


def lists(text: str) -> dict[str, list[str]]:
    """Return the names that belong to each name, `NAME: A, B; NAME: C`."""
    return {name: names(others) for name, others in (part.split(": ") for part in parts(text))}


READ: dict[str, Callable[[str], Any]] = {
    **dict.fromkeys(("repetitions", "tested", "lines"), int),
    **dict.fromkeys(("rows", "heads"), parts),
    **dict.fromkeys(("holdout", "best"), lambda text: text == "yes"),
    **dict.fromkeys(("beside", "mean"), lists),
    "sets": lambda text: tuple(names(text)),
    "plot": lambda text: tuple(names(text)),
    "values": lambda text: tuple(numbers(text)),
    "methods": lambda text: dict.fromkeys(parts(text), ""),
}


def measurement(section: dict[str, str]) -> Measurement:
    """Return a measurement, or a table, from the keys and values of its section."""
    found: dict[str, Any] = {"columns": {}, "methods": {}, "labels": {}}
    for key, text in section.items():
        if key.startswith((COLUMN, LABEL)):
            found["columns" if key.startswith(COLUMN) else "labels"][key[2:]] = text
        elif key in Measurement.__dataclass_fields__:
            found[key] = READ.get(key, str)(text)
        else:
            found["methods"][key] = text
    return Measurement(**found)


def table_of(path: Path) -> configparser.RawConfigParser:
    """Return a table of sections, whose keys keep their case."""
    table = configparser.RawConfigParser(delimiters=("=",), comment_prefixes=(";",))
    table.optionxform = str  # type: ignore[assignment,method-assign]  # otherwise names become lower-case
    table.read(path, encoding="utf-8")
    return table


def read(path: Path) -> dict[str, Measurement]:
    """Return the sections of a table by their names."""
    table = table_of(path)
    return {name: measurement(dict(table[name])) for name in table.sections()}


MEASUREMENTS = read(Path(__file__).with_suffix(".ini"))
