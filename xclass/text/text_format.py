"""Define what the reader needs to know about a data format; the folder `formats` holds all formats but VW text."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np

from ..array_types import Int64s, UInt8s
from ..data.schema import OTHER
from . import parser
from .malformed import LEARN_LISTS

FORMATS = ("auto", "vw", "fasttext", "libsvm", "xmc", "csv", "jsonl", "npy")  # values of --format
NOT_UTF8 = (
    "the byte 0x{byte:02x} is not UTF-8, so that names with it are not those of text in UTF-8; if the file has the "
    "encoding Latin-1, convert it, `iconv -f latin1 -t utf8 FILE > NEW`"
)
CUT, NEWLINE = "unexpected end of data", b"\n"  # the reason for which the last character of a piece is no UTF-8
LOOK_BACK = 1 << 12  # bytes searched at a time for the end of a line


class BlockScanner(Protocol):
    """Describe an object that parses blocks of text independently of each other."""

    def scan(self, text: UInt8s, end: int) -> parser.Scan: ...


class TextFormat:
    """Read VW text; other formats derive from `OtherFormat`."""

    name = "vw"  # name of the format, a value of --format
    parallel = True  # whether several threads may parse the blocks of a file
    form = OTHER  # of the examples, see `schema.Schema`; empty if the file decides
    doubted = False  # whether a warning says that another column may have the labels
    # how a line gives its label, for the message about data without labels
    labelled = "a labelled line is `label | features`"
    dense: str | None = None  # key of a row of numbers, empty for none; None for a format that has no such rows
    binary = False  # whether a file has rows of bytes instead of lines, and its labels are in another file
    unfinished = ""  # message about a file that ends within an example

    first_columns: Int64s = np.empty(0, np.int64)  # numbers of the columns of the first lines, where they have some

    def __init__(self, width: int = 0) -> None:
        self._width = width  # number of columns of the dense block that the model has learned from, 0 for none
        self.about: list[str] = []  # lines about the format for the start of a run
        self.notes: list[str] = []  # warnings about the files; the reader puts its own list in their place
        self._noted: set[str] = set()  # warnings that were given

    def begin(self, text: bytes, ended: bool, file: str) -> tuple[int, int] | None:
        """Return the numbers of bytes and lines of the header of a file, or None if more of it is needed.

        `text` are the first lines, all if `ended`. Raise DataError if the header is malformed.
        """
        return 0, 0

    def finish(self, lines: int, file: str) -> None:
        """Check the number of lines after the header at the end of a file; raise DataError if it is wrong."""

    def scanner(self, of: parser.Parser) -> BlockScanner:
        """Return a new scanner for the blocks of a parser; each thread needs its own."""
        of.width = of.width or self._width
        return of.scanner()

    def end_of_lines(self, text: UInt8s, begin: int, end: int) -> int:
        """Return where the last complete line of `text[:end]` ends, or 0; there is no newline before `begin`."""
        while end > begin:
            piece = max(begin, end - LOOK_BACK)
            at = text[piece:end].tobytes().rfind(b"\n")
            if at >= 0:
                return piece + at + 1
            end = piece
        return 0

    def check_encoding(self, text: bytes, file: str, line: int = 1, named: bool = False) -> None:
        """Add a warning, once for a file, if a text that begins with a line of it is not UTF-8.

        If the text is the name of a class (`named`), its column is not known.
        """
        if file in self._noted:
            return
        try:
            text.decode()
        except UnicodeDecodeError as error:
            at = error.start
            place = str(line) if named else f"{line + text.count(NEWLINE, 0, at)}:{at - text.rfind(NEWLINE, 0, at)}"
            if error.reason != CUT:
                self._noted.add(file)
                self.notes.append(f"{file}:{place}: {NOT_UTF8.format(byte=text[at])}")


class WrittenFeature(NamedTuple):
    """Hold a feature as the text of a batch has it."""

    name: bytes
    value: np.float32
    namespace: bytes = b""
    word: bytes | None = None  # what follows the name if the value is a word, as in `name:word`
    is_index: bool = False  # whether the name is the number of a column
    is_text: bool = False  # whether the name is a text, whose features `data.texts` makes


class OtherFormat(TextFormat, ABC):
    """Read another format than VW text, whose labels and features are found without VW's parser."""

    @abstractmethod
    def labels_of(self, text: bytes) -> Iterator[tuple[bytes, bool]]:
        """Yield the label of each example of a text, empty for none, and whether it is a name, whatever it says."""

    @abstractmethod
    def features(self, line: bytes) -> Iterator[WrittenFeature]:
        """Yield the features of a line of the text of a batch, in the order of the batch."""


Chooser: TypeAlias = Callable[[bytes, bool, str], TextFormat | None]  # from the arguments of `begin`; None for more


def advice(format: TextFormat | None, report: Sequence[str]) -> str:
    """Return how labels are learned, for data of which none was; `report` is that of their reader."""
    if any(LEARN_LISTS in line for line in report):
        return LEARN_LISTS
    return (format or TextFormat()).labelled


def vw_text(text: bytes, ended: bool, file: str) -> TextFormat:
    return TextFormat()
