"""The overview of one caller: read at once, and kept for a moment for others with its rights."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from penstock.catalog.access import grants
from penstock.catalog.catalog import Catalog
from penstock.catalog.jobs import jobs
from penstock.catalog.jobs.jobs import JobFilter
from penstock.catalog.jobs.queue import DAY_MILLIS
from penstock.catalog.materialized_views import freshness
from penstock.catalog.materialized_views.auto_refresh import list_views
from penstock.catalog.materialized_views.freshness import Tracer
from penstock.catalog.overview import counts, sizes
from penstock.catalog.overview.sizes import Size
from penstock.database.interface import Transaction
from penstock.model.identifiers import Identifier
from penstock.model.jobs import FAILED, FINISHED, PAUSED, QUEUED, RUNNING, Job
from penstock.model.paging import PageRequest

KEPT_SECONDS = 3.0
# What is counted among everything is kept so many times as long as this server worked on it, or
# waited for its database: many who look cost little, and where there is little it is soon anew.
WORKED_TIMES, WAITED_TIMES = 4000, 200
MAX_KEPT = 200
SHOWN_JOBS, SHOWN_VIEWS = 10, 20
# So many views are looked at, those with a promise first.
MAX_VIEWS = 200
# So many finished jobs are counted, the newest first.
MAX_FINISHED = 20_000


@dataclass(frozen=True, slots=True)
class LateView:
    """A view that is behind what it reads."""

    identifier: Identifier
    is_late: bool
    lag_seconds: float | None
    target_lag_seconds: int | None
    refreshed_at: int | None


@dataclass(frozen=True, slots=True)
class Day:
    """How many jobs ended on a day, by their states; `number` counts days since 1970."""

    number: int
    states: dict[str, int]


@dataclass(frozen=True, slots=True)
class Overview:
    """What somebody sees at a glance; times are milliseconds."""

    at: int
    counts: dict[str, int]
    # Those that are not finished, by state.
    active: dict[str, int]
    days: list[Day]
    oldest_queued_at: int | None
    running: list[Job]
    failures: list[Job]
    # How many of the views that were looked at are behind, and later than they promise.
    stale: int
    late: int
    is_complete: bool
    worst: list[LateView]
    size: Size


async def get(catalog: Catalog, only: Sequence[str] | None, days: int) -> Overview:
    """The overview for holders of these grants; None sees everything."""
    row = await catalog.database.fetch_one("SELECT taken FROM locks WHERE name = 'access'")
    # Whatever was kept under other rights does not count any more.
    key = (None if only is None else tuple(only), days, None if row is None else row[0])
    kept = catalog.overviews.get(key)
    began, at_work = time.monotonic(), time.thread_time()
    sizes.begin_look(catalog)
    if kept is not None and began < kept[0]:
        found: Overview = kept[2]
        return found
    clock = await catalog.database.fetch_one("SELECT now_millis()")
    assert clock is not None
    if kept is not None and began < kept[1]:
        until, counted, ended, size = kept[1], kept[2].counts, kept[2].days, kept[2].size
    else:
        counted = await catalog.database.read(counts.count, only)
        ended = await _count_days(catalog.database, only, clock[0] // DAY_MILLIS, days)
        size = await sizes.sum_up(catalog.database, only, clock[0] // DAY_MILLIS, days)
        worked = (time.thread_time() - at_work) * WORKED_TIMES
        waited = (time.monotonic() - began) * WAITED_TIMES
        until = began + max(KEPT_SECONDS, worked, waited)
    made = await _make(catalog, only, clock[0], counted, ended, size)
    if len(catalog.overviews) >= MAX_KEPT:
        catalog.overviews.clear()
    catalog.overviews[key] = (time.monotonic() + KEPT_SECONDS, until, made)
    return made


async def _make(
    catalog: Catalog,
    only: Sequence[str] | None,
    now: int,
    counted: dict[str, int],
    ended: list[Day],
    size: Size,
) -> Overview:
    database = catalog.database
    active, oldest = await _count_active(database, only)
    page = PageRequest("overview", SHOWN_JOBS)
    running = await jobs.list_jobs(catalog, page, JobFilter((RUNNING,), only=only))
    failures = await jobs.list_jobs(catalog, page, JobFilter((FAILED,), only=only))
    stale, is_complete = await database.read(_find_stale, only)
    return Overview(
        now,
        counted,
        active,
        ended,
        oldest,
        running.items,
        failures.items,
        len(stale),
        sum(each.is_late for each in stale),
        is_complete,
        sorted(stale, key=lambda each: (not each.is_late, -(each.lag_seconds or 0)))[:SHOWN_VIEWS],
        size,
    )


async def _count_active(
    tx: Transaction, only: Sequence[str] | None
) -> tuple[dict[str, int], int | None]:
    rows = await tx.fetch(
        "SELECT state, count(*), min(created_at) FROM jobs "
        f"WHERE state IN ('{QUEUED}', '{RUNNING}', '{PAUSED}') {_seen(only, 1)} GROUP BY state",
        *(only or ()),
    )
    found = dict.fromkeys((QUEUED, RUNNING, PAUSED), 0) | {row[0]: row[1] for row in rows}
    return found, next((row[2] for row in rows if row[0] == QUEUED), None)


async def _count_days(
    tx: Transaction, only: Sequence[str] | None, today: int, days: int
) -> list[Day]:
    first = today - days + 1
    rows = await tx.fetch(
        f"SELECT finished_at / {DAY_MILLIS}, state, count(*) FROM (SELECT finished_at, state "
        f"FROM jobs WHERE finished_at >= $1 {_seen(only, 3)} ORDER BY finished_at DESC LIMIT $2) f "
        "GROUP BY 1, 2",
        *(first * DAY_MILLIS, MAX_FINISHED, *(only or ())),
    )
    found = {number: dict.fromkeys(FINISHED, 0) for number in range(first, today + 1)}
    for number, state, count in rows:
        if number in found:
            found[number][state] = count
    return [Day(number, states) for number, states in found.items()]


async def _find_stale(tx: Transaction, only: Sequence[str] | None) -> tuple[list[LateView], bool]:
    """The views that are behind, and whether all were looked at."""
    rows = await tx.fetch(
        "SELECT m.id FROM materialized_views m JOIN objects o ON o.id = m.id "
        f"WHERE 1 = 1 {grants.seen(only, 2)} "
        "ORDER BY m.target_lag_seconds IS NULL, 1 - m.auto_refresh, m.id LIMIT $1",
        *(MAX_VIEWS + 1, *(only or ())),
    )
    ids = [row[0] for row in rows[:MAX_VIEWS]]
    if not ids:
        return [], True
    places = ", ".join(f"${n + 1}" for n in range(len(ids)))
    tracer, found = Tracer(tx), list[LateView]()
    for view in await list_views(tx, f"m.id IN ({places})", *ids):
        standing = await tracer.trace(view)
        if not standing.is_stale:
            continue
        millis = await freshness.find_lag_millis(tx, standing)
        target = view.target_lag_seconds
        found.append(
            LateView(
                view.table.identifier,
                millis is not None and target is not None and millis > target * 1000,
                None if millis is None else millis / 1000,
                target,
                view.refreshed_at,
            )
        )
    return found, len(rows) <= MAX_VIEWS


def _seen(only: Sequence[str] | None, first: int) -> str:
    if only is None:
        return ""
    return (
        "AND EXISTS (SELECT 1 FROM objects o WHERE o.id = jobs.object_id "
        f"AND {grants.visible_objects(only, first)})"
    )
