"""Write output that may go to a terminal: use colours where they are shown, and escape control characters of data."""

from __future__ import annotations

import codecs
import os
import re
from typing import BinaryIO, Protocol, TextIO

from .printable import printable

BOLD, RED, YELLOW = "1", "1;31", "33"  # ANSI codes


def styled(text: str, style: str, file: TextIO) -> str:
    """Return text with an ANSI style, or as it is where the stream is no terminal or shows no colours.

    `NO_COLOR` switches colours off, see https://no-color.org.

    Parameters
    ----------
    style : BOLD, RED or YELLOW
    file : the stream that the text goes to
    """
    coloured = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb" and os.name != "nt"
    return f"\x1b[{style}m{text}\x1b[0m" if coloured and file.isatty() else text


def columns(file: TextIO) -> int:
    """Return the number of columns of the terminal that a stream goes to, 0 if there is none or it is not known."""
    try:
        return os.get_terminal_size(file.fileno()).columns if file.isatty() else 0
    except OSError:
        return 0


class Output(Protocol):
    """Describe an object that bytes can be written to."""

    def write(self, data: bytes | memoryview, /) -> int: ...

    def flush(self) -> None: ...


class TerminalOutput:
    """Write UTF-8 text to a file with control characters escaped, except for tabs and newlines."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")

    def write(self, data: bytes | memoryview, /) -> int:
        text = self._decoder.decode(bytes(data))
        escaped = "".join(part if part in "\n\t" else printable(part) for part in re.split(r"([\n\t])", text))
        self._file.write(escaped.encode("utf-8"))
        return len(data)

    def flush(self) -> None:
        self._file.flush()


def output_of(file: BinaryIO) -> Output:
    """Return the file itself, or a `TerminalOutput` around it if it is a terminal."""
    return TerminalOutput(file) if file.isatty() else file
