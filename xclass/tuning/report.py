"""Write the table of the settings and the command line with the best one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from .results import Result, Span, difference, joined
from .settings import Setting, Space

WIDTH = 80  # characters of a line
INDENT = 10  # spaces before options that do not fit into the line of their setting
ROWS = 10  # settings in the table
TITLES = {
    "error": "error", "log_loss": "log loss", "squared": "squared loss", "top5": "top 5",
    "p1": "1 - P@1", "p3": "1 - P@3", "p5": "1 - P@5", "psp5": "1 - PSP@5", "micro_f1": "1 - F1",
}  # fmt: skip


class Row(NamedTuple):
    """Hold a row of the table."""

    setting: Setting
    size: int  # number of examples that it has learned from
    result: Result  # its losses on all parts of the data that it was compared on after that
    compared: int  # number of examples of these parts
    of_defaults: float | None  # loss of the defaults on the same examples; None if they have no result on them
    difference: float | None  # how much more it loses than the defaults, None as above
    deviation: float | None  # standard error of the difference, None as above


def rows(space: Space, settings: Iterable[Setting], results: Mapping[tuple[str, Span], Result]) -> list[Row]:
    """Return the rows of settings, best first: by the number of examples learned, then by the difference.

    Results are known by the name of a setting and span.
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
        common = [span for span in spans if span in of_default and not of_default[span].failed]
        spans = common or spans  # so that all figures of a row are about the same examples
        result = joined([own[span] for span in spans])
        compared = sum(span.judged[1] - span.judged[0] for span in spans)
        base = lost = error = None
        if common and not result.failed:
            others = joined([of_default[span] for span in common])
            base, (lost, error) = others.loss, difference(result, others)
        made.append(Row(setting, size, result, compared, base, lost, error))
    return sorted(made, key=lambda row: (bool(row.result.failed), -row.size, row.difference or 0.0, row.result.loss))


def table(space: Space, made: Sequence[Row], best: Setting, metric: str, known: int) -> list[str]:
    """Return the lines of the table: the best settings, the defaults if they are not among them, and a remark.

    The recommended setting, `best`, is marked; `known` counts the settings with results, of earlier searches too.
    """
    shown = [*made[:ROWS], *(row for row in made[ROWS:] if row.setting in (best, space.default))]
    cells = [[TITLES[metric], "defaults", "difference", "compared", "learned", "s"]]
    for row in shown:
        loss = "failed" if row.result.failed else f"{row.result.loss:.4f}"
        base = against = ""
        if row.difference is not None and row.setting != space.default:
            base, against = f"{row.of_defaults:.4f}", f"{row.difference:+.4f} +/- {row.deviation:.4f}"
        cells.append([loss, base, against, f"{row.compared:,}", f"{row.size:,}", f"{row.result.seconds:.1f}"])
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    header, *figures = [" ".join(map(str.rjust, texts, widths)) for texts in cells]
    lines = [f"  {header}  options"]
    for row, head in zip(shown, figures, strict=True):
        mark = "*" if row.setting == best else " "
        text = space.text(row.setting) + (f": {row.result.failed}" if row.result.failed else "")
        lines += _wrapped(f"{mark} {head}  ", text)
    if known > len(shown):
        hidden = known - len(shown)
        lines.append(f"  and {hidden:,} more setting{'s' if hidden > 1 else ''}")
    if best != space.default:
        lines += [
            f"The best of {known:,} settings: the differences are not corrected for the number of",
            "settings, so a part of the gain may be chance.",
        ]
    return lines


def _wrapped(head: str, text: str) -> list[str]:
    lines, line = [], head
    for option in re.split(" (?=-)", text):  # an option and its value stay on one line
        if len(line) + len(option) > WIDTH:
            lines.append(line.rstrip())
            line = " " * INDENT
        line += option + " "
    return [*lines, line.rstrip()]


def command(space: Space, best: Setting, fixed: Sequence[str]) -> list[str]:
    """Return the words of the command that learns from all examples with the best setting."""
    several = ["--holdout_off"] if space.passes(best) > 1 else []
    return ["xclass", *fixed, *space.words(best), *several]
