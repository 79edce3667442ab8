"""Commands by which xclass and other tools train and test on one set, and the conversion of its data for them."""

from __future__ import annotations

import csv
import importlib.util
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

XCLASS, VW, NAPKIN, FASTTEXT, SKLEARN = "xclass", "VW", "napkinXC", "fastText", "scikit-learn"
ESTIMATOR, READING, CALLS = "estimator", "reading", "calls"
PACKAGES = {VW: "vowpalwabbit", NAPKIN: "napkinxc", FASTTEXT: "fasttext", SKLEARN: "sklearn", ESTIMATOR: "sklearn"}
CHILDREN = {  # file beside this one, and its first words
    NAPKIN: ("peer_process.py", "napkin"),
    FASTTEXT: ("peer_process.py", "fasttext"),
    SKLEARN: ("peer_sklearn.py",),
    ESTIMATOR: ("peer_process.py", "estimator"),
    READING: ("peer_process.py", "reading"),
    CALLS: ("peer_process.py", "calls"),
}
IN_ONE_STEP = (ESTIMATOR, READING, CALLS)  # tools that get the files of both parts in one process
ENDINGS = {NAPKIN: "svm", FASTTEXT: "words", SKLEARN: "svm", ESTIMATOR: "svm"}  # of what these make of VW text


# -- conversion of the data for other tools


def lines_of(source: Path) -> Iterator[tuple[int, list[tuple[str, float]]]]:
    """Yield the label and the features, as (`namespace|name`, value), of each line of VW text."""
    with open(source, encoding="utf-8", errors="surrogateescape") as lines:
        for line in lines:
            head, *spaces = line.split("|")
            if not head.split():
                continue
            features = []
            for space in spaces:
                words = space.split()
                name = words.pop(0) if words and not space[:1].isspace() else ""
                for word in words:
                    feature, _, value = word.partition(":")
                    features.append((f"{name}|{feature}", float(value or 1)))
            yield int(head.split()[0]), features


def to_fasttext(source: Path, target: Path) -> None:
    """Convert VW text to the format of fastText, with a word for each feature; values are lost."""
    with open(target, "w", encoding="utf-8", errors="surrogateescape") as out:
        for label, features in lines_of(source):
            out.write(f"__label__{label} {' '.join(name for name, _ in features)}\n")


def to_libsvm(source: Path, target: Path, vocabulary: dict[str, int], grow: bool) -> None:
    """Convert VW text to LIBSVM text; new features are added to the vocabulary with `grow`, and otherwise dropped."""
    with open(target, "w", encoding="ascii") as out:
        for label, features in lines_of(source):
            values: dict[int, float] = {}
            for name, value in features:
                j = vocabulary.get(name, -1)
                if j < 0 and grow:
                    j = vocabulary[name] = len(vocabulary) + 1
                if j >= 0:
                    values[j] = values.get(j, 0.0) + value
            cells = " ".join(f"{j}:{value:g}" for j, value in sorted(values.items()))
            out.write(f"{label} {cells}\n")


def to_texts(source: Path, target: Path) -> None:
    """Convert VW text to lines of JSON or to CSV, with the columns `label` and `text`, by the ending of the target."""
    with open(target, "w", encoding="utf-8", errors="surrogateescape", newline="") as out:
        table = csv.writer(out, lineterminator="\n")
        if target.suffix == ".csv":
            table.writerow(["label", "text"])
        for label, features in lines_of(source):
            text = " ".join(name.rpartition("|")[2] for name, _ in features)
            if target.suffix == ".csv":
                table.writerow([label, text])
            else:
                out.write(json.dumps({"label": label, "text": text}) + "\n")


def from_csv(source: Path, target: Path) -> None:
    """Convert a CSV file with the columns `label` and `text` to the format of fastText."""
    with open(source, newline="", encoding="utf-8") as file, open(target, "w", encoding="utf-8") as out:
        for label, text in list(csv.reader(file))[1:]:
            out.write(f"__label__{label} {' '.join(text.split())}\n")


def convert(tool: str, folder: Path, parts: Iterable[str], ending: str | None = None) -> None:
    """Convert parts of a folder, unless they are there, for a tool that does not read them, or to another format.

    Features that are not in the first part are left out of LIBSVM text.
    """
    vocabulary: dict[str, int] = {}
    ending = ending or ENDINGS.get(tool)
    for part in parts if ending not in (None, "vw", "npy") else ():
        source, target = folder / f"{part}.vw", folder / f"{part}.{ending}"
        if target.exists() and not vocabulary:
            return
        if ending == "svm":
            to_libsvm(source, target, vocabulary, not vocabulary)
        elif ending in ("csv", "jsonl"):
            to_texts(source, target)
        elif source.exists():
            to_fasttext(source, target)
        else:
            from_csv(folder / f"{part}.csv", target)


# -- commands


def child(tool: str, *words: str) -> list[str]:
    """Return the command of a child that trains or tests by a tool."""
    file, *first = CHILDREN[tool]
    return [sys.executable, str(Path(__file__).with_name(file)), *first, *words]


def missing(tool: str) -> bool:
    """Return whether the package of a tool is not installed."""
    return tool in PACKAGES and importlib.util.find_spec(PACKAGES[tool]) is None
