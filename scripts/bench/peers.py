"""Error against time, xclass beside other tools: each method as a whole process, one after the other.

    python -m scripts.bench.peers DATA_DIR --sets spelling,wordnet --json docs/figures/results.json
    python -m scripts.bench.peers --table docs/figures/results.json --plot docs/figures/results.png

The first measures and adds to the file what it does not hold yet, so that a run cut short goes on; `--methods` takes
some of them. The second prints a Markdown table and draws training time against test error (matplotlib, the extra
`plot`). Data as in compare.py. Needs `pip install vowpalwabbit napkinxc fasttext-wheel`; methods of a package that is
not there are left out, and said to be.

Times are of whole processes, reading included. napkinXC reads the same features as LIBSVM text, made of the VW text
beforehand, fastText the words, for it has no values; their prediction takes the time their own call takes, without
starting. A feature is a word with its namespace.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from scripts.lib import command_line
from scripts.lib.command_line import names, work_folder
from scripts.lib.data_sets import prepare
from scripts.lib.peers import (
    FASTTEXT,
    METHODS,
    NAPKIN,
    VW,
    XCLASS,
    missing,
    run,
    say_what_is_missing,
    unknown,
    words_of,
)
from scripts.lib.plots import PIXELS, label_points, log_axis, plotting
from scripts.lib.processes import BenchError

COLOURS = {XCLASS: "tab:red", VW: "tab:blue", NAPKIN: "tab:green", FASTTEXT: "tab:orange"}


def table(found: list[dict]) -> list[str]:
    """Lines of Markdown: sets across, methods down, `error (seconds)`."""
    sets = list(dict.fromkeys(one["set"] for one in found))
    classes = {one["set"]: one["classes"] for one in found}
    cells = {(one["set"], one["method"]): one for one in found}
    best = {name: min(one["error"] for one in found if one["set"] == name) for name in sets}
    lines = [
        "| test error % (s of training) | " + " | ".join(f"{name}, {classes[name]:,}" for name in sets) + " |",
        "| --- |" + " --: |" * len(sets),
    ]
    for method in METHODS:
        row = []
        for name in sets:
            one = cells.get((name, method))
            mark = "**" if one and one["error"] == best[name] else ""
            row.append(f"{mark}{100 * one['error']:.1f}{mark} ({one['train']:.1f})" if one else "")
        if any(row):
            lines.append(f"| {method} | " + " | ".join(row) + " |")
    return lines


def draw(found: list[dict], file: Path) -> None:
    """A panel for each set: seconds of training across, error up, a point for each method."""
    pyplot = plotting()
    sets = list(dict.fromkeys(one["set"] for one in found))
    across = min(3, len(sets))
    down = -(-len(sets) // across)
    figure, areas = pyplot.subplots(down, across, figsize=(6 * across, 4.5 * down), squeeze=False)
    for area in areas.flat[len(sets) :]:
        area.set_visible(False)
    for name, area in zip(sets, areas.flat, strict=False):
        mine = [one for one in found if one["set"] == name]
        for one in mine:
            tool = METHODS[one["method"]][0]
            area.semilogx(one["train"], 100 * one["error"], "o", color=COLOURS[tool], markersize=5)
        log_axis(area)
        area.margins(0.15)
        area.set_title(f"{name}, {mine[0]['classes']:,} classes")
        area.set_xlabel("seconds of training")
        area.set_ylabel("test error %")
    figure.set_dpi(PIXELS)
    figure.tight_layout()
    for name, area in zip(sets, areas.flat, strict=False):
        mine = [one for one in found if one["set"] == name]
        label_points(
            area, [(one["train"], 100 * one["error"]) for one in mine],
            [one["method"].removeprefix("xclass ") for one in mine],
        )  # fmt: skip
    keys = [
        pyplot.Line2D([], [], marker="o", linestyle="", color=colour, label=tool) for tool, colour in COLOURS.items()
    ]
    figure.legend(handles=keys, loc="lower right", fontsize=10)
    figure.savefig(file, dpi=PIXELS)


def main() -> None:
    """Measure what is not there yet; print and draw."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("data_dir", type=Path, nargs="?")
    options.add_argument("--sets", type=names, default=[])
    options.add_argument("--methods", type=lambda text: text.split(";"), help="of those in the table, by semicolons")
    options.add_argument("--json", type=Path, metavar="FILE", help="what was measured; it is added to")
    options.add_argument("--table", type=Path, metavar="FILE", help="print what --json kept and measure nothing")
    options.add_argument("--plot", type=Path, metavar="FILE")
    options.add_argument("--work", type=Path, help="folder for the unpacked data; a temporary one by default")
    given = options.parse_args()
    kept = given.table or given.json
    found = json.loads(kept.read_text(encoding="utf-8")) if kept and kept.exists() else []
    if given.table is None:
        if given.data_dir is None or not given.sets:
            raise BenchError("name a folder of data and --sets, or a file with --table")
        methods = given.methods or list(METHODS)
        strange = [method for method in methods if method not in METHODS]
        if strange:
            raise BenchError(f"--methods: {strange[0]!r} is none of {'; '.join(METHODS)}")
        say_what_is_missing(methods)
        with work_folder(given.work) as work:
            for name in given.sets:
                folder, classes = prepare(given.data_dir, name, work)
                for method in methods:
                    tool = METHODS[method][0]
                    if missing(tool) or any((one["set"], one["method"]) == (name, method) for one in found):
                        continue
                    if tool == XCLASS and unknown(words_of(method, name, classes)):
                        continue
                    found.append(run(method, name, folder, classes))
                    one = found[-1]
                    print(
                        f"{name} {method}: error {one['error']:.4f}, training {one['train']:.2f} s, "
                        f"testing {one['test_us']:.1f} us an example",
                        file=sys.stderr,
                        flush=True,
                    )
                    if given.json:
                        given.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print("\n".join(table(found)))
    if given.plot:
        draw(found, given.plot)


if __name__ == "__main__":
    command_line.run(main)
