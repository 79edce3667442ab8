"""Choose the format of the data by the first lines and the name of the file.

The extension of the file (without that of a compressed file) decides, and else the first line that is not empty. Where
the line plainly has another format than the extension says, the file is refused. All files have the format of the first
one.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..data import texts
from ..data.schema import OTHER, Schema
from ..errors import DataError, UsageError
from ..options.declare import options_of
from ..options.words import NUMERAL
from ..system import streams
from ..text import foreign, reader
from ..text.label_detection import LabelDetector
from ..text.text_format import Chooser, OtherFormat, TextFormat
from . import columns, csv_table, json_lines, npy, word_lines


class Format(NamedTuple):
    """Describe a format: its title, the extensions of its files, and what makes it."""

    title: str
    extensions: tuple[str, ...]
    make: Callable[[reader.ReaderOptions, Schema], TextFormat]


FORMATS = {
    "vw": Format("VW text", (".vw",), lambda _, schema: TextFormat(schema.width)),
    "fasttext": Format("lines of fastText", (".ft", ".fasttext"), lambda *_: word_lines.FastText()),
    "libsvm": Format("LIBSVM", (".libsvm", ".svm", ".svmlight"), lambda *_: word_lines.Libsvm()),
    "xmc": Format("extreme classification repository", (".xmc",), lambda *_: word_lines.ExtremeClassification()),
    "csv": Format("CSV", (".csv", ".tsv"), csv_table.CsvTable),
    "jsonl": Format("JSON lines", (".jsonl", ".ndjson"), json_lines.JsonLines),
    "npy": Format("an array of NumPy", (".npy",), npy.Npy),
}
WITH_TEXTS = ("fasttext", "csv", "jsonl")
EXTENSIONS = {extension: name for name, one in FORMATS.items() for extension in one.extensions}
NUMBER = NUMERAL.pattern.encode()
PAIR = rb"(?:[0-9]+:" + NUMBER + rb")"
LIBSVM = re.compile(
    rb"[ \t]*(?:[^ \t:|#]+(?:[ \t]+qid:[0-9]+)?(?:[ \t]+" + PAIR + rb")+|" + PAIR + rb"(?:[ \t]+" + PAIR + rb")*)[ \t]*"
    rb"(?:#.*)?"
)
REAL = re.compile(rb"[ \t]*" + NUMBER + rb"[ \t]*")
XMC_LINE = re.compile(rb"(^|[ \t])[0-9]+:[0-9.]")
UNCERTAIN = {  # extension -> formats that a line seems to have although it can be of the format of the extension
    "fasttext": ("vw", "libsvm", "xmc"), "xmc": ("libsvm",),
}  # fmt: skip
MOST_SCANNED = 1 << 16  # bytes of a line, or of empty lines, that are compared with the formats
SEARCHED_OFTEN = 1 << 12  # bytes up to which each line is examined at once


def detect(text: bytes, ended: bool, file: str, otherwise: str = "vw") -> str | None:
    """Return the name of the format, or None if more of the file is needed.

    The first three arguments are those of `TextFormat.begin`; the last is the format where nothing tells which.
    """
    said = EXTENSIONS.get(_extension(file), "")
    if said == "npy" or text.startswith(foreign.ARRAY):
        return "npy"
    text = text.removeprefix(b"\xef\xbb\xbf")
    found = re.search(rb"[^\s]", text)
    if found is None:
        return said or "vw" if ended or len(text) > MOST_SCANNED else None
    begin = text.rfind(b"\n", 0, found.start()) + 1
    if text.find(b"\n", begin) < 0 and not ended:
        return None
    line, _, rest = text[begin:].partition(b"\n")
    before, returned, after = line.strip(b"\r").partition(b"\r")
    if returned:  # the end of a line, at which readers stop with a cure
        line, rest = before, after or rest
    line = line[:MOST_SCANNED]
    if problem := foreign.is_binary(line[: foreign.SHOWN]):
        raise DataError(f"{file}: {problem}")
    seen = _recognised(line.rstrip(b"\r"), rest, ended)
    if seen is None:
        return None
    uncertain = ("vw", "fasttext", "libsvm") if said == "csv" and _delimited(line) else UNCERTAIN.get(said, ())
    if said and seen not in ("", said, *uncertain):
        raise DataError(
            f"{file}: the name is that of {FORMATS[said].title}, and the first line that of {FORMATS[seen].title}; "
            f"rename the file, or name its format, --format {said} or --format {seen}"
        )
    return said or seen or ("csv" if _delimited(line) and b"|" not in line else otherwise)


def _recognised(line: bytes, rest: bytes, ended: bool) -> str | None:
    """Return the name of the format that a line plainly has, an empty string, or None if the next line is needed.

    `line` is the first one that is not empty, limited to MOST_SCANNED bytes, and `rest` are the lines after it, all if
    `ended`.
    """
    if _is_object(line):
        return "jsonl"
    if csv_table.SEPARATOR.fullmatch(line):
        return "csv"
    if b"|" in line:
        head = line.partition(b"|")[0].split()
        labelled = len(head) > 2 and head[0].startswith(word_lines.PREFIX) and not REAL.fullmatch(head[1])
        return "fasttext" if labelled else "vw"  # no VW text has several words behind a label that is a name
    if any(word.startswith(word_lines.PREFIX) for word in line.split()):
        return "fasttext"
    if word_lines.HEADER.fullmatch(line):
        if not rest:
            return "" if ended else None
        return "xmc" if XMC_LINE.search(rest.partition(b"\n")[0][:MOST_SCANNED]) else ""
    if LIBSVM.fullmatch(line):
        return "libsvm"
    return ""


def _delimited(line: bytes) -> bool:
    """Return whether a line has cells before its first bar."""
    return csv_table.delimiter_of(line.partition(b"|")[0]) != b""


def _extension(file: str) -> str:
    """Return the extension of a file in lower case, without that of a compressed file."""
    name = file.lower().removesuffix(streams.ending_of(file))
    return name[name.rfind(".") :] if "." in name else ""


def _is_object(line: bytes) -> bool:
    """Return whether a line is an object of JSON, or begins some of them."""
    begin = line.lstrip()
    if begin.startswith((b"[{", b"[[")) or begin.rstrip() in (b"[", b"{"):
        return True  # of an array, or over several lines, which `JsonLines.begin` refuses
    if not begin.startswith(b"{"):
        return False
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return begin.startswith(b'{"') and b"|" not in line


def chooser(
    options: reader.ReaderOptions, schema: Schema | None = None, given: frozenset[str] = frozenset()
) -> Chooser:
    """Return the function by which a reader with these options chooses the format of its first file.

    For later files it raises DataError if they have another format. If the schema has no columns, those of the first
    table are added. Options of texts among those that the user has `given` are warned of if the files have no texts.
    """
    schema = Schema() if schema is None else schema
    first_file = first_name = ""

    def choose(text: bytes, ended: bool, file: str) -> TextFormat | None:
        nonlocal first_file, first_name
        otherwise = "csv" if schema or options.header else "vw"
        name = detect(text, ended, file, otherwise) if options.format == "auto" else options.format
        if name is None:
            return None
        if name != "npy" and text.startswith(foreign.ARRAY):
            raise DataError(f"{file}: this is an array of NumPy, not text; leave --format out, or give --format npy")
        if not first_name:
            first_file, first_name = file, name
        elif name == "vw" and b"|" not in text.lstrip().partition(b"\n")[0]:
            name = first_name  # such a line does not tell
        if name != first_name:
            raise DataError(
                f"{file} begins like {FORMATS[name].title}, and {first_file} like "
                f"{FORMATS[first_name].title}; give files of one format, or name the format of all by --format"
            )
        for option, formats in columns.FORMATS.items():
            if name not in formats and getattr(options, option) != getattr(reader.ReaderOptions(), option):
                readable = " and ".join(FORMATS[one].title for one in formats)
                raise UsageError(f"--{option} is for {readable}, and {file} is {FORMATS[name].title}: leave it out")
        chosen = FORMATS[name].make(options, schema)
        schema.check_form(chosen.form, file)
        if chosen.form:  # a line of text is VW text in other words
            schema.add_form(chosen.form if chosen.binary else OTHER)
        idle = [option for option in options_of(texts.TextOptions) if option in given and name not in WITH_TEXTS]
        if idle:
            chosen.notes.append(f"--{idle[0]} has no effect: {file} is {FORMATS[name].title}, which has no texts")
        if name != "vw":
            by = "by the name of the file" if EXTENSIONS.get(_extension(file)) == name else "by the first lines"
            if options.format != "auto":
                by = "as --format says"
            chosen.about.insert(0, f"Data format: {FORMATS[name].title}, {by}")
        return chosen

    return choose


def key(options: reader.ReaderOptions, schema: Schema) -> dict[str, Any]:
    """Return what decides how the examples of data are read by a learner's schema, for the key of a cache."""
    beside = [npy.label_file(path, options) for path in options.data or () if path.endswith(".npy")]
    labels = [[path, os.path.getsize(path), os.stat(path).st_mtime_ns] for path in beside if path is not None]
    columns = schema.to_bytes().decode() if schema.is_known else None
    return {**options.meaning(), "schema": columns, **({"label_file": labels} if labels else {})}


def detected(
    options: reader.ReaderOptions, first: reader.Peeked | Sequence[bytes], numbered: bool, of_lists: bool,
    only_names: bool, lists: bool,
) -> LabelDetector:  # fmt: skip
    """Return what the labels of the first file, or of standard input, are.

    `first` are the first lines, or gets what is taken of data that can be read only once. `numbered` and `of_lists` are
    those of `FormatLabels`, the others those of `LabelDetector`.
    """
    again = bool(options.data) and not reader.is_pipe(reader.first_of(options.data))
    labels = LabelDetector(again, only_names, lists)
    lines = FormatLabels(labels, options, numbered, of_lists)
    if isinstance(first, reader.Peeked):
        reader.peek_labels(options.data, lines, first)
    else:
        for line in first:
            lines.add(line)
    lines.end()
    labels.end()
    return labels


class FormatLabels:
    """Pass the labels of lines of any format to a `LabelDetector`, for `reader.peek_labels`.

    The labels of fastText and of the extreme classification repository, and texts of JSON, are names, whatever they
    look like, unless labels are `numbered`. Those of the repository are numbers in `lists`, which count from 0, too.
    """

    def __init__(self, labels: LabelDetector, options: reader.ReaderOptions, numbered: bool, lists: bool) -> None:
        self._labels, self._numbered, self._lists = labels, numbered, lists
        self._choose = chooser(options)
        self._file = reader.first_of(options.data) if options.data else "stdin"
        self._format: TextFormat | None = None
        self._begun = False  # whether the header is read
        self._pending = bytearray()  # lines that are not passed on yet
        self._needed = 0  # bytes of them before they are examined again

    @property
    def classes(self) -> bool | None:
        return self._labels.classes

    def add(self, line: bytes) -> None:
        if self.classes is not None:
            return
        self._pending += line + b"\n"
        if len(self._pending) < self._needed:
            return
        if self._begun or self._begin(ended=False):
            self._pass_lines()
        self._needed = 2 * len(self._pending) if len(self._pending) > SEARCHED_OFTEN else 0

    def end(self) -> None:
        with contextlib.suppress(DataError):  # raised again when the data are read
            if self._pending and (self._begun or self._begin(ended=True)):
                self._pass_lines()

    def _begin(self, ended: bool) -> bool:
        """Choose the format and skip the header; return whether there were enough lines."""
        text = bytes(self._pending)
        if self._format is None:
            self._format = self._choose(text, ended, self._file)
        header = self._format.begin(text, ended, self._file) if self._format is not None else None
        if header is None:
            return False
        self._begun = True
        del self._pending[: header[0]]
        return True

    def _pass_lines(self) -> None:
        assert self._format is not None
        waiting = np.frombuffer(bytearray(self._pending), np.uint8)
        binary = self._format.binary
        end = len(waiting) if binary else self._format.end_of_lines(waiting, 0, len(waiting))
        text = bytes(self._pending[:end])
        del waiting, self._pending[:end]
        if not isinstance(self._format, OtherFormat):
            for line in text.split(b"\n")[:-1]:
                self._labels.add(line)
            return
        of_repository = self._format.name == "xmc"
        numbered = self._numbered or (self._lists and of_repository)
        for label, is_name in self._format.labels_of(text):
            if of_repository and b"," in label:
                self._labels.add_list(label, False)
            if label and not numbered and is_name:
                self._labels.settle(label)
            else:
                self._labels.add_label(label)
