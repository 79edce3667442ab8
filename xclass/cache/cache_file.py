r"""Write and read the file of a cache: one block per batch, and a trailer that says what it was made from.

    +------------------------------------------------------------------------------------+
    | "xclass cache\n", zeros up to byte 16                                              |
    | block: see batch_codec.py; all examples of a block are of one file                 |
    | block ...                                                                          |
    | JSON: the key, the numbers of blocks and lines, the notes about malformed lines    |
    | length of the JSON, its crc32, the crc32 of all blocks' checksums: int64[3]        |
    | "whole, xclass\n\0\0"                                                              |
    +------------------------------------------------------------------------------------+  end of file

Writing   The file has no name, if the system supports that, or a temporary name beside its final one. It gets its
          name when it is complete and on the disk (`leftovers`), and its last bytes are written last. So a process
          killed at any moment leaves no file that looks like a complete cache.
Reading   The file is mapped into memory. The next window is requested in advance, and windows already read are
          released.
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import zlib
from collections.abc import Iterator, Sequence
from typing import IO, Any

import numpy as np

from ..data import schema
from ..data.batch import Batch, Pool
from ..system import bounded_json, leftovers, thread_limit
from ..system.bounded_json import Anything, List, OrNull, Record, Text, Whole
from .batch_codec import DamagedCacheError, pack, unpack

MAGIC = b"xclass cache\n".ljust(16, b"\0")
END = b"whole, xclass\n".ljust(16, b"\0")
MOST_NAMES = 1 << 32  # of classes in a trailer
WINDOW = 1 << 23  # bytes requested, and released, at a time
POPULATE = 22  # madvise(2): map pages that will be read; Linux 5.14


class Writer:
    """Write a cache, which exists under its name only after `finish`.

    Without a path, the file has no name and disappears when it is closed. `blocks` is the number of blocks written.
    """

    def __init__(self, path: str | None, classes: bool, constant: bool):
        self._unfinished = None if path is None else leftovers.Unfinished(path)
        self.file = leftovers.open_spill_file() if self._unfinished is None else self._unfinished.file
        self._classes, self._constant = classes, constant
        self._crc = 0
        self.blocks = 0
        self.file.write(MAGIC)

    @property
    def size(self) -> int:
        return self.file.tell()

    def write(self, batch: Batch, lines_before: int) -> None:
        """Append a batch; `lines_before` is the number of lines in the files before its own."""
        if batch.n == 0:
            return
        block, checksum = pack(batch, lines_before, self._classes, self._constant)
        self._crc = zlib.crc32(checksum.to_bytes(8, "little"), self._crc)
        self.blocks += 1
        self.file.write(block.data)

    def finish(self, facts: dict[str, Any]) -> None:
        """Write the trailer with `facts`, flush everything to the disk and give the file its name."""
        text = json.dumps({**facts, "blocks": self.blocks}).encode()
        self.file.write(text)
        self.file.write(np.array([len(text), zlib.crc32(text), self._crc], "<i8").tobytes())
        if self._unfinished is None:
            self.file.write(END)
            self.file.flush()
            return
        self._unfinished.flush()  # END must not reach the disk before the rest
        self.file.write(END)
        self._unfinished.flush()
        self._unfinished.take_place()
        self.file = self._unfinished.file

    def abandon(self) -> None:
        """Remove the unfinished file; has no effect on the named file after `finish`."""
        with contextlib.suppress(OSError, ValueError):
            self.file.close()
        if self._unfinished is not None:
            self._unfinished.close()


SOURCE = Record(  # a file of the data, see `cache_key.file_entry`
    {
        "size": Whole(),
        "time": List(Whole(-(1 << 62)), 2, 2),
        "endings": List(Text(), most=2),
    }
)
FACTS = Record(
    {
        "key": Record(optional={"files": OrNull(List(SOURCE))}, others=Anything()),
        **dict.fromkeys(("bad", "skipped", "lines", "blocks"), Whole()),
        **dict.fromkeys(("kept", "told"), List(Text())),
        "left_out": Text(),
    },
    optional={"names": List(Text(), most=MOST_NAMES), "schema": schema.SHAPE},
)


class Reader:
    """Iterate over the batches of a complete cache; every iteration begins with the first.

    DamagedCacheError is raised at once if the file is incomplete, and while iterating if a block has changed.

    `facts` are what `Writer.finish` was given, and the number of blocks; `places` are the offsets of the blocks that
    the last iteration read.
    """

    def __init__(self, file: IO[bytes], classes: bool) -> None:
        self.fraction_read = 0.0
        self.places: list[int] = []
        size = os.fstat(file.fileno()).st_size
        trailer_size = 24 + len(END)
        if size < len(MAGIC) + trailer_size:
            raise DamagedCacheError("it is truncated")
        self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        if self._map[size - len(END) :] != END:
            raise DamagedCacheError("it is truncated")
        length, crc, self._crc = np.frombuffer(self._map[size - trailer_size : size - len(END)], "<i8").tolist()
        self.end: int = size - trailer_size - length
        if not len(MAGIC) <= self.end <= size - trailer_size:
            raise DamagedCacheError("its end is damaged")
        text = self._map[self.end : size - trailer_size]
        if zlib.crc32(text) != crc:
            raise DamagedCacheError("its end is damaged")
        try:  # any program can write a correct checksum
            self.facts = bounded_json.parse(text, FACTS, MOST_NAMES)
        except bounded_json.Malformed:
            raise DamagedCacheError("it is damaged") from None
        self._data, self._classes, self._pool = np.frombuffer(self._map, np.uint8), classes, Pool()

    def __iter__(self) -> Iterator[tuple[Batch, int]]:
        """Yield each batch and the number of lines in the files before its own."""
        at = len(MAGIC)
        blocks = crc = requested = 0
        self.places = []
        while at < self.end:
            while at >= requested:
                requested = self._look_ahead(requested)
            with thread_limit.working():
                batch, lines_before, size, checksum = unpack(self._data, at, self.end, self._classes, self._pool)
            crc = zlib.crc32(checksum.to_bytes(8, "little"), crc)
            blocks += 1
            self.places.append(at)
            at += size
            self.fraction_read = at / self.end
            yield batch, lines_before
        if blocks != self.facts["blocks"] or crc != self._crc:
            raise DamagedCacheError("some of its blocks are missing")

    def batches_from(self, places: Sequence[int]) -> Iterator[Batch]:
        """Yield the batches of the blocks at these bytes; several threads may iterate at the same time."""
        pool = Pool()
        for at in places:
            yield unpack(self._data, at, self.end, self._classes, pool)[0]

    def _look_ahead(self, requested: int) -> int:
        """Request the window that begins at `requested`, release the one before the last, and return its end."""
        if not hasattr(self._map, "madvise"):
            return self.end
        behind = requested - 2 * WINDOW
        if behind >= 0:
            self._map.madvise(mmap.MADV_DONTNEED, behind, WINDOW)
        with contextlib.suppress(OSError):  # older kernels lack POPULATE and map page by page
            self._map.madvise(POPULATE, requested, min(WINDOW, len(self._map) - requested))
        return requested + WINDOW
