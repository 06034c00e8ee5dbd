"""The /metrics page: requests by operation and status, latencies, and the catalog's work.

Requests are counted in plain numbers, and converted to Prometheus' form only when scraped.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from penstock.catalog.catalog import UpkeepCounts
from penstock.catalog.jobs.queue import WAIT_BUCKETS, Queue

CONTENT_TYPE = b"text/plain; version=0.0.4; charset=utf-8"
BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class _Latency:
    """Latencies of one operation: counts by bucket, the last one for all that took longer."""

    def __init__(self) -> None:
        self.counts = [0] * (len(BUCKETS) + 1)
        self.seconds = 0.0


class Metrics(Collector):
    """The counters of one server process."""

    def __init__(self, queue: Queue | None = None, upkeep: UpkeepCounts | None = None) -> None:
        self.in_flight = 0
        self._queue = queue or Queue()
        self._upkeep = upkeep or UpkeepCounts()
        self._policies = (0, 0)
        self._jobs: dict[str, int] = {}
        self._stale: dict[bool, int] = {}
        self._stale_views: dict[bool, int] = {}
        self._requests: defaultdict[tuple[str, int], int] = defaultdict(int)
        self._latencies: defaultdict[str, _Latency] = defaultdict(_Latency)
        self._work: dict[str, int] = {}
        self._database: dict[str, bool] = {}
        self._registry = CollectorRegistry()
        self._registry.register(self)

    def observe(self, operation: str, status: int, seconds: float) -> None:
        """Count one answered request."""
        self._requests[operation, status] += 1
        latency = self._latencies[operation]
        latency.counts[bisect_left(BUCKETS, seconds)] += 1
        latency.seconds += seconds

    def set_work(self, kind: str, count: int) -> None:
        self._work[kind] = count

    def set_jobs(self, by_state: dict[str, int]) -> None:
        self._jobs = by_state

    def set_stale(self, by_auto: dict[bool, int]) -> None:
        self._stale = by_auto

    def set_stale_views(self, by_auto: dict[bool, int]) -> None:
        self._stale_views = by_auto

    def set_policies(self, policies: int, failing: int) -> None:
        self._policies = policies, failing

    def set_database(self, kind: str, up: bool) -> None:
        self._database[kind] = up

    def render(self) -> bytes:
        return generate_latest(self._registry)

    def collect(self) -> Iterator[Metric]:
        requests = CounterMetricFamily(
            "penstock_requests",
            "Requests by operation and HTTP status.",
            labels=("operation", "status"),
        )
        for (operation, status), count in self._requests.items():
            requests.add_metric((operation, str(status)), count)
        yield requests
        yield self._collect_latencies()
        yield GaugeMetricFamily(
            "penstock_requests_in_flight", "Requests being answered now.", value=self.in_flight
        )
        work = GaugeMetricFamily(
            "penstock_catalog_work",
            "Work that waits: database writes, commits to finish, folders to remove.",
            labels=("kind",),
        )
        for kind, count in self._work.items():
            work.add_metric((kind,), count)
        yield work
        database = GaugeMetricFamily(
            "penstock_database_up",
            "1 when the database answered at the last look.",
            labels=("kind",),
        )
        for kind, up in self._database.items():
            database.add_metric((kind,), int(up))
        yield database
        yield from self._collect_jobs()
        yield from self._collect_columns()
        yield from self._collect_views()
        yield from self._collect_upkeep()

    def _collect_jobs(self) -> Iterator[Metric]:
        jobs = GaugeMetricFamily("penstock_jobs", "Jobs by state.", labels=("state",))
        for state, count in self._jobs.items():
            jobs.add_metric((state,), count)
        yield jobs
        queue = self._queue
        yield CounterMetricFamily(
            "penstock_leases_expired",
            "Leases that this server took from runners that fell silent.",
            value=queue.leases_expired,
        )
        yield CounterMetricFamily(
            "penstock_runner_restarts",
            "How often the runner that this server started died and had to be replaced.",
            value=queue.runner_restarts,
        )
        waits = HistogramMetricFamily(
            "penstock_job_wait_seconds", "Time from a job's request to its first lease."
        )
        waits.add_metric((), _accumulate(WAIT_BUCKETS, queue.waits), queue.waited_seconds)
        yield waits

    def _collect_columns(self) -> Iterator[Metric]:
        yield CounterMetricFamily(
            "penstock_auto_backfills",
            "Backfills that this server requested by itself.",
            value=self._queue.auto_backfills,
        )
        stale = GaugeMetricFamily(
            "penstock_columns_stale",
            "Bound columns of tables that changed since their last whole backfill.",
            labels=("auto_backfill",),
        )
        for is_auto, count in self._stale.items():
            stale.add_metric((str(is_auto).lower(),), count)
        yield stale

    def _collect_views(self) -> Iterator[Metric]:
        yield CounterMetricFamily(
            "penstock_auto_refreshes",
            "Refreshes of materialized views that this server requested by itself.",
            value=self._queue.auto_refreshes,
        )
        stale = GaugeMetricFamily(
            "penstock_views_stale",
            "Materialized views that are behind what they read.",
            labels=("auto_refresh",),
        )
        for is_auto, count in self._stale_views.items():
            stale.add_metric((str(is_auto).lower(),), count)
        yield stale

    def _collect_upkeep(self) -> Iterator[Metric]:
        found = GaugeMetricFamily(
            "penstock_upkeep_policies",
            "Tables with a policy to keep them small, by how its last run went.",
            labels=("state",),
        )
        total, failing = self._policies
        found.add_metric(("ok",), total - failing)
        found.add_metric(("failing",), failing)
        yield found
        counts = self._upkeep
        runs = CounterMetricFamily(
            "penstock_upkeep_runs", "Runs of such policies by this server.", labels=("outcome",)
        )
        runs.add_metric(("ok",), counts.runs - counts.failures)
        runs.add_metric(("failed",), counts.failures)
        yield runs
        removed = CounterMetricFamily(
            "penstock_upkeep_removed", "What these runs removed.", labels=("kind",)
        )
        removed.add_metric(("fragments",), counts.fragments_removed)
        removed.add_metric(("versions",), counts.versions_removed)
        removed.add_metric(("bytes",), counts.bytes_removed)
        yield removed

    def _collect_latencies(self) -> Metric:
        found = HistogramMetricFamily(
            "penstock_request_seconds",
            "Time from the request's head to its answer.",
            labels=("operation",),
        )
        for operation, latency in self._latencies.items():
            found.add_metric((operation,), _accumulate(BUCKETS, latency.counts), latency.seconds)
        return found


def _accumulate(bounds: Sequence[float], counts: Sequence[int]) -> list[tuple[str, float]]:
    """Counts by bucket in Prometheus' form, where each bucket includes those before it."""
    buckets: list[tuple[str, float]] = []
    total = 0
    for bound, count in zip((*bounds, float("inf")), counts, strict=True):
        total += count
        buckets.append(("+Inf" if bound == float("inf") else str(float(bound)), total))
    return buckets
