"""Keep the results of a search in a file, so that the same command continues it.

The file is one line of JSON for the search, and one for each result. It is replaced as a whole (`output_file.replace`),
so it is complete at any moment.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import DataError
from ..system import bounded_json, output_file, streams
from ..system.bounded_json import Anything, List, Malformed, Number, Record, Text, Whole
from ..system.printable import short_repr
from .results import CHUNKS, LARGEST, Result, Span

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


class State:
    """Hold the results of a search, by name of the setting and span, of which `resumed` were in the file `path`.

    Facts (`search`) tell by which data, options and metric a search is recognised. Without `path` no file is kept.
    """

    def __init__(self, path: str | None, search: Mapping[str, Any]) -> None:
        self.path = path
        self._search = json.loads(json.dumps({"version": VERSION, **search}))
        self.results: dict[tuple[str, Span], Result] = {}
        self._written, self._changed = time.monotonic(), False
        if path is not None and os.path.exists(path):
            self._read(path)
        self.resumed = len(self.results)

    @property
    def settings(self) -> int:
        return len({setting for setting, _ in self.results})

    def add(self, setting: str, span: Span, result: Result) -> None:
        """Add a result, and write the file if it was not written for a while."""
        self.results[setting, span] = result
        self._changed = True
        if time.monotonic() - self._written >= INTERVAL:
            self.write()

    def write(self) -> None:
        """Write the file if there is one and a result was added; raise DataError if that fails."""
        if self.path is None or not self._changed:
            return
        lines = [json.dumps({"search": self._search})]
        for (setting, span), result in self.results.items():
            sums = {"sums": result.sums.tolist(), "weights": result.weights.tolist()}
            row = {"setting": setting, **span._asdict(), "seconds": round(result.seconds, 3)}
            lines.append(json.dumps({**row, **({"failed": result.failed} if result.failed else sums)}))
        output_file.replace(self.path, DESCRIPTION, ["".join(line + "\n" for line in lines).encode()])
        self._written, self._changed = time.monotonic(), False

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
            self.results[row["setting"], span] = Result(sums, weights, float(row["seconds"]), row.get("failed", ""))
