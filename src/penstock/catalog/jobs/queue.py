"""What one server keeps of the queue in memory: settings, counters, and who waits for a job.

The jobs themselves are in the database. Bells wake those who wait on this server; what other
servers do is found by checking the database every second.
"""

import asyncio
import contextlib
import time
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field

from penstock.errors import InvalidRequest

DAY_MILLIS = 86_400_000
# The bell that rings after a commit, and when a job has ended.
CHANGES = "changes"
# A runner asks for work at least this often, unless it is busy; one that starts needs as long.
SEEN_SECONDS = 30.0
MISSED_SECONDS = 10.0
WAIT_BUCKETS = (0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0, 120.0, 600.0, 3600.0)


@dataclass
class Queue:
    """One server's view of the queue."""

    lease_seconds: int = 30
    heartbeat_seconds: int = 1
    max_attempts: int = 3
    history_days: int = 30
    clusters: Sequence[str] = ("local",)
    default_cluster: str = "local"
    # Since this server started, for metrics.
    leases_expired: int = 0
    runner_restarts: int = 0
    auto_backfills: int = 0
    auto_refreshes: int = 0
    # How many jobs waited for their first lease up to each of WAIT_BUCKETS, and longer.
    waits: list[int] = field(default_factory=lambda: [0] * (len(WAIT_BUCKETS) + 1))
    waited_seconds: float = 0.0
    is_closed: bool = False
    _bells: dict[str, asyncio.Event] = field(default_factory=dict)
    # When (monotonic) a runner last asked for work, by cluster; "" for all of them.
    _seen: dict[str, float] = field(default_factory=dict)
    # When one last said that it cannot work, and why.
    _troubles: dict[str, tuple[float, str]] = field(default_factory=dict)
    # When somebody last waited in vain for one.
    _missed: dict[str, float] = field(default_factory=dict)

    def check_cluster(self, name: str | None) -> str:
        """The cluster that a request names, or the default one."""
        wanted = self.default_cluster if name is None else name
        if wanted not in self.clusters:
            raise InvalidRequest(
                f"cluster {wanted!r} is unknown",
                detail="use one of " + ", ".join(sorted(self.clusters)),
            )
        return wanted

    def bell(self, of: str = "") -> asyncio.Event:
        """Rings at the next change of a job; without a job, when there may be work to lease.

        Take the bell before looking at the database, so that no change falls in between.
        """
        if self.is_closed:
            rung = asyncio.Event()
            rung.set()
            return rung
        return self._bells.setdefault(of, asyncio.Event())

    def ring(self, of: str = "") -> None:
        if (bell := self._bells.pop(of, None)) is not None:
            bell.set()

    def note_wait(self, seconds: float) -> None:
        self.waits[bisect_left(WAIT_BUCKETS, seconds)] += 1
        self.waited_seconds += seconds

    def note_runner(self, clusters: Sequence[str] | None, trouble: str = "") -> None:
        """A runner asks for work of these clusters, or is about to, or says why it cannot."""
        now = time.monotonic()
        for cluster in ("",) if clusters is None else clusters:
            if trouble:
                self._troubles[cluster] = (now, trouble)
            else:
                self._seen[cluster] = now

    def has_seen_runner(self, cluster: str) -> bool:
        """Whether a runner for the cluster asked lately, and none has told of trouble since."""
        oldest = time.monotonic() - SEEN_SECONDS
        return any(
            self._seen.get(each, oldest) > max(oldest, self._troubles.get(each, (oldest,))[0])
            for each in (cluster, "")
        )

    def find_trouble(self, cluster: str) -> str:
        """Why a runner of the cluster cannot work, if one said so lately."""
        oldest = time.monotonic() - SEEN_SECONDS
        told = [self._troubles.get(each, (oldest, "")) for each in (cluster, "")]
        return next((trouble for at, trouble in told if at > oldest), "")

    def miss_runner(self, cluster: str) -> None:
        """Somebody waited in vain for a runner, so that others need not wait as well."""
        self._missed[cluster] = time.monotonic()

    def has_missed_runner(self, cluster: str) -> bool:
        return time.monotonic() - self._missed.get(cluster, -MISSED_SECONDS) < MISSED_SECONDS

    @property
    def is_awaited(self) -> bool:
        return "" in self._bells

    def close(self) -> None:
        """Wake everybody who waits, because the server stops."""
        self.is_closed = True
        for of in list(self._bells):
            self.ring(of)


async def wait_for(bell: asyncio.Event, seconds: float) -> bool:
    """Wait until a bell rings; False when time is up first."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await bell.wait()
            return True
    return False
