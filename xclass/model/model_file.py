"""The model file: two records of JSON and named arrays, checked by sums. Knows no reduction.

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

A model is written beside its place and renamed when all of it is on the disk (`leftovers`): the place holds the old
model or the new one, never a part. The header comes last, so what a killed process leaves is no model.
"""

from __future__ import annotations

import contextlib
import errno
import json
import math
import mmap
import os
import stat
import zlib
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from ..errors import ModelError
from ..system import leftovers
from .stored_arrays import Kept, check_range, dense, fill, rows, sparse, take

__all__ = [  # those who keep something in a model find here what they need of stored_arrays
    "Model", "check_place", "check_range", "dense", "fill", "load", "rows", "save", "sparse", "take",
]  # fmt: skip

VERSION = 1
FIRST = b'{"__metadata__":{"format":"xclass model","header_crc32":"'  # begins every header, of every version
DIGITS = slice(8 + len(FIRST), 16 + len(FIRST))  # where the header's own crc32 stands
HEADER_LIMIT = 1 << 20  # bytes; read JSON takes up to thirty times its length
ALIGN = 64  # arrays begin at a multiple of this
PIECE = 1 << 20  # bytes written, copied or checked at a time

DTYPES = {  # safetensors' names
    f"{kind}{8 * size}": np.dtype(f"<{kind.lower()}{size}")
    for kind, sizes in {"F": (2, 4, 8), "I": (1, 2, 4, 8), "U": (1, 2, 4, 8)}.items()
    for size in sizes
} | {"BOOL": np.dtype(bool)}
NAMES = {dtype: name for name, dtype in DTYPES.items()}


class Model(NamedTuple):
    """What a model file holds."""

    options: dict[str, Any]
    facts: dict[str, Any]
    arrays: dict[str, np.ndarray]  # views of the mapped file; writing to one changes neither file nor other views


# -- saving ------------------------------------------------------------------------------------------------------


def save(
    path: str | os.PathLike,
    *,
    options: Mapping,
    facts: Mapping,
    arrays: Mapping[str, Any],
    links: str = "follow",
    into: leftovers.Unfinished | None = None,
) -> None:
    """Write a model; what was at `path` before stays whole until the new model has taken its place.

    Parameters
    ----------
    path : where to.
    options, facts : JSON-able, NumPy scalars included, NaN and infinity not.
    arrays : name -> array, or what `sparse` gives. They are streamed: contiguous ones are never copied,
        strided ones of one dimension a piece at a time.
    links : what to do where `path` is a symbolic link. "follow" is for a name the user gave: the model is saved where
        the link points, and created there if nothing is. "replace" is for a name derived from one: the link gives way
        to the model. "refuse" is for a name from the data: no link on the way is followed, and nothing but a
        model is replaced.
    into : a file beside `path` that takes the model in place of `path`.

    Raises
    ------
    ModelError
        where the file cannot be written; nothing is left behind then.
    """
    given = path = os.fspath(path)
    order = sorted(arrays, key=lambda name: (-_dtype(arrays[name]).itemsize, name))
    sums = {name: "0" * 8 for name in order}
    size = len(_header(options, facts, arrays, order, sums)) + sum(_nbytes(arrays[name]) for name in order)
    try:
        if links == "follow":
            path = os.path.realpath(path)
            if stat.S_ISCHR(_kind_of(path)):  # /dev/null must not be replaced by a file
                with open(path, "wb") as file:
                    _write(file, options, facts, arrays, order, sums)
                return
        unfinished = into or leftovers.Unfinished(path, links)
        try:
            if links == "refuse":
                _refuse_others(given, unfinished)
            unfinished.file.seek(0)
            unfinished.file.truncate()
            _write(unfinished.file, options, facts, arrays, order, sums)
            unfinished.flush()
            if into is None:
                unfinished.take_place()
        finally:
            if into is None:
                unfinished.close()
    except leftovers.LinkRefused as error:
        raise ModelError(f"{given}: data may only name files in the current folder, and {error.strerror}") from None
    except OSError as error:
        raise ModelError(_why_not_saved(given, path, size, error)) from None


@contextlib.contextmanager
def explained(path: str) -> Iterator[None]:
    """Have what goes wrong with the file of a model explained as `save` does."""
    try:
        yield
    except OSError as error:
        raise ModelError(_why_not_saved(path, os.path.realpath(path), 0, error)) from None


def check_place(path: str | os.PathLike) -> None:
    """Refuse a place where `save` could not write, before the work whose result would be lost."""
    given, path = os.fspath(path), os.path.realpath(path)
    folder = os.path.dirname(path)
    if os.path.islink(path):  # one that leads somewhere was followed
        raise ModelError(_why_not_saved(given, path, 0, OSError(errno.ELOOP, "")))
    if not stat.S_ISCHR(_kind_of(path)) and not (os.path.isdir(folder) and os.access(folder, os.W_OK | os.X_OK)):
        raise ModelError(_why_not_saved(given, path, 0, PermissionError()))


def _refuse_others(path: str, unfinished: leftovers.Unfinished) -> None:
    """Refuse to replace what is no model."""
    size = 8 + len(FIRST)
    begin = unfinished.begins(size)
    if begin is not None and begin[8:size] != FIRST:
        raise ModelError(f"{path}: there is another file of that name, which is no model")


def _kind_of(path: str) -> int:
    """Return the mode of what is at `path`, or of a file where nothing is; neither file nor device is refused."""
    kind = os.stat(path).st_mode if os.path.exists(path) else stat.S_IFREG
    if not stat.S_ISREG(kind) and not stat.S_ISCHR(kind):
        what = "a folder" if stat.S_ISDIR(kind) else "no regular file"
        raise ModelError(f"{path}: cannot save the model, this is {what}; give the name of a file")
    return kind


def _write(file, options, facts, arrays, order, sums) -> None:
    """Write zeros in place of the header, then the arrays, taking their sums, then the header."""
    file.write(bytes(len(_header(options, facts, arrays, order, sums))))
    for name in order:
        crc = 0
        for piece in _pieces(arrays[name]):
            crc = zlib.crc32(piece, crc)
            file.write(piece)
        sums[name] = f"{crc:08x}"
    file.seek(0)
    file.write(_header(options, facts, arrays, order, sums))


def _header(options, facts, arrays, order, sums) -> bytes:
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
        begin, end = end, end + _nbytes(arrays[name])
        entries[name] = {
            "dtype": NAMES[_dtype(arrays[name])],
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


def _to_json(record: Mapping) -> str:
    def plain(value):
        if isinstance(value, np.generic):
            return value.item()
        raise TypeError(f"{value!r} cannot be stored in a model file")

    return json.dumps(dict(record), sort_keys=True, separators=(",", ":"), allow_nan=False, default=plain)


def _dtype(array) -> np.dtype:
    dtype = array.dtype.newbyteorder("<")
    if dtype not in NAMES:
        raise ValueError(f"arrays of {array.dtype} cannot be stored in a model file")
    return dtype


def _nbytes(array) -> int:
    return math.prod(array.shape) * array.dtype.itemsize


def _pieces(array) -> Iterator[np.ndarray]:
    """Yield an array's bytes in order, as uint8[...] of about a megabyte."""
    if isinstance(array, Kept):
        for piece in array.pieces():
            yield piece.view(np.uint8)
        return
    if array.ndim != 1:
        array = array.reshape(-1)  # a copy only of strided arrays of several dimensions
    step = PIECE // array.itemsize
    dtype = _dtype(array)
    for i in range(0, len(array), step):
        yield np.ascontiguousarray(array[i : i + step], dtype).view(np.uint8)


def _why_not_saved(given: str, path: str, size: int, error: OSError) -> str:
    """Say why a model is not at `path`, where the name `given` leads."""
    folder = os.path.dirname(path) or "."
    if error.errno == errno.ELOOP:
        what, advice = "the symbolic link leads back to itself", "remove it, or give another file"
    elif not os.path.isdir(folder):
        what, advice = f"there is no folder {folder}", "create it, or give another file"
    elif error.errno == errno.EINVAL:
        what, advice = error.strerror, "give the name of a file"
    elif isinstance(error, PermissionError):
        what, advice = f"no permission to write in {folder}", "give a file in a folder of your own"
    else:
        takes = f"it takes {size / 1e6:,.1f} MB in {folder}, " if size else ""
        what = f"{error.strerror or error}; {takes}{leftovers.free_space(folder)}"
        advice = "make room there, or give a file elsewhere"
    place = f"{given}, a link to {path}" if os.path.islink(given) else path
    kept = "; the model that was there is unchanged" if os.path.exists(path) else ""
    return f"{place}: cannot save the model: {what}: {advice}{kept}"


# -- loading -----------------------------------------------------------------------------------------------------


def load(path: str | os.PathLike, verify: bool = True) -> Model:
    """Map a model file into memory and check all of it before anything is used.

    Parameters
    ----------
    verify : also compare every array with its sum, which reads the whole file once; the rest is always checked.

    Raises
    ------
    ModelError
        naming the part that is damaged, or what the file is instead.
    """
    path = os.fspath(path)
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):  # opening a pipe would wait for ever
            raise ModelError(
                f"{path}: cannot load the model: this is not a regular file; give the name of a model file"
            )
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            head = _read_head(path, file, size)
            options, facts, sums, places = _read_header(path, head, size)
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    except FileNotFoundError:
        raise ModelError(f"{path}: cannot load the model: there is no such file") from None
    except (OSError, ValueError) as error:
        raise ModelError(f"{path}: cannot load the model: {getattr(error, 'strerror', None) or error}") from None
    arrays = {}
    for name, (dtype, shape, begin) in places.items():
        try:
            array = np.ndarray(shape, dtype, mapped, begin) if 0 not in shape else np.empty(shape, dtype)
        except ValueError:
            raise _damaged(path, "the header", f"array {name!r} has the impossible shape {shape}") from None
        if verify:
            crc = 0
            for piece in _pieces(array):
                crc = zlib.crc32(piece, crc)
            if f"{crc:08x}" != sums[name]:
                raise _damaged(path, f"array {name!r}", "its bytes do not fit its checksum")
            if hasattr(mmap, "MADV_DONTNEED"):  # it stays in the system's cache; not all of it has to be in memory
                mapped.madvise(mmap.MADV_DONTNEED)
            if dtype.kind == "b" and not all((piece < 2).all() for piece in _pieces(array)):
                raise _damaged(path, f"array {name!r}", "a truth value is neither 0 nor 1")
        arrays[name] = array
    return Model(options, facts, arrays)


def _read_head(path: str, file, size: int) -> bytes:
    """Return the file up to the arrays, undamaged by its sum."""
    begin = file.read(8 + len(FIRST))
    if len(begin) < 8 + len(FIRST) or begin[8:] != FIRST:
        raise ModelError(f"{path}: {_what_instead(begin, size)}")
    length = int.from_bytes(begin[:8], "little")
    if length > HEADER_LIMIT or (8 + length) % ALIGN:
        raise _damaged(path, "the header", f"its length is given as {length} bytes")
    if 8 + length > size:
        raise _truncated(path, size, f"its header alone takes {8 + length}")
    head = begin + file.read(8 + length - len(begin))
    plain = bytearray(head)
    plain[DIGITS] = b"0" * 8
    if head[DIGITS] != b"%08x" % zlib.crc32(plain):
        raise _damaged(path, "the header", "its bytes do not fit its checksum")
    return head


def _read_header(path: str, head: bytes, size: int):
    """Return options, facts, name -> sum, and name -> (dtype, shape, first byte).

    The sum of the header is right, so what is still wrong here was written so.
    """
    entries = _from_json(path, "the header", head[8:])
    metadata = entries.pop("__metadata__")
    if not (isinstance(metadata, dict) and all(isinstance(value, str) for value in metadata.values())):
        raise _damaged(path, "the header", "its metadata is no record of strings")
    version = metadata.get("version", "")
    if version != str(VERSION):
        if version.isascii() and version.isdigit() and len(version) < 10 and int(version) > VERSION:
            raise ModelError(
                f"{path}: made by a newer version of xclass, in format {version}; this one reads format {VERSION}: "
                "update xclass, or train the model again"
            )
        raise _damaged(path, "the header", f"its format version is {version[:20]!r}")
    options, facts, sums = (_from_json(path, part, metadata.get(part, "")) for part in ("options", "facts", "crc32"))
    places = {}
    end = 0
    for name, entry in entries.items():
        dtype, shape, begin, after = _check_entry(path, name, entry)
        if begin != end or after < begin or begin % dtype.itemsize:
            raise _damaged(path, "the header", f"array {name!r} is said to lie at bytes {begin} to {after}")
        if after - begin != math.prod(shape) * dtype.itemsize:
            raise _damaged(path, "the header", f"array {name!r} of shape {shape} is said to have {after - begin} bytes")
        places[name] = (dtype, tuple(shape), len(head) + begin)
        end = after
    if len(head) + end > size:
        raise _truncated(path, size, f"its header says {len(head) + end}")
    if len(head) + end < size:
        raise _damaged(path, "the end", f"the file has {size} bytes, its header says {len(head) + end}")
    if set(sums) != set(places):
        raise _damaged(path, "the header", "checksums and arrays do not belong together")
    return options, facts, sums, places


def _check_entry(path: str, name: str, entry: Any) -> tuple[np.dtype, list[int], int, int]:
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise _damaged(path, "the header", f"the entry of array {name!r} is malformed")
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise _damaged(path, "the header", f"array {name!r} is of the unknown type {str(dtype)[:20]!r}")
    for numbers, most in ((shape, 32), (offsets, 2)):
        fine = isinstance(numbers, list) and len(numbers) <= most
        if not fine or not all(type(n) is int and 0 <= n < 1 << 62 for n in numbers):
            raise _damaged(path, "the header", f"array {name!r} has a malformed shape or place")
    if len(offsets) != 2:
        raise _damaged(path, "the header", f"array {name!r} has no place")
    return DTYPES[dtype], shape, *offsets


def _from_json(path: str, part: str, text: str | bytes) -> dict[str, Any]:
    """Read a JSON object; names that occur twice, NaN and endless numbers are refused."""

    def record(pairs):
        found = dict(pairs)
        if len(found) != len(pairs):
            raise ValueError("a name occurs twice")
        return found

    def number(text, kind=int):
        value = kind(text) if len(text) < 400 else math.inf
        if not -math.inf < value < math.inf:
            raise ValueError(f"the number {text[:20]}")
        return value

    def refuse(text):
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
        raise _damaged(path, part, f"no well-formed JSON, {error}") from None
    if not isinstance(found, dict):
        raise _damaged(path, part, "no JSON object")
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


def _damaged(path: str, part: str, why: str) -> ModelError:
    return ModelError(f"{path}: {part} is damaged: {why}; train the model again, or take another copy of the file")


def _truncated(path: str, size: int, wanted: str) -> ModelError:
    return ModelError(
        f"{path}: truncated: has {size} bytes, {wanted}; train the model again, or take another copy of the file"
    )
