"""Declare the option `--threads`, which the command and some of its subcommands have."""

from __future__ import annotations

from typing import Any

from .declare import option


def threads_option(results: str = "the results do not depend on N") -> Any:
    """Return the field that declares the option `threads`; `results` says what depends on it."""
    return option(
        f"compute with at most N threads at the same time; {results}",
        kind=int,
        minimum=1,
        default_text="the processors that the process may use",
        metavar="N",
    )
