"""Decide which columns of a CSV file, or keys of JSON lines, are features, and which one is the label.

The options choose for the first table that a learner learns from. Later tables follow its schema: columns are found by
their names in any order, a missing one is an error, and others are left out.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from ..data.schema import CATEGORY, KINDS, NUMBER, TEXT, Schema, left_out, listed, rounded
from ..errors import UsageError
from ..text import reader

FORMATS = {  # formats for which the options of columns have a meaning
    "label_column": ("csv", "jsonl"), "columns": ("csv", "jsonl"), "ignore_column": ("csv", "jsonl"),
    "column_kind": ("csv", "jsonl"), "header": ("csv",), "quoting": ("csv",),
    "label_file": ("npy",),
}  # fmt: skip


class Columns:
    """Hold what the options say about columns, and the schema of the learner.

    If the schema has no columns, those of the first table are added.
    """

    def __init__(self, options: reader.Options, schema: Schema) -> None:
        self.schema = schema
        self.header = names("--header", options.header)
        self.label = options.label_column
        self._only = names("--columns", options.columns)
        self._ignored = names("--ignore_column", options.ignore_column)
        self._kinds = kinds(options.column_kind)
        self.detected: set[str] = set()  # have numbers in the first rows; `rounded` has not named them
        self.named = bool(self._only or self._ignored or self._kinds)  # so that a header is expected
        for name in (*self._kinds, *self._only):
            if name in self._ignored:
                raise UsageError(f"--ignore_column {name!r}: another option says how it is read; leave one of them out")

    def check_options(self, known: Sequence[str], label: str | None, table: str) -> None:
        """Raise UsageError if an option names a column that a table does not have, or that is otherwise in the model.

        `known` are the names of all columns, `label` is that of the label, and `table` names the table in messages.
        """
        of_table, learned = set(known), self.schema.columns
        for option, given in (
            ("columns", self._only),
            ("column_kind", [*self._kinds]),
            ("ignore_column", self._ignored),
        ):
            for name in given:
                if name == label and option != "ignore_column":
                    raise UsageError(
                        f"--{option} {name!r}: this is the column of the label and no feature; leave it out"
                    )
                if name not in of_table:
                    raise UsageError(
                        f"--{option} {name!r}: {table} has no such column; its columns are {listed(known)}"
                    )
                if learned and (name in learned) != (option != "ignore_column"):
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
        left_out, only = {label, *self._ignored}, set(self._only or known)
        return [name for name in known if name not in left_out and name in only]

    def adopt(
        self, found: Mapping[str, str], label: str | None, file: str, first: Mapping[str, Sequence[str]]
    ) -> list[str]:
        """Take the columns of the first table, of the kinds that were found where no option gives one.

        Return notes about the `first` cells of columns.
        """
        self.detected = {name for name, kind in found.items() if kind == NUMBER and name not in self._kinds}
        columns = [(name, self._kinds.get(name, kind)) for name, kind in found.items()]
        first = {name: first[name] for name, kind in found.items() if kind != NUMBER and name not in self._kinds}
        return self.schema.adopt(columns, label, file, first)

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
        ignored = set(self._ignored)
        others = [name for name in self.schema.additional(known) if name not in ignored]
        return f"{left_out(others)}; --ignore_column says so without this warning" if others else ""

    def about(self, label: str | None) -> str:
        by_kind = {kind: [name for name, k in self.schema.columns.items() if k == kind] for kind in KINDS}
        parts = [
            f"label: {listed([label]) if label is not None else 'none'}",
            f"numbers: {listed(by_kind[NUMBER])}",
            f"text: {listed(by_kind[TEXT])}",
            *([f"categories: {listed(by_kind[CATEGORY])}"] if by_kind[CATEGORY] else []),
        ]
        return "; ".join(parts)


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


def as_row(given: str | Sequence[str] | Mapping[str, str]) -> tuple[str, ...]:
    """Return names, or kinds by names, that a program has given as the values of an option."""
    if isinstance(given, Mapping):
        given = [f"{name}:{kind}" for name, kind in given.items()]
    row = io.StringIO()
    csv.writer(row).writerow([given] if isinstance(given, str) else [str(name) for name in given])
    return (row.getvalue().removesuffix("\r\n"),) if given else ()


def text_of(name: bytes) -> str:
    return name.decode("utf-8", "surrogateescape")
