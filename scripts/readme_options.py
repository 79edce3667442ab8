"""Write the list of options in README.md anew, from the same declarations as `xclass --help`.

python scripts/readme_options.py            write it
python scripts/readme_options.py --check    say whether it is current (exit status 1 if not)
"""

from __future__ import annotations

import sys
from pathlib import Path

from xclass.cli import command as cli
from xclass.cli import help_text
from xclass.options.declare import Option

README = Path(__file__).parent.parent / "README.md"
BEGIN = "<!-- options: written by scripts/readme_options.py -->"
END = "<!-- end of options -->"


def listed() -> str:
    """Return the list of all options as Markdown, a table for every heading of the help."""
    lines = []
    for section in help_text.sections(*cli.rooms()):
        summary = f": {section.summary}" if section.summary else ""
        lines += ["", f"**{section.title}**{summary}", "", "| option | what it does | default |", "|---|---|---|"]
        lines += [_row(one) for one in section.options.values()]
    return "\n".join([*lines[1:], ""])


def _row(one: Option) -> str:
    what = one.help + (" (may be repeated)" if one.repeated else "")
    cells = (f"`{help_text.synopsis(one)}`", what, help_text.default_of(one))
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def renewed(text: str) -> str:
    """Return README.md's text with a current list between the two markers."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"README.md lacks the lines {BEGIN} and {END}")
    return f"{before}{BEGIN}\n\n{listed()}\n{END}{after}"


def main() -> None:
    text = README.read_text(encoding="utf-8")
    new = renewed(text)
    if "--check" in sys.argv[1:]:
        sys.exit(0 if new == text else "README.md is not current: run python scripts/readme_options.py")
    README.write_text(new, encoding="utf-8")


if __name__ == "__main__":
    main()
