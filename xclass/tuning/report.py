"""Write the table of the settings and the command line with the best one."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from .results import Result, Span, difference, joined
from .settings import Setting, Space

WIDTH = 80  # characters of a line
ROWS = 10  # settings in the table
TITLES = {"error": "error", "log_loss": "log loss", "top5": "top 5"}


class Row(NamedTuple):
    """Hold a row of the table.

    Attributes
    ----------
    setting : the setting
    size : number of examples that it has learned from
    result : its losses on all parts of the data that it was compared on after that
    difference, deviation : how much more it loses than the defaults on the same examples, and the standard error of
        that; None if the defaults have no result on them
    """

    setting: Setting
    size: int
    result: Result
    difference: float | None
    deviation: float | None


def rows(space: Space, settings: Iterable[Setting], results: Mapping[tuple[str, Span], Result]) -> list[Row]:
    """Return the rows of settings, best first: by the number of examples learned, then by the difference.

    Parameters
    ----------
    space : the settings
    settings : those that were tried
    results : results by name of a setting and span
    """
    found: dict[str, dict[Span, Result]] = {}
    for (name, span), result in results.items():
        found.setdefault(name, {})[span] = result
    of_default = found.get(space.name(space.default), {})
    made = []
    for setting in settings:
        own = found.get(space.name(setting), {})
        size = max((span.size for span in own), default=0)
        spans = [span for span in own if span.size == size]
        if not spans:
            continue
        result = joined([own[span] for span in spans])
        common = [span for span in spans if span in of_default and not of_default[span].failed]
        lost = error = None
        if common and not result.failed:
            lost, error = difference(joined([own[one] for one in common]), joined([of_default[one] for one in common]))
        made.append(Row(setting, size, result, lost, error))
    return sorted(made, key=_order)


def _order(row: Row) -> tuple[bool, int, float, float]:
    """Return the key by which rows are sorted."""
    return bool(row.result.failed), -row.size, row.difference or 0.0, row.result.loss


def table(space: Space, made: Sequence[Row], best: Setting, metric: str) -> list[str]:
    """Return the lines of the table: the best settings, and the defaults if they are not among them.

    Parameters
    ----------
    space : the settings
    made : the rows, best first
    best : the setting that is recommended, which is marked
    metric : what the losses are
    """
    shown = [*made[:ROWS], *(row for row in made[ROWS:] if row.setting in (best, space.default))]
    lines = [f"  {TITLES[metric]:>8} {'against defaults':>17} {'learned':>9} {'s':>6}  options"]
    for row in shown:
        mark = "*" if row.setting == best else " "
        loss = "failed" if row.result.failed else f"{row.result.loss:.4f}"
        against = ""
        if row.difference is not None and row.setting != space.default:
            against = f"{row.difference:+.4f} +/- {row.deviation:.4f}"
        text = space.text(row.setting) + (f": {row.result.failed}" if row.result.failed else "")
        lines += _wrapped(f"{mark} {loss:>8} {against:>17} {row.size:>9,} {row.result.seconds:>6.1f}  ", text)
    return lines


def _wrapped(head: str, text: str) -> list[str]:
    """Return a line, and further ones if the text is too long for one."""
    lines, line = [], head
    for word in text.split(" "):
        if len(line) + len(word) > WIDTH and line.strip() and not line.endswith("  "):
            lines.append(line.rstrip())
            line = " " * len(head)
        line += word + " "
    return [*lines, line.rstrip()]


def command(space: Space, best: Setting, fixed: Sequence[str]) -> list[str]:
    """Return the words of the command that learns from all examples with the best setting.

    Parameters
    ----------
    space : the settings
    best : the setting
    fixed : words of the data and of the options that all settings have
    """
    several = ["--holdout_off"] if space.passes(best) > 1 else []
    return ["xclass", *fixed, *space.words(best), *several]


def quoted(words: Sequence[str]) -> str:
    """Return words as they are typed in a shell."""
    return shlex.join(words)
