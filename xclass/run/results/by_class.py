"""Count, for each class, the examples, the errors, and what the class was confused with (`--per_class`).

Idea      Examples are summed by pairs of label and answer. Everything else follows: the examples of a class are the
          pairs with its label, and its predictions are the pairs with its answer. Pairs are collected and added up when
          many have been collected, so the memory follows the number of different pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from ...array_types import Float64s, Int64s, UInt64s
from ...reductions.core.label_report import LabelReport
from .outcomes import Measured

COLUMNS = (
    "class", "examples", "weight", "errors", "precision", "recall", "mean_probability", "confused_with", "confused",
)  # fmt: skip
OF_LISTS = ("label", "weight", "predicted", "errors", "precision", "recall", "f1")  # and recall_at_1, ...
MOST_COLLECTED = 1 << 18  # pairs that are collected before they are added up
WEIGHT = 1  # column of `PairSums.sums`


class PairSums:
    """Sum examples by pairs of label and answer.

    After `added_up`, `pair` is uint64[p], label * 2**32 + answer, in rising order, and `sums` is float64[p, 4]:
    examples, weight, weight of the examples whose label has a probability, and the sum of that weight times the
    probability.
    """

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget all examples."""
        self.pair: UInt64s = np.empty(0, np.uint64)
        self.sums: Float64s = np.empty((0, 4))
        self._collected: list[tuple[UInt64s, Float64s]] = []
        self._size = 0

    def add(self, examples: Measured) -> None:
        """Add examples."""
        pair = (examples.label.astype(np.uint64) << np.uint64(32)) | examples.answer.astype(np.uint64)
        known = ~np.isnan(examples.label_probability)
        weight = examples.weight
        p = np.where(known, examples.label_probability, 0.0)
        self._collected.append((pair, np.stack((np.ones(len(pair)), weight, weight * known, weight * p), axis=1)))
        self._size += len(pair)
        if self._size > max(MOST_COLLECTED, len(self.pair)):
            self.added_up()

    def added_up(self) -> tuple[Int64s, Int64s]:
        """Add what was collected to `pair` and `sums`; return label and answer of each pair, int64[p] each."""
        pairs = np.concatenate([self.pair, *(pair for pair, _ in self._collected)])
        sums = np.concatenate([self.sums, *(sums for _, sums in self._collected)])
        self.pair, place = np.unique(pairs, return_inverse=True)
        self.sums = np.stack([np.bincount(place, column, len(self.pair)) for column in sums.T], axis=1)
        self._collected, self._size = [], 0
        label, answer = self.pair >> np.uint64(32), self.pair & np.uint64(2**32 - 1)
        return label.astype(np.int64), answer.astype(np.int64)


def rows(sums: PairSums, name: Callable[[int], str]) -> Iterator[list[str]]:
    """Yield the header and a row for each class that is a label or an answer, most errors first."""
    yield list(COLUMNS)
    label, answer = sums.added_up()
    classes, place = np.unique(np.concatenate((label, answer[answer > 0])), return_inverse=True)
    of_label = place[: len(label)]
    of_answer = np.full(len(label), -1)
    of_answer[answer > 0] = place[len(label) :]
    count, k = sums.sums, len(classes)
    examples, weight, known, probability = (np.bincount(of_label, column, k) for column in count.T)
    right = np.bincount(of_label, np.where(label == answer, count[:, WEIGHT], 0.0), k)
    predicted = np.bincount(of_answer[answer > 0], count[answer > 0, WEIGHT], k)
    errors = weight - right
    wrong = np.flatnonzero(label != answer)
    wrong = wrong[np.lexsort((answer[wrong], -count[wrong, WEIGHT], of_label[wrong]))]
    first = np.ones(len(wrong), bool)
    first[1:] = of_label[wrong][1:] != of_label[wrong][:-1]
    most_confused = dict(zip(of_label[wrong[first]].tolist(), wrong[first].tolist(), strict=True))
    for j in np.lexsort((classes, -examples, -errors)).tolist():
        confusion = most_confused.get(j)
        yield [
            name(int(classes[j])),
            f"{examples[j]:.0f}",
            f"{weight[j]:.9g}",
            f"{errors[j]:.9g}",
            _share(right[j], predicted[j]),
            _share(right[j], weight[j]),
            _share(probability[j], known[j]),
            "" if confusion is None else name(int(answer[confusion])),
            "" if confusion is None else f"{count[confusion, WEIGHT]:.9g}",
        ]


def label_rows(report: LabelReport, name: Callable[[int], str]) -> Iterator[list[str]]:
    """Yield the header and a row for each label that examples have or that is predicted for some, most errors first.

    An error is an example that has the label without getting it, or gets it without having it.
    """
    yield [*OF_LISTS, *(f"recall_at_{k}" for k in report.place)]
    true, predicted, right = report.sums.of_label.T
    errors = true + predicted - 2 * right
    for j in np.lexsort((np.arange(len(true)), -true, -errors)).tolist():
        if true[j] or predicted[j]:
            yield [
                name(j + report.lowest),
                *(f"{sums[j]:.9g}" for sums in (true, predicted, errors)),
                _share(right[j], predicted[j]),
                _share(right[j], true[j]),
                _share(2 * right[j], true[j] + predicted[j]),
                *(_share(found, true[j]) for found in report.sums.found[j]),
            ]


def _share(part: float, whole: float) -> str:
    return f"{part / whole:.6f}" if whole else ""
