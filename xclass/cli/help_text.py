"""Write the help: `--help` for an overview, `--help REDUCTION` for one reduction, `--help_all` for every option."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from ..errors import UsageError
from ..options.declare import Option, OptionGroup, options_of
from ..options.similar import suggestion
from . import option_text, subcommands

if TYPE_CHECKING:  # importing reductions takes time
    from ..reductions.core.base import Reduction

USAGE = "xclass [OPTIONS] [DATA]"
INTRO = (
    "Learn to predict one of many classes, one example at a time. DATA is a file of examples in Vowpal Wabbit's text "
    "format, or in another one of --format; without it, xclass reads standard input."
)
EXAMPLES = (
    ("xclass train.vw -f model.bin", "learn, and save a model"),
    ("xclass test.vw -t -i model.bin -p stdout", "predict with the model"),
)
COMMON = ("-d", "-f", "-i", "-t", "-p", "--top_k", "-b", "-l", "-q", "--passes", "--learn_names", "--quiet")
HELP = (
    ("-h, --help [REDUCTION]", "show this text, or a reduction's: xclass --help cpt"),
    ("--help_all", "show every option"),
    ("--version", "show the version"),
)
LEARNER, PROBABILITIES = "Learner", "Probabilities, unless --log_multi, --ect or --random_tree is chosen"
HEADINGS: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
    # heading, option groups, flags moved here from other groups
    ("Default reduction", ("multiclass",), ()),
    ("Input", ("reader",), ("-d", "--no_stdin", "-i", "-t", "--on_bad_line")),
    ("Output and progress", ("run", "timing", "inspect"), ()),
    ("Results as files", ("results",), ()),
    ("Passes and cache", ("passes", "cache", "shuffle"), ()),
    ("Ray cluster", ("cluster",), ()),
    ("Features", ("parser", "features", "interactions"), ()),
    (LEARNER, ("learner",), ()),
    (PROBABILITIES, ("listing_options",), ()),
)


@dataclass(frozen=True)
class Section:
    """Hold the options under one heading, and if they belong to a reduction, its record and a line about it."""

    title: str
    summary: str
    options: Mapping[str, Option]
    record: Reduction | None = None


def sections(groups: Mapping[str, type[OptionGroup]], reductions: Iterable[Reduction]) -> list[Section]:
    """Arrange the options of all groups under the headings of the help."""
    moved = {flag for _, _, flags in HEADINGS for flag in flags}
    arranged = []
    for title, names, flags in HEADINGS:
        everywhere = [(name, option) for group in groups.values() for name, option in options_of(group).items()]
        options = {name: option for flag in flags for name, option in everywhere if flag in option.flags}
        for name in names:
            if name in groups:
                own = options_of(groups[name])
                options.update({field: option for field, option in own.items() if not set(option.flags) & moved})
        if options:
            arranged.append(Section(title, "", options))
    for record in reductions:
        options = options_of(record.options)
        if options:
            arranged.append(Section(record.title, record.summary, options, record))
    return arranged


def everything(sections: Sequence[Section]) -> str:
    """Return the text of `--help_all`, with every option under the heading of its section."""
    formatter = _begun()
    for section in sections:
        _write_section(formatter, section, section.options.values())
    with formatter.section("Help"):
        formatter.write_dl(HELP, col_max=34)
    return formatter.getvalue().rstrip()


def overview(sections: Sequence[Section]) -> str:
    """Return the text of `--help`: a line for each reduction, and the most common options."""
    formatter = _begun()
    declared = {flag: option for section in sections for option in section.options.values() for flag in option.flags}
    with formatter.section("Reductions, for K classes"):
        first = [("--multiclass [K]", "the default: trees propose, one scorer per class decides")]
        chosen = [
            (option_text.synopsis(section.options[section.record.name]), section.summary)
            for section in sections
            if section.record is not None and section.summary
        ]
        formatter.write_dl([*(first if "--multiclass" in declared else ()), *chosen])
    with formatter.section("Common options"):
        common = [declared[flag] for flag in COMMON if flag in declared]
        formatter.write_dl([(option_text.synopsis(option), _brief(option)) for option in common], col_max=34)
    with formatter.section("Subcommands, as the first word; xclass --help SUBCOMMAND explains one"):
        formatter.write_text(", ".join(subcommand.name for subcommand in subcommands.SUBCOMMANDS))
    with formatter.section("Help"):
        formatter.write_dl(HELP, col_max=34)
    return formatter.getvalue()


def of_reduction(name: str, sections: Sequence[Section], presets: Mapping[str, str]) -> str:
    """Return the text of `--help NAME`: the options that a reduction accepts; `presets` has those that choose one."""
    given = name
    name = name.lstrip("-")
    known = {section.record.name: section for section in sections if section.record is not None}
    section = known.get(presets.get(name, name))
    if section is None or section.record is None:
        names = [*known, *presets]
        hint = suggestion(name, names, "xclass --help {}", f"the reductions are {', '.join(names)}")
        raise UsageError(f"--help: there is no reduction {given!r}{hint}")
    record = section.record
    flags = {flag: option for part in sections for option in part.options.values() for flag in option.flags}
    chooser = flags["--" + name]
    formatter = click.HelpFormatter(max_width=option_text.WIDTH)
    formatter.write(f"Usage: xclass {option_text.synopsis(chooser)} [OPTIONS] [DATA]\n\n")
    about = chooser.help if name in presets else f"{record.title}: {record.summary}"
    formatter.write_text(f"{about[:1].upper()}{about[1:]}.")
    own = [chooser, *(option for option in section.options.values() if option != chooser)]
    _write_section(formatter, Section("Options", "", {}), own)
    for part in sections:
        if part.title == LEARNER:
            taken = record.learner_options
            _write_section(formatter, part, [o for n, o in part.options.items() if taken is None or n in taken])
        elif part.title == PROBABILITIES and record.probabilities:
            _write_section(formatter, Section("Probabilities", "", {}), part.options.values())
    formatter.write_paragraph()
    formatter.write_text("xclass --help_all shows the options of input, output, passes and features as well.")
    return formatter.getvalue()


def _begun() -> click.HelpFormatter:
    """Return a help text with the usage and the examples."""
    formatter = click.HelpFormatter(max_width=option_text.WIDTH)
    formatter.write(f"Usage: {USAGE}\n\n")
    formatter.write_text(INTRO)
    formatter.write_paragraph()
    with formatter.indentation():
        formatter.write_dl(EXAMPLES, col_max=60)
    return formatter


def _write_section(formatter: click.HelpFormatter, section: Section, options: Iterable[Option]) -> None:
    with formatter.section(section.title):
        if section.summary:
            formatter.write_text(f"{section.summary[:1].upper()}{section.summary[1:]}.")
        formatter.write_dl(
            [(option_text.synopsis(option), option_text.description(option)) for option in options], col_max=34
        )


def _brief(option: Option) -> str:
    """Return the first sentence of an option's help, and its default if that is short."""
    default = option_text.default_of(option)
    return option.help.split(". ")[0] + (f" [default: {default}]" if default and ";" not in default else "")
