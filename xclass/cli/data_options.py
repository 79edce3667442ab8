"""Give the subcommands the options that say which data are read and how, which are those of a run."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from ..errors import UsageError
from ..options.declare import Option, options_of

if TYPE_CHECKING:  # importing the reader takes time
    from ..text import reader


def declared(help: str) -> dict[str, Option]:
    """Return the options of the data, by field name; `help` says what -d is."""
    from ..text import reader

    options = options_of(reader.Options)
    return {**options, "data": dataclasses.replace(options["data"], help=help, default_text=None)}


def taken(given: dict[str, Any], others: str = "") -> reader.Options:
    """Take the options of the data out of `given`, field -> value, and return them.

    Parameters
    ----------
    given : the options that the user typed
    others : option of further data that are read in the same way

    Raises
    ------
    UsageError
        if an option says how data are read, but no data are.
    """
    from ..text import reader

    names = options_of(reader.Options)
    if "data" not in given and others not in given:
        for name in ("threads", *names):
            if name in given:
                raise UsageError(f"--{name} has no effect: no data are read; leave it out, or give data with -d FILE")
    return reader.Options(**{name: given.pop(name) for name in names if name in given})
