"""Describe a server for programs: its interface as OpenAPI 3.1, its models, and counts of requests for Prometheus.

The requests are those that `validation` allows.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from ... import __version__
from ...api import configuration
from ...api.learner import Learner
from ...system import memory
from ...system.printable import printable
from ..service import Service
from . import validation

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


def text() -> bytes:
    """Return the description as JSON."""
    return json.dumps(described(), indent=1).encode()


def described() -> Schema:
    """Return the description."""
    paths: Schema = {}
    for before, name in (("/v1", ""), ("/v1/{name}", "Named")):
        more = {"parameters": [{"$ref": "#/components/parameters/name"}]} if name else {}
        for operation in validation.SHAPES:
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
        **validation.COMPONENTS,
        "Error": _object({"error": TEXT}, "error"),
        **{f"{operation.capitalize()}Request": kind.schema for operation, kind in validation.SHAPES.items()},
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
