"""Store the columns of a table in little space, those of models that only predict in 4, 8 or 16 bits a weight.

Names     TABLE.word, TABLE.w and TABLE.index: the columns of a table as `stored_arrays.pack_table` names them.
Format    A table in compact form has these arrays instead, for its n rows in use:

    TABLE.code    int16[n], int8[n] or uint8[n / 2, rounded up]; the weight of a row is its code times the scale of its
                  block, in float32. A byte of uint8 has two codes, increased by 8: the lower four bits are the first
    TABLE.scale   float32[n / BLOCK, rounded up], one for each block of BLOCK rows, finite and not negative
    TABLE.tag     uint8[13 n / 8, rounded up], only for tagged words: their tags, of 13 bits each, lowest bits first
    TABLE.in_use  uint8[slots / 8, rounded up], a bit for each slot, the highest bit of a byte first; or instead
    TABLE.gap     uint8[m]: a byte g below 255 stands for g unused slots and then one in use, 255 for 255 unused slots

          Of `in_use` and `gap`, the smaller one is stored. A word gets the smallest G, because only learning needs it.

          A table in another form has `in_use` instead of TABLE.index where that is smaller. An array NAME.each, of one
          item, stands for a column NAME that has this item in all rows in use.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from ..array_types import AnyArray, Float32s, Int64s, UInt8s, UInt32s
from ..kernels import tagged_format
from ..kernels.jit import jit
from . import stored_arrays
from .stored_arrays import Arrays, Repeated, SparseColumn, Stored

BLOCK = 64  # weights that share a scale
LONG_GAP = 255
PIECE_ROWS = 1 << 17  # rows that are decoded at a time; a multiple of BLOCK
NIBBLE = 4  # bits of the codes of which a byte has two
BIAS = 8  # is added to them
LARGEST = 1e30  # of a weight and of a scale; their products with codes stay finite
ROUND_TO_NEAREST = 1 << 31  # a "random number" for `tagged_format.encode_w`
CODES = {NIBBLE: np.uint8, 8: np.int8, 16: np.int16}  # bits of a code -> type of the array
BITS = {np.dtype(kind): bits for bits, kind in CODES.items()}
TAG_BITS = tagged_format.TAG_BITS
COMPACT = ("code", "scale", "tag", "in_use", "gap")  # ends of the names of the arrays
INDEX, USED, EACH = ".index", ".in_use", ".each"


class DecodedColumn(SparseColumn):
    """Present codes as the weights or tagged words that they stand for, decoded piece by piece.

    There are n rows in use; there is no tag if the table has no tagged words.
    """

    def __init__(self, n: int, code: AnyArray, scale: Float32s, tag: UInt8s | None) -> None:
        self.code, self.scale, self.tag = code, scale, tag
        self.dtype = np.dtype(np.float32 if tag is None else np.uint32)
        self.shape = (n,)

    def pieces(self) -> Iterator[AnyArray]:
        """Yield the weights or words in order, as arrays of at most PIECE_ROWS items."""
        for i in range(0, len(self), PIECE_ROWS):
            end = min(i + PIECE_ROWS, len(self))
            if self.code.dtype == np.uint8:
                pairs = self.code[i // 2 : -(-end // 2)]
                code = np.stack([pairs & 15, pairs >> 4], axis=1).reshape(-1)[: end - i].astype(np.float32) - BIAS
            else:
                code = self.code[i:end].astype(np.float32)
            w = code * np.repeat(self.scale[i // BLOCK : -(-end // BLOCK)], BLOCK)[: end - i]
            if self.tag is None:
                yield w
                continue
            words = np.empty(end - i, np.uint32)
            join_words(w, self.tag[i * TAG_BITS // 8 : -(-end * TAG_BITS // 8)], words)
            yield words


# -- making ------------------------------------------------------------------------------------------------------


def packed(arrays: Arrays) -> dict[str, Stored]:
    """Return arrays as a model file has them: row numbers as bits where that is smaller, and repeated items once."""
    result: dict[str, Stored] = {}
    for name, array in arrays.items():
        if isinstance(array, Repeated):
            result[name + EACH] = array.item
        elif isinstance(array, SparseColumn) and array.plane is None and len(array.bitmap) < 4 * len(array):
            result[name.removesuffix(INDEX) + USED] = array.bitmap
        else:
            result[name] = array
    return result


def weights(column: AnyArray) -> Float32s:
    """Return the weights of a column, float32[n], which is one of weights or one of tagged words."""
    if column.dtype == np.float32:
        return column
    w = np.empty(len(column), np.float32)
    word_weights(column, w)
    return w


def compacted(table: str, column: AnyArray, index: UInt32s, slots: int, bits: int) -> dict[str, Stored]:
    """Return the arrays of a table in compact form, with codes of 4, 8 or 16 bits.

    `column` has the weights or tagged words, float32[n] or uint32[n], of the rows in use, `index`, uint32[n], their
    slots, rising.
    """
    w = weights(column)
    code, scale = _quantized(w, bits)
    arrays: dict[str, Stored] = {f"{table}.code": code, f"{table}.scale": scale}
    if column.dtype == np.uint32:
        tag = np.zeros(-(-len(column) * TAG_BITS // 8), np.uint8)
        pack_tags(column, tag)
        arrays[f"{table}.tag"] = tag
    rows = index.astype(np.int64)
    gaps = rows - np.concatenate([[0], rows[:-1] + 1])[: len(rows)]
    if len(index) + int((gaps // LONG_GAP).sum()) < -(-slots // 8):
        arrays[f"{table}.gap"] = _gap_bytes(gaps)
    else:
        used = np.zeros(slots, bool)
        used[index] = True
        arrays[f"{table}.in_use"] = np.packbits(used)
    return arrays


def most_bytes(rows: int, slots: int, bits: int, tagged: bool) -> int:
    """Return the most bytes that the arrays of a table take in compact form, for this number of rows in use."""
    per_row = bits + (TAG_BITS if tagged else 0)
    return rows * per_row // 8 + 2 + 4 * -(-rows // BLOCK) + min(-(-slots // 8), rows + slots // LONG_GAP)


def _quantized(w: Float32s, bits: int) -> tuple[AnyArray, Float32s]:
    """Return codes of some bits and a scale for each block, such that the largest weight of a block is exact."""
    top = (1 << bits - 1) - 1
    blocks = -(-len(w) // BLOCK)
    code, scale = np.empty(len(w), np.int16), np.zeros(blocks, np.float32)
    for i in range(0, len(w), PIECE_ROWS):
        piece = w[i : i + PIECE_ROWS]
        padded = np.zeros((-(-len(piece) // BLOCK), BLOCK), np.float32)
        padded.reshape(-1)[: len(piece)] = np.clip(np.nan_to_num(piece), -LARGEST, LARGEST)
        largest = np.abs(padded).max(axis=1)
        scales = (largest / np.float32(top)).astype(np.float32)
        scale[i // BLOCK : i // BLOCK + len(scales)] = scales
        divisor = np.where(scales > 0, scales, 1)[:, None]
        codes = np.clip(np.rint(padded / divisor), -top, top)
        code[i : i + len(piece)] = codes.reshape(-1)[: len(piece)].astype(np.int16)
    if bits != NIBBLE:
        return code.astype(CODES[bits]), scale
    biased = np.append(code + BIAS, [BIAS] * (len(code) % 2)).astype(np.uint8)
    return biased[0::2] | biased[1::2] << np.uint8(NIBBLE), scale


def _gap_bytes(gaps: Int64s) -> UInt8s:
    """Return the bytes for numbers of unused slots before each slot in use."""
    long = gaps // LONG_GAP
    end = np.cumsum(long + 1)
    stored = np.full(int(end[-1]) if len(end) else 0, LONG_GAP, np.uint8)
    stored[end - 1] = gaps - long * LONG_GAP
    return stored


# -- reading -----------------------------------------------------------------------------------------------------


def is_compact(names: Mapping[str, object]) -> bool:
    """Return whether a table among arrays with these names has the compact form."""
    return any(name.endswith(".scale") for name in names)


def expanded(arrays: Arrays) -> dict[str, Stored]:
    """Return arrays with the columns that they stand for in a file; they are decoded when they are used."""
    result = dict(arrays)
    for name in arrays:
        if not name.endswith(".scale"):
            continue
        table = name[: -len(".scale")]
        parts = {part: result.pop(f"{table}.{part}") for part in COMPACT if f"{table}.{part}" in result}
        for column, items in _columns(table, arrays, parts).items():
            _add(result, column, items)
    for name in [name for name in result if name.endswith(USED)]:
        _add(result, name.removesuffix(USED) + INDEX, _rows_of_bits(name, arrays))
        del result[name]
    for name in [name for name in result if name.endswith(EACH)]:
        column = name.removesuffix(EACH)
        index = column.rpartition(".")[0] + INDEX
        if index not in result:
            raise stored_arrays.unfit(name, "its table has no row numbers")
        item = stored_arrays.take(name, arrays, arrays[name].dtype, (1,))
        _add(result, column, Repeated(item, len(result[index])))
        del result[name]
    return result


def _add(result: dict[str, Stored], name: str, column: Stored) -> None:
    if name in result:
        raise stored_arrays.unfit(name, "the model has it in two forms")
    result[name] = column


def _rows_of_bits(name: str, arrays: Arrays) -> SparseColumn:
    """Return the numbers of the slots in use from an array TABLE.in_use."""
    used = stored_arrays.take(name, arrays, np.uint8, None)
    n = sum(int(np.unpackbits(used[i : i + PIECE_ROWS]).sum()) for i in range(0, len(used), PIECE_ROWS))
    return SparseColumn(None, used, n)


def _columns(table: str, arrays: Arrays, parts: Arrays) -> dict[str, Stored]:
    """Return the columns of a table in compact form after checking its arrays."""
    if "in_use" in parts and "gap" in parts:
        raise stored_arrays.unfit(f"{table}.gap", "the rows in use are given twice")
    index: Stored
    if "in_use" in parts:
        index = _rows_of_bits(f"{table}.in_use", arrays)
    else:
        index = _rows_of_gaps(table, stored_arrays.take(f"{table}.gap", arrays, np.uint8, None))
    n = len(index)
    kind = np.asarray(parts["code"]).dtype if "code" in parts else np.dtype(np.int8)
    bits = BITS.get(kind, 8)
    code = stored_arrays.take(f"{table}.code", arrays, CODES[bits], (-(-n // 2) if bits == NIBBLE else n,))
    scale = stored_arrays.take(f"{table}.scale", arrays, np.float32, (-(-n // BLOCK),), 0, LARGEST)
    tag = None
    if "tag" in parts:
        tag = stored_arrays.take(f"{table}.tag", arrays, np.uint8, (-(-n * TAG_BITS // 8),))
    return {f"{table}.{'w' if tag is None else 'word'}": DecodedColumn(n, code, scale, tag), f"{table}.index": index}


def _rows_of_gaps(table: str, gap: UInt8s) -> UInt32s:
    """Return the numbers of the slots in use, uint32[n], from the bytes of `TABLE.gap`."""
    if len(gap) and gap[-1] == LONG_GAP:
        raise stored_arrays.unfit(f"{table}.gap", "its last byte has no slot in use")
    rows = np.empty(int(np.count_nonzero(gap != LONG_GAP)), np.uint32)
    end = add_gaps(gap, rows)
    if end > 1 << 32:
        raise stored_arrays.unfit(f"{table}.gap", f"it reaches slot {end - 1}, but no table is that large")
    return rows


# -- kernels


@jit
def add_gaps(gap: UInt8s, rows: UInt32s) -> int:
    """Write the number of each slot in use to `rows`, uint32[n], modulo 2**32; return the number of slots up to the
    last.

    There are n bytes below LONG_GAP in `gap`.
    """
    slot = np.int64(0)
    n = 0
    for i in range(len(gap)):
        slot += np.int64(gap[i])
        if gap[i] != LONG_GAP:
            rows[n] = np.uint32(slot & 0xFFFFFFFF)
            n += 1
            slot += 1
    return int(slot)


@jit
def word_weights(word: UInt32s, w: Float32s) -> None:
    """Write the weights of tagged words: `word` is uint32[n], `w` is float32[n], written."""
    for i in range(len(word)):
        w[i] = tagged_format.decode_w(word[i])


@jit
def pack_tags(word: UInt32s, tag: UInt8s) -> None:
    """Write the tags of words one after the other to `tag`, uint8[13 n / 8, rounded up], which has zeros."""
    for i in range(len(word)):
        bit = i * TAG_BITS
        shifted = (np.int64(word[i]) & tagged_format.TAG_MASK) << (bit & 7)
        for j in range(bit >> 3, (bit + TAG_BITS + 7) >> 3):
            tag[j] |= np.uint8(shifted & 255)
            shifted >>= 8


@jit
def join_words(w: Float32s, tag: UInt8s, word: UInt32s) -> None:
    """Write the tagged words with these weights, rounded to the nearest, and tags (`pack_tags`), and with the
    smallest G.
    """
    for i in range(len(w)):
        bit = i * TAG_BITS
        own = np.int64(0)
        for j in range(bit >> 3, (bit + TAG_BITS + 7) >> 3):
            own |= np.int64(tag[j]) << 8 * (j - (bit >> 3))
        own = own >> (bit & 7) & tagged_format.TAG_MASK
        bits = tagged_format.encode_w(w[i], ROUND_TO_NEAREST)
        word[i] = np.uint32(bits | np.int64(1 << tagged_format.G_FIELD) | own)
