"""Read the JSON of requests: which fields they have, which values are allowed, and the limits.

    predict   {"lines": ["| kettle leaf"], "k": 5}
    predict   {"examples": [{"features": {"kettle": 1, "leaf": 0.5}}], "k": 5}
    predict   {"texts": ["a kettle and a leaf"]}
    predict   {"rows": [[0.12, -0.5, 1.3]]}
    learn     {"lines": ["tea | kettle leaf"]}
    learn     {"examples": [{"features": {"kettle": 1}, "label": "tea", "weight": 2}]}
    learn     {"texts": ["a kettle and a leaf"], "labels": ["tea"]}
    learn     {"rows": [[0.25, -1.5, 3]], "labels": ["tea"]}
    explain   as predict, and "shares": the most shares of a class
    save      {}

`SHAPES` says this once: `read` checks it, and `description` tells it to programs.
"""

from __future__ import annotations

import codecs
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...api.inputs import Documents
from ...data import class_names
from ...system import bounded_json
from ...system.bounded_json import AnyOf, Kind, List, Malformed, Number, OrNull, Record, Text
from ...system.printable import short_repr
from ..examples import ExampleRequest

MOST_EXAMPLES = 10_000  # of a request
MOST_EXPLAINED = 16
MOST_VALUES = 1 << 20  # of a request: features, and all else
MOST_CLASSES = 1000  # that are listed
MOST_LISTED = 50_000  # examples times classes of an answer, which then has about 3 MB
MOST_CLASSES_EXPLAINED = 10
MOST_SHARES = 100  # of a class, or of a turn of a path through a tree
MOST_LABELS = 10_000  # of an example
LARGEST = 3.4e38  # value of a feature, or weight
COMPONENTS: dict[str, Mapping[str, Any]] = {}  # schemas by their names, so that programs can make types of them


def _component(name: str, kind: Kind) -> Kind:
    """Return a kind whose schema has a name, and is not repeated."""
    COMPONENTS[name], kind.schema = kind.schema, {"$ref": f"#/components/schemas/{name}"}
    return kind


NUMBER, WEIGHT = Number(-LARGEST, LARGEST), Number(0, LARGEST)
NAME = _component("ClassName", AnyOf("a number or a text", NUMBER, Text()))
LABELS = _component("LabelList", List(NAME, 0, MOST_LABELS))
LABEL = _component(
    "Label",
    OrNull(AnyOf("a number, a text, or a list of them", NAME, LABELS)),
)
COMPONENTS["Label"] = {"anyOf": [NUMBER.schema, {"type": "string"}, LABELS.schema, {"type": "null"}]}


ROW = _component("Row", List(NUMBER, 1, MOST_VALUES))


class LineKind(Kind):
    """Allow a line of VW text."""

    def __init__(self) -> None:
        super().__init__(
            "a line of VW text with a bar and without a newline, such as '| name:value'; plain text belongs in texts",
            lambda value: isinstance(value, str) and "|" in value and "\n" not in value,
            {"type": "string", "pattern": r"^[^\n]*\|[^\n]*$", "description": "A line of VW text."},
        )


class FeaturesKind(Kind):
    """Allow features: names with values, or namespaces with such names."""

    def __init__(self, namespaces: bool) -> None:
        self._inner = FeaturesKind(False) if namespaces else None
        nested = "; or a namespace, an object of such values; or the numbers of a dense column" if namespaces else ""
        values = [NUMBER.schema, {"type": "string"}, {"type": "null"}]
        if self._inner is not None:
            values += [self._inner.schema, ROW.schema]
        value = f"{'' if namespaces else 'Plain'}Value"
        COMPONENTS[value] = {"anyOf": values}
        super().__init__(
            "an object of names and values",
            lambda value: isinstance(value, dict),
            {"type": "object", "additionalProperties": {"$ref": f"#/components/schemas/{value}"}},
        )
        _component("Features" if namespaces else "Namespace", self)
        self._value = Kind(
            f"{NUMBER.allowed}, a text, or null{nested}",
            lambda value: (
                value is None
                or isinstance(value, str)
                or NUMBER.accepts(value)
                or (namespaces and isinstance(value, (dict, list)))
            ),
        )

    def check(self, value: Any, key: str) -> None:
        super().check(value, key)
        for name, item in value.items():
            if not self._value.accepts(item):
                self._value.check(item, f"{key}.{short_repr(name)}")
            if self._inner is not None and isinstance(item, (dict, list)):
                (self._inner if isinstance(item, dict) else ROW).check(item, f"{key}.{short_repr(name)}")


class Count(Kind):
    """Allow a whole number from 1 on, also as 5.0, which JSON does not tell from 5."""

    def __init__(self, most: int, **more: Any) -> None:
        super().__init__(
            f"a whole number from 1 to {most}",
            lambda value: type(value) in (int, float) and 1 <= value <= most and value % 1 == 0,
            {"type": "integer", "minimum": 1, "maximum": most, **more},
        )


class Either(Kind):
    """Allow objects of several kinds, each of which has a name that the others do not have."""

    def __init__(self, kinds: dict[str, Record]) -> None:
        super().__init__(
            "an object",
            lambda value: isinstance(value, dict),
            {"oneOf": [kind.schema for kind in kinds.values()]},
        )
        self._kinds = kinds

    def check(self, value: Any, key: str) -> None:
        super().check(value, key)
        given = [name for name in self._kinds if name in value]
        if len(given) != 1:
            found = " and ".join(given) or ", ".join(map(short_repr, [*value][:3])) or "none of them"
            raise Malformed(f"one of {', '.join(self._kinds)} has to be given, and there is {found}")
        self._kinds[given[0]].check(value, key)


FEATURES = FeaturesKind(True)


def _shape(name: str, optional: dict[str, Kind], labels: bool, most: int) -> Kind:
    """Return the kind of a request with at most `most` examples, which have labels and weights if `labels`."""
    features = {"features": FEATURES}
    of_texts = {"labels": List(LABEL, 1, most)} if labels else {}
    of_label: dict[str, Kind] = {"label": LABEL, "weight": WEIGHT} if labels else {}
    weights: dict[str, Kind] = {"weights": List(WEIGHT, 1, most)} if labels else {}
    example = _component(f"{name}Example", Record(features, of_label))
    kinds = {
        "lines": Record({"lines": List(LineKind(), 1, most)}, optional),
        "examples": Record({"examples": List(example, 1, most)}, optional),
        "texts": Record({"texts": List(Text(), 1, most), **of_texts}, {**weights, **optional}),
        "rows": Record({"rows": List(ROW, 1, most), **of_texts}, {**weights, **optional}),
    }
    for given, kind in kinds.items():
        _component(f"{name}{given.capitalize()}", kind)
    return Either(kinds)


SHAPES = {
    "predict": _shape(
        "Predict",
        {"k": Count(MOST_CLASSES, description=f"Classes to list; at most {MOST_LISTED} for all examples.")},
        False,
        MOST_EXAMPLES,
    ),
    "learn": _shape("Learn", {}, True, MOST_EXAMPLES),
    "explain": _shape(
        "Explain",
        {"k": Count(MOST_CLASSES_EXPLAINED, default=2), "shares": Count(MOST_SHARES, default=20)},
        False,
        MOST_EXPLAINED,
    ),
    "save": Record(),
}
FORMS = ("lines", "examples", "texts", "rows")


def _labels(given: Any) -> list[Any] | None:
    return [one.get("label") for one in given["examples"]] if "examples" in given else given.get("labels")


def read(operation: str, body: bytes, longest_line: int) -> ExampleRequest | None:
    """Return the examples that the body of a request holds, None for `save`; raise Malformed if it is none.

    `longest_line` bounds the bytes of each line and of each text.
    """
    given = bounded_json.parse(body.removeprefix(codecs.BOM_UTF8), SHAPES[operation], MOST_VALUES)
    if operation == "save":
        return None
    (kind,) = (kind for kind in FORMS if kind in given)
    examples: Any = given[kind]
    k, shares = int(given["k"]) if "k" in given else None, int(given.get("shares", 20))
    if len(examples) * (k or 0) > MOST_LISTED:
        raise Malformed(f"{len(examples)} examples with {k} classes each are more than the {MOST_LISTED} of an answer")
    labels = _labels(given)
    if class_names.has_whole_float(labels):
        labels = _labels(class_names.exact_json(body))
    if kind == "examples":
        weights = [one.get("weight", 1.0) for one in examples] if operation == "learn" else None
        features = [one["features"] for one in examples]
        return ExampleRequest(features, labels if operation == "learn" else None, weights, k, shares, form=kind)
    for i, text in enumerate(examples if kind != "rows" else ()):
        size = len(text) if text.isascii() else len(text.encode("utf-8", "surrogateescape"))
        if size > longest_line:
            raise Malformed(f"{kind}[{i}] has {size} bytes; allowed are {longest_line}")
    if kind == "lines":
        return ExampleRequest(examples, None, None, k, shares)
    weights = given.get("weights")
    for name, values in (("labels", labels), ("weights", weights)):
        if values is not None and len(values) != len(examples):
            raise Malformed(f"{name} has {len(values)} values and {kind} {len(examples)}; give one for each")
    if kind == "texts":
        return ExampleRequest(Documents(examples), labels, weights, k, shares, form=kind)
    for i, row in enumerate(examples):
        if len(row) != len(examples[0]):
            raise Malformed(
                f"rows[{i}] has {len(row)} numbers, and rows[0] has {len(examples[0])}; give as many in each"
            )
    return ExampleRequest(np.array(examples, np.float32), labels, weights, k, shares, form=kind)
