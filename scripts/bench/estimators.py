"""Compare XClassifier with estimators of other libraries, and its time with that of the command.

    python -m scripts.bench.estimators DATA_DIR --sets clinc150,reuters --beside panlex,ptb,spelling,wordnet

The first table has the test accuracy and the seconds of `fit` of XClassifier, VWMultiClassifier (oaa, logistic loss),
SGDClassifier (log_loss) and LogisticRegression. The second has the seconds of `XClassifier().fit` and those of the
command `xclass -d train.vw -f model`, a whole process, on the same data, in turn; the median of `--repetitions`, and
the processor's seconds, which depend less on what else the machine does. Matrices are made outside the clock, and
kernels are compiled before. VWMultiClassifier gets `convert_labels=False`, because its default turns all labels into
-1 and 1. Data as in compare.py. Needs `pip install vowpalwabbit scikit-learn`.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from scripts.lib import command_line
from scripts.lib.data_sets import prepare
from scripts.lib.peers import lines_of
from scripts.lib.processes import measure

PASSES = 5


class Problem(NamedTuple):
    """Hold a data set as sparse matrices and labels."""

    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray


def matrices(folder: Path) -> Problem:
    """Return the data set in a folder; columns are the features in the order in which they first occur."""
    from scipy.sparse import csr_matrix

    vocabulary: dict[str, int] = {}
    parts: list[tuple[Any, Any, Any, Any]] = []
    for file in ("train.vw", "test.vw"):
        labels, columns, values, start = [], [], [], [0]
        for label, features in lines_of(folder / file):
            labels.append(label)
            for name, value in features:
                columns.append(vocabulary.setdefault(name, len(vocabulary)))
                values.append(value)
            start.append(len(columns))
        parts.append((values, columns, start, labels))
    shaped = [
        (csr_matrix((np.array(v, np.float32), c, s), (len(s) - 1, len(vocabulary))), np.array(labels))
        for v, c, s, labels in parts
    ]
    return Problem(*shaped[0], *shaped[1])


def estimators(classes: int) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield the name of each estimator and a function that makes it."""
    from sklearn.linear_model import LogisticRegression, SGDClassifier

    from xclass.sklearn import XClassifier

    yield "XClassifier()", XClassifier
    yield f"XClassifier(passes={PASSES})", lambda: XClassifier(passes=PASSES)
    yield f'XClassifier("oaa", passes={PASSES})', lambda: XClassifier("oaa", passes=PASSES)
    try:
        from vowpalwabbit.sklearn_vw import VWMultiClassifier
    except ImportError:
        print("VWMultiClassifier is left out: pip install vowpalwabbit", file=sys.stderr)
    else:
        for passes in (1, PASSES):
            yield (
                f"VWMultiClassifier(oaa=K, passes={passes})",
                lambda passes=passes: VWMultiClassifier(
                    oaa=classes, loss_function="logistic", bit_precision=22, passes=passes, convert_labels=False
                ),
            )
    yield 'SGDClassifier("log_loss")', lambda: SGDClassifier(loss="log_loss", random_state=0)
    yield "LogisticRegression(C=10)", lambda: LogisticRegression(C=10, max_iter=1000)


def accuracy_table(data: Path, sets: list[str], work: Path) -> list[str]:
    """Return the lines of a table of test accuracies and seconds of `fit`."""
    cells: dict[str, list[str]] = {}
    for name in sets:
        folder, classes = prepare(data, name, work)
        problem = matrices(folder)
        for method, make in estimators(classes):
            make().fit(problem.X[:500], problem.y[:500])  # compiles
            begin = time.perf_counter()
            model = make().fit(problem.X, problem.y)
            seconds = time.perf_counter() - begin
            accuracy = float((np.asarray(model.predict(problem.X_test)) == problem.y_test).mean())
            cells.setdefault(method, []).append(f"{100 * accuracy:.1f} ({seconds:.1f})")
            print(f"{name} {method}: {cells[method][-1]}", file=sys.stderr, flush=True)
    return [
        "| accuracy % (s of `fit`) | " + " | ".join(sets) + " |",
        "| --- |" + " --: |" * len(sets),
        *(f"| `{method}` | {' | '.join(values)} |" for method, values in cells.items()),
    ]


def time_table(data: Path, sets: list[str], work: Path, repetitions: int) -> list[str]:
    """Return the lines of a table of the seconds of `fit` and of the command."""
    from xclass.sklearn import XClassifier

    lines = ["| set | `fit`, s | command, s | `fit`, processor s | command, processor s |", "| --- |" + " --: |" * 4]
    for name in sets:
        folder, _ = prepare(data, name, work)
        problem = matrices(folder)
        command = [sys.executable, "-m", "xclass", "--quiet", "-f", "model", "-d"]
        measure([*command, "few.vw"], folder)
        XClassifier().fit(problem.X[:500], problem.y[:500])
        fits, runs = [], []
        for _ in range(repetitions):
            begin = time.perf_counter(), time.process_time()
            XClassifier().fit(problem.X, problem.y)
            fits.append((time.perf_counter() - begin[0], time.process_time() - begin[1]))
            run = measure([*command, "train.vw"], folder)
            runs.append((run.wall, run.cpu))
        medians = [statistics.median(times[kind] for times in of) for kind in (0, 1) for of in (fits, runs)]
        lines.append(f"| {name} | " + " | ".join(f"{seconds:.1f}" for seconds in medians) + " |")
        print(lines[-1], file=sys.stderr, flush=True)
    return lines


def main() -> None:
    """Print the tables."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("data_dir", type=Path)
    options.add_argument("--sets", type=command_line.names, default=[], help="for the table of accuracies")
    options.add_argument("--beside", type=command_line.names, default=[], help="for the times beside the command")
    options.add_argument("--repetitions", type=int, default=3)
    options.add_argument("--work", type=Path, help="folder for the unpacked data; a temporary one by default")
    given = options.parse_args()
    with command_line.work_folder(given.work) as work:
        if given.sets:
            print("\n".join(accuracy_table(given.data_dir, given.sets, work)), flush=True)
        if given.beside:
            print("\n".join(["", *time_table(given.data_dir, given.beside, work, given.repetitions)]))


if __name__ == "__main__":
    command_line.run(main)
