"""Read and predict files of examples batch by batch, write matrices as VW text, and look at the labels of files."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterator, Sequence
from os import PathLike, fsdecode
from typing import Any

from ..data import array_input, tables
from ..data.batch import Batch
from ..errors import DataError, UsageError
from ..formats import columns, detect, vw_writer
from ..kernels import jit
from ..options import declare
from ..reductions.core.contract import BatchTask
from ..system import output_file, thread_limit
from ..system.printable import short_repr
from ..text import parser, reader
from ..text.label_detection import LabelDetector
from . import configuration
from .labels import weights_of
from .learner_core import LearnerCore

HASH_BITS = 32  # bits of the hashes of `read_vw`; a learner uses the lowest bits, as many as its weight table needs


def read_vw(
    *paths: str | PathLike[str],
    labels: str = "classes",
    noconstant: bool = False,
    format: str = "vw",
    label_column: str | int | None = None,
    **columns: Any,
) -> Iterator[Batch]:
    """Read files of VW text or of another format, plain or compressed, batch by batch.

    Parameters
    ----------
    *paths : str or path-like
        Files to read, one after the other. Names that end in `.gz`, `.bz2`, `.xz` or `.zst` are decompressed.
        Without paths, standard input is read.
    labels : {"classes", "numbers"}, default "classes"
        Type of the labels: "classes" for positive whole numbers, "numbers" for the real numbers that the reduction
        "scalar" learns. If labels are names, use `Learner.learn_file` instead.
    noconstant : bool, default False
        Leave out the constant feature, for learners with `noconstant=True`.
    format : {"vw", "auto", "fasttext", "libsvm", "xmc", "csv", "jsonl"}, default "vw"
        Format of the files; "auto" chooses by the first lines and the name of the first file.
    label_column : str or int, optional
        Column of the label in a CSV file, by its name or its number from 1, or key of the label in JSON lines. The
        default is `label`, else the first column.
    **columns
        The options of the command that say how columns are read: lists of names `columns`, `ignore_column` and
        `header`, and the dictionary `column_kind` from names to "number", "text" or "category".

    Yields
    ------
    batch : Batch
        The examples of up to 256 KiB of text, in the order of the files.

    Raises
    ------
    DataError
        If a file cannot be read or a line is malformed. The examples before that line are yielded first.
    UsageError
        If `labels` or `format` is none of the words above, or an option names a column that a file does not have.

    Examples
    --------
    >>> import os, tempfile
    >>> import xclass
    >>> path = os.path.join(tempfile.mkdtemp(), "train.vw")
    >>> with open(path, "w") as file:
    ...     _ = file.write("1 | sunny warm\\n2 | rainy cold\\n")
    >>> batches = list(xclass.read_vw(path))
    >>> batches[0].label.tolist()
    [1.0, 2.0]
    >>> with xclass.Learner("oaa", classes=2, bits=10) as model:
    ...     for batch in batches * 10:
    ...         _ = model.learn_many(batch)
    ...     model.predict_many("| warm").tolist()
    [1]
    """
    if labels not in ("classes", "numbers"):
        raise UsageError(f"labels: {labels!r} is none of 'classes', 'numbers'")
    source = options_of(paths, format, label_column=label_column, **columns)
    jit.activate(hide_scipy=False)
    options = parser.Options(noconstant=noconstant)
    batches = reader.Reader(source, options, HASH_BITS, labels == "classes", choose=detect.chooser(source))
    try:
        with configuration.KEYWORDS:
            yield from batches
    except DataError as error:
        words = "where a model is new, learn_names takes names"
        given = "" if format == "vw" else f", format={format!r}"
        advice = f"if labels are names, call learn_file(path{given}) of a Learner"
        raise DataError(str(error).replace(words, advice)) from None
    except SystemError as error:  # see `Learner.predict`
        raise (error.__cause__ or error) from None


def write_vw(path: str | PathLike[str], X: Any, y: Any = None, sample_weight: Any = None) -> None:
    """Write a matrix as VW text, from which the command and VW learn what a `Learner` learns from the matrix.

    Parameters
    ----------
    path : str or path-like
        File to write. An existing file is replaced only after all of the new file is written.
    X : sparse matrix or array of shape (n, d)
        Column j becomes the feature `j`. Values are rounded to float32; entries of 0 are left out.
    y : array-like of shape (n,), optional
        Labels, numbers or names of one word; None or NaN for no label.
    sample_weight : array-like of shape (n,), optional
        Weights.

    Raises
    ------
    DataError
        If a value, label or weight cannot be written, or the file.
    UsageError
        If `X` is not a matrix.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> import xclass
    >>> path = os.path.join(tempfile.mkdtemp(), "train.vw")
    >>> xclass.write_vw(path, np.array([[1, 0.5], [0, 2]]), ["dry", "wet"])
    >>> print(open(path).read(), end="")
    dry | 0 1:0.5e+0
    wet | 1:2
    """
    start, column, value = tables.sparse_arrays(X)
    n = len(start) - 1
    weights = None if sample_weight is None else weights_of(sample_weight, n)
    y = array_input.flat("y", y)
    labels = None if y is None else (y.tolist() if hasattr(y, "tolist") else list(y))
    if labels is not None and len(labels) != n:
        raise DataError(f"y has {len(labels)} labels for {n} rows; give one for each row")
    with output_file.opened(os.path.abspath(path_of(path)), "the examples") as file:
        for line in vw_writer.lines(start, column, value, labels, weights):
            file.write(line.encode("utf-8", "surrogateescape"))


def batches(
    learner: LearnerCore, source: reader.Options, notes: list[str] | None = None
) -> Iterator[tuple[str, Batch]]:
    """Yield the batches of files, each with the path of its file.

    Parameters
    ----------
    learner : the model, whose options say how features are hashed
    source : the files, and how they are read
    notes : messages about the text are added to this list, if there is one

    Raises
    ------
    DataError
        if a file cannot be read or a line is malformed.
    """
    config, names = learner.config, learner.names
    growing, names.growing = names.growing, False  # unknown names do not become classes
    try:
        for path in source.data:
            options = dataclasses.replace(source, data=(path,))
            of_file = reader.Reader(
                options, config.parser, configuration.feature_bits(config), config.reduction.labels == "multiclass",
                *learner.label_range, names=names, choose=detect.chooser(options, learner.schema.copy(fixed=True)),
            )  # fmt: skip
            found: list[str] = []
            of_file.parser.notes = found
            for batch in of_file:
                yield path, batch
            if notes is not None:
                notes += [*found, *of_file.report()]
    finally:
        names.growing = growing


def predicted(learner: LearnerCore, batch: Batch) -> Iterator[BatchTask]:
    """Yield the tasks of a batch after predicting them; `learner.reduction.want` says what they hold."""
    for task in learner.tasks(batch, False, learner.clock):
        with thread_limit.working():
            for stage in learner.stages:
                stage(task)
        yield task


def options_of(paths: Sequence[str | PathLike[str]], format: str, **given: Any) -> reader.Options:
    """Return the options of the reader for files and the arguments of a program.

    Raises
    ------
    UsageError
        if there is no such format or argument, or something else is in the place of a path.
    """
    declared = declare.options_of(reader.Options)
    given["format"] = format
    for name, value in given.items():
        if name not in declared:
            raise UsageError(f"there is no argument {name!r}; the options of data are {', '.join(declared)}")
        choices = declared[name].choices
        if choices and value not in choices:
            hint = configuration.hint(str(value).lower(), choices)
            raise UsageError(f"{name}: {value!r} is none of {', '.join(map(repr, choices))}{hint}")
        if value is not None:
            given[name] = columns.as_row(value) if declared[name].repeated else str(value)
    return reader.Options(data=tuple(map(path_of, paths)), **given)


def path_of(given: str | PathLike[str]) -> str:
    """Return the path of a file that a program names; raise UsageError if it is none."""
    if not isinstance(given, (str, bytes, PathLike)):
        raise UsageError(f"{short_repr(given)} is not a path; give the path of a file as text, each as an argument")
    return fsdecode(given)


def are_names(files: reader.Options, numbered: bool) -> bool:
    """Return whether the labels of files are names; False for standard input, which can be read only once.

    Parameters
    ----------
    files : the files, of which the first is read
    numbered : see `detect.FormatLabels`
    """
    return _find_names(files, numbered, lambda lines: reader.peek_labels(files.data, lines, bytearray()))


def are_names_in(text: bytes, files: reader.Options, numbered: bool) -> bool:
    """Return whether the labels of files are names, by the first lines of the first one; see `are_names`."""

    def look(lines: detect.FormatLabels) -> None:
        for line in text.split(b"\n"):
            lines.add(line)

    return _find_names(files, numbered, look)


def _find_names(files: reader.Options, numbered: bool, look: Callable[[detect.FormatLabels], None]) -> bool:
    """Return whether labels are names; `look` passes on the first lines."""
    detector = LabelDetector(read_on=True, only_names=True)
    if files.data:
        with configuration.KEYWORDS:
            lines = detect.FormatLabels(detector, files, numbered)
            look(lines)
            lines.end()
    detector.end()
    return bool(detector.name)
