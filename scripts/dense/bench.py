"""Error, time and memory on dense rows: xclass beside classifiers of scikit-learn, on one thread.

    python -m scripts.dense.bench ROWS --json FILE --plot FILE

ROWS is the folder that `scripts.dense.sets` and `scripts.dense.embed_texts` write. Prints a Markdown table: the error
on the test rows in percent and, in brackets, CPU seconds of learning, CPU microseconds to predict a row, and the peak
memory of the whole process, data included, in MB. A method that was stopped after `--limit` seconds has `> SECONDS s`.

`--json FILE` keeps what was measured, so that a run cut short goes on. `--plot FILE` draws the error against the time
of learning and that of predicting, two panels for each set (matplotlib, the extra `plot`).
"""

from __future__ import annotations

import argparse
import functools
import importlib.util
import json
import sys
from pathlib import Path

from scripts.lib.command_line import names, run, work_folder
from scripts.lib.plots import PIXELS, log_axis, plotting
from scripts.lib.processes import BenchError, measure
from scripts.lib.results import ResultStore, table

MARKERS = {
    "xclass": "ro", "xclass --means": "m+", "LogisticRegression": "bs", "KNeighborsClassifier": "g^",
    "NearestCentroid": "kv",
}  # fmt: skip
METHODS = tuple(MARKERS)
LEAST_SHOWN = 1e-3  # seconds
AXES = {"cpu": "CPU s of learning", "us": "CPU µs to predict a row"}
ONE = [sys.executable, str(Path(__file__).with_name("one.py"))]


def main() -> None:
    """Measure every method on every set and print the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("rows", type=Path, metavar="ROWS")
    options.add_argument("--sets", type=names, metavar="A,B", help="default: all in the folder")
    options.add_argument("--methods", type=names, default=METHODS, help=f"default: {','.join(METHODS)}")
    options.add_argument("--limit", type=int, default=300, metavar="SECONDS", help="of CPU time (default: 300)")
    options.add_argument("--json", type=Path, metavar="FILE", help="what was measured; it is added to")
    options.add_argument("--plot", type=Path, metavar="FILE", help="the picture")
    given = options.parse_args()
    pyplot = plotting() if given.plot else None
    strange = [name for name in given.methods if name not in METHODS]
    if strange:
        raise BenchError(f"--methods: {strange[0]!r} is none of {', '.join(METHODS)}")
    methods = [name for name in given.methods if name.startswith("xclass") or importlib.util.find_spec("sklearn")]
    if len(methods) < len(given.methods):
        print("bench: scikit-learn is not installed and left out", file=sys.stderr)
    sets = given.sets or sorted(path.parent.name for path in given.rows.glob("*/train.npy"))
    store, found = ResultStore(given.json), {}
    with work_folder(None) as work:
        for name in sets:
            for method in methods:
                measured = functools.partial(costs, given.rows.absolute() / name, method, given.limit, work)
                found[name, method] = store.get({"set": name, "method": method}, measured)
    lines = ([name, *(shown(found[name, method]) for method in methods)] for name in sets)
    print(table(["error % (s, µs, MB)", *methods], lines))
    if pyplot:
        draw(pyplot, sets, found, given.plot)


def costs(folder: Path, method: str, limit: int, work: Path) -> dict[str, float]:
    """Return error, seconds of learning, microseconds to predict a row and bytes, or when a method was stopped."""
    try:
        took = measure([*ONE, str(folder), method, str(limit)], work)
    except BenchError as error:
        if str(error).startswith("exit status -"):  # a signal, which ends a process at its limit of CPU time
            return {"stopped": limit}
        raise
    return {**json.loads(took.stderr.splitlines()[-1]), "memory": took.memory}


def shown(cost: dict[str, float]) -> str:
    """Return a cell of the table."""
    if "stopped" in cost:
        return f"> {cost['stopped']} s"
    times = (f"{cost[axis]:.2g}" if cost[axis] < 10 else f"{cost[axis]:.0f}" for axis in AXES)
    return f"{100 * cost['error']:.1f} ({', '.join(times)}, {cost['memory'] / 1e6:.0f})"


def draw(pyplot, sets: list[str], found: dict[tuple[str, str], dict], file: Path) -> None:
    """Draw a panel for each set and each kind of time."""
    across = min(4, len(sets))
    down = -(-len(sets) // across)
    figure, areas = pyplot.subplots(len(AXES) * down, across, figsize=(3.2 * across, 5.6 * down + 1), squeeze=False)
    for area in areas.flat:
        area.set_visible(False)
    for row, (axis, label) in enumerate(AXES.items()):
        for name, area in zip(sets, areas[row * down : (row + 1) * down].flat, strict=False):
            area.set_visible(True)
            for (one, method), cost in found.items():
                if one == name and "error" in cost:
                    area.plot(max(cost[axis], LEAST_SHOWN), 100 * cost["error"], MARKERS[method], label=method)
            log_axis(area)
            area.set_title(name)
            area.set_xlabel(label)
            area.set_ylabel("test error, %")
    shapes = dict(zip(*areas[0, 0].get_legend_handles_labels()[::-1], strict=True))
    figure.legend(shapes.values(), shapes.keys(), loc="lower center", ncols=len(shapes))
    figure.tight_layout(rect=(0, 0.4 / figure.get_figheight(), 1, 1))
    figure.savefig(file, dpi=PIXELS)


if __name__ == "__main__":
    run(main)
