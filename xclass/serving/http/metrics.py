"""Count requests, and describe the models and the process, as Prometheus reads it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from ...system import memory
from ...system.printable import printable
from ..service import Service

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
