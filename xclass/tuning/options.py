"""Declare the options of `xclass tune` that are not options of the learner, and read the ranges of `--range`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import UsageError
from ..options import words
from ..options.declare import (
    BYTES,
    SECONDS,
    Option,
    OptionGroup,
    SearchRange,
    between,
    flag,
    one_of,
    option,
    threads_option,
)
from ..system import output_file
from ..text import reader, urls

METRICS = ("error", "log_loss", "squared", "top5")
LIST_METRICS = ("p1", "p3", "p5", "psp5", "micro_f1")  # of lists of labels
KINDS = {"log": 2, "linear": 2, "int": 2, "one": None, "flag": 0}  # kind of range -> number of values; None for any


def beside_data(paths: Sequence[str]) -> str | None:
    """Return the file that keeps the results if none is given; None for a URL and data that can be read only once."""
    return None if reader.read_once(paths[:1]) or urls.is_url(paths[0]) else f"{paths[0]}.tune"


class TuneOptions(OptionGroup):
    """Declare the options of the search."""

    time: float = option(
        "time that the search and the training of the model may take",
        default=300.0,
        default_text="5m",
        metavar="T",
        minimum=0.001,
        unit=SECONDS,
    )
    memory: int | None = option(
        "memory that the process may take",
        default_text="half of the free memory",
        metavar="SIZE",
        minimum=256 * 10**6,
        unit=BYTES,
    )
    threads: int | None = threads_option("with fewer threads, fewer settings are tried in the same time")
    metric: str = option(
        "what is minimised on examples that were not learned from: `error`; `log_loss`, the mean of -log p of the "
        "label; `squared`, the mean of (1 - p)**2; `top5`, the share of labels that are not among the five most "
        "probable classes. With lists of labels, 1 less the precision at 1 (`error`, `p1`), 3 or 5 (`p3`, `p5`), the "
        "propensity-scored precision at 5 (`psp5`), or F1 (`micro_f1`)",
        choices=(*METRICS, *LIST_METRICS),
        default="error",
    )
    settings: int = option("largest number of settings to try", minimum=1)
    range: tuple[str, ...] = option(
        "search these values of an option: 'OPTION log A B', 'OPTION linear A B' or 'OPTION int A B' between A and B; "
        "'OPTION one X Y ...' these; 'OPTION flag' given or not. If there is a range, nothing else is searched",
        metavar="RANGE",
    )
    state: str | None = option(
        "file that keeps the results of the settings, with which the same command continues a search",
        default_text="DATA.tune",
        writes="the results of the settings",
        files=lambda path, given: [path] if path is not None else filter(None, [beside_data(given.get("data", ()))]),
    )
    final_regressor: str = option(
        "save the model that learned from all examples with the best options",
        flags=("-f", "--final_regressor"),
        writes=output_file.MODEL,
    )
    quiet: bool = option("print only the command line with the best options")


def ranges(texts: Sequence[str], declared: Mapping[str, Option]) -> dict[str, SearchRange]:
    """Return the searches that texts of `--range` describe, such as `-l log 0.05 5`, by field name.

    `declared` are the options of learners by field name.
    """
    fields = {name: field for field, option in declared.items() for name in (*option.flags, *option.aliases)}
    searches: dict[str, SearchRange] = {}
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
        searches[field] = _range(place, declared[field], parts[1], parts[2:])
    return searches


def _range(place: str, option: Option, kind: str, texts: list[str]) -> SearchRange:
    needed = KINDS[kind]
    if len(texts) != needed if needed is not None else not texts:
        raise UsageError(f"{place}: {kind} takes {'at least one value' if needed is None else f'{needed} values'}")
    if (kind == "flag") != (option.kind is bool):
        allowed = "flag, because the option takes no value" if option.kind is bool else "another kind than flag"
        raise UsageError(f"{place}: give {allowed}")
    if kind == "flag":
        return flag()
    if kind != "one" and option.kind not in (int, float):
        raise UsageError(f"{place}: the values of the option are no numbers; give the kind `one`")
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
