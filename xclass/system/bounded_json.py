"""Read JSON that anybody may have written: bounded in size, without ambiguity, and of a declared shape.

    SHAPE = Record({"name": Text(), "sums": List(Number(0), 40, 40)}, optional={"seconds": Number(0)})
    record = read(path, SHAPE, "write it again with --summary")      # raises DataError
    record = parse(line, SHAPE)                                      # raises Malformed

JSON of Python accepts more than JSON has, and more than a reader wants: NaN, infinite numbers (1e999), numbers of any
length, names that occur twice, halves of surrogate pairs, and any depth. All of this is refused here, and so is a value
that its shape does not allow. The errors say where the value is, what it is, and what is allowed.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from ..errors import DataError
from . import streams
from .printable import short_repr

MOST_BYTES = 1 << 26  # of a file; the outcomes of a summary take at most 12 MB
MOST_ITEMS = 1 << 20  # values of a text, which bounds the memory that they take
MOST_DEPTH = 32
MOST_DIGITS = 400  # characters of a number
TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[^\s"{}\[\],:]+', re.DOTALL)  # a text, a number, or a constant
NONE: Mapping[str, Any] = MappingProxyType({})


class Malformed(ValueError):
    """Report JSON that is not read: what is wrong, and the line and column, from 1, or 0 if they are not known."""

    def __init__(self, reason: str, line: int = 0, column: int = 0) -> None:
        super().__init__(f"line {line}, column {column}: {reason}" if line else reason)
        self.reason, self.line, self.column = reason, line, column


class Kind:
    """Say which values are allowed: what `accepts` accepts, apart from the values in it.

    Messages call it `allowed`; `schema` tells it, and what is allowed in the values, to programs as a JSON schema.
    """

    def __init__(self, allowed: str, accepts: Callable[[Any], bool], schema: Mapping[str, Any] = NONE) -> None:
        self.allowed, self.accepts, self.schema = allowed, accepts, schema

    def check(self, value: Any, key: str) -> None:
        """Raise Malformed if a value or one in it is not allowed; `key` says where it is."""
        if not self.accepts(value):
            raise Malformed(f"{key or 'the JSON'} is {short_repr(value)}; allowed is {self.allowed}")


class Anything(Kind):
    def __init__(self) -> None:
        super().__init__("any value", lambda value: True)


class Text(Kind):
    def __init__(self) -> None:
        super().__init__("a text", lambda value: isinstance(value, str), {"type": "string"})


class OneOf(Kind):
    def __init__(self, texts: tuple[str, ...]) -> None:
        allowed = " or ".join(map(repr, texts))
        super().__init__(allowed, lambda value: isinstance(value, str) and value in texts, {"enum": texts})


class Whole(Kind):
    def __init__(self, low: int = 0, high: int = (1 << 62) - 1) -> None:
        allowed = f"a whole number from {low} to {high}"
        super().__init__(
            allowed,
            lambda value: type(value) is int and low <= value <= high,
            {"type": "integer", "minimum": low, "maximum": high},
        )


class Number(Kind):
    def __init__(self, low: float = -1e300, high: float = 1e300) -> None:
        allowed = f"a number from {low:g} to {high:g}"
        super().__init__(
            allowed,
            lambda value: type(value) in (int, float) and low <= value <= high,
            {"type": "number", "minimum": low, "maximum": high},
        )


class OrNull(Kind):
    def __init__(self, kind: Kind) -> None:
        super().__init__(
            f"{kind.allowed}, or null",
            lambda value: value is None or kind.accepts(value),
            {"anyOf": [kind.schema, {"type": "null"}]},
        )
        self._kind = kind

    def check(self, value: Any, key: str) -> None:
        super().check(value, key)
        if value is not None:
            self._kind.check(value, key)


class AnyOf(Kind):
    """Allow what one of several kinds allows; of those that accept a value, the first checks what is in it."""

    def __init__(self, allowed: str, *kinds: Kind) -> None:
        super().__init__(
            allowed,
            lambda value: any(kind.accepts(value) for kind in kinds),
            {"anyOf": [kind.schema for kind in kinds]},
        )
        self._kinds = kinds

    def check(self, value: Any, key: str) -> None:
        super().check(value, key)
        next(kind for kind in self._kinds if kind.accepts(value)).check(value, key)


class List(Kind):
    """Allow lists of `least` to `most` values of a kind."""

    def __init__(self, kind: Kind, least: int = 0, most: int = MOST_ITEMS) -> None:
        count = f"{least}" if least == most else f"{least} to {most}"
        allowed = "a list" if most == MOST_ITEMS and not least else f"a list of {count} values"
        super().__init__(
            allowed,
            lambda value: isinstance(value, list) and least <= len(value) <= most,
            {"type": "array", "items": kind.schema, "minItems": least, "maxItems": most},
        )
        self._kind = kind

    def check(self, value: Any, key: str) -> None:
        super().check(value, key)
        for i, item in enumerate(value):
            self._kind.check(item, f"{key}[{i}]")


class Record(Kind):
    """Allow objects with the names `fields`, perhaps those of `optional`, and others if `others` is a kind."""

    def __init__(
        self, fields: Mapping[str, Kind] = NONE, optional: Mapping[str, Kind] = NONE, others: Kind | None = None
    ) -> None:
        self._fields, self._known, self._others = fields, {**fields, **optional}, others
        super().__init__(
            "an object",
            lambda value: isinstance(value, dict),
            {
                "type": "object",
                "properties": {name: kind.schema for name, kind in self._known.items()},
                "required": list(fields),
                "additionalProperties": False if others is None else others.schema,
            },
        )

    def check(self, value: Any, key: str) -> None:
        super().check(value, key)
        before = f"{key}." if key else ""
        for name, kind in self._fields.items():
            if name not in value:
                raise Malformed(f"{before}{name} is missing; it has to be {kind.allowed}")
        for name, item in value.items():
            found = self._known.get(name, self._others)
            if found is None:
                known = f"are {', '.join(self._known)}" if self._known else "is an object without names"
                raise Malformed(f"{before}{short_repr(name)} is not known; allowed {known}")
            found.check(item, before + (name if name.isidentifier() else short_repr(name)))


def parse(text: str | bytes, kind: Kind, most_items: int = MOST_ITEMS) -> Any:
    """Return the value of a JSON text of a kind, with at most `most_items` values; raise Malformed if it is none."""
    commas = text.count(",") if isinstance(text, str) else text.count(b",")
    if commas >= most_items:
        raise Malformed(f"there are {commas} commas; allowed are at most {most_items} values")
    try:
        if isinstance(text, bytes):
            text = text.decode()
        value = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise Malformed(f"this is no JSON: {error.msg}", error.lineno, error.colno) from None
    except UnicodeDecodeError as error:
        assert isinstance(text, bytes)
        line, begin = text.count(b"\n", 0, error.start) + 1, text.rfind(b"\n", 0, error.start)
        raise Malformed(f"byte {text[error.start]:#x} is not UTF-8", line, error.start - begin) from None
    except _WrongNumber as error:
        assert isinstance(text, str)
        token, reason = error.args
        begin = next(found.start() for found in TOKEN.finditer(text) if found[0].startswith(token))
        line = text.count("\n", 0, begin) + 1
        raise Malformed(reason, line, begin - text.rfind("\n", 0, begin)) from None
    except RecursionError:
        raise Malformed(f"it is nested too deeply; allowed is a depth of {MOST_DEPTH}") from None
    _check_values(value, 0)
    kind.check(value, "")
    return value


def read(path: str, kind: Kind, cure: str) -> Any:
    """Return the value of a JSON file of a kind; `cure` ends the message of an error and says what to do."""
    data = streams.read_file(path, cure, MOST_BYTES)
    try:
        return parse(data, kind)
    except Malformed as error:
        raise refusal(path, error, cure) from None


def refusal(path: str, error: Malformed, cure: str, lines_before: int = 0, about: str = "") -> DataError:
    """Return the error for a file that is malformed after some lines; `about` begins its message."""
    line = lines_before + max(error.line, 1)
    place = f"{path}:{line}:{error.column}" if error.line else f"{path}:{line}" if lines_before else path
    return DataError(f"{place}: {about}{error.reason}; {cure}")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    parsed: dict[str, Any] = {}
    for name, value in pairs:
        if name in parsed:
            raise Malformed(f"the name {short_repr(name)} occurs twice in an object")
        parsed[name] = value
    return parsed


class _WrongNumber(Exception):
    """Report a number that is not read: its text, and why."""


def _number(convert: Callable[[str], float]) -> Callable[[str], float]:
    """Return a function that converts the text of a number, and raises _WrongNumber if it is too long or infinite."""

    def number(text: str) -> float:
        value = convert(text) if len(text) <= MOST_DIGITS else math.inf
        if not -math.inf < value < math.inf:
            raise _WrongNumber(text, f"the number {text[:20]}{'...' * (len(text) > 20)} is too large")
        return value

    return number


def _constant(text: str) -> None:
    raise _WrongNumber(text, f"{text} is no JSON; allowed are finite numbers")


def _check_values(value: Any, depth: int) -> None:
    """Raise Malformed if a value is nested too deeply, or a text in it is not Unicode.

    Surrogates that stand for bytes which could not be decoded, as in the names of files, are allowed.
    """
    if isinstance(value, str):
        if not value.isascii():
            try:
                value.encode("utf-8", "surrogateescape")
            except UnicodeEncodeError as error:
                code = value[error.start]
                raise Malformed(f"the text {short_repr(value)} has half a surrogate pair, {short_repr(code)}") from None
    elif isinstance(value, (dict, list)):
        if depth >= MOST_DEPTH:
            raise Malformed(f"it is nested too deeply; allowed is a depth of {MOST_DEPTH}")
        for item in value:
            _check_values(item, depth + 1)
        for item in value.values() if isinstance(value, dict) else ():
            _check_values(item, depth + 1)


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object, parse_int=_number(int), parse_float=_number(float), parse_constant=_constant
)
