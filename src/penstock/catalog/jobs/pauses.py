"""Pause jobs and resume them.

A job that waits is paused at once; one that runs is paused by its runner, at the next heartbeat. A
paused job keeps what it has finished and holds no slot, so that others may work meanwhile on what
it works on. When it is resumed, it waits at the end of the queue.
"""

from typing import NamedTuple

from penstock.catalog.catalog import Catalog
from penstock.catalog.jobs import job_events, jobs
from penstock.catalog.jobs.queue import CHANGES
from penstock.catalog.names import idempotency
from penstock.database.interface import Transaction
from penstock.errors import InvalidRequest
from penstock.jobs.specs import get_kind
from penstock.model.jobs import PAUSED, QUEUED, RUNNING, Job
from penstock.model.origins import NOBODY, Origin


class Changed(NamedTuple):
    """A job after a request to pause or resume it, and whether that changed anything."""

    job: Job
    is_changed: bool


async def pause(catalog: Catalog, id: str, origin: Origin = NOBODY) -> Changed:
    """Pause a job; raises InvalidRequest when it has ended, or is about to be canceled."""
    done = await catalog.database.write(_pause, id, origin)
    _ring(catalog, done)
    return done


async def resume(catalog: Catalog, id: str, origin: Origin = NOBODY) -> Changed:
    """Queue a paused job again, or take back that a running one is to pause."""
    done = await catalog.database.write(_resume, id, origin)
    _ring(catalog, done)
    return done


def _ring(catalog: Catalog, done: Changed) -> None:
    if done.is_changed:
        catalog.queue.ring(done.job.id)
        # A job that waited for this one may begin, or this one.
        catalog.queue.ring()
        catalog.queue.ring(CHANGES)


async def _pause(tx: Transaction, id: str, origin: Origin) -> Changed:
    job = await _lock(tx, id)
    if get_kind(job.kind).is_awaited:
        raise InvalidRequest(
            f"job {id} is of kind {job.kind}, and somebody waits for its answer",
            detail="cancel it instead",
        )
    if job.is_finished or job.cancel_requested:
        state = job.state if job.is_finished else "about to be canceled"
        raise InvalidRequest(
            f"job {id} is {state}",
            detail="only a job that waits or runs can be paused; request the work again",
        )
    is_changed = job.state != PAUSED and not job.pause_requested
    await idempotency.use(tx, origin, id, {"is_changed": is_changed})
    if is_changed and job.state == QUEUED:
        await tx.fetch("UPDATE jobs SET state = 'PAUSED' WHERE id = $1", id)
        await job_events.record_event(tx, id, PAUSED, job.attempt)
    elif is_changed:
        await tx.fetch("UPDATE jobs SET pause_requested = 1 WHERE id = $1", id)
        await job_events.record_event(tx, id, "PAUSE_REQUESTED", job.attempt, job.runner)
    return Changed(await jobs.get(tx, id), is_changed)


async def _resume(tx: Transaction, id: str, origin: Origin) -> Changed:
    # Before the job's row, as when a job is requested: otherwise two servers may wait for each
    # other.
    number = await jobs.take_number(tx)
    job = await _lock(tx, id)
    is_changed = job.state == PAUSED or job.pause_requested
    await idempotency.use(tx, origin, id, {"is_changed": is_changed})
    if job.state == PAUSED:
        await tx.fetch(
            "UPDATE jobs SET state = 'QUEUED', number = $2, ready_at = 0, error = '' WHERE id = $1",
            *(id, number),
        )
    elif job.state == RUNNING:
        await tx.fetch("UPDATE jobs SET pause_requested = 0 WHERE id = $1", id)
    if is_changed:
        await job_events.record_event(tx, id, "RESUMED", job.attempt)
    return Changed(await jobs.get(tx, id), is_changed)


async def _lock(tx: Transaction, id: str) -> Job:
    """Lock the job, so that on PostgreSQL changes of it happen one after the other."""
    row = await tx.fetch_one(f"UPDATE jobs SET id = id WHERE id = $1 RETURNING {jobs.COLUMNS}", id)
    if row is None:
        raise jobs.missing(id)
    return jobs.to_job(row)
