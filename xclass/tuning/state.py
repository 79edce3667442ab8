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

from ..errors import DataError
from ..system import output_file
from .results import Result, Span

INTERVAL = 2.0  # seconds between two writes
VERSION = 1
DESCRIPTION = "the results of the settings"


class State:
    """Hold the results of a search.

    Parameters
    ----------
    path : the file; None to keep no file
    search : facts by which a search is recognised: data, options, metric

    Attributes
    ----------
    path : the file, or None
    resumed : number of results that were in the file

    Raises
    ------
    DataError
        if the file belongs to another search, is damaged, or cannot be written.
    """

    def __init__(self, path: str | None, search: Mapping[str, Any]) -> None:
        self.path = path
        self._search = json.loads(json.dumps({"version": VERSION, **search}))
        self._results: dict[tuple[str, Span], Result] = {}
        self._written, self._changed = time.monotonic(), False
        if path is not None:
            output_file.check_writable(path, DESCRIPTION)
            if os.path.exists(path):
                self._read(path)
        self.resumed = len(self._results)

    def get(self, setting: str, span: Span) -> Result | None:
        """Return the result of a setting on a span, None if it is not known."""
        return self._results.get((setting, span))

    def items(self) -> list[tuple[tuple[str, Span], Result]]:
        """Return all results by setting and span."""
        return list(self._results.items())

    @property
    def settings(self) -> int:
        """Return the number of settings with results, those of earlier searches included."""
        return len({setting for setting, _ in self._results})

    def add(self, setting: str, span: Span, result: Result) -> None:
        """Add a result, and write the file if it was not written for a while."""
        self._results[setting, span] = result
        self._changed = True
        if time.monotonic() - self._written >= INTERVAL:
            self.write()

    def write(self) -> None:
        """Write the file if there is one and a result was added; raise DataError if that fails."""
        if self.path is None or not self._changed:
            return
        lines = [json.dumps({"search": self._search})]
        for (setting, span), result in self.items():
            lines.append(json.dumps({"setting": setting, **span._asdict(), **result.to_json()}))
        output_file.replace(self.path, DESCRIPTION, ["".join(line + "\n" for line in lines).encode()])
        self._written, self._changed = time.monotonic(), False

    def _read(self, path: str) -> None:
        """Read the results of an earlier search."""
        try:
            with open(path, encoding="utf-8") as file:
                first, *rest = (json.loads(line) for line in file.read().splitlines())
            search = first["search"]
        except (OSError, UnicodeDecodeError, ValueError, KeyError, TypeError):
            raise DataError(
                f"{path}: this is not a file of xclass tune, or it is damaged; remove it, or give another --state"
            ) from None
        for name, value in self._search.items():
            if search.get(name) != value:
                raise DataError(
                    f"{path}: it is of another search: {name} was {_short(search.get(name))} and is {_short(value)}; "
                    "remove it, or give another --state"
                )
        try:
            for row in rest:
                learned = tuple((int(low), int(high)) for low, high in row["learned"])
                low, high = row["judged"]
                self._results[str(row["setting"]), Span(learned, (int(low), int(high)))] = Result.from_json(row)
        except (ValueError, KeyError, TypeError) as error:
            raise DataError(
                f"{path}: result {len(self._results) + 1} is damaged ({error}); remove the file, or give another "
                "--state"
            ) from None


def _short(value: object) -> str:
    """Return a value for a message."""
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."
