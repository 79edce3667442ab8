"""Read and predict files of examples batch by batch, write matrices as VW text, and look at the labels of files."""

from __future__ import annotations

import dataclasses
import os
import warnings
from collections.abc import Iterator, Sequence
from itertools import pairwise
from os import PathLike, fsdecode
from typing import Any

import numpy as np

from ..array_types import Float32s, Int64s
from ..data import array_input, class_names, tables
from ..data.batch import Batch
from ..errors import DataError, UsageError, XclassWarning
from ..formats import columns, detect
from ..kernels import jit
from ..options import declare
from ..options.spelling import Spelling
from ..system import output_file
from ..system.printable import short_repr
from ..text import malformed, parser, reader
from . import configuration
from .labels import KindOfLabels, of_examples, weights_of
from .learner_core import LearnerCore

KINDS = {"classes": "multiclass", "numbers": "simple", "lists": "multilabel"}  # of `read_vw` -> as in `ReductionRecord`
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
    labels : {"classes", "numbers", "lists"}, default "classes"
        Type of the labels: "classes" for positive whole numbers, "numbers" for the real numbers that the reduction
        "scalar" learns, "lists" for several classes an example, such as `1,5,7`. If labels are names, use
        `Learner.learn_file` instead.
    noconstant : bool, default False
        Leave out the constant feature, for learners with `noconstant=True`.
    format, label_column, **columns
        As in `Learner.learn_file`.

    Yields
    ------
    batch : Batch
        The examples of up to 256 KiB of text, in the order of the files.

    Raises
    ------
    DataError
        If a file cannot be read or a line is malformed. The examples before that line are yielded first.

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
    if labels not in KINDS:
        raise UsageError(f"labels: {labels!r} is none of {', '.join(map(repr, KINDS))}")
    source = options_of(paths, format, label_column=label_column, **columns)
    jit.activate(hide_scipy=False)
    of_lines = parser.Parser(parser.ParserOptions(noconstant=noconstant), HASH_BITS, KINDS[labels])
    batches = reader.Reader(source, of_lines, choose=detect.chooser(source))
    names = {"-d": "read_vw()", "--learn_names": "learn_file() of a Learner"}  # which needs no option for names
    spelling = Spelling(lambda complete: {**configuration.keywords(complete), **names})
    try:
        with spelling:
            for batch in batches:
                while batches.notes:
                    warnings.warn(spelling(batches.notes.pop(0)), XclassWarning, stacklevel=2)
                yield batch
            for line in batches.report():
                warnings.warn(spelling(line), XclassWarning, stacklevel=2)
    except DataError as error:  # of a file that this function reads with other arguments
        cure = f"and labels={labels!r} reads one; give labels='lists'"
        message = error.args[0].replace(malformed.LEARNS_ONE, cure)
        error.args = (malformed.without_skip(message), *error.args[1:])
        raise
    except SystemError as error:  # see `Learner.predict`
        raise (error.__cause__ or error) from None


def write_vw(path: str | PathLike[str], X: Any, y: Any = None, sample_weight: Any = None) -> None:
    """Write a matrix as VW text, from which the command and VW learn what a `Learner` learns from the matrix.

    An existing file is replaced only after all of the new file is written.

    Parameters
    ----------
    path : str or path-like
    X : sparse matrix or array of shape (n, d)
        Column j becomes the feature `j`. Values are rounded to float32; entries of 0 are left out.
    y : array-like of shape (n,), optional
        Labels, numbers or names of one word, or lists of them; None or NaN for no label. A matrix of 0 and 1 has a
        column for each of the labels 0, 1, 2, ...
    sample_weight : array-like of shape (n,), optional
        Weights.

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
    labels = None if y is None else of_examples(y, n)
    with output_file.opened(os.path.abspath(path_of(path)), "the examples") as file:
        for line in vw_lines(start, column, value, labels, weights):
            file.write(line.encode("utf-8", "surrogateescape"))


def read(
    core: LearnerCore, source: reader.ReaderOptions, learn: bool = False, peeked: reader.Peeked | None = None
) -> Iterator[Batch]:
    """Yield the examples of files, standard input without any.

    New names become classes only with `learn`, and it is an error then if no example has a label. `peeked` is what was
    read before.
    """
    config, names, schema = core.config, core.names, core.schema
    growing, names.growing = names.growing, names.growing and learn
    before = schema.copy(fixed=not learn)
    of_lines = configuration.parser_of(config, core.label_range, names, learn)
    choose = detect.chooser(source, schema if learn else before, config.given)
    opened = reader.Reader(source, of_lines, peeked=peeked, choose=choose)
    core.read_from(opened)
    labelled, begun = not learn, False
    try:
        for batch in opened:
            begun = True
            labelled = labelled or not np.isnan(batch.label).all()
            yield batch
        if not labelled:
            raise core.nothing_learned(opened)
        core.notes += core.end_notes(learned=False)
    except BaseException:
        if learn and not begun:
            schema.replace(before)  # nothing is learned from a table that cannot be read
        raise
    finally:
        names.growing = growing
        core.read_from(None)


def batches(core: LearnerCore, source: reader.ReaderOptions) -> Iterator[tuple[str, Batch]]:
    """Yield the batches of files, each of which may have a format of its own, with the path of the file."""
    for path in source.data:
        for batch in read(core, dataclasses.replace(source, data=(path,))):
            yield path, batch


def options_of(paths: Sequence[str | PathLike[str]], format: str, **given: Any) -> reader.ReaderOptions:
    """Return the options of the reader for files and the arguments of a program, after checks of both."""
    declared = declare.options_of(reader.ReaderOptions)
    given["format"] = format
    for name, value in given.items():
        if name not in declared:
            raise UsageError(f"there is no argument {name!r}; the options of data are {', '.join(declared)}")
        if declared[name].choices:
            given[name] = configuration.checked_value(name, declared[name], value)
        elif value is not None:
            given[name] = columns.as_typed(value) if declared[name].repeated else str(value)
    return reader.ReaderOptions(data=tuple(map(path_of, paths)), **given)


def path_of(given: str | PathLike[str]) -> str:
    """Return the path of a file that a program names; raise UsageError if it is none."""
    if not isinstance(given, (str, bytes, PathLike)):
        raise UsageError(f"{short_repr(given)} is not a path; give the path of a file as text, each as an argument")
    path = fsdecode(given)
    return f"./{path}" if len(path) > 1 and path[0] == "-" else path  # a message would take it for an option


def kind_of_labels(
    files: reader.ReaderOptions, config: configuration.Config, lists: bool, first: reader.Peeked | Sequence[bytes]
) -> KindOfLabels:
    """Return of which kind the labels of the first file are, for a learner with these options, see `detect.detected`.

    Without `lists`, they are not examined for lists.
    """
    numbered, of_lists = "indexing" in config.given, config.reduction.labels == "multilabel"
    return KindOfLabels.of(detect.detected(files, first, numbered, of_lists, only_names=True, lists=lists))


# VW reads most decimal numbers with a small error, because it accumulates their digits in float32. A number with the
# exponent `e+0` is left to C's strtof, which rounds correctly (see `text.vw_numbers`), so all numbers but small whole
# ones are written with it: reading the text gives exactly the values that were written, in xclass and in VW.
EXACT = 1 << 24  # whole numbers below this are read exactly without an exponent


def number(value: np.float32) -> str:
    """Return a finite number as text that is read as exactly this number."""
    if abs(value) < EXACT and value == int(value):
        return str(int(value))
    return np.format_float_positional(value, unique=True, trim="-") + "e+0"


def label_word(label: Any, place: str) -> str:
    """Return a label, or a list of labels, as the first word of a line; an empty text for a missing one."""
    if isinstance(label, list):
        return ",".join(label_word(part, f"{place}[{j}]") for j, part in enumerate(label)) or ","
    if array_input.is_missing(label):
        return ""
    if isinstance(label, (float, np.floating)) and not label.is_integer():
        if not -array_input.LARGEST <= label <= array_input.LARGEST:
            raise DataError(f"{place} is {label:g}; {array_input.FINITE}")
        return number(np.float32(label))
    word = class_names.key_of(label)
    if fault := class_names.fault_of(word):
        raise DataError(f"{place} is {short_repr(label)}; {fault}")
    if "|" in word or word[0] == "'":
        raise DataError(f"{place} is {short_repr(label)}; in VW text a label has no bar, and no ' at its beginning")
    return word


def vw_lines(
    start: Int64s, column: Int64s, value: Float32s, labels: Sequence[Any] | None, weights: Float32s | None
) -> Iterator[str]:
    """Yield the n rows of a sparse matrix as lines of VW text; entries of 0 are left out.

    `start`, `column` and `value`, int64[n + 1], int64[z] and float32[z], are compressed sparse rows. A label, or a list
    of labels, is None or NaN for no label. `weights` is float32[n]; None for weights of 1. A weight is written after a
    label only.
    """
    for row, (begin, end) in enumerate(pairwise(start.tolist())):
        words = [label_word(labels[row], f"y[{row}]")] if labels is not None else [""]
        if weights is not None and words[0] and weights[row] != 1:
            words.append(number(weights[row]))
        words.append("|")
        for j, x in zip(column[begin:end].tolist(), value[begin:end], strict=True):
            if x != 0:
                words.append(str(j) if x == 1 else f"{j}:{number(x)}")
        yield " ".join(words).lstrip() + "\n"
