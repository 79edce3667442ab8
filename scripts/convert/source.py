"""What all converters share: reading packed text line by line, splits, numbers for labels, files of VW text.

A converter yields examples `(label, rest)` in bytes, where `rest` is everything after the label on a line of VW text,
and `write` makes of them, in the folder --out,

    train.vw, test.vw     `number rest`, or `number,number rest` with lists of labels; with --packed, .gz
    labels.txt            number, tab, the label in the source, one line per class; written last

Labels get the numbers 1..K in their order, numbers before words; those of lists 0..K-1.
Same source, same options, same bytes.
"""

from __future__ import annotations

import argparse
import bz2
import functools
import gzip
import io
import itertools
import lzma
import os
import random
import subprocess
import zipfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from scripts.lib.command_line import new_parser
from scripts.lib.processes import BenchError

Example = tuple[bytes, bytes]
SHARE = 0.1  # of the examples that is drawn for testing


def line_error(path: Path, line: int, problem: str) -> BenchError:
    """Return the error that a line is bad."""
    return BenchError(f"{path}:{line}: {problem}")


# -- reading -----------------------------------------------------------------------------------------------------


def opened(path: Path) -> BinaryIO:
    """Open a file, decompressing it if necessary; its first bytes show the format, not its name."""
    try:
        with open(path, "rb") as file:
            magic = file.read(6)
    except OSError as error:
        raise BenchError(f"{path}: {error.strerror}") from None
    if magic[:2] == b"\x1f\x8b":
        return gzip.open(path)
    if magic[:3] == b"BZh":
        return bz2.open(path)
    if magic == b"\xfd7zXZ\x00":
        return lzma.open(path)
    if magic[:2] == b"\x1f\x9d":  # of the old program `compress`, for which Python has no module
        unpacked = subprocess.run(["gzip", "-dc", path], capture_output=True)
        if unpacked.returncode:
            raise BenchError(f"{path}: {unpacked.stderr.decode(errors='replace').strip()}")
        return io.BytesIO(unpacked.stdout)
    if magic[:4] == b"PK\x03\x04":
        archive = zipfile.ZipFile(path)
        members = [name for name in archive.namelist() if not name.endswith("/")]
        if len(members) != 1:
            raise BenchError(f"{path}: has {len(members)} files, not one: unpack it and name the right one")
        return archive.open(members[0])
    return open(path, "rb")


def lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of a file, from 1, without their ends."""
    number = 0
    with opened(path) as file:
        try:
            for number, line in enumerate(file, 1):
                yield number, line.rstrip(b"\r\n")
        except (OSError, EOFError, zipfile.BadZipFile) as error:
            raise BenchError(f"{path}: damaged after line {number:,}: {error}") from None


def plain_name(name: str) -> str:
    """Return a word as a feature: without the characters that VW text gives a meaning."""
    return name.replace(":", "_").replace("|", "_")


# -- writing -----------------------------------------------------------------------------------------------------


def created(path: Path, packed: bool) -> BinaryIO:
    """Return a file to write to, with .gz after its name if packed; the same content gives the same bytes."""
    if not packed:
        return open(path, "wb")
    return gzip.GzipFile(path.with_name(path.name + ".gz"), "wb", compresslevel=1, mtime=0)


def order(label: bytes) -> tuple[int, int, bytes]:
    """Return what labels are sorted by: whole numbers by value, then words by their bytes."""
    try:
        return 0, int(label), label
    except ValueError:
        return 1, 0, label


def write(
    out: Path,
    train: Callable[[], Iterable[Example]],
    test: Callable[[], Iterable[Example]] | None = None,
    *,
    seed: int = 1,
    shuffle: bool = False,
    limit: int | None = None,
    classes: int | None = None,
    labels: list[bytes] | None = None,
    packed: bool = False,
    lists: bool = False,
) -> dict[str, int]:
    """Write train.vw, test.vw and labels.txt; return how many examples and classes there are.

    Parameters
    ----------
    train, test : give the examples anew at every call.
    seed : of the draw of SHARE of the examples for `test`, if that is not given, and of the shuffle.
    shuffle : write training examples in random order; they are held in memory.
    limit : take the first so many examples of each source.
    classes : labels are the numbers 1..classes, and stay as they are.
    labels : labels are these, numbered in this order; others do not occur.
    packed : write train.vw.gz and test.vw.gz.
    lists : the label of an example is a list of labels with commas between them.
    """
    parts = (lambda label: label.split(b",")) if lists else (lambda label: [label])
    sources = [lambda source=source: itertools.islice(source(), limit) for source in (train, test) if source]
    out.mkdir(parents=True, exist_ok=True)
    (out / "labels.txt").unlink(missing_ok=True)
    seen_labels, counts = set(), []
    if (classes is None and labels is None) or test is None:
        for source in sources:
            seen = [label for label, _ in source()]
            counts.append(len(seen))
            seen_labels.update(part for label in seen for part in parts(label))
    if labels is None:
        labels = [b"%d" % y for y in range(1, classes + 1)] if classes else sorted(seen_labels, key=order)
    number = {label: b"%d" % y for y, label in enumerate(labels, 0 if lists else 1)}
    held_out = set()
    if test is None:
        if counts[0] < 2:
            raise BenchError(f"{counts[0]} examples cannot be split into training and test examples")
        held_out = set(random.Random(seed).sample(range(counts[0]), max(1, round(counts[0] * SHARE))))
    facts = {"train": 0, "test": 0, "classes": len(labels)}
    lines: list[bytes] = []
    with created(out / "train.vw", packed) as train_file, created(out / "test.vw", packed) as test_file:
        for name, source in zip(("train", "test"), sources, strict=False):
            for place, (label, rest) in enumerate(source()):
                testing = name == "test" or place in held_out
                line = b"%s %s\n" % (b",".join(number[part] for part in parts(label)), rest)
                facts["test" if testing else "train"] += 1
                if testing:
                    test_file.write(line)
                elif shuffle:
                    lines.append(line)
                else:
                    train_file.write(line)
        random.Random(seed).shuffle(lines)
        train_file.writelines(lines)
    if not facts["train"] or not facts["test"]:
        raise BenchError(f"{facts['train']} training and {facts['test']} test examples: there must be some of both")
    with open(out / "labels.part", "wb") as file:
        file.writelines(b"%s\t%s\n" % (y, label) for label, y in number.items())
    os.replace(out / "labels.part", out / "labels.txt")
    return facts


# -- the command line of a converter -------------------------------------------------------------------------------


def options(doc: str, several: bool = True) -> argparse.ArgumentParser:
    """Return a parser with what all converters understand."""
    parser = new_parser(doc)
    parser.add_argument("--train", type=Path, nargs="+", required=True, metavar="FILE", help="read one after the other")
    parser.add_argument("--test", type=Path, nargs="+", metavar="FILE", help="without it, a tenth is drawn for testing")
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--seed", type=int, default=1, help="of everything drawn at random (default: 1)")
    parser.add_argument("--limit", type=int, metavar="N", help="first N examples of --train and of --test")
    if several:
        parser.add_argument("--shuffle", action="store_true", help="write training examples in random order")
        parser.add_argument("--packed", action="store_true", help="write train.vw.gz and test.vw.gz")
    return parser


def settings(given: argparse.Namespace) -> dict:
    """Return the keywords of `write` that a command line gave."""
    if given.limit is not None and given.limit < 1:
        raise BenchError(f"--limit {given.limit}: at least 1")
    arguments = {"seed": given.seed, "limit": given.limit}
    for name in ("shuffle", "classes", "packed"):
        if hasattr(given, name):
            arguments[name] = getattr(given, name)
    return arguments


def convert(
    given: argparse.Namespace, examples: Callable[[list[Path]], Iterable[Example]], lists: bool = False
) -> None:
    """Write the examples of the files of --train and --test, which `examples` reads, and print what was written."""
    train, test = (paths and functools.partial(examples, paths) for paths in (given.train, given.test))
    say(write(given.out, train, test, lists=lists, **settings(given)))


def say(facts: dict[str, int]) -> None:
    """Print what a converter wrote."""
    print(f"{facts['train']:,} training and {facts['test']:,} test examples, {facts['classes']:,} classes")
