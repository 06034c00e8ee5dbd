"""Limits per principal (requests a second, concurrent queries and uploads), and on failed logins
per address.

Each server counts for itself. Zero means no limit.
"""

from collections.abc import Callable
from dataclasses import dataclass

from penstock.errors import TooManyRequests

QUERIES, UPLOADS = "queries", "uploads"
# A principal, or an address in a tuple, so that they cannot be confused.
Key = str | tuple[str]
# How many buckets are kept; when there are more, all are dropped, which only refills them.
MAX_KEPT = 10_000


@dataclass(frozen=True, slots=True)
class Quotas:
    """What the settings allow."""

    requests_per_second: int = 0
    max_queries: int = 0
    max_uploads: int = 0
    failures_per_second: int = 0


class Limiter:
    """Counts what principals are doing."""

    def __init__(self, quotas: Quotas, clock: Callable[[], float]) -> None:
        self._quotas = quotas
        self._most = {QUERIES: quotas.max_queries, UPLOADS: quotas.max_uploads}
        self._clock = clock
        # How many requests are left, and since when.
        self._buckets: dict[Key, tuple[float, float]] = {}
        self._running: dict[tuple[str, str], int] = {}

    def take(self, principal: str) -> None:
        """Count a request; a second's worth may come at once."""
        rate = self._quotas.requests_per_second
        if rate and self._left(principal, rate) < 1:
            raise TooManyRequests(
                f"{principal} sends more than {rate} requests a second", detail="retry in a second"
            )
        self._count(principal, rate)

    def check_address(self, address: str) -> None:
        """Refuse an address that sent too many wrong credentials."""
        rate = self._quotas.failures_per_second
        if rate and self._left((address,), rate) < 1:
            raise TooManyRequests(
                "too many requests without the right credentials come from this address",
                detail="retry in a second",
            )

    def note_failure(self, address: str) -> None:
        """Count wrong or missing credentials."""
        self._count((address,), self._quotas.failures_per_second)

    def begin(self, principal: str, kind: str) -> Callable[[], None]:
        """Count long-running work; call the returned function when it ends."""
        most, key = self._most[kind], (principal, kind)
        running = self._running.get(key, 0)
        if most and running >= most:
            raise TooManyRequests(
                f"{principal} has {running} {kind} running", detail="retry when one has ended"
            )
        self._running[key] = running + 1

        def end() -> None:
            if self._running[key] <= 1:
                del self._running[key]
            else:
                self._running[key] -= 1

        return end

    def _left(self, key: Key, rate: int) -> float:
        left, since = self._buckets.get(key, (float(rate), self._clock()))
        return min(float(rate), left + (self._clock() - since) * rate)

    def _count(self, key: Key, rate: int) -> None:
        if rate:
            left = max(0.0, self._left(key, rate) - 1)
            if len(self._buckets) >= MAX_KEPT:
                self._buckets.clear()
            self._buckets[key] = (left, self._clock())
