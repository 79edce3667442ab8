"""Escape text that is not safe to show on a terminal.

File names, command line words and class names may contain any characters: an escape sequence would move the cursor or
change colours, a line feed would forge a line, and a bidirectional override would reorder the text.
"""

from __future__ import annotations

import unicodedata

REPR_LENGTH = 60  # characters of a value in a message
SHORT = {"\t": "\\t", "\n": "\\n", "\r": "\\r"}


def printable(text: str) -> str:
    """Return one line of text with all characters escaped that are not printable.

    Spaces of any width stay. Control and format characters, including bidirectional overrides, become escapes such as
    `\\x1b` or `\\u202e`. Bytes that could not be decoded, which Python keeps as lone surrogates, become `\\xff`.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or unicodedata.category(c) == "Zs" else _escaped(c) for c in text)


def short_repr(value: object) -> str:
    """Return a value from a file as text for a message: printable ASCII of limited length."""
    try:
        text = ascii(value)
    except ValueError:  # an int with more digits than Python converts to text
        return "a number of thousands of digits"
    return text if len(text) <= REPR_LENGTH else text[:REPR_LENGTH] + "..."


def _escaped(c: str) -> str:
    code = ord(c)
    if c in SHORT:
        return SHORT[c]
    if 0xDC80 <= code <= 0xDCFF:  # a byte that could not be decoded
        code -= 0xDC00
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
