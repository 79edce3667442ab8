"""Convert the input of a program into batches: VW text, texts, dictionaries, matrices, DataFrames and files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from ..data import dicts, feature_names, tables
from ..data.batch import Batch
from ..data.class_names import Names
from ..data.schema import Schema
from ..errors import DataError, UsageError
from ..formats import detect
from ..system.printable import short_repr
from ..text import parser, reader
from ..text.label_detection import MAX_LINES, LabelDetector
from ..text.text_format import TextFormat
from . import arrays, configuration
from .configuration import Config, LabelRange, feature_bits
from .labels import LabelConverter, are_names, weights_of

Examples: TypeAlias = Any  # Batch, VW text, texts, dictionaries, matrix or DataFrame; `Inputs` checks it
Example: TypeAlias = str | Mapping[Any, Any]
PLAIN_TEXT = "if the texts are plain text, give xclass.Documents(texts)"
KINDS = "give a sparse matrix, an array, a DataFrame, a list of texts or dictionaries, a Batch, or lines of VW text"
AFTER_TEXT = b"\n" + bytes(parser.PADDING)


class Documents(tuple[str, ...]):
    """Mark texts as plain text, whose words are features; a bar in them has no meaning.

    Texts in which no bar occurs are plain text without this mark.

    Examples
    --------
    >>> import xclass
    >>> texts = xclass.Documents(["red | green", "blue | black"])
    >>> with xclass.Learner("oaa", classes=2, bits=10) as model:
    ...     _ = model.learn_many(texts, [1, 2])
    ...     model.predict_many(texts).tolist()
    [1, 2]
    """


class Inputs:
    """Convert the examples that a program passes to a learner into batches.

    Parameters
    ----------
    config : options of the learner
    names : names of its classes, to which new names are added
    label_range : labels that the learner accepts
    schema : columns of the tables that the learner has learned from, to which those of the first one are added
    identity : whether the number of a matrix's column is the index of the feature, instead of the name to hash

    Attributes
    ----------
    notes : messages about the text that are not yet shown to the user; the caller empties the list
    """

    def __init__(
        self, config: Config, names: Names, label_range: LabelRange, schema: Schema, identity: bool = False
    ) -> None:
        self._schema = schema
        self._config, self._names, self._label_range = config, names, label_range
        self._labels = LabelConverter(names, label_range)
        self._constant = not config.parser.noconstant
        self._rule = feature_names.new_hashing(
            config.parser.hash_seed, config.parser.hash == "all", feature_bits(config), identity
        )
        self._hasher = feature_names.NameHasher(self._rule)
        self._dicts = dicts.DictConverter(self._hasher, self._constant)
        self.notes: list[str] = []

    @cached_property
    def _parser(self) -> parser.Parser:
        """Return the parser, which is built for the first text."""
        multiclass = self._config.reduction.labels == "multiclass"
        parser_of_learner = parser.Parser(
            self._config.parser, feature_bits(self._config), multiclass, *self._label_range, self._names
        )
        parser_of_learner.notes = self.notes
        return parser_of_learner

    def batches(
        self, given: Examples, y: Any = None, sample_weight: Any = None, learn: bool = False
    ) -> Iterator[Batch]:
        """Return examples as batches; everything is checked before the first batch is returned.

        Parameters
        ----------
        given, y, sample_weight : as in `Learner.learn_many`
        learn : whether the examples are learned from: labels are needed then, and new names become classes

        Raises
        ------
        DataError
            if an example is malformed, or a label or weight is not allowed.
        UsageError
            if the examples have a type that is not supported, or a constant feature that the learner does not expect.
        """
        known = len(self.notes)
        try:
            return self._checked_batches(given, y, sample_weight, learn)
        except BaseException:
            del self.notes[known:]  # those about the data that are refused
            raise

    def _checked_batches(self, given: Examples, y: Any, sample_weight: Any, learn: bool) -> Iterator[Batch]:
        """Return examples as batches, see `batches`."""
        if isinstance(given, Batch):
            self._check_constant(given)
            batch = arrays.masked(arrays.typed(given), feature_bits(self._config))
            return iter([self._labelled(batch, given.label if y is None else y, sample_weight, learn)])
        if isinstance(given, Mapping):
            raise UsageError("a dictionary is a single example: call learn() or predict(), or give a list of them")
        table = tables.table_of(given, self._rule, self._hasher)
        if table is not None:
            return self._pieces(table, y, sample_weight, learn)
        if isinstance(given, bytes):
            given = given.decode("utf-8", "surrogateescape")
        examples = given.removesuffix("\n").split("\n") if isinstance(given, str) else listed(given)
        if isinstance(given, Documents) or (not _is_empty_text(given) and _are_documents(examples)):
            return self._pieces(tables.TextTable(examples, self._rule), y, sample_weight, learn)
        if examples and isinstance(examples[0], Mapping):
            self._require_labels(y, learn)
            batch = self._dicts.batch(_mappings(examples))
            return iter([self._labelled(batch, y, sample_weight, learn)])
        try:
            batch = self._parsed("\n".join(_lines(examples)), "batch", learn and y is None)
        except DataError as error:
            raise error if y is None else DataError(f"{error}; {PLAIN_TEXT}") from None
        if y is not None and not np.isnan(batch.label).all():
            line = int(batch.line[np.flatnonzero(~np.isnan(batch.label))[0]])
            raise UsageError(f"batch:{line}: the text has a label before its bar, and y has labels, too; {PLAIN_TEXT}")
        return iter([self._labelled(batch, y, sample_weight, learn)])

    def example(self, given: Example, label: Any, weight: float | None, learn: bool) -> Batch:
        """Return a single example as a batch.

        Parameters
        ----------
        given, label, weight : as in `Learner.learn`
        learn : whether the example is learned from
        """
        known = len(self.notes)
        try:
            return self._checked_example(given, label, weight, learn)
        except BaseException:
            del self.notes[known:]
            raise

    def _checked_example(self, given: Example, label: Any, weight: float | None, learn: bool) -> Batch:
        """Return a single example as a batch, see `example`."""
        if isinstance(given, str):
            batch = self._text_example(given, label, learn)
        elif isinstance(given, Mapping):
            batch = self._dicts.batch((given,))
        else:
            raise UsageError(
                f"{type(given).__name__} {short_repr(given)} is not a single example, which is text or a dictionary; "
                "many examples go to learn_many() and predict_many()"
            )
        if label is None and weight is None:
            return batch
        y = None if label is None else [label]
        return self._labelled(batch, y, None if weight is None else [weight], learn)

    def _text_example(self, given: str, label: Any, learn: bool) -> Batch:
        """Return a single example that is VW text or plain text as a batch."""
        line = given.rstrip("\n")
        if "\n" in line:
            raise UsageError("the text holds several lines; many examples go to learn_many() and predict_many()")
        if "|" not in line:
            return tables.TextTable((line,), self._rule).batch(0, 1, self._constant)
        batch = self._parsed(line, "example", learn and label is None)
        if label is not None and not np.isnan(batch.label).all():
            raise UsageError("the text has a label, and a label is given beside it; give one of them")
        return batch

    def read(self, files: reader.Options, learn: bool) -> Iterator[Batch]:
        """Yield the examples of files, standard input without any; new names become classes only with `learn`.

        Raises
        ------
        DataError
            if a file cannot be read or a line is malformed, or if `learn` is set and no example has a label.
        """
        multiclass = self._config.reduction.labels == "multiclass"
        growing, self._names.growing = self._names.growing, self._names.growing and learn
        before = self._schema.copy()
        source = reader.Reader(
            files, self._config.parser, feature_bits(self._config), multiclass, *self._label_range, names=self._names,
            choose=detect.chooser(files, self._schema if learn else before),
        )  # fmt: skip
        source.parser.notes = self.notes
        labelled, begun = not learn, False
        try:
            with configuration.naming_keywords():
                for batch in source:
                    begun = True
                    labelled = labelled or not np.isnan(batch.label).all()
                    yield batch
                if not labelled:
                    advice = (source.format or TextFormat()).labelled
                    raise DataError(f"{source.name}: no example was learned from; {advice}")
            self.notes += source.report()
        except BaseException:
            if not begun:
                self._schema.replace(before)  # nothing is learned from a table that cannot be read
            raise
        finally:
            self._names.growing = growing

    def _pieces(self, table: tables.Table, y: Any, sample_weight: Any, learn: bool) -> Iterator[Batch]:
        """Return the rows of a table as batches after checking all of them."""
        self._require_labels(y, learn)
        table.check()
        weight = None if sample_weight is None else weights_of(sample_weight, table.n)
        label = None if y is None else self._labels.labels(y, table.n, learn)
        return self._converted(table, label, weight)

    def _converted(self, table: tables.Table, label: np.ndarray | None, weight: np.ndarray | None) -> Iterator[Batch]:
        """Yield the rows of a table piece by piece, with labels, float64[n], and weights, float32[n]."""
        for low, high in table.pieces():
            batch = table.batch(low, high, self._constant)
            if label is not None:
                batch = batch._replace(label=label[low:high])
            if weight is not None:
                batch = batch._replace(weight=weight[low:high])
            yield batch

    def _labelled(self, batch: Batch, y: Any, sample_weight: Any, learn: bool) -> Batch:
        """Return a batch with the labels and weights that are given beside it."""
        weight = batch.weight if sample_weight is None else weights_of(sample_weight, batch.n)
        label = batch.label if y is None else self._labels.labels(y, batch.n, learn)
        return batch._replace(label=label, weight=weight)

    @staticmethod
    def _require_labels(y: Any, learn: bool) -> None:
        """Raise UsageError if examples without labels are to be learned from."""
        if learn and y is None:
            raise UsageError(
                "y is missing: these examples have no labels of their own; give one for each example, None or NaN for "
                "no label (VW text has a bar before the features, as in `label | features`)"
            )

    def _parsed(self, text: str, name: str, learn: bool) -> Batch:
        """Parse lines of VW text; new names of labels become classes only with `learn`."""
        content = text.encode("utf-8", "surrogateescape")
        end = len(content) + 1
        buffer = np.frombuffer(bytearray(content + AFTER_TEXT), np.uint8)
        self._note_lines_without_bar(text)
        growing, self._names.growing = self._names.growing, self._names.growing and learn
        self._parser.restart_lines()
        try:
            batch, error, _ = self._parser.parse(buffer, end, name)
        finally:
            self._names.growing = growing
        if error is not None:
            raise error
        self.notes += self._parser.take_report()
        return batch

    def _note_lines_without_bar(self, text: str) -> None:
        """Add a note about the first line without a bar, which has no features."""
        if text.count("|") > text.count("\n"):  # most likely every line has one
            return
        lines = text.split("\n")
        without_bar = next((i for i, line in enumerate(lines) if "|" not in line and line.strip()), None)
        if without_bar is not None:
            self.notes.append(
                f"batch:{without_bar + 1}: {short_repr(lines[without_bar])} has no bar and so no features; a line is "
                "`label | features`, or `| features`"
            )

    def _check_constant(self, batch: Batch) -> None:
        """Check that a batch has the constant feature if and only if the learner uses it."""
        if batch.n and bool(arrays.have_constant(batch)[0]) != self._constant:
            raise UsageError(
                f"the examples of the batch have {'no' if self._constant else 'a'} constant feature, and this learner "
                f"takes {'one' if self._constant else 'none'}: read them by read_vw(..., "
                f"noconstant={not self._constant})"
            )


def have_names(given: object, y: object) -> bool:
    """Return whether the labels of examples are names: those given beside them, or those in VW text."""
    if y is not None:
        return are_names(y)
    if isinstance(given, str):
        given = given.split("\n", MAX_LINES)
    if not isinstance(given, (list, tuple)):
        return False
    detector = LabelDetector(read_on=True, only_names=True)
    for line in given[:MAX_LINES]:
        if isinstance(line, str):
            detector.add(line.encode("utf-8", "surrogateescape"))
    detector.end()
    return bool(detector.name)


def written_by_program(given: Examples) -> Examples | None:
    """Return examples that are not VW text as objects in which `python_features` finds names, None for others."""
    if isinstance(given, Batch):
        return None
    if isinstance(given, str):
        given = given.removesuffix("\n").split("\n")
    is_list = isinstance(given, (list, tuple)) and not isinstance(given, Documents)
    return None if is_list and any(isinstance(text, str) and "|" in text for text in given) else given


def collected(given: Examples) -> Examples:
    """Return the examples of an iterator as a list, so that code of the program does not run while they are learned."""
    return list(given) if isinstance(given, Iterator) else given


def listed(given: object) -> Sequence[Any]:
    """Return examples that a program has given one by one as a sequence."""
    if isinstance(given, (list, tuple)):
        return given
    if isinstance(given, Iterable):
        return list(given)
    raise UsageError(f"examples are {type(given).__name__} {short_repr(given)}; {KINDS}")


def _is_empty_text(given: object) -> bool:
    """Return whether `given` is text of no lines, and not a list with an empty text."""
    return isinstance(given, str) and not given.strip()


def _are_documents(examples: Sequence[Any]) -> bool:
    """Return whether examples are plain text: there are some, and none of them holds a bar."""
    return bool(examples) and not any(not isinstance(text, str) or "|" in text for text in examples)


def _mappings(examples: Sequence[Any]) -> Sequence[Mapping[Any, Any]]:
    """Check that all examples are dictionaries, and return them."""
    for i, example in enumerate(examples):
        if not isinstance(example, Mapping):
            raise UsageError(
                f"example {i}: {type(example).__name__} {short_repr(example)}; the others are dictionaries"
            )
    return examples


def _lines(examples: Sequence[Any]) -> Iterator[str]:
    """Yield the lines of VW text that a program has given one by one.

    Raises
    ------
    UsageError
        if they are not strings.
    DataError
        if a string holds several lines.
    """
    for i, line in enumerate(examples):
        if not isinstance(line, str):
            raise UsageError(f"examples hold {type(line).__name__} {short_repr(line)}; {KINDS}")
        text = line.rstrip("\n")
        if "\n" in text:
            raise DataError(
                f"batch:{i + 1}: {short_repr(text)} holds a newline, which ends an example; replace it by a space, or "
                "give the text as one string"
            )
        yield text
