"""Represent a text file that a learner produces at the end of a run; the run writes it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ...system import output_file


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
        with output_file.opened(self.path, self.description) as file:
            file.writelines(line.encode("utf-8", "surrogateescape") + b"\n" for line in self.lines)
