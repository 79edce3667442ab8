"""Read arrays of NumPy, `.npy`: each row of the array[n, d] is an example whose numbers are the dense block.

The labels are in a file beside it, `rows.labels.npy` or `rows.labels.txt` for `rows.npy`, or in that of --label_file:
an array with a label for each row, or a line of text for each. Without that file, rows are unlabelled. Rows are read
block by block, like lines of text, so compressed files and pipes can be read, too.

Source    NumPy's numpy.lib.format, versions 1.0 and 2.0; arrays of objects are refused, because they are pickled.
"""

from __future__ import annotations

import codecs
import io
import itertools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.lib import format as numpy_format

from ..array_types import UInt8s
from ..data.schema import MATRICES, MOST_COLUMNS, Schema
from ..errors import DataError, UsageError
from ..options.words import NUMERAL
from ..system import streams
from ..system.printable import short_repr
from ..text import foreign, parser, reader
from ..text.foreign import ARRAY
from ..text.malformed import ROW_VALUE
from ..text.text_format import OtherFormat, WrittenFeature
from . import records

LONGEST_HEADER = 10_000  # bytes, as NumPy allows
SHOWN_LABELS = 100  # that are compared with a first line that may be a header
REMEDY = "give an array or lines of text"
ADVICE = {  # what to save instead of an array of another type, by the kind of the type
    "V": "fields of several types; save `numpy.lib.recfunctions.structured_to_unstructured(X)`",
    "c": "complex numbers; save `numpy.hstack([X.real, X.imag])`",
    "M": "times; give these as columns of a CSV file, or save `X.astype(float)`",
    "m": "durations; save `X.astype(float)`",
    "U": "texts; save `X.astype(numpy.float32)` if they are numbers, else give them as CSV",
    "S": "texts; save `X.astype(numpy.float32)` if they are numbers, else give them as CSV",
    "O": "objects; save `X.astype(numpy.float32)`",
}
FLOATS_OF_OTHERS = {1: "float8", 2: "bfloat16"}  # types that NumPy saves as bytes without a meaning, by their size
NO_ITEMS = records.Items(*(np.zeros(0, kind) for kind in ("i8", "i4", "i8", "i8", "f4")))


def label_file(path: str, options: reader.ReaderOptions) -> str | None:
    """Return the file with the labels of an array, None if there is none; raise UsageError if it is not clear."""
    if options.label_file is not None:
        if len(options.data or ()) > 1:
            raise UsageError(
                "--label_file names one file, and there are several arrays; put the labels of each beside it, "
                f"as ARRAY{reader.BESIDE[0]} or ARRAY{reader.BESIDE[1]}"
            )
        return options.label_file
    found = reader.labels_beside(path)
    if len(found) > 1:
        raise UsageError(
            f"{path}: there are two files of labels, {' and '.join(found)}; remove one, or give --label_file"
        )
    return found[0] if found else None


def without_labels(paths: Sequence[str]) -> list[str]:
    """Return paths without the files of labels that belong to arrays among them."""
    arrays = {path.removesuffix(".npy") for path in paths if path.endswith(".npy")}
    return [
        path for path in paths
        if not any(path.endswith(end) and path.removesuffix(end) in arrays for end in reader.BESIDE)
    ]  # fmt: skip


class NpyHeader(NamedTuple):
    """Hold what the header of an array says, and its number of bytes."""

    shape: tuple[int, ...]
    by_columns: bool
    dtype: np.dtype[Any]
    size: int

    @property
    def width(self) -> int:
        return self.shape[-1] if self.shape else 0

    @property
    def kind(self) -> str:
        return f"{self.dtype}{list(self.shape)}"

    @property
    def advice(self) -> str:
        """Return why the array is not read as rows and what to save, if that is known."""
        other = FLOATS_OF_OTHERS.get(self.dtype.itemsize)
        if self.dtype.kind == "V" and self.dtype.names is None and other:
            return f"NumPy saves {other} as the type V{self.dtype.itemsize}; save `X.astype(numpy.float32)`"
        cause = ADVICE.get(self.dtype.kind)
        if cause is None:
            return "" if len(self.shape) == 2 else "save `X.reshape(len(X), -1)`"
        return f"these are {cause}"


def size_of_header(text: bytes) -> int:
    """Return the bytes of the header of an array, of which `text` are the first."""
    wide = text[6:7] != b"\1"
    return min(int.from_bytes(text[8 : 12 if wide else 10], "little"), LONGEST_HEADER) + (12 if wide else 10)


def header_of(text: bytes, file: str) -> NpyHeader:
    """Read the header at the beginning of an array; raise DataError if it is none."""
    try:
        header = io.BytesIO(text[: LONGEST_HEADER + 12])
        version = numpy_format.read_magic(header)
        read = {(1, 0): numpy_format.read_array_header_1_0, (2, 0): numpy_format.read_array_header_2_0}[version]
        return NpyHeader(*read(header), header.tell())
    except Exception as error:  # of NumPy, for a header that anybody may have written
        reason = " ".join(str(error).split())[:200]
        raise DataError(f"{file}: this is no array that NumPy's `save` has written ({reason})") from None


class RowLabels:
    """Hold the labels of n rows, from an array or from lines of text; all are counted before the first is taken."""

    def __init__(self, path: str, n: int) -> None:
        self.path, self._n, self._taken = path, n, 0
        self._array: NpyHeader | None = None
        self._text = streams.read_file(path, REMEDY, most=None)
        if self._text.startswith(ARRAY):
            self._begin_array()
        elif kind := foreign.what_it_is(self._text[: foreign.SHOWN], path, True):
            raise DataError(f"{path}: {kind}")
        else:
            self._begin_text()

    @property
    def are_names(self) -> bool:
        return self._array is not None and self._array.dtype.kind in "US"

    def _begin_array(self) -> None:
        self._array = header = header_of(self._text, self.path)
        if len(header.shape) != 1 or header.dtype.hasobject or header.dtype.kind not in "iufbUS":
            advice = "save `y.astype(str)` or `y.astype(int)`"
            if header.dtype.kind in "iufb":
                advice = (
                    "save `y.ravel()`" if header.width == 1 else "save `y.argmax(axis=1)` if each row has a single 1"
                )
            raise DataError(
                f"{self.path}: the labels are an array {header.kind}; give numbers or names in one dimension: {advice}"
            )
        self._check(header.shape[0])
        size = header.dtype.itemsize
        if len(self._text) < header.size + self._n * size:
            row = (len(self._text) - header.size) // size + 1
            raise DataError(f"{self.path}: the label of row {row} is cut off; get a complete copy")

    def _begin_text(self) -> None:
        """Count the lines of a text, without empty ones at its end that belong to no row."""
        text = self._text.removeprefix(codecs.BOM_UTF8)
        self._lines = io.BytesIO(text)
        lines, written = text.count(b"\n") + (text[-1:] not in (b"", b"\n")), text.rstrip()
        count = max(written.count(b"\n") + bool(written), min(lines, self._n))
        advice = ""
        if count == self._n + 1:
            first, _, rest = text.partition(b"\n")
            empty = next((k for k, line in enumerate(text.split(b"\n"), 1) if not line.strip()), 0)
            if not _is_number(first) and all(map(_is_number, rest.split(b"\n", SHOWN_LABELS)[:SHOWN_LABELS])):
                advice = (
                    f"; the first line, {short_repr(first.decode(errors='replace').strip())}, is a header: remove it"
                )
            elif 0 < empty <= count:
                advice = f"; line {empty} is empty: remove it"
        self._check(count, advice)

    def _check(self, count: int, advice: str = "") -> None:
        if count != self._n:
            raise DataError(f"{self.path}: there are {count} labels for {self._n} rows; give one for each row{advice}")

    def take(self, count: int) -> list[bytes]:
        """Return the labels of the next rows, empty for unknown ones."""
        if self._array is None:
            return [records.one_line(line) for line in itertools.islice(self._lines, count)]
        dtype = self._array.dtype
        begin = self._array.size + self._taken * dtype.itemsize
        self._taken += count
        try:
            labels = np.frombuffer(self._text, dtype, count, begin)
            if dtype.kind == "f":  # of any precision
                with np.errstate(over="ignore"):
                    labels = labels.astype(np.float64)
            return list(map(_written, labels.tolist()))
        except (UnicodeError, ValueError, SystemError):  # no letter of Unicode has such a number
            raise DataError(f"{self.path}: the names of the labels are damaged; get another copy") from None


def _written(label: Any) -> bytes:
    if isinstance(label, float):
        return b"" if label != label else b"%d" % label if label.is_integer() else repr(label).encode()
    if not isinstance(label, bytes):
        label = str(int(label) if isinstance(label, bool) else label).encode("utf-8", "surrogateescape")
    return records.one_line(label)


def _is_number(line: bytes) -> bool:
    return not line.strip() or NUMERAL.fullmatch(line.decode("latin-1").strip()) is not None


class Npy(OtherFormat):
    name = "npy"
    form = MATRICES
    parallel = False  # so that rows and labels are taken in order
    binary = True
    labelled = "the labels of ROWS.npy are in ROWS{} or ROWS{}, or in the file of --label_file".format(*reader.BESIDE)
    unfinished = "the array ends within this row, so the file is truncated; get a complete copy"

    def __init__(self, options: reader.ReaderOptions, schema: Schema) -> None:
        super().__init__()
        self._options = options
        self.labels: RowLabels | None = None
        self.dtype, self.n, self.d = np.dtype("f4"), 0, 0
        self._header = self._left = self._excess = 0

    @property
    def row_bytes(self) -> int:
        return self.dtype.itemsize * self.d

    def begin(self, text: bytes, ended: bool, file: str) -> tuple[int, int] | None:
        if text.startswith(ARRAY) and len(text) < size_of_header(text) and not ended:
            return None
        header = header_of(text, file)
        shape, by_columns, dtype, self._header = header
        if dtype.hasobject or len(shape) != 2 or min(shape) < 0 or dtype.kind not in "iufb":
            advice = header.advice and f": {header.advice}"
            raise DataError(
                f"{file}: the array is {header.kind}; give numbers in two dimensions, a row for each{advice}"
            )
        if by_columns and min(shape) > 1:
            raise DataError(
                f"{file}: the array is stored by columns, and rows are read; save `numpy.ascontiguousarray(X)` instead"
            )
        self.dtype, (self.n, self.d) = dtype, shape
        if not 0 < self.d <= MOST_COLUMNS:
            raise DataError(f"{file}: the array has {self.d} columns; allowed are 1 to {MOST_COLUMNS}")
        self.first_columns = np.arange(self.d)
        self._left, self._excess = self.n, 0
        beside = label_file(file, self._options)
        self.labels = None if beside is None else RowLabels(beside, self.n)
        return self._header, 0

    def check_encoding(self, text: bytes, file: str, line: int = 1, named: bool = False) -> None:
        if named:
            super().check_encoding(text, file, line, named)

    def end_of_lines(self, text: UInt8s, begin: int, end: int) -> int:
        rows = min((end - self._header) // self.row_bytes, self._left)
        at = self._header + rows * self.row_bytes
        if rows < 0 or at == 0:
            return 0
        self._header, self._left = 0, self._left - rows
        if self._left:
            return at
        self._excess += end - at
        return end

    def finish(self, lines: int, file: str) -> None:
        if lines < self.n or self._excess > 0:
            cause = f"{lines} of" if lines < self.n else "more bytes than"
            raise DataError(f"{file}: the file has {cause} the {self.n} rows that its header says; get a complete copy")

    def scanner(self, of: parser.Parser) -> RowScanner:
        return RowScanner(of, self)

    def labels_of(self, text: bytes) -> Iterator[tuple[bytes, bool]]:
        while self.labels is not None and self.n > 0:
            count = min(self.n, 1000)
            self.n -= count
            yield from ((label, self.labels.are_names) for label in self.labels.take(count))

    def features(self, line: bytes) -> Iterator[WrittenFeature]:
        return iter(())


class RowScanner(records.RecordScanner):
    """Make batches of the rows of an array."""

    def __init__(self, of: parser.Parser, array: Npy) -> None:
        super().__init__(of)
        self._parser, self._array = of, array

    def scan(self, text: UInt8s, end: int) -> parser.Scan:
        array = self._array
        n = min(end // array.row_bytes, array.n - self._parser.lines)
        values = np.frombuffer(text[: n * array.row_bytes].tobytes(), array.dtype).reshape(n, array.d)
        with np.errstate(over="ignore"):
            rows = np.ascontiguousarray(values, np.float32)
        examples = records.Examples()
        examples.line = list(range(1, n + 1))
        if array.labels is not None:
            self._parser.label_file = array.labels.path
        examples.label = [b""] * n if array.labels is None else array.labels.take(n)
        examples.tag, examples.source, examples.weight = [b""] * n, [b""] * n, [1.0] * n
        for i in np.flatnonzero(~np.isfinite(rows).all(axis=1)).tolist():
            column = int(np.flatnonzero(~np.isfinite(rows[i]))[0])
            seen = f"{float(values[i, column]):g}".encode()
            examples.problems[i] = records.RecordProblem(ROW_VALUE, i + 1, column + 1, seen, True, b"%d" % column)
        first = np.zeros(n + 1, np.int64)
        scan = self.scan_of(examples, NO_ITEMS._replace(first=first), b"", n, end, lambda _: 1, np.zeros(0, np.int64))
        kept = scan.batch.line[: scan.size[0]] - 1
        return scan._replace(batch=scan.batch._replace(dense=rows if len(kept) == n else rows[kept]))
