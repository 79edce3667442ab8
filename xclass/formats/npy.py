"""Read arrays of NumPy, `.npy`: each row of the array[n, d] is an example whose numbers are the dense block.

The labels are in a file beside it, `rows.labels.npy` or `rows.labels.txt` for `rows.npy`, or in that of --label_file:
an array with a label for each row, or a line of text for each. Without that file, rows are unlabelled. Rows are read
block by block, like lines of text, so compressed files and pipes can be read, too.

Source    NumPy's numpy.lib.format, versions 1.0 and 2.0; arrays of objects are refused, because they are pickled.
"""

from __future__ import annotations

import io
import itertools
import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.lib import format as numpy_format

from ..array_types import AnyArray, UInt8s
from ..data.schema import MOST_COLUMNS, Schema
from ..errors import DataError, UsageError
from ..text import parser, reader, streams
from ..text.foreign import ARRAY
from ..text.malformed import ROW_VALUE
from ..text.text_format import OtherFormat, WrittenFeature
from . import records

LONGEST_HEADER = 10_000  # bytes, as NumPy allows
BESIDE = (".labels.npy", ".labels.txt")  # endings of files with labels, in place of .npy
NO_ITEMS = records.Items(*(np.zeros(0, kind) for kind in ("i8", "i4", "i8", "i8", "f4")))


def label_file(path: str, options: reader.Options) -> str | None:
    """Return the file with the labels of an array, None if there is none; raise UsageError if it is not clear."""
    if options.label_file is not None:
        if len(options.data or ()) > 1:
            raise UsageError(
                "--label_file names one file, and there are several arrays; put the labels of each beside it, "
                f"as ARRAY{BESIDE[0]} or ARRAY{BESIDE[1]}"
            )
        return options.label_file
    stem = path.removesuffix(streams.ending_of(path)).removesuffix(".npy")
    found = [stem + ending for ending in BESIDE if os.path.isfile(stem + ending)]
    if len(found) > 1:
        raise UsageError(
            f"{path}: there are two files of labels, {' and '.join(found)}; remove one, or give --label_file"
        )
    return found[0] if found else None


def without_labels(paths: Sequence[str]) -> list[str]:
    """Return paths without the files of labels that belong to arrays among them."""
    arrays = {path.removesuffix(".npy") for path in paths if path.endswith(".npy")}
    return [
        path for path in paths if not any(path.endswith(end) and path.removesuffix(end) in arrays for end in BESIDE)
    ]


class Labels:
    """Read the labels of n rows in order from an array or from lines of text."""

    def __init__(self, path: str, n: int) -> None:
        self._path, self._n, self._taken = path, n, 0
        self._values: AnyArray | None = None
        self._lines: Iterator[bytes] | None = None
        self.are_names = False
        try:
            if path.endswith(".npy"):
                self._values = np.load(path, mmap_mode="r", allow_pickle=False)
            else:
                self._lines = iter(open(path, "rb"))  # noqa: SIM115 (closed with the last reference)
        except (OSError, ValueError, EOFError) as error:
            raise DataError(f"{path}: the labels cannot be read ({error}); give an array or lines of text") from None
        if self._values is not None:
            if self._values.ndim != 1 or self._values.dtype.kind not in "iufbUS":
                kind = f"{self._values.dtype}{list(self._values.shape)}"
                raise DataError(f"{path}: the labels are an array {kind}; give numbers or names in one dimension")
            self.are_names = self._values.dtype.kind in "US"
            self._check(len(self._values))

    def _check(self, count: int) -> None:
        if count != self._n:
            raise DataError(f"{self._path}: there are {count} labels for {self._n} rows; give one for each row")

    def take(self, count: int) -> list[bytes]:
        """Return the labels of the next rows, empty for unknown ones."""
        if self._values is not None:
            labels = list(map(_written, self._values[self._taken : self._taken + count].tolist()))
        else:
            assert self._lines is not None
            labels = [records.one_line(line) for line in itertools.islice(self._lines, count)]
        self._taken += len(labels)
        if len(labels) < count:
            self._check(self._taken)
        return labels

    def end(self) -> None:
        """Check, after all rows, that there are no further labels."""
        if self._lines is not None:
            self._check(self._taken + sum(1 for line in self._lines if line.strip()))


def _written(label: Any) -> bytes:
    if isinstance(label, float):
        return b"" if label != label else b"%d" % label if label.is_integer() else repr(label).encode()
    if not isinstance(label, bytes):
        label = str(int(label) if isinstance(label, bool) else label).encode("utf-8", "surrogateescape")
    return records.one_line(label)


class Npy(OtherFormat):
    name = "npy"
    parallel = False  # so that rows and labels are taken in order
    binary = True
    labelled = f"the labels of ROWS.npy are in ROWS{BESIDE[0]} or ROWS{BESIDE[1]}, or in the file of --label_file"
    unfinished = "the array ends within this row, so the file is truncated; get a complete copy"

    def __init__(self, options: reader.Options, schema: Schema) -> None:
        super().__init__()
        self._options = options
        self.labels: Labels | None = None
        self.dtype, self.n, self.d = np.dtype("f4"), 0, 0
        self._header = self._left = self._excess = 0

    @property
    def row_bytes(self) -> int:
        return self.dtype.itemsize * self.d

    def begin(self, text: bytes, ended: bool, file: str) -> tuple[int, int] | None:
        wide = text[6:7] != b"\1"
        size = int.from_bytes(text[8 : 12 if wide else 10], "little") + (12 if wide else 10)
        if text.startswith(ARRAY) and len(text) < min(size, LONGEST_HEADER) and not ended:
            return None
        try:
            header = io.BytesIO(text[: LONGEST_HEADER + 12])
            version = numpy_format.read_magic(header)
            read = {(1, 0): numpy_format.read_array_header_1_0, (2, 0): numpy_format.read_array_header_2_0}[version]
            shape, by_columns, dtype = read(header)
        except Exception as error:  # of NumPy, for a header that anybody may have written
            reason = " ".join(str(error).split())[:200]
            raise DataError(f"{file}: this is no array that NumPy's `save` has written ({reason})") from None
        if dtype.hasobject or len(shape) != 2 or min(shape) < 0 or dtype.kind not in "iufb":
            raise DataError(
                f"{file}: the array is {dtype}{list(shape)}; give numbers in two dimensions, a row for each"
            )
        if by_columns and min(shape) > 1:
            raise DataError(
                f"{file}: the array is stored by columns, and rows are read; save `numpy.ascontiguousarray(X)` instead"
            )
        self.dtype, (self.n, self.d) = dtype, shape
        if not 0 < self.d <= MOST_COLUMNS:
            raise DataError(f"{file}: the array has {self.d} columns; allowed are 1 to {MOST_COLUMNS}")
        self._header, self._left, self._excess = header.tell(), self.n, 0
        beside = label_file(file, self._options)
        self.labels = None if beside is None else Labels(beside, self.n)
        return self._header, 0

    def check_encoding(self, text: bytes, file: str, line: int = 0) -> None:
        if line:  # of a class
            super().check_encoding(text, file, line)

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
        if self.labels is not None:
            self.labels.end()

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
        examples.label = [b""] * n if array.labels is None else array.labels.take(n)
        examples.tag, examples.source, examples.weight = [b""] * n, [b""] * n, [1.0] * n
        for i in np.flatnonzero(~np.isfinite(rows).all(axis=1)).tolist():
            column = int(np.flatnonzero(~np.isfinite(rows[i]))[0])
            seen = f"{float(values[i, column]):g}".encode()
            examples.problems[i] = records.Problem(ROW_VALUE, i + 1, column + 1, seen, True, b"%d" % column)
        first = np.zeros(n + 1, np.int64)
        scan = self.scan_of(examples, NO_ITEMS._replace(first=first), b"", n, end, lambda _: 1, np.zeros(0, np.int64))
        kept = scan.batch.line[: scan.size[0]] - 1
        return scan._replace(batch=scan.batch._replace(dense=rows if len(kept) == n else rows[kept]))
