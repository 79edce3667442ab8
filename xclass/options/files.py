"""Find the files that the values of options name, and refuse a command that would destroy one of them.

Each option declares its role (`reads` and `writes` of `declare.Option`). Files are compared by device and inode,
because links and other spellings of a path lead to the same file. Pipes and terminals may be read and written, but only
one option may write to them. Devices such as /dev/null cannot be overwritten.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ..errors import DataError, UsageError
from ..system import output_file
from .declare import Option

STDIN = "/dev/stdin"
TERMINAL = re.compile("/dev/(pts/|tty)")


class File(NamedTuple):
    """Hold a file that an option names."""

    field: str
    option: Option
    path: str | re.Pattern[str]  # a pattern for absolute paths without links
    derived: bool  # whether its name is made from the value of the option
    identity: object  # equal for the same file; None if it cannot be overwritten

    @property
    def flag(self) -> str:
        """Return the option's shortest flag, which names it in messages."""
        return min(self.option.flags, key=len)


def check(declared: Mapping[str, Option], given: Mapping[str, object]) -> None:
    """Check that no file is written that is read or written by another option, and that all files can be written."""
    files: list[File] = []
    for file in _files(declared, given):
        for other in files:
            if other.field != file.field and (file.option.writes or other.option.writes):
                _compare(file, other)
        files.append(file)
    for file in files:
        if not file.option.writes or file.option.reads or not isinstance(file.path, str):
            continue
        if not file.derived:
            try:
                output_file.check_writable(file.path, file.option.writes)
            except DataError as error:
                if file.field in given:
                    raise
                raise DataError(f"{error}; {file.flag} FILE names another one") from None
        if file.option.writes == output_file.MODEL:
            output_file.refuse_other_file(file.path, file.derived)
            if not file.derived:
                output_file.claim(file.path)


def _files(declared: Mapping[str, Option], given: Mapping[str, object]) -> Iterator[File]:
    """Yield the files that a command reads and writes."""
    for name, option in declared.items():
        if not option.reads and not option.writes:
            continue
        value = given.get(name)
        values = value if isinstance(value, tuple) else () if value is None else (value,)
        for path in values if option.files is None else option.files(value, given):
            if path == "":
                raise UsageError(
                    f"{min(option.flags, key=len)}: the name of the file is empty; give the name of a file"
                )
            identity = path if isinstance(path, re.Pattern) else _identity(path)
            yield File(name, option, path, value is not None and path not in values, identity)


def _compare(one: File, other: File) -> None:
    """Raise UsageError if two options name the same file, and one of them would destroy what the other needs."""
    if one.identity is None or other.identity is None or not _are_same(one, other):
        return
    written, second = (one, other) if one.option.writes else (other, one)
    if second.field == written.option.may_replace or written.field == second.option.may_replace:
        return
    if second.option.writes:
        path = next(_shown(file) for file in (other, one) if isinstance(file.path, str))
        raise UsageError(f"{other.flag} and {one.flag} both write {path}; give each its own file")
    if isinstance(second.identity, tuple) and second.identity[0] == "stream":
        return
    by = f", which {second.flag} reads" if second.flag.startswith("-") and second.path != STDIN else ", which is read"
    raise UsageError(f"{written.flag} {_shown(written)} would write over {_shown(second)}{by}; give another file")


def _are_same(one: File, other: File) -> bool:
    """Return whether two files are the same one."""
    for pattern, file in ((one.path, other), (other.path, one)):
        if isinstance(pattern, re.Pattern):
            return isinstance(file.path, str) and pattern.fullmatch(os.path.realpath(file.path)) is not None
    return one.identity == other.identity


def _shown(file: File) -> str:
    """Return the path of a file as a message shows it."""
    if isinstance(file.path, re.Pattern):
        return file.path.pattern
    return {output_file.STDOUT: "standard output", STDIN: "standard input"}.get(file.path, file.path)


def _identity(path: str) -> object:
    """Return the identity of the file at `path`, equal for all paths to it; None if it cannot be overwritten."""
    path = output_file.path_of(path)
    try:
        status = os.stat(path)
    except (OSError, ValueError):  # there is no such file
        return os.path.realpath(path)
    if stat.S_ISCHR(status.st_mode) and not TERMINAL.match(os.path.realpath(path)):
        return None
    kind = "file" if stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode) else "stream"
    return kind, status.st_dev, status.st_ino
