"""Write files of results: an older file stays until the new one is complete; and say why a file cannot be written."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
from collections.abc import Iterable, Iterator
from typing import BinaryIO

from ..errors import DataError, ModelError
from . import leftovers, terminal

STDOUT = "stdout"  # as the name of a file: standard output
MODEL = "the model"  # as the description of a file: it replaces only models
MODEL_PREFIX = b'{"__metadata__":{"format":"xclass model","header_crc32":"'  # from byte 8 on, in every version
MODEL_BEGINNING = 8 + len(MODEL_PREFIX)  # bytes that tell a model from other files
CHECKSUM = 8  # bytes of the checksum that follows them
INTERRUPTED = ".interrupted"  # added to the name of a file if the run ends early
OPEN_FILE = re.compile(r"(?:/dev|/proc/[^/]+(?:/task/[0-9]+)?)/fd/([0-9]{1,9})")
MOST_LINKS = 40


class OutputFile:
    """Write a file of results that takes its place only when it is complete.

    Devices, pipes, and files that the process has open, such as /dev/stdout, cannot be replaced; they are written
    directly. The path "stdout" is standard output, and the description, such as "the summary", is for messages.

    Attributes
    ----------
    file : the file, open for writing
    out : object to write to: the file, or what escapes characters for a terminal
    streams : whether a reader may be waiting for what is written, because the file is not a regular one
    """

    def __init__(self, path: str, description: str) -> None:
        self.path, self._description = path, description
        self._unfinished: leftovers.Unfinished | None = None
        self._is_ours = True
        with self.explained():
            number = open_file(path)
            if number == 1:
                self._is_ours = False
                self.file: BinaryIO = terminal.standard_output()
            elif number is not None:
                self.file = os.fdopen(os.dup(number), "wb")
            elif _is_replaced(path):
                self._unfinished = leftovers.Unfinished(path)
                self.file = self._unfinished.file
            else:
                self.file = open(path, "wb")  # noqa: SIM115 (`abandon` closes it)
        self.out = terminal.output_of(self.file)
        self.streams = not _is_regular(self.file)

    @contextlib.contextmanager
    def explained(self) -> Iterator[None]:
        """Raise errors of writing in the `with` block as DataError; a closed pipe stays a BrokenPipeError."""
        try:
            yield
        except BrokenPipeError:
            raise
        except OSError as error:
            reason = write_failure(self.path, error)
            raise DataError(f"{self.path}: {self._description} cannot be written there: {reason}") from None

    def close(self, complete: bool = True) -> str:
        """Close the file and let it take its place.

        If the run ended early, it is not `complete`: what was written becomes FILE.interrupted, an older file stays,
        and a note about that is returned, else an empty string.
        """
        with self.explained():
            try:
                self.file.flush()
                if self._unfinished is not None:
                    self._unfinished.flush()
                    self._unfinished.take_place("" if complete else INTERRUPTED)
            finally:
                self.abandon()
        if complete or self._unfinished is None:
            return ""
        place = os.path.realpath(self.path) if os.path.islink(self.path) else self.path
        before = "is as it was before" if os.path.exists(self.path) else "was not written"
        return f"the {self._description} so far are in {place}{INTERRUPTED}; {self.path} {before}"

    def abandon(self) -> None:
        """Close the file without replacing an older one; does nothing if it is closed."""
        if self._unfinished is not None:
            self._unfinished.close()
        elif self._is_ours:
            with contextlib.suppress(OSError):  # errors in writing were reported before
                self.file.close()


@contextlib.contextmanager
def opened(path: str, description: str) -> Iterator[terminal.ByteOutput]:
    """Open a file of results for writing in the `with` block, at whose end it takes its place; see `OutputFile`."""
    output = OutputFile(path, description)
    try:
        with output.explained():
            yield output.out
        output.close()
    finally:
        output.abandon()


def replace(path: str, description: str, pieces: Iterable[bytes]) -> None:
    with opened(path, description) as file:
        file.writelines(pieces)


def refuse_other_file(path: str, derived: bool) -> None:
    """Raise ModelError if a model would replace a file that is not a model.

    A link at a path that is derived from another name is replaced itself, and not the file that it leads to.
    """
    if os.path.isfile(path) and not (derived and os.path.islink(path)):
        with open(path, "rb") as file:
            refuse_beginning(path, file.read(MODEL_BEGINNING))


def refuse_beginning(path: str, first: bytes) -> None:
    """Raise ModelError unless `first`, up to MODEL_BEGINNING bytes, begin a model or its file is empty or missing."""
    if first and not (len(first) > 8 and MODEL_PREFIX.startswith(first[8:])):  # a damaged model may be replaced
        raise ModelError(
            f"{path}: this is not a model of xclass, so it is not replaced; give another name, or remove the file"
        )


_claimed: dict[str, object] = {}  # file to save a model to -> what was there when this process began, or has saved


def claim(path: str) -> None:
    """Note which file is at `path`, to which a model will be saved, so that one of another process is not replaced.

    The same is noted of FILE.interrupted. No file is locked, so nothing is left behind by a process that is killed.
    """
    for place in (path, path + INTERRUPTED):
        _claimed[os.path.abspath(place)] = identity(place)


def _is_of_others(path: str) -> bool:
    """Return whether another process has written the file at `path` since `claim`."""
    place = os.path.abspath(path)
    return place in _claimed and identity(path) not in (None, _claimed[place])


def check_claim(path: str) -> None:
    """Raise ModelError if another process has written the file at `path` since `claim`."""
    if _is_of_others(path):
        raise ModelError(
            f"{path}: another process has saved a model here since this one began, so it is not replaced; give each "
            "process a file of its own"
        )


def renew_claim(path: str, own: object) -> None:
    """Note that the file of identity `own` at `path` is that of this process, if it is claimed."""
    place = os.path.abspath(path)
    if place in _claimed:
        _claimed[place] = own


def drop_claims(path: str | None = None) -> None:
    """Forget what `claim` has noted of a file, or of all."""
    if path is None:
        _claimed.clear()
    else:
        for place in (path, path + INTERRUPTED):
            _claimed.pop(os.path.abspath(place), None)


def identity(path: str) -> object:
    """Return a value that changes when the file at `path` is replaced or written; None if there is no file."""
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):
            return status.st_dev, status.st_ino
        with open(path, "rb") as file:
            return identity_of(file)
    except OSError:
        return None


def identity_of(file: BinaryIO) -> object:
    """Return the value of `identity` for a regular file, which stays the same when it gets another name."""
    status = os.fstat(file.fileno())
    beginning = os.pread(file.fileno(), MODEL_BEGINNING + CHECKSUM, 0)  # a model begins with a checksum of all of it
    return status.st_dev, status.st_ino, status.st_size, beginning


def places(path: str | None, _: object = None) -> list[str]:
    """Return the files that a run writes for an option: FILE, or FILE.interrupted if it ends early."""
    if path is None:
        return []
    if not path or open_file(path) is not None or not _is_replaced(path):
        return [path]
    return [path, path + INTERRUPTED]


def interrupted(path: str) -> str:
    """Return the file for what a run that ends early has made; raise DataError beside a device or a pipe.

    It is another one, with the number of the process, where another process has saved its own there meanwhile.
    """
    if os.path.exists(path) and not os.path.isfile(path):
        raise DataError(f"{path} is not a regular file, so nothing is saved beside it")
    place = path + INTERRUPTED
    return f"{place}.{os.getpid()}" if _is_of_others(place) else place


def path_of(path: str) -> str:
    """Return the path that the system knows a file by; `stdout` is standard output."""
    return "/dev/stdout" if path == STDOUT else path


def open_file(path: str) -> int | None:
    """Return the number of the open file of this process that a path such as /dev/stdout leads to, None for others."""
    path = path_of(path)
    for _ in range(MOST_LINKS):
        folder, name = os.path.split(path)
        path = os.path.join(os.path.realpath(folder), name)
        match = OPEN_FILE.fullmatch(path)
        if match and (path.startswith("/dev/") or path.startswith(f"/proc/{os.getpid()}/")):
            return int(match[1])
        if not os.path.islink(path):
            return None
        path = os.path.join(os.path.dirname(path), os.readlink(path))
    return None


def check_writable(path: str, description: str) -> None:
    """Check that a file can be written, before any learning whose result would be lost; raise DataError if not."""
    if open_file(path) is not None:
        return
    folder = os.path.dirname(os.path.realpath(path))
    unusable = os.path.isdir(path) or not os.path.isdir(folder)
    failure: OSError | None = None
    if unusable or not os.access(path if os.path.exists(path) else folder, os.W_OK):
        failure = PermissionError()
    else:
        try:
            os.stat(path)
        except FileNotFoundError:
            pass
        except OSError as error:  # a name that no file can have
            failure = error
    if failure is not None:
        raise DataError(f"{path}: {description} cannot be written there: {write_failure(path, failure)}")


def write_failure(path: str, error: OSError, size: int = 0) -> str:
    """Return why `path` cannot be written, and what to do, from the error that opening or writing it raised.

    `size` is the number of bytes that were to be written, 0 if it is not known.
    """
    folder = os.path.dirname(os.path.realpath(path))
    if os.path.isdir(path):
        return "this is a folder; give the name of a file"
    if not os.path.isdir(folder):
        return f"there is no folder {folder}; create it, or give another file"
    if os.statvfs(folder).f_flag & os.ST_RDONLY:
        return f"{folder} is mounted read-only; mount it so that it can be written to, or give a file elsewhere"
    if isinstance(error, PermissionError) and os.path.exists(path) and os.access(folder, os.W_OK):
        return "there is no permission to write to this file; change that by chmod or chown, or give another file"
    if isinstance(error, PermissionError):
        return f"there is no permission to write in {folder}; give a file in a folder of your own"
    if error.errno == errno.ENAMETOOLONG:
        return "the name is too long; give a shorter one"
    if error.errno == errno.ELOOP:
        return "the symbolic link leads back to itself; remove it, or give another file"
    if error.errno == errno.EFBIG:
        many = f"its {size / 1e6:,.1f} MB" if size else "its bytes"
        return f"{many} are more than a file may have there; raise the limit, `ulimit -f`, or give a file elsewhere"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        needed = f"it takes {size / 1e6:,.1f} MB in {folder}, " if size else ""
        free = leftovers.free_space(folder)
        return f"{error.strerror}; {needed}{free}; free some space there, or give a file elsewhere"
    return f"{error.strerror or error}; give a file elsewhere"


def _is_replaced(path: str) -> bool:
    """Return whether a new file can take the place of the one at `path`: it is a regular one, or there is none."""
    if os.path.exists(path):
        return os.path.isfile(path) and os.access(os.path.dirname(os.path.realpath(path)), os.W_OK | os.X_OK)
    return True


def _is_regular(file: BinaryIO) -> bool:
    try:
        return stat.S_ISREG(os.fstat(file.fileno()).st_mode)
    except (OSError, ValueError):  # standard output replaced by something without a descriptor
        return False
