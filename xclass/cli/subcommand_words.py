"""Read the words of a subcommand: its own options and arguments, and those that say which data are read and how."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..errors import UsageError
from ..options import files
from ..options import words as option_words
from ..options.declare import Option, options_of
from ..system import terminal
from . import option_text

if TYPE_CHECKING:  # importing the reader takes time
    from ..text import reader


def read(words: Sequence[str], usage: str, intro: str, declared: Mapping[str, Option]) -> dict[str, Any] | None:
    """Return the options and arguments that the words of a subcommand hold, field -> value, after checking their files.

    If the words ask for help, it is printed and None is returned.
    """
    if {"-h", "--help"} & set(words):
        terminal.page(option_text.of_subcommand(usage, intro, declared))
        return None
    try:
        given, others = option_words.read(declared, words)
    except option_words.UnknownOption as error:
        raise UsageError(str(error).replace(option_words.HELP, f"{' '.join(usage.split()[:2])} --help")) from None
    if others:
        raise UsageError(f"{others[0]!r} belongs to no option; give data as -d {others[0]}; usage: {usage}")
    files.check(declared, given)
    return given


def of_data(help: str) -> dict[str, Option]:
    """Return the options of the data, by field name; `help` says what -d is."""
    from ..text import reader

    options = options_of(reader.Options)
    return {**options, "data": dataclasses.replace(options["data"], help=help, default_text=None)}


def take_data(given: dict[str, Any], others: str = "") -> reader.Options:
    """Take the options of the data out of `given`, field -> value, and return them.

    `others` is an option of further data that are read in the same way.
    """
    from ..text import reader

    names = options_of(reader.Options)
    if "data" not in given and others not in given:
        for name in ("threads", *names):
            if name in given:
                raise UsageError(f"--{name} has no effect: no data are read; leave it out, or give data with -d FILE")
    return reader.Options(**{name: given.pop(name) for name in names if name in given})
