"""The model file: two records of JSON and named arrays, checked by sums. Knows no reduction.

`model_header` has the layout, and what is checked of it before an array is looked at.

A model is written beside its place and renamed when all of it is on the disk (`leftovers`): the place holds the old
model or the new one, never a part. The header comes last, so what a killed process leaves is no model.
"""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
import stat
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from ..array_types import AnyArray, UInt8s
from ..errors import ModelError
from ..system import leftovers
from . import model_header
from .stored_arrays import SparseColumn, Stored, check_range, dense, fill, rows, sparse, take

__all__ = [  # those who keep something in a model find here what they need of stored_arrays
    "Model", "check_place", "check_range", "dense", "fill", "load", "rows", "save", "sparse", "take",
]  # fmt: skip

PIECE = 1 << 20  # bytes written, copied or checked at a time


class Model(NamedTuple):
    """What a model file holds."""

    options: dict[str, Any]
    facts: dict[str, Any]
    arrays: dict[str, AnyArray]  # views of the mapped file; writing to one changes neither file nor other views


# -- saving ------------------------------------------------------------------------------------------------------


def save(
    path: str | os.PathLike[str],
    *,
    options: Mapping[str, object],
    facts: Mapping[str, object],
    arrays: Mapping[str, Stored],
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
    order = sorted(arrays, key=lambda name: (-model_header.stored_dtype(arrays[name]).itemsize, name))
    sums = {name: "0" * 8 for name in order}
    size = len(model_header.make_header(options, facts, arrays, order, sums))
    size += sum(model_header.stored_bytes(arrays[name]) for name in order)
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


def check_place(path: str | os.PathLike[str]) -> None:
    """Refuse a place where `save` could not write, before the work whose result would be lost."""
    given, path = os.fspath(path), os.path.realpath(path)
    folder = os.path.dirname(path)
    if os.path.islink(path):  # one that leads somewhere was followed
        raise ModelError(_why_not_saved(given, path, 0, OSError(errno.ELOOP, "")))
    if not stat.S_ISCHR(_kind_of(path)) and not (os.path.isdir(folder) and os.access(folder, os.W_OK | os.X_OK)):
        raise ModelError(_why_not_saved(given, path, 0, PermissionError()))


def _refuse_others(path: str, unfinished: leftovers.Unfinished) -> None:
    """Refuse to replace what is no model."""
    size = 8 + len(model_header.FIRST)
    begin = unfinished.begins(size)
    if begin is not None and begin[8:size] != model_header.FIRST:
        raise ModelError(f"{path}: there is another file of that name, which is no model")


def _kind_of(path: str) -> int:
    """Return the mode of what is at `path`, or of a file where nothing is; neither file nor device is refused."""
    kind = os.stat(path).st_mode if os.path.exists(path) else stat.S_IFREG
    if not stat.S_ISREG(kind) and not stat.S_ISCHR(kind):
        what = "a folder" if stat.S_ISDIR(kind) else "no regular file"
        raise ModelError(f"{path}: cannot save the model, this is {what}; give the name of a file")
    return kind


def _write(
    file: BinaryIO,
    options: Mapping[str, object],
    facts: Mapping[str, object],
    arrays: Mapping[str, Stored],
    order: Sequence[str],
    sums: dict[str, str],
) -> None:
    """Write zeros in place of the header, then the arrays, taking their sums, then the header."""
    file.write(bytes(len(model_header.make_header(options, facts, arrays, order, sums))))
    for name in order:
        crc = 0
        for piece in _pieces(arrays[name]):
            crc = zlib.crc32(piece.data, crc)
            file.write(piece.data)
        sums[name] = f"{crc:08x}"
    file.seek(0)
    file.write(model_header.make_header(options, facts, arrays, order, sums))


def _pieces(array: Stored) -> Iterator[UInt8s]:
    """Yield an array's bytes in order, as uint8[...] of about a megabyte."""
    if isinstance(array, SparseColumn):
        for piece in array.pieces():
            yield piece.view(np.uint8)
        return
    if array.ndim != 1:
        array = array.reshape(-1)  # a copy only of strided arrays of several dimensions
    step = PIECE // array.itemsize
    dtype = model_header.stored_dtype(array)
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
        what, advice = str(error.strerror), "give the name of a file"
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


def load(path: str | os.PathLike[str], verify: bool = True) -> Model:
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
            head = model_header.read_head(path, file, size)
            options, facts, sums, places = model_header.parse_header(path, head, size)
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
            raise model_header.damaged(path, "the header", f"array {name!r} has the impossible shape {shape}") from None
        if verify:
            crc = 0
            for piece in _pieces(array):
                crc = zlib.crc32(piece.data, crc)
            if f"{crc:08x}" != sums[name]:
                raise model_header.damaged(path, f"array {name!r}", "its bytes do not fit its checksum")
            if hasattr(mmap, "MADV_DONTNEED"):  # it stays in the system's cache; not all of it has to be in memory
                mapped.madvise(mmap.MADV_DONTNEED)
            if dtype.kind == "b" and not all((piece < 2).all() for piece in _pieces(array)):
                raise model_header.damaged(path, f"array {name!r}", "a truth value is neither 0 nor 1")
        arrays[name] = array
    return Model(options, facts, arrays)
