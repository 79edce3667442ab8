"""Represent a text file that a learner produces at the end of a run; the run writes it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ...errors import DataError


class Result(NamedTuple):
    """Hold the lines of a text file and its path."""

    path: str
    description: str  # of the file, for error messages
    lines: Iterable[str]  # without line ends

    def write(self) -> None:
        """Write the file.

        Raises
        ------
        DataError
            if it cannot be written.
        """
        try:
            with open(self.path, "w", encoding="utf-8", errors="surrogateescape") as file:
                file.writelines(f"{line}\n" for line in self.lines)
        except OSError as error:
            raise DataError(f"{self.path}: {self.description} cannot be written there: {error.strerror}") from None
