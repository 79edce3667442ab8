"""Encode a batch as a block of bytes for the cache, and decode it again.

    +------------------------------------------------------------------------+
    | header: HEADER int64                                                   |
    | for each column, its dictionary, and its numbers                       |
    | tags, one after the other                                              |
    +------------------------------------------------------------------------+

A column contains classes, the bits of float32 values, or counts, as numbers of 32 bits. If that is smaller, a
dictionary has its distinct numbers, and its numbers are positions in the dictionary. They take 1 to 4 bytes each, or
none if all are equal (no tags, all weights 1). With lists of labels, the label of an example is their number, and the
last column has the labels. The constant feature is not stored, and of the text only the tags are.
Numbers are little-endian; dictionaries, columns and blocks begin at multiples of 8 bytes.

Cost      Decoding takes about 1 ns per feature, the checksum .6 ns per 8 bytes.
"""

from __future__ import annotations

import numpy as np

from ..array_types import AnyArray, Int64s, UInt8s, UInt32s, UInt64s
from ..data.batch import CONSTANT, CONSTANT_GROUP, Batch, Pool
from ..kernels import hash_table, intrinsics
from ..kernels.constants import GOLDEN, SPREAD
from ..kernels.jit import jit

COLUMNS = ("label", "weight", "initial", "groups", "line", "tag", "name", "length", "index", "value", "labels")
OF_GROUPS, OF_FEATURES = ("name", "length"), ("index", "value")
# Positions in the header: checksum of what follows, size of the block in bytes, the numbers of examples, features and
# namespace groups, bytes of tags, labels in lists, -1 without lists, number of the first line, number of lines in the
# files before, whether each example ends with the constant; then for each column the size of its dictionary and the
# bytes of a number.
CHECKSUM, BYTES, N, ENCODING = 0, 1, 2, 10
HEADER = ENCODING + 2 * len(COLUMNS)
MOST_ROWS = 1 << 40
ONE_BITS = 0x3F800000  # the bits of 1.0
UNLABELLED = np.uint32(0xFFFFFFFF)


class DamagedCacheError(Exception):
    """Report that a file is not a cache or that it is damaged; the text gives the reason."""


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
    data: UInt8s, at: int, width: int, dictionary: UInt32s, start: Int64s, constant: bool, last: int, out: UInt32s
) -> None:
    """Decode the column at `data[at]`, whose numbers take `width` bytes, into rows.

    Row i is `out[start[i]:start[i + 1]]`; with `constant`, it ends with the number `last`, which is not stored. Three
    bytes behind the column are read and must exist. Codes that are too large stay inside the dictionary.
    """
    text, number = intrinsics.pointer(data), intrinsics.pointer(dictionary)
    row, target = intrinsics.pointer(start), intrinsics.pointer(out)
    mask, highest = np.uint32((1 << 8 * width) - 1), np.uint32(max(len(dictionary) - 1, 0))
    if width == 0:
        out[:] = number[0]
    for i in range(len(start) - 1):
        end = row[i + 1] - constant
        if width > 0 and len(dictionary) > 0:
            for q in range(row[i], end):
                target[q] = number[min(intrinsics.load32(text, at) & mask, highest)]
                at += width
        elif width > 0:
            for q in range(row[i], end):
                target[q] = intrinsics.load32(text, at) & mask
                at += width
        if constant:
            target[end] = np.uint32(last)


# -- Python


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


def pack(batch: Batch, lines_before: int, classes: bool, constant: bool) -> tuple[UInt8s, int]:
    """Return a batch as a block, and its checksum.

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
    head[N:ENCODING] = (
        batch.n, len(columns["index"]), len(columns["name"]), len(parts[-1]),
        len(batch.labels) if batch.has_lists else -1, batch.line[0], lines_before, constant,
    )  # fmt: skip
    head[BYTES] = sum(_padded(part.nbytes) for part in parts)
    padded = (part.tobytes().ljust(_padded(part.nbytes), b"\0") for part in parts)
    block = np.frombuffer(bytearray().join(padded), np.uint8)
    total = block_checksum(block)
    block[:8].view(np.uint64)[0] = total
    return block, total


def unpack(data: UInt8s, at: int, end: int, classes: bool, pool: Pool) -> tuple[Batch, int, int, int]:
    """Decode the block at byte `at` of `data[:end]`; return it, the lines in the files before, its size and checksum.

    Eight bytes behind `end` must exist. Raise DamagedCacheError if the block is truncated, its checksum is wrong or its
    sizes are not consistent.
    """
    damaged = DamagedCacheError(f"it is damaged at byte {at}")
    body = at + 8 * HEADER
    if body > end:
        raise damaged
    head = data[at:body].view(np.int64).tolist()
    size, n, z, g, t, labels, first_line, lines_before, constant = head[BYTES:ENCODING]
    if size % 8 or not 8 * HEADER <= size <= end - at or min(n, z, g, t, labels + 1) < 0:
        raise damaged
    if max(n, z, g, t, labels) >= MOST_ROWS:
        raise damaged
    total = block_checksum(data[at : at + size])
    if total != head[CHECKSUM] % (1 << 64) or constant not in (0, 1):
        raise damaged
    places = []  # of each column: where its numbers are, their bytes, and its dictionary
    for k, name in enumerate(COLUMNS):
        distinct, width = head[ENCODING + 2 * k : ENCODING + 2 * k + 2]
        m = z if name in OF_FEATURES else g if name in OF_GROUPS else max(labels, 0) if name == "labels" else n
        of_dictionary, of_numbers = _padded(4 * distinct), _padded(width * m)
        if not 0 <= width <= 4 or not (width == 0) * min(m, 1) <= distinct <= 1 << 16:
            raise damaged
        if body + of_dictionary + of_numbers > at + size:
            raise damaged
        places.append((body + of_dictionary, width, data[body : body + 4 * distinct].view(np.uint32)))
        body += of_dictionary + of_numbers

    def decode(name: str, start: Int64s, constant: int = 0, last: int = 0, out: UInt32s | None = None) -> UInt32s:
        out = np.empty(start[-1], np.uint32) if out is None else out
        decode_rows(data, *places[COLUMNS.index(name)], start, bool(constant), last, out)
        return out

    examples = np.array([0, n])
    groups, tags = decode("groups", examples), decode("tag", examples)
    if groups.sum() != g or tags.sum() != t or body + t > at + size:
        raise damaged
    tag_text = data[body : body + t].copy()
    out = pool.batch(n, z + n * constant, g + n * constant, tag_text, labels if labels >= 0 else None)
    np.cumsum(groups.astype(np.int64) + constant, out=out.group_first[1:])
    np.cumsum(decode("length", out.group_first, constant, 1), out=out.group_start[1:])
    if out.group_start[-1] != z + n * constant:
        raise damaged
    out.start[:] = out.group_start[out.group_first]
    out.group_name[:] = decode("name", out.group_first, constant, CONSTANT_GROUP)
    decode("index", out.start, constant, CONSTANT, out.index)
    decode("value", out.start, constant, ONE_BITS, out.value.view(np.uint32))
    decode("weight", examples, out=out.weight.view(np.uint32))
    decode("initial", examples, out=out.initial.view(np.uint32))
    label = decode("label", examples)
    out.label[:] = label if classes else label.view(np.float32)
    if classes:
        out.label[label == UNLABELLED] = np.nan
    if labels >= 0:
        out.label_start[1:] = np.cumsum(np.nan_to_num(out.label))
        if out.label_start[-1] != labels:
            raise damaged
        out.labels[:] = decode("labels", np.array([0, labels]))
    np.cumsum(tags, out=out.tag_end)
    np.subtract(out.tag_end, tags, out=out.tag_start)
    np.cumsum(decode("line", examples), out=out.line)
    out.line[:] += np.arange(first_line, first_line + n)
    return out, lines_before, size, total


def block_checksum(block: UInt8s) -> int:
    words = block.view(np.uint64)[1:]
    words.flags.writeable = False  # numba compiles a kernel again for writable arrays; one kernel is enough
    return int(checksum(words))


def _padded(size: int) -> int:
    return -(-size // 8) * 8
