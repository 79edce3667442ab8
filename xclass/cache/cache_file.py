r"""Write and read the file of a cache: one block per batch, and a trailer that says what it was made from.

    +------------------------------------------------------------------------------------+
    | "xclass cache\n", zeros up to byte 16                                              |
    | block: see below; all examples of a block are of one file                          |
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

A block is a batch:

    +------------------------------------------------------------------------+
    | header: HEADER int64                                                   |
    | for each column, its dictionary, and its numbers                       |
    | tags, one after the other; the dense block                             |
    +------------------------------------------------------------------------+

A column contains classes, the bits of float32 values, or counts, as numbers of 32 bits. If that is smaller, a
dictionary has its distinct numbers, and its numbers are positions in the dictionary. They take 1 to 4 bytes each, or
none if all are equal (no tags, all weights 1). With lists of labels, the label of an example is their number, and the
last column has the labels. The constant feature is not stored, and of the text only the tags are. The dense block is
stored as float32.
Numbers are little-endian; dictionaries, columns and blocks begin at multiples of 8 bytes.

Cost      Decoding takes about 2 ns per feature of short examples, the checksum .7 ns per 8 bytes.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import zlib
from collections.abc import Iterator
from typing import IO, Any

import numpy as np

from ..array_types import AnyArray, Int64s, UInt8s, UInt32s, UInt64s
from ..data import schema
from ..data.batch import CONSTANT, CONSTANT_GROUP, Batch, Pool
from ..errors import DataError
from ..kernels import hash_table, intrinsics
from ..kernels.constants import GOLDEN, SPREAD
from ..kernels.direct import DirectCall
from ..kernels.jit import jit
from ..system import bounded_json, leftovers, thread_limit
from ..system.bounded_json import Anything, List, OrNull, Record, Text, Whole

COLUMNS = ("label", "weight", "initial", "groups", "line", "tag", "name", "length", "index", "value", "labels")
# The header has the numbers of examples, features and namespace groups, bytes of tags, labels in lists, -1 without
# lists, columns of the dense block, number of the first line, number of lines in the files before, whether each example
# ends with the constant; and from ENCODING on, for each column the size of its dictionary and the bytes of a number.
ENCODING = 9
HEADER = ENCODING + 2 * len(COLUMNS)
MOST_ROWS = 1 << 40
ONE_BITS = 0x3F800000  # the bits of 1.0
UNLABELLED = np.uint32(0xFFFFFFFF)


# -- kernels


@jit
def checksum(words: UInt64s) -> np.uint64:
    """Return the checksum of `words`, which a change of any single word changes."""
    total = np.uint64(0)
    for i in range(len(words)):
        word = (words[i] ^ np.uint64(i) * SPREAD) * GOLDEN
        word = (word ^ word >> np.uint64(32)) * SPREAD
        total += word ^ word >> np.uint64(29)
    return total


@jit
def find_distinct(column: UInt32s, dictionary: UInt32s, codes: UInt32s, secret: np.uint64) -> int:
    """Return the number of distinct numbers of a column, 0 if they do not fit into `dictionary`.

    `dictionary` (uint32[most]) and `codes` (uint32[m], the position of each number) are written. `secret` is the key of
    the hash of numbers, see `hash_table`.
    """
    most = len(dictionary)
    cells = 1024
    while cells < 4 * most:
        cells *= 2
    table = np.zeros(cells, np.uint32)  # place of a number in `dictionary`, from 1, so `hash_table.probe` does not fit
    distinct = 0
    for i in range(len(column)):
        cell = np.int64(hash_table.hashed(column[i], secret)) & (cells - 1)
        while table[cell] != 0 and dictionary[table[cell] - 1] != column[i]:
            cell = (cell + 1) & (cells - 1)
        if table[cell] == 0:
            if distinct == most:
                return 0
            dictionary[distinct] = column[i]
            distinct += 1
            table[cell] = distinct
        codes[i] = table[cell] - 1
    return distinct


@jit
def decode_rows(
    data: UInt8s, place: Int64s, start: Int64s, constant: bool, last: int, out: UInt8s | UInt32s | Int64s
) -> None:
    """Decode a column into rows.

    `place` (int64[4]) has the offsets of dictionary and numbers in `data`, the size of the dictionary and the
    bytes of a number. Row i is `out[start[i]:start[i + 1]]`; with `constant`, it ends with the number `last`, which is
    not stored. Three bytes behind the column are read and must exist. Codes that are too large stay inside the
    dictionary.
    """
    text, row, target = intrinsics.pointer(data), intrinsics.pointer(start), intrinsics.pointer(out)
    dictionary, at, distinct, width = place[0], place[1], place[2], place[3]
    mask, highest = np.uint32((1 << 8 * width) - 1), np.uint32(max(distinct - 1, 0))
    if width == 0:
        number = intrinsics.load32(text, dictionary)
        for q in range(len(out)):
            target[q] = number
        constant = constant and number != last
    elif distinct > 0:
        for i in range(len(start) - 1):
            for q in range(row[i], row[i + 1] - constant):
                code = min(intrinsics.load32(text, at) & mask, highest)
                target[q] = intrinsics.load32(text, dictionary + 4 * code)
                at += width
    else:
        for i in range(len(start) - 1):
            for q in range(row[i], row[i + 1] - constant):
                target[q] = intrinsics.load32(text, at) & mask
                at += width
    if constant:
        for i in range(1, len(start)):
            target[row[i] - 1] = last


@jit
def decode_block(data: UInt8s, places: Int64s, line_number: int, constant: bool, classes: bool, out: Batch) -> bool:
    """Decode the columns of a block into `out`, which has the tags, and return whether their sizes are consistent.

    `places` (int64[columns, 4]) has the place of each column for `decode_rows`.
    """
    n, g = len(out.label), len(out.group_name)
    examples = np.zeros(2, np.int64)
    examples[1] = n
    first, begin, start = out.group_first, out.group_start, out.start
    label, bits, line, tag_start, tag_end = out.label, out.label.view(np.int64), out.line, out.tag_start, out.tag_end
    decode_rows(data, places[0], examples, False, 0, bits)
    decode_rows(data, places[1], examples, False, 0, out.weight.view(np.uint32))
    decode_rows(data, places[2], examples, False, 0, out.initial.view(np.uint32))
    decode_rows(data, places[3], examples, False, 0, first[1:])
    decode_rows(data, places[4], examples, False, 0, line)
    decode_rows(data, places[5], examples, False, 0, tag_end)
    groups = features = tags = 0
    for i in range(n):
        if not classes:
            label[i] = intrinsics.from_bits32(bits[i])
        else:
            label[i] = np.nan if bits[i] == UNLABELLED else bits[i]
        groups += first[i + 1] + constant
        first[i + 1] = groups
        tag_start[i] = tags
        tags += tag_end[i]
        tag_end[i] = tags
        line_number += line[i]
        line[i] = line_number
        line_number += 1
    if groups != g or tags != len(out.text):
        return False
    decode_rows(data, places[6], first, constant, CONSTANT_GROUP, out.group_name)
    decode_rows(data, places[7], first, constant, 1, begin[1:])
    for j in range(1, g + 1):
        features += begin[j]
        begin[j] = features
    if features != len(out.index):
        return False
    for i in range(1, n + 1):
        start[i] = begin[first[i]]
    decode_rows(data, places[8], start, constant, CONSTANT, out.index)
    decode_rows(data, places[9], start, constant, ONE_BITS, out.value.view(np.uint32))
    if len(out.label_start) == 0:
        return True
    listed = 0
    for i in range(n):
        if not np.isnan(label[i]):
            listed += int(label[i])
        out.label_start[i + 1] = listed
    if listed != len(out.labels):
        return False
    examples[1] = listed
    decode_rows(data, places[10], examples, False, 0, out.labels.view(np.int64))
    for k in range(listed):
        out.labels[k] = out.labels.view(np.int64)[k]
    return True


# -- Python

_decode_block = DirectCall(sys.modules[__name__], "decode_block")


def _columns(batch: Batch, classes: bool, constant: bool) -> dict[str, AnyArray]:
    """Return the columns of a batch; without the last feature and group of each example if that is the constant."""
    groups, features = np.ones(len(batch.group_name), bool), np.ones(len(batch.index), bool)
    if constant:
        groups[batch.group_first[1:] - 1] = features[batch.start[1:] - 1] = False
    label = np.where(np.isnan(batch.label), UNLABELLED, batch.label) if classes else batch.label.astype(np.float32)
    return {
        "label": label.astype(np.uint32) if classes else label.view(np.uint32),
        "weight": batch.weight.view(np.uint32),
        "initial": batch.initial.view(np.uint32),
        "groups": np.diff(batch.group_first) - constant,
        "line": np.diff(batch.line, prepend=batch.line[:1] - 1) - 1,  # lines between an example and the one before
        "tag": batch.tag_end - batch.tag_start,
        "name": batch.group_name[groups],
        "length": np.diff(batch.group_start)[groups],
        "index": batch.index[features],
        "value": batch.value.view(np.uint32)[features],
        "labels": batch.labels,
    }


def _encoded(column: UInt32s, secret: np.uint64) -> tuple[UInt32s, int, AnyArray]:
    """Return the dictionary of a column, empty for none, the bytes of a number, and the numbers in so many bytes."""
    m = len(column)
    if m == 0 or (column == column[0]).all():
        return column[:1], 0, column[:0]
    width = (int(column.max()).bit_length() + 7) // 8
    # a larger dictionary would take more bytes
    most = max(min(256, (width - 1) * m // 4), min(1 << 16, (width - 2) * m // 4))
    dictionary, codes = np.empty(most, np.uint32), np.empty(m, np.uint32)
    distinct = find_distinct(column, dictionary, codes, secret)
    if distinct:
        column, width = codes, 1 if distinct <= 256 else 2
    if width == 3:  # which no type of NumPy has
        return dictionary[:0], width, column.view(np.uint8).reshape(m, 4)[:, :width]
    return dictionary[:distinct], width, column.astype(f"u{width}")


def pack(batch: Batch, lines_before: int, classes: bool, constant: bool) -> UInt8s:
    """Return a batch as a block.

    `lines_before` is the number of lines in the files before this one. With `constant`, each example ends with the
    constant.
    """
    head = np.zeros(HEADER, np.int64)
    parts: list[AnyArray] = [head]
    secret = hash_table.new_secret()
    columns = _columns(batch, classes, constant)
    for k, column in enumerate(columns.values()):
        dictionary, width, numbers = _encoded(np.ascontiguousarray(column, np.uint32), secret)
        head[ENCODING + 2 * k : ENCODING + 2 * k + 2] = len(dictionary), width
        parts += dictionary, numbers
    sizes = columns["tag"]
    before = np.cumsum(sizes) - sizes  # bytes of the tags before each one
    parts.append(batch.text[np.repeat(batch.tag_start - before, sizes) + np.arange(sizes.sum())])
    head[:ENCODING] = (
        batch.n, len(columns["index"]), len(columns["name"]), len(parts[-1]),
        len(batch.labels) if batch.has_lists else -1, batch.columns, batch.line[0], lines_before, constant,
    )  # fmt: skip
    parts.append(batch.dense)
    padded = (part.tobytes().ljust(_padded(part.nbytes), b"\0") for part in parts)
    return np.frombuffer(bytearray().join(padded), np.uint8)


def unpack(data: UInt8s, size: int, expected: int, classes: bool, pool: Pool) -> tuple[Batch, int] | None:
    """Decode a block of `size` bytes; return it and the lines in the files before.

    Return None if its checksum is not `expected`, or its sizes are not consistent. `data` has at least eight bytes
    behind it.
    """
    body = 8 * HEADER
    if size % 8 or size < body or block_checksum(data[:size]) != expected:
        return None
    head = data[:body].view(np.int64).tolist()
    n, z, g, t, labels, d, first_line, lines_before, constant = head[:ENCODING]
    sizes = n, z, g, t, labels + 1, d
    if min(sizes) < 0 or max(sizes) >= MOST_ROWS or constant not in (0, 1):
        return None
    places: list[int] = []  # of all columns, see `decode_rows`
    lengths = n, n, n, n, n, n, g, g, z, z, max(labels, 0)  # in the order of COLUMNS
    for m, distinct, width in zip(lengths, head[ENCODING::2], head[ENCODING + 1 :: 2], strict=True):
        if not (0 <= distinct <= 1 << 16 and 0 <= width <= 4) or (m > 0 and distinct == width == 0):
            return None
        numbers = body + _padded(4 * distinct)
        places += body, numbers, distinct, width
        body = numbers + _padded(width * m)
    dense = body + _padded(t)
    if dense + 4 * n * d > size:
        return None
    lists = labels if labels >= 0 else None
    out = pool.batch(n, z + n * constant, g + n * constant, data[body : body + t].copy(), lists, d)
    if d:
        out.dense[:] = data[dense : dense + 4 * n * d].view(np.float32).reshape(n, d)
    if not _decode_block(data, np.array(places).reshape(-1, 4), first_line, bool(constant), classes, out):
        return None
    return out, lines_before


def block_checksum(block: UInt8s) -> int:
    return int(checksum(block.view(np.uint64)))


def _padded(size: int) -> int:
    return -(-size // 8) * 8


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


SOURCE = Record(  # a file of the data, see `source.file_entry`
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
