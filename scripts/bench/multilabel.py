"""Precision, time and memory of the learners of label lists, beside Vowpal Wabbit's, as whole processes.

    python -m scripts.bench.multilabel DATA_DIR --sets ml_bibtex,ml_cooking --passes 1,3

DATA_DIR/SET has train.vw, test.vw (`1,5,7 | words`, labels from 0) and labels.txt, plain or .gz. `--variant` adds a row
with other options of xclass: `--variant 'plt -l 1=--plt {K} -l 1'`. Prints a Markdown table: precision at 1, 3 and 5 on
the test file in percent, over the examples that have a label; CPU seconds and peak memory of training.

Vowpal Wabbit runs with `--loss_function logistic`. Its `--multilabel_oaa --probabilities` repeats answers after 258
lines, so the test file is predicted in parts.
"""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from scripts.lib.command_line import names, numbers, run, work_folder
from scripts.lib.data_sets import prepare
from scripts.lib.processes import TOOLS, Run, measure

VW, XCLASS = "vw", "xclass"
METHODS = {
    "VW --plt": (VW, "--plt {K}"),
    "xclass --plt": (XCLASS, "--plt {K}"),
    "VW --multilabel_oaa": (VW, "--multilabel_oaa {K}"),
    "xclass --multilabel_oaa": (XCLASS, "--multilabel_oaa {K}"),
}
LINES_OF_A_PART = 250
RANKS = (1, 3, 5)


def main() -> None:
    """Run every method on every set and print the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("data_dir", type=Path)
    options.add_argument("--sets", required=True, type=names)
    options.add_argument("--passes", type=numbers, default=[1, 3])
    options.add_argument("--bits", type=int, default=24)
    options.add_argument("--methods", type=lambda text: text.split(";"), help="of those in the table, by semicolons")
    options.add_argument("--variant", action="append", default=[], metavar="NAME=ARGS")
    options.add_argument("--work", type=Path)
    given = options.parse_args()
    methods = {name: METHODS[name] for name in given.methods or METHODS}
    methods |= {name: (XCLASS, words) for name, words in (text.split("=", 1) for text in given.variant)}
    print("| set, labels | method | passes | P@1 | P@3 | P@5 | CPU s | MB |\n| --- | --- |" + " --: |" * 6, flush=True)
    with work_folder(given.work) as work:
        for name in given.sets:
            folder, classes = prepare(given.data_dir, name, work)
            true = [labels_of(line) for line in (folder / "test.vw").read_bytes().splitlines()]
            for method, (tool, words) in methods.items():
                for passes in given.passes:
                    args = [*shlex.split(words.replace("{K}", str(classes))), "-b", str(given.bits)]
                    took = train(tool, args, int(passes), folder)
                    shown = [f"{100 * value:.2f}" for value in precision(true, list(predictions(tool, args, folder)))]
                    figures = [str(int(passes)), *shown, f"{took.cpu:.1f}", f"{took.memory / 1e6:.0f}"]
                    print(f"| {name}, {classes:,} | {method} | {' | '.join(figures)} |", flush=True)


def train(tool: str, args: list[str], passes: int, folder: Path) -> Run:
    """Train a model, TOOL.bin, and return the measurements of the process."""
    command = [*TOOLS[tool], *args, "-d", "train.vw", "-f", f"{tool}.bin"]
    command += ["--loss_function", "logistic"] if tool == VW else []
    if passes > 1:
        command += ["--cache_file", f"{tool}.cache", "-k", "--passes", str(passes), "--holdout_off"]
    return measure(command, folder)


def predictions(tool: str, args: list[str], folder: Path) -> Iterator[list[bytes]]:
    """Yield the labels of each test example, best first."""
    command = [*TOOLS[tool], "-t", "-i", f"{tool}.bin", "-p", "predictions"]
    if tool == XCLASS:
        command += ["--top_k", str(RANKS[-1]), "--threshold", "0"]
    else:
        command += ["--loss_function", "logistic", "--probabilities"]
        command += ["--top_k", str(RANKS[-1])] if "--plt" in args else []
    lines = (folder / "test.vw").read_bytes().splitlines(keepends=True)
    part = LINES_OF_A_PART if "--multilabel_oaa" in args and tool == VW else len(lines)
    for first in range(0, len(lines), part):
        (folder / "part.vw").write_bytes(b"".join(lines[first : first + part]))
        measure([*command, "-d", "part.vw"], folder)
        answers = (folder / "predictions").read_bytes().splitlines()
        for line in answers[:: 2 if len(answers) == 2 * len(lines[first : first + part]) else 1]:
            pairs = [pair.rsplit(b":", 1) for pair in re.split(rb"[ ,]+", line) if pair]
            yield [label for label, _ in sorted(pairs, key=lambda pair: -float(pair[1]))[: RANKS[-1]]]


def labels_of(line: bytes) -> set[bytes]:
    """Return the labels of a line of text."""
    words = line.partition(b"|")[0].split()
    return set(words[0].split(b",")) if words else set()


def precision(true: list[set[bytes]], ranked: list[list[bytes]]) -> list[float]:
    """Return the precision at each of RANKS, over the examples that have a label."""
    pairs = [pair for pair in zip(true, ranked, strict=True) if pair[0]]
    return [sum(len(labels & set(best[:k])) for labels, best in pairs) / (k * len(pairs)) for k in RANKS]


if __name__ == "__main__":
    run(main)
