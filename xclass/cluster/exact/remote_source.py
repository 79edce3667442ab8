"""Show what the first worker tells about the data, in the process that coordinates."""

from __future__ import annotations

from ...text.text_format import TextFormat
from .worker import Facts, News


class RemoteSource:
    """Stand for the data that the workers read, with the attributes of a `cache.source.Source`."""

    format: TextFormat | None = None
    parsing = False
    parsing_seconds = 0.0

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self.name, self.size = facts.name, facts.size
        self.notes: list[str] = []
        self._about: list[str] = []
        self._report: list[str] = []
        self._position = 0

    def banner(self, exact: bool) -> list[str]:
        """Return the lines about the data for the start of the run, with VW's names if the workers use them."""
        return self._facts.banner

    def about(self) -> list[str]:
        """Return lines about the format that were not returned before."""
        lines, self._about = self._about, []
        return lines

    def report(self) -> list[str]:
        """Return the lines about malformed input for the end of the run."""
        return self._report

    def position(self) -> int:
        """Return the progress over all passes in bytes."""
        return self._position

    def fraction_read(self) -> float | None:
        """Return None, because the workers store what they read."""
        return None

    def close(self) -> None:
        """Do nothing, because the workers close their files."""

    def learn(self, news: News) -> None:
        """Take what the first worker tells about a step."""
        self.notes += news.notes
        self._about += news.about
        self._report = news.report or self._report
        self.name, self._position = news.name, news.position
