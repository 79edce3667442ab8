"""The file of a cache: blocks, one for each batch, and an end that says what it was made of.

    +------------------------------------------------------------------------------------+
    | "xclass cache\n", zeros up to byte 16                                              |
    | block: see blocks.py; one for one batch, of one file                               |
    | block ...                                                                          |
    | JSON: the key, the numbers of blocks and lines, what was said about the lines      |
    | its length, its crc32, the crc32 of all blocks' sums: int64[3]                     |
    | "whole, xclass\n\0\0"                                                              |
    +------------------------------------------------------------------------------------+  end of file

Written   without a name, where the system can do that, or beside its place, and renamed when it is whole and on the
          disk (`leftovers`). Its last bytes are written last. So a process killed at any moment leaves no cache behind
          that is taken for whole.
Read      mapped into memory a window ahead, and let go behind.
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import zlib
from collections.abc import Iterator
from typing import IO, Any

import numpy as np

from ..data.batch import Batch
from ..system import leftovers
from .batch_codec import Damaged, Packer, Unpacker

MAGIC = b"xclass cache\n".ljust(16, b"\0")
END = b"whole, xclass\n".ljust(16, b"\0")
WINDOW = 1 << 23  # bytes mapped at a time, and let go at a time
POPULATE = 22  # madvise(2): map pages that will be read; Linux 5.14


class Writer:
    """Writes a cache; it is there after `finish` only.

    Parameters
    ----------
    path : where to; None for a file without a name that is gone when it is closed
    classes : whether labels are classes
    constant : whether each example ends with the constant
    """

    def __init__(self, path: str | None, classes: bool, constant: bool):
        self._unfinished = None if path is None else leftovers.Unfinished(path)
        self.file = leftovers.spill() if self._unfinished is None else self._unfinished.file
        self._packer = Packer(classes, constant)
        self._sum = 0
        self.blocks = 0
        self.file.write(MAGIC)

    @property
    def size(self) -> int:
        """Bytes written so far."""
        return self.file.tell()

    def write(self, batch: Batch, before: int) -> None:
        """Add a batch; `before`: lines of the files before this one."""
        if batch.n == 0:
            return
        block, found = self._packer.pack(batch, before)
        self._sum = zlib.crc32(found.to_bytes(8, "little"), self._sum)
        self.blocks += 1
        self.file.write(block.data)

    def finish(self, facts: dict[str, Any]) -> None:
        """Write the end, have it all on the disk and give it its name."""
        text = json.dumps({**facts, "blocks": self.blocks}).encode()
        self.file.write(text)
        self.file.write(np.array([len(text), zlib.crc32(text), self._sum], "<i8").tobytes())
        if self._unfinished is None:
            self.file.write(END)
            self.file.flush()
            return
        self._unfinished.flush()  # so that its last bytes are never there without the others
        self.file.write(END)
        self._unfinished.flush()
        self._unfinished.take_place()
        self.file = self._unfinished.file

    def abandon(self) -> None:
        """Leave nothing behind; harmless after `finish`."""
        with contextlib.suppress(OSError, ValueError):
            self.file.close()
        if self._unfinished is not None:
            self._unfinished.close()


NUMBERS, TEXTS = ("bad", "skipped", "lines", "blocks"), ("kept", "told", "names")


def _facts(text: bytes) -> dict[str, Any]:
    """Return the record at a cache's end. Its sum is right, and yet anybody may have written it."""
    try:
        found = json.loads(text)
        fine = isinstance(found["key"], dict) and all(type(found[name]) is int and found[name] >= 0 for name in NUMBERS)
        for name in TEXTS:
            texts = found[name] if name != "names" else found.get(name, [])
            fine = fine and isinstance(texts, list) and all(isinstance(one, str) for one in texts)
    except (KeyError, TypeError, ValueError, RecursionError):
        fine = False
    if not fine:
        raise Damaged("it is damaged")
    facts: dict[str, Any] = found
    return facts


class Reader:
    """The batches of a whole cache; every iteration begins anew.

    Attributes
    ----------
    facts : what `Writer.finish` was given
    part : how much of it was read, 0 to 1

    Raises
    ------
    Damaged
        at once, where it is not whole; while iterating, where a block is not what it was.
    """

    def __init__(self, file: IO[bytes], classes: bool) -> None:
        self.part = 0.0
        size = os.fstat(file.fileno()).st_size
        last = 24 + len(END)
        if size < len(MAGIC) + last:
            raise Damaged("it is truncated")
        self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        if self._map[: len(MAGIC)] != MAGIC:
            raise Damaged("it is not a cache of xclass")
        if self._map[size - len(END) :] != END:
            raise Damaged("it is truncated")
        length, crc, self._sum = np.frombuffer(self._map[size - last : size - len(END)], "<i8").tolist()
        self.end: int = size - last - length
        if not len(MAGIC) <= self.end <= size - last:
            raise Damaged("its end is damaged")
        text = self._map[self.end : size - last]
        if zlib.crc32(text) != crc:
            raise Damaged("its end is damaged")
        self.facts = _facts(text)
        self._unpacker = Unpacker(np.frombuffer(self._map, np.uint8), self.end, classes)

    def __iter__(self) -> Iterator[tuple[Batch, int]]:
        at = len(MAGIC)
        blocks = total = ready = 0
        while at < self.end:
            while at >= ready:
                ready = self._look_ahead(ready)
            batch, before, size, found = self._unpacker.unpack(at)
            total = zlib.crc32(found.to_bytes(8, "little"), total)
            blocks += 1
            at += size
            self.part = at / self.end
            yield batch, before
        if blocks != self.facts["blocks"] or total != self._sum:
            raise Damaged("blocks are missing")

    def _look_ahead(self, ready: int) -> int:
        """Let go of the window before `ready` but one; have the one that begins there mapped; return where it ends."""
        if not hasattr(self._map, "madvise"):
            return self.end
        behind = ready - 2 * WINDOW
        if behind >= 0:
            self._map.madvise(mmap.MADV_DONTNEED, behind, WINDOW)
        with contextlib.suppress(OSError):  # an older system maps page by page
            self._map.madvise(POPULATE, ready, min(WINDOW, len(self._map) - ready))
        return ready + WINDOW
