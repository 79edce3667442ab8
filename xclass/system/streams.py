"""Open what is read: standard input, files, and files that are compressed."""

from __future__ import annotations

import contextlib
import importlib
import io
import sys
import zlib
from collections.abc import Callable, Iterator
from io import RawIOBase
from typing import Any, Protocol

from ..errors import DataError

COMPRESSED = (  # first bytes, extension, tool that decompresses
    (b"\x1f\x8b", ".gz", "zcat"),
    (b"\x28\xb5\x2f\xfd", ".zst", "zstdcat"),
    (b"BZh", ".bz2", "bzcat"),
    (b"\xfd7zXZ\0", ".xz", "xzcat"),
)
MOST_BYTES = 1 << 28  # of a file that `read_file` reads
CHUNK = 1 << 15  # compressed bytes read at a time, which decompress to some MB at most
MODULES = {".gz": "gzip", ".bz2": "bz2", ".xz": "lzma"}  # modules of Python that decompress


class ByteStream(Protocol):
    def readinto(self, buffer: bytearray | memoryview, /) -> int | None: ...


class Pieces(RawIOBase):
    """Read the pieces of bytes that an iterator yields as a stream."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces, self._rest = pieces, memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]  # no other types are passed
        while not self._rest:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._rest = memoryview(piece)
        size = min(len(buffer), len(self._rest))
        buffer[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size


def standard_input() -> Any:
    """Return standard input without a buffer.

    A thread that still waits in the buffered stream when the interpreter ends would crash it.
    """
    return getattr(sys.stdin.buffer, "raw", sys.stdin.buffer)


def ending_of(path: str) -> str:
    """Return the extension by which the name of a file says that it is compressed, or an empty string."""
    return next((ending for _, ending, _ in COMPRESSED if path.lower().endswith(ending)), "")


def decompressed(path: str, file: RawIOBase, closing: contextlib.ExitStack) -> ByteStream:
    """Return the stream of a file, decompressed if its name says that it is compressed."""
    ending = ending_of(path)
    if ending in MODULES:
        module = importlib.import_module(MODULES[ending])
        with contextlib.suppress(ImportError):
            if ending == ".gz":
                module = importlib.import_module("isal.igzip")  # several times as fast
        return closing.enter_context(module.open(file, "rb"))  # type: ignore[no-any-return]  # the modules vary
    if ending == ".zst":
        try:
            import zstandard
        except ImportError:
            raise DataError(
                f"{path}: reading a .zst file needs a package; install it, `pip install zstandard`"
            ) from None
        return Pieces(_zstd_pieces(file, zstandard.ZstdDecompressor().decompressobj, zstandard.ZstdError))
    return file


def opened(path: str, closing: contextlib.ExitStack) -> io.BufferedReader:
    """Open a file of this machine for reading, decompressed if its name says that it is compressed."""
    file = closing.enter_context(open(path, "rb", buffering=0))  # noqa: SIM115 (`closing` does)
    return closing.enter_context(io.BufferedReader(decompressed(path, file, closing)))  # type: ignore[arg-type]  # it is one


def read_file(path: str, cure: str, most: int | None = MOST_BYTES, first: int | None = None) -> bytes:
    """Return the bytes of a file beside the data, such as one of names, decompressed as by `opened`.

    Raise DataError if it cannot be read or has more than `most` bytes; `cure` then says what to do. `first` is the
    number of bytes at its beginning that are wanted, None for all.
    """
    size = first if first is not None else -1 if most is None else most + 1
    try:
        with contextlib.ExitStack() as closing:
            data = opened(path, closing).read(size)
    except read_errors() as error:
        raise DataError(f"{path}: {failure(error, cure)}") from None
    if most is not None and len(data) > most:
        raise DataError(f"{path}: the file has more than {most} bytes, which is the limit; {cure}")
    return data


def failure(error: Exception, cure: str) -> str:
    """Return why a file cannot be read, of which one of `read_errors` tells, and what to do."""
    if isinstance(error, EOFError):
        return "the compressed data end too early, so the file is truncated; get a complete copy"
    if isinstance(error, MemoryError):  # an .xz file says how much is needed
        return "there is too little memory to decompress the file; free some, or compress it by `xz -6`"
    return f"the file cannot be read ({getattr(error, 'strerror', None) or error}); {cure}"


def read_errors() -> tuple[type[Exception], ...]:
    others = (("isal.isal_zlib", "error"), ("_lzma", "LZMAError"))
    loaded: list[type[Exception]] = [
        getattr(sys.modules[module], name) for module, name in others if module in sys.modules
    ]
    return (OSError, EOFError, MemoryError, ValueError, zlib.error, *loaded)


@contextlib.contextmanager
def errors_ignored() -> Iterator[None]:
    """Ignore in the `with` block that a file cannot be read, because that is an error when its examples are read."""
    try:
        yield
    except Exception as error:
        if not isinstance(error, (DataError, *read_errors())):
            raise


def _zstd_pieces(file: Any, new_frame: Callable[[], Any], error_type: type[Exception]) -> Iterator[bytes]:
    """Decompress a .zst file of one or more frames; zstandard's own reader does not detect a truncated file."""
    frame = None
    while compressed := file.read(CHUNK):
        while compressed:
            frame = frame or new_frame()
            try:
                text = frame.decompress(compressed)
            except error_type as error:
                raise OSError(str(error)) from None
            yield text
            compressed = frame.unused_data
            if frame.eof:
                frame = None
    if frame is not None:
        raise EOFError
