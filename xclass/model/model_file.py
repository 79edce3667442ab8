"""Write models to files, and load and verify them; independent of reductions.

A model file holds two JSON records (options and facts) and named arrays, protected by checksums. `model_header`
describes the layout and the checks made before any array is used.

A model is written to an unfinished file beside its place, which is renamed once everything is on the disk
(`leftovers`): the place always holds the complete old model or the complete new one. The header is written last, so
a file that a killed process leaves behind is not mistaken for a model.
"""

from __future__ import annotations

import contextlib
import io
import os
import stat
import zlib
from collections.abc import Iterator, Mapping
from io import FileIO
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from ..array_types import AnyArray, UInt8s
from ..errors import ModelError
from ..system import leftovers, output_file
from . import model_header
from .stored_arrays import READ, Arrays, Stored, Streamed

PIECE = 1 << 20  # bytes to write at a time


class Model(NamedTuple):
    """Hold the contents of a model file."""

    options: dict[str, Any]
    facts: dict[str, Any]  # counters and other state that is not an array
    arrays: dict[str, Any]  # arrays in memory, or from `opened` those in the file, as `Stored`


# -- saving ------------------------------------------------------------------------------------------------------


def save(
    path: str | os.PathLike[str],
    *,
    options: Mapping[str, object],
    facts: Mapping[str, object],
    arrays: Arrays,
    links: str = "follow",
    into: leftovers.Unfinished | None = None,
) -> None:
    """Write a model; the previous file at `path` stays intact until the new model replaces it.

    Parameters
    ----------
    options, facts : JSON-serialisable; NumPy scalars are allowed, NaN and infinity are not
    arrays : name -> array, or the result of `pack_table`. They are streamed: contiguous arrays are never copied,
        strided arrays of one dimension piece by piece.
    links : what to do if `path` is a symbolic link. "follow" is for names given by the user: the model is written
        to the target of the link, which is created if it does not exist. "replace" is for names derived from such a
        name: the link is replaced by the model. "refuse" is for names taken from data: no link on the way is
        followed, and only a model may be replaced.
    into : an open file beside `path` that receives the model; the caller renames it
    """
    given_path = path = os.fspath(path)
    try:
        if links == "follow":
            path = os.path.realpath(path)
            if stat.S_ISCHR(_mode_of(path)):  # /dev/null must not be replaced by a file
                with open(path, "wb") as file:
                    _write(file, options, facts, arrays)
                return
        unfinished = into or leftovers.Unfinished(path, links)
        try:
            if into is None and links != "replace":
                output_file.refuse_beginning(given_path, unfinished.beginning(output_file.MODEL_BEGINNING))
            unfinished.file.seek(0)
            unfinished.file.truncate()
            _write(unfinished.file, options, facts, arrays)
            unfinished.flush()
            if into is None:
                if links == "follow":
                    output_file.check_claim(given_path)
                own = output_file.identity_of(unfinished.file)  # another process may write the place at once
                unfinished.take_place()
                output_file.renew_claim(given_path, own)
        finally:
            if into is None:
                unfinished.close()
    except leftovers.LinkRefused as error:
        raise ModelError(
            f"{given_path}: data may only name files in the current folder, but {error.strerror}"
        ) from None
    except OSError as error:
        size = sum(map(model_header.stored_bytes, arrays.values()))
        raise ModelError(_save_failure(given_path, path, size, error)) from None


def to_bytes(options: Mapping[str, object], facts: Mapping[str, object], arrays: Arrays) -> bytes:
    """Return the contents of the file that `save` would write; the parameters are the same."""
    file = io.BytesIO()
    _write(file, options, facts, arrays)
    return file.getvalue()


@contextlib.contextmanager
def explain_save_errors(path: str) -> Iterator[None]:
    """Convert OSErrors of the file of a model to the ModelError that `save` would raise."""
    try:
        yield
    except OSError as error:
        raise ModelError(_save_failure(path, os.path.realpath(path), 0, error)) from None


def check_writable(path: str | os.PathLike[str]) -> None:
    """Check that `save` can write to `path`, before spending the time to train the model."""
    given_path, path = os.fspath(path), os.path.realpath(path)
    folder = os.path.dirname(path)
    try:
        os.stat(path)
    except FileNotFoundError:
        pass
    except OSError as error:  # a link that leads to itself, or a name that is too long
        raise ModelError(_save_failure(given_path, path, 0, error)) from None
    if not stat.S_ISCHR(_mode_of(path)) and not (os.path.isdir(folder) and os.access(folder, os.W_OK | os.X_OK)):
        raise ModelError(_save_failure(given_path, path, 0, PermissionError()))


def _mode_of(path: str) -> int:
    """Return the mode of the file at `path`, or of a regular file if there is none; refuse folders and other kinds."""
    mode = os.stat(path).st_mode if os.path.exists(path) else stat.S_IFREG
    if not stat.S_ISREG(mode) and not stat.S_ISCHR(mode):
        kind = "a folder" if stat.S_ISDIR(mode) else "not a regular file"
        raise ModelError(f"{path}: cannot save the model, because this is {kind}; give the name of a file")
    return mode


def _write(file: BinaryIO, options: Mapping[str, object], facts: Mapping[str, object], arrays: Arrays) -> None:
    """Write zeros in place of the header, then the arrays while computing their checksums, then the header."""
    order = sorted(arrays, key=lambda name: (-model_header.stored_dtype(arrays[name]).itemsize, name))
    checksums = dict.fromkeys(order, "0" * 8)
    file.write(bytes(len(model_header.make_header(options, facts, arrays, checksums))))
    for name in order:
        crc = 0
        for piece in _pieces(arrays[name]):
            crc = zlib.crc32(piece.data, crc)
            file.write(piece.data)
        checksums[name] = f"{crc:08x}"
    file.seek(0)
    file.write(model_header.make_header(options, facts, arrays, checksums))


def _pieces(array: Stored) -> Iterator[UInt8s]:
    """Yield the bytes of an array in order, as uint8[...] of about a megabyte."""
    if isinstance(array, Streamed):
        for piece in array.pieces():
            yield piece.view(np.uint8)
        return
    if array.ndim != 1:
        array = array.reshape(-1)  # a copy only of strided arrays of several dimensions
    step = PIECE // array.itemsize
    dtype = model_header.stored_dtype(array)
    for i in range(0, len(array), step):
        yield np.ascontiguousarray(array[i : i + step], dtype).view(np.uint8)


def _save_failure(given_path: str, path: str, size: int, error: OSError) -> str:
    """Return the message that explains why a model could not be saved at `path`, to which `given_path` leads."""
    shown_path = f"{given_path}, a link to {path}" if os.path.islink(given_path) else path
    unchanged = "; the model that was there is unchanged" if os.path.exists(path) else ""
    return f"{shown_path}: cannot save the model: {output_file.write_failure(path, error, size)}{unchanged}"


# -- loading -----------------------------------------------------------------------------------------------------


class StoredArray(Streamed):
    """Present an array of a model file, which is read, and compared with its checksum, whenever it is used.

    Nothing of a file is mapped into memory: others may change it at any time.
    """

    def __init__(self, name: str, place: model_header.ArrayLocation, checksum: str, file: Bytes) -> None:
        self.dtype, self.shape, self._begin = place
        self._name, self._checksum, self._file = name, checksum, file

    def pieces(self) -> Iterator[AnyArray]:
        """Yield the items in order; an array that was yielded is overwritten by the next."""
        crc, at, end = 0, self._begin, self._begin + model_header.stored_bytes(self)
        buffer = np.empty(min(READ * self.dtype.itemsize, end - at), np.uint8)
        while at < end:
            data = buffer[: end - at]
            self._file.read(at, data)
            crc = zlib.crc32(data.data, crc)
            at += len(data)
            if at >= end and f"{crc:08x}" != self._checksum:
                raise self._damaged("its bytes do not match its checksum")
            if self.dtype.kind == "b" and not (data < 2).all():
                raise self._damaged("a truth value is neither 0 nor 1")
            yield data.view(self.dtype)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> AnyArray:
        try:
            return super().__array__(dtype, copy)
        except ValueError:
            raise model_header.damaged(
                self._file.name, "the header", f"array {self._name!r} has the impossible shape {self.shape}"
            ) from None

    def _damaged(self, reason: str) -> ModelError:
        return model_header.damaged(self._file.name, f"array {self._name!r}", reason)


class Bytes:
    """Read the bytes of a model: those of a file, which stays open, or of an object in memory."""

    def __init__(self, name: str, source: FileIO | io.BytesIO) -> None:
        self.name, self._source = name, source

    def read(self, begin: int, data: UInt8s) -> None:
        """Fill an array with the bytes from `begin` on; raise ModelError if the file has become shorter."""
        try:
            self._source.seek(begin)
            left = memoryview(data.data)
            while len(left) and (size := self._source.readinto(left)):  # it may return fewer bytes than are left
                left = left[size:]
        except OSError as error:
            raise ModelError(f"{self.name}: cannot load the model: {error.strerror or error}") from None
        if len(left):
            cause = "the file was cut off while it was read; load it again"
            raise ModelError(f"{self.name}: cannot load the model: {cause}")

    def __del__(self) -> None:
        self._source.close()


def load(path: str | os.PathLike[str]) -> Model:
    """Return the model in a file, after checking all of it."""
    return _read(opened(path))


def opened(path: str | os.PathLike[str]) -> Model:
    """Return the model in a file whose header is checked; its arrays are read, and checked, when they are used."""
    path = os.fspath(path)
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):  # opening a pipe would block
            raise ModelError(
                f"{path}: cannot load the model: this is not a regular file; give the name of a model file"
            )
        return _model(path, open(path, "rb", buffering=0))
    except FileNotFoundError:
        raise ModelError(f"{path}: cannot load the model: there is no such file") from None
    except (OSError, ValueError) as error:
        cause = getattr(error, "strerror", None) or error
        raise ModelError(f"{path}: cannot load the model: {cause}; check its name and permissions") from None


def from_bytes(data: bytes) -> Model:
    """Return the model that `to_bytes` has returned as bytes, after checking all of it; errors are as in `load`."""
    return _read(_model("the model in memory", io.BytesIO(data)))


def _read(model: Model) -> Model:
    return model._replace(arrays={name: np.asarray(array) for name, array in model.arrays.items()})


def _model(name: str, source: FileIO | io.BytesIO) -> Model:
    """Return the model that an open file or an object in memory holds."""
    file = Bytes(name, source)
    size = source.seek(0, io.SEEK_END)
    source.seek(0)
    header = model_header.parse_header(name, model_header.read_head(name, source, size), size)
    arrays = {
        array: StoredArray(array, place, header.checksums[array], file) for array, place in header.locations.items()
    }
    return Model(header.options, header.facts, arrays)
