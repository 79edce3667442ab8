"""Write sets of dense rows: columns of data sets, and draws from clusters.

    python -m scripts.dense.sets --out ROWS [--data DATA_DIR] [SET ...]

    digits           8 x 8 pixels of scikit-learn's digits, 10 classes
    isolet1, aloi27  columns of DATA_DIR/SET/{train,test}.vw, whose features are their numbers, from 1 on
    gauss            2,000 clusters in 384 dimensions, 50,000 rows; a centre has variance 1 in each, and a row 9
    zipf             the same, but cluster i is drawn with a probability proportional to 1 / i
    anisotropic      the same, but rows of a cluster differ much in some directions, and little in others

Each set is ROWS/SET/{train,test}.npy with labels beside them. `scripts.dense.embed_texts` adds embedded texts.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from scripts.dense.rows import PARTS, save
from scripts.lib.command_line import run, work_folder
from scripts.lib.data_sets import prepare
from scripts.lib.peers import lines_of
from scripts.lib.processes import BenchError

CLUSTERS, COLUMNS, TRAINED, TESTED = 2000, 384, 50_000, 10_000
DEVIATION = 3.0  # of a row from its centre in each direction
DIGITS_TRAINED = 1400
SEED = 1
CLUSTER_SETS = ("gauss", "zipf", "anisotropic")
COLUMN_SETS = ("isolet1", "aloi27")
SETS = ("digits", *COLUMN_SETS, *CLUSTER_SETS)
Part = tuple[np.ndarray, np.ndarray]  # rows and labels


def clusters(kind: str, n: int, classes: int, d: int) -> Part:
    """Draw n rows of d numbers around the centres of classes."""
    draw = np.random.default_rng(SEED)
    share = 1 / np.arange(1, classes + 1) if kind == "zipf" else np.ones(classes)
    label = draw.choice(classes, n, p=share / share.sum())
    centre = draw.standard_normal((classes, d), np.float32)
    noise = DEVIATION * draw.standard_normal((n, d), np.float32)
    if kind == "anisotropic":
        rotation, _ = np.linalg.qr(draw.standard_normal((d, d)))
        noise = noise / 2 * np.exp(draw.uniform(-3, 3, d)) @ rotation
    return centre[label] + noise, label + 1


def digits() -> Iterator[Part]:
    """Yield the training and the test part of scikit-learn's digits."""
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise BenchError("digits needs scikit-learn, which is not installed: pip install scikit-learn") from None
    rows, label = load_digits(return_X_y=True)
    order = np.random.default_rng(SEED).permutation(len(label))
    for part in (order[:DIGITS_TRAINED], order[DIGITS_TRAINED:]):
        yield rows[part], label[part] + 1


def columns(folder: Path) -> Iterator[Part]:
    """Yield the training and the test part of a set in VW text."""
    d = 0
    for part in PARTS:
        lines = list(lines_of(folder / f"{part}.vw"))
        cells = [[(int(name.rpartition("|")[2]) - 1, value) for name, value in features] for _, features in lines]
        d = d or 1 + max(j for row in cells for j, _ in row)
        rows = np.zeros((len(lines), d), np.float32)
        for row, values in zip(rows, cells, strict=True):
            for j, value in values:
                if j < d:  # a column that is 0 in all training rows tells nothing
                    row[j] = value
        yield rows, np.array([label for label, _ in lines])


def main() -> None:
    """Write the sets."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("sets", nargs="*", metavar="SET", choices=[*SETS, []], help="default: all")
    options.add_argument("--data", type=Path, metavar="DATA_DIR")
    options.add_argument("--out", type=Path, required=True, metavar="ROWS")
    given = options.parse_args()
    for name in given.sets or SETS:
        if name in CLUSTER_SETS:
            rows, label = clusters(name, TRAINED + TESTED, CLUSTERS, COLUMNS)
            parts: Iterator[Part] = iter(((rows[:TRAINED], label[:TRAINED]), (rows[TRAINED:], label[TRAINED:])))
        elif name == "digits":
            parts = digits()
        elif given.data is None:
            print(f"left out: {name}, which needs --data DATA_DIR", file=sys.stderr)
            continue
        else:
            with work_folder(None) as work:
                parts = iter(list(columns(prepare(given.data, name, work)[0])))
        for part, (rows, label) in zip(PARTS, parts, strict=True):
            save(given.out / name, part, rows, label)


if __name__ == "__main__":
    run(main)
