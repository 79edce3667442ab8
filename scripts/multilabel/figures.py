"""What `--multilabel` reaches beyond precision: other measures, calibration, threshold, new labels, time an example.

    python -m scripts.multilabel.figures measures DATA_DIR --sets ml_bibtex,ml_cooking
    python -m scripts.multilabel.figures new_labels DATA_DIR --sets ml_debdeps
    python -m scripts.multilabel.figures prediction DATA_DIR --sets ml_debdeps
    python -m scripts.multilabel.figures classes --classes 1000,10000,100000,1000000

Data as in multilabel.py. Prints a Markdown table:
* measures: one pass with `--threshold auto`. nDCG and propensity-scored precision at 5 are those of the summary. The
  calibration error is the mean difference between the probabilities of all ranked labels (at most 64 an example) and
  how often they are right, in bins of .1. Micro F1 is that at the automatic threshold, and the best one of the test
  file at thresholds in steps of 1/64;
* new_labels: each label belongs to a random third, and examples come by the highest third of their labels, so that
  each third brings new labels. Precision with and without the number of labels, and in the order of the file;
* prediction: microseconds of CPU time per example, the five best labels written to a file;
* classes: the same in learning and in predicting, on streams. An example has 3 labels, of frequencies i^-.8, and 30
  words: 3 of the 6 words of each label, and 21 that tell nothing.
Times are those of a whole process less those of one over the first half of its file.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from scripts.lib import papers
from scripts.lib.command_line import names, numbers, run, work_folder
from scripts.lib.data_sets import WARM_UP_LINES, prepare
from scripts.lib.processes import TOOLS, measure
from scripts.lib.results import number, table
from scripts.multilabel.lists import RANKS, calibration_error, labels_of, micro_f1, precision, read_lists

XCLASS = TOOLS["xclass"]
LISTED, STEPS = 64, 64
THIRDS, SEED = 3, 1
LABELS, WORDS, OWN, KEPT = 3, 30, 6, 3  # of an example; of a label, and how many of them an example has
NOISE = 50_000  # words that tell nothing
EXPONENT = 0.8
PREDICT = ["-t", "-i", "m", "-p", "predictions", "--threshold", "0"]
FIVE = [*PREDICT, "--top_k", str(RANKS[-1])]


def main() -> None:
    """Measure what the first word says and print the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("what", choices=[*TABLES, "classes"])
    options.add_argument("data_dir", type=Path, nargs="?")
    options.add_argument("--sets", type=names, default=[])
    options.add_argument("--classes", type=numbers, default=[1000, 10_000, 100_000, 1_000_000])
    options.add_argument("--examples", type=int, default=100_000, help="of a stream (default: 100,000)")
    options.add_argument("--work", type=Path)
    given = options.parse_args()
    if (given.what != "classes") != bool(given.data_dir and given.sets):
        options.error("DATA_DIR and --sets belong to all but `classes`")
    with work_folder(given.work) as work:
        if given.what == "classes":
            heads = ["K", "labels learned", "learning, us", "predicting, us", "P@1", "MB"]
            found = (of_stream(work, int(classes), given.examples) for classes in given.classes)
        else:
            heads, rows = TABLES[given.what]
            found = itertools.chain.from_iterable(
                rows(name, *prepare(given.data_dir, name, work)) for name in given.sets
            )
        print(table(heads, found))


def measures(name: str, folder: Path, classes: int) -> Iterator[list[str]]:
    """Yield the row of a set."""
    train = ["-d", "train.vw", "--multilabel", str(classes), "--threshold", "auto", "-f", "m"]
    measure([*XCLASS, *train], folder)
    summary = measure([*XCLASS, "-t", "-i", "m", "-d", "test.vw"], folder).stderr
    ranked = lists(folder, LISTED)
    true = [labels_of(line) for line in (folder / "test.vw").read_bytes().splitlines()]
    pairs = [(p, label in own) for own, listed in zip(true, ranked, strict=True) for label, p in listed]
    p, right = np.array([p for p, _ in pairs]), np.array([own for _, own in pairs], float)
    scores = [micro_f1(p, right, sum(map(len, true)), step / STEPS) for step in range(1, STEPS)]
    best = int(np.argmax(scores))
    shares = precision(true, [[label for label, _ in listed[: RANKS[-1]]] for listed in ranked])
    found = [" / ".join(f"{100 * share:.2f}" for share in shares)]
    found += [f"{papers.measured(summary, measure):.2f}" for measure in ("ndcg5", "psp5")]
    found += [f"{calibration_error(p, right):.4f}", f"{100 * number(summary, '^micro F1 ='):.1f}"]
    yield [name, *found, f"{100 * scores[best]:.1f} ({(best + 1) / STEPS:.3f})"]


def new_labels(name: str, folder: Path, classes: int) -> Iterator[list[str]]:
    """Yield a row for each order of the examples and each number of labels that is given."""
    lines = (folder / "train.vw").read_bytes().splitlines(keepends=True)
    third = np.random.default_rng(SEED).permutation(np.arange(classes) % THIRDS)
    key = [
        max((third[int(label)] for label in labels_of(line)), default=THIRDS * i // len(lines))
        for i, line in enumerate(lines)
    ]
    order = np.argsort(key, kind="stable")
    (folder / "thirds.vw").write_bytes(b"".join(lines[i] for i in order))
    true = [labels_of(line) for line in (folder / "test.vw").read_bytes().splitlines()]
    for file, given in (("thirds.vw", ""), ("thirds.vw", str(classes)), ("train.vw", "")):
        measure([*XCLASS, "-d", file, "--multilabel", *([given] if given else []), "-f", "m"], folder)
        shares = precision(true, [[label for label, _ in listed] for listed in lists(folder, RANKS[-1])])
        yield [name, "thirds" if file == "thirds.vw" else "as it is", given, *(f"{100 * p:.2f}" for p in shares)]


def prediction(name: str, folder: Path, classes: int) -> Iterator[list[str]]:
    """Yield the row of a set."""
    measure([*XCLASS, "-d", "train.vw", "--multilabel", str(classes), "-f", "m"], folder)
    yield [name, f"{classes:,}", f"{per_example(folder, FIVE, 'test.vw')[0]:.0f}"]


def of_stream(work: Path, classes: int, examples: int) -> list[str]:
    """Return the row of a stream."""
    folder = work / f"lists_{classes}_{examples}"
    folder.mkdir(exist_ok=True)
    for seed, part in enumerate(("train.vw", "test.vw")):
        write_lists(folder / part, seed, classes, examples)
    learned = {label for line in (folder / "train.vw").read_bytes().splitlines() for label in labels_of(line)}
    learning, memory = per_example(folder, ["--multilabel", str(classes), "-f", "m"], "train.vw")
    predicting, _ = per_example(folder, FIVE, "test.vw")
    true = [labels_of(line) for line in (folder / "test.vw").read_bytes().splitlines()]
    first = precision(true, [[label for label, _ in listed] for listed in read_lists(folder)])[0]
    times = f"{learning:.0f}", f"{predicting:.0f}"
    return [f"{classes:,}", f"{len(learned):,}", *times, f"{100 * first:.1f}", f"{memory / 1e6:.0f}"]


def write_lists(path: Path, seed: int, classes: int, examples: int) -> None:
    """Write a stream of examples with several labels; streams with different seeds have the same labels and words."""
    random = np.random.default_rng([seed, classes])
    cumulative = np.cumsum(np.arange(1, classes + 1) ** -EXPONENT)
    with open(path, "w", encoding="ascii") as file:
        for _ in range(examples):
            labels: dict[int, None] = {}
            while len(labels) < LABELS:
                labels[int(np.searchsorted(cumulative, random.random() * cumulative[-1]))] = None
            own = [OWN * label + word for label in labels for word in random.permutation(OWN)[:KEPT].tolist()]
            noise = (NOISE * random.random(WORDS - LABELS * KEPT) ** 3).astype(int).tolist()
            words = [f"w{word}" for word in own] + [f"z{word}" for word in noise]
            file.write(f"{','.join(map(str, labels))} | {' '.join(words)}\n")


def per_example(folder: Path, words: list[str], file: str) -> tuple[float, float]:
    """Return the microseconds per example, without those of starting, and the peak memory in bytes."""
    lines = (folder / file).read_bytes().splitlines(keepends=True)
    for name, count in (("few.vw", WARM_UP_LINES), ("half.vw", len(lines) // 2)):
        (folder / name).write_bytes(b"".join(lines[:count]))
    measure([*XCLASS, "-d", "few.vw", *words], folder)  # compiles the kernels
    half, whole = (measure([*XCLASS, "-d", name, *words], folder) for name in ("half.vw", file))
    return 1e6 * (whole.cpu - half.cpu) / (len(lines) - len(lines) // 2), whole.memory


def lists(folder: Path, count: int) -> list[list[tuple[bytes, float]]]:
    """Predict the test file; return the labels of each example with their probabilities, best first."""
    measure([*XCLASS, "-d", "test.vw", *PREDICT, "--top_k", str(count)], folder)
    return read_lists(folder)


TABLES = {
    "measures": (
        ["set", "P@1 / 3 / 5", "nDCG@5", "PSP@5", "calibration error", "micro F1, automatic", "best (threshold)"],
        measures,
    ),
    "new_labels": (["set", "order", "K", "P@1", "P@3", "P@5"], new_labels),
    "prediction": (["set", "K", "us an example"], prediction),
}

if __name__ == "__main__":
    run(main)
