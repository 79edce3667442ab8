"""Write the help: `--help` for an overview, `--help REDUCTION` for one reduction, `--help_all` for every option."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from ..errors import UsageError
from ..options.declare import Option, OptionGroup, options_of
from ..options.spelling import suggestion
from . import subcommands

if TYPE_CHECKING:  # importing reductions takes time
    from ..reductions.core.base import ReductionRecord

Rows: TypeAlias = Sequence[tuple[str, str]]
WIDTH = 100  # columns of a help text at most
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
    record: ReductionRecord | None = None


def sections(groups: Mapping[str, type[OptionGroup]], reductions: Iterable[ReductionRecord]) -> list[Section]:
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
    parts = [(one.title, _sentence(one.summary), _rows(one.options.values())) for one in sections]
    return _page(USAGE, INTRO, [*parts, ("Help", "", HELP)], EXAMPLES)


def overview(sections: Sequence[Section]) -> str:
    """Return the text of `--help`: a line for each reduction, and the most common options."""
    declared = {flag: option for section in sections for option in section.options.values() for flag in option.flags}
    reductions = [
        (synopsis(section.options[section.record.name]), section.summary)
        for section in sections
        if section.record is not None and section.summary
    ]
    if "--multiclass" in declared:
        reductions.insert(0, ("--multiclass [K]", "the default: trees propose, one scorer per class decides"))
    common = [declared[flag] for flag in COMMON if flag in declared]
    names = ", ".join(subcommand.name for subcommand in subcommands.SUBCOMMANDS)
    parts = [
        ("Reductions, for K classes", "", reductions),
        ("Common options", "", [(synopsis(option), _brief(option)) for option in common]),
        ("Subcommands, as the first word; xclass --help SUBCOMMAND explains one", names, []),
        ("Help", "", HELP),
    ]
    return _page(USAGE, INTRO, parts, EXAMPLES)


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
    about = chooser.help if name in presets else f"{record.title}: {record.summary}"
    own = [chooser, *(option for option in section.options.values() if option != chooser)]
    parts = [("Options", "", _rows(own))]
    for part in sections:
        if part.title == LEARNER:
            taken = record.learner_options
            of_learner = [option for field, option in part.options.items() if taken is None or field in taken]
            parts.append((part.title, "", _rows(of_learner)))
        elif part.title == PROBABILITIES and record.probabilities:
            parts.append(("Probabilities", "", _rows(part.options.values())))
    more = "xclass --help_all shows the options of input, output, passes and features as well."
    return _page(f"xclass {synopsis(chooser)} [OPTIONS] [DATA]", _sentence(about), parts, ending=more)


def of_subcommand(subcommand: subcommands.Subcommand) -> str:
    """Return the text of `xclass SUBCOMMAND --help`."""
    module = subcommand.module
    rows = [*_rows(module.declared().values()), ("-h, --help", "show this text")]
    return _page(module.USAGE, module.INTRO, [("Options", "", rows)])


def _page(usage: str, intro: str, parts: Iterable[tuple[str, str, Rows]], examples: Rows = (), ending: str = "") -> str:
    """Return a help text; a part is its heading, a text, and rows of two columns."""
    import click

    formatter = click.HelpFormatter(max_width=WIDTH)
    formatter.write(f"Usage: {usage}\n\n")
    formatter.write_text(intro)
    if examples:
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_dl(examples, col_max=60)
    for title, text, rows in parts:
        with formatter.section(title):
            if text:
                formatter.write_text(text)
            if rows:
                formatter.write_dl(rows, col_max=34)
    if ending:
        formatter.write_paragraph()
        formatter.write_text(ending)
    return formatter.getvalue()


def _rows(options: Iterable[Option]) -> Rows:
    return [(synopsis(option), description(option)) for option in options]


def _sentence(text: str) -> str:
    return text and f"{text[:1].upper()}{text[1:]}."


def _brief(option: Option) -> str:
    """Return the first sentence of an option's help, and its default if that is short."""
    default = default_of(option)
    return option.help.split(". ")[0] + (f" [default: {default}]" if default and ";" not in default else "")


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
