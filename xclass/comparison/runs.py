"""Read what is compared: summaries of runs (`--summary`), or files of predictions with the labels of the data."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from ..api import files
from ..array_types import Bools, Int64s
from ..data.class_names import OTHER_FORM, Names, key_of, number_of
from ..errors import DataError, UsageError
from ..formats import detect
from ..run.results import outcomes, summary
from ..system import bounded_json, streams
from ..text import malformed, parser, reader

NUMBER = re.compile(r"-?(?:[0-9]+(?:\.[0-9]*)?(?:e[+-]?[0-9]+)?|inf|nan)")  # in a list of classes
CURE = "give files that --summary or -p has written"
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
    tags: list[str]  # tag of each example, empty for none


def read_summary(path: str) -> Run:
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
    path = " ".join(source.data)
    names = Names((), growing=True)
    batches = reader.Reader(
        source, parser.Options(learn_names=True), files.HASH_BITS, "multiclass", names=names,
        choose=detect.chooser(source),
    )  # fmt: skip
    found, tags = [np.empty(0)], list[str]()
    try:
        for batch in batches:
            found.append(batch.label.copy())
            ends = zip(batch.tag_start.tolist(), batch.tag_end.tolist(), strict=True)
            tags += [batch.text[low:high].tobytes().decode("utf-8", "surrogateescape") for low, high in ends]
    except DataError as error:
        if malformed.LEARN_LISTS not in str(error):
            raise
        raise DataError(
            f"{path}: the data have lists of labels; compare the runs by their summaries, which --summary FILE writes"
        ) from None
    label = np.concatenate(found)
    if np.isnan(label).all():
        raise DataError(f"{path}: there are no labels to compare predictions with")
    return Labels(path, np.where(np.isnan(label), 0, label).astype(np.int64) - 1, names.names, tags)


def read_predictions(path: str, labels: Labels) -> Run:
    """Return the run that has written a file of predictions, one line for each example of the data."""
    lines = streams.read_file(path, CURE, None).decode("utf-8", "surrogateescape").split("\n")
    if lines[-1] == "":
        lines.pop()
    if len(lines) != len(labels.label):
        raise DataError(
            f"{path}: there are {len(lines)} predictions, but {labels.path} has {len(labels.label)} examples; give the "
            "data that were predicted"
        )
    pairs = zip(lines, labels.tags, strict=True)
    answers = _answers([line.removesuffix(f" {tag}") if tag else line for line, tag in pairs], labels.texts)
    keys = _keys(labels.texts, set(answers))
    right = [keys[y] if y >= 0 else "" for y in labels.label.tolist()]
    wrong = np.array([answer != text for answer, text in zip(answers, right, strict=True)], bool)[labels.label >= 0]
    return Run(path, float(wrong.mean()), len(wrong), wrong, labels.path, {}, "", {})


def _answers(lines: list[str], texts: list[str]) -> list[str]:
    """Return the key of the class that each line of -p, without its tag, predicts; empty for none.

    If one of the lines is a label of the data (`texts`) or no list, all are classes. Else all are lists, as of --top_k,
    --probabilities and --scores: the class with the highest number is predicted, never the rest, which has no class.
    """
    lists = [_pairs(line) for line in lines]
    distinct = dict.fromkeys(lines)
    if None in lists or not any(distinct) or {key_of(line) for line in distinct} & set(map(key_of, texts)):
        keys = {line: key_of(line) for line in distinct}
        return [keys[line] for line in lines]
    return [key_of(max(pairs, key=itemgetter(1), default=("", 0.0))[0]) for pairs in lists if pairs is not None]


def _pairs(line: str) -> list[tuple[str, float]] | None:
    """Return the classes of a list `17:0.61 4:0.2 :0.19` with their numbers, None for a line that is no list."""
    pairs: list[tuple[str, float]] = []
    words: list[str] = []  # of a name with blanks
    for word in line.split(" ") if line else ():
        before, colon, number = word.rpartition(":")
        words.append(before if colon else word)
        if colon and NUMBER.fullmatch(number):
            pairs.append((" ".join(words), float(number)))
            words = []
        elif colon:
            words[-1] = word
    return None if words else [pair for pair in pairs if pair[0]]


def _keys(texts: list[str], answers: set[str]) -> list[str]:
    """Return the keys of the classes with these labels, as the learner that gave these answers writes them.

    If all answers are numbers of classes, `3.0` is the class 3, and so is `03`, unless another label is 3.
    """
    numbers = list(map(number_of, texts))
    if any(answer and str(number_of(answer)) != answer for answer in answers):
        return list(map(key_of, texts))
    others = [text for text, n in zip(texts, numbers, strict=True) if n == OTHER_FORM]
    zeros = {text: number_of(text.partition(".")[0].lstrip("+-0") or "0") for text in others}
    count = Counter([*numbers, *zeros.values()])
    return [
        str(zeros.get(text, n)) if n >= 0 or (n == OTHER_FORM and count[zeros[text]] == 1) else key_of(text)
        for text, n in zip(texts, numbers, strict=True)
    ]


def check_same_kind(paths: Sequence[str], data: Sequence[str]) -> bool:
    """Return whether the files are summaries; they are predictions otherwise."""
    kinds = [streams.read_file(path, CURE, first=len(BEGINNING)) == BEGINNING for path in paths]
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
