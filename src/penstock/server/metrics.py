"""What /metrics tells: requests by operation and status, latencies, and the database's work."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

CONTENT_TYPE = b"text/plain; version=0.0.4; charset=utf-8"
BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class Metrics:
    """The counters of one server process."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "penstock_requests",
            "Requests by operation and HTTP status.",
            ("operation", "status"),
            registry=self._registry,
        )
        self._seconds = Histogram(
            "penstock_request_seconds",
            "Time from the request's head to its answer.",
            ("operation",),
            buckets=BUCKETS,
            registry=self._registry,
        )
        self.in_flight = Gauge(
            "penstock_requests_in_flight", "Requests being answered now.", registry=self._registry
        )
        self._work = Gauge(
            "penstock_catalog_work",
            "Work that waits: database writes, commits to finish, folders to remove.",
            ("kind",),
            registry=self._registry,
        )
        self._up = Gauge(
            "penstock_database_up",
            "1 when the database answered at the last look.",
            ("kind",),
            registry=self._registry,
        )
        self._counters: dict[tuple[str, int], Counter] = {}
        self._histograms: dict[str, Histogram] = {}

    def observe(self, operation: str, status: int, seconds: float) -> None:
        """Count one answered request."""
        counter = self._counters.get((operation, status))
        if counter is None:
            counter = self._counters[operation, status] = self._requests.labels(operation, status)
        counter.inc()
        histogram = self._histograms.get(operation)
        if histogram is None:
            histogram = self._histograms[operation] = self._seconds.labels(operation)
        histogram.observe(seconds)

    def set_work(self, kind: str, count: int) -> None:
        self._work.labels(kind).set(count)

    def set_database(self, kind: str, up: bool) -> None:
        self._up.labels(kind).set(int(up))

    def render(self) -> bytes:
        return generate_latest(self._registry)
