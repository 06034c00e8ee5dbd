"""Jobs: enqueue, describe, list, cancel, purge. Runners take them through `leases`.

`pauses` has them wait until they are resumed.
"""

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
from penstock.jobs.specs import REFRESH, tell_result
from penstock.model.identifiers import Identifier, show
from penstock.model.jobs import (
    CANCELED,
    QUEUED,
    RUNNING,
    STATES,
    SUCCEEDED,
    Job,
    NewJob,
    Value,
    show_progress,
    show_value,
)
from penstock.model.origins import NOBODY, Origin
from penstock.model.paging import Page, PageRequest, cut_page
from penstock.model.properties import decode_properties, encode_properties

COLUMNS = (
    "id, number, kind, object, target, slot, spec, cluster, manifest, properties, state, attempt, "
    "max_attempts, runner, cancel_requested, pause_requested, progress, result, error, retryable, "
    "created_at, started_at, finished_at"
)
PURGE_AT_ONCE = 500
MAX_MAKERS = 500
TARGETS = ("target", "object", "replace(target, '$', '.')", "replace(object, '$', '.')")
# As a condition of SQL.
UNFINISHED = "state IN ('QUEUED', 'RUNNING', 'PAUSED')"
WORKS_ON = (
    "id IN (SELECT id FROM jobs WHERE object_id = $1 "
    "UNION SELECT job_id FROM job_slots WHERE object_id = $1)"
)


@dataclass(frozen=True, slots=True)
class JobFilter:
    """Which jobs to list; None matches any."""

    states: Sequence[str] | None = None
    kind: str | None = None
    # The table or view, or the part of it that the job works on.
    target: str | None = None
    ids: Sequence[str] | None = None
    # Only jobs on objects that these grantees may see.
    only: Sequence[str] | None = None
    # How their ids begin.
    beginning: str | None = None


async def enqueue_in(tx: Transaction, new: NewJob, max_attempts: int) -> str:
    """Queue a job, unless the same request is already queued or running.

    A running refresh has already chosen its sources' versions, so later changes need another one.
    One that is paused, or about to be, is not what somebody wants who asks for the work now.
    """
    number = await take_number(tx)
    same = await tx.fetch_one(
        "SELECT id FROM jobs WHERE slot = $1 AND spec_hash = $2 "
        "AND state IN ('QUEUED', 'RUNNING') AND cancel_requested = 0 AND pause_requested = 0 "
        "AND (kind <> $3 OR attempt = 0) ORDER BY number LIMIT 1",
        str(new.slot),
        new.spec_hash,
        REFRESH,
    )
    if same is not None:
        return str(same[0])
    id = str(uuid.uuid4())
    await tx.fetch(
        "INSERT INTO jobs (id, number, kind, object, target, slot, object_id, spec, spec_hash, "
        "cluster, manifest, properties, state, attempt, max_attempts, runner, ready_at, "
        "lease_until, cancel_requested, progress, result, error, retryable, last_report, "
        "created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, '{}', 'QUEUED', 0, "
        "$12, '', 0, 0, 0, '{}', '{}', '', 0, '', now_millis())",
        id,
        number,
        new.kind,
        new.object,
        new.target,
        str(new.slot),
        new.slot.object_id,
        msgspec.json.encode(new.spec).decode(),
        new.spec_hash,
        new.cluster,
        new.manifest,
        max_attempts,
    )
    for slot in new.also:
        await tx.fetch(
            "INSERT INTO job_slots (job_id, slot, object_id) VALUES ($1, $2, $3)",
            *(id, str(slot), slot.object_id),
        )
    await job_events.record_event(tx, id, QUEUED, 0)
    return id


async def record_done_in(
    tx: Transaction, kind: str, id: Identifier, object_id: str, result: dict[str, Any]
) -> str:
    """Record a job of work that this transaction does, for clients that wait for one."""
    job_id = str(uuid.uuid4())
    await tx.fetch(
        "INSERT INTO jobs (id, number, kind, object, target, slot, object_id, spec, spec_hash, "
        "cluster, properties, state, attempt, max_attempts, runner, ready_at, lease_until, "
        "cancel_requested, progress, result, error, retryable, last_report, created_at, "
        "started_at, finished_at) VALUES ($1, $2, $3, $4, $4, $1, $5, $6, '', '', '{}', "
        "'SUCCEEDED', 1, 1, '', 0, 0, 0, '{}', $7, '', 0, '', now_millis(), now_millis(), "
        "now_millis())",
        *(job_id, await take_number(tx), kind, show(id), object_id),
        msgspec.json.encode({"table": id, "table_id": object_id}).decode(),
        msgspec.json.encode(result).decode(),
    )
    await job_events.record_event(tx, job_id, SUCCEEDED, 1)
    return job_id


async def take_number(tx: Transaction) -> int:
    """The next number in the queue.

    One at a time: numbers order the queue, and of two equal requests only one is queued.
    """
    row = await tx.fetch_one(
        "UPDATE locks SET taken = taken + 1 WHERE name = 'jobs' RETURNING taken"
    )
    assert row is not None
    return int(row[0])


async def get(tx: Transaction, id: str) -> Job:
    found = await find(tx, id)
    if found is None:
        raise missing(id)
    return found


async def find(tx: Transaction, id: str) -> Job | None:
    row = await tx.fetch_one(f"SELECT {COLUMNS} FROM jobs WHERE id = $1", id)
    return None if row is None else to_job(row)


async def find_holder(tx: Transaction, id: str) -> str | None:
    """The key of the runner that leased a job last; None if there is no such job."""
    row = await tx.fetch_one("SELECT token FROM jobs WHERE id = $1", id)
    return None if row is None else row[0]


async def list_jobs(catalog: Catalog, page: PageRequest, wanted: JobFilter) -> Page[Job]:
    """List jobs, newest first."""
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
        # As it is stored, or with dots, as people write it.
        forms = [f"{each} = {place(wanted.target)}" for each in TARGETS]
        conditions.append(f"({' OR '.join(forms)})")
    if wanted.ids is not None:
        conditions.append(f"id IN ({', '.join(place(id) for id in wanted.ids) or 'NULL'})")
    if wanted.beginning is not None:
        length, start = place(len(wanted.beginning)), place(wanted.beginning)
        conditions.append(f"substr(id, 1, CAST({length} AS INTEGER)) = {start}")
    if wanted.only is not None:
        seen = grants.visible_objects(wanted.only, len(values) + 1)
        values += wanted.only
        conditions.append(
            f"EXISTS (SELECT 1 FROM objects o WHERE o.id = jobs.object_id AND {seen})"
        )
    rows = await catalog.database.fetch(
        f"SELECT {COLUMNS} FROM jobs WHERE {' AND '.join(conditions)} "
        "ORDER BY number DESC LIMIT $2",
        *values,
    )
    jobs = [to_job(row) for row in rows]
    return cut_page(page, jobs, [str(job.number) for job in jobs])


async def cancel(catalog: Catalog, id: str, origin: Origin = NOBODY) -> Job:
    """Cancel a job: at once, or if it runs, when its runner hears of it at the next heartbeat."""
    return await alter(catalog, id, [SetStatus(CANCELED)], origin)


async def alter(
    catalog: Catalog, id: str, actions: Sequence[Action], origin: Origin = NOBODY
) -> Job:
    """Apply all actions or none: properties that clients set on a job, and canceling it."""
    job = await catalog.database.write(_alter, id, actions, origin)
    catalog.queue.ring(id)
    if job.is_finished:
        catalog.queue.ring()
    return job


async def cancel_for_table_in(tx: Transaction, table_id: str, reason: str) -> None:
    """Cancel every job that changes a dropped table, also cascades that refresh it on the way."""
    for id in await list_active(tx, table_id):
        await _cancel(tx, id, reason)


async def list_active(tx: Transaction, table_id: str) -> list[str]:
    """The jobs that work on a table or wait to, the oldest first."""
    rows = await tx.fetch(
        f"SELECT id FROM jobs WHERE {UNFINISHED} AND {WORKS_ON} ORDER BY number",
        table_id,
    )
    return [row[0] for row in rows]


async def find_makers(tx: Transaction, table_id: str) -> dict[int, tuple[str, str]]:
    """The ids and kinds of the jobs that made versions of a table, as far as they are kept."""
    rows = await tx.fetch(
        "SELECT id, kind, result FROM jobs WHERE object_id = $1 AND state = 'SUCCEEDED' "
        "ORDER BY number DESC LIMIT $2",
        *(table_id, MAX_MAKERS),
    )
    found = {}
    for id, kind, result in reversed(rows):
        version = msgspec.json.decode(result).get("version")
        if isinstance(version, int):
            found[version] = (id, kind)
    return found


async def rename_in(tx: Transaction, table_id: str, name: str) -> None:
    """Tell the jobs of a table under its new name, so that they are found by it."""
    await tx.fetch(
        "UPDATE jobs SET object = CAST($2 AS TEXT), "
        "target = CAST($2 AS TEXT) || substr(target, length(object) + 1) "
        "WHERE object_id = $1 AND substr(target, 1, length(object)) = object",
        *(table_id, name),
    )


async def is_worked_on(tx: Transaction, table_id: str) -> bool:
    """Whether a runner is working on a table."""
    sql = f"SELECT 1 FROM jobs WHERE state = 'RUNNING' AND {WORKS_ON} LIMIT 1"
    return await tx.fetch_one(sql, table_id) is not None


async def cancel_for_tables_in(tx: Transaction, table_ids: set[str], reason: str) -> None:
    """Cancel every job of these tables."""
    rows = await tx.fetch(f"SELECT id, object_id FROM jobs WHERE {UNFINISHED} ORDER BY number")
    for id, object_id in rows:
        if object_id in table_ids:
            await _cancel(tx, id, reason)


async def end_all_in(tx: Transaction, reason: str) -> int:
    """Cancel every job, where no runner is left to stop it; returns how many."""
    rows = await tx.fetch(
        "UPDATE jobs SET state = 'CANCELED', cancel_requested = 1, finished_at = now_millis(), "
        f"lease_until = 0, error = $1 WHERE {UNFINISHED} "
        "RETURNING id, attempt, runner",
        reason,
    )
    for id, attempt, runner in rows:
        await job_events.record_event(tx, id, CANCELED, attempt, runner, reason)
    return len(rows)


async def purge(catalog: Catalog) -> None:
    """Delete finished jobs that are older than jobs.history_days."""
    keep = catalog.queue.history_days * DAY_MILLIS
    while await catalog.database.write(_purge, keep) == PURGE_AT_ONCE:
        pass


async def count_by_state(tx: Transaction) -> dict[str, int]:
    rows = await tx.fetch("SELECT state, count(*) FROM jobs GROUP BY state")
    return dict.fromkeys(STATES, 0) | {row[0]: row[1] for row in rows}


def describe(job: Job) -> dict[str, str]:
    """Everything that is known of a job, as text."""
    version = job.result.get("version")
    known: dict[str, Value] = {
        **show_progress(job),
        **tell_result(job.kind, job.result),
        "kind": job.kind,
        "target": job.target,
        "cluster": job.cluster,
        "attempt": job.attempt,
        "max_attempts": job.max_attempts,
        "version": version if isinstance(version, int | str) else None,
        "error": job.error or None,
        "runner": job.runner or None,
        "cancel_requested": True if job.cancel_requested else None,
        "pause_requested": True if job.pause_requested else None,
        "created_at": job.created_at,
        "started_at": job.started_at,
        "finished_at": job.finished_at,
    }
    shown = {key: show_value(value) for key, value in known.items() if value is not None}
    return {**job.properties, **shown}


def missing(id: str) -> JobNotFound:
    return JobNotFound(
        f"job {id!r} does not exist",
        detail="check the id; finished jobs are kept for jobs.history_days",
    )


def to_job(row: Row) -> Job:
    fields: dict[str, Any] = dict(zip(_NAMES, row, strict=True))
    fields["spec"] = msgspec.Raw(fields["spec"])
    for name in ("progress", "result"):
        fields[name] = msgspec.json.decode(fields[name])
    fields["properties"] = decode_properties(fields["properties"])
    for name in ("cancel_requested", "pause_requested", "retryable"):
        fields[name] = bool(fields[name])
    return Job(**fields)


_NAMES = COLUMNS.split(", ")


async def _alter(tx: Transaction, id: str, actions: Sequence[Action], origin: Origin) -> Job:
    # Locked first, so that on PostgreSQL changes of a job happen one after the other.
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
    # A job whose lease has expired by now is canceled by whoever expires it.
    row = await tx.fetch_one(
        "UPDATE jobs SET cancel_requested = 1, "
        "finished_at = CASE WHEN state = 'RUNNING' THEN finished_at ELSE now_millis() END, "
        "error = CASE WHEN state = 'RUNNING' THEN error ELSE $2 END, "
        "state = CASE WHEN state = 'RUNNING' THEN state ELSE 'CANCELED' END "
        f"WHERE id = $1 AND {UNFINISHED} AND cancel_requested = 0 "
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
