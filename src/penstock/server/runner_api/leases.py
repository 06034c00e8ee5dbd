"""The protocol between runners and the server: lease jobs, report on them, end them.

A runner asks for work and waits; it is answered as soon as there is some.
"""

import asyncio
import contextlib
import logging
from collections.abc import Sequence
from typing import Annotated, Any, TypeVar

import msgspec

from penstock.catalog.jobs import leases, ledger
from penstock.catalog.jobs.leases import ProgressReport
from penstock.catalog.jobs.queue import wait_for
from penstock.errors import Forbidden, InvalidRequest
from penstock.model.functions import RowError
from penstock.model.jobs import FINISHED, PAUSED, QUEUED, Job, LogLine, Report, Value
from penstock.server.lance.call import Body, Call, Text
from penstock.server.lance.handlers.job_stream import gone
from penstock.server.lance.handlers.jobs import job_id

log = logging.getLogger(__name__)

B = TypeVar("B", bound=Body)

# An attempt ends with the job, or gives it back to the queue.
ENDS = (*FINISHED, QUEUED, PAUSED)
MAX_WAIT_SECONDS = 60.0
MAX_ERRORS = 1000
# How often, at least, to check that a waiting runner is still there.
LOOK_SECONDS = 1.0

Number = Annotated[int, msgspec.Meta(ge=1, le=2**62)]
Millis = Annotated[int, msgspec.Meta(ge=0, le=2**62)]
# The last moment of the year 9999.
NUMBERS = {
    "row_id": 2**64,
    "fragment": 2**63,
    "offset": 2**63,
    "tries": 2**63,
    "at": 253_402_300_800_000,
}
Progress = Annotated[
    dict[Annotated[str, msgspec.Meta(max_length=100)], Value], msgspec.Meta(max_length=100)
]


class LeaseJobs(Body):
    runner: Text
    clusters: Annotated[list[Text], msgspec.Meta(max_length=100)] | None = None
    free: Annotated[int, msgspec.Meta(ge=1, le=64)] = 1
    wait_seconds: Annotated[float, msgspec.Meta(ge=0, le=MAX_WAIT_SECONDS)] = 0
    # Why the runner cannot work now; it gets no jobs then.
    trouble: Text | None = None


class SentLine(msgspec.Struct):
    text: str
    at: Millis = 0
    level: Annotated[str, msgspec.Meta(max_length=20)] = "info"


class PhaseBegun(msgspec.Struct):
    name: Annotated[str, msgspec.Meta(min_length=1, max_length=1000)]
    # How long ago that was: clocks of other machines tell other times.
    ago_millis: Annotated[int, msgspec.Meta(ge=0, le=2**40)] = 0


class Heartbeat(Body):
    attempt: Number
    progress: Progress | None = None
    logs: Annotated[list[SentLine], msgspec.Meta(max_length=2000)] | None = None
    phases: Annotated[list[PhaseBegun], msgspec.Meta(max_length=200)] | None = None


class Finish(Heartbeat, kw_only=True):
    state: str
    result: dict[str, Any] | None = None
    error: str | None = None
    retryable: bool = False


class HeldJob(Body):
    attempt: Number


class ReportErrors(HeldJob, kw_only=True):
    errors: Annotated[list[RowError], msgspec.Meta(max_length=MAX_ERRORS)]
    # The id of a view that the job refreshes on the way, if its function failed.
    view: Text | None = None


class Lease(msgspec.Struct):
    id: str
    kind: str
    attempt: int
    spec: msgspec.Raw
    cluster: str
    lease_seconds: int
    heartbeat_seconds: int
    manifest: str | None


class Leases(msgspec.Struct):
    jobs: list[Lease]


class HeartbeatReply(msgspec.Struct):
    cancel: bool
    lease_seconds: int
    pause: bool
    # Why the job's commit would be refused.
    obstacle: str


class FinishReply(msgspec.Struct):
    state: str


class RecordedErrors(msgspec.Struct):
    recorded: int


class ErrorRows(msgspec.Struct):
    rows: list[int]


_lease = msgspec.json.Decoder(LeaseJobs)
_heartbeat = msgspec.json.Decoder(Heartbeat)
_finish = msgspec.json.Decoder(Finish)
_held = msgspec.json.Decoder(HeldJob)
_errors = msgspec.json.Decoder(ReportErrors)


async def lease(call: Call) -> Leases:
    body = call.decode(_lease)
    if not body.runner:
        raise InvalidRequest("runner is empty", detail="give each runner a name of its own")
    queue, clock = call.catalog.queue, asyncio.get_running_loop().time
    clusters = _choose_clusters(call, body.clusters)
    deadline = clock() + body.wait_seconds
    queue.note_runner(clusters, body.trouble or "")
    if body.trouble:
        return Leases([])
    leaving = asyncio.create_task(gone(call.receive))
    try:
        while True:
            bell = queue.bell()
            # The runner left: otherwise its job would wait until the lease expires.
            if leaving.done() or queue.is_closed:
                return Leases([])
            found = await leases.lease(call.catalog, body.runner, clusters, body.free, call.token)
            if found or clock() >= deadline:
                return Leases([_to_lease(call, job) for job in found])
            while not await wait_for(bell, min(LOOK_SECONDS, max(0.0, deadline - clock()))):
                if leaving.done() or clock() >= deadline:
                    break
    finally:
        leaving.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await leaving


async def heartbeat(call: Call) -> HeartbeatReply:
    body = _read_report(call, _heartbeat)
    news = _to_news(body)
    job, obstacle = await leases.heartbeat(call.catalog, job_id(call), body.attempt, news)
    lease_seconds = call.catalog.queue.lease_seconds
    return HeartbeatReply(job.cancel_requested, lease_seconds, job.pause_requested, obstacle)


async def finish(call: Call) -> FinishReply:
    body = _read_report(call, _finish)
    state = body.state.upper()
    if state not in ENDS:
        raise InvalidRequest(f"state is {body.state!r}", detail="use one of " + ", ".join(ENDS))
    report = Report(state, body.result or {}, (body.error or "").replace("\0", "�"), body.retryable)
    id = job_id(call)
    return FinishReply(await leases.finish(call.catalog, id, body.attempt, report, _to_news(body)))


async def report_errors(call: Call) -> RecordedErrors:
    body = _read_report(call, _errors)
    for error in body.errors:
        _check_numbers(error)
    found = await ledger.record(call.catalog, job_id(call), body.attempt, body.errors, body.view)
    return RecordedErrors(found)


async def list_error_rows(call: Call) -> ErrorRows:
    body = call.decode(_held)
    return ErrorRows(await ledger.list_rows(call.catalog, job_id(call), body.attempt))


def _choose_clusters(call: Call, wanted: Sequence[str] | None) -> Sequence[str] | None:
    """The clusters whose jobs the caller gets; None for all, where no key is needed."""
    if call.identity is None:
        return wanted
    own = call.identity.clusters or (call.catalog.queue.default_cluster,)
    for cluster in wanted or ():
        if cluster not in own:
            raise Forbidden(
                f"this key is for jobs of {', '.join(own)}, not of cluster {cluster}",
                detail="make another with 'penstock token create NAME --runner --cluster CLUSTER'",
            )
    return own if wanted is None else wanted


def _read_report(call: Call, decoder: "msgspec.json.Decoder[B]") -> B:
    """Read a runner's report; refusals are logged, because no person sees the answer."""
    try:
        return call.decode(decoder)
    except InvalidRequest as error:
        log.error("refused a report of job %s: %s", job_id(call), error.message)
        raise


def _check_numbers(error: RowError) -> None:
    """Refuse numbers that the ledger's columns cannot hold."""
    for name, most in NUMBERS.items():
        if not 0 <= (number := getattr(error, name)) < most:
            raise InvalidRequest(
                f"{name} of an error is {number}", detail=f"use a number from 0 to {most - 1}"
            )


def _to_lease(call: Call, job: Job) -> Lease:
    queue = call.catalog.queue
    return Lease(
        job.id,
        job.kind,
        job.attempt,
        job.spec,
        job.cluster,
        queue.lease_seconds,
        queue.heartbeat_seconds,
        job.manifest,
    )


def _to_news(body: Heartbeat) -> ProgressReport:
    # Programs may print NUL, which PostgreSQL does not accept.
    lines = [
        LogLine(line.at, line.level.replace("\0", ""), line.text.replace("\0", "�"))
        for line in body.logs or ()
    ]
    steps = [(each.name.replace("\0", "�"), each.ago_millis) for each in body.phases or ()]
    return ProgressReport(body.progress or {}, lines, steps)
