"""How jobs went: the phases of one, and the refreshes of a view with how late it was."""

from typing import Any

import msgspec

from penstock.catalog.jobs import job_events, jobs
from penstock.catalog.materialized_views import lateness, materialized_views
from penstock.catalog.materialized_views.lateness import Point
from penstock.model.jobs import Job
from penstock.server.lance.call import Body, Call
from penstock.server.lance.handlers.jobs import MAX_ERROR, job_id

MAX_EVENTS = 1_000
# What a refresh reports that people look at.
RESULT = (
    *("mode", "reason", "rows_inserted", "rows_updated", "rows_deleted", "rows_failed"),
    *("function_calls", "certificate"),
)


class ShownEvent(msgspec.Struct):
    at: int
    state: str
    attempt: int
    runner: str
    message: str


class ShownPhase(msgspec.Struct, omit_defaults=True):
    name: str
    attempt: int
    since: int = msgspec.field(name="from")
    until: int | None = msgspec.field(name="to", default=None)


class Phases(msgspec.Struct):
    events: list[ShownEvent]
    phases: list[ShownPhase]


class ShownRefresh(msgspec.Struct, omit_defaults=True):
    job_id: str
    state: str
    created_at: int
    started_at: int | None = None
    finished_at: int | None = None
    result: dict[str, Any] = {}
    error: str = ""


class Refreshes(msgspec.Struct, omit_defaults=True):
    # The newest first.
    refreshes: list[ShownRefresh]
    # How late the view was, just before and just after each of them; the oldest first.
    points: list[Point]
    target_lag_seconds: int | None = None


_body = msgspec.json.Decoder(Body)


async def list_phases(call: Call) -> Phases:
    """What happened to a job, and from when to when it waited and ran."""
    id = job_id(call)
    await jobs.get(call.catalog.database, id)
    found = await job_events.list_events(call.catalog, [id], MAX_EVENTS, None)
    events = [ShownEvent(e.at, e.state, e.attempt, e.runner, e.message) for e in found]
    phases = job_events.to_phases(found)
    return Phases(events, [ShownPhase(p.name, p.attempt, p.since, p.until) for p in phases])


async def list_refreshes(call: Call) -> Refreshes:
    """The last refreshes of a view, and how late it was around them."""
    call.decode(_body)
    database = call.catalog.database
    view = await materialized_views.get(database, call.id)
    found = await lateness.list_refreshes(database, view.table.id)
    points = await database.read(lateness.find_points, found)
    return Refreshes([_show(job) for job in found], points, view.target_lag_seconds)


def _show(job: Job) -> ShownRefresh:
    result = {key: job.result[key] for key in RESULT if key in job.result}
    return ShownRefresh(
        job.id,
        job.state,
        job.created_at,
        job.started_at,
        job.finished_at,
        result,
        job.error[:MAX_ERROR],
    )
