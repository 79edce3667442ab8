"""Measure the speed of reading data formats, xclass beside scikit-learn and fastText, and print one table.

    python -m scripts.bench.formats DATA_DIR --sets wordnet

The examples of each set (DATA_DIR/SET/train.vw.gz, as in compare.py) are written in every format: the features of a
line, without their namespaces, as words, as numbers with values, and as cells. The formats differ in what they can say:
LIBSVM and the repository's format number the features (in order, a repeated one once), CSV has two columns, the label
and the words.

xclass parses a file to its end, hashes its features and numbers its labels, and drops the batches.
scikit-learn is `load_svmlight_file`, which keeps all in memory. fastText has no call that only reads:
`train_supervised` with one epoch, one dimension, one bucket and one thread reads the file twice, first to count its
words, and then learns a vector of one number for each of them. Packages that are missing are left out. Files are in
the cache of the system; each figure is the best of --repetitions, in bytes of the file and seconds of processor time of
all threads.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import os
import time
from collections.abc import Callable
from pathlib import Path

from scripts.lib import command_line
from scripts.lib.command_line import work_folder

FORMATS = ("vw", "fasttext", "libsvm", "xmc", "csv", "jsonl")


def written(source: Path, folder: Path, most: int) -> dict[str, Path]:
    """Write the first `most` examples of VW text in every format, and return the files."""
    labels: dict[str, int] = {}
    names: dict[str, int] = {}
    rows: list[tuple[str, list[tuple[str, str]]]] = []
    with gzip.open(source, "rt", encoding="utf-8", errors="surrogateescape") as file:
        for line in file:
            head, _, rest = line.partition("|")
            words = [word for part in rest.split("|") for word in part.split(" ")[1:] if word.strip()]
            pairs = [(word.strip().partition(":")[0], word.strip().partition(":")[2] or "1") for word in words]
            rows.append((head.split()[0] if head.split() else "0", pairs))
            if len(rows) == most:
                break
    for label, pairs in rows:
        labels.setdefault(label, len(labels))
        for name, _ in pairs:
            names.setdefault(name, len(names))
    files = {kind: folder / f"{source.parent.name}.{kind}" for kind in FORMATS}
    out = {
        kind: open(path, "w", encoding="utf-8", errors="surrogateescape", newline="")  # noqa: SIM115 (closed below)
        for kind, path in files.items()
    }
    out["xmc"].write(f"{len(rows)} {len(names)} {len(labels)}\n")
    table = csv.writer(out["csv"], lineterminator="\n")
    table.writerow(["label", "text"])
    for label, pairs in rows:
        words = " ".join(name for name, _ in pairs)
        once = {names[name]: value for name, value in pairs}
        numbered = " ".join(f"{j}:{once[j]}" for j in sorted(once))
        out["vw"].write(f"{label} | {' '.join(f'{name}:{v}' if v != '1' else name for name, v in pairs)}\n")
        out["fasttext"].write(f"__label__{label} {words}\n")
        out["libsvm"].write(f"{labels[label] + 1} {numbered}\n")
        out["xmc"].write(f"{labels[label]} {numbered}\n")
        table.writerow([label, words])
        out["jsonl"].write(json.dumps({"label": label, "text": words}, ensure_ascii=False) + "\n")
    for file in out.values():
        file.close()
    return files


def read_xclass(kind: str) -> Callable[[str], None]:
    """Return a function that reads a file of a format with xclass."""
    from xclass.formats import detect
    from xclass.kernels import jit
    from xclass.text import parser, reader

    jit.activate(hide_scipy=False)

    def read(path: str) -> None:
        options = reader.Options(data=(path,), format=kind)
        parse = parser.Options(learn_names=kind != "libsvm")
        for _ in reader.Reader(options, parse, 24, "multiclass", choose=detect.chooser(options)):
            pass

    return read


def peers() -> dict[str, tuple[str, Callable[[str], object]]]:
    """Return the other readers that are installed: format -> name and function."""
    found: dict[str, tuple[str, Callable[[str], object]]] = {}
    try:
        from sklearn.datasets import load_svmlight_file

        found["libsvm"] = "scikit-learn", load_svmlight_file
    except ImportError:
        pass
    try:
        import fasttext

        found["fasttext"] = (
            "fastText",
            lambda path: fasttext.train_supervised(path, epoch=1, dim=1, bucket=1, thread=1, verbose=0, loss="hs"),
        )
    except ImportError:
        pass
    return found


def speed(read: Callable[[str], object], path: Path, repetitions: int) -> float:
    """Return the speed of reading in MB per second of processor time, the best of several."""
    best = float("inf")
    for _ in range(repetitions):
        begin = time.process_time()
        read(str(path))
        best = min(best, time.process_time() - begin)
    return path.stat().st_size / 1e6 / best


def table(figures: list[tuple[str, str, float, float, str, float]]) -> list[str]:
    """Return the figures as a table in Markdown: set, format, MB, speed of xclass, other reader and its speed."""
    lines = ["| set | format | MB | xclass, MB/s | another reader, MB/s |", "| --- | --- | --: | --: | --: |"]
    for name, kind, size, ours, other, theirs in figures:
        beside = f"{other}: {theirs:.0f}" if other else ""
        lines.append(f"| {name} | {kind} | {size:.1f} | {ours:.0f} | {beside} |")
    return lines


def main() -> None:
    """Measure every format of every set, and print the table."""
    found = command_line.with_data(
        argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    )
    found.add_argument("--work", type=Path, metavar="DIR", help="for the files; a temporary one by default")
    found.add_argument("--lines", type=int, default=500_000, help="examples of each set, at most (default: 500000)")
    found.add_argument("--repetitions", type=int, default=5, help="times each file is read (default: 5)")
    given = found.parse_args()
    figures = []
    others = peers()
    with work_folder(given.work) as work:
        for name in given.sets or sorted(os.listdir(given.data_dir)):
            files = written(given.data_dir / name / "train.vw.gz", work, given.lines)
            for kind, path in files.items():
                other, read = others.get(kind, ("", None))
                ours = speed(read_xclass(kind), path, given.repetitions)
                theirs = speed(read, path, given.repetitions) if read is not None else 0.0
                figures.append((name, kind, path.stat().st_size / 1e6, ours, other, theirs))
    print("\n".join(table(figures)))


if __name__ == "__main__":
    command_line.run(main)
