"""How jobs went: the phases of one, and the refreshes of a view with how late it was."""

from typing import Any

import msgspec

from penstock.catalog.jobs import job_events, jobs
from penstock.catalog.jobs.job_events import Phase
from penstock.catalog.materialized_views import lateness, materialized_views
from penstock.catalog.materialized_views.lateness import Point
from penstock.model.jobs import PHASE_BEGUN, Job
from penstock.server.lance.call import Body, Call
from penstock.server.lance.handlers.jobs import MAX_ERROR, job_id

MAX_EVENTS = 2_000
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


class ShownStep(msgspec.Struct, omit_defaults=True):
    name: str
    since: int = msgspec.field(name="from")
    until: int | None = msgspec.field(name="to", default=None)
    # The view that it is for, if that is not the job's own.
    view: str = ""


class ShownPhase(msgspec.Struct, omit_defaults=True):
    name: str
    attempt: int
    since: int = msgspec.field(name="from")
    until: int | None = msgspec.field(name="to", default=None)
    # Of a run: what was done in it, as far as its runner told.
    steps: list[ShownStep] = []


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
    # How late the view was since the oldest of them, as a line of straight parts up to now.
    points: list[Point]
    target_lag_seconds: int | None = None


_body = msgspec.json.Decoder(Body)


async def list_phases(call: Call) -> Phases:
    """What happened to a job, and from when to when it waited and ran."""
    id, database = job_id(call), call.catalog.database
    await jobs.get(database, id)
    found = await job_events.list_all(database, id, MAX_EVENTS)
    events = [
        ShownEvent(e.at, e.state, e.attempt, e.runner, e.message)
        for e in found
        if e.state != PHASE_BEGUN
    ]
    return Phases(events, [_show_phase(each) for each in job_events.to_phases(found)])


async def list_refreshes(call: Call) -> Refreshes:
    """The last refreshes of a view, and how late it was around them."""
    call.decode(_body)
    database = call.catalog.database
    view = await materialized_views.get(database, call.id)
    found = await lateness.list_refreshes(database, view.table.id)
    points = await database.read(lateness.find_points, view, found)
    return Refreshes([_show(job) for job in found], points, view.target_lag_seconds)


def _show_phase(phase: Phase) -> ShownPhase:
    steps = [ShownStep(s.name, s.since, s.until, s.view) for s in phase.steps]
    return ShownPhase(phase.name, phase.attempt, phase.since, phase.until, steps)


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
