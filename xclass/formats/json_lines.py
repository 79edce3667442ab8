"""Read JSON lines, one object for each example: `{"label": "tea", "text": "kettle leaf", "features": {"sugar": 0.5}}`.

    label       text or number, a list of them where a reduction learns several labels; null for none
    text        its words are features of the default namespace
    features    {name: value} for the default namespace, {namespace: {name: value}} for others; a value is a number,
                true for 1, false or null for no feature, or a text, which makes one feature with the name, as
                `name:text` does in VW text; a value is read as of the kind that the name had first, see `schema`
    weight      importance of the example
    tag         word that is written after the prediction

Other keys are ignored; the first line that has some gives a warning.

If none of the first lines (TYPED_BYTES) has the key `text` or `features`, or an option names columns, each key is a
column, as in a CSV file: `{"intent": "tea", "message": "kettle leaf", "price": 0.5}` with --label_column intent. A key
that is absent is a missing cell, as null is.

Cost      About 15 ns per byte, on one thread.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import math
import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np

from ..array_types import UInt8s
from ..data import array_input, cells, class_names, schema
from ..data.batch import UNNAMED_GROUP
from ..data.feature_names import encoded
from ..data.schema import Kinds, Schema, category, kind_of, listed, number_in, written
from ..errors import DataError
from ..system.printable import short_repr
from ..text import malformed, numbers, parser, reader
from ..text.text_format import OtherFormat, WrittenFeature
from . import records
from .columns import Columns, is_bit, items_of
from .csv_table import TYPED_BYTES

KEYS = ("label", "text", "features", "weight", "tag")
MOST_PLANNED = 1 << 18  # keys in all plans that are kept, see `cells`
# kinds, of which the last one of the cells is that of a column
BY_STRENGTH = ("", schema.NUMBER, schema.CATEGORY, schema.TEXT)
# namespace; name of the feature, its value and None, or its word, 1 and the name, or a text of words, NaN and None
Item: TypeAlias = tuple[bytes, bytes, float, bytes | None]
DECODER = json.JSONDecoder()
BLANKS = re.compile(r"[ \t\r\n]*")
ALLOWED = {  # by the keys that lead to a value; of labels, values of features and cells, VALUE
    (): "an object", ("text",): "a text", ("features",): "an object", ("tag",): "a text or a whole number",
}  # fmt: skip
VALUE = "a text, a number or null"
LABELS = "a text, a number, a list of them or null"
LONG_NUMBER = re.compile(rb"(?<![0-9])[0-9]{4300,}")
TOKEN = re.compile(rb'("(?:[^"\\]|\\.)*")[ \t\r]*:|"(?:[^"\\]|\\.)*"|[{}]')  # group 1 is a key


class MalformedError(Exception):
    """Report what is malformed in an object: the problem, the keys that lead to it, and what to show."""

    def __init__(self, problem: int, path: Sequence[str], seen: object, ends: bool = False, column: str = "") -> None:
        super().__init__()
        self.problem, self.path, self.seen, self.ends, self.column = problem, path, seen, ends, column


def label_text(given: object, key: str, columns: Columns | None = None) -> bytes:
    """Return a label, or a list of labels, as text, empty for none; raise MalformedError if it is no label.

    `columns` say how a text is a list of labels.
    """
    if isinstance(given, list):
        if (inner := next((label for label in given if isinstance(label, list)), None)) is not None:
            raise MalformedError(malformed.ENTRY, (key,), inner, True)
        given = [class_names.in_lists(label) if isinstance(label, str) else label for label in given]
        if len(given) > 1:
            return b",".join(label_text(label, key) for label in given)
        given, columns = given[0] if given else None, None
    if given is None:
        return b""
    if isinstance(given, str):
        if columns is not None and (columns.separator or items_of(encoded(given).strip()) is not None):
            return columns.label_of(encoded(given))
        if "," in given:
            raise MalformedError(malformed.LABEL_NAME, (key,), given, True)
        try:
            return records.one_line(given.encode("utf-8", "surrogateescape"))
        except UnicodeEncodeError:  # half of a surrogate pair, which `class_names.fault_of` names
            raise MalformedError(malformed.LABEL_NAME, (key,), given, True) from None
    number = isinstance(given, (int, float, Decimal)) and not isinstance(given, bool)
    if not number or abs(given) == math.inf or given != given:  # type: ignore[arg-type]  # it is a number
        raise MalformedError(malformed.ENTRY, (key,), given, True)
    return class_names.spelled(given).encode()


def tag_word(given: object) -> bytes:
    """Return a tag as one word; raise MalformedError if it is none."""
    if given is None:
        return b""
    if isinstance(given, bool) or not isinstance(given, (str, int)):
        raise MalformedError(malformed.ENTRY, ("tag",), given)
    return records.one_word(encoded(str(given)))


def text_in(given: dict[str, Any]) -> str:
    text = given.get("text")
    if text is None:
        return ""
    if not isinstance(text, str):
        raise MalformedError(malformed.ENTRY, ("text",), text)
    return text


def namespaces_in(given: dict[str, Any]) -> list[tuple[str | None, dict[str, Any]]]:
    """Return the namespaces of an object and their features: None for the default one, those of a group together."""
    features = given.get("features")
    if features is None:
        return []
    if not isinstance(features, dict):
        raise MalformedError(malformed.ENTRY, ("features",), features)
    groups: dict[int, list[tuple[str | None, dict[str, Any]]]] = {}
    plain: dict[str, Any] = {}
    groups[UNNAMED_GROUP] = [(None, plain)]
    for name, value in features.items():
        if isinstance(value, dict):
            key = encoded(name)
            groups.setdefault(key[0] if key else UNNAMED_GROUP, []).append((name, value))
        else:
            plain[name] = value
    return list(itertools.chain.from_iterable(groups.values()))


def number_of(value: object, key: str) -> float:
    """Return the number in a column of numbers, NaN if it is missing; raise MalformedError if it is none."""
    if isinstance(value, str):
        number = number_in(value)
        if number is None or abs(number) > array_input.LARGEST:
            raise MalformedError(malformed.CELL, (key,), value, column=key)
        return number
    if not is_value(value):
        raise MalformedError(malformed.ENTRY, (key,), value)
    return float(value)  # type: ignore[arg-type]  # it is a number


def _kind_of_cell(value: object) -> str:
    """Return the kind of a column that has a value, nothing for a missing one; long numbers are identifiers."""
    if value is None:
        return ""
    if not isinstance(value, (int, float)):
        return schema.TEXT
    return schema.CATEGORY if isinstance(value, int) and abs(value) > schema.LARGEST_WHOLE else schema.NUMBER


def is_value(value: object) -> bool:
    """Return whether a value is a number that a feature may have."""
    return isinstance(value, (int, float)) and abs(value) <= array_input.LARGEST


class JsonLines(OtherFormat):
    """Read JSON lines.

    If the schema has no columns, those of flat objects are added, and the kinds of names in `features`.

    `flat` says whether keys are columns, and `inner_keys` is the number of keys of the features in the object whose
    items were yielded last.
    """

    name = "jsonl"
    form = ""  # which the keys decide
    parallel = False
    dense = ""

    def __init__(self, options: reader.ReaderOptions, schema: Schema) -> None:
        super().__init__()
        self.columns = Columns(options, schema)
        self.schema, self.file, self.inner_keys = schema, "", 0
        chosen = options.label_column or schema.label or "label"
        self.label = None if chosen == "0" or self.columns.find_labels(()) else chosen
        self.flat = bool(schema) or self.columns.named
        self._others: list[str] = []  # keys of the first lines that are none of KEYS
        self._begun = False  # whether it is known what keys are
        self._plans: dict[tuple[str, ...], list[tuple[str, str]]] = {}  # keys of a line -> its columns, in order

    @property
    def labelled(self) -> str:  # type: ignore[override]  # other formats have a constant
        if self.flat or self.label != "label" or self._others:
            known = listed(self._others or [*self.schema.columns])
            return (
                f"no line has a label with the key {short_repr(self.label)}; name the key by --label_column, such as "
                f"one of {known}"
            )
        return 'a labelled line is `{"label": "tea", "text": "kettle leaf"}`'

    def begin(self, text: bytes, ended: bool, file: str) -> tuple[int, int] | None:
        self.file = file
        first = text.removeprefix(b"\xef\xbb\xbf").lstrip()
        kind, jq = "", ""
        if first.startswith(b"["):
            kind, jq = "an array of JSON", "jq -c '.[]'"
        elif first.partition(b"\n")[0].strip() == b"{":
            kind, jq = "JSON with objects of several lines", "jq -c ."
        if kind:
            raise DataError(f"{file}:1:1: this is {kind}; write one object on each line, such as by `{jq} FILE`")
        if self._begun or (ended and not first):  # without a line, the next file decides what keys are
            return 0, 0
        lines = _objects(text, ended)
        keys = dict.fromkeys(key for line in lines for key in line)
        if self.columns.label is None and self.label == "label" not in keys and "labels" in keys:
            self.label = "labels"
        self._others = [key for key in keys if key not in KEYS]
        for line in lines:
            self.take_row(line)
        nested = not self.flat and any("text" in line or "features" in line for line in lines)
        waits = not self.schema
        if nested:
            waits = self.schema.room > 0 and not self.schema.names and "features" in lines[0]
        if waits and not ended and len(text) < TYPED_BYTES:
            return None
        if nested:
            self.schema.add_form(schema.OTHER)
        if nested and waits:
            self._add_names(lines)
        elif not nested:
            self.flat = self.flat or any(not line.keys() <= {self.label, "weight", "tag"} for line in lines)
            if self.flat:
                self._begin_columns(lines, file)
        self.columns.keep_labels()
        self._begun = True
        return 0, 0

    def take_row(self, given: dict[str, Any]) -> tuple[tuple[str, ...], Any]:
        """Remove the row of numbers of --dense from an object; return its keys and what it is, None for none."""
        features = given.get("features")
        if self.dense and isinstance(features, dict) and self.dense in features:
            return ("features", self.dense), features.pop(self.dense)
        return (self.dense or "",), given.pop(self.dense, None) if self.dense else None

    def _add_names(self, lines: Sequence[dict[str, Any]]) -> None:
        """Keep the kinds of the names in the first lines; a name with numbers is of the kind number."""
        names: Kinds = {}
        texts: dict[str, list[str]] = {}  # the first texts of each name
        for line in lines:
            with contextlib.suppress(MalformedError):
                for namespace, features in namespaces_in(line):
                    kinds = names.setdefault(namespace or "", {})
                    for name, value in features.items():
                        kind = kind_of(value) if value is not False else ""
                        if kind and kinds.get(name) != schema.NUMBER:
                            kinds[name] = kind
                        if isinstance(value, str) and len(texts.setdefault(name, [])) < cells.SAMPLE:
                            texts[name].append(value)
        self.schema.add_names(names)
        self.notes += [f"{self.file}: {note}" for note in self.schema.note_first(texts, "feature")]

    def _begin_columns(self, lines: Sequence[dict[str, Any]], file: str) -> None:
        """Take the columns of the first lines, or compare them with those of the model."""
        kinds: dict[str, str] = {}
        for line in lines:
            for key, value in line.items():
                kinds[key] = max(kinds.get(key, ""), _kind_of_cell(value), key=BY_STRENGTH.index)
        if not kinds:
            return
        self.columns.find_labels(kinds)
        known = [key for key in kinds if key != self.label and key and key not in self.columns.labels]
        if self.schema:
            missing = [key for key in self.schema.columns if key not in kinds]
            others = [key for key in self.schema.additional(known) if key != self.label]
            if missing and (others or len(missing) == len(self.schema.columns)):
                self.schema.positions(known, f"{file}: the first line")
        shown = [
            *known,
            *self.schema.columns,
            *self.schema.labels,
            *(key for key in self.columns.labels if key in kinds),
        ]
        self.columns.check_options(shown, self.label, file)
        first = {key: [line[key] for line in lines[: cells.SAMPLE] if line.get(key) is not None] for key in known}
        if self.schema:
            notes = self.schema.changed(first)
        else:
            found = {key: kinds[key] or schema.TEXT for key in self.columns.features(known, self.label)}
            notes = self.columns.adopt(found, self.label, file, first)
        self.notes += [f"{file}: {note}" for note in notes]
        self.about.append(f"Each key is a column; {self.columns.about(self.label)}")

    def label_in(self, given: dict[str, Any], line: bytes) -> bytes:
        """Return the label of the object in a line as `label_text` does."""
        if self.label is None:
            return b""
        label = given.get(self.label)
        if class_names.has_whole_float(label) and class_names.may_be_rounded(self.label).search(line):
            label = class_names.exact_json(line)[self.label]
        return label_text(label, self.label, self.columns)

    def labels_in(self, given: dict[str, Any]) -> bytes:
        """Return the labels of an object, its keys of --label_columns that have 1; raise MalformedError otherwise."""
        values = [given.get(key) for key in self.columns.labels]
        found = self.columns.labels_in([b"" if value is None else encoded(str(value)) for value in values])
        if found is None:
            wrong = next(k for k, v in enumerate(values) if v is not None and not is_bit(encoded(str(v))))
            raise MalformedError(malformed.ENTRY, (self.columns.labels[wrong],), values[wrong], True, "1 or 0")
        return found

    def left_out(self, keys: Sequence[str]) -> str:
        if self.flat:
            return self.columns.left_out(key for key in keys if key != self.label)
        known = [self.label or "label", *KEYS[1:]]
        others = [key for key in keys if key not in known]
        if not others:
            return ""
        return (
            f"the keys {listed(others)} of JSON lines are ignored; those that are read: {', '.join(known)}. To read "
            "keys as columns, name them, as in --columns KEY,KEY"
        )

    def items(self, given: dict[str, Any], place: str, notes: list[str], learning: bool = False) -> Iterator[Item]:
        """Yield what an object says about features, those of a group next to each other; warnings go to `notes`.

        Raise MalformedError if a value is not allowed.
        """
        self.inner_keys = 0
        if self.flat:
            yield from self._cells(given, place, notes)
            return
        if text := text_in(given):
            yield b"", encoded(text), math.nan, None
        namespaces = namespaces_in(given)
        self.inner_keys = sum(len(features) for _, features in namespaces) + max(0, len(namespaces) - 1)
        for namespace, features in namespaces:
            space, kinds = encoded(namespace or ""), self.schema.names.get(namespace or "", {})
            for name, value in features.items():
                if value is None or value is False:
                    continue
                kind = schema.TEXT if isinstance(value, str) else schema.NUMBER
                if kinds.get(name, kind) != kind:
                    value, note = self.schema.read(name, value, kinds[name], learning)
                    if note:
                        notes.append(f"{place}: {note}")
                    if value != value:
                        continue  # a missing number
                if isinstance(value, str):
                    yield space, encoded(value), 1.0, encoded(name)
                elif is_value(value):
                    yield space, encoded(name), float(value), None
                else:
                    path = ("features", name) if namespace is None else ("features", namespace, name)
                    raise MalformedError(malformed.ENTRY, path, value)

    def _cells(self, given: dict[str, Any], place: str, notes: list[str]) -> Iterator[Item]:
        """Yield the items of a flat object in the order of the schema."""
        keys = tuple(given)
        plan = self._plans.get(keys)
        if plan is None:
            plan = [(key, self.schema.columns[key]) for key in itertools.chain(*self.schema.in_order()) if key in given]
            if len(self._plans) * len(keys) < MOST_PLANNED:
                self._plans[keys] = plan
        for key, kind in plan:
            value = given[key]
            if value is None:
                continue
            if kind == schema.NUMBER:
                number = number_of(value, key)
                if number == number:
                    yield b"", encoded(key), number, None
                if abs(number) > schema.EXACT and isinstance(value, int) and (note := self.columns.rounded(key, value)):
                    notes.append(f"{place}: {note}")
            elif not isinstance(value, (str, int, float)) or (isinstance(value, float) and not math.isfinite(value)):
                row = isinstance(value, list) and value and all(map(is_value, value))
                wanted = f"{VALUE}, or --dense KEY" if row else ""
                raise MalformedError(malformed.ENTRY, (key,), value, column=wanted)
            elif kind == schema.TEXT:
                yield encoded(key), encoded(written(value)), math.nan, None
            elif cell := category(written(value)):
                yield encoded(key), encoded(cell), 1.0, None

    def scanner(self, of: parser.Parser) -> JsonScanner:
        of.options.check_dense()
        of.width = of.width or self.schema.width
        return JsonScanner(of, self)

    def features(self, line: bytes) -> Iterator[WrittenFeature]:
        given = json.loads(records.source_of(line).decode("utf-8", "surrogateescape"))
        self.take_row(given)
        try:
            if not self.flat:
                tag_word(given.get("tag"))
            for namespace, text, value, feature in self.items(given, "", []):
                if value != value:
                    yield WrittenFeature(text, np.float32(1), namespace, is_text=True)
                elif feature is None:
                    yield WrittenFeature(text, np.float32(value), namespace)
                else:
                    yield WrittenFeature(feature, np.float32(1), namespace, text)
        except MalformedError:
            return  # `--on_bad_line vw` ignores the rest of the line

    def labels_of(self, text: bytes) -> Iterator[tuple[bytes, bool]]:
        for line in filter(bytes.strip, text.split(b"\n")):
            try:
                given = json.loads(line.decode("utf-8-sig", "surrogateescape"))
                if self.columns.labels and isinstance(given, dict):
                    yield self.columns.as_list(self.labels_in(given)), True
                    continue
                label = given.get(self.label) if isinstance(given, dict) and self.label else None
                yield (
                    self.label_in(given, line) if isinstance(given, dict) else b"",
                    isinstance(label[0] if label and isinstance(label, list) else label, str),
                )
            except (ValueError, RecursionError, MalformedError):  # an error is raised when the line is read
                yield b"", False


class JsonScanner(records.RecordScanner):
    def __init__(self, of: parser.Parser, lines: JsonLines) -> None:
        super().__init__(of)
        self._lines, self._parser = lines, of
        self._warned = False  # whether a key that is ignored was named

    def scan(self, text: UInt8s, end: int) -> parser.Scan:
        whole = text[:end].tobytes()
        lines = whole.split(b"\n")[:-1]
        own: list[str | None] = [*self._lines.columns.labels] or [self._lines.label]
        self._known = {*(self._lines.schema.columns if self._lines.flat else KEYS[1:]), *own}
        self._keys: list[int] = []  # number of keys in the line of each example, -1 if it cannot be read
        examples = records.Examples()
        self._content = bytearray()
        self._spaces: list[int] = []
        self._ends = [0]  # of the items, each of which begins where the one before ends
        self._values: list[float] = []
        self._rows: list[list[float] | None] = []  # of the dense block, None for 0
        first, empty = [0], []
        for number, line in enumerate(lines, 1):
            line = line.removeprefix(b"\xef\xbb\xbf")
            if not line.strip():
                empty.append(number)
            else:
                self._read(line, number, examples)
                first.append(len(self._values))
        if _key_ends(whole) != sum(self._keys):
            self._find_equal_keys(lines, examples)
        ends = np.array(self._ends, np.int64)
        items = records.Items(
            np.array(first, np.int64), np.array(self._spaces, np.int32), ends[:-1], ends[1:],
            np.array(self._values, np.float32),
        )  # fmt: skip
        scan = self.scan_of(
            examples, items, bytes(self._content), len(lines), end,
            lambda i: _column(lines[examples.line[i] - 1].removeprefix(b"\xef\xbb\xbf"), (self._lines.label or "",)),
            np.array(empty, np.int64),
        )  # fmt: skip
        width = self._parser.width if self._lines.dense else 0
        if not width:
            return scan
        kept = np.searchsorted(examples.line, scan.batch.line[: scan.size[0]]).tolist()
        zeros = [0.0] * width
        dense = np.array([self._rows[i] or zeros for i in kept], np.float32).reshape(len(kept), width)
        return scan._replace(batch=scan.batch._replace(dense=dense))

    def _take_row(self, given: dict[str, Any]) -> None:
        """Keep the row of numbers of an object; the first one says how many columns there are, unless that is known."""
        path, row = self._lines.take_row(given)
        if row is None:
            return
        self._keys[-1] += len(path) - 1
        numbers_only = isinstance(row, list) and all(map(is_value, row))
        if numbers_only and row:
            self._parser.width = self._parser.width or len(row)
        if not numbers_only or len(row) != self._parser.width:
            wanted = f"a list of {self._parser.width or 'finite'} numbers"
            raise MalformedError(malformed.ENTRY, path, row, False, wanted)
        self._rows[-1] = row

    def _read(self, line: bytes, number: int, examples: records.Examples) -> None:
        label = tag = b""
        weight = 1.0
        self._keys.append(-1)
        self._rows.append(None)
        try:
            given = DECODER.decode(line.decode("utf-8", "surrogateescape"))
            if not isinstance(given, dict):
                raise MalformedError(malformed.ENTRY, (), given, True)
            self._keys[-1] = len(given)
            self._take_row(given)
            if not self._warned and not given.keys() <= self._known:
                self._warn(given)
            if self._lines.columns.labels:
                label = self._lines.labels_in(given)
            else:
                label = self._lines.label_in(given, line)
                if self.rules.lists and given.get(self._lines.label) == []:
                    label = b","  # known to have no label
            if not self._lines.flat:
                tag = tag_word(given.get("tag"))
            self._add_items(given, number)
            if not self._lines.flat:
                weight = self._weight(given.get("weight"))
        except MalformedError as error:
            seen_text = error.seen if isinstance(error.seen, str) else json.dumps(error.seen, default=str)
            column = _column(line, error.path)
            if isinstance(error.seen, float) and (written := numbers.NUMBER.match(line, column - 1)):
                seen_text = written[0].decode()  # `1e400`, where Python's value is infinite
            if error.problem == malformed.WEIGHT_VALUE:
                weight = 0.0
            of_list = self.rules.lists and tuple(error.path) == (self._lines.label,)
            allowed = LABELS if of_list else ALLOWED.get(tuple(error.path), VALUE)
            examples.problems[len(examples.line)] = records.RecordProblem(
                error.problem, number, column, encoded(seen_text), error.ends, encoded(error.column) or allowed.encode()
            )
        except (ValueError, RecursionError) as error:
            digits = LONG_NUMBER.search(line)  # Python does not convert it, and does not say where it is
            at = getattr(error, "pos", None)
            decoded = line.decode("utf-8", "surrogateescape")
            column = len(encoded(decoded[:at])) if at is not None else digits.start() if digits else 0
            seen = line[column:].strip()
            problem = malformed.RECORD if seen else malformed.RECORD_END
            if seen.startswith(b"'"):
                problem = malformed.RECORD_QUOTES
            if at is None and digits:
                problem = malformed.ENTRY
            elif b"\r" in line.rstrip():
                problem, column = malformed.INNER_RETURN, line.index(b"\r")
            examples.problems[len(examples.line)] = records.RecordProblem(problem, number, column + 1, seen, True)
        examples.add(number, label, tag, weight, line)

    def _find_equal_keys(self, lines: list[bytes], examples: records.Examples) -> None:
        """Add the problems of lines with a key that occurs twice in an object."""
        for i, (number, keys) in enumerate(zip(examples.line, self._keys, strict=True)):
            line = lines[number - 1].removeprefix(b"\xef\xbb\xbf")
            if keys >= 0 and _key_ends(line) != keys and _has_equal_keys(line) and (at := _second_of_key(line)) >= 0:
                key = DECODER.raw_decode(line[at:].decode("utf-8", "surrogateescape"))[0]
                examples.problems[i] = records.RecordProblem(malformed.KEY_TWICE, number, at + 1, encoded(key), True)

    def _warn(self, given: dict[str, Any]) -> None:
        note = self._lines.left_out([*given])
        if note:
            self._warned = True
            self._parser.notes.append(note)

    @staticmethod
    def _weight(given: object) -> float:
        if given is None:
            return 1.0
        if isinstance(given, bool) or not isinstance(given, (int, float)) or not 0 <= given <= array_input.LARGEST:
            raise MalformedError(malformed.WEIGHT_VALUE, ("weight",), given)
        return float(given)

    def _add_items(self, given: dict[str, Any], line: int) -> None:
        last, space = b"", 0
        place = f"{self._lines.file}:{self._parser.lines + line}"
        items = self._lines.items(given, place, self._parser.notes, self._parser.learning)
        for namespace, text, value, feature in items:
            if feature is not None:
                self._spaces.append(self.namespaces.number(namespace, feature))
            else:
                if namespace is not last:
                    last, space = namespace, self.namespaces.number(namespace)
                self._spaces.append(space)
            self._content += text
            self._ends.append(len(self._content))
            self._values.append(value)
        self._keys[-1] += self._lines.inner_keys


def _objects(text: bytes, ended: bool) -> list[dict[str, Any]]:
    """Return the objects that can be read in the first lines, at least one line."""
    objects = []
    end = min(len(text), TYPED_BYTES)
    end = end if ended and end == len(text) else text.rfind(b"\n", 0, end) + 1 or text.find(b"\n") + 1
    for line in text[:end].split(b"\n"):
        with contextlib.suppress(ValueError, RecursionError):
            given = json.loads(line.decode("utf-8-sig", "surrogateescape"))
            if isinstance(given, dict):
                objects.append(given)
    return objects


def _key_ends(text: bytes) -> int:
    """Return how often a quote and a colon follow each other in JSON, with or without white space between them."""
    return text.translate(None, b" \t\r").count(b'":')


def _has_equal_keys(line: bytes) -> bool:
    """Return whether an object in a line of valid JSON has a key twice; ten times as fast as to find where."""
    equal: list[bool] = []
    text = line.decode("utf-8", "surrogateescape")
    json.loads(text, object_pairs_hook=lambda pairs: equal.append(len(dict(pairs)) < len(pairs)))
    return any(equal)


def _second_of_key(line: bytes) -> int:
    """Return where a line of valid JSON has a key that its object has already, -1 if there is none."""
    known: list[set[bytes]] = []  # keys of the objects around the place
    for token in TOKEN.finditer(line):
        if token[0] == b"{":
            known.append(set())
        elif token[0] == b"}":
            known.pop()
        elif token[1] is not None:
            key = json.dumps(json.loads(token[1].decode("utf-8", "surrogateescape"))).encode()
            if key in known[-1]:
                return token.start()
            known[-1].add(key)
    return -1


def _column(line: bytes, path: Sequence[str]) -> int:
    """Return the column, from 1, of a value in a line of JSON.

    `path` are the keys of the objects around the value, from the outside; the last of equal keys counts.
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
    return BLANKS.match(text, at).end()  # type: ignore[union-attr]  # it matches an empty text, too
