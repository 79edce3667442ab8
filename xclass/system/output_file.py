"""Open files for writing, and explain to the user why a file cannot be written."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from typing import BinaryIO

from ..errors import DataError, UsageError
from . import leftovers


@contextlib.contextmanager
def opened(path: str, description: str) -> Iterator[BinaryIO]:
    """Open a file for writing in the `with` block; its contents, such as "the tree", are named by the message.

    Raises
    ------
    DataError
        if it cannot be written.
    """
    try:
        with open(path, "wb") as file:
            yield file
    except BrokenPipeError:
        raise
    except OSError as error:
        raise DataError(f"{path}: {description} cannot be written there: {write_failure(path, error)}") from None


def replace(path: str, description: str, pieces: Iterable[bytes]) -> None:
    """Write a file as a whole: its place holds the previous file until the new one is complete.

    Devices and pipes, which cannot be replaced, are written directly.

    Raises
    ------
    DataError
        if it cannot be written; `description`, such as "the summary", names its contents in the message.
    """
    if os.path.exists(path) and not os.path.isfile(path):
        with opened(path, description) as file:
            file.writelines(pieces)
        return
    try:
        with contextlib.closing(leftovers.Unfinished(path)) as unfinished:
            unfinished.file.writelines(pieces)
            unfinished.flush()
            unfinished.take_place()
    except OSError as error:
        raise DataError(f"{path}: {description} cannot be written there: {write_failure(path, error)}") from None


def check_not_read(flag: str, path: str, read: Iterable[str]) -> None:
    """Raise UsageError if the file that an option names for output is one of those that are read."""
    for other in read:
        if os.path.isfile(path) and os.path.realpath(other) == os.path.realpath(path):
            raise UsageError(f"{flag} {path} would write over {other}, which is read; give another file")


def check_writable(path: str, description: str) -> None:
    """Check that a file can be written, before any learning whose result would be lost; see `opened`.

    Raises
    ------
    DataError
        if its folder does not exist, or it must not be written to.
    """
    folder = os.path.dirname(os.path.realpath(path))
    unusable = os.path.isdir(path) or not os.path.isdir(folder)
    if unusable or not os.access(path if os.path.exists(path) else folder, os.W_OK):
        reason = write_failure(path, PermissionError())
        raise DataError(f"{path}: {description} cannot be written there: {reason}")


def write_failure(path: str, error: OSError) -> str:
    """Return why `path` cannot be written, and what to do, from the error that opening or writing it raised."""
    folder = os.path.dirname(os.path.realpath(path))
    if os.path.isdir(path):
        return "this is a folder; give the name of a file"
    if not os.path.isdir(folder):
        return f"there is no folder {folder}; create it, or give another file"
    if isinstance(error, PermissionError):
        return f"there is no permission to write in {folder}; give a file in a folder of your own"
    return str(error.strerror or error)
