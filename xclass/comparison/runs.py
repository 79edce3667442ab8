"""Read what is compared: summaries of runs (`--summary`), or files of predictions with the labels of the data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..api import files
from ..array_types import Bools, Int64s
from ..data.class_names import Names
from ..errors import DataError, UsageError
from ..formats import detect
from ..run.results import outcomes, summary
from ..system import bounded_json
from ..text import parser, reader

BEGINNING = b"{"  # of a summary; a class could begin with it, but then the file is no JSON


class Run(NamedTuple):
    """Hold what is known of a run."""

    path: str
    error: float | None  # share of wrong answers, or the average loss of a run whose labels are numbers
    examples: int
    wrong: Bools | None  # bool[n], None if it is not known which examples were wrong
    labels: str  # equal for runs over the same examples
    figures: dict[str, float]  # further figures: log_loss, seconds, ...
    reduction: str  # empty if it is not known
    options: dict[str, Any]


class Labels(NamedTuple):
    """Hold the labels of the data that predictions are compared with."""

    path: str
    label: Int64s  # int64[n], number of the text of each label, -1 for an example without a label
    texts: list[str]  # the texts, by number


def is_summary(path: str) -> bool:
    """Return whether a file begins as a summary does.

    Raises
    ------
    DataError
        if it cannot be read.
    """
    return _read(path, 1) == BEGINNING


def read_summary(path: str) -> Run:
    """Return the run that a summary describes.

    Raises
    ------
    DataError
        if the file cannot be read or is not a summary.
    """
    record = bounded_json.read(path, summary.SHAPE, "give a file that --summary has written")
    wrong, labels = None, ""
    if record["outcomes"] is not None:
        labels = record["outcomes"]["labels"]
        try:
            wrong = outcomes.wrong_of(record["outcomes"])
        except ValueError as problem:
            raise DataError(f"{path}: outcomes.wrong is damaged ({problem}); write the summary again") from None
    error = record["average_loss"] if wrong is None else float(wrong.mean())
    numbers = {**record["figures"], **{name: record[name] for name in ("seconds", "cpu_seconds")}}
    numbers["peak_memory_mb"] = record["peak_memory_bytes"] / 2**20
    figures = {name: float(value) for name, value in numbers.items() if value is not None}
    count = record["examples"] if wrong is None else len(wrong)
    error = None if error is None else float(error)
    return Run(path, error, count, wrong, labels, figures, record["reduction"], record["options"])


def read_labels(source: reader.Options) -> Labels:
    """Return the labels of data files.

    Raises
    ------
    DataError
        if it cannot be read, or has no examples with labels.
    """
    path = " ".join(source.data)
    names = Names((), growing=True)
    batches = reader.Reader(
        source, parser.Options(learn_names=True), files.HASH_BITS, True, names=names, choose=detect.chooser(source)
    )
    labels = [batch.label.copy() for batch in batches]
    label = np.concatenate([np.empty(0), *labels])
    if np.isnan(label).all():
        raise DataError(f"{path}: there are no labels to compare predictions with")
    return Labels(path, np.where(np.isnan(label), 0, label).astype(np.int64) - 1, names.names)


def read_predictions(path: str, labels: Labels) -> Run:
    """Return the run that has written a file of predictions, one line for each example of the data.

    Raises
    ------
    DataError
        if the file cannot be read, or does not have a line for each example.
    """
    lines = _read(path, None).decode("utf-8", "surrogateescape").split("\n")
    if lines[-1] == "":
        lines.pop()
    if len(lines) != len(labels.label):
        raise DataError(
            f"{path}: there are {len(lines)} predictions, but {labels.path} has {len(labels.label)} examples; give the "
            "data that were predicted"
        )
    wrong = np.array([_answer(line) != labels.texts[y] for line, y in zip(lines, labels.label.tolist(), strict=True)])
    wrong = wrong[labels.label >= 0]
    return Run(path, float(wrong.mean()), len(wrong), wrong, labels.path, {}, "", {})


def _answer(line: str) -> str:
    """Return the predicted class of a line of -p: `17 tag`, or `17:0.61 4:0.2 0:0.19 tag` with --top_k.

    With --probabilities, whose pairs are not sorted, it is the class with the highest probability.
    """
    words = line.split(" ")
    pairs = [word.rpartition(":") for word in words]
    listed = [(text, float(p)) for text, colon, p in pairs if colon and _is_number(p)]
    if not listed or not (len(words) > 1 and pairs[1][1] and _is_number(pairs[1][2])):
        return words[0]
    classes = [pair for pair in listed if pair[0] != "0"]
    return max(classes, key=lambda pair: pair[1])[0] if classes else ""


def _is_number(text: str) -> bool:
    """Return whether a text is a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def _read(path: str, size: int | None) -> bytes:
    """Return the first `size` bytes of a file, or all."""
    try:
        with open(path, "rb") as file:
            return file.read() if size is None else file.read(size)
    except OSError as error:
        raise DataError(f"{path}: the file cannot be read: {error.strerror}") from None


def check_same_kind(paths: list[str], data: Sequence[str]) -> bool:
    """Return whether the files are summaries; they are predictions otherwise.

    Raises
    ------
    UsageError
        if there are both, or if the data of predictions are missing.
    """
    kinds = [is_summary(path) for path in paths]
    if all(kinds):
        if data:
            raise UsageError(
                "-d gives the labels for files of predictions, but these files are summaries; leave it out"
            )
        return True
    if any(kinds):
        one, other = paths[kinds.index(True)], paths[kinds.index(False)]
        raise UsageError(f"{one} is a summary, but {other} is not; compare files of one kind")
    if not data:
        raise UsageError(
            f"{paths[0]} is not a summary; to compare predictions, give the data that were predicted with -d"
        )
    return False
