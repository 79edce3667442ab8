"""Open data files by their URLs, such as s3://bucket/train.vw, with the package fsspec, and data that are not files."""

from __future__ import annotations

import re
from typing import Any, BinaryIO

from ..errors import DataError

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*(::[A-Za-z][A-Za-z0-9+.-]*)*://")


class VirtualFile(str):
    """Name data that are not a file, such as a block of a data set; a subclass opens them."""

    def opened(self) -> BinaryIO:
        """Return an open stream of the bytes; raise DataError if there is none."""
        raise NotImplementedError


def is_url(path: str) -> bool:
    """Return whether a name is that of data that are not a file of this machine: a URL, or a `VirtualFile`."""
    return isinstance(path, VirtualFile) or _SCHEME.match(path) is not None


def file_system(url: str) -> tuple[Any, str]:
    """Return the file system of a URL and the path within it.

    Raises
    ------
    DataError
        if fsspec or the package of this kind of URL is not installed.
    """
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise DataError(f"{url}: reading a URL needs a package; install it, `pip install fsspec`") from None
    try:
        system, path = url_to_fs(url)
    except (ImportError, ValueError) as error:  # no such kind of URL, or its package is missing
        raise DataError(f"{url}: the URL cannot be read ({' '.join(str(error).split())})") from None
    return system, str(path)


def opened(path: str) -> Any:
    """Return an open stream of the bytes of a file or URL; raise OSError if it cannot be opened."""
    if isinstance(path, VirtualFile):
        return path.opened()
    if not is_url(path):
        return open(path, "rb", buffering=0)
    system, path = file_system(path)
    try:
        return system.open(path, "rb")
    except OSError:
        raise
    except Exception as error:  # packages for kinds of URLs have exceptions of their own
        raise OSError(f"{type(error).__name__}: {error}") from error


def size(url: str) -> int | None:
    """Return the number of bytes of a URL, None if it is not known; raise OSError if it cannot be read.

    That of a `VirtualFile` counts as 0, because it is not known before the data are read, which is possible repeatedly.
    """
    if isinstance(url, VirtualFile):
        return 0
    system, path = file_system(url)
    found = system.info(path).get("size")
    return None if found is None else int(found)
