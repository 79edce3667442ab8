"""Hold what settings lost on the examples that they were compared on, compare two settings, and keep and show results.

The losses are summed over chunks of neighbouring examples. The difference of two settings on the same chunks, and its
standard error from the differences by chunk, tell whether one of them is better.
"""

from __future__ import annotations

import json
import math
import os
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..array_types import Float64s
from ..errors import DataError
from ..system import bounded_json, output_file, streams
from ..system.bounded_json import Anything, List, Malformed, Number, Record, Text, Whole
from ..system.printable import short_repr
from .settings import SearchSpace, Setting

CHUNKS = 40  # chunks of a range of examples
LARGEST = 1e100  # of a sum in the file of the results
INTERVAL = 2.0  # seconds between two writes
VERSION = 1
DESCRIPTION = "the results of the settings"
CURE = "remove the file, or give another --state"
_RANGE = List(Whole(), 2, 2)
_SPAN = {"setting": Text(), "learned": List(_RANGE), "judged": _RANGE, "seconds": Number(0)}
_SUMS = List(Number(-LARGEST, LARGEST), CHUNKS, CHUNKS)
FIRST = Record({"search": Record(others=Anything())})
RESULT = Record({**_SPAN, "sums": _SUMS, "weights": List(Number(0, LARGEST), CHUNKS, CHUNKS)})
FAILED = Record({**_SPAN, "failed": Text()})
WIDTH = 80  # characters of a line
INDENT = 10  # spaces before options that do not fit into the line of their setting
ROWS = 10  # settings in the table
TITLES = {
    "error": "error", "log_loss": "log loss", "squared": "squared loss", "top5": "top 5",
    "p1": "1 - P@1", "p3": "1 - P@3", "p5": "1 - P@5", "psp5": "1 - PSP@5", "micro_f1": "1 - F1",
}  # fmt: skip


class Span(NamedTuple):
    """Say which examples a setting learns from, and which ones it is compared on."""

    learned: tuple[tuple[int, int], ...]  # (begin, end) of the ranges of examples that are learned from, in order
    judged: tuple[int, int]  # (begin, end) of the range of examples that are predicted afterwards

    @property
    def size(self) -> int:
        return sum(high - low for low, high in self.learned)


class SettingResult(NamedTuple):
    """Hold the losses of a setting on the examples of a span."""

    sums: Float64s  # float64[CHUNKS], sum of the weighted losses of each chunk
    weights: Float64s  # float64[CHUNKS], sum of the weights of the labelled examples of each chunk
    seconds: float  # time that learning and predicting all examples of the span took
    failed: str = ""  # why there are no losses

    @property
    def loss(self) -> float:
        """Return the mean loss; infinite if there is none."""
        total = float(self.weights.sum())
        return float(self.sums.sum()) / total if total > 0 and not self.failed else math.inf


def failure(reason: str, seconds: float = 0.0) -> SettingResult:
    """Return the result of a setting that cannot be used."""
    return SettingResult(np.zeros(CHUNKS), np.zeros(CHUNKS), seconds, reason)


def joined(results: Sequence[SettingResult]) -> SettingResult:
    """Return one result of a setting on several ranges of examples; the time is the longest one."""
    failed = next((one.failed for one in results if one.failed), "")
    return SettingResult(
        np.concatenate([one.sums for one in results]), np.concatenate([one.weights for one in results]),
        max(one.seconds for one in results), failed,
    )  # fmt: skip


def difference(one: SettingResult, other: SettingResult) -> tuple[float, float]:
    """Return how much more `one` loses than `other` on the same examples, and the standard error of that.

    It follows from how much each chunk adds to the mean losses beyond its share.
    """
    ours, theirs = ((each.sums - each.loss * each.weights) / each.weights.sum() for each in (one, other))
    n = len(one.sums)
    return one.loss - other.loss, math.sqrt(float(((ours - theirs) ** 2).sum()) * n / (n - 1))


class Results:
    """Hold the results of a search, by name of the setting and span, of which `resumed` were in the file `path`.

    The same command continues the search from the file. It is one line of JSON for the search, and one for each result,
    and is replaced as a whole, so it is complete at any moment. Facts (`search`) tell by which data, options and metric
    a search is recognised. Without `path` no file is kept.
    """

    def __init__(self, path: str | None, search: Mapping[str, Any]) -> None:
        self.path = path
        self._search = json.loads(json.dumps({"version": VERSION, **search}))
        self.found: dict[tuple[str, Span], SettingResult] = {}
        if path is not None and os.path.exists(path):
            self._read(path)
        self.resumed = self._kept = len(self.found)  # `_kept` are in the file
        self._written = time.monotonic()

    @property
    def settings(self) -> int:
        return len({setting for setting, _ in self.found})

    def add(self, setting: str, span: Span, result: SettingResult) -> None:
        """Add a result, and write the file if it was not written for a while."""
        self.found[setting, span] = result
        if time.monotonic() - self._written >= INTERVAL:
            self.write()

    def write(self) -> None:
        """Write the file if there is one and a result was added; raise DataError if that fails."""
        if self.path is None or self._kept == len(self.found):
            return
        rows: list[dict[str, Any]] = [{"search": self._search}]
        for (setting, span), result in self.found.items():
            sums = {"sums": result.sums.tolist(), "weights": result.weights.tolist()}
            row = {"setting": setting, **span._asdict(), "seconds": round(result.seconds, 3)}
            rows.append({**row, **({"failed": result.failed} if result.failed else sums)})
        output_file.replace(self.path, DESCRIPTION, [f"{json.dumps(row)}\n".encode() for row in rows])
        self._written, self._kept = time.monotonic(), len(self.found)

    def _read(self, path: str) -> None:
        """Read the results of an earlier search."""
        first, *rest = streams.read_file(path, CURE).splitlines() or [b""]
        try:
            search = bounded_json.parse(first, FIRST)["search"]
        except Malformed as error:
            about = "this is not a file of xclass tune, or it is damaged: "
            raise bounded_json.refusal(path, error, CURE, about=about) from None
        for name, value in self._search.items():
            if search.get(name) != value:
                raise DataError(
                    f"{path}: it is of another search: {name} was {short_repr(search.get(name))} and is "
                    f"{short_repr(value)}; {CURE}"
                )
        for number, line in enumerate(rest, 1):
            try:
                row = bounded_json.parse(line, FAILED if b'"failed"' in line else RESULT)
            except Malformed as error:
                raise bounded_json.refusal(path, error, CURE, number, f"result {number} is damaged: ") from None
            low, high = row["judged"]
            span = Span(tuple((begin, end) for begin, end in row["learned"]), (low, high))
            sums, weights = (np.array(row.get(name, [0] * CHUNKS), np.float64) for name in ("sums", "weights"))
            self.found[row["setting"], span] = SettingResult(
                sums, weights, float(row["seconds"]), row.get("failed", "")
            )


class ResultRow(NamedTuple):
    """Hold a row of the table."""

    setting: Setting
    size: int  # number of examples that it has learned from
    compared: int  # number of examples that it was compared on after that
    result: SettingResult  # its losses on these
    of_defaults: (
        SettingResult | None
    )  # those of the defaults; None if they have no result on these examples, or this failed
    difference: tuple[float, float]  # how much more it loses than the defaults, and the standard error of that


def rows(
    space: SearchSpace, settings: Iterable[Setting], results: Mapping[tuple[str, Span], SettingResult]
) -> list[ResultRow]:
    """Return the rows of settings, best first: by the number of examples learned, then by the difference.

    Results are known by the name of a setting and span.
    """
    default = space.name(space.default)
    made = []
    for setting in settings:
        name = space.name(setting)
        own = [span for of_setting, span in results if of_setting == name]
        size = max((span.size for span in own), default=0)
        spans = [span for span in own if span.size == size]
        if not spans:
            continue
        common = [span for span in spans if (default, span) in results and not results[default, span].failed]
        spans = common or spans  # so that all figures of a row are about the same examples
        result = joined([results[name, span] for span in spans])
        compared = sum(span.judged[1] - span.judged[0] for span in spans)
        defaults = joined([results[default, span] for span in common]) if common and not result.failed else None
        lost = (0.0, 0.0) if defaults is None else difference(result, defaults)
        made.append(ResultRow(setting, size, compared, result, defaults, lost))
    return sorted(made, key=lambda row: (bool(row.result.failed), -row.size, row.difference[0], row.result.loss))


def table(space: SearchSpace, made: Sequence[ResultRow], best: Setting, known: int) -> list[str]:
    """Return the lines of the table: the best settings, the defaults if they are not among them, and a remark.

    The recommended setting, `best`, is marked; `known` counts the settings with results, of earlier searches too.
    """
    shown = [*made[:ROWS], *(row for row in made[ROWS:] if row.setting in (best, space.default))]
    cells = [[TITLES[space.metric], "defaults", "difference", "compared", "learned", "s"]]
    for row in shown:
        loss = "failed" if row.result.failed else f"{row.result.loss:.4f}"
        base = against = ""
        if row.of_defaults is not None and row.setting != space.default:
            base, against = f"{row.of_defaults.loss:.4f}", "{:+.4f} +/- {:.4f}".format(*row.difference)
        cells.append([loss, base, against, f"{row.compared:,}", f"{row.size:,}", f"{row.result.seconds:.1f}"])
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    header, *figures = [" ".join(map(str.rjust, texts, widths)) for texts in cells]
    lines = [f"  {header}  options"]
    for row, head in zip(shown, figures, strict=True):
        line = f"{'*' if row.setting == best else ' '} {head}  "
        text = space.text(row.setting) + (f": {row.result.failed}" if row.result.failed else "")
        for option in re.split(" (?=-)", text):  # an option and its value stay on one line
            if len(line) + len(option) > WIDTH:
                lines.append(line.rstrip())
                line = " " * INDENT
            line += option + " "
        lines.append(line.rstrip())
    if known > len(shown):
        hidden = known - len(shown)
        lines.append(f"  and {hidden:,} more setting{'s' if hidden > 1 else ''}")
    if best != space.default:
        lines += [
            f"The best of {known:,} settings: the differences are not corrected for the number of",
            "settings, so a part of the gain may be chance.",
        ]
    return lines
