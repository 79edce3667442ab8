"""Make the key of a cache and check whether a stored key still fits.

The key holds everything that decides which batches come out of the data: version, bits, kind of label, all options of
the parser, and for each file its size, times and digest. A cache fits if its key equals the key made now. The digest
of a file is computed again only if the file's times or its place on the disk have changed.
"""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..options.declare import OptionGroup

VERSION = 4  # incremented whenever the format of blocks changes
SHOWN_LENGTH = 200  # characters of a value in a message
RACY = 2 * 10**9  # nanoseconds: a file changed this recently may change again without a new time


def make_key(
    parse: OptionGroup, bits: int, multiclass: bool, lowest: int | None, highest: int | None, limit: int | None
) -> dict[str, Any]:
    """Return the part of the key that does not depend on the data.

    `parse` has the options of the parser, and `limit` is the number of lines to read, None for all.
    """
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
    status = os.stat(path)
    return {
        "size": status.st_size,
        "time": [status.st_mtime_ns, status.st_ctime_ns],
        "place": [status.st_dev, status.st_ino],
        "settled": status.st_ctime_ns + RACY < time.time_ns(),
        "sha256": digest,
        "endings": Path(path).suffixes[-2:],  # which say the format
    }


def digest_of(path: str) -> str:
    digest = hashlib.sha256()
    with open(path, "rb", buffering=0) as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def stale_reason(stored_key: dict[str, Any], current_key: dict[str, Any], paths: Sequence[str] | None) -> str:
    """Return why a cache with a key does not fit, or an empty string if it does; without `paths`, any data will do."""
    for name, value in json.loads(json.dumps(current_key)).items():
        if stored_key.get(name) != value:
            if name == "version":
                return "another version of xclass made it"
            texts = [str(setting) for setting in (stored_key.get(name), value)]
            then, now = (text if len(text) <= SHOWN_LENGTH else "..." for text in texts)
            return f"it was made with {name} {then}, but this run has {name} {now}"
    if set(stored_key) - {"files"} != set(current_key):
        return "another version of xclass made it"
    if paths is None:
        return ""
    files = stored_key.get("files")
    if not files:
        return "it was made from a pipe, which cannot be compared with the data"
    if len(files) != len(paths):
        return f"the number of its data files was {len(files)} and is now {len(paths)}"
    for path, stored in zip(paths, files, strict=True):
        current = file_entry(path, None)
        if current["size"] != stored["size"]:
            return f"{path} has changed: it had {stored['size']} bytes and now has {current['size']}"
        if current["endings"] != stored["endings"]:
            return f"the name of its data file ended in {''.join(stored['endings']) or 'no letters'}, unlike {path}"
        if stored["settled"] and current["time"] == stored["time"] and current["place"] == stored["place"]:
            continue
        if digest_of(path) != stored["sha256"]:
            return f"{path} has changed"
    return ""


class Digesting(io.RawIOBase):
    """Read a file and compute the digest of its content while it is read."""

    def __init__(self, file: io.FileIO) -> None:
        self._file = file
        self._digest = hashlib.sha256()
        self._ended = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview | bytearray) -> int:  # type: ignore[override]  # gzip passes no other types
        count = self._file.readinto(buffer) or 0  # None is for non-blocking files only
        self._digest.update(memoryview(buffer)[:count])
        self._ended |= count == 0
        return count

    def tell(self) -> int:
        return self._file.tell()

    def digest(self) -> str | None:
        """Return the digest of the whole file, or None if it was not read to its end."""
        return self._digest.hexdigest() if self._ended else None
