"""Measure methods on sets in processes of their own, and print a table and draw a figure of what was measured.

    python -m scripts.measure NAME DATA_DIR [--sets A,B] [--json FILE] [--plot FILE]
    python -m scripts.measure any DATA_DIR --sets clinc150 --methods 'tree=xclass --cpt {K};VW --ect {K} -b 24'
    python -m scripts.measure any --stream even --axis classes --values 100,1000 --methods 'xclass --cpt {K}'

NAME is a measurement of scripts/lib/measurements.ini; `any` has the options of the command line alone. DATA_DIR has a
folder for each set, as scripts/lib/data_sets.py says, or with train.csv and test.csv, or train.npy and test.npy.
Methods are separated by semicolons; they are names of the measurement's, or `NAME=TOOL WORDS`, see runner.py there.
What is in the file of --json is not measured again, and without DATA_DIR it is shown alone. Methods of a tool that is
not installed are left out.

Streams are generated, `--examples` to learn and as many to test: with `even`, classes are equally likely and nine words
in ten tell the class; with `power_law`, the frequency of class i is proportional to i^-.8, a third of the words are
from its class, which shares them with others, and the rest tells nothing; `lists` are examples with three labels.

Cells with `us` are microseconds of an example, of the CPU without what a run over a few lines takes.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import functools
import itertools
import os
import shlex
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from scripts.lib import peers, plots, runner, streams
from scripts.lib.command_line import names, new_parser, numbers, run, work_folder
from scripts.lib.data_sets import prepare
from scripts.lib.measurements import MEASUREMENTS, Measurement
from scripts.lib.processes import BenchError, machine
from scripts.lib.results import ResultStore, geometric_mean, table

ANY = Measurement("what the command line says", {})
OF_STREAM = ("classes", "features")
COLOURS = {"xclass": "tab:red", "VW": "tab:blue", "napkinXC": "tab:green", "fastText": "tab:orange"}
TITLES = {  # of axes of figures
    "percent": "test error, %", "accuracy": "test accuracy, %", "p1": "precision at 1, %",
    "progressive": "progressive error, %", "train": "seconds of training", "train_cpu": "CPU s of training",
    "cpu": "CPU s of training without the start", "us": "CPU us to learn an example",
    "test_cpu_us": "CPU us to predict an example", "learn_squared_loss": "progressive squared loss",
    "learn_regressors_per_label": "regressors scored per label",
    "multiplier": "squared loss / regressors' squared loss",
}  # fmt: skip
Record = dict[str, Any]


class Blank:
    """Stand for what was not measured: a cell that is empty in any format."""

    def __format__(self, how: str) -> str:
        return ""


class View(dict):
    """The figures of a record by the names that cells use."""

    def __missing__(self, name: str) -> Blank:
        return Blank()


# -- measuring --------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def processors(number: int | None) -> Iterator[None]:
    """Let this process and those that it starts use so many processors."""
    every = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(every)[:number])
    try:
        yield
    finally:
        os.sched_setaffinity(0, every)


def folder_of(given: argparse.Namespace, wanted: Measurement, name: str, value: Any, work: Path) -> tuple[Path, int]:
    """Return the folder of a set, or of a stream, and its number of classes."""
    if wanted.stream:
        sizes = {"classes": given.classes, "features": given.features}
        sizes |= {wanted.axis: value} if wanted.axis in OF_STREAM else {}
        classes = sizes["classes"]
        return streams.folder_of(work, wanted.stream, classes, given.examples, sizes["features"]), classes
    source = given.data_dir / name
    kind = next((kind for kind in ("csv", "npy") if (source / f"train.{kind}").exists()), None)
    if kind is None:
        return prepare(given.data_dir, name, work)
    folder = work / name
    folder.mkdir(exist_ok=True)
    for path in source.glob(f"*.{kind}"):
        with contextlib.suppress(FileExistsError):
            (folder / path.name).symlink_to(path.absolute())
    return folder, 0


def part_of(folder: Path, given: argparse.Namespace, wanted: Measurement) -> Path:
    """Return the folder of the part of a set that is used: the first lines, or without the test file, or with more."""
    own = folder / "part"
    if not (given.holdout or wanted.tested or wanted.lines) or own.exists():
        return own if own.exists() else folder
    kind = next(kind for kind in runner.FORMATS if (folder / f"train.{kind}").exists())
    n, tests = (min(wanted.lines or sys.maxsize, runner.count(folder / f"{part}.{kind}")) for part in ("train", "test"))
    own.mkdir()
    last = n * 9 // 10 if given.holdout else n
    runner.cut(folder, kind, "train", "part/train", last)
    runner.cut(folder, kind, *(("train", "part/test", n, last) if given.holdout else ("test", "part/test", tests)))
    if wanted.tested and kind == "vw":
        test = (own / "test.vw").read_bytes().splitlines(keepends=True)
        with open(own / "test.vw", "wb") as file:
            file.writelines(itertools.islice(itertools.cycle(test), wanted.tested))
    return own


def with_options(tool: str, words: list[str], more: list[str]) -> list[str]:
    """Return the words of a method of xclass or VW with further options of training."""
    if tool not in (peers.XCLASS, peers.VW, runner.MERGED):
        return words
    at = words.index("--") if "--" in words else len(words)
    return [*words[:at], *more, *words[at:]]


def measured(given: argparse.Namespace, wanted: Measurement, store: ResultStore, work: Path) -> list[Record]:
    """Measure what is not stored; return the records of all sets, methods and values."""
    found = []
    methods = {name: text for name, text in wanted.methods.items() if not peers.missing(text.split()[0])}
    peers.say_what_is_missing(text.split()[0] for text in wanted.methods.values())
    values = wanted.values if wanted.axis not in ("", "curve") else (None,)
    ways = {"lines": wanted.lines, "holdout": given.holdout}
    ways |= {"examples": given.examples, "features": given.features} if wanted.stream else {}
    for name, value in itertools.product((wanted.stream,) if wanted.stream else wanted.sets, values):
        folder, classes = folder_of(given, wanted, name, value, work)
        folder = part_of(folder, given, wanted)
        for repetition, (method, text) in itertools.product(range(wanted.repetitions), methods.items()):
            tool, *words = runner.words_of(text, name, classes)
            varied = [wanted.axis, str(value)] if wanted.axis.startswith("-") else []
            words = with_options(tool, words, varied + (shlex.split(given.options) if tool == peers.XCLASS else []))
            key = {"set": name, "command": " ".join([tool, *words]), **{way: how for way, how in ways.items() if how}}
            key |= {"value": value} if value is not None else {}
            key |= {"repetition": repetition} if repetition else {}
            about = {"method": method, "classes": classes}
            make = functools.partial(made_of, about, tool, words, folder, given.limit)
            try:
                with processors(value if wanted.axis == "processors" else None):
                    found.append({**key, **store.get(key, make), **about, "value": value})
            except BenchError as error:
                print(f"failed: {name} {method}: {error}", file=sys.stderr, flush=True)
    return found


def made_of(about: Record, tool: str, words: list[str], folder: Path, limit: int | None) -> Record:
    """Return what was measured of a method, and where."""
    return {**about, **runner.run(tool, words, folder, limit), **machine()}


# -- showing ----------------------------------------------------------------------------------------------------------


def view(record: Record) -> View:
    """Return the figures of a record, and what follows from them."""
    see = View({name: value for name, value in record.items() if isinstance(value, int | float | str)})
    see["value"] = record["value"]
    for prefix, figures in (("learn", record.get("learned", {})), ("test", record.get("tested", {}))):
        see |= {f"{prefix}_{name}": value for name, value in figures.items()}
    if record.get("error") is not None:
        see |= {"percent": 100 * record["error"], "accuracy": 100 - 100 * record["error"]}
    if "average_loss" in record.get("learned", {}):
        see["learned"] = 100 * (record["learned"]["average_loss"] or 0)
    for k, share in zip(runner.RANKS, record.get("precision", ()), strict=False):
        see[f"p{k}"] = 100 * share
    for name, share in (("mb", "memory"), ("file_mb", "file_bytes")):
        see |= {name: record[share] / 1e6} if share in record else {}
    see |= {"mb_s": see["file_mb"] / max(record["read_cpu"], 1e-9)} if "read_cpu" in record else {}
    see |= {f"{name.removeprefix('learn_bytes_')}_mb": see[name] / 1e6 for name in list(see) if "learn_bytes_" in name}
    for task, start, us in (("train", "start_cpu", "us"), ("test", "test_start_cpu", "test_cpu_us")):
        if start in record:
            spent = record[f"{task}_cpu"] - record[start]
            see |= {us: 1e6 * spent / record[f"{task}_examples"]} | ({"cpu": spent} if task == "train" else {})
    for task, us in (("train", "wall_us"), ("test", "test_us")):
        if task in record and f"{task}_examples" in record:
            see[us] = 1e6 * record[task] / record[f"{task}_examples"]
    if "learn_regressors_squared_loss" in see:  # of the examples whose label was known, as in the PECOC paper
        n, new = record["train_examples"], see["learn_labels_without_probability"]
        known = (see["learn_squared_loss"] * n - new) / max(n - new, 1)
        see["multiplier"] = known / max(see["learn_regressors_squared_loss"], 1e-12)
    return see


def medians(records: list[Record]) -> list[Record]:
    """Return a record for each set, method and value, with the medians of its repetitions."""
    groups: dict[tuple, list[Record]] = {}
    for record in records:
        groups.setdefault((record["set"], record["method"], record["value"]), []).append(record)
    return [
        {**of_one[0], **{name: statistics.median(one[name] for one in of_one)
                         for name, value in of_one[0].items() if isinstance(value, float)}}
        for of_one in groups.values()
    ]  # fmt: skip


def points(records: list[Record], wanted: Measurement) -> list[View]:
    """Return what is shown: the views of records, and for a curve, one for each value."""
    if wanted.axis == "curve":
        return [
            View(view(record) | {"value": n, "progressive": 100 * loss})
            for record in records
            for n, loss in record.get("curve", ())
            if n in wanted.values or n == record["train_examples"]
        ]
    seen = {(one["set"], one["method"], one["value"]): view(one) for one in medians(records)}
    for (name, method, value), own in seen.items():
        other = seen.get((name, wanted.beside.get(method), value))
        own |= {"ratio": own["train"] / other["train"]} if other else {}
    return list(seen.values())


def cell_of(cell: str, see: View | None) -> str:
    """Return what a cell shows, nothing if there is no record."""
    return "" if see is None else f"> {see['stopped']} s" if "stopped" in see else cell.format_map(see)


def tables(seen: list[View], wanted: Measurement) -> Iterator[str]:
    """Yield Markdown: a table of columns, a table of sets, or a table of the values for each set."""
    found = {(see["set"], see["method"], see["value"]): see for see in seen}
    sets, methods, values = (list(dict.fromkeys(key[i] for key in found)) for i in range(3))
    titles = {see["set"]: see["set"] for see in seen}
    if wanted.axis != "classes":
        titles |= {see["set"]: f"{see['set']}, {see['classes']:,}" for see in seen if see["classes"]}
    if wanted.columns:
        rows = []
        for name, method, value in found:
            see = found[name, method, value]
            cells = [cell_of(cell, see).strip(" /") for cell in wanted.columns.values()]
            rows.append([titles[name], method, *([str(value)] if wanted.axis else []), *cells])
        heads = ["set", "method", *([wanted.axis] if wanted.axis else []), *wanted.columns]
        full = [i for i, head in enumerate(heads) if i < 2 or any(row[i] for row in rows)]
        yield table([heads[i] for i in full], ([row[i] for i in full] for row in rows))
        for method in wanted.beside:
            ratios = [see["ratio"] for see in seen if see["method"] == method and "ratio" in see]
            if ratios:
                both = f"{method} to {wanted.beside[method]}"
                yield f"\nGeometric mean of the ratios of {both}: {geometric_mean(ratios):.2f}"
        return
    if not wanted.axis:
        least = {name: min((see["percent"] for see in seen if see["set"] == name and "percent" in see), default=None)
                 for name in sets}  # fmt: skip
        rows = []
        for method in methods:
            cells = [cell_of(wanted.cell, found.get((name, method, None))) for name in sets]
            best = [(found.get((name, method, None)) or {}).get("percent") == least[name] is not None for name in sets]
            rows.append([method, *(f"**{cell}**" if mark else cell for cell, mark in zip(cells, best, strict=True))])
        yield table(["", *(titles[name] for name in sets)], rows)
        return
    for name in sets:
        rows = []
        for method in methods:
            rows.append([method, *(cell_of(wanted.cell, found.get((name, method, value))) for value in values)])
        yield table([titles[name], *(f"{wanted.axis} {value}" for value in values)], rows) + "\n"


def draw(seen: list[View], wanted: Measurement, file: Path) -> None:
    """Draw a panel for each set and each figure, a line or a point for each method."""
    across, *up = wanted.plot
    pyplot, sets = plots.plotting(), list(dict.fromkeys(see["set"] for see in seen))
    wide = len(sets) if len(up) > 1 else min(3, len(sets))
    high = max(len(up), -(-len(sets) // wide))
    figure, areas = pyplot.subplots(
        high, wide, figsize=(4.8 * wide, 4.2 * high), squeeze=False, layout="constrained", dpi=plots.PIXELS
    )
    for area in areas.flat[len(up) * len(sets) :]:
        area.set_visible(False)
    named = []
    for (row, name), (column, one) in itertools.product(enumerate(up), enumerate(sets)):
        area, labelled = areas.flat[row * wide + column], []
        for method in dict.fromkeys(see["method"] for see in seen):
            pairs = [(see[across], see[name]) for see in seen if (see["set"], see["method"]) == (one, method)
                     and not isinstance(see[across], Blank) and not isinstance(see[name], Blank)]  # fmt: skip
            if wanted.axis:
                area.plot(*zip(*pairs, strict=True), "o-", markersize=4, label=method) if pairs else None
            elif pairs:
                area.plot(*pairs[0], "o", color=COLOURS.get(method.split()[0].rstrip(","), "tab:grey"), markersize=5)
                labelled.append((pairs[0], method.removeprefix("xclass ")))
        plots.log_axis(area, wanted.values if across == "value" and len(wanted.values) < 9 else ())
        area.margins(0.15)
        xlabel = wanted.axis if across == "value" else TITLES[across]
        area.set(title=one, xlabel="examples" if xlabel == "curve" else xlabel, ylabel=TITLES[name])
        if wanted.axis:
            area.legend(fontsize=8)
        else:
            named.append((area, labelled))
    figure.draw_without_rendering()
    figure.set_layout_engine("none")  # labels are placed for the layout as it is now
    for area, labelled in named:
        plots.label_points(area, [point for point, _ in labelled], [label for _, label in labelled])
    figure.savefig(file, dpi=plots.PIXELS)


# -- the command line -------------------------------------------------------------------------------------------------


def chosen(given: argparse.Namespace) -> Measurement:
    """Return the measurement that the command line describes."""
    wanted = MEASUREMENTS.get(given.name, ANY)
    changes: Record = {name: value for name in ("sets", "axis", "values", "stream", "repetitions", "lines", "tested")
                       if (value := getattr(given, name)) is not None}  # fmt: skip
    if given.methods:
        pairs = [(text, text) if "=" not in text.split(" ")[0] else text.split("=", 1) for text in given.methods]
        changes["methods"] = {name: wanted.methods.get(text, text) for name, text in pairs}
        known = (*peers.PACKAGES, peers.XCLASS, runner.MERGED, peers.READING, peers.CALLS)
        if strange := [text for text in changes["methods"].values() if text.split(" ")[0] not in known]:
            names_of = f"; {'; '.join(wanted.methods)}" if wanted.methods else ""
            raise BenchError(f"--methods: {strange[0]!r} is none of {', '.join(known)} with words{names_of}")
    changes |= {"sets": ()} if given.stream else {}
    wanted = dataclasses.replace(wanted, **changes)
    if not wanted.methods or not ((given.data_dir and wanted.sets) or wanted.stream or given.json):
        raise BenchError("give --methods, and DATA_DIR with --sets, or --stream, or --json with what was measured")
    if bool(wanted.axis) != bool(wanted.values):
        raise BenchError("--axis and --values belong together")
    there = len(os.sched_getaffinity(0))
    if wanted.axis == "processors" and max(wanted.values) > there:
        raise BenchError(f"there are {there} processors, not {max(wanted.values)}")
    return wanted


def main() -> None:
    """Measure what is not stored, print the tables and draw."""
    parser = new_parser(__doc__)
    parser.add_argument("name", choices=[*MEASUREMENTS, "any"], metavar="NAME", help=", ".join([*MEASUREMENTS, "any"]))
    parser.add_argument("data_dir", type=Path, nargs="?", metavar="DATA_DIR")
    parser.add_argument("--json", type=Path, metavar="FILE", help="what was measured; it is added to")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="the picture")
    parser.add_argument("--work", type=Path, metavar="DIR", help="for the files; a temporary one by default")
    parser.add_argument("--sets", type=names, metavar="A,B")
    parser.add_argument("--methods", type=lambda text: text.split(";"), metavar="METHOD;METHOD")
    parser.add_argument("--options", default="", help="of all methods of xclass, as one word")
    parser.add_argument("--axis", metavar="WHAT", help="an option, classes, features, processors or curve")
    parser.add_argument("--values", type=numbers, metavar="V,V", help="of the axis")
    parser.add_argument("--stream", choices=streams.KINDS, help="generated streams in place of sets")
    parser.add_argument("--classes", type=int, default=1000, help="of a stream (default: 1000)")
    parser.add_argument("--features", type=int, default=10, help="of an example of a stream (default: 10)")
    parser.add_argument("--examples", type=int, default=100_000, help="of a stream (default: 100000)")
    parser.add_argument("--lines", type=int, metavar="N", help="use the first N lines of each file")
    parser.add_argument("--tested", type=int, metavar="N", help="repeat the test file until it has N lines")
    parser.add_argument("--holdout", action="store_true", help="test on the last tenth of the training file")
    parser.add_argument("--repetitions", type=int, metavar="R", help="runs of which medians are shown")
    parser.add_argument("--limit", type=int, metavar="SECONDS", help="of CPU time, at which a process is stopped")
    given = parser.parse_args()
    wanted = chosen(given)
    if given.plot:
        plots.plotting()  # an error before anything is measured
    with work_folder(given.work) as work:
        store = ResultStore(given.json)
        measures = given.data_dir or wanted.stream
        records = measured(given, wanted, store, work) if measures else [{"value": None} | one for one in store.records]
        seen = points(records, wanted)
    print(*tables(seen, wanted), sep="\n")
    if given.plot:
        draw(seen, wanted, given.plot)


if __name__ == "__main__":
    run(main)
