"""Read the table of measurements, measurements.ini, which says what its sections mean."""

from __future__ import annotations

import configparser
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scripts.lib.command_line import names, numbers

COLUMN = "| "  # begins the name of a column
NUMBERS = ("repetitions", "tested", "lines")


@dataclass(frozen=True)
class Measurement:
    """Hold a section of the table."""

    about: str
    methods: dict[str, str]
    sets: tuple[str, ...] = ()
    axis: str = ""
    values: tuple[int | float, ...] = ()
    cell: str = "{percent:.1f} ({train_cpu:.1f})"
    columns: dict[str, str] = field(default_factory=dict)
    beside: dict[str, str] = field(default_factory=dict)
    stream: str = ""
    repetitions: int = 1
    tested: int = 0
    lines: int | None = None
    plot: tuple[str, ...] = ("train_cpu", "percent")


def measurement(section: dict[str, str]) -> Measurement:
    """Return a measurement from the keys and values of its section."""
    found: dict[str, Any] = {"columns": {}, "methods": {}}
    for key, text in section.items():
        if key.startswith(COLUMN):
            found["columns"][key.removeprefix(COLUMN)] = text
        elif key in ("sets", "plot"):
            found[key] = tuple(names(text))
        elif key == "values":
            found[key] = tuple(numbers(text))
        elif key == "beside":
            found[key] = dict(pair.strip().split(": ") for pair in text.split(";"))
        elif key in NUMBERS:
            found[key] = int(text)
        elif key in Measurement.__dataclass_fields__:
            found[key] = text
        else:
            found["methods"][key] = text
    return Measurement(**found)


def table_of(path: Path) -> configparser.RawConfigParser:
    """Return a table of sections, whose keys keep their case."""
    table = configparser.RawConfigParser(delimiters=("=",), comment_prefixes=(";",))
    table.optionxform = str  # type: ignore[assignment,method-assign]  # otherwise names become lower-case
    table.read(path, encoding="utf-8")
    return table


TABLE = table_of(Path(__file__).with_suffix(".ini"))
MEASUREMENTS = {name: measurement(dict(TABLE[name])) for name in TABLE.sections()}
