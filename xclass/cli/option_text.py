"""Describe an option in one or two columns of a help text, and write the help of a subcommand."""

from __future__ import annotations

from collections.abc import Mapping

import click

from ..options.declare import Option

WIDTH = 100  # columns of a help text at most


def synopsis(option: Option) -> str:
    """Return an option's flags and the name of its value: `-b, --bit_precision B`."""
    names = ", ".join(sorted(option.flags, key=len))
    return names if option.kind is bool or option.is_argument else f"{names} {option.metavar}"


def default_of(option: Option) -> str:
    """Return an option's default as the help shows it, or an empty string if there is none to show."""
    if option.default_text is not None:
        return option.default_text
    if option.kind is bool or option.default in (None, ()):
        return ""
    return format(option.default, "g") if isinstance(option.default, float) else str(option.default)


def description(option: Option) -> str:
    """Return an option's help, with its other names and its default."""
    notes = [f"also {alias}" for alias in option.aliases]
    if option.repeated and not option.is_argument:
        notes.append("may be repeated")
    if default_of(option):
        notes.append(f"default: {default_of(option)}")
    return option.help + (f" [{'; '.join(notes)}]" if notes else "")


def of_subcommand(usage: str, intro: str, declared: Mapping[str, Option]) -> str:
    """Return the text of `xclass SUBCOMMAND --help`; `intro` says what it does."""
    formatter = click.HelpFormatter(max_width=WIDTH)
    formatter.write(f"Usage: {usage}\n\n")
    formatter.write_text(intro)
    with formatter.section("Options"):
        rows = [(synopsis(one), description(one)) for one in declared.values()]
        formatter.write_dl([*rows, ("-h, --help", "show this text")], col_max=34)
    return formatter.getvalue().rstrip()
