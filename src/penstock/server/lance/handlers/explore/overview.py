"""The caller's overview: counts, jobs, and views that are late."""

from datetime import UTC, datetime, timedelta
from typing import Annotated

import msgspec

from penstock.catalog.overview import overview, sizes
from penstock.catalog.overview.overview import LateView
from penstock.model.jobs import CANCELED, FAILED, PAUSED, QUEUED, RUNNING, SUCCEEDED
from penstock.server.lance.call import Body, Call
from penstock.server.lance.handlers.jobs import DetailedJob, to_detailed

DEFAULT_DAYS = 14
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class GetOverview(Body):
    days: Annotated[int, msgspec.Meta(ge=1, le=90)] | None = None


class DayOfJobs(msgspec.Struct):
    day: str
    succeeded: int
    failed: int
    canceled: int


class ActiveJobs(msgspec.Struct, omit_defaults=True):
    queued: int
    running: int
    paused: int
    # How long the oldest of those that are queued has been.
    waiting_seconds: float | None = None


class ShownView(msgspec.Struct, omit_defaults=True):
    id: list[str]
    late: bool = False
    lag_seconds: float | None = None
    target_lag_seconds: int | None = None
    refreshed_at: int | None = None


class StaleViews(msgspec.Struct):
    stale: int
    late: int
    # Whether all views were looked at.
    complete: bool
    worst: list[ShownView]


class Runners(msgspec.Struct):
    cluster: str
    # Whether one asked this server for work lately.
    alive: bool
    # Why the one that asked cannot work.
    trouble: str | None


class SizeOfDay(msgspec.Struct):
    day: str
    rows: int
    bytes: int
    # How many versions came on the day.
    commits: int


class ShownSize(msgspec.Struct):
    # How many tables were looked at.
    tables: int
    rows: int
    bytes: int
    # Whether all changes were looked at.
    complete: bool
    days: list[SizeOfDay]


class ShownOverview(msgspec.Struct):
    at: int
    counts: dict[str, int]
    jobs: ActiveJobs
    days: list[DayOfJobs]
    running: list[DetailedJob]
    failures: list[DetailedJob]
    views: StaleViews
    runners: list[Runners]
    size: ShownSize
    database: str


_get = msgspec.json.Decoder(GetOverview)


async def get(call: Call) -> ShownOverview:
    days, catalog = call.decode(_get).days or DEFAULT_DAYS, call.catalog
    found = await overview.get(catalog, call.only, days)
    waiting = None if found.oldest_queued_at is None else found.at - found.oldest_queued_at
    return ShownOverview(
        found.at,
        found.counts,
        ActiveJobs(
            found.active[QUEUED],
            found.active[RUNNING],
            found.active[PAUSED],
            None if waiting is None else max(0, waiting) / 1000,
        ),
        [
            DayOfJobs(
                _show_day(day.number), *(day.states[s] for s in (SUCCEEDED, FAILED, CANCELED))
            )
            for day in found.days
        ],
        [to_detailed(job) for job in found.running],
        [to_detailed(job) for job in found.failures],
        StaleViews(
            found.stale, found.late, found.is_complete, [_show_view(each) for each in found.worst]
        ),
        _list_runners(call),
        ShownSize(
            found.size.tables,
            found.size.rows,
            found.size.bytes,
            sizes.has_seen_all(catalog),
            [
                SizeOfDay(_show_day(each.day), each.rows, each.bytes, each.commits)
                for each in found.size.days
            ],
        ),
        catalog.database.kind,
    )


def _list_runners(call: Call) -> list[Runners]:
    """The clusters that the caller knows of: all, or the one that jobs go to by themselves."""
    queue = call.catalog.queue
    known = queue.clusters if call.only is None else [queue.default_cluster]
    found = [(each, queue.has_seen_runner(each)) for each in known]
    return [
        Runners(each, alive, None if alive else queue.find_trouble(each) or None)
        for each, alive in found
    ]


def _show_day(number: int) -> str:
    return (EPOCH + timedelta(days=number)).date().isoformat()


def _show_view(view: LateView) -> ShownView:
    return ShownView(
        list(view.identifier),
        view.is_late,
        view.lag_seconds,
        view.target_lag_seconds,
        view.refreshed_at,
    )
