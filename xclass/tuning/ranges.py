"""Read the ranges of `--range`, such as `-l log 0.05 5`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import UsageError
from ..options import words
from ..options.declare import Option
from ..options.search import Search, between, flag, one_of

KINDS = {"log": 2, "linear": 2, "int": 2, "one": None, "flag": 0}  # kind of range -> number of values; None for any


def read(texts: Sequence[str], declared: Mapping[str, Option]) -> dict[str, Search]:
    """Return the searches that texts of `--range` describe, by field name.

    `declared` are the options of learners by field name.
    """
    fields = {name: field for field, option in declared.items() for name in (*option.flags, *option.aliases)}
    searches: dict[str, Search] = {}
    for text in texts:
        place = f"--range {text!r}"
        parts = text.split()
        if len(parts) < 2 or parts[1] not in KINDS:
            raise UsageError(f"{place}: give 'OPTION KIND VALUES', where KIND is one of {', '.join(KINDS)}")
        field = fields.get(parts[0])
        if field is None:
            raise words.UnknownOption(parts[0], declared.values())
        if field in searches:
            raise UsageError(f"{place}: {parts[0]} has two ranges; give one")
        searches[field] = _search(place, declared[field], parts[1], parts[2:])
    return searches


def _search(place: str, option: Option, kind: str, texts: list[str]) -> Search:
    needed = KINDS[kind]
    if len(texts) != needed if needed is not None else not texts:
        raise UsageError(f"{place}: {kind} takes {'at least one value' if needed is None else f'{needed} values'}")
    if (kind == "flag") != (option.kind is bool):
        allowed = "flag, because the option takes no value" if option.kind is bool else "another kind than flag"
        raise UsageError(f"{place}: give {allowed}")
    if kind == "flag":
        return flag()
    if kind != "one" and option.kind not in (int, float):
        raise UsageError(f"{place}: the values of the option are no numbers; give the kind one")
    if kind == "int" and option.kind is not int:
        raise UsageError(f"{place}: the values of the option are not whole numbers; give log or linear")
    if kind in ("log", "linear") and option.kind is int:
        raise UsageError(f"{place}: the values of the option are whole numbers; give int or one")
    values: list[Any] = [words.value(option, text) for text in texts]
    if kind == "one":
        return one_of(*((value,) if option.repeated else value for value in values))
    low, high = values
    if not low <= high or (kind == "log" and low <= 0):
        raise UsageError(f"{place}: the values must rise{', from above 0' if kind == 'log' else ''}")
    return between(low, high, kind)
