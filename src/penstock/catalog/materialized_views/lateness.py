"""How late a view was: told from its refreshes, and from the times of its sources' versions."""

import msgspec

from penstock.catalog.jobs import jobs
from penstock.catalog.materialized_views import freshness
from penstock.catalog.materialized_views.materialized_views import MaterializedView
from penstock.database.interface import Transaction
from penstock.model.identifiers import to_path
from penstock.model.jobs import SUCCEEDED, Job
from penstock.model.slots import slot_of_view
from penstock.model.tables import MAIN

MAX_REFRESHES = 50


class Point(msgspec.Struct, frozen=True):
    """How late a view was at a moment."""

    at: int
    lag_seconds: float


async def list_refreshes(tx: Transaction, view_id: str) -> list[Job]:
    """The last refreshes of a view, the newest first."""
    rows = await tx.fetch(
        f"SELECT {jobs.COLUMNS} FROM jobs WHERE slot = $1 ORDER BY number DESC LIMIT $2",
        *(str(slot_of_view(view_id)), MAX_REFRESHES),
    )
    return [jobs.to_job(row) for row in rows]


async def find_points(tx: Transaction, view: MaterializedView, refreshes: list[Job]) -> list[Point]:
    """How late a view was since its oldest refresh here, as a line of straight parts.

    It falls with each refresh, and rises from the first change that the view missed. Before the
    last refresh its own sources count: what they are made from themselves does not.
    """
    line = _Line()
    before: dict[str, int] = {}
    for job in reversed(refreshes):
        if job.state != SUCCEEDED or job.finished_at is None:
            continue
        after = await _read_versions(tx, job)
        for versions in (before, after):
            if versions:
                line.add(job.finished_at, await _find_lag(tx, versions, job.finished_at))
        before = after
    clock = await tx.fetch_one("SELECT now_millis()")
    standing = await freshness.Tracer(tx).trace(view)
    lag = await freshness.find_lag_millis(tx, standing) if standing.is_stale else 0
    if line.points and clock is not None and lag is not None:
        line.add(clock[0], lag)
    return line.points


class _Line:
    """Points of a line that rises by a second each second, from the change that was missed."""

    def __init__(self) -> None:
        self.points = list[Point]()

    def add(self, at: int, lag: int) -> None:
        if lag and self.points and self.points[-1].at < at - lag:
            self.points.append(Point(at - lag, 0))
        self.points.append(Point(at, lag / 1000))


async def _read_versions(tx: Transaction, job: Job) -> dict[str, int]:
    """The versions that a refresh read, by the ids of the tables that have their names now."""
    found = {}
    told = job.result.get("source_versions")
    for name, version in (told if isinstance(told, dict) else {}).items():
        *namespace, last = name.split("$")
        row = await tx.fetch_one(
            "SELECT id FROM objects WHERE namespace = $1 AND name = $2",
            *(to_path(tuple(namespace)), last),
        )
        if row is not None and isinstance(version, int):
            found[row[0]] = version
    return found


async def _find_lag(tx: Transaction, versions: dict[str, int], at: int) -> int:
    """Milliseconds from the first change that was not in these versions, at a moment."""
    since = list[int]()
    for id, version in versions.items():
        row = await tx.fetch_one(
            "SELECT timestamp_millis FROM table_versions WHERE table_id = $1 AND branch = $2 "
            "AND version > $3 AND timestamp_millis <= $4 ORDER BY version LIMIT 1",
            *(id, MAIN, version, at),
        )
        if row is not None:
            since.append(row[0])
    return max(0, at - min(since, default=at))
