"""Find examples whose columns seem to be counted from another number than those learned from.

A column is the feature that has its number as a name, as it is written. LIBSVM's own programs count from 1, matrices
from 0, so a column can be taken for the one before or after it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..array_types import Bools, Int64s

ALIKE = "count the columns of all data from the same number"  # advice
FEWEST, MOST_KNOWN = 3, 0.9  # columns that seem to count from another number, and the share known of those between


def shift_note(columns: Int64s, known: Callable[[Int64s], Bools | None], before: str, given: str, advice: str) -> str:
    """Return a note if columns seem to count from 0 where those learned from count from 1, or the reverse, or nothing.

    Parameters
    ----------
    columns : int64[c], those of the examples, rising
    known : returns which columns were learned from, bool[any] for int64[any]; None if that is not known
    before, given : words for the note: what has the others, as "the model has learned from", and what has the columns
    advice : what to do
    """
    if len(columns) < FEWEST:
        return ""
    last = int(columns[-1])
    found = known(np.array([0, *columns[columns > 0][:-1], last, last + 1]))
    if found is None or found[1:-2].mean() < MOST_KNOWN:
        return ""
    if columns[0] == 0 and not found[0] and found[-2] and found[-1]:
        others, first = f"columns 1 to {last + 1} at least", 0
    elif columns[0] == 1 and found[0] and not found[-2]:
        others, first = "columns from 0 on", 1
    else:
        return ""
    return (
        f"{before} {others}, and {given} has columns {first} to {last}, as if they were counted "
        f"from {first}: each may be taken for another one; {advice}"
    )
