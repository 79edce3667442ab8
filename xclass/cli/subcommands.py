"""Subcommands, in the order of `--help`. To add one: write its module in this folder and add a line here.

A first word that names a subcommand is never a data file; a file of such a name is given with -d.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple


class Subcommand(NamedTuple):
    """Describe one entry of `SUBCOMMANDS`."""

    name: str
    summary: str  # one line for the help
    run: Callable[[Sequence[str]], int]  # takes the words behind the name, returns the exit status


SUBCOMMANDS: tuple[Subcommand, ...] = ()
