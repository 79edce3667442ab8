"""Make the header of a model file, and parse and check headers of untrusted files.

The layout is that of safetensors, so other programs can open it; nothing in it is ever executed.

    byte  0     +--------------------------------------------------------------------+
                | u64   length of the header, little-endian                          |
          8     +--------------------------------------------------------------------+
                | {"__metadata__":{"format":"xclass model","header_crc32":"xxxxxxxx",|
                |   "version":"1",         2 with tables in compact form             |
                |   "options":"{...}",     JSON in a string: options of the learner  |
                |   "facts":"{...}",       JSON in a string: counters, other state   |
                |   "crc32":"{...}"},      JSON in a string: array -> crc32          |
                |  "scorers.w":{"dtype":"F32","shape":[9],"data_offsets":[0,36]},    |
                |  ...}   and spaces, up to a multiple of 64 bytes from byte 0       |
       64 * m   +--------------------------------------------------------------------+
                | arrays, little-endian, consecutive without gaps: those with 8-byte |
                | items first, then 4, 2, 1, each group by name, so that every array |
                | begins at a multiple of its item size                              |
                +--------------------------------------------------------------------+  end of file

crc32 is zlib's, in eight hexadecimal digits. The checksum of the header covers bytes 0 to 64 m with its own digits
as zeros. It is at a fixed place, so it is verified before any JSON is parsed. Equal models give equal bytes: keys
are sorted, and neither time nor machine is recorded.
"""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Mapping
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from ..errors import OTHER_MODEL, ModelError
from ..system import bounded_json
from ..system.bounded_json import Anything, List, OneOf, Record, Text, Whole
from ..system.output_file import MODEL_PREFIX
from .compact_columns import is_compact
from .stored_arrays import Arrays, Stored

VERSION = 2  # the highest version that can be read
COMPACT_VERSION, FIRST_VERSION = 2, 1  # of files with tables in compact form, and of all others
CHECKSUM_DIGITS = slice(8 + len(MODEL_PREFIX), 16 + len(MODEL_PREFIX))  # position of the header's own crc32
HEADER_LIMIT = 1 << 20  # bytes; parsed JSON takes up to thirty times its length
ALIGN = 64  # the arrays begin at a multiple of this

DTYPES = {  # by their names in safetensors
    f"{kind}{8 * size}": np.dtype(f"<{kind.lower()}{size}")
    for kind, sizes in {"F": (2, 4, 8), "I": (1, 2, 4, 8), "U": (1, 2, 4, 8)}.items()
    for size in sizes
} | {"BOOL": np.dtype(bool)}
LONGEST_REASON = 500  # characters of a message
NAMES = {dtype: name for name, dtype in DTYPES.items()}
ENTRY = Record({"dtype": OneOf(tuple(DTYPES)), "shape": List(Whole(), 0, 32), "data_offsets": List(Whole(), 2, 2)})
HEADER = Record({"__metadata__": Record(others=Text())}, others=ENTRY)
RECORD = Record(others=Anything())  # options and facts, which those check that they are for


class ArrayLocation(NamedTuple):
    """Locate an array in a file."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    begin: int  # offset in the file, in bytes


class ModelHeader(NamedTuple):
    """Hold the contents of a header."""

    options: dict[str, Any]
    facts: dict[str, Any]
    checksums: dict[str, Any]  # crc32 of each array, as recorded in the file
    locations: dict[str, ArrayLocation]


# -- making ------------------------------------------------------------------------------------------------------


def make_header(
    options: Mapping[str, object],
    facts: Mapping[str, object],
    arrays: Arrays,
    checksums: Mapping[str, str],
) -> bytes:
    """Return the bytes of a file before the arrays, which have the order of the checksums.

    The number of bytes does not depend on the checksums.
    """
    entries: dict[str, Any] = {
        "__metadata__": {
            "format": "xclass model",
            "header_crc32": "0" * 8,
            "version": str(COMPACT_VERSION if is_compact(arrays) else FIRST_VERSION),
            "options": _to_json(options),
            "facts": _to_json(facts),
            "crc32": _to_json(checksums),
        }
    }
    end = 0
    for name in checksums:
        if name in entries:
            raise ValueError(f"an array cannot be called {name!r}")
        begin, end = end, end + stored_bytes(arrays[name])
        entries[name] = {
            "dtype": NAMES[stored_dtype(arrays[name])],
            "shape": list(arrays[name].shape),
            "data_offsets": [begin, end],
        }
    text = json.dumps(entries, separators=(",", ":")).encode()
    text += b" " * (-(8 + len(text)) % ALIGN)
    if len(text) > HEADER_LIMIT:
        raise ValueError(
            f"options and facts take {len(text)} bytes, but at most {HEADER_LIMIT} are allowed; use an array"
        )
    head = bytearray(len(text).to_bytes(8, "little") + text)
    head[CHECKSUM_DIGITS] = b"%08x" % zlib.crc32(head)
    return bytes(head)


def _to_json(record: Mapping[str, object]) -> str:
    """Return a record as compact JSON with sorted keys; NumPy scalars become numbers."""

    def plain(value: object) -> object:
        if isinstance(value, np.generic):
            return value.item()
        raise TypeError(f"{value!r} cannot be stored in a model file")

    return json.dumps(dict(record), sort_keys=True, separators=(",", ":"), allow_nan=False, default=plain)


def stored_dtype(array: Stored) -> np.dtype[Any]:
    """Return the little-endian dtype of an array in the file; raise ValueError if it cannot be stored."""
    dtype = array.dtype.newbyteorder("<")
    if dtype not in NAMES:
        raise ValueError(f"arrays of {array.dtype} cannot be stored in a model file")
    return dtype


def stored_bytes(array: Stored) -> int:
    """Return the number of bytes of an array in the file."""
    return math.prod(array.shape) * array.dtype.itemsize


# -- reading -----------------------------------------------------------------------------------------------------


def read_head(path: str, file: BinaryIO, size: int) -> bytes:
    """Read the header of a file, verify its checksum, and return the bytes of the file before the arrays."""
    first_bytes = file.read(8 + len(MODEL_PREFIX))
    if len(first_bytes) < 8 + len(MODEL_PREFIX) or first_bytes[8:] != MODEL_PREFIX:
        raise ModelError(f"{path}: {_describe_other_file(first_bytes, size)}")
    length = int.from_bytes(first_bytes[:8], "little")
    if length > HEADER_LIMIT or (8 + length) % ALIGN:
        raise damaged(path, "the header", f"its length is given as {length} bytes")
    if 8 + length > size:
        raise _truncated(path, size, f"but its header alone takes {8 + length}")
    head = first_bytes + file.read(8 + length - len(first_bytes))
    zeroed = bytearray(head)
    zeroed[CHECKSUM_DIGITS] = b"0" * 8
    if head[CHECKSUM_DIGITS] != b"%08x" % zlib.crc32(zeroed):
        raise damaged(path, "the header", "its bytes do not match its checksum")
    return head


def parse_header(path: str, head: bytes, size: int) -> ModelHeader:
    """Parse and check the header that `read_head` returned.

    Its checksum is correct, so errors found here were written deliberately or by a faulty program.
    """
    entries = _from_json(path, "the header", head[8:], HEADER)
    metadata = entries.pop("__metadata__")
    version = metadata.get("version", "")
    if version not in (str(FIRST_VERSION), str(COMPACT_VERSION)):
        if version.isascii() and version.isdigit() and len(version) < 10 and int(version) > VERSION:
            raise ModelError(
                f"{path}: the model was made by a newer version of xclass, in format {version}, and this version reads "
                f"formats {FIRST_VERSION} to {VERSION}; update xclass, or {OTHER_MODEL}"
            )
        raise damaged(path, "the header", f"its format version is {version[:20]!r}")
    options, facts, checksums = (
        _from_json(path, part, metadata.get(part, ""), RECORD) for part in ("options", "facts", "crc32")
    )
    locations: dict[str, ArrayLocation] = {}
    end = 0
    for name, entry in entries.items():
        dtype, shape, (begin, array_end) = DTYPES[entry["dtype"]], entry["shape"], entry["data_offsets"]
        if begin != end or array_end < begin or begin % dtype.itemsize:
            raise damaged(path, "the header", f"array {name!r} is said to be at bytes {begin} to {array_end}")
        if array_end - begin != math.prod(shape) * dtype.itemsize:
            raise damaged(
                path, "the header", f"array {name!r} of shape {shape} is said to have {array_end - begin} bytes"
            )
        locations[name] = ArrayLocation(dtype, tuple(shape), len(head) + begin)
        end = array_end
    if len(head) + end > size:
        raise _truncated(path, size, f"but its header says {len(head) + end}")
    if len(head) + end < size:
        raise damaged(path, "the end", f"the file has {size} bytes, but its header says {len(head) + end}")
    if set(checksums) != set(locations):
        raise damaged(path, "the header", "its checksums and arrays have different names")
    return ModelHeader(options, facts, checksums, locations)


def _from_json(path: str, part: str, text: str | bytes, kind: Record) -> dict[str, Any]:
    """Parse a JSON object of a kind."""
    try:
        parsed: dict[str, Any] = bounded_json.parse(text, kind)
    except bounded_json.Malformed as error:
        raise damaged(path, part, str(error)) from None
    return parsed


def model_kind(first_bytes: bytes) -> str:
    """Return a description of the model file that begins with these bytes, or an empty string."""
    if first_bytes[8:].startswith(MODEL_PREFIX):
        return "a model of xclass"
    version = first_bytes[4:].split(b"\0")[0]
    if first_bytes[1:4] == b"\0\0\0" and first_bytes[0] == len(version) + 1 and version.replace(b".", b"").isdigit():
        return f"a model of Vowpal Wabbit {version.decode()}"
    return ""


def _describe_other_file(first_bytes: bytes, size: int) -> str:
    """Return a description of a file that does not begin like a model of xclass."""
    if size == 0:
        return "not an xclass model: the file is empty"
    if first_bytes.startswith(b"\x1f\x8b") or first_bytes.startswith(b"\x28\xb5\x2f\xfd"):
        return "not an xclass model but a compressed file; if there is a model in it, unpack it first"
    if first_bytes[8:] and MODEL_PREFIX.startswith(first_bytes[8:]):
        return f"the file is truncated: it has only {size} bytes; {OTHER_MODEL}"
    other = model_kind(first_bytes)
    if other:
        return f"{other}, which xclass cannot read; train it again with xclass"
    if first_bytes[8:].startswith(b'{"'):
        return "not an xclass model: a safetensors file of another program, or its first bytes are damaged"
    return "not an xclass model, or its first bytes are damaged; models are made with -f"


def damaged(path: str, part: str, reason: str) -> ModelError:
    """Return the error for a file with a damaged part; the reason may have names of any length."""
    reason = reason if len(reason) <= LONGEST_REASON else reason[:LONGEST_REASON] + "..."
    return ModelError(f"{path}: {part} is damaged: {reason}; {OTHER_MODEL}")


def _truncated(path: str, size: int, expected: str) -> ModelError:
    """Return the error for a file that is shorter than its header says."""
    return ModelError(f"{path}: the file is truncated: it has {size} bytes, {expected}; {OTHER_MODEL}")
