"""Make the key of a cache and check whether a stored key still fits.

The key holds everything that decides which batches come out of the data: version, bits, kind of label, all options of
the parser, and for each file its size and times. A cache fits if its key equals the key made now. The contents of files
are not compared, because that would take as long as to parse them.
"""

from __future__ import annotations

import dataclasses
import json
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..options.declare import OptionGroup

VERSION = 8  # incremented whenever the format of blocks changes
SHOWN_LENGTH = 200  # characters of a value in a message
# nanoseconds between two times that a file system can give, at most, and on one that counts whole seconds
STEP, COARSE_STEP = 2 * 10**7, 2 * 10**9


def make_key(
    parse: OptionGroup, bits: int, labels: str, lowest: int | None, highest: int | None, limit: int | None
) -> dict[str, Any]:
    """Return the part of the key that does not depend on the data.

    `parse` has the options of the parser, `labels` is the kind of the labels, see `ReductionRecord`, and `limit` the
    number of lines to read, None for all.
    """
    return {
        "version": VERSION,
        "bits": bits,
        "labels": labels,
        "lowest": lowest,
        "highest": highest,
        "examples": limit,
        **dataclasses.asdict(parse),
    }


def file_entry(path: str) -> dict[str, Any]:
    status = os.stat(path)
    return {
        "size": status.st_size,
        "time": [status.st_mtime_ns, status.st_ctime_ns],
        "name": os.path.basename(path),
    }


def _endings(name: str) -> list[str]:
    """Return the endings of a file's name, which say the format."""
    return Path(name).suffixes[-2:]


def settled_entry(path: str) -> dict[str, Any]:
    """Wait until any further change of a file will give it another time, and return its entry."""
    while True:
        entry = file_entry(path)
        changed = entry["time"][1]
        step = STEP if changed % 10**9 else COARSE_STEP
        if not 0 <= time.time_ns() - changed < step:
            return entry
        time.sleep(step / 1e10)


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
        current = file_entry(path)
        renamed = current["name"] != stored["name"]
        changed = any(current[name] != stored[name] for name in ("size", "time"))
        if renamed and (changed or _endings(current["name"]) != _endings(stored["name"])):
            return f"it was made from {stored['name']}, not from {path}"
        if current["size"] != stored["size"]:
            return f"{path} has changed: it had {stored['size']} bytes and now has {current['size']}"
        if changed:
            return f"{path} has changed"
    return ""
