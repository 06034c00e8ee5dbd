"""Jobs in lancedb's form: list, describe, cancel, pause, resume, events; and our own log."""

from collections.abc import Sequence
from typing import Annotated, Any

import msgspec

from penstock.catalog.functions import functions
from penstock.catalog.functions.functions import CREATE_FUNCTION
from penstock.catalog.jobs import job_events, jobs, pauses, waiting
from penstock.catalog.jobs.jobs import JobFilter
from penstock.errors import InvalidRequest
from penstock.jobs.events import encode_events
from penstock.jobs.specs import REFRESH, decode_reach
from penstock.model.jobs import (
    CANCELED,
    FAILED,
    PAUSED,
    QUEUED,
    RUNNING,
    STATES,
    SUCCEEDED,
    Job,
    Value,
    show_progress,
)
from penstock.model.paging import request_page
from penstock.server.lance.call import Body, Call, Text
from penstock.server.lance.lancedb.functions import show_version
from penstock.server.transport.http import Reply

ARROW_STREAM = b"application/vnd.apache.arrow.stream"
# Our states in lancedb's words: those of a description and those of a listing.
DESCRIBED = {
    QUEUED: "IN_PROGRESS",
    RUNNING: "IN_PROGRESS",
    PAUSED: "PAUSED",
    SUCCEEDED: "DONE",
    FAILED: "FAILED",
    CANCELED: "CANCELLED",
}
LISTED = {
    QUEUED: "in_progress",
    RUNNING: "in_progress",
    PAUSED: "paused",
    SUCCEEDED: "succeeded",
    FAILED: "failed",
    CANCELED: "cancelled",
}
# Every word that a filter may use, in lower case, and the states that it selects.
WORDS = {state.lower(): (state,) for state in STATES} | {
    "in_progress": (QUEUED, RUNNING),
    "done": (SUCCEEDED,),
    "finished": (SUCCEEDED,),
    "cancelled": (CANCELED,),
    "timed_out": (FAILED,),
}

# Modes of a refresh in lancedb's words.
MODES = {"none": "no_op", "incremental": "incremental", "full": "rebuild"}

MAX_EVENTS, EVENTS = 10_000, 1_000
# What a listing tells of a traceback.
MAX_ERROR = 500

Limit = Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]


class ListJobs(Body):
    state: str | None = None
    status: str | None = None
    kind: Text | None = None
    job_type: Text | None = None
    target: Text | None = None
    table_name: Text | None = None
    limit: Limit | None = None
    page_token: str | None = None
    # Beyond lancedb's form: the beginning of an id; to tell more of each, or all.
    job_id: Text | None = None
    detailed: bool | None = None
    properties: bool | None = None


class NamedJob(Body):
    job_id: Text


class QueryEvents(Body):
    job_id: Text | None = None
    job_ids: Annotated[list[Text], msgspec.Meta(max_length=1000)] | None = None
    limit: Limit | None = None
    limit_per_job: Limit | None = None
    filter: str | None = None


class ListedJob(msgspec.Struct):
    job_id: str
    table: str
    job_type: str
    state: str
    created_at_millis: int
    # Beyond lancedb's form.
    status: str
    target: str


class DetailedJob(ListedJob, omit_defaults=True):
    """A listed job with how far it is, and how it went."""

    started_at_millis: int | None = None
    finished_at_millis: int | None = None
    attempt: int = 0
    max_attempts: int = 0
    cluster: str = ""
    cancel_requested: bool = False
    pause_requested: bool = False
    progress: dict[str, Value] = {}
    error: str = ""


class ToldJob(DetailedJob, omit_defaults=True):
    """A listed job with all that a description has."""

    properties: dict[str, str] = {}


class ListedJobs(msgspec.Struct, omit_defaults=True):
    jobs: Sequence[ListedJob]
    page_token: str | None = None


class Failure(msgspec.Struct):
    phase: str
    message: str
    retryable: bool


class DescribedJob(msgspec.Struct, omit_defaults=True):
    job_id: str
    job_type: str
    job_state: str
    creation_ms: int
    spec: msgspec.Raw
    status: dict[str, str]
    result: dict[str, Any] | None = None
    failure: Failure | None = None


class CanceledJob(msgspec.Struct):
    job_id: str
    status: str


class PausedJob(msgspec.Struct):
    job_id: str
    status: str
    # False: it was paused already, or about to be.
    paused: bool
    # Of lancedb's form: a job that is committing is not told apart, and pauses if it has to go on.
    committing: bool = False


class ResumedJob(msgspec.Struct):
    job_id: str
    status: str
    # False: it was not paused.
    resumed: bool
    # Of lancedb's form: a job that is still pausing can be resumed like any other.
    still_pausing: bool = False


class Line(msgspec.Struct):
    number: int
    attempt: int
    at: int
    level: str
    text: str


class Lines(msgspec.Struct, omit_defaults=True):
    lines: list[Line]
    page_token: str | None = None


_list = msgspec.json.Decoder(ListJobs)
_named = msgspec.json.Decoder(NamedJob)
_events = msgspec.json.Decoder(QueryEvents)


async def list_jobs(call: Call) -> ListedJobs:
    body = call.decode(_list)
    wanted = JobFilter(
        _read_states(body.state or body.status),
        body.kind or body.job_type or None,
        body.target or body.table_name or None,
        only=call.only,
        beginning=body.job_id or None,
    )
    asked = ["jobs", wanted.states, wanted.kind, wanted.target, wanted.beginning]
    scope = msgspec.json.encode(asked).decode()
    page = request_page(scope, body.page_token, body.limit, call.max_page)
    found = await jobs.list_jobs(call.catalog, page, wanted)
    if body.properties:
        told = [await _to_told(call, job) for job in found.items]
        return ListedJobs(told, found.token)
    show = to_detailed if body.detailed else _to_listed
    return ListedJobs([show(job) for job in found.items], found.token)


async def describe(call: Call) -> DescribedJob:
    job = await jobs.get(call.catalog.database, call.decode(_named).job_id)
    told = await waiting.describe(call.catalog, job)
    shown = DescribedJob(job.id, job.kind, DESCRIBED[job.state], job.created_at, job.spec, told)
    if job.state == SUCCEEDED:
        shown.result = await _tell_result(call, job)
    elif job.state == FAILED:
        shown.failure = Failure("execute", job.error, job.retryable)
    return shown


async def cancel(call: Call) -> CanceledJob:
    job = await jobs.cancel(call.catalog, call.decode(_named).job_id, call.origin)
    return CanceledJob(job.id, job.state)


async def pause(call: Call) -> PausedJob:
    done = await pauses.pause(call.catalog, call.decode(_named).job_id, call.origin)
    return PausedJob(done.job.id, done.job.state, done.is_changed)


async def resume(call: Call) -> ResumedJob:
    done = await pauses.resume(call.catalog, call.decode(_named).job_id, call.origin)
    return ResumedJob(done.job.id, done.job.state, done.is_changed)


async def show_paused(call: Call, *, is_changed: bool) -> PausedJob:
    """The answer to a pause of which only the effect is known."""
    job = await jobs.get(call.catalog.database, call.decode(_named).job_id)
    return PausedJob(job.id, job.state, is_changed)


async def show_resumed(call: Call, *, is_changed: bool) -> ResumedJob:
    """The answer to a resume of which only the effect is known."""
    job = await jobs.get(call.catalog.database, call.decode(_named).job_id)
    return ResumedJob(job.id, job.state, is_changed)


async def query_events(call: Call) -> Reply:
    body = call.decode(_events)
    ids = [body.job_id] if body.job_id is not None else body.job_ids
    if not ids:
        raise InvalidRequest("job_id is missing", detail="name a job, or several as job_ids")
    for id in ids:
        await jobs.get(call.catalog.database, id)
    limit = min(body.limit or EVENTS, MAX_EVENTS)
    found = await job_events.list_events(call.catalog, ids, limit, body.limit_per_job)
    content = await call.catalog.workers.run(encode_events, found, body.filter)
    return Reply(200, content, ARROW_STREAM)


async def list_log(call: Call) -> Lines:
    """List the lines of a job's log, page by page."""
    id = job_id(call)
    await jobs.get(call.catalog.database, id)
    found = await job_events.list_log(call.catalog, id, call.page(f"log:{id}"))
    lines = [Line(n.number, n.attempt, n.at, n.level, n.text) for n in found.items]
    return Lines(lines, found.token)


async def _tell_result(call: Call, job: Job) -> dict[str, Any]:
    if job.kind == CREATE_FUNCTION:
        id, number = decode_reach(job.spec).table_id, _number(job.result.get("version"))
        made = await functions.find_by_id(call.catalog.database, id, number)
        return job.result if made is None else show_version(made)
    return _tell_refresh(job) if job.kind == REFRESH else _count_rows(job) | job.result


def _count_rows(job: Job) -> dict[str, Any]:
    """The counts that lancedb expects of a column's refresh, whatever the runner reported."""
    done, failed = (_number(job.progress.get(key)) for key in ("rows_done", "rows_failed"))
    version = _number(job.result.get("version"))
    return {
        "rows_assigned": done,
        "rows_failed": failed,
        "rows_remaining": 0,
        "source_version": _number(job.result.get("source_version")) or version,
        "published_version": version,
        "rows_filled": done,
        "version": version,
    }


def _tell_refresh(job: Job) -> dict[str, Any]:
    """What lancedb expects of a view's refresh, with its word for the mode beside ours."""
    told = job.result
    versions = told.get("source_versions")
    known = [_number(v) for v in versions.values()] if isinstance(versions, dict) else []
    return told | {
        "mode": MODES.get(str(told.get("mode")), "rebuild"),
        "refresh_mode": told.get("mode"),
        "rows_written": sum(_number(told.get(key)) for key in ("rows_inserted", "rows_updated")),
        "source_version": known[0] if known else 0,
        "version": _number(told.get("version")),
    }


def _number(value: object) -> int:
    return int(value) if isinstance(value, int | float) else 0


def job_id(call: Call) -> str:
    if not call.id:
        raise InvalidRequest("the id names no job", detail="give the job's id")
    return call.id[-1]


def _read_states(word: str | None) -> tuple[str, ...] | None:
    if not word:
        return None
    if word.lower() not in WORDS:
        raise InvalidRequest(f"state is {word!r}", detail="use one of " + ", ".join(WORDS))
    return WORDS[word.lower()]


def _to_listed(job: Job) -> ListedJob:
    return ListedJob(
        job.id, job.object, job.kind, LISTED[job.state], job.created_at, job.state, job.target
    )


def to_detailed(job: Job) -> DetailedJob:
    """A job as a list shows it, with how far it is."""
    listed = _to_listed(job)
    return DetailedJob(
        **msgspec.structs.asdict(listed),
        started_at_millis=job.started_at,
        finished_at_millis=job.finished_at,
        attempt=job.attempt,
        max_attempts=job.max_attempts,
        cluster=job.cluster,
        cancel_requested=job.cancel_requested,
        pause_requested=job.pause_requested,
        progress=show_progress(job),
        error=job.error[:MAX_ERROR],
    )


async def _to_told(call: Call, job: Job) -> ToldJob:
    detailed = to_detailed(job)
    properties = await waiting.describe(call.catalog, job)
    if "error" in properties:
        properties["error"] = detailed.error
    return ToldJob(**msgspec.structs.asdict(detailed), properties=properties)
