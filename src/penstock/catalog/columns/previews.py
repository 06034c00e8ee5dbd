"""Previews: a column computed for a few rows by a job that writes nothing."""

import asyncio
import uuid
from dataclasses import dataclass
from typing import Any

from penstock.catalog.catalog import Catalog
from penstock.catalog.columns import backfills, functions
from penstock.catalog.columns.backfills import Backfill
from penstock.catalog.jobs import environments, jobs
from penstock.catalog.jobs.queue import wait_for
from penstock.catalog.names import tables
from penstock.database.interface import Transaction
from penstock.lance.columns.computed import Computed
from penstock.model.identifiers import show
from penstock.model.jobs import PREVIEW, Job, NewJob
from penstock.model.tables import Table

# What other servers hear is seen by looking.
LOOK_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Preview:
    """A request to see what a column would be for some rows."""

    column: str
    branch: str
    rows: int
    where: str | None = None
    cluster: str | None = None
    manifest: str | None = None


async def request_preview(catalog: Catalog, table: Table, preview: Preview) -> str:
    """Check a preview as a backfill is checked, and queue it; returns the job."""
    cluster = catalog.queue.check_cluster(preview.cluster)
    request = Backfill(
        preview.column, preview.branch, {}, where=preview.where, manifest=preview.manifest
    )
    column = await backfills.check(catalog, table, request)
    if column.function is not None:
        await functions.ensure(catalog, table, column.function)
    id = await catalog.database.write(_enqueue, table, request, column, preview.rows, cluster)
    catalog.queue.ring()
    return id


async def wait_for_job(
    catalog: Catalog, id: str, seconds: float, leaving: "asyncio.Task[None]"
) -> Job:
    """The job when it has ended, when the time is up, or when nobody waits any more."""
    queue, clock = catalog.queue, asyncio.get_running_loop().time
    deadline = clock() + seconds
    try:
        while True:
            bell = queue.bell(id)
            job = await jobs.get(catalog.database, id)
            left = deadline - clock()
            if job.is_finished or left <= 0 or leaving.done() or queue.is_closed:
                return job
            await wait_for(bell, min(LOOK_SECONDS, left))
    finally:
        # Others who follow the job look once more; nobody else would take the bell away.
        queue.ring(id)


async def _enqueue(
    tx: Transaction, table: Table, request: Backfill, column: Computed, rows: int, cluster: str
) -> str:
    now = await tables.get(tx, table.identifier)
    if now.id != table.id:
        raise tables.missing(table.identifier)
    new = NewJob(
        kind=PREVIEW,
        object=show(table.identifier),
        target=f"{table}.{column.name}",
        # Of its own: it waits for nobody, and nobody for it.
        slot=f"{table.id}/preview:{uuid.uuid4()}",
        spec=backfills.make_spec(table, request, column) | {"rows": rows},
        cluster=cluster,
        manifest=await environments.choose_in(tx, request.manifest, column.manifest),
    )
    # Whoever waits for it can ask again.
    return await jobs.enqueue_in(tx, new, max_attempts=1)


async def complete(tx: Transaction, job: Job) -> tuple[dict[str, Any] | None, str]:
    """The spec of a preview as it is leased; None, and why, when there is nothing to look at."""
    spec = await backfills.complete_spec(tx, job.spec)
    return (None, f"the table of {job.target} was dropped") if spec is None else (spec, "")
