"""Reading takes time in proportion to the bytes, whatever they are: twice the bytes take at most twice the steps."""

import contextlib
import sys

import pytest

from xclass.errors import DataError, UsageError
from xclass.formats import csv_rows, csv_table, detect, json_lines
from xclass.text import parser, reader
from xclass.text.label_detection import LabelDetector
from xclass.text.text_format import TextFormat

CHUNK = 1 << 12  # bytes that a read from a pipe returns
PLAIN = "label,a\n" + f"x,{'1' * 998}\n" * 70  # more than what decides on the types of columns
SHAPES = {  # name -> format, text of about n bytes
    "rows of another width": ("csv", lambda n: "label,a\n" + "x,1,2\n" * (n // 6)),
    "cells that are no numbers": ("csv", lambda n: PLAIN + "x,bad\n" * (n // 6)),
    "rows with text behind quotes": ("csv", lambda n: PLAIN + 'x,"b" c\n' * (n // 8)),
    "rows with quotes and returns": ("csv", lambda n: PLAIN + 'x,"\r\n1"\n' * (n // 9)),
    "labels that are no names": ("csv", lambda n: PLAIN + '"a,b",1\n' * (n // 8)),
    "a header of lines": ("csv", lambda n: 'label,"a' + "\n" * n + '"\nx,1\n'),
    "a header of columns": ("csv", lambda n: ",".join(f"c{i:05d}" for i in range(n // 7)) + "\n1\n2\n"),
    "a header that is not closed": ("csv", lambda n: 'label,"a' + "b\n" * (n // 2)),
    "a cell of lines": ("csv", lambda n: PLAIN + 'x,"' + "1\n" * (n // 2) + '"\ny,2\n'),
    "a cell that is not closed": ("csv", lambda n: PLAIN + 'x,"' + "1\n" * (n // 2)),
    "a cell of words": ("csv", lambda n: "label,a\nx," + "a " * (n // 2) + "\ny,b\n"),
    "a cell of digits": ("csv", lambda n: "label,a\nx," + "1" * n + "x\ny,b\n"),
    "a cell of quotes": ("csv", lambda n: 'label,a\nx,"' + '""' * (n // 2) + '"\ny,b\n'),
    "a row of delimiters": ("csv", lambda n: PLAIN + "," * n + "\ny,1\n"),
    "empty lines": ("csv", lambda n: "label,a\n" + "\n" * n),
    "empty lines first": ("auto", lambda n: "\n" * n + "1 | a\n"),
    "a text of words": ("jsonl", lambda n: '{"label": "x", "text": "' + "a " * (n // 2) + '"}\n{"label": "y"}\n'),
    "a malformed text": ("jsonl", lambda n: '{"label": "x", "text": "' + "a " * (n // 2) + "\n" + '{"label": "y"}\n'),
    "malformed objects": ("jsonl", lambda n: '{"label": "x", "text": 3}\n' * (n // 26)),
    "malformed labels": ("jsonl", lambda n: '{"text": "a", "label": "x,y"}\n' * (n // 30)),
    "objects that are not closed": ("jsonl", lambda n: '{"text": "a"\n' * (n // 13)),
    "features": ("jsonl", lambda n: '{"features": {' + ", ".join(f'"{i}": 1' for i in range(n // 11)) + "}}\n"),
    "nested arrays": ("jsonl", lambda n: '{"label": "x"}\n' + "[" * n + "\n"),
    "blanks in an object": ("jsonl", lambda n: '{"label":' + " " * n + '"x,y"}\n'),
    "words of a label": ("vw", lambda n: "a " * (n // 2) + "| b\n" + "1 | c\n"),
    "features of a line": ("vw", lambda n: "1 | " + "a " * (n // 2) + "\n1 | c\n"),
    "bars": ("vw", lambda n: "1 " + "|" * n + "\n1 | c\n"),
    "colons": ("vw", lambda n: "1 | " + ":" * n + "\n1 | c\n"),
    "values that are no numbers": ("vw", lambda n: "1 | a:1:2:3\n" * (n // 12)),
    "lines with bad labels": ("vw", lambda n: "x y z | a\n" * (n // 10)),
    "digits": ("vw", lambda n: "1 | a:" + "1" * n + "x\n1 | c\n"),
    "no newline": ("auto", lambda n: "a " * (n // 2)),
    "words of a line": ("fasttext", lambda n: "__label__x " + "a " * (n // 2) + "\n__label__y b\n"),
    "several labels": ("fasttext", lambda n: "__label__x __label__y\n" * (n // 22)),
    "lines without words": ("fasttext", lambda n: "\n" * n),
    "pairs": ("auto", lambda n: "1 " + "1:1 " * (n // 4) + "2:x\n1 2:1\n"),
    "digits of a value": ("auto", lambda n: "1 1:" + "1" * n + "x\n1 2:1\n"),
    "lines with bad pairs": ("libsvm", lambda n: "1 1:x\n" * (n // 6)),
    "blanks": ("auto", lambda n: "1 " + " \t" * (n // 2) + "x\n1 2:1\n"),
    "a comment": ("libsvm", lambda n: "1 1:1 #" + "#" * n + "\n1 2:1\n"),
}  # fmt: skip


class Pipe:
    """Give at most CHUNK bytes for each read, as a pipe does."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def readinto(self, buffer) -> int:
        size = min(len(buffer), CHUNK, len(self._data) - self._at)
        buffer[:size] = self._data[self._at : self._at + size]
        self._at += size
        return size


class Steps:
    """Count calls of Python's functions, and the bytes that functions look at, in the `with` block."""

    LOOKED_AT = (  # function, the bytes that it looks at, by its arguments
        (csv_rows, "end_of_rows", lambda data, begin, end, *_: end - begin),
        (csv_rows, "split", lambda data, end, *_: end),
        (csv_table, "_place", lambda block, rows, row, position: position - int(rows.begin[row])),
        (json_lines, "_column", lambda line, path: len(line)),
        (detect, "detect", lambda text, *_: len(text)),
        (TextFormat, "end_of_lines", lambda self, text, begin, end: end - begin),
        (csv_table.CsvTable, "begin", lambda self, text, *_: len(text)),
        (json_lines.JsonLines, "begin", lambda self, text, *_: len(text)),
        (reader.Reader, "_begin_format", lambda self, text, *_: len(text)),
        (parser.Parser, "take", lambda self, scan, *_: scan.used),
    )  # fmt: skip

    def __init__(self, monkeypatch) -> None:
        self.count = 0
        self._monkeypatch = monkeypatch

    def __enter__(self):
        for owner, name, size in self.LOOKED_AT:
            self._monkeypatch.setattr(owner, name, self._counted(getattr(owner, name), size))
        sys.setprofile(self._profile)
        return self

    def __exit__(self, *_) -> None:
        sys.setprofile(None)
        self._monkeypatch.undo()

    def _counted(self, function, size):
        def counting(*args):
            self.count += int(size(*args))
            return function(*args)

        return counting

    def _profile(self, frame, event, arg) -> None:
        self.count += event in ("call", "c_call")


def read(data: bytes, fmt: str) -> None:
    """Examine the labels of the data, and read them."""
    options = reader.ReaderOptions(format=fmt)
    with contextlib.suppress(DataError, UsageError):
        labels = detect.FormatLabels(LabelDetector(read_on=True), options, numbered=False, lists=False)
        for line in data.split(b"\n")[:-1]:
            labels.add(line)
    source = reader.Reader(
        options, parser.Parser(parser.ParserOptions(learn_names=True, on_bad_line="skip"), 18, "multiclass"),
        stream=Pipe(data), choose=detect.chooser(options),
    )  # fmt: skip
    with contextlib.suppress(DataError, UsageError):
        for _ in source:
            pass


@pytest.mark.sampled(2)
@pytest.mark.parametrize("shape", SHAPES)
def test_twice_the_bytes_take_twice_the_steps(monkeypatch, shape):
    fmt, make = SHAPES[shape]
    counts = []
    for n in (1 << 13, 1 << 14):
        data = make(n).encode()
        if not counts:
            read(make(1 << 10).encode(), fmt)  # kernels are compiled
        with Steps(monkeypatch) as steps:
            read(data, fmt)
        counts.append(steps.count)
    # a constant, because the first bytes are examined repeatedly until they decide on the format
    assert counts[1] <= 2.3 * counts[0] + 50_000, counts
