"""A file that a learner has to offer at the end of a run, which the run writes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ...errors import DataError


class Result(NamedTuple):
    """The lines of a text file and where it goes."""

    path: str
    what: str  # as messages call it
    lines: Iterable[str]  # without their ends

    def write(self) -> None:
        """Write the file.

        Raises
        ------
        DataError
            where it cannot be written.
        """
        try:
            with open(self.path, "w", encoding="utf-8", errors="surrogateescape") as file:
                file.writelines(f"{line}\n" for line in self.lines)
        except OSError as error:
            raise DataError(f"{self.path}: {self.what} cannot be written there: {error.strerror}") from None
