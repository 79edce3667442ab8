"""Compare runs with the first one, and write the comparison as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from . import significance
from .runs import Labels, Run
from .significance import Difference

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


class Comparison(NamedTuple):
    """Hold the difference of a run from the first one."""

    run: Run
    difference: Difference | None  # None if either has no error
    is_paired: bool  # whether both had the same examples


def compare(runs: Sequence[Run], confidence: float) -> list[Comparison]:
    """Compare each run with the first; the first itself is left out."""
    first = runs[0]
    results = []
    for run in runs[1:]:
        if first.wrong is None or run.wrong is None:
            results.append(Comparison(run, None, False))
        elif first.labels == run.labels and len(first.wrong) == len(run.wrong):
            results.append(Comparison(run, significance.paired(first.wrong, run.wrong, confidence), True))
        else:
            errors = float(first.wrong.mean()), float(run.wrong.mean())
            sizes = len(first.wrong), len(run.wrong)
            results.append(Comparison(run, significance.independent(errors, sizes, confidence), False))
    return results


def is_worse(comparison: Comparison, alpha: float, tolerance: float) -> bool:
    """Return whether the error is higher by more than `tolerance`, and not by chance with significance `alpha`."""
    known = comparison.difference
    return known is not None and known.difference > tolerance and known.p < alpha


def lines(runs: Sequence[Run], comparisons: Sequence[Comparison], confidence: float) -> list[str]:
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


def _sentence(comparison: Comparison, first: Run, confidence: float) -> str:
    known = comparison.difference
    assert known is not None
    path = comparison.run.path
    if known.difference == 0:
        return f"{path} has the same error as {first.path}"
    better = "more" if known.difference > 0 else "fewer"
    chance = "more than chance" if known.p < 1 - confidence else "which may be chance"
    points = f"{100 * abs(known.difference):.2g} points {better} errors"
    return f"{path} has {points} than {first.path}: {chance} (p = {known.p:.2g})"


def _log_loss_sentence(comparison: Comparison, first: Run) -> list[str]:
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


def record(runs: Sequence[Run], comparisons: Sequence[Comparison], alpha: float, tolerance: float) -> dict[str, object]:
    """Return the comparison as JSON values; docs/comparing.md defines the keys."""
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


def _options(runs: Sequence[Run]) -> list[str]:
    shared = set.intersection(*(set(run.options) for run in runs)) - NOT_COMPARED
    values = {"reduction": [run.reduction for run in runs]}
    values.update({f"--{name}": [_value(run.options[name]) for run in runs] for name in sorted(shared)})
    return [f"{name}: {', '.join(texts)}" for name, texts in values.items() if len(set(texts)) > 1]


def _value(value: object) -> str:
    if value is None or value == []:
        return "none"
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


def class_lines(runs: Sequence[Run], labels: Labels) -> list[str]:
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
            p = significance.paired(first.wrong[chosen], run.wrong[chosen], 0.95).p
            text.append(
                f"  {labels.texts[y]}: {before[y]:.0f} and {after[y]:.0f} errors of {examples[y]} examples, p = {p:.2g}"
            )
    return text
