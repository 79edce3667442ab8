"""Write messages for the operator of a server, which must not end it."""

from __future__ import annotations

import contextlib

from ..run.report.console import Console


class OperatorConsole(Console):
    """Write lines to standard error; they are dropped if nobody reads it any more, or if it cannot be written."""

    def line(self, text: str) -> None:
        with contextlib.suppress(OSError):
            super().line(text)
