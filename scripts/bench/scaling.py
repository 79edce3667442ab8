"""Work per example against classes, features, the size of the table or processors, on generated streams.

    python -m scripts.bench.scaling --stream power_law --features 37 --classes 1000,10000,100000,1000000 --lines \\
        --reductions oaa,recall_tree,log_multi,cpt,multiclass,softmax_tree,ect,random_tree --args='-b 24' --most 60 \\
        --peers 'VW --log_multi {K} -b 24;napkinXC HSM tree_type=completeKaryRandom optimizer=adagrad eta=1.0 epochs=1'
    python -m scripts.bench.scaling --reductions cpt,recall_tree --classes 10000 --features 5,20,80
    python -m scripts.bench.scaling --reductions cpt,recall_tree --classes 10000 --bits 18,22,26
    python -m scripts.bench.scaling --reductions oaa,cpt,reading --classes 1000 --processors 1,2

One of --classes, --features, --bits and --processors takes several values. A stream has `--examples` lines to learn
and as many to test for every K: a class and `--features` words. With `--stream even`, the classes are equally likely,
the words are from one fixed vocabulary, and nine in ten tell the class. With `power_law`, the frequency of class i is
proportional to i^-.8, a third of the words are from its class, which shares them with other classes, and the others
tell nothing. `reading` is not a reduction: the lines are only parsed. `--peers` are command lines of other tools,
separated by semicolons; `{K}` is the number of classes. Tools whose packages are not installed are named and left out.

Learning and testing are whole processes; a run over the first few lines, which compiles what is not compiled, is taken
off both. The rows of the table, each with a figure for learning and one for testing, except for the last two:
* CPU us: microseconds per example, processor time of all threads; wall us: wall time, where processors vary;
* nodes opened: mean number of nodes whose regressors a search evaluates, in each tree, as the summary says. Without a
  search, an example visits a node for each level of its leaf;
* lines of weights (`--lines`): mean number of different cache lines of 64 bytes of weight tables that an example reads
  or writes, counted while the kernels run as plain Python (`scripts/lib/memory_accesses.py`): the model of the whole
  stream predicts, and then learns, the same 30 examples. They depend neither on the load of the machine nor on its
  processor;
* depth: mean and largest depth of the leaves;
* test error.
`growth` is the figure at the largest value over that at the smallest. Prints a Markdown table; `--plot FILE` draws it
(matplotlib, the extra `plot`).
"""

from __future__ import annotations

import argparse
import math
import os
import shlex
from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path

from scripts.lib import peers
from scripts.lib.command_line import names, numbers, run, workspace
from scripts.lib.memory_accesses import count_further
from scripts.lib.plots import PIXELS, plotting
from scripts.lib.processes import BenchError
from scripts.lib.results import table
from scripts.lib.streams import READING, Point, folder_of, time_point

Points = dict[float, Point]  # by the value that varies
FORMATS = {
    "CPU us": ".1f", "wall us": ".1f", "nodes opened": ".1f", "lines of weights": ",.0f", "depth": ".4g",
    "test error": ".3f",
}  # fmt: skip


def figures(point: Point, wall: bool) -> dict[str, tuple[float, ...]]:
    """Return the figures of a point by the names of their rows, those that are known."""
    found = {
        "CPU us": (point.train, point.test),
        "wall us": (point.train_wall, point.test_wall) if wall else None,
        "nodes opened": point.nodes,
        "lines of weights": point.lines,
        "depth": point.depth,
        "test error": (point.error,) if point.error == point.error else None,
    }
    return {kind: values for kind, values in found.items() if values}


def rows(name: str, points: Points, values: list[float], wall: bool) -> Iterator[list[str]]:
    """Yield the rows of a method in the table."""
    of_value = {value: figures(point, wall) for value, point in points.items()}
    first, last = of_value[min(points)], of_value[max(points)]
    for kind in first:
        shown = [of_value.get(value, {}).get(kind, ()) for value in values]
        pairs = zip(first[kind], last.get(kind, ()), strict=False)
        growth = " / ".join(f"{b / a:.2f}" if a > 0 else "" for a, b in pairs) if len(points) > 1 else ""
        cells = [" / ".join(f"{number:{FORMATS[kind]}}" for number in cell) for cell in shown]
        yield [name if kind == "CPU us" else "", kind, *cells, growth if kind != "test error" else ""]


def draw(points: dict[str, Points], variable: str, wall: bool, file: Path) -> None:
    """Draw learning on the left, testing on the right, a line for each method; times above, counts below."""
    drawn = {name: {value: figures(point, wall) for value, point in found.items()} for name, found in points.items()}
    for found in drawn.values():  # a path has a node for each level
        for one in found.values():
            if "depth" in one:
                one.setdefault("nodes opened", (one["depth"][0],) * 2)
    ticks = sorted({value for found in drawn.values() for value in found})
    kinds = ["wall us" if wall else "CPU us"]
    if any(point.lines for of_method in points.values() for point in of_method.values()):
        kinds += ["lines of weights", "nodes opened"]
    size = (11, 3.6 * len(kinds))
    figure, areas = plotting().subplots(len(kinds), 2, figsize=size, squeeze=False, sharey="row", layout="constrained")
    for kind, row in zip(kinds, areas, strict=True):
        for at, (area, title) in enumerate(zip(row, ("learning", "testing"), strict=True)):
            for name, found in drawn.items():
                of_method = {value: one[kind][at] for value, one in found.items() if kind in one}
                style = "s--" if name.split()[0] in peers.PACKAGES else "o-"
                area.plot(list(of_method), list(of_method.values()), style, label=name, markersize=4)
            if variable == "K":
                least = min(one[kind][at] for found in drawn.values() for one in [found[min(found)]] if kind in one)
                guide = [least * math.log(value) / math.log(ticks[0]) for value in ticks]
                area.plot(ticks, guide, ":", color="grey", label="proportional to log K")
            area.set(title=title, xlabel=variable, ylabel=kind, yscale="log")
            area.set_xscale("linear" if variable == "bits" else "log")
            area.set_xticks(ticks, [f"{value:,}" for value in ticks])
            area.xaxis.minorticks_off()
    figure.legend(*areas[0, 0].get_legend_handles_labels(), loc="outside right upper", fontsize=8)
    figure.savefig(file, dpi=PIXELS)


def measured(folder: Path, examples: int, tool: str, words: list[str], lines: bool) -> dict:
    """Return the fields of a point."""
    point = time_point(folder, examples, words, tool)
    if lines and tool == peers.XCLASS and words[0] != READING:
        counts = count_further(folder / "m.model", folder / "test.vw", 0)
        if counts["weights"]:
            point.lines = counts["weights"], counts["predict_weights"]
    return asdict(point)


def methods(given: argparse.Namespace) -> dict[str, tuple[str, str]]:
    """Return the tool and the words of each method by its name."""
    found = {name: (peers.XCLASS, f"--{name} {{K}} {given.args}") for name in given.reductions}
    for text in given.peers:
        tool, _, words = text.partition(" ")
        if tool not in (peers.VW, peers.NAPKIN):
            raise BenchError(f"--peers: {text!r} begins neither with {peers.VW} nor with {peers.NAPKIN}")
        found[f"{tool} {words.partition(' ')[0]}"] = tool, words
    peers.say_what_is_missing(tool for tool, _ in found.values())
    return {name: method for name, method in found.items() if not peers.missing(method[0])}


def main() -> None:
    """Measure every method on every value and print the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--reductions", required=True, type=names, metavar="NAME,...")
    options.add_argument("--classes", required=True, type=numbers)
    options.add_argument("--features", type=numbers, default=[10])
    options.add_argument("--bits", type=numbers, default=[])
    options.add_argument("--processors", type=numbers, default=[])
    options.add_argument("--examples", type=int, default=1_000_000)
    options.add_argument("--stream", choices=["even", "power_law"], default="even")
    options.add_argument("--args", default="", help="options of every run of xclass")
    options.add_argument("--peers", default=[], type=lambda text: text.split(";"), metavar="COMMAND;...")
    options.add_argument("--lines", action="store_true", help="count cache lines of weights")
    options.add_argument("--most", type=float, default=float("inf"), metavar="SECONDS",
                         help="a method that takes more CPU time is not measured at larger values")  # fmt: skip
    options.add_argument("--json", type=Path, metavar="FILE", help="what was measured; it is added to")
    options.add_argument("--work", type=Path, help="folder for the streams; a temporary one by default")
    options.add_argument("--plot", type=Path, metavar="FILE")
    given = options.parse_args()
    if given.examples < 2 or min(given.features) < 1 or min(given.classes) < 1:
        raise BenchError("give at least 2 examples, a feature and a class")
    lists = {"K": given.classes, "features": given.features, "bits": given.bits, "processors": given.processors}
    several = [name for name, values in lists.items() if len(values) > 1]
    if len(several) > 1:
        raise BenchError(f"{' and '.join(several)} have several values: vary one at a time")
    variable = several[0] if several else "K"
    everywhere = os.sched_getaffinity(0)
    if max(given.processors, default=1) > len(everywhere):
        raise BenchError(f"there are {len(everywhere)} processors, not {max(given.processors)}")
    of_name = methods(given)
    points: dict[str, Points] = {name: {} for name in of_name}
    with workspace(given) as (work, store):
        for value in lists[variable]:
            at = {name: value if name == variable else (values or [None])[0] for name, values in lists.items()}
            folder = folder_of(work, given.stream, at["K"], given.examples, at["features"])
            os.sched_setaffinity(0, sorted(everywhere)[: at["processors"]])
            for name, (tool, text) in of_name.items():
                words = shlex.split(text.replace("{K}", str(at["K"])))
                words += ["-b", str(at["bits"])] if at["bits"] and tool != peers.NAPKIN else []
                before = [1e-6 * given.examples * max(point.train, point.test) for point in points[name].values()]
                if max(before, default=0) > given.most:
                    continue
                key = {**at, "stream": given.stream, "examples": given.examples, "tool": tool, "words": words}
                job = partial(measured, folder, given.examples, tool, words, given.lines)
                points[name][value] = Point(**store.get({**key, "lines": given.lines}, job))
            os.sched_setaffinity(0, everywhere)
    wall, heads = variable == "processors", [f"{variable} = {value:,}" for value in lists[variable]]
    found = [row for name, of_method in points.items() for row in rows(name, of_method, lists[variable], wall)]
    print(table(["", "learning / testing", *heads, "growth"], found))
    if given.plot:
        draw(points, variable, wall, given.plot)


if __name__ == "__main__":
    run(main)
