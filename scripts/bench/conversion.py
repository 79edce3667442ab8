"""Time of converting a matrix into batches, as a share of the time of learning from it.

    python -m scripts.bench.conversion ../shared/data --sets panlex,ptb,spelling,wordnet --reductions multiclass,cpt

The training lines of a set become a matrix in compressed sparse rows, whose columns are the features that occur,
outside the clock. Learning is one pass of `Learner.learn_many` over the matrix; conversion is the same iteration over
batches without learning. Processor time of all threads, in seconds; microseconds are per example. Prints a Markdown
table.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np

import xclass
from scripts.lib.command_line import names, run


def matrix_of(path: Path, lines: int | None) -> tuple[SimpleNamespace, np.ndarray]:
    """Return the first lines of VW text as compressed sparse rows, without the constant, and their labels."""
    batches, count = [], 0
    for batch in xclass.read_vw(path, noconstant=True):
        batches.append(batch)
        count += batch.n
        if lines is not None and count >= lines:
            break
    index = np.concatenate([batch.index for batch in batches])
    value = np.concatenate([batch.value for batch in batches])
    sizes = np.concatenate([np.diff(batch.start) for batch in batches])
    _, column = np.unique(index, return_inverse=True)
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    rows = SimpleNamespace(indptr=indptr, indices=column.astype(np.int32), data=value)
    return rows, np.concatenate([batch.label for batch in batches])


def seconds_of_conversion(model: xclass.Learner, rows: SimpleNamespace, labels: np.ndarray) -> float:
    """Return the processor time of converting the rows into batches."""
    start = time.process_time()
    for _ in model.inputs.batches(rows, labels, learn=True):
        pass
    return time.process_time() - start


def row(name: str, reduction: str, rows: SimpleNamespace, labels: np.ndarray) -> str:
    """Return a line of the table."""
    classes = None if reduction in ("multiclass", "cpt", "hsm") else int(np.nanmax(labels))
    with xclass.Learner(reduction, classes, bits=22) as model:  # compiles the kernels
        few = SimpleNamespace(indptr=rows.indptr[:101], indices=rows.indices, data=rows.data)
        model.learn_many(few, labels[:100])
        model.predict_many(few)
    with xclass.Learner(reduction, classes, bits=24) as model:
        conversion = min(seconds_of_conversion(model, rows, labels) for _ in range(3))
        start = time.process_time()
        model.learn_many(rows, labels)
        learning = time.process_time() - start
    n, z = len(labels), int(rows.indptr[-1])
    return (
        f"| {name} | {n:,} | {z:,} | {reduction} | {conversion:.2f} ({1e6 * conversion / n:.2f} us) | {learning:.2f} | "
        f"{100 * conversion / learning:.1f} % |"
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="folder of the data sets")
    parser.add_argument("--sets", type=names, default=names("panlex,ptb,spelling,wordnet"))
    parser.add_argument("--reductions", type=names, default=names("multiclass,cpt,recall_tree,log_multi"))
    parser.add_argument("--lines", type=int, help="use only the first lines of each set")
    arguments = parser.parse_args()
    print("| set | examples | features | reduction | conversion s | learning s, conversion included | share |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name in arguments.sets:
        path = next(path for path in sorted((arguments.folder / name).iterdir()) if path.name.startswith("train.vw"))
        rows, labels = matrix_of(path, arguments.lines)
        for reduction in arguments.reductions:
            print(row(name, reduction, rows, labels), flush=True)


if __name__ == "__main__":
    sys.exit(run(main))
