"""Figures 1 and 3 of the LOMTree paper: accuracy in equal time, and how much slower one-against-all is.

    python -m scripts.figures.lomtree equal_time DATA_DIR --sets isolet1,clinc150,aloi27 --plot equal_time.png
    python -m scripts.figures.lomtree ratio --classes 64,1024,16384 --plot ratio.png

Source    Choromanska, Langford, "Logarithmic Time Online Multiclass Prediction", NIPS 2015.
equal_time  LOMTree with as many routers as there are classes, one-against-all's number of regressors, sets the time:
            what it takes to learn from the whole file. Every other method gets the first examples of the file, as many
            as it learns from in the same time, going by what an example takes; all of them where it is quicker.
            Accuracy on the test file. All methods go through their examples --passes times.
ratio       log2 of the ratio of the times of one-against-all and LOMTree for an example, testing as in the paper and
            training, on streams as of scripts/bench/scaling.py. One-against-all gets fewer examples where classes are
            many.

Times are CPU seconds less those of a few lines. Prints the numbers as a Markdown table. Data as of
scripts/lib/data_sets.py.
"""

from __future__ import annotations

import argparse
import math
import shlex
from pathlib import Path

from scripts.lib.command_line import names, numbers, parser, run, workspace
from scripts.lib.data_sets import BITS, options_of, prepare
from scripts.lib.plots import name_axes, plotting, save
from scripts.lib.processes import BenchError
from scripts.lib.results import table
from scripts.lib.streams import folder_of, time_point
from scripts.lib.training import cost, error_of, head, learn, lines_of

FIRST = "LOMTree"  # sets the time
METHODS = {
    FIRST: "--log_multi {K} --max_predictors {K}",
    "OAA": "--oaa {K}",
    "filter tree": "--ect {K}",
    "random tree": "--random_tree {K}",
    "Recall Tree": "--recall_tree {K}",
}
WORK = 4e9  # weights that one-against-all visits in a run of `ratio`


# -- Figure 1


def in_time(folder: Path, words: list[str], unit_cost: float, budget: float, passes: int, whole: int) -> dict:
    """Train on as many examples as go into a budget of seconds a line of the whole file, and test."""
    n = min(whole, max(1, round(whole * budget / unit_cost)))
    more = ["--passes", str(passes), "--holdout_off"] if passes > 1 else []
    learn(folder, [*words, *more], head(folder, n))
    return {"examples": n, "whole": whole, "accuracy": 1 - error_of(folder)}


def equal_time(given: argparse.Namespace, pyplot) -> None:
    """Figure 1."""
    if given.data_dir is None or not given.sets:
        raise BenchError("equal_time needs DATA_DIR and --sets")
    strange = [name for name in given.methods if name not in METHODS]
    if strange:
        raise BenchError(f"--methods: {strange[0]!r} is none of {', '.join(METHODS)}")
    methods = {name: text for name, text in METHODS.items() if name == FIRST or name in given.methods}
    results, classes = {}, {}
    with workspace(given) as (work, store):
        for name in given.sets:
            folder, classes[name] = prepare(given.data_dir, name, work)
            whole = lines_of(folder)
            for method, text in methods.items():
                more = f"{text.replace('{K}', str(classes[name]))} {options_of(name)} -b {BITS.get(name, 24)}"
                words = shlex.split(more)
                key = {"set": name, "figure": "equal_time", "command": shlex.join(words)}
                timed = key | {"seconds": given.seconds}
                timing = store.get(timed, lambda f=folder, w=words, n=whole: {"cost": cost(f, w, given.seconds, n)})
                unit_cost = timing["cost"]
                budget = unit_cost if method == FIRST else results[name, FIRST]["cost"]
                arguments = folder, words, unit_cost, budget, given.passes, whole
                tested = key | {"passes": given.passes, "costs": [unit_cost, budget]}
                results[name, method] = store.get(tested, lambda a=arguments: in_time(*a)) | {"cost": unit_cost}
    sets = sorted(given.sets, key=classes.get)
    rows = []
    for name in sets:
        cells = []
        for method in methods:
            result = results[name, method]
            share = result["examples"] / result["whole"]
            cells.append(f"{result['accuracy']:.3f}" + (f" ({100 * share:.2g} %)" if share < 1 else ""))
        rows.append([name, f"{classes[name]:,}", f"{1e6 * results[name, FIRST]['cost']:.1f}", *cells])
    print(table(["set", "K", "CPU us an example", *methods], rows))
    if pyplot:
        figure, area = pyplot.subplots(figsize=(6.5, 4))
        across = range(len(sets))
        for method in methods:
            style = "o-" if method in (FIRST, "OAA") else "o:"
            area.plot(across, [results[name, method]["accuracy"] for name in sets], style, label=method)
        area.set_xticks(across, [f"{name}\n{classes[name]:,}" for name in sets])
        area.set_ylim(0, 1)
        name_axes(area, f"In the training time of {FIRST}", "set, number of classes", "test accuracy")
        save(figure, given.plot)


# -- Figure 3


def measured(folder: Path, k: int, examples: int, words: list[str]) -> dict:
    """Microseconds of an example."""
    point = time_point(folder_of(folder, "even", k, examples, 10), examples, words)
    if min(point.train, point.test) <= 0:
        raise BenchError(f"{examples} examples are too few to be timed: {shlex.join(words)}")
    return {"examples": examples, "train": point.train, "test": point.test}


def ratio(given: argparse.Namespace, pyplot) -> None:
    """Figure 3."""
    results = {}
    with workspace(given) as (work, store):
        for k in given.classes:
            fewer = max(2000, min(given.examples, int(WORK / (11 * k))))
            for name, n, text in (
                (FIRST, given.examples, f"--log_multi {k}"),
                ("OAA", min(fewer, given.examples), f"--oaa {k}"),
            ):
                words = [*text.split(), *shlex.split(given.args)]
                key = {"figure": "ratio", "examples": n, "command": shlex.join(words)}
                results[k, name] = store.get(key, lambda k=k, n=n, words=words: measured(work, k, n, words))
    rows, logs = [], {"test": [], "train": []}
    for k in given.classes:
        cells = [f"{results[k, name][phase]:.2f}" for phase in logs for name in (FIRST, "OAA")]
        for phase, values in logs.items():
            values.append(math.log2(results[k, "OAA"][phase] / results[k, FIRST][phase]))
        rows.append([f"{k:,}", *cells[:2], f"{logs['test'][-1]:.1f}", *cells[2:], f"{logs['train'][-1]:.1f}"])
    heads = [
        "K",
        "testing, CPU us: LOMTree",
        "OAA",
        "log2 of the ratio",
        "training: LOMTree",
        "OAA",
        "log2 of the ratio",
    ]
    print(table(heads, rows))
    if pyplot:
        figure, area = pyplot.subplots(figsize=(5, 3.6))
        across = [math.log2(k) for k in given.classes]
        for phase, title in (("test", "testing"), ("train", "training")):
            area.plot(across, logs[phase], "o-", label=title)
        area.axhline(0, color="grey", linewidth=0.5)
        name_axes(area, "CPU time of an example", "log2 (number of classes)", "log2 (time of OAA / time of LOMTree)")
        save(figure, given.plot)


FIGURES = {"equal_time": equal_time, "ratio": ratio}


def main() -> None:
    """Draw the figure that is named."""
    options = parser(__doc__)
    options.add_argument("figure", choices=FIGURES)
    options.add_argument("data_dir", type=Path, nargs="?", metavar="DATA_DIR", help="equal_time")
    options.add_argument("--sets", type=names, metavar="A,B", help="equal_time")
    options.add_argument("--methods", type=names, default=list(METHODS), help="equal_time")
    options.add_argument("--passes", type=int, default=5, help="equal_time: times through the data (default: 5)")
    options.add_argument("--classes", type=numbers, default=[64, 256, 1024, 4096, 16384], metavar="K,K", help="ratio")
    options.add_argument("--examples", type=int, default=600_000, help="ratio: of a stream (default: 600,000)")
    options.add_argument("--args", default="-b 24", help="ratio: options of every run (default: -b 24)")
    given = options.parse_args()
    FIGURES[given.figure](given, plotting() if given.plot else None)


if __name__ == "__main__":
    run(main)
