"""Make text safe to show on a terminal.

Names of files, words of a command line and names of classes may hold anything: an escape sequence would move the
cursor or change colours, a line feed would forge a line, and a bidirectional override would reorder what is shown.
"""

from __future__ import annotations

import unicodedata

LONGEST_SHOWN = 60  # characters of a value in a message
SHORT = {"\t": "\\t", "\n": "\\n", "\r": "\\r"}


def printable(text: str) -> str:
    """Return one line of text with everything that is not printable Unicode written as an escape.

    Spaces of any width stay. Control and format characters, bidirectional overrides among them, turn into `\\x1b` or
    `\\u202e`, and bytes that could not be decoded, which Python keeps as lone surrogates, into `\\xff`.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or unicodedata.category(c) == "Zs" else _escaped(c) for c in text)


def shortened(value: object) -> str:
    """Return a value from a file as a message shows it: in ASCII, without control characters, and not too long."""
    try:
        shown = ascii(value)
    except ValueError:  # a whole number of more digits than Python turns into text
        return "a number of thousands of digits"
    return shown if len(shown) <= LONGEST_SHOWN else shown[:LONGEST_SHOWN] + "..."


def _escaped(c: str) -> str:
    code = ord(c)
    if c in SHORT:
        return SHORT[c]
    if 0xDC80 <= code <= 0xDCFF:  # a byte that could not be decoded
        code -= 0xDC00
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
