"""Jobs: enqueue, describe, list, cancel, forget. Runners take them through `leases`."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from penstock.catalog.access import grants
from penstock.catalog.catalog import Catalog
from penstock.catalog.jobs import job_events
from penstock.catalog.jobs.queue import DAY_MILLIS
from penstock.catalog.names import idempotency
from penstock.catalog.names.transactions import Action, SetStatus, apply_actions
from penstock.database.interface import Row, Transaction
from penstock.errors import InvalidRequest, JobNotFound
from penstock.model.jobs import CANCELED, QUEUED, REFRESH, RUNNING, STATES, Job, NewJob
from penstock.model.origins import NOBODY, Origin
from penstock.model.paging import Page, PageRequest, cut_page
from penstock.model.properties import decode_properties, encode_properties

COLUMNS = (
    "id, number, kind, object, target, slot, spec, cluster, manifest, properties, state, attempt, "
    "max_attempts, runner, cancel_requested, progress, result, error, retryable, created_at, "
    "started_at, finished_at"
)
PURGE_AT_ONCE = 500
# A slot begins with the id of the table that the job works on.
OBJECT_ID = "substr(slot, 1, 32)"


@dataclass(frozen=True, slots=True)
class Filter:
    """Which jobs a listing is about; None is any."""

    states: Sequence[str] | None = None
    kind: str | None = None
    # The table or view, or what of it the job works on.
    target: str | None = None
    # Only jobs on what these grantees may see.
    only: Sequence[str] | None = None


async def enqueue_in(tx: Transaction, new: NewJob, max_attempts: int) -> str:
    """Queue a job; the same request that still waits or runs is not queued again.

    But a refresh that was begun has chosen the versions of its sources: what came since is for
    another one.
    """
    # One at a time: the number is the place in the queue, and of two alike only one is queued.
    row = await tx.fetch_one(
        "UPDATE locks SET taken = taken + 1 WHERE name = 'jobs' RETURNING taken"
    )
    assert row is not None
    number = row[0]
    same = await tx.fetch_one(
        "SELECT id FROM jobs WHERE slot = $1 AND spec_hash = $2 "
        "AND state IN ('QUEUED', 'RUNNING') AND cancel_requested = 0 "
        "AND (kind <> $3 OR attempt = 0) ORDER BY number LIMIT 1",
        new.slot,
        new.spec_hash,
        REFRESH,
    )
    if same is not None:
        return str(same[0])
    id = str(uuid.uuid4())
    await tx.fetch(
        "INSERT INTO jobs (id, number, kind, object, target, slot, spec, spec_hash, cluster, "
        "manifest, properties, state, attempt, max_attempts, runner, ready_at, lease_until, "
        "cancel_requested, progress, result, error, retryable, last_report, created_at) "
        "VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, '{}', 'QUEUED', 0, $11, '', 0, 0, 0, "
        "'{}', '{}', '', 0, '', now_millis())",
        id,
        number,
        new.kind,
        new.object,
        new.target,
        new.slot,
        msgspec.json.encode(new.spec).decode(),
        new.spec_hash,
        new.cluster,
        new.manifest,
        max_attempts,
    )
    for slot in new.also:
        await tx.fetch("INSERT INTO job_slots (job_id, slot) VALUES ($1, $2)", id, slot)
    await job_events.record_event(tx, id, QUEUED, 0)
    return id


async def get(tx: Transaction, id: str) -> Job:
    found = await find(tx, id)
    if found is None:
        raise missing(id)
    return found


async def find(tx: Transaction, id: str) -> Job | None:
    row = await tx.fetch_one(f"SELECT {COLUMNS} FROM jobs WHERE id = $1", id)
    return None if row is None else to_job(row)


async def find_holder(tx: Transaction, id: str) -> str | None:
    """The key of the runner that leased a job last; None without such a job."""
    row = await tx.fetch_one("SELECT token FROM jobs WHERE id = $1", id)
    return None if row is None else row[0]


async def list_jobs(catalog: Catalog, page: PageRequest, wanted: Filter) -> Page[Job]:
    """Jobs, the newest first."""
    values: list[object] = [int(page.after) if page.after else 2**62, page.limit + 1]

    def place(value: object) -> str:
        values.append(value)
        return f"${len(values)}"

    conditions = ["number < $1"]
    if wanted.states is not None:
        conditions.append(f"state IN ({', '.join(place(state) for state in wanted.states)})")
    if wanted.kind is not None:
        conditions.append(f"kind = {place(wanted.kind)}")
    if wanted.target is not None:
        conditions.append(f"(target = {place(wanted.target)} OR object = {place(wanted.target)})")
    if wanted.only is not None:
        seen = grants.visible_objects(wanted.only, len(values) + 1)
        values += wanted.only
        conditions.append(f"EXISTS (SELECT 1 FROM objects o WHERE o.id = {OBJECT_ID} AND {seen})")
    rows = await catalog.database.fetch(
        f"SELECT {COLUMNS} FROM jobs WHERE {' AND '.join(conditions)} "
        "ORDER BY number DESC LIMIT $2",
        *values,
    )
    jobs = [to_job(row) for row in rows]
    return cut_page(page, jobs, [str(job.number) for job in jobs])


async def cancel(catalog: Catalog, id: str, origin: Origin = NOBODY) -> Job:
    """Cancel a job: one that waits at once, one that runs as soon as its runner hears of it."""
    return await alter(catalog, id, [SetStatus(CANCELED)], origin)


async def alter(
    catalog: Catalog, id: str, actions: Sequence[Action], origin: Origin = NOBODY
) -> Job:
    """Apply all actions or none: properties that clients keep on a job, and its end."""
    job = await catalog.database.write(_alter, id, actions, origin)
    catalog.queue.ring(id)
    if job.is_finished:
        catalog.queue.ring()
    return job


async def cancel_slots_in(tx: Transaction, prefix: str, reason: str) -> None:
    """Cancel every job whose slot starts with the prefix and a slash: their object is gone."""
    rows = await tx.fetch(
        "SELECT id FROM jobs WHERE state IN ('QUEUED', 'RUNNING') AND id IN "
        "(SELECT id FROM jobs WHERE slot >= $1 AND slot < $2 "
        "UNION SELECT job_id FROM job_slots WHERE slot >= $1 AND slot < $2) ORDER BY number",
        f"{prefix}/",
        f"{prefix}0",
    )
    for row in rows:
        await _cancel(tx, row[0], reason)


async def is_worked_on(tx: Transaction, table_id: str) -> bool:
    """Whether a runner has a job of a table."""
    row = await tx.fetch_one(
        "SELECT 1 FROM jobs WHERE state = 'RUNNING' AND id IN "
        "(SELECT id FROM jobs WHERE slot >= $1 AND slot < $2 "
        "UNION SELECT job_id FROM job_slots WHERE slot >= $1 AND slot < $2) LIMIT 1",
        f"{table_id}/",
        f"{table_id}0",
    )
    return row is not None


async def cancel_for_tables_in(tx: Transaction, table_ids: set[str], reason: str) -> None:
    """Cancel every job that works on one of these tables."""
    rows = await tx.fetch(
        "SELECT id, slot FROM jobs WHERE state IN ('QUEUED', 'RUNNING') ORDER BY number"
    )
    for id, slot in rows:
        if slot.partition("/")[0] in table_ids:
            await _cancel(tx, id, reason)


async def end_all_in(tx: Transaction, reason: str) -> int:
    """Cancel every job at once, where no runner is that could hear of it; returns how many."""
    rows = await tx.fetch(
        "UPDATE jobs SET state = 'CANCELED', cancel_requested = 1, finished_at = now_millis(), "
        "lease_until = 0, error = $1 WHERE state IN ('QUEUED', 'RUNNING') "
        "RETURNING id, attempt, runner",
        reason,
    )
    for id, attempt, runner in rows:
        await job_events.record_event(tx, id, CANCELED, attempt, runner, reason)
    return len(rows)


async def purge(catalog: Catalog) -> None:
    """Forget finished jobs older than the history that is kept."""
    keep = catalog.queue.history_days * DAY_MILLIS
    while await catalog.database.write(_purge, keep) == PURGE_AT_ONCE:
        pass


async def count_by_state(tx: Transaction) -> dict[str, int]:
    rows = await tx.fetch("SELECT state, count(*) FROM jobs GROUP BY state")
    return dict.fromkeys(STATES, 0) | {row[0]: row[1] for row in rows}


def missing(id: str) -> JobNotFound:
    return JobNotFound(
        f"job {id!r} does not exist",
        detail="check the id; finished jobs are kept for jobs.history_days",
    )


def to_job(row: Row) -> Job:
    fields: dict[str, Any] = dict(zip(_NAMES, row, strict=True))
    for name in ("spec", "progress", "result"):
        fields[name] = msgspec.json.decode(fields[name])
    fields["properties"] = decode_properties(fields["properties"])
    for name in ("cancel_requested", "retryable"):
        fields[name] = bool(fields[name])
    return Job(**fields)


_NAMES = COLUMNS.split(", ")


async def _alter(tx: Transaction, id: str, actions: Sequence[Action], origin: Origin) -> Job:
    # Taken first, so that on PostgreSQL this follows or precedes any other change of the job.
    row = await tx.fetch_one("UPDATE jobs SET id = id WHERE id = $1 RETURNING properties", id)
    if row is None:
        raise missing(id)
    await idempotency.use(tx, origin, id)
    for action in actions:
        if isinstance(action, SetStatus) and action.status != CANCELED:
            raise InvalidRequest(
                f"status is {action.status}", detail="a job can only be set to Canceled"
            )
    changed = apply_actions(decode_properties(row[0]), actions)
    await tx.fetch("UPDATE jobs SET properties = $2 WHERE id = $1", id, encode_properties(changed))
    if any(isinstance(action, SetStatus) for action in actions):
        await _cancel(tx, id)
    return await get(tx, id)


async def _cancel(tx: Transaction, id: str, reason: str = "") -> None:
    # A job whose lease has expired by now is canceled by whoever notices that.
    row = await tx.fetch_one(
        "UPDATE jobs SET cancel_requested = 1, "
        "finished_at = CASE WHEN state = 'QUEUED' THEN now_millis() ELSE finished_at END, "
        "error = CASE WHEN state = 'QUEUED' THEN $2 ELSE error END, "
        "state = CASE WHEN state = 'QUEUED' THEN 'CANCELED' ELSE state END "
        "WHERE id = $1 AND state IN ('QUEUED', 'RUNNING') AND cancel_requested = 0 "
        "RETURNING state, attempt, runner",
        id,
        reason,
    )
    if row is not None:
        event = "CANCEL_REQUESTED" if row[0] == RUNNING else CANCELED
        await job_events.record_event(tx, id, event, row[1], row[2], reason)


async def _purge(tx: Transaction, keep_millis: int) -> int:
    rows = await tx.fetch(
        f"SELECT id FROM jobs WHERE finished_at < now_millis() - $1 LIMIT {PURGE_AT_ONCE}",
        keep_millis,
    )
    for row in rows:
        for relation in ("job_logs", "job_events", "job_slots"):
            await tx.fetch(f"DELETE FROM {relation} WHERE job_id = $1", row[0])
        await tx.fetch("DELETE FROM jobs WHERE id = $1", row[0])
    return len(rows)
