"""The header of a model file: made, and read from files that anybody may have made.

The layout is that of safetensors, so other programs can open it; nothing in it is ever run as code.

    byte  0     +--------------------------------------------------------------------+
                | u64   length of the header, little-endian                          |
          8     +--------------------------------------------------------------------+
                | {"__metadata__":{"format":"xclass model","header_crc32":"xxxxxxxx",|
                |   "version":"1",              raised when older xclass cannot read |
                |   "options":"{...}",          JSON in a string: what was asked for |
                |   "facts":"{...}",            JSON in a string: counters and such  |
                |   "crc32":"{...}"},           JSON in a string: array -> crc32     |
                |  "scorers.w":{"dtype":"F32","shape":[9],"data_offsets":[0,36]},    |
                |  ...}   and spaces, up to a multiple of 64 bytes from byte 0       |
       64 * m   +--------------------------------------------------------------------+
                | arrays, little-endian, one after the other without holes: those of |
                | 8 bytes an item first, then 4, 2, 1, each group by name, so that   |
                | every array begins at a multiple of its item's size                |
                +--------------------------------------------------------------------+  end of file

crc32 is zlib's, in eight hexadecimal digits. The header's covers bytes 0 to 64 m with its own digits as zeros,
and stands at a fixed place, so it is checked before any JSON is read. The same model gives the same bytes: keys
are sorted, and neither time nor machine is recorded.
"""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from ..errors import ModelError
from .stored_arrays import Stored

VERSION = 1
FIRST = b'{"__metadata__":{"format":"xclass model","header_crc32":"'  # begins every header, of every version
DIGITS = slice(8 + len(FIRST), 16 + len(FIRST))  # where the header's own crc32 stands
HEADER_LIMIT = 1 << 20  # bytes; read JSON takes up to thirty times its length
ALIGN = 64  # arrays begin at a multiple of this

DTYPES = {  # safetensors' names
    f"{kind}{8 * size}": np.dtype(f"<{kind.lower()}{size}")
    for kind, sizes in {"F": (2, 4, 8), "I": (1, 2, 4, 8), "U": (1, 2, 4, 8)}.items()
    for size in sizes
} | {"BOOL": np.dtype(bool)}
NAMES = {dtype: name for name, dtype in DTYPES.items()}


class Place(NamedTuple):
    """Where an array lies in a file."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    begin: int  # byte of the file


class Header(NamedTuple):
    """What a header says."""

    options: dict[str, Any]
    facts: dict[str, Any]
    sums: dict[str, Any]  # crc32 of each array, as the file has it
    places: dict[str, Place]


# -- making ------------------------------------------------------------------------------------------------------


def make_header(
    options: Mapping[str, object],
    facts: Mapping[str, object],
    arrays: Mapping[str, Stored],
    order: Sequence[str],
    sums: Mapping[str, str],
) -> bytes:
    """Return the file up to the arrays. Its length does not depend on the sums."""
    entries: dict[str, Any] = {
        "__metadata__": {
            "format": "xclass model",
            "header_crc32": "0" * 8,
            "version": str(VERSION),
            "options": _to_json(options),
            "facts": _to_json(facts),
            "crc32": _to_json(sums),
        }
    }
    end = 0
    for name in order:
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
        raise ValueError(f"options and facts take {len(text)} bytes, at most {HEADER_LIMIT} are allowed: use an array")
    head = bytearray(len(text).to_bytes(8, "little") + text)
    head[DIGITS] = b"%08x" % zlib.crc32(head)
    return bytes(head)


def _to_json(record: Mapping[str, object]) -> str:
    def plain(value: object) -> object:
        if isinstance(value, np.generic):
            return value.item()
        raise TypeError(f"{value!r} cannot be stored in a model file")

    return json.dumps(dict(record), sort_keys=True, separators=(",", ":"), allow_nan=False, default=plain)


def stored_dtype(array: Stored) -> np.dtype[Any]:
    """Return the type of an array's numbers in the file; ValueError where there is none."""
    dtype = array.dtype.newbyteorder("<")
    if dtype not in NAMES:
        raise ValueError(f"arrays of {array.dtype} cannot be stored in a model file")
    return dtype


def stored_bytes(array: Stored) -> int:
    """Return how many bytes an array takes in the file."""
    return math.prod(array.shape) * array.dtype.itemsize


# -- reading -----------------------------------------------------------------------------------------------------


def read_head(path: str, file: BinaryIO, size: int) -> bytes:
    """Return the file up to the arrays, undamaged by its sum."""
    begin = file.read(8 + len(FIRST))
    if len(begin) < 8 + len(FIRST) or begin[8:] != FIRST:
        raise ModelError(f"{path}: {_what_instead(begin, size)}")
    length = int.from_bytes(begin[:8], "little")
    if length > HEADER_LIMIT or (8 + length) % ALIGN:
        raise damaged(path, "the header", f"its length is given as {length} bytes")
    if 8 + length > size:
        raise _truncated(path, size, f"its header alone takes {8 + length}")
    head = begin + file.read(8 + length - len(begin))
    plain = bytearray(head)
    plain[DIGITS] = b"0" * 8
    if head[DIGITS] != b"%08x" % zlib.crc32(plain):
        raise damaged(path, "the header", "its bytes do not fit its checksum")
    return head


def parse_header(path: str, head: bytes, size: int) -> Header:
    """Return what a header says.

    The sum of the header is right, so what is still wrong here was written so.
    """
    entries = _from_json(path, "the header", head[8:])
    metadata = entries.pop("__metadata__")
    if not (isinstance(metadata, dict) and all(isinstance(value, str) for value in metadata.values())):
        raise damaged(path, "the header", "its metadata is no record of strings")
    version = metadata.get("version", "")
    if version != str(VERSION):
        if version.isascii() and version.isdigit() and len(version) < 10 and int(version) > VERSION:
            raise ModelError(
                f"{path}: made by a newer version of xclass, in format {version}; this one reads format {VERSION}: "
                "update xclass, or train the model again"
            )
        raise damaged(path, "the header", f"its format version is {version[:20]!r}")
    options, facts, sums = (_from_json(path, part, metadata.get(part, "")) for part in ("options", "facts", "crc32"))
    places: dict[str, Place] = {}
    end = 0
    for name, entry in entries.items():
        dtype, shape, begin, after = _check_entry(path, name, entry)
        if begin != end or after < begin or begin % dtype.itemsize:
            raise damaged(path, "the header", f"array {name!r} is said to lie at bytes {begin} to {after}")
        if after - begin != math.prod(shape) * dtype.itemsize:
            raise damaged(path, "the header", f"array {name!r} of shape {shape} is said to have {after - begin} bytes")
        places[name] = Place(dtype, tuple(shape), len(head) + begin)
        end = after
    if len(head) + end > size:
        raise _truncated(path, size, f"its header says {len(head) + end}")
    if len(head) + end < size:
        raise damaged(path, "the end", f"the file has {size} bytes, its header says {len(head) + end}")
    if set(sums) != set(places):
        raise damaged(path, "the header", "checksums and arrays do not belong together")
    return Header(options, facts, sums, places)


def _check_entry(path: str, name: str, entry: object) -> tuple[np.dtype[Any], list[int], int, int]:
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise damaged(path, "the header", f"the entry of array {name!r} is malformed")
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise damaged(path, "the header", f"array {name!r} is of the unknown type {str(dtype)[:20]!r}")
    for numbers, most in ((shape, 32), (offsets, 2)):
        fine = isinstance(numbers, list) and len(numbers) <= most
        if not fine or not all(type(n) is int and 0 <= n < 1 << 62 for n in numbers):
            raise damaged(path, "the header", f"array {name!r} has a malformed shape or place")
    if len(offsets) != 2:
        raise damaged(path, "the header", f"array {name!r} has no place")
    return DTYPES[dtype], shape, *offsets


def _from_json(path: str, part: str, text: str | bytes) -> dict[str, Any]:
    """Read a JSON object; names that occur twice, NaN and endless numbers are refused."""

    def record(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            raise ValueError("a name occurs twice")
        return found

    def number(text: str, kind: Callable[[str], float] = int) -> float:
        value = kind(text) if len(text) < 400 else math.inf
        if not -math.inf < value < math.inf:
            raise ValueError(f"the number {text[:20]}")
        return value

    def refuse(text: str) -> None:
        raise ValueError(f"the number {text}")

    try:
        found = json.loads(
            text,
            object_pairs_hook=record,
            parse_int=number,
            parse_float=lambda text: number(text, float),
            parse_constant=refuse,
        )
    except (ValueError, RecursionError) as error:
        raise damaged(path, part, f"no well-formed JSON, {error}") from None
    if not isinstance(found, dict):
        raise damaged(path, part, "no JSON object")
    return found


def model_that_begins(begin: bytes) -> str:
    """Return what model it is whose first bytes these are; empty where it is none."""
    if begin[8:].startswith(FIRST):
        return "a model of xclass"
    version = begin[4:].split(b"\0")[0]
    if begin[1:4] == b"\0\0\0" and begin[0] == len(version) + 1 and version.replace(b".", b"").isdigit():
        return f"a model of Vowpal Wabbit {version.decode()}"
    return ""


def _what_instead(begin: bytes, size: int) -> str:
    """Say what a file is whose first bytes are not ours."""
    if size == 0:
        return "not an xclass model: the file is empty"
    if begin.startswith(b"\x1f\x8b") or begin.startswith(b"\x28\xb5\x2f\xfd"):
        return "not an xclass model but a compressed file; if there is a model in it, unpack it first"
    if begin[8:] and FIRST.startswith(begin[8:]):
        return f"truncated: has {size} bytes, not even a whole header; train the model again, or take another copy"
    other = model_that_begins(begin)
    if other:
        return f"{other}, which xclass cannot read; train it again with xclass"
    if begin[8:].startswith(b'{"'):
        return "not an xclass model: a safetensors file of another program, or its first bytes are damaged"
    return "not an xclass model, or its first bytes are damaged; models are made with -f"


def damaged(path: str, part: str, why: str) -> ModelError:
    """Return the error of a file with a damaged part."""
    return ModelError(f"{path}: {part} is damaged: {why}; train the model again, or take another copy of the file")


def _truncated(path: str, size: int, wanted: str) -> ModelError:
    return ModelError(
        f"{path}: truncated: has {size} bytes, {wanted}; train the model again, or take another copy of the file"
    )
