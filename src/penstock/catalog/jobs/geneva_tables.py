"""What Geneva's client looks for in tables of the system namespace: jobs, and rows that failed.

It waits for a job by querying such a table. Each caller is told of the jobs that it may see, and of
what the client itself wrote into the table.
"""

import re
from collections.abc import Sequence
from typing import Any

from penstock.catalog.catalog import Catalog
from penstock.catalog.data import datasets
from penstock.catalog.jobs import jobs, ledger
from penstock.catalog.jobs.jobs import JobFilter
from penstock.jobs import geneva_rows
from penstock.jobs.ledger import LedgerFilter
from penstock.lance.doors import lance, pa
from penstock.lance.read import in_memory
from penstock.lance.read.query import Query
from penstock.lance.storage.data_threads import Deadline
from penstock.model.jobs import Job
from penstock.model.paging import PageRequest
from penstock.model.system_tables import GENEVA_ERRORS, GENEVA_JOBS
from penstock.model.tables import MAIN, Table

ANSWERED = (GENEVA_JOBS, GENEVA_ERRORS)
# The newest are told: the client asks for ten rows.
MAX_JOBS, MAX_ERRORS = 10_000, 1_000
# Only a condition that is made of such terms alone, so that all of them hold.
_EQUAL = re.compile(r"\s*(\w+)\s*==?\s*'([^']*)'\s*")


async def write_rows(
    catalog: Catalog,
    table: Table,
    wanted: Query,
    only: Sequence[str] | None,
    deadline: Deadline,
    sink: Any,
) -> None:
    """Write what a query finds among the rows of such a table."""
    job_id = find_job_id(wanted.filter)
    tell = _tell_jobs if table.identifier == GENEVA_JOBS else _tell_errors
    rows = await tell(catalog, table, job_id, only)

    def work() -> None:
        in_memory.write_found(rows, wanted, sink)
        sink.end()

    await catalog.workers.run_until(deadline, work)


def find_job_id(condition: str | None) -> str | None:
    """The job that a condition names, where no other can match it."""
    terms = [_EQUAL.fullmatch(term) for term in re.split(r"(?i)\band\b", condition or "")]
    if not all(terms):
        return None
    named = {term[1]: term[2] for term in terms if term is not None}
    return named.get("job_id")


async def _tell_jobs(
    catalog: Catalog, table: Table, job_id: str | None, only: Sequence[str] | None
) -> "pa.Table":
    found = await _list_jobs(catalog, None if job_id is None else [job_id], only)
    told = await catalog.workers.run(geneva_rows.make_jobs, found)
    own = await _read_own(catalog, table, told.schema, job_id)
    if own is None:
        return told
    ids = sorted(set(own.column("job_id").drop_null().to_pylist()))
    # Also those that this caller may not see: the server alone tells of its jobs.
    known = [job.id for job in await _list_jobs(catalog, ids, None)]
    return await catalog.workers.run(geneva_rows.add_own, told, own, "job_id", known)


async def _tell_errors(
    catalog: Catalog, table: Table, job_id: str | None, only: Sequence[str] | None
) -> "pa.Table":
    found = (await ledger.list_errors(catalog, LedgerFilter(job_id=job_id), MAX_ERRORS)).entries
    ids = sorted({entry["job_id"] for entry in found})
    seen = {job.id for job in await _list_jobs(catalog, ids, only)}
    entries = [entry for entry in found if entry["job_id"] in seen]
    told = await catalog.workers.run(geneva_rows.make_errors, entries)
    own = await _read_own(catalog, table, told.schema, job_id)
    if own is None:
        return told
    return await catalog.workers.run(geneva_rows.add_own, told, own, "error_id", ())


async def _list_jobs(
    catalog: Catalog, ids: Sequence[str] | None, only: Sequence[str] | None
) -> list[Job]:
    page = PageRequest("geneva", MAX_JOBS)
    found = await jobs.list_jobs(catalog, page, JobFilter(ids=ids, only=only))
    return [job for job in found.items if job.kind in geneva_rows.KINDS]


async def _read_own(
    catalog: Catalog, table: Table, schema: "pa.Schema", job_id: str | None
) -> "pa.Table | None":
    """The rows that the client wrote itself, about what it does without this server."""
    if not await datasets.has_version(catalog, table, MAIN):
        return None

    def work(dataset: "lance.LanceDataset") -> "pa.Table":
        return geneva_rows.read_own(dataset, schema, job_id)

    found = await datasets.read(catalog, table, MAIN, None, work)
    return found if len(found) else None
