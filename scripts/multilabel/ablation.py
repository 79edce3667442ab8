"""What each part of `--multilabel` is worth: progressive precision with one part switched off at a time.

    python -m scripts.multilabel.ablation DATA_DIR --sets ml_bibtex,ml_cooking

Data as in multilabel.py; only train.vw is read. Most parts have no option. They are switched off by replacing Python
functions that call kernels, or values that kernels read, so that no kernel is compiled anew; constants that are
compiled into kernels stay as they are. Prints a Markdown table, a row for each change: precision at 1 and 5 in percent
of the second half of the file, each example predicted before it is learned.
"""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from scripts.lib.command_line import print_changes, run
from scripts.lib.processes import BenchError
from scripts.multilabel.lists import RANKS, labels_of, precision, read_lists
from xclass.binary import document_frequency
from xclass.cli import command
from xclass.reductions.multiclass import feature_index
from xclass.reductions.multilabel import frequent, neighbours, ranking, reduction

Replace = Callable[[Any], Any]  # what is there -> what takes its place


def nothing(_: Any) -> Callable[..., None]:
    return lambda *_: None


def no_frequent(propose: Any) -> Any:
    """Leave out the most frequent labels, where not all labels are proposed."""

    def replaced(labels, batch, label, learns, again, begin, end, candidate, every) -> None:
        propose(labels, batch, label, learns, again, begin, end, candidate, every)
        candidate[begin:end][~every[begin:end]] = 0

    return replaced


def never_all(propose: Any) -> Any:
    """Propose the labels that were the most frequent ones when the batch began, however few labels there are."""

    def replaced(labels, batch, label, learns, again, begin, end, candidate, every) -> None:
        before = labels.frequent.copy()
        propose(labels, batch, label, learns, again, begin, end, candidate, every)
        candidate[begin:end] = 0
        candidate[begin:end, : len(before)], every[begin:end] = before, False

    return replaced


def fixed(first: dict[int, float | None]) -> Replace:
    """Let some of V and E keep given values, or those that they begin with."""

    def make(new_scorers: Any) -> Any:
        def replaced(*args: Any, **more: Any) -> ranking.Scorers:
            scorers = new_scorers(*args, **more)
            for number, value in first.items():
                scorers.state[:, number] = scorers.state[0, number] if value is None else value, np.inf
            return scorers

        return replaced

    return make


def fixed_biases(with_labels: Any) -> Any:
    def replaced(scorers: ranking.Scorers, labels: int) -> ranking.Scorers:
        scorers = with_labels(scorers, labels)
        scorers.bias_g[:] = np.inf
        return scorers

    return replaced


def of_batch(change: Replace) -> Replace:
    """Change the batch of weighted features."""

    def make(weighted_counts: Any) -> Any:
        def replaced(*args: Any) -> document_frequency.Weighted:
            weighted = weighted_counts(*args)
            return weighted._replace(batch=change(weighted.batch))

        return replaced

    return make


def one_block(batch: Any) -> Any:
    return batch._replace(
        group_first=np.arange(batch.n + 1, dtype=batch.group_first.dtype),
        group_start=batch.group_start[batch.group_first],
    )


def counts(batch: Any) -> Any:
    return batch._replace(value=np.sign(batch.value) * np.expm1(np.abs(batch.value)))


V = range(ranking.OPINIONS)
SCORE_ALONE = {number: float(number == ranking.SCORE) for number in V}
CHANGES: dict[str, tuple[str, list[tuple[Any, str, Replace]]]] = {  # name -> options; what is replaced, and by what
    "as it is": ("", []),
    "no near examples": ("", [(neighbours, "propose", nothing)]),
    "no index": ("", [(feature_index.FeatureIndex, "propose", nothing)]),
    "an index of 8 slots": ("", [(reduction, "SLOTS", lambda _: 8)]),
    "no frequent labels beyond 1024 labels": ("", [(frequent, "propose", no_frequent)]),
    "64 frequent labels, never all": ("", [(frequent, "propose", never_all)]),
    "V not learned": ("", [(ranking, "new_scorers", fixed(dict.fromkeys(V)))]),
    "ranked by scorers alone": ("", [(ranking, "new_scorers", fixed(SCORE_ALONE))]),
    "E = 1, not learned": ("", [(ranking, "new_scorers", fixed({ranking.EXPONENT: 1.0}))]),
    "E = 0: no idf": ("", [(ranking, "new_scorers", fixed({ranking.EXPONENT: 0.0}))]),
    "biases not learned": ("", [(ranking, "with_labels", fixed_biases)]),
    "namespaces not balanced": ("", [(document_frequency.Frequencies, "weighted_counts", of_batch(one_block))]),
    "counts instead of their logarithms": ("", [(document_frequency.Frequencies, "weighted_counts", of_batch(counts))]),
    "r = 1, not learned": ("--arow_r 1", []),
    "r = .3": ("--arow_r 0.3", []),
    "r = 3": ("--arow_r 3", []),
}


def main() -> None:
    """Run every change on every set and print the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--lines", type=int, help="number of lines of each training file that are read")
    print_changes(options, CHANGES, progressive)


def progressive(change: str, _: str, folder: Path, classes: int, given: argparse.Namespace) -> str:
    """Learn the training file once with a change; return the precision of its second half in percent."""
    words, replacements = CHANGES[change]
    with open(folder / "train.vw", "rb") as whole, open(folder / "learned.vw", "wb") as part:
        part.writelines(islice(whole, given.lines))
    arguments = ["-d", str(folder / "learned.vw"), "--multilabel", *words.split(), "--top_k", str(RANKS[-1])]
    arguments += ["--threshold", "0", "-p", str(folder / "predictions"), "--quiet"]
    with contextlib.ExitStack() as stack:
        for owner, name, make in replacements:
            stack.enter_context(mock.patch.object(owner, name, make(getattr(owner, name))))
        if status := command.status(arguments):
            raise BenchError(f"{change}: exit status {status}")
    true = [labels_of(line) for line in (folder / "learned.vw").read_bytes().splitlines()]
    ranked = [[label for label, _ in listed] for listed in read_lists(folder)]
    half = len(true) // 2
    shares = precision(true[half:], ranked[half:])
    return f"{100 * shares[0]:.1f} / {100 * shares[-1]:.1f}"


if __name__ == "__main__":
    run(main)
