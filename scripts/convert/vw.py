"""VW text -> VW text with a named namespace, checked labels, a cut or a split.

    python -m scripts.convert.vw --train odp_train.vw.gz --test odp_test.vw.gz --classes 105033 --out FOLDER

Features without a namespace get the one of --namespace, so that they can be crossed. With --classes K a label outside
1..K is an error; without it, labels are numbered anew. With --lists an example may have several, `1,5 | ...`, from 0.
Empty lines and those without a label do not count.
--subtract_mean subtracts from every feature its mean over the training examples; an example then has all features.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from scripts.convert.source import Example, convert, line_error, lines, options
from scripts.lib.command_line import run
from scripts.lib.processes import BenchError

BARE = re.compile(rb"\|(?=\s|$)")


def examples(paths: list[Path], namespace: bytes, classes: int | None, lists: bool = False) -> Iterator[Example]:
    """Yield the examples of files, one after the other; with `lists`, labels have commas between them."""
    for path in paths:
        for number, line in lines(path):
            head, bar, features = line.partition(b"|")
            label, _, more = head.lstrip().partition(b" ")
            if not label or label.startswith(b"'"):
                continue
            if not bar:
                raise line_error(path, number, "no bar (|) before the features")
            numbers = label.split(b",") if lists else [label]
            if not all(map(bytes.isdigit, numbers)):
                raise line_error(path, number, f"label {label.decode(errors='replace')!r} is no whole number")
            if classes and not 1 <= int(label) <= classes:
                raise line_error(path, number, f"label {int(label)} is outside 1..{classes}")
            rest = more.lstrip() + BARE.sub(b"|" + namespace, bar + features)
            yield b",".join(b"%d" % int(one) for one in numbers), rest


def values(rest: bytes) -> tuple[bytes, dict[bytes, float]]:
    """Return what stands before the features of an example, and their values."""
    head, *words = rest.split()
    try:
        pairs = [word.partition(b":")[::2] for word in words]
        return head, {name: float(value or 1) for name, value in pairs}
    except ValueError:
        raise BenchError(f"--subtract_mean: {rest[:60]!r} are not all features with a value") from None


def centred(source: Iterator[Example], mean: dict[bytes, float]) -> Iterator[Example]:
    """Yield the examples with the mean of every feature subtracted."""
    for label, rest in source:
        head, own = values(rest)
        yield label, head + b"".join(b" %s:%.6g" % (name, own.get(name, 0.0) - m) for name, m in mean.items())


def main() -> None:
    """Execute the conversion that the command line requests."""
    parser = options(__doc__)
    parser.add_argument("--namespace", default="f", help="of features that have none (default: f)")
    parser.add_argument("--classes", type=int, metavar="K", help="labels are 1..K and stay as they are")
    parser.add_argument("--lists", action="store_true", help="an example may have several labels")
    parser.add_argument("--subtract_mean", action="store_true", help="of every feature; needs one namespace")
    given = parser.parse_args()
    if given.lists and given.classes:
        raise BenchError("--classes: cannot be given with --lists, whose labels are numbered anew")
    mean: Counter[bytes] = Counter()

    def read(paths: list[Path]) -> Iterator[Example]:
        own = examples(paths, given.namespace.encode(), given.classes, given.lists)
        return centred(own, mean) if given.subtract_mean else own

    if given.subtract_mean:
        examples_read = [values(rest)[1] for _, rest in examples(given.train, given.namespace.encode(), given.classes)]
        for own in examples_read:
            for name, value in own.items():
                mean[name] += value / len(examples_read)
    convert(given, read, given.lists)


if __name__ == "__main__":
    run(main)
