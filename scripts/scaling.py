"""Time per example against the number of classes, for any reductions, on generated streams of so many features.

    python scripts/scaling.py --reductions log_multi,ect,random_tree --classes 1000,10000,100000,1000000 \
        --examples 1000000 --args='-b 24'

A stream has `--examples` lines for every K: a class, each as likely as any other, and `--features` words that tell it,
all from one vocabulary of fixed size, one in ten of them of another class. Learning and testing are whole processes;
a run over the first few lines, which compiles what is not compiled, is taken off both. Microseconds per example:
processor time of all threads, and wall time. Depth is what the summary says of the leaves. `growth` is processor time
at the largest K over that at the smallest, beside the same of the depth. Prints a Markdown table.
"""

from __future__ import annotations

import argparse
import random
import re
import shlex
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from bench import TOOLS, BenchError, measure

FEW = 200  # lines of the run that is taken off
VOCABULARY = 2000  # words at each of the places of a line
NOISE = 0.1


@dataclass
class Point:
    """Microseconds per example."""

    train: float  # processor
    train_wall: float
    test: float
    test_wall: float
    depth: tuple[float, int] | None  # mean and largest, of the leaves


def write_stream(path: Path, seed: str, classes: int, examples: int, features: int) -> None:
    """Lines of a stream; its vocabulary, and so how many cache lines all weights take, does not depend on K."""
    rng = random.Random(f"scaling {seed} {classes}")
    with open(path, "w", encoding="ascii") as file:
        for _ in range(examples):
            y = rng.randrange(classes)
            words = []
            for place in range(features):
                told = y if rng.random() >= NOISE else rng.randrange(classes)
                words.append(f"{place}_{(told * (2 * place + 1) * 2654435761 >> 7 + place) % VOCABULARY}")
            file.write(f"{y + 1} | {' '.join(words)}\n")


def depth_of(said: str) -> tuple[float, int] | None:
    """Mean and largest depth of the leaves, from a summary."""
    found = re.search(r"depth mean = ([\d.]+), max = (\d+)", said)
    return (float(found[1]), int(found[2])) if found else None


def time_point(folder: Path, examples: int, words: list[str]) -> Point:
    """Learn and test, less what a few lines take."""
    few = min(FEW, max(1, examples // 2))
    lines = (folder / "train").read_bytes().splitlines(keepends=True)
    (folder / "few").write_bytes(b"".join(lines[:few]))
    del lines
    found = []
    said = ""
    for command in ("-d {} " + shlex.join(words) + " -f m", "-d {} -i m -t -p p"):
        cost = []
        for data in ("few", "few", "train" if "-f m" in command else "test"):  # the first run compiles
            run = measure([*TOOLS["xclass"], *shlex.split(command.format(data))], folder)
            cost.append((run.cpu, run.wall))
            if data == "train":
                said = run.said
        found += [1e6 * (cost[2][kind] - cost[1][kind]) / (examples - few) for kind in (0, 1)]
    return Point(*found, depth_of(said))


def row(name: str, points: dict[int, Point]) -> str:
    """A line of the table."""
    cells = []
    for one in points.values():
        depth = f", {one.depth[0]:.1f} / {one.depth[1]}" if one.depth else ""
        cells.append(f"{one.train:.1f} / {one.train_wall:.1f}, {one.test:.1f} / {one.test_wall:.1f}{depth}")
    first, last = points[min(points)], points[max(points)]
    growth = f"{last.train / first.train:.2f}, {last.test / first.test:.2f}" if first.train > 0 < first.test else ""
    if first.depth and last.depth:
        growth += f", {last.depth[0] / first.depth[0]:.2f}"
    return f"| {name} | " + " | ".join([*cells, growth]) + " |"


def main() -> int:
    """Measure every reduction on every K and print the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--reductions", required=True, type=lambda text: text.split(","), metavar="NAME,...")
    options.add_argument("--classes", required=True, type=lambda text: [int(k) for k in text.split(",")])
    options.add_argument("--examples", type=int, default=1_000_000)
    options.add_argument("--features", type=int, default=10)
    options.add_argument("--args", default="", help="options of every run of xclass")
    given = options.parse_args()
    if given.examples < 2 or given.features < 1 or min(given.classes) < 1:
        raise BenchError("give at least 2 examples, a feature and a class")
    points: dict[str, dict[int, Point]] = {name: {} for name in given.reductions}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for k in given.classes:
            for part in ("train", "test"):
                write_stream(folder / part, part, k, given.examples, given.features)
            for name, found in points.items():
                words = [f"--{name}", str(k), *shlex.split(given.args)]
                found[k] = time_point(folder, given.examples, words)
                print(f"{name} {k}: {found[k]}", file=sys.stderr, flush=True)
    print("Learning CPU / wall, testing CPU / wall in microseconds per example, depth mean / largest.\n")
    print("| | " + " | ".join(f"K = {k:,}" for k in given.classes) + " | growth: learning, testing, depth |")
    print("| --- |" + " --: |" * (len(given.classes) + 1))
    for name, found in points.items():
        print(row(name, found))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BenchError as error:
        sys.exit(f"scaling: {error}")
