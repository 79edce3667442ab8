"""Stand for the data that workers read in parts, in the process that coordinates."""

from __future__ import annotations

from collections.abc import Sequence

from ..cache.source import data_line
from ..text.text_format import TextFormat


class PartsSource:
    """Have the attributes of a `cache.source.Source` that a run needs.

    Parameters
    ----------
    paths : all files
    sizes : their bytes, None where unknown
    passes : number of passes over the data

    Attributes
    ----------
    read : for each part, bytes of text read in this pass
    reports : for each part, lines about malformed lines
    """

    format: TextFormat | None = None
    parsing = False
    parsing_seconds = 0.0

    def __init__(self, paths: Sequence[str], sizes: Sequence[int | None], passes: int) -> None:
        self.name = paths[0]
        self._files = len(paths)
        known = [size for size in sizes if size is not None]
        self._pass_bytes = sum(known)
        compressed = any(path.endswith((".gz", ".zst")) for path in paths)  # text that is read is larger
        self.size = self._pass_bytes * passes if len(known) == len(sizes) and not compressed else None
        self._ended = 0
        self.notes: list[str] = []
        self.read: dict[int, int] = {}
        self.reports: dict[int, tuple[str, ...]] = {}

    def banner(self, exact: bool) -> list[str]:
        """Return the lines about the data for the start of the run; with VW's names if `exact` is set."""
        if not exact:
            return [data_line(self.name, self._files)]
        files = f" and {self._files - 1} more" if self._files > 1 else ""
        return ["using no cache", f"Reading datafile = {self.name}{files}"]

    def about(self) -> list[str]:
        """Return no lines about the format, which the workers detect."""
        return []

    def report(self) -> list[str]:
        """Return the lines about malformed input for the end of the run."""
        return [line for number in sorted(self.reports) for line in self.reports[number]]

    def position(self) -> int:
        """Return the progress over all passes in bytes."""
        return self._ended * self._pass_bytes + sum(self.read.values())

    def end_pass(self) -> None:
        """Begin another pass."""
        self._ended += 1
        self.read = {}

    def fraction_read(self) -> float | None:
        """Return None, because workers learn as they read."""
        return None

    def close(self) -> None:
        """Do nothing, because the workers close their files."""
