"""Read durations such as `90s` and `5m`, and amounts of memory such as `500M` and `2G`, from a command line."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ..errors import UsageError

SECONDS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
BYTES = {unit + end: 1024.0**power for power, unit in enumerate(("", "k", "m", "g", "t")) for end in ("", "b")}
QUANTITY = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,6})?)\s*([a-z]*)", re.IGNORECASE)


def seconds(flag: str, text: str) -> float:
    """Return a duration in seconds; raise UsageError, which names `flag`, if the text is none."""
    return _read(flag, text, SECONDS, "a duration; give a number above 0 and s, m, h or d, such as 5m")


def size(flag: str, text: str) -> int:
    """Return an amount of memory in bytes; raise UsageError, which names `flag`, if the text is none."""
    return int(_read(flag, text, BYTES, "an amount of memory; give a number above 0 and K, M or G, such as 2G"))


def _read(flag: str, text: str, units: Mapping[str, float], kind: str) -> float:
    match = QUANTITY.fullmatch(text)
    if match is None or match[2].lower() not in units or not float(match[1]):
        raise UsageError(f"{flag}: {text!r} is not {kind}")
    return float(match[1]) * units[match[2].lower()]
