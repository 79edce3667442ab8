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


def table(results: list[dict]) -> list[str]:
    """Lines of Markdown: sets across, methods down, `error (seconds)`."""
    sets = list(dict.fromkeys(cell["set"] for cell in results))
    classes = {cell["set"]: cell["classes"] for cell in results}
    cells = {(cell["set"], cell["method"]): cell for cell in results}
    best = {name: min(cell["error"] for cell in results if cell["set"] == name) for name in sets}
    lines = [
        "| test error % (s of training) | " + " | ".join(f"{name}, {classes[name]:,}" for name in sets) + " |",
        "| --- |" + " --: |" * len(sets),
    ]
    for method in METHODS:
        row = []
        for name in sets:
            cell = cells.get((name, method))
            mark = "**" if cell and cell["error"] == best[name] else ""
            row.append(f"{mark}{100 * cell['error']:.1f}{mark} ({cell['train']:.1f})" if cell else "")
        if any(row):
            lines.append(f"| {method} | " + " | ".join(row) + " |")
    return lines


def draw(results: list[dict], file: Path) -> None:
    """A panel for each set: seconds of training across, error up, a point for each method."""
    pyplot = plotting()
    sets = list(dict.fromkeys(cell["set"] for cell in results))
    across = min(2, len(sets))
    down = -(-len(sets) // across)
    figure, areas = pyplot.subplots(down, across, figsize=(5 * across, 4.4 * down), squeeze=False)  # 800 pixels across
    for area in areas.flat[len(sets) :]:
        area.set_visible(False)
    for name, area in zip(sets, areas.flat, strict=False):
        of_set = [cell for cell in results if cell["set"] == name]
        for cell in of_set:
            tool = METHODS[cell["method"]][0]
            area.semilogx(cell["train"], 100 * cell["error"], "o", color=COLOURS[tool], markersize=5)
        log_axis(area)
        area.margins(0.15)
        area.set_title(f"{name}, {of_set[0]['classes']:,} classes")
        area.set_xlabel("seconds of training")
        area.set_ylabel("test error %")
    figure.set_dpi(PIXELS)
    figure.tight_layout()
    for name, area in zip(sets, areas.flat, strict=False):
        of_set = [cell for cell in results if cell["set"] == name]
        label_points(
            area, [(cell["train"], 100 * cell["error"]) for cell in of_set],
            [cell["method"].removeprefix("xclass ") for cell in of_set], 9,
        )  # fmt: skip
    keys = [
        pyplot.Line2D([], [], marker="o", linestyle="", color=colour, label=tool) for tool, colour in COLOURS.items()
    ]
    figure.legend(handles=keys, loc="lower right", fontsize=12)
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
    stored_in = given.table or given.json
    results = json.loads(stored_in.read_text(encoding="utf-8")) if stored_in and stored_in.exists() else []
    if given.table is None:
        if given.data_dir is None or not given.sets:
            raise BenchError("name a folder of data and --sets, or a file with --table")
        methods = given.methods or list(METHODS)
        strange = [method for method in methods if method not in METHODS]
        if strange:
            raise BenchError(f"--methods: {strange[0]!r} is none of {'; '.join(METHODS)}")
        say_what_is_missing(METHODS[method][0] for method in methods)
        with work_folder(given.work) as work:
            for name in given.sets:
                folder, classes = prepare(given.data_dir, name, work)
                for method in methods:
                    tool = METHODS[method][0]
                    if missing(tool) or any((cell["set"], cell["method"]) == (name, method) for cell in results):
                        continue
                    if tool == XCLASS and unknown(words_of(method, name, classes)):
                        continue
                    results.append(run(method, name, folder, classes))
                    cell = results[-1]
                    print(
                        f"{name} {method}: error {cell['error']:.4f}, training {cell['train']:.2f} s, "
                        f"testing {cell['test_us']:.1f} us an example",
                        file=sys.stderr,
                        flush=True,
                    )
                    if given.json:
                        given.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    print("\n".join(table(results)))
    if given.plot:
        draw(results, given.plot)


if __name__ == "__main__":
    command_line.run(main)
