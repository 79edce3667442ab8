"""Write numbers as text, in the same way in sentences, tables and figures."""

from __future__ import annotations

import math

MOST_OF_NAME = 60  # characters of a name of a class on the page; the JSON file has all


def clipped(name: str) -> str:
    """Return the name of a class, shortened to MOST_OF_NAME characters."""
    return name if len(name) <= MOST_OF_NAME else name[: MOST_OF_NAME - 1].rstrip() + "…"


def percent(share: float | None) -> str:
    """Return a share as text: `12.3 %` with a space that does not break, or a dash if it is not known."""
    return "–" if share is None or math.isnan(share) else f"{100 * share:.1f}\N{NO-BREAK SPACE}%"


def number(value: float | None) -> str:
    """Return a number of examples as text, or a dash if it is not known."""
    if value is None or math.isnan(value):
        return "–"
    return f"{value:,.0f}" if value == int(value) else f"{value:,.2f}"


def counted(value: float, word: str) -> str:
    """Return a number with a word, which is in the plural unless the number is 1."""
    return f"{number(value)} {word}" if value == 1 else f"{number(value)} {word}s"
