"""Open data files by their URLs, such as s3://bucket/train.vw, with the package fsspec, and data that are not files."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Iterator
from typing import Any, BinaryIO

from ..errors import DataError

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*(::[A-Za-z][A-Za-z0-9+.-]*)*://")


NOT_FOUND = 404  # status of a server's answer


class VirtualFile(str):
    """Name data that are not a file, such as a block of a data set; a subclass opens them."""

    def opened(self) -> BinaryIO:
        """Return an open stream of the bytes; raise DataError if there is none."""
        raise NotImplementedError


def is_url(path: str) -> bool:
    """Return whether a name is that of data that are not a file of this machine: a URL, or a `VirtualFile`."""
    return isinstance(path, VirtualFile) or _SCHEME.match(path) is not None


def file_system(url: str) -> tuple[Any, str]:
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise DataError(f"{url}: reading a URL needs a package; install it, `pip install fsspec`") from None
    try:
        system, path = url_to_fs(url)
    except (ImportError, ValueError) as error:  # no such kind of URL, or its package is missing
        raise DataError(f"{url}: the URL cannot be read ({' '.join(str(error).split())})") from None
    return system, str(path)


def matches(pattern: str) -> list[str]:
    """Return the URLs that match a pattern, in order; raise DataError if they cannot be listed."""
    system, path = file_system(pattern)
    try:
        with _as_os_error():
            return sorted(str(system.unstrip_protocol(match)) for match in system.glob(path))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise DataError(f"{pattern}: the files cannot be listed ({error})") from None


def opened(path: str) -> Any:
    """Return an open stream of the bytes of a file or URL; raise OSError if it cannot be opened."""
    if isinstance(path, VirtualFile):
        return path.opened()
    if not is_url(path):
        return open(path, "rb", buffering=0)
    system, path = file_system(path)
    with _as_os_error():
        return _UrlFile(system.open(path, "rb"))


def size(url: str) -> int | None:
    """Return the number of bytes of a URL, None if it is not known; raise OSError if it cannot be read.

    That of a `VirtualFile` counts as 0, because it is not known before the data are read, which is possible repeatedly.
    """
    if isinstance(url, VirtualFile):
        return 0
    system, path = file_system(url)
    with _as_os_error():
        found = system.info(path).get("size")
    return None if found is None else int(found)


class _UrlFile(io.RawIOBase):
    """Read an open file of fsspec; what its package raises becomes an OSError."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview | bytearray) -> int:  # type: ignore[override]  # no other types are passed
        with _as_os_error():
            return int(self._file.readinto(buffer))

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        with _as_os_error():
            return int(self._file.seek(offset, whence))

    def tell(self) -> int:
        return int(self._file.tell())

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()


@contextlib.contextmanager
def _as_os_error() -> Iterator[None]:
    """Raise the exceptions of packages for kinds of URLs as OSError, and FileNotFoundError only if there is no file."""
    try:
        yield
    except FileNotFoundError as error:  # which fsspec raises for any failure of a server, too
        cause = error.__cause__
        if cause is None or isinstance(cause, FileNotFoundError) or getattr(cause, "status", None) == NOT_FOUND:
            raise
        raise _described(cause) from error
    except OSError:
        raise
    except Exception as error:
        raise _described(error) from error


def _described(error: BaseException) -> OSError:
    return OSError(f"{type(error).__name__}: {' '.join(str(error).split())}")
