"""Show what was measured as Markdown tables: those of tables.ini stand in the pages, between two markers.

A record of a measurement has its `set`, `method` and `value` of the axis, its command, the date, the machine, and
figures. Those of docs/figures have the figures that their table shows, as medians.
"""

from __future__ import annotations

import itertools
import json
import math
import re
import statistics
import string
from collections import ChainMap
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from scripts.lib import runner
from scripts.lib.measurements import MEASUREMENTS, Measurement, read
from scripts.lib.processes import ROOT
from scripts.lib.results import geometric_mean, lines_of, table

PAGES = ROOT / "docs"
KEYS = ("set", "method", "value")
ABOUT = (*KEYS, "classes", "command", "stopped", "date", "cpu", "cores", "versions")  # beside the figures
Record = dict[str, Any]


class Cells(string.Formatter):
    """Format figures: nothing for what was not measured, no 0 before a point, and no exponents."""

    def get_field(self, name: str, words: Any, figures: Any) -> tuple[Any, str]:
        outer, _, inner = name.partition("[")
        value = figures.get(outer)
        return (value or {}).get(inner.rstrip("]")) if inner else value, name

    def format_field(self, value: Any, how: str) -> str:
        text = "" if value is None else super().format_field(value, how)
        if not isinstance(value, float):
            return text
        return f"{value:.0f}" if "e+" in text else re.sub(r"^(-?)0(?=\.\d*[1-9])", r"\1", text)


CELLS = Cells()
TABLES = read(Path(__file__).with_suffix(".ini"))


def measured(name: str) -> Measurement:
    """Return the measurement of this name, or what the table of this name shows; one of nothing for any other name."""
    return MEASUREMENTS.get(TABLES[name].measurement if name in TABLES else "") or MEASUREMENTS.get(name, Measurement())


def of_measurement(wanted: Measurement) -> Measurement:
    """Return how a measurement is printed: a line for each run, or the sets or values across."""
    title = "{set}" if wanted.axis == "classes" else "{set}, {classes:,}"
    own = Measurement(cell=wanted.cell, columns=wanted.columns, set_title=title)
    if wanted.columns:
        return replace(own, rows=KEYS, heads=("set", "method", wanted.axis))
    if wanted.axis:
        across = {"across": "value", "value_title": f"{wanted.axis} {{value}}"}
        return replace(own, rows=("set", "method"), heads=("", ""), **across)
    return replace(own, across="set", best=True)


# -- figures ----------------------------------------------------------------------------------------------------------


def view(record: Record) -> Record:
    """Return the figures of a record, and what follows from them."""
    see = {name: value for name, value in record.items() if isinstance(value, int | float | str)}
    see |= {name: record.get(name) or None for name in ("classes", "versions")} | {"value": record.get("value")}
    for prefix, figures in (("learn", record.get("learned", {})), ("test", record.get("tested", {}))):
        see |= {f"{prefix}_{name}": value for name, value in figures.items()}
    if record.get("error") is not None:
        see |= {"percent": 100 * record["error"], "accuracy": 100 - 100 * record["error"]}
    if "average_loss" in record.get("learned", {}):
        see["learned"] = 100 * (record["learned"]["average_loss"] or 0)
    for k, share in zip(runner.RANKS, record.get("precision", ()), strict=False):
        see[f"p{k}"] = 100 * share
    see |= {name: 100 * see[f"test_{name}_at_5"] for name in ("ndcg", "psp") if f"test_{name}_at_5" in see}
    for name, share in (("mb", "memory"), ("file_mb", "file_bytes")):
        see |= {name: record[share] / 1e6} if share in record else {}
    see |= {"mb_s": see["file_mb"] / max(record["read_cpu"], 1e-9)} if "read_cpu" in record else {}
    see |= {f"{name.removeprefix('learn_bytes_')}_mb": see[name] / 1e6 for name in list(see) if "learn_bytes_" in name}
    for task, start, us in (("train", "start_cpu", "us"), ("test", "test_start_cpu", "test_cpu_us")):
        if start in record:
            spent = record[f"{task}_cpu"] - record[start]
            see |= {us: 1e6 * spent / record[f"{task}_examples"]} | ({"learning_cpu": spent} if task == "train" else {})
    for task, us in (("train", "wall_us"), ("test", "test_us")):
        if task in record and f"{task}_examples" in record:
            see[us] = 1e6 * record[task] / record[f"{task}_examples"]
    if "learn_regressors_squared_loss" in see:  # of the examples whose label was known, as in the PECOC paper
        n, new = record["train_examples"], see["learn_labels_without_probability"]
        known = (see["learn_squared_loss"] * n - new) / max(n - new, 1)
        see["multiplier"] = known / max(see["learn_regressors_squared_loss"], 1e-12)
    return see


def key_of(record: Record) -> tuple:
    """Return the set, the method and the value of a record."""
    return tuple(record.get(key) for key in KEYS)


def medians(records: list[Record]) -> list[Record]:
    """Return a record for each set, method and value, with the medians of its repetitions."""
    groups: dict[tuple, list[Record]] = {}
    for record in records:
        groups.setdefault(key_of(record), []).append(record)
    return [
        {**of_one[0], **{name: statistics.median(one[name] for one in of_one)
                         for name, value in of_one[0].items() if isinstance(value, float)}}
        for of_one in groups.values()
    ]  # fmt: skip


def points(records: list[Record], wanted: Measurement) -> list[Record]:
    """Return what is shown: the figures of records and of pairs of them, and for a curve, of each value."""
    if wanted.axis == "curve":
        return [
            view(record) | {"value": n, "progressive": 100 * loss}
            for record in records
            for n, loss in record.get("curve", ())
            if n in wanted.values or n == record["train_examples"]
        ]
    seen = {key_of(one): one for one in map(view, medians(records))}
    for (name, method, value), own in seen.items():
        for other in wanted.beside.get(method, ()):
            divide(own, seen.get((name, other, value), {}), wanted.ratio, f"to {other}", "ratio")
        if value in wanted.values[-1:]:
            for us in ("us", "test_cpu_us"):
                divide(own, seen.get((name, method, wanted.values[0]), {}), us, f"growth_{us}")
    return [*seen.values(), *means(seen, wanted)]


def divide(own: Record, other: Record, name: str, *new: str) -> None:
    """Give a record new figures, one of its own divided by that of another, where both have it."""
    if name in own and other.get(name):
        own |= dict.fromkeys(new, own[name] / other[name]) | own


def means(seen: dict[tuple, Record], wanted: Measurement) -> Iterator[Record]:
    """Yield the geometric means of the ratios of each method over sets, unless there are records of them."""
    known = {name for name, _, _ in seen}
    for (title, sets), method in itertools.product(wanted.mean.items(), wanted.beside):
        sets = known.intersection(sets) or known
        for name in (f"to {other}" for other in wanted.beside[method] if (title, method, None) not in seen):
            ratios = [see[name] for key, see in seen.items() if key[0] in sets and key[1] == method and name in see]
            if ratios:
                yield {"set": title, "method": method} | dict.fromkeys((name, "ratio", "mean"), geometric_mean(ratios))


# -- tables -----------------------------------------------------------------------------------------------------------


def cell_of(cell: str, see: Record | None) -> str:
    """Return what a cell shows, nothing if there is no record, and no brackets around nothing."""
    if see is None or "stopped" in see:
        return "" if see is None else f"> {see['stopped']} s"
    return re.sub(r"\([ ,/]*\)|[ ,/]+(?=\))", "", CELLS.vformat(cell, (), see)).strip(" /,;±")


def leading(cell: str) -> float:
    """Return the number at the beginning of a cell."""
    return float(cell.split()[0].rstrip(",")) if cell[:1].isdigit() or cell[:1] == "." else math.inf


def title_of(own: Measurement, key: str, see: Record) -> str:
    """Return what a line or a column is called."""
    title = {"set": own.set_title, "value": own.value_title}.get(key, "{method}")
    names = f"{see.get('set')}: {see.get(key)}", f"{see.get(key)}"
    called = next((own.labels[name] for name in names if name in own.labels), see.get(key))
    return CELLS.vformat(title, (), see | {key: called}).strip(" ,")


def chosen(own: Measurement, seen: list[Record]) -> list[Record]:
    """Return the records that a table shows, in its order."""
    asked = {"set": own.sets, "method": own.methods, "value": own.values}
    order = {key: list(asked[key] or dict.fromkeys(see.get(key) for see in seen)) for key in KEYS}
    keys = sorted(KEYS, key=lambda key: own.rows.index(key) if key in own.rows else len(KEYS))
    wanted = [see for see in seen if all(see.get(key) in order[key] for key in KEYS)]
    return sorted(wanted, key=lambda see: [order[key].index(see.get(key)) for key in keys])


def shown(own: Measurement, seen: list[Record]) -> str:
    """Return a table as Markdown."""
    lines: dict[tuple, list[Record]] = {}
    for see in (seen := chosen(own, seen)):
        lines.setdefault(tuple(see.get(key) for key in own.rows), []).append(see)
    across = {see[own.across]: title_of(own, own.across, see) for see in seen} if own.across else {}
    heads = " | ".join([*own.heads, *across.values(), *own.columns]).split(" | ")
    least: dict[str, float] = {}
    for see in seen if own.best else ():
        least[see["set"]] = min(least.get(see["set"], math.inf), leading(cell_of(own.cell, see)))
    rows = []
    for of_line in lines.values():
        found = {see.get(own.across): see for see in of_line}
        every = dict(ChainMap(*reversed(of_line)))
        every |= {see[key]: see for see in of_line for key in KEYS[:2] if key not in own.rows}
        row = [title_of(own, key, of_line[0]) for key in own.rows]
        for name in across:
            cell = cell_of(own.cell, found.get(name))
            best = cell and leading(cell) == least.get(found[name]["set"])
            row.append(re.sub(r"^\S+", r"**\g<0>**", cell) if best else cell)
        row += [cell_of(cell, every) for cell in own.columns.values()]
        rows.append(" | ".join(row).split(" | "))  # a name may be that of several columns
    full = [i for i, _ in enumerate(heads) if any(row[i] for row in rows)]
    return table([heads[i] for i in full], ([row[i] for i in full] for row in rows))


def store(name: str, records: list[Record]) -> None:
    """Store the figures that a table shows in its file, in place of those of the same sets, methods and values."""
    own, path, wanted = TABLES[name], file_of(name), measured(name)
    cells = " ".join([own.cell if own.across else "", own.set_title, *own.columns.values()])
    fields = [field.rpartition("[")[2].rstrip("]") for _, field, _, _ in CELLS.parse(cells) if field]
    fields += [f"to {other}" for others in wanted.beside.values() for other in others]
    before = medians(json.loads(path.read_text(encoding="utf-8")))
    stored = {key_of(one): one for one in before if one["set"] not in wanted.mean}
    for see in (one for one in chosen(own, points(records, wanted)) if one["set"] not in wanted.mean):
        see["paper"] = stored.get(key_of(see), {}).get("paper")  # a figure that is not measured
        stored[key_of(see)] = {key: see[key] for key in (*ABOUT, *fields) if see.get(key) is not None}
    path.write_text(lines_of([*stored.values(), *means(stored, wanted)]), encoding="utf-8")


def file_of(name: str) -> Path:
    """Return the path of the figures of a table."""
    return PAGES / "figures" / (TABLES[name].file or f"{name}.json")


def of_page(name: str, records: list[Record] | None = None) -> str:
    """Return a table of the pages, from its figures unless records are given."""
    found = json.loads(file_of(name).read_text(encoding="utf-8")) if records is None else records
    return shown(TABLES[name], points(found, measured(name)))


def filled(text: str) -> str:
    """Return the text of a page with its tables as docs/figures has them."""
    marked = re.compile(r"(<!--table:(\w+)-->\n).*?(<!--end:\2-->\n)", re.DOTALL)
    return marked.sub(lambda found: f"{found[1]}\n{of_page(found[2])}\n\n{found[3]}", text)


def write_pages() -> None:
    """Write the tables of all pages."""
    for page in PAGES.glob("*.md"):
        page.write_text(filled(page.read_text(encoding="utf-8")), encoding="utf-8")
