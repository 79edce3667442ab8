"""LIBSVM files and those of the extreme classification repository -> VW text.

    python -m scripts.convert.sparse --train aloi.bz2 --out FOLDER --shuffle

A line is `label index:value ...` or, with several labels, `label,label index:value ...`; what follows a # is a comment,
lines without a label do not count. Files of the repository begin with a line `examples features classes`, which is
checked; their labels and indices begin at 0, those of LIBSVM at 1 or anywhere: labels are numbered anew, indices are
names. --several says what becomes of an example with several labels: `lists` writes all of them, `1,5 |f ...`.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path

from scripts.convert.source import Example, convert, line_error, lines, options
from scripts.lib.command_line import run
from scripts.lib.processes import BenchError

FEATURE = re.compile(rb"(\d+):([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)")
LABEL = re.compile(rb"[-+]?\d+(?:\.0*)?")
HEADER = re.compile(rb"\s*(\d+)\s+(\d+)\s+(\d+)\s*")


def features(path: Path, number: int, words: list[bytes]) -> bytes:
    """Return the features of a line as VW text; raise BenchError at the first that is invalid."""
    for word in words:
        if not FEATURE.fullmatch(word):
            raise line_error(path, number, f"{word.decode(errors='replace')!r} is no index:value such as 17:0.5")
    return b"|f " + b" ".join(words)


def chosen(path: Path, number: int, labels: list[bytes], several: str, draw: random.Random) -> bytes | None:
    """Return the label an example gets, None if it has none or is to be left out."""
    for label in labels:
        if not LABEL.fullmatch(label):
            raise line_error(path, number, f"label {label.decode(errors='replace')!r} is no whole number")
    if len(labels) > 1 and several == "error":
        raise line_error(path, number, f"{len(labels)} labels: give --several lists, first or draw")
    if not labels:
        return None
    if several == "lists":
        return b",".join(b"%d" % int(float(label)) for label in labels)
    label = draw.choice(labels) if several == "draw" and len(labels) > 1 else labels[0]
    return b"%d" % int(float(label))


def examples(paths: list[Path], several: str, seed: int) -> Iterator[Example]:
    """Yield the examples of files, one after the other."""
    draw = random.Random(seed)
    for path in paths:
        announced = None
        count = 0
        for number, line in lines(path):
            line = line.split(b"#", 1)[0]
            header = HEADER.fullmatch(line) if number == 1 else None
            if header:
                announced = int(header[1])
                continue
            if not line.strip():
                continue
            count += 1
            words = line.split()
            first_feature = next((i for i, word in enumerate(words) if b":" in word), len(words))
            labels = [word.strip() for word in b" ".join(words[:first_feature]).split(b",") if word.strip()]
            rest = features(path, number, words[first_feature:])
            label = chosen(path, number, labels, several, draw)
            if label is not None:
                yield label, rest
        if announced is not None and announced != count:
            raise BenchError(f"{path}: the first line announces {announced:,} examples, there are {count:,}")


def main() -> None:
    """Execute the conversion that the command line requests."""
    parser = options(__doc__)
    parser.add_argument("--several", choices=("error", "lists", "first", "draw"), default="error")
    given = parser.parse_args()
    convert(given, lambda paths: examples(paths, given.several, given.seed), given.several == "lists")


if __name__ == "__main__":
    run(main)
