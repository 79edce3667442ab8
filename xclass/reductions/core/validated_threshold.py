"""Choose by progressive validation the threshold above which labels are predicted (`--threshold auto`).

Idea      Before an example is learned, the probabilities of its labels are counted in bins, those of true labels and
          those of others. The counts give micro F1 and precision of every threshold between two bins. They are halved
          whenever the number of examples is a power of two, so that the predictions of a young model are forgotten.
          The threshold of an example follows from the examples before it, and so not from the size of batches.
Cost      O(BINS) for each example, and O(log labels of the example) for each probability above LEAST.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...array_types import Bools, Float32s, Float64s, Int, Int64s
from ...data.batch import Batch
from ...kernels.jit import bare, jit
from . import label_arrays, label_report
from .probabilities import ClassLists

BINS = 128  # of equal width; a threshold is the lower end of one
FIRST = 3  # bin of the lowest threshold; a lower one would list very many labels
LEAST = FIRST / BINS
TRUE, OTHER = range(2)  # rows of the counts: weight of the true labels with a probability in each bin, and of others
BEST_F1 = 0.0  # goal that is not a precision


def new_counts() -> Float64s:
    """Return float64[2, BINS + 1] without examples; the last column has the weight of all true labels, and the number
    of examples.
    """
    return np.zeros((2, BINS + 1))


@bare
def decided(counts: Float64s, goal: float) -> tuple[Int, float]:
    """Return the bin whose lower end is the threshold, and what `goal` asks for, micro F1 or precision, above it.

    It is the lowest threshold with the best micro F1, or the lowest one whose precision is at least `goal`, and the
    highest one if there is none. Without examples it is 0.5.
    """
    true = other = best = 0.0
    at: Int = BINS // 2 if counts[TRUE, BINS] == 0 and counts[OTHER, BINS] == 0 else BINS - 1
    for j in range(BINS - 1, FIRST - 1, -1):
        true += counts[TRUE, j]
        other += counts[OTHER, j]
        if goal == BEST_F1:
            f1 = 2 * true / (true + other + counts[TRUE, BINS]) if true > 0 else 0.0
            if f1 >= best and true > 0:
                best, at = f1, j
        elif true + other > 0 and (true >= goal * (true + other) or at == BINS - 1 == j):
            best, at = true / (true + other), j
    return at, best


@jit
def decide(counts: Float64s, goal: float) -> tuple[Int, float]:
    """Return what `decided` returns."""
    return decided(counts, goal)


@jit
def count(
    batch: Batch, label: Int64s, counted: Bools, start: Int64s, listed: Int64s, p: Float32s, goal: float,
    counts: Float64s, threshold: Float32s,
) -> None:  # fmt: skip
    """Set the threshold of each example, float32[n], and add to `counts` those that are `counted`, bool[n].

    `label` is as in `label_report.measure`, and `listed` and `p` have the labels with a probability above LEAST, those
    of example i in `start[i]:start[i + 1]`.
    """
    for i in range(len(batch.label)):
        threshold[i] = decided(counts, goal)[0] / BINS
        if not counted[i]:
            continue
        weight = np.float64(batch.weight[i])
        first, last = label_arrays.span(batch, label, i)
        for j in range(start[i], start[i + 1]):
            if p[j] > LEAST:
                at = BINS - 1 if p[j] >= 1 else int(np.ceil(p[j] * BINS)) - 1
                counts[TRUE if label_report.place_of(label, first, last, listed[j]) >= 0 else OTHER, at] += weight
        counts[TRUE, BINS] += weight * (last - first)
        counts[OTHER, BINS] += 1
        number = int(counts[OTHER, BINS])
        if number & (number - 1) == 0:
            for j in range(BINS):
                counts[TRUE, j] /= 2
                counts[OTHER, j] /= 2
            counts[TRUE, BINS] /= 2


class ValidatedThreshold:
    """Hold the counts of a learner, and choose its threshold by them; `goal` is a precision, or BEST_F1."""

    def __init__(self, goal: float) -> None:
        self.goal, self.counts = goal, new_counts()

    @property
    def now(self) -> float:
        """Return the threshold that follows from all examples so far."""
        return float(decide(self.counts, self.goal)[0]) / BINS

    def of_batch(self, batch: Batch, label: Int64s, counted: Bools, listed: ClassLists) -> Float32s:
        """Return the threshold of each example, float32[n], and count some of them; see `count`."""
        threshold = np.empty(batch.n, np.float32)
        count(batch, label, counted, listed.start, listed.labels, listed.scores, self.goal, self.counts, threshold)
        return threshold

    def merge(self, others: Sequence[ValidatedThreshold]) -> None:
        """Replace the counts by the mean of those of others."""
        self.counts = np.mean([one.counts for one in others], axis=0)
        self.counts[OTHER, BINS] = np.floor(self.counts[OTHER, BINS])

    def figures(self) -> dict[str, float]:
        """Return the threshold and what was measured with it, as figures of the summary."""
        at, measured = decide(self.counts, self.goal)
        name = "micro_f1" if self.goal == BEST_F1 else "precision"
        return {"threshold": float(at) / BINS, f"threshold_{name}": float(measured)}
