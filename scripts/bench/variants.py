"""Test error of xclass under several option sets, on several data sets: how a default is chosen.

    python -m scripts.bench.variants DATA_DIR --sets panlex,spelling --reduction recall_tree --common '-b 24' \
        --variant 'entropy=--router_weight entropy' --variant 'example=--router_weight example'

Without `--reduction` every variant names its own, K being the number of classes: `--variant 'filter tree=--ect {K}'`.
Data as in compare.py. `--holdout` leaves the test file alone and tests on the last tenth of the training file, which
is what tuning should look at. Prints a Markdown table: test error, and in brackets the CPU seconds of training, of all
threads, which other work on the machine changes little.
"""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from scripts.lib.command_line import names, run, work_folder
from scripts.lib.data_sets import EXTRA, prepare
from scripts.lib.holdout import split_train, train_and_test


def main() -> None:
    """Run every variant on every set and print the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("data_dir", type=Path)
    options.add_argument("--sets", required=True, type=names)
    options.add_argument("--reduction")
    options.add_argument("--common", default="")
    options.add_argument("--variant", action="append", required=True, metavar="NAME=ARGS")
    options.add_argument("--holdout", action="store_true")
    options.add_argument("--work", type=Path)
    given = options.parse_args()
    variants = dict(text.split("=", 1) for text in given.variant)
    print("| set | K | " + " | ".join(variants) + " |")
    print("| --- | --: |" + " --: |" * len(variants), flush=True)
    with work_folder(given.work) as work:
        for name in given.sets:
            folder, classes = prepare(given.data_dir, name, work)
            train, test = split_train(folder) if given.holdout else ("train.vw", "test.vw")
            cells = []
            for args in variants.values():
                words = [f"--{given.reduction}", str(classes)] if given.reduction else []
                words += shlex.split(f"{given.common} {EXTRA.get(name, '')} {args}".replace("{K}", str(classes)))
                error, took = train_and_test(folder, train, test, words)
                cells.append(f"{100 * error:.1f} ({took:.1f})")
            print(f"| {name} | {classes} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    run(main)
