"""Turn what a program has into batches: lines of VW text, matrices, batches that were read before, and files."""

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
from ..system.printable import shortened
from ..text import parser, reader
from . import arrays, configuration
from .arrays import Rows
from .configuration import Config, LabelRange

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

Examples: TypeAlias = Batch | str | bytes | Iterable[str] | Rows
BITS = 32  # of the hashes of `read_vw`, of which a learner takes as many as its table has


class Inputs:
    """Makes batches for a learner.

    Parameters
    ----------
    names : of its classes; the parser adds those that come
    label_range : the labels it takes

    Attributes
    ----------
    notes : messages about text that nobody took yet
    """

    def __init__(self, config: Config, names: Names, label_range: LabelRange) -> None:
        self._config, self._names, self._label_range = config, names, label_range
        self.notes: list[str] = []

    @cached_property
    def _parser(self) -> parser.Parser:
        multiclass = self._config.reduction.labels == "multiclass"
        made = parser.Parser(
            self._config.parser, self._config.learner.bits, multiclass, *self._label_range, self._names
        )
        made.notes = self.notes
        return made

    def batch(
        self, given: Examples, labels: ArrayLike | None = None, weights: ArrayLike | None = None, learn: bool = False
    ) -> Batch:
        """Return examples as a batch, after its checks.

        Parameters
        ----------
        given, labels, weights : as in `Learner.learn`
        learn : whether labels that are new names become classes
        """
        if isinstance(given, Batch):
            self._check_constant(given)
            batch = given
        elif (rows := arrays.rows_of(given)) is not None:
            batch = arrays.batch_of(rows, not self._config.parser.noconstant)
        else:
            if labels is not None or weights is not None:
                raise UsageError("labels and weights of VW text are in the text; give them with a matrix only")
            return self._parsed(given, learn)
        batch = arrays.masked(batch, self._config.learner.bits)
        if labels is not None:
            batch = batch._replace(label=arrays.column("labels", labels, batch.n, np.float64))
        if weights is not None:
            batch = batch._replace(weight=arrays.weights_of(weights, batch.n))
        self._check_labels(batch.label)
        return batch

    def _parsed(self, text: object, learn: bool) -> Batch:
        growing, self._names.growing = self._names.growing, self._names.growing and learn  # predicting learns no name
        self._parser.begin()
        try:
            batch, error, _ = self._parser.parse(*_padded(text), "batch")
        finally:
            self._names.growing = growing
        if error is not None:
            raise error
        self.notes += self._parser.take_report()
        return batch

    def _check_constant(self, batch: Batch) -> None:
        """Refuse a batch that was read with a constant feature and is to be learned without one, or the other way."""
        wanted = not self._config.parser.noconstant
        if batch.n and bool(arrays.have_constant(batch)[0]) != wanted:
            raise UsageError(
                f"the examples of the batch have {'no' if wanted else 'a'} constant feature, and this learner takes "
                f"{'one' if wanted else 'none'}: read them by read_vw(..., noconstant={not wanted})"
            )

    def _check_labels(self, label: np.ndarray) -> None:
        lowest, highest, _ = self._label_range
        if highest is None:
            return
        wrong = ~np.isnan(label) & ~((label >= lowest) & (label <= highest) & (label == np.floor(label)))
        if wrong.any():
            at = int(np.argmax(wrong))
            raise DataError(f"labels[{at}] is {label[at]:g}; allowed are {lowest}..{highest}")


def _padded(text: object) -> tuple[np.ndarray, int]:
    """Return text as the parser takes it, with an end to its last line and room behind it: uint8[...], length."""
    if not isinstance(text, (str, bytes)):
        lines = []
        for line in text if isinstance(text, Iterable) else [text]:
            if not isinstance(line, str):
                raise UsageError(
                    f"examples hold {type(line).__name__} {shortened(line)}; give a Batch, lines of VW text, or a "
                    "sparse matrix"
                )
            lines.append(line.rstrip("\n"))
        text = "\n".join(lines)
    if isinstance(text, str):
        text = text.encode("utf-8", "surrogateescape")
    if not text.endswith(b"\n"):
        text += b"\n"
    room = np.zeros(len(text) + parser.PADDING, np.uint8)
    room[: len(text)] = np.frombuffer(text, np.uint8)
    return room, len(text)


def read_vw(*paths: str | PathLike[str], labels: str = "classes", noconstant: bool = False) -> Iterator[Batch]:
    """Read files of VW text, plain or compressed, batch by batch.

    Parameters
    ----------
    labels : "classes" for whole numbers, "numbers" for what "scalar" learns. Where labels are names, give lines of text
        to a learner with `learn_names=True`, which numbers the names as they come.
    noconstant : leave the constant feature out, for learners with the option of that name

    Raises
    ------
    DataError
        where a file cannot be read or a line is malformed.
    """
    if labels not in ("classes", "numbers"):
        raise UsageError(f"labels: {labels!r} is none of 'classes', 'numbers'")
    jit.activate(quick=False)
    data = tuple(str(fspath(path)) for path in paths)
    options = parser.Options(noconstant=noconstant)
    found = reader.Reader(reader.Options(data=data), options, BITS, labels == "classes")
    with configuration.naming_keywords():
        yield from found
