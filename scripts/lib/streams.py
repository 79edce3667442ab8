"""Generate streams with any number of classes and features, and measure the time per example."""

from __future__ import annotations

import math
import re
import sys
from dataclasses import dataclass
from itertools import islice
from operator import getitem
from pathlib import Path

import numpy as np

from scripts.lib import peers
from scripts.lib.processes import Run, measure

FEW = 200  # lines of the short run, whose time is subtracted
VOCABULARY = 2000  # number of different words at each position of a line of `write_stream`
NOISE = 0.1
EXPONENT = 0.8  # of the power law of `write_power_law`
OWN = 30  # words of a class
SHARED = 400_000  # words that these are drawn from
READING = "--reading"  # given in place of a reduction to measure reading alone
PIECE = 10_000  # lines generated at a time
READ = [sys.executable, str(Path(__file__).with_name("reading.py"))]  # command that only reads


@dataclass
class Point:
    """Hold the microseconds per example, and what else was measured."""

    train: float  # CPU time
    train_wall: float
    test: float  # CPU time
    test_wall: float
    depth: tuple[float, int] | None = None  # mean and largest depth of the leaves
    error: float = math.nan  # of the test
    nodes: tuple[float, ...] | None = None  # mean number of nodes that a search opens in training and in the test
    lines: tuple[float, ...] | None = None  # mean number of cache lines of weights that an example visits in both


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


def write_power_law(path: Path, seed: int, classes: int, examples: int, features: int) -> None:
    """Write a stream in which class i has a frequency of i^-.8 and classes share words.

    A third of the words of an example are from its class. The others do not depend on the class, and few of them are
    frequent. As in `write_stream`, streams with different seeds have the same classes.
    """
    random = np.random.default_rng([seed, classes])
    own = np.random.default_rng(classes).integers(0, SHARED, (classes, OWN), np.int32)
    cumulative = np.cumsum(np.arange(1, classes + 1) ** -EXPONENT)
    telling = max(1, features // 3)
    with open(path, "w", encoding="ascii") as file:
        for start in range(0, examples, PIECE):
            n = min(PIECE, examples - start)
            label = np.searchsorted(cumulative, random.random(n) * cumulative[-1])
            words = own[label[:, None], random.integers(0, OWN, (n, telling))]
            common = (SHARED * random.random((n, features - telling)) ** 3).astype(np.int32)
            for y, row, others in zip(label.tolist(), words.tolist(), common.tolist(), strict=True):
                file.write(f"{y + 1} | {' '.join(map(str, row))} {' '.join(f'z{word}' for word in others)}\n")


KINDS = {"even": write_stream, "power_law": write_power_law}


def depth_of(summary: str) -> tuple[float, int] | None:
    """Return the mean and the largest depth of the leaves from a summary, or None if it has none."""
    match = re.search(r"depth mean = ([\d.]+), max = (\d+)", summary)
    return (float(match[1]), int(match[2])) if match else None


def folder_of(work: Path, kind: str, classes: int, examples: int, features: int) -> Path:
    """Return a folder with streams of a kind as train.vw and test.vw, which are written if they are not there."""
    folder = work / f"{kind}_{classes}_{examples}_{features}"
    folder.mkdir(exist_ok=True)
    if not (folder / "test.vw").exists():
        for seed, part in enumerate(("train.vw", "test.vw")):
            KINDS[kind](folder / part, seed, classes, examples, features)
    return folder


def time_point(folder: Path, examples: int, words: list[str], tool: str = peers.XCLASS) -> Point:
    """Train a tool on the file train.vw and test it on test.vw; return the time per example.

    The time of a run over a few lines, which is mostly that of starting, is subtracted. Training includes the time to
    save a model.
    """
    few = min(FEW, max(1, examples // 2))
    with open(folder / "train.vw", "rb") as whole, open(folder / "few.vw", "wb") as part:
        part.writelines(islice(whole, few))
    if words[0] == READING:
        measure([*READ, "few.vw"], folder)  # compiles the kernels
        start, train, test = (measure([*READ, f"{part}.vw"], folder) for part in ("few", "train", "test"))
        return _per_example(examples - few, (train, start), (test, start))
    peers.convert(tool, folder, ("train", "test", "few"))
    runs = []
    for task in ("train", "test"):
        if tool == peers.XCLASS:
            measure(peers.command(tool, task, "few", words), folder)  # compiles the kernels
        start, whole = (measure(peers.command(tool, task, part, words), folder) for part in ("few", task))
        runs.append((whole, start))
    found = _per_example(examples - few, *runs)
    (train, _), (test, _) = runs
    found.depth, found.error = depth_of(train.stderr), peers.error_of(tool, folder, test)
    opened = [re.search(r"^nodes opened by a search: mean ([\d.]+)", run.stderr, re.MULTILINE) for run in (train, test)]
    if all(opened):
        found.nodes = tuple(float(mean[1]) for mean in opened)
    return found


def _per_example(n: int, train: tuple[Run, Run], test: tuple[Run, Run]) -> Point:
    """Return the time per example; `train` and `test` are pairs of a long run and a run with n examples fewer."""
    seconds = []
    for run, less in (train, test):
        seconds += [1e6 * (run.cpu - less.cpu) / n, 1e6 * (run.wall - less.wall) / n]
    return Point(*seconds)
