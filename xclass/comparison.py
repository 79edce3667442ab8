"""Compare the errors of runs over the same examples (`xclass compare`).

What is compared are summaries of runs (`--summary`), or files of predictions with the labels of the data.

Source    McNemar, "Note on the sampling error of the difference between correlated proportions or percentages",
          Psychometrika 12 (1947), in its exact form: of the examples on which only one of the two runs is wrong, the
          share of each run has a binomial distribution with probability 1/2 if both err equally often.
          Efron and Tibshirani, "An Introduction to the Bootstrap" (1993): percentile interval of the difference. To
          draw examples with replacement is to draw the numbers of examples on which only the first run, only the
          second run, or both or neither are wrong from a multinomial distribution.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from operator import itemgetter
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from .api import files
from .array_types import Bools, Int64s
from .data.class_names import OTHER_FORM, Names, key_of, number_of, whole_number
from .errors import DataError, UsageError
from .formats import detect
from .run.results import outcomes, summary
from .system import bounded_json, streams
from .text import malformed, parser, reader

NUMBER = re.compile(r"-?(?:[0-9]+(?:\.[0-9]*)?(?:e[+-]?[0-9]+)?|inf|nan)")  # in a list of classes
CURE = "give files that --summary or -p has written"
BEGINNING = b"{"  # of a summary; a class could begin with it, but then the file is no JSON
FIGURES = (  # figure, heading, format
    ("log_loss", "log loss", ".4f"),
    ("calibration_error", "calibration", ".4f"),
    *((f"precision_at_{k}", f"P@{k}", ".4f") for k in (1, 3, 5)),
    ("psp_at_5", "PSP@5", ".4f"),
    ("micro_f1", "micro F1", ".4f"),
    ("seconds", "seconds", ".2f"),
    ("cpu_seconds", "CPU s", ".2f"),
    ("peak_memory_mb", "peak MB", ".0f"),
)
NOT_COMPARED = {  # options that name files or concern only the output and the number of threads
    "data", "final_regressor", "initial_regressor", "predictions", "raw_predictions", "summary", "curve", "per_class",
    "errors", "quiet", "most_errors", "progress", "timing", "threads",
}  # fmt: skip
SCHEMA = "xclass comparison 1"
MOST_CLASSES = 10  # classes that are listed
RESAMPLES = 10_000  # of the bootstrap
SEED = 0


# -- reading


class ComparedRun(NamedTuple):
    """Hold what is known of a run."""

    path: str
    error: float | None  # share of wrong answers, or the average loss of a run whose labels are numbers
    examples: int
    wrong: Bools | None  # bool[n], None if it is not known which examples were wrong
    labels: str  # equal for runs over the same examples
    figures: dict[str, float]  # further figures: log_loss, seconds, ...
    reduction: str  # empty if it is not known
    options: dict[str, Any]


class DataLabels(NamedTuple):
    """Hold the labels of the data that predictions are compared with."""

    path: str
    label: Int64s  # int64[n], number of the text of each label, -1 for an example without a label
    texts: list[str]  # the texts, by number
    tags: list[str]  # tag of each example, empty for none


def read_summary(path: str) -> ComparedRun:
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
    return ComparedRun(path, error, count, wrong, labels, figures, record["reduction"], record["options"])


def read_labels(source: reader.ReaderOptions) -> DataLabels:
    path = " ".join(source.data)
    names = Names((), growing=True)
    of_lines = parser.Parser(parser.ParserOptions(learn_names=True), files.HASH_BITS, "multiclass", names=names)
    batches = reader.Reader(source, of_lines, choose=detect.chooser(source))
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
    return DataLabels(path, np.where(np.isnan(label), 0, label).astype(np.int64) - 1, names.names, tags)


def read_predictions(path: str, labels: DataLabels) -> ComparedRun:
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
    return ComparedRun(path, float(wrong.mean()), len(wrong), wrong, labels.path, {}, "", {})


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
    zeros = {text: whole_number(text) for text, n in zip(texts, numbers, strict=True) if n == OTHER_FORM}
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


# -- testing


class Difference(NamedTuple):
    """Hold the difference in error of two runs, the second minus the first."""

    difference: float
    low: float  # of the confidence interval
    high: float
    p: float  # of a two-sided test of equal errors


def paired(first: Bools, second: Bools, confidence: float) -> Difference:
    """Compare two runs over the same examples, n > 0; bool[n] `first` and `second` say where each run is wrong."""
    n = len(first)
    only_first, only_second = int(np.count_nonzero(first & ~second)), int(np.count_nonzero(second & ~first))
    shares = np.array([only_first, only_second, n - only_first - only_second]) / n
    drawn = np.random.default_rng(SEED).multinomial(n, shares, RESAMPLES)
    differences = (drawn[:, 1] - drawn[:, 0]) / n
    low, high = np.quantile(differences, ((1 - confidence) / 2, (1 + confidence) / 2))
    return Difference((only_second - only_first) / n, float(low), float(high), mcnemar(only_first, only_second))


def mcnemar(only_first: int, only_second: int) -> float:
    """Return the p value of McNemar's exact test.

    The arguments are the numbers of examples on which only the first, only the second run is wrong.
    """
    n, k = only_first + only_second, min(only_first, only_second)
    if 2 * k >= n - 1:  # the most even split
        return 1.0
    i = np.arange(1, k + 1)
    log_choose = np.concatenate(([0.0], np.cumsum(np.log(n - i + 1) - np.log(i))))  # log of n over 0, 1, ..., k
    top = log_choose.max()
    log_tail = top + math.log(float(np.exp(log_choose - top).sum())) - n * math.log(2)
    return min(1.0, 2 * math.exp(log_tail))


def independent(errors: tuple[float, float], examples: tuple[int, int], confidence: float) -> Difference:
    """Compare the errors of two runs over different examples, whose numbers are above 0, by normal approximation."""
    difference = errors[1] - errors[0]
    deviation = math.sqrt(sum(p * (1 - p) / n for p, n in zip(errors, examples, strict=True)))
    if deviation == 0:
        return Difference(difference, difference, difference, 1.0 if difference == 0 else 0.0)
    margin = NormalDist().inv_cdf((1 + confidence) / 2) * deviation
    p = math.erfc(abs(difference) / deviation / math.sqrt(2))
    return Difference(difference, difference - margin, difference + margin, p)


class Comparison(NamedTuple):
    """Hold the difference of a run from the first one."""

    run: ComparedRun
    difference: Difference | None  # None if either has no error
    is_paired: bool  # whether both had the same examples


def compare(runs: Sequence[ComparedRun], confidence: float) -> list[Comparison]:
    """Compare each run with the first; the first itself is left out."""
    first = runs[0]
    results = []
    for run in runs[1:]:
        if first.wrong is None or run.wrong is None:
            results.append(Comparison(run, None, False))
        elif first.labels == run.labels and len(first.wrong) == len(run.wrong):
            results.append(Comparison(run, paired(first.wrong, run.wrong, confidence), True))
        else:
            errors = float(first.wrong.mean()), float(run.wrong.mean())
            sizes = len(first.wrong), len(run.wrong)
            results.append(Comparison(run, independent(errors, sizes, confidence), False))
    return results


def is_worse(comparison: Comparison, alpha: float, tolerance: float) -> bool:
    """Return whether the error is higher by more than `tolerance`, and not by chance with significance `alpha`."""
    known = comparison.difference
    return known is not None and known.difference > tolerance and known.p < alpha


# -- writing


def lines(runs: Sequence[ComparedRun], comparisons: Sequence[Comparison], confidence: float) -> list[str]:
    """Return the table of figures and differences, and notes about it."""
    shown = [entry for entry in FIGURES if any(entry[0] in run.figures for run in runs)]
    header = ["run", "examples", "error", *(heading for _, heading, _ in shown), "difference"]
    table = [[*header, f"{confidence:.0%} interval".replace("%", " %"), "p"]]
    for run, comparison in zip(runs, [None, *comparisons], strict=True):
        cells = [run.path, f"{run.examples}", "" if run.error is None else f"{run.error:.4f}"]
        cells += [format(run.figures[name], form) if name in run.figures else "" for name, _, form in shown]
        known = None if comparison is None else comparison.difference
        if known is None:
            cells += ["", "", ""]
        else:
            cells += [f"{known.difference:+.4f}", f"{known.low:+.4f} to {known.high:+.4f}", f"{known.p:.2g}"]
        table.append(cells)
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    text = [
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip() for row in table
    ]  # fmt: skip
    for comparison in comparisons:
        if comparison.difference is None:
            text.append(f"{comparison.run.path}: the runs have no outcomes by example, so the difference is not tested")
        elif not comparison.is_paired:
            text.append(
                f"{comparison.run.path}: the examples are not those of {runs[0].path}, so both are treated as "
                "independent samples"
            )
        if comparison.difference is not None:
            text += [_sentence(comparison, runs[0], confidence), *_log_loss_sentence(comparison, runs[0])]
    if len(comparisons) > 1:
        text.append(
            f"{len(comparisons)} runs are each compared with the first: for a significance of {1 - confidence:.2g} in "
            f"all, p has to be below {(1 - confidence) / len(comparisons):.2g} (Bonferroni)"
        )
    return text + _options(runs)


def _sentence(comparison: Comparison, first: ComparedRun, confidence: float) -> str:
    known = comparison.difference
    assert known is not None
    path = comparison.run.path
    if known.difference == 0:
        return f"{path} has the same error as {first.path}"
    better = "more" if known.difference > 0 else "fewer"
    chance = "more than chance" if known.p < 1 - confidence else "which may be chance"
    points = f"{100 * abs(known.difference):.2g} points {better} errors"
    return f"{path} has {points} than {first.path}: {chance} (p = {known.p:.2g})"


def _log_loss_sentence(comparison: Comparison, first: ComparedRun) -> list[str]:
    """Return a sentence if the error and the log loss move in opposite directions, else nothing."""
    name, known = "log_loss", comparison.difference
    if known is None or name not in first.figures or name not in comparison.run.figures:
        return []
    before, after = first.figures[name], comparison.run.figures[name]
    if not known.difference * (after - before) < 0:  # also if one is not a number
        return []
    return [
        f"{comparison.run.path}: the log loss moves the other way, from {before:.4f} to {after:.4f}: the probabilities "
        f"are {'worse' if after > before else 'better'}"
    ]


def record(
    runs: Sequence[ComparedRun], comparisons: Sequence[Comparison], alpha: float, tolerance: float
) -> dict[str, object]:
    """Return the comparison as JSON values; docs/errors.md defines the keys."""
    return {
        "schema": SCHEMA,
        "alpha": alpha,
        "tolerance": tolerance,
        "runs": [
            {"path": run.path, "examples": run.examples, "error": run.error, "figures": run.figures} for run in runs
        ],
        "comparisons": [
            {
                "path": one.run.path,
                "paired": one.is_paired,
                **{name: getattr(one.difference, name, None) for name in Difference._fields},
                "worse": is_worse(one, alpha, tolerance),
            }
            for one in comparisons
        ],
    }


def _options(runs: Sequence[ComparedRun]) -> list[str]:
    shared = set.intersection(*(set(run.options) for run in runs)) - NOT_COMPARED
    values = {"reduction": [run.reduction for run in runs]}
    values.update({f"--{name}": [_value(run.options[name]) for run in runs] for name in sorted(shared)})
    return [f"{name}: {', '.join(texts)}" for name, texts in values.items() if len(set(texts)) > 1]


def _value(value: object) -> str:
    if value is None or value == []:
        return "none"
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


def class_lines(runs: Sequence[ComparedRun], labels: DataLabels) -> list[str]:
    """Return for each run but the first the classes whose numbers of errors differ most from the first run's."""
    label = labels.label[labels.label >= 0]
    k = len(labels.texts)
    examples = np.bincount(label, minlength=k)
    text = []
    first = runs[0]
    for run in runs[1:]:
        assert first.wrong is not None and run.wrong is not None  # runs with labels have them
        before, after = (np.bincount(label, wrong, k) for wrong in (first.wrong, run.wrong))
        change = after - before
        order = np.lexsort((np.arange(k), -np.abs(change)))[:MOST_CLASSES]
        order = order[change[order] != 0]
        if not len(order):
            continue
        text += ["", f"classes whose errors differ most between {first.path} and {run.path}, each tested alone:"]
        for y in order.tolist():
            chosen = label == y
            p = paired(first.wrong[chosen], run.wrong[chosen], 0.95).p
            text.append(
                f"  {labels.texts[y]}: {before[y]:.0f} and {after[y]:.0f} errors of {examples[y]} examples, p = {p:.2g}"
            )
    return text
