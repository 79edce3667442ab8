"""VW text -> VW text with a named namespace, checked labels, a cut or a split.

    python -m scripts.convert.vw --train odp_train.vw.gz --test odp_test.vw.gz --classes 105033 --out FOLDER

Features without a namespace get the one of --namespace, so that they can be crossed. With --classes K a label outside
1..K is an error; without it, labels are numbered anew. Empty lines and those without a label do not count.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from scripts.convert.source import Example, line_error, lines, options, run, settings, write

BARE = re.compile(rb"\|(?=\s|$)")


def examples(paths: list[Path], namespace: bytes, classes: int | None) -> Iterator[Example]:
    """Yield the examples of files, one after the other."""
    for path in paths:
        for number, line in lines(path):
            head, bar, features = line.partition(b"|")
            label, _, more = head.lstrip().partition(b" ")
            if not label or label.startswith(b"'"):
                continue
            if not bar:
                raise line_error(path, number, "no bar (|) before the features")
            if not label.isdigit():
                raise line_error(path, number, f"label {label.decode(errors='replace')!r} is no whole number")
            if classes and not 1 <= int(label) <= classes:
                raise line_error(path, number, f"label {int(label)} is outside 1..{classes}")
            yield b"%d" % int(label), more.lstrip() + BARE.sub(b"|" + namespace, bar + features)


def main() -> dict[str, int]:
    """Execute the conversion that the command line requests."""
    parser = options(__doc__)
    parser.add_argument("--namespace", default="f", help="of features that have none (default: f)")
    parser.add_argument("--classes", type=int, metavar="K", help="labels are 1..K and stay as they are")
    given = parser.parse_args()

    def source(paths):
        return lambda: examples(paths, given.namespace.encode(), given.classes)

    return write(given.out, source(given.train), source(given.test) if given.test else None, **settings(given))


if __name__ == "__main__":
    sys.exit(run(main))
