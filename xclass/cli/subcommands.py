"""List the subcommands of `xclass`, in the order of `--help`.

To add one, write its module in this folder and add a line to `SUBCOMMANDS`. If the first word of a command line names a
subcommand, it is not a data file; a data file with that name has to be given with -d.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple


class Subcommand(NamedTuple):
    """Define a subcommand, whose module is imported when it is used."""

    name: str  # also of the module in this folder
    summary: str  # one line for the help

    @property
    def module(self) -> Any:
        """Return the module of the subcommand, which defines:

        USAGE : the command line, for the man page
        INTRO : what it does, in whole sentences, for the man page
        declared() : its options and arguments, by field name
        run(words) : called with the words after the name; returns the exit status, or the words of a command line to
            execute next
        """
        return import_module(f".{self.name}", __package__)


SUBCOMMANDS: tuple[Subcommand, ...] = (
    Subcommand("tune", "search for the options with the fewest errors"),
    Subcommand("merge", "merge models that learned apart into one"),
    Subcommand("compare", "test whether runs differ in their errors"),
    Subcommand("report", "describe a model and its errors as an HTML page"),
    Subcommand("shrink", "make a model for prediction smaller"),
    Subcommand("warmup", "compile kernels ahead, for images of containers and nodes of a cluster"),
    Subcommand("serve", "answer lines of VW text on a port, and learn from them"),
)
