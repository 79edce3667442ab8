"""Convert the input of a program into batches: lines of VW text, sparse matrices, batches and files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from os import PathLike, fspath
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ..data.batch import Batch
from ..data.class_names import Names
from ..errors import DataError, UsageError
from ..kernels import jit
from ..system.printable import short_repr
from ..text import parser, reader
from . import arrays, configuration
from .arrays import Rows
from .configuration import Config, LabelRange

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

Examples: TypeAlias = Batch | str | bytes | Iterable[str] | Rows
HASH_BITS = 32  # bits of the hashes of `read_vw`; a learner uses the lowest bits, as many as its weight table needs


class Inputs:
    """Convert the examples that a program passes to a learner into batches.

    Parameters
    ----------
    config : options of the learner
    names : names of its classes, to which the parser adds new names
    label_range : labels that the learner accepts

    Attributes
    ----------
    notes : messages about the text that are not yet shown to the user; the caller empties the list
    """

    def __init__(self, config: Config, names: Names, label_range: LabelRange) -> None:
        self._config, self._names, self._label_range = config, names, label_range
        self.notes: list[str] = []

    @cached_property
    def _parser(self) -> parser.Parser:
        """Return the parser, which is built for the first text."""
        multiclass = self._config.reduction.labels == "multiclass"
        parser_of_learner = parser.Parser(
            self._config.parser, self._config.learner.bits, multiclass, *self._label_range, self._names
        )
        parser_of_learner.notes = self.notes
        return parser_of_learner

    def batch(
        self, examples: Examples, labels: ArrayLike | None = None, weights: ArrayLike | None = None, learn: bool = False
    ) -> Batch:
        """Return examples as a batch after checking them.

        Parameters
        ----------
        examples, labels, weights : as in `Learner.learn`
        learn : whether new label names become classes

        Raises
        ------
        DataError
            if a line is malformed, or a label or weight is not allowed.
        UsageError
            if the examples have a type that is not supported, or a constant feature that the learner does not expect.
        """
        if isinstance(examples, Batch):
            self._check_constant(examples)
            batch = examples
        elif (rows := arrays.rows_of(examples)) is not None:
            if learn and labels is None:
                raise UsageError("a matrix has no labels; give labels=, a number for each row (NaN for none)")
            batch = arrays.batch_of(rows, not self._config.parser.noconstant)
        else:
            if labels is not None or weights is not None:
                raise UsageError("labels and weights of VW text are in the text; give them with a matrix only")
            return self._parsed(examples, learn)
        batch = arrays.masked(batch, self._config.learner.bits)
        if labels is not None:
            batch = batch._replace(label=arrays.column("labels", labels, batch.n, np.float64))
        if weights is not None:
            batch = batch._replace(weight=arrays.weights_of(weights, batch.n))
        self._check_labels(batch.label)
        return batch

    def _parsed(self, text: object, learn: bool) -> Batch:
        """Parse lines of VW text; new label names become classes only with `learn`."""
        growing, self._names.growing = self._names.growing, self._names.growing and learn
        self._parser.restart_lines()
        try:
            batch, error, _ = self._parser.parse(*self._padded(text), "batch")
        finally:
            self._names.growing = growing
        if error is not None:
            raise error
        self.notes += self._parser.take_report()
        return batch

    def _check_constant(self, batch: Batch) -> None:
        """Check that a batch has the constant feature if and only if the learner uses it."""
        has_constant = not self._config.parser.noconstant
        if batch.n and bool(arrays.have_constant(batch)[0]) != has_constant:
            raise UsageError(
                f"the examples of the batch have {'no' if has_constant else 'a'} constant feature, and this learner "
                f"expects {'one' if has_constant else 'none'}; read them by read_vw(..., noconstant={not has_constant})"
            )

    def _check_labels(self, label: np.ndarray) -> None:
        """Check that all labels, float64[n], are NaN or classes in the range of the learner."""
        lowest, highest, _ = self._label_range
        if self._names.class_list is not None:
            highest = len(self._names.names)  # a class without a name cannot be predicted
        if highest is None:
            return
        wrong = ~np.isnan(label) & ~((label >= lowest) & (label <= highest) & (label == np.floor(label)))
        if wrong.any():
            at = int(np.argmax(wrong))
            allowed = f"allowed are whole numbers from {lowest} to {highest}"
            if self._names.class_list is not None:
                allowed = (
                    f"{allowed}, the classes that have a name"
                    if highest
                    else "no class has a name yet; learn from text first"
                )
            raise DataError(f"labels[{at}] is {label[at]:g}; {allowed}")

    def _padded(self, text: object) -> tuple[np.ndarray, int]:
        """Return text as an array for the parser: uint8[length + PADDING], with a final newline, and its length."""
        if isinstance(text, bytes):
            content = text
        else:
            if not isinstance(text, str):
                lines = _lines_of(text)
            else:  # lines are looked at only where some have no bar
                lines = text.split("\n") if text.count("|") < text.count("\n") else [text]
            without_bar = next((i for i, line in enumerate(lines) if "|" not in line and line.strip()), None)
            if without_bar is not None:
                self.notes.append(
                    f"batch:{without_bar + 1}: {short_repr(lines[without_bar])} has no bar and so no features; a line "
                    "is `label | features`, or `| features`"
                )
            content = "\n".join(lines).encode("utf-8", "surrogateescape")
        if not content.endswith(b"\n"):
            content += b"\n"
        buffer = np.zeros(len(content) + parser.PADDING, np.uint8)
        buffer[: len(content)] = np.frombuffer(content, np.uint8)
        return buffer, len(content)


def _lines_of(text: object) -> list[str]:
    """Return the lines of VW text that a program has given one by one.

    Raises
    ------
    UsageError
        if they are not strings.
    DataError
        if a string holds several lines.
    """
    lines: list[str] = []
    for line in text if isinstance(text, Iterable) else [text]:
        if not isinstance(line, str):
            raise UsageError(
                f"the examples contain {short_repr(line)}, which is of type {type(line).__name__}; give a Batch, lines "
                "of VW text, or a sparse matrix"
            )
        line = line.rstrip("\n")
        if "\n" in line:
            raise DataError(
                f"batch:{len(lines) + 1}: {short_repr(line)} contains a newline, which ends an example; replace it by a "
                "space, or give the text as one string"
            )
        lines.append(line)
    return lines


def read_vw(*paths: str | PathLike[str], labels: str = "classes", noconstant: bool = False) -> Iterator[Batch]:
    """Read files of VW text, plain or compressed, batch by batch.

    Parameters
    ----------
    *paths : str or path-like
        Files to read, one after the other. Names that end in `.gz` or `.zst` are decompressed. Without paths,
        standard input is read.
    labels : {"classes", "numbers"}, default "classes"
        Type of the labels: "classes" for positive whole numbers, "numbers" for the real numbers that the reduction
        "scalar" learns. If labels are names, pass lines of text to a `Learner` with `learn_names=True` instead.
    noconstant : bool, default False
        Leave out the constant feature, for learners with `noconstant=True`.

    Yields
    ------
    batch : Batch
        The examples of up to 256 KiB of text, in the order of the files.

    Raises
    ------
    DataError
        If a file cannot be read or a line is malformed. The examples before that line are yielded first.
    UsageError
        If `labels` is neither "classes" nor "numbers".

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
    ...         _ = model.learn(batch)
    ...     model.predict("| warm").tolist()
    [1]
    """
    if labels not in ("classes", "numbers"):
        raise UsageError(f"labels: {labels!r} is none of 'classes', 'numbers'")
    jit.activate(hide_scipy=False)
    data = tuple(str(fspath(path)) for path in paths)
    options = parser.Options(noconstant=noconstant)
    batches = reader.Reader(reader.Options(data=data), options, HASH_BITS, labels == "classes")
    try:
        with configuration.naming_keywords():
            yield from batches
    except DataError as error:
        words = "where a model is new, learn_names takes names"
        advice = "if labels are names, give the lines to a Learner with learn_names=True, as in learn(open(path))"
        raise DataError(str(error).replace(words, advice)) from None
