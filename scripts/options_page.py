"""Write docs/options.md from the declarations of the options, by `python -m scripts.options_page`."""

from __future__ import annotations

from pathlib import Path

from xclass.cli import command as cli
from xclass.cli import help_text, subcommands
from xclass.options.declare import Option

PAGE = Path(__file__).parent.parent / "docs" / "options.md"
HEAD = """# Options

`xclass --help_all` shows the same list, and `xclass --help REDUCTION` the options of one reduction. Options of Vowpal
Wabbit keep their names. Options of a reduction that is not chosen are refused.

The man page is installed with the package (`man xclass`). For completion in the shell, add this line to `~/.bashrc` (or
use `zsh_source` or `fish_source` for those shells):

<!-- not tested: works only where xclass is installed -->

    eval "$(_XCLASS_COMPLETE=bash_source xclass)"
"""


def option_tables() -> str:
    """Return the list of all options as Markdown, with a table for every heading of the help, and each row once."""
    lines = ["", '<div class="options">']  # see docs/_static/wide.css
    heading: dict[str, str] = {}  # row -> title of the first section that has it
    for section in help_text.sections(*cli.option_groups()):
        lines += ["", f"## {section.title}", ""]
        if section.summary:
            lines += [f"{section.summary[:1].upper()}{section.summary[1:]}.", ""]
        rows = {_row(option): option for option in section.options.values()}
        for title in dict.fromkeys(heading[row] for row in rows if row in heading):
            names = ", ".join(f"`{option.flags[0]}`" for row, option in rows.items() if heading.get(row) == title)
            lines += [f"See [{title}](#{title.lower().replace(' ', '-')}) for {names}.", ""]
        lines += ["| option | what it does | default |", "|---|---|---|", *(row for row in rows if row not in heading)]
        heading.update({row: section.title for row in rows if row not in heading})
    lines += ["", "## Subcommands", "", "| first word | what it does |", "|---|---|"]
    lines += [f"| `{subcommand.name}` | {subcommand.summary} |" for subcommand in subcommands.SUBCOMMANDS]
    return "\n".join([*lines[1:], "", "</div>", ""])


def _row(option: Option) -> str:
    text = option.help + (" (may be repeated)" if option.repeated else "")
    text += "".join(f" (also `{alias}`)" for alias in option.aliases)
    cells = (f"`{help_text.synopsis(option)}`", text, help_text.default_of(option))
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def page() -> str:
    """Return the text of docs/options.md."""
    return f"{HEAD}\n{option_tables()}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
