"""Refuse examples that crosses and grams make too large for the memory."""

from __future__ import annotations

from ..array_types import Float64s, Int64s
from ..errors import DataError
from ..system import memory

MOST_FEATURES = 1 << 31  # of one example
FEATURE_BYTES = 64  # what a feature takes on its way through a learner, at most
ORDINARY_FEATURES = 1 << 20  # an example of so many is not worth a look at the memory


def check_features(counts: Float64s, line: Int64s, what: str, advice: str) -> None:
    """Refuse an example that crosses or grams turn into more features than memory holds.

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
    most = MOST_FEATURES if free is None else min(MOST_FEATURES, free // FEATURE_BYTES)
    if counts[row] > most:
        raise DataError(
            f"line {line[row]}: {what} {counts[row]:.3g} features of one example, more than the {most:.3g} that this "
            f"machine has memory for; {advice}"
        )
