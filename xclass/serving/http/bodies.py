"""Read the JSON of requests: which fields they have, which values are allowed, and the limits.

    predict   {"lines": ["| kettle leaf"], "k": 5}
    predict   {"examples": [{"features": {"kettle": 1, "leaf": 0.5}}], "k": 5}
    predict   {"texts": ["a kettle and a leaf"]}
    learn     {"lines": ["tea | kettle leaf"]}
    learn     {"examples": [{"features": {"kettle": 1}, "label": "tea", "weight": 2}]}
    learn     {"texts": ["a kettle and a leaf"], "labels": ["tea"]}
    explain   as predict, and "shares": the most shares of a class
    save      {}

`description` describes the same for programs.
"""

from __future__ import annotations

from typing import Any

from ...api.inputs import Documents
from ...system import bounded_json
from ...system.bounded_json import Kind, List, Malformed, Number, OrNull, Record, Text
from ...system.printable import short_repr
from .examples import Question

MOST_EXAMPLES = 10_000  # of a request
MOST_EXPLAINED = 16
MOST_VALUES = 1 << 20  # of a request: features, and all else
MOST_CLASSES = 1000  # that are listed
MOST_CLASSES_EXPLAINED = 20
MOST_SHARES = 1000
MOST_LABELS = 10_000  # of an example
LARGEST = 3.4e38  # value of a feature, or weight


class Line(Kind):
    """Allow a line of VW text."""

    def __init__(self) -> None:
        super().__init__(
            "a line of VW text with a bar and without a newline, such as '| name:value'; plain text belongs in texts",
            lambda value: isinstance(value, str) and "|" in value and "\n" not in value,
        )


class Features(Kind):
    """Allow features: names with values, or namespaces with such names."""

    def __init__(self, namespaces: bool) -> None:
        nested = "; or a namespace, an object of such values" if namespaces else ""
        super().__init__("an object of names and values", lambda value: isinstance(value, dict))
        self._value = Kind(
            f"a number from {-LARGEST:g} to {LARGEST:g}, a text, or null{nested}",
            lambda value: (
                value is None
                or isinstance(value, str)
                or (type(value) in (int, float) and -LARGEST <= value <= LARGEST)
                or (namespaces and isinstance(value, dict))
            ),
        )
        self._inner = Features(False) if namespaces else None

    def check(self, value: Any, key: str) -> None:
        super().check(value, key)
        for name, item in value.items():
            if not self._value.accepts(item):
                self._value.check(item, f"{key}.{short_repr(name)}")
            if self._inner is not None and isinstance(item, dict):
                self._inner.check(item, f"{key}.{short_repr(name)}")


class Label(Kind):
    """Allow a label: the number or the name of a class, or a list of them."""

    def __init__(self) -> None:
        super().__init__("a number, a text, or a list of them", self._is_label)

    @classmethod
    def _is_label(cls, value: Any) -> bool:
        if isinstance(value, list):
            return len(value) <= MOST_LABELS and all(cls._is_single(item) for item in value)
        return cls._is_single(value)

    @staticmethod
    def _is_single(value: Any) -> bool:
        return isinstance(value, str) or (type(value) in (int, float) and -LARGEST <= value <= LARGEST)


class Count(Kind):
    """Allow a whole number from 1 on, also as 5.0, which JSON does not tell from 5."""

    def __init__(self, most: int) -> None:
        allowed = f"a whole number from 1 to {most}"
        super().__init__(allowed, lambda value: type(value) in (int, float) and 1 <= value <= most and value % 1 == 0)


def _shape(optional: dict[str, Kind], labels: bool, most: int) -> Record:
    features = {"features": Features(True)}
    of_label = {"label": OrNull(Label()), "weight": Number(0, LARGEST)} if labels else {}
    kinds: dict[str, Kind] = {
        "lines": List(Line(), 1, most),
        "examples": List(Record(features, of_label), 1, most),
        "texts": List(Text(), 1, most),
    }
    if labels:
        kinds |= {"labels": List(OrNull(Label()), 1, most), "weights": List(Number(0, LARGEST), 1, most)}
    return Record({}, {**kinds, **optional})


SHAPES = {
    "predict": _shape({"k": Count(MOST_CLASSES)}, False, MOST_EXAMPLES),
    "learn": _shape({}, True, MOST_EXAMPLES),
    "explain": _shape({"k": Count(MOST_CLASSES_EXPLAINED), "shares": Count(MOST_SHARES)}, False, MOST_EXPLAINED),
    "save": Record(),
}


def read(operation: str, body: bytes, longest_line: int) -> Question | None:
    """Return the question that the body of a request asks, None for `save`; raise Malformed if it is none.

    `longest_line` bounds the characters of each line and of each text.
    """
    given = bounded_json.parse(body, SHAPES[operation], MOST_VALUES)
    if operation == "save":
        return None
    kinds = [kind for kind in ("lines", "examples", "texts") if kind in given]
    if len(kinds) != 1:
        raise Malformed(f"the request has {' and '.join(kinds) or 'no examples'}; give one of lines, examples or texts")
    (kind,) = kinds
    examples: Any = given[kind]
    k, shares = int(given["k"]) if "k" in given else None, int(given.get("shares", 20))
    if kind != "texts" and ("labels" in given or "weights" in given):
        raise Malformed(f"labels and weights belong to texts; {kind} have their own")
    if kind == "examples":
        labels = [one.get("label") for one in examples] if operation == "learn" else None
        weights = [one.get("weight", 1.0) for one in examples] if operation == "learn" else None
        return Question([one["features"] for one in examples], labels, weights, k, shares)
    for i, text in enumerate(examples):
        if len(text) > longest_line:
            raise Malformed(f"{kind}[{i}] has {len(text)} characters; allowed are {longest_line}")
    if kind == "lines":
        return Question(examples, None, None, k, shares)
    labels, weights = given.get("labels"), given.get("weights")
    if operation == "learn" and labels is None:
        raise Malformed("labels is missing; it has to be a list with the label of each text, null where it is unknown")
    for name, values in (("labels", labels), ("weights", weights)):
        if values is not None and len(values) != len(examples):
            raise Malformed(f"{name} has {len(values)} values and texts {len(examples)}; give one for each text")
    return Question(Documents(examples), labels, weights, k, shares)
