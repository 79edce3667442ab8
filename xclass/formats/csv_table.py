"""Read CSV and TSV files: a header with the names of the columns, then a row for each example.

A numeric column is a feature of the default namespace, named as the column. A text column is a namespace, named as the
column, and its words are features with the value 1. An empty cell is a missing feature. One column holds the label.

The delimiter is the one of comma, tab and semicolon that occurs most often in the header. A column is numeric if the
rows at the beginning of the first file (TYPED_BYTES) have only numbers in it, and at least one.

Source    RFC 4180; quotes are treated as by Python's module `csv` with `strict=True`.
Cost      About 10 ns per byte, on one thread.
"""

from __future__ import annotations

import contextlib
import csv
import io
import itertools
import re
from collections.abc import Iterator

import numpy as np

from ..array_types import UInt8s
from ..errors import DataError, UsageError
from ..system.printable import short_repr
from ..text import parser
from ..text.malformed import CELL
from ..text.text_format import OtherFormat, WrittenFeature
from . import csv_rows, line_scanner, records
from .csv_rows import NO_QUOTE, QUOTE, QUOTED, START

TYPED_BYTES = 1 << 16  # bytes at the beginning of the data whose rows decide whether a column is numeric
DELIMITERS = b",\t;"
MARK = b"\xef\xbb\xbf"
NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
MOST_SHOWN = 8  # columns that the banner names


def delimiter_of(header: bytes, quoted: bool = True) -> bytes:
    """Return the delimiter that occurs most often in the header outside quotes, or nothing if there is none."""
    bare = b"".join(header.split(b'"')[::2]) if quoted else header
    counts = [bare.count(c) for c in DELIMITERS]
    most = counts.index(max(counts))
    return DELIMITERS[most : most + 1] if counts[most] else b""


@contextlib.contextmanager
def large_cells() -> Iterator[None]:
    """Let `csv` read cells of any size in the `with` block."""
    before = csv.field_size_limit(1 << 62)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def rows_of(text: bytes, delimiter: bytes, quoted: bool = True) -> Iterator[list[str] | None]:
    """Yield the rows of a text, None for one that cannot be read; bytes are the characters of Latin-1.

    Parameters
    ----------
    quoted : whether quotes around cells have a meaning
    """
    lines = io.StringIO(text.decode("latin-1"), newline="\n")
    reader = csv.reader(
        lines, delimiter=delimiter.decode() or ",", quoting=csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE, strict=True
    )
    while True:
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error:
            yield None
            continue
        yield row


class CsvTable(OtherFormat):
    """Read CSV and TSV files.

    Parameters
    ----------
    label_column : name or number of the column of the label, see the option
    quoted : whether quotes around cells have a meaning
    """

    name = "csv"
    parallel = False
    unfinished = "the row that begins here has a quote that is not closed; close it, or double a quote within quotes"

    def __init__(self, label_column: str | None = None, quoted: bool = True) -> None:
        super().__init__()
        self.quoted, self.quote = quoted, QUOTE if quoted else NO_QUOTE
        self._state = START  # at the end of the text that was last searched for complete rows
        self._label_column = label_column
        self.delimiter = b""
        self.header: list[bytes] = []
        self.label = -1  # column of the label, -1 if there is none
        self.numeric: list[bool] = []

    @property
    def delimiter_byte(self) -> int:
        """Return the byte between cells."""
        return ord(self.delimiter or b",")

    @property
    def labelled(self) -> str:  # type: ignore[override]  # other formats have a constant
        if self.label < 0:
            return "no column holds labels; name one by --label_column"
        return f"all cells of the column {_shown(self.header[self.label])} are empty; --label_column names another one"

    def begin(self, text: bytes, ended: bool, file: str) -> tuple[int, int] | None:
        if not self.header and not ended and len(text) < TYPED_BYTES:
            return None
        mark = len(MARK) if text.startswith(MARK) else 0
        delimiter = self.delimiter or delimiter_of(text[mark:].partition(b"\n")[0], self.quoted)
        whole = np.frombuffer(bytearray(text), np.uint8)  # kernels are compiled once more for read-only arrays
        size, _ = csv_rows.end_of_rows(whole, mark, len(text), START, ord(delimiter or b","), self.quote, True)
        if not size and not ended:
            return None
        size = size or len(text)
        with large_cells():
            row = next(rows_of(text[mark:size], delimiter, self.quoted), [])
        if row is None:
            raise DataError(
                f"{file}:1:1: the quotes of the header do not match; write a quote within quotes twice, or give "
                "--quoting none if quotes are ordinary characters of the file"
            )
        header = [cell.strip().encode("latin-1") for cell in row]
        if not self.header:
            self._check_header(header, file)
            self.label = self._find_label(header, file)
            self.delimiter, self.header = delimiter, header
            self._find_types(text, size, ended)
        elif header != self.header:
            pairs = itertools.zip_longest(self.header, header, fillvalue=b"")
            column, (wanted, got) = next((i, pair) for i, pair in enumerate(pairs, 1) if pair[0] != pair[1])
            raise DataError(
                f"{file}:1:1: column {column} is {_shown(got)}, and {_shown(wanted)} in the first file; give files "
                "with the same columns"
            )
        return size, text[:size].count(b"\n")

    def _check_header(self, header: list[bytes], file: str) -> None:
        """Raise DataError if a name of a column is missing, a number, or given twice."""
        known: set[bytes] = set()
        for column, name in enumerate(header, 1):
            where = f"{file}:1:1: column {column} of the header"
            if not name:
                raise DataError(f"{where} has no name; the first line of a CSV file names the columns")
            try:
                float(name)
            except ValueError:
                pass
            else:
                raise DataError(f"{where} is the number {_shown(name)}; the first line of a CSV file names the columns")
            if name in known:
                raise DataError(f"{where} has the name {_shown(name)}, as one before has; give each column its own")
            known.add(name)
        if not header:
            raise DataError(f"{file}:1:1: there is no header; the first line of a CSV file names the columns")

    def _find_label(self, header: list[bytes], file: str) -> int:
        """Return the column of the label, from 0, or -1 if there is none."""
        chosen = self._label_column
        if chosen is None:
            return header.index(b"label") if b"label" in header else 0
        name = chosen.encode("utf-8", "surrogateescape")
        if name in header:
            return header.index(name)
        if chosen.isdecimal() and int(chosen) <= len(header):
            return int(chosen) - 1
        raise UsageError(
            f"--label_column {chosen}: {file} has no such column; its {len(header)} columns are {self._list(header)}"
        )

    def _find_types(self, text: bytes, begin: int, ended: bool) -> None:
        """Find out from the rows of `text[begin:TYPED_BYTES]` which columns are numeric, and say so in `about`."""
        rows = text[begin : max(begin, TYPED_BYTES)]
        if not ended or len(text) > TYPED_BYTES:
            rows = rows[: self.end_of_lines(np.frombuffer(bytearray(rows), np.uint8), 0, len(rows)) if rows else 0]
        seen, other = [False] * len(self.header), [False] * len(self.header)
        with large_cells():
            for row in rows_of(rows, self.delimiter, self.quoted):
                for column, cell in enumerate((row or [])[: len(self.header)]):
                    if cell.strip() and not other[column]:
                        seen[column] = True
                        other[column] = not NUMBER.fullmatch(cell.strip())
        self.numeric = [seen[k] and not other[k] and k != self.label for k in range(len(self.header))]
        numeric = [name for name, is_numeric in zip(self.header, self.numeric, strict=True) if is_numeric]
        texts = [name for k, name in enumerate(self.header) if not self.numeric[k] and k != self.label]
        delimiter_name = {b",": "comma", b"\t": "tab", b";": "semicolon", b"": "none"}[self.delimiter]
        label = _shown(self.header[self.label]) if self.label >= 0 else "none"
        self.about.append(
            f"Delimiter: {delimiter_name}; label: {label}; numbers: {self._list(numeric)}; text: {self._list(texts)}"
        )

    @staticmethod
    def _list(names: list[bytes]) -> str:
        """Return the first names of columns as a list."""
        more = f" and {len(names) - MOST_SHOWN} more" if len(names) > MOST_SHOWN else ""
        return (", ".join(map(_shown, names[:MOST_SHOWN])) or "none") + more

    def scanner(self, of: parser.Parser) -> CsvScanner:
        return CsvScanner(of, self)

    def end_of_lines(self, text: UInt8s, begin: int, end: int) -> int:
        state, last = self._state if begin else START, 0
        if state != QUOTED and not (self.quoted and (text[begin:end] == QUOTE).any()):
            last = super().end_of_lines(text, begin, end)
            if last:
                begin, state = last, START
        last_of_rest, self._state = csv_rows.end_of_rows(
            text, begin, end, state, self.delimiter_byte, self.quote, False
        )
        return last_of_rest or last

    def labels_of(self, text: bytes) -> Iterator[bytes]:
        for row in rows_of(text, self.delimiter, self.quoted):
            if row:
                cell = row[self.label] if 0 <= self.label < len(row) else ""
                yield records.one_word(cell.encode("latin-1"))

    def features(self, line: bytes) -> Iterator[WrittenFeature]:
        with large_cells():
            row = next(rows_of(records.source_of(line), self.delimiter, self.quoted))
        assert row is not None  # the row was read before
        cells = [cell.encode("latin-1") for cell in row]
        numbers, texts = self.order()
        for k in numbers:
            cell = cells[k].strip()
            if cell:
                value = line_scanner.number_at(cell, 0)
                if not NUMBER.fullmatch(row[k].strip()) or not np.isfinite(value):
                    return  # `--on_bad_line vw` ignores the rest of the row
                yield WrittenFeature(self.header[k], value)
        for k in texts:
            for word in cells[k].split():
                yield WrittenFeature(word, np.float32(1), namespace=self.header[k])

    def order(self) -> tuple[list[int], list[int]]:
        """Return the columns with numbers and those with texts in the order of their features."""
        texts = [k for k, numeric in enumerate(self.numeric) if not numeric and k != self.label]
        group: dict[int, int] = {}  # first byte of a name -> the first such column
        texts.sort(key=lambda k: group.setdefault(self.header[k][0], k))  # the columns of a group are neighbours
        return [k for k, numeric in enumerate(self.numeric) if numeric], texts


class CsvScanner(records.RecordScanner):
    """Parse blocks of rows for a `CsvTable`."""

    def __init__(self, of: parser.Parser, table: CsvTable) -> None:
        super().__init__(of.rules)
        self._table = table
        order, texts = table.order()
        self._columns = np.array([*order, *texts], np.int64)
        self._numbers = len(order)
        spaces = [0] * len(order) + [self.namespaces.number(table.header[k]) for k in texts]
        self._spaces = np.array(spaces, np.int32)
        self._names = np.frombuffer(b"\n".join(table.header) + b"\n", np.uint8)
        sizes = np.array([len(name) for name in table.header], np.int64)
        self._name_end = np.cumsum(sizes + 1) - 1
        self._name_begin = self._name_end - sizes

    def scan(self, text: UInt8s, end: int) -> parser.Scan:
        """Parse the complete rows of `text[:end]`."""
        table = self._table
        block = text[:end].tobytes()
        buffer = np.zeros(end + len(self._names) + parser.PADDING, np.uint8)
        buffer[:end] = text[:end]
        rows = csv_rows.rows_of(buffer, end, table.delimiter_byte, table.quote, len(table.header))
        buffer[end : end + len(self._names)] = self._names
        content = buffer.tobytes()
        examples = self._examples(rows, block, content)
        items = self._items(rows, buffer, content, block, examples)
        good = np.cumsum(rows.problem == 0) - 1

        def column_of_label(i: int) -> int:
            return _place_of_cell(block, rows, i, int(rows.cell_begin[good[i], table.label]))[1]

        return self.scan_of(examples, items, content, rows.lines, end, column_of_label)

    def _examples(self, rows: csv_rows.Rows, block: bytes, content: bytes) -> records.Examples:
        """Return the examples of rows, with the problems of those that cannot be read."""
        examples = records.Examples()
        n = len(rows.line)
        examples.line = rows.line.tolist()
        ranges = zip(rows.begin.tolist(), rows.end.tolist(), strict=True)
        examples.source = [block[begin:end].replace(b"\n", b" ") for begin, end in ranges]
        examples.label, examples.tag, examples.weight = [b""] * n, [b""] * n, [1.0] * n
        good, label = np.flatnonzero(rows.problem == 0).tolist(), self._table.label
        if label >= 0:
            begins, ends = rows.cell_begin[:, label].tolist(), rows.cell_end[:, label].tolist()
            for i, begin, end in zip(good, begins, ends, strict=True):
                examples.label[i] = records.one_word(content[begin:end])
        for i in np.flatnonzero(rows.problem).tolist():
            place = _place(block, rows, i, int(rows.where[i]))
            seen = content[rows.seen_begin[i] : rows.seen_end[i]]
            examples.problems[i] = records.Problem(int(rows.problem[i]), *place, seen, True)
        return examples

    def _items(
        self, rows: csv_rows.Rows, buffer: UInt8s, content: bytes, block: bytes, examples: records.Examples
    ) -> records.Items:
        """Return the items of the cells, and note cells that are not numbers."""
        good = np.flatnonzero(rows.problem == 0)
        begin, end = rows.cell_begin[:, self._columns], rows.cell_end[:, self._columns]
        full = end > begin
        value = np.full(begin.shape, np.nan, np.float32)
        count = self._numbers
        read, blank = np.empty((len(begin), count), np.float32), np.empty((len(begin), count), bool)
        records.read_values(buffer, begin[:, :count], end[:, :count], read, blank)
        value[:, :count] = read
        full[:, :count] &= ~blank
        wrong = full[:, :count] & np.isnan(read)
        for row in np.flatnonzero(wrong.any(axis=1)).tolist():
            k, i = int(np.argmax(wrong[row])), int(good[row])
            line, column = _place_of_cell(block, rows, i, int(begin[row, k]))
            examples.problems.setdefault(i, records.Problem(CELL, line, column, content[begin[row, k] : end[row, k]]))
            full[row, k:] = False
        begin[:, :count] = len(block) + self._name_begin[self._columns[:count]]
        end[:, :count] = len(block) + self._name_end[self._columns[:count]]
        first = np.zeros(len(examples.line) + 1, np.int64)
        first[good + 1] = full.sum(axis=1)
        spaces = np.broadcast_to(self._spaces, full.shape)
        return records.Items(np.cumsum(first), spaces[full], begin[full], end[full], value[full])


def _place(block: bytes, rows: csv_rows.Rows, row: int, position: int) -> tuple[int, int]:
    """Return line and column, from 1, of a position in a row of a block."""
    begin = int(rows.begin[row])
    line = int(rows.line[row]) + block.count(b"\n", begin, position)
    return line, position - max(block.rfind(b"\n", begin, position), begin - 1)


def _place_of_cell(block: bytes, rows: csv_rows.Rows, row: int, begin: int) -> tuple[int, int]:
    """Return line and column, from 1, of a cell, at its quote if it has one; its content begins at `begin`."""
    return _place(block, rows, row, begin - (block[begin - 1] == QUOTE))


def _shown(name: bytes) -> str:
    """Return the name of a column as a message shows it."""
    return short_repr(name.decode("utf-8", "replace"))
