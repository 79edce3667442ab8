"""Check, before any file is opened, that a run does not overwrite one of its own files.

Files are compared by device and inode, because links and other spellings of a path lead to the same file. Devices such
as /dev/null cannot be overwritten. A model may be written to the file that it was read from.
"""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from collections.abc import Iterator
from typing import NamedTuple

from ..api.configuration import Config
from ..errors import UsageError

STDOUT = "stdout"  # file name that means standard output


class RunFile(NamedTuple):
    """Hold a file that an option names."""

    option: str  # the flag
    path: str
    written: bool
    identity: object  # identity, equal for the same file; None if the file cannot be overwritten


def check(config: Config) -> None:
    """Check that the run does not overwrite its input or write two outputs to the same file.

    Raises
    ------
    UsageError
        if it does; the message names both options.
    """
    files = list(_files(config))
    for i, file in enumerate(files):
        for other in files[:i]:
            if file.identity is None or file.identity != other.identity or not (file.written or other.written):
                continue
            written, other_file = (file, other) if file.written else (other, file)
            if {written.option, other_file.option} == {"-f", "-i"}:
                continue
            if other_file.written:
                raise UsageError(
                    f"{other_file.option} and {written.option} both write {other_file.path}; give each its own file"
                )
            raise UsageError(
                f"{written.option} {written.path} would write over {_described(other_file)}; give another name to one "
                "of them"
            )
    _check_derived(config, files)


def _files(config: Config) -> Iterator[RunFile]:
    """Yield the files that the run reads and writes."""
    for flag, path, written in config.files():
        if written and path == STDOUT and flag in ("-p", "-r", "--print_tree", "--dot_tree", "--explain_file"):
            yield RunFile(flag, "standard output", True, STDOUT)
            with contextlib.suppress(OSError, ValueError, AttributeError):
                yield RunFile(flag, "standard output", True, _regular_file_identity(os.fstat(sys.stdout.fileno())))
        else:
            yield RunFile(flag, path, written, file_identity(path))
    data = config.reader.data
    if config.cache.cache and config.cache.cache_file is None and data:
        path = f"{data[0]}.cache"
        yield RunFile("-c", path, True, file_identity(path))
    if not data and not config.run.no_stdin:
        with contextlib.suppress(OSError, ValueError, AttributeError):
            yield RunFile("", "standard input", False, _regular_file_identity(os.fstat(sys.stdin.fileno())))


def _check_derived(config: Config, files: list[RunFile]) -> None:
    """Check that no option names a file that the run may save a model to: MODEL.1, MODEL.2, ..., MODEL.interrupted."""
    model = config.run.final_regressor
    if model is None:
        return
    prefix = os.path.realpath(model) + "."
    for file in files:
        name = os.path.realpath(file.path)
        if file.option in ("-f", "-i") or file.identity is None or not name.startswith(prefix):
            continue
        suffix = name[len(prefix) :]
        if suffix == "interrupted":
            raise UsageError(
                f"{file.option} {file.path} is where an interrupted run saves the model of -f {model}; give another "
                "name"
            )
        if config.passes.save_per_pass and suffix.isdecimal():
            raise UsageError(
                f"{file.option} {file.path} is where --save_per_pass saves the model of pass {suffix}; give another "
                "name"
            )


def file_identity(path: str) -> object:
    """Return the identity of the file at `path`, equal for all paths to it; None if it is not a regular file."""
    try:
        return _regular_file_identity(os.stat(path))
    except OSError:
        return os.path.realpath(path)


def _regular_file_identity(status: os.stat_result) -> object:
    """Return device and inode of a regular file, None for anything else."""
    return (status.st_dev, status.st_ino) if stat.S_ISREG(status.st_mode) else None


def _described(file: RunFile) -> str:
    """Return a description of a file for messages."""
    if file.option == "-d":
        return f"the data file {file.path}"
    if file.option == "-i":
        return f"the model {file.path} of -i"
    return f"{file.option} {file.path}".lstrip()
