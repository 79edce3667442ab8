"""Count requests, and describe the models and the process, as Prometheus reads it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from ...system import memory
from ...system.printable import printable
from .desk import Desk

SECONDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60)  # bounds of latency


class Metrics:
    """Hold the metrics of a server; `desks` returns its models by name."""

    def __init__(self, desks: Callable[[], Mapping[str, Desk]]) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(_Models(desks))
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

    def __init__(self, desks: Callable[[], Mapping[str, Desk]]) -> None:
        self._desks = desks

    def collect(self) -> Iterator[Metric]:
        learned = CounterMetricFamily("xclass_examples_learned", "Examples learned by the model", labels=["model"])
        predicted = CounterMetricFamily("xclass_examples_predicted", "Examples predicted over HTTP", labels=["model"])
        loss = GaugeMetricFamily(
            "xclass_progressive_loss", "Mean loss of the predictions made before learning", labels=["model"]
        )
        lines = CounterMetricFamily("xclass_lines", "Lines answered by the line protocol", labels=["model"])
        failed = CounterMetricFamily("xclass_failed_saves", "Saves of the model that failed", labels=["model"])
        unsaved = GaugeMetricFamily("xclass_unsaved_examples", "Examples learned that no file has", labels=["model"])
        for file_name, desk in self._desks().items():
            name = printable(file_name)  # that of a file may be no UTF-8
            learner = desk.service.learner
            lines.add_metric([name], desk.service.lines)
            failed.add_metric([name], desk.service.failed_saves)
            unsaved.add_metric([name], desk.service.unsaved)
            learned.add_metric([name], learner.examples)
            predicted.add_metric([name], desk.predicted)
            if learner.average_loss is not None:
                loss.add_metric([name], learner.average_loss)
        yield from (learned, predicted, lines, failed, unsaved, loss)
        yield GaugeMetricFamily("xclass_memory_bytes", "Memory that the process takes", memory.taken())
