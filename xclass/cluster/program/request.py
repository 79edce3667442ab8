"""Turn what a program asks for into the options of a run, and the data that it names into files or blocks.

The options of the run are those that the learner was made with and those of the request, as if they were typed.
"""

from __future__ import annotations

import dataclasses
import os
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from os import PathLike
from typing import Any, NamedTuple, TypeAlias

from ...api import configuration, files, model_contents
from ...api.configuration import Config
from ...api.labels import KindOfLabels
from ...api.learner import Learner
from ...api.model_contents import ModelContents
from ...errors import DataError, UsageError, XclassWarning
from ...options.declare import OptionGroup, options_of
from ...options.spelling import Spelling
from ...reductions import presets
from ...run.options import use_of
from ...system.printable import short_repr
from ...text import reader
from .. import options as cluster_options
from .. import shards
from ..session import Session
from ..shards import PartFiles
from . import blocks

LEARNER = "the learner"  # name of a learner in messages where that of its model file would stand
ARGUMENTS = {"ray_timeout": "timeout", "ray": "address"}  # options of the cluster -> arguments with other names

# the option groups of the command, with those of reductions with these names
Groups: TypeAlias = Callable[[Collection[str]], Mapping[str, type[OptionGroup]]]


class ProgramRequest(NamedTuple):
    """Hold what a program asks for."""

    data: Any  # paths, patterns and URLs, or a data set of Ray Data
    learner: Learner
    cluster: cluster_options.ClusterOptions
    reading: reader.ReaderOptions  # how files are read
    groups: Groups


def request(data: Any, learner: object, groups: Groups, reading: Mapping[str, Any], **given: Any) -> ProgramRequest:
    """Check the arguments of a program: those of `Learner.learn_file`, and options of the cluster."""
    if not isinstance(learner, Learner):
        raise UsageError(
            f"learner: {short_repr(learner)} is not a Learner; give xclass.Learner(...) or xclass.load(path)"
        )
    declared = options_of(cluster_options.ClusterOptions)
    values = {
        name: configuration.checked_value(f"--{name}", declared[name], value)
        for name, value in given.items()
        if value is not None
    }
    checked = files.options_of((), **reading)
    if not blocks.is_dataset(data):
        data = _paths(data)
    else:
        for name, value in checked.meaning().items():
            if name not in ("format", "label_column") and value != getattr(reader.ReaderOptions(), name):
                raise UsageError(f"--{name} is for files; choose the columns of the data set by its own functions")
    return ProgramRequest(data, learner, cluster_options.ClusterOptions(**values), checked, groups)


def _paths(data: object) -> tuple[str, ...]:
    listed = [data] if isinstance(data, (str, PathLike)) else data
    if isinstance(listed, Iterable):
        listed = list(listed)
        if listed and all(isinstance(path, (str, PathLike)) for path in listed):
            return tuple(map(files.path_of, listed))
    raise UsageError(f"data: {short_repr(data)} is none of paths, patterns, URLs and a data set of Ray Data")


def warn(note: str) -> None:
    warnings.warn(ARGUMENT_NAMES(note), XclassWarning, stacklevel=2)


def _arguments(complete: bool) -> dict[str, str]:
    """Return the arguments of a program by the flags of the command, see `Spelling`."""
    of_cluster = options_of(cluster_options.ClusterOptions)
    return {**configuration.keywords(complete), **{f"--{name}": ARGUMENTS.get(name, name) for name in of_cluster}}


ARGUMENT_NAMES = Spelling(_arguments)


def find(asked: ProgramRequest, session: Session, least: int) -> tuple[PartFiles, reader.ReaderOptions]:
    """Find the files of the data, or compute at least `least` blocks of a data set; return how they are read, too."""
    if not blocks.is_dataset(asked.data):
        return shards.find(session, asked.data, asked.reading.format), asked.reading
    computed = blocks.blocks_of(asked.data, least)
    found, reading = session.call(blocks.described, computed, asked.reading, bool(asked.learner.core.schema))
    if not found:
        raise DataError("the data set has no rows; give one with examples")
    return PartFiles(tuple(found), [None] * len(found), False), reading


def kind_of_labels(
    asked: ProgramRequest, session: Session, found: PartFiles, reading: reader.ReaderOptions, lists: bool
) -> KindOfLabels:
    """Return of which kind the labels of the data are, by the first lines, which a node of the cluster reads."""
    text = session.call(shards.first_lines, os.getcwd(), found.paths[0])
    options = dataclasses.replace(reading, data=found.paths[:1])
    return files.kind_of_labels(options, asked.learner.core.config, lists, text.split(b"\n"))


def run_config(
    asked: ProgramRequest,
    paths: Sequence[str],
    reading: reader.ReaderOptions,
    contents: ModelContents | None,
    **given: Any,
) -> Config:
    """Return the options of a run over data; without paths, options are checked before the data are known.

    `contents` is what the learner has learned, None for a new one.
    """
    config = asked.learner.core.config
    stored = None
    typed = {name: value for name, value in config.values().items() if name in config.given}
    if contents is not None:
        stored = contents.options
        of_learner = configuration.declared_options()
        typed = {
            name: value for name, value in typed.items() if name not in presets.PRESETS and not of_learner[name].stored
        }
        given["initial_regressor"] = LEARNER
    defaults = vars(cluster_options.ClusterOptions())
    cluster = {name: value for name, value in vars(asked.cluster).items() if value != defaults[name]}
    read: dict[str, object] = {"data": paths}
    read.update((name, value) for name, value in reading.meaning().items() if value not in (None, ()))
    values = {**typed, **given, **cluster, **read, "quiet": True}
    return configuration.resolved(values, stored, use_of, LEARNER, asked.groups)


def contents_of(learner: Learner) -> ModelContents | None:
    """Return a copy of what a learner has learned; None for a new learner, which continues from nothing."""
    _ = learner.core.reduction  # a closed learner has none
    if learner.core.is_new:
        return None
    learner.core.check_learned()
    return model_contents.from_bytes(model_contents.to_bytes(learner.core.contents()))
