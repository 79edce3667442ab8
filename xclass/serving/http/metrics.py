"""Count requests, as Prometheus reads it, and describe the models and the process."""

from __future__ import annotations

import itertools
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
