"""Output that may go to a terminal, which must not obey escape sequences in somebody's data."""

from __future__ import annotations

import codecs
import re
from typing import BinaryIO, Protocol

from .printable import printable


class Output(Protocol):
    """What a writer of bytes needs."""

    def write(self, data: bytes | memoryview, /) -> int: ...

    def flush(self) -> None: ...


class TerminalOutput:
    """Writes text with control characters escaped, except for tabs and the ends of lines."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")

    def write(self, data: bytes | memoryview, /) -> int:
        text = self._decoder.decode(bytes(data))
        shown = "".join(part if part in "\n\t" else printable(part) for part in re.split(r"([\n\t])", text))
        self._file.write(shown.encode("utf-8"))
        return len(data)

    def flush(self) -> None:
        self._file.flush()


def output_of(file: BinaryIO) -> Output:
    """Return the file, or what escapes control characters on their way to it where it is a terminal."""
    return TerminalOutput(file) if file.isatty() else file
