"""Tables of the UCI repository, values between commas and the class in the last column -> VW text.

    python -m scripts.convert.uci --train isolet1+2+3+4.data.Z isolet5.data.Z --out FOLDER --shuffle

Feature n is the value in column n, from 1; zeros and unknown values (?) are left out. A first line without a number is
a header; empty lines and lines that begin with # do not count. All lines have the same number of columns. Classes are
words or numbers; `3.` is 3.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

from scripts.convert.source import Example, convert, line_error, lines, options
from scripts.lib.command_line import run


def value(word: str) -> float | None:
    """Return the number a word is, None if it is none."""
    try:
        return float(word)
    except ValueError:
        return None


def examples(paths: list[Path]) -> Iterator[Example]:
    """Yield the examples of files, one after the other."""
    columns = None
    for path in paths:
        for number, line in lines(path):
            text = line.decode("utf-8", "replace").strip()
            if not text or text.startswith("#"):
                continue
            cells = [cell.strip() for cell in text.split(",")]
            if number == 1 and all(value(cell) is None for cell in cells):
                continue
            if len(cells) < 2 or not cells[-1]:
                raise line_error(path, number, "no class after a comma")
            columns = columns or len(cells)
            if len(cells) != columns:
                raise line_error(path, number, f"{len(cells)} columns, {columns} in the lines before")
            words = []
            for place, cell in enumerate(cells[:-1], 1):
                known = value(cell)
                if cell != "?" and (known is None or not math.isfinite(known)):
                    raise line_error(path, number, f"{cell!r} in column {place} is no number")
                if known:
                    words.append(f"{place}:{known:.9g}")
            label = value(cells[-1])
            if label is not None and label != int(label):
                raise line_error(path, number, f"class {cells[-1]} is no whole number")
            name = cells[-1].replace(" ", "_") if label is None else str(int(label))
            yield name.encode(), b"|f " + " ".join(words).encode()


def main() -> None:
    """Execute the conversion that the command line requests."""
    convert(options(__doc__).parse_args(), examples)


if __name__ == "__main__":
    run(main)
