"""Test error of xclass under several option sets, on several data sets: how a default is chosen.

    python scripts/variants.py DATA_DIR --sets panlex,spelling --reduction recall_tree --common '-b 24' \
        --variant 'entropy=--router_weight entropy' --variant 'example=--router_weight example'

Without `--reduction` every variant names its own, K being the number of classes: `--variant 'filter tree=--ect {K}'`.
Data as in bench.py. `--holdout` leaves the test file alone and tests on the last tenth of the training file, which
is what tuning should look at. Prints a Markdown table: test error, and in brackets the CPU seconds of training, of all
threads, which other work on the machine changes little.
"""

from __future__ import annotations

import argparse
import shlex
import sys
import tempfile
from pathlib import Path

from bench import TOOLS, BenchError, measure, prepare, test_error

EXTRA = {"aloi27": "-q ff"}  # options a set needs to be worth learning, as its description says


def split_train(folder: Path) -> tuple[str, str]:
    """Write the first nine tenths and the last tenth of train.vw; return the files' names."""
    if not (folder / "last.vw").exists():
        lines = (folder / "train.vw").read_bytes().splitlines(keepends=True)
        cut = len(lines) * 9 // 10
        (folder / "first.vw").write_bytes(b"".join(lines[:cut]))
        (folder / "last.vw").write_bytes(b"".join(lines[cut:]))
    return "first.vw", "last.vw"


def run(folder: Path, train: str, test: str, words: list[str]) -> tuple[float, float]:
    """Train and test once; return the error and the CPU seconds of training, of all threads."""
    xclass = TOOLS["xclass"]
    few = [*xclass, "-d", "few.vw", *words, "--quiet"]
    measure(few, folder)  # compiles what is not compiled yet
    took = measure([*xclass, "-d", train, *words, "-f", "v.model", "--quiet"], folder).cpu
    measure([*xclass, "-d", test, "-t", "-i", "v.model", "-p", "v.predictions", "--quiet"], folder)
    return test_error(folder / test, folder / "v.predictions"), took


def main() -> int:
    """Run every variant on every set and print the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("data_dir", type=Path)
    options.add_argument("--sets", required=True, type=lambda text: text.split(","))
    options.add_argument("--reduction")
    options.add_argument("--common", default="")
    options.add_argument("--variant", action="append", required=True, metavar="NAME=ARGS")
    options.add_argument("--holdout", action="store_true")
    options.add_argument("--work", type=Path)
    given = options.parse_args()
    variants = dict(text.split("=", 1) for text in given.variant)
    print("| set | K | " + " | ".join(variants) + " |")
    print("| --- | --: |" + " --: |" * len(variants), flush=True)
    with tempfile.TemporaryDirectory() as temporary:
        work = given.work or Path(temporary)
        for name in given.sets:
            folder = work / name
            classes = prepare(given.data_dir, name, work)
            train, test = split_train(folder) if given.holdout else ("train.vw", "test.vw")
            cells = []
            for args in variants.values():
                words = [f"--{given.reduction}", str(classes)] if given.reduction else []
                words += shlex.split(f"{given.common} {EXTRA.get(name, '')} {args}".replace("{K}", str(classes)))
                error, took = run(folder, train, test, words)
                cells.append(f"{100 * error:.1f} ({took:.1f})")
            print(f"| {name} | {classes} | " + " | ".join(cells) + " |", flush=True)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BenchError as error:
        sys.exit(f"variants: {error}")
