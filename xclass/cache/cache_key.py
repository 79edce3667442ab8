"""The key of a cache: what, beside the text itself, decides which batches come out, and the text's digest.

A cache fits if its key is what it would be if it were made now: version, bits, kind of label, all options of the
parser, and for each file size, time and digest of the content. Where time and place of a file are as they were, the
digest is taken for granted; else it is computed anew.
"""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import os
import time
from collections.abc import Sequence
from typing import Any

from ..options.declare import OptionGroup

VERSION = 2  # raised whenever blocks are read in another way
MOST_SHOWN = 200  # characters of a value in a message
RACY = 2 * 10**9  # nanoseconds: a file changed this shortly before it was read may change again unnoticed


def make_key(
    parse: OptionGroup, bits: int, multiclass: bool, lowest: int | None, highest: int | None, limit: int | None
) -> dict[str, Any]:
    """What, besides the data, decides which batches come out. `parse`: the options of parser, a dataclass."""
    return {
        "version": VERSION,
        "bits": bits,
        "labels": "classes" if multiclass else "numbers",
        "lowest": lowest,
        "highest": highest,
        "examples": limit,
        **dataclasses.asdict(parse),
    }


def file_entry(path: str, digest: str | None) -> dict[str, Any]:
    """Size, times and place of a file, for the key."""
    found = os.stat(path)
    return {
        "size": found.st_size,
        "time": [found.st_mtime_ns, found.st_ctime_ns],
        "place": [found.st_dev, found.st_ino],
        "settled": found.st_ctime_ns + RACY < time.time_ns(),
        "sha256": digest,
    }


def digest_of(path: str) -> str:
    """The digest of a file's content."""
    total = hashlib.sha256()
    with open(path, "rb", buffering=0) as file:
        while piece := file.read(1 << 20):
            total.update(piece)
    return total.hexdigest()


def why_stale(kept: dict[str, Any], wanted: dict[str, Any], paths: Sequence[str] | None) -> str:
    """Why a cache with the key `kept` is not the one wanted now; empty if it is. No `paths`: any data will do."""
    for name, value in json.loads(json.dumps(wanted)).items():
        if kept.get(name) != value:
            if name == "version":
                return "another version of xclass made it"
            shown = [str(one) if len(str(one)) <= MOST_SHOWN else "..." for one in (kept.get(name), value)]
            return f"it was made with {name} {shown[0]}, and this is {name} {shown[1]}"
    if set(kept) - {"files"} != set(wanted):
        return "another version of xclass made it"
    if paths is None:
        return ""
    files = kept.get("files")
    if not files:
        return "what it was made of came through a pipe"
    if len(files) != len(paths):
        return f"it was made of {len(files)} files, these are {len(paths)}"
    for path, then in zip(paths, files, strict=True):
        now = file_entry(path, None)
        if now["size"] != then["size"]:
            return f"{path} has changed: {then['size']} bytes then, {now['size']} now"
        if then["settled"] and now["time"] == then["time"] and now["place"] == then["place"]:
            continue
        if digest_of(path) != then["sha256"]:
            return f"{path} has changed"
    return ""


class Digesting(io.RawIOBase):
    """A file whose content is digested as it is read."""

    def __init__(self, file: io.FileIO) -> None:
        self._file = file
        self._digest = hashlib.sha256()
        self._ended = False

    def readable(self) -> bool:
        """True."""
        return True

    def readinto(self, room: memoryview | bytearray) -> int:  # type: ignore[override]  # all that gzip hands in
        """Read into `room`."""
        got = self._file.readinto(room) or 0  # None only where a file does not block
        self._digest.update(memoryview(room)[:got])
        self._ended |= got == 0
        return got

    def tell(self) -> int:
        """Place in the file."""
        return self._file.tell()

    def digest(self) -> str | None:
        """Of the whole file; None if it was not read to its end."""
        return self._digest.hexdigest() if self._ended else None
