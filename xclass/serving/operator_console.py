"""Write messages for the operator of a server, which must not end it."""

from __future__ import annotations

import contextlib

from ..run.report.console import Console


class OperatorConsole(Console):
    """Write lines to standard error; they are dropped if it is closed or cannot be written."""

    def line(self, text: str) -> None:
        with contextlib.suppress(OSError):
            super().line(text)
