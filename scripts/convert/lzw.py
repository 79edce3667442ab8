"""Unpack files of the old Unix program `compress` (.Z), in which the UCI repository keeps some of its sets.

The file is 1f 9d, a byte that says how long codes may get and whether code 256 empties the table, then codes, lowest
bit first. They begin with 9 bits and grow by one when the table is full; codes come in groups of eight, and what is
left of a group when the length changes is skipped.
"""

from __future__ import annotations

MAGIC = b"\x1f\x9d"
CLEAR = 256


def unpack(packed: bytes) -> bytes:
    """Return the content of a .Z file; ValueError if it is none or is damaged."""
    if packed[:2] != MAGIC or len(packed) < 3:
        raise ValueError("not a file of `compress`")
    max_width, clears = packed[2] & 31, packed[2] >> 7
    if not 10 <= max_width <= 16:
        raise ValueError(f"codes of {max_width} bits")
    first_free = CLEAR + clears
    words = [bytes([i]) for i in range(256)] + [b""] * clears
    out = []
    width, previous = 9, b""
    at = start = 24  # bits; `start` is where the codes of this width begin
    end = len(packed) * 8
    while at + width <= end:
        byte = at >> 3
        code = (int.from_bytes(packed[byte : byte + 4], "little") >> (at & 7)) & ((1 << width) - 1)
        at += width
        if clears and code == CLEAR:
            at = start + -(-(at - start) // (8 * width)) * 8 * width
            del words[first_free:]
            width, previous, start = 9, b"", at
            continue
        if code < len(words):
            word = words[code]
        elif code == len(words) and previous:
            word = previous + previous[:1]
        else:
            raise ValueError(f"damaged near byte {byte:,}")
        out.append(word)
        if previous and len(words) < 1 << max_width:
            words.append(previous + word[:1])
        previous = word
        # the writer is one word ahead of us: it changes the width when its table is full
        if len(words) >= (1 << width) and width < max_width:
            at = start + -(-(at - start) // (8 * width)) * 8 * width
            width, start = width + 1, at
    return b"".join(out)
