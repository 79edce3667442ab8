"""Refuse examples that crosses and grams make too large for the memory, or for any use."""

from __future__ import annotations

from ..array_types import Float64s, Int64s
from ..errors import DataError
from ..system import memory

MOST_FEATURES = 1 << 24  # of one example: it is learned from in a second or so, whatever options a model holds
FEATURE_BYTES = 64  # what a feature takes on its way through a learner, at most
ORDINARY_FEATURES = 1 << 20  # an example of so many is not worth a look at the memory


def check_features(counts: Float64s, line: Int64s, what: str, advice: str) -> None:
    """Refuse an example that crosses or grams turn into more than `MOST_FEATURES`, or than memory holds.

    Parameters
    ----------
    counts : features of each example, float64[n]
    line : of each example, int64[n]
    what : what makes the features, with its verb: "--ngram makes"

    Raises
    ------
    DataError
        naming the line.
    """
    row = int(counts.argmax())
    if counts[row] <= ORDINARY_FEATURES:
        return
    free = memory.available()
    if counts[row] > MOST_FEATURES:
        most = f"the {MOST_FEATURES:,} that an example may have"
    elif free is not None and counts[row] > free // FEATURE_BYTES:
        most = f"the {free // FEATURE_BYTES:,} that this machine has memory for"
    else:
        return
    raise DataError(f"line {line[row]}: {what} {counts[row]:.3g} features of one example, more than {most}; {advice}")
