"""List the subcommands of `xclass`, in the order of `--help`.

To add one, write its module in this folder and add a line to `SUBCOMMANDS`. If the first word of a command line names a
subcommand, it is not a data file; a data file with that name has to be given with -d.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from ..options.declare import Option
from . import compare, merge, report, serve, shrink, tune, warmup


class Subcommand(NamedTuple):
    """Define a subcommand."""

    name: str
    summary: str  # one line for the help
    usage: str  # the command line, for the man page
    intro: str  # what it does, in whole sentences, for the man page
    declared: Callable[[], Mapping[str, Option]]  # its options and arguments, by field name
    # called with the words after the name; returns the exit status, or the words of a command line to execute next
    run: Callable[[Sequence[str]], int | list[str]]


SUBCOMMANDS: tuple[Subcommand, ...] = tuple(
    Subcommand(name, summary, module.USAGE, module.INTRO, module.declared, module.run)
    for name, summary, module in (
        ("tune", "search for the options with the fewest errors", tune),
        ("merge", "merge models that learned apart into one", merge),
        ("compare", "test whether runs differ in their errors", compare),
        ("report", "describe a model and its errors as an HTML page", report),
        ("shrink", "make a model for prediction smaller", shrink),
        ("warmup", "compile kernels ahead, for images of containers and nodes of a cluster", warmup),
        ("serve", "answer lines of VW text on a port, and learn from them", serve),
    )
)
