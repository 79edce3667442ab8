"""Read the JSON of requests, and describe them, the models, and counts of requests for programs.

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

`SHAPES` says once which fields they have, which values are allowed, and the limits: `read` checks it, and `openapi`
tells it to programs.
"""

from __future__ import annotations

import codecs
import itertools
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from ... import __version__
from ...api import configuration
from ...api.inputs import Documents
from ...api.learner import Learner
from ...data import class_names
from ...system import bounded_json, memory
from ...system.bounded_json import AnyOf, Kind, List, Malformed, Number, OrNull, Record, Text
from ...system.printable import printable, short_repr
from ..json_examples import GivenExamples
from ..service import Service

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


def read(operation: str, body: bytes, longest_line: int) -> GivenExamples | None:
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
        return GivenExamples(features, labels if operation == "learn" else None, weights, k, shares, form=kind)
    for i, text in enumerate(examples if kind != "rows" else ()):
        size = len(text) if text.isascii() else len(text.encode("utf-8", "surrogateescape"))
        if size > longest_line:
            raise Malformed(f"{kind}[{i}] has {size} bytes; allowed are {longest_line}")
    if kind == "lines":
        return GivenExamples(examples, None, None, k, shares)
    weights = given.get("weights")
    for name, values in (("labels", labels), ("weights", weights)):
        if values is not None and len(values) != len(examples):
            raise Malformed(f"{name} has {len(values)} values and {kind} {len(examples)}; give one for each")
    if kind == "texts":
        return GivenExamples(Documents(examples), labels, weights, k, shares, form=kind)
    for i, row in enumerate(examples):
        if len(row) != len(examples[0]):
            raise Malformed(
                f"rows[{i}] has {len(row)} numbers, and rows[0] has {len(examples[0])}; give as many in each"
            )
    return GivenExamples(np.array(examples, np.float32), labels, weights, k, shares, form=kind)


MOST_COLUMNS = 100  # of a table that are listed among the facts
SECONDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60)  # bounds of latency
FIGURES: tuple[tuple[type[Any], str, str, Callable[[Service], float | None]], ...] = (
    (CounterMetricFamily, "xclass_examples_learned", "Examples learned by the model", lambda one: one.learner.examples),
    (CounterMetricFamily, "xclass_examples_predicted", "Examples predicted over HTTP", lambda one: one.predicted),
    (CounterMetricFamily, "xclass_lines", "Lines answered by the line protocol", lambda one: one.lines),
    (CounterMetricFamily, "xclass_failed_saves", "Saves of the model that failed", lambda one: one.failed_saves),
    (GaugeMetricFamily, "xclass_unsaved_examples", "Examples learned that no file has", lambda one: one.unsaved),
    (
        GaugeMetricFamily,
        "xclass_progressive_loss",
        "Mean loss of the predictions made before learning",
        lambda one: one.learner.average_loss,
    ),
)


def _latency(service: Service) -> dict[str, float] | None:
    """Return the median and the 99th percentile of the milliseconds that the latest predictions took."""
    ordered = sorted(service.latest)
    if not ordered:
        return None
    last = len(ordered) - 1
    return {"median": 1e3 * ordered[round(0.5 * last)], "p99": 1e3 * ordered[round(0.99 * last)]}


def _number_of_classes(learner: Learner) -> int | None:
    """Return the number of classes, without the list of their names that `Learner.classes` makes."""
    names = learner.core.names
    if names.class_list is not None:
        return names.highest_seen
    return learner.core.spec.classes or learner.core.reduction.classes_seen


def _chosen_options(learner: Learner) -> dict[str, Any]:
    """Return the options of the model whose values are not the defaults."""
    declared = {name: o.default for name, o in configuration.declared_options().items()}
    return {
        name: value
        for name, value in learner.core.config.stored().items()
        if value not in (None, False, [], declared.get(name)) and name != "named_labels"
    }


NULLABLE = {"type": ["number", "null"]}
COUNT = {"type": "integer", "minimum": 0}
TEXT, YES_OR_NO = {"type": "string"}, {"type": "boolean"}
FACTS: dict[str, tuple[dict[str, Any], Callable[[Service], Any]]] = {  # of a model -> its JSON schema, and its value
    "reduction": (TEXT, lambda one: configuration.chosen_name(one.learner.core.config)),
    "labels": (
        {"type": "string", "enum": ["multiclass", "multilabel", "simple"]},
        lambda one: one.learner.core.config.reduction.labels,
    ),
    "classes": ({"type": ["integer", "null"]}, lambda one: _number_of_classes(one.learner)),
    "examples": (COUNT, lambda one: one.learner.examples),
    "average_loss": (
        {**NULLABLE, "description": "Mean loss of the predictions made before learning."},
        lambda one: one.learner.average_loss,
    ),
    "columns": (
        {
            "type": "object",
            "additionalProperties": {"enum": ["number", "text", "category", "dense"]},
            "description": "Columns of the tables learned from, which name features in a request, with their kinds.",
        },
        lambda one: dict(itertools.islice(one.learner.core.schema.columns.items(), MOST_COLUMNS)),
    ),
    "width": (
        {**COUNT, "description": "Numbers of a row, 0 if none were learned."},
        lambda one: one.learner.core.schema.width,
    ),
    "probabilities": (YES_OR_NO, lambda one: bool(one.learner.core.config.reduction.probabilities)),
    "learns": (YES_OR_NO, lambda one: one.learns),
    "options": ({"type": "object", "additionalProperties": True}, lambda one: _chosen_options(one.learner)),
    "predicted": (
        {**COUNT, "description": "Examples predicted over HTTP since the server began."},
        lambda one: one.predicted,
    ),
    "latency_ms": ({"anyOf": [{"$ref": "#/components/schemas/Latency"}, {"type": "null"}]}, _latency),
    "memory_bytes": (COUNT, lambda _: memory.taken()),
    "version": (TEXT, lambda _: __version__),
}


class Metrics:
    """Hold the metrics of a server; `services` has its models by name."""

    def __init__(self, services: Mapping[str, Service]) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(_Models(services))
        self._requests = Counter(
            "xclass_http_requests", "HTTP requests", ("operation", "status"), registry=self._registry
        )
        self._seconds = Histogram(
            "xclass_http_request_seconds",
            "Time from the end of a request's head to its answer",
            ("operation",),
            buckets=SECONDS,
            registry=self._registry,
        )
        self._children: dict[tuple[str, int], tuple[Counter, Histogram]] = {}

    def count(self, operation: str, status: int, seconds: float) -> None:
        """Count a request."""
        children = self._children.get((operation, status))
        if children is None:
            children = self._requests.labels(operation, str(status)), self._seconds.labels(operation)
            self._children[operation, status] = children
        children[0].inc()
        children[1].observe(seconds)

    def text(self) -> bytes:
        """Return the metrics in Prometheus' text format."""
        return generate_latest(self._registry)


class _Models(Collector):
    """Read figures of the models when they are asked for."""

    def __init__(self, services: Mapping[str, Service]) -> None:
        self._services = services

    def collect(self) -> Iterator[Metric]:
        for kind, name, description, figure in FIGURES:
            family = kind(name, description, labels=["model"])
            for file_name, service in self._services.items():
                value = figure(service)
                if value is not None:
                    family.add_metric([printable(file_name)], value)  # the name of a file may be no UTF-8
            yield family
        yield GaugeMetricFamily("xclass_memory_bytes", "Memory that the process takes", memory.taken())


Schema = dict[str, Any]
ERRORS = {
    400: "The request is malformed, has no Host or a query string, or the model refuses an example.",
    401: "The token is missing or wrong.",
    403: "Host or Origin is not the server's, or learning is not allowed at this address.",
    404: "There is no such model.",
    408: "The client sends no more, so what takes long is given up.",
    413: "The body, or the answer, is too long.",
    415: "The body is not declared as application/json, or is compressed otherwise than by gzip or deflate.",
    500: "The model cannot be saved, or the server has a defect.",
    503: "Too many requests wait, or the server has failed.",
}
SUMMARIES = {
    "predict": "Predict examples",
    "learn": "Predict examples, then learn from them, in order",
    "explain": "Explain the predictions of examples by the shares of their features",
    "save": "Save the model",
}


def openapi() -> bytes:
    """Return the description of the interface, as JSON of OpenAPI 3.1."""
    return json.dumps(described(), indent=1).encode()


def described() -> Schema:
    """Return the description."""
    paths: Schema = {}
    for before, name in (("/v1", ""), ("/v1/{name}", "Named")):
        more = {"parameters": [{"$ref": "#/components/parameters/name"}]} if name else {}
        for operation in SHAPES:
            paths[f"{before}/{operation}"] = {**more, "post": _post(operation, name)}
        paths[f"{before}/model"] = {
            **more, "get": _get(f"model{name}", "Return the facts of the model", _ref("Model"), 404)
        }  # fmt: skip
    names = _object({"models": {"type": "array", "items": TEXT}}, "models")
    status = _object({"status": TEXT}, "status")
    paths["/v1/models"] = {"get": _get("models", "Return the names of the models", names)}
    paths["/healthz"] = {"get": _get("healthz", "Say that the process is alive", status)}
    paths["/readyz"] = {"get": _get("readyz", "Say that requests are answered", status, 503)}
    metrics = _get("metrics", "Return metrics for Prometheus", {})
    metrics["responses"]["200"]["content"] = {"text/plain": {"schema": TEXT}}
    paths["/metrics"] = {"get": metrics}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "xclass",
            "version": __version__,
            "description": "Predict and learn one of many classes, or lists of labels. A server with one model answers "
            "/v1/predict and the like; with several models, these paths contain the name of a model.",
        },
        "servers": [{"url": ".", "description": "The folder of this description, also behind a proxy."}],
        "paths": paths,
        "components": {
            "parameters": {
                "name": {
                    "name": "name",
                    "in": "path",
                    "required": True,
                    "description": "The name of a model, which is the name of its file without the ending.",
                    "schema": {"type": "string", "minLength": 1, "pattern": "^[^/]+$"},
                }
            },
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": _schemas(),
            "responses": {
                str(status): {
                    "description": text,
                    "content": {"application/json": {"schema": _ref("Error")}},
                }
                for status, text in ERRORS.items()
            },
        },
    }


def _get(identifier: str, summary: str, schema: Schema, *errors: int) -> Schema:
    return {
        "operationId": identifier,
        "summary": summary,
        "responses": _responses(schema, (400, 403, *errors)),
    }


def _post(operation: str, name: str) -> Schema:
    title = operation.capitalize()
    changes = operation in ("learn", "save")
    return {
        "operationId": operation + name,
        "summary": SUMMARIES[operation],
        **({"security": [{}, {"token": []}]} if changes else {}),
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": _ref(f"{title}Request")}},
        },
        "responses": _responses(_ref(f"{title}Answer"), [n for n in ERRORS if changes or n != 401]),
    }


def _responses(schema: Schema, errors: Any) -> Schema:
    answered = {"description": "The answer.", "content": {"application/json": {"schema": schema}}}
    return {"200": answered, **{str(n): {"$ref": f"#/components/responses/{n}"} for n in errors}}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _list(name: str) -> Schema:
    return {"type": "array", "items": _ref(name)}


def _object(properties: Schema, *required: str) -> Schema:
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


def _schemas() -> Schema:
    warnings = {"type": "array", "items": TEXT}
    parts = {"type": "object", "additionalProperties": NULLABLE}
    scores = {"class": _ref("Class"), "score": NULLABLE, "probability": NULLABLE}
    explained = {
        **scores,
        "parts": parts,
        "shares": _list("Share"),
        "path": _list("Turn"),
    }
    explanation = {
        "prediction": _ref("Class"),
        "label": {},
        "considered": COUNT,
        "formula": TEXT,
        "uses_features": YES_OR_NO,
        "classes": _list("ExplainedClass"),
        "others": _list("OtherClass"),
    }
    model = {"name": TEXT, **{name: schema for name, (schema, _) in FACTS.items()}, "needs_token": YES_OR_NO}
    return {
        **COMPONENTS,
        "Error": _object({"error": TEXT}, "error"),
        **{f"{operation.capitalize()}Request": kind.schema for operation, kind in SHAPES.items()},
        "Class": {"type": ["number", "string", "null"], "description": "The number or the name of a class."},
        "Prediction": {
            "description": "A class, a number, or a list of labels; null if there is nothing to predict yet.",
            "anyOf": [{"type": "number"}, TEXT, {"type": "null"}, _list("Class")],
        },
        "Predicted": _object({"prediction": _ref("Prediction"), "top": _list("ListedClass")}, "prediction"),
        "ListedClass": _object({"class": _ref("Class"), "probability": {"type": "number"}}, "class", "probability"),
        "PredictAnswer": _object({"predictions": _list("Predicted"), "warnings": warnings}, "predictions"),
        "LearnAnswer": _object(
            {"learned": COUNT, "predictions": _list("Predicted"), "warnings": warnings}, "learned", "predictions"
        ),
        "Share": _object(
            {
                "name": {"type": "string", "description": "A feature, or a part of the learner such as (trees)."},
                "share": {**NULLABLE, "description": "What it adds to the score."},
                "parts": {**parts, "description": "What the share is the sum of."},
                "others": {
                    **COUNT,
                    "description": "Number of features that this share adds up; absent for a single feature.",
                },
            },
            "name",
            "share",
        ),
        "Turn": {"type": "object", "properties": {"shares": _list("Share")}},
        "ExplainedClass": _object(explained, *explained),
        "OtherClass": _object(scores, *scores),
        "Explanation": _object(explanation, *explanation),
        "ExplainAnswer": _object({"explanations": _list("Explanation"), "warnings": warnings}, "explanations"),
        "Latency": _object({"median": {"type": "number"}, "p99": {"type": "number"}}, "median", "p99"),
        "SaveAnswer": _object({"examples": COUNT}, "examples"),
        "Model": _object(model, *model),
    }
