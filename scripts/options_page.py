"""Write docs/options.md from the declarations of the options.

    python -m scripts.options_page            write the page
    python -m scripts.options_page --check    check whether the page is current

With --check nothing is written, and the exit status is 1 if the page is not current.
"""

from __future__ import annotations

import sys
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
    """Return the list of all options as Markdown, with a table for every heading of the help."""
    lines = ["", '<div class="options">']  # see docs/_static/wide.css
    for section in help_text.sections(*cli.option_groups()):
        summary = f": {section.summary}" if section.summary else ""
        lines += ["", f"## {section.title}{summary}", "", "| option | what it does | default |", "|---|---|---|"]
        lines += [_row(option) for option in section.options.values()]
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


def main() -> None:
    if "--check" in sys.argv[1:]:
        current = PAGE.read_text(encoding="utf-8") == page()
        sys.exit(0 if current else "docs/options.md is not current: run python -m scripts.options_page")
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
