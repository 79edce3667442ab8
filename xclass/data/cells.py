"""Look at the first cells of columns that are read as text or categories: are they numbers in another format?"""

from __future__ import annotations

import numbers
import re
from collections.abc import Sequence
from typing import Any

from ..options.words import NUMERAL
from ..system.printable import short_repr

SAMPLE = 256  # cells of a column to look at
FEWEST, MOST_OTHERS = 4, 2  # cells that tell something; different texts beside numbers that stand for missing ones
SIGNED = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
PLAIN = "write plain numbers, such as 1234.5"
ROWS = "to learn rows of numbers, give lists that are no text, or a column for each number"
NUMBER_FORMATS = (  # formats of numbers that are read as text, and what to write instead
    (re.compile(rf"\[ *{SIGNED}(?:[,;\s]+{SIGNED})* *,?\]"), "rows of numbers", ROWS),
    (re.compile(rf"\( *{SIGNED}(?:[,;\s]+{SIGNED})+ *\)"), "rows of numbers", ROWS),
    (re.compile(r"[+-]?[0-9]*\.[0-9]+(?:[,;| ]+[+-]?[0-9]*\.[0-9]+)+"), "rows of numbers", ROWS),
    (re.compile(r"[+-]?[0-9]{1,3}(?:[,'\u2019\u00a0\u202f][0-9]{3})+(?:[.,][0-9]+)?|"
                r"[+-]?[0-9]{1,3}(?:[. ][0-9]{3})+,[0-9]+"), "numbers with groups of digits", PLAIN),
    (re.compile(r"[+-]?[0-9]*,[0-9]+"), "numbers with a decimal comma", PLAIN),
    (re.compile(r"[+-]?(?:[$€£¥₹]|EUR|USD|GBP) ?[+-]?[0-9][0-9.,' ]*|[+-]?[0-9][0-9.,' ]* ?(?:[$€£¥₹]|EUR|USD|GBP)"),
     "amounts of money", PLAIN),
    (re.compile(r"[+-]?[0-9][0-9.,]* ?[%\u2030]"), "percentages", PLAIN),
    (re.compile(r"\(\$?[0-9][0-9.,]*\)|\u2212[0-9][0-9.,]*|[0-9]{1,3}(?:_[0-9]{3})+"), "numbers", PLAIN),
)  # fmt: skip
ZEROS, TRUTH = re.compile(r"0[0-9]+"), re.compile(r"true|false|TRUE|FALSE|True|False")


def note_about_numbers(place: str, cells: Sequence[str]) -> str:
    """Return a note about a column or feature of text if most of its first cells are numbers in another format.

    `place` is what the note calls it, such as `the column 'price'`.
    """
    shown = [cell for cell in cells if not NUMERAL.fullmatch(cell)]
    if len(cells) < FEWEST or not shown:
        return ""
    others = {*shown}
    if len(others) <= MOST_OTHERS and len(shown) * 4 <= len(cells):
        return (
            f"{place} has numbers and also {short_repr(shown[0])}, so it is read as text, whose "
            "words are features; leave cells empty where a number is missing"
        )
    found: dict[str, list[str]] = {}
    for cell in shown:
        kind = next(((what, cure) for pattern, what, cure in NUMBER_FORMATS if pattern.fullmatch(cell)), None)
        if kind is not None:
            found.setdefault("; ".join(kind), []).append(cell)
    count = len(cells) - len(shown) + sum(map(len, found.values()))
    if not found or 2 * count <= len(cells) or 10 * max(map(len, found.values())) < 9 * len(shown):
        return ""
    what, _, cure = max(found, key=lambda key: len(found[key])).partition("; ")
    example = found[f"{what}; {cure}"][0]
    return f"{place} has {what} such as {short_repr(example)}, and is read as text, not as numbers; {cure}"


def spelling_of(cells: Sequence[str]) -> tuple[str, int]:
    """Return a cell that has leading zeros or is a truth value, or nothing, and the fewest digits of a whole number."""
    whole = [cell for cell in cells if cell.isdecimal()]
    zeros = next((cell for cell in whole if ZEROS.fullmatch(cell)), "")
    if zeros:
        return zeros, min(map(len, whole))
    return next((cell for cell in cells if TRUTH.fullmatch(cell)), ""), 0


def note_about_spelling(place: str, cells: Sequence[Any], example: str, digits: int) -> str:
    """Return a note if cells are not written as those of the same column that `spelling_of` has seen, or nothing."""
    if TRUTH.fullmatch(example):
        style = next(style for style in (str.lower, str.upper, str.title) if style(example) == example)
        wrong = [str(cell) for cell in cells if TRUTH.fullmatch(str(cell)) and style(str(cell)) != str(cell)]
    else:
        wrong = [
            f"{cell:.0f}" if is_number else str(cell)
            for cell in cells
            if (is_number := isinstance(cell, numbers.Number))
            or (isinstance(cell, str) and cell.isdecimal() and len(cell) < digits)
        ]
    if not wrong or 2 * len(wrong) <= len(cells):
        return ""
    cure = "write it so" if TRUTH.fullmatch(example) else "give text, with its zeros"
    return (
        f"{place} has {short_repr(wrong[0])}, and the model has learned values such as {short_repr(example)}, which "
        f"are other features; {cure}"
    )
