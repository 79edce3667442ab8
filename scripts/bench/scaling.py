"""Time per example against classes, features, the size of the table or processors, on generated streams.

    python -m scripts.bench.scaling --reductions log_multi,ect,random_tree --classes 1000,10000,100000,1000000 \
        --examples 1000000 --args='-b 24'
    python -m scripts.bench.scaling --reductions cpt,recall_tree --classes 10000 --features 5,20,80
    python -m scripts.bench.scaling --reductions cpt,recall_tree --classes 10000 --bits 18,22,26
    python -m scripts.bench.scaling --reductions oaa,cpt,reading --classes 1000 --processors 1,2

One of the four takes several values. A stream has `--examples` lines for every K: a class, each as likely as any other,
and `--features` words that tell it, all from one fixed vocabulary, one in ten of them of another class. Learning
and testing are whole processes; a run over the first few lines, which compiles what is not compiled, is taken off both.
Microseconds per example: processor time of all threads, and wall time. Depth is what the summary says of the leaves.
`growth` is processor time at the largest value over that at the smallest, beside the same of the depth; for processors
it is wall time. `reading` is not a reduction: the lines are parsed and left. Prints a Markdown table; `--plot FILE`
draws it (matplotlib, the extra `plot`).
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
import tempfile
from pathlib import Path

from scripts.lib.command_line import names, numbers, run
from scripts.lib.plots import plotting
from scripts.lib.processes import BenchError
from scripts.lib.streams import Point, time_point, write_stream


def row(name: str, points: dict[int, Point], wall: bool) -> str:
    """A line of the table."""
    cells = []
    for point in points.values():
        depth = f", {point.depth[0]:.1f} / {point.depth[1]}" if point.depth else ""
        cells.append(f"{point.train:.1f} / {point.train_wall:.1f}, {point.test:.1f} / {point.test_wall:.1f}{depth}")
    first, last = points[min(points)], points[max(points)]
    ratios = [(last.train_wall, first.train_wall), (last.test_wall, first.test_wall)]
    if not wall:
        ratios = [(last.train, first.train), (last.test, first.test)]
    growth = ", ".join(f"{a / b:.2f}" if b > 0 else "" for a, b in ratios)
    if first.depth and last.depth:
        growth += f", {last.depth[0] / first.depth[0]:.2f}"
    return f"| {name} | " + " | ".join([*cells, growth]) + " |"


def draw(points: dict[str, dict[int, Point]], variable: str, wall: bool, file: Path) -> None:
    """Learning on the left, testing on the right, a line for each reduction."""
    pyplot = plotting()
    figure, areas = pyplot.subplots(1, 2, figsize=(10, 4))
    for area, title, phase in zip(areas, ("learning", "testing"), ("train", "test"), strict=True):
        for name, of_method in points.items():
            values = [getattr(point, phase + ("_wall" if wall else "")) for point in of_method.values()]
            (area.semilogy if variable == "bits" else area.loglog)(list(of_method), values, "o-", label=name)
            area.set_xticks(list(of_method), [f"{value:,}" for value in of_method])
        area.xaxis.minorticks_off()
        area.set_title(title)
        area.set_xlabel(variable)
        area.set_ylabel("microseconds an example" + ("" if wall else " (processor time)"))
        area.legend()
    figure.tight_layout()
    figure.savefig(file, dpi=80)


def main() -> None:
    """Measure every reduction on every value and print the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--reductions", required=True, type=names, metavar="NAME,...")
    options.add_argument("--classes", required=True, type=numbers)
    options.add_argument("--features", type=numbers, default=[10])
    options.add_argument("--bits", type=numbers, default=[])
    options.add_argument("--processors", type=numbers, default=[])
    options.add_argument("--examples", type=int, default=1_000_000)
    options.add_argument("--args", default="", help="options of every run of xclass")
    options.add_argument("--plot", type=Path, metavar="FILE")
    given = options.parse_args()
    if given.examples < 2 or min(given.features) < 1 or min(given.classes) < 1:
        raise BenchError("give at least 2 examples, a feature and a class")
    lists = {"K": given.classes, "features": given.features, "bits": given.bits, "processors": given.processors}
    several = [name for name, values in lists.items() if len(values) > 1]
    if len(several) > 1:
        raise BenchError(f"{' and '.join(several)} have several values: vary one at a time")
    variable = several[0] if several else "K"
    if max(given.processors, default=1) > len(os.sched_getaffinity(0)):
        raise BenchError(f"there are {len(os.sched_getaffinity(0))} processors, not {max(given.processors)}")
    everywhere = os.sched_getaffinity(0)
    points: dict[str, dict[int, Point]] = {name: {} for name in given.reductions}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        made = None
        for value in lists[variable]:
            at = {name: value if name == variable else (values or [None])[0] for name, values in lists.items()}
            if made != (made := (at["K"], at["features"])):
                for seed, part in enumerate(("train", "test")):
                    write_stream(folder / part, seed, at["K"], given.examples, at["features"])
            os.sched_setaffinity(0, sorted(everywhere)[: at["processors"]])
            for name, of_method in points.items():
                words = [f"--{name}", str(at["K"]), *shlex.split(given.args)]
                words += ["-b", str(at["bits"])] if at["bits"] else []
                of_method[value] = time_point(folder, given.examples, words)
                print(f"{name} {variable} {value}: {of_method[value]}", file=sys.stderr, flush=True)
            os.sched_setaffinity(0, everywhere)
    print("Learning CPU / wall, testing CPU / wall in microseconds per example, depth mean / largest.\n")
    growth = "growth: learning, testing, depth"
    print("| | " + " | ".join(f"{variable} = {value:,}" for value in lists[variable]) + f" | {growth} |")
    print("| --- |" + " --: |" * (len(lists[variable]) + 1))
    for name, of_method in points.items():
        print(row(name, of_method, variable == "processors"))
    if given.plot:
        draw(points, variable, variable == "processors", given.plot)


if __name__ == "__main__":
    run(main)
