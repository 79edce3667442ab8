"""Keep what the columns of a learner's tables mean: their names, their kinds, and the name of the label's column.

A table is a CSV file, a file of JSON lines whose keys are columns, or a DataFrame. The first table that a learner
learns from decides; later tables are read by the same schema, so that a column means the same whatever its type is
there.

    number      a feature of the default namespace, named as the column
    text        a namespace, named as the column, whose features are the words
    category    a namespace, named as the column; the whole cell is one feature, with `_` in place of white space
    dense       columns of the dense block: a number, or in a DataFrame a list of numbers. For a reduction that does not
                take the block, a namespace whose features are the positions in the list

Features that are given by name, in dictionaries and in `features` of JSON lines, are no columns: names may come and go.
For at most MOST_NAMES names, the schema keeps whether the first values that the learner saw were numbers or text, and
later values are read as of this kind, see `converted`. Nor have matrices and plain texts columns with names: if a
learner has learned from one of them alone, the schema keeps this, so that a table is refused instead of read as
features that the learner has never seen.

A model file contains the schema as JSON, in an array of bytes, because the names of many columns do not fit into the
header. It may come from a stranger, so `from_bytes` limits its size and checks each entry.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ..errors import OTHER_MODEL, DataError, ModelError
from ..options.words import NUMERAL
from ..system import bounded_json
from ..system.bounded_json import List, OneOf, OrNull, Record, Text, Whole
from ..system.printable import short_repr
from . import array_input, cells
from .feature_names import encoded

Kinds: TypeAlias = dict[str, dict[str, str]]  # namespace -> name -> kind

NUMBER, TEXT, CATEGORY = KINDS = ("number", "text", "category")
MATRICES, PLAIN = FORMS = ("matrices, whose columns have numbers", "plain texts")  # of examples without columns
DENSE = "dense"  # kind of a column
OTHER = "examples of several forms"
MOST_COLUMNS = 1 << 20  # of the dense block
LARGEST = 1 << 24  # bytes of the columns of a schema in a model file; with names, twice as many
MOST_NAMES = 4096  # names whose kinds are kept
SHAPE = Record(
    {"columns": Record(others=OneOf((*KINDS, DENSE))), "label": OrNull(Text())},
    {
        "names": Record(others=Record(others=OneOf((NUMBER, TEXT)))),
        "form": OneOf(FORMS),
        "labels": List(Text()),
        "separator": Text(),
        "spellings": Record(others=Text()),
        "digits": Record(others=Whole()),
        "width": Whole(1, MOST_COLUMNS),
        "classes": OneOf((NUMBER,)),
    },
)
UNNAMED = re.compile(r"Unnamed: [0-9]+")  # what pandas calls a column without a name, such as an index that it wrote
MOST_SHOWN = 8  # columns that a message names
# texts that stand for a missing number, as in pandas
MISSING_WORDS = frozenset(
    [b"#N/A", b"#N/A N/A", b"#NA", b"-1.#IND", b"-1.#QNAN", b"-NaN", b"-nan", b"1.#IND", b"1.#QNAN", b"<NA>", b"N/A",
     b"NA", b"NULL", b"NaN", b"None", b"n/a", b"nan", b"null"]
)  # fmt: skip
LONGEST = 128  # characters of a name whose kind is kept, so that a model file can contain all
LARGEST_WHOLE = 2.0**53
EXACT = 2.0**24  # whole numbers up to this one are exact in float32
WHOLE = re.compile(r"([+-]?[0-9]+)\.0*")


class Column(NamedTuple):
    name: str
    kind: str  # NUMBER, TEXT, CATEGORY or DENSE


class Schema:
    """Hold the columns of the tables from which a learner has learned.

    Attributes
    ----------
    columns : name -> kind, in the order of the first table; empty until the learner has learned from a table
    label : name of the column of the label; None if labels were given beside the table
    labels : names of the columns of 0 and 1, each of which is a label, see --label_columns
    separator : text between the labels of a list in a cell, see --label_separator
    names : namespace -> name -> kind, NUMBER or TEXT, of features that are given by name
    room : number of names that can still be added
    form : MATRICES or PLAIN if the learner has learned from nothing else, empty before it has learned, or OTHER
    spellings : name of a column or feature -> one of its first texts that has leading zeros or is a truth value
    digits : such a name -> fewest digits of the whole numbers among these texts, if there are any
    width : number of columns of the dense block, 0 before --dense or the first block has said it
    classes : NUMBER if a program gave the names of the classes as numbers, which it gets back, else empty
    """

    def __init__(
        self,
        columns: Iterable[tuple[str, str]] = (),
        label: str | None = None,
        names: Kinds | None = None,
        form: str = "",
    ) -> None:
        self.columns: dict[str, str] = dict(columns)
        self.label, self.separator = label, ""
        self.labels: list[str] = []
        self.names: Kinds = {}
        self.room, self.form, self.width, self.classes = MOST_NAMES, form, 0, ""
        self.spellings: dict[str, str] = {}
        self.digits: dict[str, int] = {}
        self._told: set[str] = set()  # names of which a warning says that values have another kind
        self.add_names(names or {})

    def __bool__(self) -> bool:
        return bool(self.columns)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schema) and self.to_bytes() == other.to_bytes()

    __hash__ = None  # type: ignore[assignment]  # a schema changes

    def copy(self, fixed: bool = False) -> Schema:
        """Return a copy, which does not change when the learner goes on; no names are added to it if it is `fixed`."""
        new = Schema.from_record(self.record())
        new.form = self.form
        new.room *= not fixed
        return new

    def replace(self, other: Schema) -> None:
        """Take what another schema has, but keep the width and the kind of classes, which no reader finds."""
        kept = {"width": other.width or self.width, "classes": other.classes or self.classes}
        self.__dict__.update({**other.copy().__dict__, **kept})

    @property
    def is_known(self) -> bool:
        """Return whether there is something to store in a model."""
        return bool(self.columns or self.names or self.form in FORMS or self.width or self.classes or self.separator)

    @property
    def text_column(self) -> str | None:
        """Return the name of the column if it is the only one, and text, so that a text can be read as this column."""
        names = [name for name, kind in self.columns.items() if kind == TEXT]
        return names[0] if len(names) == len(self.columns) == 1 else None

    def check_width(self, columns: int, file: str = "") -> None:
        """Raise DataError if the dense block of the examples, which may be those of a file, has other columns."""
        if columns and self.width and columns != self.width:
            place = file and f"{file}: "
            raise DataError(
                f"{place}the examples are rows of {columns} columns, and the model takes rows of {self.width}, from "
                f"which it has learned or which --dense names; give rows of {self.width} columns"
            )

    def check_form(self, form: str, file: str) -> None:
        """Raise DataError if examples of this form, which a file holds, cannot have the features learned from."""
        if not self._may_have(form):
            learned = self.learned_from
            cure = "CSV or JSON lines" if self.columns else "LIBSVM" if learned == MATRICES else "fastText"
            raise DataError(
                f"{file}: its examples are {form}, and the model has learned from {learned}; give {cure}, or VW text "
                "with the names of these features"
            )

    def _may_have(self, form: str) -> bool:
        """Return whether examples of a form may have the features learned from."""
        if form not in FORMS or not self.columns:
            return form not in FORMS or self.form in (form, OTHER, "")
        return form == MATRICES and all(map(str.isdecimal, self.columns))

    @property
    def learned_from(self) -> str:
        return f"the {columns_named([*self.columns])}" if self.columns else self.form

    def add_form(self, form: str) -> None:
        """Keep that the learner has learned from examples of a form, or from models whose schemas have this form."""
        self.form = form if self.form in ("", form) else OTHER

    def add_names(self, names: Kinds) -> list[str]:
        """Keep the kinds of new names while there is room; return the names that have another kind already."""
        other = []
        for space, kinds in names.items():
            for name, kind in kinds.items():
                if self.room and name not in self.names.get(space, ()) and is_kept(space) and is_kept(name):
                    self.names.setdefault(space, {})[name] = kind
                    self.room -= 1
                elif self.names.get(space, {}).get(name, kind) != kind:
                    other.append(name)
        return other

    def adopt(
        self, columns: Iterable[tuple[str, str]], label: str | None, place: str,
        first: Mapping[str, Sequence[Any]] = MappingProxyType({}), labels: Sequence[str] = (), separator: str = "",
    ) -> list[str]:  # fmt: skip
        """Take the columns of the first table, which `place` names in messages; return notes about `first` cells.

        Raise DataError if a model file cannot contain these names, or if the columns cannot be the features of the
        matrices or plain texts from which the learner has learned.
        """
        new = Schema(columns, label, self.names, OTHER)
        new.labels, new.separator = [*labels], separator
        numbers = all(map(str.isdecimal, new.columns)) and NUMBER in new.columns.values()
        if self.form == PLAIN or (self.form == MATRICES and not numbers):
            cure = "fastText or VW text" if self.form == PLAIN else "LIBSVM or VW text, whose features have numbers"
            raise DataError(
                f"{place}: it has the {columns_named([*new.columns])}, and the model has learned from {self.form}; "
                f"give {cure}"
            )
        try:
            Schema._read(new.to_bytes(), LARGEST, bounded_json.MOST_ITEMS - MOST_NAMES)
        except bounded_json.Malformed as error:
            raise DataError(
                f"{place}: a model cannot hold the names of its {len(new.columns)} columns: {error.reason}; change the "
                "names, or leave out columns"
            ) from None
        self.replace(new)
        return self.note_first({name: found for name, found in first.items() if name in self.columns}, "column")

    def note_first(self, first: Mapping[str, Sequence[Any]], what: str) -> list[str]:
        """Return notes about the texts among the first values of columns or features, and keep how they are written."""
        texts = {name: [one for one in found if isinstance(one, str)] for name, found in first.items()}
        for name, found in texts.items():
            spelling, digits = cells.spelling_of(found)
            if is_kept(name) and len(self.spellings) < MOST_NAMES and 0 < len(spelling) <= LONGEST:
                self.spellings[name] = spelling
                if digits:
                    self.digits[name] = digits
        places = {f"the {what} {short_repr(name)}": found for name, found in texts.items()}
        return [note for place, found in places.items() if (note := cells.note_about_numbers(place, found))]

    def changed(self, first: Mapping[str, Sequence[Any]]) -> list[str]:
        """Return notes about cells of another table that are not written as those learned from, once a column."""
        notes = []
        for name in self.spellings:
            if name not in self._told and (note := self._note_about_spelling("column", name, first.get(name, ()))):
                self._told.add(name)
                notes.append(note)
        return notes

    def read(self, name: str, value: Any, kind: str, learning: bool) -> tuple[Any, str]:
        """Return a value in the kind of its name, and a warning, once for a name, if that changes what is learned."""
        new = converted(value, kind)
        if not isinstance(value, bool) and name in self.spellings and name not in self._told and new is not value:
            self._told.add(name)
            return new, self._note_about_spelling("feature", name, [value])
        if name in self._told or (not isinstance(new, str) if kind == NUMBER else new is value or not learning):
            return new, ""
        self._told.add(name)
        kinds = ("numbers", "the name together with the text is another feature")
        if kind == TEXT:
            kinds = ("text", f"it is read as the text {short_repr(new)}")
        return new, f"the feature {short_repr(name)} has {kinds[0]} as values, and here {short_repr(value)}; {kinds[1]}"

    def _note_about_spelling(self, what: str, name: str, found: Sequence[Any]) -> str:
        place, digits = f"the {what} {short_repr(name)}", self.digits.get(name, 0)
        return cells.note_about_spelling(place, found, self.spellings[name], digits)

    def positions(self, names: Sequence[str], place: str, cure: str = "") -> list[int]:
        """Return the position of each column among the names of another table's columns.

        Raise DataError if one is missing; `place` names the table, and `cure` says what else may help.
        """
        position = {name: i for i, name in enumerate(names)}
        missing = [name for name in self.columns if name not in position]
        if missing:
            raise DataError(
                f"{place} has no {columns_named(missing)}, from which the model has learned; its columns are "
                f"{listed(names)}: give all columns of the model, by their names and in any order{cure}"
            )
        return [position[name] for name in self.columns]

    def in_order(self) -> tuple[list[str], list[str]]:
        """Return the columns of numbers, and the others, of which those of a group are neighbours."""
        numbers = [name for name, kind in self.columns.items() if kind == NUMBER]
        others = [name for name, kind in self.columns.items() if kind != NUMBER]
        first: dict[bytes, int] = {}  # first byte of a name -> the first such column
        order = {name: first.setdefault(encoded(name)[:1], k) for k, name in enumerate(others)}
        return numbers, sorted(others, key=lambda name: order[name])

    def additional(self, names: Iterable[str]) -> list[str]:
        """Return those of the names that are neither columns of the schema nor those of labels."""
        own = {*self.columns, *self.labels, self.label}
        return [name for name in names if name not in own]

    def difference(self, other: Schema) -> str:
        """Return how another schema differs, as `the column 'store' is text in {0} and number in {1}`, or nothing.

        A model that has learned from VW text differs from none.
        """
        if not (self._may_have(other.form) if self.columns or not other.columns else other._may_have(self.form)):
            return f"{{0}} has learned from {self.learned_from}, and {{1}} from {other.learned_from}"
        if not (self.columns and other.columns):
            return ""
        for name in (*self.columns, *(name for name in other.columns if name not in self.columns)):
            kinds = self.columns.get(name), other.columns.get(name)
            if kinds[0] != kinds[1]:
                first, second = (f"a column of kind {kind}" if kind else "missing" for kind in kinds)
                return f"{short_repr(name)} is {first} in {{0}} and {second} in {{1}}"
        return ""

    def record(self) -> dict[str, Any]:
        others = {
            "names": dict(sorted(self.names.items())),  # sorted: batches mix them
            "form": self.form if self.form in FORMS else "",
            "width": self.width,
            "classes": self.classes,
            "spellings": self.spellings,
            "digits": self.digits,
            "labels": self.labels,
            "separator": self.separator,
        }
        known = {name: value for name, value in others.items() if value}
        return {"columns": self.columns, "label": self.label, **known}

    def to_bytes(self) -> bytes:
        return json.dumps(self.record(), separators=(",", ":")).encode()

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> Schema:
        """Return a schema from an object of JSON whose shape was checked."""
        schema = cls(record["columns"].items(), record["label"], record.get("names"), record.get("form", ""))
        schema.width, schema.classes = record.get("width", 0), record.get("classes", "")
        schema.spellings, schema.digits = dict(record.get("spellings", {})), dict(record.get("digits", {}))
        schema.labels, schema.separator = record.get("labels", []), record.get("separator", "")
        return schema

    @classmethod
    def from_bytes(cls, data: bytes) -> Schema:
        """Return a schema from untrusted bytes; raise ModelError if they are none."""
        try:
            return cls._read(data, 2 * LARGEST, bounded_json.MOST_ITEMS)
        except bounded_json.Malformed as error:
            raise ModelError(f"the schema of its columns is damaged: {error.reason}; {OTHER_MODEL}") from None

    @classmethod
    def _read(cls, data: bytes, most: int, most_items: int) -> Schema:
        """Return a schema from at most so many bytes and values; raise Malformed if they are none."""
        if len(data) > most:
            raise bounded_json.Malformed(f"it takes {len(data)} bytes; at most {most} are allowed")
        record = bounded_json.parse(data, SHAPE, most_items)
        known, label = cls.from_record(record), record["label"]
        if not known.is_known or "" in known.columns or label == "" or label in known.columns:
            raise bounded_json.Malformed(
                f"it has no columns, one without a name, or one named as the label, {short_repr(label)}"
            )
        return known


def left_out(names: Sequence[str]) -> str:
    verb = "are" if len(names) > 1 else "is"
    return f"the model has not learned from {columns_named(names)}, which {verb} left out"


def columns_named(names: Sequence[str]) -> str:
    """Return the word `column`, in the plural for several names, and the first of the names."""
    return f"column{'s' * (len(names) > 1)} {listed(names)}"


def listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_SHOWN} more" if len(names) > MOST_SHOWN else ""
    return (", ".join(map(short_repr, names[:MOST_SHOWN])) or "none") + more


def number_in(cell: str) -> float | None:
    """Return the number that a text in a column of numbers writes, NaN if it is missing, None if it is none."""
    word = cell.strip()
    if not word or encoded(word) in MISSING_WORDS:
        return math.nan
    return float(word) if NUMERAL.fullmatch(word) else None


def is_identifier(cell: str) -> bool:
    """Return whether a number is one that a column of numbers would not keep: with leading zeros, or above 2^53."""
    digits = cell.lstrip("+-")
    return len(digits) > 1 and digits.isdecimal() and (digits[0] == "0" or int(digits[:17]) > LARGEST_WHOLE)


def rounded(name: str, whole: int, cure: str) -> str:
    """Return the note about a column of numbers with a whole number that float32 does not hold."""
    return (
        f"the column {short_repr(name)} has whole numbers that are rounded, {whole} to {int(np.float32(whole))}; "
        f"if they are identifiers, {cure}"
    )


def written(value: Any) -> str:
    """Return a value as it is written in a column of text or of categories: 3 and 3.0 are `3`, True is `True`."""
    if hasattr(value, "item"):
        value = value.item()  # of NumPy
    if isinstance(value, float) and value.is_integer() and abs(value) < LARGEST_WHOLE:
        value = int(value)
    return str(value)


def is_kept(name: str) -> bool:
    """Return whether a model file can contain a name: it is not long, and is text without halves of surrogate pairs."""
    return len(name) <= LONGEST and (name.isascii() or not any("\ud800" <= c <= "\udfff" for c in name))


def kind_of(value: Any) -> str:
    """Return the kind of a value of a name, or nothing if it is a missing one."""
    is_text = isinstance(value, str)
    number = number_in(value) if is_text else array_input.number(value)
    if number is None:
        return TEXT if is_text else ""
    return "" if math.isnan(number) else TEXT if is_text else NUMBER


def converted(value: Any, kind: str) -> Any:
    """Return a value of a name in the kind that the name has, or as it is if it cannot be converted.

    If the kind is TEXT, a number is a text as it is written; if it is NUMBER, a text that is a number is read as one.
    """
    if kind == TEXT:
        return written(value) if kind_of(value) == NUMBER else value
    number = number_in(value) if isinstance(value, str) else None
    return value if number is None else number


def category(cell: str) -> str:
    """Return the name of the feature of a cell of categories; `3.0` is `3`, as a column with missing numbers has it."""
    name = "_".join(cell.split())
    whole = WHOLE.fullmatch(name)
    return whole[1] if whole else name
