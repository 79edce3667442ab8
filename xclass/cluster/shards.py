"""Find the files of the data, deal them to parts, and read a part; only workers open files, never the driver.

    paths = session.call(expand, patterns)                # patterns and URLs -> paths, in order
    sizes = session.call(sizes_of, paths)                 # bytes; None where unknown
    parts = deal(paths, sizes, count, splittable)         # `DataPart`s, as many as there are workers
    for batch, line in PartReader(part, config, names).after(position): ...   # in the worker

Idea      A part is a list of whole files or, if there are fewer files than parts, a range of bytes of one file, which
          holds the lines that begin in it. The position of an example in its part is its line number, counted over the
          files of the part; in a range it is the line number in the whole file. A reader can begin after any position,
          so a worker that takes the place of another reads what that one would have read next.
"""

from __future__ import annotations

import contextlib
import glob
import io
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from io import FileIO
from typing import Any, NamedTuple

import numpy as np

from ..api.configuration import Config, parser_of
from ..array_types import Int64s
from ..data import batch_ops
from ..data.batch import Batch
from ..data.class_names import Names
from ..data.schema import Schema
from ..errors import DataError, UsageError
from ..formats import detect, npy
from ..reductions.core.spec import LabelRange
from ..system import streams
from ..text import parser, reader, urls
from ..text.text_format import TextFormat
from .session import Session

PEEKED = 1 << 18  # bytes of the first file that show what the labels are
CHUNK = 1 << 20  # bytes read at a time while lines are counted


class PartFiles(NamedTuple):
    paths: tuple[str, ...]
    sizes: Sequence[int | None]  # bytes, None where unknown
    splittable: bool  # whether the format allows to begin at any line


class DataPart(NamedTuple):
    """Hold the data that one worker learns from."""

    number: int  # from 1
    paths: tuple[str, ...]
    begin: int = 0  # bytes of the only file that belong to it: the lines that begin at or after this one,
    end: int | None = None  # and before this one; None for all


def find(session: Session, data: Sequence[str], text_format: str) -> PartFiles:
    """Return the files of the data, which a node of the cluster finds; raise DataError if nothing matches a pattern."""
    paths, sizes = session.call(files_in, os.getcwd(), data)
    return PartFiles(paths, sizes, text_format in ("auto", "vw"))


# -- functions that run on a node of the cluster


def expand(patterns: Sequence[str]) -> list[str]:
    """Return the paths that patterns and URLs stand for, those of a pattern in order."""
    paths: list[str] = []
    for pattern in patterns:
        is_url = urls.is_url(pattern)
        marks = "*[" if is_url else "*?["  # a question mark in a URL begins its query
        if not any(mark in pattern for mark in marks) or (not is_url and os.path.exists(pattern)):
            paths.append(pattern)
            continue
        if is_url:
            matches = urls.matches(pattern)
        else:
            matches = sorted(glob.glob(pattern, recursive=True))
        if not matches:
            raise DataError(f"{pattern}: no file matches; check the pattern, and that every node can read the files")
        paths += npy.without_labels(matches)
    return paths


def enter(folder: str) -> None:
    """Change to a folder, in which relative names of files are, if this node has it."""
    if os.path.isdir(folder):
        os.chdir(folder)


def files_in(folder: str, patterns: Sequence[str]) -> tuple[tuple[str, ...], list[int | None]]:
    """Return the files that patterns stand for, whose relative names are in a folder, and their sizes."""
    enter(folder)
    paths = tuple(expand(patterns))
    return paths, sizes_of(paths)


def sizes_of(paths: Sequence[str]) -> list[int | None]:
    """Return the bytes of files, None where unknown or unreadable; who reads the file reports errors."""
    sizes: list[int | None] = []
    for path in paths:
        try:
            sizes.append(urls.size(path) if urls.is_url(path) else os.stat(path).st_size)
        except (OSError, DataError):
            sizes.append(None)
    return sizes


def first_lines(folder: str, path: str) -> bytes:
    """Return the decompressed beginning of a file whose relative name is in a folder, empty if it cannot be read."""
    enter(folder)
    lines = bytearray()
    if not reader.is_pipe(path):
        reader.peek_labels((path,), _Collector(lines), reader.Peeked())
    return bytes(lines)


class _Collector:
    """Collect lines until there are `PEEKED` bytes, as a detector for `reader.peek_labels`."""

    def __init__(self, into: bytearray) -> None:
        self._into = into

    @property
    def classes(self) -> bool | None:
        return True if len(self._into) >= PEEKED else None

    def add(self, line: bytes, /) -> None:
        self._into += line + b"\n"


# -- parts


def deal(files: PartFiles, count: int) -> list[DataPart]:
    """Deal files to parts: whole files in turn, or ranges of files if there are fewer files than parts."""
    paths, sizes, splittable = files
    if len(paths) >= count:
        return [DataPart(number + 1, tuple(paths[number::count])) for number in range(count)]
    parts: list[DataPart] = []
    for i, (path, size) in enumerate(zip(paths, sizes, strict=True)):
        pieces = count * (i + 1) // len(paths) - count * i // len(paths)
        if pieces > 1 and (size is None or not splittable or streams.ending_of(path)):
            raise UsageError(
                f"there are {count} workers and {len(paths)} data file{'s' * (len(paths) > 1)}, and {path} cannot be "
                f"split: only plain files of VW text can; give at least {count} files, or --workers {len(paths)}"
            )
        for k in range(pieces):
            begin = 0 if k == 0 else (size or 0) * k // pieces
            end = None if k == pieces - 1 else (size or 0) * (k + 1) // pieces
            parts.append(DataPart(len(parts) + 1, (path,), begin, end))
    return parts


def pieces(files: PartFiles, count: int) -> list[DataPart]:
    """Return parts whose order is that of the data: each file is one, or its ranges if there are fewer than `count`."""
    if len(files.paths) < count:
        with contextlib.suppress(UsageError):  # each file is one part then
            return deal(files, count)
    return [DataPart(number, (path,)) for number, path in enumerate(files.paths, 1)]


class PartReader:
    """Read a part, in a worker.

    Parameters
    ----------
    names : names of classes, to which new ones are added if it grows
    label_range : labels that the learner accepts
    schema : columns of the tables learned from; if there are none, the first file of all data decides, so that columns
        mean the same in all parts
    """

    def __init__(self, part: DataPart, config: Config, names: Names, label_range: LabelRange, schema: Schema) -> None:
        self.part = part
        self.schema = schema.copy(fixed=config.run.testonly)
        self._config, self._names, self._label_range = config, names, label_range
        self.reader: reader.Reader | None = None  # before the reading begins

    @property
    def notes(self) -> list[str]:
        return [] if self.reader is None else self.reader.notes

    @property
    def name(self) -> str:
        return self.part.paths[0] if self.reader is None else self.reader.name

    @property
    def format(self) -> TextFormat | None:
        return None if self.reader is None else self.reader.format

    def report(self) -> list[str]:
        return [] if self.reader is None else self.reader.report()

    def after(self, position: int) -> Iterator[tuple[Batch, Int64s]]:
        """Yield the batches of the examples after a position, 0 for all, with the position of each, int64[n]."""
        config = self._config
        options = replace(config.reader, data=self.part.paths)
        of_lines = parser_of(config, self._label_range, self._names, learning=not config.run.testonly)
        of_lines.predicting = config.run.testonly
        choose = detect.chooser(options, self.schema, config.given)
        text = self.reader = reader.Reader(options, of_lines, choose=choose)
        data = config.reader.data or self.part.paths
        one, choose = replace(config.reader, data=data[:1]), detect.chooser(config.reader, self.schema)
        first = reader.Reader(one, parser.Parser(config.parser, 18, "simple"), choose=choose)
        if not isinstance(data[0], urls.VirtualFile) and (
            self.part.begin or self.part.end or data[0] != self.part.paths[0]
        ):
            first.preview()
            self.schema.room = 0  # for names in this part
        if (self.part.begin or self.part.end) and first.format is not None and first.format.name in ("csv", "npy"):
            kind = detect.FORMATS[first.format.name].title
            raise DataError(
                f"{self.part.paths[0]}: the file is {kind}, whose parts lack the header, so it cannot be split; give a "
                f"file for each worker, or --workers {len(data)}"
            )
        if self.part.begin or self.part.end is not None:
            text.wrap = lambda file: _Range(file, self.part)
            text.lines_skipped = _count_lines(self.part.paths[0], self.part.begin)
        for batch in text:
            line = batch.line + text.lines_before
            low = int(np.searchsorted(line, position, side="right")) if position else 0
            if low < batch.n:
                yield batch_ops.cut(batch, low, batch.n), line[low:]


class _Range(io.RawIOBase):
    """Read the lines of a file that begin in the range of a part."""

    def __init__(self, file: FileIO, part: DataPart) -> None:
        self._file = file
        self._begin = self._at = _line_at_or_after(file, part.begin)
        self._end = None if part.end is None else _line_at_or_after(file, part.end)
        file.seek(self._begin)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview | bytearray) -> int:  # type: ignore[override]  # no other types are passed
        view = memoryview(buffer)
        size = self._file.readinto(view if self._end is None else view[: self._end - self._at]) or 0
        self._at += size
        return size

    def tell(self) -> int:
        return self._at - self._begin


def _line_at_or_after(file: Any, byte: int) -> int:
    """Return where the first line begins that begins at a byte of an open file or later."""
    if byte == 0:
        return 0
    at = byte - 1
    file.seek(at)
    while chunk := file.read(CHUNK):
        found = chunk.find(b"\n")
        if found >= 0:
            return int(at + found + 1)
        at += len(chunk)
    return at


def _count_lines(path: str, byte: int) -> int:
    count = 0
    with urls.opened(path) as file:
        left = _line_at_or_after(file, byte)
        file.seek(0)
        while left > 0 and (chunk := file.read(min(left, CHUNK))):
            count += chunk.count(b"\n")
            left -= len(chunk)
    return count
