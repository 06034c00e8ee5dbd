"""The metrics of a runner for Prometheus, on a port of its own."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, start_http_server

SECONDS = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 7200)


class RunnerMetrics:
    """The counters of one runner."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self.running = Gauge(
            "penstock_runner_jobs_running", "Jobs being worked on now.", registry=self._registry
        )
        self._attempts = Counter(
            "penstock_runner_attempts",
            "Attempts by kind of job and the state after them.",
            ("kind", "state"),
            registry=self._registry,
        )
        self._seconds = Histogram(
            "penstock_runner_attempt_seconds",
            "Time from the lease of an attempt to its report.",
            ("kind",),
            buckets=SECONDS,
            registry=self._registry,
        )

        self._rows = Counter(
            "penstock_runner_rows",
            "Rows that were computed, and those of them that failed, by kind of job.",
            ("kind", "outcome"),
            registry=self._registry,
        )

    def count_rows(self, kind: str, computed: float, failed: float) -> None:
        """Count the rows of one attempt."""
        self._rows.labels(kind, "computed").inc(computed)
        self._rows.labels(kind, "failed").inc(failed)

    def observe(self, kind: str, state: str, seconds: float) -> None:
        """Count one finished attempt."""
        self._attempts.labels(kind, state).inc()
        self._seconds.labels(kind).observe(seconds)

    def serve(self, host: str, port: int) -> None:
        """Answer scrapes until the process ends."""
        start_http_server(port, host, self._registry)
