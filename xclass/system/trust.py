"""Tell whether other users could have written a file, or could replace it.

Compiled kernels are stored as pickles, and the author of a pickle chooses code that its reader executes. They are
therefore read only where no user but this one and root can write: neither to the folder, nor to a folder above it,
through which it could be exchanged for another. Access control lists are not looked at.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import BinaryIO

OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
SAFE_MODE = 0o755  # permissions of what is written, less those that the process denies


class UntrustedError(OSError):
    """Report a file or folder that other users could have written."""


def trusted_folder(path: Path) -> Path:
    """Return the folder without symbolic links in its path; as long as the system runs, only root can exchange it.

    Raise UntrustedError if another user can write to it or to a folder above it. A folder above it with the sticky bit,
    such as /tmp, is no danger, because others cannot rename what this user has in it.
    """
    folder = Path(os.path.realpath(path))
    for place in (folder, *folder.parents):
        status = os.lstat(place)
        if not stat.S_ISDIR(status.st_mode):
            raise UntrustedError(f"{place} is no folder")
        is_within_sticky = place != folder and status.st_mode & stat.S_ISVTX
        _check(place, status, 0 if is_within_sticky else OTHERS_WRITE)
    return folder


def open_trusted(path: str | os.PathLike[str]) -> BinaryIO:
    """Open a regular file for reading, not through a link; raise UntrustedError if others own it or can write to it."""
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise UntrustedError(f"{path} is no regular file")
        _check(path, status, OTHERS_WRITE)
        return os.fdopen(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def _check(path: str | os.PathLike[str], status: os.stat_result, dangerous: int) -> None:
    """Raise UntrustedError if another user owns a file, or if its permissions have one of the bits of `dangerous`."""
    if status.st_uid not in (os.geteuid(), 0):
        raise UntrustedError(f"{path} belongs to user {status.st_uid}")
    found = status.st_mode & dangerous
    if found & stat.S_IWOTH or (found and not _is_own_group(status.st_gid)):
        raise UntrustedError(f"other users may write to {path}")


def _is_own_group(group: int) -> bool:
    """Return whether a group has no member but this user, as on systems that give each user a group of that name."""
    import grp
    import pwd

    try:
        user, entry = pwd.getpwuid(os.geteuid()), grp.getgrgid(group)
    except KeyError:
        return False
    return user.pw_gid == group and entry.gr_name == user.pw_name and set(entry.gr_mem) <= {user.pw_name}
