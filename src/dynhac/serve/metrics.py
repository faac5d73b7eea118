"""Figures for Prometheus: updates, latencies, the queue, points, clusters, snapshot and log."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

if TYPE_CHECKING:
    from dynhac.serve.service import Service

BUCKETS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)


class Metrics:
    """The metrics of one service, in a registry of their own."""

    def __init__(self, service: Service) -> None:
        registry = self._registry = CollectorRegistry()
        self.latency = Histogram(
            "dynhac_update_seconds",
            "Time from the arrival of an update until it is on the disk.",
            registry=registry,
            buckets=BUCKETS,
        )
        self.groups = Counter(
            "dynhac_groups", "Groups of updates that shared a commit.", registry=registry
        )
        self.requests = Counter(
            "dynhac_requests",
            "Requests by method, route and status.",
            ("method", "route", "status"),
            registry=registry,
        )
        self.request_seconds = Histogram(
            "dynhac_request_seconds",
            "Time until the first byte of an answer, by route.",
            ("route",),
            registry=registry,
            buckets=BUCKETS,
        )
        registry.register(_Present(service))

    def updated(self, seconds: Sequence[float]) -> None:
        """Note how long updates took."""
        for each in seconds:
            self.latency.observe(each)

    def text(self) -> bytes:
        """Return all metrics in the text format."""
        return generate_latest(self._registry)


class _Present(Collector):
    """Figures that are read when they are asked for."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def collect(self) -> Iterable[Metric]:
        service = self._service
        if not service.ready:
            return
        model, disk = service.model, service.disk()
        snapshot = disk["snapshot"]
        figures = [
            ("points", "Points or vertices in the model.", len(model)),
            ("clusters", "Clusters of the first watch.", len(service.watch)),
            ("update_number", "Updates since the store was new.", model.update_number),
            ("listeners", "Clients that listen to events.", service.hub.listeners),
            ("body_bytes", "Bytes of bodies in memory.", service.bodies.used),
            ("log_bytes", "Bytes of the log.", disk["log_bytes"]),
        ]
        if snapshot is not None:
            figures += [
                ("snapshot_age_seconds", "Age of the last snapshot.", snapshot["age_seconds"]),
                ("snapshot_bytes", "Bytes of the last snapshot.", snapshot["bytes"]),
            ]
        if service.writer is not None:
            figures.append(("queue_requests", "Updates that wait.", service.writer.waiting))
        for name, text, value in figures:
            yield GaugeMetricFamily(f"dynhac_{name}", text, value=value)
