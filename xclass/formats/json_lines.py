"""Read JSON lines, one object for each example: `{"label": "tea", "text": "kettle leaf", "features": {"sugar": 0.5}}`.

    label       text or number; null or a list of one label, too. White space within a label is replaced by `_`
    text        its words are features of the default namespace
    features    {name: value} for the default namespace, {namespace: {name: value}} for others; a value is a number,
                true for 1, false or null for no feature, or a text, which makes one feature with the name, as
                `name:text` does in VW text
    weight      importance of the example
    tag         word that is written after the prediction

Other keys are ignored; the first line that has some gives a warning.

Cost      About 15 ns per byte, on one thread.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..array_types import UInt8s
from ..text import parser
from ..text.malformed import ENTRY, RECORD, RECORD_END, SEVERAL_LABELS, WEIGHT_VALUE
from ..text.text_format import OtherFormat, WrittenFeature
from . import records
from .line_scanner import DEFAULT_GROUP

KEYS = ("label", "text", "features", "weight", "tag")
DECODER = json.JSONDecoder()
BLANKS = (" ", "\t", "\r", "\n")
LARGEST = float(np.finfo(np.float32).max)


class MalformedError(Exception):
    """Report what is malformed in an object: the problem, the keys that lead to it, and what to show."""

    def __init__(self, problem: int, path: Sequence[str], seen: object, ends: bool = False) -> None:
        super().__init__()
        self.problem, self.path, self.seen, self.ends = problem, path, seen, ends


def encoded(text: str) -> bytes:
    """Return a text as UTF-8; bytes that could not be decoded, and halves of surrogate pairs, are kept."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


def label_word(given: object) -> bytes:
    """Return a label as one word, empty for none.

    Raises
    ------
    MalformedError
        if it is no label.
    """
    if isinstance(given, list):
        if len(given) > 1:
            raise MalformedError(SEVERAL_LABELS, ("label",), given[1], True)
        given = given[0] if given else None
    if given is None:
        return b""
    if isinstance(given, str):
        return records.one_word(encoded(given))
    if isinstance(given, (int, float)) and not isinstance(given, bool):
        return _number(given).encode()
    raise MalformedError(ENTRY, ("label",), given, True)


def _number(given: float) -> str:
    """Return a number as text."""
    if isinstance(given, int):
        return str(given) if abs(given) < 10**20 else "1" + "0" * 20
    return repr(given)


def tag_word(given: object) -> bytes:
    """Return a tag as one word; raise MalformedError if it is none."""
    if given is None:
        return b""
    if isinstance(given, bool) or not isinstance(given, (str, int)):
        raise MalformedError(ENTRY, ("tag",), given)
    return records.one_word(encoded(str(given)))


def text_in(given: dict[str, Any]) -> str:
    """Return the text of an object, empty for none; raise MalformedError if it is not text."""
    text = given.get("text")
    if text is None:
        return ""
    if not isinstance(text, str):
        raise MalformedError(ENTRY, ("text",), text)
    return text


def namespaces_in(given: dict[str, Any]) -> list[tuple[str | None, dict[str, Any]]]:
    """Return the namespaces of an object and their features; the default one is None, those of a group are neighbours.

    Raises
    ------
    MalformedError
        if `features` is not an object.
    """
    features = given.get("features")
    if features is None:
        return []
    if not isinstance(features, dict):
        raise MalformedError(ENTRY, ("features",), features)
    groups: dict[int, list[tuple[str | None, dict[str, Any]]]] = {}
    plain: dict[str, Any] = {}
    groups[DEFAULT_GROUP] = [(None, plain)]
    for name, value in features.items():
        if isinstance(value, dict):
            key = encoded(name)
            groups.setdefault(key[0] if key else DEFAULT_GROUP, []).append((name, value))
        else:
            plain[name] = value
    return list(itertools.chain.from_iterable(groups.values()))


def is_value(value: object) -> bool:
    """Return whether a value is a number that a feature may have."""
    return isinstance(value, (int, float)) and abs(value) <= LARGEST


class JsonLines(OtherFormat):
    """Read JSON lines."""

    name = "jsonl"
    labelled = 'a labelled line is `{"label": "tea", "text": "kettle leaf"}`'
    parallel = False

    def scanner(self, of: parser.Parser) -> JsonScanner:
        return JsonScanner(of)

    def features(self, line: bytes) -> Iterator[WrittenFeature]:
        given = json.loads(records.source_of(line).decode("utf-8", "surrogateescape"))
        try:
            tag_word(given.get("tag"))
            namespaces = namespaces_in(given)
            for word in encoded(text_in(given)).split():
                yield WrittenFeature(word, np.float32(1))
            for namespace, features in namespaces:
                for name, value in features.items():
                    if value is None or value is False:
                        continue
                    if isinstance(value, str):
                        yield WrittenFeature(encoded(name), np.float32(1), encoded(namespace or ""), encoded(value))
                    elif is_value(value):
                        yield WrittenFeature(encoded(name), np.float32(value), encoded(namespace or ""))
                    else:
                        return
        except MalformedError:
            return  # `--on_bad_line vw` ignores the rest of the line

    def labels_of(self, text: bytes) -> Iterator[bytes]:
        for line in filter(bytes.strip, text.split(b"\n")):
            try:
                given = json.loads(line.decode("utf-8-sig", "surrogateescape"))
                yield label_word(given.get("label")) if isinstance(given, dict) else b""
            except (ValueError, RecursionError, MalformedError):  # an error is raised when the line is read
                yield b""


class JsonScanner(records.RecordScanner):
    """Parse blocks of JSON lines."""

    def __init__(self, of: parser.Parser) -> None:
        super().__init__(of.rules)
        self._notes = of.notes
        self._warned = False  # whether a key that is ignored was named

    def scan(self, text: UInt8s, end: int) -> parser.Scan:
        """Parse the complete lines of `text[:end]`."""
        lines = text[:end].tobytes().split(b"\n")[:-1]
        examples = records.Examples()
        self._content = bytearray()
        self._spaces: list[int] = []
        self._ends: list[int] = []  # begin and end of each item, alternately
        self._values: list[float] = []
        first = [0]
        for number, line in enumerate(lines, 1):
            line = line.removeprefix(b"\xef\xbb\xbf")
            if line.strip():
                self._read(line, number, examples)
                first.append(len(self._values))
        places = np.array(self._ends, np.int64).reshape(-1, 2)
        items = records.Items(
            np.array(first, np.int64), np.array(self._spaces, np.int32), places[:, 0].copy(), places[:, 1].copy(),
            np.array(self._values, np.float32),
        )  # fmt: skip
        return self.scan_of(
            examples, items, bytes(self._content), len(lines), end,
            lambda i: _column(lines[examples.line[i] - 1].removeprefix(b"\xef\xbb\xbf"), ("label",)),
        )  # fmt: skip

    def _read(self, line: bytes, number: int, examples: records.Examples) -> None:
        """Add the example of a line, with what is malformed in it."""
        label = tag = b""
        weight = 1.0
        try:
            given = json.loads(line.decode("utf-8", "surrogateescape"))
            if not isinstance(given, dict):
                raise MalformedError(ENTRY, (), given, True)
            if not given.keys() <= set(KEYS):
                self._warn(given, number)
            label = label_word(given.get("label"))
            tag = tag_word(given.get("tag"))
            self._add_features(given)
            weight = self._weight(given.get("weight", 1.0))
        except MalformedError as error:
            seen_text = error.seen if isinstance(error.seen, str) else json.dumps(error.seen)
            column = _column(line, error.path)
            if error.problem == WEIGHT_VALUE:
                weight = 0.0
            examples.problems[len(examples.line)] = records.Problem(
                error.problem, number, column, encoded(seen_text) or b'""', error.ends
            )
        except (ValueError, RecursionError) as error:
            at = getattr(error, "pos", 0)
            decoded = line.decode("utf-8", "surrogateescape")
            column = len(encoded(decoded[:at]))
            seen = line[column:].strip()
            problem = RECORD if seen else RECORD_END
            examples.problems[len(examples.line)] = records.Problem(problem, number, column + 1, seen, True)
        examples.add(number, label, tag, weight, line)

    def _warn(self, given: dict[str, Any], line: int) -> None:
        """Warn once about keys that are ignored."""
        if not self._warned:
            self._warned = True
            others = ", ".join(ascii(key) for key in given if key not in KEYS)
            self._notes.append(f"the keys {others} of JSON lines are ignored; those that are read: {', '.join(KEYS)}")

    @staticmethod
    def _weight(given: object) -> float:
        """Return the weight of an example."""
        if isinstance(given, bool) or not isinstance(given, (int, float)) or not 0 <= given <= LARGEST:
            raise MalformedError(WEIGHT_VALUE, ("weight",), given)
        return float(given)

    def _add_features(self, given: dict[str, Any]) -> None:
        """Add the items of an object, those of a group next to each other."""
        namespaces = namespaces_in(given)
        if text := text_in(given):
            self._item(0, encoded(text), math.nan)
        for namespace, features in namespaces:
            key = encoded(namespace or "")
            for name, value in features.items():
                if value is None or value is False:
                    continue
                if isinstance(value, str):
                    self._item(self.namespaces.number(key, encoded(name)), encoded(value), 1.0)
                elif is_value(value):
                    self._item(self.namespaces.number(key), encoded(name), float(value))
                else:
                    path = ("features", name) if namespace is None else ("features", namespace, name)
                    raise MalformedError(ENTRY, path, value)

    def _item(self, space: int, text: bytes, value: float) -> None:
        """Add an item."""
        self._spaces.append(space)
        self._ends += (len(self._content), len(self._content) + len(text))
        self._content += text
        self._values.append(value)


def _column(line: bytes, path: Sequence[str]) -> int:
    """Return the column, from 1, of a value in a line of JSON.

    Parameters
    ----------
    line : one valid value of JSON
    path : keys of the objects around the value, from the outside; the last of equal keys counts
    """
    text = line.decode("utf-8", "surrogateescape")
    place = _after_space(text, 0)
    for wanted in path:
        at = _after_space(text, place + 1)
        while text[at] != "}":
            key, at = DECODER.raw_decode(text, at)
            at = _after_space(text, _after_space(text, at) + 1)  # behind the colon
            if key == wanted:
                place = at
            at = _after_space(text, DECODER.raw_decode(text, at)[1])
            if text[at] == ",":
                at = _after_space(text, at + 1)
    return len(encoded(text[:place])) + 1


def _after_space(text: str, at: int) -> int:
    """Return the position of the first character from `at` on that is not white space."""
    while text[at : at + 1] in BLANKS:
        at += 1
    return at
