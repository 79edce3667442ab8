"""Read CSV and TSV files: a header with the names of the columns, then a row for each example.

A numeric column is a feature of the default namespace, named as the column. A text column is a namespace, named as the
column, and its words are features with the value 1. An empty cell is a missing feature. One column holds the label.

The delimiter is the one of comma, tab, semicolon and bar that occurs most often in the header. A column is numeric if
the rows at the beginning of the first file (TYPED_BYTES) have only numbers in it, and at least one.

Source    RFC 4180; quotes are treated as by Python's module `csv` with `strict=True`.
Cost      About 10 ns per byte, on one thread.
"""

from __future__ import annotations

import csv
import io
import itertools
import re
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ..array_types import Float32s, Int64s, UInt8s
from ..data import cells as cells_of_tables
from ..data import schema
from ..data.array_input import LARGEST
from ..data.feature_names import encoded
from ..data.schema import CATEGORY, MISSING_WORDS, NUMBER, TEXT, UNNAMED, Schema, listed, number_in
from ..errors import DataError, UsageError
from ..kernels import jit
from ..options.words import NUMERAL
from ..system.printable import short_repr
from ..text import parser, reader
from ..text.malformed import BLANK_QUOTE, CELL, ENTRY, INNER_RETURN, SENTENCES
from ..text.text_format import OtherFormat, WrittenFeature
from . import columns, csv_rows, records
from .columns import CLOSING, Columns, is_bit
from .csv_rows import NO_QUOTE, QUOTE, QUOTED, START

TYPED_BYTES = 1 << 16  # bytes at the beginning of the data whose rows decide whether a column is numeric
DELIMITERS = b",\t;|"
MARK = b"\xef\xbb\xbf"
NOT_WHOLE = np.isin(np.arange(256), list(b".eE"))  # whether a number with this byte is not written as a whole one
NUMBERED = re.compile(r"[0-9]{1,9}")  # the number of a column
SEPARATOR = re.compile(rb"sep=([^\w\"\r\n\x80-\xff])")  # first line in which Excel and others name the delimiter
DELIMITER_NAMES = {b",": "comma", b"\t": "tab", b";": "semicolon", b"|": "bar", b"": "none"}
COMPILED_BYTES = 1 << 18  # from which on it takes less time to load compiled kernels than to go without
MANY_LINES = 10  # of a row, which may be rows between two quotes that are no quoting


def delimiter_of(header: bytes, quoted: bool = True) -> bytes:
    """Return the delimiter that occurs most often in the header outside quotes, or nothing if there is none."""
    bare = b"".join(header.split(b'"')[::2]) if quoted else header
    counts = [bare.count(c) for c in DELIMITERS]
    most = counts.index(max(counts))
    return DELIMITERS[most : most + 1] if counts[most] else b""


def delimiter_between(row: bytes, cells: int) -> bytes:
    """Return the delimiter that splits a row into a number of cells, or else the one that occurs most often."""
    fitting = (bytes([c]) for c in DELIMITERS if row.count(c) == cells - 1)
    return next(fitting, None) or delimiter_of(row)


class Layout(NamedTuple):
    """Say where the columns of the schema are in the rows of a file."""

    width: int  # number of cells of a row
    label: int  # position of the label, -1 if there is none
    labels: list[int]  # positions of the columns of --label_columns
    numbers: list[int]  # positions of the columns of numbers
    others: list[int]  # positions of the other columns; those of a group are neighbours
    features: list[str]  # names of all of these, in this order


class CsvTable(OtherFormat):
    """Read CSV and TSV files.

    If the schema has no columns, those of the first file are added. `layout` and `header` are those of the file that is
    read; `header` lacks the end of its line, and is empty if the file has none.
    """

    name = "csv"
    form = ""  # which the columns decide, see `Schema.adopt`
    parallel = False
    unfinished = "the row that begins here has a quote that is not closed; close it, or double a quote within quotes"

    def __init__(self, options: reader.ReaderOptions, schema: Schema) -> None:
        super().__init__()
        self.quoted = options.quoting != "none"
        self.quote = QUOTE if self.quoted else NO_QUOTE
        self._state = START  # at the end of the text that was last searched for complete rows
        self.columns = Columns(options, schema)
        self.schema = schema
        self.delimiter = b""
        self.quotes_noted = False  # whether a note says that rows may be between quotes
        self.label_name: str | None = None
        self.layout = Layout(0, -1, [], [], [], [])
        self.first_layout: Layout | None = None  # that of the first file, in which the text of batches is
        self.header = csv_rows.NO_HEADER
        self.file = ""
        self._top = 1  # line of the header of the file that is read

    @property
    def delimiter_byte(self) -> int:
        return ord(self.delimiter or b",")

    @property
    def labelled(self) -> str:  # type: ignore[override]  # other formats have a constant
        if self.label_name is None:
            return "no column holds labels; name one by --label_column"
        return f"all cells of the column {short_repr(self.label_name)} are empty; --label_column names another one"

    def begin(self, text: bytes, ended: bool, file: str) -> tuple[int, int] | None:
        if not self.schema and not ended and len(text) < TYPED_BYTES:
            return None
        if len(text) > COMPILED_BYTES:  # in a command that looks at labels, nothing is compiled yet
            jit.activate(hide_scipy=jit.in_command)
        self.file = file
        mark = len(MARK) if text.startswith(MARK) else 0
        first = text[mark:].partition(b"\n")[0]
        named = SEPARATOR.fullmatch(first.rstrip(b"\r"))
        if named:
            if self.delimiter not in (b"", named[1]):
                raise DataError(
                    f"{file}:1:1: the line names the delimiter {short_repr(named[1].decode())}, and that of the first "
                    f"file is {short_repr(self.delimiter.decode())}; give files with the same delimiter"
                )
            mark = min(mark + len(first) + 1, len(text))
            first = text[mark:].partition(b"\n")[0]
        self._top, size = 1 + bool(named), mark
        header = self.columns.header
        delimiter = self.delimiter or (
            named[1] if named else
            b"\t" if ".tsv" in file.lower() and b"\t" in first
            else delimiter_between(first, len(header)) if header else delimiter_of(first, self.quoted)
        )  # fmt: skip
        if not header:
            whole = np.frombuffer(bytearray(text), np.uint8)  # kernels are compiled once more for read-only arrays
            size, _ = csv_rows.end_of_rows(whole, mark, len(text), START, ord(delimiter or b","), self.quote, True)
            if not size and not ended:
                return None
            size = size or len(text)
            header = self._header(text[mark:size], delimiter, file)
            self.header = np.frombuffer(bytearray(text[mark:size].rstrip(b"\r\n")), np.uint8)
        self.delimiter = delimiter
        self.label_name = label = self._find_label(header, file)
        known = self._check_header(header, file)
        if not self.schema:
            self.columns.check_options(known, label, file)
            rows = self._first_rows(text, size, ended)
            if rows is None:
                return None
            self._adopt(rows, header, file, text[:size].count(b"\n"))
        elif self.schema.spellings:
            for note in self.schema.changed(self._cells_of_known_spelling(text, size, header)):
                self._note(note, file)
        position = {name: k for k, name in enumerate(header)}
        cure = "; if the file has no header, give the names of its columns by --header"
        positions = self.schema.positions(header, f"{file}:{self._top}:1: the header", cure)
        self.columns.check_options(known, label, file)
        at = dict(zip(self.schema.columns, positions, strict=True))
        numbers, others = self.schema.in_order()
        of_label = -1 if label is None else position[label]
        self.layout = Layout(
            len(header),
            of_label,
            [position[name] for name in self.columns.labels],
            [at[n] for n in numbers],
            [at[n] for n in others],
            [*numbers, *others],
        )
        if self.first_layout is None:
            self.first_layout = self.layout
            name = DELIMITER_NAMES.get(delimiter) or short_repr(delimiter.decode())
            self.about.append(f"Delimiter: {name}; {self.columns.about(label)}")
        self._note(self.columns.left_out(name for name in known if name != label), file)
        self.columns.keep_labels()
        return size, text[:size].count(b"\n")

    def _header(self, text: bytes, delimiter: bytes, file: str) -> list[str]:
        _, row = next(csv_rows.cells_of(text, ord(delimiter or b","), self.quote, 0), (1, []))
        if row is None:
            problem, where = csv_rows.problem_of(text.rstrip(b"\n") + b"\n", ord(delimiter or b","), self.quote)
            if problem in (BLANK_QUOTE, INNER_RETURN):
                line, column = self._top + text.count(b"\n", 0, where), where - text.rfind(b"\n", 0, where)
                raise DataError(f"{file}:{line}:{column}: {SENTENCES[problem]}")
            raise DataError(
                f"{file}:{self._top}:1: the quotes of the header do not match; write a quote within quotes twice, or "
                "give --quoting none if quotes are ordinary characters of the file"
            )
        return [columns.text_of(cell.strip()) for cell in row]

    def _check_header(self, header: list[str], file: str) -> list[str]:
        """Return the columns with a name; raise DataError if a name of a file is a number, or one is given twice."""
        known: dict[str, None] = {}
        unnamed = []
        for column, name in enumerate(header, 1):
            where = f"{file}:{self._top}:1: column {column} of the header"
            if not name or UNNAMED.fullmatch(name):
                unnamed.append(column)
                continue
            if NUMERAL.fullmatch(name) and name not in self.schema.columns and not self.columns.header:
                raise DataError(
                    f"{where} is the number {short_repr(name)}; the first line of a CSV file names the columns: if the "
                    "file has no header, name its columns, as in --header label,text"
                )
            if name in known:
                raise DataError(f"{where} has the name {short_repr(name)}, as one before has; give each column its own")
            known[name] = None
        if not known:
            raise DataError(f"{file}:{self._top}:1: there is no header; the first line of a CSV file names the columns")
        if unnamed:
            self._note(
                f"column {unnamed[0]} of the header has no name and is left out; pandas writes its index so, unless "
                "index=False is given",
                file,
            )
        return [*known]

    def _note(self, note: str, file: str) -> None:
        """Add a note, unless it was added before; an empty one is none."""
        if note and note not in self._noted:
            self._noted.add(note)
            self.notes.append(f"{file}: {note}")

    def _find_label(self, header: list[str], file: str) -> str | None:
        chosen, schema = self.columns.label, self.schema
        if self.columns.find_labels(header):
            return None
        if chosen is not None:
            if chosen and chosen in header:
                return chosen
            number = int(chosen) if NUMBERED.fullmatch(chosen) else -1
            if 0 < number <= len(header) and not header[number - 1]:
                raise UsageError(f"--label_column {chosen!r}: this column has no name in the header of {file}; add one")
            if 0 <= number <= len(header):
                return header[number - 1] if number else None
            raise UsageError(
                f"--label_column {chosen!r}: {file} has no such column; its {len(header)} columns are {listed(header)}"
            )
        if schema and schema.label is not None:
            return schema.label if schema.label in header else None
        first = next((name for name in header if name and not UNNAMED.fullmatch(name)), None)
        alike = [name for name in header if name.lower() == "label"]
        label = "label" if "label" in header else alike[0] if len(alike) == 1 else first
        return None if label in schema.columns else label

    def _first_rows(self, text: bytes, begin: int, ended: bool) -> bytes | None:
        """Return the rows of `text[begin:TYPED_BYTES]`, at least one; None if more of the file is needed for that."""
        if ended and len(text) <= TYPED_BYTES:
            return text[begin:]
        data = np.frombuffer(bytearray(text[begin:]) or bytearray(1), np.uint8)
        end = self.end_of_lines(data, 0, max(TYPED_BYTES - begin, 0))
        if not end:
            end, _ = csv_rows.end_of_rows(data, 0, len(text) - begin, START, self.delimiter_byte, self.quote, True)
        return text[begin : begin + end] if end else text[begin:] if ended else None

    def _adopt(self, rows: bytes, header: list[str], file: str, before: int) -> None:
        """Take the columns of the first file; its first rows, after `before` lines, decide which are numbers."""
        seen, other, again = ([0] * len(header) for _ in range(3))
        first: list[list[str]] = [[] for _ in header]
        identifier = [False] * len(header)
        cells = [*map(encoded, header)]
        label = -1 if self.label_name is None else header.index(self.label_name)
        guessed = self.columns.label is None and self.label_name is not None and self.label_name.lower() != "label"
        different: list[set[bytes]] = [set() for _ in header]
        count = 0
        affirmed = bool(self.columns.header) or self.columns.named or self.columns.label in header
        for line, row in csv_rows.cells_of(rows, self.delimiter_byte, self.quote, len(header), self.header):
            count += row is not None and bool(row[label].strip())
            for k, cell in enumerate(row or []):
                word = cell.strip()
                if word and len(first[k]) < cells_of_tables.SAMPLE and word not in MISSING_WORDS:
                    first[k].append(columns.text_of(word))
                if guessed and word:
                    different[k].add(word)
                if word and not other[k] and word not in MISSING_WORDS:
                    seen[k] = 1
                    text = word.decode("latin-1")
                    other[k] = not NUMERAL.fullmatch(text)
                    identifier[k] = identifier[k] or schema.is_identifier(text)
                if word and word == cells[k] and not affirmed:
                    again[k] += 1
                    if k == label or again[k] > 1:
                        raise DataError(
                            f"{file}:{self._top}:1: the first line has to name the columns, and its cell "
                            f"{listed([header[k]])} is also a cell of the same column in line {line + before}; if the "
                            "file has no header, name its columns, as in --header label,text; if it has one, name the "
                            "column of the label, as in --label_column NAME"
                        )
        if guessed:
            doubt = self.columns.label_warning(header, label, count, different)
            self.doubted = bool(doubt)
            self._note(doubt, file)
        features = self.columns.features(
            [name for name in header if name and not UNNAMED.fullmatch(name)], self.label_name
        )
        if not features and self.label_name is not None and len(header) == 1:
            raise DataError(
                f"{file}:{self._top}:1: the only column of the header is {listed(header)}, so examples would have no "
                "features; cells are separated by a comma, tab, semicolon or bar, or by what a first line such as "
                "sep=: names"
            )
        kinds = {
            name: TEXT if other[k] or not seen[k] else CATEGORY if identifier[k] else NUMBER
            for k, name in enumerate(header)
        }
        found = dict(zip(header, first, strict=True))
        for note in self.columns.adopt({name: kinds[name] for name in features}, self.label_name, file, found):
            self._note(note, file)

    def _cells_of_known_spelling(self, text: bytes, begin: int, header: list[str]) -> dict[str, list[str]]:
        """Return the first cells of the columns of which it is kept how they are written."""
        rows = csv_rows.cells_of(
            self._first_rows(text, begin, True) or b"", self.delimiter_byte, self.quote, len(header), self.header
        )
        first = [row for _, row in itertools.islice(rows, cells_of_tables.SAMPLE) if row is not None]
        at = [(name, k) for k, name in enumerate(header) if name in self.schema.spellings]
        return {name: [columns.text_of(row[k].strip()) for row in first if row[k].strip()] for name, k in at}

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

    def labels_of(self, text: bytes) -> Iterator[tuple[bytes, bool]]:
        label, several = self.layout.label, self.layout.labels
        for _, row in csv_rows.cells_of(text, self.delimiter_byte, self.quote, self.layout.width, self.header):
            if row is not None and several:
                yield self.columns.as_list(self.columns.labels_in([row[k] for k in several])), True
            elif row is not None:
                yield self.columns.label_of(row[label]) if label >= 0 else b"", False

    def features(self, line: bytes) -> Iterator[WrittenFeature]:
        layout = self.first_layout or self.layout
        _, cells = next(csv_rows.cells_of(records.source_of(line), self.delimiter_byte, self.quote, layout.width))
        assert cells is not None  # the row was read before
        names = [encoded(name) for name in layout.features]
        for name, k in zip(names, layout.numbers, strict=False):
            value = number_in(columns.text_of(cells[k]))
            if value is None or abs(value) > LARGEST:
                return  # `--on_bad_line vw` ignores the rest of the row
            if value == value:
                yield WrittenFeature(name, np.float32(value))
        for name, k in zip(names[len(layout.numbers) :], layout.others, strict=True):
            whole = self.schema.columns[columns.text_of(name)] == CATEGORY
            if word := category(cells[k]) if whole else cells[k]:
                yield WrittenFeature(word, np.float32(1), namespace=name, is_text=not whole)

    def moved(self, cells: list[bytes]) -> bytes:
        """Return a row of the first file with these cells in the columns of the schema, for `features`."""
        first = self.first_layout or self.layout
        there = [""] * first.width
        for cell, position in zip(cells, [*first.numbers, *first.others], strict=True):
            there[position] = cell.replace(b"\n", b" ").decode("latin-1")
        if not self.quoted:
            return self.delimiter.join(cell.encode("latin-1") for cell in there)
        written = io.StringIO()
        csv.writer(written, delimiter=self.delimiter.decode() or ",").writerow(there)
        return written.getvalue().removesuffix("\r\n").encode("latin-1")


class CsvScanner(records.RecordScanner):
    def __init__(self, of: parser.Parser, table: CsvTable) -> None:
        super().__init__(of)
        self._table, self._parser = table, of
        names = [encoded(name) for name in table.layout.features]
        self._numbers = len(table.layout.numbers)
        spaces = [0] * self._numbers + [self.namespaces.number(name) for name in names[self._numbers :]]
        self._spaces = np.array(spaces, np.int32)
        self._names = np.frombuffer(b"\n".join(names[: self._numbers]) + b"\n", np.uint8)
        sizes = np.array([len(name) for name in names[: self._numbers]], np.int64)
        self._name_end = np.cumsum(sizes + 1) - 1
        self._name_begin = self._name_end - sizes
        kinds = table.schema.columns
        self._categories = [k for k, name in enumerate(table.layout.features) if kinds[name] == CATEGORY]

    def scan(self, text: UInt8s, end: int) -> parser.Scan:
        table = self._table
        block = text[:end].tobytes()
        buffer = np.zeros(end + len(self._names) + parser.PADDING, np.uint8)
        buffer[:end] = text[:end]
        rows = csv_rows.rows_of(buffer, end, table.delimiter_byte, table.quote, table.layout.width, table.header)
        buffer[end : end + len(self._names)] = self._names
        content = buffer.tobytes()
        at = np.array([*table.layout.numbers, *table.layout.others], np.int64)
        cells = rows.cell_begin[:, at], rows.cell_end[:, at]
        examples = self._examples(rows, block, content, *cells)
        if self._categories:
            content += self._add_categories(content, *cells)
        items = self._items(rows, buffer, content, block, examples, *cells)
        good = np.cumsum(rows.problem == 0) - 1
        self._note_quotes(rows, block)

        def column_of_label(i: int) -> int:
            label = table.layout.labels[0] if table.layout.labels else table.layout.label
            return _place_of_cell(block, rows, i, int(rows.cell_begin[good[i], label]))[1]

        return self.scan_of(examples, items, content, rows.lines, end, column_of_label, rows.empty)

    def _examples(
        self, rows: csv_rows.CsvRows, block: bytes, content: bytes, begin: Int64s, end: Int64s
    ) -> records.Examples:
        """Return the examples of rows, with the problems of those that cannot be read.

        `begin` and `end`, int64[g, columns], are ranges in `content` of each cell of the columns of the schema.
        """
        examples = records.Examples()
        n = len(rows.line)
        examples.line = rows.line.tolist()
        ranges = zip(rows.begin.tolist(), rows.end.tolist(), strict=True)
        examples.source = [block[begin:end].replace(b"\n", b" ") for begin, end in ranges]
        examples.label, examples.tag, examples.weight = [b""] * n, [b""] * n, [1.0] * n
        good, label = np.flatnonzero(rows.problem == 0).tolist(), self._table.layout.label
        first = self._table.first_layout
        if first is not None and self._table.layout[3:] != first[3:]:  # columns are in other places
            for i, begins, ends in zip(good, begin.tolist(), end.tolist(), strict=True):
                cells = [content[low:high] for low, high in zip(begins, ends, strict=True)]
                examples.source[i] = self._table.moved(cells)
        plain = not self._table.columns.separator and not any(bracket in block for bracket in CLOSING)
        label_of = records.one_line if plain else self._table.columns.label_of
        if several := self._table.layout.labels:
            begins, ends = rows.cell_begin[:, several].tolist(), rows.cell_end[:, several].tolist()
            for i, begin, end in zip(good, begins, ends, strict=True):
                cells = [content[low:high] for low, high in zip(begin, end, strict=True)]
                found = self._table.columns.labels_in(cells)
                if found is None:
                    wrong = next(k for k, cell in enumerate(cells) if not is_bit(cell))
                    place = _place_of_cell(block, rows, i, begin[wrong])
                    examples.problems[i] = records.RecordProblem(ENTRY, *place, cells[wrong], True, b"1 or 0")
                examples.label[i] = found or b""
        elif label >= 0:
            begins, ends = rows.cell_begin[:, label].tolist(), rows.cell_end[:, label].tolist()
            for i, begin, end in zip(good, begins, ends, strict=True):
                examples.label[i] = label_of(content[begin:end])
        for i in np.flatnonzero(rows.problem).tolist():
            place = _place(block, rows, i, int(rows.where[i]))
            seen = content[rows.seen_begin[i] : rows.seen_end[i]]
            about = f"{rows.found[i]} cells, and the header {self._table.layout.width}".encode()
            examples.problems[i] = records.RecordProblem(int(rows.problem[i]), *place, seen, True, about)
        return examples

    def _note_quotes(self, rows: csv_rows.CsvRows, block: bytes) -> None:
        """Add a note, once, if most lines of a quoted cell look like rows."""
        commas = self._table.layout.width - 1
        for i in np.flatnonzero(np.diff(rows.line) > MANY_LINES).tolist() if commas else ():
            inner = block[rows.begin[i] : rows.end[i]].split(b"\n")[1:-1]
            alike = sum(line.count(self._table.delimiter) == commas for line in inner)
            if len(inner) >= MANY_LINES and 10 * alike >= 9 * len(inner) and not self._table.quotes_noted:
                self._table.quotes_noted = True
                self._parser.notes.append(
                    f"{self._table.file}:{self._parser.lines + int(rows.line[i])}: a cell in quotes covers "
                    f"{len(inner) + 2} lines, most of which look like rows; if quotes are ordinary characters of the "
                    "file, give --quoting none"
                )

    def _add_categories(self, content: bytes, begin: Int64s, end: Int64s) -> bytes:
        """Set the ranges of cells of categories to those of their names; return the names, which follow `content`."""
        names = []
        size = len(content)
        for k in self._categories:
            for row, (low, high) in enumerate(zip(begin[:, k].tolist(), end[:, k].tolist(), strict=True)):
                name = category(content[low:high])
                begin[row, k], end[row, k] = size, size + len(name)
                names.append(name)
                size += len(name)
        return b"".join(names)

    def _items(
        self, rows: csv_rows.CsvRows, buffer: UInt8s, content: bytes, block: bytes, examples: records.Examples,
        begin: Int64s, end: Int64s,
    ) -> records.Items:  # fmt: skip
        """Return the items of the cells, and note cells that are not numbers.

        `begin` and `end` are as in `_examples`; they are written.
        """
        good = np.flatnonzero(rows.problem == 0)
        full = end > begin
        value = np.full(begin.shape, np.nan, np.float32)
        value[:, self._categories] = 1
        count = self._numbers
        read, blank = np.empty((len(begin), count), np.float32), np.empty((len(begin), count), bool)
        records.read_values(buffer, begin[:, :count], end[:, :count], read, blank)
        for row, k in self._large_whole(read, buffer, begin, end):
            feature, cell = self._table.layout.features[k], content[begin[row, k] : end[row, k]].strip()
            # Python refuses to convert thousands of zeros
            whole = int(cell.lstrip(b"+-0")) * (-1 if cell.startswith(b"-") else 1)
            if note := self._table.columns.rounded(feature, whole):
                line, _ = _place_of_cell(block, rows, int(good[row]), int(begin[row, k]))
                self._parser.notes.append(f"{self._table.file}:{self._parser.lines + line}: {note}")
        value[:, :count] = read
        full[:, :count] &= ~blank
        wrong = full[:, :count] & np.isnan(read)
        for row in np.flatnonzero(wrong.any(axis=1)).tolist():
            for k in np.flatnonzero(wrong[row]).tolist():
                cell = content[begin[row, k] : end[row, k]].strip()
                if cell in MISSING_WORDS:
                    full[row, k] = False
                    continue
                i = int(good[row])
                line, column = _place_of_cell(block, rows, i, int(begin[row, k]))
                name = encoded(self._table.layout.features[k])
                examples.problems.setdefault(i, records.RecordProblem(CELL, line, column, cell, about=name))
                full[row, k:] = False
                break
        begin[:, :count] = len(block) + self._name_begin
        end[:, :count] = len(block) + self._name_end
        first = np.zeros(len(examples.line) + 1, np.int64)
        first[good + 1] = full.sum(axis=1)
        spaces = np.broadcast_to(self._spaces, full.shape)
        return records.Items(np.cumsum(first), spaces[full], begin[full], end[full], value[full])

    def _large_whole(self, read: Float32s, buffer: UInt8s, begin: Int64s, end: Int64s) -> list[tuple[int, int]]:
        """Return row and column of each whole number that float32 may round and whose column may need a note.

        `read`, float32[g, numbers], are the numbers at the ranges in `buffer`.
        """
        large = np.abs(read) >= schema.EXACT
        detected, features = self._table.columns.detected, self._table.layout.features[: self._numbers]
        large &= np.array([name in detected for name in features], bool)
        if not large.any():
            return []
        marks = np.zeros(len(buffer) + 1, np.int32)  # of numbers that are not whole, before each byte
        np.cumsum(NOT_WHOLE[buffer], out=marks[1:])
        row, k = np.nonzero(large)
        whole = marks[begin[row, k]] == marks[end[row, k]]
        return list(zip(row[whole].tolist(), k[whole].tolist(), strict=True))


def _place(block: bytes, rows: csv_rows.CsvRows, row: int, position: int) -> tuple[int, int]:
    """Return line and column, from 1, of a position in a row of a block."""
    begin = int(rows.begin[row])
    line = int(rows.line[row]) + block.count(b"\n", begin, position)
    return line, position - max(block.rfind(b"\n", begin, position), begin - 1)


def _place_of_cell(block: bytes, rows: csv_rows.CsvRows, row: int, begin: int) -> tuple[int, int]:
    """Return line and column, from 1, of a cell, at its quote if it has one; its content begins at `begin`."""
    return _place(block, rows, row, begin - (block[begin - 1] == QUOTE))


def category(cell: bytes) -> bytes:
    return schema.category(cell.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
