"""Convert the input of a program into batches: VW text, texts, dictionaries, matrices, DataFrames and files."""

from __future__ import annotations

import contextlib
import re
import string
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence, ValuesView
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from ..data import array_input, batch_ops, dicts, feature_names, frames, schema, tables
from ..data.batch import NO_LISTS, Batch
from ..data.feature_names import encoded
from ..data.frames import Frame
from ..data.schema import DENSE, MATRICES, NUMBER, OTHER, PLAIN, Kinds
from ..data.texts import Texts
from ..errors import DataError, UsageError
from ..system.printable import short_repr
from ..text import parser
from ..text.label_detection import MAX_LINES, LabelDetector
from ..text.malformed import LEARN_LISTS
from . import example_notes
from .configuration import feature_bits, hashing, note_about_rows, parser_of
from .labels import KindOfLabels, LabelConverter, are_lists, are_names, is_list, one_by_one, weights_of
from .learner_core import LearnerCore

Examples: TypeAlias = Any  # Batch, VW text, texts, dictionaries, matrix or DataFrame; `Inputs` checks it
Example: TypeAlias = str | Mapping[Any, Any]
DOCUMENTS = "give xclass.Documents(texts)"
PLAIN_TEXT = f"if the texts are plain text, {DOCUMENTS}"
KINDS = "give a sparse matrix, an array, a DataFrame, a list of texts or dictionaries, a Batch, or lines of VW text"
# to find out where words were learned: namespaces, the words of a line of VW text, and the share that has to be known
NAMESPACES = ["", *string.ascii_letters, "text", "texts", "words", "title", "body", "description", "tags", "query"]
WORD, MOST_WORDS, LONGEST_LINE, LEAST_SHARE = re.compile(r"(?<![^\s])[^\s|:]+"), 32, 1 << 10, 0.5
AFTER_TEXT = b"\n" + bytes(parser.PADDING)


class Documents(tuple[str, ...]):
    """Mark texts as plain text, whose words are features; a bar in them has no meaning.

    Without this mark, a text with a bar is VW text, and only one without a bar is plain text.

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
    core : the learner. New names become its classes, the columns of the first table its schema, and messages its notes;
        the caller takes them
    identity : whether the number of a matrix's column is the index of the feature, instead of the name to hash
    vw_text : whether names are hashed as in VW text, see `feature_names`
    """

    def __init__(self, core: LearnerCore, identity: bool = False, vw_text: bool = False) -> None:
        self._schema, self._config, self._names = core.schema, core.config, core.names
        self._widest, self._dense = (
            core.takes_block * core.config.reduction.widest_array,
            core.config.parser.dense_names(),
        )
        self._label_range, self.notes = core.label_range, core.notes
        lists = core.config.reduction.labels == "multilabel"
        self.labels = LabelConverter(core.names, core.label_range, lists, core.schema)
        self._constant = not core.config.parser.noconstant
        self._rule = hashing(core.config, identity, vw_text)
        self.hasher = feature_names.NameHasher(self._rule)
        self._texts = Texts(core.config.parser, self._rule.hash_all, self._rule.mask)
        self._dicts = dicts.DictConverter(
            self.hasher, self._constant, core.schema, self.notes, lambda n: note_about_rows(self._config, n, True)
        )
        self._text = ""  # the first of the last texts
        core.namespace_of_words = self._namespace_of_words
        self._core, self._matrix_seen = weakref.ref(core), set[bool]()  # to predict, to learn
        self._noted: frozenset[str] = frozenset()  # columns of which a note says that they are left out, other notes

    @cached_property
    def _parser(self) -> parser.Parser:
        of_texts = parser_of(self._config, self._label_range, self._names)
        of_texts.notes = self.notes
        return of_texts

    def batches(
        self, given: Examples, y: Any = None, sample_weight: Any = None, learn: bool = False
    ) -> Iterator[Batch]:
        """Return examples as batches, see `Learner.learn_many`; everything is checked before the first one is returned.

        With `learn`, labels are needed, and new names become classes.
        """
        with self._undone_if_refused():
            if isinstance(given, Batch):
                return self._of_batch(array_input.batch(given), y, sample_weight, learn)
            given = self.opened(given)
            table = self._table(given)
            if table is None and isinstance(given, Documents):
                table = self._plain(_texts(given), learn)
            if table is not None:
                return self._of_table(table, y, sample_weight, learn)
            if isinstance(given, Mapping):  # and no sparse matrix, as one of SciPy's formats is a dictionary, too
                raise UsageError("a dictionary is a single example: call learn() or predict(), or give a list of them")
            if isinstance(given, bytes):
                given = given.decode("utf-8", "surrogateescape")
            examples = listed(given)
            if isinstance(next((item for item in examples if not array_input.is_missing(item)), None), Mapping):
                return self._of_mappings(examples, y, sample_weight, learn)
            texts = _texts(examples)
            if texts and not any("|" in text for text in texts):
                return self._of_table(self._plain(texts, learn), y, sample_weight, learn)
            batch = self._lines(texts, y, learn, isinstance(given, str))
            return iter([self._labelled(batch, y, sample_weight, learn)])

    def example(self, given: Example, label: Any, weight: float | None, learn: bool) -> Batch:
        """Return a single example as a batch; the parameters are those of `batches` and `Learner.learn`."""
        with self._undone_if_refused():
            if not isinstance(given, (str, Mapping)):
                raise UsageError(
                    f"{type(given).__name__} {short_repr(given)} is not a single example, which is text or a "
                    "dictionary; give rows of an array to learn_many(X[:1], [3]), predict_many(X[:1]) or "
                    "explain_many(X[:1])"
                )
            if isinstance(given, str):
                batch, kinds = self._text_example(given, label, learn), Kinds()
            else:
                batch, kinds = self._dict_example(given, learn)
            y = None if label is None else one_by_one([label])
            batch = self._labelled(batch, y, None if weight is None else [weight], learn)
            self._schema.add_names(kinds)
            return batch

    @contextlib.contextmanager
    def _undone_if_refused(self) -> Iterator[None]:
        """Forget what becomes known of examples in the `with` block, and their notes, if it refuses them."""
        notes, before = len(self.notes), (self._schema.form, self._noted)
        self._text = ""
        try:
            yield
        except BaseException:
            del self.notes[notes:]
            self._schema.form, self._noted = before
            raise

    def _of_batch(self, given: Batch, y: Any, sample_weight: Any, learn: bool) -> Iterator[Batch]:
        self._check_kind(given)
        self._check_constant(given)
        weights_of(given.weight, given.n)
        self._schema.check_width(given.columns)
        batch = batch_ops.masked(given, feature_bits(self._config))
        batch = self._labelled(batch, given if y is None else y, sample_weight, learn)
        if learn:
            self._schema.add_form(OTHER)
        return iter([batch])

    def _of_mappings(self, examples: Sequence[Any], y: Any, sample_weight: Any, learn: bool) -> Iterator[Batch]:
        for i, example in enumerate(examples):
            if not isinstance(example, Mapping):
                raise UsageError(
                    f"example {i}: {type(example).__name__} {short_repr(example)}; the others are dictionaries"
                )
        frame = self._rows(examples)
        if frame is not None:
            return self._of_table(self._table(frame), y, sample_weight, learn)
        self._require_labels(y, learn)
        batch, kinds = self._named(examples, learn)
        batch = self._labelled(batch, y, sample_weight, learn)
        self._schema.add_names(kinds)
        return iter([batch])

    def opened(self, given: Examples) -> Examples:
        """Return examples, those that are read by their columns as a Frame, in which `feature_names` finds names.

        Their columns have to be those of the learner; it is an error if there are columns only on one of both sides.
        """
        if frames.is_frame(given):
            frame = Frame(given, self._schema, dense=self._dense)
            names = [name for name, _ in frame.columns]
            shown = f"a DataFrame with the columns {schema.listed(names)}"
            numbers = not names or NUMBER in dict(frame.columns).values()
            if self._schema.form == MATRICES and not (numbers and names == _positions(len(names))):
                raise OtherForm(shown, MATRICES, "X.to_numpy(), if its columns have the same order")
            if self._schema.form == PLAIN:
                raise OtherForm(shown, PLAIN, "one of its columns")
            return frame.matrix() if self._schema.form == MATRICES and self._schema.width else frame
        if isinstance(given, (list, tuple)) and given and all(isinstance(item, Mapping) for item in given):
            return self._rows(given) or [self._dicts.as_learned(example) for example in given]
        column = self._schema.text_column
        if (
            column is not None
            and isinstance(given, (list, tuple))
            and (isinstance(given, Documents) or _are_plain(given))
        ):
            return Frame([{column: text} for text in given], self._schema)
        if (not self._schema and self._schema.form != PLAIN) or isinstance(given, (Batch, Documents, str, Frame)):
            return given
        table = self._table(given)
        return given if table is None else self._by_position(table, given)

    def _by_position(self, table: tables.TableConverter, given: Examples) -> Examples:
        """Return a matrix as a Frame with the columns of the learner, or as it is if these have numbers as names."""
        names = list(self._schema.columns)
        shape: tuple[int, ...] = tuple(getattr(given, "shape", ()))
        if not names:
            raise OtherForm("a matrix", PLAIN, "texts")
        numbers = all(kind in (NUMBER, DENSE) for kind in self._schema.columns.values())
        if isinstance(table, tables.DenseTable) and numbers and table.values.shape[1] == len(names):
            if names != _positions(len(names)):
                self._note_once(
                    f"the examples are an array, so its columns are taken for {schema.listed(names)}, in this order; "
                    "give a DataFrame, whose columns are found by their names"
                )
            return Frame(array_input.filled(table.values), self._schema)
        if numbers and names == _positions(len(names)) and shape[1:] == (len(names),):
            return given
        width = f" of {shape[1]} columns" if len(shape) == 2 else ""
        raise OtherForm(f"a matrix{width}", self._columns, "a DataFrame or dictionaries with these columns")

    def _rows(self, examples: Sequence[Mapping[Any, Any]]) -> Frame | None:
        """Return dictionaries as rows of the table learned from; None if there is none, or if they hold namespaces."""
        if not self._schema or any(isinstance(value, Mapping) for example in examples for value in example.values()):
            return None
        return Frame(examples, self._schema)

    def _table(self, given: Any) -> Any:
        of_sparse = self._schema.form == MATRICES and not self._schema.width
        widest = 0 if of_sparse else self._widest
        return tables.table_of(given, self._rule, self.hasher, self._schema, self._texts, widest)

    @property
    def _columns(self) -> str:
        return f"a table with the columns {schema.listed(list(self._schema.columns))}"

    def _named(self, examples: Sequence[Mapping[Any, Any]], learn: bool) -> tuple[Batch, Kinds]:
        """Return dictionaries that are no rows of a table as a batch, and the kinds of new names."""
        form, first = self._schema.form, next(filter(None, examples), {})
        shown = f"dictionaries with the keys {schema.listed([*map(str, first)])}" if form in schema.FORMS else ""
        if form == MATRICES and any(str(key).strip(" 0123456789") for key in first):
            raise OtherForm(shown, form, "a matrix, or dictionaries whose keys are the numbers of columns")
        if form == PLAIN and first and all(isinstance(value, str) for value in first.values()):
            raise OtherForm(shown, form, "the texts alone")
        if learn and first:
            self._schema.add_form(OTHER)
        return self._dicts.batch(examples, learn)

    def _plain(self, texts: Sequence[str], learn: bool) -> tables.TableConverter:
        """Return what converts plain texts; raise UsageError if the learner has learned from columns alone.

        If these are a single one of text, the texts are its cells.
        """
        column = self._schema.text_column
        if column is not None:
            table: tables.TableConverter = self._table(Frame([{column: text} for text in texts], self._schema))
            return table
        if any(text.strip() for text in texts):  # others are examples without features, which have no form
            if self._schema:
                raise OtherForm("plain text", self._columns, "a DataFrame or dictionaries with these columns")
            if self._schema.form == MATRICES:
                raise OtherForm("plain text", MATRICES, "a matrix")
            if learn:
                self._schema.add_form(PLAIN)
        self._text = next(iter(texts), "")
        return tables.TextTable(texts, self._rule, self._texts)

    def _lines(self, texts: Sequence[str], y: Any, learn: bool, of_one_text: bool) -> Batch:
        """Return texts as a batch: those with a bar are lines of VW text, and the others, if there are any, plain text.

        The lines of one text are VW text, those without a bar too, and an empty line is no example.
        """
        bars = ["|" in text or of_one_text for text in texts]
        lines = [_one_line(text) if bar else "|" for text, bar in zip(texts, bars, strict=True)]
        several = next((i for i, text in enumerate(texts) if "\n" in text and _lines_with_bar(text) > 1), None)
        if several is not None:
            self.notes.append(
                f"batch:{several + 1}: {short_repr(texts[several])} holds several lines with a bar and is read as one "
                "example; give each line as a text of its own if they are several"
            )
        try:
            batch = self._parsed("\n".join(lines), "batch", learn and y is None)
        except DataError as error:
            raise error if y is None else DataError(f"{error}; {PLAIN_TEXT}") from None
        if y is not None and not np.isnan(batch.label).all():
            line = int(batch.line[np.flatnonzero(~np.isnan(batch.label))[0]])
            raise UsageError(f"batch:{line}: the text has a label before its bar, and y has labels, too; {PLAIN_TEXT}")
        if learn and texts:
            self._schema.add_form(OTHER)
        if of_one_text:
            self._note_lines_without_bar(texts)
        if all(bars):
            self._note_bar(texts)
            return batch
        table = self._plain(["" if bar else text for text, bar in zip(texts, bars, strict=True)], learn)
        row = batch.line - 1
        of_lines, of_plain = np.flatnonzero(np.array(bars)[row]), np.flatnonzero(~np.array(bars))
        plain = self._labelled(table.batch(0, table.n, self._constant), None, None, learn)
        parts = [(batch, of_lines), (plain, of_plain)]
        order = np.argsort(np.concatenate([row[of_lines], of_plain]))
        self._note_two_kinds(texts, bars)
        return batch_ops.pick([(batch_ops.pick(parts, lines=True), order)], lines=True)

    def _note_bar(self, texts: Sequence[str]) -> None:
        """Add a note if texts with a bar are given to a learner that has learned from plain texts alone."""
        if self._schema.form == PLAIN and texts:
            self.notes.append(
                f"batch:1: {short_repr(texts[0])} has a bar, so it is VW text, `label | features`, and the learner has "
                f"learned from plain texts; {DOCUMENTS} if all are plain text"
            )

    def _note_lines_without_bar(self, lines: Sequence[str]) -> None:
        """Add a note about the first line of VW text without a bar, which has no features."""
        without_bar = next((i for i, line in enumerate(lines) if "|" not in line and line.strip()), None)
        if without_bar is not None:
            self.notes.append(
                f"batch:{without_bar + 1}: {short_repr(lines[without_bar])} has no bar and so no features; a line is "
                "`label | features`, or `| features`"
            )

    def _note_two_kinds(self, texts: Sequence[str], bars: Sequence[bool]) -> None:
        """Add a note if some texts are VW text and others, which are not empty, plain text."""
        plain = next((i for i, text in enumerate(texts) if text.strip() and not bars[i]), None)
        if plain is not None:
            self.notes.append(
                f"batch:{plain + 1}: {short_repr(texts[plain])} has no bar, so it is plain text, and "
                f"{short_repr(texts[bars.index(True)])} is VW text, `label | features`; {DOCUMENTS} if all are plain "
                "text"
            )

    def _dict_example(self, given: Mapping[Any, Any], learn: bool) -> tuple[Batch, Kinds]:
        frame = self._rows((given,))
        if frame is None:
            return self._named((given,), learn)
        table = self._table(frame)
        table.check()
        self._note_additional(frame)
        return table.batch(0, 1, self._constant), {}

    def _text_example(self, given: str, label: Any, learn: bool) -> Batch:
        if "|" not in given:
            return self._plain((given,), learn).batch(0, 1, self._constant)
        if _lines_with_bar(given) > 1:
            raise UsageError("the text holds several lines; many examples go to learn_many() and predict_many()")
        line = _one_line(given)
        batch = self._parsed(line, "example", learn and label is None)
        if learn:
            self._schema.add_form(OTHER)
        self._note_bar((line,))
        if label is not None and not np.isnan(batch.label).all():
            raise UsageError("the text has a label, and a label is given beside it; give one of them")
        return batch

    def _of_table(self, table: tables.TableConverter, y: Any, sample_weight: Any, learn: bool) -> Iterator[Batch]:
        """Return the rows of a table as batches after checking all of them."""
        self._require_labels(y, learn)
        table.check()
        self._schema.check_width(table.columns)
        if self._schema.form == MATRICES and table.n and self._schema.width and not table.columns:
            learned = f"arrays of {self._schema.width} columns"
            raise OtherForm("sparse matrices", learned, "an array, `X.toarray()` of a sparse matrix")
        if isinstance(table, tables.DenseTable):
            self._note_once(note_about_rows(self._config, table.values.shape[1]))
        if isinstance(table, (tables.SparseTable, tables.DenseTable)) and not table.columns:
            self._note_shift(table, learn)
        weight = None if sample_weight is None else weights_of(sample_weight, table.n)
        labels = self.labels.fields(y, table.n, learn)
        learn = learn and table.n > 0
        if isinstance(table, tables.FrameTable):
            self._note_additional(table.frame)
            if learn:
                self._schema.add_form(OTHER)
            if learn and not table.frame.keeps:
                self._schema.add_names({"": dict(table.frame.columns)})
            elif learn and not self._schema:
                frame, place = table.frame, "the DataFrame"
                notes = [*frame.rounded(), *self._schema.adopt(frame.columns, None, place, frame.first_cells())]
                self.notes += [f"{place}: {note}" for note in notes]
        elif learn and not isinstance(table, tables.TextTable):
            self._schema.add_form(MATRICES)
        return self._converted(table, labels, weight)

    def _note_additional(self, frame: Frame) -> None:
        """Add notes about columns that the learner does not know, or whose cells are not written as those learned."""
        new = [name for name in frame.additional if name not in self._noted]
        self._noted |= {*new}
        notes = [schema.left_out(new)] if new else []
        if self._schema.spellings:
            notes += self._schema.changed(frame.first_cells())
        self.notes += [f"the examples: {note}" for note in notes]

    def _note_shift(self, table: tables.SparseTable | tables.DenseTable, learn: bool) -> None:
        """Add a note if columns seem to count from 0 where those learned from count from 1, or the reverse."""
        core = self._core()
        if learn not in self._matrix_seen and core is not None:
            self._matrix_seen.add(learn)
            advice = "load_svmlight_file(..., zero_based=True) keeps the numbers that a file has"
            self._note_once(example_notes.shifted(core, table.first_columns(), self._rule, "the matrix", advice))

    def _note_once(self, note: str) -> None:
        if note and note not in self._noted:
            self._noted |= {note}
            self.notes.append(note)

    def _converted(
        self, table: tables.TableConverter, labels: dict[str, np.ndarray], weight: np.ndarray | None
    ) -> Iterator[Batch]:
        """Yield the rows of a table piece by piece, with `labels`, fields of a Batch, and weights, float32[n]."""
        for low, high in table.pieces():
            batch = table.batch(low, high, self._constant)
            if labels:
                lists = [labels.get(name, NO_LISTS) for name in ("label_start", "labels")]
                cut = batch_ops.cut_lists(lists[0], lists[1], low, high)
                batch = batch._replace(label=labels["label"][low:high], **cut)
            if weight is not None:
                batch = batch._replace(weight=weight[low:high])
            yield batch

    def _labelled(self, batch: Batch, y: Any, sample_weight: Any, learn: bool) -> Batch:
        """Return a batch with the labels and weights that are given beside it."""
        if sample_weight is not None:
            batch = batch._replace(weight=weights_of(sample_weight, batch.n))
        if y is None and batch.has_lists == self.labels.lists:
            return batch
        return batch._replace(**self.labels.fields(y, batch.n, learn))

    def _namespace_of_words(self, text: str | None = None) -> str | None:
        """Return the namespace, of those that are usual, in which most words of a text, or the last one, are found."""
        words = WORD.findall((self._text if text is None else text).partition("\n")[0])[:MOST_WORDS]
        core, shares = self._core(), {}
        for name in NAMESPACES if words else ():
            seed = self.hasher.namespace(name)
            indices = np.array([self.hasher.index(word, seed) for word in words], np.uint32)
            found = None if core is None else core.reduction.find(indices)
            shares[name] = 0.0 if found is None else float(found.mean())
        best = max(shares, key=lambda name: shares[name], default="")
        return best if shares and shares[best] > LEAST_SHARE else None

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
        self._text = text[:LONGEST_LINE]
        content = encoded(text)
        end = len(content) + 1
        buffer = np.frombuffer(bytearray(content + AFTER_TEXT), np.uint8)
        growing, self._names.growing = self._names.growing, self._names.growing and learn
        self._parser.lines = 0
        self._parser.learning = learn
        self._parser.width = self._schema.width
        try:
            batch, error, _ = self._parser.parse(buffer, end, name)
        finally:
            self._names.growing = growing
        if error is not None:
            raise error
        self.notes += self._parser.take_report()
        return batch

    def _check_kind(self, batch: Batch) -> None:
        """Check that a batch has lists of labels if and only if the learner learns them."""
        lists = self.labels.lists
        if batch.has_lists != lists and (batch.has_lists or not np.isnan(batch.label).all()):
            raise UsageError(
                'the examples of the batch have one label each, and this learner learns lists: read them by '
                'read_vw(..., labels="lists")' if lists else
                f"the examples of the batch have lists of labels, and this learner learns one label; {LEARN_LISTS}"
            )  # fmt: skip

    def _check_constant(self, batch: Batch) -> None:
        """Check that a batch has the constant feature if and only if the learner uses it."""
        if batch.n and bool(batch_ops.have_constant(batch)[0]) != self._constant:
            raise UsageError(
                f"the examples of the batch have {'no' if self._constant else 'a'} constant feature, and this learner "
                f"takes {'one' if self._constant else 'none'}: read them by read_vw(..., "
                f"noconstant={not self._constant})"
            )


def _positions(n: int) -> list[str]:
    """Return the names of the columns of a matrix."""
    return [str(j) for j in range(n)]


class OtherForm(UsageError):
    """Report examples whose features cannot be those from which the learner has learned; `fault` has no advice."""

    def __init__(self, given: str, learned: str, cure: str) -> None:
        self.fault = f"the examples are {given}, and the learner has learned from {learned}"
        super().__init__(f"{self.fault}; give {cure}")


def kind_of_labels(given: object, y: object, lists: bool) -> KindOfLabels:
    """Return of which kind the labels of examples are: those given beside them, or those in VW text.

    Without `lists`, they are not examined for lists.
    """
    if y is not None:
        shaped = isinstance(y, (list, tuple)) or len(getattr(y, "shape", ())) == 2
        values = y if shaped else array_input.flat("y", y)
        empty = isinstance(values, (list, tuple)) and all(is_list(one) and not len(one) for one in values)
        return KindOfLabels(are_names(values), lists and are_lists(values), silent=empty)
    if isinstance(given, Batch):
        return KindOfLabels(False, lists and given.has_lists, silent=given.has_lists and not len(given.labels))
    if isinstance(given, str):
        given = given.split("\n", MAX_LINES)
    if not isinstance(given, (list, tuple)):
        return KindOfLabels(False, False)
    detector = LabelDetector(read_on=True, only_names=True, lists=lists)
    for line in given[:MAX_LINES]:
        if isinstance(line, str) and "|" in line:
            detector.add(encoded(line))
    detector.end()
    return KindOfLabels.of(detector)


def written_by_program(given: Examples) -> Examples | None:
    """Return examples as objects in which `feature_names` finds names: None for a batch, and for each VW text."""
    if isinstance(given, Batch):
        return None
    if isinstance(given, str):
        given = given.removesuffix("\n").split("\n")
    if isinstance(given, Documents) or not isinstance(given, (list, tuple)):
        return given.tocsr() if hasattr(given, "tocsr") else given
    return [None if isinstance(item, str) and "|" in item else item for item in given]


def collected(given: Any) -> Any:
    """Return what an iterator yields as a list, so that code of the program does not run while it is learned from."""
    return list(given) if isinstance(given, (Iterator, ValuesView)) else given


def collected_examples(given: Any) -> Any:
    """Return the examples of an iterator, or of a column of texts, lists or dictionaries, as a list."""
    return array_input.items_of(collected(given))


def count(given: Examples) -> int | None:
    """Return the number of examples if it is known before they are read."""
    if isinstance(given, Batch):
        return given.n
    if isinstance(given, (list, tuple)):
        return len(given)
    rows = next(iter(getattr(given, "shape", None) or ()), None)
    return rows if isinstance(rows, int) else None


def listed(given: object) -> Sequence[Any]:
    """Return examples that a program has given one by one, or as the lines of a text, as a sequence."""
    if isinstance(given, str):
        return given.removesuffix("\n").split("\n") if given.strip() else ()
    if isinstance(given, (list, tuple)):
        return given
    if isinstance(given, Iterable) and not isinstance(given, (set, frozenset)):  # these have no order
        return list(given)
    raise UsageError(f"examples are {type(given).__name__} {short_repr(given)}; {KINDS}")


def _are_plain(examples: Sequence[Any]) -> bool:
    """Return whether examples are texts without a bar."""
    return bool(examples) and all(isinstance(one, str) and "|" not in one for one in examples)


def _texts(examples: Sequence[Any]) -> list[str]:
    """Return texts, empty text for a missing one; raise UsageError if something else is among them."""
    texts = list(examples)
    for i, text in enumerate(texts):
        if not isinstance(text, str):
            if not array_input.is_missing(text):
                raise UsageError(f"example {i}: {type(text).__name__} {short_repr(text)}; {KINDS}")
            texts[i] = ""
    return texts


def _one_line(text: str) -> str:
    """Return a text with blanks in place of newlines, which would end an example."""
    return text.rstrip("\r\n").replace("\r\n", " ").replace("\n", " ")


def _lines_with_bar(text: str) -> int:
    return sum("|" in line for line in text.split("\n"))
