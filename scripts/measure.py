"""Measure methods on sets in processes of their own, and print a table and draw a figure of what was measured.

    python -m scripts.measure NAME DATA_DIR [--sets A,B] [--json FILE] [--plot FILE]
    python -m scripts.measure NAME --json FILE --page
    python -m scripts.measure pages
    python -m scripts.measure any DATA_DIR --sets clinc150 --methods 'tree=xclass --cpt {K};VW --ect {K} -b 24'
    python -m scripts.measure any --stream even --axis classes --values 100,1000 --methods 'xclass --cpt {K}'

NAME is a measurement of scripts/lib/measurements.ini; `any` has the options of the command line alone. DATA_DIR has a
folder for each set, as scripts/lib/data_sets.py says, or with train.csv and test.csv, or train.npy and test.npy.
Methods are separated by semicolons; they are names of the measurement's, or `NAME=TOOL WORDS`, see runner.py there.
What is in the file of --json is not measured again, and without DATA_DIR it is shown alone. Methods of a tool that is
not installed are left out.

With --page, docs/figures keeps the medians that the tables of NAME show, with their commands, dates and versions, and
the pages get these tables, as scripts/lib/tables.ini describes; `pages` writes all tables from docs/figures. NAME may
also be a table of figures that another command with --json has measured.

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
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from scripts.lib import peers, plots, runner, streams, tables
from scripts.lib.command_line import names, new_parser, numbers, run, work_folder
from scripts.lib.data_sets import prepare
from scripts.lib.measurements import MEASUREMENTS, Measurement
from scripts.lib.processes import BenchError, machine
from scripts.lib.results import ResultStore
from scripts.lib.tables import Record

OF_STREAM = ("classes", "features")
COLOURS = {"xclass": "tab:red", "VW": "tab:blue", "napkinXC": "tab:green", "fastText": "tab:orange"}
TITLES = {  # of axes of figures
    "percent": "test error, %", "accuracy": "test accuracy, %", "p1": "precision at 1, %",
    "progressive": "progressive error, %", "train": "seconds of training", "train_cpu": "CPU s of training",
    "learning_cpu": "CPU s of training without the start", "us": "CPU us to learn an example",
    "test_cpu_us": "CPU us to predict an example", "learn_squared_loss": "progressive squared loss",
    "learn_regressors_per_label": "regressors scored per label",
    "multiplier": "squared loss / regressors' squared loss",
}  # fmt: skip

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
    if not (wanted.holdout or wanted.tested or wanted.lines) or own.exists():
        return own if own.exists() else folder
    kind = next(kind for kind in runner.FORMATS if (folder / f"train.{kind}").exists())
    n, tests = (min(wanted.lines or sys.maxsize, runner.count(folder / f"{part}.{kind}")) for part in ("train", "test"))
    own.mkdir()
    last = n * 9 // 10 if wanted.holdout else n
    runner.cut(folder, kind, "train", "part/train", last)
    runner.cut(folder, kind, *(("train", "part/test", n, last) if wanted.holdout else ("test", "part/test", tests)))
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
    lacking = [
        tool for tool in dict.fromkeys(text.split()[0] for text in wanted.methods.values()) if peers.missing(tool)
    ]
    for tool in lacking:
        print(f"peers: {tool} is not installed and left out", file=sys.stderr)
    methods = {name: text for name, text in wanted.methods.items() if text.split()[0] not in lacking}
    values = wanted.values if wanted.axis not in ("", "curve") else (None,)
    ways = {"lines": wanted.lines, "holdout": wanted.holdout}
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


# -- drawing ----------------------------------------------------------------------------------------------------------


def draw(seen: list[Record], wanted: Measurement, file: Path) -> None:
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
                     and see.get(across) is not None and see.get(name) is not None]  # fmt: skip
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
    wanted = tables.measured(given.name)
    changeable = ("sets", "axis", "values", "stream", "repetitions", "lines", "tested", "holdout")
    changes: Record = {name: value for name in changeable if (value := getattr(given, name)) is not None}
    if given.methods:
        pairs = [(text, text) if "=" not in text.split(" ")[0] else text.split("=", 1) for text in given.methods]
        changes["methods"] = {name: wanted.methods.get(text, text) for name, text in pairs}
        known = (*peers.PACKAGES, peers.XCLASS, runner.MERGED, peers.READING, peers.CALLS)
        if strange := [text for text in changes["methods"].values() if text.split(" ")[0] not in known]:
            names_of = f"; {'; '.join(wanted.methods)}" if wanted.methods else ""
            raise BenchError(f"--methods: {strange[0]!r} is none of {', '.join(known)} with words{names_of}")
    changes |= {"sets": ()} if given.stream else {}
    wanted = dataclasses.replace(wanted, **changes)
    if not given.json and not (wanted.methods and ((given.data_dir and wanted.sets) or wanted.stream)):
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
    known = dict.fromkeys((*MEASUREMENTS, *tables.TABLES, "any", "pages"))
    parser.add_argument("name", choices=known, metavar="NAME", help=", ".join(known))
    parser.add_argument("data_dir", type=Path, nargs="?", metavar="DATA_DIR")
    parser.add_argument("--json", type=Path, metavar="FILE", help="what was measured; it is added to")
    parser.add_argument("--page", action="store_true", help="write the tables of the pages with what FILE has")
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
    parser.add_argument(
        "--holdout", action="store_const", const=True, help="test on the last tenth of the training file"
    )
    parser.add_argument("--repetitions", type=int, metavar="R", help="runs of which medians are shown")
    parser.add_argument("--limit", type=int, metavar="SECONDS", help="of CPU time, at which a process is stopped")
    given = parser.parse_args()
    if given.name == "pages":
        return tables.write_pages()
    wanted = chosen(given)
    if given.plot:
        plots.plotting()  # an error before anything is measured
    with work_folder(given.work) as work:
        store = ResultStore(given.json)
        measures = given.data_dir or wanted.stream
        records = measured(given, wanted, store, work) if measures else [{"value": None} | one for one in store.records]
        seen = tables.points(records, wanted)
    of_pages = [name for name, own in tables.TABLES.items() if given.name in (name, own.measurement)]
    every = [tables.of_measurement(wanted), *(tables.TABLES[name] for name in of_pages)]
    print(*(tables.shown(own, seen) for own in every if tables.chosen(own, seen)), sep="\n\n")
    if given.page:
        for name in of_pages:
            tables.store(name, records)
        tables.write_pages()
    if given.plot:
        draw(seen, wanted, given.plot)


if __name__ == "__main__":
    run(main)
