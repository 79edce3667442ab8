"""Decide which columns of a CSV file, or keys of JSON lines, are features, and which one is the label.

The options choose for the first table that a learner learns from. Later tables follow its schema: columns are found by
their names in any order, a missing one is an error, and others are left out.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ..data.feature_names import encoded
from ..data.schema import CATEGORY, KINDS, NUMBER, TEXT, Schema, left_out, listed, rounded
from ..errors import UsageError
from ..system.printable import short_repr
from ..text import reader
from .records import one_line

FORMATS = {  # formats for which the options of columns have a meaning
    "label_column": ("csv", "jsonl"), "label_columns": ("csv", "jsonl"), "label_separator": ("csv", "jsonl"),
    "columns": ("csv", "jsonl"), "ignore_column": ("csv", "jsonl"),
    "column_kind": ("csv", "jsonl"), "header": ("csv",), "quoting": ("csv",),
    "label_file": ("npy",),
}  # fmt: skip
ONE, ZERO = (b"1", b"1.0", b"true"), (b"0", b"0.0", b"false", b"")  # cells of --label_columns
# a list as Python writes it into a cell: texts or, between brackets, numbers, with commas or as NumPy with blanks
TEXT_ITEM = rb"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
NUMBER_ITEM = rb"[0-9]+(?![0-9.])"
BETWEEN = rb"(?:\s*,\s*|\s+)"
WRITTEN_LIST = re.compile(
    rb"\[\s*(?:(?:%b|%b)(?:%b(?:%b|%b))*\s*)?\]|\(\s*(?:%b)(?:%b(?:%b))*\s*,?\s*\)"
    % (TEXT_ITEM, NUMBER_ITEM, BETWEEN, TEXT_ITEM, NUMBER_ITEM, TEXT_ITEM, BETWEEN, TEXT_ITEM),
    re.DOTALL,
)
ITEM = re.compile(rb"%b|%b" % (TEXT_ITEM, NUMBER_ITEM), re.DOTALL)
CALLED = re.compile(rb"(?:array|frozenset|set|list|tuple|c)\((.*?)(?:,\s*dtype=[^,]*)?\)", re.DOTALL)  # and c of R
CLOSING = {b"[": b"]", b"(": b")", b"{": b"}"}
ESCAPE = re.compile(rb"\\(['\\])")
USUAL_NAMES = ("labels", "class", "category", "target", "y", "intent", "tag", "tags", "topic")  # of columns of labels
FEWEST_ROWS, SHARE_OF_OWN = 5, 0.95  # rows, and the share of them with a label of its own, that are warned of
FEWEST_WITH_FEW = 10  # the same where another column of few values may hold labels, but its name does not say so
FEWEST_WITHOUT, WORDS_OF_TEXT = 20, 4  # the same where no other column can hold labels, and words of a label then


class Columns:
    """Hold what the options say about columns, and the schema of the learner.

    If the schema has no columns, those of the first table are added.
    """

    def __init__(self, options: reader.ReaderOptions, schema: Schema) -> None:
        self.schema = schema
        self.header = names("--header", options.header)
        self.label = options.label_column
        self.labels = self._labels = names("--label_columns", options.label_columns)
        self.separator = (options.label_separator or schema.separator).encode()
        if self.labels and (self.label is not None or options.label_separator):
            other = "label_separator" if options.label_separator else "label_column"
            raise UsageError(f"--label_columns: each of them is a label, so --{other} has no effect; leave it out")
        if self.separator.strip(b" ") and (b"\n" in self.separator or self.separator.isalnum()):
            raise UsageError(f"--label_separator {options.label_separator!r}: give punctuation or a blank, such as ';'")
        self._only = names("--columns", options.columns)
        self._ignored = names("--ignore_column", options.ignore_column)
        self._kinds = kinds(options.column_kind)
        self.detected: set[str] = set()  # have numbers in the first rows; `rounded` has not named them
        self.named = bool(self._only or self._ignored or self._kinds or self.labels)  # so that a header is expected
        for name in (*self._kinds, *self._only, *self.labels):
            if name in self._ignored:
                raise UsageError(f"--ignore_column {name!r}: another option says how it is read; leave one of them out")

    def find_labels(self, known: Iterable[str]) -> bool:
        """Take the columns of labels that the model keeps if a table has any and no option names others.

        Return whether columns of labels are known, although the table may lack them.
        """
        if not self._labels and self.label is None:
            self.labels = self.schema.labels if {*known} & {*self.schema.labels} else []
        return bool(self.labels or (self.schema.labels and self.label is None))

    def keep_labels(self) -> None:
        """Let the model keep how labels are written, for later tables."""
        self.schema.separator = self.separator.decode()
        self.schema.labels = self._labels or self.schema.labels

    def check_options(self, known: Sequence[str], label: str | None, table: str) -> None:
        """Raise UsageError if an option names a column that a table does not have, or that is otherwise in the model.

        `known` are the names of all columns, `label` is that of the label, and `table` names the table in messages.
        """
        of_table, learned = set(known), self.schema.columns
        for option, given in (
            ("label_columns", self.labels),
            ("columns", self._only),
            ("column_kind", [*self._kinds]),
            ("ignore_column", self._ignored),
        ):
            for name in given:
                if option == "columns" and name in self.labels:
                    raise UsageError(
                        f"--columns {name!r}: --label_columns says that it is a label; leave one of them out"
                    )
                if name == label and option not in ("ignore_column", "label_columns"):
                    raise UsageError(
                        f"--{option} {name!r}: this is the column of the label and no feature; leave it out"
                    )
                if name not in of_table:
                    raise UsageError(
                        f"--{option} {name!r}: {table} has no such column; its columns are {listed(known)}"
                    )
                if learned and (name in learned) != (option not in ("ignore_column", "label_columns")):
                    how = "from" if name in learned else "without"
                    raise UsageError(
                        f"--{option} {name!r}: the model has learned {how} this column; leave the option out"
                    )
                if learned and self._kinds.get(name, learned.get(name)) != learned.get(name):
                    raise UsageError(
                        f"--column_kind {f'{name}:{self._kinds[name]}'!r}: this column has kind "
                        f"{learned[name]} in the model; leave the option out, or train a new model"
                    )
        for name in learned if self._only else ():
            if name not in self._only:
                raise UsageError(f"--columns lacks {name!r}, from which the model has learned; leave the option out")

    def features(self, known: Sequence[str], label: str | None) -> list[str]:
        left_out, only = {label, *self.labels, *self._ignored}, set(self._only or known)
        return [name for name in known if name not in left_out and name in only]

    def adopt(
        self, found: Mapping[str, str], label: str | None, file: str, first: Mapping[str, Sequence[Any]]
    ) -> list[str]:
        """Take the columns of the first table, of the kinds that were found where no option gives one.

        Return notes about the `first` cells of columns.
        """
        self.detected = {name for name, kind in found.items() if kind == NUMBER and name not in self._kinds}
        columns = [(name, self._kinds.get(name, kind)) for name, kind in found.items()]
        first = {name: first[name] for name, kind in found.items() if kind != NUMBER and name not in self._kinds}
        return self.schema.adopt(columns, label, file, first, self.labels, self.separator.decode())

    def label_warning(self, header: Sequence[str], label: int, rows: int, cells: Sequence[set[bytes]]) -> str:
        """Return a warning about the first column as that of the label if nearly every row has its own, or nothing.

        `cells` are the different cells of each column in so many rows, without missing ones.
        """
        own = cells[label]
        if rows < FEWEST_ROWS or len(own) < SHARE_OF_OWN * rows:
            return ""
        others = [k for k, name in enumerate(header) if name and k != label]
        bits = [header[k] for k in others if cells[k] and {*map(bytes.lower, cells[k])} <= {*ONE, *ZERO}]
        few = [header[k] for k in others if 1 < len(cells[k]) <= rows / 2]
        few.sort(key=lambda name: name.lower() not in USUAL_NAMES)
        numbers = sorted(map(int, own)) if all(map(bytes.isdigit, own)) and max(map(len, own)) < 18 else [0]
        if len(bits) > 1:
            given = as_typed(bits)[0]
            cure = f"if the columns of 0 and 1 are the labels, give --label_columns {given}"
        elif few and (rows >= FEWEST_WITH_FEW or few[0].lower() in USUAL_NAMES):
            cure = f"name that of the labels, as in --label_column {as_typed(few[:1])[0]}"
        elif rows >= FEWEST_WITHOUT and (
            numbers[-1] - numbers[0] == len(own) - 1
            or sum(len(cell.split()) for cell in own) > WORDS_OF_TEXT * len(own)
        ):
            cure = "name another column by --label_column, or give --label_column 0 if there are no labels"
        else:
            return ""
        return (
            f"the label is the first column, {short_repr(header[label])}, because none is named label, and nearly "
            f"every one of the first {rows} rows has a label of its own; {cure}"
        )

    def rounded(self, name: str, whole: int) -> str:
        """Return a note about a whole number in a column of numbers, once a column, or nothing if it is not rounded."""
        if name not in self.detected or int(np.float32(whole)) == whole:
            return ""
        self.detected.remove(name)
        return rounded(name, whole, f"give --column_kind {f'{name}:{CATEGORY}'!r}")

    def left_out(self, known: Iterable[str]) -> str:
        """Return a warning about columns that the model has not learned from and no option leaves out, or nothing."""
        if self._only:
            return ""
        ignored = {*self._ignored, *self.labels}
        others = [name for name in self.schema.additional(known) if name not in ignored]
        return f"{left_out(others)}; --ignore_column says so without this warning" if others else ""

    def about(self, label: str | None) -> str:
        by_kind = {kind: [name for name, k in self.schema.columns.items() if k == kind] for kind in KINDS}
        parts = [
            f"labels: {listed(self.labels)}"
            if self.labels
            else f"label: {listed([label] if label is not None else [])}",
            f"numbers: {listed(by_kind[NUMBER])}",
            f"text: {listed(by_kind[TEXT])}",
            *([f"categories: {listed(by_kind[CATEGORY])}"] if by_kind[CATEGORY] else []),
        ]
        return "; ".join(parts)

    def label_of(self, cell: bytes) -> bytes:
        """Return the label in a cell as text, or a list of labels with commas between them."""
        found = items_of(cell.strip())
        if found is not None:
            parts = found
        elif self.separator:
            parts = cell.split(self.separator)
        else:
            return one_line(cell)
        labels = [one_line(part).replace(b",", b";") for part in parts]
        return b",".join(label for label in labels if label) or (b"," if found is not None else b"")

    def labels_in(self, cells: Sequence[bytes]) -> bytes | None:
        """Return the labels whose cells, in the order of `labels`, are 1; None if one is neither 1 nor 0."""
        if not all(map(is_bit, cells)):
            return None
        of_one = (encoded(name) for name, cell in zip(self.labels, cells, strict=True) if cell.strip().lower() in ONE)
        chosen = list(of_one)
        return b",".join(one_line(name).replace(b",", b";") for name in chosen) or b","

    def as_list(self, found: bytes | None) -> bytes:
        """Return the labels of an example of --label_columns as a list of names, whichever of them it has."""
        if found and b"," in found[1:]:
            return found
        first = found if found and found != b"," else one_line(encoded(self.labels[0])).replace(b",", b";")
        return first + b","


def items_of(cell: bytes) -> list[bytes] | None:
    """Return the items of a list as a program writes it into a cell, or None if it is none.

    Items without quotes are those of a list only if there is a comma: `[deleted]` is a name.
    """
    if cell[-1:] not in CLOSING.values():
        return None
    called = CALLED.fullmatch(cell)
    text = called[1].strip() if called is not None else cell
    if called is not None and text[:1] not in CLOSING:
        text = b"(" + text + b")"
    if CLOSING.get(text[:1]) != text[-1:]:
        return None
    found = WRITTEN_LIST.fullmatch(b"[" + text[1:-1] + b"]" if text[:1] == b"{" else text)
    if found is not None:
        return [_unquoted(item) for item in ITEM.findall(found[0])]
    several = b"," in text and text[-1:] not in text[1:-1]
    return [_unquoted(item.strip()) for item in text[1:-1].split(b",")] if several else None


def _unquoted(item: bytes) -> bytes:
    """Return an item of a list without its quotes and escapes, which are those of JSON or Python."""
    if len(item) < 2 or item[:1] not in (b"'", b'"') or item[-1:] != item[:1]:
        return item
    if item[:1] == b'"' and b"\\" in item:
        with contextlib.suppress(ValueError):
            return encoded(json.loads(item))
    return ESCAPE.sub(rb"\1", item[1:-1])


def is_bit(cell: bytes) -> bool:
    """Return whether a cell is one of --label_columns."""
    return cell.strip().lower() in (*ONE, *ZERO)


def names(flag: str, given: Sequence[str]) -> list[str]:
    """Return the names in the values of an option, each of which is written like a row of CSV."""
    found: dict[str, None] = {}
    for value in given:
        try:
            rows = [*csv.reader(io.StringIO(value, newline=""), skipinitialspace=True, strict=True)]
        except csv.Error:
            rows = []
        if len(rows) != 1:
            raise UsageError(
                f"{flag} {value!r}: give names that are separated by commas, in one line; write a name that contains a "
                "comma within double quotes"
            )
        for cell in rows[0]:
            name = cell.strip()
            if not name:
                raise UsageError(f"{flag} {value!r}: there is an empty name; separate names by single commas")
            if name in found:
                raise UsageError(f"{flag} {value!r}: {name!r} is given twice; give each name once")
            found[name] = None
    return [*found]


def kinds(given: Sequence[str]) -> dict[str, str]:
    """Return the kinds of columns in the values of --column_kind; raise UsageError if one is malformed."""
    found: dict[str, str] = {}
    for pair in names("--column_kind", given):
        name, _, kind = pair.rpartition(":")
        if not name or kind not in KINDS:
            raise UsageError(f"--column_kind {pair!r}: give NAME:KIND, where KIND is one of {', '.join(KINDS)}")
        if found.setdefault(name, kind) != kind:
            raise UsageError(f"--column_kind: {name!r} is given as {found[name]} and as {kind}; give one kind")
    return found


def as_typed(given: str | Sequence[str] | Mapping[str, str]) -> tuple[str, ...]:
    """Return names, or kinds by names, that a program has given as the values of an option; text is one already."""
    if isinstance(given, str):
        return (given,) if given else ()
    if isinstance(given, Mapping):
        given = [f"{name}:{kind}" for name, kind in given.items()]
    row = io.StringIO()
    csv.writer(row).writerow(map(str, given))
    return (row.getvalue().removesuffix("\r\n"),) if given else ()


def text_of(name: bytes) -> str:
    return name.decode("utf-8", "surrogateescape")
