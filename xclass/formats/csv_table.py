"""Read CSV and TSV files: a header with the names of the columns, then a row for each example.

A numeric column is a feature of the default namespace, named as the column. A text column is a namespace, named as the
column, and its words are features with the value 1. An empty cell is a missing feature. One column holds the label.

The delimiter is the one of comma, tab and semicolon that occurs most often in the header. A column is numeric if the
rows at the beginning of the first file (TYPED_BYTES) have only numbers in it, and at least one.

Source    RFC 4180, and the treatment of quotes of Python's module `csv`, which reads the rows.
Cost      About 20 ns per byte, on one thread.
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
from ..kernels import intrinsics
from ..kernels.jit import jit
from ..system.printable import short_repr
from ..text import parser
from ..text.malformed import CELL, CELLS, RECORD
from ..text.numbers import NEWLINE
from ..text.text_format import OtherFormat, WrittenFeature
from . import line_scanner, records

TYPED_BYTES = 1 << 16  # bytes at the beginning of the data whose rows decide whether a column is numeric
DELIMITERS = b",\t;"
QUOTE = 34
MARK = b"\xef\xbb\xbf"
NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
MOST_SHOWN = 8  # columns that the banner names


# -- kernels


@jit
def end_of_rows(data: UInt8s, end: int, delimiter: int) -> int:
    """Return where the last complete row of `data[:end]` ends, or 0; a newline within quotes does not end a row.

    Parameters
    ----------
    data : uint8[...], beginning with a row
    delimiter : byte between the cells
    """
    text = intrinsics.pointer(data)
    quoted, begins = False, True
    last = 0
    p = 0
    while p < end:
        c = text[p]
        if quoted:
            if c == QUOTE:
                if p + 1 < end and text[p + 1] == QUOTE:
                    p += 1
                else:
                    quoted = False
        elif c == QUOTE and begins:
            quoted = True
        elif c == NEWLINE:
            last = p + 1
        begins = not quoted and (c == NEWLINE or c == delimiter)
        p += 1
    return last


# -- Python


def delimiter_of(header: bytes) -> bytes:
    """Return the delimiter that occurs most often in the header outside quotes, or nothing if there is none."""
    bare = b"".join(header.split(b'"')[::2])
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


def rows_of(text: bytes, delimiter: bytes) -> Iterator[tuple[int, list[str] | None]]:
    """Yield the rows of a text, each with the number of its first line, from 1; bytes are the characters of Latin-1.

    A row that cannot be read is None.
    """
    lines = io.StringIO(text.decode("latin-1"), newline="\n")
    reader = csv.reader(lines, delimiter=delimiter.decode() or ",")
    while True:
        line = reader.line_num + 1
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error:
            yield line, None
            continue
        yield line, row


class CsvTable(OtherFormat):
    """Read CSV and TSV files.

    Parameters
    ----------
    label_column : name or number of the column of the label, see the option
    """

    name = "csv"
    parallel = False
    unfinished = "the row that begins here has a quote that is not closed; close it, or double a quote within quotes"

    def __init__(self, label_column: str | None = None) -> None:
        super().__init__()
        self._label_column = label_column
        self.delimiter = b""
        self.header: list[bytes] = []
        self.label = -1  # column of the label, -1 if there is none
        self.numeric: list[bool] = []

    @property
    def labelled(self) -> str:  # type: ignore[override]  # other formats have a constant
        if self.label < 0:
            return "no column holds labels; name one by --label_column"
        return f"all cells of the column {_shown(self.header[self.label])} are empty; --label_column names another one"

    def begin(self, text: bytes, ended: bool, file: str) -> tuple[int, int] | None:
        if not self.header and not ended and len(text) < TYPED_BYTES:
            return None
        mark = len(MARK) if text.startswith(MARK) else 0
        delimiter = self.delimiter or delimiter_of(text[mark:].partition(b"\n")[0])
        size = mark + self._end_of_first_row(text[mark:] + b"\n", delimiter)
        with large_cells():
            _, row = next(rows_of(text[mark:size], delimiter), (1, []))
        if row is None:
            raise DataError(f"{file}:1:1: the header cannot be read; the first line of a CSV file names the columns")
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
        return min(size, len(text)), text[:size].count(b"\n")

    def _end_of_first_row(self, text: bytes, delimiter: bytes) -> int:
        """Return where the first row ends in a text with a final newline."""
        end = -1
        while True:
            end = text.find(b"\n", end + 1)
            if end < 0:
                return len(text)
            if self._complete(text[: end + 1], delimiter):
                return end + 1

    def _complete(self, text: bytes, delimiter: bytes) -> bool:
        """Return whether a text with a final newline ends with a complete row."""
        return end_of_rows(np.frombuffer(text, np.uint8), len(text), ord(delimiter or b",")) == len(text)

    def _check_header(self, header: list[bytes], file: str) -> None:
        """Raise DataError if a name of a column is missing, a number, or given twice."""
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
            if name in header[: column - 1]:
                raise DataError(f"{where} has the name {_shown(name)}, as one before has; give each column its own")
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
            rows = rows[: self.end_of_lines(np.frombuffer(rows, np.uint8), 0, len(rows)) if rows else 0]
        seen, other = [False] * len(self.header), [False] * len(self.header)
        with large_cells():
            for _, row in rows_of(rows, self.delimiter):
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
        if not (text[:end] == QUOTE).any():
            return super().end_of_lines(text, 0, end)
        return end_of_rows(text, end, ord(self.delimiter or b","))

    def labels_of(self, text: bytes) -> Iterator[bytes]:
        for _, row in rows_of(text, self.delimiter):
            if row:
                cell = row[self.label] if 0 <= self.label < len(row) else ""
                yield records.one_word(cell.encode("latin-1"))

    def features(self, line: bytes) -> Iterator[WrittenFeature]:
        with large_cells():
            _, row = next(rows_of(records.source_of(line), self.delimiter))
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
        letters = [self.header[k][0] for k in texts]
        texts.sort(key=lambda k: letters.index(self.header[k][0]))  # the columns of a group are neighbours
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
        self._names = b"\n".join(table.header) + b"\n"
        sizes = np.array([len(name) for name in table.header], np.int64)
        self._name_end = np.cumsum(sizes + 1) - 1
        self._name_begin = self._name_end - sizes

    def scan(self, text: UInt8s, end: int) -> parser.Scan:
        """Parse the complete rows of `text[:end]`."""
        table = self._table
        width = len(table.header)
        block = text[:end].tobytes()
        examples = records.Examples()
        rows: list[list[str]] = []
        with large_cells():
            read = list(rows_of(block, table.delimiter))
            text_lines = block.split(b"\n")
            ends = [*(line - 1 for line, _ in read[1:]), len(text_lines)]
            for (line, row), last in zip(read, ends, strict=False):  # a block may have no rows
                if row is not None and len(row) == width:
                    label = row[table.label] if table.label >= 0 else ""
                    source = text_lines[line - 1] if last == line else b" ".join(text_lines[line - 1 : last])
                    examples.add(line, records.one_word(label.encode("latin-1")), source=source)
                    rows.append(row)
                elif row != []:
                    if row is None:
                        problem = records.Problem(RECORD, line, 1, block.split(b"\n")[line - 1], True)
                    else:
                        place = _place(block, line, len(row) - 1, table.delimiter)
                        problem = records.Problem(CELLS, *place, row[-1].encode("latin-1"), True)
                    examples.problems[len(rows)] = problem
                    examples.add(line)
                    rows.append([""] * width)
        cells = list(itertools.chain.from_iterable(rows))
        content = "\n".join(cells).encode("latin-1")
        size = np.fromiter(map(len, cells), np.int64, len(cells))
        stop = np.cumsum(size + 1) - 1 + len(self._names)
        items = self._items(self._names + content + b"\n", stop - size, stop, examples, block)
        lines = block.count(b"\n")
        return self.scan_of(
            examples, items, self._names + content, lines, end,
            lambda i: _place(block, examples.line[i], table.label, table.delimiter)[1],
        )  # fmt: skip

    def _items(
        self, text: bytes, begin: np.ndarray, end: np.ndarray, examples: records.Examples, block: bytes
    ) -> records.Items:
        """Return the items of the cells `text[begin:end]`, int64[n * columns], and note cells that are not numbers."""
        width = len(self._table.header)
        begin = begin.reshape(-1, width)[:, self._columns]
        end = end.reshape(-1, width)[:, self._columns]
        full = end > begin
        value = np.full(begin.shape, np.nan, np.float32)
        count = self._numbers
        read, blank = np.empty((len(begin), count), np.float32), np.empty((len(begin), count), bool)
        padded = np.frombuffer(text + bytes(parser.PADDING), np.uint8)
        records.read_values(padded, begin[:, :count], end[:, :count], read, blank)
        value[:, :count] = read
        full[:, :count] &= ~blank
        wrong = full[:, :count] & np.isnan(read)
        for i in np.flatnonzero(wrong.any(axis=1)).tolist():
            k = int(np.argmax(wrong[i]))
            line, column = _place(block, examples.line[i], int(self._columns[k]), self._table.delimiter)
            examples.problems.setdefault(i, records.Problem(CELL, line, column, text[begin[i, k] : end[i, k]]))
            full[i, k:] = False
        begin[:, :count], end[:, :count] = (
            self._name_begin[self._columns[:count]],
            self._name_end[self._columns[:count]],
        )
        first = np.concatenate(([0], np.cumsum(full.sum(axis=1))))
        spaces = np.broadcast_to(self._spaces, full.shape)
        return records.Items(first, spaces[full], begin[full], end[full], value[full])


def _place(block: bytes, line: int, cell: int, delimiter: bytes) -> tuple[int, int]:
    """Return line and column at which a cell of the row that begins at `line` of a block begins, from 1."""
    begin = 0
    for _ in range(line - 1):
        begin = block.index(b"\n", begin) + 1
    p = row = begin
    for _ in range(cell):
        if block[p : p + 1] == b'"':
            p += 1
            while p < len(block) and (block[p] != QUOTE or block[p + 1 : p + 2] == b'"'):
                p += 2 if block[p] == QUOTE else 1
        p = block.find(delimiter, p) + 1
    return line + block.count(b"\n", row, p), p - (block.rfind(b"\n", 0, p) + 1) + 1


def _shown(name: bytes) -> str:
    """Return the name of a column as a message shows it."""
    return short_repr(name.decode("utf-8", "replace"))
