"""Write docs/xclass.1, the man page, from the declarations of the options, by `python -m scripts.man_page`."""

from __future__ import annotations

from pathlib import Path

from xclass import __version__
from xclass.cli import command as cli
from xclass.cli import help_text, subcommands
from xclass.options.declare import Option

PAGE = Path(__file__).parent.parent / "docs" / "xclass.1"
EXIT_STATUS = (
    ("0", "The run ended well. A closed pipe is no error."),
    ("1", "The data, the model or a file is at fault."),
    ("2", "The command line is at fault."),
    ("3", "xclass compare has found a run that is worse than the first."),
    ("70", "There is an error in xclass itself."),
    ("130, 143", "The run was ended by Ctrl-C, or by SIGTERM; what was learned is in MODEL.interrupted."),
)
ENVIRONMENT = (
    ("NO_COLOR", "If set, the output has no colours."),
    ("NUMBA_CACHE_DIR", "Folder that keeps the compiled kernels."),
    ("TMPDIR", "Folder for temporary files."),
    ("_XCLASS_COMPLETE", "If set to bash_source, zsh_source or fish_source, print a script for shell completion."),
)


def page() -> str:
    """Return the man page as troff."""
    lines = [
        f'.TH XCLASS 1 "" "xclass {__version__}" "User Commands"',
        ".SH NAME",
        "xclass \\- learn to predict one of many classes, online",
        ".SH SYNOPSIS",
        ".B xclass",
        "[\\fIOPTIONS\\fR] [\\fIDATA\\fR]",
        ".SH DESCRIPTION",
        _escaped(help_text.INTRO),
        ".SH EXAMPLES",
    ]
    for command, text in help_text.EXAMPLES:
        lines += [".TP", f".B {_escaped(command)}", _escaped(f"{text[:1].upper()}{text[1:]}.")]
    lines.append(".SH OPTIONS")
    for section in help_text.sections(*cli.option_groups()):
        lines.append(f'.SS "{_escaped(section.title)}"')
        if section.summary:
            lines.append(_escaped(f"{section.summary[:1].upper()}{section.summary[1:]}."))
        for option in section.options.values():
            lines += [".TP", f".B {_escaped(help_text.synopsis(option))}", _escaped(_sentences(option))]
    lines.append('.SS "Subcommands, as the first word"')
    for subcommand in subcommands.SUBCOMMANDS:
        lines += [".TP", f".B {_escaped(subcommand.module.USAGE)}", _escaped(subcommand.module.INTRO)]
    lines.append('.SS "Help"')
    for flag, text in help_text.HELP:
        lines += [".TP", f".B {_escaped(flag)}", _escaped(f"{text[:1].upper()}{text[1:]}.")]
    for title, entries in (("EXIT STATUS", EXIT_STATUS), ("ENVIRONMENT", ENVIRONMENT)):
        lines.append(f".SH {title}")
        for name, text in entries:
            lines += [".TP", f".B {_escaped(name)}", _escaped(text)]
    lines += [".SH SEE ALSO", ".BR vw (1)"]
    return "\n".join(lines) + "\n"


def _sentences(option: Option) -> str:
    text = f"{option.help[:1].upper()}{option.help[1:]}."
    text += " May be repeated." if option.repeated else ""
    text += "".join(f" Another name is {alias}." for alias in option.aliases)
    default = help_text.default_of(option)
    return text + (f" Default: {default}." if default else "")


def _escaped(text: str) -> str:
    """Return text with all characters escaped that have a meaning in troff."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{text}" if text[:1] in (".", "'") else text


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
