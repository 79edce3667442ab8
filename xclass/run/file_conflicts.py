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


class Place(NamedTuple):
    """Hold a file that an option names."""

    option: str  # the flag
    path: str
    written: bool
    what: object  # identity, equal for the same file; None if the file cannot be overwritten


def check(config: Config) -> None:
    """Check that the run does not overwrite its input or write two outputs to the same file.

    Raises
    ------
    UsageError
        if it does; the message names both options.
    """
    places = list(_places(config))
    for i, place in enumerate(places):
        for other in places[:i]:
            if place.what is None or place.what != other.what or not (place.written or other.written):
                continue
            written, kept = (place, other) if place.written else (other, place)
            if {written.option, kept.option} == {"-f", "-i"}:
                continue
            if kept.written:
                raise UsageError(f"{kept.option} and {written.option} both write {kept.path}; give each its own file")
            raise UsageError(
                f"{written.option} {written.path} would write over {_called(kept)}; give another name to one of them"
            )
    _check_derived(config, places)


def _places(config: Config) -> Iterator[Place]:
    """Yield the files that the run reads and writes."""
    for flag, path, written in config.files():
        if written and path == STDOUT and flag in ("-p", "-r", "--print_tree", "--dot_tree"):
            yield Place(flag, "standard output", True, STDOUT)
            with contextlib.suppress(OSError, ValueError, AttributeError):
                yield Place(flag, "standard output", True, _file_of(os.fstat(sys.stdout.fileno())))
        else:
            yield Place(flag, path, written, what_is(path))
    data = config.reader.data
    if config.cache.cache and config.cache.cache_file is None and data:
        path = f"{data[0]}.cache"
        yield Place("-c", path, True, what_is(path))
    if not data and not config.driver.no_stdin:
        with contextlib.suppress(OSError, ValueError, AttributeError):
            yield Place("", "standard input", False, _file_of(os.fstat(sys.stdin.fileno())))


def _check_derived(config: Config, places: list[Place]) -> None:
    """Check that no option names a file that the run may save a model to: MODEL.1, MODEL.2, ..., MODEL.interrupted."""
    model = config.driver.final_regressor
    if model is None:
        return
    begin = os.path.realpath(model) + "."
    for place in places:
        name = os.path.realpath(place.path)
        if place.option in ("-f", "-i") or place.what is None or not name.startswith(begin):
            continue
        end = name[len(begin) :]
        if end == "interrupted":
            raise UsageError(
                f"{place.option} {place.path} is where -f {model} puts what an interrupted run has learned"
            )
        if config.passes.save_per_pass and end.isdecimal():
            raise UsageError(f"{place.option} {place.path} is where --save_per_pass saves the model of pass {end}")


def what_is(path: str) -> object:
    """Return the identity of the file at `path`, equal for all paths to it; None if it is not a regular file."""
    try:
        return _file_of(os.stat(path))
    except OSError:
        return os.path.realpath(path)


def _file_of(found: os.stat_result) -> object:
    """Return device and inode of a regular file, None for anything else."""
    return (found.st_dev, found.st_ino) if stat.S_ISREG(found.st_mode) else None


def _called(place: Place) -> str:
    """Return a description of a file for messages."""
    if place.option == "-d":
        return f"the data file {place.path}"
    if place.option == "-i":
        return f"the model {place.path} of -i"
    return f"{place.option} {place.path}".lstrip()
