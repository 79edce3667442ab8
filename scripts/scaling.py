"""Time per example against classes, features, the size of the table or processors, on generated streams.

    python scripts/scaling.py --reductions log_multi,ect,random_tree --classes 1000,10000,100000,1000000 \
        --examples 1000000 --args='-b 24'
    python scripts/scaling.py --reductions cpt,recall_tree --classes 10000 --features 5,20,80
    python scripts/scaling.py --reductions cpt,recall_tree --classes 10000 --bits 18,22,26
    python scripts/scaling.py --reductions oaa,cpt,reading --classes 1000 --processors 1,2

One of the four takes several values. A stream has `--examples` lines for every K: a class, each as likely as any other,
and `--features` words that tell it, all from one fixed vocabulary, one in ten of them of another class. Learning
and testing are whole processes; a run over the first few lines, which compiles what is not compiled, is taken off both.
Microseconds per example: processor time of all threads, and wall time. Depth is what the summary says of the leaves.
`growth` is processor time at the largest value over that at the smallest, beside the same of the depth; for processors
it is wall time. `reading` is no reduction: the lines are parsed and left. Prints a Markdown table; `--plot FILE` draws
it (matplotlib, the extra `plot`).
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import sys
import tempfile
from dataclasses import dataclass
from itertools import islice
from operator import getitem
from pathlib import Path

import numpy as np
from bench import TOOLS, BenchError, Run, measure
from pecoc_curve import plotting

FEW = 200  # lines of the run that is taken off
VOCABULARY = 2000  # words at each of the places of a line
NOISE = 0.1
READING = "--reading"  # stands where a reduction's option would
PIECE = 10_000  # lines made at a time


@dataclass
class Point:
    """Microseconds per example."""

    train: float  # processor
    train_wall: float
    test: float
    test_wall: float
    depth: tuple[float, int] | None  # mean and largest, of the leaves


def write_stream(path: Path, seed: int, classes: int, examples: int, features: int) -> None:
    """Lines of a stream; its vocabulary, and so how many cache lines all weights take, does not depend on K."""
    random = np.random.default_rng([seed, classes])
    words = [[f"{place}_{v}" for v in range(VOCABULARY)] for place in range(features)]
    place = np.arange(features, dtype=np.uint64)
    with open(path, "w", encoding="ascii") as file:
        for begin in range(0, examples, PIECE):
            n = min(PIECE, examples - begin)
            label = random.integers(0, classes, n)
            other = random.integers(0, classes, (n, features))
            told = np.where(random.random((n, features)) < NOISE, other, label[:, None]).astype(np.uint64)
            word = (told * (2 * place + 1) * np.uint64(2654435761) >> 7 + place) % np.uint64(VOCABULARY)
            for y, row in zip(label.tolist(), word.tolist(), strict=True):
                file.write(f"{y + 1} | {' '.join(map(getitem, words, row))}\n")


def depth_of(said: str) -> tuple[float, int] | None:
    """Mean and largest depth of the leaves, from a summary."""
    found = re.search(r"depth mean = ([\d.]+), max = (\d+)", said)
    return (float(found[1]), int(found[2])) if found else None


def time_point(folder: Path, examples: int, words: list[str]) -> Point:
    """Learn and test, less what a few lines take."""
    few = min(FEW, max(1, examples // 2))
    with open(folder / "train", "rb") as whole, open(folder / "few", "wb") as part:
        part.writelines(islice(whole, few))
    if words[0] == READING:
        read = [sys.executable, str(Path(__file__).with_name("bench_table.py")), "--read"]
        measure([*read, "few"], folder)  # compiles
        begin, train, test = (measure([*read, file], folder) for file in ("few", "train", "test"))
        return _less(examples - few, (train, begin), (test, begin), None)
    learning = [*words, "-f", "m"]
    measure([*TOOLS["xclass"], "-d", "few", *learning], folder)  # compiles
    begin = measure([*TOOLS["xclass"], "-d", "few", *words], folder)
    train = measure([*TOOLS["xclass"], "-d", "train", *words], folder)  # without the time to save a model
    measure([*TOOLS["xclass"], "-d", "train", *learning], folder)
    testing = ["-i", "m", "-t"]
    measure([*TOOLS["xclass"], "-d", "few", *testing], folder)
    load = measure([*TOOLS["xclass"], "-d", "few", *testing], folder)
    test = measure([*TOOLS["xclass"], "-d", "test", *testing], folder)
    return _less(examples - few, (train, begin), (test, load), depth_of(train.said))


def _less(n: int, train: tuple[Run, Run], test: tuple[Run, Run], depth: tuple[float, int] | None) -> Point:
    """What n examples take: long runs less short ones."""
    found = []
    for run, less in (train, test):
        found += [1e6 * (run.cpu - less.cpu) / n, 1e6 * (run.wall - less.wall) / n]
    return Point(*found, depth)


def row(name: str, points: dict[int, Point], wall: bool) -> str:
    """A line of the table."""
    cells = []
    for one in points.values():
        depth = f", {one.depth[0]:.1f} / {one.depth[1]}" if one.depth else ""
        cells.append(f"{one.train:.1f} / {one.train_wall:.1f}, {one.test:.1f} / {one.test_wall:.1f}{depth}")
    first, last = points[min(points)], points[max(points)]
    ratios = [(last.train_wall, first.train_wall), (last.test_wall, first.test_wall)]
    if not wall:
        ratios = [(last.train, first.train), (last.test, first.test)]
    growth = ", ".join(f"{a / b:.2f}" if b > 0 else "" for a, b in ratios)
    if first.depth and last.depth:
        growth += f", {last.depth[0] / first.depth[0]:.2f}"
    return f"| {name} | " + " | ".join([*cells, growth]) + " |"


def draw(points: dict[str, dict[int, Point]], what: str, wall: bool, file: Path) -> None:
    """Learning on the left, testing on the right, a line for each reduction."""
    pyplot = plotting()
    figure, areas = pyplot.subplots(1, 2, figsize=(10, 4))
    for area, title, one in zip(areas, ("learning", "testing"), ("train", "test"), strict=True):
        for name, found in points.items():
            values = [getattr(point, one + ("_wall" if wall else "")) for point in found.values()]
            (area.semilogy if what == "bits" else area.loglog)(list(found), values, "o-", label=name)
            area.set_xticks(list(found), [f"{value:,}" for value in found])
        area.xaxis.minorticks_off()
        area.set_title(title)
        area.set_xlabel(what)
        area.set_ylabel("microseconds an example" + ("" if wall else " (processor time)"))
        area.legend()
    figure.tight_layout()
    figure.savefig(file, dpi=80)


def main() -> int:
    """Measure every reduction on every value and print the table."""

    def numbers(text: str) -> list[int]:
        return [int(one) for one in text.split(",")]

    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--reductions", required=True, type=lambda text: text.split(","), metavar="NAME,...")
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
    what = several[0] if several else "K"
    if max(given.processors, default=1) > len(os.sched_getaffinity(0)):
        raise BenchError(f"there are {len(os.sched_getaffinity(0))} processors, not {max(given.processors)}")
    everywhere = os.sched_getaffinity(0)
    points: dict[str, dict[int, Point]] = {name: {} for name in given.reductions}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        made = None
        for value in lists[what]:
            at = {name: value if name == what else (values or [None])[0] for name, values in lists.items()}
            if made != (made := (at["K"], at["features"])):
                for seed, part in enumerate(("train", "test")):
                    write_stream(folder / part, seed, at["K"], given.examples, at["features"])
            os.sched_setaffinity(0, sorted(everywhere)[: at["processors"]])
            for name, found in points.items():
                words = [f"--{name}", str(at["K"]), *shlex.split(given.args)]
                words += ["-b", str(at["bits"])] if at["bits"] else []
                found[value] = time_point(folder, given.examples, words)
                print(f"{name} {what} {value}: {found[value]}", file=sys.stderr, flush=True)
            os.sched_setaffinity(0, everywhere)
    print("Learning CPU / wall, testing CPU / wall in microseconds per example, depth mean / largest.\n")
    growth = "growth: learning, testing, depth"
    print("| | " + " | ".join(f"{what} = {value:,}" for value in lists[what]) + f" | {growth} |")
    print("| --- |" + " --: |" * (len(lists[what]) + 1))
    for name, found in points.items():
        print(row(name, found, what == "processors"))
    if given.plot:
        draw(points, what, what == "processors", given.plot)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BenchError as error:
        sys.exit(f"scaling: {error}")
