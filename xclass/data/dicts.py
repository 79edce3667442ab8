"""Convert examples that are dictionaries into batches.

    {"sunny": 1, "colour": "red", "wind": {"speed": 3.5}}   is the VW text   | sunny:1 colour:red |wind speed:3.5

A name keeps the kind of its first value that is learned, text or a number: later values are read as it, see `schema`.

Cost      about 0.3 us for each feature whose name was hashed before.
Differs   from VW text in that a name may contain any characters, blanks, colons and bars included.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import DataError
from ..system.printable import short_repr
from . import array_input, batch_ops, schema
from .batch import CONSTANT, CONSTANT_GROUP, NO_TEXT, UNNAMED_GROUP, Batch
from .feature_names import LETTERS, NameHasher, encoded
from .schema import TEXT, Kinds, Schema

ALLOWED = "allowed are numbers up to 3.4e38, text, and None or NaN for a missing value"
FIRST = 16  # examples that are examined
NO_KINDS: dict[str, str] = {}
PLAIN = frozenset((float, int, str, bool, type(None)))  # types whose values need no test whether they are dictionaries


class _Rows:
    """Collect the features of examples as lists."""

    def __init__(self, learn: bool, room: int) -> None:
        self.start, self.index, self.value = [0], [], []  # type: list[int], list[int], list[float]
        self.group_first, self.group_name, self.group_start = [0], [], []  # type: list[int], list[int], list[int]
        self.scattered = False  # whether an example has two namespaces that belong to the same group
        self.names: Kinds = {}  # kinds of new names
        self.learn, self.room = learn, room  # whether they are learned from; number of names whose kinds can be kept


class DictConverter:
    """Convert dictionaries into batches; warnings are added to `notes`.

    `note_about_rows` returns that about examples that all have the same numbers, which are so many, or nothing.
    """

    def __init__(
        self, hasher: NameHasher, constant: bool, known: Schema, notes: list[str],
        note_about_rows: Callable[[int], str],
    ) -> None:  # fmt: skip
        self._note_about_rows = note_about_rows
        self._hasher, self._constant = hasher, constant
        self._schema, self._notes = known, notes
        self._first: list[Mapping[Any, Any]] = []  # examples that are learned first, until they are examined
        self._examined = known.is_known  # a model has told

    def _examine(self, examples: Sequence[Mapping[Any, Any]]) -> None:
        """Add notes about numbers that are text, or rows, in the first examples, once there are enough."""
        self._first += examples[: FIRST - len(self._first)]
        if len(self._first) < FIRST:
            return
        values: dict[str, list[Any]] = {}
        for example in self._first:
            for features in (example, *(one for one in example.values() if isinstance(one, Mapping))):
                for name, value in features.items():
                    values.setdefault(str(name), []).append(value)
        self._notes += self._schema.note_first(values, "feature")
        keys = self._first[0].keys()
        if all(example.keys() == keys and all(map(is_number, example.values())) for example in self._first):
            self._notes += filter(None, [self._note_about_rows(len(keys))])
        self._first, self._examined = [], True

    def batch(
        self, examples: Sequence[Mapping[Any, Any]], learn: bool = False, first_line: int = 1
    ) -> tuple[Batch, Kinds]:
        """Return dictionaries as a batch of unlabelled examples of weight 1, and the kinds of new names if `learn`.

        A dictionary maps names of features to values, or names of namespaces to such dictionaries. Text is a value,
        too: the feature is then the name together with the text. A missing value, such as None or NaN, is no feature.
        `first_line` numbers the first example in messages.
        """
        rows = _Rows(learn, self._schema.room if learn and not self._hasher.rule.vw_text else 0)
        for i, example in enumerate(examples):
            self._add(rows, example, first_line + i)
        n = len(examples)
        none = np.zeros(n, np.int64)
        if learn and not self._examined:
            self._examine(examples)
        rows.group_start.append(len(rows.index))
        batch = Batch(
            np.array(rows.start, np.int64), np.array(rows.index, np.uint32), np.array(rows.value, np.float32),
            np.array([math.nan] * n), np.ones(n, np.float32), np.zeros(n, np.float32),
            np.array(rows.group_first, np.int64), np.array(rows.group_name, np.uint8),
            np.array(rows.group_start, np.int64), none, none, np.arange(first_line, first_line + n), NO_TEXT,
        )  # fmt: skip
        if not rows.scattered:
            return batch, rows.names
        g = batch_ops.merge_groups(n, self._constant, batch)
        return batch_ops.trimmed(batch, n, len(batch.index), g), rows.names

    def as_learned(self, example: Mapping[Any, Any], space: str = "") -> dict[Any, Any]:
        """Return an example with the values as they are learned, for explanations."""
        kinds = self._schema.names.get(space, {})
        return {
            name: self.as_learned(value, str(name)) if isinstance(value, Mapping)
            else schema.converted(value, kinds[str(name)]) if str(name) in kinds else value
            for name, value in example.items()
        }  # fmt: skip

    def _add(self, rows: _Rows, example: Mapping[Any, Any], line: int) -> None:
        first = len(rows.index)
        namespaces: list[tuple[str, Mapping[Any, Any]]] = []
        self._add_features(rows, example, "", line, namespaces)
        groups = len(rows.group_name)
        if len(rows.index) > first:
            rows.group_name.append(UNNAMED_GROUP)
            rows.group_start.append(first)
        for namespace, features in namespaces:
            before = len(rows.index)
            self._add_features(rows, features, namespace, line)
            if len(rows.index) > before:
                rows.group_name.append((encoded(namespace) or b" ")[0])
                rows.group_start.append(before)
        if len(namespaces) > 1:
            names = rows.group_name[groups:]
            rows.scattered = rows.scattered or len(set(names)) < len(names)
        if self._constant:
            rows.group_name.append(CONSTANT_GROUP)
            rows.group_start.append(len(rows.index))
            rows.index.append(CONSTANT)
            rows.value.append(1.0)
        rows.start.append(len(rows.index))
        rows.group_first.append(len(rows.group_name))

    def _add_features(
        self,
        rows: _Rows,
        features: Mapping[Any, Any],
        space: str,
        line: int,
        namespaces: list[tuple[str, Mapping[Any, Any]]] | None = None,
    ) -> None:
        """Add features, except those with the value 0 or a missing value.

        Names with dictionaries as values are added to `namespaces`; None if such values are not allowed.
        """
        index_of, index, values, seed = self._hasher.index, rows.index, rows.value, self._hasher.namespace(space)
        kinds = self._schema.names.get(space, NO_KINDS)
        new = rows.names.setdefault(space, {}) if rows.room else NO_KINDS
        for name, value in features.items():
            kind = type(value)
            if type(name) is not str:
                name = _text(name, features, line)
            name_seed = seed
            known = kinds.get(name)
            if known is None and rows.room:
                known = new.get(name)
                if known is None and (of_value := schema.kind_of(value)):
                    new[name] = of_value
                    rows.room -= 1
            if known is not None and (known == TEXT) is not (kind is str):
                value, note = self._schema.read(name, value, known, rows.learn)
                if note:
                    self._notes.append(f"batch:{line}: {note}")
                kind = type(value)
            if kind is not float:
                if kind is str or isinstance(value, str):
                    name_seed, name, value = self._hasher.hash(name, seed), value, 1.0
                elif value is None:
                    continue
                elif namespaces is not None and kind not in PLAIN and isinstance(value, Mapping):
                    namespaces.append((name, value))
                    continue
                else:
                    number = array_input.number(value)
                    if number is None:
                        if array_input.is_missing(value):
                            continue
                        raise _wrong(name, value, line)
                    value = number
            if not -array_input.LARGEST <= value <= array_input.LARGEST:
                if value != value:
                    continue
                raise _wrong(name, value, line)
            if value != 0.0:
                index.append(
                    index_of(name, name_seed) if len(name) <= LETTERS else self._hasher.index_of_long(name, name_seed)
                )
                values.append(value)


def is_number(value: Any) -> bool:
    return isinstance(value, (float, np.floating)) or value == 0


def _text(name: Any, features: Mapping[Any, Any], line: int) -> str:
    """Return a name that is not text as text; raise DataError if another feature has it already."""
    if isinstance(name, bytes):
        raise DataError(f"batch:{line}: the feature {short_repr(name)} has a name of bytes; decode it")
    text = str(name)
    if not isinstance(name, str) and text in features:
        raise DataError(
            f"batch:{line}: the features {short_repr(name)} and {short_repr(text)} have the same name; give each a "
            "name of its own"
        )
    return text


def _wrong(name: str, value: object, line: int) -> DataError:
    value_text = f"{value:g}" if isinstance(value, float) and not math.isfinite(value) else short_repr(value)
    return DataError(f"batch:{line}: the feature {short_repr(name)} has the value {value_text}; {ALLOWED}")
