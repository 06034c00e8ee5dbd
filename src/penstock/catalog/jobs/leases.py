"""Leases: runners take jobs, report on them, and lose them when they stop reporting.

Each lease is a numbered attempt, and every report names its attempt. Reports of an attempt that no
longer holds the job change nothing, so a runner that was paused or cut off cannot disturb the next.
"""

import asyncio
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec

from penstock.catalog.catalog import Catalog
from penstock.catalog.jobs import job_events, jobs
from penstock.catalog.jobs.kinds import KINDS
from penstock.catalog.jobs.queue import CHANGES
from penstock.database.interface import Transaction
from penstock.errors import InvalidRequest, LeaseLost, Unsupported
from penstock.jobs.specs import decode_spec
from penstock.model.jobs import (
    ACTIVE,
    CANCELED,
    EXPIRED,
    FAILED,
    PAUSED,
    QUEUED,
    RUNNING,
    SUCCEEDED,
    Job,
    LogLine,
    Report,
    Value,
    merge_progress,
    next_state,
    retry_pause_millis,
)

# Concurrent leases may take the jobs that this look has found.
LOOKS = 5

# First in, first out, but a job never overtakes one that uses the same slots. Jobs wait in the
# order of their numbers, so they cannot wait for each other in a circle. A paused job holds nobody
# back; when it is resumed it gets a new number, and so waits for those that came meanwhile.
EARLIER = "b.number < j.number AND b.state IN ('QUEUED', 'RUNNING')"
READY = (
    "SELECT j.number FROM jobs j WHERE j.state = 'QUEUED' AND j.ready_at <= now_millis() "
    "{clusters} "
    f"AND NOT EXISTS (SELECT 1 FROM jobs b WHERE b.slot = j.slot AND {EARLIER}) "
    "AND NOT EXISTS (SELECT 1 FROM job_slots s JOIN jobs b ON b.id = s.job_id "
    f"WHERE s.slot = j.slot AND {EARLIER}) "
    "AND NOT EXISTS (SELECT 1 FROM job_slots s JOIN jobs b ON b.slot = s.slot "
    f"WHERE s.job_id = j.id AND {EARLIER}) "
    "AND NOT EXISTS (SELECT 1 FROM job_slots s JOIN job_slots o ON o.slot = s.slot "
    f"JOIN jobs b ON b.id = o.job_id WHERE s.job_id = j.id AND {EARLIER}) "
    "ORDER BY j.number LIMIT {limit}"
)
# The state is checked twice: on PostgreSQL, a row that another server leased while this statement
# waited for it is checked again, and left alone.
LEASE = (
    "UPDATE jobs SET state = 'RUNNING', attempt = attempt + 1, runner = $1, token = $4, "
    "lease_until = now_millis() + $2, started_at = coalesce(started_at, now_millis()), error = '' "
    "WHERE state = 'QUEUED' AND number IN ({ready}) RETURNING {columns}"
)


@dataclass(frozen=True, slots=True)
class ProgressReport:
    """Progress and log lines that a runner reports, and what it began how many milliseconds ago."""

    progress: Mapping[str, Value]
    log: Sequence[LogLine] = ()
    steps: Sequence[tuple[str, int]] = ()


async def lease(
    catalog: Catalog, runner: str, clusters: Sequence[str] | None, count: int, token: str = ""
) -> list[Job]:
    """Lease up to `count` jobs that can start now, to the holder of a key."""
    taken: list[Job] = []
    for _ in range(LOOKS):
        # A look is cheaper than a lease, and most requests find nothing.
        if not await has_ready(catalog, clusters):
            break
        lease_millis = catalog.queue.lease_seconds * 1000
        taken = await catalog.database.write(_lease, runner, clusters, count, lease_millis, token)
        if taken:
            break
        await asyncio.sleep(random.uniform(0, 0.01))
    for job in taken:
        catalog.queue.ring(job.id)
        if job.attempt == 1 and job.started_at is not None:
            catalog.queue.note_wait((job.started_at - job.created_at) / 1000)
    return taken


async def heartbeat(
    catalog: Catalog, id: str, attempt: int, news: ProgressReport
) -> tuple[Job, str]:
    """Extend a lease and record progress.

    The job says whether it is to be canceled or paused, the text why its commit would be refused.
    """
    lease_millis = catalog.queue.lease_seconds * 1000
    found = await catalog.database.write(_heartbeat, id, attempt, news, lease_millis)
    catalog.queue.ring(id)
    return found


async def get_held(catalog: Catalog, id: str, attempt: int) -> Job:
    """The job, if this attempt holds it now; raises otherwise."""
    job = await jobs.get(catalog.database, id)
    if job.attempt != attempt or job.state != RUNNING:
        raise _lost(job, attempt)
    return job


async def finish(
    catalog: Catalog, id: str, attempt: int, report: Report, news: ProgressReport
) -> str:
    """Record how an attempt ended; returns the job's next state. May be repeated."""
    state = await catalog.database.write(_finish, id, attempt, report, news)
    catalog.queue.ring(id)
    catalog.queue.ring()
    catalog.queue.ring(CHANGES)
    return state


async def expire(catalog: Catalog) -> int:
    """Take jobs away from runners that stopped reporting; returns how many."""
    row = await catalog.database.fetch_one(
        "SELECT 1 FROM jobs WHERE state = 'RUNNING' AND lease_until < now_millis() LIMIT 1"
    )
    if row is None:
        return 0
    expired = await catalog.database.write(_expire)
    for id in expired:
        catalog.queue.ring(id)
    catalog.queue.leases_expired += len(expired)
    catalog.queue.ring()
    return len(expired)


async def read_clock(catalog: Catalog) -> int:
    """The database's time, by which leases end."""
    row = await catalog.database.fetch_one("SELECT now_millis()")
    assert row is not None
    return int(row[0])


async def begin_anew(catalog: Catalog) -> None:
    """Restart all leases, and end all pauses before retries, after the clock has jumped."""
    await catalog.database.write(_begin_anew, catalog.queue.lease_seconds * 1000)


async def _begin_anew(tx: Transaction, lease_millis: int) -> None:
    await tx.fetch(
        "UPDATE jobs SET lease_until = now_millis() + $1 WHERE state = 'RUNNING'", lease_millis
    )
    await tx.fetch(
        "UPDATE jobs SET ready_at = now_millis() WHERE state = 'QUEUED' AND ready_at > now_millis()"
    )


async def has_ready(catalog: Catalog, clusters: Sequence[str] | None = None) -> bool:
    """Whether there is a job that can start now."""
    sql = READY.format(clusters=_match_clusters(clusters, 1), limit=1)
    return await catalog.database.fetch_one(sql, *(clusters or ())) is not None


async def release(catalog: Catalog, prefix: str) -> int:
    """Take jobs away from runners that are known to be gone, by the prefix of their names."""
    released = await catalog.database.write(_expire, prefix)
    for id in released:
        catalog.queue.ring(id)
    catalog.queue.ring()
    return len(released)


async def _lease(
    tx: Transaction,
    runner: str,
    clusters: Sequence[str] | None,
    count: int,
    lease_millis: int,
    token: str,
) -> list[Job]:
    ready = READY.format(clusters=_match_clusters(clusters, 5), limit="$3")
    sql = LEASE.format(ready=ready, columns=jobs.COLUMNS)
    rows = await tx.fetch(sql, runner, lease_millis, count, token, *(clusters or ()))
    found = sorted((jobs.to_job(row) for row in rows), key=lambda job: job.number)
    return [each for job in found if (each := await _begin(tx, job)) is not None]


def _match_clusters(clusters: Sequence[str] | None, first: int) -> str:
    """The SQL condition on a job's cluster, with parameters numbered from `first` on."""
    if clusters is None:
        return ""
    places = ", ".join(f"${first + n}" for n in range(len(clusters)))
    return f"AND j.cluster IN ({places})" if clusters else "AND 1 = 0"


async def _begin(tx: Transaction, job: Job) -> Job | None:
    """Complete the spec of a leased job; None when the job failed because it has nothing to do."""
    try:
        asked = decode_spec(job.kind, job.spec)
        spec, error = await KINDS[job.kind].complete(tx, asked, job.target)
        if spec is not None and (obstacle := await KINDS[job.kind].find_obstacle(tx, job.id)):
            spec, error = None, obstacle
    except (InvalidRequest, Unsupported, msgspec.ValidationError) as refused:
        spec, error = None, str(refused)
    if spec is None:
        await _end(tx, job, FAILED, Report(FAILED, {}, error))
        return None
    await job_events.record_event(tx, job.id, RUNNING, job.attempt, job.runner)
    return replace(job, spec=msgspec.Raw(msgspec.json.encode(spec)))


async def _heartbeat(
    tx: Transaction, id: str, attempt: int, news: ProgressReport, lease_millis: int
) -> tuple[Job, str]:
    job = await _hold(tx, id, attempt)
    await tx.fetch(
        "UPDATE jobs SET lease_until = now_millis() + $2, progress = $3 WHERE id = $1",
        id,
        lease_millis,
        _encode(merge_progress(job.progress, news.progress)),
    )
    await _append(tx, job, news)
    return job, await KINDS[job.kind].find_obstacle(tx, id)


async def _finish(
    tx: Transaction, id: str, attempt: int, report: Report, news: ProgressReport
) -> str:
    key = f"{attempt}:{report.state}"
    row = await tx.fetch_one(
        "UPDATE jobs SET id = id WHERE id = $1 RETURNING last_report, state", id
    )
    if row is not None and row[0] == key:
        return str(row[1])
    job = await _hold(tx, id, attempt)
    await _append(tx, job, news)
    job = replace(job, progress=merge_progress(job.progress, news.progress))
    state = next_state(job, report)
    await _end(tx, job, state, report)
    if state == SUCCEEDED:
        await KINDS[job.kind].record(tx, decode_spec(job.kind, job.spec), report.result)
    return state


async def _append(tx: Transaction, job: Job, news: ProgressReport) -> None:
    await job_events.append_log(tx, job.id, job.attempt, news.log)
    await job_events.record_steps(tx, job.id, job.attempt, job.runner, news.steps)


async def _end(tx: Transaction, job: Job, state: str, report: Report) -> None:
    """Record the end of an attempt, and of the job unless it gets another attempt."""
    again = state in ACTIVE
    # A job that its runner gives back, because it stops or the job is paused, loses no attempt.
    given_back = again and report.is_given_back
    await tx.fetch(
        "UPDATE jobs SET state = $2, result = $3, error = $4, retryable = $5, progress = $6, "
        "last_report = $7, lease_until = 0, pause_requested = 0, ready_at = now_millis() + $8, "
        "finished_at = CASE WHEN $9 = 1 THEN NULL ELSE now_millis() END, "
        "max_attempts = max_attempts + $10 WHERE id = $1",
        job.id,
        state,
        _encode(report.result),
        report.error,
        int(report.retryable),
        _encode(job.progress),
        f"{job.attempt}:{report.state}",
        retry_pause_millis(job.attempt) if again and not given_back else 0,
        int(again),
        int(given_back),
    )
    await job_events.record_event(tx, job.id, state, job.attempt, job.runner, report.error)


async def _hold(tx: Transaction, id: str, attempt: int) -> Job:
    """Lock the job if this attempt holds it; raises otherwise."""
    row = await tx.fetch_one(
        "UPDATE jobs SET id = id WHERE id = $1 AND attempt = $2 AND state = 'RUNNING' "
        f"RETURNING {jobs.COLUMNS}",
        id,
        attempt,
    )
    if row is not None:
        return jobs.to_job(row)
    raise _lost(await jobs.get(tx, id), attempt)


def _lost(job: Job, attempt: int) -> LeaseLost:
    now = f"attempt {job.attempt} is {job.state.lower()}"
    return LeaseLost(
        f"attempt {attempt} does not hold job {job.id} any more: {now}",
        detail="stop working on it and write nothing",
    )


async def _expire(tx: Transaction, prefix: str = "") -> list[str]:
    """Requeue jobs whose lease is over or whose runner is gone; fail those out of attempts.

    Those that were to pause are paused.
    """
    which = "substr(runner, 1, $1) = $2" if prefix else "lease_until < now_millis()"
    rows = await tx.fetch(
        f"UPDATE jobs SET lease_until = 0 WHERE state = 'RUNNING' AND {which} "
        f"RETURNING {jobs.COLUMNS}",
        *([len(prefix), prefix] if prefix else []),
    )
    for job in sorted(map(jobs.to_job, rows), key=lambda job: job.number):
        state, error = _after_silence(job)
        await tx.fetch(
            "UPDATE jobs SET state = $2, error = $3, retryable = 1, ready_at = 0, "
            "pause_requested = 0, max_attempts = max_attempts + $5, "
            "finished_at = CASE WHEN $4 = 1 THEN NULL ELSE now_millis() END WHERE id = $1",
            job.id,
            state,
            error,
            int(state in ACTIVE),
            int(state == PAUSED),
        )
        event = EXPIRED if state == QUEUED else state
        await job_events.record_event(tx, job.id, event, job.attempt, job.runner, error)
    return [row[0] for row in rows]


def _after_silence(job: Job) -> tuple[str, str]:
    if job.cancel_requested:
        return CANCELED, ""
    silent = f"runner {job.runner} stopped reporting on attempt {job.attempt}"
    if job.pause_requested:
        # Perhaps it was paused so that its runner could be stopped: it keeps all its chances.
        return PAUSED, silent
    if job.attempt < job.max_attempts:
        return QUEUED, silent
    return FAILED, f"{silent} of {job.max_attempts}; see the runner's log, then request it again"


def _encode(value: object) -> str:
    return msgspec.json.encode(value).decode()
