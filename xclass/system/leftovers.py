"""Create the temporary files of a run, and remove those that a killed run left behind.

There are two kinds:

    beside a file    `.NAME.PID-TOKEN.tmp`, which will replace NAME
    spilled data     a file without a name in the folder of temporary files, which the system removes

The process that creates a named file holds a lock (flock) on it until the file has its final name or is removed. The
system releases the lock when the process ends for any reason, and on a network file system other hosts see the lock,
too. A file that can be locked has therefore lost its process, and only such files are removed. A process number would
not be enough: numbers are reused, and other hosts and containers have the same ones. If the system does not support
locks, the name of the file says so and the file is never removed.

Symbolic links, files of other users and all other names are left alone.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import math
import os
import re
import shutil
import stat
import tempfile
from typing import BinaryIO

PIECE = 1 << 20  # bytes copied at a time
ATTEMPTS = 3  # to create a file and lock it
MAX_NAME_BYTES = 200  # bytes of NAME that are used in the name of a temporary file
DERIVED_SUFFIXES = r"(?:\.[0-9]+|\.interrupted)?"  # suffixes of the models that a run saves beside NAME


class LinkRefused(OSError):
    """Report a symbolic link in a path that must not contain one."""


class Unfinished:
    """Write a new file in the folder of an existing or future file, which it replaces when it is complete.

    If it cannot be created, the folder has no new files.

    Parameters
    ----------
    path : path of the file to replace
    links : treatment of a symbolic link at `path`: "follow" it, "replace" it by the file, or "refuse" it as well as any
        link among its folders
    """

    def __init__(self, path: str | os.PathLike[str], links: str = "follow"):
        path = os.fspath(path)
        if links == "follow":
            path = os.path.realpath(path)
        self._target = path
        self._folder, self._name = open_folder(path, follow=links != "refuse"), os.path.basename(path)
        try:
            self.mode = self._mode(links)  # of the file to replace, 0 if there is none
            remove(path, folder=self._folder)
            handle, name = _create(self._folder, self._name)
        except BaseException:
            os.close(self._folder)
            raise
        self._temporary: str | None = name  # None when it has replaced the other
        self.file = os.fdopen(handle, "w+b")
        try:
            if self.mode:
                os.fchmod(handle, self.mode)
        except BaseException:
            self.close()
            raise

    def _mode(self, links: str) -> int:
        """Return the permissions of the file to replace, 0 if there is none; raise OSError if it cannot be replaced."""
        try:
            status = os.stat(self._name, dir_fd=self._folder, follow_symlinks=False)
        except FileNotFoundError:
            return 0
        if stat.S_ISLNK(status.st_mode):
            if links == "refuse":
                raise LinkRefused(errno.ELOOP, "it is a symbolic link", self._target)
            if links == "follow":  # `realpath` has resolved every link that does not lead back to itself
                raise OSError(errno.ELOOP, "the symbolic link leads back to itself", self._target)
            return 0
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "this is not a regular file", self._target)
        return stat.S_IMODE(status.st_mode)

    def beginning(self, size: int) -> bytes:
        """Return the first bytes of the file to replace, none if there is no file; a symbolic link is refused."""
        self._mode("refuse")
        with contextlib.suppress(FileNotFoundError):
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            with os.fdopen(os.open(self._name, flags, dir_fd=self._folder), "rb") as file:
                return file.read(size)
        return b""

    @property
    def path(self) -> str:
        """Return the path of the new file until it has replaced the other."""
        assert self._temporary is not None
        return os.path.join(os.path.dirname(self._target), self._temporary)

    def flush(self) -> None:
        self.file.flush()
        os.fsync(self.file.fileno())

    def take_place(self, suffix: str = "") -> None:
        """Replace the other file atomically: at any moment the path leads to the old or to the complete new file.

        With a suffix, the new file gets the name of the other with this suffix instead.
        """
        assert self._temporary is not None
        os.replace(self._temporary, self._name + suffix, src_dir_fd=self._folder, dst_dir_fd=self._folder)
        self._temporary = None
        with contextlib.suppress(OSError):  # flush the folder to make the new name durable; not every system can
            handle = os.open(".", os.O_RDONLY, dir_fd=self._folder)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)

    def copy(self, path: str, links: str) -> None:
        """Replace the file at another path by a copy of the new file; `links` is as in the class."""
        other = Unfinished(path, links)
        try:
            self.file.seek(0)
            shutil.copyfileobj(self.file, other.file, PIECE)
            other.flush()
            other.take_place()
        finally:
            other.close()

    def close(self) -> None:
        """Remove the new file unless it has replaced the other; may be called more than once."""
        if self._temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(self._temporary, dir_fd=self._folder)
            self._temporary = None
        with contextlib.suppress(OSError, ValueError):  # errors in writing were reported before
            self.file.close()
        if self._folder >= 0:
            os.close(self._folder)
            self._folder = -1


def open_folder(path: str, follow: bool = True) -> int:
    """Return a handle of the folder of a file; raise LinkRefused for symbolic links in the path unless `follow`."""
    flags = os.O_DIRECTORY | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)
    if follow:
        return os.open(os.path.dirname(path) or ".", flags)
    handle = os.open(".", flags)
    for name in filter(None, os.path.dirname(path).split("/")):
        outer = handle
        try:
            if stat.S_ISLNK(os.stat(name, dir_fd=outer, follow_symlinks=False).st_mode):
                raise LinkRefused(errno.ELOOP, f"its folder {name} is a symbolic link", path)
            handle = os.open(name, flags | os.O_NOFOLLOW, dir_fd=outer)
        finally:
            os.close(outer)
    return handle


# -- removing ----------------------------------------------------------------------------------------------------


def remove(path: str | os.PathLike[str], derived: bool = False, folder: int | None = None) -> None:
    """Remove the temporary files beside a file whose processes have ended; errors are ignored.

    A symbolic link at `path` is not followed. With `derived`, those of PATH.1, PATH.2, ... and PATH.interrupted are
    removed, too. `folder` is a handle of the folder of the file; None to open it.
    """
    name = re.escape(_shortened_name(os.path.basename(path))) + (DERIVED_SUFFIXES if derived else "")
    lockable = re.compile(rf"\.{name}\.[0-9]+-[0-9a-f]{{8}}\.tmp")
    with contextlib.suppress(OSError):
        outer = os.path.dirname(path) or "." if folder is None else "."
        handle = os.open(outer, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
        try:
            for entry in os.listdir(handle):
                if lockable.fullmatch(entry):
                    _remove_file(handle, entry)
        finally:
            os.close(handle)


def _remove_file(folder: int, name: str) -> None:
    with contextlib.suppress(OSError):
        handle = _open_own(name, folder)
        try:
            if _lock(handle) and _has_name(handle, name, folder):
                os.unlink(name, dir_fd=folder)
        finally:
            os.close(handle)


def _open_own(name: str, folder: int) -> int:
    """Open a regular file of this user, for writing if possible, because network file systems lock no other files."""
    flags = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        handle = os.open(name, os.O_RDWR | flags, dir_fd=folder)
    except PermissionError:  # the file has the permissions of the file that it was to replace
        handle = os.open(name, os.O_RDONLY | flags, dir_fd=folder)
    status = os.fstat(handle)
    if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
        os.close(handle)
        raise PermissionError(errno.EPERM, "not a regular file of this user", name)
    return handle


def _has_name(handle: int, name: str, folder: int) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), os.stat(name, dir_fd=folder, follow_symlinks=False))
    except FileNotFoundError:
        return False


# -- creating ----------------------------------------------------------------------------------------------------


def _create(folder: int, name: str) -> tuple[int, str]:
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    for lockable in (*[True] * ATTEMPTS, False):
        unlocked = "" if lockable else ".unlocked"
        temporary = f".{_shortened_name(name)}.{os.getpid()}-{os.urandom(4).hex()}{unlocked}.tmp"
        handle = os.open(temporary, flags, 0o666, dir_fd=folder)
        # another process that removes leftovers may have locked and removed the file before it is locked here
        if not lockable or (_lock(handle) and _has_name(handle, temporary, folder)):
            break
        os.close(handle)
        with contextlib.suppress(OSError):
            os.unlink(temporary, dir_fd=folder)
    return handle, temporary


def _shortened_name(name: str) -> str:
    return os.fsdecode(os.fsencode(name)[:MAX_NAME_BYTES])


def _lock(handle: int) -> bool | None:
    """Lock an open file; return False if another process has locked it, and None if locks are not supported."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


# -- the folder of temporary files -------------------------------------------------------------------------------


def temporary_folder() -> str:
    """Return the folder of temporary files: the one that TMPDIR names, even if it cannot be used.

    Python's own choice silently replaces a folder that is missing or full by another one.
    """
    named = next((os.environ[name] for name in ("TMPDIR", "TEMP", "TMP") if os.environ.get(name)), None)
    return tempfile.gettempdir() if named is None else os.path.abspath(named)


TOO_LARGE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # errors of files for which there is not enough space


def megabytes(size: float) -> str:
    """Return a number of bytes in megabytes, rounded up so that it is never shown as 0."""
    return f"{math.ceil(size / 1e5) / 10:,.1f}"


def free_space(folder: str) -> str:
    """Return a clause that says how much space is free in a folder."""
    try:
        status = os.statvfs(folder)
    except OSError:
        return "the free space is not known"
    return f"{status.f_bavail * status.f_frsize / 1e6:,.1f} MB are free"


def open_spill_file() -> BinaryIO:
    """Open a file without a name in the folder of temporary files, for reading and writing."""
    folder = open_folder(os.path.join(temporary_folder(), "spilled"))
    try:
        remove("xclass-spilled", folder=folder)
        handle, temporary = _create(folder, "xclass-spilled")
        os.unlink(temporary, dir_fd=folder)
    finally:
        os.close(folder)
    return os.fdopen(handle, "w+b")
