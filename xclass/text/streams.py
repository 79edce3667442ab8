"""Open the streams that data are read from: standard input and compressed files."""

from __future__ import annotations

import contextlib
import importlib
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
CHUNK = 1 << 15  # compressed bytes read at a time, which decompress to some MB at most
MODULES = {".gz": "gzip", ".bz2": "bz2", ".xz": "lzma"}  # modules of Python that decompress


class Stream(Protocol):
    def readinto(self, buffer: bytearray | memoryview, /) -> int | None: ...


class Pieces:
    """Read the pieces of bytes that an iterator yields as a stream."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces, self._rest = pieces, memoryview(b"")

    def readinto(self, buffer: bytearray | memoryview) -> int:
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


def decompressed(path: str, file: RawIOBase, closing: contextlib.ExitStack) -> Stream:
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
