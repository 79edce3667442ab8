"""Refuse examples that interactions or n-grams would make too large, and divide batches that they make large."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..array_types import Float64s, Int64s
from ..errors import DataError
from ..system import memory

MOST_FEATURES = 1 << 24  # maximum per example; it can be learned in about a second with any options
FEATURE_BYTES = 64  # upper bound of the memory per feature on its way through a learner
ORDINARY_FEATURES = 1 << 20  # up to this number, free memory is not checked


def pieces(counts: Float64s, most: int) -> Iterator[tuple[int, int, int]]:
    """Yield the ranges of examples with at most so many features (float64[n]), and the number of features of each."""
    total = np.cumsum(counts)
    low = 0
    while low < len(total):
        before = total[low - 1] if low else 0
        high = max(low + 1, int(np.searchsorted(total, before + most, side="right")))
        yield low, high, int(total[high - 1] - before)
        low = high


def check_features(counts: Float64s, line: Int64s, source: str, advice: str) -> None:
    """Refuse an example that would have more than MOST_FEATURES features or more than memory can hold.

    `counts` and `line`, float64[n] and int64[n], are those of each example. `source` names the source of the features,
    with a verb, as "--ngram makes".
    """
    row = int(counts.argmax())
    if counts[row] <= ORDINARY_FEATURES:
        return
    free = memory.available()
    if counts[row] > MOST_FEATURES:
        limit = f"the {MOST_FEATURES:,} that an example may have"
    elif free is not None and counts[row] > free // FEATURE_BYTES:
        limit = f"the {free // FEATURE_BYTES:,} that this machine has memory for"
    else:
        return
    raise DataError(
        f"line {line[row]}: {source} {counts[row]:.3g} features of one example, more than {limit}; {advice}"
    )
