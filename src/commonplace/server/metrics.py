"""Counts and durations of requests, as Prometheus reads them."""

from __future__ import annotations

from typing import Final

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Histogram, generate_latest

_BUCKETS_S: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class Metrics:
    """The figures of one server. Safe for threads."""

    media_type = CONTENT_TYPE_LATEST

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "commonplace_requests", "Requests answered.", ("operation", "method", "status"), registry=self._registry
        )
        self._seconds = Histogram(
            "commonplace_request_seconds",
            "Time to the end of the answer.",
            ("operation",),
            buckets=_BUCKETS_S,
            registry=self._registry,
        )

    def count(self, operation: str, method: str, status: int, seconds: float) -> None:
        """Count one request."""
        self._requests.labels(operation, method, str(status)).inc()
        self._seconds.labels(operation).observe(seconds)

    def text(self) -> bytes:
        """Return all figures in the text format."""
        return generate_latest(self._registry)
