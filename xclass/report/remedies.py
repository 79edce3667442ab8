"""Say what would help over all classes, by the causes of the errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from . import occupancy
from .failing import Cause
from .occupancy import Table
from .outcomes import LISTED
from .wording import number

MOST_LOST = 0.5  # weights that found no place, as a share of those in use, above which a larger table is advised
FEATURES = "Give the lines more features that tell the classes apart"
ADVICE = {  # name of a cause -> what would help
    "class never seen": "Add training examples of the classes that were never seen.",
    "nothing known": "Add training examples with the words of these lines, or features that lines share, such as "
    "parts of words.",
    "not compared": "Add training examples, first of rare classes. The settings below may help as well; a setting with "
    "which more classes are compared does not always lower the error.",
    "close": f"Give the lines features that tell similar classes apart. Where a person chooses, show the first "
    f"{LISTED} (--top_k {LISTED}).",
    "compared, not close": f"{FEATURES}, such as parts of words, or other columns of the source.",
    "not close": f"{FEATURES}, such as parts of words, or other columns of the source.",
    "other class more probable": f"{FEATURES}, or try another reduction (--multiclass has the fewest errors on most "
    "data).",
}
SETTINGS = (
    "Settings to try, each alone: pairs of words (--ngram 2), further passes (--passes 3 --holdout_off){tables}"
    "{index}. They change the choice among all classes. One that lowers the error over all may raise that "
    "of a frequent class, so compare the classes before and after."
)


class Remedy(NamedTuple):
    """Hold what would help, and the cause of the errors for which it is meant."""

    cause: Cause | None  # None if it is meant for all errors
    text: str


def overall(causes: Sequence[Cause], tables: Sequence[Table], options: dict[str, Any]) -> list[Remedy]:
    """Return what would help over all classes, the remedy for the largest cause first."""
    result = [Remedy(cause, ADVICE[cause.name]) for cause in sorted(causes, key=lambda cause: -cause.errors)]
    if not result:
        return []
    slots = options.get("index_slots")
    index = f", a longer index (--index_slots {2 * slots})" if slots else ""
    full = [table for table in tables if (table.lost or 0) > MOST_LOST * table.used]
    bits = occupancy.larger_bits(options["bits"], tables) if tables else options["bits"] + 1
    larger_tables = "" if full else f", larger tables (-b {bits})"  # a remedy of their own follows if they are full
    result.append(Remedy(None, SETTINGS.format(tables=larger_tables, index=index)))
    if full:
        lost = "; ".join(
            f"{table.name}: {number(table.lost or 0)} weights found no place, {number(table.used)} are stored"
            for table in full
        )
        larger = occupancy.larger_bits(options["bits"], full)
        result.append(Remedy(None, f"The tables were too small ({lost}). Train with larger ones (-b {larger})."))
    return result
