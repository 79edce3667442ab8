"""Figures 4, 5a and 5b of the Recall Tree paper, and its question whether the Bernstein bound is useful.

    python -m scripts.figures.recall_tree comparison DATA_DIR --sets aloi27,wordnet,wiki --plot comparison.png
    python -m scripts.figures.recall_tree order DATA_DIR --sets wiki,books --plot order.png
    python -m scripts.figures.recall_tree candidates DATA_DIR --sets aloi27 --plot candidates.png
    python -m scripts.figures.recall_tree bernstein DATA_DIR --sets wiki --plot bernstein.png

Source    Daume, Karampatziakis, Langford, Mineiro, "Logarithmic Time One-Against-Some", ICML 2017, sections 4.2 to 4.5.
comparison  figure 4: test error of LOMTree and the Recall Tree less that of one-against-all, and CPU time in which the
            three predict an example, with the options of scripts/lib/data_sets.py. The times are those of models that
            learned the first examples once, which have less deep trees. The paper has ALOI, ImageNet, ODP.
order       average progressive error against examples, in the order of the file and permuted by a buffer that holds all
            of it. The paper's axis says accuracy; what falls from 100 to 73 is the error. LTCB: 73.3 in order, 74.6.
candidates  test error against the number of candidates, with and without path features, and with path features that
            are also crossed with the example's, as in Vowpal Wabbit's demo. The paper has ALOI.
bernstein   test error against the multiplier of the bound's penalty; 0 is the empirical recall alone, and `never` stops
            at leaves only, which is what VW does with 0. LTCB: 91 with 0, 78 with 1.

With --paper, runs have the paper's settings: its table 3 (rate 1, logistic loss), Vowpal Wabbit's rules, by which the
figures were made, K - 1 routers of LOMTree and no crosses with the path; else those of xclass, but for the end of
descent, which is always VW's. "p" is that of the N - 1 chi-squared test that both errors are the same.

Prints the numbers as a Markdown table. Data as of scripts/lib/data_sets.py, with the options it gives a set. The
paper's own sets are in paper_data after `sh scripts/paper/aloi.sh` and so on:

    python -m scripts.figures.recall_tree comparison paper_data --paper --sets aloi/vw,imagenet/vw,odp/vw
    python -m scripts.figures.recall_tree order paper_data --paper --sets ltcb_enwik9/vw
    python -m scripts.figures.recall_tree candidates paper_data --paper --sets aloi/vw --passes 80
"""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from scripts.lib.command_line import numbers, parser, run, with_data, workspace
from scripts.lib.data_sets import BITS, bits_of, options_of, passes_of, path_crosses, prepare
from scripts.lib.experiments import VW_LOMTREE, VW_TREE
from scripts.lib.papers import METHODS
from scripts.lib.plots import log_axis, name_axes, plotting, save
from scripts.lib.results import ResultStore, chi_squared_test, summary_loss, table, table_row
from scripts.lib.training import error_of, head, learn, testing_cost

ALL = 1 << 26  # examples a buffer holds that permutes any of the sets
FIRST = 1000  # examples before which nothing is shown
PAPER = {  # options of table 3, and those of VW
    "oaa": "-l 1 --loss_function logistic",
    "recall_tree": f"-l 1 {VW_TREE}",
    "log_multi": f"-l 1 {VW_LOMTREE} --max_predictors {{K-1}}",
}
COMPARED = {"oaa": "OAA", "recall_tree": "Recall Tree", "log_multi": "LOMTree"}
TIMED = 20_000  # examples that are learned, and then predicted, to be timed


def words(given: argparse.Namespace, name: str, classes: int, more: str) -> list[str]:
    """The options of a run, with VW's rule for the end of descent, which made the paper's figures."""
    more = f"{PAPER['recall_tree']} {more}" if given.paper else more
    more = more if "--recall_stop" in more else f"--recall_stop bound {more}"
    if "--recall_stop never" in more:
        more = more.replace("--recall_stop bound", "")
    return shlex.split(f"--recall_tree {classes} -b {BITS.get(name, 24)} {options_of(name)} {more}")


def measured(store: ResultStore, folder: Path, name: str, options: list[str]) -> dict:
    """Train and test; test error and progressive error in percent, CPU seconds."""

    def make() -> dict:
        trained = learn(folder, options)
        return {
            "error": 100 * error_of(folder),
            "progressive": 100 * summary_loss(trained.stderr),
            "cpu_seconds": trained.cpu,
        }

    return store.get({"set": name, "command": shlex.join(options)}, make)


# -- 4


def tested(folder: Path, options: list[str]) -> dict:
    """Train and test; test error in percent."""
    learn(folder, options)
    return {"error": 100 * error_of(folder)}


def timed(folder: Path, options: list[str]) -> dict:
    """CPU microseconds of predicting an example, by a model of the first TIMED ones."""
    learn(folder, options, head(folder, TIMED))
    return {"microseconds": 1e6 * testing_cost(folder, TIMED)}


def comparison(given: argparse.Namespace, pyplot) -> None:
    """Figure 4."""
    sets = given.sets or ["aloi27", "wordnet", "wiki"]
    rows, classes = [], {}
    results = {method: [] for method in COMPARED}
    with workspace(given) as (work, store):
        for name in sets:
            folder, classes[name] = prepare(given.data_dir, name, work)
            for method, found in results.items():
                crosses = path_crosses(name) if method == "recall_tree" else ""
                more = PAPER[method] if given.paper else crosses
                text = f"{METHODS[method]} {options_of(name)} {more} -b {bits_of(name, method, classes[name])}"
                text = text.replace("{K}", str(classes[name])).replace("{K-1}", str(classes[name] - 1))
                options = shlex.split(text)
                several = [*options, *shlex.split(passes_of(name))]
                key = {"set": name, "figure": "comparison", "command": shlex.join(several)}
                error = store.get(key, lambda f=folder, o=several: tested(f, o))
                key = {**key, "examples": TIMED, "command": shlex.join(options)}
                found.append(error | store.get(key, lambda f=folder, o=options: timed(f, o)))
    less = {
        method: [one["error"] - base["error"] for one, base in zip(found, results["oaa"], strict=True)]
        for method, found in results.items()
    }
    times = {method: [one["microseconds"] for one in found] for method, found in results.items()}
    for at, name in enumerate(sets):
        differences = [f"{less[method][at]:+.2f}" for method in COMPARED if method != "oaa"]
        error = f"{results['oaa'][at]['error']:.2f}"
        rows.append([name, f"{classes[name]:,}", error, *differences, *(f"{times[m][at]:.1f}" for m in COMPARED)])
    heads = ["set", "K", "OAA, test error %", "Recall Tree, difference", "LOMTree, difference"]
    print(table([*heads, *(f"{title}, us an example" for title in COMPARED.values())], rows))
    if pyplot:
        figure, areas = pyplot.subplots(1, 2, figsize=(9, 3.6))
        names = [f"{name}\n{classes[name]:,}" for name in sets]
        for color, (method, title) in enumerate(COMPARED.items()):
            for area, values in zip(areas, (less, times), strict=True):
                if area is areas[1] or method != "oaa":
                    area.plot(names, values[method], "o", color=f"C{color}", label=title)
        areas[0].axhline(0, color="grey", linewidth=0.5)
        areas[1].set_yscale("log")
        name_axes(areas[0], "Statistical performance", "set, number of classes", "test error less OAA's, points")
        name_axes(areas[1], "Computational performance", "set, number of classes", "predicting, CPU us an example")
        save(figure, given.plot)


# -- 5a


def curve(folder: Path, options: list[str]) -> dict:
    """Learn; the rows of the progress table as [examples, error in percent], the last one of all examples."""
    summary = learn(folder, options).stderr
    rows = [[n, 100 * loss] for loss, n in filter(None, map(table_row, summary.splitlines()))]
    total = next(int(line.split()[-1]) for line in summary.splitlines() if line.startswith("number of examples"))
    return {"rows": [row for row in rows if row[0] < total] + [[total, 100 * summary_loss(summary)]]}


def order(given: argparse.Namespace, pyplot) -> None:
    """Figure 5a."""
    sets = given.sets or ["wiki"]
    curves = {}
    with workspace(given) as (work, store):
        for name in sets:
            folder, classes = prepare(given.data_dir, name, work)
            for way, more in (("in order", ""), ("permuted", f"--shuffle {ALL}")):
                options = words(
                    given, name, classes, f"{more} {f'--examples {given.examples}' if given.examples else ''}"
                )
                key = {"set": name, "figure": "order", "command": shlex.join(options)}
                curves[name, way] = store.get(key, lambda f=folder, o=options: curve(f, o))["rows"]
    rows = []
    for name in sets:
        permuted = dict(curves[name, "permuted"])
        for n, error in curves[name, "in order"]:
            if n >= min(FIRST, max(permuted)) and n in permuted:
                p = chi_squared_test(error / 100, n, permuted[n] / 100, n)
                cells = [f"{error:.2f}", f"{permuted[n]:.2f}", f"{error - permuted[n]:+.2f}", f"{p:.2g}"]
                rows.append([name, f"{n:,}", *cells])
    print(table(["set", "examples", "in order, error %", "permuted, error %", "difference", "p"], rows))
    if pyplot:
        figure, areas = pyplot.subplots(1, len(sets), figsize=(4.5 * len(sets), 3.6), squeeze=False)
        for name, area in zip(sets, areas[0], strict=True):
            for way in ("in order", "permuted"):
                points = [point for point in curves[name, way] if point[0] >= FIRST] or curves[name, way]
                area.plot(*zip(*points, strict=True), "o-", markersize=3, label=way)
            log_axis(area)
            name_axes(area, f"Recall Tree, {name}", "examples", "progressive error so far, %")
        save(figure, given.plot)


# -- 5b


def ways_of(name: str) -> dict[str, str]:
    """Path features of a set -> options."""
    ways = {"with path features": "", "without path features": "--no_path_features"}
    return ways | ({"path features crossed": path_crosses(name)} if path_crosses(name) else {})


def candidates(given: argparse.Namespace, pyplot) -> None:
    """Figure 5b."""
    sets = given.sets or ["aloi27"]
    results, tests = {}, {}
    with workspace(given) as (work, store):
        for name in sets:
            folder, classes = prepare(given.data_dir, name, work)
            passes = f"--passes {given.passes} --holdout_off" if given.passes > 1 else ""
            tests[name] = (folder / "test.vw").read_bytes().count(b"\n")
            for f in [f for f in given.candidates if f <= classes]:
                for way, more in ways_of(name).items():
                    options = words(given, name, classes, f"--max_candidates {f} {more} {passes}")
                    results[name, f, way] = measured(store, folder, name, options)
    sizes = {name: list(dict.fromkeys(f for of, f, _ in results if of == name)) for name in sets}
    ways = list(dict.fromkeys(way for _, _, way in results))
    rows = []
    for name in sets:
        for f in sizes[name]:
            cells = [results.get((name, f, way)) for way in ways]
            n = tests[name]
            p = chi_squared_test(cells[0]["error"] / 100, n, cells[1]["error"] / 100, n)
            rows.append([name, str(f), *(f"{cell['error']:.2f}" if cell else "" for cell in cells), f"{p:.2g}"])
    print(table(["set", "candidates", *(f"{way}, test error %" for way in ways), "p of the first two"], rows))
    if pyplot:
        figure, areas = pyplot.subplots(1, len(sets), figsize=(4.5 * len(sets), 3.6), squeeze=False)
        for name, area in zip(sets, areas[0], strict=True):
            for way in ways_of(name):
                area.plot(sizes[name], [results[name, f, way]["error"] for f in sizes[name]], "o-", label=way)
            log_axis(area, sizes[name])
            name_axes(area, f"Recall Tree, {name}", "candidates", "test error, %")
        save(figure, given.plot)


# -- the bound


def bernstein(given: argparse.Namespace, pyplot) -> None:
    """Section 4.5, for several multipliers."""
    sets = given.sets or ["wiki"]
    multipliers = [*(f"{multiplier:g}" for multiplier in given.multipliers), "never"]
    results = {}
    with workspace(given) as (work, store):
        for name in sets:
            folder, classes = prepare(given.data_dir, name, work)
            for multiplier in multipliers:
                bound = "--recall_stop never" if multiplier == "never" else f"--bern_hyper {multiplier}"
                options = words(given, name, classes, bound)
                results[name, multiplier] = measured(store, folder, name, options)
    rows = []
    for (name, multiplier), result in results.items():
        rows.append([name, multiplier, f"{result['error']:.2f}", f"{result['progressive']:.2f}"])
    print(table(["set", "multiplier", "test error %", "progressive error %"], rows))
    if pyplot:
        figure, area = pyplot.subplots(figsize=(5, 3.6))
        for name in sets:
            errors = [results[name, multiplier]["error"] for multiplier in multipliers[:-1]]
            (line,) = area.plot(multipliers[:-1], errors, "o-", label=name)
            never = results[name, "never"]["error"]
            area.axhline(never, linestyle="--", color=line.get_color(), label=f"{name}, never stopping")
        name_axes(area, "Recall Tree, the penalty of the bound", "multiplier", "test error, %")
        save(figure, given.plot)


FIGURES = {"comparison": comparison, "order": order, "candidates": candidates, "bernstein": bernstein}


def main() -> None:
    """Draw the figure that is named."""
    options = parser(__doc__)
    options.add_argument("figure", choices=FIGURES)
    with_data(options)
    options.add_argument("--paper", action="store_true", help="the paper's settings")
    options.add_argument("--examples", type=int, metavar="N", help="order: the first so many")
    options.add_argument("--candidates", type=numbers, default=[2, 5, 10, 20, 40, 80, 160], metavar="F,F")
    options.add_argument("--passes", type=int, default=5, help="candidates: times through the data (default: 5)")
    options.add_argument("--multipliers", type=numbers, default=[0, 0.1, 0.3, 1, 3], metavar="X,X")
    given = options.parse_args()
    FIGURES[given.figure](given, plotting() if given.plot else None)


if __name__ == "__main__":
    run(main)
