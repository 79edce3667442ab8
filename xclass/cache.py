"""The cache: a file of parsed batches, read several times as fast as the text they came from.

    +------------------------------------------------------------------------------------+
    | "xclass cache\\n", zeros up to byte 16                                              |
    | block: header of HEADER int64, columns one after the other, each from a multiple   |
    |        of 8 bytes on; one block for one batch, of one file                         |
    | block ...                                                                          |
    | JSON: the key, the numbers of blocks and lines, what was said about the lines      |
    | its length, its crc32, the crc32 of all blocks' crc32: int64[3]                    |
    | "whole, xclass\\n\\0\\0"                                                              |
    +------------------------------------------------------------------------------------+  end of file

A column holds unsigned numbers of 32 bits: classes, or the bits of a float32. Whichever takes the least is chosen,
column by column: one number for all, 1 to 4 bytes each, or a list of the different ones and 1 or 2 bytes each. The
constant feature is not stored, of the text only the tags, and a column nobody uses (tags, weights that are all 1)
takes no bytes.

Idea      A cache is used only if it is whole and its key is what it would be if it were made now: version, bits,
          kind of label, all options of the parser, and for each file size, time and digest of the content. Where
          time and place of a file are as they were, the digest is taken for granted; else it is computed anew.
Written   without a name, where the system can do that, or beside its place, and renamed when it is whole and on the
          disk. Its last bytes are written last. So a process killed at any moment leaves no cache behind that
          is taken for whole.
Differs   from VW, which uses any cache it finds, however old and whatever it was made of.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import io
import json
import mmap
import os
import stat
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from . import intrinsics, rows
from .errors import DataError, UsageError
from .examples import CONSTANT, CONSTANT_GROUP, Batch, Pool
from .jit import jit
from .options import option

VERSION = 1  # raised whenever blocks are read in another way
MAGIC = b"xclass cache\n".ljust(16, b"\0")
END = b"whole, xclass\n".ljust(16, b"\0")
BLOCK = 0x6B636F6C62  # begins a block's header
LET_GO = 1 << 25  # bytes read after which memory is given back
RACY = 2 * 10**9  # nanoseconds: a file changed this shortly before it was read may change again unnoticed


@dataclass(frozen=True)
class Options:
    """Cache."""

    cache: bool = option(
        "keep the parsed examples in DATA.cache; if that was made of the same data, read it in place of the data",
        flags=("-c", "--cache"),
        kind=bool,
    )
    cache_file: str = option("the same, with this file", metavar="FILE")
    kill_cache: bool = option("make the cache anew, even if it fits", flags=("-k", "--kill_cache"), kind=bool)


# -- columns -------------------------------------------------------------------------------------------------------

LABEL, WEIGHT, INITIAL, GROUPS, NAME, LENGTH, INDEX, VALUE, LINE, TAG = range(10)
COLUMNS = 10
SAME, WIDE1, WIDE2, WIDE3, WIDE4, LIST1, LIST2 = range(7)  # how a column is stored
# header: BLOCK, bytes of the block, crc32 of what follows, n, z, g, bytes of tags, first line, lines of the files
# before, whether there is a constant; then for each column how, length of the list, the one number
MARK, BYTES, CRC, N, Z, G, T, FIRST, BEFORE, WITH_CONSTANT, HOW = range(11)
HEADER = HOW + 3 * COLUMNS
ONE = np.uint32(0x3F800000)  # the bits of 1.0
UNLABELLED = np.uint32(0xFFFFFFFF)


@jit
def padded(out, at):
    """Zeros from `at` on up to a multiple of 8; return it."""
    while at % 8 != 0:
        out[at] = 0
        at += 1
    return at


@jit
def put_column(column, m, table, codes, listed, out, at, head, which):
    """Store `column[:m]` in `out` from `at` on, as `head` then says; return the place after it, a multiple of 8.

    table, codes, listed : uint32[2**18], uint16[m], uint32[2**16]; scratch
    """
    largest = np.uint32(0)
    same = True
    for i in range(m):
        largest = max(largest, column[i])
        same &= column[i] == column[0]
    how = head[HOW + 3 * which : HOW + 3 * which + 3]
    how[1] = 0
    how[2] = 0
    if m == 0 or same:
        how[0] = SAME
        how[2] = column[0] if m > 0 else 0
        return at
    width = 1 + (largest > 0xFF) + (largest > 0xFFFF) + (largest > 0xFFFFFF)
    most = min(65536, (width - 2) * m // 4) if width > 2 else min(256, m // 4) if width == 2 else 0
    if most < 256 < (width - 1) * m // 4:
        most = 256
    size = 0
    if most > 0:
        room = 1024
        while room < 4 * most:
            room *= 2
        table[:room] = 0
        for i in range(m):
            slot = np.int64((np.uint64(column[i]) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(40)) & (room - 1)
            while table[slot] != 0 and listed[table[slot] - 1] != column[i]:
                slot = (slot + 1) & (room - 1)
            if table[slot] == 0:
                if size == most:
                    size += 1
                    break
                listed[size] = column[i]
                size += 1
                table[slot] = size
            codes[i] = np.uint16(table[slot] - 1)
    if size > most or size == 0 or (size > 256 and width == 2):
        if width == 1:
            for i in range(m):
                out[at + i] = column[i]
        elif width == 2:
            two = out[at : at + 2 * m].view(np.uint16)
            for i in range(m):
                two[i] = column[i]
        elif width == 3:  # two bytes of each, then the third of each
            two = out[at : at + 2 * m].view(np.uint16)
            for i in range(m):
                two[i] = column[i] & np.uint32(0xFFFF)
                out[at + 2 * m + i] = column[i] >> np.uint32(16)
        else:
            four = out[at : at + 4 * m].view(np.uint32)
            for i in range(m):
                four[i] = column[i]
        how[0] = width
        return padded(out, at + width * m)
    how[1] = size
    four = out[at : at + 4 * size].view(np.uint32)
    for i in range(size):
        four[i] = listed[i]
    at = padded(out, at + 4 * size)
    if size <= 256:
        how[0] = LIST1
        for i in range(m):
            out[at + i] = codes[i]
        return padded(out, at + m)
    how[0] = LIST2
    two = out[at : at + 2 * m].view(np.uint16)
    for i in range(m):
        two[i] = codes[i]
    return padded(out, at + 2 * m)


@jit
def column_size(data, at, end, head, which, m):
    """Bytes of the column of m numbers at `data[at]`; -1 where it is no column that ends before `end`."""
    kind, size = head[HOW + 3 * which], head[HOW + 3 * which + 1]
    if kind == SAME:
        return 0
    if WIDE1 <= kind <= WIDE4:
        taken = (kind * m + 7) // 8 * 8
    elif LIST1 <= kind <= LIST2 and 1 <= size <= 65536:
        taken = (4 * size + 7) // 8 * 8 + ((1 if kind == LIST1 else 2) * m + 7) // 8 * 8
    else:
        return -1
    return taken if at + taken <= end else -1


@jit
def get_column(data, at, head, which, m, column):
    """Read `column[:m]` from `data[at:]`."""
    kind, size, one = head[HOW + 3 * which], head[HOW + 3 * which + 1], head[HOW + 3 * which + 2]
    out = intrinsics.pointer(column)
    if kind == SAME:
        for i in range(m):
            out[i] = np.uint32(one)
    elif kind == WIDE4:
        four = intrinsics.pointer(data[at : at + 4 * m].view(np.uint32))
        for i in range(m):
            out[i] = four[i]
    elif kind == WIDE3:
        two = intrinsics.pointer(data[at : at + 2 * m].view(np.uint16))
        third = intrinsics.pointer(data[at + 2 * m : at + 3 * m])
        for i in range(m):
            out[i] = np.uint32(two[i]) | (np.uint32(third[i]) << np.uint32(16))
    elif kind == WIDE2:
        two = intrinsics.pointer(data[at : at + 2 * m].view(np.uint16))
        for i in range(m):
            out[i] = two[i]
    elif kind == WIDE1:
        byte = intrinsics.pointer(data[at : at + m])
        for i in range(m):
            out[i] = byte[i]
    else:
        listed = intrinsics.pointer(data[at : at + 4 * size].view(np.uint32))
        at += (4 * size + 7) // 8 * 8
        last = np.uint32(size - 1)
        if kind == LIST1:
            byte = intrinsics.pointer(data[at : at + m])
            for i in range(m):
                out[i] = listed[min(np.uint32(byte[i]), last)]
        else:
            two = intrinsics.pointer(data[at : at + 2 * m].view(np.uint16))
            for i in range(m):
                out[i] = listed[min(np.uint32(two[i]), last)]


@jit
def get_features(data, at, head, which, z, rows, n, less, constant, target):
    """As `get_column`, for features: row i goes to `target[rows[i]:rows[i + 1]]`, `less` 1 leaves the last its place.

    That place is given `constant`.
    """
    kind, size, one = head[HOW + 3 * which], head[HOW + 3 * which + 1], head[HOW + 3 * which + 2]
    out, start = intrinsics.pointer(target), intrinsics.pointer(rows)
    p = 0
    if kind == SAME:
        for q in range(z + less * n):
            out[q] = np.uint32(one)
    elif kind == WIDE4:
        four = intrinsics.pointer(data[at : at + 4 * z].view(np.uint32))
        for i in range(n):
            for q in range(start[i], start[i + 1] - less):
                out[q] = four[p]
                p += 1
    elif kind == WIDE3:
        two = intrinsics.pointer(data[at : at + 2 * z].view(np.uint16))
        third = intrinsics.pointer(data[at + 2 * z : at + 3 * z])
        for i in range(n):
            for q in range(start[i], start[i + 1] - less):
                out[q] = np.uint32(two[p]) | (np.uint32(third[p]) << np.uint32(16))
                p += 1
    elif kind == WIDE2:
        two = intrinsics.pointer(data[at : at + 2 * z].view(np.uint16))
        for i in range(n):
            for q in range(start[i], start[i + 1] - less):
                out[q] = two[p]
                p += 1
    elif kind == WIDE1:
        byte = intrinsics.pointer(data[at : at + z])
        for i in range(n):
            for q in range(start[i], start[i + 1] - less):
                out[q] = byte[p]
                p += 1
    else:
        listed = intrinsics.pointer(data[at : at + 4 * size].view(np.uint32))
        at += (4 * size + 7) // 8 * 8
        last = np.uint32(size - 1)
        if kind == LIST1:
            byte = intrinsics.pointer(data[at : at + z])
            for i in range(n):
                for q in range(start[i], start[i + 1] - less):
                    out[q] = listed[min(np.uint32(byte[p]), last)]
                    p += 1
        else:
            two = intrinsics.pointer(data[at : at + 2 * z].view(np.uint16))
            for i in range(n):
                for q in range(start[i], start[i + 1] - less):
                    out[q] = listed[min(np.uint32(two[p]), last)]
                    p += 1
    if less:
        for i in range(n):
            out[start[i + 1] - 1] = constant


@jit
def fill_column(batch, which, classes, less, column):
    """Bring a column of a batch into `column`; return its length. `less`: 1 if each example ends with the constant."""
    n = batch.label.shape[0]
    if which == LABEL:
        reals = column.view(np.float32)
        for i in range(n):
            if not classes:
                reals[i] = np.float32(batch.label[i])
            elif batch.label[i] == batch.label[i]:
                column[i] = np.uint32(batch.label[i])
            else:
                column[i] = UNLABELLED
        return n
    if which in (WEIGHT, INITIAL):
        one = (batch.weight if which == WEIGHT else batch.initial).view(np.uint32)
        for i in range(n):
            column[i] = one[i]
        return n
    if which == GROUPS:
        for i in range(n):
            column[i] = np.uint32(batch.group_first[i + 1] - batch.group_first[i] - less)
        return n
    if which == LINE:
        for i in range(n):
            column[i] = np.uint32(batch.line[i] - batch.line[i - 1] - 1) if i > 0 else np.uint32(0)
        return n
    if which == TAG:
        for i in range(n):
            column[i] = np.uint32(batch.tag_end[i] - batch.tag_start[i])
        return n
    m = 0
    if which in (NAME, LENGTH):
        for i in range(n):
            for j in range(batch.group_first[i], batch.group_first[i + 1] - less):
                if which == NAME:
                    column[m] = batch.group_name[j]
                else:
                    column[m] = np.uint32(batch.group_start[j + 1] - batch.group_start[j])
                m += 1
        return m
    numbers = batch.index if which == INDEX else batch.value.view(np.uint32)
    for i in range(n):
        for p in range(batch.start[i], batch.start[i + 1] - less):
            column[m] = numbers[p]
            m += 1
    return m


@jit
def put_block(batch, classes, constant, before, table, codes, listed, column, out, head):
    """Store a batch in `out` behind the header; return the bytes taken. `constant`: each example ends with it."""
    n = batch.label.shape[0]
    less = 1 if constant else 0
    end = HEADER * 8
    g = z = t = 0
    for which in range(COLUMNS):
        m = fill_column(batch, which, classes, less, column)
        end = put_column(column, m, table, codes, listed, out, end, head, which)
        if which == NAME:
            g = m
        elif which == INDEX:
            z = m
    for i in range(n):
        for p in range(batch.tag_start[i], batch.tag_end[i]):
            out[end + t] = batch.text[p]
            t += 1
    end = padded(out, end + t)
    head[MARK], head[N], head[Z], head[G], head[T] = BLOCK, n, z, g, t
    head[FIRST] = batch.line[0] if n > 0 else 0
    head[BEFORE], head[WITH_CONSTANT] = before, less
    return end


@jit
def get_block(data, at, head, classes, scratch, out, tags):
    """Read the block at `data[at]`, whose crc32 is right, into `out`; return whether it fits together.

    scratch : uint32[6 n + 2 g or more]
    """
    n, z, g, t, less = head[N], head[Z], head[G], head[T], head[WITH_CONSTANT]
    end = at + head[BYTES]
    at += HEADER * 8
    place = np.empty(COLUMNS, np.int64)  # of the two columns of features in data, of the others in scratch
    free = 0
    for which in range(COLUMNS):
        m = z if which in (INDEX, VALUE) else g if which in (NAME, LENGTH) else n
        size = column_size(data, at, end, head, which, m)
        if size < 0:
            return False
        if which in (INDEX, VALUE):
            place[which] = at
        else:
            place[which] = free
            get_column(data, at, head, which, m, scratch[free:])
            free += m
        at += size
    if at + t > end:
        return False

    labels, counts = scratch[place[LABEL] :], scratch[place[GROUPS] :]
    names, lengths = scratch[place[NAME] :], scratch[place[LENGTH] :]
    lines, tag_sizes = scratch[place[LINE] :], scratch[place[TAG] :]
    groups = features = size = 0
    for i in range(n):
        groups += counts[i]
        size += tag_sizes[i]
    for j in range(g):
        features += lengths[j]
    if groups != g or features != z or size != t:
        return False
    numbers = scratch.view(np.float32)
    line = head[FIRST] - 1
    p = 0
    for i in range(n):
        if not classes:
            out.label[i] = np.float64(numbers[place[LABEL] + i])
        else:
            out.label[i] = np.float64(labels[i]) if labels[i] != UNLABELLED else np.nan
        out.weight[i] = numbers[place[WEIGHT] + i]
        out.initial[i] = numbers[place[INITIAL] + i]
        line += 1 + np.int64(lines[i])
        out.line[i] = line
        out.tag_start[i] = p
        p += tag_sizes[i]
        out.tag_end[i] = p
    for i in range(t):
        tags[i] = data[at + i]

    count, name, length = intrinsics.pointer(counts), intrinsics.pointer(names), intrinsics.pointer(lengths)
    group_name, group_start = intrinsics.pointer(out.group_name), intrinsics.pointer(out.group_start)
    start, first = intrinsics.pointer(out.start), intrinsics.pointer(out.group_first)
    j = k = p = 0
    for i in range(n):
        for _ in range(count[i]):
            group_name[k] = np.uint8(name[j])
            group_start[k] = p
            p += length[j]
            j += 1
            k += 1
        if less:
            group_name[k] = np.uint8(CONSTANT_GROUP)
            group_start[k] = p
            p += 1
            k += 1
        start[i + 1] = p
        first[i + 1] = k
    group_start[k] = p
    for which in range(INDEX, VALUE + 1):
        target = out.index if which == INDEX else out.value.view(np.uint32)
        last = np.uint32(CONSTANT) if which == INDEX else ONE
        get_features(data, place[which], head, which, z, out.start, n, less, last, target)
    return True


# -- the key -------------------------------------------------------------------------------------------------------


def make_key(parse: Any, bits: int, multiclass: bool, lowest, highest, limit: int | None) -> dict[str, Any]:
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


def describe(path: str, digest: str | None) -> dict[str, Any]:
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


def why_stale(kept: dict[str, Any], wanted: dict[str, Any], paths: list[str] | None) -> str:
    """Why a cache with the key `kept` is not the one wanted now; empty if it is. No `paths`: any data will do."""
    for name, value in json.loads(json.dumps(wanted)).items():
        if kept.get(name) != value:
            if name == "version":
                return "another version of xclass made it"
            return f"it was made with {name} {kept.get(name)}, and this is {name} {value}"
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
        now = describe(path, None)
        if now["size"] != then["size"]:
            return f"{path} has changed: {then['size']} bytes then, {now['size']} now"
        if then["settled"] and now["time"] == then["time"] and now["place"] == then["place"]:
            continue
        if digest_of(path) != then["sha256"]:
            return f"{path} has changed"
    return ""


class Digesting(io.RawIOBase):
    """A file whose content is digested as it is read."""

    def __init__(self, file: Any):
        self._file = file
        self._digest = hashlib.sha256()
        self._ended = False

    def readable(self) -> bool:
        """True."""
        return True

    def readinto(self, room) -> int:
        """Read into `room`."""
        got = self._file.readinto(room)
        self._digest.update(memoryview(room)[:got])
        self._ended |= got == 0
        return got

    def tell(self) -> int:
        """Place in the file."""
        return self._file.tell()

    def digest(self) -> str | None:
        """Of the whole file; None if it was not read to its end."""
        return self._digest.hexdigest() if self._ended else None


# -- the file ------------------------------------------------------------------------------------------------------


class Damaged(Exception):
    """A cache that cannot be read on; the text says why."""


class _Scratch(NamedTuple):
    table: np.ndarray
    listed: np.ndarray


class Writer:
    """Writes a cache; it is there after `finish` only.

    Parameters
    ----------
    path : where to; None for a file without a name that is gone when it is closed
    classes : whether labels are classes
    constant : whether each example ends with the constant
    """

    def __init__(self, path: str | None, classes: bool, constant: bool):
        self._classes, self._constant = classes, constant
        self._path = None if path is None else os.path.realpath(path)
        self._named: str | None = None
        self.file = self._open()
        self._scratch = _Scratch(np.empty(1 << 18, np.uint32), np.empty(1 << 16, np.uint32))
        self._codes = np.empty(0, np.uint16)
        self._column = np.empty(0, np.uint32)
        self._out = np.empty(0, np.uint8)
        self._head = np.zeros(HEADER, np.int64)
        self._sum = 0
        self.blocks = 0
        self.file.write(MAGIC)

    def _open(self):
        if self._path is None:
            return tempfile.TemporaryFile(prefix="xclass-", suffix=".cache")
        folder, name = os.path.split(self._path)
        if hasattr(os, "O_TMPFILE"):  # a file without a name: nothing is left behind, whatever happens
            with contextlib.suppress(OSError):
                handle = os.open(folder, os.O_TMPFILE | os.O_RDWR, 0o666)
                return os.fdopen(handle, "w+b")
        self._named = os.path.join(folder, f".{name}.{os.getpid()}.tmp")
        return open(self._named, "w+b")

    def write(self, batch: Batch, before: int) -> None:
        """Add a batch; `before`: lines of the files before this one."""
        n, z, g = batch.n, len(batch.index), len(batch.group_name)
        if n == 0:
            return
        most = max(n, z, g)
        tags = int((batch.tag_end - batch.tag_start).sum())
        if len(self._column) < most:
            self._column = np.empty(2 * most, np.uint32)
            self._codes = np.empty(2 * most, np.uint16)
        room = 8 * HEADER + 4 * (6 * n + 2 * z) + 8 * g + tags + (4 << 16) + 16 * COLUMNS
        if len(self._out) < room:
            self._out = np.empty(2 * room, np.uint8)
        size = put_block(
            batch, self._classes, self._constant, before, self._scratch.table, self._codes, self._scratch.listed,
            self._column, self._out, self._head,
        )  # fmt: skip
        self._head[BYTES] = size
        self._head[CRC] = 0
        self._out[: 8 * HEADER] = self._head.view(np.uint8)
        self._head[CRC] = zlib.crc32(self._out[:size])
        self._out[8 * CRC : 8 * CRC + 8] = self._head[CRC : CRC + 1].view(np.uint8)
        self._sum = zlib.crc32(self._head[CRC : CRC + 1], self._sum)
        self.blocks += 1
        self.file.write(self._out[:size])

    def finish(self, facts: dict[str, Any]) -> None:
        """Write the end, have it all on the disk and give it its name."""
        text = json.dumps({**facts, "blocks": self.blocks}).encode()
        self.file.write(text)
        self.file.write(np.array([len(text), zlib.crc32(text), self._sum], "<i8").tobytes())
        self.file.flush()
        if self._path is None:
            self.file.write(END)
            self.file.flush()
            return
        os.fsync(self.file.fileno())  # so that its last bytes are never there without the others
        self.file.write(END)
        self.file.flush()
        os.fsync(self.file.fileno())
        if self._named is None:
            temporary = os.path.join(os.path.dirname(self._path), f".{os.path.basename(self._path)}.{os.getpid()}.tmp")
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary)
            root = os.open("/", os.O_RDONLY)
            try:  # with a folder's handle, link() follows the link to the file
                os.link(f"/proc/self/fd/{self.file.fileno()}", temporary, src_dir_fd=root, follow_symlinks=True)
            finally:
                os.close(root)
            self._named = temporary
        os.replace(self._named, self._path)
        self._named = None

    def abandon(self) -> None:
        """Leave nothing behind; harmless after `finish`."""
        with contextlib.suppress(OSError, ValueError):
            self.file.close()
        if self._named is not None:
            with contextlib.suppress(OSError):
                os.unlink(self._named)
            self._named = None


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

    def __init__(self, file, classes: bool):
        self._classes = classes
        self._pool = Pool()
        self._column = np.empty(0, np.uint32)
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
        self._end = size - last - length
        if not len(MAGIC) <= self._end <= size - last:
            raise Damaged("its end is damaged")
        text = self._map[self._end : size - last]
        if zlib.crc32(text) != crc:
            raise Damaged("its end is damaged")
        self.facts: dict[str, Any] = json.loads(text)
        self._data = np.frombuffer(self._map, np.uint8)
        if hasattr(self._map, "madvise"):
            self._map.madvise(mmap.MADV_SEQUENTIAL)

    def __iter__(self) -> Iterator[tuple[Batch, int]]:
        at = len(MAGIC)
        blocks = total = let_go = 0
        while at < self._end:
            batch, before, size, crc = self._block(at)
            total = zlib.crc32(crc, total)
            blocks += 1
            at += size
            self.part = at / self._end
            yield batch, before
            if at - let_go > LET_GO and hasattr(self._map, "madvise"):
                page = at // mmap.PAGESIZE * mmap.PAGESIZE
                self._map.madvise(mmap.MADV_DONTNEED, let_go, page - let_go)
                let_go = page
        if blocks != self.facts["blocks"] or total != self._sum:
            raise Damaged("blocks are missing")

    def _block(self, at: int):
        data = self._data
        if at + 8 * HEADER > self._end:
            raise Damaged(f"it is damaged at byte {at}")
        head = data[at : at + 8 * HEADER].view(np.int64).copy()
        size = int(head[BYTES])
        if head[MARK] != BLOCK or size % 8 or not 8 * HEADER <= size <= self._end - at:
            raise Damaged(f"it is damaged at byte {at}")
        crc = head[CRC : CRC + 1].copy()
        head[CRC] = 0
        if zlib.crc32(data[at + 8 * HEADER : at + size], zlib.crc32(head)) != crc[0]:
            raise Damaged(f"it is damaged at byte {at}")
        n, z, g, t, less = (int(head[k]) for k in (N, Z, G, T, WITH_CONSTANT))
        if min(n, z, g, t) < 0 or less not in (0, 1) or max(n, z, g, t) >= 1 << 40:
            raise Damaged(f"it is damaged at byte {at}")
        if len(self._column) < 6 * n + 2 * g:
            self._column = np.empty(2 * (6 * n + 2 * g), np.uint32)
        tags = np.empty(t, np.uint8)
        out = self._pool.batch(n, z + n * less, g + n * less, tags)
        if not get_block(data, at, head, self._classes, self._column, out, tags):
            raise Damaged(f"it is damaged at byte {at}")
        return out, int(head[BEFORE]), size, crc


# -- a run's passes ------------------------------------------------------------------------------------------------


class Source:
    """The batches of each pass: parsed, and written to the cache on the way, or read from it.

    Parameters
    ----------
    reader : of the text
    options : of this room
    key : what `make_key` gives
    constant : whether each example ends with the constant
    passes : how often it will be iterated
    names : whether the names of features are asked for, which no cache holds: the text is read in every pass

    Attributes
    ----------
    notes : messages for the user; take them by popping
    """

    def __init__(self, reader, options: Options, key: dict[str, Any], constant: bool, passes: int, names: bool = False):
        self._text = reader
        self._reread = names and reader.again
        self._key = key
        self._limit: int | None = key["examples"]
        self._classes = key["labels"] == "classes"
        self._constant = constant
        self._passes = passes
        self._pass = 0
        self._writer: Writer | None = None
        self._cache: Reader | None = None
        self._used = False  # the cache that was there is good
        self.notes: list[str] = []
        self._told: list[str] = []  # all notes about the text
        self.path = options.cache_file
        if self.path is None and options.cache:
            if reader.paths[0] is None:
                raise UsageError("-c names the cache after the data file; for standard input give --cache_file FILE")
            self.path = f"{reader.paths[0]}.cache"
        if self.path is not None and os.path.exists(self.path):
            self._use(kill=options.kill_cache)
        elif self.path is not None and self._alone:
            raise DataError(f"{self.path}: there is no such cache, and no data to make it of; give the data with -d")

    @property
    def _alone(self) -> bool:
        """Whether there is nothing but the cache."""
        return self._text.paths == (None,) and no_input()

    def _use(self, kill: bool) -> None:
        """Take the cache that is there, or say why not."""
        paths = list(self._text.paths)
        if not stat.S_ISREG(os.stat(self.path).st_mode):
            raise DataError(f"{self.path}: the cache cannot be kept there, this is no regular file; give another name")
        alone = self._alone
        if kill or (self._reread and not alone):
            return
        why = ""
        try:
            with open(self.path, "rb") as file:
                cache = Reader(file, self._classes)
            if paths == [None] and not alone:
                why = "what comes through a pipe cannot be compared with it"
            else:
                why = why_stale(cache.facts["key"], self._key, None if alone else paths)
        except (Damaged, KeyError, TypeError, ValueError) as error:
            why = str(error) if isinstance(error, Damaged) else "it is damaged"
        except OSError as error:
            why = f"it cannot be read ({error.strerror})"
        if not why:
            self._take(cache)
            self._used = True
        elif alone:
            raise DataError(f"{self.path}: cannot be used: {why}; give the data with -d")
        else:
            self.notes.append(f"{self.path} is made anew: {why}")

    def _take(self, cache: Reader) -> None:
        self._cache = cache
        parser = self._text.parser
        parser.bad, parser.skipped = cache.facts["bad"], cache.facts["skipped"]
        parser.kept = list(cache.facts["kept"])
        self._told = list(cache.facts["told"])
        if self._pass == 0:
            self.notes += self._told

    # what the driver asks

    @property
    def name(self) -> str:
        """Of the file read last."""
        return self._text.name

    @property
    def size(self) -> int | None:
        """Bytes of the data, in all passes."""
        return None if self._text.size is None else self._text.size * self._passes

    def position(self) -> int:
        """How far it is, on the scale of `size`."""
        one = self._text.size or 0
        here = int(self._cache.part * one) if self._cache is not None else self._text.position()
        return max(0, self._pass - 1) * one + here

    def report(self) -> list[str]:
        """What to tell the user at the end of the run about malformed lines."""
        return self._text.report()

    def banner(self) -> list[str]:
        """VW's lines about the cache and the data."""
        if self._used:
            lines = [f"using cache_file = {self.path}"]
            if self._text.paths != (None,):
                lines.append("ignoring text input in favor of cache input")
            return lines
        if self.path is not None:
            first = f"creating cache_file = {self.path}"
        else:
            first = "using no cache" if self._passes == 1 else "using a temporary cache"
        return [first, f"Reading datafile = {self.name}"]

    def close(self) -> None:
        """Let go of what a pass that did not end has open."""
        if self._writer is not None:
            self._writer.abandon()

    # a pass

    def __iter__(self) -> Iterator[tuple[Batch, int]]:
        self._pass += 1
        last = 0  # line, counted over all files
        if self._cache is not None:
            try:
                for batch, before in self._cache:
                    yield batch, before
                    last = before + int(batch.line[-1])
                return
            except Damaged as error:
                self._cache = None
                if not self._text.again:
                    raise DataError(f"the cache cannot be read on: {error}; start again with -k") from None
                self.notes.append(f"{self.path or 'the temporary cache'} is made anew: {error}")
                self._text.parser.bad = self._text.parser.skipped = 0
                self._text.parser.kept = []
        yield from self._parse(last)

    def _parse(self, after: int) -> Iterator[tuple[Batch, int]]:
        """The batches of the text, from line `after` + 1 on; all of them go to the cache."""
        writer = self._writer = self._new_writer()
        then = None
        keyed = writer is not None and self.path is not None and self._text.paths != (None,)
        self._text.wrap = Digesting if keyed else None
        if keyed:
            then = [describe(path, None) for path in self._text.paths]
        for batch in self._text:
            before = self._text.before
            self._pass_notes()
            whole = batch
            if self._limit is not None:
                batch = rows.cut(batch, 0, int(np.searchsorted(batch.line, self._limit - before, side="right")))
            if writer is not None:
                try:
                    writer.write(batch, before)
                except OSError as error:
                    writer = self._give_up(error)
            lines = batch.line + before
            low = int(np.searchsorted(lines, after, side="right")) if after else 0
            if low < batch.n:
                yield rows.cut(batch, low, batch.n), before
            if self._limit is not None and (batch.n < whole.n or before + self._text.lines >= self._limit):
                break
        self._pass_notes()
        if writer is not None:
            self._end(writer, then)

    def _end(self, writer: Writer, then) -> None:
        """Finish the cache, unless the data changed under our hands."""
        parser = self._text.parser
        key = dict(self._key)
        if then is not None:
            found = [file.digest() for file in self._text.wrapped] + [None] * len(then)  # None: not read to its end
            key["files"] = [
                {**one, "sha256": digest or digest_of(path)}
                for one, digest, path in zip(then, found, self._text.paths, strict=False)
            ]
            now = [describe(path, None) for path in self._text.paths]
            if any(a["size"] != b["size"] or a["time"] != b["time"] for a, b in zip(then, now, strict=True)):
                self.notes.append(f"{self.path} is not kept: the data changed while it was read")
                writer.abandon()
                self._writer = None
                return
        facts = {
            "key": key,
            "bad": parser.bad,
            "skipped": parser.skipped,
            "kept": parser.kept,
            "told": self._told,
        }
        try:
            writer.finish(facts)
            if not self._reread:
                self._take(Reader(writer.file, self._classes))
        except OSError as error:
            self._give_up(error)
            return
        writer.abandon()
        self._writer = None

    def _new_writer(self) -> Writer | None:
        if self.path is None and (self._pass >= self._passes or self._reread):
            return None
        if self._reread and self._pass > 1:
            return None
        try:
            return Writer(self.path, self._classes, self._constant)
        except OSError as error:
            return self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        """Go on without a cache."""
        if self._writer is not None:
            self._writer.abandon()
        self._writer = None
        where = self.path or f"a temporary cache in {tempfile.gettempdir()}"
        why = error.strerror or str(error)
        if self._pass < self._passes and not self._text.again:
            raise DataError(
                f"{where}: cannot be written ({why}), and what comes through a pipe can be read once only; "
                "make room, or name another place with --cache_file"
            )
        self.notes.append(f"{where}: cannot be written ({why}); going on without it")

    def _pass_notes(self) -> None:
        while self._text.notes:
            note = self._text.notes.pop(0)
            self._told.append(note)
            self.notes.append(note)


def no_input() -> bool:
    """Whether standard input is a terminal or /dev/null."""
    try:
        return stat.S_ISCHR(os.fstat(sys.stdin.fileno()).st_mode)
    except (OSError, ValueError, AttributeError):
        return sys.stdin is None
