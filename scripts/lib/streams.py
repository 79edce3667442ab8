"""Generate streams with any number of classes and features, and measure the time per example."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from itertools import islice
from operator import getitem
from pathlib import Path

import numpy as np

from scripts.lib.processes import TOOLS, Run, measure

FEW = 200  # lines of the short run, whose time is subtracted
VOCABULARY = 2000  # number of different words at each position of a line
NOISE = 0.1
READING = "--reading"  # given in place of a reduction to measure reading alone
PIECE = 10_000  # lines generated at a time
READ = [sys.executable, str(Path(__file__).with_name("reading.py"))]  # command that only reads


@dataclass
class Point:
    """Hold the microseconds per example, and the depth of the tree if there is one."""

    train: float  # CPU time
    train_wall: float
    test: float  # CPU time
    test_wall: float
    depth: tuple[float, int] | None  # mean and largest depth of the leaves


def write_stream(path: Path, seed: int, classes: int, examples: int, features: int) -> None:
    """Write a stream of examples to a file.

    The vocabulary does not depend on the number of classes, and neither does the memory of the weights of one
    regressor.
    """
    random = np.random.default_rng([seed, classes])
    words = [[f"{place}_{v}" for v in range(VOCABULARY)] for place in range(features)]
    place = np.arange(features, dtype=np.uint64)
    with open(path, "w", encoding="ascii") as file:
        for start in range(0, examples, PIECE):
            n = min(PIECE, examples - start)
            label = random.integers(0, classes, n)
            other = random.integers(0, classes, (n, features))
            source_class = np.where(random.random((n, features)) < NOISE, other, label[:, None]).astype(np.uint64)
            word = (source_class * (2 * place + 1) * np.uint64(2654435761) >> 7 + place) % np.uint64(VOCABULARY)
            for y, row in zip(label.tolist(), word.tolist(), strict=True):
                file.write(f"{y + 1} | {' '.join(map(getitem, words, row))}\n")


def depth_of(summary: str) -> tuple[float, int] | None:
    """Return the mean and the largest depth of the leaves from a summary, or None if it has none."""
    match = re.search(r"depth mean = ([\d.]+), max = (\d+)", summary)
    return (float(match[1]), int(match[2])) if match else None


def time_point(folder: Path, examples: int, words: list[str]) -> Point:
    """Train on the file `train` and test on the file `test`; return the time per example.

    The time of a run over a few lines, which is mostly that of starting, is subtracted.
    """
    few = min(FEW, max(1, examples // 2))
    with open(folder / "train", "rb") as whole, open(folder / "few", "wb") as part:
        part.writelines(islice(whole, few))
    if words[0] == READING:
        measure([*READ, "few"], folder)  # compiles the kernels
        start, train, test = (measure([*READ, file], folder) for file in ("few", "train", "test"))
        return _per_example(examples - few, (train, start), (test, start), None)
    learning = [*words, "-f", "m"]
    measure([*TOOLS["xclass"], "-d", "few", *learning], folder)  # compiles the kernels
    start = measure([*TOOLS["xclass"], "-d", "few", *words], folder)
    train = measure([*TOOLS["xclass"], "-d", "train", *words], folder)  # without the time to save a model
    measure([*TOOLS["xclass"], "-d", "train", *learning], folder)
    testing = ["-i", "m", "-t"]
    measure([*TOOLS["xclass"], "-d", "few", *testing], folder)
    load = measure([*TOOLS["xclass"], "-d", "few", *testing], folder)
    test = measure([*TOOLS["xclass"], "-d", "test", *testing], folder)
    return _per_example(examples - few, (train, start), (test, load), depth_of(train.stderr))


def _per_example(n: int, train: tuple[Run, Run], test: tuple[Run, Run], depth: tuple[float, int] | None) -> Point:
    """Return the time per example; `train` and `test` are pairs of a long run and a run with n examples fewer."""
    seconds = []
    for run, less in (train, test):
        seconds += [1e6 * (run.cpu - less.cpu) / n, 1e6 * (run.wall - less.wall) / n]
    return Point(*seconds, depth)
