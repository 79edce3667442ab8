"""Encode a batch as a block of bytes for the cache, and decode it again.

    +------------------------------------------------------------------------+
    | header: HEADER int64                                                   |
    | COLUMNS columns, one after the other: see column_codec.py              |
    | tags, one after the other, and zeros up to a multiple of 8 bytes       |
    +------------------------------------------------------------------------+

A column holds classes, the bits of float32 values, or counts. The constant feature is not stored, and of the text only
the tags are. A column whose numbers are all equal (no tags, all weights 1) takes no bytes. Numbers are little-endian.
"""

from __future__ import annotations

import numpy as np

from ..array_types import Int, Int64s, UInt8s, UInt16s, UInt32s
from ..data.batch import CONSTANT, CONSTANT_GROUP, Batch, Pool
from ..kernels import hash_table, intrinsics
from ..kernels.jit import jit
from . import column_codec

LABEL, WEIGHT, INITIAL, GROUPS, NAME, LENGTH, INDEX, VALUE, LINE, TAG = range(10)
COLUMNS = 10
# Positions in the header: the constant BLOCK, size of the block in bytes, its checksum, the numbers of examples,
# features and namespace groups, bytes of tags, number of the first line, number of lines in the files before, whether
# each example ends with the constant; then three numbers per column, which describe its encoding.
MAGIC, BYTES, CHECKSUM, N, Z, G, T, FIRST, LINES_BEFORE, WITH_CONSTANT, ENCODING = range(11)
HEADER = ENCODING + 3 * COLUMNS
BLOCK = 0x6B636F6C62
ONE_BITS = np.uint32(0x3F800000)  # the bits of 1.0
UNLABELLED = np.uint32(0xFFFFFFFF)


class DamagedCacheError(Exception):
    """Report that a file is not a cache or that it is damaged; the text gives the reason."""


# -- kernels -------------------------------------------------------------------------------------------------------


@jit
def fill_column(batch: Batch, field: int, classes: bool, omitted: int, column: UInt32s) -> int:
    """Copy a column of a batch, LABEL, WEIGHT, ... or TAG, to `column` (uint32[length or more]) and return its length.

    `omitted` is 1 if each example ends with the constant, which is left out, else 0.
    """
    n: int = batch.label.shape[0]
    if field == LABEL:
        reals = column.view(np.float32)
        for i in range(n):
            if not classes:
                reals[i] = np.float32(batch.label[i])
            elif batch.label[i] == batch.label[i]:
                column[i] = np.uint32(batch.label[i])
            else:
                column[i] = UNLABELLED
        return n
    if field in (WEIGHT, INITIAL):
        source = (batch.weight if field == WEIGHT else batch.initial).view(np.uint32)
        for i in range(n):
            column[i] = source[i]
        return n
    if field == GROUPS:
        for i in range(n):
            column[i] = np.uint32(batch.group_first[i + 1] - batch.group_first[i] - omitted)
        return n
    if field == LINE:
        for i in range(n):
            column[i] = np.uint32(batch.line[i] - batch.line[i - 1] - 1) if i > 0 else np.uint32(0)
        return n
    if field == TAG:
        for i in range(n):
            column[i] = np.uint32(batch.tag_end[i] - batch.tag_start[i])
        return n
    m = 0
    if field in (NAME, LENGTH):
        for i in range(n):
            for j in range(batch.group_first[i], batch.group_first[i + 1] - omitted):
                if field == NAME:
                    column[m] = batch.group_name[j]
                else:
                    column[m] = np.uint32(batch.group_start[j + 1] - batch.group_start[j])
                m += 1
        return m
    numbers = batch.index if field == INDEX else batch.value.view(np.uint32)
    for i in range(n):
        for p in range(batch.start[i], batch.start[i + 1] - omitted):
            column[m] = numbers[p]
            m += 1
    return m


@jit
def encode_block(
    batch: Batch, classes: bool, constant: bool, lines_before: int, table: UInt32s, codes: UInt16s, dictionary: UInt32s,
    column: UInt32s, out: UInt8s, head: Int64s, secret: np.uint64,
) -> int:  # fmt: skip
    """Encode a batch after the space for its header and return the size of the block in bytes.

    Parameters
    ----------
    lines_before : number of lines in the files before this one
    table, codes, dictionary, column : uint32[2**18], uint16[m], uint32[2**16], uint32[m], scratch; m is the length of
        the longest column
    out : written from byte 8 * HEADER on
    head : int64[HEADER], written except for the checksum
    secret : secret key of the hash of numbers, see `hash_table`
    """
    n: int = batch.label.shape[0]
    omitted = 1 if constant else 0
    end = HEADER * 8
    g = z = t = 0
    for field in range(COLUMNS):
        m = fill_column(batch, field, classes, omitted, column)
        encoding = head[ENCODING + 3 * field : ENCODING + 3 * field + 3]
        end = column_codec.encode_column(column, m, table, codes, dictionary, out, end, encoding, secret)
        if field == NAME:
            g = m
        elif field == INDEX:
            z = m
    for i in range(n):
        for p in range(batch.tag_start[i], batch.tag_end[i]):
            out[end + t] = batch.text[p]
            t += 1
    end = column_codec.pad(out, end + t)
    head[MAGIC], head[BYTES], head[N], head[Z], head[G], head[T] = BLOCK, end, n, z, g, t
    head[FIRST] = batch.line[0] if n > 0 else 0
    head[LINES_BEFORE], head[WITH_CONSTANT] = lines_before, omitted
    return end


@jit
def sum_range(counts: UInt32s, low: int, high: int) -> Int:
    count = intrinsics.pointer(counts)
    running: Int = 0
    for i in range(low, high):
        running += np.int64(count[i])
    return running


@jit
def decode_groups(head: Int64s, counts: UInt32s, names: UInt32s, lengths: UInt32s, out: Batch) -> None:
    """Fill in where the features of each example and of each namespace group begin.

    `counts` is uint32[n], groups of each example without the constant's; `names` and `lengths` are uint32[g], namespace
    and number of features of each group.
    """
    n, omitted = head[N], head[WITH_CONSTANT]
    count, name, length = intrinsics.pointer(counts), intrinsics.pointer(names), intrinsics.pointer(lengths)
    group_name, group_start = intrinsics.pointer(out.group_name), intrinsics.pointer(out.group_start)
    start, first = intrinsics.pointer(out.start), intrinsics.pointer(out.group_first)
    p: Int = 0
    j = k = 0
    for i in range(n):
        for _ in range(count[i]):
            group_name[k] = np.uint8(name[j])
            group_start[k] = p
            p += np.int64(length[j])
            j += 1
            k += 1
        if omitted:
            group_name[k] = np.uint8(CONSTANT_GROUP)
            group_start[k] = p
            p += 1
            k += 1
        start[i + 1] = p
        first[i + 1] = k
    group_start[k] = p


@jit
def decode_labels(head: Int64s, classes: bool, labels: UInt32s, out: Batch) -> None:
    """Fill in the labels from `labels` (uint32[n]): classes, or the bits of float32 values."""
    label, real = intrinsics.pointer(labels), intrinsics.pointer(labels.view(np.float32))
    target = intrinsics.pointer(out.label)
    if classes:
        for i in range(head[N]):
            target[i] = np.float64(label[i]) if label[i] != UNLABELLED else np.nan
    else:
        for i in range(head[N]):
            target[i] = np.float64(real[i])


@jit
def decode_lines(head: Int64s, gaps: UInt32s, out: Batch) -> None:
    """Fill in the line numbers from `gaps` (uint32[n]), the lines between an example and the previous one."""
    gap, line = intrinsics.pointer(gaps), intrinsics.pointer(out.line)
    number = head[FIRST] - 1
    for i in range(head[N]):
        number += 1 + np.int64(gap[i])
        line[i] = number


@jit
def decode_tags(data: UInt8s, at: int, head: Int64s, sizes: UInt32s, out: Batch, tags: UInt8s) -> None:
    """Copy the tags, which `data` holds from byte `at` on, and fill in where each begins and ends.

    `sizes` is uint32[n], bytes of each tag.
    """
    size = intrinsics.pointer(sizes)
    first, last = intrinsics.pointer(out.tag_start), intrinsics.pointer(out.tag_end)
    p: Int = 0
    for i in range(head[N]):
        first[i] = p
        p += np.int64(size[i])
        last[i] = p
    for i in range(head[T]):
        tags[i] = data[at + i]


@jit
def decode_block(
    data: UInt8s, at: int, head: Int64s, classes: bool, scratch: UInt32s, dictionary: UInt32s, out: Batch, tags: UInt8s
) -> bool:
    """Decode the block at `data[at]`, whose checksum is right, and return whether its sizes are consistent.

    `head` is its header, int64[HEADER]. `scratch`, uint32[2 n + 2 g or more], and `dictionary`, uint32[2**16], are
    scratch. `out`, a batch of n examples, and `tags`, uint8[t], are written.
    """
    n, z, g, t, omitted = head[N], head[Z], head[G], head[T], head[WITH_CONSTANT]
    end = at + head[BYTES]
    at += HEADER * 8
    offset = np.empty(COLUMNS, np.int64)
    for field in range(COLUMNS):
        m = z if field in (INDEX, VALUE) else g if field in (NAME, LENGTH) else n
        size = column_codec.encoded_size(head[ENCODING + 3 * field : ENCODING + 3 * field + 3], m, end - at)
        if size < 0:
            return False
        offset[field] = at
        at += size
    if at + t > end:
        return False

    numbers, counts, names, lengths = scratch[:n], scratch[n:], scratch[2 * n :], scratch[2 * n + g :]
    column_codec.decode_column(data, offset[GROUPS], head[ENCODING + 3 * GROUPS :], n, dictionary, counts)
    column_codec.decode_column(data, offset[LENGTH], head[ENCODING + 3 * LENGTH :], g, dictionary, lengths)
    column_codec.decode_column(data, offset[TAG], head[ENCODING + 3 * TAG :], n, dictionary, numbers)
    if sum_range(counts, 0, n) != g or sum_range(lengths, 0, g) != z or sum_range(numbers, 0, n) != t:
        return False
    decode_tags(data, at, head, numbers, out, tags)
    column_codec.decode_column(data, offset[NAME], head[ENCODING + 3 * NAME :], g, dictionary, names)
    decode_groups(head, counts, names, lengths, out)
    column_codec.decode_column(data, offset[LABEL], head[ENCODING + 3 * LABEL :], n, dictionary, numbers)
    decode_labels(head, classes, numbers, out)
    column_codec.decode_column(data, offset[LINE], head[ENCODING + 3 * LINE :], n, dictionary, numbers)
    decode_lines(head, numbers, out)
    column_codec.decode_column(
        data, offset[WEIGHT], head[ENCODING + 3 * WEIGHT :], n, dictionary, out.weight.view(np.uint32)
    )
    column_codec.decode_column(
        data, offset[INITIAL], head[ENCODING + 3 * INITIAL :], n, dictionary, out.initial.view(np.uint32)
    )
    for field in range(INDEX, VALUE + 1):
        target = out.index if field == INDEX else out.value.view(np.uint32)
        encoding = head[ENCODING + 3 * field :]
        if omitted:
            last = np.uint32(CONSTANT) if field == INDEX else ONE_BITS
            column_codec.decode_rows(data, offset[field], encoding, z, out.start, n, last, dictionary, target)
        else:
            column_codec.decode_column(data, offset[field], encoding, z, dictionary, target)
    return True


# -- Python --------------------------------------------------------------------------------------------------------


class Packer:
    def __init__(self, classes: bool, constant: bool) -> None:
        self._classes, self._constant = classes, constant
        self._table = np.empty(1 << 18, np.uint32)
        self._dictionary = np.empty(column_codec.MAX_DICTIONARY, np.uint32)
        self._codes = np.empty(0, np.uint16)
        self._column = np.empty(0, np.uint32)
        self._secret = hash_table.new_secret()
        self._out = np.empty(0, np.uint8)
        self._head = np.zeros(HEADER, np.int64)

    def pack(self, batch: Batch, lines_before: int) -> tuple[UInt8s, int]:
        """Encode a batch; `lines_before` is the number of lines in the files before this one.

        The block, which the next call overwrites, and its checksum are returned.
        """
        n, z, g = batch.n, len(batch.index), len(batch.group_name)
        max_length = max(n, z, g)
        tags = int((batch.tag_end - batch.tag_start).sum())
        if len(self._column) < max_length:
            self._column = np.empty(2 * max_length, np.uint32)
            self._codes = np.empty(2 * max_length, np.uint16)
        capacity = 8 * HEADER + 4 * (6 * n + 2 * z) + 8 * g + tags + 4 * column_codec.MAX_DICTIONARY + 16 * COLUMNS
        if len(self._out) < capacity:
            self._out = np.empty(2 * capacity, np.uint8)
        head = self._head
        size = encode_block(
            batch, self._classes, self._constant, lines_before, self._table, self._codes, self._dictionary,
            self._column, self._out, head, self._secret,
        )  # fmt: skip
        checksum = block_checksum(head, self._out[8 * HEADER : size])
        head[CHECKSUM : CHECKSUM + 1].view(np.uint64)[0] = checksum
        self._out[: 8 * HEADER] = head.view(np.uint8)
        return self._out[:size], checksum


class Unpacker:
    """Decode blocks, which begin at multiples of 8 bytes of `data` and end at byte `end`, into batches."""

    def __init__(self, data: UInt8s, end: int, classes: bool) -> None:
        self._data, self._end, self._classes = data, end, classes
        self._pool = Pool()
        self._scratch = np.empty(0, np.uint32)
        self._dictionary = np.zeros(column_codec.MAX_DICTIONARY, np.uint32)

    def unpack(self, at: int) -> tuple[Batch, int, int, int]:
        """Decode the block at byte `at`; return it, the number of lines in the files before, its size and its checksum.

        Raise DamagedCacheError if the block is truncated, its checksum is wrong or its sizes are not consistent.
        """
        body = at + 8 * HEADER
        if body > self._end:
            raise DamagedCacheError(f"it is damaged at byte {at}")
        head = self._data[at:body].view(np.int64).copy()
        _, size, checksum, n, z, g, t, _, lines_before, omitted = head[:ENCODING].tolist()
        plausible = head[MAGIC] == BLOCK and size % 8 == 0 and 8 * HEADER <= size <= self._end - at
        if not plausible or block_checksum(head, self._data[body : at + size]) != checksum % (1 << 64):
            raise DamagedCacheError(f"it is damaged at byte {at}")
        if min(n, z, g, t) < 0 or omitted not in (0, 1) or max(n, z, g, t) >= 1 << 40:
            raise DamagedCacheError(f"it is damaged at byte {at}")
        if len(self._scratch) < 2 * (n + g):
            self._scratch = np.empty(4 * (n + g), np.uint32)
        tags = np.empty(t, np.uint8)
        out = self._pool.batch(n, z + n * omitted, g + n * omitted, tags)
        if not decode_block(self._data, at, head, self._classes, self._scratch, self._dictionary, out, tags):
            raise DamagedCacheError(f"it is damaged at byte {at}")
        return out, lines_before, size, checksum % (1 << 64)


def block_checksum(head: Int64s, body: UInt8s) -> int:
    """Return the checksum of a block with a header, int64[HEADER], whose checksum counts as 0."""
    words = head.view(np.uint64).copy()
    words[CHECKSUM] = 0
    words.flags.writeable = False  # numba compiles a kernel again for writable arrays; one kernel is enough
    rest = body.view(np.uint64)
    rest.flags.writeable = False
    return int(column_codec.checksum(rest, len(rest), np.uint64(column_codec.checksum(words, HEADER, np.uint64(0)))))
