r"""Write and read the file of a cache: one block per batch, and a trailer that says what it was made from.

    +------------------------------------------------------------------------------------+
    | "xclass cache\n", zeros up to byte 16                                              |
    | block: see batch_codec.py; all examples of a block are of one file                 |
    | block ...                                                                          |
    | JSON: the key, the size and checksum of each block, the number of lines, the notes |
    | about malformed lines                                                              |
    | length of the JSON, its crc32: int64[2]                                            |
    | "whole, xclass\n\0\0"                                                              |
    +------------------------------------------------------------------------------------+  end of file

Writing   The file has no name, if the system supports that, or a temporary name beside its final one. It gets its
          name when it is complete and on the disk (`leftovers`), and its last bytes are written last. So a process
          killed at any moment leaves no file that looks like a complete cache.
Reading   The end of the file is read first. Then each block is copied from the file, compared with its checksum, and
          decoded. Others may change the file at any time, so nothing of it is mapped into memory.
"""

from __future__ import annotations

import contextlib
import json
import os
import zlib
from collections.abc import Iterator
from typing import IO, Any

import numpy as np

from ..array_types import UInt8s
from ..data import schema
from ..data.batch import Batch, Pool
from ..errors import DataError
from ..system import bounded_json, leftovers, thread_limit
from ..system.bounded_json import Anything, List, OrNull, Record, Text, Whole
from .batch_codec import block_checksum, pack, unpack

MAGIC = b"xclass cache\n".ljust(16, b"\0")
END = b"whole, xclass\n".ljust(16, b"\0")
MOST = 1 << 32  # names of classes, and blocks, of a cache


class DamagedCacheError(DataError):
    """Report a file that is not a complete cache, or is not any more; `reason` says why."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"{name}: the cache cannot be read: {reason}; start again with the data and -k")
        self.reason = reason


class CacheWriter:
    """Write a cache, which exists under its name only after `finish`.

    Without a path, the file has no name and disappears when it is closed.
    """

    def __init__(self, path: str | None, classes: bool, constant: bool):
        self._unfinished = None if path is None else leftovers.Unfinished(path)
        self.file = leftovers.open_spill_file() if self._unfinished is None else self._unfinished.file
        self._classes, self._constant = classes, constant
        self._blocks: list[tuple[int, int]] = []
        self.file.write(MAGIC)

    @property
    def size(self) -> int:
        return self.file.tell()

    def write(self, batch: Batch, lines_before: int) -> None:
        """Append a batch; `lines_before` is the number of lines in the files before its own."""
        if batch.n == 0:
            return
        block = pack(batch, lines_before, self._classes, self._constant)
        self._blocks.append((len(block), block_checksum(block)))
        self.file.write(block.data)

    def finish(self, facts: dict[str, Any]) -> None:
        """Write the trailer with `facts`, flush everything to the disk and give the file its name."""
        text = json.dumps({**facts, "blocks": self._blocks}).encode()
        self.file.write(text)
        self.file.write(np.array([len(text), zlib.crc32(text)], "<i8").tobytes())
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
        "name": Text(),
    }
)
FACTS = Record(
    {
        "key": Record(optional={"files": OrNull(List(SOURCE))}, others=Anything()),
        "blocks": List(List(Whole(0, (1 << 64) - 1), 2, 2), most=MOST),
        **dict.fromkeys(("bad", "skipped", "lines"), Whole()),
        **dict.fromkeys(("kept", "told"), List(Text())),
        "left_out": Text(),
    },
    optional={"names": List(Text(), most=MOST), "schema": schema.SHAPE},
)


class CacheReader:
    """Iterate over the batches of a complete cache; every iteration begins with the first.

    DamagedCacheError is raised at once if the file is incomplete, and while iterating if a block is not the one that
    was written.

    `facts` are what `CacheWriter.finish` was given, and the size and checksum of each block.
    """

    def __init__(self, file: IO[bytes], name: str, classes: bool) -> None:
        self._handle, self._name, self._classes = os.dup(file.fileno()), name, classes
        self.fraction_read = 0.0
        size = os.fstat(file.fileno()).st_size
        trailer = np.zeros(16 + len(END), np.uint8)
        if size < len(MAGIC) + len(trailer):
            raise self._damaged("it is truncated")
        self._read(size - len(trailer), trailer)
        if trailer[16:].tobytes() != END:
            raise self._damaged("it is truncated")
        length, crc = trailer[:16].view("<i8").tolist()
        if not 0 <= length <= size - len(MAGIC) - len(trailer):
            raise self._damaged("its end is damaged")
        text = np.zeros(length, np.uint8)
        self._read(size - len(trailer) - length, text)
        if zlib.crc32(text.data) != crc:
            raise self._damaged("its end is damaged")
        try:  # any program can write a correct checksum
            self.facts = bounded_json.parse(text.tobytes(), FACTS, MOST)
        except bounded_json.Malformed:
            raise self._damaged("it is damaged") from None
        self._places = [len(MAGIC)]
        for block, _ in self.facts["blocks"]:
            self._places.append(self._places[-1] + block)
        if self._places[-1] != size - len(trailer) - length:
            raise self._damaged("some of its blocks are missing")

    def __del__(self) -> None:
        os.close(self._handle)

    def __iter__(self) -> Iterator[tuple[Batch, int]]:
        """Yield each batch and the number of lines in the files before its own."""
        for end, block in zip(self._places[1:], self.blocks(0, len(self.facts["blocks"])), strict=True):
            self.fraction_read = end / self._places[-1]
            yield block

    def blocks(self, first: int, last: int) -> Iterator[tuple[Batch, int]]:
        """Yield what some of the blocks hold; several threads may iterate at the same time."""
        pool, blocks = Pool(), self.facts["blocks"][first:last]
        data = np.zeros(max((size for size, _ in blocks), default=0) + 8, np.uint8)
        for at, (size, checksum) in zip(self._places[first:last], blocks, strict=True):
            self._read(at, data[:size])
            with thread_limit.working():
                block = unpack(data, size, checksum, self._classes, pool)
            if block is None:
                raise self._damaged(f"it is damaged at byte {at}")
            yield block

    def _read(self, at: int, data: UInt8s) -> None:
        """Fill an array with the bytes from `at` on."""
        done = 0
        while done < len(data):
            try:
                size = os.preadv(self._handle, [data[done:].data], at + done)
            except OSError as error:
                raise self._damaged(f"it cannot be read ({error.strerror})") from None
            if not size:
                raise self._damaged("it was cut off while it was read")
            done += size

    def _damaged(self, reason: str) -> DamagedCacheError:
        return DamagedCacheError(self._name, reason)
