"""Write to standard output and standard error: the only place that does, so that nothing in the data moves the cursor.

Texts for people (`line`, `error_line`, `page`) are escaped wherever they go. Predictions, audits and explanations
(`output_of`) are data: they are escaped on a terminal, and written as they are to a file or a pipe.
`tests/system/test_terminal.py` checks that no other module prints.
"""

from __future__ import annotations

import codecs
import contextlib
import os
import re
import sys
from collections.abc import Iterable, Iterator
from typing import BinaryIO, Protocol, TextIO

from .printable import printable

BOLD, RED, YELLOW = "1", "1;31", "33"  # ANSI codes


def line(text: str = "") -> None:
    """Write one line to standard output; characters that are not printable are escaped."""
    with naming_output():
        _write(printable(text), sys.stdout)


def error_line(text: str, mark: str = "", style: str = "") -> None:
    """Write one line to standard error at once; characters that are not printable are escaped.

    `mark` is text of xclass before it, which gets the style BOLD, RED or YELLOW. If the line cannot be written, further
    ones are discarded.
    """
    try:
        _write(_styled(mark, style, sys.stderr) + printable(text), sys.stderr)
        sys.stderr.flush()
    except OSError:  # what is done goes on, and its files are written
        _discard(sys.stderr)


def page(text: str) -> None:
    """Write lines of xclass itself, such as a help text, to standard output, headings in bold."""
    with naming_output():
        for one in text.rstrip().splitlines():
            is_heading = one.endswith(":") and one[:1].strip()
            _write(_styled(one, BOLD, sys.stdout) if is_heading else one, sys.stdout)


def _write(text: str, file: TextIO) -> None:
    """Write a line; characters that the encoding of the stream lacks are escaped."""
    encoding = getattr(file, "encoding", None) or "utf-8"
    file.write(text.encode(encoding, "backslashreplace").decode(encoding) + "\n")


def discard_output() -> None:
    """Send what standard output holds, and all that follows, to the null device."""
    _discard(sys.stdout)


def _discard(file: TextIO) -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    with contextlib.suppress(OSError, ValueError):  # closed, or without a descriptor
        os.dup2(nowhere, file.fileno())
        file.flush()
    os.close(nowhere)


def _styled(text: str, style: str, file: TextIO) -> str:
    """Return text with an ANSI style, or as it is where the stream is no terminal or shows no colours.

    `NO_COLOR` switches colours off, see https://no-color.org.
    """
    coloured = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb" and os.name != "nt"
    return f"\x1b[{style}m{text}\x1b[0m" if text and coloured and file.isatty() else text


def error_stream() -> TextIO:
    return sys.stderr


def shows_errors() -> bool:
    return sys.stderr.isatty()


def error_columns() -> int:
    """Return the number of columns of the terminal of standard error, 0 if there is none or it is not known."""
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns if sys.stderr.isatty() else 0
    except OSError:
        return 0


class ByteOutput(Protocol):
    """Describe an object that bytes can be written to."""

    def write(self, data: bytes | memoryview, /) -> int: ...

    def writelines(self, lines: Iterable[bytes], /) -> None: ...

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

    def writelines(self, lines: Iterable[bytes], /) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        self._file.flush()


def standard_output() -> BinaryIO:
    """Return standard output for bytes, for `output_of`, after writing what it holds."""
    with naming_output():
        sys.stdout.flush()
    return sys.stdout.buffer


@contextlib.contextmanager
def naming_output() -> Iterator[None]:
    """Name standard output in the OSErrors that are raised in the `with` block."""
    try:
        yield
    except OSError as error:
        discard_output()
        error.filename = error.filename or "standard output"
        raise


def output_of(file: BinaryIO) -> ByteOutput:
    """Return the file itself, or a `TerminalOutput` around it if it is a terminal."""
    return TerminalOutput(file) if file.isatty() else file
