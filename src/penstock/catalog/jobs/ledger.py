"""The ledger: a table in the catalog with every row that a function failed on.

The server creates it when it is first needed, and nobody else writes to it; clients list, describe
and query it like any other table. An entry is kept as long as its job.
"""

import contextlib
import time
from collections.abc import Sequence

from penstock.catalog.catalog import Catalog
from penstock.catalog.columns import backfills
from penstock.catalog.data import datasets, rows
from penstock.catalog.jobs import leases
from penstock.catalog.jobs.queue import DAY_MILLIS
from penstock.catalog.materialized_views import refreshes
from penstock.catalog.names import namespaces, tables
from penstock.catalog.versions import versions
from penstock.errors import (
    InvalidRequest,
    InvalidTableState,
    NamespaceNotFound,
    TableAlreadyExists,
    TableNotFound,
)
from penstock.jobs import ledger
from penstock.jobs.ledger import FailureOrigin, LedgerFilter, Listing
from penstock.jobs.specs import REFRESH, ColumnSpec, JobSpec, RefreshSpec, decode_spec
from penstock.lance.doors import lance
from penstock.model.functions import RowError
from penstock.model.identifiers import show
from penstock.model.jobs import Job
from penstock.model.system_tables import LEDGER, SYSTEM
from penstock.model.tables import MAIN, Table

NOTHING = Listing([], [], False)


async def record(
    catalog: Catalog,
    job_id: str,
    attempt: int,
    errors: Sequence[RowError],
    view: str | None = None,
) -> int:
    """Record rows that an attempt failed on; returns how many are new.

    They are rows of the job's table, or of a view that the job refreshes on the way.
    """
    job = await leases.get_held(catalog, job_id, attempt)
    if not errors:
        return 0
    failing = await _describe(catalog, job, _find_spec(job, view), attempt)
    # Errors that name none of these columns come from a job with one function.
    found = [(failing.get(error.column, next(iter(failing.values()))), error) for error in errors]
    table = await _get_or_create(catalog)
    ids = [ledger.make_id(each, error.row_id) for each, error in found]
    # One at a time, so that a duplicate report finds the first one's rows.
    async with catalog.ledger_lock:
        known = await datasets.read(catalog, table, MAIN, None, lambda d: ledger.find_ids(d, ids))
        new = [each for id, each in zip(ids, found, strict=True) if id not in known]
        if new:
            body = await catalog.workers.run(ledger.encode, new)
            await rows.insert(catalog, table, MAIN, body)
    return len(set(ids) - known)


def _find_spec(job: Job, view: str | None) -> JobSpec:
    """What a job is to do to its own table, or to a view that it refreshes on the way."""
    spec = decode_spec(job.kind, job.spec)
    if view is None:
        return spec
    upstream = spec.upstream if isinstance(spec, RefreshSpec) else ()
    for each in (spec, *upstream):
        if each.table_id == view:
            return each
    raise InvalidRequest(f"job {job.id} does not refresh view {view}", detail="leave view out")


async def list_rows(catalog: Catalog, job_id: str, attempt: int) -> list[int]:
    """The ids of the rows that an attempt's column failed on, in this job or an earlier one."""
    job = await leases.get_held(catalog, job_id, attempt)
    spec = decode_spec(job.kind, job.spec)
    if isinstance(spec, ColumnSpec):
        return await find_rows(catalog, spec.table_id, spec.branch, spec.binding)
    return await find_rows(catalog, spec.table_id, MAIN, job.kind)


async def find_rows(catalog: Catalog, table_id: str, branch: str, binding: str) -> list[int]:
    """The ids of the rows that a column failed on."""
    table = await _find(catalog)
    if table is None:
        return []

    def work(dataset: "lance.LanceDataset") -> list[int]:
        return ledger.list_rows(dataset, table_id, branch, binding)

    return await datasets.read(catalog, table, MAIN, None, work)


async def list_errors(
    catalog: Catalog, wanted: LedgerFilter, limit: int, version: int | None = None, after: int = 0
) -> Listing:
    """List the newest entries of a table, or those after so many in a version of the ledger."""
    table = await _find(catalog)
    if table is None:
        return NOTHING

    def work(dataset: "lance.LanceDataset") -> Listing:
        return ledger.list_entries(dataset, wanted, limit, after)

    return await datasets.read(catalog, table, MAIN, version, work)


async def purge(catalog: Catalog) -> None:
    """Delete entries that are older than jobs.history_days."""
    table = await _find(catalog)
    if table is None:
        return
    before = int(time.time() * 1000) - catalog.queue.history_days * DAY_MILLIS
    if await datasets.read(catalog, table, MAIN, None, lambda d: ledger.has_before(d, before)):
        await datasets.change(catalog, table, MAIN, lambda d: ledger.delete_before(d, before))


async def _find(catalog: Catalog) -> Table | None:
    try:
        table = await tables.get(catalog.database, LEDGER)
    except (TableNotFound, NamespaceNotFound):
        return None
    return table if await datasets.has_version(catalog, table, MAIN) else None


async def _get_or_create(catalog: Catalog) -> Table:
    if (found := await _find(catalog)) is not None:
        return found
    await namespaces.create(catalog, SYSTEM, {}, "exist_ok")
    new = tables.plan_table(catalog, LEDGER, None, {}, managed=True)
    nothing = await catalog.workers.run(ledger.encode_nothing)
    # Another server may be creating it right now.
    with contextlib.suppress(TableAlreadyExists):
        await rows.create(catalog, new, "exist_ok", nothing)
    return await tables.get(catalog.database, LEDGER)


async def _describe(
    catalog: Catalog, job: Job, spec: JobSpec, attempt: int
) -> dict[str, FailureOrigin]:
    """The origin of each of a job's functions' errors, by its first column."""
    if isinstance(spec, RefreshSpec):
        return await _describe_refresh(catalog, job, spec, attempt)
    if not isinstance(spec, ColumnSpec):
        raise InvalidRequest(f"job {job.id} fills no column", detail="report its error instead")
    now = await backfills.complete_spec(catalog.database, spec) or spec
    head = await versions.find_head(catalog.database, spec.table_id, spec.branch)
    failing = FailureOrigin(
        table=show(now.table),
        table_id=spec.table_id,
        table_version=head.version if head else 0,
        branch=spec.branch,
        # The columns of a function share its failures, whichever of them a request names.
        column=spec.targets[0],
        columns=spec.targets,
        binding=spec.binding,
        function=(spec.expression or "") if spec.function is None else spec.function.name,
        function_version="" if spec.function is None else spec.function.version,
        job_id=job.id,
        attempt=attempt,
    )
    return {failing.column: failing}


async def _describe_refresh(
    catalog: Catalog, job: Job, spec: RefreshSpec, attempt: int
) -> dict[str, FailureOrigin]:
    found = refreshes.list_functions(spec.definition)
    if not found:
        raise InvalidRequest(f"job {job.id} calls no function", detail="report its error instead")
    now, _ = await refreshes.complete_spec(catalog.database, spec)
    head = await versions.find_head(catalog.database, spec.table_id, MAIN)
    failing = [
        FailureOrigin(
            table=show((now or spec).table),
            table_id=spec.table_id,
            table_version=head.version if head else 0,
            branch=MAIN,
            column=made[0] if made else "",
            columns=made,
            binding=REFRESH,
            function=function.name,
            function_version=function.version,
            job_id=job.id,
            attempt=attempt,
        )
        for function in found
        for made in [tuple(output.column for output in function.outputs)]
    ]
    return {each.column: each for each in failing}


def refuse_write() -> InvalidTableState:
    return InvalidTableState(
        f"table {show(LEDGER)} is written by the server alone",
        detail="copy what you need into a table of your own; drop it to forget all errors",
    )
