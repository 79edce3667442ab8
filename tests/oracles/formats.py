"""Oracle of the data formats: parse lines of fastText, LIBSVM, extreme classification, CSV and JSON in plain Python.

Each function takes the bytes of a file and yields one `Line` for every example, and for every malformed line, which
has the column of what is wrong. Numbers are read by the oracle of the text reader, with VW's rounding.
"""

import csv
import io
import json
import math
import re
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from . import reader

WORD = re.compile(rb"[^ \t\n\v\f\r]+")


class Line(NamedTuple):
    """Hold one example, or what is wrong with it.

    Attributes
    ----------
    number : number of the line, from 1
    label : label as a word, empty for none
    features : [(path of names, value)]: (name,) in the default namespace, (namespace, name) in another one
    column : column of what is malformed, from 1, or 0
    weight, tag : weight and tag
    """

    number: int
    label: bytes = b""
    features: list[tuple[tuple[bytes, ...], np.float32]] = []  # noqa: RUF012 (never changed)
    column: int = 0
    weight: float = 1.0
    tag: bytes = b""


def is_class(label: bytes) -> bool:
    """Return whether a label is a class number."""
    return re.fullmatch(rb"(0|[1-9][0-9]*)(\.0*)?", label) is not None


def is_name(label: bytes) -> bool:
    """Return whether a label can be the name of a class."""
    return label != b"" and all(c >= 32 and c != ord(",") for c in label)


def hash_word(name: bytes, seed: int) -> int:
    """Return the hash of a name: the value plus the seed for numbers of 32 bits, else `hash_all`."""
    if re.fullmatch(rb"0|[1-9][0-9]{,9}", name) and int(name) < 2**32:
        return (int(name) + seed) % 2**32
    return reader.hash_all(name, seed)


def hashed(names: tuple[bytes, ...], seed: int, every: bool, of_name=hash_word) -> int:
    """Return the hash of a feature from its path of names, 32 bits; `of_name` hashes a name without --hash all."""
    one = reader.hash_all if every else of_name
    h = seed if len(names) > 1 else reader.hash_all(b"", seed) if seed else 0
    for name in names:
        h = one(name, h) & 0xFFFFFFFF
    return h


def number(text: bytes) -> np.float32 | None:
    """Return a finite number, or None."""
    try:
        if re.search(rb"[^0-9.eE+-]", text):  # Python reads `inf`, `1_000` and white space, too
            return None
        with np.errstate(over="ignore"):
            value = np.float32(float(text))
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def lines(data: bytes) -> Iterator[tuple[int, bytes, int]]:
    """Yield number and content of each line, and the number of bytes of its byte order mark."""
    data += b"" if data.endswith(b"\n") or not data else b"\n"
    for i, line in enumerate(data.split(b"\n")[:-1], 1):
        mark = 3 if line.startswith(b"\xef\xbb\xbf") else 0
        yield i, line, mark


def first_problem(line: bytes, column: int) -> int:
    """Return `column`, or that of a carriage return inside the line if it comes first; 0 for none."""
    returned = line.rstrip().find(b"\r") + 1
    return min(filter(None, (returned, column)), default=0)


def fasttext(data: bytes, valid=is_name) -> Iterator[Line]:
    """Yield the examples of lines of fastText."""
    for i, line, mark in lines(data):
        label, features, column, words = None, [], 0, list(WORD.finditer(line, mark))
        for word in words:
            if not word[0].startswith(b"__label__"):
                features.append(((word[0],), np.float32(1)))
            elif label is not None:
                column = word.start() + 1
            else:
                label = word[0][9:]
                column = 0 if valid(label) else word.start() + 10
            if column:
                break
        yield Line(i, label or b"", features, first_problem(line, column))


def pairs(data: bytes, limits: tuple[int, int] | None = None, valid=is_class) -> Iterator[Line]:
    """Yield the examples of lines of LIBSVM, or with `limits` those of the extreme classification repository.

    Parameters
    ----------
    limits : numbers of features and labels
    """
    for i, line, mark in lines(data):
        label, features, column, count = b"", [], 0, 0
        for word in WORD.finditer(line.partition(b"#")[0] if limits is None else line, mark):
            count += 1
            name, colon, value = word[0].partition(b":")
            if limits is None and word[0].startswith(b"qid:"):
                continue
            if not colon and count == 1:
                if b"," in name:
                    column = word.start() + name.index(b",") + 2
                elif (limits and not (name.isdigit() and int(name) < limits[1])) or not valid(name):
                    column = word.start() + 1
                label = name
            elif not colon or not re.fullmatch(rb"[0-9]+", name) or (limits and int(name) >= limits[0]):
                column = word.start() + 1
            else:
                read = number(value)
                if read is None:
                    column = word.start() + len(name) + 2
                elif read != 0:
                    features.append(((name,), read))
            if column:
                break
        column = first_problem(line, column)
        if count or limits or column:
            yield Line(i, label, features, column)


def csv_rows(data: bytes, label_column: int, numeric: list[bool], delimiter: str, valid=is_name) -> Iterator[Line]:
    """Yield the examples of the rows of a CSV file; the column of a malformed row is not 0, but not exact."""
    table = csv.reader(io.StringIO(data.decode("latin-1"), newline="\n"), delimiter=delimiter, strict=True)
    header = [name.strip().encode("latin-1") for name in next(table)]
    begin = table.line_num + 1
    for row in table:
        line, begin = begin, table.line_num + 1
        cells = [cell.encode("latin-1") for cell in row]
        if not cells:
            continue
        if len(cells) != len(header):
            yield Line(line, column=1)
            continue
        numbers, texts, column = [], {}, 0
        for k, cell in enumerate(cells):
            if k == label_column or not cell.strip():
                continue
            if not numeric[k]:
                texts.setdefault(header[k][0], []).extend(((header[k], word), np.float32(1)) for word in cell.split())
            elif number(cell.strip()) is None:
                column = column or k + 1
            elif number(cell.strip()) != 0:
                numbers.append(((header[k],), number(cell.strip())))
        label = b" ".join(cells[label_column].split())
        if label and not valid(label):
            column = 1
        yield Line(line, label, [*numbers, *(one for group in texts.values() for one in group)], column)


def json_lines(data: bytes) -> Iterator[Line]:
    """Yield the examples of JSON lines whose objects have the right types."""
    for i, line, mark in lines(data):
        if not line[mark:].strip():
            continue
        given = json.loads(line[mark:])
        features = [((word,), np.float32(1)) for word in (given.get("text") or "").encode().split()]
        nested: dict[int, list] = {}
        for name, value in (given.get("features") or {}).items():
            if isinstance(value, dict):
                group = nested.setdefault(name.encode()[0], [])
                group += [one for key, inner in value.items() for one in _json_feature((name.encode(),), key, inner)]
            else:
                features += _json_feature((), name, value)
        features += [one for group in nested.values() for one in group]
        label = given.get("label")
        label = label[0] if isinstance(label, list) else label
        word = b"" if label is None else b" ".join(str(label).encode().split())
        tag = b"_".join(str(given.get("tag") or "").encode().split())
        yield Line(i, word, features, 0, float(np.float32(given.get("weight", 1.0))), tag)


def _json_feature(path: tuple[bytes, ...], name: str, value: object) -> list:
    """Return the features of one entry of an object."""
    if value is None or value is False or value == 0:
        return []
    if isinstance(value, str):
        return [((*(path or (b" default",)), name.encode(), value.encode()), np.float32(1))]
    return [((*path, name.encode()), np.float32(value))]
