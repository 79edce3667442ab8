"""The text of `--help`: options under headings, gathered from the declarations of all modules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from ..options.declare import Option, OptionGroup, options_of
from . import subcommands

if TYPE_CHECKING:  # importing reductions takes time
    from ..reductions.core.base import Reduction

USAGE = "xclass [DATA] [OPTIONS]"
INTRO = (
    "Learn online, example by example, to pick one of very many classes. DATA is text in Vowpal Wabbit's "
    "format; without it, standard input is read."
)
EXAMPLES = (
    ("xclass train.vw -f model.bin", "learn and save"),
    ("xclass test.vw -i model.bin -t -p stdout", "predict with what was learned"),
)
HEADINGS: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
    # heading, rooms, flags moved here from other rooms
    ("Classes, however many", ("multiclass",), ()),
    ("Input", ("reader",), ("-d", "--no_stdin", "-i", "-t", "--on_bad_line")),
    ("Output and progress", ("driver", "timing", "readable", "tree_dump"), ()),
    ("Passes and cache", ("passes", "cache", "shuffle"), ()),
    ("Features", ("parser", "features", "interactions"), ()),
    ("Learner", ("learner",), ()),
    ("Probabilities of classes, with --oaa, --recall_tree, --cpt or --softmax_tree", ("answers",), ()),
)


@dataclass(frozen=True)
class Section:
    """One heading of the help: its options, field name -> Option."""

    title: str
    summary: str
    options: Mapping[str, Option]


def sections(rooms: Mapping[str, type[OptionGroup]], reductions: Iterable[Reduction]) -> list[Section]:
    """Arrange the options of all rooms under the headings of the help."""
    moved = {flag for _, _, flags in HEADINGS for flag in flags}
    arranged = []
    for title, names, flags in HEADINGS:
        everywhere = [(n, one) for room in rooms.values() for n, one in options_of(room).items()]
        options = {n: one for flag in flags for n, one in everywhere if flag in one.flags}
        for name in names:
            if name in rooms:
                options.update({n: one for n, one in options_of(rooms[name]).items() if not set(one.flags) & moved})
        if options:
            arranged.append(Section(title, "", options))
    for record in reductions:
        options = options_of(record.options)
        if options:
            arranged.append(Section(record.title, record.summary, options))
    return arranged


def synopsis(one: Option) -> str:
    """Return an option's flags and the name of its value: `-b, --bit_precision B`."""
    names = ", ".join(sorted(one.flags, key=len))
    if one.kind is bool:
        return names
    value = one.metavar or ("|".join(one.choices) if one.choices else {int: "N", float: "X"}.get(one.kind, "TEXT"))
    return f"{names} {value}"


def default_of(one: Option) -> str:
    """Return an option's default as the help shows it; empty where there is none."""
    if one.default_text is not None:
        return one.default_text
    if one.kind is bool or one.default in (None, ()):
        return ""
    return format(one.default, "g") if isinstance(one.default, float) else str(one.default)


class HelpCommand(click.Command):
    """The click command, with help grouped by room."""

    sections: Sequence[Section] = ()

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write(f"Usage: {USAGE}\n\n")
        formatter.write_text(INTRO)
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_dl(list(EXAMPLES), col_max=60)
        for section in self.sections:
            with formatter.section(section.title):
                if section.summary:
                    formatter.write_text(section.summary)
                formatter.write_dl([(synopsis(one), _help_text(one)) for one in section.options.values()], col_max=34)
        if subcommands.SUBCOMMANDS:
            with formatter.section("Subcommands, by a first word"):
                formatter.write_dl([(one.name, one.summary) for one in subcommands.SUBCOMMANDS], col_max=34)
        with formatter.section("Other"):
            formatter.write_dl([("-h, --help", "show this text"), ("--version", "show the version")], col_max=34)


def _help_text(one: Option) -> str:
    notes = []
    if one.repeated:
        notes.append("may be repeated")
    if default_of(one):
        notes.append(f"default: {default_of(one)}")
    return one.help + (f" [{'; '.join(notes)}]" if notes else "")
