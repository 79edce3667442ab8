"""Read durations such as `90s` and `5m`, and amounts of memory such as `500M` and `2G`, from a command line."""

from __future__ import annotations

import re

from ..errors import UsageError

SECONDS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
BYTES = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
QUANTITY = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,6})?)\s*([a-z]?)b?", re.IGNORECASE)


def seconds(flag: str, text: str) -> float:
    """Return a duration in seconds; raise UsageError, which names `flag`, if the text is none."""
    match = QUANTITY.fullmatch(text)
    if match is None or match[2].lower() not in SECONDS or text[-1:] in "bB" or not float(match[1]):
        raise UsageError(f"{flag}: {text!r} is not a duration; give a number above 0 and s, m, h or d, such as 5m")
    return float(match[1]) * SECONDS[match[2].lower()]


def size(flag: str, text: str) -> int:
    """Return an amount of memory in bytes; raise UsageError, which names `flag`, if the text is none."""
    match = QUANTITY.fullmatch(text)
    if match is None or match[2].lower() not in BYTES or not float(match[1]):
        raise UsageError(
            f"{flag}: {text!r} is not an amount of memory; give a number above 0 and K, M or G, such as 2G"
        )
    return int(float(match[1]) * BYTES[match[2].lower()])
