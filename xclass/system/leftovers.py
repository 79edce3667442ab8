"""Create the temporary files of a run, and remove those that a killed run left behind.

There are three kinds:

    beside a file    what will take the place of NAME has no name until then, where the system offers that, and is
                     `.NAME.PID-TOKEN.tmp` or `.NAME.PID-TOKEN.best` elsewhere and while it takes the place
    spilled data     a file without a name in the folder of temporary files
    compiled code    a folder `xclass-XXXXXXXX` in the folder of temporary files, with a file `owner` in it

The system removes a file without a name when its process ends. The process that creates a named file holds a lock
(flock) on it, and on `owner` for a folder, until the file has got its final name or is removed. The system releases
the lock when the process ends in whatever way, and on a network file system the other hosts see it too. A file that
can be locked has therefore lost its process, and only such files are removed. A process number would not tell: numbers
are used again, and other hosts and containers have the same ones. Where the system offers no locks, a file's name says
so and nobody removes it.

Files of versions before this one are called `.NAME.PID.tmp` and `.NAME.PID.best` and are not locked. They are removed
if this host has no process of that number. Symbolic links, files of other users and all other names are left alone.
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
import time
from pathlib import Path
from typing import BinaryIO

PIECE = 1 << 20  # bytes copied at a time
ATTEMPTS = 3  # to create a file and lock it
LONGEST = 200  # bytes of NAME that go into the name of a temporary file
DERIVED = r"(?:\.[0-9]+|\.interrupted)?"  # ends of the names of models that a run saves beside its own
FOLDER = re.compile(r"xclass-[a-z0-9_]{8}")
UNTOUCHED = 86400  # seconds after which a folder without an owner, of a version before this one, is removed

_owners: list[int] = []  # handles of the locked files in this process's folders


class LinkRefused(OSError):
    """A symbolic link is on a way that must not lead through one."""


class Unfinished:
    """A file beside another one, whose place it takes when it is whole.

    Parameters
    ----------
    path : the place
    links : what to do where `path` is a symbolic link: "follow" it, "replace" it by the file, or "refuse" it, and any
        link among its folders too
    kind : end of the file's name: "tmp", or "best" for one that is kept for a while
    nameless : whether it has no name until it takes the place, where the system offers that

    Attributes
    ----------
    file : open for reading and writing
    mode : permissions of the file whose place it takes, 0 where there is none

    Raises
    ------
    OSError
        where it cannot be created. The folder holds nothing new then.
    """

    def __init__(self, path: str | os.PathLike[str], links: str = "follow", kind: str = "tmp", nameless: bool = True):
        path = os.fspath(path)
        if links == "follow":
            path = os.path.realpath(path)
        self._place, self._kind = path, kind
        self._own: str | None = None
        self._folder, self._name = open_folder(path, follow=links != "refuse"), os.path.basename(path)
        try:
            self.mode = self._mode(links)
            remove(path, folder=self._folder)
            handle = _nameless(self._folder) if nameless else None
            if handle is None:
                handle, self._own = _create(self._folder, self._name, kind)
        except BaseException:
            os.close(self._folder)
            raise
        self.file = os.fdopen(handle, "w+b")
        try:
            if self.mode:
                os.fchmod(handle, self.mode)
        except BaseException:
            self.close()
            raise

    def _mode(self, links: str) -> int:
        try:
            found = os.stat(self._name, dir_fd=self._folder, follow_symlinks=False)
        except FileNotFoundError:
            return 0
        if stat.S_ISLNK(found.st_mode):
            if links == "refuse":
                raise LinkRefused(errno.ELOOP, "it is a symbolic link", self._place)
            if links == "follow":  # one that leads somewhere was followed before
                raise OSError(errno.ELOOP, "the symbolic link leads back to itself", self._place)
            return 0
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "this is no regular file", self._place)
        return stat.S_IMODE(found.st_mode)

    @property
    def path(self) -> str:
        """A path under which this process can open the file."""
        if self._own is None:
            return f"/proc/self/fd/{self.file.fileno()}"
        return os.path.join(os.path.dirname(self._place), self._own)

    def begins(self, size: int) -> bytes | None:
        """The first bytes of the file whose place it takes, without following a link; None where there is none."""
        try:
            handle = os.open(self._name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=self._folder)
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise LinkRefused(errno.ELOOP, "it is a symbolic link", self._place) from None
            raise
        with os.fdopen(handle, "rb") as file:
            return file.read(size)

    def flush(self) -> None:
        """Have all of it on the disk."""
        self.file.flush()
        os.fsync(self.file.fileno())

    def take_place(self) -> None:
        """Rename the file, so that the place holds what was there before or this file at any moment."""
        if self._own is None:
            try:
                self._own = _link(self.file.fileno(), self._folder, self._name, self._kind)
            except OSError:  # where there is no /proc, for example
                self._exchange()
        assert self._own is not None
        os.replace(self._own, self._name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
        self._own = None
        with contextlib.suppress(OSError):  # have the new name on the disk, where the system offers that for folders
            handle = os.open(".", os.O_RDONLY, dir_fd=self._folder)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)

    def copy(self, path: str, links: str) -> None:
        """Have a copy take another place; `links` : as above"""
        other = Unfinished(path, links)
        try:
            self.file.seek(0)
            shutil.copyfileobj(self.file, other.file, PIECE)
            other.flush()
            other.take_place()
        finally:
            other.close()

    def _exchange(self) -> None:
        """Exchange a file without a name for one with a name."""
        nameless = self.file
        handle, self._own = _create(self._folder, self._name, self._kind)
        self.file = os.fdopen(handle, "w+b")
        with nameless:
            if self.mode:
                os.fchmod(handle, self.mode)
            nameless.seek(0)
            shutil.copyfileobj(nameless, self.file, PIECE)
        self.flush()

    def close(self) -> None:
        """Remove the file unless it has taken its place; may be called again."""
        if self._own is not None:
            with contextlib.suppress(OSError):
                os.unlink(self._own, dir_fd=self._folder)
            self._own = None
        with contextlib.suppress(OSError, ValueError):  # what could not be written before cannot be written now
            self.file.close()
        if self._folder >= 0:
            os.close(self._folder)
            self._folder = -1


def open_folder(path: str, follow: bool = True) -> int:
    """Return a handle of the folder of a file; without `follow`, symbolic links on the way to it are refused."""
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
    """Remove the temporary files beside a file whose processes are gone.

    Parameters
    ----------
    path : the file; a symbolic link is not followed
    derived : also those beside PATH.1, PATH.2, ... and PATH.interrupted
    folder : a handle of its folder, where there is one
    """
    name = re.escape(_shortened(os.path.basename(path))) + (DERIVED if derived else "")
    locked = re.compile(rf"\.{name}\.[0-9]+-[0-9a-f]{{8}}\.(?:tmp|best)")
    before = re.compile(rf"\.(?:{name}|\.{name}\.[0-9]+\.best)\.([0-9]+)\.(?:tmp|best)")
    with contextlib.suppress(OSError):
        outer = os.path.dirname(path) or "." if folder is None else "."
        handle = os.open(outer, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
        try:
            for one in os.listdir(handle):
                old = before.fullmatch(one)
                if locked.fullmatch(one) or (old and not _is_running(old[1])):
                    _remove_file(handle, one)
        finally:
            os.close(handle)


def _remove_file(folder: int, name: str) -> None:
    """Remove a regular file of this user that no process has locked."""
    with contextlib.suppress(OSError):
        handle = _open_own(name, folder)
        try:
            if _lock(handle) and _is(handle, name, folder):
                os.unlink(name, dir_fd=folder)
        finally:
            os.close(handle)


def _open_own(name: str, folder: int) -> int:
    """Open a regular file of this user; a network file system locks only what is open for writing."""
    flags = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        handle = os.open(name, os.O_RDWR | flags, dir_fd=folder)
    except PermissionError:  # it has the permissions of the file whose place it was to take
        handle = os.open(name, os.O_RDONLY | flags, dir_fd=folder)
    found = os.fstat(handle)
    if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
        os.close(handle)
        raise PermissionError(errno.EPERM, "not a regular file of this user", name)
    return handle


def _is_running(number: str) -> bool:
    """Whether this host has another process of that number."""
    try:
        os.kill(int(number), 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return int(number) != os.getpid()


def _is(handle: int, name: str, folder: int | None) -> bool:
    """Whether an open file still has that name."""
    try:
        return os.path.samestat(os.fstat(handle), os.stat(name, dir_fd=folder, follow_symlinks=False))
    except FileNotFoundError:
        return False


# -- creating ----------------------------------------------------------------------------------------------------


def _create(folder: int, name: str, kind: str) -> tuple[int, str]:
    """Create a file and lock it; return its handle and its name."""
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    for lockable in (*[True] * ATTEMPTS, False):
        own = _temporary_name(name, kind, lockable)
        handle = os.open(own, flags, 0o666, dir_fd=folder)
        # a process that looks for leftovers may have locked it first, and removed it
        if not lockable or (_lock(handle) and _is(handle, own, folder)):
            break
        os.close(handle)
        with contextlib.suppress(OSError):
            os.unlink(own, dir_fd=folder)
    return handle, own


def _nameless(folder: int) -> int | None:
    """Open a file that has no name; None where the system does not offer that."""
    if hasattr(os, "O_TMPFILE"):
        with contextlib.suppress(OSError):
            return os.open(".", os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o666, dir_fd=folder)
    return None


def _link(handle: int, folder: int, name: str, kind: str) -> str:
    """Give a file without a name a temporary one, and return it."""
    own = _temporary_name(name, kind, _lock(handle))
    root = os.open("/", os.O_RDONLY)
    try:  # with a folder's handle, link() follows the link to the file
        os.link(f"/proc/self/fd/{handle}", own, src_dir_fd=root, dst_dir_fd=folder, follow_symlinks=True)
    finally:
        os.close(root)
    return own


def _temporary_name(name: str, kind: str, locked: bool | None) -> str:
    unlocked = "" if locked else ".unlocked"
    return f".{_shortened(name)}.{os.getpid()}-{os.urandom(4).hex()}{unlocked}.{kind}"


def _shortened(name: str) -> str:
    """As much of a name as leaves room for what is added to it."""
    return os.fsdecode(os.fsencode(name)[:LONGEST])


def _lock(handle: int) -> bool | None:
    """Lock an open file: True if that was done, False if another process has it, None if the system offers no locks."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


# -- the folder of temporary files -------------------------------------------------------------------------------


def temporary_folder() -> str:
    """The folder of temporary files: the one TMPDIR names, even where it cannot be used.

    Python's own choice passes over a folder that is missing or full and takes another one without a word.
    """
    named = next((os.environ[name] for name in ("TMPDIR", "TEMP", "TMP") if os.environ.get(name)), None)
    return tempfile.gettempdir() if named is None else os.path.abspath(named)


def megabytes(size: float) -> str:
    """Return a number of bytes in megabytes, rounded up so that it is never shown as 0."""
    return f"{math.ceil(size / 1e5) / 10:,.1f}"


def free_space(folder: str) -> str:
    """How much room is left in a folder, in words."""
    try:
        found = os.statvfs(folder)
    except OSError:
        return "how much is free is not known"
    return f"{found.f_bavail * found.f_frsize / 1e6:,.1f} MB are free"


def spill() -> BinaryIO:
    """Open a file without a name in the folder of temporary files, for reading and writing."""
    folder = open_folder(os.path.join(temporary_folder(), "spilled"))
    try:
        handle = _nameless(folder)
        if handle is None:
            remove("xclass-spilled", folder=folder)
            handle, own = _create(folder, "xclass-spilled", "tmp")
            os.unlink(own, dir_fd=folder)
    finally:
        os.close(folder)
    return os.fdopen(handle, "w+b")


def private_folder() -> Path:
    """Create a folder for compiled code in the folder of temporary files; who creates it removes it at its end."""
    outer = temporary_folder()
    _remove_folders(outer)
    while True:
        made = Path(tempfile.mkdtemp(prefix="xclass-", dir=outer))
        try:
            handle = os.open(made / "owner", os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            locked = _lock(handle)
            if locked is None:  # without an owner it is removed when nothing has touched it for long
                os.unlink(made / "owner")
            if locked is None or (locked and _is(handle, str(made / "owner"), None)):
                _owners.append(handle)
                return made
            os.close(handle)  # a process that looks for leftovers was quicker, and removes it
        except BaseException:
            shutil.rmtree(made, ignore_errors=True)
            raise


def _remove_folders(outer: str) -> None:
    """Remove folders of compiled code whose processes are gone."""
    with contextlib.suppress(OSError):
        for name in os.listdir(outer):
            if FOLDER.fullmatch(name):
                _remove_folder(os.path.join(outer, name))


def _remove_folder(path: str) -> None:
    with contextlib.suppress(OSError):
        folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            found = os.fstat(folder)
            if found.st_uid != os.geteuid():
                return
            try:
                handle = _open_own("owner", folder)
            except FileNotFoundError:  # of a version before this one, or of a process that is just creating it
                if time.time() - found.st_mtime > UNTOUCHED:
                    shutil.rmtree(path, ignore_errors=True)
                return
            try:
                if _lock(handle):
                    shutil.rmtree(path, ignore_errors=True)
            finally:
                os.close(handle)
        finally:
            os.close(folder)
