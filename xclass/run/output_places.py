"""Which files a run reads and writes: refusals where one would be lost to another, before anything is opened.

A file is known by what it is, not by its name: links and other spellings of a path lead to the same one. Devices such
as /dev/null lose nothing. A model may be written where it was read.
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

STDOUT = "stdout"  # as a name: standard output


class Place(NamedTuple):
    """A file one option names."""

    option: str  # as typed
    path: str
    written: bool
    what: object  # equal for the same file; None where nothing can be lost


def check(config: Config) -> None:
    """Refuse a run that would write over its own data, or two things into the same file."""
    places = list(_places(config))
    for i, one in enumerate(places):
        for other in places[:i]:
            if one.what is None or one.what != other.what or not (one.written or other.written):
                continue
            written, kept = (one, other) if one.written else (other, one)
            if {written.option, kept.option} == {"-f", "-i"}:
                continue
            if kept.written:
                raise UsageError(f"{kept.option} and {written.option} both write {kept.path}; give each its own file")
            raise UsageError(
                f"{written.option} {written.path} would write over {_called(kept)}; give another name to one of them"
            )
    _check_derived(config, places)


def _places(config: Config) -> Iterator[Place]:
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
    """Refuse files where the run itself may put a model: MODEL.1, MODEL.2, ..., MODEL.interrupted."""
    model = config.driver.final_regressor
    if model is None:
        return
    begin = os.path.realpath(model) + "."
    for one in places:
        name = os.path.realpath(one.path)
        if one.option in ("-f", "-i") or one.what is None or not name.startswith(begin):
            continue
        end = name[len(begin) :]
        if end == "interrupted":
            raise UsageError(f"{one.option} {one.path} is where -f {model} puts what an interrupted run has learned")
        if config.passes.save_per_pass and end.isdecimal():
            raise UsageError(f"{one.option} {one.path} is where --save_per_pass saves the model of pass {end}")


def what_is(path: str) -> object:
    """Something equal for two names of the same file, and None for what is no regular file."""
    try:
        return _file_of(os.stat(path))
    except OSError:
        return os.path.realpath(path)


def _file_of(found: os.stat_result) -> object:
    return (found.st_dev, found.st_ino) if stat.S_ISREG(found.st_mode) else None


def _called(place: Place) -> str:
    if place.option == "-d":
        return f"the data file {place.path}"
    if place.option == "-i":
        return f"the model {place.path} of -i"
    return f"{place.option} {place.path}".lstrip()
