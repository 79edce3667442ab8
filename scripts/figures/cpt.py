"""Progressive squared loss of conditional probability trees against time, beside one-against-all.

    python -m scripts.figures.cpt DATA_DIR --sets reuters,clinc150,wiki --plot cpt.png

Source    Beygelzimer, Langford, Lifshits, Sorkin, Strehl, "Conditional Probability Tree Estimation Analysis and
          Algorithms", UAI 2009, its experiments: general, balanced and random trees and one-against-all, by the mean of
          (1 - f(y|x))**2 over the examples so far, f being asked before it learns. There CPT learned RCV1 in 108 s and
          one-against-all in 2,300 s.

A point is a run over the first --shares of the file: its mean squared loss, and the CPU seconds of an example, of a run
long enough to be timed, times the examples. Trees do not look for their most probable class, which learning does not
need. One-against-all is left out above 5,000 classes. Prints the numbers as a Markdown table. Data as of
scripts/lib/data_sets.py.
"""

from __future__ import annotations

import argparse
import shlex

from scripts.lib.command_line import numbers, parser, run, with_data, workspace
from scripts.lib.data_sets import BITS, options_of, prepare
from scripts.lib.plots import log_axis, name_axes, plotting, save
from scripts.lib.results import ResultStore, fact, table
from scripts.lib.training import cost, head, learn, lines_of

LAST = "one-against-all"
WAYS = {
    "general": "--cpt {k}",
    "balanced": "--cpt {k} --cpt_tree balanced",
    "random": "--cpt {k} --cpt_tree random",
    LAST: "--oaa {k} --probabilities",
}
ONE_AGAINST_ALL = 5_000  # classes above which it is not tried


def curve(
    store: ResultStore, folder, name: str, way: str, classes: int, shares: list[float], seconds: float
) -> list[dict]:
    """Loss and time of a way on each share of the file."""
    report = "" if way == LAST else "--cpt_report losses"
    words = shlex.split(f"{WAYS[way].format(k=classes)} {report} {options_of(name)} -b {BITS.get(name, 24)}")
    whole, points = lines_of(folder), []
    key = {"set": name, "seconds": seconds, "command": shlex.join(words)}
    unit_cost = store.get(key, lambda: {"cost": cost(folder, words, seconds, whole)})["cost"]
    for share in shares:
        n = max(1, round(whole * share))

        def make(n=n) -> dict:
            return {"squared": fact(learn(folder, words, head(folder, n)).stderr, "average squared loss")}

        result = store.get({"set": name, "examples": n, "command": shlex.join(words)}, make)
        points.append({"squared": result["squared"], "cpu_seconds": n * unit_cost})
    return points


def draw(pyplot, given: argparse.Namespace, curves: dict, classes: dict[str, int]) -> None:
    """A panel for each set."""
    figure, areas = pyplot.subplots(1, len(classes), figsize=(4.2 * len(classes), 3.8), squeeze=False)
    for (name, k), area in zip(classes.items(), areas[0], strict=True):
        for (of, way), points in curves.items():
            if of == name:
                area.plot([p["cpu_seconds"] for p in points], [p["squared"] for p in points], "o-", label=way)
        log_axis(area)
        name_axes(area, f"{name}, {k:,} classes", "CPU s", "progressive squared loss")
    save(figure, given.plot)


def main() -> None:
    """Measure, print and draw."""
    options = with_data(parser(__doc__))
    options.add_argument("--shares", type=numbers, default=[0.125, 0.25, 0.5, 1], metavar="S,S", help="of the file")
    given = options.parse_args()
    pyplot = plotting() if given.plot else None
    curves, classes = {}, {}
    with workspace(given) as (work, store):
        for name in given.sets or ["reuters", "clinc150", "wiki"]:
            folder, classes[name] = prepare(given.data_dir, name, work)
            for way in WAYS:
                if way != LAST or classes[name] <= ONE_AGAINST_ALL:
                    curves[name, way] = curve(store, folder, name, way, classes[name], given.shares, given.seconds)
    rows = [
        [name, way, *(f"{p['squared']:.4f} ({p['cpu_seconds']:.2f})" for p in points)]
        for (name, way), points in curves.items()
    ]
    print(table(["set", "squared loss (CPU s)", *(f"{100 * share:g} %" for share in given.shares)], rows))
    if pyplot:
        draw(pyplot, given, curves, classes)


if __name__ == "__main__":
    run(main)
